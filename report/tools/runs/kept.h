/* The traces of the newest dry run that was started in this folder, kept in the user's cache folder, so that commands
 * find them that are given no trace.
 *
 * Guarantees: nothing is written to the folder where the run was started. What is kept stays below a number and a size.
 * A folder that others may write to, and files that are another user's or links, are as good as none.
 */
#ifndef GPUMEM_REPORT_RUNS_KEPT_H
#define GPUMEM_REPORT_RUNS_KEPT_H

#include <stddef.h>
#include <time.h>

/* Moves traces there, all or none, and puts their new places into `traces` (allocated by gm_allocate). What was kept of
 * this folder before, and written before `began`, is removed in any case: it is no more of the newest run. Returns why
 * they are not kept; NULL: they are. */
const char *gm_kept_replace(char **traces, size_t count, struct timespec began);

/* Calls `take` with each trace that is kept of this folder. */
void gm_kept_list(void (*take)(void *context, const char *path), void *context);

#endif
