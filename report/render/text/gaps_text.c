/* See sections.h. */
#include "render/text/sections.h"
#include "verdict/completeness.h"

void gm_losses_text(struct gm_page *page, const struct gm_analysis *analysis)
{
    struct gm_gap gap;
    for (size_t at = 0; gm_gap_next(analysis, &at, &gap);)
        if (gap.effect == GM_GAP_LOSS)
            gm_page_paragraph(page, GM_BAD, 0, "%s", gap.text);
}

void gm_notes_text(struct gm_page *page, const struct gm_analysis *analysis, const char *start)
{
    struct gm_gap gap;
    for (size_t at = 0; gm_gap_next(analysis, &at, &gap);)
        if (gap.effect == GM_GAP_NOTE)
            gm_page_paragraph(page, GM_DIM, 2, "%s%s", start, gap.text);
}
