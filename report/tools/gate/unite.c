/* See gate.h: several traces that repeat one run. */
#include "base/memory.h"
#include "base/order.h"
#include "base/size.h"
#include "tools/gate/gate.h"
#include <stdlib.h>
#include <string.h>

GM_ORDER(by_value, int64_t, GM_UP_OF(*a, *b))

/* Of an even number the lower one of both in the middle; what is missing is 0. */
static int64_t typical(const struct gm_gate *gate, int64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[gate->repeats == GM_REPEATS_MINIMUM ? 0 : (count - 1) / 2];
}

/* ---- issues ---------------------------------------------------------------------------------- */

/* Bytes, allocations, and whether it is there at all, of an issue in each run. */
struct column {
    int64_t *bytes, *counts, *present;
};

static void take_most(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

/* Adds the issue to the united ones, if it is typical. */
static void unite_issue(const struct gm_gate *gate, const struct gm_gate_repeats_of *repeats,
                        const struct gm_issue *wanted, struct column *column,
                        struct gm_issues *united)
{
    memset(column->bytes, 0, 3 * repeats->run_count * sizeof(int64_t));
    for (size_t i = 0; i < repeats->count; i++) {
        const struct gm_gate_repeat *repeat = &repeats->entries[i];
        for (size_t at = 0; at < repeat->issue_count; at++) {
            const struct gm_issue *issue = &repeat->issues[at];
            if (!gm_issue_is_same(wanted, issue))
                continue;
            take_most(&column->bytes[repeat->run], issue->bytes);
            take_most(&column->counts[repeat->run], issue->count);
            column->present[repeat->run] = 1;
        }
    }
    struct gm_issue issue = *wanted;
    issue.bytes = typical(gate, column->bytes, repeats->run_count);
    issue.count = typical(gate, column->counts, repeats->run_count);
    if (!typical(gate, column->present, repeats->run_count))
        return;
    gm_issues_add(united, &issue);
    if (!issue.is_finding)
        gm_issue_tell_leak(&united->entries[united->count - 1]);
}

static bool was_met(const struct gm_gate_repeats_of *repeats, size_t entry, size_t number)
{
    const struct gm_issue *issue = &repeats->entries[entry].issues[number];
    for (size_t i = 0; i <= entry; i++)
        for (size_t at = 0; at < (i < entry ? repeats->entries[i].issue_count : number); at++)
            if (gm_issue_is_same(&repeats->entries[i].issues[at], issue))
                return true;
    return false;
}

static void unite_issues(const struct gm_gate *gate, const struct gm_gate_repeats_of *repeats,
                         struct gm_issues *united)
{
    size_t count = repeats->run_count;
    int64_t *values = gm_allocate(3 * count + 1, sizeof(*values));
    struct column column = {values, values + count, values + 2 * count};
    for (size_t i = 0; i < repeats->count; i++)
        for (size_t at = 0; at < repeats->entries[i].issue_count; at++)
            if (!was_met(repeats, i, at))
                unite_issue(gate, repeats, &repeats->entries[i].issues[at], &column, united);
    free(values);
}

/* ---- figures --------------------------------------------------------------------------------- */

static bool is_same_figure(const struct gm_gate_figure *a, const struct gm_gate_figure *b)
{
    return a->budget == b->budget && a->device == b->device && a->limit == b->limit &&
           a->rank == b->rank;
}

static void unite_figure(const struct gm_gate *gate, const struct gm_gate_repeats_of *repeats,
                         const struct gm_gate_figure *figure, int64_t *values,
                         struct gm_gate_outcome *united)
{
    for (size_t i = 0; i < united->figure_count; i++)
        if (is_same_figure(&united->figures[i], figure))
            return;
    memset(values, 0, repeats->run_count * sizeof(*values));
    for (size_t i = 0; i < repeats->count; i++) {
        const struct gm_gate_outcome *outcome = repeats->entries[i].outcome;
        for (size_t at = 0; at < outcome->figure_count; at++)
            if (is_same_figure(&outcome->figures[at], figure))
                take_most(&values[repeats->entries[i].run], outcome->figures[at].bytes);
    }
    if (united->figure_count == GM_GATE_FIGURES) {
        united->unreadable = true;
        gm_gate_note_reason(united, "more devices and limits than the gate can judge");
        return;
    }
    united->figures[united->figure_count] = *figure;
    united->figures[united->figure_count++].bytes = typical(gate, values, repeats->run_count);
}

void gm_gate_unite(const struct gm_gate *gate, const struct gm_gate_repeats_of *repeats,
                   struct gm_issues *issues, struct gm_gate_outcome *united)
{
    int64_t *values = gm_allocate(repeats->run_count + 1, sizeof(*values));
    *united = (struct gm_gate_outcome){0};
    unite_issues(gate, repeats, issues);
    for (size_t i = 0; i < repeats->count; i++) {
        const struct gm_gate_outcome *outcome = repeats->entries[i].outcome;
        united->anything |= outcome->anything;
        united->limits_met |= outcome->limits_met;
        united->budgets_met |= outcome->budgets_met;
        for (size_t at = 0; at < outcome->figure_count; at++)
            unite_figure(gate, repeats, &outcome->figures[at], values, united);
    }
    for (unsigned leak_class = 0; repeats->run_count && leak_class < GM_LEAK_CLASSES;
         leak_class++) {
        memset(values, 0, repeats->run_count * sizeof(*values));
        for (size_t i = 0; i < repeats->count; i++)
            take_most(&values[repeats->entries[i].run],
                      repeats->entries[i].outcome->leaked[leak_class]);
        united->leaked[leak_class] = typical(gate, values, repeats->run_count);
    }
    free(values);
}
