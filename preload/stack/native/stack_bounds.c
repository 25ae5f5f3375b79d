/* See stack_bounds.h. */
#include "stack/native/stack_bounds.h"
#include "base/platform.h"
#include "stack/native/unwind_maps.h"
#include <pthread.h>
#include <sys/auxv.h>

/* The main stack grows; the kernel keeps at least this much below its end free of mappings. */
#define MAIN_STACK_GAP (UINT64_C(128) << 20)

/* The kernel lays 16 random bytes on the main stack, above all frames. */
static bool find_main_stack(uint64_t *low, uint64_t *high)
{
    struct gm_mapping mapping;
    if (!gm_mapping_find(getauxval(AT_RANDOM), &mapping))
        return false;
    *high = mapping.end;
    *low = mapping.end - MAIN_STACK_GAP;
    if (*low < mapping.previous_end)
        *low = mapping.previous_end;
    if (*low > mapping.start)
        *low = mapping.start;
    return true;
}

/*
 * The C library keeps a thread's descriptor at the upper end of its stack, in the same mapping,
 * also if the program gave the memory; pthread_self() is its address.
 */
static bool find_other_stack(uint64_t *low, uint64_t *high)
{
    struct gm_mapping mapping;
    *high = (uint64_t)pthread_self();
    if (!gm_mapping_find(*high, &mapping))
        return false;
    *low = mapping.start;
    return true;
}

bool gm_stack_of_thread(uint64_t *low, uint64_t *high)
{
    bool is_main = syscall(SYS_gettid) == syscall(SYS_getpid);
    return is_main ? find_main_stack(low, high) : find_other_stack(low, high);
}

/*
 * rt_sigprocmask copies the mask before it looks at `how`: EFAULT tells that the memory is not
 * there, EINVAL that it is, and nothing is changed.
 */
bool gm_page_is_readable(uint64_t address)
{
    int saved_errno = errno;
    const uint64_t *word = (const uint64_t *)(uintptr_t)(address & ~UINT64_C(7));
    syscall(SYS_rt_sigprocmask, -1, word, NULL, sizeof *word);
    bool readable = errno != EFAULT;
    errno = saved_errno;
    return readable;
}
