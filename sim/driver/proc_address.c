/*
 * cuGetProcAddress, both ABIs: returns the highest version of a name that is not above the
 * requested one, from the generated table. Needs no cuInit, and finds no unknown name, which
 * includes the empty one.
 */
#include "driver.h"
#include "proc_table.h"

#include <limits.h>
#include <string.h>

/* The first entry of a name, or NULL. */
static const struct gpusim_proc *first_entry(const char *name)
{
    unsigned int low = 0, high = gpusim_proc_count;

    while (low < high) {
        unsigned int middle = low + (high - low) / 2;

        if (strcmp(gpusim_procs[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < gpusim_proc_count && strcmp(gpusim_procs[low].name, name) == 0 ? &gpusim_procs[low]
                                                                                : NULL;
}

static void *find_function(const char *name, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *status)
{
    const struct gpusim_proc *end = gpusim_procs + gpusim_proc_count;
    const struct gpusim_proc *first = first_entry(name);
    const struct gpusim_proc *best = gpusim_future_proc(name, version);
    bool known = first || gpusim_future_proc(name, INT_MAX);

    for (const struct gpusim_proc *entry = first;
         entry && entry < end && strcmp(entry->name, name) == 0 && entry->version <= version;
         entry++)
        best = best && best->version > entry->version ? best : entry;
    if (!best) {
        *status = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return NULL;
    }
    *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && best->per_thread
               ? best->per_thread
               : best->function;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult unused;
    const cuuint64_t streams =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    int newest;

    if (!symbol || !function || (flags & ~streams) || (flags & streams) == streams)
        return CUDA_ERROR_INVALID_VALUE;
    cuDriverGetVersion(&newest);
    if (version > newest)
        return CUDA_ERROR_INVALID_VALUE;
    *function = find_function(symbol, version, flags, status ? status : &unused);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
