/* The states that a model has met, with the number of schedules from each to its end. A state has
 * no padding: all its bytes are compared, by a hash of 64 bits. */
#ifndef GM_TESTS_MET_H
#define GM_TESTS_MET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct met {
    uint64_t key; /* 0: free */
    double schedules;
};

static struct met *met_table;
static size_t met_size, met_used;

static uint64_t met_key(const void *state, size_t size)
{
    const unsigned char *bytes = state;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

static void met_grow(void)
{
    struct met *old = met_table;
    size_t old_size = met_size;
    met_size = old_size ? old_size * 2 : 1u << 16;
    met_table = calloc(met_size, sizeof(*met_table));
    if (!met_table)
        abort();
    for (size_t i = 0; i < old_size; i++) {
        size_t at = (size_t)old[i].key & (met_size - 1);
        while (met_table[at].key)
            at = (at + 1) & (met_size - 1);
        if (old[i].key)
            met_table[at] = old[i];
    }
    free(old);
}

/* The slot of the state, or the slot that an immediate met_add would use. */
static struct met *met_place(uint64_t key)
{
    if (met_used * 2 >= met_size)
        met_grow();
    size_t at = (size_t)key & (met_size - 1);
    while (met_table[at].key && met_table[at].key != key)
        at = (at + 1) & (met_size - 1);
    return &met_table[at];
}

static void met_add(uint64_t key)
{
    *met_place(key) = (struct met){.key = key};
    met_used++;
}

static void met_forget(void)
{
    free(met_table);
    met_table = NULL;
    met_size = met_used = 0;
}

#endif
