/* See sections.h. */
#include "output/text/sections.h"

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

void gm_notes_section_text(const struct gm_view *view)
{
    size_t notes = 0;
    for (size_t i = 0; i < view->run->gap_count; i++)
        notes += !view->run->gaps[i].loss;
    if (!notes)
        return;
    gm_page_heading(view->page, "Notes", NULL);
    gm_notes_text(view, "");
}
