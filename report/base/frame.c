/* See frame.h. */
#include "base/frame.h"
#include "base/short_name.h"
#include "base/text.h"
#include <string.h>

/* The name of an operation of PyTorch's within that of a frame, with what follows it; NULL: it is none. */
static const char *operation_in(const struct gm_frame *frame)
{
    static const char *const spaces[] = {"at::_ops::", "torch::autograd::generated::"};
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]) && !frame->script; i++)
        if (gm_name_starts_with(frame->function, spaces[i]))
            return frame->function + strlen(spaces[i]);
    return NULL;
}

bool gm_frame_is_operation(const struct gm_frame *frame)
{
    return operation_in(frame) != NULL;
}

/* "mul" of "mul_Tensor::call": without the overload. */
static void write_operation(const char *name, char text[GM_OPERATION_TEXT])
{
    static const char *const overloads[] = {"_Tensor", "_Scalar", "_dtype_layout", "_dim"};
    size_t size = strcspn(name, ":<( ");
    size = size < GM_OPERATION_TEXT - 1 ? size : GM_OPERATION_TEXT - 1;
    memcpy(text, name, size);
    text[size] = 0;
    for (size_t i = 0; i < sizeof(overloads) / sizeof(overloads[0]); i++)
        if (gm_name_ends_with(text, overloads[i]))
            text[strlen(text) - strlen(overloads[i])] = 0;
    char *rest = strstr(text, "_apply_functional");
    if (rest)
        *rest = 0;
}

const char *gm_stack_operation(const struct gm_stack *stack, char text[GM_OPERATION_TEXT])
{
    text[0] = 0;
    for (size_t i = 0; i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i];
        if (frame->script && !frame->framework)
            break;
        if (frame->script && frame->file && strstr(frame->file, "/torch/optim/"))
            return strcpy(text, "optimizer step");
        if (operation_in(frame))
            write_operation(operation_in(frame), text);
    }
    return text;
}

const struct gm_frame *gm_stack_telling_frame(const struct gm_stack *stack)
{
    const struct gm_frame *native = NULL, *script = NULL, *operation = NULL;
    for (size_t i = 0; i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i];
        if (frame->script && !frame->framework)
            return frame;
        if (frame->script && !script)
            script = frame;
        if (!frame->script && !frame->framework && !native)
            native = frame;
        if (gm_frame_is_operation(frame))
            operation = frame;
    }
    if (native || script)
        return native ? native : script;
    return operation ? operation : stack->count ? stack->frames : NULL;
}

/* Functions that one template makes have one name for a reader. */
static bool is_same_name(const struct gm_frame *one, const struct gm_frame *other)
{
    char name[GM_SHORT_NAME_SIZE], other_name[GM_SHORT_NAME_SIZE];
    if (strcmp(one->function, other->function) == 0)
        return true;
    if (one->script)
        return false;
    gm_short_name(one->function, name);
    gm_short_name(other->function, other_name);
    return strcmp(name, other_name) == 0;
}

bool gm_frames_read_same(const struct gm_frame *one, const struct gm_frame *other)
{
    return one && other && one->line == other->line && one->script == other->script &&
           is_same_name(one, other) &&
           strcmp(one->file ? one->file : "", other->file ? other->file : "") == 0;
}

const struct gm_frame *gm_stack_difference(const struct gm_stack *stack,
                                           const struct gm_stack *other)
{
    for (size_t i = 0; i < stack->count; i++)
        if (i >= other->count || !gm_frames_read_same(&stack->frames[i], &other->frames[i]))
            return &stack->frames[i];
    return NULL;
}
