/* See html.h. */
#include "output/html/html.h"
#include "output/headline.h"
#include "page_assets.h"
#include "version.h"

/* ---- the page -------------------------------------------------------------------------------- */

void gm_html_begin(FILE *out)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "img-src data:; base-uri 'none'; form-action 'none'; %s\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<meta name=\"generator\" content=\"gpumem %s\">\n"
            "<link rel=\"icon\" href=\"data:,\">\n<title>gpumem report</title>\n<style>",
            gm_page_policy, GPUMEM_VERSION);
    fwrite(gm_page_style, 1, sizeof(gm_page_style), out);
    fputs("</style>\n</head>\n<body>\n", out);
}

void gm_html_end(FILE *out)
{
    fputs("<script>", out);
    fwrite(gm_page_script, 1, sizeof(gm_page_script), out);
    fputs("</script>\n</body>\n</html>\n", out);
}

static void end_many(FILE *out, bool follows)
{
    (void)follows;
    gm_html_end(out);
}

void gm_html_run(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                 const struct gm_output_options *options, int base)
{
    struct gm_html_log log;
    uint64_t limit = options->page_size ? options->page_size : GM_HTML_PAGE_SIZE;
    bool has_log = gm_html_log_make(&log, model, run->duration_ns);
    fputs("<article class=\"run\"", out);
    if (base >= 0)
        fprintf(out, " data-base=\"%d\"", base);
    fputs(">\n", out);
    gm_html_summary(out, model, run);
    if (has_log && log.count) {
        fputs("<div class=\"explorer\">\n", out);
        gm_html_curve(out, model, &log, run->duration_ns);
        fputs(
            "</div>\n<noscript><p class=\"note\">The views over time, the flame graph and the maps "
            "need JavaScript; it makes no request.</p></noscript>\n",
            out);
        gm_html_data(out, model, run, &log, limit);
    }
    gm_html_tables(out, model, run, options->top ? options->top : 10);
    fputs("</article>\n", out);
    gm_html_log_free(&log);
}

static void write_html(FILE *out, const struct gm_model *model,
                       const struct gm_output_options *options)
{
    if (!options->many)
        gm_html_begin(out);
    for (size_t i = 0; i < model->run_count; i++)
        gm_html_run(out, model, &model->runs[i], options, -1);
    if (!options->many)
        gm_html_end(out);
}

const struct gm_output gm_output_html = {.name = "html",
                                         .needs = GM_NEEDS_ALL,
                                         .write = write_html,
                                         .begin_many = gm_html_begin,
                                         .end_many = end_many};
