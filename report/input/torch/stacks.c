/* See stacks.h. */
#include "input/torch/stacks.h"
#include <stdio.h>
#include <string.h>

static bool ends_with(struct gm_text text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.bytes + text.size - size, end, size) == 0;
}

/* Snapshots do not say which of their frames are Python's. What is compiled has no file, one with an
 * ending, or a library; a program of Python may have no ending, as in bin/torchrun. */
static bool is_python(struct gm_text file, struct gm_text function)
{
    struct gm_text base = gm_base_name(file);
    if (ends_with(file, ".py") || (file.size && file.bytes[0] == '<'))
        return true;
    return file.size && file.bytes[0] == '/' && !memchr(base.bytes, '.', base.size) &&
           !gm_text_contains(function, "::") && !gm_text_contains(function, "(");
}

uint32_t gm_torch_frame(struct gm_image *image, const struct gm_value *value)
{
    struct gm_text file = gm_value_text(gm_value_get(value, "filename"));
    struct gm_text function = gm_value_text(gm_value_get(value, "name"));
    struct gm_text node = gm_value_text(gm_value_get(value, "fx_node_name"));
    struct gm_text operation = gm_value_text(gm_value_get(value, "fx_node_op"));
    uint64_t line = gm_value_number(gm_value_get(value, "line"), 0);
    bool python = is_python(file, function);
    char text[512];
    if (node.size && node.size + operation.size + function.size < sizeof(text) - 8) {
        int size =
            snprintf(text, sizeof(text), "%.*s [%.*s %.*s]", (int)function.size, function.bytes,
                     (int)operation.size, operation.bytes, (int)node.size, node.bytes);
        function = (struct gm_text){text, (size_t)size};
    }
    bool has_line = python || !gm_text_contains(file, ".so"); /* else an offset into the library */
    if (!python && (gm_text_is(file, "??") || gm_text_contains(file, ".so")))
        file = (struct gm_text){"", 0};
    return gm_image_frame(image, file, function,
                          has_line && line <= UINT32_MAX ? (uint32_t)line : 0,
                          python ? GM_LANGUAGE_PYTHON : GM_LANGUAGE_NATIVE);
}

uint32_t gm_torch_metadata(struct gm_image *image, struct gm_text metadata)
{
    static const struct gm_text name = {"<user_metadata>", 15};
    return metadata.size
               ? gm_image_node(image, 0,
                               gm_image_frame(image, name, metadata, 0, GM_LANGUAGE_PYTHON))
               : 0;
}

static struct gm_node node_at(const struct gm_image *image, uint32_t stack)
{
    struct gm_node node;
    memcpy(&node, image->nodes.bytes + stack * sizeof(node), sizeof(node));
    return node;
}

uint32_t gm_torch_caller(const struct gm_image *image, uint32_t stack, struct gm_text *file,
                         uint32_t *line)
{
    struct gm_node node = node_at(image, stack);
    struct gm_script_frame frame;
    uint16_t size;
    memcpy(&frame, image->frames.bytes + node.address * sizeof(frame), sizeof(frame));
    memcpy(&size, image->strings.bytes + frame.file, sizeof(size));
    *file = (struct gm_text){(const char *)image->strings.bytes + frame.file + sizeof(size), size};
    *line = frame.line;
    return node.parent;
}

uint32_t gm_torch_stack_below(struct gm_image *image, uint32_t outermost, uint32_t stack)
{
    uint32_t frames[GM_TORCH_DEPTH_MAX], count = 0;
    if (!outermost)
        return stack;
    for (struct gm_node node; stack && count < GM_TORCH_DEPTH_MAX; stack = node.parent) {
        node = node_at(image, stack);
        frames[count++] = (uint32_t)node.address;
    }
    while (count)
        outermost = gm_image_node(image, outermost, frames[--count]);
    return outermost;
}
