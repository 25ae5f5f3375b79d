/* A trace as it lies on the disk: the header, the tables and where each lane's records are.
 * trace_open.h fills it.
 *
 * Guarantees: whatever the file holds, every reference is checked against what is there.
 */
#ifndef GPUMEM_REPORT_TRACE_TRACE_FILE_H
#define GPUMEM_REPORT_TRACE_TRACE_FILE_H

#include "base/clock.h"
#include "base/facts.h"
#include "base/names.h"
#include "base/text.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where one block stands, and what its header promises. */
struct gm_block_place {
    const struct gm_block *block; /* its stored bytes follow, all inside the file */
    uint64_t first_sequence;      /* of it: sorting by it shall not touch the file */
    bool bad;                     /* found damaged when it was decoded */
};

/* The records of one lane: blocks in the order of their sequence, then what the ring holds. */
struct gm_lane_source {
    struct gm_block_place *blocks;
    size_t block_count;
    size_t block_capacity;
    const struct gm_record *ring; /* record n stands at ring[(n - ring_origin) & ring_mask] */
    uint64_t ring_origin;
    uint64_t ring_mask;
    uint64_t ring_first; /* records [ring_first, ring_end) of the ring may be read */
    uint64_t ring_end;
    uint64_t first;         /* what comes before is in the checkpoint of a flight trace */
    struct gm_record *copy; /* of a ring that is still written to; or NULL */
};

/* One of the tables that grow by extents: entry n stands in extent n / per extent. */
struct gm_table_part {
    const unsigned char *bytes; /* NULL: this extent is missing */
    size_t size;
};

struct gm_table {
    struct gm_table_part *parts;
    size_t count;
    size_t capacity;
};

struct gm_same_stacks;
struct gm_redaction;

struct gm_trace {
    char *path;
    const unsigned char *bytes;
    size_t size;
    bool mapped; /* from a file: unmap `bytes` at the end */
    size_t read; /* of the mapped bytes, since they were last let go */
    bool owned;  /* made in memory: the same */
    struct gm_trace_header header;
    struct gm_clock_scale clock;
    enum gm_ending ending;
    struct gm_device_failure failed; /* as gm_analyse finds it */
    uint64_t
        until; /* record clock: of a running process nothing younger is read; else UINT64_MAX */
    uint64_t as_of_ns; /* that moment, since the start of the trace; 0: the process does not run */
    bool truncated;    /* the file is shorter than its header says */
    bool sealed;       /* the checksums of its end are there, and cover what is not written once */
    bool over_limit;   /* it asks for more than a trace of its size may: see limit.h */
    uint64_t damaged;  /* extents and blocks that could not be read */
    uint64_t checked;  /* offset: extents before it were found intact, and are not checked again */
    struct gm_table nodes, strings, modules, frames;
    struct gm_text names;
    struct gm_text environment;
    const struct gm_why_ring *why; /* of a debug build; else NULL */
    char *api_text;
    const char **api_names; /* into `api_text`, each terminated and clean */
    size_t api_count;
    struct gm_lane_source *lanes;
    size_t lane_count;
    /* Of a flight trace: see flight_area.h. */
    bool has_area;
    const struct gm_checkpoint *checkpoint; /* that the history begins with; NULL if it is whole */
    struct gm_block_place *carried;         /* the records of that checkpoint */
    size_t carried_count;
    size_t carried_capacity;
    unsigned char *area; /* copy of an area that is still written to; or NULL */
    struct gm_same_stacks *same_stacks;
    struct gm_redaction
        *redaction; /* what may not be shown: stacks/redact.h; NULL: nothing is hidden */
};

/* Entries of the tables; NULL (or the empty text) for what is not there. */
const struct gm_node *gm_trace_node(const struct gm_trace *trace, uint32_t id);
const struct gm_module *gm_trace_module(const struct gm_trace *trace, uint32_t number);
const struct gm_script_frame *gm_trace_script_frame(const struct gm_trace *trace, uint64_t index);
struct gm_text gm_trace_string(const struct gm_trace *trace, uint64_t reference);

/* Name of an API function by its number in the records; "" if unknown. */
const char *gm_trace_api(const struct gm_trace *trace, uint16_t api);

/* Whether that function takes memory from a pool of the driver's: cudaMallocAsync and its kind. */
bool gm_trace_api_is_pooled(const struct gm_trace *trace, uint16_t api);

/* A text field of the header. */
struct gm_text gm_trace_field(const char *field, size_t size);

/* ---- for those who look for what is in the file (trace_open.c, flight_area.c) ---------------- */

/* `bytes` more of the file were read once. From time to time the process lets its pages go, which the kernel
 * keeps as long as it likes: so a trace needs no memory of its own size. */
void gm_trace_let_go(struct gm_trace *trace, size_t bytes);

/* Whether an extent that lies whole in the file is as it was written. */
bool gm_trace_extent_is_intact(const struct gm_extent *extent);

/* Whether the bytes that an extent does not use, or any bytes, are zero. */
bool gm_trace_rest_is_zero(const struct gm_extent *extent);
bool gm_trace_is_zero(const unsigned char *bytes, size_t size);

/* Whether the head of a block of `size` bytes is sound. */
bool gm_trace_block_is_sound(const struct gm_block *block, size_t size);

/* Notes a block of `size` bytes; false if it is damaged. */
bool gm_trace_add_block(struct gm_trace *trace, const unsigned char *bytes, size_t size);

/* The lane of a number below GM_LANES_MAX, made if it is new. */
struct gm_lane_source *gm_trace_lane(struct gm_trace *trace, uint32_t number);

/* How a process ended, as far as its trace tells: gpumem/trace.h, enum gm_status. */
struct gm_ended gm_ended_of(const struct gm_trace_header *header);

#endif
