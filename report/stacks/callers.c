/* See callers.h. */
#include "stacks/callers.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "stacks/owner.h"
#include "trace/same_stacks.h"
#include <stdlib.h>

struct gm_callers {
    const struct gm_trace *trace;
    struct gm_map known;      /* number of same_stacks.h -> node */
    struct gm_map is_library; /* module -> 0: the application's, 1: a library known by name */
};

struct gm_callers *gm_callers_new(const struct gm_trace *trace)
{
    struct gm_callers *callers = gm_allocate(1, sizeof(*callers));
    callers->trace = trace;
    return callers;
}

void gm_callers_free(struct gm_callers *callers)
{
    gm_map_free(&callers->known);
    gm_map_free(&callers->is_library);
    free(callers);
}

static bool is_library(struct gm_callers *callers, uint16_t number)
{
    uint32_t known = gm_map_get(&callers->is_library, number);
    if (known == GM_NONE) {
        const struct gm_module *module = gm_trace_module(callers->trace, number);
        struct gm_text path = gm_trace_string(callers->trace, module ? module->path : 0);
        known =
            path.size == 0 || gm_is_road(path) || gm_is_interpreter(path) || gm_is_framework(path);
        gm_map_set(&callers->is_library, number, known);
    }
    return known != 0;
}

static bool is_package(const struct gm_trace *trace, uint64_t index)
{
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, index);
    if (frame && frame->language == GM_LANGUAGE_NATIVE)
        return true;
    return gm_framework_package(gm_trace_string(trace, frame ? frame->file : 0)) != NULL;
}

static uint32_t find(struct gm_callers *callers, uint32_t stack)
{
    uint32_t native = 0, script = 0;
    for (uint32_t id = stack; id && gm_limits_spend(GM_STEPS_NODE);) {
        const struct gm_node *node = gm_trace_node(callers->trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            break;
        if (node->kind == GM_NODE_SCRIPT) {
            if (!is_package(callers->trace, node->address))
                return id;
            if (!script)
                script = id;
        } else if (!native && !is_library(callers, node->module)) {
            native = id;
        }
        id = node->parent < id ? node->parent : 0;
    }
    return native ? native : script ? script : stack;
}

uint32_t gm_callers_get(struct gm_callers *callers, uint32_t stack)
{
    if (!gm_trace_node(callers->trace, stack))
        return stack;
    struct gm_same_stacks *same = callers->trace->same_stacks;
    uint32_t number = gm_same_stacks_number(same, stack);
    uint32_t known = gm_map_get(&callers->known, number);
    if (known == GM_NONE) {
        uint32_t caller = find(callers, stack);
        uint32_t number_of_caller = gm_same_stacks_number(same, caller);
        known = gm_map_get(&callers->known, number_of_caller);
        if (known == GM_NONE)
            gm_map_set(&callers->known, number_of_caller, known = caller);
        gm_map_set(&callers->known, number, known);
    }
    return known;
}

uint64_t gm_callers_line(struct gm_callers *callers, uint32_t stack)
{
    uint32_t caller = gm_callers_get(callers, stack);
    const struct gm_node *node = gm_trace_node(callers->trace, caller);
    if (!node)
        return 0;
    if (node->kind != GM_NODE_SCRIPT)
        return (node->address ^ (uint64_t)node->module << 48) | (uint64_t)1 << 63;
    const struct gm_script_frame *frame = gm_trace_script_frame(callers->trace, node->address);
    if (!frame)
        return node->address + 1;
    return ((uint64_t)frame->file << 31 ^ frame->line) + 1;
}
