/* A trace as it lies on the disk: the header, the tables and where each lane's records are.
 *
 * Guarantees: whatever the file holds, every reference is checked against what is there, and what
 * cannot be read is skipped and counted. A file that is still being written is read as of one
 * moment: rings are copied before the tables and blocks they refer to are looked up. Relies on the
 * file not shrinking while it is open (main.c turns the signal of that into a clear ending).
 */
#ifndef GPUMEM_REPORT_TRACE_TRACE_FILE_H
#define GPUMEM_REPORT_TRACE_TRACE_FILE_H

#include "base/clock.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a trace: untrusted, not terminated. */
struct gm_text {
    const char *bytes; /* never NULL */
    size_t size;
};

/* Where one block stands, and what its header promises. */
struct gm_block_place {
    const struct gm_block *block; /* its stored bytes follow, all inside the file */
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

/* How far the process had come when the trace was read. */
enum gm_ending {
    GM_ENDING_NORMAL,  /* the end is marked */
    GM_ENDING_RUNNING, /* no mark; the process lives */
    GM_ENDING_CUT,     /* no mark; the process is gone: killed or crashed */
};

struct gm_trace {
    char *path;
    const unsigned char *bytes;
    size_t size;
    bool mapped; /* unmap `bytes` at the end */
    struct gm_trace_header header;
    struct gm_clock_scale clock;
    enum gm_ending ending;
    bool truncated;   /* the file is shorter than its header says */
    bool sealed;      /* the checksums of its end are there, and cover what is not written once */
    bool over_limit;  /* it asks for more than a trace of its size may: see limit.h */
    uint64_t damaged; /* extents and blocks that could not be read */
    struct gm_table nodes, strings, modules, frames;
    struct gm_text names;
    struct gm_text environment;
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
};

/* Opens a trace. On failure returns NULL and writes one line about it (without the path) to
 * `error`. */
struct gm_trace *gm_trace_open(const char *path, char *error, size_t error_size);

/* The same for a trace in memory, which must outlive it and be aligned to 64 bytes. */
struct gm_trace *gm_trace_open_memory(const void *bytes, size_t size, char *error,
                                      size_t error_size);

void gm_trace_close(struct gm_trace *trace);

/* Entries of the tables; NULL (or the empty text) for what is not there. */
const struct gm_node *gm_trace_node(const struct gm_trace *trace, uint32_t id);
const struct gm_module *gm_trace_module(const struct gm_trace *trace, uint32_t number);
const struct gm_script_frame *gm_trace_script_frame(const struct gm_trace *trace, uint64_t index);
struct gm_text gm_trace_string(const struct gm_trace *trace, uint64_t reference);

/* Name of an API function by its number in the records; "" if unknown. */
const char *gm_trace_api(const struct gm_trace *trace, uint16_t api);

/* Whether that function takes memory from a pool of the driver's: cudaMallocAsync and its kind. */
bool gm_trace_api_is_pooled(const struct gm_trace *trace, uint16_t api);

/* For flight_area.c: whether an extent that lies whole in the file is as it was written; whether what it
 * does not use is zero; notes a block of `size` bytes, false if it is damaged; whether its head is
 * sound; the lane of a number below GM_LANES_MAX. */
bool gm_trace_extent_is_intact(const struct gm_extent *extent);
bool gm_trace_rest_is_zero(const struct gm_extent *extent);
bool gm_trace_is_zero(const unsigned char *bytes, size_t size);
bool gm_trace_add_block(struct gm_trace *trace, const unsigned char *bytes, size_t size);
bool gm_trace_block_is_sound(const struct gm_block *block, size_t size);
struct gm_lane_source *gm_trace_lane(struct gm_trace *trace, uint32_t number);

/* A text field of the header. */
struct gm_text gm_trace_field(const char *field, size_t size);

#endif
