/* See size.h. */
#include "base/size.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Shift for what follows the number; -1 if that is no unit. */
static int unit_shift(const char *unit)
{
    static const char letters[] = "KMGTPE";
    if (*unit == 0 || strcasecmp(unit, "B") == 0)
        return 0;
    const char *letter = strchr(letters, toupper((unsigned char)*unit));
    const char *rest = unit + 1;
    if (!letter || (*rest && strcasecmp(rest, "B") != 0 && strcasecmp(rest, "iB") != 0))
        return -1;
    return 10 * (int)(letter - letters + 1);
}

bool gm_size_parse(const char *text, uint64_t *size)
{
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *at = text;
    if (!isdigit((unsigned char)*at))
        return false;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (unsigned)(*at - '0'), &whole))
            return false;
    if (*at == '.') {
        if (!isdigit((unsigned char)*++at))
            return false;
        for (; isdigit((unsigned char)*at); at++)
            if (scale < 1000000) { /* digits beyond cannot change a sensible size */
                scale *= 10;
                fraction = fraction * 10 + (unsigned)(*at - '0');
            }
    }
    bool has_fraction = scale > 1;
    while (*at == ' ')
        at++;
    int shift = unit_shift(at);
    if (shift < 0 || (has_fraction && shift == 0) || whole > UINT64_MAX >> shift)
        return false;
    uint64_t unit = 1ull << shift;
    uint64_t part = (uint64_t)((double)fraction / (double)scale * (double)unit + 0.5);
    return !__builtin_add_overflow(whole * unit, part, size);
}

const char *gm_size_format(uint64_t size, char text[GM_SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    double value = (double)size;
    while (value >= 1023.995 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(text, GM_SIZE_TEXT, "%" PRIu64 " B", size);
    else
        snprintf(text, GM_SIZE_TEXT, "%.*f %s",
                 value < 9.995   ? 2
                 : value < 99.95 ? 1
                                 : 0,
                 value, units[unit]);
    return text;
}

const char *gm_count_format(uint64_t count, char text[GM_SIZE_TEXT])
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

const char *gm_time_format(uint64_t nanoseconds, char text[GM_SIZE_TEXT])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)nanoseconds;
    unsigned unit = 0;
    if (nanoseconds >= 60 * UINT64_C(1000000000)) {
        uint64_t seconds = nanoseconds / UINT64_C(1000000000);
        if (seconds < 3600)
            snprintf(text, GM_SIZE_TEXT, "%" PRIu64 " min %02u s", seconds / 60,
                     (unsigned)(seconds % 60));
        else
            snprintf(text, GM_SIZE_TEXT, "%" PRIu64 " h %02u min", seconds / 3600,
                     (unsigned)(seconds / 60 % 60));
        return text;
    }
    while (value >= 999.5 && unit < 3) {
        value /= 1000;
        unit++;
    }
    snprintf(text, GM_SIZE_TEXT, "%.*f %s",
             unit == 0       ? 0
             : value < 9.995 ? 2
             : value < 99.95 ? 1
                             : 0,
             value, units[unit]);
    return text;
}
