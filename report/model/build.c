/* The model of a trace. See model.h and builder.h. */
#include "base/assert.h"
#include "base/each.h"
#include "base/text.h"
#include "judge/findings/findings.h"
#include "model/builder.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- findings -------------------------------------------------------------------------------- */

#define NAMED_MAX 256u /* stacks that are named to compare them with another */
#define LEAKS_MAX 32u  /* leaks whose other ways are looked for: the first, which are the largest */

static bool is_native(const struct gm_trace *trace, uint32_t node)
{
    return gm_trace_node(trace, node) && gm_trace_node(trace, node)->kind != GM_NODE_SCRIPT;
}

/* Whose stack is compared with those of other places, to find one that reads the same and is not meant: only places ... */
struct comparison {
    uint32_t stack;
    uint16_t api;
    bool lines_differ; /* with another caller: an inlined wrapper has many addresses */
    bool was_freed;    /* of which nothing was left */
};

/* Whether what `site` allocated may have come through the same wrapper, and is not meant. */
static bool is_candidate(const struct gm_analysis *analysis, const struct comparison *comparison,
                         const struct gm_active_site *site)
{
    const struct gm_trace *trace = analysis->trace;
    struct gm_callers *callers = analysis->callers;
    uint32_t caller = gm_callers_get(callers, comparison->stack);
    uint32_t of_other = gm_callers_get(callers, site->stack);
    if (site->stack == comparison->stack || !is_native(trace, of_other) ||
        gm_trace_node(trace, caller)->module != gm_trace_node(trace, of_other)->module ||
        (comparison->was_freed && (site->live || site->is_block)))
        return false;
    return !comparison->lines_differ ||
           gm_callers_line(callers, comparison->stack) != gm_callers_line(callers, site->stack);
}

/* How many frames the two stacks share from the innermost on, if the user's innermost reads the same. */
static size_t alike(const struct gm_stack *stack, const struct gm_stack *other)
{
    const struct gm_frame *differs = gm_stack_difference(stack, other);
    return differs &&
                   gm_frames_read_same(gm_stack_telling_frame(stack), gm_stack_telling_frame(other))
               ? (size_t)(differs - stack->frames)
               : 0;
}

/* A stack that reads the same in the user's innermost frame; of several, the one that does so furthest. 0: there is
 * none. */
static uint32_t find_alike(const struct gm_builder *builder, const struct comparison *comparison)
{
    const struct gm_activity *activity = &builder->analysis->activity;
    struct gm_stacks *names = builder->model->tables->names;
    uint32_t nearest = 0;
    size_t most = 0, named = 0;
    if (!comparison->stack || !names ||
        !is_native(builder->trace, gm_callers_get(builder->analysis->callers, comparison->stack)))
        return 0;
    const struct gm_stack stack = *gm_stacks_get(names, comparison->stack, comparison->api);
    for (size_t i = 0; i < activity->count && named < NAMED_MAX; i++) {
        const struct gm_active_site *site = &activity->sites[i];
        if (!is_candidate(builder->analysis, comparison, site))
            continue;
        named++;
        size_t count = alike(&stack, gm_stacks_get(names, site->stack, site->api));
        nearest = count > most ? site->stack : nearest;
        most = count > most ? count : most;
    }
    return nearest;
}

/* Of what grows, those are not meant who gave all of it back; a request that was refused is one user's alone. */
static uint32_t find_unlike(const struct gm_builder *builder, const struct gm_finding *finding)
{
    struct comparison freed = {GM_SAME(finding, stack, api), .was_freed = true};
    struct comparison any = {GM_SAME(finding, stack, api),
                             .lines_differ = finding->code != GM_FINDING_OUT_OF_MEMORY};
    uint32_t other = finding->unlike;
    if (!other && finding->code == GM_FINDING_GROWING)
        other = find_alike(builder, &freed);
    return other ? other : find_alike(builder, &any);
}

/* Of what leaks behind a wrapper, those of its users are not meant who gave all of it back. */
static void build_leak_places(struct gm_builder *builder)
{
    const struct gm_sites *leaks = &builder->analysis->leaks;
    const struct gm_model_moment *end = &builder->moments[builder->run->end];
    size_t told = 0;
    for (size_t i = 0; i < leaks->count && told < LEAKS_MAX; i++) {
        const struct gm_site *site = &leaks->entries[i];
        if (site->class != GM_LEAK && site->class != GM_LEAK_LIVE)
            continue;
        told++;
        uint32_t freed =
            find_alike(builder, &(struct comparison){GM_SAME(site, stack, api), .was_freed = true});
        if (freed)
            builder->model->tables->places[end->samples[i].place].unlike =
                gm_model_add_trace_stack(builder->model, freed, site->api);
    }
}

/* "embed (user.py:11) filled the device. The driver refused ...": the other place stands first. */
static const char *cause_of(struct gm_builder *builder, const struct gm_finding *finding)
{
    struct gm_arena *arena = &builder->model->tables->arena;
    struct gm_stacks *names = builder->model->tables->names;
    const struct gm_frame *frame =
        finding->other && names
            ? gm_stack_telling_frame(gm_stacks_get(names, finding->other, finding->other_api))
            : NULL;
    char *text;
    if (!frame || !frame->file ||
        asprintf(&text, "%s (%s:%u) %s %s", frame->function, gm_name_behind_slash(frame->file),
                 frame->line, finding->other_did, finding->cause) < 0)
        return gm_arena_string(arena, finding->cause);
    const char *cause = gm_arena_string(arena, text);
    free(text);
    return cause;
}

static void build_findings(struct gm_builder *builder)
{
    struct gm_model_run *run = builder->run;
    struct gm_arena *arena = &builder->model->tables->arena;
    struct gm_findings findings = {0};
    gm_findings_collect(builder->analysis, &findings);
    run->findings = GM_BUILDER_ARRAY(builder, struct gm_model_finding, findings.count);
    run->finding_count = findings.count;
    for (size_t i = 0; i < findings.count; i++) {
        const struct gm_finding *finding = &findings.entries[i];
        uint32_t unlike = find_unlike(builder, finding);
        run->findings[i] = (struct gm_model_finding){
            GM_SAME(finding, code, severity, device),
            .stack = finding->stack
                         ? gm_model_add_trace_stack(builder->model, finding->stack, finding->api)
                         : GM_NONE,
            .unlike =
                unlike ? gm_model_add_trace_stack(builder->model, unlike, finding->api) : GM_NONE,
            .api = gm_trace_api(builder->trace, finding->api),
            GM_SAME(finding, bytes, bytes_per_round, is_unbounded),
            .cause = cause_of(builder, finding),
            .remedy = gm_arena_string(arena, finding->remedy),
            .evidence = gm_arena_string(arena, finding->evidence),
        };
    }
    gm_findings_free(&findings);
}

struct gm_model *gm_model_of(const struct gm_analysis *analysis, struct gm_stacks *stacks,
                             unsigned needs)
{
    struct gm_model *model = gm_model_new();
    struct gm_builder builder = {.model = model,
                                 .run = gm_model_add_run(model),
                                 .analysis = analysis,
                                 .trace = analysis->trace,
                                 .libraries = gm_libraries_new(analysis->trace)};
    model->tables->names = stacks;
    model->tables->analysis = analysis;
    gm_build_facts(&builder);
    gm_build_moments(&builder, needs);
    build_leak_places(&builder);
    gm_build_totals(&builder);
    gm_build_growth(&builder);
    if (needs & GM_NEEDS_MOMENTS) {
        gm_build_devices(&builder);
        gm_build_pools(&builder, needs);
    }
    if (needs & GM_NEEDS_HISTORY)
        gm_build_history(&builder, needs);
    if (needs & GM_NEEDS_FINDINGS)
        build_findings(&builder);
    builder.run->moments = gm_arena_copy(&model->tables->arena, builder.moments,
                                         builder.run->moment_count * sizeof(*builder.moments));
    free(builder.moments);
    gm_map_free(&builder.by_key);
    gm_libraries_free(builder.libraries);
    GM_ASSERT(gm_model_is_valid(model));
    return model;
}
