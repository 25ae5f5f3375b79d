/* Fills the tables of a comparison. */
#ifndef GPUMEM_REPORT_DIFF_TABLES_H
#define GPUMEM_REPORT_DIFF_TABLES_H

#include "diff/diff.h"

/* Fills in diff->tables from both models; rows that do not differ are there, too. */
void gm_diff_fill_tables(struct gm_diff *diff);

#endif
