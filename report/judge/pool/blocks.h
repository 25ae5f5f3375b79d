/* Blocks of a framework's pool (PyTorch's caching allocator), which lie inside the segments that
 * the replay counts. They have totals of their own and are never added to those of the device. */
#ifndef GPUMEM_REPORT_POOL_BLOCKS_H
#define GPUMEM_REPORT_POOL_BLOCKS_H

#include "base/curve.h"
#include "base/facts.h"
#include "input/trace/stream.h"
#include "replay/ledger/counters.h"
#include "replay/ledger/index.h"
#include "replay/ledger/sites.h"
#include <stdbool.h>
#include <stdint.h>

/* The most that XLA's pool had in use at any time, as XLA counts. */
struct gm_in_use_peak {
    uint64_t bytes;       /* 0: not told */
    uint64_t arrays;      /* bytes of these just after the call that reached it */
    uint64_t temporaries; /* bytes that XLA compiled its program with; 0: not told */
    uint64_t executable;  /* string: its program's name; 0: not told */
    uint64_t time;
    uint32_t stack; /* of that call; 0: it came before what is on record */
    uint16_t api;
    bool was_cut;      /* there were blocks of XLA's before what is on record */
    bool is_compiling; /* it was reached while a program was compiled, and kernels tried out */
};

/* What XLA told the program when that asked, and what was on record then; bytes. */
struct gm_in_use_told {
    uint64_t time;
    uint64_t in_use;
    uint64_t allocated; /* in arrays */
    uint64_t rounding;  /* what XLA adds to the sizes of these */
};

enum { GM_IN_USE_TOLD = 1024 }; /* are kept of a device: the first ones, and the latest */

struct gm_block_totals {
    uint32_t owners; /* a bit for each enum gm_block_owner whose records there are */
    uint64_t allocs;
    uint64_t frees;
    uint64_t allocated; /* bytes, ever */
    uint64_t live;      /* bytes in blocks */
    uint64_t requested; /* bytes asked for, of those blocks of which that is told */
    uint64_t requested_peak;
    uint64_t count;      /* blocks alive */
    struct gm_peak peak; /* .step counts the block records */
    uint64_t fall;       /* bytes: how far `live` fell below its peak before it rose again */
    uint64_t reserved;   /* as the framework last said; bytes */
    uint64_t
        in_use; /* of XLA's pool, as it said at the latest request: arrays and all else; bytes */
    struct gm_peak reserved_peak;
    struct gm_in_use_peak in_use_peak;
    uint64_t rounding; /* bytes that XLA's pool adds to the blocks alive, if it rounds up */
    struct gm_in_use_told *told;
    size_t told_count;
    uint64_t out_of_memory;    /* times the framework gave up */
    struct gm_curve *curve;    /* live and reserved over time; NULL: never a block */
    struct gm_curve *by_alloc; /* the same over the allocations */
};

/* All zero: none yet. */
struct gm_blocks {
    struct gm_block_totals device[GM_DEVICES]; /* [ordinal + 1] */
    struct gm_pool_block *slots;
    size_t capacity;
    uint32_t used;
    uint32_t *unused;
    size_t unused_count;
    size_t unused_capacity;
    struct gm_index by_address;
    struct gm_pool_block replaced; /* the latest that ended when its address was given out again */
    uint64_t live;                 /* bytes of all blocks everywhere */
    uint64_t malformed;            /* sizes that make no sense, taken for 0 */
    uint64_t records;
    uint64_t allocs;
    uint64_t last_use_time; /* record clock; of the last request, served or not */
    uint64_t last_use_record;
    /* Freed since the last use: the latest of `unused`, which still say what they were. When a
     * program ends, its interpreter forgets all tensors: with these, what it held until then can be
     * told. */
    size_t late_count;
};

/* What a record did. Valid until the next one. */
struct gm_block_change {
    const struct gm_pool_block *ended; /* NULL: none */
    struct gm_pool_block *begun;       /* NULL: none */
};

/* The size of a block that is about to begin: what its record says, or 0 if that makes no sense. */
uint64_t gm_blocks_size(const struct gm_blocks *blocks, const struct gm_record *record);

/* The bytes asked for, at most those given; 0: not told. */
uint64_t gm_blocks_requested(const struct gm_blocks *blocks, const struct gm_entry *entry);

/* What XLA's allocator adds to an array of so many bytes: it gives out multiples of 256
 * (BFCAllocator::kMinAllocationSize). */
static inline uint64_t gm_xla_rounding(uint64_t size)
{
    return -size % 256;
}

/* How many of the bytes in use round arrays up: `rounding`, or none if these do not hold as many. Without a pool (cuda_async),
 * which reserves nothing, XLA rounds nothing. */
static inline uint64_t gm_xla_rounded(uint64_t rounding, uint64_t in_use, uint64_t arrays,
                                      uint64_t reserved)
{
    return reserved && in_use > arrays && rounding <= in_use - arrays ? rounding : 0;
}

/* Whose pool it is, as people call it: "PyTorch", "XLA", or both. */
const char *gm_blocks_owner(const struct gm_block_totals *totals);

/* Whether all its blocks are of that owner's pool. */
static inline bool gm_blocks_are_of(const struct gm_block_totals *totals, enum gm_block_owner owner)
{
    return totals->owners == 1u << owner;
}

/* Takes notice of block records, passes over all others. */
struct gm_block_change gm_blocks_note_block(struct gm_blocks *blocks, const struct gm_entry *entry);
static inline void gm_blocks_note(struct gm_blocks *blocks, const struct gm_entry *entry)
{
    uint8_t type = entry->record->type;
    if (type >= GM_EVENT_BLOCK_ALLOC && type <= GM_EVENT_BLOCK_OOM)
        gm_blocks_note_block(blocks, entry);
}

/* Nothing comes any more: the curves end with the last use. */
void gm_blocks_finish(struct gm_blocks *blocks);

/* The block that lives at an address, NULL if there is none. */
const struct gm_pool_block *gm_blocks_at(const struct gm_blocks *blocks, uint64_t address);

/* Adds the live blocks of a device to `sites`. */
void gm_blocks_owners(const struct gm_blocks *blocks, int device, struct gm_sites *sites);

void gm_blocks_free(struct gm_blocks *blocks);

#endif
