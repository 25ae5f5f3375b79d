/* See growth.h. */
#include "judge/analysis/growth.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdlib.h>
#include <string.h>

#define BUCKETS 16u /* between half of them and all are in use */

/* What a place held at the marks of a series, the warm-up but for its last mark left out: the least
 * and the most of every 1 << shift of them. */
struct gm_growth_state {
    uint64_t live;  /* since mark `marks` */
    uint64_t marks; /* that the buckets tell of */
    unsigned shift;
    unsigned count; /* of buckets in use */
    struct {
        uint64_t least, most;
    } buckets[BUCKETS];
};

/* ---- what a place held ----------------------------------------------------------------------- */

static void add_values(struct gm_growth_state *state, unsigned at, uint64_t least, uint64_t most)
{
    if (at == state->count) {
        state->buckets[at].least = least;
        state->buckets[at].most = most;
        state->count++;
        return;
    }
    if (least < state->buckets[at].least)
        state->buckets[at].least = least;
    if (most > state->buckets[at].most)
        state->buckets[at].most = most;
}

/* Two buckets become one. */
static void widen_growth(struct gm_growth_state *state)
{
    unsigned count = state->count;
    state->count = 0;
    for (unsigned i = 0; i < count; i++)
        add_values(state, i / 2, state->buckets[i].least, state->buckets[i].most);
    state->shift++;
}

/* Marks until number `end` at which the place held what it holds. */
static void add_marks(struct gm_growth_state *state, uint64_t end)
{
    if (end <= state->marks)
        return;
    while ((end - 1) >> state->shift >= BUCKETS)
        widen_growth(state);
    for (uint64_t at = state->marks >> state->shift; at <= (end - 1) >> state->shift; at++)
        add_values(state, (unsigned)at, state->live, state->live);
    state->marks = end;
}

/* How many marks of a series count. */
static uint64_t counted(const struct gm_growth_series *series)
{
    return series->marks >= GM_GROWTH_WARM_UP ? series->marks - GM_GROWTH_WARM_UP + 1 : 0;
}

/* ---- what happened since a mark -------------------------------------------------------------- */

static void list_site(struct gm_growth *growth, uint32_t site)
{
    for (size_t i = 0; i < growth->series_count; i++) {
        struct gm_growth_series *series = &growth->series[i];
        if (growth->listed[site] & 1u << i)
            continue;
        GM_APPEND(series->touched, series->touched_capacity, series->touched_count, site);
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
static struct gm_growth_series *
add_series(struct gm_growth *growth, const struct gm_growth_view *view, struct gm_moment moment)
{
    struct gm_growth_series *series = &growth->series[growth->series_count++];
    *series = (struct gm_growth_series){.kind = moment.kind,
                                        .name = moment.name,
                                        .totals = gm_allocate(2, sizeof(*series->totals))};
    for (size_t i = 0; i < view->count; i++)
        gm_growth_touch(growth, (uint32_t)i);
    return series;
}

/* NULL if there is no room for another one. */
static struct gm_growth_series *
series_of(struct gm_growth *growth, const struct gm_growth_view *view, struct gm_moment moment)
{
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].kind == moment.kind && growth->series[i].name == moment.name)
            return &growth->series[i];
    return growth->series_count < GM_GROWTH_SERIES ? add_series(growth, view, moment) : NULL;
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

static void look_at_series(const struct gm_growth_series *series, struct gm_growth_state *state,
                           uint64_t live)
{
    uint64_t marks = counted(series);
    if (marks)
        add_marks(state, marks - 1);
    state->live = live;
    add_marks(state, marks);
}

static void mark_series(struct gm_growth *growth, const struct gm_growth_view *view,
                        struct gm_growth_series *series)
{
    uint8_t bit = (uint8_t)(1u << (series - growth->series));
    series->marks++;
    for (size_t i = 0; i < series->touched_count; i++) {
        uint32_t number = series->touched[i];
        growth->listed[number] &= (uint8_t)~bit;
        look_at_series(series, state_of(series, number), view->sites[number].live);
    }
    for (size_t is_block = 0; is_block < 2; is_block++)
        look_at_series(series, &series->totals[is_block], view->live[is_block]);
    series->touched_count = 0;
}

void gm_growth_mark(struct gm_growth *growth, const struct gm_growth_view *view,
                    struct gm_moment moment)
{
    static const struct gm_moment any_mark = {.kind = GM_MOMENT_NONE};
    struct gm_growth_series *series;
    if (moment.kind == GM_MOMENT_NONE)
        return;
    if (moment.kind == GM_MOMENT_MARK && (series = series_of(growth, view, any_mark)))
        mark_series(growth, view, series);
    if ((series = series_of(growth, view, moment)))
        mark_series(growth, view, series);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The place must have been looked at up to the last mark. */
static bool grows(const struct gm_growth_state *state, struct gm_growing *growing)
{
    unsigned first = state->count / 2;
    if (state->marks < GM_GROWTH_PARTS + 1)
        return false;
    if (first > state->count - GM_GROWTH_PARTS) /* a part has one bucket at least */
        first = state->count - GM_GROWTH_PARTS;
    growing->over = state->marks - ((uint64_t)first << state->shift);
    growing->bytes[0] = state->buckets[first - 1].most;
    for (unsigned part = 0; part < GM_GROWTH_PARTS; part++) {
        unsigned at = first + (state->count - first) * part / GM_GROWTH_PARTS;
        unsigned end = first + (state->count - first) * (part + 1) / GM_GROWTH_PARTS;
        uint64_t most = 0;
        for (; at < end; at++) {
            if (state->buckets[at].least < growing->bytes[part])
                return false;
            if (state->buckets[at].most > most)
                most = state->buckets[at].most;
        }
        if (most == growing->bytes[part])
            return false;
        growing->bytes[part + 1] = most;
    }
    return true;
}

/* Whether all places together rose, or fell, by half as much at least in that time. */
static bool is_more_in_all(const struct gm_growth_state *total, const struct gm_growing *growing)
{
    uint64_t first = (total->marks - growing->over) >> total->shift;
    uint64_t before = total->buckets[first - 1].most, after = total->live;
    return (after > before ? after - before : before - after) >= gm_growing_bytes(growing) / 2;
}

static void find_growth(struct gm_growth *growth, const struct gm_growth_view *view,
                        const struct gm_growth_series *series)
{
    for (size_t i = 0; i < series->state_count; i++) {
        struct gm_growing found = {.site = (uint32_t)i, .series = series};
        add_marks(&series->states[i], counted(series));
        if (!growth->listed[i] || !grows(&series->states[i], &found) ||
            !is_more_in_all(&series->totals[view->sites[i].is_block], &found))
            continue;
        growth->listed[i] = 0; /* once is enough */
        GM_APPEND(growth->found, growth->found_capacity, growth->found_count, found);
    }
}

GM_ORDER(most_first_growth, struct gm_growing,
         GM_UP_OF(gm_growing_bytes(b), gm_growing_bytes(a)) GM_UP(site))

void gm_growth_finish(struct gm_growth *growth, const struct gm_growth_view *view)
{
    if (growth->listed_count)
        memset(growth->listed, 1, growth->listed_count); /* from here on: not found yet */
    /* A name tells more than all marks together, which are the first series if there are marks. */
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].kind != GM_MOMENT_NONE)
            find_growth(growth, view, &growth->series[i]);
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].kind == GM_MOMENT_NONE)
            find_growth(growth, view, &growth->series[i]);
    if (growth->found_count)
        qsort(growth->found, growth->found_count, sizeof(*growth->found), most_first_growth);
}

void gm_growth_free(struct gm_growth *growth)
{
    for (size_t i = 0; i < growth->series_count; i++) {
        free(growth->series[i].touched);
        free(growth->series[i].totals);
        free(growth->series[i].states);
    }
    free(growth->listed);
    free(growth->found);
}
