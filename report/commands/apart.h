/*
 * Reads one trace in a process of its own.
 *
 * The rule: whatever reading a trace comes to (memory that ends, a file that shrinks, a defect of
 * ours that a hostile file finds), the other traces are reported and what stands on stdout is
 * whole: all that a trace leads to, or nothing.
 */
#ifndef GPUMEM_REPORT_COMMANDS_APART_H
#define GPUMEM_REPORT_COMMANDS_APART_H

#include <stdbool.h>
#include <stddef.h>

/* Runs in the process that is made for the trace. May print on stdout. `answer` is what the caller
 * gets to see: no pointers. */
typedef void (*gm_apart_reader)(const char *path, const void *request, void *answer);

/* Calls the reader, then prints what it printed, and copies the answer, which begins as zeros.
 * False after one line about it if the reader did not return: nothing is printed, the answer is
 * zeros. */
bool gm_apart(gm_apart_reader reader, const char *path, const void *request, void *answer,
              size_t size);

/* The same, but what the reader printed is not printed: `text` gets it, of `length` bytes, to be
 * freed by the caller; NULL if the reader did not return. */
bool gm_apart_capture(gm_apart_reader reader, const char *path, const void *request, void *answer,
                      size_t size, char **text, size_t *length);

#endif
