/* Text in an HTML page: names of a trace or a file are shown, whatever markup they hold, never obeyed. */
#ifndef GPUMEM_REPORT_RENDER_HTML_MARKUP_H
#define GPUMEM_REPORT_RENDER_HTML_MARKUP_H

#include "base/frame.h"
#include "base/names.h"
#include "base/text.h"
#include <stdio.h>

/* Clean text. */
void gm_html_text(FILE *out, const char *text);

/* Any bytes: they are cleaned first. */
void gm_html_bytes(FILE *out, struct gm_text text);

/* "step  train.py:61", the file dimmed; nothing for NULL. */
void gm_html_frame(FILE *out, const struct gm_frame *frame);

#endif
