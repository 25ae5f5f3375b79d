/* Bytes and counts of a model as arguments of a print. They are negative in differences alone. */
#ifndef GPUMEM_REPORT_RENDER_AMOUNT_H
#define GPUMEM_REPORT_RENDER_AMOUNT_H

#include "base/names.h"
#include "base/size.h"

static inline const char *gm_amount_format(int64_t value, char text[GM_SIZE_TEXT],
                                           const char *(*format)(uint64_t, char *))
{
    if (value >= 0)
        return format((uint64_t)value, text);
    text[0] = '-';
    format(0 - (uint64_t)value, text + 1); /* all formatted numbers leave room for a sign */
    return text;
}

#define BYTES(value) gm_amount_format((value), (char[GM_SIZE_TEXT + 1]){0}, gm_size_format)
#define NUMBER(value) gm_amount_format((value), (char[GM_SIZE_TEXT + 1]){0}, gm_count_format)

#define DURATION(value) gm_amount_format((value), (char[GM_SIZE_TEXT + 1]){0}, gm_time_format)

/* What a refusal was about: "264 MiB", or "loading code". */
#define ASKED(size, purpose) ((purpose) ? gm_purpose_text(purpose) : SIZE(size))

#endif
