/* What the latest free-like record of a lane did, so that it can be undone when the call behind it
 * turns out to have failed. */
#ifndef GPUMEM_REPORT_LEDGER_JOURNAL_H
#define GPUMEM_REPORT_LEDGER_JOURNAL_H

#include "base/ranges.h"
#include "replay/ledger/lives.h"
#include <stdbool.h>

/* One place where a multicast object holds memory. */
struct gm_vmm_binding {
    uint64_t offset; /* into the multicast object; 0 if the trace does not tell */
    uint64_t size;
    uint32_t memory; /* object */
    int8_t device;
    bool imported; /* the memory was: its device is a guess */
};

enum gm_undo_action {
    GM_UNDO_LIFE,            /* `life` ended */
    GM_UNDO_UNKNOWN_FREE,    /* a free of the unknown address range.start was counted */
    GM_UNDO_UNKNOWN_RELEASE, /* a release of an unknown handle was counted */
    GM_UNDO_REFERENCE,       /* `life`, external memory, was closed once of several times */
    GM_UNDO_HANDLE,          /* a handle reference of `object` was released */
    GM_UNDO_UNMAP,           /* `range` of `object` was unmapped */
    GM_UNDO_UNBIND,          /* `binding` of multicast `object` was unbound */
    GM_UNDO_RESERVATION,     /* `range` of addresses was given back */
    GM_UNDO_CONTEXT,         /* context number `object` lost a reference */
    GM_UNDO_POOL,            /* the pool at range.start was destroyed; `object`: its index */
};

struct gm_undo {
    enum gm_undo_action action;
    bool implicit;   /* LIFE: it was an implicit free */
    bool unseen;     /* CONTEXT: the reference was one that no record tells of */
    uint32_t object; /* of the VMM, held until the journal forgets it; or a number */
    union {
        struct gm_life life;
        struct gm_range range;
        struct gm_vmm_binding binding;
    };
};

/* All zero: empty. */
struct gm_journal {
    uint64_t address; /* of the free-like record */
    uint8_t type;     /* enum gm_event */
    bool is_ignoring; /* of the lane: what begins there now is no leak, as the program says */
    bool is_past; /* the record came before the history of a flight trace: nothing it did counts */
    struct gm_undo *entries;
    size_t count;
    size_t capacity;
    size_t holding; /* entries that hold an object of the VMM, or were to */
};

/* Makes room for one entry more. */
void gm_journal_grow(struct gm_journal *journal);

/* A new entry, to be filled in: what was just done. Valid until the next one. */
static inline struct gm_undo *gm_journal_add(struct gm_journal *journal)
{
    if (journal->count == journal->capacity)
        gm_journal_grow(journal);
    return &journal->entries[journal->count++];
}

/* Whether an entry is about an object of the VMM, which must last as long as it. */
static inline bool gm_undo_holds(const struct gm_undo *undo)
{
    return undo->action == GM_UNDO_HANDLE || undo->action == GM_UNDO_UNMAP ||
           undo->action == GM_UNDO_UNBIND;
}

#endif
