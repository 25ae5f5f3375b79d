/* See category.h. */
#include "names/stacks/category.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "input/trace/same_stacks.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/owner.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A frame of Python that tells: part of its file's path and, if not NULL, its function. */
struct rule {
    const char *file;
    const char *function;
    enum gm_category category;
};

/* The first that holds of the innermost frame is the answer, then of the next one. */
static const struct rule rules[] = {
    {"/torch/optim/", "_init_group", GM_CATEGORY_OPTIMIZER},
    {"/torch/optim/", "__init__", GM_CATEGORY_OPTIMIZER},
    {"/torch/optim/", "_init_state", GM_CATEGORY_OPTIMIZER},
    {"/torch/optim/", NULL, GM_CATEGORY_WORKSPACE},
    {"/torch/nn/modules/module.py", "_apply", GM_CATEGORY_PARAMETER},
    {"/torch/nn/modules/module.py", "_load_from_state_dict", GM_CATEGORY_PARAMETER},
    {"/torch/nn/modules/module.py", "_call_impl", GM_CATEGORY_ACTIVATION},
    {"/torch/nn/modules/", "__init__", GM_CATEGORY_PARAMETER},
    {"/torch/nn/modules/", "reset_parameters", GM_CATEGORY_PARAMETER},
    {"/torch/nn/parameter.py", NULL, GM_CATEGORY_PARAMETER},
    {"/torch/nn/init.py", NULL, GM_CATEGORY_PARAMETER},
    {"/torch/serialization.py", NULL, GM_CATEGORY_PARAMETER},
    {"/safetensors/", NULL, GM_CATEGORY_PARAMETER},
    {"/torch/utils/data/", NULL, GM_CATEGORY_INPUT},
    {"/torch/autograd/__init__.py", "_make_grads", GM_CATEGORY_GRADIENT},
};

/* "Module._apply" is `_apply`: from CPython 3.11 on functions have their class before them. */
static bool is_function(struct gm_text name, const char *function)
{
    size_t size = strlen(function);
    return name.size >= size && memcmp(name.bytes + name.size - size, function, size) == 0 &&
           (name.size == size || name.bytes[name.size - size - 1] == '.');
}

static enum gm_category category_of_frame(struct gm_text file, struct gm_text function)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (gm_text_contains(file, rules[i].file) &&
            (!rules[i].function || is_function(function, rules[i].function)))
            return rules[i].category;
    return GM_CATEGORY_OTHER;
}

/* What is kept of a frame: a category, or that it is one of these. */
enum {
    USERS = GM_CATEGORIES, /* the program's own */
    TORCH,                 /* native code of PyTorch that runs its operations */
    LIBRARY,               /* native code of another library that is known */
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
            : library->traits & GM_LIBRARY_VENDOR        ? GM_CATEGORY_WORKSPACE
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
    known =
        category_of_frame(file, gm_trace_string(categories->trace, frame ? frame->function : 0));
    if (frame && frame->language == GM_LANGUAGE_NATIVE)
        known = LIBRARY;
    else if (known == GM_CATEGORY_OTHER && !gm_framework_package(file) &&
             !gm_installed_package(file).size)
        known = USERS;
    gm_map_set(&categories->by_script, number, known);
    return known;
}

enum gm_category gm_categories_get(struct gm_categories *categories, uint32_t stack)
{
    bool is_users = false;   /* the program's own frame was passed: further out is who called it */
    bool is_backward = true; /* so far */
    bool is_torch = false;
    for (uint32_t id = stack; id;) {
        const struct gm_node *node = gm_trace_node(categories->trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            return GM_CATEGORY_OTHER; /* what is further out is not known */
        bool is_script = node->kind == GM_NODE_SCRIPT;
        uint32_t frame =
            is_script ? of_script(categories, node->address) : of_module(categories, node->module);
        is_backward &= frame != USERS;
        is_torch = !is_script && (is_torch || frame == TORCH);
        if (frame == GM_CATEGORY_ACTIVATION || (frame < GM_CATEGORIES && frame && !is_users))
            return (enum gm_category)frame;
        is_users |= is_script && frame == USERS;
        id = node->parent < id && gm_limits_spend(1) ? node->parent : 0;
    }
    return is_backward && is_torch ? GM_CATEGORY_GRADIENT : GM_CATEGORY_OTHER;
}
