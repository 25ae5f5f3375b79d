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

static uint32_t number_of(struct table *table, uint32_t member)
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

struct data {
    FILE *out;
    const struct gm_model *model;
    const struct gm_model_run *run;
    const struct gm_model_history *history;
    const uint64_t *order;
    struct gm_html_thin thin;
    size_t lives; /* that are not merged */
    size_t steps;
    struct table places, stacks, frames;
    struct gm_json json;
};

/* ---- columns --------------------------------------------------------------------------------- */

struct columns {
    unsigned char *bytes;
    size_t size;
};

static void add_column(struct columns *columns, const uint32_t *values, size_t count)
{
    unsigned char *to = columns->bytes + columns->size;
    for (unsigned plane = 0; plane < 4; plane++)
        for (size_t i = 0; i < count; i++)
            *to++ = (unsigned char)(values[i] >> (8 * plane));
    columns->size += 4 * count;
}

static bool is_merged(const struct data *data, uint64_t life)
{
    return data->thin.is_merged && data->thin.is_merged[life];
}

static void add_lives(struct data *data, struct columns *columns, uint32_t *values)
{
    const struct gm_model_life *lives = data->history->lives;
    for (unsigned column = 0; column < 5; column++) {
        size_t count = 0;
        for (size_t i = 0; i < data->history->count; i++) {
            const uint32_t of_life[] = {(uint32_t)lives[i].size, (uint32_t)(lives[i].size >> 32),
                                        (uint32_t)lives[i].address,
                                        (uint32_t)(lives[i].address >> 32),
                                        column == 4 ? number_of(&data->places, lives[i].place) : 0};
            if (!is_merged(data, i))
                values[count++] = of_life[column];
        }
        add_column(columns, values, count);
        data->lives = count;
    }
}

/* The steps of one column while they are put together. */
struct steps {
    uint32_t *values;
    size_t count;
    unsigned column; /* 0, 1: nanoseconds; 2: what happens */
    uint64_t time_ns;
};

static void add_step(struct steps *steps, uint64_t time_ns, uint32_t what)
{
    uint64_t passed = time_ns > steps->time_ns ? time_ns - steps->time_ns : 0;
    steps->time_ns += passed;
    steps->values[steps->count++] = steps->column == 0   ? (uint32_t)passed
                                    : steps->column == 1 ? (uint32_t)(passed >> 32)
                                                         : what;
}

/* `numbers`: of each life among those that are not merged. */
static void add_steps(struct data *data, struct columns *columns, uint32_t *values,
                      const uint32_t *numbers)
{
    const struct gm_model_history *history = data->history;
    const struct gm_html_thin *thin = &data->thin;
    for (unsigned column = 0; column < 3; column++) {
        struct steps steps = {.values = values, .column = column};
        uint32_t begun = 0;
        size_t change = 0;
        for (uint32_t step = 0; step < history->steps; step++) {
            if (!data->order[step])
                continue;
            uint64_t life = GM_STEP_LIFE(data->order[step]);
            bool ends = GM_STEP_ENDS(data->order[step]);
            uint64_t time = ends ? history->lives[life].end_ns : history->lives[life].begin_ns;
            if (!is_merged(data, life)) {
                add_step(&steps, time, ends ? begun - numbers[life] : 0);
                begun += !ends;
            }
            for (; change < thin->count && thin->changes[change].step == step; change++) {
                bool is_last = change + 1 == thin->count || thin->changes[change + 1].step != step;
                add_step(&steps, time, is_last ? LAST_CHANGE : CHANGE);
            }
        }
        add_column(columns, values, steps.count);
        data->steps = steps.count;
    }
}

static void add_changes(struct data *data, struct columns *columns, uint32_t *values)
{
    const struct gm_html_thin *thin = &data->thin;
    for (unsigned column = 0; column < 13; column++) {
        for (size_t i = 0; i < thin->count; i++) {
            const struct gm_html_change *change = &thin->changes[i];
            const uint64_t sums[] = {(uint64_t)change->bytes,
                                     (uint64_t)change->count,
                                     change->allocated,
                                     change->allocated_count,
                                     change->temporary,
                                     change->temporary_count,
                                     change->left,
                                     change->left_count};
            unsigned sum = column ? (column - 1) / 3 * 2 : 0, part = column ? (column - 1) % 3 : 0;
            values[i] = column == 0 ? number_of(&data->places, change->place)
                        : part == 0 ? (uint32_t)sums[sum]
                        : part == 1 ? (uint32_t)(sums[sum] >> 32)
                                    : (uint32_t)sums[sum + 1];
        }
        add_column(columns, values, thin->count);
    }
}

/* All columns, compressed; `size`: their bytes. */
static unsigned char *pack(struct data *data, size_t *size)
{
    const struct gm_model_history *history = data->history;
    size_t most = (size_t)history->steps + data->thin.count + 1;
    uint32_t *values = gm_allocate(most, sizeof(*values));
    uint32_t *numbers = gm_allocate(history->count + 1, sizeof(*numbers)), number = 0;
    for (size_t i = 0; i < history->count; i++)
        numbers[i] = is_merged(data, i) ? number : number++;
    struct columns columns = {
        gm_allocate(history->count * 5 + most * 3 + data->thin.count * 13, sizeof(*values)), 0};
    add_lives(data, &columns, values);
    add_steps(data, &columns, values, numbers);
    add_changes(data, &columns, values);
    unsigned char *compressed = gm_gzip(columns.bytes, columns.size, size);
    free(columns.bytes);
    free(numbers);
    free(values);
    return compressed;
}

/* Packs as many single allocations as fit. `limit`: bytes of base64. */
static unsigned char *pack_within(struct data *data, uint64_t limit, size_t *size)
{
    size_t kept = (size_t)(limit / BYTES_PER_LIFE);
    for (;; kept /= 2) {
        gm_html_thin_make(&data->thin, data->model, data->history, data->order,
                          data->run->duration_ns, kept);
        unsigned char *packed = pack(data, size);
        if (*size / 3 * 4 < limit || kept < 64)
            return packed;
        gm_html_thin_free(&data->thin);
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

static void write_frames(struct data *data)
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

static void write_stacks(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_open_array(json, "stacks");
    for (uint32_t i = 0; i < data->stacks.count; i++) {
        const struct gm_stack *stack = gm_model_stack(data->model, data->stacks.members[i]);
        const uint32_t *frames = gm_model_frames(data->model, data->stacks.members[i]);
        gm_json_open_array(json, NULL);
        for (size_t frame = 0; frame < stack->count && gm_limits_take_frame(); frame++)
            gm_json_number(json, NULL, number_of(&data->frames, frames[frame]));
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
    return telling ? (int64_t)number_of(&data->frames, frames[telling - stack->frames]) : -1;
}

static void write_places(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_open_array(json, "places");
    for (uint32_t i = 0; i < data->places.count; i++) {
        const struct gm_model_place *place = &data->model->places[data->places.members[i]];
        uint32_t stack = gm_model_same_stack(data->model, place->stack);
        char group[GM_GROUP_TEXT], operation[GM_OPERATION_TEXT];
        gm_json_open_array(json, NULL);
        gm_json_number(json, NULL, number_of(&data->stacks, stack));
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

static void write_devices(struct data *data)
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

static void write_failure(struct gm_json *json, uint64_t time_ns, uint64_t size, unsigned purpose,
                          int device)
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
            write_failure(&data->json, run->failures[i].time_ns, run->failures[i].size,
                          run->failures[i].purpose, run->failures[i].device);
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->pool_failures[i].moment);
        if (moment)
            write_failure(&data->json, moment->time_ns, run->pool_failures[i].size, GM_PURPOSE_NONE,
                          run->pool_failures[i].device);
    }
    gm_json_close_array(&data->json);
}

static void write_marks(struct data *data)
{
    struct gm_json *json = &data->json;
    gm_json_number(json, "marks_met", data->history->marks_met);
    gm_json_open_array(json, "marks");
    for (size_t i = 0; i < data->history->mark_count; i++) {
        gm_json_open_array(json, NULL);
        gm_json_number(json, NULL, data->history->marks[i].time_ns);
        gm_json_text(json, NULL, data->history->marks[i].name);
        if (data->history->marks[i].is_range)
            gm_json_number(json, NULL,
                           data->history->marks[i].end_ns < data->run->duration_ns
                               ? data->history->marks[i].end_ns
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
    gm_json_number(json, "changes", data->thin.count);
    write_devices(data);
    write_failures(data);
    write_marks(data);
    write_places(data);
    write_stacks(data);
    write_frames(data);
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
                  const struct gm_model_history *history, uint64_t limit)
{
    struct data data = {.out = out, .model = model, .run = run, .history = history};
    uint64_t *order = gm_model_history_order(history);
    size_t size;
    data.order = order;
    unsigned char *packed = pack_within(&data, limit, &size);
    write_merged(out, &data.thin, history->count);
    write_names(&data);
    fputs("<script type=\"application/octet-stream\" class=\"events\">", out);
    write_base64(out, packed, size);
    fputs("</script>\n", out);
    gm_html_thin_free(&data.thin);
    free(packed);
    free(order);
    struct table *tables[] = {&data.places, &data.stacks, &data.frames};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        free(tables[i]->numbers);
        free(tables[i]->members);
    }
}
