/* See history.h. */
#include "model/history.h"
#include "base/each.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- lives ----------------------------------------------------------------------------------- */

struct recording {
    struct gm_model_history history;
    size_t capacity;
    bool overflowed;
};

/* The first marks are kept, so their numbers are their places. */
bool gm_model_note_mark(struct gm_model_marks *marks, const struct gm_model_event *event)
{
    if (event->what == GM_MODEL_CLOSES && event->life < marks->count)
        marks->list[event->life].end_ns = event->time_ns;
    if (event->what != GM_MODEL_MARK)
        return event->what == GM_MODEL_CLOSES;
    if (marks->met++ < GM_MODEL_MARKS)
        GM_APPEND(
            marks->list, marks->capacity, marks->count,
            (struct gm_model_mark){.time_ns = event->time_ns,
                                   .end_ns = event->is_range ? GM_MODEL_ALIVE : event->time_ns,
                                   .is_range = event->is_range,
                                   .name = event->name});
    return true;
}

void gm_model_marks_free(struct gm_model_marks *marks)
{
    free(marks->list);
    *marks = (struct gm_model_marks){0};
}

static void note_event(void *argument, const struct gm_model_event *event)
{
    struct recording *recording = argument;
    struct gm_model_history *history = &recording->history;
    if (gm_model_note_mark(&history->marks, event))
        return;
    bool is_known = event->life < history->count;
    if (history->steps == GM_NONE - 1 || is_known == (event->what == GM_MODEL_BEGINS)) {
        recording->overflowed = true;
        return;
    }
    if (event->what == GM_MODEL_BEGINS) {
        GM_APPEND(history->lives, recording->capacity, history->count,
                  (struct gm_model_life){.begin_ns = event->time_ns,
                                         .end_ns = GM_MODEL_ALIVE,
                                         GM_SAME(event, address, size, requested, place),
                                         .begin_step = history->steps++,
                                         .end_step = GM_NONE,
                                         .in_scope = event->in_scope,
                                         .is_mapped = event->is_mapped});
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
    bool whole = gm_model_events(model, request, note_event, &recording) && !recording.overflowed;
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
    gm_model_marks_free(&history->marks);
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

static void add_sample(struct gathering *gathering, const struct gm_model_sample *sample)
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
        add_sample(gathering, &moment->samples[i]);
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

/* ---- by a replay ----------------------------------------------------------------------------- */

#define GROUPS (4u << 8) /* blocks, devices, external memory by device; host memory by kind */

/* What is counted of one group. */
struct replayed_group {
    uint64_t live, peak; /* bytes */
    uint32_t peaks;      /* so often there was a new one */
    uint64_t time_ns;    /* when it was refused last */
    bool is_refused;
};

/* What is counted of one place: now, and at its group's latest peak. */
struct replayed_place {
    uint64_t bytes, count;
    uint64_t peak_bytes, peak_count;
    uint32_t
        peaks; /* of its group, when it had these; if there was a further one, it had what it has now */
};

struct replayed {
    const struct gm_model *model;
    const struct gm_when *when;
    struct replayed_group *groups;
    struct replayed_place *places;
    size_t place_count, place_capacity;
    unsigned char *lives; /* by number */
    size_t life_count, life_capacity;
};

enum { NOT_WANTED, GONE, COUNTED }; /* of a life: it began later or is not in the scope; it ended */

/* group_order() as an index. */
static size_t group_index(const struct gm_model_place *place)
{
    uint32_t order = group_order(place);
    return (order >> 16) << 8 | (order & 0xff);
}

/* Failures come latest last: of each device the last one counts. */
static void note_history_refusal(const struct gm_model_run *run, uint32_t number, uint32_t first,
                                 struct replayed_group *groups)
{
    const struct gm_model_moment *moment = gm_model_moment(run, number);
    if (!moment)
        return;
    size_t device = gm_device_slot(moment->device);
    struct replayed_group *group = &groups[(first << 8) + device];
    group->time_ns = moment->time_ns;
    group->is_refused = true;
}

static void find_refusals(const struct gm_model_run *run, struct replayed_group *groups)
{
    for (size_t i = 0; i < run->failure_count; i++)
        note_history_refusal(run, run->failures[i].moment, 0, groups);
    for (size_t i = 0; i < run->pool_failure_count; i++)
        note_history_refusal(run, run->pool_failures[i].moment, 1, groups);
}

static bool is_peak(const struct gm_when *when)
{
    return when->kind == GM_WHEN_PEAK || when->kind == GM_WHEN_DEFAULT;
}

/* Whether a begin or an end changes what is held at the moment that is asked for. The peaks and refusals of
 * this process's own do not have memory of other owners. */
static bool is_before_moment(const struct replayed *replayed, const struct gm_model_event *event,
                             const struct replayed_group *group)
{
    const struct gm_when *when = replayed->when;
    bool is_own = replayed->model->places[event->place].kind != GM_KIND_EXTERNAL;
    if (when->kind == GM_WHEN_END)
        return event->what == GM_MODEL_BEGINS || !event->implicit;
    if (when->kind == GM_WHEN_TIME)
        return event->time_ns <= when->time_ns;
    if (when->kind == GM_WHEN_OOM)
        return is_own && group->is_refused && event->time_ns <= group->time_ns;
    return is_own;
}

static void count_life(struct replayed *replayed, const struct gm_model_event *event,
                       struct replayed_group *group)
{
    struct replayed_place *place = &replayed->places[event->place];
    bool ends = event->what == GM_MODEL_ENDS;
    if (place->peaks != group->peaks) {
        place->peak_bytes = place->bytes;
        place->peak_count = place->count;
        place->peaks = group->peaks;
    }
    place->bytes += ends ? 0 - event->size : event->size;
    place->count += ends ? UINT64_MAX : 1;
    group->live += ends ? 0 - event->size : event->size;
    if (group->live > group->peak) {
        group->peak = group->live;
        group->peaks++;
    }
    replayed->lives[event->life] = ends ? GONE : COUNTED;
}

static void note_held(void *argument, const struct gm_model_event *event)
{
    struct replayed *replayed = argument;
    if (event->what == GM_MODEL_MARK || event->what == GM_MODEL_CLOSES)
        return;
    if (event->what == GM_MODEL_BEGINS) {
        GM_RESERVE(replayed->lives, replayed->life_capacity, replayed->life_count + 1);
        replayed->lives[replayed->life_count++] = event->in_scope ? GONE : NOT_WANTED;
    }
    while (replayed->place_count <= event->place) {
        GM_RESERVE(replayed->places, replayed->place_capacity, replayed->place_count + 1);
        replayed->places[replayed->place_count++] = (struct replayed_place){0};
    }
    if (event->life >= replayed->life_count)
        return;
    unsigned char *life = &replayed->lives[event->life];
    struct replayed_group *group =
        &replayed->groups[group_index(&replayed->model->places[event->place])];
    bool is_before = is_before_moment(replayed, event, group);
    if (event->what == GM_MODEL_BEGINS && !is_before)
        *life = NOT_WANTED;
    /* What goes on after all was alive at the moment, whenever that is told. */
    if (event->what == GM_MODEL_ENDS ? *life == COUNTED && is_before : *life == GONE)
        count_life(replayed, event, group);
}

static bool gather_replayed(struct gathering *gathering, const struct gm_when *when,
                            const struct gm_scope_request *scope)
{
    const struct gm_model *model = gathering->model;
    struct replayed replayed = {.model = model, .when = when};
    replayed.groups = gm_allocate(GROUPS, sizeof(*replayed.groups));
    find_refusals(&model->runs[0], replayed.groups);
    bool found = gm_model_events(model, &(struct gm_model_events_request){.scope = scope},
                                 note_held, &replayed);
    for (uint32_t i = 0; i < replayed.place_count; i++) {
        const struct replayed_place *place = &replayed.places[i];
        uint32_t peaks = replayed.groups[group_index(&model->places[i])].peaks;
        bool was_then = is_peak(when) && place->peaks == peaks;
        uint64_t bytes = was_then ? place->peak_bytes : place->bytes;
        uint64_t count = was_then ? place->peak_count : place->count;
        if (count)
            add_sample(gathering, &(struct gm_model_sample){i, gm_amount(bytes), gm_amount(count)});
    }
    free(replayed.groups);
    free(replayed.places);
    free(replayed.lives);
    return found;
}

/* ---- all ----------------------------------------------------------------------------------------- */

/* qsort has no argument; the tool has one thread. */
static const struct gm_model_place *places_to_sort;

GM_ORDER(by_group, struct gm_model_sample,
         GM_UP_OF(group_order(&places_to_sort[a->place]), group_order(&places_to_sort[b->place]))
             GM_DOWN(bytes) GM_UP(place))

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
            found = gather_replayed(&gathering, when, NULL);
        else
            gather_peaks(&gathering, run);
    }
    *held = gathered(&gathering);
    return found;
}

bool gm_model_held_in_scope(const struct gm_model *model, const struct gm_when *when,
                            const struct gm_scope_request *scope, struct gm_model_held *held)
{
    struct gathering gathering = {.model = model};
    const struct gm_model_run *run = &model->runs[0];
    bool found = gather_replayed(&gathering, when, scope);
    *held = gathered(&gathering);
    return found && (when->kind != GM_WHEN_OOM || run->failure_count + run->pool_failure_count);
}

void gm_model_held_free(struct gm_model_held *held)
{
    free(held->samples);
    *held = (struct gm_model_held){0};
}
