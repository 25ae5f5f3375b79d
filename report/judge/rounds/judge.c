/* The rule of rounds.h, applied to one stream at one moment. docs/findings.md has the reasons for the thresholds. */
#include "base/each.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/size.h"
#include "judge/rounds/rounds.h"

#define PEAK_SHARE 1000u /* a rise of a thousandth of the stream's peak, and of a MiB, */
#define BIRTHS 5u        /* in so many allocations at least, and of one stack for a warning */
#define LEVEL 90u        /* percent of the growth: there its window ends */
#define SEEN 25u         /* percent of the growth that had come and gone before: it will go again */
#define STARTS 4u        /* quarters of the course that a window may begin in */
#define GOING_UNTIL 75u  /* growth goes on if its window ends in the last quarter of the run */
#define STOPPED_SHARE                                                                              \
    4u /* growth that has stopped is told if its window has a quarter of the run */
#define SHORT                                                                                      \
    8u /* in less than an eighth of the run, as many blocks as a model's layers are no growth */
#define LOADS 25u        /* percent freed in the window: with less, what has stopped was loading */
#define ROUNDS 60u       /* percent freed in the window: rounds gave most of it back */
#define FALL_SHARE 16u   /* of the peak: a round gives back that much, a layer less */
#define REPEATED 2u      /* copies, or allocations of backward passes, in each part */
#define UNPROVEN 24u     /* allocations, where nothing proves rounds: fewer are a model's layers */
#define PASSES 16u       /* allocations that outlive backward passes, to be certain */
#define MODELS 8u        /* times the weights: more than any optimizer's state or gradients */
#define LONGER 25u       /* percent of the blocks, longer than any before: less are stages */
#define EACH 75u         /* percent of the blocks: as many of another sort in as many rounds */
#define BESIDE 8u        /* the eighth part of the shortest: results of long inputs are less */
#define FORGOTTEN 6u     /* blocks alive where most were freed soon: fewer may be in use */
#define SOON 8u          /* the eighth part of a window */
#define SLOWER 85u       /* percent of the growth's first half, in its second */
#define SAMPLES 8u       /* times that a sample is taken, or the whole once */
#define SAMPLE 16u       /* blocks that are joined, at least */
#define RETURNED 10u     /* the tenth part, at most, was not given back */
#define ANCHORS 8u       /* allocations of the stack that tells rounds */
#define REFUSED_SHARE 8u /* growth that is less of what was held did not fill the device */
#define EVEN 4u          /* times the mean, and EVEN more: the longest pause between two of them */

/* What a place, or a stream as a whole, held over time; and what was made there until now. */
struct course {
    struct gm_trail trail;
    uint64_t bytes; /* held in the end */
    uint64_t births, deaths, oldest;
    uint64_t first, longer; /* ticks */
    uint64_t records;       /* births that were the largest yet */
    enum gm_category category;
    uint32_t place; /* GM_NONE: the stream */
};

/* What evidence is looked for in. */
struct judgement {
    const struct gm_rounds *rounds;
    const struct gm_round_stream *stream;
    const struct course *course;
    size_t begin, end;                /* of the window, in buckets of the course */
    uint64_t floor;                   /* held at the begin */
    const struct gm_round_site *unit; /* the stack that holds most */
    struct gm_round_growth *growth;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t less_or_zero(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

/* Whether so much is `percent` of all, at least. */
static bool is_share(uint64_t part, uint64_t all, unsigned percent)
{
    return (unsigned __int128)part * 100 >= (unsigned __int128)all * percent; /* GNU */
}

/* ---- courses --------------------------------------------------------------------------------- */

static struct course course_of_place(const struct gm_rounds *rounds, uint32_t number,
                                     bool at_refusal)
{
    const struct gm_round_place *place = rounds->places[number];
    const struct gm_round_stream *stream = rounds->streams[place->stream - 1];
    bool before = !at_refusal && place->tick == stream->clock;
    struct course course = {
        .trail = place->trail,
        .bytes = before ? place->before : place->live,
        .births = place->births,
        .deaths = before ? place->deaths_before : place->deaths,
        .oldest = before ? place->oldest_before : place->oldest,
        GM_SAME(place, first, longer, records, category),
        .place = number,
    };
    if (place->tick < stream->clock)
        gm_trail_add(&course.trail, place->tick, stream->clock - 1, place->live);
    gm_trail_add(&course.trail, stream->clock, stream->clock, course.bytes);
    return course;
}

static struct course course_of_stream(const struct gm_round_stream *stream, bool at_refusal)
{
    struct course course = {
        .trail = stream->trail,
        .bytes = at_refusal ? stream->live : stream->before,
        .births = stream->clock,
        .deaths = at_refusal ? stream->frees : stream->frees_before,
        .first = 1,
        .place = GM_NONE,
    };
    gm_trail_add(&course.trail, stream->clock, stream->clock, course.bytes);
    return course;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* The least of buckets [first, end), of which there is one at least. */
static uint64_t least_of(const struct gm_trail *trail, size_t first, size_t end)
{
    uint64_t least = trail->buckets[first].least;
    for (size_t at = first + 1; at < end; at++)
        if (trail->buckets[at].least < least)
            least = trail->buckets[at].least;
    return least;
}

static uint64_t most_of(const struct gm_trail *trail, size_t first, size_t end)
{
    uint64_t most = 0;
    for (size_t at = first; at < end; at++)
        most = larger(most, trail->buckets[at].most);
    return most;
}

/* The least of one of `parts` of buckets [first, end), which are as many at least. */
static uint64_t least_of_part(const struct gm_trail *trail, size_t first, size_t end, size_t part,
                              size_t parts)
{
    return least_of(trail, first + (end - first) * part / parts,
                    first + (end - first) * (part + 1) / parts);
}

/* Sets the window that begins in bucket `start` or later: where the course was at its floor for the last time, to
 * where it was last below the level of the end. Whether it is long enough to be looked at. */
static bool find_window(struct judgement *judgement, size_t start)
{
    const struct gm_trail *trail = &judgement->course->trail;
    uint64_t gain, floor = least_of(trail, start, trail->count);
    size_t begin = trail->count - 1, end = trail->count;
    while (begin > start && trail->buckets[begin].least > floor)
        begin--;
    gain = less_or_zero(judgement->course->bytes, floor);
    while (end > begin && is_share(less_or_zero(trail->buckets[end - 1].least, floor), gain, LEVEL))
        end--;
    judgement->begin = begin;
    judgement->end = end;
    judgement->floor = floor;
    return end - begin >= GM_ROUND_PARTS;
}

/* In how many of `parts` the least is more than in all before; all of them, if it rises throughout. */
static unsigned count_rises(const struct judgement *judgement, size_t parts)
{
    unsigned rises = 0;
    uint64_t most = 0;
    for (size_t part = 0; part < parts; part++) {
        uint64_t least =
            least_of_part(&judgement->course->trail, judgement->begin, judgement->end, part, parts);
        rises += part == 0 || least > most;
        most = larger(most, least);
    }
    return rises;
}

/* What the course held at most before the window. Of all memory, for as long as a bucket: a round's temporaries are no
 * growth that had been given back. */
static uint64_t held_before(const struct judgement *judgement)
{
    const struct gm_trail *trail = &judgement->course->trail;
    uint64_t held = 0;
    if (judgement->course->place != GM_NONE)
        return most_of(trail, trail->first, judgement->begin);
    for (size_t at = trail->first; at < judgement->begin; at++)
        held = larger(held, trail->buckets[at].least);
    return held;
}

/* Whether the course had risen by much before, and had been given back: what was seen bounds it. */
static bool was_seen(const struct judgement *judgement)
{
    const struct gm_trail *trail = &judgement->course->trail;
    uint64_t most = held_before(judgement);
    return judgement->begin > trail->first &&
           is_share(less_or_zero(most, judgement->floor),
                    less_or_zero(judgement->course->bytes, judgement->floor), SEEN);
}

/* Whether the stream as a whole holds more in the window's last part than in its first: else memory
 * only went from one place to another, as when objects are replaced by new ones. */
static bool is_more_in_all(const struct judgement *judgement)
{
    const struct gm_trail *trail = &judgement->stream->trail;
    const struct gm_round_growth *growth = judgement->growth;
    if (!trail->count)
        return true;
    size_t first = gm_trail_at(trail, growth->begin), end = gm_trail_at(trail, growth->end) + 1;
    if (end - first < GM_ROUND_PARTS)
        return true;
    uint64_t before = least_of_part(trail, first, end, 0, GM_ROUND_PARTS);
    uint64_t after = least_of_part(trail, first, end, GM_ROUND_PARTS - 1, GM_ROUND_PARTS);
    return after > before && after - before >= growth->rise / 2;
}

/* ---- what the stream did meanwhile ----------------------------------------------------------- */

/* What it had done when a tick ended, to the bucket. */
static struct gm_round_past past_at(const struct judgement *judgement, uint64_t tick)
{
    const struct gm_round_stream *stream = judgement->stream;
    struct gm_round_past now = {stream->time, stream->frees, judgement->rounds->copies,
                                judgement->rounds->graphs, stream->gradients};
    if (tick >= stream->clock || !stream->trail.count)
        return now;
    return stream->past[gm_trail_at(&stream->trail, tick)];
}

/* What it had done when a part of the window ended; part 0: when it began. */
static struct gm_round_past past_of_part(const struct judgement *judgement, unsigned part)
{
    const struct gm_round_growth *growth = judgement->growth;
    return past_at(judgement,
                   growth->begin + (growth->end - growth->begin) * part / GM_ROUND_PARTS);
}

static uint64_t fall_in_window(const struct judgement *judgement)
{
    const struct gm_trail *trail = &judgement->stream->trail;
    uint64_t most = 0, fall = 0, from = judgement->growth->begin >> trail->shift;
    for (size_t i = larger(from + 1, trail->first);
         i < trail->count && i <= judgement->growth->end >> trail->shift; i++) {
        fall = larger(fall, less_or_zero(most, trail->buckets[i].least));
        most = larger(most, trail->buckets[i].most);
    }
    return fall;
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

/* ---- evidence -------------------------------------------------------------------------------- */

static bool was_freed(const struct judgement *judgement)
{
    const struct gm_round_growth *growth = judgement->growth;
    return is_share(growth->frees, growth->end - growth->begin, ROUNDS);
}

static bool growth_fell(const struct judgement *judgement)
{
    return judgement->growth->fall >= judgement->growth->peak / FALL_SHARE;
}

static bool was_copied(const struct judgement *judgement)
{
    for (unsigned part = 1; part <= GM_ROUND_PARTS; part++)
        if (past_of_part(judgement, part).copies <
            past_of_part(judgement, part - 1).copies + REPEATED)
            return false;
    return true;
}

static bool had_backward(const struct judgement *judgement)
{
    for (unsigned part = 1; part <= GM_ROUND_PARTS; part++)
        if (past_of_part(judgement, part).gradients <
            past_of_part(judgement, part - 1).gradients + REPEATED)
            return false;
    return true;
}

/* Few of the blocks made are alive, ... Of a line that is reached on several ways, others may have made those that
 * were freed: there each way says it of itself. */
static bool few_are_alive(const struct judgement *judgement)
{
    uint32_t place = judgement->course->place;
    return judgement->growth->alive <= judgement->growth->blocks / 2 && place != GM_NONE &&
           !judgement->rounds->places[place]->is_split;
}

/* ... and these are no larger than the others: what was freed, was freed soon. */
static bool was_forgotten(const struct judgement *judgement)
{
    const struct gm_round_growth *growth = judgement->growth;
    return few_are_alive(judgement) && growth->alive >= FORGOTTEN &&
           growth->oldest <= (growth->end - growth->begin) / SOON;
}

/* ... and these are larger than any other, to the end: each replaced a shorter one. A pool may have given some more room
 * than was asked for; but so few, of which most is more than the shortest, were not collected. */
static bool was_replaced(const struct judgement *judgement)
{
    const struct gm_round_growth *growth = judgement->growth;
    bool are_longest =
        judgement->course->longer >= growth->end - (growth->end - growth->begin) / SOON;
    bool are_longer =
        growth->alive < FORGOTTEN && growth->alive * judgement->unit->least <= growth->bytes / 2;
    return few_are_alive(judgement) && (are_longest || are_longer);
}

static bool is_about(uint64_t a, uint64_t b)
{
    return is_share(a, b, LEVEL) && is_share(b, a, LEVEL);
}

/* A block as large as some of what was collected, and made when so much was there, or a little more: all of it
 * once, or samples again and again. */
static bool reads(const struct judgement *judgement, const struct gm_round_site *site)
{
    const struct gm_trail *trail = &judgement->course->trail;
    const struct gm_round_growth *growth = judgement->growth;
    uint64_t unit = judgement->unit->largest, window = growth->end - growth->begin;
    if (site->stream != judgement->stream || site->place == judgement->unit->place ||
        site->least < SAMPLE * unit || site->first <= growth->begin)
        return false;
    uint64_t held = trail->buckets[gm_trail_at(trail, site->first)].most;
    if (site->first >= growth->end - window / 2 &&
        (is_about(site->largest, held) || is_about(site->least, held)))
        return true;
    return site->least == site->largest && judgement->unit->least == unit &&
           site->births >= SAMPLES && site->least % unit == 0 && site->least <= held;
}

static bool was_read(const struct judgement *judgement)
{
    for (size_t i = 0; judgement->course->place != GM_NONE && i < judgement->rounds->site_count;
         i++)
        if (reads(judgement, &judgement->rounds->sites[i]))
            return true;
    return false;
}

/* Allocations until a bucket of the course ended that no backward pass made: those are more in each round where a graph
 * grows. */
static uint64_t forward_until(const struct judgement *judgement, size_t bucket)
{
    const struct gm_trail *trail = &judgement->course->trail;
    const struct gm_round_stream *stream = judgement->stream;
    uint64_t tick = ((bucket + 1) << trail->shift) - 1;
    tick = tick < stream->clock ? tick : stream->clock;
    return less_or_zero(tick, past_at(judgement, tick).gradients);
}

/* The bucket by which half of what is allocated from the window's begin to the end was allocated. */
static size_t middle_of(const struct judgement *judgement)
{
    size_t last = judgement->course->trail.count - 1, middle = judgement->begin;
    uint64_t begin = forward_until(judgement, judgement->begin),
             end = forward_until(judgement, last);
    while (middle < last && forward_until(judgement, middle) < begin + (end - begin) / 2)
        middle++;
    return middle;
}

/* Clearly less in the second half of the window than in the first. By chance the difference is seldom more than
 * one and a half times the root of all that came one by one: blocks, or what an epoch leaves at once. */
static bool slows(const struct judgement *judgement)
{
    const struct gm_trail *trail = &judgement->course->trail;
    const struct gm_round_growth *growth = judgement->growth;
    uint64_t half = less_or_zero(trail->buckets[middle_of(judgement)].least, judgement->floor);
    uint64_t all = less_or_zero(judgement->course->bytes, judgement->floor),
             rest = less_or_zero(all, half), more = less_or_zero(half, rest);
    bool by_bursts = growth->rose <= growth->parts / 2 && growth->rose < growth->alive;
    uint64_t count = larger(by_bursts ? growth->rose : growth->alive, 1);
    uint64_t ahead = (uint64_t)((unsigned __int128)more * count / larger(all, 1)); /* GNU */
    return judgement->course->place != GM_NONE && !is_share(rest, half, SLOWER) &&
           4 * ahead * ahead > 9 * count;
}

/* By how much it rose at most from one bucket in which it stayed the same to the next such one, or to the end. */
static uint64_t largest_rise(const struct gm_trail *trail, uint64_t end)
{
    uint64_t level = 0, most = 0;
    for (size_t at = trail->first; at < trail->count; at++) {
        const struct gm_trail_bucket *bucket = &trail->buckets[at];
        if (bucket->least != bucket->most)
            continue;
        most = larger(most, less_or_zero(bucket->least, level));
        level = bucket->least;
    }
    return larger(most, less_or_zero(end, level));
}

/* What is made at a time, and the weights elsewhere, which came at a time, are in it many times, and backward passes ended
 * in between: a copy is kept in each round, or the model of each run. Where memory ran out, fewer tell it. */
static bool are_copies(const struct judgement *judgement, uint64_t elsewhere)
{
    const struct gm_round_growth *growth = judgement->growth;
    uint64_t once = larger(largest_rise(&judgement->course->trail, growth->bytes), elsewhere);
    return growth->bytes / larger(once, 1) >= (growth->at_refusal ? GM_ROUND_PARTS : MODELS) &&
           had_backward(judgement);
}

static bool is_of_training(enum gm_category category)
{
    return category == GM_CATEGORY_PARAMETER || category == GM_CATEGORY_GRADIENT ||
           category == GM_CATEGORY_OPTIMIZER;
}

/* What a model needs grows while the model is loaded and in its first step. */
static bool is_of_model(const struct judgement *judgement)
{
    const struct gm_round_growth *growth = judgement->growth;
    uint64_t weights = 0, elsewhere = 0;
    if (!is_of_training(growth->category))
        return false;
    for (size_t i = 0; i < judgement->rounds->place_count; i++) {
        const struct gm_round_place *place = judgement->rounds->places[i];
        if (place->category != GM_CATEGORY_PARAMETER || place->line != GM_NONE ||
            judgement->rounds->streams[place->stream - 1] != judgement->stream)
            continue;
        weights += most_of(&place->trail, place->trail.first, place->trail.count);
        if (i != judgement->course->place && place->trail.count)
            elsewhere +=
                largest_rise(&place->trail, place->trail.buckets[place->trail.count - 1].most);
    }
    return !are_copies(judgement, elsewhere) && (growth->category == GM_CATEGORY_PARAMETER ||
                                                 !weights || growth->bytes / MODELS <= weights);
}

/* Programs that launch graphs make them one after the other, each with what it reads and writes. */
static bool had_graphs(const struct judgement *judgement)
{
    for (unsigned part = 1; part <= GM_ROUND_PARTS; part++)
        if (past_of_part(judgement, part).graphs == past_of_part(judgement, part - 1).graphs)
            return false;
    return true;
}

/* A module's call makes something of one size once for each block of the course. */
static bool is_made_alike(const struct judgement *judgement, const struct gm_round_site *site)
{
    return site->stream == judgement->stream && site->place != judgement->unit->place &&
           site->category == GM_CATEGORY_ACTIVATION && site->least == site->largest &&
           is_share(site->births, judgement->course->births, EACH) &&
           is_share(judgement->course->births, site->births, EACH);
}

/* Rounds are alike: a module's result keeps its size, which the first block was not much larger than. So it is no input
 * that gets longer, but what each round is added to. */
static bool is_appended(const struct judgement *judgement)
{
    for (size_t i = 0; i < judgement->rounds->site_count; i++)
        if (is_made_alike(judgement, &judgement->rounds->sites[i]) &&
            judgement->rounds->sites[i].least >= judgement->unit->least / BESIDE)
            return true;
    return false;
}

/* Inputs get longer, by stages, or with what is made of them. */
static bool varies(const struct judgement *judgement)
{
    if (!is_share(judgement->course->records, judgement->course->births, LONGER))
        return true;
    for (size_t i = 0; i < judgement->rounds->site_count; i++) {
        const struct gm_round_site *site = &judgement->rounds->sites[i];
        if (site->stream == judgement->stream && site->place != judgement->unit->place &&
            site->births >= ANCHORS && site->least < site->largest &&
            site->largest >= judgement->unit->largest / FALL_SHARE)
            return !is_appended(judgement);
    }
    return false;
}

/* Of memory that the program takes itself: frameworks give theirs back as Python's scopes end. */
static bool was_returned(const struct judgement *judgement)
{
    const struct course *course = judgement->course;
    uint64_t live = course->place == GM_NONE ? judgement->stream->live
                                             : judgement->rounds->places[course->place]->live;
    return judgement->stream->sort == GM_ROUND_OWN && !judgement->growth->at_refusal &&
           live <= course->bytes / RETURNED;
}

static bool has_stopped(const struct judgement *judgement)
{
    return !judgement->growth->goes_on;
}

/* A line that makes much in each of a few rounds. */
static bool was_seldom_made(const struct judgement *judgement)
{
    if (judgement->course->place == GM_NONE)
        return false;
    for (size_t i = 0; i < judgement->rounds->site_count; i++)
        if (judgement->rounds->sites[i].place == judgement->unit->place &&
            judgement->rounds->sites[i].large >= BIRTHS)
            return false;
    return true;
}

static const struct {
    enum gm_round_evidence evidence;
    bool (*holds)(const struct judgement *judgement);
} table[] = {
    {GM_ROUND_FREED, was_freed},         {GM_ROUND_FELL, growth_fell},
    {GM_ROUND_COPIED, was_copied},       {GM_ROUND_BACKWARD, had_backward},
    {GM_ROUND_FORGOTTEN, was_forgotten}, {GM_ROUND_REPLACED, was_replaced},
    {GM_ROUND_READ, was_read},           {GM_ROUND_SLOWS, slows},
    {GM_ROUND_OF_MODEL, is_of_model},    {GM_ROUND_STOPPED, has_stopped},
    {GM_ROUND_VARIES, varies},           {GM_ROUND_RETURNED, was_returned},
    {GM_ROUND_GRAPHS, had_graphs},       {GM_ROUND_FEW, was_seldom_made},
};

static enum gm_round_weight weight_of(const struct gm_round_growth *growth)
{
    unsigned evidence = growth->evidence;
    if (!(evidence & GM_ROUND_ROUNDS) || evidence & GM_ROUND_MEANT)
        return GM_ROUND_NOTE;
    if (evidence & GM_ROUND_REFUSED)
        return GM_ROUND_CERTAIN;
    if (evidence & (GM_ROUND_READ | GM_ROUND_SLOWS | GM_ROUND_FEW) ||
        (evidence & GM_ROUND_REPLACED &&
         (evidence & GM_ROUND_VARIES || !(evidence & GM_ROUND_BACKWARD))) ||
        (evidence & GM_ROUND_RETURNED && !(evidence & GM_ROUND_FORGOTTEN)))
        return GM_ROUND_NOTE;
    return evidence & GM_ROUND_BACKWARD && growth->category == GM_CATEGORY_ACTIVATION &&
                   growth->alive >= PASSES
               ? GM_ROUND_CERTAIN
               : GM_ROUND_WARNING;
}

/* Whether growth that nothing proves to be more than a load is worth a note: not where rounds before the window
 * gave back what they took. */
static bool is_told_growth(const struct judgement *judgement)
{
    const struct gm_round_growth *growth = judgement->growth;
    const struct gm_trail *trail = &judgement->course->trail;
    uint64_t window = growth->end - growth->begin;
    if (window < growth->ticks / SHORT && growth->alive < UNPROVEN)
        return false;
    if (growth->evidence & GM_ROUND_STOPPED)
        return window >= growth->ticks / STOPPED_SHARE && is_share(growth->frees, window, LOADS);
    if (growth->evidence & GM_ROUND_OF_MODEL)
        return (growth->evidence & GM_ROUND_ROUNDS) != 0;
    return growth->evidence & GM_ROUND_ROUNDS ||
           (most_of(trail, trail->first, judgement->begin) <= judgement->floor &&
            growth->blocks >= (growth->at_refusal ? BIRTHS : UNPROVEN));
}

/* ---- what grows ------------------------------------------------------------------------------ */

/* The stack that holds most of a place, or of what the stream made again and again until the end. */
static uint32_t largest_site(const struct judgement *judgement)
{
    const struct gm_rounds *rounds = judgement->rounds;
    const struct gm_round_place *place =
        judgement->course->place == GM_NONE ? NULL : rounds->places[judgement->course->place];
    uint64_t clock = judgement->stream->clock, most = 0;
    uint32_t largest = GM_NONE;
    for (size_t i = 0; i < rounds->site_count; i++) {
        const struct gm_round_site *site = &rounds->sites[i];
        uint64_t bytes =
            !judgement->growth->at_refusal && site->tick == clock ? site->before : site->live;
        bool is_meant = place ? site->place == place || site->way == place
                              : site->stream == judgement->stream && site->births >= BIRTHS &&
                                    site->last >= judgement->growth->end / 2;
        if (is_meant && bytes >= most) {
            most = bytes;
            largest = (uint32_t)i;
        }
    }
    return largest;
}

static void keep_heaviest(struct gm_rounds *rounds, const struct gm_round_growth *growth)
{
    for (size_t i = 0; i < rounds->found_count; i++) {
        if (rounds->found[i].place != growth->place || rounds->found[i].device != growth->device ||
            rounds->found[i].sort != growth->sort)
            continue;
        if (growth->weight > rounds->found[i].weight)
            rounds->found[i] = *growth;
        return;
    }
    GM_APPEND(rounds->found, rounds->found_capacity, rounds->found_count, *growth);
}

/* What is known of the growth in the window. */
static struct gm_round_growth describe_growth(const struct judgement *judgement, bool at_refusal)
{
    const struct gm_round_stream *stream = judgement->stream;
    const struct course *course = judgement->course;
    const struct gm_trail *trail = &course->trail;
    uint64_t first = (uint64_t)judgement->begin << trail->shift;
    uint64_t end = ((uint64_t)judgement->end << trail->shift) - 1;
    struct gm_round_growth growth = {
        .place = course->place,
        .line = course->place,
        .category = course->category,
        .device = stream->device,
        .sort = stream->sort,
        .at_refusal = at_refusal,
        .bytes = course->bytes,
        .gain = course->bytes - judgement->floor,
        .blocks = course->births,
        .alive = less_or_zero(course->births, course->deaths),
        .oldest = course->oldest,
        .begin = larger(first, course->first),
        .end = end < stream->clock ? end : stream->clock,
        .ticks = stream->clock,
        .total = at_refusal ? stream->live : stream->before,
        .peak = stream->peak,
        .rise =
            less_or_zero(least_of_part(trail, judgement->begin, judgement->end, GM_ROUND_PARTS - 1,
                                       GM_ROUND_PARTS),
                         least_of_part(trail, judgement->begin, judgement->end, 0, GM_ROUND_PARTS)),
    };
    if (stream->trail.count)
        growth.before = stream->trail.buckets[gm_trail_at(&stream->trail, growth.begin)].least;
    growth.goes_on = is_share(growth.end, growth.ticks, GOING_UNTIL);
    return growth;
}

static void measure_growth(struct judgement *judgement, uint64_t rounds_of_run)
{
    struct gm_round_growth *growth = judgement->growth;
    struct gm_round_past begin = past_at(judgement, growth->begin),
                         end = past_at(judgement, growth->end);
    growth->since = begin.time;
    growth->until = end.time;
    growth->last = judgement->stream->time;
    growth->frees = end.frees - begin.frees;
    growth->copies = end.copies - begin.copies;
    growth->fall = fall_in_window(judgement);
    growth->rounds = (uint64_t)((unsigned __int128)rounds_of_run * (growth->end - growth->begin) /
                                larger(growth->ticks, 1));
    if (growth->rounds < GM_ROUND_PARTS)
        growth->rounds = 0;
    uint64_t parts = judgement->end - judgement->begin;
    parts = growth->rounds && growth->rounds < parts ? growth->rounds : parts;
    growth->parts = (unsigned)(growth->blocks < parts ? growth->blocks : parts);
    growth->rose = count_rises(judgement, growth->parts);
}

/* Whether the course grows in the window that begins in this quarter of it, or later. */
static bool grows(struct judgement *judgement, unsigned quarter, bool at_refusal)
{
    const struct gm_trail *trail = &judgement->course->trail;
    size_t start = trail->first + (trail->count - trail->first) * quarter / STARTS;
    if (start >= trail->count || !find_window(judgement, start) || was_seen(judgement) ||
        count_rises(judgement, GM_ROUND_PARTS) < GM_ROUND_PARTS)
        return false;
    *judgement->growth = describe_growth(judgement, at_refusal);
    return judgement->growth->rise >= larger(GM_MIB, judgement->stream->peak / PEAK_SHARE) &&
           is_more_in_all(judgement);
}

static bool judge_course(struct gm_rounds *rounds, const struct gm_round_stream *stream,
                         const struct course *course, bool at_refusal)
{
    struct gm_round_growth growth = {0};
    struct judgement judgement = {
        .rounds = rounds, .stream = stream, .course = course, .growth = &growth};
    unsigned quarter = course->place == GM_NONE; /* of all memory, the first quarter is the load */
    while (quarter < STARTS - 1 && !grows(&judgement, quarter, at_refusal))
        quarter++;
    if (quarter == STARTS - 1 || !gm_limits_spend(4 * rounds->site_count))
        return false;
    growth.site = largest_site(&judgement);
    if (growth.site == GM_NONE)
        return false;
    judgement.unit = &rounds->sites[growth.site];
    if (growth.category == GM_CATEGORY_OTHER)
        growth.category = judgement.unit->category;
    measure_growth(&judgement, find_rounds(rounds, stream, stream->clock));
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].holds(&judgement))
            growth.evidence |= table[i].evidence;
    growth.weight = weight_of(&growth);
    if (!is_told_growth(&judgement))
        return false;
    if (course->place != GM_NONE) {
        const struct gm_round_place *place = rounds->places[course->place];
        growth.line = place->line == GM_NONE ? course->place : place->line;
        rounds->places[course->place]->grows = true;
    }
    keep_heaviest(rounds, &growth);
    return true;
}

bool gm_rounds_is_of_refusal(const struct gm_round_growth *growth)
{
    return growth->at_refusal && growth->gain >= growth->total / REFUSED_SHARE;
}

bool gm_rounds_is_steady(const struct gm_round_place *place)
{
    return !place->grows && place->births >= BIRTHS;
}

static bool is_of_stream(const struct gm_round_growth *growth, const struct gm_round_stream *stream)
{
    return growth->device == stream->device && growth->sort == stream->sort;
}

/* Many lines can keep a little each, which makes much in all. */
static void judge_stream(struct gm_rounds *rounds, const struct gm_round_stream *stream,
                         bool at_refusal)
{
    for (size_t i = 0; i < rounds->found_count; i++)
        if (is_of_stream(&rounds->found[i], stream))
            return;
    struct course course = course_of_stream(stream, at_refusal);
    if (stream->clock >= BIRTHS)
        judge_course(rounds, stream, &course, at_refusal);
}

/* Whether growth took half of what had come since it began, beside what was there before, as a model is; and enough of
 * all that was held that without it there would have been room. */
static bool made_run_out(const struct gm_round_stream *stream, uint64_t gain, uint64_t before)
{
    return gain >= less_or_zero(stream->live, before) / 2 && gain >= stream->live / REFUSED_SHARE;
}

/* Where a request was refused: whether what grew from round to round made memory run out, by lines, or ways to them. */
static void weigh_refusal(struct gm_rounds *rounds, const struct gm_round_stream *stream)
{
    uint64_t gain = 0, before = UINT64_MAX;
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        if (is_of_stream(growth, stream) && (growth->evidence & GM_ROUND_ROUNDS) &&
            !(growth->evidence & GM_ROUND_MEANT) &&
            (growth->place == growth->line || !rounds->places[growth->line]->grows)) {
            gain += growth->gain;
            before = growth->before < before ? growth->before : before;
        }
    }
    if (!made_run_out(stream, gain, before))
        return;
    for (size_t i = 0; i < rounds->found_count; i++) {
        struct gm_round_growth *growth = &rounds->found[i];
        if (is_of_stream(growth, stream))
            growth->evidence |= GM_ROUND_REFUSED;
        growth->weight = weight_of(growth);
    }
}

void gm_rounds_judge(struct gm_rounds *rounds, uint16_t number, bool at_refusal)
{
    const struct gm_round_stream *stream = rounds->streams[number - 1];
    for (uint32_t i = 0; i < rounds->place_count; i++) {
        if (rounds->places[i]->stream != number || rounds->places[i]->births < BIRTHS)
            continue;
        struct course course = course_of_place(rounds, i, at_refusal);
        if (course.bytes >= GM_MIB)
            judge_course(rounds, stream, &course, at_refusal);
    }
    judge_stream(rounds, stream, at_refusal);
    if (at_refusal)
        weigh_refusal(rounds, stream);
}
