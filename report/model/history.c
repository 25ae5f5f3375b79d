/* See history.h. */
#include "model/history.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lives ----------------------------------------------------------------------------------- */

struct recording {
    struct gm_model_history history;
    size_t capacity;
    size_t mark_capacity;
    bool overflowed;
};

static void note_mark(struct recording *recording, const struct gm_model_event *event)
{
    struct gm_model_history *history = &recording->history;
    if (history->marks_met++ >= GM_MODEL_MARKS)
        return;
    GM_RESERVE(history->marks, recording->mark_capacity, history->mark_count + 1);
    history->marks[history->mark_count++] =
        (struct gm_model_mark){.time_ns = event->time_ns,
                               .end_ns = event->is_range ? GM_MODEL_ALIVE : event->time_ns,
                               .is_range = event->is_range,
                               .name = event->name};
}

/* The first marks are kept, so their numbers are their places. */
static void note_close(struct gm_model_history *history, const struct gm_model_event *event)
{
    if (event->life < history->mark_count)
        history->marks[event->life].end_ns = event->time_ns;
}

static void note(void *argument, const struct gm_model_event *event)
{
    struct recording *recording = argument;
    struct gm_model_history *history = &recording->history;
    if (event->what == GM_MODEL_MARK) {
        note_mark(recording, event);
        return;
    }
    if (event->what == GM_MODEL_CLOSES) {
        note_close(history, event);
        return;
    }
    bool is_known = event->life < history->count;
    if (history->steps == GM_NONE - 1 || is_known == (event->what == GM_MODEL_BEGINS)) {
        recording->overflowed = true;
        return;
    }
    if (event->what == GM_MODEL_BEGINS) {
        GM_RESERVE(history->lives, recording->capacity, history->count + 1);
        history->lives[history->count++] = (struct gm_model_life){.begin_ns = event->time_ns,
                                                                  .end_ns = GM_MODEL_ALIVE,
                                                                  .address = event->address,
                                                                  .size = event->size,
                                                                  .requested = event->requested,
                                                                  .place = event->place,
                                                                  .begin_step = history->steps++,
                                                                  .end_step = GM_NONE,
                                                                  .in_scope = event->in_scope,
                                                                  .is_mapped = event->is_mapped};
        return;
    }
    struct gm_model_life *life = &history->lives[event->life];
    bool ends = event->what == GM_MODEL_ENDS;
    life->end_ns = ends ? event->time_ns : GM_MODEL_ALIVE;
    life->end_step = ends ? history->steps++ : GM_NONE;
    life->implicit = ends && event->implicit;
}

static bool replay(const struct gm_model *model, const struct gm_model_events_request *request,
                   struct gm_model_history *history)
{
    struct recording recording = {0};
    bool whole = gm_model_events(model, request, note, &recording) && !recording.overflowed;
    *history = recording.history;
    if (!whole)
        gm_model_history_free(history);
    return whole;
}

bool gm_model_history(const struct gm_model *model, const struct gm_scope_request *scope,
                      struct gm_model_history *history)
{
    return replay(model, &(struct gm_model_events_request){.scope = scope}, history);
}

bool gm_model_history_with_moves(const struct gm_model *model, struct gm_model_history *history)
{
    return replay(model, &(struct gm_model_events_request){.moves = true}, history);
}

void gm_model_history_free(struct gm_model_history *history)
{
    free(history->lives);
    free(history->marks);
    *history = (struct gm_model_history){0};
}

uint64_t *gm_model_history_order(const struct gm_model_history *history)
{
    uint64_t *order = gm_allocate((size_t)history->steps + 1, sizeof(*order));
    for (size_t i = 0; i < history->count; i++) {
        order[history->lives[i].begin_step] = i * 2 + 1;
        if (history->lives[i].end_step != GM_NONE)
            order[history->lives[i].end_step] = i * 2 + 2;
    }
    return order;
}

/* ---- groups ---------------------------------------------------------------------------------- */

const char *gm_place_group(const struct gm_model_place *place, char text[GM_GROUP_TEXT])
{
    const char *what = place->is_block ? "blocks on device" : "device";
    if (gm_kind_is_host(place->kind) && !place->is_block)
        snprintf(text, GM_GROUP_TEXT, "host %s", gm_kind_name(place->kind));
    else if (place->kind == GM_KIND_EXTERNAL)
        snprintf(text, GM_GROUP_TEXT, "external on device %d", place->device);
    else if (place->device < 0)
        snprintf(text, GM_GROUP_TEXT, "%s unknown", what);
    else
        snprintf(text, GM_GROUP_TEXT, "%s %d", what, place->device);
    return text;
}

/* The same as a number, in the order in which groups are shown. */
static uint32_t group_order(const struct gm_model_place *place)
{
    uint32_t device = (uint32_t)(place->device + 1);
    if (place->is_block)
        return 1u << 16 | device;
    if (gm_kind_is_host(place->kind))
        return 2u << 16 | place->kind;
    return (place->kind == GM_KIND_EXTERNAL ? 3u << 16 : 0) | device;
}

/* ---- who held memory ------------------------------------------------------------------------- */

struct gathering {
    const struct gm_model *model;
    struct gm_model_held held;
    size_t capacity;
    struct gm_map by_place;
};

static void add(struct gathering *gathering, const struct gm_model_sample *sample)
{
    uint32_t number = gm_map_get(&gathering->by_place, sample->place);
    struct gm_model_held *held = &gathering->held;
    if (number == GM_NONE) {
        GM_RESERVE(held->samples, gathering->capacity, held->count + 1);
        gm_map_set(&gathering->by_place, sample->place, (uint32_t)held->count);
        held->samples[held->count++] = *sample;
        return;
    }
    held->samples[number].bytes += sample->bytes;
    held->samples[number].count += sample->count;
}

static bool add_moment(struct gathering *gathering, const struct gm_model_run *run, uint32_t number)
{
    const struct gm_model_moment *moment = gm_model_moment(run, number);
    for (size_t i = 0; moment && i < moment->sample_count; i++)
        add(gathering, &moment->samples[i]);
    return moment != NULL;
}

static void gather_peaks(struct gathering *gathering, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->device_count; i++)
        add_moment(gathering, run, run->devices[i].peak);
    add_moment(gathering, run, run->pinned_peak);
    for (size_t i = 0; i < run->pool_count; i++)
        add_moment(gathering, run, run->pools[i].at_peak);
}

/* Failures come latest last: of each device the last one counts. */
static bool gather_refusals(struct gathering *gathering, const struct gm_model_run *run)
{
    bool seen[2][GM_DEVICES] = {{false}}, found = false;
    for (size_t i = run->failure_count; i-- > 0;) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->failures[i].moment);
        int slot = moment && moment->device >= 0 ? moment->device + 1 : 0;
        if (!moment || slot >= GM_DEVICES || seen[0][slot])
            continue;
        found = seen[0][slot] = true;
        add_moment(gathering, run, run->failures[i].moment);
    }
    for (size_t i = run->pool_failure_count; i-- > 0;) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->pool_failures[i].moment);
        int slot = moment && moment->device >= 0 ? moment->device + 1 : 0;
        if (!moment || slot >= GM_DEVICES || seen[1][slot])
            continue;
        found = seen[1][slot] = true;
        add_moment(gathering, run, run->pool_failures[i].moment);
    }
    return found;
}

static void gather_rest(struct gathering *gathering, const struct gm_model_run *run)
{
    add_moment(gathering, run, run->end);
    for (size_t i = 0; i < run->pool_count; i++)
        add_moment(gathering, run, run->pools[i].at_end);
}

static bool gather_time(struct gathering *gathering, uint64_t time_ns)
{
    struct gm_model_history history;
    if (!gm_model_history(gathering->model, NULL, &history))
        return false;
    for (size_t i = 0; i < history.count; i++) {
        const struct gm_model_life *life = &history.lives[i];
        if (life->begin_ns <= time_ns && time_ns < life->end_ns)
            add(gathering, &(struct gm_model_sample){life->place, gm_amount(life->size), 1});
    }
    gm_model_history_free(&history);
    return true;
}

/* qsort has no argument; the tool has one thread. */
static const struct gm_model_place *places_to_sort;

static int by_group(const void *left, const void *right)
{
    const struct gm_model_sample *a = left, *b = right;
    uint32_t one = group_order(&places_to_sort[a->place]);
    uint32_t other = group_order(&places_to_sort[b->place]);
    if (one != other)
        return one < other ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* What was gathered, sorted. */
static struct gm_model_held gathered(struct gathering *gathering)
{
    struct gm_model_held held = gathering->held;
    gm_map_free(&gathering->by_place);
    places_to_sort = gathering->model->places;
    if (held.count)
        qsort(held.samples, held.count, sizeof(*held.samples), by_group);
    return held;
}

bool gm_model_held_at(const struct gm_model *model, const struct gm_when *when,
                      struct gm_model_held *held)
{
    struct gathering gathering = {.model = model};
    bool found = true;
    for (size_t i = 0; i < model->run_count; i++) {
        const struct gm_model_run *run = &model->runs[i];
        if (when->kind == GM_WHEN_OOM)
            found = gather_refusals(&gathering, run);
        else if (when->kind == GM_WHEN_END)
            gather_rest(&gathering, run);
        else if (when->kind == GM_WHEN_TIME)
            found = gather_time(&gathering, when->time_ns);
        else
            gather_peaks(&gathering, run);
    }
    *held = gathered(&gathering);
    return found;
}

/* ---- in a scope ------------------------------------------------------------------------------ */

#define GROUPS (4u << 8) /* blocks, devices, external memory by device; host memory by kind */

/* What of one group is in the scope. */
struct scope_group {
    uint64_t live, peak; /* bytes */
    uint32_t step;       /* of the peak */
    uint64_t time_ns;    /* when it was refused last */
    bool is_refused;
};

/* group_order() as an index. */
static size_t group_index(const struct gm_model_place *place)
{
    uint32_t order = group_order(place);
    return (order >> 16) << 8 | (order & 0xff);
}

static void find_scope_peaks(const struct gm_model *model, const struct gm_model_history *history,
                             struct scope_group *groups)
{
    uint64_t *order = gm_model_history_order(history);
    for (uint32_t step = 0; step < history->steps; step++) {
        const struct gm_model_life *life =
            order[step] ? &history->lives[GM_STEP_LIFE(order[step])] : NULL;
        if (!life || !life->in_scope)
            continue;
        struct scope_group *group = &groups[group_index(&model->places[life->place])];
        group->live += GM_STEP_ENDS(order[step]) ? 0 - life->size : life->size;
        if (group->live > group->peak) {
            group->peak = group->live;
            group->step = step;
        }
    }
    free(order);
}

/* Failures come latest last: of each device the last one counts. */
static void note_refusal(const struct gm_model_run *run, uint32_t number, uint32_t first,
                         struct scope_group *groups)
{
    const struct gm_model_moment *moment = gm_model_moment(run, number);
    if (!moment)
        return;
    size_t device = gm_device_slot(moment->device);
    struct scope_group *group = &groups[(first << 8) + device];
    group->time_ns = moment->time_ns;
    group->is_refused = true;
}

static void find_refusals(const struct gm_model_run *run, struct scope_group *groups)
{
    for (size_t i = 0; i < run->failure_count; i++)
        note_refusal(run, run->failures[i].moment, 0, groups);
    for (size_t i = 0; i < run->pool_failure_count; i++)
        note_refusal(run, run->pool_failures[i].moment, 1, groups);
}

/* Whether a life of the group was alive at the moment. */
static bool is_alive_at(const struct gm_model_life *life, const struct gm_when *when,
                        const struct scope_group *group)
{
    uint64_t time = when->kind == GM_WHEN_TIME ? when->time_ns : group->time_ns;
    switch (when->kind) {
    case GM_WHEN_END:
        return life->end_step == GM_NONE || life->implicit;
    case GM_WHEN_OOM:
        return group->is_refused && life->begin_ns <= time && time < life->end_ns;
    case GM_WHEN_TIME:
        return life->begin_ns <= time && time < life->end_ns;
    case GM_WHEN_DEFAULT:
    case GM_WHEN_PEAK:
        break;
    }
    return group->peak && life->begin_step <= group->step && group->step < life->end_step;
}

/* Whether a moment shows memory of other owners: the peaks and refusals of this process's own do not have it. */
static bool has_others(const struct gm_when *when)
{
    return when->kind == GM_WHEN_END || when->kind == GM_WHEN_TIME;
}

bool gm_model_held_in_scope(const struct gm_model *model, const struct gm_when *when,
                            const struct gm_scope_request *scope, struct gm_model_held *held)
{
    struct gathering gathering = {.model = model};
    const struct gm_model_run *run = &model->runs[0];
    struct gm_model_history history;
    bool found = gm_model_history(model, scope, &history);
    struct scope_group *groups = gm_allocate(GROUPS, sizeof(*groups));
    find_scope_peaks(model, &history, groups);
    find_refusals(run, groups);
    for (size_t i = 0; i < history.count; i++) {
        const struct gm_model_life *life = &history.lives[i];
        const struct gm_model_place *place = &model->places[life->place];
        if (life->in_scope && (place->kind != GM_KIND_EXTERNAL || has_others(when)) &&
            is_alive_at(life, when, &groups[group_index(place)]))
            add(&gathering, &(struct gm_model_sample){life->place, gm_amount(life->size), 1});
    }
    free(groups);
    gm_model_history_free(&history);
    *held = gathered(&gathering);
    return found && (when->kind != GM_WHEN_OOM || run->failure_count + run->pool_failure_count);
}

void gm_model_held_free(struct gm_model_held *held)
{
    free(held->samples);
    *held = (struct gm_model_held){0};
}
