/* See html.h. A curve that needs no script: the least and the most of each of WIDTH parts of the run. */
#include "base/memory.h"
#include "output/amount.h"
#include "output/html/groups.h"
#include "output/html/html.h"
#include <stdlib.h>

enum { WIDTH = 600, HEIGHT = 160 };

struct group {
    uint64_t live;
    uint64_t peak;
};

struct part {
    uint64_t least, most;
};

struct curve {
    const struct gm_model_history *history;
    uint64_t *order; /* gm_model_history_order */
    struct gm_html_groups groups;
    struct group found[GM_HTML_GROUPS];
};

/* Walks the steps in their order; `parts` of one group, if not NULL. */
static void walk(struct curve *curve, struct part *parts, unsigned wanted, uint64_t duration_ns)
{
    const struct gm_model_history *history = curve->history;
    for (unsigned i = 0; i < curve->groups.count; i++)
        curve->found[i].live = 0;
    unsigned at = 0;
    uint64_t live = 0;
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!curve->order[step])
            continue;
        bool ends = GM_STEP_ENDS(curve->order[step]);
        const struct gm_model_life *life = &history->lives[GM_STEP_LIFE(curve->order[step])];
        struct group *group = &curve->found[gm_html_group_of(&curve->groups, life->place)];
        group->live += ends ? 0 - life->size : life->size;
        if (group->live > group->peak)
            group->peak = group->live;
        if (!parts || (unsigned)(group - curve->found) != wanted)
            continue;
        uint64_t time = ends ? life->end_ns : life->begin_ns;
        unsigned part = duration_ns && time < duration_ns
                            ? (unsigned)((double)time / (double)duration_ns * WIDTH)
                            : WIDTH - 1u;
        for (; at < part; parts[++at] = (struct part){live, live})
            ;
        live = group->live;
        parts[at].least = live < parts[at].least ? live : parts[at].least;
        parts[at].most = live > parts[at].most ? live : parts[at].most;
    }
    while (parts && at < WIDTH - 1)
        parts[++at] = (struct part){live, live};
}

static double height_of(uint64_t bytes, uint64_t peak)
{
    return HEIGHT - (double)bytes / (double)peak * (HEIGHT - 4);
}

static void write_svg(FILE *out, const char *name, const struct group *group,
                      const struct part *parts)
{
    fprintf(out, "<figure class=\"static\"><figcaption>%s over time, peak %s</figcaption>\n", name,
            SIZE(group->peak));
    fprintf(out,
            "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"%s over time\"><path d=\"M0 %d",
            WIDTH, HEIGHT, name, HEIGHT);
    for (unsigned i = 0; i < WIDTH; i++)
        fprintf(out, "V%.1fH%u", height_of(parts[i].most, group->peak), i + 1);
    fprintf(out, "V%dZ\"/></svg></figure>\n", HEIGHT);
}

void gm_html_curve(FILE *out, const struct gm_model *model, const struct gm_model_history *history,
                   uint64_t duration_ns)
{
    struct curve *curve = gm_allocate(1, sizeof(*curve));
    struct part parts[WIDTH] = {{0, 0}};
    unsigned most = 0;
    *curve = (struct curve){.history = history};
    gm_html_groups_begin(&curve->groups, model);
    curve->order = gm_model_history_order(history);
    walk(curve, NULL, 0, duration_ns);
    for (unsigned i = 1; i < curve->groups.count; i++)
        if (curve->found[i].peak > curve->found[most].peak)
            most = i;
    walk(curve, parts, most, duration_ns);
    if (curve->found[most].peak)
        write_svg(out, curve->groups.names[most], &curve->found[most], parts);
    free(curve->order);
    gm_html_groups_end(&curve->groups);
    free(curve);
}
