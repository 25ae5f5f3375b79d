/* Functions that were handed on unseen, because the program was given an ABI of them that is newer
 * than the recorder: trace.h, struct gm_newer_abi. */
#ifndef GM_REPORT_NEWER_ABI_H
#define GM_REPORT_NEWER_ABI_H

#include "json.h"
#include "page.h"
#include "trace_file.h"

/* Whether one of them makes or ends memory: then the trace lacks what it did. */
bool gm_newer_abi_is_vital(const struct gm_trace *trace);

/* "NAME of CUDA 14.0, NAME_v3" for all that the trace names, "" if none; cut to fit. */
void gm_newer_abi_list(const struct gm_trace *trace, char *text, size_t size);

/* A paragraph, if there are any. */
void gm_newer_abi_text(struct gm_page *page, enum gm_style style, unsigned indent,
                       const struct gm_trace *trace);

/* An array of them. */
void gm_newer_abi_json(struct gm_json *json, const struct gm_trace *trace);

#endif
