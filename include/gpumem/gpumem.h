/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program can tell gpumem, and ask it.
 *
 * Marks and ranges: a program's own names for its work, which become phases of the report.
 *
 *     #include <gpumem/gpumem.h>
 *
 *     for (int epoch = 0; epoch < epochs; epoch++) {
 *         gpumem_range_push("epoch");
 *         ...
 *         gpumem_range_pop();
 *         gpumem_mark("epoch done");
 *     }
 *
 * You need not link anything. Without libgpumem.so in the process each call tests a pointer and
 * does nothing (a question answers GPUMEM_ABSENT); with it, a mark writes a record into the trace, in
 * less than a tenth of a microsecond. No function fails, sets errno or calls CUDA. You can call all of
 * them from any thread, and from a signal handler; if the handler interrupts the recorder, the call
 * is counted and not recorded, and a question answers GPUMEM_UNCERTAIN.
 *
 * Names are bytes, usually UTF-8. Each call copies its name before it returns, cuts it at 4096
 * bytes, and takes NULL as the empty name. A new name for each call ("step 17231") needs trace
 * space each time; "step" needs it once.
 *
 * The first of these calls in a process begins its trace, as its first CUDA call would, so phases
 * before any CUDA call count, too.
 *
 * Other languages look up the functions that the library exports under these names and call them if
 * they find them (Python: docs/pytorch.md).
 */
#ifndef GPUMEM_GPUMEM_H
#define GPUMEM_GPUMEM_H

#include <stddef.h>
#if !defined(__PIC__) && !defined(__PIE__)
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Questions
 *
 * gpumem_live_bytes, gpumem_peak_bytes and gpumem_check_now answer from all that the process did up
 * to the call, in all threads. They are for tests and for looks now and then. The first question
 * costs some 0.1 us for each record of the process so far (allocations, frees, copies), each later
 * one as much for the records since, and about 10 us by itself; who never asks pays nothing. What is
 * alive takes about 128 bytes each from the first question on. Meanwhile other threads may wait
 * where they would wait for a full ring.
 *
 * Sizes are bytes as requested, as docs/accounting.md has them. Not counted is what the driver takes
 * for itself (contexts, code), and what reaches CUDA by a way that gpumem cannot see.
 */
enum gpumem_answer {
    GPUMEM_ABSENT = -1,    /* libgpumem.so is not in the process */
    GPUMEM_OFF = -2,       /* it is, but this process is not recorded: it runs with more rights than
                              its user, or no trace could be made */
    GPUMEM_UNCERTAIN = -3, /* records were lost, or calls not seen (gpumem report says which); or a
                              thread has been inside the recorder for a long time */
    GPUMEM_NO_SUCH = -4,   /* no such device or kind */
};

#define GPUMEM_ALL_DEVICES (-1)

enum gpumem_kind {
    GPUMEM_KIND_ON_DEVICE = 0, /* the kinds from DEVICE to GRAPH together */
    GPUMEM_KIND_DEVICE = 1,
    GPUMEM_KIND_MANAGED = 2,
    GPUMEM_KIND_ARRAY = 3, /* sizes are estimates */
    GPUMEM_KIND_VMM = 4,
    GPUMEM_KIND_GRAPH = 5,
    GPUMEM_KIND_EXTERNAL = 6, /* another owner's memory that was opened here */
    GPUMEM_KIND_PINNED = 7,   /* host memory, from here on */
    GPUMEM_KIND_REGISTERED = 8,
    GPUMEM_KIND_HOST_VMM = 9,
    GPUMEM_KIND_IN_USE =
        10, /* as ON_DEVICE, but where a framework's pool makes blocks of memory, the
                                blocks and not that memory: what its cache keeps is not in use */
    GPUMEM_KIND_BLOCKS = 11, /* these blocks alone */
};

/* What is not freed: see gpumem_check_now. */
struct gpumem_left {
    unsigned long long bytes;
    unsigned long long count; /* allocations */
};

typedef void gpumem_named_function(const char *name);
typedef void gpumem_plain_function(void);
typedef long long gpumem_live_function(int device, int kind);
typedef long long gpumem_peak_function(int device);
typedef unsigned long long gpumem_moment_function(void);
typedef long long gpumem_check_function(unsigned long long since, struct gpumem_left *left);

#ifndef GPUMEM_TYPES_ONLY /* which the library defines, whose functions have these names */

/*
 * The library's functions of the same names, which the functions below call; NULL if absent.
 *
 * A weak symbol costs least. In code of fixed addresses (-no-pie) it would stay NULL, because the
 * linker resolves missing symbols for good; such code asks the dynamic linker at each call. (With
 * glibc before 2.34 such a program needs -ldl.)
 *
 * That makes two functions of one name in one file, so the assembler gets ours as gpumem_stub_...
 */
#if defined(__PIC__) || defined(__PIE__)
extern gpumem_named_function gpumem_library_mark __asm__("gpumem_mark") __attribute__((weak));
extern gpumem_named_function gpumem_library_range_push __asm__("gpumem_range_push")
    __attribute__((weak));
extern gpumem_plain_function gpumem_library_range_pop __asm__("gpumem_range_pop")
    __attribute__((weak));
extern gpumem_live_function gpumem_library_live_bytes __asm__("gpumem_live_bytes")
    __attribute__((weak));
extern gpumem_peak_function gpumem_library_peak_bytes __asm__("gpumem_peak_bytes")
    __attribute__((weak));
extern gpumem_plain_function gpumem_library_peak_restart __asm__("gpumem_peak_restart")
    __attribute__((weak));
extern gpumem_moment_function gpumem_library_moment __asm__("gpumem_moment") __attribute__((weak));
extern gpumem_check_function gpumem_library_check_now __asm__("gpumem_check_now")
    __attribute__((weak));
extern gpumem_plain_function gpumem_library_ignore_begin __asm__("gpumem_ignore_begin")
    __attribute__((weak));
extern gpumem_plain_function gpumem_library_ignore_end __asm__("gpumem_ignore_end")
    __attribute__((weak));
#define GPUMEM_LIBRARY_(type, name) gpumem_library_##name
#else
#define GPUMEM_LIBRARY_(type, name) (__extension__(type *) dlsym(RTLD_DEFAULT, "gpumem_" #name))
#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT NULL /* <dlfcn.h> declares it only with _GNU_SOURCE */
#endif
#endif

/* A moment of the process: the report finds sites whose live bytes rise from mark to mark. */
static inline void gpumem_mark(const char *name) __asm__("gpumem_stub_mark");
static inline void gpumem_mark(const char *name)
{
    gpumem_named_function *function = GPUMEM_LIBRARY_(gpumem_named_function, mark);
    if (function)
        function(name);
}

/* Begins a range on the calling thread. Ranges nest. */
static inline void gpumem_range_push(const char *name) __asm__("gpumem_stub_range_push");
static inline void gpumem_range_push(const char *name)
{
    gpumem_named_function *function = GPUMEM_LIBRARY_(gpumem_named_function, range_push);
    if (function)
        function(name);
}

/* Ends the calling thread's innermost range. The recorder records one call too many; the report
 * ignores it. */
static inline void gpumem_range_pop(void) __asm__("gpumem_stub_range_pop");
static inline void gpumem_range_pop(void)
{
    gpumem_plain_function *function = GPUMEM_LIBRARY_(gpumem_plain_function, range_pop);
    if (function)
        function();
}

/* Whether libgpumem.so is in the process. It may be there and not record: GPUMEM_OFF. */
static inline int gpumem_active(void)
{
    return GPUMEM_LIBRARY_(gpumem_plain_function, range_pop) != NULL;
}

/* Bytes of `kind` (enum gpumem_kind) that are alive on a device (by ordinal), or on all
 * (GPUMEM_ALL_DEVICES); or a negative enum gpumem_answer. Memory whose device is not known counts
 * only in all. The kinds of host memory need GPUMEM_ALL_DEVICES: their device means little. */
static inline long long gpumem_live_bytes(int device, int kind) __asm__("gpumem_stub_live_bytes");
static inline long long gpumem_live_bytes(int device, int kind)
{
    gpumem_live_function *function = GPUMEM_LIBRARY_(gpumem_live_function, live_bytes);
    if (function)
        return function(device, kind);
    return GPUMEM_ABSENT;
}

/* The most bytes in use (GPUMEM_KIND_IN_USE) on a device at one time since the latest
 * gpumem_peak_restart of any thread, or of the process; or a negative enum gpumem_answer. */
static inline long long gpumem_peak_bytes(int device) __asm__("gpumem_stub_peak_bytes");
static inline long long gpumem_peak_bytes(int device)
{
    gpumem_peak_function *function = GPUMEM_LIBRARY_(gpumem_peak_function, peak_bytes);
    if (function)
        return function(device);
    return GPUMEM_ABSENT;
}

/* From here on the peak of each device counts from what is in use now. */
static inline void gpumem_peak_restart(void) __asm__("gpumem_stub_peak_restart");
static inline void gpumem_peak_restart(void)
{
    gpumem_plain_function *function = GPUMEM_LIBRARY_(gpumem_plain_function, peak_restart);
    if (function)
        function();
}

/* The present, for gpumem_check_now. Means something in this process alone. */
static inline unsigned long long gpumem_moment(void) __asm__("gpumem_stub_moment");
static inline unsigned long long gpumem_moment(void)
{
    gpumem_moment_function *function = GPUMEM_LIBRARY_(gpumem_moment_function, moment);
    return function ? function() : 0;
}

/*
 * Judges leaks now, as LeakSanitizer's __lsan_do_recoverable_leak_check does: how many allocations
 * since the moment `since` (0: since the process began) are not freed. 0: none. Negative: there is
 * no answer (enum gpumem_answer), so compare with 0 to pass. Nothing is printed, nobody is stopped.
 * `left`, if not NULL, gets the sums; zeros where there is no answer.
 *
 * Counts all kinds of memory of all threads and devices, those of a framework's pool by the blocks
 * in use. Does not count what is between gpumem_ignore_begin and _end, nor what a framework's cache
 * keeps. What a library allocates once, at its first use, counts: use the library once before.
 */
static inline long long gpumem_check_now(unsigned long long since,
                                         struct gpumem_left *left) __asm__("gpumem_stub_check_now");
static inline long long gpumem_check_now(unsigned long long since, struct gpumem_left *left)
{
    gpumem_check_function *function = GPUMEM_LIBRARY_(gpumem_check_function, check_now);
    if (function)
        return function(since, left);
    if (left) {
        left->bytes = 0;
        left->count = 0;
    }
    return GPUMEM_ABSENT;
}

/*
 * What the calling thread allocates between the two is no leak: the trace says so, `gpumem report`
 * shows it by itself, and neither `gpumem check` nor gpumem_check_now count it. They nest. A call of
 * _end too many does nothing. In a child of fork the thread that forked goes on as it was.
 */
static inline void gpumem_ignore_begin(void) __asm__("gpumem_stub_ignore_begin");
static inline void gpumem_ignore_begin(void)
{
    gpumem_plain_function *function = GPUMEM_LIBRARY_(gpumem_plain_function, ignore_begin);
    if (function)
        function();
}

static inline void gpumem_ignore_end(void) __asm__("gpumem_stub_ignore_end");
static inline void gpumem_ignore_end(void)
{
    gpumem_plain_function *function = GPUMEM_LIBRARY_(gpumem_plain_function, ignore_end);
    if (function)
        function();
}

#undef GPUMEM_LIBRARY_
#endif

#ifdef __cplusplus
}
#endif

#endif
