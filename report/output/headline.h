/* What a run amounts to, in a few short texts: the head of its page, the last lines of `gpumem run`,
 * its row among the processes of a job. All take their words from here, so that they agree. */
#ifndef GPUMEM_REPORT_RENDER_HEADLINE_H
#define GPUMEM_REPORT_RENDER_HEADLINE_H

#include "model/history.h"

/* How bad it is: of several processes the one with most is shown first. */
enum gm_gravity {
    GM_GRAVITY_IDLE,     /* no call that concerns memory was recorded */
    GM_GRAVITY_FINE,     /* nothing to say */
    GM_GRAVITY_WARNING,  /* a finding, or a failure that was survived */
    GM_GRAVITY_UNKNOWN,  /* incomplete: not all was seen */
    GM_GRAVITY_CUT,      /* it did not end normally */
    GM_GRAVITY_LEAKS,    /* memory was never freed, or a finding that is an error */
    GM_GRAVITY_NO_MEMORY /* out of memory, and not survived */
};

struct gm_headline {
    enum gm_gravity gravity;
    int64_t peak;      /* largest of a device, bytes */
    unsigned errors;   /* findings */
    unsigned warnings; /* findings */
    char failure
        [192]; /* "OUT OF MEMORY on device 0, not survived: 264 MiB asked", "DEVICE FAILED: error 700"; else empty */
    char state[96];    /* "12.0 MiB leaked in 12 allocations", "No leaks" */
    char peaks[128];   /* "peak 1.93 GiB on device 0"; empty: there is none */
    char findings[64]; /* "1 error, 2 warnings"; empty: there is none */
};

/* The request whose refusal matters most: not survived before survived, then the latest. */
struct gm_refusal {
    uint64_t size;   /* bytes */
    uint8_t purpose; /* enum gm_purpose: then it has no size */
    int device;      /* -1: unknown */
    uint64_t time_ns;
    bool survived;
    bool is_there;
    bool is_of_pool;
    uint32_t place;
    uint32_t moment; /* who held memory then; GM_NONE: not known */
    uint64_t free; /* bytes of the device that nobody is known to have held; UINT64_MAX: unknown */
};

struct gm_refusal gm_refusal_of(const struct gm_model_run *run);

/* Of a model with findings and moments. "No leaks" is said only where no finding is a warning or
 * worse, and no memory was refused. */
struct gm_headline gm_headline_of(const struct gm_model_run *run);

/* How the process ended: "exit code 1", "ended by SIGTERM", "still running". Returns `text`. */
#define GM_ENDING_TEXT 64
const char *gm_ending_text(const struct gm_model_run *run, char text[GM_ENDING_TEXT]);

/* Writes the command line in one line, at most `size` bytes of it, not clean. */
struct gm_text gm_command_line(const struct gm_model_run *run, char *line, size_t size);

/* All of it, clean; the caller frees it. */
char *gm_command_text(const struct gm_model_run *run);

/* ", started 2026-11-22 15:20:31 UTC"; "" if it is not told. Returns `text`. */
#define GM_START_TEXT 64
const char *gm_start_text(const struct gm_model_run *run, char text[GM_START_TEXT]);

/* "at the end", or "now" of a process that runs. */
const char *gm_when_left(const struct gm_model_run *run);

/* Why the run has no such moment, for the caller to free: "the run took 6.20 ms". NULL: it has one. A time that is
 * beyond the end by what a page rounds away is the end. */
char *gm_no_moment_text(const struct gm_model_run *run, const struct gm_when *when);

/* "process 10888 on node7", or without the host if its name is not told or is hidden; "" for a run that names no
 * process (a snapshot). Returns `text`. */
#define GM_PROCESS_TEXT 96
const char *gm_process_text(const struct gm_model_run *run, char text[GM_PROCESS_TEXT]);

#endif
