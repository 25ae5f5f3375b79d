/*
 * cuGetProcAddress, both ABIs: returns the newest ABI of a name, from the generated table, that is
 * neither above the requested version nor above the driver's. Needs no cuInit.
 *
 * What NVIDIA's text leaves open is as its drivers answer (tests/genuine):
 *   - A negative version asks for the newest ABI. So does one above the driver's up to 12.5; drivers
 *     of 13.0 and later refuse it.
 *   - Both stream flags together ask for the per-thread form. That form came with 7.0, and who asks
 *     for it by an older version of a function that has one gets nothing.
 *   - Of a function that is not there the first ABI returns an error and leaves *function alone; the
 *     second succeeds, stores NULL, and tells why by its status.
 */
#include "driver.h"
#include "proc_table.h"

#include <string.h>

#define PER_THREAD_SINCE 7000
#define STRICT_SINCE 13000 /* or some version between 12.5 and this one */

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

/* The newest ABI up to a version that a driver has, or the newest with a per-thread form; NULL: none. */
static const struct gpusim_proc *newest_entry(const char *name, int version, int driver,
                                              bool per_thread)
{
    const struct gpusim_proc *end = gpusim_procs + gpusim_proc_count, *best = NULL;
    const struct gpusim_proc *future = gpusim_future_proc(name, version);

    if (per_thread && version < PER_THREAD_SINCE)
        return NULL;
    for (const struct gpusim_proc *entry = first_entry(name);
         entry && entry < end && strcmp(entry->name, name) == 0 && entry->version <= version;
         entry++)
        if (entry->driver <= driver && (!per_thread || entry->per_thread))
            best = entry;
    if (!future || (per_thread && !future->per_thread) || (best && best->version > future->version))
        return best;
    return future;
}

static void *find_function(const char *name, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *status)
{
    int newest;

    cuDriverGetVersion(&newest);
    if ((unsigned int)version > (unsigned int)newest)
        version = newest;
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) &&
                      newest_entry(name, newest, newest, true);
    const struct gpusim_proc *best = newest_entry(name, version, newest, per_thread);
    *status = best ? CU_GET_PROC_ADDRESS_SUCCESS
              : newest_entry(name, newest, newest, false)
                  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return !best ? NULL : per_thread ? best->per_thread : best->function;
}

/* Whether the arguments are valid. NVIDIA's drivers crash without a name or a place for the answer. */
static bool is_question(const char *symbol, void **function, int version, cuuint64_t flags)
{
    const cuuint64_t streams =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    int newest;

    cuDriverGetVersion(&newest);
    return symbol && function && !(flags & ~streams) &&
           (version <= newest || newest < STRICT_SINCE);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult unused;

    if (!is_question(symbol, function, version, flags))
        return CUDA_ERROR_INVALID_VALUE;
    *function = find_function(symbol, version, flags, status ? status : &unused);
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult unused;

    if (!is_question(symbol, function, version, flags))
        return CUDA_ERROR_INVALID_VALUE;
    void *found = find_function(symbol, version, flags, &unused);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *function = found;
    return CUDA_SUCCESS;
}
