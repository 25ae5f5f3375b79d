/* What a model costs twice: a copy of its weights, and a gradient as large as a table of which a few
 * rows were looked up. Told from PyTorch's pool when it held most. */
#include "base/each.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/size.h"
#include "judge/findings/rules.h"
#include <stdlib.h>
#include <string.h>

#define PEAK_SHARE 10u /* of the peak: a tenth, or it is not worth a word */
#define COPIED 4u      /* blocks that a copy has at least */
#define COPIED_SHARE                                                                               \
    90u /* percent of a checkpoint that load_state_dict copied: buffers may differ */
#define COPIED_ONCE 150u /* percent: what is copied again and again is a target network's */
#define FEW_ROWS 16u     /* times as large as what was looked up is the table */

/* A function by its own name, or as Python names it from 3.11 on: with its class. */
static bool is_function(struct gm_text name, const char *function)
{
    size_t size = strlen(function);
    return name.size >= size && memcmp(name.bytes + name.size - size, function, size) == 0 &&
           (name.size == size || name.bytes[name.size - size - 1] == '.');
}

/* Whether a Python frame of this file, and function unless NULL, is in the stack. */
static bool has_frame(const struct gm_trace *trace, uint32_t stack, const char *file,
                      const char *function)
{
    for (uint32_t id = stack; id;) {
        const struct gm_node *node = gm_trace_node(trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            return false;
        const struct gm_script_frame *frame =
            node->kind == GM_NODE_SCRIPT ? gm_trace_script_frame(trace, node->address) : NULL;
        struct gm_text path = gm_trace_string(trace, frame ? frame->file : 0);
        struct gm_text name = gm_trace_string(trace, frame ? frame->function : 0);
        if (memmem(path.bytes, path.size, file, strlen(file)) &&
            (!function || is_function(name, function)))
            return true;
        id = node->parent < id ? node->parent : 0;
    }
    return false;
}

/* ---- second-copy ----------------------------------------------------------------------------- */

/* A line, and what it holds for one purpose. */
struct holder {
    struct gm_shape shape;
    enum gm_category category;
};

struct holders {
    struct holder *entries;
    size_t count;
};

static struct holders holders_of(const struct gm_analysis *analysis, const struct gm_shapes *shapes)
{
    struct holders holders = {gm_allocate(shapes->count + 1, sizeof(*holders.entries)), 0};
    struct gm_map by_line = {0};
    for (size_t i = 0; i < shapes->count; i++) {
        const struct gm_shape *shape = &shapes->entries[i];
        enum gm_category category = gm_categories_get(analysis->categories, shape->stack);
        if (category != GM_CATEGORY_PARAMETER && category != GM_CATEGORY_OTHER)
            continue;
        uint64_t key = gm_callers_line(analysis->callers, shape->stack) * 2 +
                       (category == GM_CATEGORY_PARAMETER);
        uint32_t at = gm_map_get(&by_line, key);
        if (at == GM_NONE) {
            at = (uint32_t)holders.count++;
            holders.entries[at].category = category;
            gm_map_set(&by_line, key, at);
        }
        gm_shape_add(&holders.entries[at].shape, shape);
    }
    gm_map_free(&by_line);
    return holders;
}

/* One is known to be a model, and the other holds all its sizes, once or more, and no others. */
static bool are_copies(const struct holder *one, const struct holder *other)
{
    return (one->category == GM_CATEGORY_PARAMETER &&
            gm_shape_covers(&other->shape, &one->shape)) ||
           (other->category == GM_CATEGORY_PARAMETER &&
            gm_shape_covers(&one->shape, &other->shape));
}

/* Many blocks of one size can be as large as a small model's weights by chance. */
static bool is_worth_it(const struct holder *holder, const struct gm_pool_snapshot *peak)
{
    return holder->shape.count >= COPIED && holder->shape.bytes >= peak->allocated / PEAK_SHARE;
}

static bool is_from_file(const struct gm_analysis *analysis, const struct holder *holder)
{
    uint32_t stack = holder->shape.stack;
    return has_frame(analysis->trace, stack, "/torch/serialization.py", NULL) ||
           has_frame(analysis->trace, stack, "/safetensors/", NULL);
}

static bool is_loaded(const struct gm_analysis *analysis, const struct holder *holder)
{
    return is_from_file(analysis, holder) ||
           has_frame(analysis->trace, holder->shape.stack, "/copy.py", NULL);
}

/* Whether it is a checkpoint that was copied, on the device, into the model that was there: weights that came
 * from a file are of no use then. Two models of one shape, an average of the weights, a target network are not
 * filled from what was loaded, or more than once. */
static bool was_copied_into_model(const struct gm_analysis *analysis, const struct holder *second,
                                  const struct holder *first)
{
    const struct gm_transfers *transfers = &analysis->transfers;
    uint64_t bytes = 0;
    for (size_t i = 0; i < transfers->site_count; i++)
        if (transfers->sites[i].direction == GM_COPY_DEVICE_TO_DEVICE &&
            has_frame(analysis->trace, transfers->sites[i].stack, "/torch/nn/modules/module.py",
                      "_load_from_state_dict"))
            bytes = gm_add_saturated(bytes, transfers->sites[i].sum.bytes);
    return is_from_file(analysis, second) && !is_from_file(analysis, first) &&
           bytes >= second->shape.bytes / 100 * COPIED_SHARE &&
           bytes <= second->shape.bytes / 100 * COPIED_ONCE;
}

/* The one that a reader should look at: what was loaded or copied, or else what came later. */
static const struct holder *second_of(const struct gm_analysis *analysis, const struct holder *one,
                                      const struct holder *other)
{
    bool is_one = is_loaded(analysis, one), is_other = is_loaded(analysis, other);
    if (is_one != is_other)
        return is_one ? one : other;
    return one->shape.first > other->shape.first ? one : other;
}

static void find_copy(const struct gm_analysis *analysis, struct gm_findings *findings,
                      const struct gm_pool_snapshot *peak)
{
    struct holders holders = holders_of(analysis, &peak->shapes);
    const struct holder *most = NULL, *first = NULL;
    for (size_t i = 0; i < holders.count; i++) {
        const struct holder *one = &holders.entries[i];
        if (!is_worth_it(one, peak))
            continue; /* so that at most PEAK_SHARE are compared with all */
        for (size_t k = 0; k < holders.count; k++) {
            const struct holder *other = &holders.entries[k];
            if (k == i || !is_worth_it(other, peak) || !are_copies(one, other))
                continue;
            const struct holder *second = second_of(analysis, one, other);
            if (most && second->shape.bytes <= most->shape.bytes)
                continue;
            most = second;
            first = second == one ? other : one;
        }
    }
    if (most) {
        bool is_waste = was_copied_into_model(analysis, most, first);
        gm_findings_add(
            findings,
            &(struct gm_finding){.code = GM_FINDING_SECOND_COPY,
                                 .severity = is_waste ? GM_SEVERITY_WARNING : GM_SEVERITY_NOTE,
                                 .device = peak->device,
                                 GM_SAME(&most->shape, bytes, stack, api)},
            "At the peak, %s blocks of %s from here had the sizes of a model's "
            "weights, which the device held too: %s.",
            COUNT(most->shape.count), SIZE(most->shape.bytes),
            is_waste ? "a checkpoint that was copied into the model" : "a second copy");
        gm_findings_remedy(
            findings, is_waste ? "Load with map_location=\"cpu\" or load_state_dict(assign=True)."
                               : "If it is not meant, load with map_location=\"cpu\" or "
                                 "load_state_dict(assign=True), and keep copies on the host.");
        gm_findings_evidence(findings, "the other line held %s in %s blocks; peak %s",
                             SIZE(first->shape.bytes), COUNT(first->shape.count),
                             SIZE(peak->allocated));
    }
    free(holders.entries);
}

/* ---- dense-gradient -------------------------------------------------------------------------- */

/* A block of that size whose stack has that category. */
static bool has_block(const struct gm_analysis *analysis, const struct gm_shapes *shapes,
                      enum gm_category category, uint64_t size)
{
    for (size_t i = 0; i < shapes->count; i++)
        if (shapes->entries[i].largest == size &&
            gm_categories_get(analysis->categories, shapes->entries[i].stack) == category)
            return true;
    return false;
}

/* The lookup that made most, on the device. */
static const struct gm_active_site *find_lookup(const struct gm_analysis *analysis, int device)
{
    const struct gm_active_site *most = NULL;
    for (size_t i = 0; i < analysis->activity.count; i++) {
        const struct gm_active_site *site = &analysis->activity.sites[i];
        if (site->is_block && site->device == device && (!most || site->peak > most->peak) &&
            (has_frame(analysis->trace, site->stack, "/torch/nn/functional.py", "embedding") ||
             has_frame(analysis->trace, site->stack, "/torch/nn/functional.py", "embedding_bag")))
            most = site;
    }
    return most;
}

static void find_dense_gradient(const struct gm_analysis *analysis, struct gm_findings *findings,
                                const struct gm_pool_snapshot *peak)
{
    const struct gm_shape *most = NULL;
    for (size_t i = 0; i < peak->shapes.count; i++) {
        const struct gm_shape *shape = &peak->shapes.entries[i];
        if (shape->largest >= peak->allocated / PEAK_SHARE &&
            (!most || shape->largest > most->largest) &&
            gm_categories_get(analysis->categories, shape->stack) == GM_CATEGORY_GRADIENT &&
            has_block(analysis, &peak->shapes, GM_CATEGORY_PARAMETER, shape->largest))
            most = shape;
    }
    const struct gm_active_site *lookup = most ? find_lookup(analysis, peak->device) : NULL;
    if (!lookup || most->largest / FEW_ROWS < lookup->allocated / lookup->allocs)
        return;
    gm_findings_add(findings,
                    &(struct gm_finding){.code = GM_FINDING_DENSE_GRADIENT,
                                         .severity = GM_SEVERITY_NOTE,
                                         .device = peak->device,
                                         .bytes = most->largest,
                                         .stack = lookup->stack,
                                         .api = lookup->api},
                    "A gradient of %s is as large as a parameter; a lookup here made %s at a time: "
                    "the gradient of an embedding holds all its rows, also those that no lookup "
                    "touched.",
                    SIZE(most->largest), SIZE(lookup->allocated / lookup->allocs));
    gm_findings_remedy(findings, "Embedding(sparse=True) has a gradient of the touched rows, with "
                                 "an optimizer that takes it (SparseAdam, SGD, Adagrad).");
    gm_findings_evidence(findings, "peak %s; %s lookups", SIZE(peak->allocated),
                         COUNT(lookup->allocs));
}

void gm_find_model_costs(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    for (size_t i = 0; i < analysis->pool_count; i++) {
        find_copy(analysis, findings, &analysis->pool_peaks[i]);
        find_dense_gradient(analysis, findings, &analysis->pool_peaks[i]);
    }
}
