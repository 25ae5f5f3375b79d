/* See sections.h. */
#include "analysis/growing.h"
#include "base/size.h"
#include "render/text/sections.h"
#include <stdlib.h>

/* "marks", "marks "step"", "ends of range "epoch"". */
static void print_series(struct gm_page *page, const struct gm_analysis *analysis,
                         const struct gm_growth_series *series)
{
    if (series->kind == GM_MOMENT_NONE) {
        fputs("marks", page->out);
        return;
    }
    char *name = gm_clean_copy(gm_trace_string(analysis->trace, series->name));
    fputs(series->kind == GM_MOMENT_MARK ? "marks \"" : "ends of range \"", page->out);
    gm_page_cut(page, name, 24);
    fputc('"', page->out);
    free(name);
}

static void print_place(struct gm_page *page, const struct gm_active_site *site)
{
    if (site->is_block)
        fputs("in blocks of the pool", page->out);
    else
        fprintf(page->out, "of %s memory", gm_kind_name(site->kind));
    if (gm_kind_is_host(site->kind))
        fputs(" of the host", page->out);
    else if (site->device >= 0)
        fprintf(page->out, " on device %d", site->device);
}

static void print_growing(struct gm_page *page, const struct gm_analysis *analysis,
                          struct gm_stacks *stacks, const struct gm_growing *growing)
{
    const struct gm_active_site *site = gm_growing_site(analysis, growing);
    gm_page_print(page, GM_BAD, "  +%s", SIZE(gm_growing_bytes(growing)));
    fputc(' ', page->out);
    print_place(page, site);
    fprintf(page->out, "\n    over the last %s of %s ", COUNT(growing->over),
            COUNT(growing->series->marks));
    print_series(page, analysis, growing->series);
    fputc(':', page->out);
    for (size_t i = 0; i <= GM_GROWTH_PARTS; i++)
        fprintf(page->out, "%s %s", i ? "," : "\n   ", SIZE(growing->bytes[i]));
    fputc('\n', page->out);
    gm_page_stack(page, 6, gm_stacks_get(stacks, site->stack, site->api));
}

void gm_growth_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top)
{
    const struct gm_growth *growth = &analysis->activity.growth;
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < growth->found_count; i++) {
        if (!gm_growth_counts(analysis, &growth->found[i]))
            continue;
        if (shown == top) {
            more++;
            continue;
        }
        if (shown++ == 0)
            gm_page_heading(page, "Growth", "more live from mark to mark, and never less");
        print_growing(page, analysis, stacks, &growth->found[i]);
    }
    if (more)
        gm_page_print(page, GM_DIM, "  ... and %zu more place%s\n", more, gm_plural(more));
}
