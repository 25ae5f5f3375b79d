/*
 * Marks and ranges: a program's own names for what it is doing, as phases of the report.
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
 * Nothing has to be linked. Without libgpumem.so in the process each call is a test of a pointer
 * and does nothing; with it, a record in the trace, in less than a tenth of a microsecond. No
 * function fails, sets errno or calls CUDA. All can be called from any thread; from a signal
 * handler too, where a call that interrupts the recorder is counted, not recorded.
 *
 * Names are bytes, UTF-8 by custom, copied before the call returns; they are cut at 4096 bytes, and
 * NULL is the empty name. A name made anew for each call ("step 17231") costs trace space for ever;
 * "step" costs it once.
 *
 * The first of these calls in a process begins its trace, as its first CUDA call would: phases
 * before that are phases too.
 *
 * Other languages call the same three names as exported by the library, when they find them in the
 * process (Python: docs/pytorch.md).
 */
#ifndef GPUMEM_GPUMEM_H
#define GPUMEM_GPUMEM_H

#if !defined(__PIC__) && !defined(__PIE__)
#include <dlfcn.h>
#include <stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the functions below call: the library's function of the same name, NULL when absent.
 *
 * A weak symbol costs least. In code of fixed addresses (-no-pie) it would be absent for good,
 * because the linker settles what it does not find; there the dynamic linker is asked at each call.
 * (With glibc before 2.34 such a program needs -ldl.)
 *
 * Two functions of one name in one file: the assembler knows ours as gpumem_stub_...
 */
typedef void gpumem_named_function(const char *name);
typedef void gpumem_plain_function(void);

#if defined(__PIC__) || defined(__PIE__)
extern gpumem_named_function gpumem_library_mark __asm__("gpumem_mark") __attribute__((weak));
extern gpumem_named_function gpumem_library_range_push __asm__("gpumem_range_push")
    __attribute__((weak));
extern gpumem_plain_function gpumem_library_range_pop __asm__("gpumem_range_pop")
    __attribute__((weak));
#define GPUMEM_LIBRARY_(type, name) gpumem_library_##name
#else
#define GPUMEM_LIBRARY_(type, name) (__extension__(type *) dlsym(RTLD_DEFAULT, "gpumem_" #name))
#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT NULL /* <dlfcn.h> tells only those who define _GNU_SOURCE */
#endif
#endif

/* A moment of the process: "growing" sites are those whose live bytes rise from mark to mark. */
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

/* Ends the calling thread's innermost range; one too many is recorded and ignored by the report. */
static inline void gpumem_range_pop(void) __asm__("gpumem_stub_range_pop");
static inline void gpumem_range_pop(void)
{
    gpumem_plain_function *function = GPUMEM_LIBRARY_(gpumem_plain_function, range_pop);
    if (function)
        function();
}

#undef GPUMEM_LIBRARY_

#ifdef __cplusplus
}
#endif

#endif
