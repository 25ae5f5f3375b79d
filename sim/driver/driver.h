/*
 * The simulated driver's own state: lock, settings, handles, devices and contexts.
 *
 * Every exported function takes the one driver lock for as long as it runs (GPUSIM_ENTER), so
 * nothing below locks again. Only callbacks into the application run without it. Handles are
 * numbers that are used again at once, as NVIDIA's are. Exported functions never call each other,
 * which would take the lock twice; they share internal functions named gpusim_...
 */
#ifndef GPUMEM_SIM_DRIVER_H
#define GPUMEM_SIM_DRIVER_H

#include "arena.h"
#include "oracle.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* For functions that cuda.h does not declare. */
#define GPUSIM_EXPORTED __attribute__((visibility("default")))
#define GPUSIM_GRANULARITY (2ull << 20) /* physical memory: VMM and pools */
#define GPUSIM_PITCH_ALIGNMENT 512u

/* ---- settings and life of the driver (state.c) ----------------------------------------------- */

/* What takes memory of a device beside allocations. */
enum gpusim_taker {
    GPUSIM_TAKES_CONTEXT,
    GPUSIM_TAKES_CODE,   /* a module */
    GPUSIM_TAKES_LAUNCH, /* the local memory of a context's kernels: at its first launch */
    GPUSIM_TAKES_LIMIT,  /* a limit that is set */
    GPUSIM_TAKES_STREAM,
    GPUSIM_TAKES_EVENT,
    GPUSIM_TAKES_GRAPH, /* one that can be launched */
    GPUSIM_TAKERS
};

struct gpusim_settings {
    int device_count;
    uint64_t capacity; /* bytes of each device */
    int driver_version;
    unsigned long fail_alloc_every; /* 0: never */
    unsigned long fail_free_every;
    unsigned long fail_other_every; /* calls that take memory for an object: gpusim_object_take */
    uint64_t takes[GPUSIM_TAKERS];  /* bytes of the device that such an object takes */
    CUresult failure;               /* with which the device fails; 0: it does not */
    unsigned long failing_launch;   /* the kernel that fails it; 0: none */
    unsigned long failing_call;     /* the call before which it fails; 0: none */
    uint64_t virtual_above; /* copies and sets of more bytes are dropped; 0: none is (contents.h) */
    uint64_t context;       /* bytes of each device that are taken from the start */
    uint64_t code;          /* of these: told to be free until kernels are launched */
    bool shares_pieces;     /* small allocations share pieces of the granularity */
    bool from_top;          /* new memory has the highest address that is free, not the lowest */
    bool late_events;       /* an event has happened when the host has waited for something */
    uint64_t kernel_ns;     /* device time that a kernel launch takes */
};

extern struct gpusim_settings gpusim_settings;
extern atomic_bool gpusim_noop; /* GPUMEM_SIM_NOOP: allocate and free do nothing at all */

/* An error of work that had been accepted; the next synchronisation returns it once. */
extern CUresult gpusim_device_error;

/* Takes the lock, or returns why the driver cannot serve and does not take it. */
CUresult gpusim_enter(void);
/* The same; and when the device has failed, no work is served. */
CUresult gpusim_enter_work(void);
/*
 * The error with which the device failed, else 0. cuda.h of such errors (700, 719 ...): "This leaves
 * the process in an inconsistent state and any further CUDA work will return the same error. To
 * continue using CUDA, the process must be terminated and relaunched."
 */
CUresult gpusim_failure(void);
/* A kernel ran: GPUMEM_SIM_ERROR says which one fails the device. */
void gpusim_kernel_ran(void);
void gpusim_leave(char *unused);
/* Why the driver cannot serve, if so: what functions answer first, whatever their arguments are. */
CUresult gpusim_ready(void);
/* What a function answers that is not simulated. */
CUresult gpusim_refuse(void);
/* Around a callback into the application. */
void gpusim_unlock(void);
void gpusim_lock(void);

/* The attribute (GNU) gives the lock back on every way out of the function. */
#define GPUSIM_ENTER() GPUSIM_ENTER_BY(gpusim_enter_work)
/* For questions about devices and contexts, which a failed device does not matter to; and for
 * allocations, which count what they are answered. */
#define GPUSIM_ENTER_FAILED() GPUSIM_ENTER_BY(gpusim_enter)
#define GPUSIM_ENTER_BY(enter)                                                                     \
    CUresult entry_error_ = enter();                                                               \
    if (entry_error_ != CUDA_SUCCESS)                                                              \
        return entry_error_;                                                                       \
    __attribute__((cleanup(gpusim_leave))) char entered_ __attribute__((unused)) = 0

/* The same for functions that need a current context, which becomes the variable's value. */
#define GPUSIM_ENTER_CONTEXT(context)                                                              \
    GPUSIM_ENTER();                                                                                \
    struct gpusim_context *context;                                                                \
    CUresult context_error_ = gpusim_current(&context);                                            \
    if (context_error_ != CUDA_SUCCESS)                                                            \
    return context_error_

#define GPUSIM_TRY(expression)                                                                     \
    do {                                                                                           \
        CUresult try_error_ = (expression);                                                        \
        if (try_error_ != CUDA_SUCCESS)                                                            \
            return try_error_;                                                                     \
    } while (0)

/* ---- handles (handle.c) ---------------------------------------------------------------------- */

enum gpusim_type {
    GPUSIM_TYPE_CONTEXT = 1,
    GPUSIM_TYPE_STREAM,
    GPUSIM_TYPE_EVENT,
    GPUSIM_TYPE_ARRAY,
    GPUSIM_TYPE_MIPMAP,
    GPUSIM_TYPE_POOL,
    GPUSIM_TYPE_PHYSICAL,
    GPUSIM_TYPE_MODULE,
    GPUSIM_TYPE_LIBRARY,
    GPUSIM_TYPE_KERNEL, /* kernels and functions: launches accept both */
    GPUSIM_TYPE_GRAPH,
    GPUSIM_TYPE_NODE,
    GPUSIM_TYPE_EXEC,
    GPUSIM_TYPE_USER_OBJECT,
    GPUSIM_TYPE_EXTERNAL,
    GPUSIM_TYPE_GREEN,
    GPUSIM_TYPE_RESOURCES, /* CUdevResourceDesc */
    GPUSIM_TYPES
};

struct gpusim_context;

/* First member of everything that has a handle. */
struct gpusim_object {
    uint64_t handle;
    enum gpusim_type type;
    struct gpusim_context *context; /* destroyed with it; NULL: outlives contexts */
    struct gpusim_object *next;
    struct gpusim_device *payer; /* whose capacity has lost `taken` bytes to it */
    uint64_t taken;
};

/* Zeroed memory of that size with a fresh handle, or NULL. */
void *gpusim_object_new(size_t size, enum gpusim_type type, struct gpusim_context *context);
/* Ends the handle and frees the memory. */
void gpusim_object_delete(void *object);
/*
 * Takes the memory of a device that an object needs beside allocations (GPUMEM_SIM_TAKES), until
 * gpusim_object_give or its end; out of memory if there is none, which cuda.h lists for the calls
 * that make such objects ("CUDA_ERROR_OUT_OF_MEMORY" among what they return). `object` NULL: nothing
 * is taken, and the call may still be one that is to fail.
 */
CUresult gpusim_object_take(struct gpusim_object *object, struct gpusim_device *device,
                            enum gpusim_taker taker);
void gpusim_object_give(struct gpusim_object *object);
/* The object of a handle, or NULL when there is none of this type. */
void *gpusim_object_of(uint64_t handle, enum gpusim_type type);
/* Ends each object of a type that belongs to a context; the function must take it out of there. */
void gpusim_objects_end(const struct gpusim_context *context, enum gpusim_type type,
                        void (*end)(void *object));

void gpusim_objects_each(enum gpusim_type type, void (*visit)(void *object, uint64_t argument),
                         uint64_t argument);

#define GPUSIM_FIND(handle, type) gpusim_object_of((uint64_t)(uintptr_t)(handle), type)
#define GPUSIM_HANDLE(kind, object) ((kind)(uintptr_t)(object)->base.handle)

/* ---- devices (device.c) ---------------------------------------------------------------------- */

struct gpusim_pool;

enum gpusim_place { GPUSIM_PLACE_DEVICE, GPUSIM_PLACE_HOST, GPUSIM_PLACE_MANAGED };

/* A device, or another place that pools are in (pool_place.c). */
struct gpusim_device {
    enum gpusim_place place;
    int ordinal; /* -1: on no device */
    uint64_t capacity;
    uint64_t used; /* bytes of capacity taken by linear memory, arrays, pools and physical memory */
    uint64_t code; /* of these: told to be free until kernels are launched */
    struct gpusim_arena linear;
    uint64_t small; /* bytes of the allocations that share pieces */
    struct gpusim_context *primary;
    struct gpusim_pool *default_pool, *current_pool, *graph_pool;
    struct gpusim_pool *pools; /* all pools that have storage here */
};

extern struct gpusim_device gpusim_devices[GPUSIM_MAX_DEVICES];

void gpusim_devices_init(void);
struct gpusim_device *gpusim_device_of(CUdevice ordinal); /* NULL: no such device */
/* Takes bytes of the capacity, shrinking idle pools if it must; false when there is not enough. */
bool gpusim_device_charge(struct gpusim_device *device, uint64_t bytes);
/* Gives back the room of what exported descriptors kept, if they are closed (vmm.c). */
void gpusim_exports_reap(void);
void gpusim_device_refund(struct gpusim_device *device, uint64_t bytes);

/* ---- contexts (context.c) -------------------------------------------------------------------- */

struct gpusim_stream;

struct gpusim_context {
    struct gpusim_object base;
    struct gpusim_device *device;
    bool primary;
    bool active;          /* false for a primary context without a reference */
    bool has_launched;    /* a kernel: its local memory is taken */
    unsigned int retains; /* references of a primary context; uses of another */
    unsigned int flags;
    unsigned int api_version;
    uint64_t id;
    uint32_t peers; /* devices whose memory is enabled here */
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    struct gpusim_context *alias_of; /* of a converted green context: the primary one; else NULL */
    uint64_t green;                  /* its CUgreenCtx */
    struct gpusim_stream *legacy_stream;
    struct gpusim_stream *thread_streams; /* per-thread default streams */
};

/* The current context of the calling thread, or the error the driver gives without one. */
CUresult gpusim_current(struct gpusim_context **context);
/* A live context by handle, or NULL. */
struct gpusim_context *gpusim_context_of(CUcontext handle);
CUresult gpusim_primary_retain(struct gpusim_device *device);
void gpusim_primary_release(struct gpusim_device *device);
/* Another handle of a context, of a green one; NULL: the host is out of memory. */
struct gpusim_context *gpusim_context_alias(struct gpusim_context *context, uint64_t green);
/* The CUgreenCtx of which a handle was converted, or that is current; 0: none. */
uint64_t gpusim_context_green(CUcontext handle);
uint64_t gpusim_current_green(void);
CUresult gpusim_green_convert(CUcontext *handle, uint64_t green);
/* The context of a device that work without a current context uses, or NULL. */
struct gpusim_context *gpusim_context_on(struct gpusim_device *device);

/* ---- totals (totals.c): docs/accounting.md --------------------------------------------------- */

void gpusim_totals_open(void);
void gpusim_count_alloc(const struct gpusim_device *device, enum gpusim_device_kind kind,
                        uint64_t bytes);
void gpusim_count_free(const struct gpusim_device *device, enum gpusim_device_kind kind,
                       uint64_t bytes, bool implicit);
/* More bytes of memory that is counted. */
void gpusim_count_more(const struct gpusim_device *device, enum gpusim_device_kind kind,
                       uint64_t bytes);
void gpusim_count_host_alloc(enum gpusim_host_kind kind, uint64_t bytes);
void gpusim_count_host_free(enum gpusim_host_kind kind, uint64_t bytes, bool implicit);

/* Injected failures; an allocation-type call asks once, first. */
CUresult gpusim_allocation_begin(void);
/* Counts the outcome of an allocation-type call and passes it on. */
CUresult gpusim_allocation_end(CUresult result);
/* The same for a call that takes memory without being an allocation. */
CUresult gpusim_take_begin(void);
/* A free-type call asks once, after it knows that it would succeed. */
CUresult gpusim_free_begin(void);

#endif
