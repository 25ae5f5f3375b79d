/* See summary.h. */
#include "tools/ranks/summary.h"
#include "base/each.h"
#include "base/memory.h"
#include "tools/ranks/json_read.h"
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 4096u
#define LINES_MAX 4096u

/* ---- reading --------------------------------------------------------------------------------- */

#define READ_NUMBER(to, object, name) (to)->name = gm_json_get_number(object, #name, 0);
#define READ_UNTOLD(to, object, name) (to)->name = gm_json_get_number(object, #name, -1);
#define READ_TEXT(to, object, name) (to)->name = text_of_member(object, #name);

static size_t read_devices(struct gm_summary_device **devices, const struct gm_value *array)
{
    size_t count = !array ? 0 : array->count < DEVICES_MAX ? array->count : DEVICES_MAX;
    *devices = gm_allocate(count + 1, sizeof(**devices));
    for (size_t i = 0; i < count; i++) {
        struct gm_summary_device *device = &(*devices)[i];
        const struct gm_value *one = &array->members[i];
        device->id = (int)(int16_t)gm_json_get_number(one, "id", -1);
        GM_EACH(READ_NUMBER, device, one, total, peak, peak_time_ns, live, leaked, reserved)
        GM_EACH(READ_NUMBER, device, one, outside, failed_ns)
        GM_EACH(READ_UNTOLD, device, one, residual)
    }
    return count;
}

static size_t read_lines(struct gm_summary_line **lines, const struct gm_value *array)
{
    size_t count = !array ? 0 : array->count < LINES_MAX ? array->count : LINES_MAX;
    *lines = gm_allocate(count + 1, sizeof(**lines));
    for (size_t i = 0; i < count; i++) {
        (*lines)[i].place = gm_json_get_text(&array->members[i], "place", "?");
        GM_EACH(READ_NUMBER, &(*lines)[i], &array->members[i], bytes, count)
    }
    return count;
}

static enum gm_gravity gravity_of(int64_t number)
{
    return number < 0                      ? GM_GRAVITY_IDLE
           : number > GM_GRAVITY_NO_MEMORY ? GM_GRAVITY_NO_MEMORY
                                           : (enum gm_gravity)number;
}

/* Texts that are printed in a line hold no line feeds. */
static const char *text_of_member(struct gm_value *value, const char *key)
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
    summary->memory = value;
    GM_EACH(READ_UNTOLD, summary, value, rank, local_rank, world_size, end, exit_code, verdict)
    GM_EACH(READ_UNTOLD, summary, value, leaked, leaked_count)
    GM_EACH(READ_NUMBER, summary, value, pid, pid_namespace, generation, start_realtime_ns)
    GM_EACH(READ_NUMBER, summary, value, duration_ns, events, as_of_ns, signal, errors, warnings)
    GM_EACH(READ_TEXT, summary, value, job, host, run_id, trace, command, ending, failure)
    GM_EACH(READ_TEXT, summary, value, state, peaks, findings)
    summary->complete = gm_json_get_number(value, "complete", 0) != 0;
    summary->simulated = gm_json_get_number(value, "simulated", 0) != 0;
    summary->gravity = gravity_of(gm_json_get_number(value, "gravity", 0));
    summary->page = gm_json_get_text(value, "page", "");
    summary->device_count = read_devices(&summary->devices, gm_json_array(value, "devices"));
    summary->line_count = read_lines(&summary->lines, gm_json_array(value, "lines"));
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
    GM_APPEND(summaries->entries, summaries->capacity, summaries->count, summary);
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
