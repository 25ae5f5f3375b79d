/* Demangling with libiberty, bounded. The contract is in demangle.h.
 *
 * Why libiberty and not __cxa_demangle from libstdc++: it also decodes both Rust manglings, it
 * writes through a callback and so allocates nothing (the result of a hostile name can be
 * exponentially long; __cxa_demangle would build all of it), and it is linked into the tool, so
 * results do not depend on which libstdc++ is installed.
 *
 * Licence: only the objects cp-demangle.o, rust-demangle.o and safe-ctype.o are taken from the
 * archive. cp-demangle.c and rust-demangle.c are under the GNU Library General Public License with
 * the exception, stated in both files, that permits linking their compiled form into combinations
 * with other programs without restriction from that use; safe-ctype.c is under the same licence
 * without the exception. */
#include "names/symbols/demangle.h"

#include <setjmp.h>
#include <string.h>

#include "base/text.h"
#include <libiberty/demangle.h>

/* Collects what a decoder writes. */
struct output {
    char *text;
    size_t size;
    size_t used;
    jmp_buf full;
};

/* A decoder cannot be told to stop, and what it still has to say may be exponentially long. It
 * holds no memory or lock while it runs (both decoders work on their stack only), so jumping out
 * of it is safe. */
static void append_part(const char *part, size_t length, void *opaque)
{
    struct output *output = opaque;
    size_t room = output->size - 1 - output->used;
    size_t taken = length < room ? length : room;

    memcpy(output->text + output->used, part, taken);
    output->used += taken;
    if (taken < length)
        longjmp(output->full, 1);
}

static void end_with_dots(char *text, size_t size)
{
    memcpy(text + size - 4, "...", 4);
}

static void copy_name(const char *name, char *text, size_t size)
{
    size_t length = strnlen(name, size);
    size_t taken = length < size ? length : size - 1;

    memcpy(text, name, taken);
    text[taken] = '\0';
    if (length == size)
        end_with_dots(text, size);
}

/* Rust first: a legacy Rust name is also a valid C++ name, only with its hash as last component.
 * The C++ decoder refuses names of more than 1024 bytes unless its own limit is lifted; the limit
 * on `name` stands in for it. */
static bool decode(const char *name, struct output *output)
{
    if (setjmp(output->full) != 0) {
        output->text[output->size - 1] = '\0';
        end_with_dots(output->text, output->size);
        return true;
    }
    bool decoded = rust_demangle_callback(name, DMGL_NO_OPTS, append_part, output) != 0;
    if (!decoded) {
        output->used = 0; /* of a name that turned out to be wrong half way */
        decoded = cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT,
                                             append_part, output) != 0;
    }
    output->text[output->used] = '\0';
    return decoded && output->used > 0;
}

bool gm_demangle(const char *name, char *text, size_t size)
{
    bool decoded = false;

    if (name[0] == '_' && strnlen(name, GM_DEMANGLE_INPUT_LIMIT + 1) <= GM_DEMANGLE_INPUT_LIMIT) {
        struct output output = {.text = text, .size = size};
        decoded = decode(name, &output);
    }
    if (!decoded)
        copy_name(name, text, size);
    gm_clean_text(text);
    return decoded;
}
