/*
 * The oracle: totals by docs/accounting.md in the file of GPUMEM_SIM_ORACLE, and injected failures.
 *
 * Relies on the driver lock. Without the variable the totals go to memory of our own, so that the
 * callers need not know. The file is mapped shared, so every update survives whatever ends the
 * process.
 */
#include "driver.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct gpusim_oracle unwatched;
static struct gpusim_oracle *totals = &unwatched;
static unsigned long allocation_calls, free_calls, take_calls;

/* The path with every %p replaced by the process id; false when it does not fit. */
static bool expand_path(const char *pattern, char *path, size_t size)
{
    size_t used = 0;

    for (const char *from = pattern; *from; from++) {
        int written;

        if (from[0] == '%' && from[1] == 'p') {
            written = snprintf(path + used, size - used, "%ld", (long)getpid());
            from++;
        } else {
            written = snprintf(path + used, size - used, "%c", *from);
        }
        if (written < 0 || (size_t)written >= size - used)
            return false;
        used += (size_t)written;
    }
    return used > 0;
}

static struct gpusim_oracle *map_new_file(const char *path)
{
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return NULL;

    void *mapped = MAP_FAILED;
    if (ftruncate(fd, sizeof(struct gpusim_oracle)) == 0) {
        mapped =
            mmap(NULL, sizeof(struct gpusim_oracle), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void gpusim_totals_open(void)
{
    const char *pattern = getenv("GPUMEM_SIM_ORACLE");
    char path[PATH_MAX];

    if (pattern && *pattern) {
        struct gpusim_oracle *mapped =
            expand_path(pattern, path, sizeof(path)) ? map_new_file(path) : NULL;

        if (mapped)
            totals = mapped;
        else /* a test that asked for an oracle must not go on without one unnoticed */
            fprintf(stderr, "gpumem simulator: cannot create the oracle '%s'\n", pattern);
    }
    totals->version = GPUSIM_ORACLE_VERSION;
    totals->device_count = (uint32_t)gpusim_settings.device_count;
    memcpy(totals->magic, GPUSIM_ORACLE_MAGIC, sizeof(totals->magic));
}

static void count_allocation(struct gpusim_counter *counter, uint64_t bytes)
{
    counter->live += bytes;
    counter->allocs++;
    if (counter->live > counter->peak)
        counter->peak = counter->live;
}

static void count_free(struct gpusim_counter *counter, uint64_t bytes, bool implicit)
{
    counter->live -= bytes;
    if (implicit)
        counter->implicit_frees++;
    else
        counter->frees++;
}

void gpusim_count_alloc(const struct gpusim_device *device, enum gpusim_device_kind kind,
                        uint64_t bytes)
{
    struct gpusim_device_totals *of_device = &totals->device[device->ordinal];

    count_allocation(&of_device->kind[kind], bytes);
    if (kind == GPUSIM_EXTERNAL)
        return;
    of_device->live += bytes;
    if (of_device->live > of_device->peak)
        of_device->peak = of_device->live;
}

void gpusim_count_more(const struct gpusim_device *device, enum gpusim_device_kind kind,
                       uint64_t bytes)
{
    gpusim_count_alloc(device, kind, bytes);
    totals->device[device->ordinal].kind[kind].allocs--;
}

void gpusim_count_free(const struct gpusim_device *device, enum gpusim_device_kind kind,
                       uint64_t bytes, bool implicit)
{
    struct gpusim_device_totals *of_device = &totals->device[device->ordinal];

    count_free(&of_device->kind[kind], bytes, implicit);
    if (kind != GPUSIM_EXTERNAL)
        of_device->live -= bytes;
}

void gpusim_count_host_alloc(enum gpusim_host_kind kind, uint64_t bytes)
{
    count_allocation(&totals->host[kind], bytes);
}

void gpusim_count_host_free(enum gpusim_host_kind kind, uint64_t bytes, bool implicit)
{
    count_free(&totals->host[kind], bytes, implicit);
}

static bool is_due(unsigned long *calls, unsigned long every)
{
    return every && ++*calls % every == 0;
}

CUresult gpusim_allocation_begin(void)
{
    GPUSIM_TRY(gpusim_failure());
    return is_due(&allocation_calls, gpusim_settings.fail_alloc_every) ? CUDA_ERROR_OUT_OF_MEMORY
                                                                       : CUDA_SUCCESS;
}

CUresult gpusim_allocation_end(CUresult result)
{
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        totals->failed++;
    else if (result != CUDA_SUCCESS)
        totals->rejected++;
    return result;
}

CUresult gpusim_take_begin(void)
{
    return is_due(&take_calls, gpusim_settings.fail_other_every)
               ? gpusim_allocation_end(CUDA_ERROR_OUT_OF_MEMORY)
               : CUDA_SUCCESS;
}

/* An error that says nothing of the device: what failed it would fail all that follows. */
CUresult gpusim_free_begin(void)
{
    return is_due(&free_calls, gpusim_settings.fail_free_every) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
