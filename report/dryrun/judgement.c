/* See judgement.h. */
#include "dryrun/judgement.h"
#include <string.h>

#define CUDNN_PART "cuDNN's workspaces"

static void add_part(struct gm_dry_judgement *judgement, const char *name, uint64_t bytes,
                     uint64_t most, enum gm_dry_kind kind)
{
    if (!bytes && !most)
        return;
    judgement->parts[judgement->part_count++] =
        (struct gm_dry_part){name, bytes, most > bytes ? most : bytes, kind};
    judgement->peak += bytes;
    judgement->most += most > bytes ? most : bytes;
}

/* How much the peak can rise by workspaces that cuDNN alone decides about. */
static uint64_t cudnn_range(const struct gm_dry_facts *facts, int device)
{
    const struct gm_dry_outcome *more = facts->with_cudnn;
    if (!more)
        return 0;
    uint64_t without = facts->outcome->devices[device].peak, with = more->devices[device].peak;
    if (more->devices[device].has_failed)
        with = more->devices[device].held + more->devices[device].wanted;
    return with > without ? with - without : 0;
}

/* The most that PyTorch reserved in a run that differs in what the program does not decide. */
static uint64_t most_reserved(const struct gm_dry_facts *facts, int device)
{
    uint64_t most = 0;
    for (size_t i = 0; i < facts->bound_count; i++)
        if (facts->bounds[i]->devices[device].reserved > most)
            most = facts->bounds[i]->devices[device].reserved;
    return most;
}

static void divide(struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    const struct gm_dry_use *use = &facts->outcome->devices[judgement->device];
    uint64_t blocks = use->blocks < use->reserved ? use->blocks : use->reserved;
    uint64_t reserved = use->reserved < use->peak ? use->reserved : use->peak;
    if (blocks > reserved)
        blocks = reserved;
    add_part(judgement, "PyTorch's tensors", blocks, 0, GM_DRY_EXACT);
    uint64_t most = most_reserved(facts, judgement->device);
    add_part(judgement, "PyTorch's cache", reserved - blocks, most > blocks ? most - blocks : 0,
             GM_DRY_BOUNDED);
    add_part(judgement, "other allocations", use->peak - reserved, 0, GM_DRY_EXACT);
    if (use->has_failed && use->held + use->wanted > use->peak)
        add_part(judgement, "the refused request", use->held + use->wanted - use->peak, 0,
                 GM_DRY_EXACT);
    add_part(judgement, CUDNN_PART, 0, cudnn_range(facts, judgement->device), GM_DRY_BOUNDED);
    add_part(judgement, "NCCL's buffers", facts->nccl, 0, GM_DRY_ASSUMED);
    add_part(judgement, "context and modules", facts->device->context, 0, GM_DRY_ASSUMED);
}

/* The range of workspaces shows how much cuDNN matters; it is no tested bound. So it decides nothing
 * where it is wide, even if its end still fits. */
static bool is_wide(const struct gm_dry_judgement *judgement)
{
    uint64_t range = 0;
    for (size_t i = 0; i < judgement->part_count; i++)
        if (strcmp(judgement->parts[i].name, CUDNN_PART) == 0)
            range += judgement->parts[i].most - judgement->parts[i].bytes;
    return range > judgement->capacity / 10;
}

void gm_dry_judge(struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    *judgement = (struct gm_dry_judgement){.verdict = GM_DRY_UNDECIDED,
                                           .capacity = facts->capacity,
                                           .device = gm_dry_busiest(facts->outcome)};
    if (judgement->device < 0) {
        if (!facts->refused && facts->command_exit == 0)
            judgement->verdict = GM_DRY_FITS;
        return;
    }
    divide(judgement, facts);
    if (facts->refused)
        return;
    if (facts->outcome->devices[judgement->device].has_failed ||
        judgement->peak > judgement->capacity)
        judgement->verdict = GM_DRY_DOES_NOT_FIT;
    else if (facts->command_exit == 0 && judgement->most <= judgement->capacity &&
             !is_wide(judgement))
        judgement->verdict = GM_DRY_FITS;
}
