/* What the parts of the HTML page share. The page is one file that asks for no other: style and script
 * stand in it and are all that its Content-Security-Policy lets run, by their hashes, so a name from
 * a trace could not run even if it left its field. All text goes through markup.h. */
#ifndef GPUMEM_REPORT_RENDER_HTML_HTML_H
#define GPUMEM_REPORT_RENDER_HTML_HTML_H

#include "output/html/log.h"
#include "output/output.h"
#include <stdio.h>

extern const struct gm_output gm_output_html;

/* Bytes of the events of all traces of a page: it has 25 MB at most. */
#define GM_HTML_PAGE_SIZE UINT64_C(22000000)

/* Before the first and behind the last part of a page that is put together elsewhere. */
void gm_html_begin(FILE *out);
void gm_html_end(FILE *out);

/* The part of one run. `base`: the part, from 0 on, that it is compared with until the reader chooses
 * another one; -1: none. */
void gm_html_run(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                 const struct gm_output_options *options, int base);

/* What is readable without a script: verdict and findings; then owners, leaks, refusals, phases. */
void gm_html_summary(FILE *out, const struct gm_model *model, const struct gm_model_run *run);
void gm_html_tables(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                    size_t top);

/* The curve of the group that held most memory, as SVG; the script puts its own in its place. */
void gm_html_curve(FILE *out, const struct gm_model *model, const struct gm_html_log *log,
                   uint64_t duration_ns);

/* What the script draws: names as JSON, events as packed columns of at most so many bytes. */
void gm_html_data(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                  const struct gm_html_log *log, uint64_t limit);

#endif
