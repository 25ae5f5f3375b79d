/* See sections.h. */
#include "base/text.h"
#include "output/text/sections.h"
#include <stdlib.h>

void gm_settings_text(const struct gm_view *view)
{
    for (size_t i = 0; i < view->run->setting_count; i++) {
        char *clean = gm_clean_copy(view->run->settings_not_understood[i]);
        gm_page_paragraph(view->page, GM_WARNING, 0,
                          "SETTING: %.200s was not understood; the default was used.", clean);
        free(clean);
    }
}
