/*
 * The oracle: exact totals kept by the simulated driver, written by docs/accounting.md.
 *
 * The driver maps the file named by GPUMEM_SIM_ORACLE (MAP_SHARED) at its first cuInit and updates
 * it under its own lock, so that the totals survive every ending of the process, SIGKILL included.
 * It shares no code with the preload or the report, which makes it an oracle.
 */
#ifndef GPUMEM_SIM_ORACLE_H
#define GPUMEM_SIM_ORACLE_H

#include <stdint.h>

#define GPUSIM_ORACLE_MAGIC "GMORACLE"
#define GPUSIM_ORACLE_VERSION 1u
#define GPUSIM_MAX_DEVICES 16

enum gpusim_device_kind {
    GPUSIM_DEVICE,
    GPUSIM_MANAGED,
    GPUSIM_ARRAY,
    GPUSIM_VMM,
    GPUSIM_GRAPH,
    GPUSIM_EXTERNAL,
    GPUSIM_DEVICE_KINDS
};

enum gpusim_host_kind { GPUSIM_PINNED, GPUSIM_REGISTERED, GPUSIM_HOST_VMM, GPUSIM_HOST_KINDS };

struct gpusim_counter {
    uint64_t live; /* bytes */
    uint64_t peak; /* bytes: largest live so far */
    uint64_t allocs;
    uint64_t frees;
    uint64_t implicit_frees;
};

struct gpusim_device_totals {
    struct gpusim_counter kind[GPUSIM_DEVICE_KINDS];
    uint64_t live; /* bytes, all kinds but external */
    uint64_t peak; /* bytes */
};

struct gpusim_oracle {
    char magic[8];
    uint32_t version;
    uint32_t device_count;
    uint64_t failed;   /* allocation calls refused with CUDA_ERROR_OUT_OF_MEMORY */
    uint64_t rejected; /* allocation calls refused with any other error */
    struct gpusim_device_totals device[GPUSIM_MAX_DEVICES];
    struct gpusim_counter host[GPUSIM_HOST_KINDS];
};

#endif
