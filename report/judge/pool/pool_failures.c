/* See pool_failures.h. */
#include "judge/pool/pool_failures.h"
#include "base/limit.h"
#include <string.h>

static const struct gm_block_totals *totals_of(const struct gm_blocks *blocks, int device)
{
    return &blocks->device[gm_device_slot(device)];
}

static void remove_at(struct gm_pool_failures *failures, size_t at)
{
    failures->open -= !failures->entries[at].succeeded;
    failures->count--;
    memmove(failures->entries + at, failures->entries + at + 1,
            (failures->count - at) * sizeof(failures->entries[0]));
}

static void failed(struct gm_pool_failures *failures, uint64_t line, const struct gm_blocks *blocks,
                   const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    int8_t device = record->device < 0 ? -1 : record->device;
    const struct gm_block_totals *totals = totals_of(blocks, record->device);
    struct gm_pool_failure failure = {
        .first = record->size, .never_more = true, .never_same = true, .starts_over = true};
    size_t at = 0;
    gm_limits_spend(GM_STEPS_FAILURE);
    while (at < failures->count &&
           !(failures->entries[at].line == line && failures->entries[at].device == device))
        at++;
    if (at < failures->count) {
        failure = failures->entries[at];
        failure.never_more &= record->size <= failure.size;
        failure.never_same &= record->size < failure.size;
        remove_at(failures, at);
    } else if (failures->count == GM_POOL_FAILURES_KEPT) {
        remove_at(failures, 0);
    }
    failure.size = record->size;
    failure.count++;
    failure.allocs = totals->allocs;
    failure.allocated = totals->allocated;
    failure.stack = record->stack;
    failure.line = line;
    failure.api = record->api;
    failure.device = device;
    failure.succeeded = false;
    failure.is_placed = record->kind != GM_BLOCK_OF_XLA;
    if (!failure.is_placed && entry->detail) {
        failure.limit = entry->detail->aux;
        failure.largest_hole = entry->detail->size;
    }
    failure.snapshot = (struct gm_pool_snapshot){.record = entry->carried ? 0 : blocks->records,
                                                 .time = record->time,
                                                 .device = device,
                                                 .allocated = record->aux,
                                                 .reserved = totals->reserved,
                                                 .in_use = totals->in_use};
    failures->entries[failures->count++] = failure;
    failures->open++;
}

void gm_pool_failures_note(struct gm_pool_failures *failures, struct gm_callers *callers,
                           const struct gm_blocks *blocks, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    if (record->type == GM_EVENT_BLOCK_OOM)
        failed(failures, gm_callers_line(callers, record->stack), blocks, entry);
    if (record->type != GM_EVENT_BLOCK_ALLOC || failures->open == 0)
        return;
    uint64_t line = gm_callers_line(callers, record->stack);
    for (size_t i = 0; i < failures->count; i++) {
        struct gm_pool_failure *failure = &failures->entries[i];
        if (failure->line == line &&
            failure->device == (record->device < 0 ? -1 : record->device) && !failure->succeeded) {
            failure->succeeded = failure->was_served = true;
            failure->starts_over &= gm_gave_back_more(failure->snapshot.allocated, record->aux,
                                                      record->size, failure->size);
            failure->served = record->size;
            failures->open--;
        }
    }
}

static uint64_t unused_of_device(const struct gm_pool_failure *failure)
{
    uint64_t used =
        gm_add_saturated(gm_add_saturated(failure->tracked, failure->residual), failure->elsewhere);
    return failure->total > used ? failure->total - used : 0;
}

/* Of what a pool has reserved, holes are this part at least, or they are what any pool has: a tenth. */
#define HOLES_SHARE 10u

/* XLA's pool: its holes are told in sum, and the largest. Not known either where that would have served the request: something
 * was freed between the refusal and the question. */
static struct gm_pool_reason reason_told(const struct gm_pool_failure *failure)
{
    uint64_t reserved = failure->snapshot.reserved;
    uint64_t unused = unused_of_device(failure);
    struct gm_pool_reason reason = {.largest_hole = failure->largest_hole};
    reason.is_known = failure->limit && failure->largest_hole < failure->size;
    uint64_t in_use = failure->snapshot.in_use;
    reason.free = reserved > in_use ? reserved - in_use : 0;
    reason.outside = failure->limit > reserved ? failure->limit - reserved : 0;
    if (failure->total && unused < reason.outside)
        reason.outside = unused;
    return reason.is_known ? reason : (struct gm_pool_reason){.is_known = false};
}

/* PyTorch's: what was free in the segments that a request of this size comes from. */
static struct gm_pool_reason reason_seen(const struct gm_pool_failure *failure)
{
    const struct gm_segment_sums *sums =
        &failure->snapshot.segments
             .sums[failure->size > GM_SMALL_BLOCK ? GM_SEGMENTS_LARGE : GM_SEGMENTS_SMALL];
    return (struct gm_pool_reason){.is_known = true,
                                   .free = sums->free,
                                   .largest_hole = sums->largest_hole,
                                   .outside = unused_of_device(failure)};
}

struct gm_pool_reason gm_pool_failure_reason(const struct gm_pool_failure *failure)
{
    struct gm_pool_reason reason = failure->is_placed ? reason_seen(failure) : reason_told(failure);
    bool in_halves = reason.free >= failure->size / 2 && reason.outside < failure->size &&
                     gm_add_saturated(reason.free, reason.outside) >= failure->size;
    reason.fragmentation = reason.is_known && reason.largest_hole < failure->size &&
                           (reason.free >= failure->size || in_halves) &&
                           reason.free >= failure->snapshot.reserved / HOLES_SHARE;
    return reason;
}

bool gm_pool_failure_is_followed(const struct gm_pool_failure *failure,
                                 const struct gm_blocks *blocks)
{
    const struct gm_block_totals *totals = totals_of(blocks, failure->device);
    return failure->is_placed ? totals->allocs > failure->allocs
                              : totals->allocated - failure->allocated >= failure->size;
}

void gm_pool_failures_free(struct gm_pool_failures *failures)
{
    for (size_t i = 0; i < failures->count; i++)
        gm_sites_free(&failures->entries[i].snapshot.owners);
}
