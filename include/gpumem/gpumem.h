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
 * and does nothing; with it, a record in the trace of about 30 ns and, at the first use of a name,
 * a microsecond. No function fails, sets errno or calls CUDA. All can be called from any thread;
 * from a signal handler too, where a call that interrupts the recorder is counted, not recorded.
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
 * The library's functions under names of the header's own, so that the plain names below can be
 * those of the stubs. Their assembly names differ for the same reason.
 *
 * In code of fixed addresses (-no-pie) the linker settles a weak symbol that it does not find: it
 * would be absent for good. There the dynamic linker is asked at each call; with glibc before 2.34
 * such a program needs -ldl.
 */
#if defined(__PIC__) || defined(__PIE__)
#define GPUMEM_DECLARE_(name, parameters)                                                          \
    extern void gpumem_library_##name parameters __asm__("gpumem_" #name) __attribute__((weak));
#define GPUMEM_FIND_(name) gpumem_library_##name
#else
#define GPUMEM_DECLARE_(name, parameters) typedef void gpumem_library_##name parameters;
#define GPUMEM_FIND_(name) ((gpumem_library_##name *)dlsym(NULL /* all */, "gpumem_" #name))
#endif
#define GPUMEM_STUB_(name) static inline __attribute__((always_inline, unused)) void gpumem_##name

GPUMEM_DECLARE_(mark, (const char *name))
GPUMEM_DECLARE_(range_push, (const char *name))
GPUMEM_DECLARE_(range_pop, (void))

/* A moment of the process: "growing" sites are those whose live bytes rise from mark to mark. */
GPUMEM_STUB_(mark)(const char *name)
{
    if (GPUMEM_FIND_(mark))
        GPUMEM_FIND_(mark)(name);
}

/* Begins a range on the calling thread. Ranges nest. */
GPUMEM_STUB_(range_push)(const char *name)
{
    if (GPUMEM_FIND_(range_push))
        GPUMEM_FIND_(range_push)(name);
}

/* Ends the calling thread's innermost range; one too many is recorded and ignored by the report. */
GPUMEM_STUB_(range_pop)(void)
{
    if (GPUMEM_FIND_(range_pop))
        GPUMEM_FIND_(range_pop)();
}

#undef GPUMEM_DECLARE_
#undef GPUMEM_FIND_
#undef GPUMEM_STUB_

#ifdef __cplusplus
}
#endif

#endif
