/* Functions that were handed on unseen, because the program was given an ABI of them that is newer
 * than the recorder: trace.h, struct gm_newer_abi. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_NEWER_ABI_H
#define GPUMEM_REPORT_RENDER_SECTIONS_NEWER_ABI_H

#include "render/json.h"
#include "trace/trace_file.h"

/* "NAME of CUDA 14.0, NAME_v3" for all that the trace names, "" if none; cut to fit. */
void gm_newer_abi_list(const struct gm_trace *trace, char *text, size_t size);

/* What it means for the numbers, of a trace that has any. */
void gm_newer_abi_sentence(const struct gm_trace *trace, char *text, size_t size);

/* An array of them. */
void gm_newer_abi_json(struct gm_json *json, const struct gm_trace *trace);

#endif
