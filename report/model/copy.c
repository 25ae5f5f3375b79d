/* See copy.h. */
#include "model/copy.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

struct gm_copier gm_copier_begin(struct gm_model *to, const struct gm_model *from)
{
    size_t stacks = from->tables->stack_count, places = from->place_count;
    struct gm_copier copier = {.to = to,
                               .from = from,
                               .stacks = gm_allocate(stacks + 1, sizeof(uint32_t)),
                               .places = gm_allocate(places + 1, sizeof(uint32_t))};
    memset(copier.stacks, 0xff, (stacks + 1) * sizeof(uint32_t));
    memset(copier.places, 0xff, (places + 1) * sizeof(uint32_t));
    return copier;
}

void gm_copier_end(struct gm_copier *copier)
{
    free(copier->stacks);
    free(copier->places);
}

/* ---- what has numbers ------------------------------------------------------------------------ */

uint32_t gm_copy_stack(struct gm_copier *copier, uint32_t number)
{
    if (number == GM_NONE)
        return GM_NONE;
    uint32_t *known = &copier->stacks[number];
    if (*known == GM_NONE)
        *known = gm_model_add_stack(copier->to, gm_model_stack(copier->from, number));
    return *known;
}

uint32_t gm_copy_place(struct gm_copier *copier, uint32_t number)
{
    if (number == GM_NONE)
        return GM_NONE;
    uint32_t *known = &copier->places[number];
    if (*known == GM_NONE) {
        struct gm_model_place place = copier->from->places[number];
        place.stack = gm_copy_stack(copier, place.stack);
        place.unlike = gm_copy_stack(copier, place.unlike);
        *known = gm_model_add_place(copier->to, &place);
    }
    return *known;
}

/* ---- what the arena holds -------------------------------------------------------------------- */

static void copy_text(struct gm_copier *copier, struct gm_text *text)
{
    if (text->bytes)
        *text = gm_arena_text(&copier->to->tables->arena, *text);
}

static void copy_string(struct gm_copier *copier, const char **text)
{
    *text = gm_arena_string(&copier->to->tables->arena, *text);
}

/* Gives an array a copy of its own, as it is. */
#define COPY_ARRAY(copier, array, count)                                                           \
    ((array) = gm_arena_copy(&(copier)->to->tables->arena, (array), (count) * sizeof(*(array))))

/* ---- parts of a run -------------------------------------------------------------------------- */

static void copy_libraries(struct gm_copier *copier, struct gm_model_device *device)
{
    COPY_ARRAY(copier, device->libraries, device->library_count);
    for (size_t i = 0; i < device->library_count; i++) {
        copy_string(copier, &device->libraries[i].name);
        copy_string(copier, &device->libraries[i].pool);
    }
}

static struct gm_model_pool_state *copy_state(struct gm_copier *copier,
                                              const struct gm_model_pool_state *from)
{
    struct gm_model_pool_state *state =
        gm_arena_copy(&copier->to->tables->arena, from, sizeof(*from));
    COPY_ARRAY(copier, state->segments, state->segment_count);
    for (size_t i = 0; i < state->segment_count; i++)
        for (size_t pin = 0; pin < GM_SEGMENT_PINS; pin++)
            if (state->segments[i].segment.pins[pin].alive)
                state->segments[i].pins[pin] = gm_copy_place(copier, state->segments[i].pins[pin]);
    COPY_ARRAY(copier, state->lines, state->line_count);
    for (size_t i = 0; i < state->line_count; i++)
        state->lines[i].stack = gm_copy_stack(copier, state->lines[i].stack);
    for (size_t i = 0; i < state->line_count * GM_LINE_STACKS; i++) {
        uint32_t *stack = &state->lines[i / GM_LINE_STACKS].stacks[i % GM_LINE_STACKS].stack;
        *stack = *stack == GM_NONE ? GM_NONE : gm_copy_stack(copier, *stack);
    }
    return state;
}

static void copy_moments(struct gm_copier *copier, struct gm_model_run *run)
{
    COPY_ARRAY(copier, run->moments, run->moment_count);
    for (size_t i = 0; i < run->moment_count; i++) {
        struct gm_model_moment *moment = &run->moments[i];
        size_t count = moment->sample_count + moment->unchanged;
        COPY_ARRAY(copier, moment->samples, count);
        for (size_t at = 0; at < count; at++)
            moment->samples[at].place = gm_copy_place(copier, moment->samples[at].place);
        if (moment->before)
            COPY_ARRAY(copier, moment->before, count);
        for (size_t at = 0; moment->before && at < count; at++)
            moment->before[at].place = moment->samples[at].place;
        if (moment->pool)
            moment->pool = copy_state(copier, moment->pool);
    }
}

static void copy_failures(struct gm_copier *copier, struct gm_model_run *run)
{
    COPY_ARRAY(copier, run->failures, run->failure_count);
    for (size_t i = 0; i < run->failure_count; i++)
        run->failures[i].place = gm_copy_place(copier, run->failures[i].place);
    COPY_ARRAY(copier, run->pool_failures, run->pool_failure_count);
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        struct gm_model_pool_failure *failure = &run->pool_failures[i];
        failure->place = gm_copy_place(copier, failure->place);
        for (size_t at = 0; at < failure->library_count; at++)
            copy_string(copier, &failure->libraries[at].name);
    }
}

static void copy_phases(struct gm_copier *copier, struct gm_model_run *run)
{
    COPY_ARRAY(copier, run->phases, run->phase_count);
    COPY_ARRAY(copier, run->phase_order, run->phase_count);
    for (size_t i = 0; i < run->phase_count; i++) {
        copy_text(copier, &run->phases[i].name);
        copy_text(copier, &run->phases[i].from);
        COPY_ARRAY(copier, run->phases[i].memory, run->phases[i].memory_count);
    }
}

static void copy_transfers(struct gm_copier *copier, struct gm_model_run *run)
{
    COPY_ARRAY(copier, run->directions, run->direction_count);
    COPY_ARRAY(copier, run->transfers, run->transfer_count);
    for (size_t i = 0; i < run->transfer_count; i++) {
        run->transfers[i].stack = gm_copy_stack(copier, run->transfers[i].stack);
        copy_string(copier, &run->transfers[i].api);
    }
    COPY_ARRAY(copier, run->contexts, run->context_count);
    for (size_t i = 0; i < run->context_count; i++) {
        run->contexts[i].stack = gm_copy_stack(copier, run->contexts[i].stack);
        copy_string(copier, &run->contexts[i].api);
    }
}

static void copy_findings(struct gm_copier *copier, struct gm_model_run *run)
{
    COPY_ARRAY(copier, run->findings, run->finding_count);
    for (size_t i = 0; i < run->finding_count; i++) {
        run->findings[i].stack = gm_copy_stack(copier, run->findings[i].stack);
        run->findings[i].unlike = gm_copy_stack(copier, run->findings[i].unlike);
        copy_string(copier, &run->findings[i].api);
        copy_string(copier, &run->findings[i].cause);
        copy_string(copier, &run->findings[i].remedy);
        copy_string(copier, &run->findings[i].evidence);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Texts and arrays of the facts, where `run` has those of the other model. */
static void own_facts(struct gm_copier *copier, struct gm_model_run *run)
{
    struct gm_text *texts[] = {
        &run->run_id,       &run->job,    &run->host_name,    &run->executable,
        &run->tool_version, &run->python, &run->command_line, &run->allocator_settings};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        copy_text(copier, texts[i]);
    copy_string(copier, &run->path);
    copy_string(copier, &run->base_path);
    copy_string(copier, &run->allocator_variable);
    COPY_ARRAY(copier, run->settings_not_understood, run->setting_count);
    for (size_t i = 0; i < run->setting_count; i++)
        copy_text(copier, &run->settings_not_understood[i]);
    COPY_ARRAY(copier, run->gaps, run->gap_count);
    for (size_t i = 0; i < run->gap_count; i++) {
        copy_string(copier, &run->gaps[i].code);
        copy_string(copier, &run->gaps[i].text);
    }
    COPY_ARRAY(copier, run->newer_abi, run->newer_abi_count);
    for (size_t i = 0; i < run->newer_abi_count; i++)
        copy_text(copier, &run->newer_abi[i].name);
}

void gm_copy_facts(struct gm_copier *copier, struct gm_model_run *to,
                   const struct gm_model_run *from)
{
    memcpy(to, from, offsetof(struct gm_model_run, failed));
    own_facts(copier, to);
}

struct gm_model_run gm_copy_run(struct gm_copier *copier, const struct gm_model_run *from)
{
    struct gm_model_run run = *from;
    own_facts(copier, &run);
    COPY_ARRAY(copier, run.devices, run.device_count);
    for (size_t i = 0; i < run.device_count; i++) {
        copy_text(copier, &run.devices[i].name);
        copy_libraries(copier, &run.devices[i]);
        run.devices[i].curve = NULL;
    }
    copy_moments(copier, &run);
    copy_failures(copier, &run);
    COPY_ARRAY(copier, run.pools, run.pool_count);
    for (size_t i = 0; i < run.pool_count; i++) {
        if (run.pools[i].curve)
            COPY_ARRAY(copier, run.pools[i].curve, 1);
        if (run.pools[i].drawn)
            COPY_ARRAY(copier, run.pools[i].drawn, 1);
        COPY_ARRAY(copier, run.pools[i].told, run.pools[i].told_count);
        if (run.pools[i].in_use_peak.bytes)
            run.pools[i].in_use_peak.place = gm_copy_place(copier, run.pools[i].in_use_peak.place);
        copy_text(copier, &run.pools[i].in_use_peak.executable);
    }
    copy_phases(copier, &run);
    COPY_ARRAY(copier, run.growing, run.growing_count);
    for (size_t i = 0; i < run.growing_count; i++) {
        run.growing[i].place = gm_copy_place(copier, run.growing[i].place);
        copy_text(copier, &run.growing[i].name);
    }
    size_t lifetimes = run.lifetime_count + run.lifetimes_unchanged;
    COPY_ARRAY(copier, run.lifetimes, lifetimes);
    for (size_t i = 0; i < lifetimes; i++)
        run.lifetimes[i].place = gm_copy_place(copier, run.lifetimes[i].place);
    copy_transfers(copier, &run);
    copy_findings(copier, &run);
    return run;
}
