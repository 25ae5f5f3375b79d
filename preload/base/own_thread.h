/*
 * Threads of our own: the drainer, the one that asks NVML, the one that asks the loader.
 *
 * Guarantees
 *   - They handle no signal of the process: all are blocked on them, but those by which the C
 *     library asks each thread to take part (a new user or group).
 *   - They run on the CPUs the process was started on, whoever asked for them: a thread that is
 *     bound to one CPU binds only itself.
 *   - They do not keep the process alive. A process whose main thread ended by pthread_exit ends with
 *     its last thread, and until then takes signals on any; so ours leave when the main thread did,
 *     and none is started after that. Nothing depends on them: what they do is done without them, or
 *     left out.
 *   - No host's function waits for one of them, but for a last sample at the normal end.
 *
 * A main thread that ends by pthread_exit, or is cancelled, tells it by the destructor of a key;
 * one that ends by the bare system call is noticed where our threads wait, within a second or so.
 */
#ifndef GPUMEM_PRELOAD_BASE_OWN_THREAD_H
#define GPUMEM_PRELOAD_BASE_OWN_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_own_thread {
    const char *name;
    size_t stack_size; /* bytes, beside the thread-local memory that the C library takes from it */
    void (*run)(void);
    bool opens_files; /* for itself: then none takes a number that the host's next one would get */
    void (*wake)(void); /* ends its waiting, after which it asks gm_own_must_leave; or NULL */
    uint64_t signals;   /* of the thread that asked for it */
};

/* Notes the CPUs of the process, its thread-local memory, and when its main thread ends. From our
 * constructor. */
void gm_own_prepare(void);

/* Starts it. False: none could be had, or the main thread is gone. */
bool gm_own_start(struct gm_own_thread *own);

/* Whether the main thread is known to have left; to be asked before each wait. */
bool gm_own_is_told_to_leave(void);

/* The same, and looks for it. A few system calls: to be asked when there was nothing to do. */
bool gm_own_must_leave(void);

/* How long, in ns, one of ours may wait before it asks that. */
#define GM_OWN_WAIT_MAX UINT64_C(1000000000)

/* How many CPUs the process was started on. */
uint32_t gm_own_cpu_count(void);

/* In a child: its main thread is another. */
void gm_own_forget(void);

#endif
