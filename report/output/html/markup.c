/* See markup.h. */
#include "output/html/markup.h"
#include <stdlib.h>
#include <string.h>

void gm_html_text(FILE *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        size_t plain = strcspn(at, "<>&\"'");
        fwrite(at, 1, plain, out);
        at += plain;
        if (!*at)
            return;
        fprintf(out, "&#%d;", *at);
    }
}

void gm_html_bytes(FILE *out, struct gm_text text)
{
    char *clean = gm_clean_copy(text);
    gm_html_text(out, clean);
    free(clean);
}

void gm_html_frame(FILE *out, const struct gm_frame *frame)
{
    if (!frame)
        return;
    gm_html_text(out, frame->function);
    if (!frame->file)
        return;
    fputs(" <small>", out);
    gm_html_text(out, frame->file);
    if (frame->line)
        fprintf(out, ":%u", frame->line);
    fputs("</small>", out);
}
