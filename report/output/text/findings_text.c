/* See sections.h. */
#include "output/text/sections.h"

static const enum gm_style styles[] = {
    [GM_SEVERITY_NOTE] = GM_BOLD,
    [GM_SEVERITY_WARNING] = GM_WARNING,
    [GM_SEVERITY_ERROR] = GM_BAD,
};

/* "retained, 22.0 MiB on device 0  3f9c21aa" */
static void print_what(const struct gm_view *view, const struct gm_model_finding *finding)
{
    struct gm_page *page = view->page;
    gm_page_print(page, GM_BOLD, "%s", gm_finding_name(finding->code));
    if (finding->bytes)
        gm_page_print(page, GM_PLAIN, ", %s", SIZE(finding->bytes));
    if (finding->device >= 0)
        gm_page_print(page, GM_PLAIN, " on device %d", finding->device);
    gm_page_print(page, GM_DIM, "  %s\n", ID(gm_model_finding_id(view->model, view->run, finding)));
}

void gm_finding_by_text(const struct gm_view *view, const struct gm_model_finding *finding,
                        unsigned indent)
{
    const struct gm_frame *by = gm_model_finding_by(view->model, finding);
    if (!by)
        return;
    gm_page_print(view->page, GM_DIM, "%*sby ", (int)indent, "");
    gm_page_frame(view->page, by, gm_page_columns(view->page) - indent - 3);
    fputc('\n', view->page->out);
}

static void print_finding(const struct gm_view *view, const struct gm_model_finding *finding,
                          unsigned indent, bool with_remedy)
{
    struct gm_page *page = view->page;
    const struct gm_frame *frame = gm_model_finding_frame(view->model, finding);
    print_what(view, finding);
    if (frame) {
        fprintf(page->out, "%*s", (int)indent, "");
        gm_page_frame(page, frame, gm_page_columns(page) - indent);
        fputc('\n', page->out);
    }
    gm_finding_by_text(view, finding, indent);
    gm_page_paragraph(page, GM_PLAIN, indent, "%s", finding->cause);
    if (finding->remedy && with_remedy)
        gm_page_paragraph(page, GM_DIM, indent, "%s", finding->remedy);
    if (finding->evidence && with_remedy)
        gm_page_paragraph(page, GM_DIM, indent, "Evidence: %s.", finding->evidence);
}

void gm_findings_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    if (run->finding_count)
        gm_page_heading(view->page, "Findings", NULL);
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct gm_model_finding *finding = &run->findings[i];
        gm_page_print(view->page, styles[finding->severity], "  %-9s",
                      gm_severity_name(finding->severity));
        print_finding(view, finding, 11, true);
    }
}

void gm_finding_note(const struct gm_view *view, size_t number, enum gm_style style,
                     const char *what)
{
    gm_page_print(view->page, style, "  %s  ", what);
    print_finding(view, &view->run->findings[number], 8, false);
}
