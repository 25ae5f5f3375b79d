/* Exit codes of every subcommand. Part of the documented interface. */
#ifndef GPUMEM_REPORT_BASE_EXIT_CODE_H
#define GPUMEM_REPORT_BASE_EXIT_CODE_H

enum gm_exit_code {
    GM_EXIT_FINE = 0,
    GM_EXIT_FINDINGS = 1,      /* findings above the gate */
    GM_EXIT_USAGE = 2,         /* wrong usage or configuration */
    GM_EXIT_UNREADABLE = 3,    /* a trace is unreadable, damaged or cut */
    GM_EXIT_NOTHING = 4,       /* nothing was recorded */
    GM_EXIT_UNDECIDED = 5,     /* a dry run cannot tell */
    GM_EXIT_NOT_STARTED = 125, /* the command could not be started, for a reason of ours */
    GM_EXIT_NOT_EXECUTABLE = 126,
    GM_EXIT_NOT_FOUND = 127,
    GM_EXIT_SIGNAL = 128, /* plus the number of the signal that ended the command */
};

#endif
