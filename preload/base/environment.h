/*
 * The variables that the recorder wants to know: those worth recording, and those that the pattern
 * of the trace's name names (%q). What exec gave the process lies where programs write their titles
 * (setproctitle), so it is copied before the program runs; what the program has set or taken back
 * since then is seen when a trace begins.
 *
 * GPUMEM_ variables alone stay as they were at the start: the recorder acts on those (config.h).
 */
#ifndef GPUMEM_PRELOAD_BASE_ENVIRONMENT_H
#define GPUMEM_PRELOAD_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#define GM_VARIABLE_MAX 4095u /* bytes of one variable that is recorded, with its end */

/* Copies what is wanted. From the constructor: no other thread is changing the environment. */
void gm_environment_note(char *const *environment, const char *pattern);

/*
 * Sees what the program has changed. Other threads may be changing the environment meanwhile, and
 * free what is read, so the kernel is asked to read it: memory that is gone is no fault then. Where
 * it refuses (process_vm_readv), the values are those of the start. One thread at a time.
 */
void gm_environment_look(const char *pattern);

/* The value of a wanted variable at the last look, or at the start; NULL: it was not set. */
const char *gm_environment_value(const char *name);

/* "NAME=value" behind `before`, the first for NULL; NULL at the end. One that is longer than
 * GM_VARIABLE_MAX is cut, to exactly that many characters. */
const char *gm_environment_next(const char *before);

/* How many wanted variables had no room. */
uint32_t gm_environment_left_out(void);

/* Whether a variable is worth recording in the trace: what decides how memory is used. */
bool gm_environment_is_recorded(const char *name_and_value);

#endif
