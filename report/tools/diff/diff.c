/* See diff.h. */
#include "tools/diff/diff.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdlib.h>
#include <string.h>

const char *gm_diff_table_name(enum gm_diff_tables table)
{
    static const char *const names[] = {
        [GM_DIFF_TOTALS] = "totals",       [GM_DIFF_PROCESSES] = "processes",
        [GM_DIFF_LIBRARIES] = "libraries", [GM_DIFF_CATEGORIES] = "categories",
        [GM_DIFF_PHASES] = "phases",       [GM_DIFF_FINDINGS] = "findings"};
    return names[table];
}

const char *gm_diff_section_name(enum gm_diff_sections section)
{
    static const char *const names[] = {[GM_DIFF_AT_PEAK] = "at_peak",
                                        [GM_DIFF_IN_POOLS] = "in_pools",
                                        [GM_DIFF_PINNED] = "pinned",
                                        [GM_DIFF_LEAKED] = "leaked",
                                        [GM_DIFF_ALLOCATED] = "allocated"};
    return names[section];
}

const char *gm_diff_change(int64_t before, int64_t after)
{
    if (before == after)
        return "same";
    return !before ? "came" : !after ? "went" : after > before ? "grew" : "shrank";
}

static uint64_t distance(int64_t before, int64_t after)
{
    return after > before ? (uint64_t)after - (uint64_t)before : (uint64_t)before - (uint64_t)after;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The places of a section: those of all moments that read the same are one. */
struct gathering {
    const struct gm_model *model;
    struct gm_map by_stack;
    struct gm_diff_place *entries;
    size_t count, capacity;
};

static struct gm_diff_place *gather(struct gathering *gathering, uint32_t number)
{
    const struct gm_model_place *place = &gathering->model->places[number];
    uint32_t stack = gm_model_same_stack(gathering->model, place->stack);
    uint32_t at = gm_map_get(&gathering->by_stack, stack);
    if (at == GM_NONE) {
        at = (uint32_t)gathering->count;
        gm_map_set(&gathering->by_stack, stack, at);
        GM_APPEND(gathering->entries, gathering->capacity, gathering->count,
                  (struct gm_diff_place){.stack = stack, .library = place->library});
    }
    return &gathering->entries[at];
}

static bool is_of_section(const struct gm_model_run *run, const struct gm_model_moment *moment,
                          const struct gm_model_place *place, enum gm_diff_sections section)
{
    switch (section) {
    case GM_DIFF_AT_PEAK:
        return moment->kind == GM_MODEL_PEAK && !(run->has_blocks && place->pool);
    case GM_DIFF_IN_POOLS:
        return moment->kind == GM_MODEL_POOL_PEAK;
    case GM_DIFF_PINNED:
        return moment->kind == GM_MODEL_PINNED_PEAK;
    case GM_DIFF_LEAKED:
        return moment->kind == GM_MODEL_END && place->leak_class == GM_LEAK && !place->is_block;
    default:
        return false;
    }
}

static void gather_moments(struct gathering *gathering, const struct gm_model_run *run,
                           enum gm_diff_sections section)
{
    for (size_t i = 0; i < run->moment_count; i++) {
        const struct gm_model_moment *moment = &run->moments[i];
        for (size_t at = 0; at < moment->sample_count + moment->unchanged; at++) {
            const struct gm_model_sample *change = &moment->samples[at];
            const struct gm_model_sample *before = &moment->before[at];
            if (!is_of_section(run, moment, &gathering->model->places[change->place], section))
                continue;
            struct gm_diff_place *entry = gather(gathering, change->place);
            entry->bytes_before += before->bytes;
            entry->bytes_after += before->bytes + change->bytes;
            entry->count_before += before->count;
            entry->count_after += before->count + change->count;
        }
    }
}

static void gather_allocated(struct gathering *gathering, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->lifetime_count + run->lifetimes_unchanged; i++) {
        const struct gm_model_lifetime *change = &run->lifetimes[i];
        struct gm_diff_place *entry = gather(gathering, change->place);
        entry->bytes_before += change->allocated_before;
        entry->bytes_after += change->allocated_before + change->allocated;
        entry->count_before += change->allocs_before;
        entry->count_after += change->allocs_before + change->allocs;
    }
}

GM_ORDER(most_changed_first, struct gm_diff_place,
         GM_UP_OF(distance(b->bytes_before, b->bytes_after),
                  distance(a->bytes_before, a->bytes_after)) GM_UP(stack))

static void make_places(struct gm_diff *diff, enum gm_diff_sections section, uint64_t least)
{
    struct gathering gathering = {.model = diff->difference};
    for (size_t i = 0; i < diff->difference->run_count; i++) {
        if (section == GM_DIFF_ALLOCATED)
            gather_allocated(&gathering, &diff->difference->runs[i]);
        else
            gather_moments(&gathering, &diff->difference->runs[i], section);
    }
    size_t kept = 0;
    for (size_t i = 0; i < gathering.count; i++) {
        const struct gm_diff_place *entry = &gathering.entries[i];
        uint64_t change = distance(entry->bytes_before, entry->bytes_after);
        if (least ? change >= least : change || entry->count_before != entry->count_after)
            gathering.entries[kept++] = *entry;
    }
    if (kept)
        qsort(gathering.entries, kept, sizeof(*gathering.entries), most_changed_first);
    gm_map_free(&gathering.by_stack);
    diff->places[section] = (struct gm_diff_places){gathering.entries, kept};
    diff->differs |= kept != 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

GM_ORDER(rows_by_change, struct gm_diff_row,
         GM_UP_OF(distance(b->before, b->after), distance(a->before, a->after)) GM_BY_TEXT(name))

/* Totals are listed even when unchanged, so the reader sees that nothing leaked. */
static bool is_shown(enum gm_diff_tables number, const struct gm_diff_row *row)
{
    return number == GM_DIFF_TOTALS &&
           (row->before || row->after || strcmp(row->name, "leaked") == 0);
}

/* What did not change is left out, but for totals. */
static void keep_changes(struct gm_diff *diff, enum gm_diff_tables number, uint64_t least)
{
    struct gm_diff_table *table = &diff->tables[number];
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct gm_diff_row row = table->rows[i];
        uint64_t change = distance(row.before, row.after);
        bool differs = change && (!least || (row.is_bytes && change >= least));
        diff->differs |= differs;
        if (differs || is_shown(number, &row))
            table->rows[kept++] = row;
        else
            free(row.name);
    }
    table->count = kept;
    if (kept && number != GM_DIFF_TOTALS)
        qsort(table->rows, kept, sizeof(*table->rows), rows_by_change);
}

/* ---- all ------------------------------------------------------------------------------------- */

void gm_diff_make(struct gm_diff *diff, const struct gm_model *base, const struct gm_model *newer,
                  uint64_t least)
{
    *diff = (struct gm_diff){.base = base,
                             .newer = newer,
                             .difference = gm_model_subtract(newer, base, GM_MATCH_LIKELY)};
    gm_diff_fill_tables(diff);
    for (unsigned table = 0; table < GM_DIFF_TABLES; table++)
        keep_changes(diff, table, least);
    for (unsigned section = 0; section < GM_DIFF_SECTIONS; section++)
        make_places(diff, section, least);
}

const struct gm_frame *gm_diff_user(const struct gm_diff *diff, const struct gm_diff_places *places,
                                    size_t number)
{
    const struct gm_stack *stack = gm_model_stack(diff->difference, places->entries[number].stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    for (size_t i = 0; i < places->count; i++) {
        const struct gm_stack *other = gm_model_stack(diff->difference, places->entries[i].stack);
        if (i == number || !gm_frames_read_same(frame, gm_stack_telling_frame(other)))
            continue;
        const struct gm_frame *differs = gm_stack_difference(stack, other);
        return differs == frame ? NULL : differs;
    }
    return NULL;
}

void gm_diff_free(struct gm_diff *diff)
{
    for (unsigned table = 0; table < GM_DIFF_TABLES; table++) {
        for (size_t i = 0; i < diff->tables[table].count; i++)
            free(diff->tables[table].rows[i].name);
        free(diff->tables[table].rows);
    }
    for (unsigned section = 0; section < GM_DIFF_SECTIONS; section++)
        free(diff->places[section].entries);
    gm_model_free(diff->difference);
    *diff = (struct gm_diff){0};
}
