/* See summary.h. */
#include "tools/ranks/summary.h"
#include "base/memory.h"
#include "tools/ranks/json_read.h"
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 4096u
#define LINES_MAX 4096u

/* ---- reading --------------------------------------------------------------------------------- */

static void read_devices(struct gm_summary *summary, const struct gm_value *array)
{
    size_t count = array ? array->count : 0;
    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    summary->devices = gm_allocate(count + 1, sizeof(*summary->devices));
    for (size_t i = 0; i < count; i++) {
        const struct gm_value *one = &array->members[i];
        summary->devices[summary->device_count++] = (struct gm_summary_device){
            .id = (int)(int16_t)gm_json_get_number(one, "id", -1),
            .total = gm_json_get_number(one, "total", 0),
            .peak = gm_json_get_number(one, "peak", 0),
            .peak_time_ns = gm_json_get_number(one, "peak_time_ns", 0),
            .live = gm_json_get_number(one, "live", 0),
            .leaked = gm_json_get_number(one, "leaked", 0),
            .reserved = gm_json_get_number(one, "reserved", 0),
            .outside = gm_json_get_number(one, "outside", 0),
            .residual = gm_json_get_number(one, "residual", -1),
            .failed_ns = gm_json_get_number(one, "failed_ns", 0),
        };
    }
}

static void read_lines(struct gm_summary *summary, const struct gm_value *array)
{
    size_t count = array ? array->count : 0;
    count = count < LINES_MAX ? count : LINES_MAX;
    summary->lines = gm_allocate(count + 1, sizeof(*summary->lines));
    for (size_t i = 0; i < count; i++) {
        const struct gm_value *one = &array->members[i];
        summary->lines[summary->line_count++] =
            (struct gm_summary_line){.place = gm_json_get_text(one, "place", "?"),
                                     .bytes = gm_json_get_number(one, "bytes", 0),
                                     .count = gm_json_get_number(one, "count", 0)};
    }
}

static enum gm_gravity gravity_of(int64_t number)
{
    return number < 0                      ? GM_GRAVITY_IDLE
           : number > GM_GRAVITY_NO_MEMORY ? GM_GRAVITY_NO_MEMORY
                                           : (enum gm_gravity)number;
}

/* Texts that are printed in a line hold no line feeds. */
static const char *text_of(struct gm_value *value, const char *key)
{
    const char *text = gm_json_get_text(value, key, "");
    for (char *at = (char *)(uintptr_t)text; *at; at++)
        if (*at == '\n')
            *at = '?';
    return text;
}

bool gm_summary_read(struct gm_summary *summary, const char *line, size_t size)
{
    struct gm_value *value = size <= GM_SUMMARY_MAX ? gm_json_read(line, size) : NULL;
    *summary = (struct gm_summary){0};
    if (gm_json_get_number(value, "gpumem_summary", 0) != 1) {
        gm_json_free(value);
        return false;
    }
    *summary = (struct gm_summary){
        .rank = gm_json_get_number(value, "rank", -1),
        .local_rank = gm_json_get_number(value, "local_rank", -1),
        .world_size = gm_json_get_number(value, "world_size", -1),
        .job = text_of(value, "job"),
        .host = text_of(value, "host"),
        .run_id = text_of(value, "run_id"),
        .trace = text_of(value, "trace"),
        .command = text_of(value, "command"),
        .ending = text_of(value, "ending"),
        .pid = gm_json_get_number(value, "pid", 0),
        .pid_namespace = gm_json_get_number(value, "pid_namespace", 0),
        .generation = gm_json_get_number(value, "generation", 0),
        .start_realtime_ns = gm_json_get_number(value, "start_realtime_ns", 0),
        .end = gm_json_get_number(value, "end", -1),
        .exit_code = gm_json_get_number(value, "exit_code", -1),
        .signal = gm_json_get_number(value, "signal", 0),
        .verdict = gm_json_get_number(value, "verdict", -1),
        .leaked = gm_json_get_number(value, "leaked", -1),
        .leaked_count = gm_json_get_number(value, "leaked_count", -1),
        .duration_ns = gm_json_get_number(value, "duration_ns", 0),
        .events = gm_json_get_number(value, "events", 0),
        .as_of_ns = gm_json_get_number(value, "as_of_ns", 0),
        .complete = gm_json_get_number(value, "complete", 0) != 0,
        .simulated = gm_json_get_number(value, "simulated", 0) != 0,
        .gravity = gravity_of(gm_json_get_number(value, "gravity", 0)),
        .errors = gm_json_get_number(value, "errors", 0),
        .warnings = gm_json_get_number(value, "warnings", 0),
        .failure = text_of(value, "failure"),
        .state = text_of(value, "state"),
        .peaks = text_of(value, "peaks"),
        .findings = text_of(value, "findings"),
        .page = gm_json_get_text(value, "page", ""),
        .memory = value,
    };
    read_devices(summary, gm_json_array(value, "devices"));
    read_lines(summary, gm_json_array(value, "lines"));
    summary->text = gm_allocate(size + 1, 1);
    memcpy(summary->text, line, size);
    return true;
}

void gm_summary_free(struct gm_summary *summary)
{
    free(summary->devices);
    free(summary->lines);
    free(summary->text);
    gm_json_free(summary->memory);
}

const struct gm_summary_device *gm_summary_main(const struct gm_summary *summary)
{
    const struct gm_summary_device *found = NULL;
    for (size_t i = 0; i < summary->device_count; i++) {
        const struct gm_summary_device *device = &summary->devices[i];
        bool is_more = !found || (!found->failed_ns && device->failed_ns) ||
                       (!found->failed_ns == !device->failed_ns && device->peak > found->peak);
        found = is_more ? device : found;
    }
    return found;
}

/* ---- a set of them --------------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (uint64_t)a < (uint64_t)b ? -1 : (uint64_t)a > (uint64_t)b; /* -1 comes last */
}

/* Which process it is of. Of redacted ones and of snapshots that is not told: 0 for all. */
static int compare_processes(const struct gm_summary *a, const struct gm_summary *b)
{
    int order = strcmp(a->host, b->host);
    order = order ? order : compare_numbers(a->pid_namespace, b->pid_namespace);
    order = order ? order : compare_numbers(a->pid, b->pid);
    order = order ? order : compare_numbers(a->start_realtime_ns, b->start_realtime_ns);
    return order ? order : compare_numbers(a->generation, b->generation);
}

int gm_summary_compare(const void *left, const void *right)
{
    const struct gm_summary *a = left, *b = right;
    int order = compare_numbers(a->rank, b->rank);
    order = order ? order : compare_processes(a, b);
    order = order ? order : (a->as_of_ns != 0) - (b->as_of_ns != 0);
    order = order ? order : -compare_numbers(a->as_of_ns, b->as_of_ns);
    order = order ? order : (a->path == NULL) - (b->path == NULL); /* a trace tells more */
    return order ? order : strcmp(a->text, b->text);
}

static bool is_same_process(const struct gm_summary *a, const struct gm_summary *b)
{
    bool is_told = a->pid && a->start_realtime_ns;
    return strcmp(a->text, b->text) == 0 || (is_told && compare_processes(a, b) == 0);
}

bool gm_summaries_add(struct gm_summaries *summaries, const char *line, size_t size)
{
    struct gm_summary summary;
    if (!gm_summary_read(&summary, line, size))
        return false;
    GM_RESERVE(summaries->entries, summaries->capacity, summaries->count + 1);
    summaries->entries[summaries->count++] = summary;
    return true;
}

void gm_summaries_sort(struct gm_summaries *summaries)
{
    size_t kept = 0;
    if (summaries->count)
        qsort(summaries->entries, summaries->count, sizeof(*summaries->entries),
              gm_summary_compare);
    for (size_t i = 0; i < summaries->count; i++) {
        if (kept && is_same_process(&summaries->entries[kept - 1], &summaries->entries[i]))
            gm_summary_free(&summaries->entries[i]);
        else
            summaries->entries[kept++] = summaries->entries[i];
    }
    summaries->count = kept;
}

void gm_summaries_free(struct gm_summaries *summaries)
{
    for (size_t i = 0; i < summaries->count; i++)
        gm_summary_free(&summaries->entries[i]);
    free(summaries->entries);
}
