/* See sections.h. */
#include "base/text.h"
#include "output/text/sections.h"
#include <stdlib.h>

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

void gm_flight_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    if (run->is_overwritten)
        gm_page_paragraph(
            view->page, GM_WARNING, 0,
            "FLIGHT: the history before %s was overwritten (%s events, %s allocations). "
            "What was live then is known; totals and peaks are of the time since.",
            TIME(run->overwritten_until_ns), COUNT(run->overwritten.events),
            COUNT(run->overwritten.allocs));
}

void gm_settings_text(const struct gm_view *view)
{
    for (size_t i = 0; i < view->run->setting_count; i++) {
        char *clean = gm_clean_copy(view->run->settings_not_understood[i]);
        gm_page_paragraph(view->page, GM_WARNING, 0,
                          "SETTING: %.200s was not understood; the default was used.", clean);
        free(clean);
    }
}
