/* See judgement.h. */
#include "tools/dryrun/judgement.h"
#include <string.h>

#define CUDNN_PART "cuDNN's workspaces"
#define ROWS_PART "what masks and ends of loops decide"

/* A part whose size is bounded: `least` <= `bytes` <= `most`, or these two are moved. */
static void add_bounded(struct gm_dry_judgement *judgement, const char *name, uint64_t bytes,
                        uint64_t least, uint64_t most)
{
    struct gm_dry_part part = {name, bytes, bytes, bytes, GM_DRY_BOUNDED};
    if (!bytes && !most)
        return;
    if (least < bytes)
        part.least = least;
    if (most > bytes)
        part.most = most;
    judgement->parts[judgement->part_count++] = part;
    judgement->peak += bytes;
    judgement->most += part.most;
}

static void add_part(struct gm_dry_judgement *judgement, const char *name, uint64_t bytes,
                     enum gm_dry_kind kind)
{
    if (!bytes)
        return;
    judgement->parts[judgement->part_count++] =
        (struct gm_dry_part){name, bytes, bytes, bytes, kind};
    judgement->peak += bytes;
    judgement->most += bytes;
}

/* How much more of a device another run needed. */
static uint64_t range_to(const struct gm_dry_outcome *more, const struct gm_dry_facts *facts,
                         int device)
{
    if (!more)
        return 0;
    uint64_t without = facts->outcome->devices[device].peak, with = more->devices[device].peak;
    if (more->devices[device].has_failed)
        with = more->devices[device].held + more->devices[device].wanted;
    return with > without ? with - without : 0;
}

/* The most that PyTorch reserved, or would have reserved at other addresses, in any run. */
static uint64_t most_reserved(const struct gm_dry_facts *facts, int device)
{
    uint64_t most = facts->outcome->devices[device].most_reserved;
    for (size_t i = 0; i < facts->bound_count; i++)
        if (facts->bounds[i]->devices[device].reserved > most)
            most = facts->bounds[i]->devices[device].reserved;
    return most;
}

const struct gm_dry_outcome *gm_dry_telling(const struct gm_dry_facts *facts)
{
    return facts->whole ? facts->whole : facts->outcome;
}

static void divide(struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    const struct gm_dry_use *use = &gm_dry_telling(facts)->devices[judgement->device];
    uint64_t blocks = use->blocks < use->reserved ? use->blocks : use->reserved;
    uint64_t reserved = use->reserved < use->peak ? use->reserved : use->peak;
    if (blocks > reserved)
        blocks = reserved;
    uint64_t least = use->least_reserved > blocks ? use->least_reserved : blocks;
    uint64_t most = most_reserved(facts, judgement->device), told = reserved;
    /* XLA's pool makes do with smaller steps where the device has no more; it gives nothing back to another request. */
    if (use->is_of_xla && least < reserved && (!use->has_failed || use->limit))
        told = least;
    add_part(judgement, use->is_of_xla ? "XLA's arrays" : "PyTorch's tensors", blocks,
             GM_DRY_EXACT);
    add_bounded(judgement, use->is_of_xla ? "XLA's temporaries and cache" : "PyTorch's cache",
                told - blocks, least - blocks, (most > reserved ? most : reserved) - blocks);
    add_part(judgement, "other allocations", use->peak - reserved, GM_DRY_EXACT);
    if (use->has_failed && use->held + use->wanted > use->peak)
        add_part(judgement, "the refused request", use->held + use->wanted - use->peak,
                 GM_DRY_EXACT);
    add_bounded(judgement, CUDNN_PART, 0, 0, range_to(facts->with_cudnn, facts, judgement->device));
    add_bounded(judgement, ROWS_PART, 0, 0, range_to(facts->with_rows, facts, judgement->device));
    add_part(judgement, "NCCL's buffers", facts->nccl, GM_DRY_ASSUMED);
    add_part(judgement, "context and modules", facts->device->context, GM_DRY_ASSUMED);
}

/* The range of workspaces shows how much cuDNN matters; it is no tested bound. So it decides nothing
 * where it is wide, even if its end still fits, unless twice the range would. */
static bool is_wide(const struct gm_dry_judgement *judgement)
{
    uint64_t range = 0;
    for (size_t i = 0; i < judgement->part_count; i++)
        if (strcmp(judgement->parts[i].name, CUDNN_PART) == 0)
            range += judgement->parts[i].most - judgement->parts[i].bytes;
    return range > judgement->capacity / 10 && judgement->most + range > judgement->capacity;
}

void gm_dry_judge(struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    *judgement = (struct gm_dry_judgement){.verdict = GM_DRY_UNDECIDED,
                                           .capacity = facts->capacity,
                                           .device = gm_dry_busiest(facts->outcome)};
    if (judgement->device < 0) {
        if (!facts->refused && facts->command_exit == 0 && !facts->grows)
            judgement->verdict = GM_DRY_FITS;
        return;
    }
    divide(judgement, facts);
    if (facts->refused)
        return;
    if (facts->outcome->devices[judgement->device].has_failed ||
        judgement->peak > judgement->capacity)
        judgement->verdict = facts->chose_all ? GM_DRY_UNDECIDED : GM_DRY_DOES_NOT_FIT;
    else if (facts->command_exit == 0 && !facts->grows && !facts->rows_failed &&
             judgement->most <= judgement->capacity && !is_wide(judgement))
        judgement->verdict = GM_DRY_FITS;
}
