/* See redact.h. */
#define XXH_INLINE_ALL
#include "names/stacks/redact.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/owner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SECRET_MIN 3u /* bytes: what is shorter than that tells nothing, and stands in many words */
#define SECRETS_MAX                                                                                \
    512u /* more than these a recorder does not write: three for each argument and variable */

struct gm_redaction {
    struct gm_text *secrets; /* of the trace */
    size_t secret_count, secret_capacity;
    struct gm_map known; /* string of the trace -> number of its name */
    struct gm_text *names;
    size_t name_count, name_capacity;
    char **texts; /* owned */
    size_t text_count, text_capacity;
};

static char *keep_redacted(struct gm_redaction *redaction, char *text)
{
    GM_RESERVE(redaction->texts, redaction->text_capacity, redaction->text_count + 1);
    return redaction->texts[redaction->text_count++] = text;
}

/* ---- what is secret -------------------------------------------------------------------------- */

static void add_secret(struct gm_redaction *redaction, struct gm_text text)
{
    if (text.size < SECRET_MIN || redaction->secret_count == SECRETS_MAX)
        return;
    GM_APPEND(redaction->secrets, redaction->secret_capacity, redaction->secret_count, text);
}

static struct gm_text behind(struct gm_text text, char mark)
{
    const char *found = memchr(text.bytes, mark, text.size);
    size_t skipped = found ? (size_t)(found - text.bytes) + 1 : text.size;
    return (struct gm_text){text.bytes + skipped, text.size - skipped};
}

/* The user in "/home/USER/..." or "/Users/USER/...". */
static void add_user(struct gm_redaction *redaction, struct gm_text path)
{
    static const char *const homes[] = {"/home/", "/Users/"};
    for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
        const char *found = memmem(path.bytes, path.size, homes[i], strlen(homes[i]));
        if (!found)
            continue;
        const char *user = found + strlen(homes[i]);
        size_t left = path.size - (size_t)(user - path.bytes);
        const char *end = memchr(user, '/', left);
        add_secret(redaction, (struct gm_text){user, end ? (size_t)(end - user) : left});
    }
}

/* Each of some texts with a NUL behind them, as arguments and variables are: all of it, or what stands behind
 * its first "=" as well. */
static void add_list(struct gm_redaction *redaction, struct gm_text list, bool values_alone)
{
    while (list.size) {
        struct gm_text one = gm_trace_field(list.bytes, list.size);
        size_t step = one.size < list.size ? one.size + 1 : one.size;
        if (!values_alone)
            add_secret(redaction, one);
        add_secret(redaction, behind(one, '='));
        add_secret(redaction, gm_base_name(one));
        add_user(redaction, one);
        list = (struct gm_text){list.bytes + step, list.size - step};
    }
}

GM_ORDER(longest_first, struct gm_text, GM_DOWN(size))

struct gm_redaction *gm_redaction_new(const struct gm_trace *trace)
{
    struct gm_redaction *redaction = gm_allocate(1, sizeof(*redaction));
    const struct gm_trace_header *header = &trace->header;
    size_t size = header->command_line_size;
    if (size > sizeof(header->command_line))
        size = sizeof(header->command_line);
    add_list(redaction, (struct gm_text){header->command_line, size}, false);
    add_list(redaction, trace->environment, true);
    add_secret(redaction, gm_trace_field(header->host, sizeof(header->host)));
    add_user(redaction, gm_trace_field(header->executable, sizeof(header->executable)));
    if (redaction->secret_count)
        qsort(redaction->secrets, redaction->secret_count, sizeof(*redaction->secrets),
              longest_first);
    return redaction;
}

void gm_redaction_free(struct gm_redaction *redaction)
{
    if (!redaction)
        return;
    for (size_t i = 0; i < redaction->text_count; i++)
        free(redaction->texts[i]);
    free(redaction->texts);
    free(redaction->names);
    gm_map_free(&redaction->known);
    free(redaction->secrets);
    free(redaction);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The ending of a base name, with its dot, if it is one of many files; "" otherwise. */
static const char *redacted_ending(const char *base)
{
    static const char *const endings[] = {".py", ".pyx", ".ipynb", ".c",   ".cc",  ".cpp", ".cxx",
                                          ".cu", ".cuh", ".h",     ".hpp", ".hh",  ".rs",  ".f90",
                                          ".jl", ".go",  ".inl",   ".tcc", ".txx", ".so"};
    const char *dot = strrchr(base, '.');
    for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(dot, endings[i]) == 0)
            return dot;
    return "";
}

static const char *redacted_number(struct gm_redaction *redaction, const char *path, size_t size,
                                   const char *ending)
{
    char *text = gm_allocate(32, 1);
    snprintf(text, 32, "%08x%s", (unsigned)XXH64(path, size, 0), ending);
    return keep_redacted(redaction, text);
}

/* Whether the system or the toolkit put it there. */
static bool is_of_system(const char *path)
{
    static const char *const folders[] = {"/usr/include/", "/usr/lib/",    "/usr/lib64/",
                                          "/lib/",         "/lib64/",      "/usr/local/cuda/",
                                          "/opt/cuda/",    "/usr/libexec/"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

/* "torch/nn/modules/linear.py", of a file of a known package; NULL of any other. */
static const char *path_in_package(const char *path)
{
    const struct gm_known_library *package = gm_known_package((struct gm_text){path, strlen(path)});
    for (const char *at = package ? strstr(path, "-packages/") : NULL; at;
         at = strstr(at + 1, "-packages/")) {
        const char *inside = at + strlen("-packages/");
        size_t size = strlen(package->file);
        if (strncmp(inside, package->file, size) == 0 && inside[size] == '/')
            return inside;
    }
    return NULL;
}

const char *gm_redact_file(struct gm_redaction *redaction, const char *path)
{
    static const char *const kept[] = {"<string>", "<stdin>"};
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *inside = path_in_package(path);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strcmp(path, kept[i]) == 0)
            return path;
    if (inside)
        return inside;
    if (strncmp(path, "<frozen ", 8) == 0)
        return "<frozen>";
    if (is_of_system(path) || gm_framework_package((struct gm_text){path, strlen(path)}))
        return base;
    return redacted_number(redaction, path, strlen(path), redacted_ending(base));
}

const char *gm_redact_module(struct gm_redaction *redaction, struct gm_text path)
{
    struct gm_text base = gm_base_name(path);
    const struct gm_known_library *known = gm_known_library(path);
    char *clean = keep_redacted(redaction, gm_clean_copy(path));
    const char *slash = strrchr(clean, '/');
    if (base.size == 0)
        return "";
    if (clean[0] == '[' || is_of_system(clean) || (known && gm_known_package(path)))
        return slash ? slash + 1 : clean;
    if (known) {
        char *text = gm_allocate(strlen(known->file) + 4, 1);
        snprintf(text, strlen(known->file) + 4, "%s.so", known->file);
        return keep_redacted(redaction, text);
    }
    bool is_library = memmem(base.bytes, base.size, ".so", 3) != NULL;
    return is_library ? redacted_number(redaction, base.bytes, base.size, ".so") : "program";
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_of_word(char byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z');
}

/* The secret that begins at `at` and is no part of a longer word; NULL: none. */
static const struct gm_text *secret_at(const struct gm_redaction *redaction, struct gm_text name,
                                       size_t at)
{
    if (at && is_of_word(name.bytes[at - 1]) && is_of_word(name.bytes[at]))
        return NULL;
    for (size_t i = 0; i < redaction->secret_count; i++) {
        const struct gm_text *secret = &redaction->secrets[i];
        size_t end = at + secret->size;
        if (end <= name.size && memcmp(name.bytes + at, secret->bytes, secret->size) == 0 &&
            (end == name.size || !is_of_word(name.bytes[end]) || !is_of_word(name.bytes[end - 1])))
            return secret;
    }
    return NULL;
}

static struct gm_text redact_name(struct gm_redaction *redaction, struct gm_text name)
{
    size_t size = 0, at = 0;
    while (at < name.size && !secret_at(redaction, name, at))
        at++;
    if (at == name.size)
        return name;
    char *text = keep_redacted(redaction, gm_allocate(name.size, 1));
    for (at = 0; at < name.size;) {
        const struct gm_text *secret = secret_at(redaction, name, at);
        text[size++] = secret ? '*' : name.bytes[at];
        at += secret ? secret->size : 1;
    }
    return (struct gm_text){text, size};
}

struct gm_text gm_shown_name(const struct gm_trace *trace, uint64_t string)
{
    struct gm_redaction *redaction = trace->redaction;
    if (!redaction)
        return gm_trace_string(trace, string);
    uint32_t known = gm_map_get(&redaction->known, string);
    if (known == GM_NONE) {
        known = (uint32_t)redaction->name_count;
        GM_APPEND(redaction->names, redaction->name_capacity, redaction->name_count,
                  redact_name(redaction, gm_trace_string(trace, string)));
        gm_map_set(&redaction->known, string, known);
    }
    return redaction->names[known];
}
