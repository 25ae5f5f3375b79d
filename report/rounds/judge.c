/* The rule of rounds.h, applied to one stream at one moment. docs/findings.md has the reasons for the thresholds. */
#include "base/limit.h"
#include "base/memory.h"
#include "rounds/rounds.h"

#define MIB ((uint64_t)1 << 20)

#define PEAK_SHARE 100u  /* a rise of a hundredth of the stream's peak, and of a MiB, */
#define BIRTHS 6u        /* in so many allocations at least, */
#define PLACE_SHARE 50u  /* of a place that holds a fiftieth of the peak */
#define LEVEL 90u        /* percent of what it holds in the end: there the phase ends */
#define GOING_SHARE 2u   /* growth goes on if its phase has half of all allocations */
#define GOING_UNTIL 75u  /* and ends in the last quarter of them */
#define STOPPED_SHARE 4u /* growth that has stopped is told if its phase has a quarter of them */
#define LOADS 25u        /* percent freed in the phase: with less, what has stopped was loading */
#define ROUNDS 60u       /* percent freed in the phase: rounds gave most of it back */
#define FALL_SHARE 16u   /* of the peak: a round gives back that much, a layer less */
#define COPIES 8u        /* that loops make: so many rounds there were */
#define UNPROVEN 24u     /* allocations, where nothing proves rounds: fewer are a model's layers */
#define ANCHORS 8u       /* allocations of the stack that tells rounds */
#define EVEN 4u          /* times the mean, and EVEN more: the longest pause between two of them */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether so much is `percent` of all, at least. */
static bool is_share(uint64_t part, uint64_t all, unsigned percent)
{
    return (unsigned __int128)part * 100 >= (unsigned __int128)all * percent; /* GNU */
}

/* ---- the trail of a place -------------------------------------------------------------------- */

/* What the place holds at this moment. */
static uint64_t held(const struct gm_round_place *place, const struct gm_round_stream *stream,
                     bool at_refusal)
{
    return !at_refusal && place->tick == stream->clock ? place->before : place->live;
}

/* The place's trail until now. */
static struct gm_trail trail_of(const struct gm_round_place *place,
                                const struct gm_round_stream *stream, uint64_t bytes)
{
    struct gm_trail trail = place->trail;
    if (place->tick < stream->clock)
        gm_trail_add(&trail, place->tick, stream->clock - 1, place->live);
    gm_trail_add(&trail, stream->clock, stream->clock, bytes);
    return trail;
}

/* The last bucket in which it held less than most of what it holds in the end. */
static size_t last_below(const struct gm_trail *trail, uint64_t bytes)
{
    size_t at = trail->count;
    while (at > trail->first && is_share(trail->buckets[at - 1].least, bytes, LEVEL))
        at--;
    return at > trail->first ? at - 1 : trail->first;
}

/* The least of one of the parts of buckets [first, end), which are as many at least. */
static uint64_t least_of_part(const struct gm_trail *trail, size_t first, size_t end, size_t part)
{
    size_t at = first + (end - first) * part / GM_ROUND_PARTS;
    size_t until = first + (end - first) * (part + 1) / GM_ROUND_PARTS;
    uint64_t least = trail->buckets[at].least;
    for (; at < until; at++)
        if (trail->buckets[at].least < least)
            least = trail->buckets[at].least;
    return least;
}

/* Whether the least of each part of the phase is more than that of the part before; by how much the
 * last is more than the first. */
static bool rises(const struct gm_trail *trail, size_t first, size_t end, uint64_t *rise)
{
    uint64_t least[GM_ROUND_PARTS];
    if (end - first < GM_ROUND_PARTS)
        return false;
    for (size_t part = 0; part < GM_ROUND_PARTS; part++) {
        least[part] = least_of_part(trail, first, end, part);
        if (part > 0 && least[part] <= least[part - 1])
            return false;
    }
    *rise = least[GM_ROUND_PARTS - 1] - least[0];
    return true;
}

/* ---- what the stream did meanwhile ----------------------------------------------------------- */

/* What it had done when a tick ended, to the bucket. */
static struct gm_round_past past_at(const struct gm_rounds *rounds,
                                    const struct gm_round_stream *stream, uint64_t tick)
{
    struct gm_round_past now = {stream->time, stream->frees, rounds->copies};
    if (tick >= stream->clock || !stream->trail.count)
        return now;
    return stream->past[gm_trail_at(&stream->trail, tick)];
}

static uint64_t fall_until(const struct gm_round_stream *stream, uint64_t tick)
{
    const struct gm_trail *trail = &stream->trail;
    uint64_t most = 0, fall = 0;
    for (size_t i = trail->first; i < trail->count && i <= tick >> trail->shift; i++) {
        most = larger(most, trail->buckets[i].most);
        fall = larger(fall, most - trail->buckets[i].least);
    }
    return fall;
}

/* Whether the stream as a whole holds more in the phase's last part than in its first: else memory
 * only went from one place to another, as when objects are replaced by new ones. */
static bool is_more_in_all(const struct gm_round_stream *stream,
                           const struct gm_round_growth *growth)
{
    const struct gm_trail *trail = &stream->trail;
    size_t first = gm_trail_at(trail, growth->begin), end = gm_trail_at(trail, growth->end) + 1;
    if (!trail->count || end - first < GM_ROUND_PARTS)
        return true;
    uint64_t before = least_of_part(trail, first, end, 0);
    uint64_t after = least_of_part(trail, first, end, GM_ROUND_PARTS - 1);
    return after > before && after - before >= growth->rise / 2;
}

/* Whether copies that loops make were made in each part of the phase. */
static bool has_copies(const struct gm_rounds *rounds, const struct gm_round_stream *stream,
                       const struct gm_round_growth *growth)
{
    uint64_t before = past_at(rounds, stream, growth->begin).copies;
    for (unsigned part = 1; part <= GM_ROUND_PARTS; part++) {
        uint64_t tick = growth->begin + (growth->end - growth->begin) * part / GM_ROUND_PARTS;
        uint64_t copies = past_at(rounds, stream, tick).copies;
        if (copies < before + COPIES / GM_ROUND_PARTS)
            return false;
        before = copies;
    }
    return true;
}

/* The stack that allocates once in each round is the rarest of those that go on evenly, over half
 * of the run at least, to its end. */
static uint64_t find_rounds(const struct gm_rounds *rounds, const struct gm_round_stream *stream,
                            uint64_t ticks)
{
    const struct gm_round_site *anchor = NULL;
    for (size_t i = 0; i < rounds->site_count; i++) {
        const struct gm_round_site *site = &rounds->sites[i];
        if (site->stream != stream || site->births < ANCHORS ||
            site->last - site->first < ticks / 2)
            continue;
        uint64_t mean = (site->last - site->first) / (site->births - 1);
        if (larger(site->longest, ticks - site->last) > EVEN * mean + EVEN)
            continue;
        if (!anchor || site->births < anchor->births)
            anchor = site;
    }
    return anchor ? anchor->births : 0;
}

/* ---- what grows ------------------------------------------------------------------------------ */

static uint32_t largest_site(const struct gm_rounds *rounds, const struct gm_round_place *place,
                             uint64_t clock, bool at_refusal)
{
    uint32_t largest = GM_NONE;
    uint64_t most = 0;
    for (size_t i = 0; i < rounds->site_count; i++) {
        const struct gm_round_site *site = &rounds->sites[i];
        uint64_t bytes = !at_refusal && site->tick == clock ? site->before : site->live;
        if ((site->place == place || site->way == place) && bytes >= most) {
            most = bytes;
            largest = (uint32_t)i;
        }
    }
    return largest;
}

/* Whether it is to be told, and how. A model that is loaded, and the gradients of its first backward
 * passes, grow as they should: they need the proof, and then it is still less than certain. */
static bool weigh(const struct gm_rounds *rounds, const struct gm_round_stream *stream,
                  struct gm_round_growth *growth)
{
    uint64_t phase = growth->end - growth->begin;
    growth->goes_on =
        phase >= growth->ticks / GOING_SHARE && is_share(growth->end, growth->ticks, GOING_UNTIL);
    growth->weight = GM_ROUND_NOTE;
    if (!growth->goes_on)
        return phase >= growth->ticks / STOPPED_SHARE && is_share(growth->frees, phase, LOADS);
    growth->proofs = 0;
    growth->proofs += is_share(growth->frees, phase, ROUNDS);
    growth->proofs += growth->fall >= growth->peak / FALL_SHARE;
    growth->proofs += has_copies(rounds, stream, growth);
    if (growth->proofs)
        growth->weight = GM_ROUND_WARNING;
    else if (!growth->at_refusal && growth->blocks < UNPROVEN)
        return false;
    if (growth->category == GM_CATEGORY_OTHER)
        return true;
    bool is_certain = growth->weight == GM_ROUND_WARNING;
    growth->weight = GM_ROUND_NOTE;
    return is_certain;
}

static void add(struct gm_rounds *rounds, const struct gm_round_growth *growth)
{
    for (size_t i = 0; i < rounds->found_count; i++) {
        if (rounds->found[i].place != growth->place)
            continue;
        if (growth->weight > rounds->found[i].weight)
            rounds->found[i] = *growth;
        return;
    }
    GM_RESERVE(rounds->found, rounds->found_capacity, rounds->found_count + 1);
    rounds->found[rounds->found_count++] = *growth;
}

static void judge_place(struct gm_rounds *rounds, uint32_t number, bool at_refusal)
{
    const struct gm_round_place *place = rounds->places[number];
    const struct gm_round_stream *stream = rounds->streams[place->stream - 1];
    uint64_t bytes = held(place, stream, at_refusal),
             least = larger(MIB, stream->peak / PEAK_SHARE);
    if (place->births < BIRTHS || bytes < least || bytes < stream->peak / PLACE_SHARE)
        return;
    struct gm_trail trail = trail_of(place, stream, bytes);
    size_t last = last_below(&trail, bytes);
    struct gm_round_growth growth = {
        .place = number,
        .line = place->line == GM_NONE ? number : place->line,
        .category = place->category,
        .device = stream->device,
        .sort = stream->sort,
        .at_refusal = at_refusal,
        .bytes = bytes,
        .blocks = place->births,
        .begin = place->first,
        .end = ((uint64_t)(last + 1) << trail.shift) - 1,
        .ticks = stream->clock,
        .before = stream->trail.count
                      ? stream->trail.buckets[gm_trail_at(&stream->trail, place->first)].least
                      : 0,
        .total = at_refusal ? stream->live : stream->before,
        .peak = stream->peak,
    };
    if (growth.end > stream->clock)
        growth.end = stream->clock;
    if (!rises(&trail, trail.first, last + 1, &growth.rise) || growth.rise < least ||
        !is_more_in_all(stream, &growth))
        return;
    struct gm_round_past begin = past_at(rounds, stream, growth.begin);
    struct gm_round_past end = past_at(rounds, stream, growth.end);
    growth.since = begin.time;
    growth.until = end.time;
    growth.last = stream->time;
    growth.frees = end.frees - begin.frees;
    growth.copies = end.copies - begin.copies;
    growth.fall = fall_until(stream, growth.end);
    if (!weigh(rounds, stream, &growth) || !gm_limits_spend(2 * rounds->site_count))
        return;
    uint64_t rounds_of_run = find_rounds(rounds, stream, stream->clock);
    growth.rounds = (uint64_t)((unsigned __int128)rounds_of_run * (growth.end - growth.begin) /
                               (stream->clock ? stream->clock : 1));
    growth.site = largest_site(rounds, place, stream->clock, at_refusal);
    if (growth.site == GM_NONE)
        return;
    rounds->places[number]->grows = true;
    add(rounds, &growth);
}

bool gm_rounds_is_steady(const struct gm_round_place *place)
{
    return !place->grows && place->births >= BIRTHS;
}

void gm_rounds_judge(struct gm_rounds *rounds, uint16_t stream, bool at_refusal)
{
    for (uint32_t i = 0; i < rounds->place_count; i++)
        if (rounds->places[i]->stream == stream)
            judge_place(rounds, i, at_refusal);
}
