/* See holes.h. */
#include "judge/pool/holes.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/ranges.h"
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11u
#define DIGITS (1u << DIGIT_BITS)

/* One pass of a radix sort: by one digit, in the order in which they stand. */
static void sort_by_digit(const struct gm_range *from, struct gm_range *to, size_t count,
                          unsigned shift)
{
    size_t next[DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++)
        next[(from[i].start >> shift) % DIGITS + 1]++;
    for (size_t digit = 1; digit < DIGITS; digit++)
        next[digit] += next[digit - 1];
    for (size_t i = 0; i < count; i++)
        to[next[(from[i].start >> shift) % DIGITS]++] = from[i];
}

/* By their digits, as there can be a million: addresses differ in few of them, and comparing takes twice
 * the time. */
static void sort_by_start(struct gm_range *places, size_t count)
{
    uint64_t differing = 0;
    for (size_t i = 1; i < count; i++)
        differing |= places[i].start ^ places[0].start;
    struct gm_range *from = places, *to = gm_resize(NULL, count, sizeof(*to)), *spare = to;
    for (unsigned shift = 0; shift < 64 && differing >> shift; shift += DIGIT_BITS) {
        if (!(differing >> shift & (DIGITS - 1)))
            continue;
        sort_by_digit(from, to, count, shift);
        struct gm_range *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != places)
        memcpy(places, from, count * sizeof(*places));
    free(spare);
}

static struct gm_holes measure_holes(const struct gm_range *ranges, size_t count)
{
    struct gm_holes holes = {.allocations = count};
    uint64_t end = ranges[0].start;
    for (size_t i = 0; i < count; i++) {
        holes.live += ranges[i].end - ranges[i].start;
        if (ranges[i].start > end) {
            uint64_t hole = ranges[i].start - end;
            holes.count++;
            holes.free += hole;
            holes.largest = hole > holes.largest ? hole : holes.largest;
        }
        end = ranges[i].end > end ? ranges[i].end : end;
    }
    holes.span = end - ranges[0].start;
    return holes;
}

struct gm_holes gm_holes_between(struct gm_range *places, size_t count)
{
    if (!count)
        return (struct gm_holes){0};
    sort_by_start(places, count);
    return measure_holes(places, count);
}

struct gm_holes gm_holes_find(const struct gm_lives *lives, int device)
{
    gm_limits_spend(GM_STEPS_SORTED * lives->count);
    struct gm_range *ranges = gm_allocate(lives->count, sizeof(*ranges));
    size_t count = 0;
    for (uint32_t i = 0; i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        if (life->kind == GM_KIND_DEVICE && life->device == device && life->size)
            ranges[count++] =
                (struct gm_range){life->address, gm_range_end(life->address, life->size), i};
    }
    struct gm_holes holes = gm_holes_between(ranges, count);
    free(ranges);
    return holes;
}
