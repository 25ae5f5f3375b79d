/* Functions that were handed on unseen, because the program was given an ABI of them that is newer
 * than the recorder: trace.h, struct gm_newer_abi. */
#ifndef GPUMEM_REPORT_VERDICT_NEWER_ABI_H
#define GPUMEM_REPORT_VERDICT_NEWER_ABI_H

#include "input/trace/trace_file.h"

/* The name of the function, which stands before the suffix of the ABI that the recorder knows; "?" if
 * it is unknown. */
struct gm_text gm_newer_abi_name(const struct gm_trace *trace, const struct gm_newer_abi *entry);

/* "NAME of CUDA 14.0, NAME_v3" for all that the trace names, "" if none; cut to fit. */
void gm_newer_abi_list(const struct gm_trace *trace, char *text, size_t size);

/* What it means for the numbers, of a trace that has any. */
void gm_newer_abi_sentence(const struct gm_trace *trace, char *text, size_t size);

#endif
