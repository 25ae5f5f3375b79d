/* Flips bits of a trace that ended well, one at a time, all over the file: flip_bits TRACE TRIES.
 * Prints the flips that the reader does not notice, and how many it tried. It tries a bit of every
 * byte of a trace with fewer bytes than TRIES, of the first 8 KiB and evenly spread bytes of a larger one,
 * and of one byte in 61 in long runs of zeros. */
#include "input/trace/stream.h"
#include "input/trace/trace_open.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *load_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes =
        aligned_alloc(GM_TRACE_PAGE, (*size + GM_TRACE_PAGE - 1) / GM_TRACE_PAGE * GM_TRACE_PAGE);
    if (bytes && fread(bytes, 1, *size, file) != *size)
        bytes = NULL;
    fclose(file);
    return bytes;
}

/* Whether the reader calls the trace whole. */
static bool passes(const unsigned char *bytes, size_t size)
{
    char error[256];
    struct gm_trace *trace = gm_trace_open_memory(bytes, size, error, sizeof(error));
    if (!trace)
        return false;
    struct gm_entry entry;
    struct gm_stream *stream = gm_stream_open(trace);
    while (!trace->damaged && gm_stream_next(stream, &entry))
        continue;
    bool whole = trace->damaged == 0 && !trace->truncated && trace->ending == GM_ENDING_NORMAL &&
                 gm_stream_lost(stream) == 0;
    gm_stream_close(stream);
    gm_trace_close(trace);
    return whole;
}

static bool is_in_zeros(const unsigned char *bytes, size_t size, size_t at)
{
    static const unsigned char zeros[128];
    return at >= 64 && size - at > 64 && memcmp(bytes + at - 64, zeros, sizeof(zeros)) == 0;
}

int main(int count, char **arguments)
{
    size_t size = 0, tried = 0, missed = 0;
    unsigned char *bytes = count == 3 ? load_file(arguments[1], &size) : NULL;
    if (!bytes) {
        fputs("usage: flip_bits TRACE TRIES\n", stderr);
        return 2;
    }
    if (!passes(bytes, size)) {
        fputs("the trace is not whole as it is\n", stderr);
        return 2;
    }
    size_t used = 0, step;
    for (size_t at = 0; at < size; at++)
        used += !is_in_zeros(bytes, size, at);
    step = used / strtoul(arguments[2], NULL, 10) + 1;
    for (size_t at = 0; at < size; at++) {
        bool tries = is_in_zeros(bytes, size, at) ? at % 61 == 0 : at < 8192 || at % step == 0;
        if (!tries)
            continue;
        unsigned char bit = (unsigned char)(1u << (at / 3 + at) % 8);
        bytes[at] ^= bit;
        tried++;
        if (passes(bytes, size) && missed++ < 20)
            printf("offset %zu, bit %#x: not found\n", at, bit);
        bytes[at] ^= bit;
    }
    printf("%zu of %zu flipped bits not found\n", missed, tried);
    return missed != 0 || tried < 1000;
}
