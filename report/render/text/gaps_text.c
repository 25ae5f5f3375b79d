/* See sections.h. */
#include "render/text/sections.h"

void gm_losses_text(const struct gm_view *view)
{
    for (size_t i = 0; i < view->run->gap_count; i++)
        if (view->run->gaps[i].loss)
            gm_page_paragraph(view->page, GM_BAD, 0, "%s", view->run->gaps[i].text);
}

void gm_notes_text(const struct gm_view *view, const char *start)
{
    for (size_t i = 0; i < view->run->gap_count; i++)
        if (!view->run->gaps[i].loss)
            gm_page_paragraph(view->page, GM_DIM, 2, "%s%s", start, view->run->gaps[i].text);
}
