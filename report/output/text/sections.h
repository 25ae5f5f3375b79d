/* The sections of the report for people, as `report` and `check` put them together: some make the page of 40 lines,
 * `report -v` adds the others. A section that has nothing to say prints nothing. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_SECTIONS_H
#define GPUMEM_REPORT_RENDER_TEXT_SECTIONS_H

#include "model/model.h"
#include "output/amount.h"
#include "output/output.h"
#include "output/page.h"
#include "output/page_stack.h"

/* The places of a page, numbered in the order in which it comes to them: their stacks stand once, at its end. */
struct gm_page_sites {
    uint32_t *stacks; /* [number - 1]: stacks that read the same are one */
    size_t count;
    size_t capacity;
};

/* What is printed, and where. */
struct gm_view {
    struct gm_page *page;
    const struct gm_model *model;
    const struct gm_model_run *run;
    size_t top; /* rows of each list at most, findings apart; 0: as many as each has by default */
    struct gm_page_sites *sites; /* NULL: a stack stands where its place is named */
    bool verbose;                /* every section, and all of each */
};

#define GM_VIEW_ROWS 5u /* of most lists by default */

static inline size_t gm_view_rows(const struct gm_view *view, size_t by_default)
{
    return view->top ? view->top : by_default;
}

/* "... and 3 more places" of `count`, if only `top` were listed. */
void gm_more_places_text(const struct gm_view *view, size_t count, size_t top);

/* ---- places ---------------------------------------------------------------------------------- */

/* "device 0", "the host", "an unknown device": where memory of a place is. Returns `text`. */
const char *gm_where_text(const struct gm_model_place *place, char text[GM_SIZE_TEXT]);
#define WHERE(place) gm_where_text((place), (char[GM_SIZE_TEXT]){0})

/* The number of a stack on this page, from 1 on; 0 for GM_NONE. */
unsigned gm_site_number(struct gm_page_sites *sites, const struct gm_model *model, uint32_t stack);

/* A line with the number of a place and one of its frames (NULL: none is known), `indent` columns in. */
void gm_frame_text(const struct gm_view *view, uint32_t stack, const struct gm_frame *frame,
                   unsigned indent);

/* The same of the frame that tells most; the whole stack where places have no numbers. */
void gm_place_text(const struct gm_view *view, uint32_t stack, unsigned indent);

/* The stacks, at most `most` of them, a few lines each. */
void gm_stacks_text(const struct gm_view *view, size_t most);

/* All that is known of one place. */
void gm_site_text(const struct gm_view *view, unsigned number, uint32_t stack);

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

/* The first of them, or all. */
void gm_findings_text(const struct gm_view *view);

/* One of them, a line and a sentence behind a word such as "note", for `gpumem check`. */
void gm_finding_note(const struct gm_view *view, size_t number, enum gm_style style,
                     const char *what);

/* Places that grew from mark to mark, most growth first. */
void gm_growth_text(const struct gm_view *view);

/* ---- who held memory ------------------------------------------------------------------------- */

/* A place of the page: what stacks that read the same hold together. */
struct gm_holder {
    uint32_t stack;
    int64_t bytes;
    int64_t count;                      /* allocations, or blocks */
    const struct gm_model_line *line;   /* of a pool, whose operations are told; NULL */
    const struct gm_model_place *place; /* whose function and kind are told; NULL: they are not */
    const struct gm_frame
        *by; /* what its place names: it may be who called its line; NULL: not told */
};

/* Adds up those of equal stacks, functions and kinds, as far as these are among the first; the caller frees. Most
 * bytes first, then by the lower stack. */
struct gm_holder *gm_holders_add(const struct gm_model *model, const struct gm_holder *parts,
                                 size_t part_count, size_t *count);

/* A row for each of the first `top` holders, and one for the rest, shares of `whole`. */
void gm_holders_text(const struct gm_view *view, const struct gm_holder *holders, size_t count,
                     int64_t whole, size_t top);

/* Rows for who held the allocations of a moment, places of `min_size` bytes and more, and for who held the blocks of
 * a pool. */
void gm_samples_text(const struct gm_view *view, const struct gm_model_sample *samples,
                     size_t count, int64_t whole, uint64_t min_size, size_t top);
void gm_blocks_text(const struct gm_view *view, const struct gm_model_pool_state *state);

/* The devices: who held each when memory ran out, or else at its peak, and its use over time. */
void gm_devices_text(const struct gm_view *view);

/* What all processes together used of the device when that was most, if others than this one did. */
void gm_all_processes_text(const struct gm_view *view, const struct gm_model_device *device,
                           unsigned indent);

/* The table of a device by library, if it says more than that all is the application's. */
void gm_libraries_text(const struct gm_view *view, const struct gm_model_device *device);

/* A line on pinned memory, if there was any, and who held it. */
void gm_pinned_text(const struct gm_view *view);

/* Who held memory at a moment, as far as the filter lets it through, and their stacks. */
void gm_held_text(const struct gm_view *view, const struct gm_when *when,
                  const struct gm_output_filter *filter);

/* What was left at the end. */
void gm_left_text(const struct gm_view *view);

/* The leaks of a class, as check lists them. */
void gm_leaks_text(const struct gm_view *view, enum gm_leak_class leak_class);

/* ---- PyTorch's pools ------------------------------------------------------------------------- */

/* Its moments in a table, its use over time, and who holds segments that are mostly free. */
void gm_pool_text(const struct gm_view *view, const struct gm_model_pool *pool);

/* A section for the times that the allocator gave up. */
void gm_pool_failures_text(const struct gm_view *view);

/* "By purpose: activation 3.10 GiB, parameter 1.00 GiB", most first. */
void gm_purposes_text(struct gm_page *page, unsigned indent,
                      const struct gm_model_pool_state *state);

/* One of the values of a curve over the columns of the page. */
void gm_curve_text(const struct gm_view *view, const char *name, const struct gm_curve *curve,
                   unsigned value);

/* ---- over time, and the rest of `report -v` -------------------------------------------------- */

/* Phases, highest peak first, twice as many as of other places. */
void gm_phases_text(const struct gm_view *view);

/* "Temporaries": the places with most allocations that lived shortly (analysis/lifetimes.h). */
void gm_lifetimes_text(const struct gm_view *view);

/* Requests that were refused, each with who held memory then. */
void gm_refused_text(const struct gm_view *view);

/* What beside allocations is known of a device: kinds, what the driver held, holes between addresses. */
void gm_device_details_text(const struct gm_view *view, const struct gm_model_device *device);

/* Copies and fills by direction and by place; contexts, and who made them. */
void gm_transfers_text(const struct gm_view *view);
void gm_contexts_text(const struct gm_view *view);

#endif
