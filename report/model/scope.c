/* See scope.h. */
#include "model/scope.h"
#include "base/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 64u /* of ranges in each other, as in phases.h; deeper ones are passed over */

/* A thread's ring. */
struct gm_scope_lane {
    bool is_wanted; /* its thread is the one */
    uint64_t thread;
    uint64_t too_deep;
    size_t count;
    struct {
        uint64_t whose; /* of the range: record.address at its beginning */
        bool is_wanted;
    } open[DEPTH]; /* outermost first */
};

void gm_scope_begin(struct gm_scope *scope, const struct gm_trace *trace,
                    const struct gm_scope_request *request)
{
    *scope = (struct gm_scope){.trace = trace, .holds = !gm_scope_is_set(request)};
    scope->request = *request;
}

static bool is_number(const char *wanted, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return wanted && strcmp(text, wanted) == 0;
}

static struct gm_scope_lane *lane_of(struct gm_scope *scope, uint32_t lane)
{
    while (lane >= scope->lane_count) {
        GM_RESERVE(scope->lanes, scope->lane_capacity, scope->lane_count + 1);
        scope->lanes[scope->lane_count] = (struct gm_scope_lane){
            .is_wanted = is_number(scope->request.thread, scope->lane_count)};
        scope->lane_count++;
    }
    return &scope->lanes[lane];
}

static bool is_name(const struct gm_scope *scope, uint32_t reference, const char *wanted)
{
    return wanted && gm_text_equals(gm_trace_string(scope->trace, reference),
                                    (struct gm_text){wanted, strlen(wanted)});
}

static void drop_range(struct gm_scope *scope, struct gm_scope_lane *lane, size_t at)
{
    scope->ranges -= lane->open[at].is_wanted;
    lane->count--;
    memmove(lane->open + at, lane->open + at + 1, (lane->count - at) * sizeof(*lane->open));
}

/* Another thread took the lane over: its former one left its ranges open. */
static void change_thread(struct gm_scope *scope, struct gm_scope_lane *lane,
                          const struct gm_record *record)
{
    while (lane->thread != record->address && lane->count)
        drop_range(scope, lane, lane->count - 1);
    lane->thread = record->address;
    lane->is_wanted = is_number(scope->request.thread, record->address) ||
                      is_name(scope, (uint32_t)record->aux, scope->request.thread);
}

static void push_range(struct gm_scope *scope, struct gm_scope_lane *lane,
                       const struct gm_record *record)
{
    if (lane->count == DEPTH) {
        lane->too_deep++;
        return;
    }
    bool is_wanted = is_name(scope, (uint32_t)record->aux, scope->request.phase);
    lane->open[lane->count].whose = record->address;
    lane->open[lane->count++].is_wanted = is_wanted;
    scope->ranges += is_wanted;
}

/* Ranges of different owners nest each by themselves, so what ends need not be the innermost. */
static void pop_range(struct gm_scope *scope, struct gm_scope_lane *lane,
                      const struct gm_record *record)
{
    size_t at = lane->count;
    if (lane->too_deep) {
        lane->too_deep--;
        return;
    }
    while (at > 0 && lane->open[at - 1].whose != record->address)
        at--;
    if (at > 0)
        drop_range(scope, lane, at - 1);
}

static void start_range(struct gm_scope *scope, const struct gm_record *record)
{
    if (!is_name(scope, (uint32_t)record->aux, scope->request.phase) ||
        gm_map_get(&scope->started, record->address) != GM_NONE)
        return;
    gm_map_set(&scope->started, record->address, 0);
    scope->started_count++;
}

static void end_range(struct gm_scope *scope, const struct gm_record *record)
{
    if (gm_map_get(&scope->started, record->address) == GM_NONE)
        return;
    gm_map_remove(&scope->started, record->address);
    scope->started_count--;
}

void gm_scope_note(struct gm_scope *scope, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    if (!gm_scope_is_set(&scope->request))
        return;
    struct gm_scope_lane *lane = lane_of(scope, entry->lane);
    if (record->type == GM_EVENT_THREAD)
        change_thread(scope, lane, record);
    else if (record->type == GM_EVENT_RANGE_PUSH)
        push_range(scope, lane, record);
    else if (record->type == GM_EVENT_RANGE_POP)
        pop_range(scope, lane, record);
    else if (record->type == GM_EVENT_RANGE_START)
        start_range(scope, record);
    else if (record->type == GM_EVENT_RANGE_END)
        end_range(scope, record);
    else if (record->type == GM_EVENT_MARK && !record->extra) /* of the program, not of a library */
        scope->is_marked = is_name(scope, (uint32_t)record->aux, scope->request.phase);
    bool is_open = scope->ranges || scope->started_count || scope->is_marked;
    scope->holds = !entry->carried && (!scope->request.thread || lane->is_wanted) &&
                   (!scope->request.phase || is_open);
}

void gm_scope_end(struct gm_scope *scope)
{
    free(scope->lanes);
    gm_map_free(&scope->started);
}

struct gm_scope_thread *gm_scope_threads(struct gm_trace *trace, size_t *count)
{
    struct gm_scope_thread *threads = gm_allocate(GM_SCOPE_THREADS, sizeof(*threads));
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_map by_lane = {0};
    struct gm_entry entry;
    *count = 0;
    while (gm_stream_next(stream, &entry)) {
        const struct gm_record *record = entry.record;
        uint32_t at = gm_map_get(&by_lane, entry.lane);
        if (at != GM_NONE && record->type != GM_EVENT_THREAD)
            continue;
        if (*count == GM_SCOPE_THREADS)
            break;
        gm_map_set(&by_lane, entry.lane, (uint32_t)*count);
        threads[*count] = (struct gm_scope_thread){entry.lane, {"", 0}};
        if (record->type == GM_EVENT_THREAD)
            threads[*count] = (struct gm_scope_thread){
                record->address, gm_trace_string(trace, (uint32_t)record->aux)};
        ++*count;
    }
    gm_map_free(&by_lane);
    gm_stream_close(stream);
    return threads;
}
