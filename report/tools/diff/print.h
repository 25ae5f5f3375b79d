/* A comparison as a page of text, as JSON and as the head of an HTML page. */
#ifndef GPUMEM_REPORT_DIFF_PRINT_H
#define GPUMEM_REPORT_DIFF_PRINT_H

#include "output/page.h"
#include "tools/diff/diff.h"

/* `top`: rows of a table or section at most. */
void gm_diff_text(struct gm_page *page, const struct gm_diff *diff, size_t top);

/* docs/diff.md has the members. */
void gm_diff_json(FILE *out, const struct gm_diff *diff);

/* A section that needs no script, for the body of a page (output/html/html.h). */
void gm_diff_html(FILE *out, const struct gm_diff *diff, size_t top);

#endif
