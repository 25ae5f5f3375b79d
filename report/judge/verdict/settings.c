/* See settings.h. */
#include "judge/verdict/settings.h"
#include <gpumem/settings.h>
#include <string.h>

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
