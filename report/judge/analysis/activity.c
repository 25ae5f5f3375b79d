/* See activity.h. */
#include "judge/analysis/activity.h"
#include "base/each.h"
#include "base/memory.h"
#include <stdlib.h>

void gm_activity_begin(struct gm_activity *activity, const struct gm_trace *trace,
                       const struct gm_round_tellers *tellers)
{
    const struct gm_clock_scale *clock = &trace->clock;
    /* GNU: 128 bits, since hostile clocks can have any scale. */
    unsigned __int128 ticks = (unsigned __int128)GM_SHORT_LIFE_NS * clock->ticks;
    *activity = (struct gm_activity){
        .trace = trace, .short_ticks = (uint64_t)(ticks / clock->nanoseconds), .tellers = *tellers};
}

static bool is_segment(const struct gm_activity *activity, const struct gm_life *life)
{
    return (life->kind == GM_KIND_DEVICE || life->kind == GM_KIND_VMM) &&
           gm_owners_cache(activity->tellers.owners, life->kind, life->stack) &&
           !gm_trace_api_is_pooled(activity->trace, life->api);
}

static uint32_t add_site(struct gm_activity *activity, const struct gm_life *life, bool is_block,
                         uint64_t key)
{
    uint32_t number = (uint32_t)activity->count;
    bool is_ignored = (life->flags & GM_LIFE_IGNORED) != 0;
    GM_APPEND(activity->sites, activity->capacity, activity->count,
              (struct gm_active_site){
                  GM_SAME(life, stack, api, kind),
                  .device = gm_kind_is_host(life->kind) ? -1 : life->device,
                  .is_block = is_block,
                  .is_segment = !is_block && is_segment(activity, life),
                  .is_ignored = is_ignored,
              });
    gm_map_set(&activity->by_key, key, number);
    struct gm_round_birthplace birthplace =
        gm_round_birthplace_of(&activity->tellers, is_block, life->kind, life->device, life->stack);
    if (is_ignored)
        birthplace.sort = GM_ROUND_SORTS;
    gm_rounds_add_site(&activity->rounds, number, &birthplace);
    return number;
}

uint32_t gm_activity_find_place(struct gm_activity *activity, const struct gm_life *life,
                                bool is_block, uint64_t key)
{
    uint32_t number = gm_map_get(&activity->by_key, key);
    return number == GM_NONE ? add_site(activity, life, is_block, key) : number;
}

void gm_activity_life_goes_on(struct gm_activity *activity, const struct gm_life *life,
                              uint64_t time)
{
    struct gm_active_site *site = &activity->sites[life->place];
    if (site->short_lived && (time - life->time < activity->short_ticks || time < life->time)) {
        site->short_lived--;
        site->short_bytes -= life->size;
    }
    gm_rounds_unfree(&activity->rounds, life->place, life->size);
    gm_activity_add(activity, life->place, life->size);
}

void gm_activity_grows(struct gm_activity *activity, const struct gm_life *life, uint64_t before)
{
    struct gm_active_site *site = &activity->sites[life->place];
    site->allocated = gm_add_saturated(site->allocated, life->size - before);
    site->live_count--;
    gm_activity_add(activity, life->place, life->size - before);
    gm_rounds_free(&activity->rounds, life->place, before, life->time);
    gm_rounds_unfree(&activity->rounds, life->place, life->size);
}

/* As short as a life can be, and what lives is what did. */
void gm_activity_turned(struct gm_activity *activity, const struct gm_turn *turn)
{
    bool is_short = activity->short_ticks > 0;
    for (size_t i = 0; i < turn->site_count; i++) {
        const struct gm_turn_site *of = &turn->sites[i];
        const struct gm_life life = {
            .stack = of->stack, .api = of->api, .kind = turn->kind, .device = turn->device};
        struct gm_active_site *site = &activity->sites[gm_activity_place(activity, &life, false)];
        site->allocs += of->births;
        site->allocated = gm_add_saturated(site->allocated, of->bytes);
        site->short_lived += is_short ? of->births : 0;
        site->short_bytes = gm_add_saturated(site->short_bytes, is_short ? of->bytes : 0);
        if (site->live + of->most > site->peak)
            site->peak = site->live + of->most;
    }
}

void gm_activity_block_begins(struct gm_activity *activity, struct gm_pool_block *block,
                              bool is_ignoring)
{
    const struct gm_life life = {.stack = block->stack,
                                 .api = block->api,
                                 .kind = GM_KIND_DEVICE,
                                 .device = block->device,
                                 .flags = is_ignoring ? GM_LIFE_IGNORED : 0};
    block->place = gm_activity_place(activity, &life, true);
    gm_activity_begins(activity, block->place, block->size, block->time);
}

void gm_activity_refuse(struct gm_activity *activity, const struct gm_record *record, bool is_block)
{
    enum gm_round_sort sort =
        gm_round_sort_of(&activity->tellers, is_block, record->kind, record->stack);
    if (sort < GM_ROUND_SORTS)
        gm_rounds_refuse(&activity->rounds, record->device, sort);
}

static struct gm_growth_view view_of(const struct gm_activity *activity)
{
    return (struct gm_growth_view){
        activity->sites, activity->count, {activity->live[0], activity->live[1]}};
}

void gm_activity_mark(struct gm_activity *activity, struct gm_moment moment)
{
    struct gm_growth_view view = view_of(activity);
    gm_growth_mark(&activity->growth, &view, moment);
}

void gm_activity_finish(struct gm_activity *activity)
{
    struct gm_growth_view view = view_of(activity);
    gm_growth_finish(&activity->growth, &view);
    gm_rounds_finish(&activity->rounds);
}

void gm_activity_free(struct gm_activity *activity)
{
    free(activity->sites);
    gm_map_free(&activity->by_key);
    gm_growth_free(&activity->growth);
    gm_rounds_free_all(&activity->rounds);
}
