/* See complain.h. */
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>

int gm_complain(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    gm_clean_text(text);
    fprintf(stderr, "gpumem: %s\n", text);
    return GM_EXIT_USAGE;
}
