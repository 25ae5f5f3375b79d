/* See rounds.h. */
#include "judge/rounds/rounds.h"
#include "base/each.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdlib.h>

/* ---- what is told apart ---------------------------------------------------------------------- */

static uint16_t stream_of(struct gm_rounds *rounds, int device, enum gm_round_sort sort)
{
    uint64_t key = (uint64_t)(uint8_t)(device + 1) << 8 | sort;
    uint32_t number = gm_map_get(&rounds->by_device, key);
    if (number == GM_NONE) {
        number = (uint32_t)rounds->stream_count;
        GM_RESERVE(rounds->streams, rounds->stream_capacity, rounds->stream_count + 1);
        struct gm_round_stream *stream = gm_allocate(1, sizeof(*stream));
        stream->device = device;
        stream->sort = sort;
        rounds->streams[rounds->stream_count++] = stream;
        gm_map_set(&rounds->by_device, key, number);
    }
    return (uint16_t)(number + 1);
}

static uint32_t add_place(struct gm_rounds *rounds, const struct gm_round_place *place)
{
    uint32_t number = (uint32_t)rounds->place_count;
    GM_RESERVE(rounds->places, rounds->place_capacity, rounds->place_count + 1);
    rounds->places[rounds->place_count] = gm_allocate(1, sizeof(*place));
    *rounds->places[rounds->place_count++] = *place;
    return number;
}

/* Of one line, what belongs to a model, a backward pass or an optimizer is a place of its own. */
static uint32_t round_place(struct gm_rounds *rounds, uint16_t stream,
                            const struct gm_round_birthplace *birthplace)
{
    enum gm_category category = birthplace->category;
    if (category != GM_CATEGORY_PARAMETER && category != GM_CATEGORY_GRADIENT &&
        category != GM_CATEGORY_OPTIMIZER)
        category = GM_CATEGORY_OTHER;
    uint64_t key = birthplace->line * 0x9e3779b97f4a7c15u ^ (uint64_t)category << 16 ^ stream;
    uint32_t number = gm_map_get(&rounds->by_line, key);
    if (number != GM_NONE || rounds->place_count == GM_ROUND_PLACES)
        return number;
    struct gm_round_place place = {.stream = stream,
                                   .category = (uint8_t)category,
                                   .line = GM_NONE,
                                   .first_way = birthplace->way};
    number = add_place(rounds, &place);
    gm_map_set(&rounds->by_line, key, number);
    return number;
}

/* The place of a way to a line, which begins as `like`. GM_NONE: it is one too many. */
static uint32_t way_of(struct gm_rounds *rounds, uint32_t line, uint64_t way,
                       const struct gm_round_place *like)
{
    uint64_t key = way * 0x9e3779b97f4a7c15u ^ line;
    uint32_t number = gm_map_get(&rounds->by_way, key);
    if (number != GM_NONE || rounds->place_count >= GM_ROUND_PLACES / 2)
        return number;
    number = add_place(rounds, like);
    rounds->places[number]->line = line;
    gm_map_set(&rounds->by_way, key, number);
    return number;
}

static struct gm_round_place *place_at(const struct gm_rounds *rounds, uint32_t number)
{
    return number == GM_NONE ? NULL : rounds->places[number];
}

/* A second way to a line appears: all that it did so far, it did on the first. */
static void split_round(struct gm_rounds *rounds, uint32_t number)
{
    struct gm_round_place *line = rounds->places[number];
    if (rounds->split_count == GM_ROUND_SPLITS)
        return;
    rounds->split_count++;
    struct gm_round_place *way = place_at(rounds, way_of(rounds, number, line->first_way, line));
    for (size_t i = 0; i < rounds->site_count; i++)
        if (rounds->sites[i].place == line)
            rounds->sites[i].way = way;
    line->is_split = true;
}

static uint32_t find_way(struct gm_rounds *rounds, uint32_t number,
                         const struct gm_round_birthplace *birthplace)
{
    struct gm_round_place *line = rounds->places[number];
    if (!line->is_split && birthplace->way != line->first_way)
        split_round(rounds, number);
    struct gm_round_place fresh = {.stream = line->stream, .category = line->category};
    return line->is_split ? way_of(rounds, number, birthplace->way, &fresh) : GM_NONE;
}

void gm_rounds_add_site(struct gm_rounds *rounds, uint32_t site,
                        const struct gm_round_birthplace *birthplace)
{
    if (site >= GM_ROUND_SITES)
        return;
    GM_RESERVE(rounds->sites, rounds->site_capacity, (size_t)site + 1);
    struct gm_round_site *added = &rounds->sites[site];
    *added = (struct gm_round_site){0};
    rounds->site_count = (size_t)site + 1;
    if (birthplace->sort >= GM_ROUND_SORTS)
        return;
    int device = birthplace->device < 0 ? -1 : birthplace->device;
    uint16_t stream = stream_of(rounds, device, birthplace->sort);
    uint32_t place = round_place(rounds, stream, birthplace);
    uint32_t way = place == GM_NONE ? GM_NONE : find_way(rounds, place, birthplace);
    added->category = birthplace->category;
    added->stream = rounds->streams[stream - 1];
    added->place = place_at(rounds, place);
    added->way = place_at(rounds, way);
}

/* ---- what happens ---------------------------------------------------------------------------- */

/* Two buckets became one: what comes later stands for both. */
static void widen_past(struct gm_round_stream *stream)
{
    for (size_t i = 0; i < GM_TRAIL_BUCKETS / 2; i++)
        stream->past[i] =
            stream->past[2 * i + 1].time ? stream->past[2 * i + 1] : stream->past[2 * i];
    stream->past_shift++;
}

/* The tick that ended is the first of its bucket, or there was none yet. */
static void begin_bucket(struct gm_round_stream *stream)
{
    if (stream->clock == 0)
        return;
    gm_trail_add(&stream->trail, stream->clock, stream->clock, stream->before);
    gm_trail_add(&stream->trail, stream->clock, stream->clock, stream->live);
    while (stream->past_shift < stream->trail.shift)
        widen_past(stream);
}

/* The stream held so much at its tick's begin, and holds so much at its end. */
static inline void end_tick(struct gm_rounds *rounds, struct gm_round_stream *stream)
{
    const struct gm_trail *trail = &stream->trail;
    if (!gm_trail_add_to_last(&stream->trail, stream->clock, stream->before, stream->live))
        begin_bucket(stream);
    if (trail->count)
        stream->past[trail->count - 1] = (struct gm_round_past){
            stream->time, stream->frees, rounds->copies, rounds->graphs, stream->gradients};
}

/* A place changes in a new tick: what it held until then stands. */
static inline void enter_tick(struct gm_round_place *place, uint64_t clock)
{
    if (!gm_trail_add_to_last(&place->trail, clock - 1, place->live, place->live) && place->births)
        gm_trail_add_ticks(&place->trail, place->tick, clock - 1, place->live);
    place->tick = clock;
}

static inline void keep_deaths(struct gm_round_place *place)
{
    place->deaths_before = place->deaths;
    place->oldest_before = place->oldest;
}

static inline void change_place(struct gm_round_place *place, uint64_t clock, uint64_t more)
{
    if (place->tick != clock) {
        enter_tick(place, clock);
        place->before = place->live;
        keep_deaths(place);
    }
    place->live += more;
}

/* Between two allocations: a site and its places hold so much more, which may be negative. */
static inline void change(struct gm_round_site *site, uint64_t more)
{
    struct gm_round_stream *stream = site->stream;
    if (site->tick != stream->clock) {
        site->tick = stream->clock;
        site->before = site->live;
    }
    site->live += more;
    stream->live += more;
    if (site->place)
        change_place(site->place, stream->clock, more);
    if (site->way)
        change_place(site->way, stream->clock, more);
}

/* An allocation begins a tick. */
static inline void begin_tick_of_place(struct gm_round_place *place, uint64_t clock, uint64_t size)
{
    enter_tick(place, clock);
    if (place->births == 0)
        place->first = clock;
    place->births++;
    if (size > place->largest) {
        place->largest = size;
        place->longer = clock;
        place->records++;
    }
    place->live += size;
    place->before = place->live;
    keep_deaths(place);
}

static inline void begin_tick_of_site(struct gm_round_site *site, uint64_t clock, uint64_t size)
{
    if (size / 2 > site->largest)
        site->large = 0;
    site->large += size >= site->largest - site->largest / 2;
    site->largest = size > site->largest ? size : site->largest;
    site->least = site->births && site->least < size ? site->least : size;
    if (site->births == 0)
        site->first = clock;
    else if (clock - site->last > site->longest)
        site->longest = clock - site->last;
    site->last = clock;
    site->births++;
    site->live += size;
}

static inline void begin_tick(struct gm_round_stream *stream, uint64_t size, uint64_t time)
{
    stream->clock++;
    stream->time = time;
    stream->live += size;
    stream->before = stream->live;
    stream->frees_before = stream->frees;
    if (stream->live > stream->peak)
        stream->peak = stream->live;
}

/* NULL: the site is not watched. */
static inline struct gm_round_site *watched(struct gm_rounds *rounds, uint32_t number)
{
    return number < rounds->site_count && rounds->sites[number].stream ? &rounds->sites[number]
                                                                       : NULL;
}

void gm_rounds_alloc(struct gm_rounds *rounds, uint32_t number, uint64_t size, uint64_t time)
{
    struct gm_round_site *site = watched(rounds, number);
    if (!site)
        return;
    struct gm_round_stream *stream = site->stream;
    end_tick(rounds, stream);
    begin_tick(stream, size, time);
    begin_tick_of_site(site, stream->clock, size);
    stream->gradients += site->category == GM_CATEGORY_GRADIENT;
    if (site->place)
        begin_tick_of_place(site->place, stream->clock, size);
    if (site->way)
        begin_tick_of_place(site->way, stream->clock, size);
}

/* The tick in which something was allocated, to the bucket: the first that ends no earlier. */
static uint64_t tick_of(const struct gm_round_stream *stream, uint64_t time)
{
    size_t from = stream->trail.first, to = stream->trail.count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (stream->past[middle].time < time)
            from = middle + 1;
        else
            to = middle;
    }
    return (uint64_t)from << stream->trail.shift;
}

static void note_death(struct gm_round_place *place, uint64_t age)
{
    place->deaths++;
    if (age > place->oldest)
        place->oldest = age;
}

void gm_rounds_free(struct gm_rounds *rounds, uint32_t number, uint64_t size, uint64_t birth)
{
    struct gm_round_site *site = watched(rounds, number);
    if (!site)
        return;
    struct gm_round_stream *stream = site->stream;
    size_t last = stream->trail.count;
    uint64_t age = 0; /* what died in the bucket of its birth, as nearly all do, has none */
    if (last && birth <= stream->past[last - 1].time)
        age = stream->clock - tick_of(stream, birth);
    change(site, -size);
    stream->frees++;
    if (site->place)
        note_death(site->place, age);
    if (site->way)
        note_death(site->way, age);
}

void gm_rounds_unfree(struct gm_rounds *rounds, uint32_t number, uint64_t size)
{
    struct gm_round_site *site = watched(rounds, number);
    if (!site)
        return;
    struct gm_round_stream *stream = site->stream;
    change(site, size);
    stream->frees--;
    if (site->place)
        site->place->deaths--;
    if (site->way)
        site->way->deaths--;
    if (stream->live > stream->peak)
        stream->peak = stream->live;
}

/* ---- moments --------------------------------------------------------------------------------- */

static void note_round_refusal(struct gm_round_stream *stream)
{
    GM_COPY_MEMBERS(&stream->refusal, stream, clock, live, trail);
    if (stream->clock) {
        gm_trail_add(&stream->refusal.trail, stream->clock, stream->clock, stream->before);
        gm_trail_add(&stream->refusal.trail, stream->clock, stream->clock, stream->live);
    }
}

void gm_rounds_refuse(struct gm_rounds *rounds, int device, enum gm_round_sort sort)
{
    uint16_t number = stream_of(rounds, device < 0 ? -1 : device, sort);
    struct gm_round_stream *stream = rounds->streams[number - 1];
    note_round_refusal(stream);
    if (stream->refused)
        return;
    stream->refused = true;
    stream->refused_clock = stream->clock;
    gm_rounds_judge(rounds, number, true);
}

static bool has_blocks(struct gm_rounds *rounds, int device)
{
    uint64_t key = (uint64_t)(uint8_t)(device + 1) << 8 | GM_ROUND_BLOCKS;
    return gm_map_get(&rounds->by_device, key) != GM_NONE;
}

GM_ORDER(heaviest_first, struct gm_round_growth, GM_DOWN(weight) GM_DOWN(bytes) GM_UP(place))

/* A framework's segments tell nothing where its blocks are on record. */
static void leave_out_segments(struct gm_rounds *rounds)
{
    size_t kept = 0;
    for (size_t i = 0; i < rounds->found_count; i++)
        if (rounds->found[i].sort != GM_ROUND_CACHED ||
            !has_blocks(rounds, rounds->found[i].device))
            rounds->found[kept++] = rounds->found[i];
    rounds->found_count = kept;
}

/* Whether another way to the line does not grow, though it allocates again and again. */
static bool has_steady_way(const struct gm_rounds *rounds, uint32_t line)
{
    for (size_t i = 0; i < rounds->place_count; i++)
        if (rounds->places[i]->line == line && gm_rounds_is_steady(rounds->places[i]))
            return true;
    return false;
}

/* A line that grows on some of its ways alone: told is what the largest of them holds, if that is as certain. */
static void tell_way(const struct gm_rounds *rounds, struct gm_round_growth *growth)
{
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *way = &rounds->found[i];
        if (way->line != growth->line || way->place == way->line || way->weight < growth->weight)
            continue;
        *growth = *way;
        growth->place = growth->line;
        growth->differs = true;
        return;
    }
}

/* Where a line grows, its ways are not told again. */
static void leave_out_ways(struct gm_rounds *rounds)
{
    size_t kept = 0;
    for (size_t i = 0; i < rounds->found_count; i++) {
        struct gm_round_growth *growth = &rounds->found[i];
        growth->differs = growth->line != GM_NONE && rounds->places[growth->line]->is_split &&
                          has_steady_way(rounds, growth->line);
        if (growth->differs && growth->place == growth->line)
            tell_way(rounds, growth);
    }
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        if (growth->place == growth->line || !rounds->places[growth->line]->grows)
            rounds->found[kept++] = *growth;
    }
    rounds->found_count = kept;
}

void gm_rounds_finish(struct gm_rounds *rounds)
{
    for (size_t i = 0; i < rounds->stream_count; i++)
        if (!rounds->streams[i]->refused ||
            rounds->streams[i]->clock > rounds->streams[i]->refused_clock)
            gm_rounds_judge(rounds, (uint16_t)(i + 1), false);
    leave_out_segments(rounds);
    if (rounds->found_count)
        qsort(rounds->found, rounds->found_count, sizeof(*rounds->found), heaviest_first);
    leave_out_ways(rounds);
    if (rounds->found_count)
        qsort(rounds->found, rounds->found_count, sizeof(*rounds->found), heaviest_first);
}

void gm_rounds_free_all(struct gm_rounds *rounds)
{
    for (size_t i = 0; i < rounds->place_count; i++)
        free(rounds->places[i]);
    for (size_t i = 0; i < rounds->stream_count; i++)
        free(rounds->streams[i]);
    free(rounds->places);
    free(rounds->streams);
    free(rounds->sites);
    free(rounds->found);
    gm_map_free(&rounds->by_line);
    gm_map_free(&rounds->by_way);
    gm_map_free(&rounds->by_device);
}
