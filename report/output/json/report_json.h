/* The report as JSON: docs/report-json.md, docs/report.schema.json. Leaks are always complete. */
#ifndef GPUMEM_REPORT_RENDER_JSON_REPORT_JSON_H
#define GPUMEM_REPORT_RENDER_JSON_REPORT_JSON_H

#include "output/output.h"

extern const struct gm_output gm_output_json;

#endif
