/* A call stack as a reader is shown it. Strings are clean: valid UTF-8 without control characters. */
#ifndef GPUMEM_REPORT_BASE_FRAME_H
#define GPUMEM_REPORT_BASE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_frame {
    const char *function;  /* never NULL; "module+0x1234" where there is no name */
    const char *file;      /* NULL if unknown */
    unsigned line;         /* 0 if unknown */
    const char *module;    /* file name of the module; "" if unknown; NULL for script frames */
    const char *framework; /* NULL: the application's; else the framework's or system library it is
                              of, or the Python package */
    const char *trouble;   /* why it has no name, if its module's file is to blame; NULL */
    bool script;           /* a Python frame */
    bool inlined;
};

struct gm_stack {
    struct gm_frame *frames; /* innermost first */
    size_t count;
    bool cut; /* there were more, outside */
};

/* Whether it is an operation that PyTorch's users know by name. */
bool gm_frame_is_operation(const struct gm_frame *frame);

/* What PyTorch was asked to do there: "relu", "MulBackward0", "optimizer step"; "" if no frame tells. Returns `text`. */
#define GM_OPERATION_TEXT 64
const char *gm_stack_operation(const struct gm_stack *stack, char text[GM_OPERATION_TEXT]);

/* The frame that tells a reader most: the application's innermost of Python, else its innermost
 * native one, else the innermost of Python, else PyTorch's outermost operation (autograd's threads
 * run no Python), else the innermost. NULL: the stack is empty. */
const struct gm_frame *gm_stack_telling_frame(const struct gm_stack *stack);

/* Whether two frames, NULL for none, read the same in a row. */
bool gm_frames_read_same(const struct gm_frame *one, const struct gm_frame *other);

/* The innermost frame of `stack` that differs from the other stack's; NULL: none does. */
const struct gm_frame *gm_stack_difference(const struct gm_stack *stack,
                                           const struct gm_stack *other);

#endif
