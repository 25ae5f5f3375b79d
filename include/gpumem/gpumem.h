/*
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
 * does nothing; with it, each call writes a record into the trace, in less than a tenth of a
 * microsecond. No function fails, sets errno or calls CUDA. You can call all of them from any
 * thread, and from a signal handler; if the handler interrupts the recorder, the call is counted
 * and not recorded.
 *
 * Names are bytes, usually UTF-8. Each call copies its name before it returns, cuts it at 4096
 * bytes, and takes NULL as the empty name. A new name for each call ("step 17231") needs trace
 * space each time; "step" needs it once.
 *
 * The first of these calls in a process begins its trace, as its first CUDA call would, so phases
 * before any CUDA call count, too.
 *
 * Other languages look up the three functions that the library exports under these names and call
 * them if they find them (Python: docs/pytorch.md).
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
 * The library's functions of the same names, which the functions below call; NULL if absent.
 *
 * A weak symbol costs least. In code of fixed addresses (-no-pie) it would stay NULL, because the
 * linker resolves missing symbols for good; such code asks the dynamic linker at each call. (With
 * glibc before 2.34 such a program needs -ldl.)
 *
 * That makes two functions of one name in one file, so the assembler gets ours as gpumem_stub_...
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

#undef GPUMEM_LIBRARY_

#ifdef __cplusplus
}
#endif

#endif
