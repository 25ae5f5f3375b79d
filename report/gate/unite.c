/* See gate.h: several traces that repeat one run. */
#include "base/memory.h"
#include "base/size.h"
#include "gate/gate.h"
#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Of an even number the lower one of both in the middle; what is missing is 0. */
static int64_t typical(const struct gm_gate *gate, int64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[gate->repeats == GM_REPEATS_MINIMUM ? 0 : (count - 1) / 2];
}

/* ---- issues ---------------------------------------------------------------------------------- */

/* Same place, and the same trace: the number of the trace by its issues' path. */
struct traces {
    const char **paths;
    size_t count, capacity;
};

static size_t number_of(struct traces *traces, const char *path)
{
    for (size_t i = 0; i < traces->count; i++)
        if (strcmp(traces->paths[i], path) == 0)
            return i;
    GM_RESERVE(traces->paths, traces->capacity, traces->count + 1);
    traces->paths[traces->count++] = path;
    return traces->count - 1;
}

/* Bytes, allocations, and how often it is there, of an issue in each trace. */
struct column {
    int64_t *bytes, *counts, *present;
};

/* Adds the issue to the united ones, if it is typical. */
static void unite_issue(const struct gm_gate *gate, struct gm_issues *all, size_t first,
                        struct traces *traces, size_t count, struct column *column,
                        struct gm_issues *united)
{
    memset(column->bytes, 0, 3 * count * sizeof(int64_t));
    for (size_t i = first; i < all->count; i++) {
        struct gm_issue *issue = &all->entries[i];
        if (i != first && !gm_issue_is_same(&all->entries[first], issue))
            continue;
        size_t trace = number_of(traces, issue->trace);
        column->bytes[trace] += issue->bytes;
        column->counts[trace] += issue->count;
        column->present[trace] = 1;
    }
    struct gm_issue issue = all->entries[first];
    issue.bytes = typical(gate, column->bytes, count);
    issue.count = typical(gate, column->counts, count);
    if (!typical(gate, column->present, count))
        return;
    gm_issues_add(united, &issue);
    if (!issue.is_finding)
        gm_issue_tell_leak(&united->entries[united->count - 1]);
}

static void unite_issues(const struct gm_gate *gate, struct gm_issues *issues, size_t count)
{
    struct gm_issues united = {0};
    struct traces traces = {0};
    int64_t *values = gm_allocate(3 * count + 1, sizeof(*values));
    struct column column = {values, values + count, values + 2 * count};
    for (size_t i = 0; i < issues->count; i++) {
        size_t before = 0;
        while (before < i && !gm_issue_is_same(&issues->entries[before], &issues->entries[i]))
            before++;
        if (before == i)
            unite_issue(gate, issues, i, &traces, count, &column, &united);
    }
    gm_issues_free(issues);
    free(traces.paths);
    free(values);
    *issues = united;
}

/* ---- figures --------------------------------------------------------------------------------- */

static bool is_same_figure(const struct gm_gate_figure *a, const struct gm_gate_figure *b)
{
    return a->budget == b->budget && a->device == b->device && a->limit == b->limit &&
           a->rank == b->rank;
}

static void unite_figure(const struct gm_gate *gate, const struct gm_gate_outcome *outcomes,
                         size_t count, const struct gm_gate_figure *figure, int64_t *values,
                         struct gm_gate_outcome *united)
{
    for (size_t i = 0; i < united->figure_count; i++)
        if (is_same_figure(&united->figures[i], figure))
            return;
    for (size_t i = 0; i < count; i++) {
        values[i] = 0;
        for (size_t at = 0; at < outcomes[i].figure_count; at++)
            if (is_same_figure(&outcomes[i].figures[at], figure))
                values[i] = outcomes[i].figures[at].bytes;
    }
    if (united->figure_count == GM_GATE_FIGURES) {
        united->unreadable = true;
        gm_gate_note_reason(united, "more devices and limits than the gate can judge");
        return;
    }
    united->figures[united->figure_count] = *figure;
    united->figures[united->figure_count++].bytes = typical(gate, values, count);
}

void gm_gate_unite(const struct gm_gate *gate, const struct gm_gate_outcome *outcomes, size_t count,
                   struct gm_issues *issues, struct gm_gate_outcome *united)
{
    int64_t *values = gm_allocate(count + 1, sizeof(*values));
    *united = (struct gm_gate_outcome){0};
    unite_issues(gate, issues, count);
    for (size_t i = 0; i < count; i++) {
        united->anything |= outcomes[i].anything;
        united->limits_met |= outcomes[i].limits_met;
        for (size_t at = 0; at < outcomes[i].figure_count; at++)
            unite_figure(gate, outcomes, count, &outcomes[i].figures[at], values, united);
    }
    for (unsigned leak_class = 0; count && leak_class < GM_LEAK_CLASSES; leak_class++) {
        for (size_t i = 0; i < count; i++)
            values[i] = outcomes[i].leaked[leak_class];
        united->leaked[leak_class] = typical(gate, values, count);
    }
    free(values);
}
