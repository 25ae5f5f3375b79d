/* See sections.h. */
#include "base/size.h"
#include "findings/findings.h"
#include "render/text/sections.h"

static const enum gm_style styles[] = {
    [GM_SEVERITY_NOTE] = GM_BOLD,
    [GM_SEVERITY_WARNING] = GM_WARNING,
    [GM_SEVERITY_ERROR] = GM_BAD,
};

static const struct gm_frame *frame_of(struct gm_stacks *stacks, const struct gm_finding *finding)
{
    if (!finding->stack)
        return NULL;
    return gm_stack_telling_frame(gm_stacks_get(stacks, finding->stack, finding->api));
}

/* "retained, 22.0 MiB on device 0" */
static void print_what(struct gm_page *page, const struct gm_finding *finding)
{
    gm_page_print(page, GM_BOLD, "%s", gm_finding_name(finding->code));
    if (finding->bytes)
        gm_page_print(page, GM_PLAIN, ", %s", SIZE(finding->bytes));
    if (finding->device >= 0)
        gm_page_print(page, GM_PLAIN, " on device %d", finding->device);
    fputc('\n', page->out);
}

static void print_finding(struct gm_page *page, struct gm_stacks *stacks,
                          const struct gm_finding *finding, unsigned indent, bool with_remedy)
{
    const struct gm_frame *frame = frame_of(stacks, finding);
    print_what(page, finding);
    if (frame) {
        fprintf(page->out, "%*s", (int)indent, "");
        gm_page_frame(page, frame, GM_PAGE_COLUMNS - indent);
        fputc('\n', page->out);
    }
    gm_page_paragraph(page, GM_PLAIN, indent, "%s", finding->cause);
    if (finding->remedy && with_remedy)
        gm_page_paragraph(page, GM_DIM, indent, "%s", finding->remedy);
}

void gm_findings_text(struct gm_page *page, const struct gm_analysis *analysis,
                      struct gm_stacks *stacks)
{
    struct gm_findings findings = {0};
    gm_findings_collect(analysis, &findings);
    if (findings.count)
        gm_page_heading(page, "Findings", NULL);
    for (size_t i = 0; i < findings.count; i++) {
        const struct gm_finding *finding = &findings.entries[i];
        gm_page_print(page, styles[finding->severity], "  %-9s",
                      gm_severity_name(finding->severity));
        print_finding(page, stacks, finding, 11, true);
    }
    gm_findings_free(&findings);
}

void gm_findings_notes(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks)
{
    struct gm_findings findings = {0};
    gm_findings_collect(analysis, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        gm_page_print(page, GM_DIM, "  note  ");
        print_finding(page, stacks, &findings.entries[i], 8, false);
    }
    gm_findings_free(&findings);
}
