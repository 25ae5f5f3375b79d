/* What a report knows: read-only, complete, built once. Every output prints a model and asks nothing
 * else, neither the trace nor the symbolizer.
 *
 * A model has the stacks and places of all its runs, and for each run (the trace of one process) the
 * facts, the moments with who held memory then, failures, findings, phases and totals. A model of a
 * trace has one run. gm_model_merge (merge.h) unites models, gm_model_subtract (diff/subtract.h) gives
 * their difference: both are models again, so bytes and counts that can differ are signed.
 *
 * Times are nanoseconds since the start of the run. Sizes are bytes. A `const char *` is clean: valid
 * UTF-8 without control characters. A `struct gm_text` is as the trace has it: hostile.
 */
#ifndef GPUMEM_REPORT_MODEL_MODEL_H
#define GPUMEM_REPORT_MODEL_MODEL_H

#include "base/curve.h"
#include "base/facts.h"
#include "base/frame.h"
#include "base/map.h"
#include "base/names.h"
#include "base/text.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sum as models have it: what is beyond all bounds is the bound. */
static inline int64_t gm_amount(uint64_t value)
{
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* ---- who held memory ------------------------------------------------------------------------- */

/* Where memory comes from, and what it is. Each stands in a model once. */
struct gm_model_place {
    uint32_t stack;      /* number; see gm_model_stack */
    const char *api;     /* the function of CUDA or of a framework; "" unknown */
    const char *library; /* whose memory it is */
    const char *pool;    /* the library in whose cache it lies; NULL: in none */
    uint8_t kind;        /* enum gm_kind */
    int8_t device;       /* -1: of the host, or unknown */
    uint8_t leak_class;  /* enum gm_leak_class, at the end of a run; else 0 */
    bool is_block;       /* of a framework's pool: it lies in memory of other places */
    uint32_t unlike;     /* of a leak: as of a finding; nothing was left of that; else GM_NONE */
};

struct gm_model_sample {
    uint32_t place;
    int64_t bytes;
    int64_t count; /* allocations */
};

enum gm_model_moment_kind {
    GM_MODEL_PEAK,         /* of a device */
    GM_MODEL_PINNED_PEAK,  /* of pinned memory */
    GM_MODEL_FAILURE,      /* a request was refused on a device */
    GM_MODEL_END,          /* of the run: what was left, by class */
    GM_MODEL_POOL_PEAK,    /* of a framework's pool on a device */
    GM_MODEL_POOL_LAST,    /* just after the last use of all pools */
    GM_MODEL_POOL_FAILURE, /* the pool had nothing to give */
    GM_MODEL_POOL_END,     /* blocks that were never freed */
};

/* A segment of a pool, and the places of its largest blocks. */
struct gm_model_segment {
    struct gm_segment segment;
    uint32_t pins[GM_SEGMENT_PINS]; /* places; of pins that are alive */
};

/* What one line of the application held of a pool. */
struct gm_model_line {
    uint32_t stack; /* with most bytes; its telling frame names the line */
    struct {
        uint32_t stack; /* GM_NONE: there are no more */
        uint64_t bytes;
    } stacks[GM_LINE_STACKS]; /* with most bytes first: of different operations */
    uint64_t bytes;
    uint64_t count; /* blocks */
};

/* A pool at a moment. */
/* What blocks are for: category.h. */
struct gm_model_category {
    uint64_t bytes;
    uint64_t count; /* of blocks; 0 for what is reserved and in none */
};

struct gm_model_pool_state {
    bool is_known; /* else only the totals: what lived then was overwritten */
    uint64_t allocated;
    uint64_t reserved;
    uint64_t in_use;   /* as XLA counts: blocks, rounding, and what is no array; 0: not told */
    uint64_t rounding; /* of these */
    struct gm_segment_sums sums[GM_SEGMENT_POOLS];
    struct gm_model_category categories[GM_CATEGORIES]; /* together: reserved bytes */
    struct gm_model_segment *segments;                  /* with most free space first */
    size_t segment_count;
    struct gm_model_line *lines; /* with most bytes first */
    size_t line_count;
};

struct gm_model_moment {
    enum gm_model_moment_kind kind;
    int device; /* -1: unknown, or of none */
    uint64_t time_ns;
    int64_t bytes;                   /* of all samples */
    struct gm_model_sample *samples; /* most bytes first */
    struct gm_model_sample *before;  /* of a difference: what the base had, sample by sample */
    size_t sample_count;
    size_t unchanged; /* of a difference: behind these samples stand so many that are the same */
    struct gm_holes holes;            /* of PEAK and FAILURE */
    struct gm_model_pool_state *pool; /* of POOL_...; NULL of POOL_END and of all others */
};

/* ---- totals ---------------------------------------------------------------------------------- */

struct gm_model_tally {
    int64_t live;
    int64_t peak;
    uint64_t peak_time_ns;
    int64_t allocs;
    int64_t frees;
    int64_t implicit_frees;
};

/* What the process used on a device beyond what was tracked there: analysis.h, struct gm_residual. */
struct gm_model_residual {
    uint64_t time_ns;
    uint64_t used;
    uint64_t tracked;
    uint64_t bytes;
    bool estimated;
};

/* What all processes used of a device when that was most, by its samples: analysis.h, struct gm_device_use. */
struct gm_model_use {
    uint64_t time_ns;
    uint64_t bytes;
    uint64_t own;
};

struct gm_model_device {
    int id;         /* -1: unknown */
    bool is_listed; /* memory was allocated there, or it was sampled; else only its size is known */
    struct gm_text name;
    uint64_t total; /* of the device; 0 unknown */
    bool seen;
    struct gm_model_tally all; /* of all kinds but external; the calls are not counted */
    struct gm_model_tally kinds[GM_KIND_EXTERNAL + 1];
    uint64_t samples;
    uint64_t used_by_process; /* largest sample */
    struct gm_model_use fullest;
    uint64_t residuals; /* samples that tell of this process */
    struct gm_model_residual largest;
    struct gm_model_residual last;
    struct gm_holes holes_at_end;
    struct gm_library_line *libraries; /* most at the peak first */
    size_t library_count;
    uint64_t library_bytes[GM_LIBRARY_MOMENTS];
    bool has_failed; /* an allocation, for lack of memory: libraries tell of that moment */
    uint32_t peak;   /* number of the moment; GM_NONE */
    const struct gm_curve
        *curve; /* bytes of all kinds but external, over ns since the start, or of a
                                     simulated run over changes; NULL: none. A copy of the run has none */
};

/* The most that all processes together are known to have used of the device, bytes; -1: no sample tells. What this one had
 * allocated is exact, and samples can miss it. */
static inline int64_t gm_model_peak_of_all(const struct gm_model_device *device)
{
    int64_t all = gm_amount(device->fullest.bytes);
    return !all ? -1 : device->all.peak > all ? device->all.peak : all;
}

/* ---- failures, pools ------------------------------------------------------------------------- */

/* A request that was refused: analysis.h, struct gm_failure. */
struct gm_model_failure {
    uint32_t place;
    uint32_t moment; /* GM_NONE: not known */
    uint64_t time_ns;
    uint64_t size;
    uint64_t first;
    uint64_t count;
    uint64_t used;
    uint32_t status;
    uint8_t
        purpose; /* enum gm_purpose: then it has no size, and nobody knows how much was needed */
    bool out_of_memory;
    bool is_of_pool; /* a pool asked, and gave up: told with pool_failures */
    bool survived;   /* the program went on: docs/accounting.md */
    int device;      /* that was asked; -1: unknown */
    enum gm_fragmentation fragmentation;
};

/* The most that XLA's pool had in use: blocks.h. */
struct gm_model_in_use_peak {
    uint64_t bytes; /* 0: not told; then the rest means nothing */
    uint64_t arrays;
    uint64_t temporaries;      /* 0: not told */
    struct gm_text executable; /* its program's name; empty: not told */
    uint64_t time_ns;
    uint32_t place;
    bool is_compiling;
};

/* What XLA told the program when that asked, as gm_model_pool_state: blocks.h. */
struct gm_model_in_use_told {
    uint64_t time_ns;
    uint64_t in_use;
    uint64_t allocated;
    uint64_t rounding;
};

struct gm_model_pool {
    const char *owner; /* the framework, as people call it */
    int device;
    int64_t allocs;
    int64_t frees;
    int64_t live;
    int64_t peak;
    uint64_t peak_time_ns;
    bool is_requested_known; /* recordings do not tell what was asked for, snapshots do */
    int64_t requested_peak;  /* bytes */
    int64_t reserved;
    int64_t reserved_peak;
    uint64_t reserved_peak_time_ns;
    struct gm_model_in_use_peak in_use_peak;
    struct gm_model_in_use_told *told; /* in the order of time */
    size_t told_count;
    int64_t out_of_memory;
    /* Bytes in blocks of each category at one time, where GM_NEEDS_PURPOSES asks; of the cache, which
     * is no blocks, 0. */
    int64_t category_peaks[GM_CATEGORIES];
    const struct gm_curve *curve; /* bytes in blocks, bytes reserved; NULL: none */
    const struct gm_curve *drawn; /* the same for people: of a simulated run over its allocations */
    uint64_t curve_start_ns;
    uint64_t bucket_ns;
    uint32_t at_peak; /* numbers of moments; GM_NONE: there never was a block */
    uint32_t last;
    uint32_t at_end;
};

/* A time that a pool gave up: pool_failures.h. */
struct gm_model_pool_failure {
    uint32_t place;
    uint32_t moment;
    int device;
    uint64_t size;
    uint64_t first;
    uint64_t count;
    uint64_t tracked;
    uint64_t residual;
    uint64_t elsewhere;
    uint64_t limit;
    bool survived;
    bool succeeded;
    struct gm_pool_reason reason;
    struct gm_library_share libraries[4]; /* with most bytes just then */
    size_t library_count;
};

/* ---- over time ------------------------------------------------------------------------------- */

struct gm_model_phase_memory {
    enum gm_phase_where where;
    int device;
    struct gm_phase_memory sums;
};

/* phases.h, struct gm_phase. */
struct gm_model_phase {
    bool is_interval;
    bool has_name; /* else it ends with the run */
    bool has_from; /* else it begins with the run; or it is the program's */
    uint32_t parent;
    struct gm_text name;
    struct gm_text from;
    uint64_t count;
    uint64_t unfinished;
    uint64_t time_ns;
    struct gm_model_phase_memory *memory; /* what was touched */
    size_t memory_count;
};

/* A place that grew from mark to mark: growth.h. */
struct gm_model_growing {
    uint32_t place;
    enum gm_moment_kind series;
    struct gm_text name;
    uint64_t marks;
    uint64_t over;
    uint64_t bytes[GM_GROWTH_PARTS + 1];
};

static inline uint64_t gm_model_growth(const struct gm_model_growing *growing)
{
    return growing->bytes[GM_GROWTH_PARTS] - growing->bytes[0];
}

/* A place and how long its allocations lived: lifetimes.h. */
struct gm_model_lifetime {
    uint32_t place;
    bool temporary;
    int64_t allocs;
    int64_t allocated;
    int64_t short_lived;
    int64_t short_bytes;
    int64_t live_count;
    int64_t live;
    int64_t peak;
    int64_t allocs_before; /* of a difference: what the base had */
    int64_t allocated_before;
};

/* Copies and fills, of all or of one place: transfers.h, struct gm_transfer. */
struct gm_model_transfer {
    uint32_t stack; /* GM_NONE: of all */
    const char *api;
    unsigned direction;
    int64_t bytes;
    int64_t count;
    int64_t call_ns;
    int64_t tiny;
    int64_t pageable_bytes;
    int64_t pageable_count;
    int64_t unknown; /* calls that read from a simulated device what only kernels write */
};

struct gm_model_context {
    uint32_t stack;
    const char *api;
    int device;
    bool primary;
    uint64_t time_ns;
};

struct gm_model_finding {
    enum gm_finding_code code;
    enum gm_severity severity;
    int device;     /* -1: of none, or of more than one */
    uint32_t stack; /* GM_NONE: no place */
    uint32_t
        unlike; /* a stack that reads the same in the user's innermost frame, and is not meant */
    const char *api;
    uint64_t bytes;
    uint64_t bytes_per_round; /* by which it grows; 0: it does not, or no rounds are told */
    bool is_unbounded;        /* it is shown that nothing bounds its growth */
    const char *cause;
    const char *remedy;   /* NULL */
    const char *evidence; /* NULL */
};

/* ---- a run ----------------------------------------------------------------------------------- */

/* Allocations that are alive, and their bytes. */
struct gm_model_living {
    int64_t bytes;
    int64_t count;
};

/* What the run amounts to: verdict/verdict.h. */
struct gm_model_verdict {
    enum gm_verdict_state state;
    struct gm_model_living on_devices;
    struct gm_model_living on_host;
    struct gm_model_living leaked;
};

/* What is not seen or not understood: verdict/completeness.h. */
struct gm_model_gap {
    const char *code;
    bool loss;
    uint64_t count;
    const char *text;
};

/* What the recorder counted: analysis/recorder_counters.h. */
struct gm_model_counter {
    const char *name; /* NULL: none of ours */
    uint64_t value;
};

struct gm_model_newer_abi {
    struct gm_text name;
    unsigned form;
    unsigned cuda_version;
};

/* The place of a process in its job, by its environment: gpumem/ranks.h. */
struct gm_model_rank {
    int64_t rank;       /* -1: not told */
    int64_t local_rank; /* on its host */
    int64_t world_size;
};

struct gm_model_run {
    /* who and what */
    const char *path;      /* as it was given; not clean */
    const char *base_path; /* of what was subtracted; NULL: nothing was */
    struct gm_text run_id, host_name, executable, tool_version, python;
    struct gm_text command_line; /* arguments, each with a NUL behind it but perhaps the last */
    uint32_t pid;
    uint32_t pid_namespace; /* in which `pid` is; 0: not told */
    uint32_t generation;    /* of the process's traces, from 0 */
    struct gm_model_rank rank;
    struct gm_text job;         /* its name; empty: not told */
    uint64_t start_realtime_ns; /* since 1970 */
    uint64_t duration_ns;
    uint64_t events;
    struct gm_text *settings_not_understood; /* NAME=VALUE */
    size_t setting_count;
    const char *allocator_variable; /* of PyTorch's allocator; NULL: not set */
    struct gm_text allocator_settings;

    /* how far it can be trusted */
    enum gm_ending ending;
    uint64_t as_of_ns;     /* of a process that runs: all is as it was then; 0: it does not run */
    struct gm_ended ended; /* with what code, or by which signal */
    struct {
        uint32_t status; /* CUresult; 0: it did not */
        uint64_t time_ns;
        uint64_t frees;
    } device_failed;       /* trace_file.h, struct gm_device_failure */
    bool was_asked_to_end; /* by SIGTERM, as workers of a pool are */
    bool is_recorded;      /* else the trace says why it was not, and no more */
    bool complete, truncated, simulated, bypassed, flight;
    uint64_t damaged, lost;
    struct gm_model_gap *gaps;
    size_t gap_count;
    struct gm_model_verdict verdict;
    bool went_on; /* every refusal was survived */
    bool is_overwritten;
    uint64_t overwritten_until_ns;
    struct {
        uint64_t events, allocs, frees, implicit_frees, failed, copies, copied;
    } overwritten;
    struct gm_model_counter recorder[GM_COUNTERS];
    struct gm_model_newer_abi *newer_abi;
    size_t newer_abi_count;

    /* totals */
    int64_t failed, rejected, refused_by_runtime; /* allocations */
    int64_t unknown_frees, lost_frees, malformed, not_understood;
    int64_t reserved_addresses_peak, graph_launches, marks;
    struct gm_model_device *devices; /* by id */
    size_t device_count;
    uint64_t device_changes;              /* births and deaths of which their curves tell */
    struct gm_model_tally host[GM_KINDS]; /* of the host kinds */
    int64_t leaked[GM_LEAK_CLASSES];      /* bytes */
    int64_t leaked_count[GM_LEAK_CLASSES];

    /* at moments */
    struct gm_model_moment *moments;
    size_t moment_count;
    uint32_t pinned_peak; /* GM_NONE: nothing was pinned */
    uint32_t end;
    struct gm_model_failure *failures; /* latest last */
    size_t failure_count;
    bool has_blocks;             /* of a framework are on record */
    struct gm_model_pool *pools; /* by device */
    size_t pool_count;
    struct gm_model_pool_failure *pool_failures; /* latest last */
    size_t pool_failure_count;

    /* over time */
    struct gm_model_phase *phases; /* one around another comes before it */
    size_t phase_count;
    uint32_t *phase_order; /* highest peak first */
    uint64_t phases_not_kept;
    struct gm_model_growing *growing; /* most growth first */
    size_t growing_count;
    uint64_t
        series_marks; /* of the longest series of marks: fewer than GM_GROWTH_MARKS judge no growth */
    uint64_t most_allocs;                /* of one stack: what a run without marks has of rounds */
    struct gm_model_lifetime *lifetimes; /* most short-lived allocations first */
    size_t lifetime_count;
    size_t lifetimes_unchanged;           /* of a difference: so many more stand behind them */
    struct gm_model_transfer *directions; /* that occurred */
    size_t direction_count;
    struct gm_model_transfer *transfers; /* by place, most bytes first */
    size_t transfer_count;
    struct gm_model_context *contexts;
    size_t context_count;
    struct gm_model_finding *findings; /* most severe first */
    size_t finding_count;
};

/* ---- the model ------------------------------------------------------------------------------- */

/* What of a model an output needs; what it does not need is empty. Runs, totals and what was left at
 * the end are always there. */
enum gm_model_needs {
    GM_NEEDS_FINDINGS = 1u << 0,
    GM_NEEDS_MOMENTS = 1u << 1, /* of peaks and failures; pools */
    GM_NEEDS_HISTORY = 1u << 2, /* phases, lifetimes of the temporary places, transfers, contexts */
    GM_NEEDS_LIFETIMES = 1u << 3, /* of all places */
    GM_NEEDS_ALL = (1u << 4) - 1,
    GM_NEEDS_PURPOSES = 1u << 4, /* the peaks of categories: one more pass over the trace */
};

struct gm_model {
    struct gm_model_run *runs;
    size_t run_count;
    const struct gm_model_place *places;
    size_t place_count;
    bool is_difference;             /* bytes and counts can be negative */
    struct gm_model_tables *tables; /* of the model's own: tables.h */
};

struct gm_analysis;
struct gm_stacks;

/* The model of a trace. The analysis and what names its stacks must outlive it. `needs`: of
 * enum gm_model_needs. */
struct gm_model *gm_model_of(const struct gm_analysis *analysis, struct gm_stacks *stacks,
                             unsigned needs);
void gm_model_free(struct gm_model *model);

/* Whether its parts agree with one another: numbers, sums, orders. Of checked builds (base/assert.h). */
bool gm_model_is_valid(const struct gm_model *model);

/* The stack with that number: each is named when it is asked for first. */
const struct gm_stack *gm_model_stack(const struct gm_model *model, uint32_t number);

/* The number that a stack has in outputs: stacks whose frames read the same have the same one. */
uint32_t gm_model_same_stack(const struct gm_model *model, uint32_t number);

/* The frame that a finding, or a place, names; NULL: it has none. It is the one of its stack that tells most. Of native
 * code that many use (a class that owns a buffer) it is the innermost frame of the user's in which the stack differs
 * from one that is not meant. */
const struct gm_frame *gm_model_place_frame(const struct gm_model *model,
                                            const struct gm_model_place *place);
const struct gm_frame *gm_model_finding_frame(const struct gm_model *model,
                                              const struct gm_model_finding *finding);

/* Of Python the line itself is named; here is who reached it, if others that do are not meant; NULL otherwise. */
const struct gm_frame *gm_model_finding_by(const struct gm_model *model,
                                           const struct gm_model_finding *finding);

/* The frames of a stack, innermost first, as numbers below gm_model_frame_count: equal frames of all
 * stacks have one number. */
const uint32_t *gm_model_frames(const struct gm_model *model, uint32_t stack);
const struct gm_frame *gm_model_frame(const struct gm_model *model, uint32_t frame);
size_t gm_model_frame_count(const struct gm_model *model); /* of the stacks asked for so far */

/* ---- ids --------------------------------------------------------------------------------------- */

/* What tells one cause at one place from others, also in recordings of the program as it was before or will be: a hash
 * of the code, of the kind of memory, and for each frame of the function and the name of the module or of the Python
 * file. No line, address or folder is in it, so that it stays the same while the program is edited and built
 * elsewhere. `stack`: GM_NONE: of none. */
uint64_t gm_model_fingerprint(const struct gm_model *model, uint32_t stack, const char *code,
                              const char *kind);

/* The id of a stack: stacks that read the same have the same one. It is made of a fingerprint, and, where several
 * stacks of the model differ in lines alone, of their order: models that are to agree have GM_NEEDS_ALL. */
uint64_t gm_model_site_id(const struct gm_model *model, uint32_t stack);

/* The id of a finding of a run: its fingerprint, if it is the first that has it. */
uint64_t gm_model_finding_id(const struct gm_model *model, const struct gm_model_run *run,
                             const struct gm_model_finding *finding);

/* The number of the first stack of a model that reads as this one of another, lines and all; GM_NONE: there is none. */
uint32_t gm_model_find_stack(const struct gm_model *model, const struct gm_stack *stack);

/* The number of the first stack with that id, GM_NONE if there is none; and the number of a run's finding. */
uint32_t gm_model_stack_of_id(const struct gm_model *model, uint32_t id);
uint32_t gm_model_finding_of_id(const struct gm_model *model, const struct gm_model_run *run,
                                uint32_t id);

/* An id as all outputs have it: the first half of its 16 digits. Returns `text`. */
#define GM_ID_TEXT 9
const char *gm_id_text(uint64_t id, char text[GM_ID_TEXT]);
#define ID(value) gm_id_text((value), (char[GM_ID_TEXT]){0})

/* Reads the 8 digits, or the 16 of a fingerprint, of which it takes the first half; false for anything else. */
bool gm_id_parse(const char *text, uint32_t *id);

/* The device of an ordinal, NULL if nothing is known of it. */
const struct gm_model_device *gm_model_device(const struct gm_model_run *run, int id);

/* The pool on a device that has blocks at its peak; NULL: there is none. */
const struct gm_model_pool *gm_model_pool(const struct gm_model_run *run, int device);

/* The moment of a number; NULL for GM_NONE. */
const struct gm_model_moment *gm_model_moment(const struct gm_model_run *run, uint32_t number);

/* ---- a part of a run that a reader asks for ---------------------------------------------------- */

/* The allocations of one thread, or those made in one phase (scope.h). All NULL: everything. */
struct gm_scope_request {
    const char *thread; /* its number or name: see struct gm_scope_thread */
    const char *phase;  /* name of a range or a mark */
};

static inline bool gm_scope_is_set(const struct gm_scope_request *request)
{
    return request->thread || request->phase;
}

/* A thread that recorded: the number of its lane, from 0 in the order in which threads recorded first, or what the
 * trace says. A thread that came after another had ended may have that one's lane, and then its number. */
struct gm_scope_thread {
    uint64_t number;
    struct gm_text name; /* empty: not on record */
};

#define GM_SCOPE_THREADS 64u /* listed; further ones are not */

/* The threads that recorded, of a model of one trace. NULL if there is no trace behind it. */
struct gm_scope_thread *gm_model_threads(const struct gm_model *model, size_t *count);

/* ---- events ---------------------------------------------------------------------------------- */

/* An allocation that comes or goes, or a block of a pool; or the program says where it is. */
struct gm_model_event {
    enum {
        GM_MODEL_BEGINS,
        GM_MODEL_ENDS,
        GM_MODEL_GOES_ON, /* its free failed */
        GM_MODEL_MARK,    /* a mark, or a range opens: it has but a name, a number and a time */
        GM_MODEL_CLOSES,  /* the range of that number */
    } what;
    bool implicit;  /* it ended with its context */
    bool is_mapped; /* of a begin: the address is where it is mapped */
    bool in_scope;  /* of a begin: it is what was asked for */
    bool is_range;  /* of a mark: it has an end */
    uint32_t
        life; /* number of the allocation or block: from 0, in the order in which they begin; marks have
                      numbers of their own */
    uint32_t place;
    uint64_t time_ns;
    uint64_t address; /* or a handle */
    uint64_t size;
    uint64_t requested; /* of a block: what was asked for; 0: not told */
    struct gm_text name;
};

struct gm_model_events_request {
    const struct gm_scope_request
        *scope; /* what the reader asks for, the others are visited, too; NULL: all */
    bool
        moves; /* memory of the VMM, which has a handle and no address, stands where it is mapped as
                   a whole: it ends at its handle and begins there */
};

/* Replays the trace of a model of one trace, in the order of time. False if there is no trace behind
 * the model. `request`: NULL: all, without moves. */
bool gm_model_events(const struct gm_model *model, const struct gm_model_events_request *request,
                     void (*visit)(void *argument, const struct gm_model_event *event),
                     void *argument);

/* ---- what could have been reserved ----------------------------------------------------------- */

/* PyTorch's allocator on the device where it reserved most, by a replica of it (replica/), in bytes. */
struct gm_model_reserved {
    int device;
    uint64_t recorded;      /* reserved at most */
    const char *setting;    /* the least risky of those that help */
    uint64_t under_setting; /* reserved at most under it */
    bool is_refused;        /* it refuses a request */
    uint64_t best_packing;  /* the best packing found with knowledge of the future */
    uint64_t live;          /* in use at most */
};

/* Of a model of one trace: some replays. False if there is no such allocator in it, or nothing can be said. */
bool gm_model_reserved(const struct gm_model *model, struct gm_model_reserved *reserved);

#endif
