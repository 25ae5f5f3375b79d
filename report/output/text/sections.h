/* The sections of the report for people, as `report` and `check` put them together. A section that
 * has nothing to say prints nothing. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_SECTIONS_H
#define GPUMEM_REPORT_RENDER_TEXT_SECTIONS_H

#include "model/model.h"
#include "output/amount.h"
#include "output/page.h"
#include "output/page_stack.h"

/* What is printed, and where. */
struct gm_view {
    struct gm_page *page;
    const struct gm_model *model;
    const struct gm_model_run *run;
    size_t top; /* rows of each list at most, findings apart; 0: as many as each has by default */
};

#define GM_VIEW_ROWS 5u /* of most lists by default */

static inline size_t gm_view_rows(const struct gm_view *view, size_t by_default)
{
    return view->top ? view->top : by_default;
}

/* "... and 3 more places" of `count`, if only `top` were listed. */
void gm_more_places_text(const struct gm_view *view, size_t count, size_t top);

/* What all processes together used of the device when that was most, if others than this one did. */
void gm_all_processes_text(const struct gm_view *view, const struct gm_model_device *device,
                           unsigned indent);

/* ---- what the trace amounts to --------------------------------------------------------------- */

/* Whose page it is: the command, the process and its end, the simulator, then the verdict. */
void gm_header_text(const struct gm_view *view);

/* The verdict, and before it everything that makes it less than certain. */
void gm_verdict_text(const struct gm_view *view);

/* Why nothing may have been recorded, if the trace tells: the driver was loaded behind our back. */
void gm_bypass_text(const struct gm_view *view, unsigned indent);

/* What the trace does not tell (verdict/completeness.h): a paragraph for each loss, and one that
 * begins with `start` for each note. */
void gm_losses_text(const struct gm_view *view);
void gm_notes_text(const struct gm_view *view, const char *start);

/* The notes below a heading of their own; nothing where there is none. */
void gm_notes_section_text(const struct gm_view *view);

/* What of the history a flight trace no longer has. */
void gm_flight_text(const struct gm_view *view);

/* A line for each setting of the recorder that was not understood. */
void gm_settings_text(const struct gm_view *view);

/* ---- findings and growth --------------------------------------------------------------------- */

void gm_findings_text(const struct gm_view *view);

/* "by FRAME": who reached the line that the finding names, if others that do are not meant. */
void gm_finding_by_text(const struct gm_view *view, const struct gm_model_finding *finding,
                        unsigned indent);

/* One of them, a line and a sentence behind a word such as "note", for `gpumem check`. */
void gm_finding_note(const struct gm_view *view, size_t number, enum gm_style style,
                     const char *what);

/* Places that grew from mark to mark, most growth first. */
void gm_growth_text(const struct gm_view *view);

/* ---- who held memory ------------------------------------------------------------------------- */

/* Owners at a moment by their share of the whole, at most `top` of them, `indent` columns in. */
void gm_owners_text(const struct gm_view *view, const struct gm_model_moment *moment, size_t top,
                    unsigned indent);

/* The table of a device by library, if it says more than that all is the application's. */
void gm_libraries_text(const struct gm_view *view, const struct gm_model_device *device);

/* Whose memory: what the process imported or opened is another owner's. */
enum gm_leak_part { GM_LEAKS_ALL, GM_LEAKS_OWN, GM_LEAKS_FOREIGN };

/* The leaks of a class, as both report and check list them. */
void gm_leaks_text(const struct gm_view *view, enum gm_leak_class leak_class,
                   enum gm_leak_part part);

/* ---- PyTorch's pools ------------------------------------------------------------------------- */

/* A section for each device with blocks. */
void gm_pools_text(const struct gm_view *view);

/* A section for the times that the allocator gave up. */
void gm_pool_failures_text(const struct gm_view *view);

/* "By purpose: activation 3.10 GiB, parameter 1.00 GiB", most first. */
void gm_purposes_text(struct gm_page *page, unsigned indent,
                      const struct gm_model_pool_state *state);

/* Owners of blocks by line: one line of text each, and one for what called it. */
void gm_pool_lines_text(const struct gm_view *view, const struct gm_model_pool_state *state);

/* ---- over time ------------------------------------------------------------------------------- */

/* Phases, highest peak first, twice as many as of other places. */
void gm_phases_text(const struct gm_view *view);

/* "Temporaries": the places with most allocations that lived shortly (analysis/lifetimes.h). */
void gm_lifetimes_text(const struct gm_view *view);

#endif
