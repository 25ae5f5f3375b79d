/* See sections.h. */
#include "base/size.h"
#include "render/text/sections.h"

static double percent(uint64_t bytes, uint64_t whole)
{
    return whole ? 100.0 * (double)bytes / (double)whole : 0;
}

void gm_owners_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top,
                    unsigned indent)
{
    uint64_t whole = owners->bytes, left = whole;
    for (size_t i = 0; i < owners->count && i < top; i++) {
        const struct gm_site *site = &owners->entries[i];
        const char *api = gm_trace_api(analysis->trace, site->api);
        left -= site->bytes;
        gm_page_print(page, GM_PLAIN, "%*s%5.1f%%  ", (int)indent, "", percent(site->bytes, whole));
        gm_page_print(page, GM_BOLD, "%-9s", SIZE(site->bytes));
        gm_page_print(page, GM_PLAIN, "  %s x %s", COUNT(site->count), api[0] ? api : "?");
        if (site->kind != GM_KIND_DEVICE && site->kind != GM_KIND_PINNED)
            gm_page_print(page, GM_PLAIN, " (%s)", gm_kind_name(site->kind));
        fputc('\n', page->out);
        gm_page_stack(page, indent + 8, gm_stacks_get(stacks, site->stack, site->api));
    }
    if (owners->count > top)
        gm_page_print(page, GM_DIM, "%*s%5.1f%%  %-9s  from %zu more place%s\n", (int)indent, "",
                      percent(left, whole), SIZE(left), owners->count - top,
                      gm_plural(owners->count - top));
}
