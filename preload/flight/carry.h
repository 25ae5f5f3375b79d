/*
 * The records that a flight trace carries over when the history around them is overwritten: for all
 * that is alive the record that began it, in the order of time.
 *
 * Guarantees: an entry keeps its number until it is removed; the order is that of adding, or of
 * being moved behind all others; finding, adding and removing take constant time, for ranges of
 * addresses logarithmic time. No malloc: memory is mapped, grows by doubling, and is not inherited by
 * children. Relies on gm_pack_lock: one thread at a time. When memory cannot be had, adding returns 0
 * and the caller counts what is now missing.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_CARRY_H
#define GPUMEM_PRELOAD_FLIGHT_CARRY_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an entry is, and by what it is found. */
enum gm_carry_role {
    GM_CARRY_FREE, /* the slot is not in use */
    /* With a key. */
    GM_CARRY_LIFE,        /* ALLOC: address */
    GM_CARRY_OBJECT,      /* VMM_CREATE, VMM_IMPORT, MULTICAST_CREATE: handle */
    GM_CARRY_MAPPING,     /* VMM_MAP: address */
    GM_CARRY_RESERVATION, /* VMM_RESERVE: address */
    GM_CARRY_POOL,        /* POOL_CREATE: pool */
    GM_CARRY_MODULE,      /* MODULE_LOAD: module */
    GM_CARRY_GLOBAL,      /* GLOBAL: address */
    GM_CARRY_BLOCK,       /* BLOCK_ALLOC: address */
    GM_CARRY_BLOCK_LAST,  /* device; the last of BLOCK_FREE and BLOCK_OOM, or what is left of
                             BLOCK_ALLOC without its block */
    GM_CARRY_DEVICE,      /* DEVICE: device */
    GM_CARRY_SAMPLE,      /* DEVICE_SAMPLE: device; the last one */
    GM_CARRY_THREAD,      /* THREAD: lane; the last one */
    GM_CARRY_SPAN,        /* RANGE_START: the range's number */
    GM_CARRY_MARK,        /* MARK: whether a library made it; the last one */
    GM_CARRY_GRAPH,       /* no record of its own: graph; its nodes hang on it */
    GM_CARRY_EXECUTABLE,  /* GRAPH_INSTANTIATE: executable graph; its nodes hang on it */
    /* Without. */
    GM_CARRY_BINDING, /* MULTICAST_BIND */
    GM_CARRY_RANGE,   /* RANGE_PUSH */
    GM_CARRY_FAILURE, /* ALLOC_FAILED; the last few */
    GM_CARRY_ENDING,  /* a free-like record that may yet be undone */
    GM_CARRY_NODE,    /* a node of a graph; not in the order */
};

/* Links are numbers of entries; 0 is none. */
struct gm_carried {
    struct gm_record record;
    uint64_t detail; /* address of its DETAIL record */
    uint64_t key;
    uint32_t lane;
    uint32_t next; /* in the order */
    uint32_t previous;
    uint32_t chain; /* in the index */
    uint32_t same;  /* of what one ENDING ended, or of one graph's nodes: the next; of the ENDING
                       itself: the first */
    uint32_t other; /* MAPPING, BINDING: the OBJECT; ENDING: the OBJECT, or number of the context;
                       RANGE: the one around it; GRAPH, EXECUTABLE: the last node */
    union {
        uint32_t multicast; /* BINDING: what the memory is bound to */
        uint32_t nodes;     /* GRAPH, EXECUTABLE: the first node */
    };
    uint32_t handles;  /* OBJECT: references by handle */
    uint32_t uses;     /* OBJECT: mappings and bindings */
    uint32_t releases; /* OBJECT: VMM_RELEASE records that may yet be undone */
    uint32_t held;     /* OBJECT: mappings and bindings that may yet refer to it again */
    uint32_t left;     /* MAPPING, RESERVATION: in the tree of its role */
    uint32_t right;
    uint8_t role; /* enum gm_carry_role */
    bool has_detail;
    bool found;     /* it is in the index */
    bool ranged;    /* it is in the tree */
    bool ended;     /* by an ENDING that may yet be undone; OBJECT: nothing refers to it, but may */
    bool reference; /* LIFE: external memory opened once more */
    bool implicit;  /* ended: with its context */
    bool unseen;    /* ENDING of a context: the reference was one that no record tells of */
    bool nameless;  /* OBJECT: its handle is that of another since */
    bool ignored;   /* LIFE, OBJECT, BLOCK: the program asked not to call it a leak */
    bool pooled;    /* LIFE, OBJECT: a framework's blocks lie in it, and count instead */
    bool kept;      /* what happened to it is not understood: all that was said of it stays */
};

/* Whether the entry is memory that could leak. */
static inline bool gm_carried_is_memory(const struct gm_carried *entry)
{
    return entry->role == GM_CARRY_LIFE || entry->role == GM_CARRY_BLOCK ||
           (entry->role == GM_CARRY_OBJECT && entry->record.type != GM_EVENT_MULTICAST_CREATE);
}

/* Is given what is carried over, a record at a time, in the order in which it is to be replayed. */
typedef void gm_carry_taker(void *argument, const struct gm_record *record, uint32_t lane);

/* The entry of a number; not valid after the next gm_carry_add. */
struct gm_carried *gm_carry_at(uint32_t number);

/* Adds an entry behind all others (a NODE: beside them) and, if it has a key, to the index, in
 * front of others with that key. Returns its number; 0: no memory. */
uint32_t gm_carry_add(enum gm_carry_role role, uint64_t key, const struct gm_record *record,
                      const struct gm_record *detail, uint32_t lane);
void gm_carry_remove(uint32_t number);

/* Puts an entry behind all others. */
void gm_carry_move_last(uint32_t number);

/* The latest entry with this key in the index, 0 if there is none. */
uint32_t gm_carry_find(enum gm_carry_role role, uint64_t key);

/* Takes an entry out of the index, or puts it back; it stays in the order. */
void gm_carry_hide(uint32_t number);
void gm_carry_show(uint32_t number);

/* MAPPING, RESERVATION: of those in the index the first that has addresses in common with `size`
 * bytes at `address`, 0 if there is none. Those in the index overlap no other of their role, but
 * what is taken out of the tree alone. */
uint32_t gm_carry_overlapping(enum gm_carry_role role, uint64_t address, uint64_t size);
void gm_carry_leave_tree(uint32_t number);

/* The highest address of `size` bytes, which are some. */
static inline uint64_t gm_carry_last(uint64_t address, uint64_t size)
{
    return size - 1 > UINT64_MAX - address ? UINT64_MAX : address + size - 1;
}

/* In order: the first entry; the next ones are at ->next. */
uint32_t gm_carry_first(void);
uint32_t gm_carry_count(void); /* of those in the order */

/* Whether order, index and trees agree with one another. Of checked builds (base/assert.h). */
bool gm_carry_is_valid(void);

/* Forgets everything: a forked child. */
void gm_carry_forget(void);

#endif
