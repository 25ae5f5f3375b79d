/* The report for people: a page of some 40 lines, most useful first, or with -v all that is known. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_REPORT_TEXT_H
#define GPUMEM_REPORT_RENDER_TEXT_REPORT_TEXT_H

#include "output/output.h"

extern const struct gm_output gm_output_text;

/* What a reader asks for that the trace does not have, as a sentence for the caller to free: a moment, a device, a
 * place of the page. NULL: it has all of it. `model`: of one trace. */
char *gm_text_unanswered(const struct gm_model *model, const struct gm_output_options *options);

#endif
