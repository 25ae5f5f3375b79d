/* What is shown in place of names that tell of a machine or its user, where a report is for others:
 * gpumem report --redact, docs/security.md. Functions, sizes, times and libraries that everybody knows
 * stay; paths, arguments, values of environment variables, and names of hosts and users go. */
#ifndef GPUMEM_REPORT_STACKS_REDACT_H
#define GPUMEM_REPORT_STACKS_REDACT_H

#include "input/trace/trace_file.h"

struct gm_redaction;

/* For a trace whose `redaction` it becomes: from then on nothing made of the trace names what is secret.
 * The texts that it returns live as long as it does. */
struct gm_redaction *gm_redaction_new(const struct gm_trace *trace);
void gm_redaction_free(struct gm_redaction *redaction);

/* A clean path of a source file. What everybody has keeps its name without the folders before it
 * ("torch/nn/modules/linear.py", "stdio.h"). Any other file becomes a number that is the same in all
 * traces ("3f9c21aa.py"): whoever guesses the path can check the guess. */
const char *gm_redact_file(struct gm_redaction *redaction, const char *path);

/* The same for a module, by its base name; "program" if it is no library. */
const char *gm_redact_module(struct gm_redaction *redaction, struct gm_text path);

/* The name that the program gave to a mark or a range, a string of the trace, as it may be shown: where the trace
 * has a redaction, each argument, value, host and user in it is a "*". */
struct gm_text gm_shown_name(const struct gm_trace *trace, uint64_t string);

#endif
