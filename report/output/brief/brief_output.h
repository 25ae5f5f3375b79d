/* The default output of `report`: see brief.h. */
#ifndef GPUMEM_REPORT_RENDER_BRIEF_BRIEF_OUTPUT_H
#define GPUMEM_REPORT_RENDER_BRIEF_BRIEF_OUTPUT_H

#include "output/output.h"

extern const struct gm_output gm_output_brief;

#endif
