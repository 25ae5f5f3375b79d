/* See callers.h. */
#include "names/stacks/callers.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "input/trace/same_stacks.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/owner.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct gm_callers {
    const struct gm_trace *trace;
    struct gm_map known;      /* number of same_stacks.h -> node */
    struct gm_map is_library; /* module -> 0: the application's, 1: a library known by name, 2: of
                                 them, PyTorch's operations */
    uint32_t backward;        /* where backward() was called last; 0: it was not */
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

static uint32_t library_of(struct gm_callers *callers, uint16_t number)
{
    uint32_t known = gm_map_get(&callers->is_library, number);
    if (known == GM_NONE) {
        const struct gm_module *module = gm_trace_module(callers->trace, number);
        struct gm_text path = gm_trace_string(callers->trace, module ? module->path : 0);
        known =
            path.size == 0 || gm_is_road(path) || gm_is_interpreter(path) || gm_is_framework(path);
        known += known && memmem(path.bytes, path.size, "libtorch_cpu.", 13);
        gm_map_set(&callers->is_library, number, known);
    }
    return known;
}

/* Whose a Python frame is. */
enum whose {
    WHOSE_USERS,
    WHOSE_PACKAGES, /* of a package that is installed, and not known by name */
    WHOSE_LIBRARYS, /* of one that is known, or of Python */
};

static struct gm_text file_of(const struct gm_trace *trace, uint64_t index)
{
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, index);
    return gm_trace_string(trace, frame ? frame->file : 0);
}

static enum whose whose_is(const struct gm_trace *trace, uint64_t index)
{
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, index);
    struct gm_text file = file_of(trace, index);
    if ((frame && frame->language == GM_LANGUAGE_NATIVE) || gm_framework_package(file))
        return WHOSE_LIBRARYS;
    return gm_installed_package(file).size ? WHOSE_PACKAGES : WHOSE_USERS;
}

/* Whether a Python frame is PyTorch's own that starts a backward pass. */
static bool starts_backward(const struct gm_trace *trace, uint64_t index)
{
    static const char folder[] = "/torch/autograd/";
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, index);
    struct gm_text file = gm_trace_string(trace, frame ? frame->file : 0);
    struct gm_text name = gm_trace_string(trace, frame ? frame->function : 0);
    return memmem(file.bytes, file.size, folder, strlen(folder)) &&
           ((name.size == 8 && memcmp(name.bytes, "backward", 8) == 0) ||
            (name.size == 4 && memcmp(name.bytes, "grad", 4) == 0));
}

static uint32_t borrow(struct gm_callers *callers, uint32_t stack)
{
    if (!callers->backward)
        return stack;
    gm_same_stacks_lend(callers->trace->same_stacks, stack, callers->backward);
    return callers->backward;
}

/* What a walk outwards met first. Nodes; 0: none. */
struct met {
    uint32_t users, native, script;
    uint32_t outermost; /* the last of an installed package */
    bool is_backward;
    bool is_torch; /* further out than all Python: it is what the thread runs */
};

static void meet_script(struct gm_callers *callers, const struct gm_node *node, uint32_t id,
                        struct met *met)
{
    enum whose whose = whose_is(callers->trace, node->address);
    if (whose == WHOSE_USERS)
        met->users = id;
    else if (whose == WHOSE_PACKAGES)
        met->outermost = id;
    else
        met->is_backward |= starts_backward(callers->trace, node->address);
    met->script = met->script ? met->script : id;
    met->is_torch = false;
}

static struct met walk_callers(struct gm_callers *callers, uint32_t stack)
{
    struct met met = {0};
    for (uint32_t id = stack; id && !met.users && gm_limits_spend(GM_STEPS_NODE);) {
        const struct gm_node *node = gm_trace_node(callers->trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            break;
        if (node->kind == GM_NODE_SCRIPT) {
            meet_script(callers, node, id, &met);
        } else {
            uint32_t library = library_of(callers, node->module);
            met.native = met.native || library ? met.native : id;
            met.is_torch |= library == 2;
        }
        id = node->parent < id ? node->parent : 0;
    }
    return met;
}

static struct gm_text package_of_frame(const struct gm_trace *trace, uint32_t id)
{
    return gm_installed_package(file_of(trace, gm_trace_node(trace, id)->address));
}

/* A program that is a package itself: the innermost frame of the package that stands outermost. */
static uint32_t find_in_package(struct gm_callers *callers, uint32_t stack, uint32_t outermost)
{
    struct gm_text package = package_of_frame(callers->trace, outermost);
    for (uint32_t id = stack; id != outermost && gm_limits_spend(GM_STEPS_NODE);) {
        const struct gm_node *node = gm_trace_node(callers->trace, id);
        if (node->kind == GM_NODE_SCRIPT &&
            gm_text_equals(package_of_frame(callers->trace, id), package) &&
            whose_is(callers->trace, node->address) == WHOSE_PACKAGES)
            return id;
        id = node->parent;
    }
    return outermost;
}

/* Whether the program's own frame is only what an installer wrote to start a package. */
static bool is_launched(struct gm_callers *callers, const struct met *met)
{
    const struct gm_trace *trace = callers->trace;
    return met->users && met->outermost &&
           gm_is_launcher(file_of(trace, gm_trace_node(trace, met->users)->address),
                          file_of(trace, gm_trace_node(trace, met->outermost)->address));
}

static uint32_t find_caller(struct gm_callers *callers, uint32_t stack)
{
    struct met met = walk_callers(callers, stack);
    uint32_t found = met.users;
    if (met.outermost && (!found || is_launched(callers, &met)))
        found = find_in_package(callers, stack, met.outermost);
    if (found && met.is_backward)
        callers->backward = found;
    if (!found && !met.native && met.is_torch)
        return borrow(callers, stack);
    return found ? found : met.native ? met.native : met.script ? met.script : stack;
}

uint32_t gm_callers_get(struct gm_callers *callers, uint32_t stack)
{
    if (!gm_trace_node(callers->trace, stack))
        return stack;
    struct gm_same_stacks *same = callers->trace->same_stacks;
    uint32_t number = gm_same_stacks_number(same, stack);
    uint32_t known = gm_map_get(&callers->known, number);
    if (known == GM_NONE) {
        uint32_t caller = find_caller(callers, stack);
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

/* ---- ways ------------------------------------------------------------------------------------ */

/* A number for the frame of the application's that a node is; 0: it is none of its frames. */
static uint64_t own_frame(struct gm_callers *callers, const struct gm_node *node)
{
    if (node->kind != GM_NODE_SCRIPT)
        return library_of(callers, node->module)
                   ? 0
                   : (node->address ^ (uint64_t)node->module << 48) | (uint64_t)1 << 63;
    return whose_is(callers->trace, node->address) == WHOSE_USERS ? node->address + 1 : 0;
}

/* The application's next frame at `*id` or further out, which moves behind it; 0: there is none. */
static uint64_t next_own(struct gm_callers *callers, uint32_t *id)
{
    uint64_t own = 0;
    while (*id && !own && gm_limits_spend(GM_STEPS_NODE)) {
        const struct gm_node *node = gm_trace_node(callers->trace, *id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            return 0;
        own = own_frame(callers, node);
        *id = node->parent < *id ? node->parent : 0;
    }
    return own;
}

uint64_t gm_callers_way(struct gm_callers *callers, uint32_t stack)
{
    uint32_t id = gm_callers_get(callers, stack);
    uint64_t way = 0, before = 0;
    for (uint64_t own; (own = next_own(callers, &id)); before = own)
        if (own != before)
            way = (way ^ own) * 0x9e3779b97f4a7c15u;
    return way;
}

size_t gm_callers_common(struct gm_callers *callers, uint32_t one, uint32_t other)
{
    uint32_t a = gm_callers_get(callers, one), b = gm_callers_get(callers, other);
    size_t count = 0;
    for (uint64_t own; (own = next_own(callers, &a)) && own == next_own(callers, &b);)
        count++;
    return count;
}
