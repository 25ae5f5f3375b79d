/* The page that `report` prints by default: some 40 lines. Each place on it has a number, in the
 * order in which the page comes to it, and its stack stands once, at the bottom. */
#ifndef GPUMEM_REPORT_RENDER_BRIEF_BRIEF_H
#define GPUMEM_REPORT_RENDER_BRIEF_BRIEF_H

#include "output/output.h"
#include "output/text/sections.h"

/* ---- numbers of places ----------------------------------------------------------------------- */

struct gm_brief_sites {
    uint32_t *stacks; /* [number - 1]: stacks that read the same are one */
    size_t count;
    size_t capacity;
};

/* The number of a stack on this page, from 1 on; 0 for GM_NONE. */
unsigned gm_brief_number(struct gm_brief_sites *sites, const struct gm_model *model,
                         uint32_t stack);

/* The stacks, at most `most` of them, a few lines each. */
void gm_brief_stacks(const struct gm_view *view, const struct gm_brief_sites *sites, size_t most);

/* All that is known of one place. */
void gm_brief_site(const struct gm_view *view, unsigned number, uint32_t stack);

/* ---- who held memory ------------------------------------------------------------------------- */

/* A place of the page: what stacks that read the same hold together. */
struct gm_holder {
    uint32_t stack;
    int64_t bytes;
    int64_t count;                    /* allocations, or blocks */
    const struct gm_model_line *line; /* of a pool, whose operations are told; NULL */
};

/* Adds up those of equal stacks, as far as these are among the first; the caller frees. Most bytes
 * first, then by the lower stack. */
struct gm_holder *gm_holders_add(const struct gm_model *model, const struct gm_holder *parts,
                                 size_t part_count, size_t *count);

/* A row for each of the first `top` holders, and one for the rest, shares of `whole`. */
void gm_brief_holders(const struct gm_view *view, struct gm_brief_sites *sites,
                      const struct gm_holder *holders, size_t count, int64_t whole, size_t top);

/* The devices: who held each when memory ran out, or else at its peak, and its use over time. */
void gm_brief_devices(const struct gm_view *view, struct gm_brief_sites *sites);

/* A line on pinned memory, if there was any. */
void gm_brief_pinned(const struct gm_view *view);

/* Who held memory at a moment, as far as the filter lets it through, and their stacks. */
void gm_brief_held(const struct gm_view *view, struct gm_brief_sites *sites,
                   const struct gm_when *when, const struct gm_output_filter *filter);

/* What was left at the end. */
void gm_brief_left(const struct gm_view *view, struct gm_brief_sites *sites);

#endif
