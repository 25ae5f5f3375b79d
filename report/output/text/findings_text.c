/* See sections.h. */
#include "output/text/sections.h"
#include <string.h>

#define FINDINGS_SHOWN 3u /* on the page */

static const enum gm_style styles[] = {
    [GM_SEVERITY_NOTE] = GM_BOLD,
    [GM_SEVERITY_WARNING] = GM_WARNING,
    [GM_SEVERITY_ERROR] = GM_BAD,
};

/* Who reached the line that the finding names, if others that do are not meant. */
static void print_by(const struct gm_view *view, const struct gm_model_finding *finding,
                     unsigned indent)
{
    const struct gm_frame *by = gm_model_finding_by(view->model, finding);
    if (!by)
        return;
    gm_page_print(view->page, GM_DIM, "%*sby ", (int)indent, "");
    gm_page_frame(view->page, by, gm_page_columns(view->page) - indent - 3);
    fputc('\n', view->page->out);
}

/* "retained, 22.0 MiB on device 0  3f9c21aa", where, and why; behind its severity. */
static void print_finding(const struct gm_view *view, const struct gm_model_finding *finding,
                          unsigned indent)
{
    struct gm_page *page = view->page;
    const struct gm_frame *frame = gm_model_finding_frame(view->model, finding);
    gm_page_print(page, GM_BOLD, "%s", gm_finding_name(finding->code));
    if (finding->bytes)
        gm_page_print(page, GM_PLAIN, ", %s", SIZE(finding->bytes));
    if (finding->device >= 0)
        gm_page_print(page, GM_PLAIN, " on device %d", finding->device);
    gm_page_print(page, GM_DIM, "  %s\n", ID(gm_model_finding_id(view->model, view->run, finding)));
    if (frame)
        gm_frame_text(view, finding->stack, frame, indent);
    print_by(view, finding, indent);
    gm_page_paragraph(page, GM_PLAIN, indent, "%s", finding->cause);
}

/* What to do is said once. */
static bool is_said_before(const struct gm_view *view, const struct gm_model_finding *finding)
{
    for (const struct gm_model_finding *one = view->run->findings; one < finding; one++)
        if (one->remedy && strcmp(one->remedy, finding->remedy) == 0)
            return true;
    return false;
}

void gm_findings_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    struct gm_page *page = view->page;
    bool is_short = !view->verbose && run->finding_count > FINDINGS_SHOWN;
    size_t shown = is_short ? FINDINGS_SHOWN : run->finding_count;
    if (shown)
        fputc('\n', page->out);
    for (size_t i = 0; i < shown; i++) {
        const struct gm_model_finding *finding = &run->findings[i];
        gm_page_print(page, styles[finding->severity], "%-8s ",
                      gm_severity_name(finding->severity));
        print_finding(view, finding, 9);
        if (finding->remedy && !is_said_before(view, finding))
            gm_page_paragraph(page, GM_DIM, 9, "Try: %s", finding->remedy);
        if (finding->evidence && view->verbose)
            gm_page_paragraph(page, GM_DIM, 9, "Evidence: %s.", finding->evidence);
    }
    if (is_short)
        gm_page_print(page, GM_DIM, "         and %zu more (-v)\n", run->finding_count - shown);
}

void gm_finding_note(const struct gm_view *view, size_t number, enum gm_style style,
                     const char *what)
{
    gm_page_print(view->page, style, "  %s  ", what);
    print_finding(view, &view->run->findings[number], 8);
}
