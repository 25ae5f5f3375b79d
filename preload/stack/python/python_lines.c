/* See python_lines.h. Each decoder runs to the entry that covers lasti: linear, at first sight. */
#include "stack/python/python_lines.h"
#include <stdbool.h>

/* A line number for people: what is below 1 was never in a file. */
static uint32_t printable(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t line_of_lnotab(const uint8_t *table, size_t size, int64_t line, int64_t lasti)
{
    int64_t address = 0;
    for (size_t at = 0; at + 1 < size; at += 2) {
        address += table[at];
        if (address > lasti)
            break;
        line += (int8_t)table[at + 1];
    }
    return printable(line);
}

static uint32_t line_of_ranges(const uint8_t *table, size_t size, int64_t line, int64_t lasti)
{
    const int8_t no_line = -128;
    int64_t end = 0;
    for (size_t at = 0; at + 1 < size; at += 2) {
        int8_t delta = (int8_t)table[at + 1];
        end += table[at];
        if (delta != no_line)
            line += delta;
        if (lasti < end)
            return delta == no_line ? 0 : printable(line);
    }
    return 0;
}

/* Signed number in groups of six bits, least first, sign in the lowest bit. */
static int64_t read_signed(const uint8_t *table, size_t size, size_t at)
{
    uint64_t value = 0;
    for (unsigned shift = 0; at < size && shift < 36; at++, shift += 6) {
        value |= (uint64_t)(table[at] & 63u) << shift;
        if (!(table[at] & 64u))
            break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint32_t line_of_locations(const uint8_t *table, size_t size, int64_t line, int64_t lasti)
{
    enum { ONE_LINE_ON = 11, TWO_LINES_ON = 12, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };
    int64_t end = 0;
    size_t at = 0;
    while (at < size) {
        /* First byte: 1, four bits of kind, three bits of length less one, in units of two bytes.
         */
        unsigned kind = (table[at] >> 3) & 15u;
        end += ((table[at] & 7) + 1) * 2;
        if (kind == NO_COLUMNS || kind == LONG)
            line += read_signed(table, size, at + 1);
        else if (kind == ONE_LINE_ON || kind == TWO_LINES_ON)
            line += kind - ONE_LINE_ON + 1;
        if (lasti < end)
            return kind == NO_LINE ? 0 : printable(line);
        do
            at++;
        while (at < size && !(table[at] & 0x80u));
    }
    return 0;
}

uint32_t gm_python_line(enum gm_python_lines format, const uint8_t *table, size_t size,
                        int32_t first_line, int32_t lasti)
{
    if (lasti < 0)
        return printable(first_line);
    switch (format) {
    case GM_LINES_LNOTAB:
        return line_of_lnotab(table, size, first_line, lasti);
    case GM_LINES_RANGES:
        return line_of_ranges(table, size, first_line, lasti);
    case GM_LINES_LOCATIONS:
        return line_of_locations(table, size, first_line, lasti);
    }
    return 0;
}
