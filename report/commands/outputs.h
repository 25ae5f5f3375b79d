/* The outputs that commands know by name. */
#ifndef GPUMEM_REPORT_COMMANDS_OUTPUTS_H
#define GPUMEM_REPORT_COMMANDS_OUTPUTS_H

#include "output/output.h"

/* The output of that name; NULL: there is none. */
const struct gm_output *gm_output_find(const char *name);

/* The same of the formats of `gpumem export`. They print models of one trace. */
const struct gm_output *gm_export_find(const char *name);

#endif
