/* See carry.h. Entries in one array, free ones in a list; an index of chains by role and key; for
 * each role of ranges a treap: a search tree by address, in balance by priorities as good as drawn.
 */
#include "flight/carry.h"
#include <string.h>
#include <sys/mman.h>

#define FIRST_ENTRIES 4096u
#define ENTRIES_MAX (1u << 26)

static struct {
    struct gm_carried *entries; /* [0] is nothing */
    uint32_t *index;            /* chains; as many as entries */
    uint32_t capacity;          /* entries, a power of two */
    uint32_t used;              /* slots that were ever in use, [0] included */
    uint32_t unused;            /* list by `next` */
    uint32_t first, last;       /* of the order */
    uint32_t mappings;          /* roots of the trees */
    uint32_t reservations;
    uint32_t count;
} carry;

static void *map_carry(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_DONTFORK);
    return at;
}

struct gm_carried *gm_carry_at(uint32_t number)
{
    return &carry.entries[number];
}

static uint32_t *bucket(unsigned role, uint64_t key)
{
    uint64_t hash = (key ^ (uint64_t)role << 56) * 0x9e3779b97f4a7c15u;
    return &carry.index[(hash >> 32) & (carry.capacity - 1)];
}

static void chain(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    uint32_t *first = bucket(entry->role, entry->key);
    entry->chain = *first;
    *first = number;
}

static bool grow_carry(void)
{
    uint32_t capacity = carry.capacity ? carry.capacity * 2 : FIRST_ENTRIES;
    if (capacity > ENTRIES_MAX)
        return false;
    struct gm_carried *entries = map_carry(capacity * sizeof(*entries));
    uint32_t *index = map_carry(capacity * sizeof(*index));
    if (!entries || !index) {
        if (entries)
            munmap(entries, capacity * sizeof(*entries));
        if (index)
            munmap(index, capacity * sizeof(*index));
        return false;
    }
    if (carry.capacity) {
        memcpy(entries, carry.entries, carry.used * sizeof(*entries));
        munmap(carry.entries, carry.capacity * sizeof(*entries));
        munmap(carry.index, carry.capacity * sizeof(*index));
    } else {
        carry.used = 1;
    }
    carry.entries = entries;
    carry.index = index;
    carry.capacity = capacity;
    /* By number is not by age: those of one key keep their order by being put in from the first of
     * the order to the last. */
    for (uint32_t number = carry.first; number; number = carry.entries[number].next)
        if (carry.entries[number].found)
            chain(number);
    return true;
}

static uint32_t take_slot(void)
{
    uint32_t number = carry.unused;
    if (number) {
        carry.unused = carry.entries[number].next;
        return number;
    }
    if (carry.used >= carry.capacity && !grow_carry())
        return 0;
    return carry.used++;
}

static void append_carried(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    entry->previous = carry.last;
    if (carry.last)
        carry.entries[carry.last].next = number;
    else
        carry.first = number;
    carry.last = number;
    carry.count++;
}

uint32_t gm_carry_add(enum gm_carry_role role, uint64_t key, const struct gm_record *record,
                      const struct gm_record *detail, uint32_t lane)
{
    uint32_t number = take_slot();
    if (!number)
        return 0;
    carry.entries[number] = (struct gm_carried){
        .record = *record,
        .detail = detail ? detail->address : 0,
        .has_detail = detail != NULL,
        .key = key,
        .lane = lane,
        .role = (uint8_t)role,
    };
    if (role != GM_CARRY_NODE)
        append_carried(number);
    if (role < GM_CARRY_BINDING)
        gm_carry_show(number);
    return number;
}

static void take_out_carried(const struct gm_carried *entry)
{
    *(entry->previous ? &carry.entries[entry->previous].next : &carry.first) = entry->next;
    *(entry->next ? &carry.entries[entry->next].previous : &carry.last) = entry->previous;
    carry.count--;
}

void gm_carry_move_last(uint32_t number)
{
    take_out_carried(&carry.entries[number]);
    carry.entries[number].next = 0;
    append_carried(number);
}

void gm_carry_remove(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    gm_carry_hide(number);
    if (entry->role != GM_CARRY_NODE)
        take_out_carried(entry);
    entry->role = GM_CARRY_FREE;
    entry->next = carry.unused;
    carry.unused = number;
}

uint32_t gm_carry_find(enum gm_carry_role role, uint64_t key)
{
    if (!carry.capacity)
        return 0;
    uint32_t number = *bucket(role, key);
    while (number && (carry.entries[number].key != key || carry.entries[number].role != role))
        number = carry.entries[number].chain;
    return number;
}

/* ---- ranges of addresses --------------------------------------------------------------------- */

static uint32_t *root_of(unsigned role)
{
    return role == GM_CARRY_MAPPING       ? &carry.mappings
           : role == GM_CARRY_RESERVATION ? &carry.reservations
                                          : NULL;
}

static uint32_t priority(uint32_t number)
{
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
    return (uint32_t)((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u >> 32);
}

static uint64_t start_of(uint32_t number)
{
    return carry.entries[number].record.address;
}

/* Splits a tree into what starts before `start` and the rest. */
static void split_tree(uint32_t tree, uint64_t start, uint32_t *before, uint32_t *rest)
{
    while (tree) {
        uint32_t **side = start_of(tree) < start ? &before : &rest;
        **side = tree;
        *side = side == &before ? &carry.entries[tree].right : &carry.entries[tree].left;
        tree = **side;
    }
    *before = *rest = 0;
}

static void enter_tree(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    uint32_t *link = root_of(entry->role);
    if (!link || !entry->record.size)
        return;
    while (*link && priority(*link) > priority(number))
        link = start_of(*link) < start_of(number) ? &carry.entries[*link].right
                                                  : &carry.entries[*link].left;
    split_tree(*link, start_of(number), &entry->left, &entry->right);
    entry->ranged = true;
    *link = number;
}

void gm_carry_leave_tree(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    if (!entry->ranged)
        return;
    uint32_t *link = root_of(entry->role);
    while (*link != number)
        link = start_of(*link) < start_of(number) ? &carry.entries[*link].right
                                                  : &carry.entries[*link].left;
    uint32_t left = entry->left, right = entry->right;
    while (left && right) { /* joined in the place of the entry */
        bool from_left = priority(left) > priority(right);
        uint32_t *from = from_left ? &left : &right;
        *link = *from;
        link = from_left ? &carry.entries[left].right : &carry.entries[right].left;
        *from = *link;
    }
    *link = left ? left : right;
    entry->ranged = false;
}

uint32_t gm_carry_overlapping(enum gm_carry_role role, uint64_t address, uint64_t size)
{
    uint32_t best = 0;
    for (uint32_t at = size ? *root_of(role) : 0; at;) {
        const struct gm_record *range = &carry.entries[at].record;
        bool reaches = gm_carry_last(range->address, range->size) >= address;
        best = reaches ? at : best;
        at = reaches ? carry.entries[at].left : carry.entries[at].right;
    }
    return best && start_of(best) <= gm_carry_last(address, size) ? best : 0;
}

/* ---- the index ------------------------------------------------------------------------------- */

void gm_carry_show(uint32_t number)
{
    chain(number);
    carry.entries[number].found = true;
    enter_tree(number);
}

void gm_carry_hide(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    if (!entry->found)
        return;
    gm_carry_leave_tree(number);
    uint32_t *link = bucket(entry->role, entry->key);
    while (*link != number)
        link = &carry.entries[*link].chain;
    *link = entry->chain;
    entry->found = false;
}

uint32_t gm_carry_first(void)
{
    return carry.first;
}

uint32_t gm_carry_count(void)
{
    return carry.count;
}

void gm_carry_forget(void)
{
    memset(&carry, 0, sizeof(carry));
}
