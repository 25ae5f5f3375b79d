/* See trace_open.h. */
#include "input/trace/trace_open.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/process_alive.h"
#include "input/trace/flight_area.h"
#include "input/trace/same_stacks.h"
#include <errno.h>
#include <fcntl.h>
#include <gpumem/checksum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- header ---------------------------------------------------------------------------------- */

static bool refuse_trace(char *error, size_t size, const char *why)
{
    snprintf(error, size, "%s", why);
    return false;
}

/* The header as it is now; `error` says why it cannot be used. */
static bool read_header(struct gm_trace *trace, char *error, size_t size)
{
    struct gm_trace_header *header = &trace->header;
    if (trace->size == 0)
        return refuse_trace(error, size, "the file is empty");
    if (trace->size < sizeof(header->magic) ||
        memcmp(trace->bytes, GM_TRACE_MAGIC, sizeof(header->magic)) != 0)
        return refuse_trace(error, size, "this is not a gpumem trace");
    if (trace->size < GM_TRACE_PAGE)
        return refuse_trace(error, size, "the trace is cut inside its header");
    memcpy(header, trace->bytes, sizeof(*header));
    if (header->endian != GM_TRACE_ENDIAN)
        return refuse_trace(error, size, "the trace is damaged: no byte order in its header");
    if (header->major != GM_TRACE_MAJOR) {
        snprintf(error, size, "the trace has format version %u.%u, this gpumem reads version %d",
                 header->major, header->minor, GM_TRACE_MAJOR);
        return false;
    }
    if (header->header_size != GM_TRACE_PAGE || header->record_size != sizeof(struct gm_record) ||
        header->node_size != sizeof(struct gm_node) ||
        header->module_size != sizeof(struct gm_module) ||
        header->frame_size != sizeof(struct gm_script_frame))
        return refuse_trace(error, size, "the trace is damaged: impossible sizes in its header");
    return true;
}

/* ---- extents --------------------------------------------------------------------------------- */

static void add_part(struct gm_table *table, uint32_t index, uint32_t index_limit,
                     const unsigned char *bytes, size_t size, uint64_t *damaged)
{
    if (index >= index_limit || (index < table->count && table->parts[index].bytes)) {
        ++*damaged;
        return;
    }
    GM_RESERVE(table->parts, table->capacity, (size_t)index + 1);
    while (table->count <= index)
        table->parts[table->count++] = (struct gm_table_part){0};
    table->parts[index] = (struct gm_table_part){bytes, size};
}

/* Of a ring that the end of the file cuts, only the first `present` slots are there: keeps the
 * latest run of records in them. */
static void leave_out_missing(struct gm_lane_source *source, uint64_t present)
{
    uint64_t slot = (source->ring_end - 1) & source->ring_mask;
    uint64_t missing = slot >= present ? slot - present + 1 : 0;
    if (source->ring_end - source->ring_first <= missing || present == 0) {
        source->ring_first = source->ring_end;
        return;
    }
    source->ring_end -= missing;
    uint64_t run = slot - missing + 1; /* records from slot 0 on */
    if (source->ring_end - source->ring_first > run)
        source->ring_first = source->ring_end - run;
}

/* Whether a later ring of the same lane goes on where the one that is noted was left. */
static bool lane_goes_on(const struct gm_lane_source *source, uint64_t capacity, uint64_t tail,
                         uint64_t head)
{
    const struct gm_lane *former = (const struct gm_lane *)source->ring - 1;
    return capacity > source->ring_mask + 1 && tail >= former->tail && head >= former->head;
}

/* Notes the ring of a lane, the last one of several. `size`: bytes of the extent that are in the
 * file. */
static bool add_ring(struct gm_trace *trace, uint32_t number, const unsigned char *bytes,
                     size_t size)
{
    if (number >= GM_LANES_MAX || size < sizeof(struct gm_lane))
        return false;
    const struct gm_lane *lane = (const struct gm_lane *)bytes;
    uint64_t capacity = lane->capacity;
    uint64_t head = __atomic_load_n(&lane->head, __ATOMIC_ACQUIRE);
    uint64_t tail = __atomic_load_n(&lane->tail, __ATOMIC_ACQUIRE);
    size_t present = (size - sizeof(*lane)) / sizeof(struct gm_record);
    struct gm_lane_source *source = gm_trace_lane(trace, number);
    if (source->copy)
        return true; /* copied before */
    if (source->ring && !lane_goes_on(source, capacity, tail, head))
        return false;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0 || head < tail ||
        head - tail > capacity || (capacity > present && !trace->truncated))
        return false;
    source->ring = (const struct gm_record *)(lane + 1);
    source->ring_mask = capacity - 1;
    source->ring_first = tail;
    source->ring_end = head;
    if (capacity > present)
        leave_out_missing(source, present);
    return true;
}

static uint32_t parts_of(uint32_t entries, uint32_t per_extent)
{
    return entries / per_extent + 1;
}

/* Whether an extent was found intact before. */
static bool was_checked(const struct gm_trace *trace, const struct gm_extent *extent)
{
    return (const unsigned char *)extent < trace->bytes + trace->checked;
}

static void add_extent(struct gm_trace *trace, const struct gm_extent *extent, size_t present,
                       bool alive)
{
    const unsigned char *payload = (const unsigned char *)(extent + 1);
    size_t size = present - sizeof(*extent), used = extent->used;
    uint64_t *damaged = &trace->damaged;
    *damaged +=
        present == extent->length && !was_checked(trace, extent) && !gm_trace_rest_is_zero(extent);
    switch (extent->type) {
    case GM_EXTENT_LANE:
        *damaged += !add_ring(trace, extent->index, payload, size);
        break;
    case GM_EXTENT_BLOCK:
        *damaged += !gm_trace_add_block(trace, payload, used);
        break;
    case GM_EXTENT_NODES:
        add_part(&trace->nodes, extent->index, parts_of(GM_NODES_MAX, GM_NODES_PER_EXTENT), payload,
                 size, damaged);
        break;
    case GM_EXTENT_STRINGS:
        add_part(&trace->strings, extent->index, parts_of(GM_STRINGS_MAX, GM_STRINGS_PER_EXTENT),
                 payload, size, damaged);
        break;
    case GM_EXTENT_MODULES:
        add_part(&trace->modules, extent->index, parts_of(GM_MODULES_MAX, GM_MODULES_PER_EXTENT),
                 payload, size, damaged);
        break;
    case GM_EXTENT_FRAMES:
        add_part(&trace->frames, extent->index, parts_of(GM_FRAMES_MAX, GM_FRAMES_PER_EXTENT),
                 payload, size, damaged);
        break;
    case GM_EXTENT_FLIGHT:
        gm_flight_scan(trace, payload, size, alive);
        break;
    case GM_EXTENT_NAMES:
        trace->names = (struct gm_text){(const char *)payload, used};
        break;
    case GM_EXTENT_ENVIRONMENT:
        trace->environment = (struct gm_text){(const char *)payload, used};
        break;
    case GM_EXTENT_WHY:
        if (size >= sizeof(*trace->why))
            trace->why = (const struct gm_why_ring *)payload;
        else
            *damaged += present == extent->length;
        break;
    default: /* padding, and what newer writers add */
        break;
    }
}

/* The extent at `offset`, or NULL if there is none. */
static const struct gm_extent *extent_at(const struct gm_trace *trace, size_t offset, size_t limit)
{
    const struct gm_extent *extent = (const struct gm_extent *)(trace->bytes + offset);
    if (extent->magic != GM_EXTENT_MAGIC || extent->length < sizeof(*extent) ||
        extent->length % GM_EXTENT_ALIGN != 0 ||
        (extent->length > limit - offset && !trace->truncated) ||
        extent->used > limit - offset - sizeof(*extent) ||
        extent->used > extent->length - sizeof(*extent) ||
        (!was_checked(trace, extent) && !gm_trace_extent_is_intact(extent)))
        return NULL;
    return extent;
}

/* ---- the seal -------------------------------------------------------------------------------- */

static bool lane_is_sealed(const struct gm_extent *extent)
{
    const struct gm_lane *lane = (const struct gm_lane *)(extent + 1);
    const unsigned char *slots = (const unsigned char *)(lane + 1);
    size_t size = (size_t)extent->length - sizeof(*extent);
    if (size < sizeof(*lane) ||
        lane->capacity > (size - sizeof(*lane)) / sizeof(struct gm_record) ||
        gm_lane_seal(lane, gm_lane_parts(lane)) != extent->seal)
        return false;
    size_t used = (size_t)gm_lane_slots(lane) * sizeof(struct gm_record);
    return gm_trace_is_zero(slots + used, size - sizeof(*lane) - used);
}

/* Whether the extent, which lies whole in the file, is as it was at the end of the process. */
static bool is_as_sealed(const struct gm_extent *extent)
{
    switch (extent->type) {
    case GM_EXTENT_LANE:
        return lane_is_sealed(extent);
    case GM_EXTENT_NODES:
    case GM_EXTENT_STRINGS:
    case GM_EXTENT_MODULES:
    case GM_EXTENT_FRAMES:
        return gm_table_seal(extent) == extent->seal;
    case GM_EXTENT_FLIGHT:
        return gm_flight_is_sealed(extent);
    default:
        return true;
    }
}

/* Rules that the header of any writer keeps, also of one that was killed. */
static bool header_is_sound(const struct gm_trace_header *header)
{
    return gm_header_checksum(header) == header->checksum && header->end <= GM_END_EXEC &&
           header->clock_latest_index <= 1 && header->node_count <= GM_NODES_MAX &&
           header->module_count <= GM_MODULES_MAX && header->frame_count <= GM_FRAMES_MAX &&
           header->string_bytes <= GM_STRINGS_MAX && header->lane_count <= GM_LANES_MAX;
}

/* Finds all extents. Where one is damaged, the next is looked for at every place it could be.
 * `alive`: the file is still written to. */
static void scan_lanes(struct gm_trace *trace, bool alive)
{
    uint64_t end = trace->header.file_end;
    bool sound_end = end >= GM_TRACE_PAGE && end % GM_EXTENT_ALIGN == 0;
    trace->truncated = sound_end && end > trace->size;
    trace->sealed = trace->header.seal == gm_header_seal(trace->bytes);
    trace->damaged += !sound_end || !header_is_sound(&trace->header) ||
                      (trace->header.seal != 0 && !trace->sealed);
    uint64_t changed = 0; /* since the trace was sealed */
    size_t limit = sound_end && end < trace->size ? (size_t)end : trace->size;
    bool lost = false; /* inside something damaged, which is counted once */
    for (size_t offset = GM_TRACE_PAGE; offset + sizeof(struct gm_extent) <= limit;) {
        const struct gm_extent *extent = extent_at(trace, offset, limit);
        if (!extent) {
            trace->damaged += !lost;
            lost = true;
            offset += GM_EXTENT_ALIGN;
            continue;
        }
        lost = false;
        size_t left = limit - offset;
        size_t present = extent->length < left ? (size_t)extent->length : left;
        uint64_t damaged = trace->damaged;
        add_extent(trace, extent, present, alive);
        changed += trace->sealed && present == extent->length && trace->damaged == damaged &&
                   !is_as_sealed(extent);
        offset += present;
        gm_trace_let_go(trace, present);
        if (offset > trace->checked && present == extent->length && trace->damaged == 0)
            trace->checked = offset;
    }
    /* A process that is ending may break its seal while we look. */
    const struct gm_trace_header *now = (const struct gm_trace_header *)trace->bytes;
    trace->sealed =
        trace->sealed && __atomic_load_n(&now->seal, __ATOMIC_ACQUIRE) == trace->header.seal;
    trace->damaged += trace->sealed ? changed : 0;
}

static int by_sequence(const void *left, const void *right)
{
    const struct gm_block_place *a = left, *b = right;
    if (a->first_sequence != b->first_sequence)
        return a->first_sequence < b->first_sequence ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Cuts a copy of the NAMES extent into names, and cleans them: they are printed as they are. */
static void index_names(struct gm_trace *trace)
{
    size_t size = trace->names.size, capacity = 0;
    char *at = trace->api_text = gm_allocate(size + 1, 1);
    memcpy(at, trace->names.bytes, size);
    for (char *end = at + size, *stop; at < end && trace->api_count <= UINT16_MAX; at = stop + 1) {
        stop = memchr(at, 0, (size_t)(end - at));
        if (!stop)
            break;
        gm_clean_text(at);
        GM_APPEND(trace->api_names, capacity, trace->api_count, at);
    }
}

static void finish_trace(struct gm_trace *trace)
{
    gm_limits_begin(trace->size);
    if (!trace->owned)
        trace->header.flags &= ~(uint32_t)GM_HEADER_SNAPSHOT; /* no file has it */
    for (size_t lane = 0; lane < trace->lane_count; lane++) {
        struct gm_lane_source *source = &trace->lanes[lane];
        if (source->block_count)
            qsort(source->blocks, source->block_count, sizeof(*source->blocks), by_sequence);
    }
    index_names(trace);
    if (!trace->clock.ticks) /* no scale up to now is known */
        trace->clock = gm_clock_scale(&trace->header);
}

/* ---- a file that is still written to --------------------------------------------------------- */

/* Copies what a ring holds now. Slots that the writer may have come around to are left out: they
 * stand in a block by then. */
static void copy_ring(struct gm_lane_source *source)
{
    uint64_t count = source->ring_end - source->ring_first;
    struct gm_record *copy = gm_allocate(count, sizeof(*copy));
    for (uint64_t n = 0; n < count; n++)
        copy[n] = source->ring[(source->ring_first + n) & source->ring_mask];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const struct gm_lane *lane = (const struct gm_lane *)source->ring - 1;
    uint64_t head = __atomic_load_n(&lane->head, __ATOMIC_ACQUIRE);
    uint64_t capacity = source->ring_mask + 1;
    uint64_t oldest = head + 1 > capacity ? head + 1 - capacity : 0;
    uint64_t tail = __atomic_load_n(&lane->tail, __ATOMIC_ACQUIRE);
    if (oldest > tail)
        oldest = tail; /* the ring is full, and its owner waits: not packed is not overwritten */
    source->ring = source->copy = copy;
    source->ring_origin = source->ring_first;
    source->ring_mask = UINT64_MAX;
    if (oldest > source->ring_first)
        source->ring_first = oldest < source->ring_end ? oldest : source->ring_end;
}

/* Forgets all that a scan found but the copied rings. */
static void forget_scan(struct gm_trace *trace)
{
    struct gm_table *tables[] = {&trace->nodes, &trace->strings, &trace->modules, &trace->frames};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        tables[i]->count = 0;
    for (size_t lane = 0; lane < trace->lane_count; lane++) {
        trace->lanes[lane].block_count = 0;
        trace->lanes[lane].first = 0;
        if (!trace->lanes[lane].copy)
            trace->lanes[lane].ring = NULL;
    }
    trace->damaged = 0;
    trace->why = NULL;
    trace->has_area = false;
    trace->checkpoint = NULL;
    trace->carried_count = 0;
}

static bool map_file(struct gm_trace *trace, int descriptor, char *error, size_t size)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return refuse_trace(error, size, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse_trace(error, size, "this is not a file");
    if (trace->mapped)
        munmap((void *)(uintptr_t)trace->bytes, trace->size);
    trace->size = (size_t)status.st_size;
    trace->mapped = false;
    if (trace->size == 0)
        return true;
    void *bytes = mmap(NULL, trace->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return refuse_trace(error, size, strerror(errno));
    trace->bytes = bytes;
    trace->mapped = true;
    return true;
}

/* The file and its header. The writer lengthens the file before the header tells of it: a header that is
 * ahead of the size that was asked for is no sign of a cut, and the file is mapped again. */
static bool read_start(struct gm_trace *trace, int descriptor, char *error, size_t size)
{
    if (!map_file(trace, descriptor, error, size) || !read_header(trace, error, size))
        return false;
    return trace->header.file_end <= trace->size || map_file(trace, descriptor, error, size);
}

/* The second look at the file of a living process, after its rings were copied. */
static bool look_again(struct gm_trace *trace, int descriptor, char *error, size_t size)
{
    for (size_t lane = 0; lane < trace->lane_count; lane++)
        if (trace->lanes[lane].ring)
            copy_ring(&trace->lanes[lane]);
    forget_scan(trace);
    if (!read_start(trace, descriptor, error, size))
        return false;
    scan_lanes(trace, true);
    for (size_t lane = 0; lane < trace->lane_count; lane++) {
        struct gm_lane_source *source = &trace->lanes[lane];
        if (!source->copy) { /* it appeared since: it belongs to a later moment */
            free(source->blocks);
            *source = (struct gm_lane_source){0};
        }
    }
    return true;
}

/* ---- open and close -------------------------------------------------------------------------- */

static struct gm_trace *new_trace(const char *path)
{
    struct gm_trace *trace = gm_allocate(1, sizeof(*trace));
    trace->path = gm_copy_text(path);
    trace->bytes = (const unsigned char *)"";
    trace->until = UINT64_MAX;
    trace->names.bytes = trace->environment.bytes = "";
    trace->same_stacks = gm_same_stacks_new(trace);
    return trace;
}

static void wait_for_neighbours(void)
{
    struct timespec time = {0, (long)GM_TRACE_BEHIND_NS};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

/* `moment`: up to which a running process is read. A flight recorder may have folded what came later
 * already; then its checkpoint is the moment. */
static void read_until(struct gm_trace *trace, const struct gm_clock_pair *moment)
{
    trace->until = gm_clock_record_time(&trace->header, moment);
    if (trace->checkpoint && trace->checkpoint->time > trace->until)
        trace->until = trace->checkpoint->time;
    struct gm_clock_pair now = gm_clock_now();
    trace->clock = gm_clock_scale_until(&trace->header, &now);
    trace->as_of_ns = gm_clock_elapsed(&trace->clock, trace->until);
}

/* The moment GM_TRACE_BEHIND_NS before. */
static struct gm_clock_pair moment_before(const struct gm_trace_header *header,
                                          struct gm_clock_pair now)
{
    struct gm_clock_scale scale = gm_clock_scale_until(header, &now);
    double ticks = (double)GM_TRACE_BEHIND_NS * (double)scale.ticks / (double)scale.nanoseconds;
    now.ticks = (double)now.ticks > ticks ? now.ticks - (uint64_t)ticks : 0;
    now.monotonic_ns =
        now.monotonic_ns > GM_TRACE_BEHIND_NS ? now.monotonic_ns - GM_TRACE_BEHIND_NS : 0;
    return now;
}

static bool is_alive(const struct gm_trace *trace)
{
    return trace->header.end == GM_END_NONE && gm_process_alive(&trace->header);
}

/* How a file is opened. */
struct way {
    bool waits;                    /* until all is there that a running process had done */
    const struct gm_trace *before; /* an earlier look at the file; NULL */
};

/* Reads the file as it is. False with a line in `error`, or without one if the process ended
 * meanwhile: then the file is worth another, quiet look. */
/* Who ended by the bare system call, as far as anybody saw, has committed all it did. */
static enum gm_ending ending_of_header(const struct gm_trace_header *header)
{
    return header->end != GM_END_NONE || gm_status_is_bare_exit(header->status) ? GM_ENDING_NORMAL
                                                                                : GM_ENDING_CUT;
}

static bool read_trace_file(struct gm_trace *trace, int descriptor, const struct way *way,
                            char *error, size_t size)
{
    if (!read_start(trace, descriptor, error, size))
        return false;
    if (way->before && way->before->header.checksum == trace->header.checksum)
        trace->checked = way->before->checked;
    struct gm_clock_pair moment = gm_clock_now();
    bool alive = is_alive(trace);
    if (alive && way->waits) {
        wait_for_neighbours();
        if (!read_start(trace, descriptor, error, size))
            return false;
        alive = is_alive(trace);
    }
    if (!alive && !read_header(trace, error, size)) /* the end may be marked since */
        return false;
    scan_lanes(trace, alive);
    trace->ending = ending_of_header(&trace->header);
    if (!alive)
        return true;
    trace->ending = GM_ENDING_RUNNING;
    if (!look_again(trace, descriptor, error, size) || !is_alive(trace))
        return false;
    if (!way->waits)
        moment = moment_before(&trace->header, moment);
    read_until(trace, &moment);
    return true;
}

static struct gm_trace *open_file(const char *path, struct way way, char *error, size_t error_size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    if (descriptor < 0) {
        refuse_trace(error, error_size, strerror(errno));
        return NULL;
    }
    struct gm_trace *trace;
    bool good;
    do {
        error[0] = 0;
        trace = new_trace(path);
        good = read_trace_file(trace, descriptor, &way, error, error_size);
        if (!good)
            gm_trace_close(trace);
    } while (!good && !error[0]);
    close(descriptor);
    if (!good)
        return NULL;
    finish_trace(trace);
    return trace;
}

struct gm_trace *gm_trace_open(const char *path, char *error, size_t error_size)
{
    return open_file(path, (struct way){.waits = true}, error, error_size);
}

struct gm_trace *gm_trace_open_at_once(const char *path, const struct gm_trace *before, char *error,
                                       size_t error_size)
{
    return open_file(path, (struct way){.before = before}, error, error_size);
}

static struct gm_trace *open_bytes(const char *path, const void *bytes, size_t size, bool owned,
                                   char *error, size_t error_size)
{
    struct gm_trace *trace = new_trace(path);
    trace->bytes = bytes;
    trace->size = size;
    trace->owned = owned;
    if (!read_header(trace, error, error_size)) {
        gm_trace_close(trace);
        return NULL;
    }
    scan_lanes(trace, false);
    trace->ending = ending_of_header(&trace->header);
    if (trace->header.flags & GM_HEADER_SNAPSHOT)
        trace->ending = GM_ENDING_RUNNING;
    finish_trace(trace);
    return trace;
}

struct gm_trace *gm_trace_open_memory(const void *bytes, size_t size, char *error,
                                      size_t error_size)
{
    return open_bytes("memory", bytes, size, false, error, error_size);
}

struct gm_trace *gm_trace_open_made(const char *path, void *bytes, size_t size, char *error,
                                    size_t error_size)
{
    return open_bytes(path, bytes, size, true, error, error_size);
}

void gm_trace_close(struct gm_trace *trace)
{
    if (!trace)
        return;
    if (trace->mapped || trace->owned)
        munmap((void *)(uintptr_t)trace->bytes, trace->size);
    for (size_t lane = 0; lane < trace->lane_count; lane++) {
        free(trace->lanes[lane].blocks);
        free(trace->lanes[lane].copy);
    }
    free(trace->lanes);
    free(trace->carried);
    free(trace->area);
    free(trace->nodes.parts);
    free(trace->strings.parts);
    free(trace->modules.parts);
    free(trace->frames.parts);
    free(trace->api_names);
    free(trace->api_text);
    gm_same_stacks_free(trace->same_stacks);
    free(trace->path);
    free(trace);
}
