/*
 * Functions that the program was given with an ABI which the table does not know: a newer CUDA's.
 * They are left alone, so what their calls do is not seen; the trace says so.
 *
 * Lookups can come before there is a trace, which they do not begin, and long after it; a child has
 * the pointers of its parent. So what is noted belongs to the process and to its children, and each
 * trace is told of all of it. Nothing here waits, allocates or fails.
 */
#ifndef GPUMEM_PRELOAD_INTERPOSE_NEWER_ABI_H
#define GPUMEM_PRELOAD_INTERPOSE_NEWER_ABI_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * `api` is a row of that function, `suffix` what stood behind its name ("", "_v3", "_v3_ptsz"),
 * `version` the CUDA version that was asked for, 0 if none was.
 */
void gm_newer_abi_note(uint16_t api, int version, const char *suffix);

/* A name that dlsym is asked for: the row of the function that it is an unknown form of, or 0. */
uint16_t gm_newer_abi_form(const char *symbol);

/* Notes what the loaded objects are linked to: no lookup comes here for that. Takes the loader's
 * lock for as long as it looks. */
void gm_newer_abi_note_linked(void);

/* Whether a function was noted that makes or ends memory. */
bool gm_newer_abi_is_vital(void);

/* Brings the header of this process's trace up to date with what is noted. */
void gm_newer_abi_write(void);

/* The same, if there is a trace that records. To be called when one begins;
 * from then on whatever notes something calls it. */
void gm_newer_abi_tell(void);

#endif
