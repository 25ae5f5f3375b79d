/* A process beside a dry run that sees to it that nothing outlives its end, however it ends.
 *
 * Guarantees: once the dry run has ended without saying that all is well (killed, or told to end), each process that
 * inherited its environment, or told of itself when it began, is ended, gently first, and its scratch folder removed.
 */
#ifndef GPUMEM_REPORT_DRYRUN_WATCH_H
#define GPUMEM_REPORT_DRYRUN_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct gm_dry_watch {
    pid_t process;
    int descriptor; /* its end is the end of the dry run */
};

/* `scratch`: absolute; its path in GPUMEM_DRY_STATUS tells the processes of this dry run from others.
 * That no process can be started is no reason not to run. */
void gm_dry_watch_begin(struct gm_dry_watch *watch, const char *scratch);

/* Removes the scratch folder. `all_is_well`: what the command left running is its own affair. */
void gm_dry_watch_end(struct gm_dry_watch *watch, const char *scratch, bool all_is_well);

#endif
