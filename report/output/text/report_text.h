/* The report for people, most useful first. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_REPORT_TEXT_H
#define GPUMEM_REPORT_RENDER_TEXT_REPORT_TEXT_H

#include "output/output.h"

extern const struct gm_output gm_output_text;

#endif
