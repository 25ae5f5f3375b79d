/* The ids of model.h: equal in all recordings of one program. */
#define XXH_INLINE_ALL
#include "base/memory.h"
#include "base/order.h"
#include "model/tables.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Stacks of one outline whose order is found. Of more, as a hostile trace may have, those that differ in lines alone
 * share an id. */
#define ORDERED_MAX 65536u

/* ---- fingerprints ---------------------------------------------------------------------------- */

/* "libtorch_cuda.so.1.2" is built anew under other numbers: the name ends before them. */
static size_t module_length(const char *name)
{
    const char *end = strstr(name, ".so");
    return end ? (size_t)(end - name) : strlen(name);
}

static void add_id_text(XXH64_state_t *state, const char *text, size_t size)
{
    XXH64_update(state, text, size);
    XXH64_update(state, "", 1);
}

/* Without a name there is the offset within the module. */
static bool is_named(const struct gm_frame *frame)
{
    return !strstr(frame->function, "+0x");
}

uint64_t gm_model_fingerprint(const struct gm_model *model, uint32_t number, const char *code,
                              const char *kind)
{
    const struct gm_stack *stack = number == GM_NONE ? NULL : gm_model_stack(model, number);
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    add_id_text(&state, code, strlen(code));
    add_id_text(&state, kind, strlen(kind));
    for (size_t i = 0; stack && i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i];
        const char *home = frame->script ? frame->file : frame->module;
        const char *module = home ? gm_name_behind_slash(home) : "";
        if (is_named(frame))
            add_id_text(&state, frame->function, strlen(frame->function));
        add_id_text(&state, module, module_length(module));
    }
    return XXH64_digest(&state);
}

/* The id of the one that comes so far behind the first with that fingerprint. */
static uint64_t id_of(uint64_t fingerprint, size_t rank)
{
    return rank ? XXH64(&fingerprint, sizeof(fingerprint), rank) : fingerprint;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

GM_ORDER(by_outline, struct gm_model_outlined, GM_UP(outline) GM_UP(stack))

/* Outlines of all stacks; again, if there are more stacks than before. */
static struct gm_model_ids *ids_of(const struct gm_model *model)
{
    struct gm_model_ids *ids = &model->tables->ids;
    size_t count = gm_model_stack_count(model);
    if (ids->count == count)
        return ids;
    ids->by_outline = gm_resize(ids->by_outline, count, sizeof(*ids->by_outline));
    ids->outline = gm_resize(ids->outline, count, sizeof(*ids->outline));
    free(ids->of);
    ids->of = gm_allocate(count, sizeof(*ids->of));
    ids->count = count;
    for (uint32_t i = 0; i < count; i++) {
        ids->outline[i] = gm_model_outline(model, i);
        ids->by_outline[i] = (struct gm_model_outlined){ids->outline[i], i};
    }
    qsort(ids->by_outline, count, sizeof(*ids->by_outline), by_outline);
    return ids;
}

struct printed {
    const struct gm_stack *stack;
    uint64_t fingerprint;
    uint32_t number;
};

static int compare_lines(const struct gm_stack *one, const struct gm_stack *other)
{
    for (size_t i = 0; i < one->count && i < other->count; i++)
        if (one->frames[i].line != other->frames[i].line)
            return one->frames[i].line < other->frames[i].line ? -1 : 1;
    return (one->count > other->count) - (one->count < other->count);
}

static int by_lines(const void *left, const void *right)
{
    const struct printed *one = left, *other = right;
    if (one->fingerprint != other->fingerprint)
        return one->fingerprint < other->fingerprint ? -1 : 1;
    return compare_lines(one->stack, other->stack);
}

/* Makes the ids of stacks of one outline. */
static void make_ids(const struct gm_model *model, struct gm_model_ids *ids,
                     const struct gm_model_outlined *first, size_t count)
{
    struct printed *all = gm_allocate(count, sizeof(*all));
    for (size_t i = 0; i < count; i++) {
        uint32_t number = first[i].stack;
        all[i] = (struct printed){gm_model_stack(model, number),
                                  gm_model_fingerprint(model, number, "site", ""), number};
    }
    if (count <= ORDERED_MAX)
        qsort(all, count, sizeof(*all), by_lines);
    for (size_t i = 0, rank = 0; i < count; i++) {
        bool is_twin = i && count <= ORDERED_MAX && all[i].fingerprint == all[i - 1].fingerprint;
        rank = is_twin ? rank + (compare_lines(all[i].stack, all[i - 1].stack) != 0) : 0;
        uint64_t id = id_of(all[i].fingerprint, rank);
        ids->of[all[i].number] = id ? id : 1;
    }
    free(all);
}

/* Where those of an outline begin among all. */
static size_t first_of(const struct gm_model_ids *ids, uint64_t outline)
{
    size_t at;
    GM_BISECT(at, ids->count, ids->by_outline[at].outline < outline);
    return at;
}

static size_t end_of_equal(const struct gm_model_ids *ids, size_t first)
{
    size_t end = first;
    while (end < ids->count && ids->by_outline[end].outline == ids->by_outline[first].outline)
        end++;
    return end;
}

uint64_t gm_model_site_id(const struct gm_model *model, uint32_t stack)
{
    struct gm_model_ids *ids = ids_of(model);
    if (!ids->of[stack]) {
        size_t first = first_of(ids, ids->outline[stack]);
        make_ids(model, ids, &ids->by_outline[first], end_of_equal(ids, first) - first);
    }
    return ids->of[stack];
}

uint32_t gm_model_stack_of_id(const struct gm_model *model, uint32_t id)
{
    size_t count = gm_model_stack_count(model);
    for (uint32_t i = 0; i < count; i++)
        if (gm_model_site_id(model, i) >> 32 == id)
            return i;
    return GM_NONE;
}

static bool is_same_name(const char *one, const char *other)
{
    return strcmp(one ? one : "", other ? other : "") == 0;
}

static bool reads_same(const struct gm_stack *one, const struct gm_stack *other)
{
    bool is_same = one->count == other->count;
    for (size_t i = 0; i < one->count && is_same; i++)
        is_same = one->frames[i].line == other->frames[i].line &&
                  is_same_name(one->frames[i].function, other->frames[i].function) &&
                  is_same_name(one->frames[i].file, other->frames[i].file) &&
                  is_same_name(one->frames[i].module, other->frames[i].module);
    return is_same;
}

uint32_t gm_model_find_stack(const struct gm_model *model, const struct gm_stack *stack)
{
    size_t count = gm_model_stack_count(model);
    for (uint32_t i = 0; i < count; i++)
        if (reads_same(gm_model_stack(model, i), stack))
            return i;
    return GM_NONE;
}

/* ---- findings -------------------------------------------------------------------------------- */

static uint64_t finding_fingerprint(const struct gm_model *model,
                                    const struct gm_model_finding *finding)
{
    return gm_model_fingerprint(model, finding->stack, gm_finding_name(finding->code), "finding");
}

uint64_t gm_model_finding_id(const struct gm_model *model, const struct gm_model_run *run,
                             const struct gm_model_finding *finding)
{
    uint64_t fingerprint = finding_fingerprint(model, finding);
    size_t before = 0;
    for (const struct gm_model_finding *one = run->findings; one < finding; one++)
        before += one->code == finding->code && finding_fingerprint(model, one) == fingerprint;
    return id_of(fingerprint, before);
}

uint32_t gm_model_finding_of_id(const struct gm_model *model, const struct gm_model_run *run,
                                uint32_t id)
{
    for (size_t i = 0; i < run->finding_count; i++)
        if (gm_model_finding_id(model, run, &run->findings[i]) >> 32 == id)
            return (uint32_t)i;
    return GM_NONE;
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *gm_id_text(uint64_t id, char text[GM_ID_TEXT])
{
    snprintf(text, GM_ID_TEXT, "%08" PRIx32, (uint32_t)(id >> 32));
    return text;
}

bool gm_id_parse(const char *text, uint32_t *id)
{
    static const char digits[] = "0123456789abcdef";
    size_t size = strlen(text);
    *id = 0;
    if ((size != 8 && size != 16) || strspn(text, digits) != size)
        return false;
    for (size_t i = 0; i < 8; i++)
        *id = *id << 4 | (uint32_t)(strchr(digits, text[i]) - digits);
    return true;
}
