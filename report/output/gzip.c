/* See gzip.h. */
#include "output/gzip.h"
#include "base/memory.h"
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's largest window, and a header of gzip */
#define LEVEL 2 /* 3 adds a third to the time and takes 3 % off the size of a page's events */

/* zlib asks here, so that memory that ends is told as everywhere else. */
static void *allocate(void *argument, unsigned count, unsigned size)
{
    (void)argument;
    return gm_allocate(count, size);
}

static void release_memory(void *argument, void *memory)
{
    (void)argument;
    free(memory);
}

unsigned char *gm_gzip(const void *bytes, size_t size, size_t *compressed)
{
    z_stream stream = {.zalloc = allocate, .zfree = release_memory};
    deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
    size_t capacity = size + size / 1000 + 1024, done = 0;
    unsigned char *output = gm_allocate(capacity, 1);
    const unsigned char *input = bytes;
    int state = Z_OK;
    /* zlib counts with 32 bits: the input goes in by pieces. */
    while (state != Z_STREAM_END) {
        size_t piece = size < (1u << 30) ? size : 1u << 30;
        stream.next_in = (unsigned char *)(size_t)input;
        stream.avail_in = (unsigned)piece;
        size_t room = capacity - done < (1u << 30) ? capacity - done : 1u << 30;
        stream.next_out = output + done;
        stream.avail_out = (unsigned)room;
        state = deflate(&stream, piece == size ? Z_FINISH : Z_NO_FLUSH);
        input += piece - stream.avail_in;
        size -= piece - stream.avail_in;
        done += room - stream.avail_out;
        if (stream.avail_out == 0 && done == capacity) {
            capacity += capacity / 2;
            output = gm_resize(output, capacity, 1);
        }
    }
    deflateEnd(&stream);
    *compressed = done;
    return output;
}
