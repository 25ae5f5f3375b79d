/* See html.h. The data of the page's script.
 *
 * Names are JSON: frames, stacks (numbers of frames, innermost first), places, groups, devices,
 * refusals, marks. Events are columns of 32-bit numbers, each as four planes of bytes (all lowest
 * bytes first), gzipped, in base64. Columns of lives, in the order in which they begin: size low and
 * high, address low and high, place. Columns of steps, in the order of time: nanoseconds since the
 * step before, low and high; and what happens: 0, the next life begins; n > 0, the n-th latest of
 * those that have begun ends.
 */
#include "base/limit.h"
#include "base/memory.h"
#include "ledger/counters.h"
#include "render/gzip.h"
#include "render/headline.h"
#include "render/html/html.h"
#include "render/json.h"
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
        GM_RESERVE(table->members, table->capacity, table->count + 1);
        table->members[table->count++] = member;
        table->numbers[member] = table->count;
    }
    return table->numbers[member] - 1;
}

struct data {
    FILE *out;
    const struct gm_model *model;
    const struct gm_model_run *run;
    const struct gm_model_history *history;
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

static void add_lives(struct data *data, struct columns *columns, uint32_t *values)
{
    const struct gm_model_life *lives = data->history->lives;
    size_t count = data->history->count;
    for (unsigned column = 0; column < 5; column++) {
        for (size_t i = 0; i < count; i++) {
            const uint32_t of_life[] = {(uint32_t)lives[i].size, (uint32_t)(lives[i].size >> 32),
                                        (uint32_t)lives[i].address,
                                        (uint32_t)(lives[i].address >> 32),
                                        column == 4 ? number_of(&data->places, lives[i].place) : 0};
            values[i] = of_life[column];
        }
        add_column(columns, values, count);
    }
}

/* Returns the number of steps: those of frees that failed are passed over. */
static size_t add_steps(struct data *data, struct columns *columns, uint32_t *values)
{
    const struct gm_model_history *history = data->history;
    uint64_t *order = gm_model_history_order(history);
    size_t count = 0;
    for (unsigned column = 0; column < 3; column++) {
        uint32_t begun = 0;
        uint64_t before = 0;
        count = 0;
        for (uint32_t step = 0; step < history->steps; step++) {
            if (!order[step])
                continue;
            uint64_t number = GM_STEP_LIFE(order[step]);
            const struct gm_model_life *life = &history->lives[number];
            bool begins = !GM_STEP_ENDS(order[step]);
            uint64_t time = begins ? life->begin_ns : life->end_ns;
            uint64_t passed = time > before ? time - before : 0;
            before += passed;
            values[count++] = column == 0   ? (uint32_t)passed
                              : column == 1 ? (uint32_t)(passed >> 32)
                              : begins      ? 0
                                            : begun - (uint32_t)number;
            begun += begins;
        }
        add_column(columns, values, count);
    }
    free(order);
    return count;
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
        char group[GM_GROUP_TEXT];
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

static void write_failure(struct gm_json *json, uint64_t time_ns, uint64_t size, int device)
{
    gm_json_open_array(json, NULL);
    gm_json_number(json, NULL, time_ns);
    gm_json_number(json, NULL, size);
    gm_json_signed(json, NULL, device);
    gm_json_close_array(json);
}

static void write_failures(struct data *data)
{
    const struct gm_model_run *run = data->run;
    gm_json_open_array(&data->json, "refusals");
    for (size_t i = 0; i < run->failure_count; i++)
        if (run->failures[i].out_of_memory)
            write_failure(&data->json, run->failures[i].time_ns, run->failures[i].size,
                          run->failures[i].device);
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->pool_failures[i].moment);
        if (moment)
            write_failure(&data->json, moment->time_ns, run->pool_failures[i].size,
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
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
}

static void write_names(struct data *data, size_t steps)
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
    gm_json_number(json, "lives", data->history->count);
    gm_json_number(json, "steps", steps);
    write_devices(data);
    write_failures(data);
    write_marks(data);
    write_places(data);
    write_stacks(data);
    write_frames(data);
    gm_json_close_object(json);
    fputs("</script>\n", data->out);
}

void gm_html_data(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                  const struct gm_model_history *history)
{
    struct data data = {.out = out, .model = model, .run = run, .history = history};
    size_t most = history->steps > history->count ? history->steps : history->count;
    uint32_t *values = gm_allocate(most + 1, sizeof(*values));
    struct columns columns = {gm_allocate(history->count * 5 + (size_t)history->steps * 3 + 1, 4),
                              0};
    add_lives(&data, &columns, values);
    size_t steps = add_steps(&data, &columns, values), size;
    free(values);
    write_names(&data, steps);
    unsigned char *compressed = gm_gzip(columns.bytes, columns.size, &size);
    free(columns.bytes);
    fputs("<script type=\"application/octet-stream\" class=\"events\">", out);
    write_base64(out, compressed, size);
    fputs("</script>\n", out);
    free(compressed);
    struct table *tables[] = {&data.places, &data.stacks, &data.frames};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        free(tables[i]->numbers);
        free(tables[i]->members);
    }
}
