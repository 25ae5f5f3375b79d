/* See outcome.h. */
#include "tools/dryrun/outcome.h"
#include "base/each.h"
#include "base/order.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t amount(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static struct gm_dry_line line_of(const struct gm_model *model, uint32_t stack)
{
    struct gm_dry_line line = {.count = 1};
    if (stack == GM_NONE)
        return line;
    const struct gm_frame *frame = gm_stack_telling_frame(gm_model_stack(model, stack));
    if (frame && frame->file) {
        snprintf(line.file, sizeof(line.file), "%s", frame->file);
        gm_clean_text(line.file);
        line.line = frame->line;
    }
    return line;
}

/* ---- reads of values that are not known ---------------------------------------------------------- */

static void add_line(struct gm_dry_outcome *outcome, const struct gm_dry_line *line)
{
    outcome->uncertain_reads += line->count;
    outcome->row_reads += line->rows;
    for (size_t i = 0; i < outcome->uncertain_count; i++)
        if (outcome->uncertain[i].line == line->line &&
            strcmp(outcome->uncertain[i].file, line->file) == 0) {
            outcome->uncertain[i].count += line->count;
            outcome->uncertain[i].rows += line->rows;
            return;
        }
    if (outcome->uncertain_count < GM_DRY_LINES)
        outcome->uncertain[outcome->uncertain_count++] = *line;
}

GM_ORDER(most_asked_first, struct gm_dry_line, GM_DOWN(count) GM_BY_TEXT(file) GM_UP(line))

static void sort_lines(struct gm_dry_outcome *outcome)
{
    if (outcome->uncertain_count)
        qsort(outcome->uncertain, outcome->uncertain_count, sizeof(outcome->uncertain[0]),
              most_asked_first);
}

/* Inductor's autotuner sets aside what a kernel writes to while it tries that kernel, and puts it back:
 * nothing is decided by these values. */
static bool is_set_aside(const struct gm_model *model, uint32_t number)
{
    if (number == GM_NONE)
        return false;
    const struct gm_stack *stack = gm_model_stack(model, number);
    for (size_t i = 0; i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i];
        if (frame->script && frame->file && strstr(frame->function, "copy_args_to_cpu_if_needed") &&
            gm_name_ends_with(frame->file, "torch/_inductor/runtime/triton_heuristics.py"))
            return true;
    }
    return false;
}

static bool is_below(const struct gm_model *model, uint32_t number, const char *const *functions,
                     size_t count)
{
    const struct gm_stack *stack = number == GM_NONE ? NULL : gm_model_stack(model, number);
    for (size_t i = 0; stack && i < stack->count; i++)
        for (size_t name = 0; name < count; name++)
            if (!stack->frames[i].script && strstr(stack->frames[i].function, functions[name]))
                return true;
    return false;
}

/* Operations of PyTorch whose results have as many rows as they find: they read that number from the device. */
static bool finds_rows(const struct gm_model *model, uint32_t number)
{
    static const char *const finders[] = {"at::_ops::nonzero::",      "at::_ops::masked_select",
                                          "at::_ops::index_Tensor::", "at::_ops::index_put",
                                          "at::_ops::_index_put",     "at::_ops::_unique2::",
                                          "at::_ops::unique_dim",     "at::_ops::unique_cons",
                                          "vision::ops::nms"};
    return is_below(model, number, finders, sizeof(finders) / sizeof(finders[0]));
}

/* Those whose results are as long as values say, of which there is no most. */
static bool is_sized_by_values(const struct gm_model *model, uint32_t number)
{
    static const char *const sized[] = {"at::_ops::repeat_interleave", "at::_ops::bincount"};
    return is_below(model, number, sized, sizeof(sized) / sizeof(sized[0]));
}

static void add_reads(struct gm_dry_outcome *outcome, const struct gm_model *model,
                      const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->transfer_count; i++) {
        if (run->transfers[i].unknown <= 0 || is_set_aside(model, run->transfers[i].stack))
            continue;
        struct gm_dry_line line = line_of(model, run->transfers[i].stack);
        line.count = (uint64_t)run->transfers[i].unknown;
        line.rows = finds_rows(model, run->transfers[i].stack) ? line.count : 0;
        add_line(outcome, &line);
        if (is_sized_by_values(model, run->transfers[i].stack))
            outcome->sized_reads += line.count;
    }
    sort_lines(outcome);
}

/* ---- requests that were refused ------------------------------------------------------------------- */

/* Only the first one counts. Whether this is it. */
static bool fail_use(struct gm_dry_use *use, const struct gm_model *model, uint32_t place,
                     uint64_t wanted, unsigned purpose, uint64_t held)
{
    if (use->has_failed)
        return false;
    use->has_failed = true;
    use->wanted = wanted;
    use->purpose = purpose;
    use->held = held;
    use->at = line_of(model, model->places[place].stack);
    return true;
}

static struct gm_dry_use *use_of(struct gm_dry_outcome *outcome, int device)
{
    return device >= 0 && device < GM_DRY_DEVICES ? &outcome->devices[device] : NULL;
}

/* A program that catches a refusal and goes on with less fits. */
static void add_failures(struct gm_dry_outcome *outcome, const struct gm_model *model,
                         const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        const struct gm_model_pool_failure *failure = &run->pool_failures[i];
        struct gm_dry_use *use = use_of(outcome, failure->device);
        if (failure->survived || failure->succeeded)
            outcome->survived += failure->count;
        else if (use && fail_use(use, model, failure->place, failure->size, GM_PURPOSE_NONE,
                                 failure->tracked))
            use->limit = failure->limit;
    }
    for (size_t i = 0; i < run->failure_count; i++) {
        const struct gm_model_failure *failure = &run->failures[i];
        struct gm_dry_use *use = use_of(outcome, model->places[failure->place].device);
        if (!use || !failure->out_of_memory || failure->is_of_pool)
            continue;
        if (failure->survived)
            outcome->survived += failure->count;
        else
            fail_use(use, model, failure->place, failure->size, failure->purpose, failure->used);
    }
}

/* ---- a run ------------------------------------------------------------------------------------------ */

/* The peak of a device without managed memory: known to the byte where one kind of memory is beside that, else at most this. */
static uint64_t resident_peak(const struct gm_model_device *device)
{
    uint64_t all = amount(device->all.peak), others = 0;
    if (device->kinds[GM_KIND_MANAGED].peak <= 0)
        return all;
    for (int kind = 0; kind < GM_KIND_EXTERNAL; kind++)
        if (kind != GM_KIND_MANAGED)
            others += amount(device->kinds[kind].peak);
    return others < all ? others : all;
}

static void add_run(struct gm_dry_outcome *outcome, const struct gm_model *model,
                    const struct gm_model_run *run)
{
    outcome->processes++;
    for (size_t i = 0; i < run->device_count; i++) {
        struct gm_dry_use *use = use_of(outcome, run->devices[i].id);
        if (!use || !run->devices[i].is_listed)
            continue;
        use->is_used = true;
        use->peak += resident_peak(&run->devices[i]);
        use->managed += amount(run->devices[i].kinds[GM_KIND_MANAGED].peak);
    }
    for (size_t i = 0; i < run->pool_count; i++) {
        struct gm_dry_use *use = use_of(outcome, run->pools[i].device);
        if (!use)
            continue;
        use->blocks += amount(run->pools[i].peak);
        use->is_of_xla = strcmp(run->pools[i].owner, "XLA") == 0;
        uint64_t reserved = amount(run->pools[i].reserved_peak);
        uint64_t in_use = run->pools[i].in_use_peak.bytes;
        use->reserved += reserved;
        use->most_reserved += reserved;
        use->least_reserved += in_use ? in_use : reserved;
    }
    add_failures(outcome, model, run);
    add_reads(outcome, model, run);
}

void gm_dry_outcome_add(struct gm_dry_outcome *outcome, const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        if (model->runs[i].is_recorded)
            add_run(outcome, model, &model->runs[i]);
}

void gm_dry_outcome_place(struct gm_dry_outcome *outcome, struct gm_history *history)
{
    struct gm_dry_use *use = use_of(outcome, history->device);
    if (!use || use->has_failed) /* where requests are refused, more than addresses decides */
        return;
    struct gm_placements placements = gm_replay_placements(history);
    if (!placements.is_known || placements.recorded != use->reserved)
        return;
    use->least_reserved = placements.least;
    use->most_reserved = placements.most;
}

void gm_dry_outcome_unite(struct gm_dry_outcome *outcome, const struct gm_dry_outcome *other)
{
    outcome->processes += other->processes;
    outcome->survived += other->survived;
    outcome->sized_reads += other->sized_reads;
    for (int i = 0; i < GM_DRY_DEVICES; i++) {
        struct gm_dry_use *use = &outcome->devices[i];
        const struct gm_dry_use *more = &other->devices[i];
        use->is_used |= more->is_used;
        use->peak += more->peak;
        use->managed += more->managed;
        use->blocks += more->blocks;
        use->is_of_xla |= more->is_of_xla;
        use->reserved += more->reserved;
        use->least_reserved += more->least_reserved;
        use->most_reserved += more->most_reserved;
        if (more->has_failed && !use->has_failed) {
            use->has_failed = true;
            GM_COPY_MEMBERS(use, more, wanted, limit, purpose, held, at);
        }
    }
    for (size_t i = 0; i < other->uncertain_count; i++)
        add_line(outcome, &other->uncertain[i]);
    sort_lines(outcome);
}

void gm_dry_outcome_printed(struct gm_dry_outcome *outcome, const struct gm_dry_line *lines,
                            size_t count)
{
    for (size_t i = 0; i < outcome->uncertain_count; i++)
        for (size_t j = 0; j < count; j++)
            outcome->uncertain[i].is_printed |=
                outcome->uncertain[i].line == lines[j].line &&
                strcmp(outcome->uncertain[i].file, lines[j].file) == 0;
}

int gm_dry_busiest(const struct gm_dry_outcome *outcome)
{
    int busiest = -1;
    for (int i = 0; i < GM_DRY_DEVICES; i++) {
        const struct gm_dry_use *use = &outcome->devices[i];
        const struct gm_dry_use *most = busiest < 0 ? NULL : &outcome->devices[busiest];
        if (!use->is_used && !use->has_failed)
            continue;
        if (!most || use->has_failed > most->has_failed ||
            (use->has_failed == most->has_failed && use->peak > most->peak))
            busiest = i;
    }
    return busiest;
}
