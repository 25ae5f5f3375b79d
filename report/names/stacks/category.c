/* See category.h. */
#include "names/stacks/category.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "frame_rules.h"
#include "input/trace/same_stacks.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/owner.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How far outwards a rule holds: frames.table. */
enum reach { REACH_INNER, REACH_THROUGH, REACH_STAGE };

/* A row of frames.table: part of a file's path and, if not "", a function. */
struct rule {
    const char *file;
    const char *function;
    enum gm_category category;
    enum reach reach;
};

#define ROW(category, reach, file, function)                                                       \
    {file, function, GM_CATEGORY_##category, REACH_##reach},
static const struct rule rules[] = {GM_FRAME_RULES(ROW)};

/* "Module._apply" is `_apply`: from CPython 3.11 on functions have their class before them. */
static bool is_function(struct gm_text name, const char *function)
{
    size_t size = strlen(function);
    return name.size >= size && memcmp(name.bytes + name.size - size, function, size) == 0 &&
           (name.size == size || name.bytes[name.size - size - 1] == '.');
}

static const struct rule *rule_of_frame(struct gm_text file, struct gm_text function)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (gm_text_contains(file, rules[i].file) &&
            (!rules[i].function[0] || is_function(function, rules[i].function)))
            return &rules[i];
    return NULL;
}

/* What is kept of a frame: nothing (0), one of these, or RULES and the number of its rule. */
enum {
    WORKSPACE = 1, /* a library of the vendor's */
    USERS,         /* the program's own */
    TORCH,         /* native code of PyTorch that runs its operations */
    LIBRARY,       /* native code of another library that is known */
    RULES,
};

struct gm_categories {
    const struct gm_trace *trace;
    struct gm_map by_module;
    struct gm_map by_script;
};

struct gm_categories *gm_categories_new(const struct gm_trace *trace)
{
    struct gm_categories *categories = gm_allocate(1, sizeof(*categories));
    categories->trace = trace;
    return categories;
}

void gm_categories_free(struct gm_categories *categories)
{
    gm_map_free(&categories->by_module);
    gm_map_free(&categories->by_script);
    free(categories);
}

static uint32_t of_module(struct gm_categories *categories, uint16_t number)
{
    uint32_t known = gm_map_get(&categories->by_module, number);
    if (known != GM_NONE)
        return known;
    const struct gm_module *module = gm_trace_module(categories->trace, number);
    struct gm_text path = gm_trace_string(categories->trace, module ? module->path : 0);
    const struct gm_known_library *library = gm_known_library(path);
    known = !library                                     ? gm_is_interpreter(path) ? LIBRARY : USERS
            : library->traits & GM_LIBRARY_VENDOR        ? WORKSPACE
            : strcmp(library->file, "libtorch_cpu") == 0 ? TORCH
                                                         : LIBRARY;
    gm_map_set(&categories->by_module, number, known);
    return known;
}

static uint32_t of_script(struct gm_categories *categories, uint64_t number)
{
    uint32_t known = gm_map_get(&categories->by_script, number);
    if (known != GM_NONE)
        return known;
    const struct gm_script_frame *frame = gm_trace_script_frame(categories->trace, number);
    struct gm_text file = gm_trace_string(categories->trace, frame ? frame->file : 0);
    const struct rule *rule =
        rule_of_frame(file, gm_trace_string(categories->trace, frame ? frame->function : 0));
    known = rule ? RULES + (uint32_t)(rule - rules) : 0;
    if (frame && frame->language == GM_LANGUAGE_NATIVE)
        known = LIBRARY;
    else if (!rule && !gm_framework_package(file) && !gm_installed_package(file).size)
        known = USERS;
    gm_map_set(&categories->by_script, number, known);
    return known;
}

/* What a walk outwards has found. */
struct walk {
    enum gm_category category; /* OTHER: nothing yet */
    bool is_stage;             /* nothing further out tells more */
    bool is_users; /* the program's own frame was passed: further out is who called it */
};

static void meet_frame(struct walk *walk, uint32_t frame)
{
    static const struct rule of_vendor = {"", "", GM_CATEGORY_WORKSPACE, REACH_INNER};
    const struct rule *rule = frame >= RULES       ? &rules[frame - RULES]
                              : frame == WORKSPACE ? &of_vendor
                                                   : NULL;
    walk->is_users |= frame == USERS;
    if (!rule || (walk->category && rule->reach != REACH_STAGE) ||
        (walk->is_users && rule->reach == REACH_INNER))
        return;
    walk->category = rule->category;
    walk->is_stage = rule->reach == REACH_STAGE;
}

enum gm_category gm_categories_get(struct gm_categories *categories, uint32_t stack)
{
    struct walk walk = {0};
    bool is_backward = true; /* so far */
    bool is_torch = false;
    for (uint32_t id = stack; id && !walk.is_stage;) {
        const struct gm_node *node = gm_trace_node(categories->trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            return walk.category; /* what is further out is not known */
        bool is_script = node->kind == GM_NODE_SCRIPT;
        uint32_t frame =
            is_script ? of_script(categories, node->address) : of_module(categories, node->module);
        is_backward &= frame != USERS;
        is_torch = !is_script && (is_torch || frame == TORCH);
        meet_frame(&walk, frame);
        id = node->parent < id && gm_limits_spend(1) ? node->parent : 0;
    }
    return walk.category || !is_backward || !is_torch ? walk.category : GM_CATEGORY_GRADIENT;
}
