/* Stacks as text. What the reader wrote is shown frame by frame; a run of frames that are a
 * framework's or the system's is one line: the frame nearest to the reader's own code, and how many
 * there were of which libraries. Memory: none beyond a few lines on the stack. */
#ifndef GPUMEM_REPORT_RENDER_PAGE_STACK_H
#define GPUMEM_REPORT_RENDER_PAGE_STACK_H

#include "base/frame.h"
#include "output/page.h"

/* One frame in at most `columns` (44 at least): function, then file and line, or module. */
void gm_page_frame(struct gm_page *page, const struct gm_frame *frame, size_t columns);

/* A stack, `indent` columns in: function, file and line, or module. The application's frames one a
 * line, a run of a framework's as one line, equal ones that follow each other as one (recursion).
 */
void gm_page_stack(struct gm_page *page, unsigned indent, const struct gm_stack *stack);

#endif
