/* The default output of `report`: see brief.h. */
#ifndef GPUMEM_REPORT_RENDER_BRIEF_BRIEF_OUTPUT_H
#define GPUMEM_REPORT_RENDER_BRIEF_BRIEF_OUTPUT_H

#include "output/output.h"

extern const struct gm_output gm_output_brief;

/* What a reader asks for that the trace does not have, as a sentence for the caller to free: a moment, a device, a
 * place of the page. NULL: it has all of it. `model`: of one trace. */
char *gm_brief_unanswered(const struct gm_model *model, const struct gm_output_options *options);

#endif
