/* See html.h. The data of the page's script.
 *
 * Names are JSON: frames, stacks (numbers of frames, innermost first), places, groups, devices,
 * refusals, marks. Events are columns of 32-bit numbers, each as four planes of bytes (all lowest
 * bytes first), gzipped, in base64. Columns of lives, in the order in which they begin: size low and
 * high, address low and high, place. Columns of steps, in the order of time: nanoseconds since the
 * step before, low and high; and what happens: 0, the next life begins; CHANGE or LAST_CHANGE, the
 * next change (thin.h), of several at once the last; any other n, the n-th latest of the lives that
 * have begun ends. Columns of changes: place; then bytes alive, allocated, temporary and left, each as
 * low, high and count.
 */
#include "base/limit.h"
#include "base/memory.h"
#include "output/amount.h"
#include "output/gzip.h"
#include "output/headline.h"
#include "output/html/html.h"
#include "output/html/thin.h"
#include "output/json.h"
#include <stdlib.h>
#include <string.h>

/* ---- numbers of the page --------------------------------------------------------------------- */

struct table {
    uint32_t *numbers; /* of the model -> 1 + number of the page; 0: not met */
    uint32_t *members; /* of the page -> of the model */
    uint32_t count;
    size_t capacity;
    size_t number_capacity;
};

static uint32_t member_number(struct table *table, uint32_t member)
{
    size_t before = table->number_capacity;
    GM_RESERVE(table->numbers, table->number_capacity, (size_t)member + 1);
    if (table->number_capacity > before)
        memset(table->numbers + before, 0,
               (table->number_capacity - before) * sizeof(*table->numbers));
    if (!table->numbers[member]) {
        GM_APPEND(table->members, table->capacity, table->count, member);
        table->numbers[member] = table->count;
    }
    return table->numbers[member] - 1;
}

/* What a life takes in base64, with its two steps: from 9 as a rule to 48. The first try is bold. */
#define BYTES_PER_LIFE 10u

#define LAST_CHANGE UINT32_MAX
#define CHANGE (UINT32_MAX - 1)

enum { LIFE, STEP = LIFE + 5, OF_CHANGE = STEP + 3, COLUMNS = OF_CHANGE + 13 };

struct column {
    uint32_t *values;
    size_t count, capacity;
};

struct data {
    FILE *out;
    const struct gm_model *model;
    const struct gm_model_run *run;
    const struct gm_html_log *log;
    struct gm_html_thin thin;
    struct column columns[COLUMNS];
    uint64_t time_ns; /* of the latest step */
    size_t lives, steps, changes;
    struct table places, stacks, frames;
    struct gm_json json;
};

/* ---- columns --------------------------------------------------------------------------------- */

/* A row of numbers that stand in columns next to each other. */
static void add_row(struct data *data, unsigned first, const uint32_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct column *column = &data->columns[first + i];
        GM_RESERVE(column->values, column->capacity, column->count + 1);
        column->values[column->count++] = values[i];
    }
}

static void add_life(struct data *data, const struct gm_html_event *event)
{
    const uint32_t row[] = {(uint32_t)event->size, (uint32_t)(event->size >> 32),
                            (uint32_t)event->address, (uint32_t)(event->address >> 32),
                            member_number(&data->places, event->place)};
    add_row(data, LIFE, row, 5);
}

static void add_data_step(struct data *data, uint64_t time_ns, uint32_t what)
{
    uint64_t passed = time_ns - data->time_ns;
    const uint32_t row[] = {(uint32_t)passed, (uint32_t)(passed >> 32), what};
    data->time_ns = time_ns;
    add_row(data, STEP, row, 3);
}

static void add_change(struct data *data, const struct gm_html_change *change)
{
    uint32_t row[13] = {member_number(&data->places, change->place)};
    const uint64_t sums[][2] = {{(uint64_t)change->bytes, (uint64_t)change->count},
                                {change->allocated, change->allocated_count},
                                {change->temporary, change->temporary_count},
                                {change->left, change->left_count}};
    for (unsigned i = 0; i < 4; i++) {
        row[1 + 3 * i] = (uint32_t)sums[i][0];
        row[2 + 3 * i] = (uint32_t)(sums[i][0] >> 32);
        row[3 + 3 * i] = (uint32_t)sums[i][1];
    }
    add_row(data, OF_CHANGE, row, 13);
}

static void add_events(struct data *data)
{
    uint32_t *numbers = gm_allocate((size_t)data->log->count + 1, sizeof(*numbers)), begun = 0;
    struct gm_html_walk walk = {0};
    data->time_ns = 0;
    while (gm_html_next(data->log, &walk)) {
        const struct gm_html_event *event = &walk.event;
        member_number(&data->places, event->place); /* in the order in which they are met */
        if (!gm_html_thin_takes(&data->thin, event)) {
            add_data_step(data, event->time_ns, event->ends ? begun - numbers[event->life] : 0);
            if (!event->ends) {
                add_life(data, event);
                numbers[event->life] = begun++;
            }
        }
        struct gm_html_change change;
        for (bool is_last; gm_html_thin_next(&data->thin, event, &change, &is_last);) {
            add_data_step(data, event->time_ns, is_last ? LAST_CHANGE : CHANGE);
            add_change(data, &change);
        }
    }
    free(numbers);
}

/* All columns, compressed; `size`: their bytes. */
static unsigned char *pack_data(struct data *data, size_t *size)
{
    size_t all = 0;
    add_events(data);
    data->lives = data->columns[LIFE].count;
    data->steps = data->columns[STEP].count;
    data->changes = data->columns[OF_CHANGE].count;
    for (unsigned i = 0; i < COLUMNS; i++)
        all += data->columns[i].count * sizeof(uint32_t);
    unsigned char *bytes = gm_allocate(all, 1), *to = bytes;
    for (unsigned i = 0; i < COLUMNS; i++) {
        struct column *column = &data->columns[i];
        for (unsigned shift = 0; shift < 32; shift += 8)
            for (size_t row = 0; row < column->count; row++)
                *to++ = (unsigned char)(column->values[row] >> shift);
        free(column->values);
        *column = (struct column){0};
    }
    unsigned char *compressed = gm_gzip(bytes, all, size);
    free(bytes);
    return compressed;
}

/* Packs as many single allocations as fit. `limit`: bytes of base64. */
static unsigned char *pack_within(struct data *data, uint64_t limit, size_t *size)
{
    size_t kept = (size_t)(limit / BYTES_PER_LIFE);
    if (kept < data->log->count)
        kept /= 2; /* boldness pays only where nothing has to be merged */
    for (;; kept /= 2) {
        gm_html_thin_begin(&data->thin, data->model, data->log, data->run->duration_ns, kept);
        unsigned char *packed = pack_data(data, size);
        if (*size / 3 * 4 < limit || kept < 64)
            return packed;
        gm_html_thin_end(&data->thin);
        free(packed);
    }
}

static void write_base64(FILE *out, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 |
                         (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < size ? bytes[i + 2] : 0u);
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                        i + 1 < size ? digits[three >> 6 & 63] : '=',
                        i + 2 < size ? digits[three & 63] : '='};
        fwrite_unlocked(four, 1, sizeof(four), out);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static void write_data_frames(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_open_array(json, "frames");
    for (uint32_t i = 0; i < data->frames.count; i++) {
        const struct gm_frame *frame = gm_model_frame(data->model, data->frames.members[i]);
        gm_json_open_array(json, NULL);
        gm_json_string(json, NULL, frame->function);
        gm_json_string(json, NULL, frame->file);
        gm_json_number(json, NULL, frame->line);
        gm_json_string(json, NULL, frame->framework);
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
}

static void write_data_stacks(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_open_array(json, "stacks");
    for (uint32_t i = 0; i < data->stacks.count; i++) {
        const struct gm_stack *stack = gm_model_stack(data->model, data->stacks.members[i]);
        const uint32_t *frames = gm_model_frames(data->model, data->stacks.members[i]);
        gm_json_open_array(json, NULL);
        for (size_t frame = 0; frame < stack->count && gm_limits_take_frame(); frame++)
            gm_json_number(json, NULL, member_number(&data->frames, frames[frame]));
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
}

/* The frame that names the place best. */
static int64_t telling_frame(struct data *data, uint32_t number)
{
    const struct gm_stack *stack = gm_model_stack(data->model, number);
    const uint32_t *frames = gm_model_frames(data->model, number);
    const struct gm_frame *telling = gm_stack_telling_frame(stack);
    return telling ? (int64_t)member_number(&data->frames, frames[telling - stack->frames]) : -1;
}

static void write_data_places(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_open_array(json, "places");
    for (uint32_t i = 0; i < data->places.count; i++) {
        const struct gm_model_place *place = &data->model->places[data->places.members[i]];
        uint32_t stack = gm_model_same_stack(data->model, place->stack);
        char group[GM_GROUP_TEXT], operation[GM_OPERATION_TEXT];
        gm_json_open_array(json, NULL);
        gm_json_number(json, NULL, member_number(&data->stacks, stack));
        gm_json_signed(json, NULL, telling_frame(data, stack));
        gm_json_string(json, NULL, place->api);
        gm_json_string(json, NULL, place->library);
        gm_json_string(json, NULL, place->pool);
        gm_json_string(json, NULL, gm_kind_name(place->kind));
        gm_json_string(json, NULL, gm_place_group(place, group));
        gm_json_signed(json, NULL, place->device);
        gm_json_bool(json, NULL, place->is_block);
        gm_json_string(json, NULL, ID(gm_model_site_id(data->model, stack)));
        gm_json_string(json, NULL,
                       gm_stack_operation(gm_model_stack(data->model, stack), operation));
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
}

static void write_data_devices(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_open_array(json, "devices");
    for (size_t i = 0; i < data->run->device_count; i++) {
        gm_json_open_array(json, NULL);
        gm_json_signed(json, NULL, data->run->devices[i].id);
        gm_json_number(json, NULL, data->run->devices[i].total);
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
}

static void write_data_failure(struct gm_json *json, uint64_t time_ns, uint64_t size,
                               unsigned purpose, int device)
{
    gm_json_open_array(json, NULL);
    gm_json_number(json, NULL, time_ns);
    gm_json_number(json, NULL, size);
    gm_json_signed(json, NULL, device);
    if (purpose)
        gm_json_string(json, NULL, gm_purpose_text(purpose));
    gm_json_close_array(json);
}

static void write_failures(struct data *data)
{
    const struct gm_model_run *run = data->run;
    gm_json_open_array(&data->json, "refusals");
    for (size_t i = 0; i < run->failure_count; i++)
        if (run->failures[i].out_of_memory)
            write_data_failure(&data->json, run->failures[i].time_ns, run->failures[i].size,
                               run->failures[i].purpose, run->failures[i].device);
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->pool_failures[i].moment);
        if (moment)
            write_data_failure(&data->json, moment->time_ns, run->pool_failures[i].size,
                               GM_PURPOSE_NONE, run->pool_failures[i].device);
    }
    gm_json_close_array(&data->json);
}

static void write_marks(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_number(json, "marks_met", data->log->marks.met);
    gm_json_open_array(json, "marks");
    for (size_t i = 0; i < data->log->marks.count; i++) {
        gm_json_open_array(json, NULL);
        gm_json_number(json, NULL, data->log->marks.list[i].time_ns);
        gm_json_text(json, NULL, data->log->marks.list[i].name);
        if (data->log->marks.list[i].is_range)
            gm_json_number(json, NULL,
                           data->log->marks.list[i].end_ns < data->run->duration_ns
                               ? data->log->marks.list[i].end_ns
                               : data->run->duration_ns);
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
}

static void write_names(struct data *data)
{
    struct gm_headline headline = gm_headline_of(data->run);
    struct gm_json *json = &data->json;
    *json = (struct gm_json){.out = data->out, .on_one_line = true, .in_html = true};
    fputs("<script type=\"application/json\" class=\"names\">", data->out);
    gm_json_open_object(json, NULL);
    gm_json_number(json, "pid", data->run->pid);
    gm_json_signed(json, "rank", data->run->rank.rank);
    gm_json_string(json, "state", headline.state);
    gm_json_number(json, "duration", data->run->duration_ns);
    gm_json_bool(json, "simulated", data->run->simulated);
    GM_JSON_MEMBERS(json, data, lives, steps);
    gm_json_number(json, "changes", data->changes);
    write_data_devices(data);
    write_failures(data);
    write_marks(data);
    write_data_places(data);
    write_data_stacks(data);
    write_data_frames(data);
    gm_json_close_object(json);
    fputs("</script>\n", data->out);
}

static void write_merged(FILE *out, const struct gm_html_thin *thin, size_t all)
{
    if (thin->merged)
        fprintf(out,
                "<p class=\"note\">To fit the page, %s of %s allocations, those with least bytes "
                "times time, are shown together, by place and %u parts of the run. Totals and "
                "owners are exact at the end of each part and where each memory has its most in "
                "it; the block map lacks them.</p>\n",
                COUNT(thin->merged), COUNT(all), thin->parts);
}

void gm_html_data(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                  const struct gm_html_log *log, uint64_t limit)
{
    struct data data = {.out = out, .model = model, .run = run, .log = log};
    size_t size;
    unsigned char *packed = pack_within(&data, limit, &size);
    write_merged(out, &data.thin, log->count);
    write_names(&data);
    fputs("<script type=\"application/octet-stream\" class=\"events\">", out);
    write_base64(out, packed, size);
    fputs("</script>\n", out);
    gm_html_thin_end(&data.thin);
    free(packed);
    struct table *tables[] = {&data.places, &data.stacks, &data.frames};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        free(tables[i]->numbers);
        free(tables[i]->members);
    }
}
