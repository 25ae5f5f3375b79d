/* Sizes in bytes, as people write and read them. Units are powers of 1024. */
#ifndef GPUMEM_REPORT_BASE_SIZE_H
#define GPUMEM_REPORT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_MIB ((uint64_t)1 << 20)

#define GM_SIZE_TEXT 32 /* enough for every formatted number of this file */

/* "64", "64K", "1.5GiB", "2 MB": a number, then K, M, G, T or P, then "iB" or "B". False for
 * anything else, and for what does not fit 64 bits. */
bool gm_size_parse(const char *text, uint64_t *size);

/* "0 B", "517 B", "1.50 MiB", "12.0 GiB". Returns `text`. */
const char *gm_size_format(uint64_t size, char text[GM_SIZE_TEXT]);

/* "1,234,567". */
const char *gm_count_format(uint64_t count, char text[GM_SIZE_TEXT]);

/* "417 ns", "1.25 ms", "3.10 s", "2 min 05 s". */
const char *gm_time_format(uint64_t nanoseconds, char text[GM_SIZE_TEXT]);

/* "s", or nothing for one: "%s event%s". */
static inline const char *gm_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* The same as arguments of a print: each place has a buffer of its own. */
#define SIZE(value) gm_size_format((value), (char[GM_SIZE_TEXT]){0})
#define COUNT(value) gm_count_format((value), (char[GM_SIZE_TEXT]){0})
#define TIME(value) gm_time_format((value), (char[GM_SIZE_TEXT]){0})

#endif
