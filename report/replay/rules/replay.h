/* Replays the records of a trace by docs/accounting.md: what was alive when, and whose it was.
 *
 * Guarantees: linear time in the records; memory for what is alive, not for what has been. A
 * second replay of the same trace takes the same steps (ledger.h), so that it can stop where the
 * first one found a peak. Any record is taken, also a hostile one: what makes no sense is counted.
 */
#ifndef GPUMEM_REPORT_REPLAY_REPLAY_H
#define GPUMEM_REPORT_REPLAY_REPLAY_H

#include "replay/ledger/ledger.h"
#include "replay/rules/context.h"
#include "replay/rules/graph.h"
#include "replay/rules/vmm.h"
#include <stdbool.h>
#include <stdint.h>

/* A memory pool that was created (not a device's default pool). */
struct gm_pool {
    uint64_t address;
    uint64_t time;
    uint32_t stack;
    uint16_t api;
    int8_t device;
    bool alive;
};

struct gm_replay {
    struct gm_ledger ledger;
    struct gm_contexts contexts;
    struct gm_vmm vmm;
    struct gm_graphs graphs;
    struct gm_pool *pools;
    size_t pool_count;
    size_t pool_capacity;
    struct gm_map pool_by_address;

    bool has_history; /* it has begun, behind the carried records */
    const struct gm_checkpoint
        *checkpoint;         /* it begins with; to be set by the caller, may be NULL */
    uint64_t not_understood; /* records of types that a newer recorder has */
};

/* Begins empty. A replay cannot be moved: its parts refer to its ledger. */
void gm_replay_begin(struct gm_replay *replay);
void gm_replay_end(struct gm_replay *replay);

/* What the records of a stream need of the replay is brought near before they are applied to it. */
void gm_replay_prefetch(struct gm_replay *replay, struct gm_stream *stream);

/* Applies one record. */
void gm_replay_apply(struct gm_replay *replay, const struct gm_entry *entry);

/* All records are applied. */
void gm_replay_finish(struct gm_replay *replay);

#endif
