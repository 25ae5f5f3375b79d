/* A replica of PyTorch's native caching allocator: the same requests in the same order get the same places.
 *
 * Written from its documented and observable behaviour; docs/what-if.md has the rules. It allocates nothing: memory
 * of the device is numbers.
 *
 * Work: logarithmic in the free blocks for each call, except where the allocator itself looks at all.
 */
#ifndef GPUMEM_REPORT_REPLICA_ALLOCATOR_H
#define GPUMEM_REPORT_REPLICA_ALLOCATOR_H

#include "base/map.h"
#include "replay/replica/settings.h"

/* Where the device's memory comes from. */
struct gm_allocator_device {
    /* The address of a new segment, or of the address space of an expandable one, of `size` bytes. */
    uint64_t (*reserve)(void *argument, uint64_t size, bool expandable);
    /* What the allocator did: a segment or a part of an expandable one came (`arrived`) or went. May be NULL. */
    void (*moved)(void *argument, uint64_t address, uint64_t size, bool arrived);
    void *argument;
};

struct gm_replica_block {
    uint64_t address, size; /* bytes */
    uint64_t stream;
    uint64_t origin; /* where its segment begins, or the address space of an expandable one */
    uint32_t before, behind; /* its neighbours in the segment; 0: none */
    uint32_t left, right;    /* in the tree that it is in */
    uint32_t priority;
    uint32_t pool;
    uint32_t age; /* of its segment: later ones have more; 0 if that does not matter */
    uint32_t gc_base;
    bool allocated;
    bool waiting; /* given back, but another stream uses it */
    bool mapped;
    bool expandable;
    bool exists;
};

struct gm_replica_pool {
    uint64_t private_pool; /* 0: the common one */
    bool small;
    uint32_t free, unmapped; /* roots of trees */
    uint32_t searches;
    bool is_dropped; /* a private one, by the program */
};

struct gm_allocator {
    struct gm_allocator_settings settings;
    struct gm_allocator_device device;
    uint64_t capacity; /* bytes that the device has for this allocator; 0: without limit */
    uint32_t refusals; /* so many more times it has none, whatever it has */
    uint64_t total;    /* bytes of the device, for per_process_memory_fraction and address space */

    uint64_t reserved, reserved_peak; /* bytes */
    uint64_t device_allocations, device_frees;
    uint64_t retries;

    struct gm_replica_block *blocks; /* [0] is none */
    size_t block_capacity;
    uint32_t block_count, unused; /* list of unused blocks, by `right` */
    struct gm_replica_pool *pools;
    size_t pool_count, pool_capacity;
    struct gm_map pool_numbers;
    uint32_t *waiting; /* in the order of giving back */
    size_t waiting_count, waiting_capacity;
    uint64_t random;
    uint32_t segments;   /* ever */
    bool has_split_last; /* the latest block that was given was cut from a larger one */
};

void gm_allocator_begin(struct gm_allocator *allocator,
                        const struct gm_allocator_settings *settings,
                        const struct gm_allocator_device *device);
void gm_allocator_end(struct gm_allocator *allocator);

/* Whether its parts agree with one another: links, sizes, sums, trees. Of checked builds (base/assert.h). */
bool gm_allocator_is_valid(const struct gm_allocator *allocator);

/* Whether the program has set itself a limit that is known. */
bool gm_allocator_has_limit(const struct gm_allocator *allocator);

/* A request. Returns the block, 0 if it is refused. */
uint32_t gm_allocator_malloc(struct gm_allocator *allocator, uint64_t requested, uint64_t stream,
                             uint64_t private_pool);

/* Whether a free block would serve a request, so that the device is not asked. */
bool gm_allocator_would_find(struct gm_allocator *allocator, uint64_t requested, uint64_t stream,
                             uint64_t private_pool);

/* A block is given back, and can be used again at once. */
void gm_allocator_free(struct gm_allocator *allocator, uint32_t block);

/* It is given back, but other streams use it: gm_allocator_free follows, unless the allocator waits for them itself.
 * False is_waiting: it did. */
void gm_allocator_wait(struct gm_allocator *allocator, uint32_t block);

/* What of a pool gm_allocator_empty_cache or gm_allocator_drop_pool would give back, in its order, if no block waited: a
 * list that the caller frees. */
struct gm_replica_range {
    uint64_t address, size; /* bytes */
};
struct gm_replica_range *gm_allocator_cached(struct gm_allocator *allocator, uint64_t private_pool,
                                             size_t *count);

/* torch.cuda.empty_cache(). A private pool keeps its segments until the program drops it; then they go, too. */
void gm_allocator_empty_cache(struct gm_allocator *allocator);
void gm_allocator_drop_pool(struct gm_allocator *allocator, uint64_t private_pool);

/* The program has dropped it: its segments go when the cache is emptied next, for whatever reason, unless it is asked for
 * a block before. */
void gm_allocator_may_drop_pool(struct gm_allocator *allocator, uint64_t private_pool);

/* ---- to follow a recording ------------------------------------------------------------------- */

/* A segment that is there, all of it free. */
uint32_t gm_allocator_add_segment(struct gm_allocator *allocator, uint64_t address, uint64_t size,
                                  uint64_t stream, uint64_t private_pool, bool small,
                                  bool expandable);

/* Takes [address, address + size) out of a free block; returns the block, 0 if it is not free. `block` is free and
 * holds it, or is 0: then it is looked for among all. */
uint32_t gm_allocator_place(struct gm_allocator *allocator, uint32_t block, uint64_t address,
                            uint64_t size);

/* Gives a free segment back to the device, or a part of an expandable one; false if it is not free. */
bool gm_allocator_release(struct gm_allocator *allocator, uint64_t address, uint64_t size);

/* The size of the block that a request of so many bytes takes at least. */
uint64_t gm_allocator_round(const struct gm_allocator_settings *settings, uint64_t requested);

/* ---- an ordered set of blocks (tree.c) ----------------------------------------------------------- */

struct gm_tree_key {
    uint64_t stream, size;
    uint32_t age;
    uint64_t address;
    uint32_t number; /* of the block: a recording that makes no sense can have two at one address */
};

/* By what a block is ordered, and whether it stands before a key. */
struct gm_tree_key gm_tree_key_of(const struct gm_replica_block *blocks, uint32_t number);
bool gm_tree_is_below(const struct gm_replica_block *blocks, uint32_t number,
                      struct gm_tree_key key);

void gm_tree_insert(struct gm_replica_block *blocks, uint32_t *root, uint32_t number);
void gm_tree_erase(struct gm_replica_block *blocks, uint32_t *root, uint32_t number);

/* The first one that is not below the key, the last one below it; 0: none. */
uint32_t gm_tree_from(const struct gm_replica_block *blocks, uint32_t root, struct gm_tree_key key);
uint32_t gm_tree_below(const struct gm_replica_block *blocks, uint32_t root,
                       struct gm_tree_key key);

/* Neighbours in the order. */
uint32_t gm_tree_first(const struct gm_replica_block *blocks, uint32_t root);
uint32_t gm_tree_next(const struct gm_replica_block *blocks, uint32_t root, uint32_t number);
uint32_t gm_tree_before(const struct gm_replica_block *blocks, uint32_t root, uint32_t number);

#endif
