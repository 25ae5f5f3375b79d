/* See gate.h: the figures of a run that budgets bound. */
#include "base/text.h"
#include "tools/gate/gate.h"
#include <string.h>

const char *gm_gate_budget_code(enum gm_gate_budget budget)
{
    static const char *const codes[] = {
        [GM_BUDGET_PEAK] = "max-peak",
        [GM_BUDGET_PINNED] = "max-pinned",
        [GM_BUDGET_LIMIT] = "max-peak",
        [GM_BUDGET_UNUSED] = "max-unused",
        [GM_BUDGET_RESIDUAL] = "max-residual",
        [GM_BUDGET_GROWTH] = "max-growth",
        [GM_BUDGET_ROUND_GROWTH] = "max-growth-per-round",
    };
    return codes[budget];
}

static bool add_figure(struct gm_gate_outcome *outcome, struct gm_gate_figure figure)
{
    if (outcome->figure_count == GM_GATE_FIGURES)
        return false;
    outcome->figures[outcome->figure_count++] = figure;
    return true;
}

/* ---- phases, categories ---------------------------------------------------------------------- */

static bool is_text(struct gm_text text, const char *wanted, size_t size)
{
    return text.size == size && memcmp(text.bytes, wanted, size) == 0;
}

/* Whether the phase has that name, or that path: "epoch > step". */
static bool is_phase(const struct gm_model_run *run, const struct gm_model_phase *phase,
                     const char *wanted)
{
    if (phase->is_interval || !phase->has_name)
        return false;
    if (is_text(phase->name, wanted, strlen(wanted)))
        return true;
    const char *end = wanted + strlen(wanted);
    for (;;) {
        size_t size = phase->name.size;
        if ((size_t)(end - wanted) < size || !is_text(phase->name, end - size, size))
            return false;
        end -= size;
        if (end == wanted)
            return phase->parent == GM_NONE;
        if (end - wanted < 3 || memcmp(end - 3, " > ", 3) != 0 || phase->parent == GM_NONE)
            return false;
        end -= 3;
        phase = &run->phases[phase->parent];
    }
}

static int64_t peak_of_phase(const struct gm_model_run *run, const char *name, bool *is_met)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < run->phase_count; i++) {
        const struct gm_model_phase *phase = &run->phases[i];
        if (!is_phase(run, phase, name))
            continue;
        *is_met = true;
        for (size_t at = 0; at < phase->memory_count; at++)
            if (phase->memory[at].where == GM_PHASE_DEVICE && phase->memory[at].sums.peak > peak)
                peak = phase->memory[at].sums.peak;
    }
    return gm_amount(peak);
}

/* The most that a pool had in blocks of the category at one time. What the cache keeps is no blocks: it counts when
 * the pool was at its peak, because at the end of a run everything is in the cache. */
static int64_t peak_of_category(const struct gm_model_run *run, enum gm_category category,
                                bool *is_met)
{
    int64_t peak = 0;
    for (size_t i = 0; i < run->pool_count; i++) {
        const struct gm_model_pool *pool = &run->pools[i];
        const struct gm_model_moment *moment = gm_model_moment(run, pool->at_peak);
        if (!moment || !moment->pool || !moment->pool->is_known)
            continue;
        *is_met = true;
        int64_t own = category == GM_CATEGORY_CACHE
                          ? gm_amount(moment->pool->categories[category].bytes)
                          : pool->category_peaks[category];
        peak = own > peak ? own : peak;
    }
    return peak;
}

static int64_t peak_of_all(const struct gm_model_run *run, bool *is_met)
{
    int64_t peak = 0;
    for (size_t i = 0; i < run->device_count; i++) {
        int64_t all = gm_model_peak_of_all(&run->devices[i]);
        *is_met |= all >= 0;
        peak = all > peak ? all : peak;
    }
    return peak;
}

static bool add_limits(const struct gm_gate *gate, const struct gm_model_run *run,
                       struct gm_gate_outcome *outcome)
{
    bool fits = true;
    for (uint32_t i = 0; i < gate->limit_count; i++) {
        const struct gm_gate_limit *limit = &gate->limits[i];
        bool is_met = limit->of == GM_LIMIT_RANK ? run->rank.rank == limit->rank
                      : limit->of == GM_LIMIT_DEVICE
                          ? limit->device < 0 || gm_model_device(run, limit->device)
                          : false;
        int64_t bytes = 0;
        if (limit->of == GM_LIMIT_PHASE)
            bytes = peak_of_phase(run, limit->phase, &is_met);
        else if (limit->of == GM_LIMIT_CATEGORY)
            bytes = peak_of_category(run, limit->category, &is_met);
        else if (limit->of == GM_LIMIT_ALL)
            bytes = peak_of_all(run, &is_met);
        if (is_met)
            outcome->limits_met |= UINT64_C(1) << i;
        if (is_met && limit->of != GM_LIMIT_DEVICE && limit->of != GM_LIMIT_RANK)
            fits &= add_figure(outcome, (struct gm_gate_figure){.budget = GM_BUDGET_LIMIT,
                                                                .device = -1,
                                                                .limit = i,
                                                                .rank = run->rank.rank,
                                                                .bytes = bytes});
    }
    return fits;
}

/* ---- growth ---------------------------------------------------------------------------------- */

static int64_t growth_of(const struct gm_model_run *run)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->growing_count; i++)
        bytes += gm_model_growth(&run->growing[i]);
    return gm_amount(bytes);
}

/* From mark to mark where the program has marks, and as the rounds that the run itself shows tell
 * (findings "retained"): the larger of both. */
static int64_t round_growth_of(const struct gm_model_run *run)
{
    uint64_t by_mark = 0, by_round = 0;
    for (size_t i = 0; i < run->growing_count; i++)
        if (run->growing[i].over)
            by_mark += gm_model_growth(&run->growing[i]) / run->growing[i].over;
    for (size_t i = 0; i < run->finding_count; i++)
        by_round += run->findings[i].bytes_per_round;
    return gm_amount(by_mark > by_round ? by_mark : by_round);
}

/* What a budget needs to see before what it bounds can be told: pools, marks, rounds. */
static unsigned budgets_met(const struct gm_model_run *run)
{
    bool has_marks = run->series_marks >= GM_GROWTH_MARKS;
    bool has_rounds = has_marks || run->most_allocs >= GM_GROWTH_MARKS;
    return (run->pool_count ? 1u << GM_BUDGET_UNUSED : 0u) |
           (has_marks ? 1u << GM_BUDGET_GROWTH : 0u) |
           (has_rounds ? 1u << GM_BUDGET_ROUND_GROWTH : 0u);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool add_figure_devices(const struct gm_gate *gate, const struct gm_model_run *run,
                               struct gm_gate_outcome *outcome)
{
    bool fits = true;
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        if (device->seen)
            fits &= add_figure(outcome, (struct gm_gate_figure){.budget = GM_BUDGET_PEAK,
                                                                .device = device->id,
                                                                .rank = run->rank.rank,
                                                                .bytes = device->all.peak});
        if (gate->max_residual != UINT64_MAX && device->residuals)
            fits &= add_figure(outcome,
                               (struct gm_gate_figure){.budget = GM_BUDGET_RESIDUAL,
                                                       .device = device->id,
                                                       .rank = run->rank.rank,
                                                       .bytes = gm_amount(device->largest.bytes)});
    }
    return fits;
}

bool gm_gate_figures(const struct gm_gate *gate, const struct gm_view *view,
                     struct gm_gate_outcome *outcome)
{
    const struct gm_model_run *run = view->run;
    const struct gm_model_moment *pinned = gm_model_moment(run, run->pinned_peak);
    struct gm_gate_figure figure = {.device = -1, .rank = run->rank.rank};
    unsigned met = budgets_met(run);
    bool fits = add_figure_devices(gate, run, outcome) && add_limits(gate, run, outcome);
    figure.budget = GM_BUDGET_PINNED;
    figure.bytes = pinned ? pinned->bytes : 0;
    fits &= !(gate->needs & GM_NEEDS_MOMENTS) || add_figure(outcome, figure);
    for (size_t i = 0; gate->max_unused != UINT64_MAX && i < run->pool_count; i++)
        fits &= add_figure(outcome, (struct gm_gate_figure){.budget = GM_BUDGET_UNUSED,
                                                            .device = run->pools[i].device,
                                                            .rank = run->rank.rank,
                                                            .bytes = run->pools[i].reserved_peak -
                                                                     run->pools[i].peak});
    figure.budget = GM_BUDGET_GROWTH;
    figure.bytes = growth_of(run);
    if (gate->max_growth != UINT64_MAX && (met >> GM_BUDGET_GROWTH & 1))
        fits &= add_figure(outcome, figure);
    figure.budget = GM_BUDGET_ROUND_GROWTH;
    figure.bytes = round_growth_of(run);
    if (gate->max_round_growth != UINT64_MAX && (met >> GM_BUDGET_ROUND_GROWTH & 1))
        fits &= add_figure(outcome, figure);
    outcome->budgets_met |= met;
    for (unsigned leak_class = 0; leak_class < GM_LEAK_CLASSES; leak_class++)
        outcome->leaked[gm_gate_class(gate, run, leak_class)] += run->leaked[leak_class];
    return fits;
}
