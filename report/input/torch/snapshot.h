/* A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot, or a pickled memory_snapshot()) as arrays, and
 * what it implies: the state at the beginning of its history, found by going backward from its end.
 *
 * Keys that are missing are what they were before PyTorch had them. Guarantee, whatever the pickle holds: memory and
 * work grow with the size of the file.
 */
#ifndef GPUMEM_REPORT_TORCH_SNAPSHOT_H
#define GPUMEM_REPORT_TORCH_SNAPSHOT_H

#include "input/torch/image.h"
#include "input/torch/pickle.h"

enum gm_torch_action {
    GM_TORCH_OTHER, /* changes no memory */
    GM_TORCH_ALLOC,
    GM_TORCH_FREE_REQUESTED,
    GM_TORCH_FREE_COMPLETED,
    GM_TORCH_SEGMENT_ALLOC,
    GM_TORCH_SEGMENT_FREE,
    GM_TORCH_SEGMENT_MAP, /* of an expandable segment */
    GM_TORCH_SEGMENT_UNMAP,
    GM_TORCH_OOM,
};

struct gm_torch_event {
    uint64_t address;
    uint64_t size; /* bytes; of blocks those asked for */
    uint64_t stream;
    uint64_t pool;    /* of a graph or a MemPool; 0: the common one */
    uint64_t time_ns; /* since 1970; never falls from one event to the next */
    union {
        uint64_t block_size;  /* of an allocation that is alive at the end, bytes; 0: not known */
        uint64_t device_free; /* of OOM: bytes that the device had left; 0: not told */
    };
    uint32_t stack;    /* a node of the snapshot's image; 0: none */
    uint32_t metadata; /* the user's own text, as a node; 0: none */
    uint8_t action;    /* enum gm_torch_action */
    bool gives_back;   /* the program gave the block back with this event */
    bool synthetic;    /* the allocator's own: no request of the program */
    bool has_pool;     /* it tells of which pool it is */
};

struct gm_torch_segment {
    uint64_t address, size; /* bytes */
    uint64_t stream, pool;
    uint32_t stack;
    bool small;
    bool expandable;
};

struct gm_torch_block {
    uint64_t address;
    uint64_t size;      /* bytes; 0: not known, of a block that was freed in the history */
    uint64_t requested; /* bytes */
    uint64_t stream, pool;
    uint32_t stack;
    bool allocated; /* else given back, but still in use by another stream */
};

/* One device, or pinned memory. */
struct gm_torch_device {
    int device; /* -1: of the host */
    struct gm_torch_segment *segments, *first_segments;
    size_t segment_count, first_segment_count;    /* at the end, at the beginning */
    struct gm_torch_block *blocks, *first_blocks; /* in use */
    size_t block_count, first_block_count;
    struct gm_torch_event *events;
    size_t event_count;
    uint64_t contradictions; /* events that the state at the end excludes */
    bool has_pools;          /* its events tell the pool, as they do from PyTorch 2.15 on */
    size_t segment_capacity, first_segment_capacity, block_capacity, first_block_capacity,
        event_capacity; /* 0 of events: they are the snapshot's */
};

struct gm_torch_snapshot {
    struct gm_pickle *pickle;
    struct gm_image image;         /* the stacks; later the trace */
    struct gm_torch_event *events; /* in the order of the file; devices have them, or copies */
    size_t event_count, event_capacity;
    const struct gm_value *settings; /* of the allocator, a dict; NULL */
    const struct gm_items *annotations;
    struct gm_torch_device *devices; /* by ordinal, the host last */
    size_t device_count;
    size_t device_capacity;
    uint64_t not_understood; /* devices and entries that make no sense */
};

/* Reads a snapshot, which its source must outlive. NULL with a line in `error`. */
struct gm_torch_snapshot *gm_torch_snapshot_read(const struct gm_pickle_source *source, char *error,
                                                 size_t error_size);
/* Frees what nobody asks for once the settings and annotations were looked at. */
void gm_torch_forget_pickle(struct gm_torch_snapshot *snapshot);
void gm_torch_snapshot_free(struct gm_torch_snapshot *snapshot);

/* Fills in first_segments, first_blocks and contradictions of a device, and of its events gives_back and
 * block_size. */
void gm_torch_rewind(struct gm_torch_device *device);

#endif
