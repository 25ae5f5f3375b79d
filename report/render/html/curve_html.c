/* See html.h. A curve that needs no script: the least and the most of each of WIDTH parts of the run. */
#include "base/memory.h"
#include "render/amount.h"
#include "render/html/html.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 600, HEIGHT = 160, GROUPS = 64 };

struct group {
    char name[GM_GROUP_TEXT];
    uint64_t live;
    uint64_t peak;
};

struct part {
    uint64_t least, most;
};

struct curve {
    const struct gm_model *model;
    const struct gm_model_history *history;
    uint64_t *order; /* gm_model_history_order */
    uint8_t *groups; /* by place: number and one; 0 not met */
    struct group found[GROUPS];
    unsigned count;
};

static unsigned group_of(struct curve *curve, uint32_t place)
{
    char name[GM_GROUP_TEXT];
    if (curve->groups[place])
        return curve->groups[place] - 1u;
    gm_place_group(&curve->model->places[place], name);
    unsigned group = 0;
    while (group < curve->count && strcmp(curve->found[group].name, name) != 0)
        group++;
    if (group == GROUPS)
        group = GROUPS - 1; /* a trace of so many devices: the last ones share a curve */
    if (group == curve->count)
        memcpy(curve->found[curve->count++].name, name, sizeof(name));
    curve->groups[place] = (uint8_t)(group + 1);
    return group;
}

/* Walks the steps in their order; `parts` of one group, if not NULL. */
static void walk(struct curve *curve, struct part *parts, unsigned wanted, uint64_t duration_ns)
{
    const struct gm_model_history *history = curve->history;
    for (unsigned i = 0; i < curve->count; i++)
        curve->found[i].live = 0;
    unsigned at = 0;
    uint64_t live = 0;
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!curve->order[step])
            continue;
        bool ends = GM_STEP_ENDS(curve->order[step]);
        const struct gm_model_life *life = &history->lives[GM_STEP_LIFE(curve->order[step])];
        struct group *group = &curve->found[group_of(curve, life->place)];
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

static void write_svg(FILE *out, const struct group *group, const struct part *parts)
{
    fprintf(out, "<figure class=\"static\"><figcaption>%s over time, peak %s</figcaption>\n",
            group->name, SIZE(group->peak));
    fprintf(out,
            "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"%s over time\"><path d=\"M0 %d",
            WIDTH, HEIGHT, group->name, HEIGHT);
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
    *curve = (struct curve){.model = model, .history = history};
    curve->order = gm_model_history_order(history);
    curve->groups = gm_allocate(model->place_count + 1, 1);
    walk(curve, NULL, 0, duration_ns);
    for (unsigned i = 1; i < curve->count; i++)
        if (curve->found[i].peak > curve->found[most].peak)
            most = i;
    walk(curve, parts, most, duration_ns);
    if (curve->found[most].peak)
        write_svg(out, &curve->found[most], parts);
    free(curve->order);
    free(curve->groups);
    free(curve);
}
