/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace format: the one contract between libgpumem.so, which writes it, and gpumem, which reads
 * it. docs/trace-format.md explains it; if the two disagree, this header is right.
 *
 * A trace is one file: a header page, then extents. The recorder writes it through a shared
 * mapping, and it is readable at every instant, whatever happens to the writer:
 *   - everything below header.file_end is made of complete extents;
 *   - a lane (one thread's ring) is valid from `tail` to `head`: a thread fills a record before it
 *     moves `head`;
 *   - a block is complete before `file_end` passes it, and a lane's `tail` moves only after that:
 *     a record is in the ring, in a block, or in both, and (lane, sequence) identifies it;
 *   - a stack node, a string and a module are complete before any record refers to them.
 * All integers are little endian. A reader must treat the file as hostile: check every bound.
 */
#ifndef GPUMEM_TRACE_H
#define GPUMEM_TRACE_H

#include <stdint.h>

#define GM_TRACE_MAGIC "GPUMEM\x1a\n" /* 8 bytes, no terminator */
#define GM_TRACE_MAJOR 3              /* readers refuse another major */
#define GM_TRACE_MINOR 4              /* readers accept older minors; a newer minor only adds */
#define GM_TRACE_ENDIAN 0x01020304u
#define GM_TRACE_PAGE 4096u         /* header size and alignment of mapped extents, bytes */
#define GM_EXTENT_ALIGN 64u         /* alignment of all extents, bytes */
#define GM_EXTENT_MAGIC 0x58454d47u /* "GMEX" */

/* ---- header ---------------------------------------------------------------------------------- */

enum gm_clock {
    GM_CLOCK_MONOTONIC = 1, /* times are CLOCK_MONOTONIC nanoseconds */
    GM_CLOCK_TICKS = 2,     /* times are CPU ticks; convert with the clock pairs */
};

/* Units of the record clock by which the times of two processors may disagree: more than a kernel
 * allows before it distrusts the counter. */
#define GM_CLOCK_SKEW 2048u

/* One moment on both clocks, and on the wall clock. */
struct gm_clock_pair {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns; /* since 1970 */
};

enum gm_end {
    GM_END_NONE = 0,            /* still running, or not marked: see `status` */
    GM_END_EXIT = 1,            /* exit() or return from main */
    GM_END_UNDERSCORE_EXIT = 2, /* _exit, _Exit, quick_exit */
    GM_END_EXEC = 3,            /* the process image was replaced */
};

enum gm_header_flag {
    GM_HEADER_SIMULATED = 1u << 0,     /* the driver was the simulator */
    GM_HEADER_NATIVE_STACKS = 1u << 1, /* native stacks were recorded */
    GM_HEADER_PYTHON_STACKS = 1u << 2, /* Python frames were recorded */
    GM_HEADER_DROP_ON_FULL = 1u << 3,  /* GPUMEM_ON_FULL=drop */
    GM_HEADER_FLIGHT = 1u << 4,        /* GPUMEM_MODE=flight */
    GM_HEADER_BYPASSED = 1u << 5,  /* at its end the process had the driver loaded, but the recorder
                                      had seen no call */
    GM_HEADER_ELSEWHERE = 1u << 6, /* written on another file system than the requested one
                                      (asked_file_system), which does not store in place */
    GM_HEADER_NOT_RECORDED = 1u << 7, /* nothing was recorded, because there was no other file
                                         system: the file is never mapped, and the end of the
                                         process is unknown */
    GM_HEADER_SNAPSHOT = 1u << 8, /* no recording: made from a memory snapshot of PyTorch, of which
                                     it tells the pools, up to the moment of the snapshot. Never in
                                     a file */
    GM_HEADER_XLA_UNKNOWN =
        1u << 9, /* a plugin of XLA had a table of functions that the recorder does not know: its
                                        arrays were not recorded */
};

/* Troubles of the recorder, counted in the header. All are zero in a complete trace except where
 * noted. */
enum gm_counter {
    GM_COUNT_DROPPED,      /* records dropped because a ring was full (GPUMEM_ON_FULL=drop) */
    GM_COUNT_REENTRANT,    /* calls made from a signal handler inside a hook, not recorded */
    GM_COUNT_NO_LANE,      /* calls not recorded because no ring could be made for their thread */
    GM_COUNT_WRITE_FAILED, /* records lost because their block could not be written (disk full) */
    GM_COUNT_STACK_TRUNCATED, /* stacks deeper than GPUMEM_DEPTH or cut at a frame without unwind
                                 data (no loss) */
    GM_COUNT_STACK_LIMIT,  /* stacks not recorded because the table of stacks was full (no loss of
                              events) */
    GM_COUNT_STRING_LIMIT, /* names of code not recorded because the table of strings was full (no
                              loss of events) */
    GM_COUNT_FALLBACK,     /* stacks for which the recorder asked libunwind (no loss) */
    GM_COUNT_MODULE_LIMIT, /* frames without a module because the table of modules was full (no loss
                              of events) */
    GM_COUNT_FLIGHT_FULL, /* records for which the area of a flight trace had no room: they are lost
                             unless a later checkpoint covers them */
    GM_COUNT_FLIGHT_MISSED, /* records that a flight trace could not carry, for lack of memory: its
                               checkpoints are not exact */
    GM_COUNT_FLIGHT_LATE,   /* records that were folded out of order, because a flight trace waits
                               only so long: its checkpoints may not be exact */
    GM_COUNT_NEWER_ABI,     /* lookups answered with an ABI of a function that the recorder does not
                               know: its calls are not seen (header.newer_abi) */
    GM_COUNT_NEWER_ABI_VITAL, /* those of them whose function makes or ends memory, which the trace
                                 lacks. The others copy, set or query */
    GM_COUNT_PYTHON_UNKNOWN,  /* stacks without Python frames because CPython (to 3.11) does not
                                reveal which of its subinterpreters runs (no loss of events) */
    GM_COUNT_GROW_FAILED, /* stacks, names and modules not recorded because the file could not grow
                             just then: a full disk, a limit on files, no memory (no loss of
                             events) */
    GM_COUNT_LANE_LIMIT,  /* calls not recorded because as many threads as there can be lanes lived
                           */
    GM_COUNT_FRAME_LIMIT, /* frames of an interpreter not recorded because their table was full (no
                             loss of events) */
    GM_COUNT_STRING_CUT,  /* strings cut at GM_STRING_LENGTH_MAX (no loss of events) */
    GM_COUNT_MARK_LIMIT,  /* marks and ranges without their name because the share of the table of
                             strings that they may fill was full (no loss of events) */
    GM_COUNT_MODULE_UNREAD, /* frames without a module because /proc/self/maps could not be read (no
                               loss of events) */
    GM_COUNT_CONTEXT_LIMIT, /* contexts made when all numbers were in use: their memory may have
                               ended unseen */
    GM_COUNT_CONTEXT_DEPTH, /* contexts pushed deeper than the recorder follows: memory allocated
                               there may have ended unseen */
    GM_COUNT_HANDLE_LIMIT,  /* pools, streams and the like that the recorder could not note for lack
                               of memory: it does not know device or capture of their allocations */
    GM_COUNT_DEVICE_LIMIT,  /* calls about devices beyond those that the recorder follows: memory of
                               their primary contexts may have ended unseen */
    GM_COUNT_SAMPLE_LIMIT, /* samples of a device left out, or without this process's share, because
                              NVML or the environment names more than there is room for (no loss of
                              events) */
    GM_COUNT_NAME_LIMIT,   /* names registered with NVTX that had no room: marks and ranges by their
                              handles have none (no loss of events) */
    GM_COUNT_ENVIRONMENT_LIMIT, /* variables of the environment that had no room in the trace (no
                                   loss of events) */
    GM_COUNT_LEND_LIMIT, /* parts of the trace for which a child would get no private memory, if a
                            signal handler forked it inside the recorder (no loss) */
    GM_COUNT_SNAPSHOT,   /* with SNAPSHOT: entries that contradict its segments, or make no sense */
    GM_COUNT_CLOCK_BACK, /* times that the record clock was found set back, as the processor's counter
                            is where a machine slept: order and times of records are not known */
    GM_COUNTERS = 32
};

/* A function that the program got without a hook, because its ABI is newer than the recorder. */
#define GM_NEWER_ABI_MAX 32
struct gm_newer_abi {
    uint32_t version; /* requested CUDA version, 1000 * major + 10 * minor; 0: none */
    uint16_t api;     /* an ABI of it that the recorder knows, an index into NAMES; 0: not in use */
    uint16_t form;    /* n of the requested NAME_vn; 0: none */
};

struct gm_trace_header {
    char magic[8];
    uint32_t endian;
    uint16_t major;
    uint16_t minor;
    uint32_t header_size; /* GM_TRACE_PAGE */
    uint16_t record_size; /* sizeof(struct gm_record) */
    uint16_t node_size;   /* sizeof(struct gm_node) */
    uint16_t module_size; /* sizeof(struct gm_module) */
    uint16_t frame_size;  /* sizeof(struct gm_script_frame) */
    uint32_t clock;       /* enum gm_clock */
    uint32_t reserved0;
    uint32_t pid;
    uint32_t parent_pid;
    uint64_t process_start; /* /proc/PID/stat field 22, clock ticks since boot: with pid and boot id
                               names the process */
    uint32_t generation;    /* n-th trace of this process: 0, then counting (exec, name taken) */
    uint32_t pid_namespace; /* where `pid` is: inode of /proc/self/ns/pid; 0 not known */
    char boot_id[40];
    char host[64];
    char tool_version[32];
    char run_id[40]; /* GPUMEM_RUN as `gpumem run` sets it: traces of one run; empty without it */
    char executable[256];    /* path, cut to fit */
    char command_line[1024]; /* arguments separated by NUL, cut to fit */
    uint32_t command_line_size;
    uint32_t reserved1;

    struct gm_clock_pair clock_start;
    uint64_t checksum; /* XXH3 64 of everything before it, which does not change */

    /* The rest changes while the process runs; each change is a single aligned store. */
    /* The latest pair: the writer fills the slot that `clock_latest_index` does not name, then
     * flips it. */
    struct gm_clock_pair clock_latest[2];
    uint32_t clock_latest_index;
    uint32_t end;          /* enum gm_end */
    uint64_t end_time;     /* record clock; valid when end is set */
    uint64_t file_end;     /* bytes: extents below are complete */
    uint32_t node_count;   /* nodes 1..node_count-1 may be referred to (0 is the empty stack) */
    uint32_t module_count; /* modules 1..module_count-1 (0 is "unknown") */
    uint32_t string_bytes; /* size of the string space in use */
    uint32_t frame_count;  /* script frames 1..frame_count-1 */
    uint32_t lane_count;
    uint32_t
        python_state; /* string reference: why Python frames are off, or the version used; 0 none */
    uint32_t flags;   /* enum gm_header_flag */
    uint32_t asked_file_system; /* f_type of statfs(2), with ELSEWHERE and NOT_RECORDED; else 0 */
    uint64_t counters[GM_COUNTERS];
    struct gm_newer_abi newer_abi[GM_NEWER_ABI_MAX]; /* the first ones, each a single store */

    uint64_t seal; /* gm_header_seal of the page, set at the end of the process; 0: not sealed */
    /* How the process ended, by enum gm_status and what waitpid(2) says of it: the exit code in bits
     * 8 to 15, or the signal in bits 0 to 6. 0: not told, as in traces of minor 0. Of a process that
     * marked no end, its parent wrote it, or `gpumem run`; one of which nobody told was cut. */
    uint32_t status;
    uint32_t reserved2;
};

enum gm_status {
    GM_STATUS_TOLD = 1u << 16,   /* else the rest means nothing */
    GM_STATUS_WAITED = 1u << 17, /* a recorded process waited for it, and saw how it ended */
    GM_STATUS_EXITED = 1u << 18, /* it marked no end, but exited: by the bare system call. A bit of
                                    its own, so that no other one makes a cut trace a whole one */
};

/* Of a process that marked no end, and of which waitpid(2) says that it ended with `status`. */
static inline uint32_t gm_status_of_wait(int status)
{
    uint32_t exited = (status & 0x7f) == 0 ? GM_STATUS_EXITED : 0;
    return GM_STATUS_TOLD | exited | ((uint32_t)status & 0xff7f);
}

/* Whether it tells of such an exit. */
static inline int gm_status_is_bare_exit(uint32_t status)
{
    return (status & (GM_STATUS_TOLD | GM_STATUS_EXITED | 0x7f)) ==
           (GM_STATUS_TOLD | GM_STATUS_EXITED);
}

/* ---- extents --------------------------------------------------------------------------------- */

enum gm_extent_type {
    GM_EXTENT_PAD = 1,
    GM_EXTENT_LANE = 2,    /* struct gm_lane, then its records */
    GM_EXTENT_NODES = 3,   /* struct gm_node[]: nodes from index * GM_NODES_PER_EXTENT */
    GM_EXTENT_STRINGS = 4, /* bytes of the string space from index * GM_STRINGS_PER_EXTENT */
    GM_EXTENT_MODULES = 5, /* struct gm_module[]: from index * GM_MODULES_PER_EXTENT */
    GM_EXTENT_BLOCK = 6,   /* struct gm_block, then its packed columns */
    GM_EXTENT_FRAMES = 7,  /* struct gm_script_frame[]: from index * GM_FRAMES_PER_EXTENT */
    GM_EXTENT_NAMES = 8,   /* API names: NUL-terminated, the n-th is the name of api n (0 is "") */
    GM_EXTENT_ENVIRONMENT = 9, /* NAME=value strings, each NUL-terminated */
    GM_EXTENT_FLIGHT = 10,     /* struct gm_flight, then from GM_TRACE_PAGE on extents of its own */
    GM_EXTENT_CHECKPOINT = 11, /* in FLIGHT: struct gm_checkpoint, then first_sequence[lanes] */
    GM_EXTENT_CARRIED = 12,    /* in FLIGHT: struct gm_block, then its packed columns */
    GM_EXTENT_WHY = 13, /* struct gm_why_ring, of a recorder that is built to tell (no seal) */
};

struct gm_extent {
    uint32_t magic; /* GM_EXTENT_MAGIC */
    uint16_t type;  /* enum gm_extent_type; readers skip types they do not know */
    uint16_t reserved;
    uint32_t index;  /* position among the extents of this type, where order matters */
    uint32_t used;   /* payload bytes, from its start, that do not change any more */
    uint64_t length; /* bytes including this header; a multiple of GM_EXTENT_ALIGN */
    uint64_t reserved2[3];
    uint64_t checksum; /* gm_extent_checksum: of everything before it, and of the `used` bytes */
    uint64_t seal;     /* LANE, FLIGHT and tables: of the whole payload, set and valid while the
                          header is sealed; else 0 */
};

/* Types whose extent is written once: zeros follow the `used` bytes. */
#define GM_EXTENTS_WRITTEN_ONCE                                                                    \
    (1u << GM_EXTENT_PAD | 1u << GM_EXTENT_BLOCK | 1u << GM_EXTENT_NAMES |                         \
     1u << GM_EXTENT_ENVIRONMENT | 1u << GM_EXTENT_CHECKPOINT | 1u << GM_EXTENT_CARRIED)

/* Tables grow by extents of 64 KiB; these numbers of entries fit after the extent header. */
#define GM_TABLE_EXTENT 65536u
#define GM_NODES_PER_EXTENT 4092u
#define GM_STRINGS_PER_EXTENT 65472u
#define GM_MODULES_PER_EXTENT 511u
#define GM_FRAMES_PER_EXTENT 4092u
#define GM_NODES_MAX (1u << 20)   /* bound of the stack table; further stacks are 0 and counted */
#define GM_STRINGS_MAX (1u << 25) /* bytes */
#define GM_MARK_STRINGS_MAX (1u << 24) /* of these, the share for names of marks and ranges */
#define GM_MODULES_MAX (1u << 14)
#define GM_FRAMES_MAX (1u << 20)
#define GM_LANES_MAX 65536u

/* ---- what a debug build tells ---------------------------------------------------------------- */

/* Why the recorder declined something. */
enum gm_why {
    GM_WHY_NONE,
    GM_WHY_CALL_IN_RECORDER, /* a call by a signal handler that interrupted the recorder */
    GM_WHY_CALL_NOT_JOINED,  /* a call of a process without a trace, or a thread without a lane */
    GM_WHY_CALL_FORKED,      /* a call during which a handler forked: its lane is the parent's */
    GM_WHY_ROAD_NAMESPACE,   /* dlsym found it in another namespace of the loader */
    GM_WHY_ROAD_BEFORE_US, /* what was found comes before this library, and reaches it by itself */
    GM_WHY_ROAD_ASKER,     /* who asks defines the function, and asks for what it forwards to */
    GM_WHY_ROAD_NOT_DEFINED, /* what was found is not the object's own definition */
    GM_WHY_ROAD_OTHER,       /* calls of ours go to another library's function */
    GM_WHY_ROAD_ABSENT,      /* without this library the name would not be found */
    GM_WHY_ROAD_NEWER_ABI,   /* the ABI is not in the table, or nothing proves which it is */
    GM_WHY_STEP_NO_RULE,     /* no unwind data for the code at the address */
    GM_WHY_STEP_DECLINED,    /* unwind data that our rules do not cover */
    GM_WHY_STEP_BEYOND,      /* the frame would lie beyond what may be read of the stack */
    GM_WHY_WALK_CUT,         /* libunwind is not there, or found no more than our rules */
    GM_WHY_WALK_BUSY,        /* a signal handler interrupted a walk of its thread */
    GM_WHY_PYTHON_OFF,       /* the interpreter is not read; the name says why */
    GM_WHY_PYTHON_ENDING,    /* the interpreter is finalizing */
    GM_WHY_PYTHON_NO_STATE,  /* the thread is none of the interpreter's, or has not the GIL */
    GM_WHY_PYTHON_UNKNOWN,   /* which subinterpreter runs is not told */
    GM_WHY_PYTHON_UNPROVEN,  /* what was read does not prove the layout */
    GM_WHY_PYTHON_CODE_GONE, /* the frame's code object is gone, or none */
    GM_WHYS
};

#define GM_WHY_ENTRIES 1022u

struct gm_why_entry {
    uint64_t address; /* of the code it was about; 0: none */
    uint32_t count;   /* how often */
    uint16_t reason;  /* enum gm_why; NONE: not in use */
    uint16_t reserved;
    char name
        [48]; /* of the function it was about, or what stands with the reason; cut, terminated */
};

/* The same reason for the same thing is one entry. When all are in use, the oldest makes room. */
struct gm_why_ring {
    uint64_t begun; /* entries, ever; the next stands at begun % GM_WHY_ENTRIES */
    uint64_t reserved[7];
    struct gm_why_entry entry[GM_WHY_ENTRIES];
};

/* ---- strings, modules, stacks ---------------------------------------------------------------- */

/*
 * A string reference is an offset into the string space (the STRINGS extents laid end to end). At
 * that offset is a uint16_t length, then that many bytes (no terminator). 0 is "none". A string
 * never crosses an extent. Content is untrusted: any bytes.
 */
#define GM_STRING_LENGTH_MAX 4096u

struct gm_module {
    /* Where the recorder first saw it mapped. A file that is opened again has the same number, and
     * stacks contain addresses of the file itself. */
    uint64_t load_bias;  /* pc - load_bias is the address in the file */
    uint64_t start;      /* first mapped byte */
    uint64_t end;        /* one past the last */
    uint32_t path;       /* string reference */
    uint32_t generation; /* count of dlclose then; two modules may share addresses over time */
    uint8_t build_id_size;
    uint8_t build_id[31];
    uint64_t reserved[8];
};

/*
 * A stack is the id of its innermost node. Parents lead outward to 0 and always have smaller ids
 * than their children.
 */
enum gm_node_kind {
    GM_NODE_NATIVE = 0, /* address: module-relative return address (not reduced by 1) */
    GM_NODE_LEAF = 1,   /* address: module-relative address of the instruction itself */
    GM_NODE_SCRIPT = 2, /* address: index of a script frame */
    GM_NODE_CUT = 3,    /* outermost node of a cut stack; address unused */
};

struct gm_node {
    uint64_t address;
    uint32_t parent;
    uint16_t module; /* 0: unknown, address is absolute */
    uint16_t kind;   /* enum gm_node_kind */
};

/* A frame of an interpreted language. */
struct gm_script_frame {
    uint32_t file;     /* string reference */
    uint32_t function; /* string reference */
    uint32_t line;
    uint32_t language; /* enum gm_language */
};

enum gm_language {
    GM_LANGUAGE_PYTHON = 1,
    GM_LANGUAGE_NATIVE = 2, /* a native frame that came with its name (with SNAPSHOT) */
};

/* ---- events ---------------------------------------------------------------------------------- */

/* Calls that take memory from a device tell how long they took if that is at least so many ns. */
#define GM_SLOW_CALL_NS 1000u

/* The types of records. Fields not named for a type are 0. `stack` is set for all except the
 * bookkeeping types. */
enum gm_event {
    GM_EVENT_NONE = 0,
    /* Lives of addresses. Frees are recorded before their call, everything else after it. */
    GM_EVENT_ALLOC =
        1, /* address, size, kind, device; aux: pool or array handle's owner, 0 if none; extra: ns in
              a slow call, else 0 (since minor 3) */
    GM_EVENT_FREE =
        2, /* address; kind: family of the call (enum gm_kind), any family may free any */
    GM_EVENT_UNDO =
        3, /* the call of this lane's latest free-like record failed, so it had no effect. address
              as there; extra: status; kind: the type (enum gm_event) undone */
    GM_EVENT_ALLOC_FAILED =
        4, /* size, kind, device; extra: CUresult/cudaError; aux: as ALLOC. Since minor 4 kind NONE:
              a call that does not allocate for the program found no memory for its aux: enum
              gm_purpose, or found that the device has failed (gm_status_is_fatal), which such calls
              tell once */
    GM_EVENT_COPY =
        5, /* address: destination, aux: source, size; kind: enum gm_copy; extra: ns in the call */
    GM_EVENT_SET = 6, /* address, size; extra: ns in the call */
    /* Contexts. `context` is a small number the recorder gave to a CUcontext; 0 is unknown. */
    GM_EVENT_CONTEXT =
        7, /* address: CUcontext, device; context created or first seen; flags: PRIMARY */
    GM_EVENT_CONTEXT_RETAIN = 8,  /* primary context of `device` retained; address: CUcontext */
    GM_EVENT_CONTEXT_RELEASE = 9, /* primary context of `device` released; free-like */
    GM_EVENT_CONTEXT_END =
        10, /* context destroyed or reset: implicit frees; address: CUcontext; free-like */
    /* Virtual memory management. Handles and address ranges have lives of their own. */
    GM_EVENT_VMM_CREATE = 11,    /* address: handle, size, device, kind (VMM or HOST_VMM); extra: as
                                    ALLOC */
    GM_EVENT_VMM_IMPORT = 12,    /* address: handle (another owner's memory); size: only of carried
                                    ones, as far as it was mapped (since minor 4); aux: the handle
                                    of memory of this process that it is, 0 unknown (since minor 4) */
    GM_EVENT_VMM_RETAIN = 13,    /* address: handle */
    GM_EVENT_VMM_RELEASE = 14,   /* address: handle; free-like */
    GM_EVENT_VMM_RESERVE = 15,   /* address, size */
    GM_EVENT_VMM_UNRESERVE = 16, /* address, size; free-like */
    GM_EVENT_VMM_MAP =
        17, /* address, size, aux: handle; extra: as ALLOC; next record is a DETAIL with address:
               offset. Address with GM_TILE: a part of a sparse array, size 1 (since minor 4) */
    GM_EVENT_VMM_UNMAP = 18,        /* address, size; free-like */
    GM_EVENT_MULTICAST_CREATE = 19, /* address: handle, size */
    GM_EVENT_MULTICAST_BIND = 20,   /* address: multicast handle, aux: memory handle or address,
                                       size; next record is a DETAIL with address: offset */
    GM_EVENT_MULTICAST_UNBIND =
        21, /* address: multicast handle, device, aux: offset, size; free-like */
    /* Pools. */
    GM_EVENT_POOL_CREATE = 22,  /* address: pool, device */
    GM_EVENT_POOL_DESTROY = 23, /* address: pool; free-like */
    GM_EVENT_POOL_TRIM = 24,    /* address: pool, size: bytes to keep */
    GM_EVENT_POOL_SET = 25, /* address: pool, aux: value, extra: attribute (CUmemPool_attribute) */
    /* Graphs. */
    GM_EVENT_GRAPH_ALLOC_NODE =
        26, /* address, size, device, aux: graph; kind: PINNED or MANAGED of a pool that is (since
               minor 4), else GRAPH; memory comes with a launch */
    GM_EVENT_GRAPH_FREE_NODE = 27, /* address, aux: graph */
    GM_EVENT_GRAPH_CHILD = 28,     /* address: graph, aux: child graph, copied in */
    GM_EVENT_GRAPH_INSTANTIATE =
        29,                     /* address: exec, aux: graph; extra: CUgraphInstantiate_flags */
    GM_EVENT_GRAPH_LAUNCH = 30, /* address: exec; extra: units of the record clock in the call,
                                   which may have freed its memory as early as its beginning */
    GM_EVENT_GRAPH_EXEC_DESTROY = 31, /* address: exec; free-like (since minor 4) */
    GM_EVENT_GRAPH_DESTROY = 32,      /* address: graph; free-like (since minor 4) */
    GM_EVENT_GRAPH_CLONE = 33,        /* address: new graph, aux: original */
    GM_EVENT_GRAPH_TRIM = 34,         /* device */
    /* Modules of device code, managed hints and others' memory. */
    GM_EVENT_MODULE_LOAD = 35,   /* address: CUmodule or CUlibrary */
    GM_EVENT_MODULE_UNLOAD = 36, /* address; free-like */
    GM_EVENT_GLOBAL =
        37, /* address, size, aux: module or library: the program queried a variable's place */
    GM_EVENT_HINT =
        38, /* address, size: advise, prefetch, discard; extra: CUmem_advise where it applies */
    /* The recorder's own. */
    GM_EVENT_DEVICE =
        39, /* device; size: total bytes or 0; aux: string reference of the name or 0 */
    GM_EVENT_THREAD =
        40, /* this lane now belongs to thread `address`, from 0 in the order in which threads joined;
               size: its number in the system (tid); aux: string reference of its name, 0 unknown */
    GM_EVENT_DETAIL = 41, /* further words of the record before it in the same lane */
    /* Names from the program: aux: string reference. Names of a library with its own (an NVTX
       domain) have extra: string reference of the library's name. */
    GM_EVENT_MARK = 42,
    GM_EVENT_RANGE_PUSH = 43, /* address: owner of its nest: 0 gpumem.h, else an NVTX domain */
    GM_EVENT_RANGE_POP = 44,  /* address: the same */
    GM_EVENT_DEVICE_SAMPLE =
        45, /* device; size: bytes used on the device by this process, 0 unknown; aux: by all;
               flags: ESTIMATED if the device was found by its index alone */
    GM_EVENT_BLOCK_ALLOC =
        46, /* block of a framework's pool: address, size, device; kind: enum gm_block_owner; aux: allocated total by the
               framework's own count, then a DETAIL with address: reserved total,
               size: bytes asked for, 0 unknown; extra: tells pools apart, 0 unknown, else aux:
               stream (cudaStream_t), kind: enum gm_block_pool */
    GM_EVENT_BLOCK_FREE = 47, /* the same; size positive. Address 0: only the totals are told.
                                 DETAIL address: reserved total, extra: enum gm_block_end */
    GM_EVENT_BLOCK_OOM =
        48, /* size asked, device; aux: allocated total; DETAIL address: reserved total, aux: bytes
               that the device had left, 0 unknown */
    GM_EVENT_HOST_CALL =
        49, /* a call of the table that does not change memory but concerns it (query, export) */
    /* Ranges that any thread can end, in any order. */
    GM_EVENT_RANGE_START = 50, /* as RANGE_PUSH, but address: the range's own number */
    GM_EVENT_RANGE_END = 51,   /* address: of the range */
    GM_EVENT_IGNORE =
        52, /* since minor 2. aux: 1: what begins in this lane from here on is no leak,
                             as the program says; 0: that is over */
    GM_EVENTS
};

/* Set in the numbers that stand for tiles of a sparse array where VMM_MAP and VMM_UNMAP have an
 * address. The numbers of one array share their upper half, which gets tiles of two arrays mixed up
 * only if that of both is the same by chance. The end of an array, or of its context, unmaps its own. */
#define GM_TILE (1ull << 63)
#define GM_TILES_OF(array) (GM_TILE | ((array)*0x9e3779b97f4a7c15u >> 33) << 32) /* the first */
#define GM_TILES_MAX (1ull << 32)                                                /* of one array */

/* A set of types, by bit. Free-like: recorded before its call; an UNDO can take it back. */
#define GM_EVENTS_FREE_LIKE                                                                        \
    (1ull << GM_EVENT_FREE | 1ull << GM_EVENT_CONTEXT_RELEASE | 1ull << GM_EVENT_CONTEXT_END |     \
     1ull << GM_EVENT_VMM_RELEASE | 1ull << GM_EVENT_VMM_UNRESERVE | 1ull << GM_EVENT_VMM_UNMAP |  \
     1ull << GM_EVENT_MULTICAST_UNBIND | 1ull << GM_EVENT_POOL_DESTROY |                           \
     1ull << GM_EVENT_GRAPH_EXEC_DESTROY | 1ull << GM_EVENT_GRAPH_DESTROY |                        \
     1ull << GM_EVENT_MODULE_UNLOAD)

_Static_assert(GM_EVENTS <= 64, "a set of types is a word");

/* Any `type`, also one of a newer minor version. */
static inline int gm_event_is_in(unsigned type, uint64_t set)
{
    return type < 64 && (set >> type & 1);
}

/* Families of memory; docs/accounting.md defines them. */
enum gm_kind {
    GM_KIND_NONE = 0,
    GM_KIND_DEVICE = 1,
    GM_KIND_MANAGED = 2,
    GM_KIND_ARRAY = 3,
    GM_KIND_VMM = 4,
    GM_KIND_GRAPH = 5,
    GM_KIND_EXTERNAL = 6,
    GM_KIND_PINNED = 7,
    GM_KIND_REGISTERED = 8,
    GM_KIND_HOST_VMM = 9,
    GM_KINDS
};

/* Whose pool a block is of (since minor 4; before, PyTorch's). */
enum gm_block_owner {
    GM_BLOCK_OF_PYTORCH = 0,
    GM_BLOCK_OF_XLA = 1, /* address: of the buffer's object in the host, not of its memory */
};

/* What a call that is no allocation needs memory for. */
enum gm_purpose {
    GM_PURPOSE_NONE = 0,
    GM_PURPOSE_CONTEXT = 1, /* a context */
    GM_PURPOSE_CODE = 2,    /* a module, library or function */
    GM_PURPOSE_LAUNCH = 3,  /* a kernel: its code if that is loaded late, its local memory */
    GM_PURPOSE_LIMIT = 4,   /* a larger heap, stack or buffer of a context */
    GM_PURPOSE_STREAM = 5,
    GM_PURPOSE_EVENT = 6,
    GM_PURPOSE_GRAPH = 7, /* its nodes, on the host or on the device */
    GM_PURPOSE_POOL = 8,
    GM_PURPOSE_MAPPING = 9, /* of addresses, also for a peer or a multicast object */
    GM_PURPOSE_SHARE = 10,  /* what another process is to open, or what was opened */
    GM_PURPOSE_TEXTURE = 11,
    GM_PURPOSE_COPY = 12, /* a copy or a set */
    GM_PURPOSE_WAIT = 13, /* nothing: the call waits for work, or asks whether it is done */
    GM_PURPOSES
};

/*
 * Whether the device has failed for good, by the text of cuda.h: "This leaves the process in an inconsistent state and
 * any further CUDA work will return the same error. To continue using CUDA, the process must be terminated and
 * relaunched." (226, 700, 702, 714 to 719, 721, 911; 810 of a client of MPS whose server ended it), "The context cannot
 * be used anymore" (710), and errors of the hardware "detected during execution" that cannot be corrected (214, 220).
 */
static inline int gm_status_is_fatal(unsigned status)
{
    return status == 214 || status == 220 || status == 226 || status == 700 || status == 702 ||
           status == 710 || (status >= 714 && status <= 719) || status == 721 || status == 810 ||
           status == 911;
}

/* What becomes of a block that is given back. */
enum gm_block_end {
    GM_BLOCK_END_UNTOLD = 0,
    GM_BLOCK_END_AT_ONCE = 1, /* it can be given to the next request */
    GM_BLOCK_END_WAITS = 2,   /* other streams use it still */
};

/* While what XLA's pool held most. A larger number is RUNNING, too: one more than the temporaries that XLA compiled the
 * program of this call with, in units of bytes. */
enum gm_block_most {
    GM_BLOCK_MOST_RUNNING = 0,   /* of no temporaries, or not told */
    GM_BLOCK_MOST_COMPILING = 1, /* kernels were tried out */
};
#define GM_BLOCK_TEMPORARIES_UNIT 256u /* to which XLA rounds */

/* Whose pool a block is of. */
enum gm_block_pool {
    GM_BLOCK_POOL_UNTOLD =
        0, /* a private one, if other blocks of the trace are told to be COMMON */
    GM_BLOCK_POOL_COMMON = 1, /* the one that all requests come from unless they name another */
};

enum gm_copy {
    GM_COPY_UNKNOWN =
        0, /* direction left to unified addressing: the reader infers it from the addresses */
    GM_COPY_HOST_TO_DEVICE = 1,
    GM_COPY_DEVICE_TO_HOST = 2,
    GM_COPY_DEVICE_TO_DEVICE = 3,
    GM_COPY_HOST_TO_HOST = 4,
    GM_COPY_PEER = 5,
};

enum gm_record_flag {
    GM_FLAG_ESTIMATED =
        1u << 0,             /* size is an estimate (arrays); of a sample: the device is a guess */
    GM_FLAG_ASYNC = 1u << 1, /* stream-ordered call */
    GM_FLAG_POOL = 1u << 2,  /* from a pool: outlives its context */
    GM_FLAG_CAPTURED = 1u << 3,  /* made while its stream was capturing: becomes a graph node */
    GM_FLAG_PRIMARY = 1u << 4,   /* primary context */
    GM_FLAG_LATE = 1u << 5,      /* recorded after the program's exit handlers began */
    GM_FLAG_RUNTIME = 1u << 6,   /* seen at the runtime layer only */
    GM_FLAG_MIPMAPPED = 1u << 7, /* mipmapped array */
    GM_FLAG_UNKNOWN_VALUE =
        1u << 7, /* COPY: a simulated device was read where only kernels, which do not run, write */
};

/* The number of all contexts for which there was no number left, or that lay too deep: there is no
 * record of them or of their end. */
#define GM_CONTEXT_UNTOLD 0xffffu

struct gm_record {
    uint64_t time; /* header.clock */
    uint64_t address;
    uint64_t size; /* bytes */
    uint64_t aux;
    uint32_t stack; /* node id, 0 none */
    uint32_t extra;
    uint16_t context; /* 0 unknown, or GM_CONTEXT_UNTOLD */
    uint16_t
        api; /* index into the NAMES extent: the outermost API function the program called; of a
                      refused launch or wait the innermost */
    uint8_t type;  /* enum gm_event */
    uint8_t kind;  /* enum gm_kind, enum gm_copy or enum gm_event, as the type says */
    int8_t device; /* ordinal, -1 unknown */
    uint8_t flags; /* enum gm_record_flag */
};

/* ---- lanes and blocks ------------------------------------------------------------------------ */

/*
 * One thread's ring. Sequence numbers count the records of the lane from 0; record n is in slot
 * n & (capacity - 1). A lane outlives its thread, and another thread can take it over. If several
 * LANE extents have the same index, each is larger than the one before, and the last one is the
 * lane: it began with all waiting records of the former, to which no thread writes any more.
 */
struct gm_lane {
    uint64_t capacity; /* records, a power of two; the only part that does not change */
    uint64_t reserved0[7];
    uint64_t head; /* records committed; written by the thread */
    uint64_t reserved1[7];
    uint64_t tail; /* records that are also in blocks (or were given up) */
    uint64_t reserved2[7];
};

#define GM_LANE_CONSTANT 64u /* bytes at its start that do not change */

enum gm_codec { GM_CODEC_NONE = 0, GM_CODEC_ZSTD = 1 };

/*
 * Records [first_sequence, first_sequence + count) of one lane, column by column, packed by what
 * they repeat: programs repeat themselves, and then a record equals the one `distance` before it,
 * its model, except for the time. If the block does not reach back so far, the model is the record
 * `near` before it; if there is none either, a record of zeros. Records are grouped in tiles of
 * GM_TILE_RECORDS; the last tile may be shorter. First comes for each tile, in two bytes
 * (little-endian), the set of columns that contain it; in each other column its records have the
 * value of their models. Then come the columns in the order of enum gm_column, each a run of
 * varints (LEB128) or bytes as the comment says. `codec` compresses all of this as one independent
 * frame.
 */
enum gm_column {
    GM_COLUMN_TYPE,    /* bytes */
    GM_COLUMN_TIME,    /* varint: difference to the record before; the first: to first_time.
                          Contains every tile */
    GM_COLUMN_API,     /* varint */
    GM_COLUMN_STACK,   /* zigzag varint: difference to the model */
    GM_COLUMN_ADDRESS, /* zigzag varint: difference to the model */
    GM_COLUMN_SIZE,    /* varint */
    GM_COLUMN_AUX,     /* zigzag varint: difference to the model */
    GM_COLUMN_EXTRA,   /* varint */
    GM_COLUMN_CONTEXT, /* varint */
    GM_COLUMN_KIND,    /* bytes */
    GM_COLUMN_DEVICE,  /* bytes */
    GM_COLUMN_FLAGS,   /* bytes */
    GM_COLUMNS
};

#define GM_BLOCK_RECORDS_MAX 16384u
#define GM_BLOCK_RAW_MAX (GM_BLOCK_RECORDS_MAX * 96u) /* no record needs more in columns */
#define GM_TILE_RECORDS 128u
#define GM_DISTANCE_MAX 4096u

struct gm_block {
    uint32_t lane;
    uint32_t count; /* records, 1..GM_BLOCK_RECORDS_MAX */
    uint64_t first_sequence;
    uint64_t first_time; /* of the first and last record, header.clock */
    uint64_t last_time;
    uint32_t stored_size; /* bytes after this struct */
    uint32_t raw_size;    /* bytes before compression, at most GM_BLOCK_RAW_MAX */
    uint32_t codec;       /* enum gm_codec */
    uint32_t column_size[GM_COLUMNS];
    uint32_t lane_column_size; /* CARRIED: a varint for each record, its lane; follows the columns
                                  and counts in raw_size. Else 0 */
    uint32_t distance;         /* from a record to its model, 1..GM_DISTANCE_MAX */
    uint32_t near;             /* 1..distance */
    uint32_t reserved[6];
};

/* Bytes of a block's sets of columns, which precede the columns and count in raw_size. */
static inline uint32_t gm_block_sets_size(uint32_t count)
{
    return (count + GM_TILE_RECORDS - 1) / GM_TILE_RECORDS * 2;
}

/* ---- flight recorder ------------------------------------------------------------------------- */

/*
 * GPUMEM_MODE=flight: blocks do not follow each other in the file but fill one extent of fixed size
 * again and again. Positions count bytes and never go back; position p lies at p % capacity of the
 * area, whose end cuts no extent. Extents [start, end) are complete. The one at `start` is a
 * CHECKPOINT, or `start` is 0 and nothing was overwritten yet. A checkpoint after `start` is one to
 * which the writer may move `start`: readers skip it.
 */
struct gm_flight {
    uint64_t capacity; /* bytes, a multiple of GM_EXTENT_ALIGN */
    uint64_t start;    /* moves before the writer overwrites anything */
    uint64_t end;
    uint64_t touched; /* bytes of the area, from its start, that were ever written */
    uint64_t reserved[4];
};

/* Counts of the records of some stretch of a trace. */
struct gm_flight_totals {
    uint64_t events; /* without details */
    uint64_t allocs;
    uint64_t frees;
    uint64_t implicit_frees;
    uint64_t failed; /* refused allocations, for whatever reason */
    uint64_t copies;
    uint64_t copied; /* bytes */
};

/*
 * Replaces the records before it, so that the writer may overwrite them: the CARRIED extents that
 * follow immediately hold the records of what is alive, in the order in which a reader replays
 * them. Each lane continues with its first_sequence; readers skip its earlier records in blocks or
 * rings. In carried records some members have special meanings:
 *   ALLOC, VMM_CREATE, VMM_IMPORT: extra below GM_SLOW_CALL_NS: status of a free that failed
 *   VMM_CREATE, VMM_IMPORT, MULTICAST_CREATE: aux: references by handle; a DETAIL has the handle as
 *     address if the record has another, because it was given out anew
 *   VMM_RELEASE, MULTICAST_UNBIND: a DETAIL likewise
 *   CONTEXT: address 0: what it is is not known yet; size: references (RETAIN); extra: 1 if it is
 *     used without one
 *   CONTEXT_RELEASE, CONTEXT_END: aux: number of the context, 0 unknown; flags: PRIMARY if that is
 *     known; of a release also size and extra as CONTEXT, before it
 */
struct gm_checkpoint {
    uint64_t time;   /* record clock: of the latest record before it */
    uint32_t blocks; /* CARRIED extents */
    uint32_t lanes;
    uint64_t carried;               /* records in them, details too */
    struct gm_flight_totals before; /* counts of all records before it */
    uint64_t lost_frees;            /* among them: addresses and handles given out again, and places
                                       mapped again, without a free */
    uint64_t unknown_frees;         /* and frees of addresses and handles not known to live */
    uint64_t reserved[4];
};

_Static_assert(sizeof(struct gm_flight) == 64, "flight area");
_Static_assert(sizeof(struct gm_checkpoint) == 128, "checkpoint");
_Static_assert(sizeof(struct gm_extent) == 64, "extent header");
_Static_assert(sizeof(struct gm_module) == 128, "module");
_Static_assert(sizeof(struct gm_node) == 16, "node");
_Static_assert(sizeof(struct gm_script_frame) == 16, "script frame");
_Static_assert(sizeof(struct gm_record) == 48, "record");
_Static_assert(sizeof(struct gm_lane) == 192, "lane");
_Static_assert(sizeof(struct gm_block) == 128, "block");
_Static_assert(sizeof(struct gm_trace_header) <= GM_TRACE_PAGE, "header page");

#endif
