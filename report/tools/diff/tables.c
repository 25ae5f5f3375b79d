/* Fills the tables of a comparison: see diff.h. Each figure is added to the row of its name, for its side. */
#include "base/memory.h"
#include "base/order.h"
#include "tools/diff/diff.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum side { BASE, NEWER, SIDES };

enum how { ADDED, HIGHEST };

/* ---- collecting ------------------------------------------------------------------------------ */

/* Figures are collected first and united by name afterwards: there can be thousands of phases. */
struct figure {
    char *name;
    int64_t value;
    enum side side;
    enum how how;
    bool is_bytes;
    size_t order; /* in which it was met */
};

struct figures {
    struct figure *entries;
    size_t count, capacity;
    size_t order; /* of the next one; figures of one name have the place of the first */
};

#define BEHIND_DEVICES ((size_t)1 << 32) /* in the order of totals */

/* Takes the name over. */
static void collect_figure(struct figures *figures, enum side side, char *name, int64_t value,
                           enum how how, bool is_bytes)
{
    GM_RESERVE(figures->entries, figures->capacity, figures->count + 1);
    figures->entries[figures->count] =
        (struct figure){name, value, side, how, is_bytes, figures->order++};
    figures->count++;
}

static void collect_bytes(struct figures *figures, enum side side, const char *name, int64_t value)
{
    collect_figure(figures, side, gm_copy_text(name), value, ADDED, true);
}

static void collect_number(struct figures *figures, enum side side, const char *name, int64_t value)
{
    collect_figure(figures, side, gm_copy_text(name), value, ADDED, false);
}

GM_ORDER(by_figure_name, struct figure, GM_BY_TEXT(name) GM_UP(order))

/* A row, and where its name was met first. */
struct met {
    struct gm_diff_row row;
    size_t order;
};

GM_ORDER(by_order, struct met, GM_UP(order))

static void unite_figures(struct figures *figures, struct gm_diff_table *table)
{
    struct met *met = gm_allocate(figures->count + 1, sizeof(*met));
    size_t count = 0;
    if (figures->count)
        qsort(figures->entries, figures->count, sizeof(*figures->entries), by_figure_name);
    for (size_t i = 0; i < figures->count; i++) {
        struct figure *figure = &figures->entries[i];
        if (!count || strcmp(met[count - 1].row.name, figure->name) != 0)
            met[count++] = (struct met){
                {.name = gm_copy_text(figure->name), .is_bytes = figure->is_bytes}, figure->order};
        struct gm_diff_row *row = &met[count - 1].row;
        int64_t *sum = figure->side == BASE ? &row->before : &row->after;
        if (figure->how == HIGHEST)
            *sum = figure->value > *sum ? figure->value : *sum;
        else if (__builtin_add_overflow(*sum, figure->value, sum)) /* GNU */
            *sum = INT64_MAX;
        free(figure->name);
    }
    qsort(met, count, sizeof(*met), by_order);
    GM_RESERVE(table->rows, table->capacity, count + 1);
    for (size_t i = 0; i < count; i++)
        table->rows[table->count++] = met[i].row;
    free(figures->entries);
    free(met);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void add_device_figures(struct figures *figures, enum side side,
                               const struct gm_model_run *run)
{
    char name[64];
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        if (!device->is_listed)
            continue;
        snprintf(name, sizeof(name), "peak of device %d", device->id);
        figures->order = (size_t)device->id + 1;
        collect_figure(figures, side, gm_copy_text(name), device->all.peak, HIGHEST, true);
    }
}

static void add_pools(struct figures *figures, enum side side, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->pool_count; i++) {
        collect_bytes(figures, side, "reserved by pools, peak", run->pools[i].reserved_peak);
        if (run->pools[i].peak || run->pools[i].allocs)
            collect_bytes(figures, side, "blocks of pools, peak", run->pools[i].peak);
    }
}

static void add_calls(struct figures *figures, enum side side, const struct gm_model_run *run)
{
    int64_t allocs = 0, frees = 0, copied = 0;
    for (size_t i = 0; i < run->device_count; i++)
        for (unsigned kind = 0; kind <= GM_KIND_EXTERNAL; kind++) {
            allocs += run->devices[i].kinds[kind].allocs;
            frees += run->devices[i].kinds[kind].frees;
        }
    for (unsigned kind = 0; kind < GM_KINDS; kind++) {
        allocs += run->host[kind].allocs;
        frees += run->host[kind].frees;
    }
    for (size_t i = 0; i < run->direction_count; i++)
        copied += run->directions[i].bytes;
    collect_number(figures, side, "allocations", allocs);
    collect_number(figures, side, "frees", frees);
    collect_bytes(figures, side, "copied and filled", copied);
    collect_number(figures, side, "refused for lack of memory", run->failed);
    int64_t blocks = 0;
    for (size_t i = 0; i < run->pool_count; i++)
        blocks += run->pools[i].allocs;
    if (blocks)
        collect_number(figures, side, "blocks of pools", blocks);
}

static void add_totals(struct figures *figures, enum side side, const struct gm_model *model)
{
    /* Devices first, whichever side has them. */
    for (size_t i = 0; i < model->run_count; i++) {
        const struct gm_model_run *run = &model->runs[i];
        const struct gm_model_moment *pinned = gm_model_moment(run, run->pinned_peak);
        add_device_figures(figures, side, run);
        figures->order = BEHIND_DEVICES + figures->count;
        add_pools(figures, side, run);
        collect_bytes(figures, side, "pinned memory, peak", pinned ? pinned->bytes : 0);
        collect_bytes(figures, side, "leaked", run->leaked[GM_LEAK]);
        collect_number(figures, side, "leaked allocations", run->leaked_count[GM_LEAK]);
        add_calls(figures, side, run);
    }
}

/* ---- processes ------------------------------------------------------------------------------- */

/* "rank 3", else the program with a number. */
static char *process_name(const struct gm_model *model, size_t number)
{
    const struct gm_model_run *run = &model->runs[number];
    struct gm_text program = gm_base_name(run->executable);
    size_t before = 0;
    char *clean, *name = NULL;
    for (size_t i = 0; i < number; i++) {
        struct gm_text other = gm_base_name(model->runs[i].executable);
        bool is_same = other.size == program.size &&
                       (!other.size || memcmp(other.bytes, program.bytes, other.size) == 0);
        before += model->runs[i].rank.rank == run->rank.rank && (run->rank.rank >= 0 || is_same);
    }
    clean = gm_clean_copy(program);
    int size =
        run->rank.rank >= 0 && !before ? asprintf(&name, "rank %lld", (long long)run->rank.rank)
        : run->rank.rank >= 0
            ? asprintf(&name, "rank %lld, process %zu", (long long)run->rank.rank, before + 1)
            : asprintf(&name, "%s, process %zu", *clean ? clean : "unnamed", before + 1);
    free(clean);
    return size < 0 ? gm_copy_text("?") : name;
}

static void add_processes(struct figures *figures, enum side side, const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++) {
        const struct gm_model_run *run = &model->runs[i];
        int64_t peak = -1;
        for (size_t at = 0; at < run->device_count; at++)
            if (run->devices[at].is_listed && run->devices[at].all.peak > peak)
                peak = run->devices[at].all.peak;
        if (peak >= 0)
            collect_figure(figures, side, process_name(model, i), peak, ADDED, true);
    }
}

/* ---- libraries, categories ------------------------------------------------------------------- */

static void add_libraries(struct figures *figures, enum side side, const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        for (size_t at = 0; at < model->runs[i].device_count; at++) {
            const struct gm_model_device *device = &model->runs[i].devices[at];
            for (size_t line = 0; line < device->library_count; line++)
                collect_bytes(figures, side, device->libraries[line].name,
                              gm_amount(device->libraries[line].at[GM_AT_PEAK].bytes));
        }
}

static void add_categories(struct figures *figures, enum side side, const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        for (size_t at = 0; at < model->runs[i].pool_count; at++) {
            const struct gm_model_moment *moment =
                gm_model_moment(&model->runs[i], model->runs[i].pools[at].at_peak);
            for (unsigned category = 0; moment && moment->pool && category < GM_CATEGORIES;
                 category++)
                collect_bytes(figures, side, gm_category_name(category),
                              gm_amount(moment->pool->categories[category].bytes));
        }
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void append_name(struct gm_text part, char **name)
{
    char *clean = gm_clean_copy(part), *longer;
    if (asprintf(&longer, "%s%s", *name, clean) >= 0) {
        free(*name);
        *name = longer;
    }
    free(clean);
}

/* "epoch > step", "start .. loaded". */
static char *phase_name(const struct gm_model_run *run, const struct gm_model_phase *phase)
{
    char *name = gm_copy_text("");
    if (phase->is_interval) {
        append_name(phase->has_from ? phase->from : (struct gm_text){"start", 5}, &name);
        append_name((struct gm_text){" .. ", 4}, &name);
        append_name(phase->has_name ? phase->name : (struct gm_text){"end", 3}, &name);
        return name;
    }
    uint32_t path[GM_PHASE_DEPTH];
    size_t depth = 0;
    for (uint32_t at = (uint32_t)(phase - run->phases); at != GM_NONE && depth < GM_PHASE_DEPTH;
         at = run->phases[at].parent)
        path[depth++] = at;
    while (depth--) {
        append_name(run->phases[path[depth]].name, &name);
        if (depth)
            append_name((struct gm_text){" > ", 3}, &name);
    }
    return name;
}

/* Blocks of a pool tell more than the segments that it keeps. */
static void add_phases(struct figures *figures, enum side side, const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++) {
        const struct gm_model_run *run = &model->runs[i];
        for (size_t at = 0; at < run->phase_count; at++) {
            const struct gm_model_phase *phase = &run->phases[at];
            uint64_t peaks[GM_PHASE_PINNED + 1] = {0};
            for (size_t memory = 0; memory < phase->memory_count; memory++) {
                const struct gm_model_phase_memory *one = &phase->memory[memory];
                if (one->sums.peak > peaks[one->where])
                    peaks[one->where] = one->sums.peak;
            }
            uint64_t peak = peaks[GM_PHASE_POOL] ? peaks[GM_PHASE_POOL] : peaks[GM_PHASE_DEVICE];
            collect_figure(figures, side, phase_name(run, phase), gm_amount(peak), HIGHEST, true);
        }
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

/* A note says nothing that a reader would want to be told as new. */
static void add_findings(struct figures *figures, enum side side, const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        for (size_t at = 0; at < model->runs[i].finding_count; at++) {
            const struct gm_model_finding *finding = &model->runs[i].findings[at];
            const struct gm_frame *frame = gm_model_finding_frame(model, finding);
            char *name = NULL;
            if (finding->severity == GM_SEVERITY_NOTE)
                continue;
            if (asprintf(&name, "%s %s%s%s", gm_severity_name(finding->severity),
                         gm_finding_name(finding->code), frame ? " in " : "",
                         frame ? frame->function : "") >= 0)
                collect_figure(figures, side, name, 1, ADDED, false);
        }
}

/* ---- all ------------------------------------------------------------------------------------- */

void gm_diff_fill_tables(struct gm_diff *diff)
{
    static void (*const adders[GM_DIFF_TABLES])(struct figures *, enum side,
                                                const struct gm_model *) = {
        [GM_DIFF_TOTALS] = add_totals,       [GM_DIFF_PROCESSES] = add_processes,
        [GM_DIFF_LIBRARIES] = add_libraries, [GM_DIFF_CATEGORIES] = add_categories,
        [GM_DIFF_PHASES] = add_phases,       [GM_DIFF_FINDINGS] = add_findings,
    };
    const struct gm_model *const models[SIDES] = {[BASE] = diff->base, [NEWER] = diff->newer};
    bool is_pair = diff->base->run_count < 2 && diff->newer->run_count < 2;
    for (unsigned table = 0; table < GM_DIFF_TABLES; table++) {
        struct figures figures = {0};
        for (unsigned side = 0; side < SIDES && !is_pair && table == GM_DIFF_TOTALS; side++)
            collect_number(&figures, side, "processes", (int64_t)models[side]->run_count);
        for (unsigned side = 0; side < SIDES && !(is_pair && table == GM_DIFF_PROCESSES); side++)
            adders[table](&figures, side, models[side]);
        unite_figures(&figures, &diff->tables[table]);
    }
}
