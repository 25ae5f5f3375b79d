/* Figures that one layer finds, a model keeps and an output prints, as they are. Sizes are bytes. */
#ifndef GPUMEM_REPORT_BASE_FACTS_H
#define GPUMEM_REPORT_BASE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a process ended, as far as its trace tells. */
struct gm_ended {
    int exit_code; /* -1: not told, or a signal ended it */
    int signal;    /* 0: none is told */
    bool is_bare;  /* it exited without its destructors, by the bare system call */
};

/* The device failed for good (gm_status_is_fatal), as its answers tell; status 0: it did not. */
struct gm_device_failure {
    uint32_t status; /* CUresult of the first call that told it */
    uint64_t time;   /* of that call, record clock */
    uint64_t frees;  /* refused with such an error */
};

/* The address space of one device between its lowest and its highest live allocation of kind
 * `device`. What the driver holds beyond them is not known. */
struct gm_holes {
    uint64_t allocations;
    uint64_t live;    /* bytes */
    uint64_t span;    /* bytes from the lowest to the highest */
    uint64_t count;   /* holes */
    uint64_t free;    /* bytes in all holes */
    uint64_t largest; /* bytes */
};

/* 1 - largest hole / free, in thousandths: 0 when all free bytes are in one hole. */
unsigned gm_holes_fragmentation(const struct gm_holes *holes);

/* Whether the holes could have held so many bytes, had they been one. */
bool gm_holes_refuse(const struct gm_holes *holes, uint64_t bytes);

/* A block of a framework's pool. */
struct gm_pool_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested; /* bytes; 0: not told */
    uint64_t time;      /* of birth, record clock */
    uint64_t birth;     /* how many blocks had been allocated before it */
    uint32_t stack;
    uint32_t place; /* for whoever notes what becomes of blocks, who may set it when one begins */
    uint16_t api;
    int8_t device;
    bool alive;
};

/* PyTorch keeps blocks of at most 1 MiB apart, in segments of 2 MiB. */
#define GM_SMALL_BLOCK ((uint64_t)1 << 20)
#define GM_SMALL_SEGMENT ((uint64_t)2 << 20)

enum gm_segment_pool { GM_SEGMENTS_SMALL, GM_SEGMENTS_LARGE, GM_SEGMENT_POOLS };

#define GM_SEGMENT_PINS 2 /* the largest blocks of a segment */
#define GM_LINE_STACKS 16 /* those with most bytes of a line */

struct gm_segment {
    uint64_t address;
    uint64_t size;
    uint64_t free;
    uint64_t largest_hole;
    uint64_t
        returnable; /* bytes that empty_cache() would give back: whole pieces without a block */
    uint64_t blocks;
    uint64_t count; /* segments like this one: equal sizes, blocks of the same stacks */
    bool expandable;
    enum gm_segment_pool pool;
    struct gm_pool_block pins[GM_SEGMENT_PINS]; /* its largest blocks; not alive: no more */
};

struct gm_segment_sums {
    uint64_t count;
    uint64_t size;
    uint64_t free;
    uint64_t largest_hole;
    uint64_t empty;      /* segments without a block */
    uint64_t returnable; /* bytes */
    uint64_t blocks;
};

/* Both pools together. */
struct gm_segment_sums gm_segments_all(const struct gm_segment_sums sums[GM_SEGMENT_POOLS]);

/* What of the pool could have served the request by its size. */
struct gm_pool_reason {
    bool is_known; /* what of the pool was free; else the rest is 0 */
    uint64_t free;
    uint64_t largest_hole;
    uint64_t outside; /* bytes of the device that nobody used, as far as is known; 0: not known */
    bool
        fragmentation; /* enough was free, but in smaller holes: in the pool alone, or half of it in
                           the pool and the rest outside */
};

#define GM_APPLICATION "application" /* the name of what is of no library */

/* What a library held. */
struct gm_library_share {
    const char *name;
    uint64_t bytes;
};

/* The libraries that held memory on a device, all kinds but external: at its peak, at the end, and
 * when it last ran out of memory. */
enum gm_library_moment { GM_AT_PEAK, GM_AT_END, GM_AT_FAILURE, GM_LIBRARY_MOMENTS };

struct gm_library_line {
    const char *name;
    const char *pool;
    struct {
        uint64_t bytes;
        uint64_t count;
    } at[GM_LIBRARY_MOMENTS];
};

/* Of marks that are judged for growth: analysis/growth.h. */
enum {
    GM_GROWTH_WARM_UP = 2,                                 /* the first ones do not count, */
    GM_GROWTH_PARTS = 4,                                   /* the others are cut into parts; */
    GM_GROWTH_MARKS = GM_GROWTH_WARM_UP + GM_GROWTH_PARTS, /* fewer are not judged */
};

#define GM_PHASE_DEPTH 64 /* of ranges in each other; deeper ones are passed over */

/* One place over all times of a phase. */
struct gm_phase_memory {
    uint64_t peak;          /* bytes live at most while it was open */
    int64_t growth;         /* bytes live at its end beyond those at its start, summed */
    int64_t largest_growth; /* of a single time */
    uint64_t first;         /* bytes live when it was first opened */
    uint64_t last;          /* when it was last closed */
    uint64_t allocs;
    uint64_t frees;
    uint64_t allocated; /* bytes */
};

#endif
