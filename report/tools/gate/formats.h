/* What CI systems read: the issues of all traces in a format of theirs, each to a file of its own.
 * docs/gate.md has what goes where. */
#ifndef GPUMEM_REPORT_GATE_FORMATS_H
#define GPUMEM_REPORT_GATE_FORMATS_H

#include "tools/gate/gate.h"

/* How a trace was judged, or several together. */
struct gm_gate_trace {
    const char *path; /* as issues name it */
    bool is_kept;     /* else it is removed with its folder when it was judged */
    struct gm_gate_outcome outcome;
};

struct gm_gate_result {
    const struct gm_gate_trace *traces;
    size_t trace_count;
    const struct gm_issues *issues;
    const char *conclusion; /* "passed", "failed: ...", "not judged: ..." */
    int code;               /* GM_EXIT_*: what the gate says */
    int exit_code;          /* of the process: as --error-exitcode asks, or the command's own */
};

/* Whether what a format writes needs the rules for what fails, and whether it needs peaks. */
bool gm_format_asks_rules(const char *text);
bool gm_format_asks_peaks(const char *text);

/* Whether `text` is FORMAT=FILE of one that is known, or "github"; false after one line about it. */
bool gm_format_is_known(const char *text);

/* Writes it; false after one line about it. Annotations of GitHub go to stdout. */
bool gm_format_write(const char *text, const struct gm_gate_result *result);

#endif
