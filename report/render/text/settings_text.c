/* See sections.h. */
#include "render/text/sections.h"
#include "verdict/settings.h"
#include <stdlib.h>

void gm_settings_text(struct gm_page *page, const struct gm_trace *trace)
{
    struct gm_text rest = trace->environment, one;
    while (gm_settings_next(&rest, &one)) {
        char *clean = gm_clean_copy(one);
        gm_page_paragraph(page, GM_WARNING, 0,
                          "SETTING: %.200s was not understood; the default was used.", clean);
        free(clean);
    }
}
