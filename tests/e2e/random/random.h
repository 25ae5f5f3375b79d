/*
 * Shared by the files of the random program: the state, the log, the objects it holds, and one step
 * per family (random_FAMILY.c). A step makes a few calls of its family, logs each result and keeps
 * the new objects.
 *
 * The families with stream-ordered functions are compiled twice, the second time for the per-thread
 * default stream, so that every exported form is called: STEP() gives their steps two names.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES_MAX 4
#define STREAMS 3
#define GRANULARITY ((size_t)2 << 20)

#ifdef RACING
#define STATE _Thread_local
#else
#define STATE
#endif

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define STEP(family) family##_step_per_thread
#define PTSZ "_ptsz"
#else
#define STEP(family) family##_step
#define PTSZ ""
#endif

enum family {
    LINEAR, /* for cuMemFree: linear, pitched, managed, stream-ordered, mapped buffers ... */
    PINNED,
    REGISTERED,
    ARRAY,
    MIPMAPPED,
    POOL,
    HANDLE,  /* VMM physical memory */
    MAPPING, /* VMM range with memory */
    TEAM,    /* multicast object, or logical endpoint */
    EXECUTABLE,
    CONTEXT,
    OPENED, /* IPC memory */
    IMPORT, /* external memory */
    MODULE,
    LIBRARY,
    FAMILIES
};

struct object {
    enum family family;
    void *pointer; /* address or handle */
    size_t size;   /* bytes that may be used; 0: unknown */
    int device;
    int references;      /* of a HANDLE; of an OPENED: how often */
    int in_context;      /* dies with the primary context of `device` */
    int managed;         /* takes hints */
    int exportable;      /* a POOL that can be shared */
    int imported;        /* a POOL of another owner */
    int elsewhere;       /* a POOL that is not of a device's own memory */
    CUgraph graph;       /* of an EXECUTABLE */
    CUdeviceptr address; /* of an EXECUTABLE: memory that outlives a launch, or 0 */
    int live;            /* whether it does now; of a TEAM: the places where memory is bound */
    int endpoint;        /* a TEAM that is a logical endpoint: its handle is a number */
};

extern STATE int object_count;
extern STATE struct object objects[];
extern STATE cudaStream_t streams[DEVICES_MAX][STREAMS];
extern STATE uint64_t seed;
extern const char random_variable[]; /* the host's side of a variable of the device */
extern int device_count;
#ifdef RACING
extern STATE int thread_number;
#endif

/* ---- the common part (random_program.c) ------------------------------------------------------ */

unsigned pick(unsigned n);
size_t random_size(void);
int current_device(void);
cudaStream_t random_stream(void);
cudaStream_t created_stream(void); /* never the default stream */
void create_streams_of(int device);
/* Adds to the program's objects; its device is the current one. */
void keep(struct object object);
void keep_on(int device, struct object object);
void forget(int index);
/* An object of the family, any of them by chance, or -1. */
int find(enum family family);
/* One with at least that many bytes, or -1. */
int find_sized(enum family family, size_t size);

/* Calls, prints the result and the symbol called (macros of the headers are expanded). */
#define LOG(...) LOG_EXPANDED(__VA_ARGS__)
#define LOG_EXPANDED(...) log_result(#__VA_ARGS__, (int)(__VA_ARGS__))
int log_result(const char *call, int result);
/* The same of a wait: whether earlier work met a bad address depends on where the process has its memory. */
#define WAIT(...) WAIT_EXPANDED(__VA_ARGS__)
#define WAIT_EXPANDED(...) log_wait(#__VA_ARGS__, (int)(__VA_ARGS__))
int log_wait(const char *call, int result);

/* An earlier ABI of a function, under a name of our own: OLD(name, symbol)(parameters); it is
 * logged by LOG_AS(symbol, call). */
#define LOG_AS(symbol, ...) log_result(symbol, (int)(__VA_ARGS__))

/* ---- steps ----------------------------------------------------------------------------------- */

void linear_step(void);
void host_step(void);
void array_step(void);
void pool_step(void);
void vmm_step(void);
void multicast_step(void);
void module_step(void);
void context_step(void);
void shared_step(void);
void mistake_step(void);
void process_step(void);

void async_step(void);
void async_step_per_thread(void);
void graph_step(void);
void graph_step_per_thread(void);
void copy_step(void);
void copy_step_per_thread(void);
void array_copy_step(void);
void array_copy_step_per_thread(void);
void set_step(void);
void set_step_per_thread(void);
void hint_step(void);
void hint_step_per_thread(void);
void work_step(void);
void work_step_per_thread(void);

/* Frees the object in a way that is legal for it. */
void free_object(int index);
int free_linear(struct object object);
int free_array(struct object object);
int free_mipmapped(struct object object);
void map_tiles(int is_left_to_context);
void drop_handle(int index);
void unmap(int index);
void drop_team(int index);
void drop_executable(int index);
int free_shared(struct object *object);
int unload(struct object object);
int destroy_context(CUcontext context);

/* The process that shares memory with this one: started before the threads, ended after them. */
void start_exporter(void);
void stop_exporter(void);
int export_memory(void); /* its main() */

#endif
