/* See export.h. */
#include "output/export/export.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

/* ---- text ------------------------------------------------------------------------------------ */

void gm_export_add_bytes(struct gm_export_text *text, const void *bytes, size_t size)
{
    GM_RESERVE(text->bytes, text->capacity, text->size + size + 1);
    if (size)
        memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = 0;
}

void gm_export_add(struct gm_export_text *text, const char *piece)
{
    gm_export_add_bytes(text, piece, strlen(piece));
}

void gm_export_text_free(struct gm_export_text *text)
{
    free(text->bytes);
    *text = (struct gm_export_text){0};
}

void gm_export_frame(struct gm_export_text *text, const struct gm_frame *frame)
{
    char line[16];
    gm_export_add(text, frame->function);
    if (!frame->file)
        return;
    struct gm_text file = gm_base_name((struct gm_text){frame->file, strlen(frame->file)});
    gm_export_add(text, " (");
    gm_export_add_bytes(text, file.bytes, file.size);
    snprintf(line, sizeof(line), frame->line ? ":%u)" : ")", frame->line);
    gm_export_add(text, line);
}

/* Cuts clean text in front of a character. */
static void cut_text(char *text, size_t size)
{
    if (strlen(text) <= size)
        return;
    while (size && ((unsigned char)text[size] & 0xc0) == 0x80)
        size--;
    text[size] = 0;
}

char *gm_export_place(const struct gm_model *model, const struct gm_model_place *place)
{
    const struct gm_frame *frame = gm_stack_telling_frame(gm_model_stack(model, place->stack));
    struct gm_export_text text = {0};
    gm_export_add(&text, "");
    if (frame)
        gm_export_frame(&text, frame);
    cut_text(text.bytes, GM_EXPORT_PLACE_TEXT);
    return text.bytes;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

uint32_t gm_export_stack(struct gm_export_stacks *stacks, const struct gm_model *model,
                         uint32_t stack)
{
    uint32_t same = gm_model_same_stack(model, stack);
    uint32_t number = gm_map_get(&stacks->numbers, same);
    if (number != GM_NONE)
        return number;
    GM_RESERVE(stacks->stacks, stacks->capacity, stacks->count + 1);
    gm_map_set(&stacks->numbers, same, (uint32_t)stacks->count);
    stacks->stacks[stacks->count] = same;
    return (uint32_t)stacks->count++;
}

void gm_export_stacks_free(struct gm_export_stacks *stacks)
{
    gm_map_free(&stacks->numbers);
    free(stacks->stacks);
    *stacks = (struct gm_export_stacks){0};
}

size_t gm_export_frame_count(const struct gm_stack *stack)
{
    size_t count = 0;
    while (count < stack->count && gm_limits_take_frame())
        count++;
    return count;
}
