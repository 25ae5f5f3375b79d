/* See thin.h. */
#include "output/html/thin.h"
#include "base/memory.h"
#include "output/html/groups.h"
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 4096u
#define PARTS_MIN 64u
#define CHANGES_WANTED 200000u
#define BINS (1u << 16) /* of weights: sign, exponent and 4 bits of the mantissa of a double */

struct thinning {
    struct gm_html_thin *thin;
    const struct gm_model_history *history;
    const uint64_t *order;
    uint64_t duration_ns;
    struct gm_html_groups groups;
    bool *stands;                /* by step: changes stand behind it */
    struct gm_html_change *sums; /* by place, since the last change */
    uint32_t *touched;           /* places with a sum */
    size_t touched_count;
};

/* ---- which ----------------------------------------------------------------------------------- */

static uint64_t lifetime(const struct thinning *thinning, const struct gm_model_life *life)
{
    uint64_t end = life->end_step == GM_NONE ? thinning->duration_ns : life->end_ns;
    return end > life->begin_ns ? end - life->begin_ns : 0;
}

static unsigned weight(const struct thinning *thinning, const struct gm_model_life *life)
{
    double product = ((double)life->size + 1) * ((double)lifetime(thinning, life) + 1);
    uint64_t bits;
    memcpy(&bits, &product, sizeof(bits));
    return (unsigned)(bits >> 48);
}

static void choose(struct thinning *thinning, size_t kept)
{
    const struct gm_model_history *history = thinning->history;
    size_t *bins = gm_allocate(BINS, sizeof(*bins)), above = 0;
    unsigned least = BINS;
    for (size_t i = 0; i < history->count; i++)
        bins[weight(thinning, &history->lives[i])]++;
    while (least > 0 && above + bins[least - 1] <= kept)
        above += bins[--least];
    free(bins);
    thinning->thin->is_merged = gm_allocate(history->count + 1, sizeof(bool));
    for (size_t i = 0; i < history->count; i++)
        thinning->thin->is_merged[i] = weight(thinning, &history->lives[i]) < least;
    thinning->thin->merged = history->count - above;
}

/* ---- when ------------------------------------------------------------------------------------ */

static unsigned part_of(const struct thinning *thinning, uint64_t time_ns)
{
    unsigned parts = thinning->thin->parts;
    if (time_ns >= thinning->duration_ns)
        return parts - 1;
    return (unsigned)((double)time_ns / (double)thinning->duration_ns * parts);
}

/* Marks the last step of each part, and the one at which each group has its most in the part. */
static void place_changes(struct thinning *thinning)
{
    const struct gm_model_history *history = thinning->history;
    uint64_t live[GM_HTML_GROUPS] = {0}, most[GM_HTML_GROUPS] = {0};
    uint32_t at[GM_HTML_GROUPS], last = GM_NONE;
    unsigned part = 0;
    memset(at, 0xff, sizeof(at));
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!thinning->order[step])
            continue;
        const struct gm_model_life *life = &history->lives[GM_STEP_LIFE(thinning->order[step])];
        bool ends = GM_STEP_ENDS(thinning->order[step]);
        unsigned now = part_of(thinning, ends ? life->end_ns : life->begin_ns);
        if (now > part && last != GM_NONE) {
            part = now;
            thinning->stands[last] = true;
            for (unsigned group = 0; group < GM_HTML_GROUPS; group++) {
                if (at[group] != GM_NONE)
                    thinning->stands[at[group]] = true;
                at[group] = GM_NONE;
                most[group] = live[group];
            }
        }
        unsigned group = gm_html_group_of(&thinning->groups, life->place);
        live[group] += ends ? 0 - life->size : life->size;
        if (live[group] > most[group]) {
            most[group] = live[group];
            at[group] = step;
        }
        last = step;
    }
    for (unsigned group = 0; group < GM_HTML_GROUPS; group++)
        if (at[group] != GM_NONE)
            thinning->stands[at[group]] = true;
    if (last != GM_NONE)
        thinning->stands[last] = true;
}

/* ---- what ------------------------------------------------------------------------------------ */

static struct gm_html_change *sum_of(struct thinning *thinning, uint32_t place)
{
    struct gm_html_change *sum = &thinning->sums[place];
    if (!sum->step) { /* stands for: is touched */
        sum->step = 1;
        thinning->touched[thinning->touched_count++] = place;
    }
    return sum;
}

static void add(struct thinning *thinning, const struct gm_model_life *life, bool ends)
{
    struct gm_html_change *sum = sum_of(thinning, life->place);
    sum->bytes += ends ? -(int64_t)life->size : (int64_t)life->size;
    sum->count += ends ? -1 : 1;
    if (ends)
        return;
    bool is_left = life->end_step == GM_NONE;
    bool is_temporary = !is_left && lifetime(thinning, life) < thinning->duration_ns / 100;
    sum->allocated += life->size;
    sum->allocated_count++;
    sum->temporary += is_temporary ? life->size : 0;
    sum->temporary_count += is_temporary;
    sum->left += is_left ? life->size : 0;
    sum->left_count += is_left;
}

/* Changes behind a step, which is of a place: one at least. */
static void change(struct thinning *thinning, uint32_t step, uint32_t place)
{
    struct gm_html_thin *thin = thinning->thin;
    if (!thinning->touched_count) /* totals are exact here all the same */
        sum_of(thinning, place);
    for (size_t i = 0; i < thinning->touched_count; i++) {
        struct gm_html_change *sum = &thinning->sums[thinning->touched[i]];
        GM_RESERVE(thin->changes, thin->capacity, thin->count + 1);
        sum->step = step;
        sum->place = thinning->touched[i];
        thin->changes[thin->count++] = *sum;
        *sum = (struct gm_html_change){0};
    }
    thinning->touched_count = 0;
}

static void merge(struct thinning *thinning)
{
    const struct gm_model_history *history = thinning->history;
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!thinning->order[step])
            continue;
        uint64_t number = GM_STEP_LIFE(thinning->order[step]);
        if (thinning->thin->is_merged[number])
            add(thinning, &history->lives[number], GM_STEP_ENDS(thinning->order[step]));
        if (thinning->stands[step])
            change(thinning, step, thinning->history->lives[number].place);
    }
}

void gm_html_thin_make(struct gm_html_thin *thin, const struct gm_model *model,
                       const struct gm_model_history *history, const uint64_t *order,
                       uint64_t duration_ns, size_t kept)
{
    *thin = (struct gm_html_thin){0};
    if (history->count <= kept)
        return;
    struct thinning thinning = {.thin = thin,
                                .history = history,
                                .order = order,
                                .duration_ns = duration_ns ? duration_ns : 1};
    size_t parts = CHANGES_WANTED / (model->place_count + 1);
    parts = parts < kept / 4 ? parts : kept / 4;
    parts = parts > PARTS_MAX ? PARTS_MAX : parts < PARTS_MIN ? PARTS_MIN : parts;
    thin->parts = (unsigned)parts;
    thinning.stands = gm_allocate((size_t)history->steps + 1, sizeof(*thinning.stands));
    thinning.sums = gm_allocate(model->place_count + 1, sizeof(*thinning.sums));
    thinning.touched = gm_allocate(model->place_count + 1, sizeof(*thinning.touched));
    gm_html_groups_begin(&thinning.groups, model);
    choose(&thinning, kept);
    place_changes(&thinning);
    merge(&thinning);
    gm_html_groups_end(&thinning.groups);
    free(thinning.stands);
    free(thinning.sums);
    free(thinning.touched);
}

void gm_html_thin_free(struct gm_html_thin *thin)
{
    free(thin->is_merged);
    free(thin->changes);
    *thin = (struct gm_html_thin){0};
}
