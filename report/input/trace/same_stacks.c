/* See same_stacks.h. Each node has two numbers: that of its stack with all frames, and that without
 * the interpreter's. A number stands for a frame and the number of the frames around it. */
#include "input/trace/same_stacks.h"
#include "base/map.h"
#include "base/memory.h"
#include "input/trace/trace_file.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct numbers {
    uint32_t all, shown;
    bool has_script;
};

struct gm_same_stacks {
    struct gm_stack_answers answers; /* first: gm_same_stacks_first looks at them alone */
    const struct gm_trace *trace;
    struct gm_map by_node; /* node -> place in `known` */
    struct numbers *known;
    size_t known_count, known_capacity;
    uint32_t *path; /* nodes that wait for the ones around them */
    size_t path_count, path_capacity;
    struct gm_map is_interpreter; /* module -> 0 or 1 */
    /* A frame is an address in a module; maps have keys of 64 bits, so that it takes three. */
    struct gm_map by_address, by_frame, by_parent;
    uint32_t address_count, frame_count, stack_count;
    struct gm_map first; /* number -> stack */
    struct gm_map lent;  /* stack -> node of its lender */
};

bool gm_is_interpreter(struct gm_text path)
{
    static const char *const starts[] = {"libpython", "python", "_ctypes.", "libffi."};
    struct gm_text base = gm_base_name(path);
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t size = strlen(starts[i]);
        if (base.size >= size && memcmp(base.bytes, starts[i], size) == 0)
            return true;
    }
    return false;
}

struct gm_same_stacks *gm_same_stacks_new(const struct gm_trace *trace)
{
    struct gm_same_stacks *same = gm_allocate(1, sizeof(*same));
    same->trace = trace;
    return same;
}

void gm_same_stacks_free(struct gm_same_stacks *same)
{
    if (!same)
        return;
    gm_map_free(&same->by_node);
    gm_map_free(&same->is_interpreter);
    gm_map_free(&same->by_address);
    gm_map_free(&same->by_frame);
    gm_map_free(&same->by_parent);
    gm_map_free(&same->first);
    gm_map_free(&same->lent);
    free(same->known);
    free(same->path);
    free(same);
}

/* The number of a key, from 1 on in the order of coming. */
static uint32_t number_of_key(struct gm_map *map, uint64_t key, uint32_t *count)
{
    uint32_t number = gm_map_get(map, key);
    if (number == GM_NONE)
        gm_map_set(map, key, number = ++*count);
    return number;
}

static uint32_t inside(struct gm_same_stacks *same, uint32_t parent, const struct gm_node *node)
{
    uint64_t address = number_of_key(&same->by_address, node->address, &same->address_count);
    uint64_t place = address << 32 | (uint32_t)node->module << 16 | node->kind;
    uint64_t frame = number_of_key(&same->by_frame, place, &same->frame_count);
    return number_of_key(&same->by_parent, (uint64_t)parent << 32 | frame, &same->stack_count);
}

static bool is_interpreter(struct gm_same_stacks *same, const struct gm_node *node)
{
    if (node->kind != GM_NODE_NATIVE && node->kind != GM_NODE_LEAF)
        return false;
    uint32_t known = gm_map_get(&same->is_interpreter, node->module);
    if (known == GM_NONE) {
        const struct gm_module *module = gm_trace_module(same->trace, node->module);
        known = gm_is_interpreter(gm_trace_string(same->trace, module ? module->path : 0));
        gm_map_set(&same->is_interpreter, node->module, known);
    }
    return known != 0;
}

static struct numbers add_same_stack(struct gm_same_stacks *same, uint32_t id,
                                     struct numbers around)
{
    const struct gm_node missing = {.address = id, .kind = UINT16_MAX}; /* is like no other */
    const struct gm_node *found = gm_trace_node(same->trace, id), *node = found ? found : &missing;
    struct numbers numbers = around;
    numbers.all = inside(same, around.all, node);
    if (!is_interpreter(same, node))
        numbers.shown = inside(same, around.shown, node);
    numbers.has_script |= node->kind == GM_NODE_SCRIPT;
    gm_map_set(&same->by_node, id, (uint32_t)same->known_count);
    GM_RESERVE(same->known, same->known_capacity, same->known_count + 1);
    return same->known[same->known_count++] = numbers;
}

uint32_t gm_same_stacks_number(struct gm_same_stacks *same, uint32_t stack)
{
    struct numbers numbers = {0};
    uint32_t known = GM_NONE;
    same->path_count = 0;
    for (uint32_t id = stack; id && (known = gm_map_get(&same->by_node, id)) == GM_NONE;) {
        const struct gm_node *node = gm_trace_node(same->trace, id);
        GM_APPEND(same->path, same->path_capacity, same->path_count, id);
        id = node && node->parent < id ? node->parent : 0; /* parents come first: it always ends */
    }
    if (known != GM_NONE)
        numbers = same->known[known];
    while (same->path_count)
        numbers = add_same_stack(same, same->path[--same->path_count], numbers);
    return numbers.has_script ? numbers.shown : numbers.all;
}

static uint32_t find_first(struct gm_same_stacks *same, uint32_t stack)
{
    if (!gm_trace_node(same->trace, stack))
        return stack;
    uint32_t number = gm_same_stacks_number(same, stack);
    uint32_t first = gm_map_get(&same->first, number);
    if (first == GM_NONE)
        gm_map_set(&same->first, number, first = stack);
    return first;
}

uint32_t gm_same_stacks_find_first(struct gm_same_stacks *same, uint32_t stack)
{
    uint32_t first = find_first(same, stack);
    same->answers.kept[stack % GM_STACK_ANSWERS] = (struct gm_stack_answer){stack, first};
    return first;
}

void gm_same_stacks_lend(struct gm_same_stacks *same, uint32_t stack, uint32_t lender)
{
    if (gm_map_get(&same->lent, stack) == GM_NONE)
        gm_map_set(&same->lent, stack, lender);
}

uint32_t gm_same_stacks_lender(const struct gm_same_stacks *same, uint32_t stack)
{
    uint32_t lender = gm_map_get(&same->lent, stack);
    return lender == GM_NONE ? 0 : lender;
}
