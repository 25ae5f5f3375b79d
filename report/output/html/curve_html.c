/* See html.h. A curve that needs no script: the least and the most of each of WIDTH parts of the run. */
#include "base/memory.h"
#include "output/amount.h"
#include "output/html/groups.h"
#include "output/html/html.h"
#include <stdlib.h>

enum { WIDTH = 600, HEIGHT = 160 };

struct part {
    uint64_t least, most;
};

struct group {
    uint64_t live, peak;
    unsigned at; /* part */
    struct part parts[WIDTH];
};

/* The parts up to `part` of a group in which nothing has happened since. */
static void pass_parts(struct group *group, unsigned part)
{
    while (group->at < part)
        group->parts[++group->at] = (struct part){group->live, group->live};
}

static void count_event(struct group *group, const struct gm_html_event *event, unsigned part)
{
    pass_parts(group, part);
    group->live += event->ends ? 0 - event->size : event->size;
    group->peak = group->live > group->peak ? group->live : group->peak;
    struct part *now = &group->parts[part];
    now->least = group->live < now->least ? group->live : now->least;
    now->most = group->live > now->most ? group->live : now->most;
}

static double height_of(uint64_t bytes, uint64_t peak)
{
    return HEIGHT - (double)bytes / (double)peak * (HEIGHT - 4);
}

static void write_svg(FILE *out, const char *name, const struct group *group)
{
    fprintf(out, "<figure class=\"static\"><figcaption>%s over time, peak %s</figcaption>\n", name,
            SIZE(group->peak));
    fprintf(out,
            "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"%s over time\"><path d=\"M0 %d",
            WIDTH, HEIGHT, name, HEIGHT);
    for (unsigned i = 0; i < WIDTH; i++)
        fprintf(out, "V%.1fH%u", height_of(group->parts[i].most, group->peak), i + 1);
    fprintf(out, "V%dZ\"/></svg></figure>\n", HEIGHT);
}

void gm_html_curve(FILE *out, const struct gm_model *model, const struct gm_html_log *log,
                   uint64_t duration_ns)
{
    struct group *found = gm_allocate(GM_HTML_GROUPS, sizeof(*found));
    struct gm_html_groups groups;
    struct gm_html_walk walk = {0};
    unsigned most = 0;
    gm_html_groups_begin(&groups, model);
    while (gm_html_next(log, &walk)) {
        uint64_t time = walk.event.time_ns;
        unsigned part = duration_ns && time < duration_ns
                            ? (unsigned)((double)time / (double)duration_ns * WIDTH)
                            : WIDTH - 1u;
        count_event(&found[gm_html_group_of(&groups, walk.event.place)], &walk.event, part);
    }
    for (unsigned i = 1; i < groups.count; i++)
        if (found[i].peak > found[most].peak)
            most = i;
    pass_parts(&found[most], WIDTH - 1);
    if (found[most].peak)
        write_svg(out, groups.names[most], &found[most]);
    gm_html_groups_end(&groups);
    free(found);
}
