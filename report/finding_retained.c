/* Blocks that a place allocates again and again, and that all live on: a list of losses that keeps
 * the graphs of all steps, outputs collected on the device.
 *
 * Needs no marks. Looked at is the moment just after the last use of a pool, before an interpreter
 * that ends forgets everything. The second half of all allocations until then is cut into QUARTERS
 * parts; a stack retains if blocks of it from each part are still alive, and most of all it ever
 * allocated. What a sound loop holds at that moment is from its beginning (weights) or from its
 * last round (activations). A run that frees hardly anything is no loop: it loads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "findings.h"
#include "memory.h"
#include "size.h"

#define QUARTERS 4u
#define ALIVE_AT_LEAST 8u      /* blocks of one stack, */
#define ALIVE_SHARE 75u        /* and so many of a hundred that it ever allocated */
#define ENDED_SHARE 8u         /* of all blocks of the run one eighth has ended: it has steps */
#define BYTES_AT_LEAST 1048576 /* of one place, all its stacks together */
#define WARNING_SHARE 100u     /* a warning from one hundredth of the pool's peak on */

/* Sums over the retaining stacks of one caller. */
struct place {
    uint32_t stack; /* the one with most bytes */
    uint16_t api;
    int8_t device;
    uint64_t stack_bytes;
    uint64_t bytes;
    uint64_t count;
};

struct places {
    struct place *entries;
    size_t count;
    size_t capacity;
    struct gm_map by_caller; /* caller and device -> place */
};

static int by_stack(const void *left, const void *right)
{
    const struct gm_pool_block *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    return a->birth < b->birth ? -1 : a->birth > b->birth;
}

/* How many blocks each stack ever allocated: stack and device -> number of the site. */
static struct gm_map map_activity(const struct gm_activity *activity)
{
    struct gm_map map = {0};
    for (size_t i = 0; i < activity->count; i++) {
        const struct gm_active_site *site = &activity->sites[i];
        if (site->is_block)
            gm_map_set(&map, site->stack | (uint64_t)(uint8_t)site->device << 32, (uint32_t)i);
    }
    return map;
}

/* `blocks` are of one stack and device, oldest first. */
static bool retains(const struct gm_analysis *analysis, const struct gm_map *sites,
                    const struct gm_pool_block *blocks, size_t count)
{
    uint64_t births = analysis->blocks.allocs, half = births / 2;
    unsigned seen = 0;
    uint32_t site = gm_map_get(sites, blocks->stack | (uint64_t)(uint8_t)blocks->device << 32);
    if (count < ALIVE_AT_LEAST || site == GM_NONE ||
        count * 100 < analysis->activity.sites[site].allocs * ALIVE_SHARE)
        return false;
    for (size_t i = 0; i < count; i++)
        if (blocks[i].birth >= half)
            seen |= 1u << (blocks[i].birth - half) * QUARTERS / (births - half);
    return seen == (1u << QUARTERS) - 1;
}

static void add_stack(struct places *places, const struct gm_analysis *analysis,
                      const struct gm_pool_block *blocks, size_t count)
{
    uint32_t caller = gm_callers_get(analysis->callers, blocks->stack);
    uint64_t key = caller | (uint64_t)(uint8_t)blocks->device << 32, bytes = 0;
    uint32_t at = gm_map_get(&places->by_caller, key);
    for (size_t i = 0; i < count; i++)
        bytes += blocks[i].size;
    if (at == GM_NONE) {
        at = (uint32_t)places->count++;
        GM_RESERVE(places->entries, places->capacity, places->count);
        places->entries[at] = (struct place){.device = blocks->device};
        gm_map_set(&places->by_caller, key, at);
    }
    struct place *place = &places->entries[at];
    place->bytes += bytes;
    place->count += count;
    if (bytes >= place->stack_bytes) {
        place->stack_bytes = bytes;
        place->stack = blocks->stack;
        place->api = blocks->api;
    }
}

static struct places find_places(const struct gm_analysis *analysis)
{
    const struct gm_block_order *last = &analysis->last_blocks;
    struct places places = {0};
    if (!last->count || analysis->blocks.allocs - last->count < last->count / (ENDED_SHARE - 1))
        return places;
    struct gm_map sites = map_activity(&analysis->activity);
    struct gm_pool_block *blocks = gm_allocate(last->count, sizeof(*blocks));
    memcpy(blocks, last->blocks, last->count * sizeof(*blocks));
    qsort(blocks, last->count, sizeof(*blocks), by_stack);
    for (size_t start = 0, end; start < last->count; start = end) {
        for (end = start + 1; end < last->count && blocks[end].stack == blocks[start].stack &&
                              blocks[end].device == blocks[start].device;)
            end++;
        if (retains(analysis, &sites, blocks + start, end - start))
            add_stack(&places, analysis, blocks + start, end - start);
    }
    free(blocks);
    gm_map_free(&sites);
    gm_map_free(&places.by_caller);
    return places;
}

/* One finding for a device: a graph that is kept holds what many lines allocated. */
static void add_finding(const struct gm_analysis *analysis, struct gm_findings *findings,
                        const struct places *places, int device)
{
    const struct place *most = NULL;
    uint64_t bytes = 0, lines = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct place *place = &places->entries[i];
        if (place->device != device)
            continue;
        bytes += place->bytes;
        lines++;
        if (!most || place->bytes > most->bytes)
            most = place;
    }
    if (!most || bytes < BYTES_AT_LEAST)
        return;
    uint64_t peak = analysis->blocks.device[device + 1].peak.bytes;
    char others[64] = "";
    if (lines > 1)
        snprintf(others, sizeof(others), " (and blocks of %s more place%s)", COUNT(lines - 1),
                 lines > 2 ? "s" : "");
    gm_findings_add(findings,
                    &(struct gm_finding){.code = GM_FINDING_RETAINED,
                                         .severity = bytes >= peak / WARNING_SHARE
                                                         ? GM_SEVERITY_WARNING
                                                         : GM_SEVERITY_NOTE,
                                         .device = device,
                                         .bytes = bytes,
                                         .stack = most->stack,
                                         .api = most->api},
                    "%s blocks of %s that were allocated here%s all through the run are still "
                    "alive at its end.",
                    COUNT(most->count), SIZE(most->bytes), others);
    gm_findings_remedy(findings, "If they are results kept from step to step, keep numbers "
                                 "(loss.item()) or copies without their graph (.detach().cpu()).");
}

void gm_find_retained(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    struct places places = find_places(analysis);
    for (size_t i = 0; i < analysis->pool_count; i++)
        add_finding(analysis, findings, &places, analysis->pool_peaks[i].device);
    free(places.entries);
}
