/* See complain.h. */
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>

static char text[1024];

const char *gm_last_complaint(void)
{
    return text;
}

int gm_complain(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    gm_clean_text(text);
    fprintf(stderr, "gpumem: %s\n", text);
    return GM_EXIT_USAGE;
}
