/*
 * Configuration by environment, read once in the library's constructor: later the environment may
 * be changing under another thread, and what the program sets there is for its children. Values are untrusted: one that is not understood leaves the
 * default. The preload itself never prints: gpumem judges the values by the same functions
 * (gpumem/settings.h), `run` before it starts the command, `report` and `info` by the environment
 * that is recorded in the trace.
 */
#ifndef GPUMEM_PRELOAD_BASE_CONFIG_H
#define GPUMEM_PRELOAD_BASE_CONFIG_H

#include <gpumem/settings.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_config {
    char output[GM_OUTPUT_MAX]; /* GPUMEM_OUTPUT, before expansion */
    char run_id[40];            /* GPUMEM_RUN */
    uint32_t ring_records;      /* per thread, a power of two; from GPUMEM_RING in bytes */
    uint32_t depth;             /* frames of a stack, GPUMEM_DEPTH, 1..256 */
    bool native_stacks;         /* GPUMEM_STACKS */
    bool python_stacks;
    bool drop_on_full;       /* GPUMEM_ON_FULL=drop */
    bool flight;             /* GPUMEM_MODE=flight */
    uint64_t flight_size;    /* bytes, GPUMEM_FLIGHT_SIZE */
    bool torch;              /* GPUMEM_TORCH, default on */
    bool xla;                /* GPUMEM_XLA, default on */
    bool nvml;               /* GPUMEM_NVML, default on */
    bool nvtx;               /* GPUMEM_NVTX, default off */
    char nvtx_next[4096];    /* GPUMEM_NVTX_NEXT: path of the NVTX tool after us; empty: none */
    char command_line[1024]; /* as exec gave it: arguments with their ends, cut to fit */
    uint32_t command_line_size;
};

extern struct gm_config gm_config;

/* Fills gm_config from the environment, and notes what exec gave the process before the program may
 * write over it. */
void gm_config_read(char *const *arguments, char *const *environment);

/*
 * Expands %e (program), %p (pid), %h (host), %r (rank), %q{VAR} and %% of `output` into `path`,
 * variables as of the last gm_environment_look.
 * Unknown escapes stay as they are. Returns false when the result does not fit.
 */
bool gm_config_path(char *path, size_t size, const char *program, const char *host, uint32_t pid);

#endif
