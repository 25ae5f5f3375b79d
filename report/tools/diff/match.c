/* See match.h. */
#include "tools/diff/match.h"
#include "base/each.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/tables.h"
#include <stdlib.h>
#include <string.h>

/* How much of a stack is compared. */
enum level { EXACT, NAMES, INNERMOST, LEVELS };

static bool is_executable(const struct gm_model *model, struct gm_text name)
{
    for (size_t i = 0; i < model->run_count; i++) {
        struct gm_text program = gm_base_name(model->runs[i].executable);
        if (program.size && program.size == name.size &&
            memcmp(program.bytes, name.bytes, name.size) == 0)
            return true;
    }
    return false;
}

/* "libtorch_cuda.so.1.2" is built anew under other numbers, and a program under another name. In the
 * memory of the keys. */
static const char *match_name(const struct gm_match *match, unsigned side, const char *path)
{
    struct gm_text name = gm_base_name((struct gm_text){path, strlen(path)});
    const char *end = memmem(name.bytes, name.size, ".so", 3);
    if (is_executable(match->models[side], name))
        return "";
    return gm_arena_text(&match->keys->tables->arena,
                         (struct gm_text){name.bytes, end ? (size_t)(end - name.bytes) : name.size})
        .bytes;
}

static struct gm_frame key_frame(const struct gm_match *match, unsigned side,
                                 const struct gm_frame *frame, enum level level)
{
    if (level == EXACT)
        return (struct gm_frame){GM_SAME(frame, function, file, module, script)};
    /* Without a name there is the offset within the module. */
    bool is_named = strstr(frame->function, "+0x") == NULL;
    const char *home = frame->script ? frame->file : frame->module;
    return (struct gm_frame){.function = is_named ? frame->function : "",
                             .module = home ? match_name(match, side, home) : "",
                             .script = frame->script};
}

static size_t frames_compared(const struct gm_stack *stack, enum level level)
{
    const struct gm_frame *telling = gm_stack_telling_frame(stack);
    if (level != INNERMOST || !telling)
        return stack->count;
    size_t count = (size_t)(telling - stack->frames) + 2; /* it, and its caller */
    return count < stack->count ? count : stack->count;
}

/* Keys of another level differ by a frame of their own, which no stack has. */
static uint32_t match_key(const struct gm_match *match, unsigned side, uint32_t number,
                          enum level level)
{
    static const char *const marks[LEVELS] = {NULL, "\1names", "\1innermost"};
    const struct gm_stack *stack = gm_model_stack(match->models[side], number);
    struct gm_stack key = {.count = frames_compared(stack, level)};
    key.frames = gm_allocate(key.count + 1, sizeof(*key.frames));
    for (size_t i = 0; i < key.count; i++)
        key.frames[i] = key_frame(match, side, &stack->frames[i], level);
    if (level == EXACT)
        key.cut = stack->cut;
    else
        key.frames[key.count++] = (struct gm_frame){.function = marks[level]};
    uint32_t found = gm_model_add_stack(match->keys, &key);
    free(key.frames);
    return found;
}

uint32_t gm_match_stack(struct gm_match *match, unsigned side, uint32_t stack)
{
    uint32_t *known = &match->of[side][stack];
    if (*known == GM_NONE)
        *known = match_key(match, side, stack, EXACT);
    return *known;
}

/* Notes in `sides` on which sides there is a stack of each key. */
static void note_sides(struct gm_map *sides, uint32_t key, unsigned side)
{
    uint32_t before = gm_map_get(sides, key);
    gm_map_set(sides, key, (before == GM_NONE ? 0 : before) | 1u << side);
}

/* Gives the stacks that stand on one side alone the key of a further level, if both sides have it. */
static void loosen(struct gm_match *match, enum level level)
{
    struct gm_map taken = {0}, sides = {0};
    uint32_t *keys[2];
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; i < match->models[side]->tables->stack_count; i++)
            note_sides(&taken, gm_match_stack(match, side, (uint32_t)i), side);
    for (unsigned side = 0; side < 2; side++) {
        size_t count = match->models[side]->tables->stack_count;
        keys[side] = gm_allocate(count + 1, sizeof(*keys[side]));
        for (uint32_t i = 0; i < count; i++) {
            keys[side][i] = gm_map_get(&taken, match->of[side][i]) == 3
                                ? GM_NONE
                                : match_key(match, side, i, level);
            if (keys[side][i] != GM_NONE)
                note_sides(&sides, keys[side][i], side);
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < match->models[side]->tables->stack_count; i++)
            if (keys[side][i] != GM_NONE && gm_map_get(&sides, keys[side][i]) == 3)
                match->of[side][i] = keys[side][i];
        free(keys[side]);
    }
    gm_map_free(&taken);
    gm_map_free(&sides);
}

void gm_match_begin(struct gm_match *match, const struct gm_model *first,
                    const struct gm_model *second, enum gm_match_level level)
{
    *match = (struct gm_match){.models = {first, second}, .keys = gm_model_new()};
    for (unsigned side = 0; side < 2; side++) {
        size_t count = match->models[side]->tables->stack_count;
        match->of[side] = gm_allocate(count + 1, sizeof(*match->of[side]));
        for (size_t i = 0; i < count; i++)
            match->of[side][i] = GM_NONE;
    }
    for (enum level further = NAMES; level == GM_MATCH_LIKELY && further < LEVELS; further++)
        loosen(match, further);
}

void gm_match_end(struct gm_match *match)
{
    gm_model_free(match->keys);
    free(match->of[0]);
    free(match->of[1]);
}
