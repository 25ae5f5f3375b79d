/* Collapsed stacks, for flamegraph.pl, inferno, speedscope and the like: one line for each stack that
 * held memory at a moment, frames from the outermost with ';' between them, then the bytes. The first
 * frame is the group, the last one the function that allocated. Default: the peaks. */
#include "base/memory.h"
#include "base/order.h"
#include "output/export/export.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char *stack;
    int64_t bytes;
};

/* The format gives ';' a meaning, and readers take what follows the last space for the number. */
static void add_collapsed_frame(struct gm_export_text *text, const char *frame)
{
    size_t start = text->size + 1;
    gm_export_add(text, ";");
    gm_export_add(text, frame);
    for (char *at = text->bytes + start; *at; at++)
        if (*at == ';')
            *at = ':';
}

static char *collapsed_stack(const struct gm_model *model, const struct gm_model_place *place)
{
    const struct gm_stack *stack = gm_model_stack(model, place->stack);
    struct gm_export_text text = {0}, frame = {0};
    char group[GM_GROUP_TEXT];
    gm_export_add(&text, gm_place_group(place, group));
    for (size_t i = gm_export_frame_count(stack); i-- > 0;) {
        frame.size = 0;
        gm_export_frame(&frame, &stack->frames[i]);
        add_collapsed_frame(&text, frame.bytes);
    }
    gm_export_text_free(&frame);
    if (place->api[0])
        add_collapsed_frame(&text, place->api);
    return text.bytes;
}

GM_ORDER(by_stack, struct line, GM_BY_TEXT(stack))

static void write_collapsed(FILE *out, const struct gm_model *model,
                            const struct gm_output_options *options)
{
    struct gm_model_held held;
    gm_model_held_at(model, &options->when, &held);
    struct line *lines = gm_allocate(held.count + 1, sizeof(*lines));
    for (size_t i = 0; i < held.count; i++)
        lines[i] = (struct line){collapsed_stack(model, &model->places[held.samples[i].place]),
                                 held.samples[i].bytes};
    qsort(lines, held.count, sizeof(*lines), by_stack);
    for (size_t i = 0; i < held.count;) {
        const char *stack = lines[i].stack;
        int64_t bytes = 0;
        for (; i < held.count && strcmp(lines[i].stack, stack) == 0; i++)
            bytes += lines[i].bytes;
        if (bytes)
            fprintf(out, "%s %" PRId64 "\n", stack, bytes);
    }
    for (size_t i = 0; i < held.count; i++)
        free(lines[i].stack);
    free(lines);
    gm_model_held_free(&held);
}

const struct gm_output gm_export_collapsed = {
    .name = "collapsed", .needs = GM_NEEDS_MOMENTS, .write = write_collapsed};
