/* See phases.h. */
#include "judge/analysis/phases.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdlib.h>
#include <string.h>

/* A place when a phase was opened. */
struct start {
    uint64_t live, allocs, frees, allocated;
};

/* A phase that is open. */
struct gm_phase_open {
    uint32_t phase;
    uint64_t whose; /* of a range: record.address at its beginning */
    uint64_t time;
    uint64_t moment;
    struct start *starts; /* [place]; of places that come later all was 0 */
    size_t start_count;
};

void gm_phases_begin(struct gm_phases *phases, uint64_t start_time)
{
    *phases = (struct gm_phases){0};
    phases->interval = gm_allocate(1, sizeof(*phases->interval));
    phases->interval->time = start_time;
    phases->open_count = 1;
}

/* ---- places ---------------------------------------------------------------------------------- */

struct gm_phase_place *gm_phases_add_place(struct gm_phases *phases, enum gm_phase_where where,
                                           uint8_t slot)
{
    if (phases->place_count == GM_PHASE_PLACES)
        return NULL;
    struct gm_phase_place *place = &phases->places[phases->place_count++];
    *place = (struct gm_phase_place){.where = where, .device = slot - 1};
    phases->place_of[where][slot] = place;
    return place;
}

void gm_phases_add_maximum(const struct gm_phases *phases, struct gm_phase_place *place)
{
    uint64_t moment = phases->moment;
    while (place->maximum_count && place->maxima[place->maximum_count - 1].bytes <= place->live)
        place->maximum_count--;
    if (place->maximum_count && place->maxima[place->maximum_count - 1].moment == moment)
        return;
    GM_APPEND(place->maxima, place->maximum_capacity, place->maximum_count,
              (struct gm_phase_maximum){moment, place->live});
}

/* The most that came to be live at or after a moment; 0 if nothing did. */
static uint64_t maximum_since(const struct gm_phase_place *place, uint64_t moment)
{
    size_t at;
    GM_BISECT(at, place->maximum_count, place->maxima[at].moment < moment);
    return at < place->maximum_count ? place->maxima[at].bytes : 0;
}

void gm_phases_life_goes_on(struct gm_phases *phases, const struct gm_life *life)
{
    struct gm_phase_place *place = gm_phases_place_of_life(phases, life);
    if (!place)
        return;
    place->live += life->size;
    place->frees--;
    gm_phases_raise(phases, place);
}

void gm_phases_turned(struct gm_phases *phases, const struct gm_turn *turn)
{
    struct gm_phase_place *place = gm_phases_place_of_life(
        phases, &(struct gm_life){.kind = turn->kind, .slot = gm_device_slot(turn->device)});
    if (!place)
        return;
    place->live += turn->most;
    gm_phases_raise(phases, place);
    place->live -= turn->most;
    place->allocated += turn->bytes;
    place->allocs += turn->births;
    place->frees += turn->births;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Number of a phase, GM_NONE if it is one too many. */
static uint32_t phase_of(struct gm_phases *phases, const struct gm_phase *what)
{
    /* References to strings fit 24 bits, numbers of phases 15. */
    uint64_t parent = what->is_interval ? GM_PHASES_KEPT : (what->parent + 1) & 0x7fff;
    uint64_t key = (what->name & 0xffffff) | (uint64_t)(what->from & 0xffffff) << 24 | parent << 48;
    uint32_t number = gm_map_get(&phases->by_key, key);
    if (number == GM_NONE && phases->count < GM_PHASES_KEPT - 1) {
        number = (uint32_t)phases->count;
        GM_APPEND(phases->entries, phases->capacity, phases->count, *what);
        gm_map_set(&phases->by_key, key, number);
    }
    return number;
}

static void begin_phase(struct gm_phases *phases, struct gm_phase_open *open, uint32_t phase,
                        uint64_t whose, uint64_t time)
{
    *open = (struct gm_phase_open){
        .phase = phase, .whose = whose, .time = time, .moment = ++phases->moment};
    gm_limits_spend(GM_STEPS_PHASE * phases->place_count);
    open->start_count = phases->place_count;
    open->starts = open->start_count ? gm_allocate(open->start_count, sizeof(struct start)) : NULL;
    for (size_t i = 0; i < open->start_count; i++) {
        const struct gm_phase_place *place = &phases->places[i];
        open->starts[i] =
            (struct start){place->live, place->allocs, place->frees, place->allocated};
    }
    phases->open_count++;
}

static void add_memory(struct gm_phase_memory *sum, const struct gm_phase_place *place,
                       const struct start *start, uint64_t moment, bool is_first)
{
    uint64_t peak = maximum_since(place, moment);
    int64_t growth = (int64_t)(place->live - start->live);
    if (peak < start->live)
        peak = start->live;
    if (peak > sum->peak)
        sum->peak = peak;
    if (is_first)
        sum->first = start->live;
    if (is_first || growth > sum->largest_growth)
        sum->largest_growth = growth;
    sum->last = place->live;
    sum->growth = (int64_t)((uint64_t)sum->growth + (uint64_t)growth); /* sizes can be hostile */
    sum->allocs += place->allocs - start->allocs;
    sum->frees += place->frees - start->frees;
    sum->allocated += place->allocated - start->allocated;
}

static void finish_phase(struct gm_phases *phases, struct gm_phase_open *open, uint64_t time,
                         bool ended)
{
    static const struct start nothing;
    phases->open_count--;
    gm_limits_spend(GM_STEPS_PHASE * phases->place_count);
    if (open->phase == GM_NONE) {
        phases->not_kept++;
    } else {
        struct gm_phase *phase = &phases->entries[open->phase];
        if (phase->memory_count < phases->place_count) {
            phase->memory = gm_resize(phase->memory, phases->place_count, sizeof(*phase->memory));
            memset(phase->memory + phase->memory_count, 0,
                   (phases->place_count - phase->memory_count) * sizeof(*phase->memory));
            phase->memory_count = phases->place_count;
        }
        for (size_t i = 0; i < phases->place_count; i++)
            add_memory(&phase->memory[i], &phases->places[i],
                       i < open->start_count ? &open->starts[i] : &nothing, open->moment,
                       phase->count == 0);
        phase->count++;
        phase->unfinished += !ended;
        phase->ticks += time > open->time ? time - open->time : 0;
    }
    free(open->starts);
    open->starts = NULL;
}

static const struct gm_moment no_moment;

/* The moment that the end of an outermost range is: none if it is a library's. */
static struct gm_moment phase_end(const struct gm_phases *phases, const struct gm_phase_open *open)
{
    if (open->phase == GM_NONE || phases->entries[open->phase].from)
        return no_moment;
    return (struct gm_moment){GM_MOMENT_RANGE, phases->entries[open->phase].name};
}

/* ---- ranges of a thread ---------------------------------------------------------------------- */

static struct gm_phase_lane *lane_of(struct gm_phases *phases, uint32_t lane)
{
    if (lane >= phases->lane_count) {
        phases->lanes = gm_resize(phases->lanes, (size_t)lane + 1, sizeof(*phases->lanes));
        memset(phases->lanes + phases->lane_count, 0,
               (lane + 1 - phases->lane_count) * sizeof(*phases->lanes));
        phases->lane_count = (size_t)lane + 1;
    }
    return &phases->lanes[lane];
}

static struct gm_phase range_of(const struct gm_record *record, uint32_t parent)
{
    return (struct gm_phase){
        .parent = parent, .name = (uint32_t)record->aux, .from = record->extra};
}

static void push_phase(struct gm_phases *phases, const struct gm_record *record, uint32_t number)
{
    struct gm_phase_lane *lane = lane_of(phases, number);
    if (lane->count == GM_PHASE_DEPTH || phases->open_count >= GM_PHASES_OPEN_MAX) {
        lane->too_deep++;
        return;
    }
    if (!lane->open)
        lane->open = gm_allocate(GM_PHASE_DEPTH, sizeof(*lane->open));
    struct gm_phase what =
        range_of(record, lane->count ? lane->open[lane->count - 1].phase : GM_NONE);
    begin_phase(phases, &lane->open[lane->count++], phase_of(phases, &what), record->address,
                record->time);
}

/* Ranges of different owners (gpumem.h, NVTX domains) nest each by themselves, so what ends need
 * not be the innermost. */
static struct gm_moment pop_phase(struct gm_phases *phases, const struct gm_record *record,
                                  uint32_t number)
{
    struct gm_phase_lane *lane = lane_of(phases, number);
    size_t at = lane->count;
    if (lane->too_deep) {
        lane->too_deep--;
        return no_moment;
    }
    while (at > 0 && lane->open[at - 1].whose != record->address)
        at--;
    if (at == 0) {
        phases->unmatched++;
        return no_moment;
    }
    struct gm_moment moment = at == 1 ? phase_end(phases, &lane->open[0]) : no_moment;
    finish_phase(phases, &lane->open[at - 1], record->time, true);
    lane->count--;
    memmove(lane->open + at - 1, lane->open + at, (lane->count - (at - 1)) * sizeof(*lane->open));
    return moment;
}

/* The thread ended without ending its ranges. */
static void abandon(struct gm_phases *phases, uint32_t number, uint64_t time)
{
    struct gm_phase_lane *lane = lane_of(phases, number);
    while (lane->count)
        finish_phase(phases, &lane->open[--lane->count], time, false);
    lane->too_deep = 0;
}

static void change_thread(struct gm_phases *phases, const struct gm_record *record, uint32_t number)
{
    struct gm_phase_lane *lane = lane_of(phases, number);
    if (lane->thread != record->address)
        abandon(phases, number, record->time);
    lane->thread = record->address;
}

/* ---- ranges of the process ------------------------------------------------------------------- */

static void start_phase(struct gm_phases *phases, const struct gm_record *record)
{
    struct gm_phase what = range_of(record, GM_NONE);
    if (phases->open_count >= GM_PHASES_OPEN_MAX ||
        gm_map_get(&phases->by_number, record->address) != GM_NONE)
        return;
    GM_RESERVE(phases->started, phases->started_capacity, phases->started_count + 1);
    begin_phase(phases, &phases->started[phases->started_count], phase_of(phases, &what),
                record->address, record->time);
    gm_map_set(&phases->by_number, record->address, (uint32_t)phases->started_count++);
}

static struct gm_moment end_phase(struct gm_phases *phases, const struct gm_record *record)
{
    uint32_t at = gm_map_get(&phases->by_number, record->address);
    if (at == GM_NONE) {
        phases->unmatched++;
        return no_moment;
    }
    struct gm_moment moment = phase_end(phases, &phases->started[at]);
    gm_map_remove(&phases->by_number, record->address);
    finish_phase(phases, &phases->started[at], record->time, true);
    /* The last one moves into the gap. */
    if (at != --phases->started_count) {
        phases->started[at] = phases->started[phases->started_count];
        gm_map_set(&phases->by_number, phases->started[at].whose, at);
    }
    return moment;
}

/* ---- intervals between marks ----------------------------------------------------------------- */

/* Ends the time since the latest mark, now that the name of the next one is known. While it is
 * open, `phase` holds the name of the mark that it began with. */
static void end_interval(struct gm_phases *phases, uint32_t name, uint64_t time, bool ended)
{
    struct gm_phase_open *open = phases->interval;
    struct gm_phase what = {
        .is_interval = true, .parent = GM_NONE, .name = name, .from = open->phase};
    open->phase = phase_of(phases, &what);
    finish_phase(phases, open, time, ended);
}

static struct gm_moment mark_phase(struct gm_phases *phases, const struct gm_record *record)
{
    uint32_t name = (uint32_t)record->aux;
    if (record->extra)
        return no_moment; /* of a library: it divides the library's time, not the program's */
    phases->marks++;
    end_interval(phases, name, record->time, true);
    begin_phase(phases, phases->interval, name, 0, record->time);
    return (struct gm_moment){GM_MOMENT_MARK, name};
}

/* ---- all records ----------------------------------------------------------------------------- */

struct gm_moment gm_phases_note(struct gm_phases *phases, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    switch (record->type) {
    case GM_EVENT_MARK:
        return mark_phase(phases, record);
    case GM_EVENT_RANGE_PUSH:
        push_phase(phases, record, entry->lane);
        break;
    case GM_EVENT_RANGE_POP:
        return pop_phase(phases, record, entry->lane);
    case GM_EVENT_RANGE_START:
        start_phase(phases, record);
        break;
    case GM_EVENT_RANGE_END:
        return end_phase(phases, record);
    case GM_EVENT_THREAD:
        change_thread(phases, record, entry->lane);
        break;
    default:
        break;
    }
    return no_moment;
}

/* ---- the end --------------------------------------------------------------------------------- */

static uint64_t highest_peak(const struct gm_phase *phase)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < phase->memory_count; i++)
        if (phase->memory[i].peak > highest)
            highest = phase->memory[i].peak;
    return highest;
}

/* GNU: qsort_r, for a comparison that needs the phases. */
static int highest_first(const void *left, const void *right, void *entries)
{
    const struct gm_phase *a = (struct gm_phase *)entries + *(const uint32_t *)left;
    const struct gm_phase *b = (struct gm_phase *)entries + *(const uint32_t *)right;
    uint64_t peak_a = highest_peak(a), peak_b = highest_peak(b);
    if (peak_a != peak_b)
        return peak_a > peak_b ? -1 : 1;
    return a < b ? -1 : a > b;
}

void gm_phases_finish(struct gm_phases *phases, uint64_t end_time)
{
    for (size_t i = 0; i < phases->lane_count; i++)
        abandon(phases, (uint32_t)i, end_time);
    while (phases->started_count)
        finish_phase(phases, &phases->started[--phases->started_count], end_time, false);
    if (phases->marks)
        end_interval(phases, 0, end_time, true);
    free(phases->interval);
    phases->interval = NULL;
    phases->order = gm_allocate(phases->count + 1, sizeof(*phases->order));
    for (size_t i = 0; i < phases->count; i++)
        phases->order[i] = (uint32_t)i;
    if (phases->count)
        qsort_r(phases->order, phases->count, sizeof(*phases->order), highest_first,
                phases->entries);
}

void gm_phases_free(struct gm_phases *phases)
{
    for (size_t i = 0; i < phases->count; i++)
        free(phases->entries[i].memory);
    for (size_t i = 0; i < phases->place_count; i++)
        free(phases->places[i].maxima);
    for (size_t i = 0; i < phases->lane_count; i++)
        free(phases->lanes[i].open);
    free(phases->entries);
    free(phases->order);
    free(phases->lanes);
    free(phases->started);
    gm_map_free(&phases->by_key);
    gm_map_free(&phases->by_number);
}

uint64_t gm_phase_time(const struct gm_phase *phase, const struct gm_clock_scale *clock)
{
    uint64_t ticks = phase->ticks;
    if (ticks > UINT64_MAX - clock->origin)
        ticks = UINT64_MAX - clock->origin;
    return gm_clock_elapsed(clock, clock->origin + ticks);
}

bool gm_phase_is_touched(const struct gm_phase_memory *memory)
{
    return memory->peak || memory->growth || memory->allocs || memory->frees;
}
