/* See settings.h. */
#include "render/sections/settings.h"
#include "commands/command.h"
#include <gpumem/settings.h>
#include <stdlib.h>
#include <string.h>

void gm_settings_complain(void)
{
    static const char *const names[] = {
        "GPUMEM_OUTPUT", "GPUMEM_RING", "GPUMEM_DEPTH", "GPUMEM_STACKS",      "GPUMEM_ON_FULL",
        "GPUMEM_TORCH",  "GPUMEM_NVML", "GPUMEM_MODE",  "GPUMEM_FLIGHT_SIZE", "GPUMEM_NVTX",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && !gm_setting_is_understood(names[i], value))
            gm_complain("%s='%s' is not understood: the default is used", names[i], value);
    }
}

static bool is_misunderstood(struct gm_text text)
{
    char copy[4096 + 1]; /* longer ones are not recorded */
    if (text.size >= sizeof(copy))
        return false;
    memcpy(copy, text.bytes, text.size);
    copy[text.size] = 0;
    char *value = strchr(copy, '=');
    if (!value)
        return false;
    *value++ = 0;
    return !gm_setting_is_understood(copy, value);
}

bool gm_settings_next(struct gm_text *rest, struct gm_text *name_and_value)
{
    while (rest->size) {
        struct gm_text one = gm_trace_field(rest->bytes, rest->size);
        size_t step = one.size < rest->size ? one.size + 1 : one.size;
        *rest = (struct gm_text){rest->bytes + step, rest->size - step};
        if (is_misunderstood(one)) {
            *name_and_value = one;
            return true;
        }
    }
    return false;
}

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

void gm_settings_json(struct gm_json *json, const struct gm_trace *trace)
{
    struct gm_text rest = trace->environment, one;
    gm_json_open_array(json, "settings_not_understood");
    while (gm_settings_next(&rest, &one))
        gm_json_text(json, NULL, one);
    gm_json_close_array(json);
}
