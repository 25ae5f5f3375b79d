/* Virtual memory management: physical memory lives until its last handle reference, its last
 * mapping and its last multicast binding are gone; address ranges have lives of their own. */
#ifndef GM_REPORT_VMM_H
#define GM_REPORT_VMM_H

#include <stdbool.h>
#include <stdint.h>
#include "map.h"
#include "ranges.h"

struct gm_entry;
struct gm_journal;
struct gm_record;
struct gm_replay;
struct gm_undo;

/* One place where a multicast object holds memory. */
struct gm_vmm_binding {
    uint64_t offset; /* into the multicast object; 0 if the trace does not tell */
    uint64_t size;
    uint32_t memory; /* object */
    int8_t device;
};

/* Physical memory, or a multicast object. The slot outlives the memory while a journal may still
 * bring it back. */
struct gm_vmm_object {
    uint64_t handle;
    uint32_t life;     /* GM_NONE: a multicast object, or ended */
    uint32_t handles;  /* references by handle */
    uint32_t mappings; /* pieces of address ranges */
    uint32_t bindings; /* to multicast objects */
    uint32_t held;     /* by journals */
    bool used;
    bool nameless;                /* its handle is that of another object since */
    struct gm_vmm_binding *bound; /* of a multicast object */
    size_t bound_count;
    size_t bound_capacity;
};

struct gm_vmm {
    uint64_t unknown_frees; /* releases of handles that are not known to live */
    uint64_t lost_frees; /* handles and places given out again without a release or an unmapping */
    struct gm_vmm_object *objects;
    size_t count;
    size_t capacity;
    uint32_t *unused; /* slots to be used again */
    size_t unused_count;
    size_t unused_capacity;
    struct gm_map by_handle;
    struct gm_ranges mappings; /* value: object */
    struct gm_ranges reservations;
    uint64_t reserved; /* bytes of addresses */
    uint64_t reserved_peak;
};

void gm_vmm_end(struct gm_vmm *vmm);

/* Applies a record of the family; free-like ones note in `journal` what they did. */
void gm_vmm_apply(struct gm_replay *replay, const struct gm_entry *entry,
                  struct gm_journal *journal);

/* Takes one step back. */
void gm_vmm_undo(struct gm_replay *replay, const struct gm_undo *undo);

/* The life with number `life` is the memory of `object` again. */
void gm_vmm_revive(struct gm_replay *replay, uint32_t object, uint32_t life);

/* A journal keeps what an entry needs to be undone, or forgets it. */
void gm_vmm_hold(struct gm_vmm *vmm, const struct gm_undo *undo);
void gm_vmm_forget(struct gm_vmm *vmm, const struct gm_undo *undo);

#endif
