/* The stacks of a trace with names: what a reader is shown for a stack id.
 *
 * Each distinct address is named once, each distinct stack built once. Strings are clean (valid
 * UTF-8, no control characters) and live as long as the struct. Memory: distinct stacks that are
 * asked for.
 */
#ifndef GPUMEM_REPORT_STACKS_STACKS_H
#define GPUMEM_REPORT_STACKS_STACKS_H

#include "base/frame.h"
#include "input/trace/trace_file.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_stacks_options {
    bool names;          /* symbolize; otherwise module+offset only */
    bool all_frames;     /* also the recorder's, CUDA's, the interpreter's and those before main */
    bool debuginfod;     /* may debug info be downloaded? */
    const char *sysroot; /* where modules are looked for first; NULL */
    bool no_local_files; /* no file is opened because the trace names its path */
    bool redact;         /* names of files, machines and users are not for the reader: redact.h */
};

struct gm_stacks;

struct gm_stacks *gm_stacks_new(const struct gm_trace *trace,
                                const struct gm_stacks_options *options);
void gm_stacks_free(struct gm_stacks *stacks);

/* The stack with that id, for a call of API function number `api`. */
const struct gm_stack *gm_stacks_get(struct gm_stacks *stacks, uint32_t id, uint16_t api);

/* A number that stacks of equal functions have in common, told without a symbol: by their modules and functions of
 * Python, of which what stands in a row counts once, as inlined functions come and go. Others may have it, too. */
uint64_t gm_stacks_outline(struct gm_stacks *stacks, uint32_t id);

#endif
