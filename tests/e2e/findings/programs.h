/* Shared by small programs that use memory as real ones do, sound and not.
 *
 * A comment `finding: CODE` at the end of a line says that the report must have this finding at
 * that line, `marked: CODE` that it must if the program names its steps, `leak` that it must report
 * a leak there (findings.py). A program without such comments is sound: the report must find
 * nothing.
 */
#ifndef GPUMEM_TESTS_FINDINGS_PROGRAMS_H
#define GPUMEM_TESTS_FINDINGS_PROGRAMS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

struct program {
    const char *name;
    void (*run)(void);
};

extern const struct program sound_programs[], sick_programs[]; /* end with a name of NULL */

/* Ends the test if a call failed. */
void check(cudaError_t error);

/* Names a step, if the program was asked to. */
void step_done(const char *name);

/* A number that looks random, the same in every run: in [least, most]. */
size_t draw(size_t least, size_t most);

/* cudaFree, and sets the pointer to NULL. */
void release(void **memory);

/* The temporaries of a step: takes a few of that size and gives them back. */
void work(size_t bytes);

#endif
