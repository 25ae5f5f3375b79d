/* See thin.h. */
#include "output/html/thin.h"
#include "base/memory.h"
#include "output/html/groups.h"
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 4096u
#define PARTS_MIN 64u
#define CHANGES_WANTED 200000u

/* ---- which ----------------------------------------------------------------------------------- */

static void choose_lives(struct gm_html_thin *thin, size_t kept)
{
    size_t *bins = gm_allocate(GM_HTML_WEIGHTS, sizeof(*bins)), above = 0;
    for (size_t i = 0; i < thin->log->count; i++)
        bins[GM_HTML_WEIGHT(thin->log->lives[i])]++;
    thin->least = GM_HTML_WEIGHTS;
    while (thin->least > 0 && above + bins[thin->least - 1] <= kept)
        above += bins[--thin->least];
    free(bins);
    thin->merged = thin->log->count - above;
}

/* ---- when ------------------------------------------------------------------------------------ */

static unsigned part_of(const struct gm_html_thin *thin, uint64_t time_ns, uint64_t duration_ns)
{
    if (time_ns >= duration_ns)
        return thin->parts - 1;
    return (unsigned)((double)time_ns / (double)duration_ns * thin->parts);
}

/* Marks the last step of each part, and the one at which each group has its most in the part. */
static void place_changes(struct gm_html_thin *thin, const struct gm_model *model,
                          uint64_t duration_ns)
{
    uint64_t live[GM_HTML_GROUPS] = {0}, most[GM_HTML_GROUPS] = {0};
    uint32_t at[GM_HTML_GROUPS], last = GM_NONE;
    struct gm_html_groups groups;
    struct gm_html_walk walk = {0};
    unsigned part = 0;
    memset(at, 0xff, sizeof(at));
    gm_html_groups_begin(&groups, model);
    while (gm_html_next(thin->log, &walk)) {
        const struct gm_html_event *event = &walk.event;
        unsigned now = part_of(thin, event->time_ns, duration_ns);
        if (now > part && last != GM_NONE) {
            part = now;
            thin->stands[last] = true;
            for (unsigned group = 0; group < GM_HTML_GROUPS; group++) {
                if (at[group] != GM_NONE)
                    thin->stands[at[group]] = true;
                at[group] = GM_NONE;
                most[group] = live[group];
            }
        }
        unsigned group = gm_html_group_of(&groups, event->place);
        live[group] += event->ends ? 0 - event->size : event->size;
        if (live[group] > most[group]) {
            most[group] = live[group];
            at[group] = event->step;
        }
        last = event->step;
    }
    for (unsigned group = 0; group < GM_HTML_GROUPS; group++)
        if (at[group] != GM_NONE)
            thin->stands[at[group]] = true;
    if (last != GM_NONE)
        thin->stands[last] = true;
    gm_html_groups_end(&groups);
}

void gm_html_thin_begin(struct gm_html_thin *thin, const struct gm_model *model,
                        const struct gm_html_log *log, uint64_t duration_ns, size_t kept)
{
    *thin = (struct gm_html_thin){.log = log};
    if (log->count <= kept)
        return;
    size_t parts = CHANGES_WANTED / (model->place_count + 1);
    parts = parts < kept / 4 ? parts : kept / 4;
    parts = parts > PARTS_MAX ? PARTS_MAX : parts < PARTS_MIN ? PARTS_MIN : parts;
    thin->parts = (unsigned)parts;
    thin->stands = gm_allocate(log->steps + 1, sizeof(*thin->stands));
    thin->sums = gm_allocate(model->place_count + 1, sizeof(*thin->sums));
    thin->touched = gm_allocate(model->place_count + 1, sizeof(*thin->touched));
    choose_lives(thin, kept);
    place_changes(thin, model, duration_ns ? duration_ns : 1);
}

void gm_html_thin_end(struct gm_html_thin *thin)
{
    free(thin->stands);
    free(thin->sums);
    free(thin->touched);
    *thin = (struct gm_html_thin){0};
}

/* ---- what ------------------------------------------------------------------------------------ */

static struct gm_html_change *change_of_place(struct gm_html_thin *thin, uint32_t place)
{
    struct gm_html_change *sum = &thin->sums[place];
    if (!sum->touched) {
        *sum = (struct gm_html_change){.place = place, .touched = true};
        thin->touched[thin->touched_count++] = place;
    }
    return sum;
}

bool gm_html_thin_takes(struct gm_html_thin *thin, const struct gm_html_event *event)
{
    unsigned life = thin->log->lives[event->life];
    if (GM_HTML_WEIGHT(life) >= thin->least)
        return false;
    struct gm_html_change *sum = change_of_place(thin, event->place);
    sum->bytes += event->ends ? -(int64_t)event->size : (int64_t)event->size;
    sum->count += event->ends ? -1 : 1;
    if (event->ends)
        return true;
    bool is_left = life & GM_HTML_LEFT, is_temporary = life & GM_HTML_TEMPORARY;
    sum->allocated += event->size;
    sum->allocated_count++;
    sum->temporary += is_temporary ? event->size : 0;
    sum->temporary_count += is_temporary;
    sum->left += is_left ? event->size : 0;
    sum->left_count += is_left;
    return true;
}

bool gm_html_thin_next(struct gm_html_thin *thin, const struct gm_html_event *event,
                       struct gm_html_change *change, bool *is_last)
{
    if (!thin->stands || !thin->stands[event->step])
        return false;
    if (!thin->touched_count) /* totals are exact here all the same */
        change_of_place(thin, event->place);
    if (thin->told == thin->touched_count) {
        thin->told = thin->touched_count = 0;
        return false;
    }
    *change = thin->sums[thin->touched[thin->told++]];
    *is_last = thin->told == thin->touched_count;
    thin->sums[change->place].touched = false;
    return true;
}
