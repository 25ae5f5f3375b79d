/* See summary.h. */
#include "base/memory.h"
#include "base/order.h"
#include "output/json.h"
#include "output/page.h"
#include "tools/ranks/summary.h"
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64u

/* ---- lines of the program -------------------------------------------------------------------- */

struct line {
    char *place;
    int64_t bytes;
    int64_t count;
};

static char *stack_name(const struct gm_model *model, uint32_t stack)
{
    const struct gm_frame *frame = gm_stack_telling_frame(gm_model_stack(model, stack));
    char path[GM_PATH_SIZE] = "", *text = NULL;
    size_t size = 0;
    if (!frame)
        return gm_copy_text("(no stack was recorded)");
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return gm_copy_text("?");
    if (frame->file)
        gm_path_spelling(frame->file, path);
    fprintf(out, "%.200s", frame->function);
    if (path[0])
        fprintf(out, "  %s:%u", path, frame->line);
    fclose(out);
    return text;
}

GM_ORDER(by_place, struct line, GM_BY_TEXT(place))

GM_ORDER(by_line_bytes, struct line, GM_DOWN(bytes) GM_BY_TEXT(place))

/* Lines that read the same are one; the most bytes come first. */
static size_t unite_lines(struct line *lines, size_t count)
{
    size_t kept = 0;
    qsort(lines, count, sizeof(*lines), by_place);
    for (size_t i = 0; i < count; i++) {
        if (kept && strcmp(lines[kept - 1].place, lines[i].place) == 0) {
            lines[kept - 1].bytes += lines[i].bytes;
            lines[kept - 1].count += lines[i].count;
            free(lines[i].place);
        } else {
            lines[kept++] = lines[i];
        }
    }
    qsort(lines, kept, sizeof(*lines), by_line_bytes);
    return kept;
}

static void write_some(struct gm_json *json, struct line *lines, size_t count)
{
    count = unite_lines(lines, count);
    gm_json_open_array(json, "lines");
    for (size_t i = 0; i < count; i++) {
        GM_JSON_OBJECT(json, NULL, &lines[i], place, bytes, count);
        free(lines[i].place);
    }
    gm_json_close_array(json);
}

static const struct gm_model_device *fullest(const struct gm_model_run *run)
{
    const struct gm_model_device *found = NULL;
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].peak != GM_NONE &&
            (!found || run->devices[i].all.peak > found->all.peak))
            found = &run->devices[i];
    return found;
}

static void write_lines(struct gm_json *json, const struct gm_model *model)
{
    const struct gm_model_run *run = &model->runs[0];
    const struct gm_model_device *device = fullest(run);
    const struct gm_model_pool *pool = device ? gm_model_pool(run, device->id) : NULL;
    struct line lines[LINES_MAX];
    size_t count = 0;
    if (pool) {
        const struct gm_model_pool_state *state = gm_model_moment(run, pool->at_peak)->pool;
        for (; count < state->line_count && count < LINES_MAX; count++)
            lines[count] = (struct line){stack_name(model, state->lines[count].stack),
                                         gm_amount(state->lines[count].bytes),
                                         gm_amount(state->lines[count].count)};
    } else if (device) {
        const struct gm_model_moment *peak = gm_model_moment(run, device->peak);
        for (; count < peak->sample_count && count < LINES_MAX; count++) {
            const struct gm_model_sample *sample = &peak->samples[count];
            lines[count] = (struct line){stack_name(model, model->places[sample->place].stack),
                                         sample->bytes, sample->count};
        }
    }
    write_some(json, lines, count);
}

/* ---- devices --------------------------------------------------------------------------------- */

static int64_t leaked_on(const struct gm_model *model, int device)
{
    const struct gm_model_run *run = &model->runs[0];
    const struct gm_model_moment *end = gm_model_moment(run, run->end);
    int64_t bytes = 0;
    for (size_t i = 0; end && i < end->sample_count; i++) {
        const struct gm_model_place *place = &model->places[end->samples[i].place];
        if (place->leak_class == GM_LEAK && place->device == device && !place->is_block)
            bytes += end->samples[i].bytes;
    }
    return bytes;
}

static void keep_earlier(uint64_t *first, uint64_t time)
{
    *first = time < *first ? time : *first;
}

/* When memory first ran out there, as far as it is on record; 0: never. */
static int64_t failed_at(const struct gm_model_run *run, int device)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < run->failure_count; i++)
        if (run->failures[i].out_of_memory && run->failures[i].device == device &&
            !run->failures[i].is_of_pool)
            keep_earlier(&first, run->failures[i].time_ns);
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->pool_failures[i].moment);
        if (run->pool_failures[i].device == device && moment)
            keep_earlier(&first, moment->time_ns);
    }
    return first == UINT64_MAX ? 0 : gm_amount(run->start_realtime_ns + first);
}

static int64_t outside_of(const struct gm_model_device *device)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < device->library_count; i++)
        if (!device->libraries[i].pool)
            bytes += device->libraries[i].at[GM_AT_PEAK].bytes;
    return gm_amount(bytes);
}

static void write_summary_devices(struct gm_json *json, const struct gm_model *model)
{
    const struct gm_model_run *run = &model->runs[0];
    gm_json_open_array(json, "devices");
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        const struct gm_model_pool *pool = gm_model_pool(run, device->id);
        if (device->peak == GM_NONE)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_signed(json, "id", device->id);
        gm_json_signed(json, "total", gm_amount(device->total));
        gm_json_signed(json, "peak", device->all.peak);
        gm_json_signed(json, "peak_time_ns", gm_amount(device->all.peak_time_ns));
        gm_json_signed(json, "live", device->all.live);
        gm_json_signed(json, "leaked", leaked_on(model, device->id));
        gm_json_signed(json, "reserved", pool ? pool->reserved_peak : 0);
        gm_json_signed(json, "outside", outside_of(device));
        gm_json_signed(json, "residual", device->residuals ? gm_amount(device->largest.bytes) : -1);
        gm_json_signed(json, "failed_ns", failed_at(run, device->id));
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

/* ---- all ------------------------------------------------------------------------------------- */

void gm_summary_write(FILE *out, const struct gm_model *model, const char *page)
{
    const struct gm_model_run *run = &model->runs[0];
    struct gm_headline headline = gm_headline_of(run);
    struct gm_json line = {.out = out, .on_one_line = true}, *json = &line;
    char ending[GM_ENDING_TEXT], command[200];
    gm_json_open_object(json, NULL);
    gm_json_number(json, "gpumem_summary", 1);
    GM_JSON_MEMBERS(json, &run->rank, rank, local_rank, world_size);
    gm_json_text(json, "job", run->job);
    gm_json_text(json, "host", run->host_name);
    gm_json_text(json, "run_id", run->run_id);
    gm_json_string(json, "trace", run->path);
    gm_json_text(json, "command", gm_command_line(run, command, sizeof(command)));
    GM_JSON_MEMBERS(json, run, pid, pid_namespace, generation);
    gm_json_signed(json, "start_realtime_ns", gm_amount(run->start_realtime_ns));
    gm_json_signed(json, "duration_ns", gm_amount(run->duration_ns));
    gm_json_signed(json, "events", gm_amount(run->events));
    gm_json_string(json, "ending", gm_ending_text(run, ending));
    gm_json_number(json, "end", run->ending);
    gm_json_signed(json, "exit_code", run->ended.exit_code);
    gm_json_number(json, "signal", (uint64_t)run->ended.signal);
    gm_json_signed(json, "as_of_ns", gm_amount(run->as_of_ns));
    gm_json_number(json, "verdict", run->verdict.state);
    gm_json_signed(json, "leaked", run->leaked[GM_LEAK]);
    gm_json_signed(json, "leaked_count", run->leaked_count[GM_LEAK]);
    GM_JSON_MEMBERS(json, run, complete, simulated);
    GM_JSON_MEMBERS(json, &headline, gravity, errors, warnings, failure, state, peaks, findings);
    write_summary_devices(json, model);
    write_lines(json, model);
    gm_json_string(json, "page", page);
    gm_json_close_object(json);
    gm_json_end(json);
}
