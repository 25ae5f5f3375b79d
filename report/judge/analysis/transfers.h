/* Copies and fills: how much went which way, from where in the program, and whether the host's side
 * was memory that the device can reach by itself. */
#ifndef GPUMEM_REPORT_ANALYSIS_TRANSFERS_H
#define GPUMEM_REPORT_ANALYSIS_TRANSFERS_H

#include "base/names.h"
#include "base/ranges.h"
#include "replay/ledger/lives.h"
#include <stdint.h>

enum {
    GM_TINY_COPY = 4096, /* bytes: at most this, the call costs more than the copy */
    /* bytes: with pageable memory, so much takes 20 to 40 us at 6 to 12 GB/s, while the call waits: as long as it takes to
     * launch a few kernels */
    GM_SLOW_COPY = 262144,
    GM_RECENT_TARGETS = 8, /* of a site */
    GM_KEPT_SHARE = 16     /* of a copy: so much of it stays where data are loaded */
};

struct gm_transfer {
    uint64_t bytes;
    uint64_t count;
    uint64_t nanoseconds;    /* that the calls took on the host */
    uint64_t tiny;           /* calls of at most GM_TINY_COPY bytes */
    uint64_t pageable_bytes; /* with pageable host memory on one side */
    uint64_t pageable_count;
    uint64_t unknown; /* calls that read from a simulated device what only kernels write */
};

/* The same for one call site. */
struct gm_transfer_site {
    uint32_t stack;
    uint32_t order;
    uint16_t api;
    uint8_t direction;
    uint8_t next_recent;
    struct gm_transfer sum;
    uint64_t live; /* bytes alive everywhere at its last copy from the host */
    uint64_t
        staged_again; /* pageable copies between host and device, of GM_SLOW_COPY or more, from the host of
                         data that did not stay, to one of: */
    uint64_t recent[GM_RECENT_TARGETS];
};

/* All zero: none yet. */
struct gm_transfers {
    struct gm_transfer total[GM_DIRECTIONS];
    struct gm_transfer_site *sites;
    size_t site_count;
    size_t site_capacity;
    struct gm_map by_site;
    struct gm_ranges host;         /* live pinned, registered and managed memory; value: its kind */
    struct gm_map reach;           /* start of one of them -> how far copies went, in KiB */
    struct gm_ranges device;       /* every address that ever was device memory */
    struct gm_range latest_device; /* one of them: asked for again and again */
};

/* Takes notice of addresses that an allocation has, and of those that are not in use any more. What
 * copies used of them is kept until they are a new allocation's: the end may be taken back. */
void gm_transfers_learn(struct gm_transfers *transfers, const struct gm_life *life, bool is_new);
void gm_transfers_forget(struct gm_transfers *transfers, const struct gm_life *life);

/* Allocations come and go. That what the device had before is the device's is no news. */
static inline void gm_transfers_life_begins(struct gm_transfers *transfers,
                                            const struct gm_life *life, bool is_new)
{
    const struct gm_range *latest = &transfers->latest_device;
    if (life->kind != GM_KIND_DEVICE || life->address < latest->start || life->size == 0 ||
        gm_range_end(life->address, life->size) > latest->end)
        gm_transfers_learn(transfers, life, is_new);
}

static inline void gm_transfers_life_ends(struct gm_transfers *transfers,
                                          const struct gm_life *life)
{
    if (life->kind != GM_KIND_DEVICE)
        gm_transfers_forget(transfers, life);
}

/* A record: of copies, fills and mappings notice is taken; `live`: bytes that are alive now. True for a copy as loops make them: its
 * place copied to the host before, or to the same memory of a device. */
bool gm_transfers_note(struct gm_transfers *transfers, const struct gm_record *record,
                       uint64_t live);

/* Sorts the sites by bytes, most first. */
void gm_transfers_finish(struct gm_transfers *transfers);
void gm_transfers_free(struct gm_transfers *transfers);

/* How many bytes from its start on copies used of live pinned, registered or managed memory, to the
 * next KiB; 0: none did. */
uint64_t gm_transfers_reach(const struct gm_transfers *transfers, uint64_t address);

#endif
