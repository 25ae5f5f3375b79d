/* The parts of gpumem check: its options, and what all traces come to together. */
#ifndef GPUMEM_REPORT_COMMANDS_CHECK_CHECK_H
#define GPUMEM_REPORT_COMMANDS_CHECK_CHECK_H

#include "commands/session.h"
#include "tools/gate/formats.h"

/* The gate, and what came of all traces. */
struct gm_check {
    struct gm_gate gate;
    struct gm_stacks_options stacks; /* how frames are named */
    const char **formats;
    size_t format_count, format_capacity;
    const char *baseline;
    bool updates_baseline;
    bool prints_rules; /* that were made for what fails */
    bool has_no_vendor_rules;
    bool prints_vendor_rules; /* and does no more */
    bool asks_error_code;
    int error_code; /* of what fails */
    struct gm_gate_trace *traces;
    size_t trace_count, trace_capacity;
};

/* Nothing asked for yet: what the gate does by default. */
struct gm_check gm_check_default(void);
void gm_check_free(struct gm_check *check);

/* Takes the options among `count` arguments. Returns an exit code, GM_EXIT_FINE if the command is to
 * go on; `is_over`: what was asked for has been printed. optind is that of the first argument. */
int gm_check_take_options(struct gm_check *check, int count, char **arguments, bool *is_over);

/* Loads what the options name, once all are taken. False after a complaint. */
bool gm_check_prepare(struct gm_check *check);

/* Prints the last lines, writes formats and the baseline, and returns the exit code. `found`: why there
 * is no trace, which was said already; GM_EXIT_FINE. `command_code`: of the command that was recorded,
 * 0 without one. */
int gm_check_conclude(struct gm_check *check, int found, int command_code);

#endif
