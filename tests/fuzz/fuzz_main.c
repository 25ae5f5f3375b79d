/* A fuzz target without a fuzzer: TARGET [-n ROUNDS] FILE... reads the given files, and random changes
 * of them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t draw_number(void)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* Values at which arithmetic goes wrong. */
static uint64_t nasty(void)
{
    static const uint64_t values[] = {
        0, 1, 63, 64, 0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 63};
    return values[draw_number() % (sizeof(values) / sizeof(values[0]))];
}

static void change(unsigned char *bytes, size_t size)
{
    for (uint64_t count = 1 + draw_number() % 6; count-- > 0;) {
        size_t at = draw_number() % size;
        switch (draw_number() % 4) {
        case 0:
            bytes[at] ^= (unsigned char)(1u << draw_number() % 8);
            break;
        case 1:
            bytes[at] = (unsigned char)draw_number();
            break;
        case 2: { /* a whole field */
            uint64_t value = nasty();
            at &= ~(size_t)7;
            if (at + sizeof(value) <= size)
                memcpy(bytes + at, &value, sizeof(value));
            break;
        }
        default: { /* a piece from elsewhere */
            size_t from = draw_number() % size, length = draw_number() % 200;
            if (from + length <= size && at + length <= size)
                memmove(bytes + at, bytes + from, length);
        }
        }
    }
}

static unsigned char *load_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    unsigned char *bytes = NULL;
    *size = 0;
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 0) {
        *size = (size_t)ftell(file);
        rewind(file);
        bytes = malloc(*size + 1);
        if (bytes && fread(bytes, 1, *size, file) != *size)
            *size = 0;
    }
    if (file)
        fclose(file);
    if (!bytes)
        perror(path);
    return bytes;
}

int main(int count, char **arguments)
{
    int first = 1;
    unsigned long rounds = 0;
    if (count > 2 && strcmp(arguments[1], "-n") == 0) {
        rounds = strtoul(arguments[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < count; i++) {
        size_t size;
        unsigned char *bytes = load_file(arguments[i], &size);
        if (!bytes)
            return 1;
        LLVMFuzzerTestOneInput(bytes, size);
        unsigned char *changed = malloc(size + 1);
        for (unsigned long round = 0; changed && size && round < rounds; round++) {
            memcpy(changed, bytes, size);
            change(changed, size);
            LLVMFuzzerTestOneInput(changed, draw_number() % 8 ? size : draw_number() % size);
        }
        free(changed);
        free(bytes);
    }
    printf("survived\n");
    return 0;
}
