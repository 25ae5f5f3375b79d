/* See carry.h. Entries in one array, free ones in a list; an index of chains by role and key. */
#include "carry.h"
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
    uint32_t count;
} carry;

static void *map_private(size_t size)
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

static bool grow(void)
{
    uint32_t capacity = carry.capacity ? carry.capacity * 2 : FIRST_ENTRIES;
    if (capacity > ENTRIES_MAX)
        return false;
    struct gm_carried *entries = map_private(capacity * sizeof(*entries));
    uint32_t *index = map_private(capacity * sizeof(*index));
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
            gm_carry_show(number);
    return true;
}

static uint32_t take_slot(void)
{
    uint32_t number = carry.unused;
    if (number) {
        carry.unused = carry.entries[number].next;
        return number;
    }
    if (carry.used >= carry.capacity && !grow())
        return 0;
    return carry.used++;
}

static void append(uint32_t number)
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
        append(number);
    if (role < GM_CARRY_BINDING)
        gm_carry_show(number);
    return number;
}

void gm_carry_remove(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    gm_carry_hide(number);
    if (entry->role != GM_CARRY_NODE) {
        *(entry->previous ? &carry.entries[entry->previous].next : &carry.first) = entry->next;
        *(entry->next ? &carry.entries[entry->next].previous : &carry.last) = entry->previous;
        carry.count--;
    }
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

void gm_carry_show(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    uint32_t *first = bucket(entry->role, entry->key);
    entry->chain = *first;
    entry->found = true;
    *first = number;
}

void gm_carry_hide(uint32_t number)
{
    struct gm_carried *entry = &carry.entries[number];
    if (!entry->found)
        return;
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
