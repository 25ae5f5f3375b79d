/* What the simulator reads in PTX: its variables and kernels. The statements are those of the PTX ISA: `.entry` of a kernel,
 * `.global` and `.const` of a variable, each at the beginning of a line, as compilers write them. */
#include "module.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A part of the text: a word, or an empty one at the end of a line. */
struct word {
    const char *at;
    size_t length;
};

static bool is_word(struct word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

/* The next word of a line: a directive, a name or a number. */
static struct word next_word(const char **at)
{
    *at += strspn(*at, " \t");
    struct word word = {*at, strcspn(*at, " \t\r\n([,;={")};

    *at += word.length;
    return word;
}

/* Bytes of a scalar type, whose name ends in its bits: .b8, .f32, .bf16; .f16x2 is two of them. 0: no type. */
static size_t size_of_type(struct word type)
{
    size_t digits = 1;

    while (digits < type.length && isalpha((unsigned char)type.at[digits]))
        digits++;
    if (digits == 1 || digits == type.length || *type.at != '.')
        return 0;
    char *end;
    unsigned long bits = strtoul(type.at + digits, &end, 10);
    return bits > 256 ? 0 : bits / 8 * (*end == 'x' ? 2 : 1);
}

/* Elements of what stands behind a name: [4][16], or one. */
static size_t elements(const char *at)
{
    size_t count = 1;

    while (*at == '[') {
        char *end;
        unsigned long length = strtoul(at + 1, &end, 10);
        if (*end != ']' || __builtin_mul_overflow(count, length, &count))
            return 0;
        at = end + 1;
    }
    return count;
}

static void declare_variable(struct gpusim_library *library, const char *at)
{
    size_t vector = 1, element = 0, bytes;
    bool managed = false;
    struct word word = next_word(&at);

    for (; word.length && *word.at == '.'; word = next_word(&at)) {
        if (is_word(word, ".align"))
            (void)next_word(&at);
        else if (is_word(word, ".v2") || is_word(word, ".v4"))
            vector = (size_t)(word.at[2] - '0');
        else if (is_word(word, ".attribute")) {
            managed = strncmp(at, "(.managed", strlen("(.managed")) == 0;
            at += strcspn(at, ")\n");
            at += *at == ')';
        } else
            element = size_of_type(word);
    }
    char *name = strndup(word.at, word.length);
    if (name && *name && !__builtin_mul_overflow(vector * element, elements(at), &bytes) && bytes)
        (void)gpusim_library_declare(library, name, bytes, managed);
    free(name);
}

static void declare_line(struct gpusim_library *library, const char *at)
{
    struct word word = next_word(&at);

    while (is_word(word, ".visible") || is_word(word, ".weak") || is_word(word, ".common"))
        word = next_word(&at);
    if (is_word(word, ".global") || is_word(word, ".const"))
        declare_variable(library, at);
    if (!is_word(word, ".entry"))
        return;
    word = next_word(&at);
    char *name = strndup(word.at, word.length);
    if (name && *name)
        gpusim_kernel_declare(library, name);
    free(name);
}

void gpusim_ptx_declare(struct gpusim_library *library, const char *text)
{
    text += strspn(text, " \t\r\n");
    if (*text != '.' && *text != '/')
        return; /* some other code */
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n");
        declare_line(library, line);
    }
}
