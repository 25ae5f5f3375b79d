/* See growth.h. */
#include "growth.h"
#include <stdlib.h>
#include <string.h>
#include "activity.h"
#include "memory.h"

#define VALUES (GM_GROWTH_MARKS + 1)

struct gm_growth_state {
    uint64_t live;   /* at the mark when it was looked at last */
    uint64_t mark;   /* number of that mark, if it was more then than before */
    uint64_t streak; /* marks in a row, up to that one, at which it was more than before */
    uint64_t
        bytes[VALUES]; /* value n of the streak stands at n % VALUES; 0 is what it began with */
};

/* ---- what happened since a mark -------------------------------------------------------------- */

static void list_site(struct gm_growth *growth, uint32_t site)
{
    for (size_t i = 0; i < growth->series_count; i++) {
        struct gm_growth_series *series = &growth->series[i];
        if (growth->listed[site] & 1u << i)
            continue;
        GM_RESERVE(series->touched, series->touched_capacity, series->touched_count + 1);
        series->touched[series->touched_count++] = site;
    }
    growth->listed[site] = (uint8_t)((1u << growth->series_count) - 1);
}

void gm_growth_touch(struct gm_growth *growth, uint32_t site)
{
    if (site >= GM_GROWTH_SITES)
        return;
    if (site >= growth->listed_count) {
        size_t count = gm_next_capacity(growth->listed_count, (size_t)site + 1);
        growth->listed = gm_resize(growth->listed, count, sizeof(*growth->listed));
        memset(growth->listed + growth->listed_count, 0, count - growth->listed_count);
        growth->listed_count = count;
    }
    if (growth->listed[site] != (1u << growth->series_count) - 1)
        list_site(growth, site);
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* A new series begins with all places that there are. */
static struct gm_growth_series *add_series(struct gm_activity *activity, struct gm_moment moment)
{
    struct gm_growth *growth = &activity->growth;
    struct gm_growth_series *series = &growth->series[growth->series_count++];
    *series = (struct gm_growth_series){.kind = moment.kind, .name = moment.name};
    for (size_t i = 0; i < activity->count; i++)
        gm_growth_touch(growth, (uint32_t)i);
    return series;
}

/* NULL if there is no room for another one. */
static struct gm_growth_series *series_of(struct gm_activity *activity, struct gm_moment moment)
{
    struct gm_growth *growth = &activity->growth;
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].kind == moment.kind && growth->series[i].name == moment.name)
            return &growth->series[i];
    return growth->series_count < GM_GROWTH_SERIES ? add_series(activity, moment) : NULL;
}

static struct gm_growth_state *state_of(struct gm_growth_series *series, uint32_t site)
{
    if (site >= series->state_count) {
        size_t count = gm_next_capacity(series->state_count, (size_t)site + 1);
        series->states = gm_resize(series->states, count, sizeof(*series->states));
        memset(series->states + series->state_count, 0,
               (count - series->state_count) * sizeof(*series->states));
        series->state_count = count;
    }
    return &series->states[site];
}

static void look_at(struct gm_growth_series *series, uint32_t number, uint64_t live)
{
    struct gm_growth_state *state = state_of(series, number);
    uint64_t before = state->live;
    state->live = live;
    if (series->marks <= GM_GROWTH_WARM_UP || live <= before)
        return;
    if (state->mark != series->marks - 1 || state->streak == 0) {
        state->streak = 0;
        state->bytes[0] = before;
    }
    state->mark = series->marks;
    state->bytes[++state->streak % VALUES] = live;
}

static void mark_series(struct gm_activity *activity, struct gm_growth_series *series)
{
    struct gm_growth *growth = &activity->growth;
    uint8_t bit = (uint8_t)(1u << (series - growth->series));
    series->marks++;
    for (size_t i = 0; i < series->touched_count; i++) {
        uint32_t number = series->touched[i];
        growth->listed[number] &= (uint8_t)~bit;
        look_at(series, number, activity->sites[number].live);
    }
    series->touched_count = 0;
}

void gm_growth_mark(struct gm_activity *activity, struct gm_moment moment)
{
    static const struct gm_moment any_mark = {.kind = GM_MOMENT_NONE};
    struct gm_growth_series *series;
    if (moment.kind == GM_MOMENT_NONE)
        return;
    if (moment.kind == GM_MOMENT_MARK && (series = series_of(activity, any_mark)))
        mark_series(activity, series);
    if ((series = series_of(activity, moment)))
        mark_series(activity, series);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void find_in(struct gm_growth *growth, const struct gm_growth_series *series)
{
    for (size_t i = 0; i < series->state_count; i++) {
        const struct gm_growth_state *state = &series->states[i];
        if (state->mark != series->marks || state->streak < GM_GROWTH_MARKS || !growth->listed[i])
            continue;
        struct gm_growing found = {.site = (uint32_t)i, .series = series};
        for (size_t n = 0; n < VALUES; n++)
            found.bytes[n] = state->bytes[(state->streak - GM_GROWTH_MARKS + n) % VALUES];
        growth->listed[i] = 0; /* once is enough */
        GM_RESERVE(growth->found, growth->found_capacity, growth->found_count + 1);
        growth->found[growth->found_count++] = found;
    }
}

static int most_first(const void *left, const void *right)
{
    const struct gm_growing *a = left, *b = right;
    uint64_t bytes_a = gm_growing_bytes(a), bytes_b = gm_growing_bytes(b);
    if (bytes_a != bytes_b)
        return bytes_a > bytes_b ? -1 : 1;
    return a->site < b->site ? -1 : a->site > b->site;
}

void gm_growth_finish(struct gm_activity *activity)
{
    struct gm_growth *growth = &activity->growth;
    if (growth->listed_count)
        memset(growth->listed, 1, growth->listed_count); /* from here on: not found yet */
    /* A name tells more than all marks together, which are the first series if there are marks. */
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].kind != GM_MOMENT_NONE)
            find_in(growth, &growth->series[i]);
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].kind == GM_MOMENT_NONE)
            find_in(growth, &growth->series[i]);
    if (growth->found_count)
        qsort(growth->found, growth->found_count, sizeof(*growth->found), most_first);
}

void gm_growth_free(struct gm_growth *growth)
{
    for (size_t i = 0; i < growth->series_count; i++) {
        free(growth->series[i].touched);
        free(growth->series[i].states);
    }
    free(growth->listed);
    free(growth->found);
}
