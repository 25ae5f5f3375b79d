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
#include <sys/types.h>

/* Runs in the process that is made for the trace. May print on stdout. `answer` is what the caller
 * gets to see: no pointers. */
typedef void (*gm_apart_reader)(const char *path, const void *request, void *answer);

/* Calls the reader, then prints what it printed, and copies the answer, which begins as zeros.
 * False after one line about it if the reader did not return: nothing is printed, the answer is
 * zeros. */
bool gm_apart(gm_apart_reader reader, const char *path, const void *request, void *answer,
              size_t size);

/* The same in two steps, for several traces at a time: the reader works while the caller does something else. Each that
 * was started must be ended, in any order. With `text` what the reader printed is not printed: the caller gets it, of
 * `*length` bytes, and frees it; NULL if the reader did not return. */
struct gm_apart {
    pid_t child; /* -1: it was not started, which was said */
    int output;  /* stands for the child's stdout */
    void *answer;
    size_t size; /* bytes of the answer */
    const char *path;
};

void gm_apart_start(struct gm_apart *apart, gm_apart_reader reader, const char *path,
                    const void *request, size_t size);
bool gm_apart_end(const struct gm_apart *apart, void *answer, char **text, size_t *length);

#endif
