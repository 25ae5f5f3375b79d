/* Blocks of a framework's pool (PyTorch's caching allocator), which lie inside the segments that
 * the replay counts. They have totals of their own and are never added to those of the device. */
#ifndef GM_REPORT_BLOCKS_H
#define GM_REPORT_BLOCKS_H

#include <stdint.h>
#include "counters.h"
#include "lives.h"
#include "sites.h"
#include "stream.h"

struct gm_block_totals {
    uint64_t allocs;
    uint64_t frees;
    uint64_t live;       /* bytes in blocks */
    uint64_t count;      /* blocks alive */
    struct gm_peak peak; /* .step counts the block records */
    uint64_t reserved;   /* as the framework last said; bytes */
    uint64_t reserved_peak;
    uint64_t out_of_memory; /* times the framework gave up */
};

/* All zero: none yet. */
struct gm_blocks {
    struct gm_block_totals device[GM_DEVICES]; /* [ordinal + 1] */
    struct gm_life *slots;
    size_t capacity;
    uint32_t used;
    uint32_t *unused;
    size_t unused_count;
    size_t unused_capacity;
    struct gm_map by_address;
    uint64_t records;
};

/* Takes notice of block records, passes over all others. */
void gm_blocks_note(struct gm_blocks *blocks, const struct gm_entry *entry);

/* Adds the live blocks of a device to `sites`. */
void gm_blocks_owners(const struct gm_blocks *blocks, int device, struct gm_sites *sites);

void gm_blocks_free(struct gm_blocks *blocks);

#endif
