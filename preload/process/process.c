/* See process.h. */
#include "process/process.h"
#include "base/change.h"
#include "base/config.h"
#include "base/handles.h"
#include "base/own_thread.h"
#include "flight/flight.h"
#include "hooks/effects.h"
#include "interpose/dlclose.h"
#include "interpose/newer_abi.h"
#include "interpose/real.h"
#include "live/live.h"
#include "process/waits.h"
#include "record/recorder.h"
#include "ring/block.h"
#include "ring/drain.h"
#include "ring/seal.h"
#include "ring/sink.h"
#include "sources/nvtx_names.h"
#include "sources/pjrt.h"
#include "stack/loader_work.h"
#include "stack/native/unwind.h"
#include "stack/stack.h"
#include "writer/modules.h"
#include "writer/tables.h"
#include "writer/trace_file.h"
#include "writer/why.h"
#include <linux/futex.h>
#include <stdlib.h>

/* Outlives forks, unlike the page: each process that records has its own number. */
static uint64_t last_epoch;

/* The process that loaded us; not its forked children. */
static long loaded_in;

/*
 * All that a child resets before it makes a trace of its own: the locks that a thread which is not
 * there may hold, what belongs to the parent's trace (which is not mapped here), and what is said
 * of threads of ours. Whatever else is static survives: it is found out once, or true in the child
 * too. Who adds a static variable that does not, adds its function here.
 */
static void (*const reset_after_fork[])(void) = {
    gm_seal_forget,
    gm_trace_forget,
    gm_tables_forget,
    gm_modules_forget,
    gm_threads_forget,
    gm_blocks_forget,
    gm_flight_forget,
    gm_live_forget,
    gm_drain_forget,
    gm_loader_forget,
    gm_own_forget,
    gm_handles_after_fork,
    gm_captures_forget,
    gm_devices_forget,
    gm_graphics_forget,
    gm_contexts_forget,
    gm_deferred_arrays_forget,
    gm_shareable_forget,
    gm_nvtx_names_forget,
    gm_pjrt_forget,
    gm_why_forget,
};

static void forget_parent(void)
{
    for (size_t i = 0; i < sizeof(reset_after_fork) / sizeof(reset_after_fork[0]); i++)
        reset_after_fork[i]();
}

void gm_process_forked(void)
{
    struct gm_thread *thread = gm_tls.thread;
    /* Nobody is left to hold a lock: no handler interrupts who does. */
    gm_handles_after_fork();
    gm_nvtx_names_forget();
    if (!thread || gm_process_ready(&gm_tls))
        return;
    if (gm_tls.gate != GM_GATE_BUSY && !thread->committing) /* not yet, or not any more */
        return;
    gm_trace_lend();
    gm_seal_forget();
    gm_tables_unlock();
    gm_modules_forget();
    gm_blocks_forget();
    thread->lane->head = thread->lane->tail = thread->head;
}

static bool create_trace(void)
{
    gm_sink_choose(gm_config.flight ? &gm_flight_sink : &gm_file_sink);
    if (!gm_trace_create(gm_sink->begin))
        return false;
    gm_why_begin();
    return true;
}

static void code_may_change(void)
{
    gm_unwind_new_generation();
    gm_modules_changed();
}

static bool start_recording(bool bypassed)
{
    gm_dlclose_watch(code_may_change); /* nothing is remembered before the first record */
    if (bypassed) {                    /* until now: a call came after our destructor */
        gm_change_begin();
        __atomic_fetch_and(&gm_file.header->flags, ~(uint32_t)GM_HEADER_BYPASSED, __ATOMIC_RELAXED);
        gm_change_end();
    } else {
        forget_parent();
        if (!create_trace())
            return false;
    }
    gm_lock_take(&gm_file.lock);
    gm_trace_update_clock(); /* two pairs this far apart give the rate, should the process be killed
                                soon */
    gm_lock_release(&gm_file.lock);
    __atomic_store_n(&gm_process_page->epoch, ++last_epoch, __ATOMIC_SEQ_CST);
    gm_newer_abi_tell();
    gm_pjrt_tell();
    gm_nvtx_names_tell();
    return true;
}

/* One thread starts, others wait for it. */
static bool process_start(void)
{
    _Atomic uint32_t *state = &gm_process_page->state;
    for (;;) {
        uint32_t now = atomic_load_explicit(state, memory_order_acquire);
        if (now == GM_PROCESS_READY || now == GM_PROCESS_REFUSED)
            return now == GM_PROCESS_READY;
        if (now == GM_PROCESS_STARTING) {
            syscall(SYS_futex, state, FUTEX_WAIT_PRIVATE, GM_PROCESS_STARTING, NULL, NULL, 0);
            continue;
        }
        if (!atomic_compare_exchange_strong(state, &now, GM_PROCESS_STARTING))
            continue;
        bool ready = start_recording(now == GM_PROCESS_BYPASSED);
        atomic_store_explicit(state, ready ? GM_PROCESS_READY : GM_PROCESS_REFUSED,
                              memory_order_release);
        syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
        if (ready)
            gm_stack_prepare();
        return ready;
    }
}

/* No signal handler interrupts it: one that never returned would leave the process starting. */
bool gm_process_join(struct gm_tls *tls)
{
    if (gm_unlikely(gm_is_secure()))
        return false;
    int saved_errno = errno;
    uint64_t signals = gm_signals_block();
    gm_gate_close(tls);
    tls->thread = NULL;
    if (gm_process_make_page() && process_start()) {
        tls->epoch = gm_process_page->epoch;
        tls->thread = gm_thread_claim();
    }
    gm_gate_open(tls);
    gm_signals_restore(signals);
    errno = saved_errno;
    return tls->thread != NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Destructors are not told what exit() was called with; this comes after them. */
static void note_exit(int code, void *unused)
{
    (void)unused;
    if (gm_process_has_page() && gm_process_page->epoch &&
        gm_file.header->pid == (uint32_t)syscall(SYS_getpid))
        gm_seal_tell(gm_status_of_exit(code));
}

/* With a priority of its own: link-time optimisation makes one constructor of all that have none,
 * and gives them no arguments. */
__attribute__((constructor(200))) static void library_loaded(int count, char **arguments,
                                                             char **environment)
{
    (void)count;
    if (gm_is_secure())
        return;
    gm_config_read(arguments, environment);
    on_exit(note_exit, NULL);
    gm_waits_prepare();
    gm_process_make_page();
    loaded_in = syscall(SYS_getpid);
    gm_own_prepare();
    gm_loader_ask_early();
    gm_real_find_early();
}

static void mark_end(enum gm_end end, uint32_t status)
{
    gm_trace_mark_end(end, status);
    if (end == GM_END_NONE)
        gm_seal_take_back();
    else
        gm_seal();
}

/*
 * A process that has the driver, and neither called nor looked up a function of it through us, came
 * to it by a road that does not pass here, or had no use for it. It leaves a trace that says so. So
 * does one that called none which we know, but was given others that could.
 * Not a forked child, which has its parent's libraries mapped whether it wants them or not. _exit
 * does not ask: it may be called on a signal handler's small stack, and no trace is made in that
 * little room.
 */
static void tell_of_bypass(void)
{
    uint32_t idle = GM_PROCESS_IDLE;
    _Atomic uint32_t *state = &gm_process_page->state;
    if (!gm_process_has_page() || *state != GM_PROCESS_IDLE || loaded_in != syscall(SYS_getpid) ||
        (gm_real_driver_reached() && !gm_newer_abi_is_vital()) ||
        !gm_module_is_mapped("libcuda.so") ||
        !atomic_compare_exchange_strong(state, &idle, GM_PROCESS_STARTING))
        return;
    bool created = create_trace();
    if (created) {
        __atomic_fetch_or(&gm_file.header->flags, GM_HEADER_BYPASSED, __ATOMIC_RELAXED);
        gm_newer_abi_write();
        mark_end(GM_END_EXIT, 0);
    }
    atomic_store_explicit(state, created ? GM_PROCESS_BYPASSED : GM_PROCESS_REFUSED,
                          memory_order_release);
    syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* The last destructor of this library: see the one of nvml.c. */
__attribute__((destructor(200))) static void library_unloaded(void)
{
    __atomic_fetch_or(&gm_process_ending, GM_ENDING_EXITING, __ATOMIC_RELAXED);
    if (loaded_in == syscall(SYS_getpid) && gm_module_is_mapped("libcuda.so"))
        gm_newer_abi_note_linked();
    if (!gm_process_mark_end(GM_END_EXIT, 0))
        tell_of_bypass();
}

bool gm_process_mark_end(enum gm_end end, uint32_t status)
{
    /* A vfork child shares this memory: its end is not ours. */
    if (!gm_process_page->epoch || gm_file.header->pid != (uint32_t)syscall(SYS_getpid))
        return false;
    mark_end(end, status);
    return true;
}
