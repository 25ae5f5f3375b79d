/* Memory that a place takes again and again, and that all lives on: a list of losses that keeps the
 * graphs of all steps, outputs collected on the device, a cache without a bound.
 *
 * Needs no marks. Looked at is the moment just after the last use of a pool, or after the last
 * allocation, before a program that ends gives everything back. The second half of the run until
 * then is cut into QUARTERS parts; a stack retains if what it took in each part is still alive,
 * and most of all it ever took. What a sound loop holds at that moment is from its beginning
 * (weights) or from its last round (activations). A run that frees hardly anything is no loop: it
 * loads.
 *
 * A pool's run is counted in its allocations, any other in its records: programs that take all
 * their memory first, and work with it then, do copies later on. Allocations that end as leaks are
 * told as such, and not here.
 */
#include "analysis/growing.h"
#include "base/memory.h"
#include "base/size.h"
#include "findings/rules.h"
#include "stacks/owner.h"
#include <stdio.h>
#include <stdlib.h>

#define QUARTERS 4u
#define ALIVE_AT_LEAST 8u      /* of one stack, */
#define ALIVE_SHARE 75u        /* and so many of a hundred that it ever allocated */
#define ENDED_SHARE 8u         /* of all of the run one eighth has ended: it has steps */
#define BYTES_AT_LEAST 1048576 /* of one place, all its stacks together */
#define WARNING_SHARE 100u     /* a warning from one hundredth of the device's peak on */
#define FALL_SHARE 16u         /* of the peak: a step gives back that much; a layer, less */
#define SETUP_NS                                                                                   \
    1000000000u /* work goes on for so long, and for longer than before: it was setup */

/* Something that lived at that moment. */
struct kept {
    uint64_t size;
    uint64_t birth; /* in the unit of run.length */
    uint32_t stack;
    uint16_t api;
    uint8_t kind;
    int8_t device;
};

/* What lived at that moment, by stack; of a pool, or of CUDA's own. */
struct run {
    struct kept *kept;
    size_t count;
    uint64_t length;
    uint64_t allocs, alive; /* of all that is of that sort */
    bool is_pool;
};

/* Sums over the retaining stacks of one caller. */
struct place {
    struct kept most; /* of the stack with most bytes */
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

/* ---- what lived ------------------------------------------------------------------------------ */

static int by_stack(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    return a->birth < b->birth ? -1 : a->birth > b->birth;
}

static struct run run_of_pools(const struct gm_analysis *analysis)
{
    const struct gm_block_order *last = &analysis->last_blocks;
    struct run run = {.kept = gm_allocate(last->count + 1, sizeof(*run.kept)),
                      .count = last->count,
                      .length = analysis->blocks.allocs,
                      .allocs = analysis->blocks.allocs,
                      .alive = last->count,
                      .is_pool = true};
    for (size_t i = 0; i < last->count; i++)
        run.kept[i] = (struct kept){.size = last->blocks[i].size,
                                    .birth = last->blocks[i].birth,
                                    .stack = last->blocks[i].stack,
                                    .api = last->blocks[i].api,
                                    .kind = GM_KIND_DEVICE,
                                    .device = last->blocks[i].device};
    qsort(run.kept, run.count, sizeof(*run.kept), by_stack);
    return run;
}

/* Memory on a device that the program itself took. */
static bool is_looked_at(struct gm_owners *owners, const struct gm_life *life)
{
    static const uint32_t kinds =
        1u << GM_KIND_DEVICE | 1u << GM_KIND_MANAGED | 1u << GM_KIND_ARRAY | 1u << GM_KIND_VMM;
    return kinds >> life->kind & 1 && !gm_kind_is_host(life->kind) && life->device >= 0 &&
           gm_owners_get(owners, life->stack) == 0;
}

static void add_life(struct run *run, const struct gm_life *life)
{
    run->kept[run->count++] = (struct kept){.size = life->size,
                                            .birth = life->birth,
                                            .stack = life->stack,
                                            .api = life->api,
                                            .kind = life->kind,
                                            .device = life->device};
}

static struct run run_of_allocations(const struct gm_analysis *analysis)
{
    const struct gm_lives *lives = &analysis->replay.ledger.lives;
    const struct gm_late_lives *late = &analysis->late;
    bool ended = analysis->trace->ending == GM_ENDING_NORMAL;
    struct run run = {.kept = gm_allocate(late->count + lives->count + 1, sizeof(*run.kept)),
                      .length = analysis->active_until,
                      .alive = late->count + late->turned + lives->count};
    for (size_t i = 0; i < analysis->activity.count; i++)
        if (!analysis->activity.sites[i].is_block)
            run.allocs += analysis->activity.sites[i].allocs;
    for (size_t i = 0; i < late->count; i++)
        if (is_looked_at(analysis->owners, &late->entries[i]))
            add_life(&run, &late->entries[i]);
    for (uint32_t i = 0; i < lives->used && !ended; i++)
        if (lives->slots[i].kind != GM_KIND_NONE &&
            is_looked_at(analysis->owners, &lives->slots[i]))
            add_life(&run, &lives->slots[i]);
    qsort(run.kept, run.count, sizeof(*run.kept), by_stack);
    return run;
}

/* ---- what retains ---------------------------------------------------------------------------- */

static uint64_t site_key(uint32_t stack, unsigned kind, int device)
{
    return stack | (uint64_t)(uint8_t)device << 32 | (uint64_t)kind << 40;
}

/* How much each stack ever allocated: stack, kind and device -> number of the site. */
static struct gm_map map_activity(const struct gm_activity *activity, bool is_pool)
{
    struct gm_map map = {0};
    for (size_t i = 0; i < activity->count; i++) {
        const struct gm_active_site *site = &activity->sites[i];
        if (site->is_block == is_pool)
            gm_map_set(&map, site_key(site->stack, site->kind, site->device), (uint32_t)i);
    }
    return map;
}

/* `kept` are of one stack, kind and device, oldest first. */
static bool retains(const struct gm_analysis *analysis, const struct run *run,
                    const struct gm_map *sites, const struct kept *kept, size_t count)
{
    uint64_t half = run->length / 2;
    unsigned seen = 0;
    uint32_t site = gm_map_get(sites, site_key(kept->stack, kept->kind, kept->device));
    if (count < ALIVE_AT_LEAST || site == GM_NONE ||
        count * 100 < analysis->activity.sites[site].allocs * ALIVE_SHARE)
        return false;
    for (size_t i = 0; i < count; i++)
        if (kept[i].birth >= half && kept[i].birth < run->length)
            seen |= 1u << (kept[i].birth - half) * QUARTERS / (run->length - half);
    return seen == (1u << QUARTERS) - 1;
}

static void add_stack(struct places *places, const struct gm_analysis *analysis,
                      const struct kept *kept, size_t count)
{
    uint32_t caller = gm_callers_get(analysis->callers, kept->stack);
    uint64_t key = site_key(caller, kept->kind, kept->device), bytes = 0;
    uint32_t at = gm_map_get(&places->by_caller, key);
    for (size_t i = 0; i < count; i++)
        bytes += kept[i].size;
    if (at == GM_NONE) {
        at = (uint32_t)places->count++;
        GM_RESERVE(places->entries, places->capacity, places->count);
        places->entries[at] = (struct place){.most = *kept};
        gm_map_set(&places->by_caller, key, at);
    }
    struct place *place = &places->entries[at];
    place->bytes += bytes;
    place->count += count;
    if (bytes >= place->stack_bytes) {
        place->stack_bytes = bytes;
        place->most = *kept;
    }
}

static struct places find_places(const struct gm_analysis *analysis, const struct run *run)
{
    struct places places = {0};
    if (!run->count || run->allocs < run->alive + run->alive / (ENDED_SHARE - 1))
        return places;
    struct gm_map sites = map_activity(&analysis->activity, run->is_pool);
    for (size_t start = 0, end; start < run->count; start = end) {
        const struct kept *first = &run->kept[start];
        for (end = start + 1; end < run->count && run->kept[end].stack == first->stack &&
                              run->kept[end].kind == first->kind &&
                              run->kept[end].device == first->device;)
            end++;
        if (retains(analysis, run, &sites, first, end - start))
            add_stack(&places, analysis, first, end - start);
    }
    gm_map_free(&sites);
    gm_map_free(&places.by_caller);
    return places;
}

/* The run ended in the middle of its first pass: a device was full before memory ever fell. */
static bool is_one_pass(const struct gm_analysis *analysis, const struct run *run, int device)
{
    const struct gm_block_totals *totals = &analysis->blocks.device[device + 1];
    if (!run->is_pool || totals->fall >= totals->peak.bytes / FALL_SHARE)
        return false;
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        if (analysis->pool_failures.entries[i].device == device &&
            !gm_pool_failure_survived(&analysis->pool_failures.entries[i], &analysis->blocks))
            return true;
    return false;
}

/* ---- findings -------------------------------------------------------------------------------- */

static uint64_t peak_of(const struct gm_analysis *analysis, const struct run *run, int device)
{
    return run->is_pool ? analysis->blocks.device[device + 1].peak.bytes
                        : analysis->replay.ledger.counters.device[device + 1].peak.bytes;
}

/* One finding for a device: a graph that is kept holds what many lines allocated. */
static void add_finding(const struct gm_analysis *analysis, struct gm_findings *findings,
                        const struct run *run, const struct places *places, int device)
{
    const struct place *most = NULL;
    uint64_t bytes = 0, lines = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct place *place = &places->entries[i];
        if (place->most.device != device)
            continue;
        bytes += place->bytes;
        lines++;
        if (!most || place->bytes > most->bytes)
            most = place;
    }
    if (!most || bytes < BYTES_AT_LEAST || is_one_pass(analysis, run, device) ||
        gm_growing_tells(analysis, most->most.stack, most->most.kind, device, run->is_pool))
        return;
    char others[64] = "";
    if (lines > 1)
        snprintf(others, sizeof(others), " (and %s of %s more place%s)",
                 run->is_pool ? "blocks" : "those", COUNT(lines - 1), lines > 2 ? "s" : "");
    gm_findings_add(
        findings,
        &(struct gm_finding){.code = GM_FINDING_RETAINED,
                             .severity = bytes >= peak_of(analysis, run, device) / WARNING_SHARE
                                             ? GM_SEVERITY_WARNING
                                             : GM_SEVERITY_NOTE,
                             .device = device,
                             .bytes = bytes,
                             .stack = most->most.stack,
                             .api = most->most.api},
        run->is_pool ? "%s blocks of %s that were allocated here%s all through the run are "
                       "still alive at its end."
                     : "%s allocations of %s made here%s all through the run were still alive "
                       "after its last one.",
        COUNT(most->count), SIZE(most->bytes), others);
    if (run->is_pool)
        gm_findings_remedy(findings, GM_REMEDY_KEPT);
}

/* All memory was taken at once, and then the work began. */
static bool was_setup(const struct gm_analysis *analysis)
{
    uint64_t until = gm_clock_elapsed(&analysis->trace->clock, analysis->last_alloc);
    uint64_t rest = analysis->duration > until ? analysis->duration - until : 0;
    return rest > SETUP_NS && rest > until;
}

void gm_find_retained(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    struct run runs[2] = {run_of_pools(analysis), run_of_allocations(analysis)};
    for (size_t i = 0; i < 2; i++) {
        struct places places = {0};
        if (runs[i].is_pool || !was_setup(analysis))
            places = find_places(analysis, &runs[i]);
        for (int device = -1; device < GM_DEVICES - 1; device++)
            add_finding(analysis, findings, &runs[i], &places, device);
        free(places.entries);
        free(runs[i].kept);
    }
}
