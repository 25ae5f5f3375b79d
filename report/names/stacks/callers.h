/* Where the application stands in a stack: the node of its innermost Python frame, else of its
 * innermost native frame, else of the innermost Python frame, else the stack itself. Two calls that
 * the application makes at one place, the same way, have one caller, whatever libraries do beyond
 * and wherever the interpreter stands.
 *
 * Autograd runs backward passes in threads of its own, whose stacks have no frame of the program. Such
 * a stack borrows (same_stacks.h) the line that called backward(), if it was seen before: stacks are
 * to be asked for in the order of the trace.
 *
 * Told by the names of files alone; answers are kept. */
#ifndef GPUMEM_REPORT_STACKS_CALLERS_H
#define GPUMEM_REPORT_STACKS_CALLERS_H

#include "input/trace/trace_file.h"
#include <stddef.h>
#include <stdint.h>

struct gm_callers;
struct gm_callers *gm_callers_new(const struct gm_trace *trace);
void gm_callers_free(struct gm_callers *callers);

/* Node id of the caller; 0 for the empty stack. */
uint32_t gm_callers_get(struct gm_callers *callers, uint32_t stack);

/* A number that two stacks have in common if their callers are one line of Python, or one address of
 * a module, on whatever ways they were reached; 0 only for the empty stack. Two lines may share it by
 * an accident of hashing. */
uint64_t gm_callers_line(struct gm_callers *callers, uint32_t stack);

/* A number that two stacks have in common if the application's frames are the same in both, not only the
 * innermost: by which way its line was reached. A function that calls itself counts once. */
uint64_t gm_callers_way(struct gm_callers *callers, uint32_t stack);

/* How many of the application's frames, from the caller on outwards, two stacks have in common. */
size_t gm_callers_common(struct gm_callers *callers, uint32_t one, uint32_t other);

#endif
