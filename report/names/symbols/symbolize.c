/* The symbolizer's front: keeps modules, answers and texts. The contract is in symbolize.h.
 *
 * Raw texts are looked up by content, so that a name is demangled and stored once, however many
 * addresses have it. */
#include "names/symbols/symbolize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "names/symbols/demangle.h"
#include "names/symbols/symbolize_module.h"

/* Bytes of a raw name that are looked at; two names that agree in so many are shown alike. One
 * more than is decoded, so that a name that is too long still is too long. */
enum { RAW_TEXT_SIZE = GM_DEMANGLE_INPUT_LIMIT + 2 };

enum text_kind { TEXT_FUNCTION, TEXT_FILE };

struct text {
    char *raw;
    char *shown;
    enum text_kind kind;
    uint32_t next; /* of those with the same hash; GM_NONE: the last one */
};

/* The frames of an answer are `count` ones from `first` in the symbolizer's array. */
struct answer {
    size_t first;
    size_t count;
};

struct known_module {
    uint64_t hash;
    char *path;
    uint8_t *build_id;
    size_t build_id_size;
    struct gm_symbol_module *module;
    struct gm_map answers; /* address -> answer */
};

struct gm_symbolizer {
    struct gm_symbolizer_options options; /* their strings are its own */
    struct known_module *modules;
    size_t module_count, module_capacity;
    struct text *texts;
    size_t text_count, text_capacity;
    struct gm_map by_hash; /* hash of a raw text -> the text that came last */
    struct answer *answers;
    size_t answer_count, answer_capacity;
    struct gm_source_frame *frames;
    size_t frame_count, frame_capacity;
};

static const char unknown_function[] = "??";

/* ---- texts ----------------------------------------------------------------------------------- */

static char *make_shown(const char *raw, enum text_kind kind)
{
    char shown[GM_DEMANGLE_OUTPUT_SIZE];

    if (kind == TEXT_FUNCTION) {
        gm_demangle(raw, shown, sizeof(shown));
    } else {
        snprintf(shown, sizeof(shown), "%s", raw);
        gm_clean_text(shown);
    }
    return gm_copy_text(shown);
}

/* Returns what is shown for `raw`, which is not empty and shorter than RAW_TEXT_SIZE. */
static const char *shown_text(struct gm_symbolizer *symbolizer, const char *raw,
                              enum text_kind kind)
{
    uint64_t hash = XXH3_64bits_withSeed(raw, strlen(raw), (uint64_t)kind);
    uint32_t newest = gm_map_get(&symbolizer->by_hash, hash);

    for (uint32_t at = newest; at != GM_NONE; at = symbolizer->texts[at].next) {
        const struct text *text = &symbolizer->texts[at];
        if (text->kind == kind && strcmp(text->raw, raw) == 0)
            return text->shown;
    }
    struct text fresh = {gm_copy_text(raw), make_shown(raw, kind), kind, newest};
    gm_map_set(&symbolizer->by_hash, hash, (uint32_t)symbolizer->text_count);
    GM_APPEND(symbolizer->texts, symbolizer->text_capacity, symbolizer->text_count, fresh);
    return fresh.shown;
}

/* Whether `text`, which begins with a dot, begins a suffix that compilers give to copies and parts
 * of a function. */
static bool is_clone_suffix(const char *text)
{
    static const char *const suffixes[] = {".cold",       ".part.",     ".isra.",
                                           ".constprop.", ".lto_priv.", ".llvm."};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (strncmp(text, suffixes[i], strlen(suffixes[i])) == 0)
            return true;
    }
    return false;
}

/* A symbol's version ("malloc@@GLIBC_2.2.5") and clone suffix ("f.part.0.cold") are not part of
 * the function's name: debug info does not have them, and reports compare names. */
static void cut_symbol_suffixes(char *name)
{
    char *version = strchr(name + 1, '@');

    if (version != NULL)
        *version = '\0';
    for (char *dot = strchr(name + 1, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        if (is_clone_suffix(dot)) {
            *dot = '\0';
            return;
        }
    }
}

static const char *function_text(struct gm_symbolizer *symbolizer, const struct gm_raw_frame *raw)
{
    char name[RAW_TEXT_SIZE];

    if (raw->name == NULL || raw->name[0] == '\0')
        return unknown_function;
    size_t length = strnlen(raw->name, sizeof(name) - 1);
    memcpy(name, raw->name, length);
    name[length] = '\0';
    if (raw->name_source == GM_NAME_FROM_SYMBOL)
        cut_symbol_suffixes(name);
    return shown_text(symbolizer, name, TEXT_FUNCTION);
}

/* Takes "/./", "//" and "name/../" out of a path, in place. A compiler that ran in a build folder
 * writes "../src/file.c"; what readers know is the file's own path, and two spellings of one file
 * would be two places. The kernel would resolve a symbolic link before "..": the text may then name
 * another file, as nothing is looked up on disk here. */
static void shorten_path(char *path)
{
    bool absolute = path[0] == '/';
    char *out = path + absolute;

    for (char *at = path + absolute; *at != '\0';) {
        size_t length = strcspn(at, "/");
        char *next = at + length + (at[length] == '/');
        char *last = out; /* the component that was written before this one */
        while (last > path + absolute && last[-1] == '/')
            last--;
        char *last_end = last;
        while (last > path + absolute && last[-1] != '/')
            last--;
        bool has_parent = last < last_end && !(last_end - last == 2 && memcmp(last, "..", 2) == 0);

        if (length == 2 && memcmp(at, "..", 2) == 0 && (has_parent || absolute)) {
            out = last;
        } else if (length > 0 && !(length == 1 && at[0] == '.')) {
            memmove(out, at, (size_t)(next - at));
            out += next - at;
        }
        at = next;
    }
    *out = '\0';
}

static const char *file_text(struct gm_symbolizer *symbolizer, const struct gm_raw_frame *raw)
{
    char path[GM_DEMANGLE_OUTPUT_SIZE];

    if (raw->file == NULL || raw->file[0] == '\0')
        return NULL;
    bool joined = raw->file[0] != '/' && raw->directory != NULL && raw->directory[0] != '\0';
    if (snprintf(path, sizeof(path), "%s%s%s", joined ? raw->directory : "", joined ? "/" : "",
                 raw->file) < 0)
        return NULL;
    shorten_path(path);
    return shown_text(symbolizer, path, TEXT_FILE);
}

/* ---- modules --------------------------------------------------------------------------------- */

static uint64_t hash_reference(const struct gm_module_reference *reference)
{
    const char *path = reference->path == NULL ? "" : reference->path;

    return XXH3_64bits_withSeed(reference->build_id, reference->build_id_size,
                                XXH3_64bits(path, strlen(path)));
}

static bool is_known_as(const struct known_module *known,
                        const struct gm_module_reference *reference)
{
    const char *path = reference->path == NULL ? "" : reference->path;

    return known->build_id_size == reference->build_id_size && strcmp(known->path, path) == 0 &&
           (known->build_id_size == 0 ||
            memcmp(known->build_id, reference->build_id, known->build_id_size) == 0);
}

static struct known_module *learn_module(struct gm_symbolizer *symbolizer, uint64_t hash,
                                         const struct gm_module_reference *reference)
{
    struct known_module fresh = {.hash = hash,
                                 .path =
                                     gm_copy_text(reference->path == NULL ? "" : reference->path),
                                 .build_id = gm_allocate(reference->build_id_size, 1),
                                 .build_id_size = reference->build_id_size,
                                 .module = gm_symbol_module_open(reference, &symbolizer->options)};

    if (fresh.build_id_size > 0)
        memcpy(fresh.build_id, reference->build_id, fresh.build_id_size);
    GM_APPEND(symbolizer->modules, symbolizer->module_capacity, symbolizer->module_count, fresh);
    return &symbolizer->modules[symbolizer->module_count - 1];
}

/* A process has some hundreds of modules: a scan of their hashes is quick enough. */
static struct known_module *find_module(struct gm_symbolizer *symbolizer,
                                        const struct gm_module_reference *reference)
{
    uint64_t hash = hash_reference(reference);

    for (size_t i = 0; i < symbolizer->module_count; i++) {
        struct known_module *known = &symbolizer->modules[i];
        if (known->hash == hash && is_known_as(known, reference))
            return known;
    }
    return learn_module(symbolizer, hash, reference);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Asks the module and stores what it says behind the frames that are already there. */
static struct answer ask_module(struct gm_symbolizer *symbolizer, struct gm_symbol_module *module,
                                uint64_t address)
{
    struct gm_raw_frame raw[GM_FRAMES_AT_ONE_ADDRESS];
    size_t first = symbolizer->frame_count, count = gm_symbol_module_find(module, address, raw);

    if (count == 0)
        raw[count++] = (struct gm_raw_frame){0};
    for (size_t i = 0; i < count; i++) {
        struct gm_source_frame frame = {.function = function_text(symbolizer, &raw[i]),
                                        .file = file_text(symbolizer, &raw[i]),
                                        .line = raw[i].line,
                                        .inlined = raw[i].inlined};
        GM_APPEND(symbolizer->frames, symbolizer->frame_capacity, symbolizer->frame_count, frame);
    }
    return (struct answer){first, count};
}

static const struct answer *find_answer(struct gm_symbolizer *symbolizer,
                                        struct known_module *known, uint64_t address)
{
    uint32_t number = gm_map_get(&known->answers, address);

    if (number == GM_NONE) {
        struct answer fresh = ask_module(symbolizer, known->module, address);
        number = (uint32_t)symbolizer->answer_count;
        GM_APPEND(symbolizer->answers, symbolizer->answer_capacity, symbolizer->answer_count,
                  fresh);
        gm_map_set(&known->answers, address, number);
    }
    return &symbolizer->answers[number];
}

/* ---- public ---------------------------------------------------------------------------------- */

static const char *copy_option(const char *text)
{
    return text == NULL ? NULL : gm_copy_text(text);
}

struct gm_symbolizer *gm_symbolizer_new(const struct gm_symbolizer_options *options)
{
    struct gm_symbolizer *symbolizer = gm_allocate(1, sizeof(*symbolizer));

    if (options != NULL)
        symbolizer->options = *options;
    symbolizer->options.sysroot = copy_option(symbolizer->options.sysroot);
    symbolizer->options.cache_folder = copy_option(symbolizer->options.cache_folder);
    if (symbolizer->options.debuginfod)
        setenv("DEBUGINFOD_TIMEOUT", "30", 0); /* seconds without progress; a user's value stays */
    else
        unsetenv("DEBUGINFOD_URLS");
    return symbolizer;
}

void gm_symbolizer_free(struct gm_symbolizer *symbolizer)
{
    if (symbolizer == NULL)
        return;
    for (size_t i = 0; i < symbolizer->module_count; i++) {
        gm_map_free(&symbolizer->modules[i].answers);
        gm_symbol_module_free(symbolizer->modules[i].module);
        free(symbolizer->modules[i].path);
        free(symbolizer->modules[i].build_id);
    }
    for (size_t i = 0; i < symbolizer->text_count; i++) {
        free(symbolizer->texts[i].raw);
        free(symbolizer->texts[i].shown);
    }
    gm_map_free(&symbolizer->by_hash);
    free(symbolizer->modules);
    free(symbolizer->texts);
    free(symbolizer->answers);
    free(symbolizer->frames);
    free((char *)symbolizer->options.sysroot);
    free((char *)symbolizer->options.cache_folder);
    free(symbolizer);
}

size_t gm_symbolize(struct gm_symbolizer *symbolizer, const struct gm_module_reference *module,
                    uint64_t address, struct gm_source_frame *frames, size_t max)
{
    const struct answer *answer = find_answer(symbolizer, find_module(symbolizer, module), address);
    size_t count = answer->count < max ? answer->count : max;

    memcpy(frames, symbolizer->frames + answer->first, count * sizeof(*frames));
    return count;
}

struct gm_symbol_outcome gm_symbolizer_outcome(struct gm_symbolizer *symbolizer,
                                               const struct gm_module_reference *module)
{
    return gm_symbol_module_outcome(find_module(symbolizer, module)->module);
}

const char *gm_symbol_status_text(enum gm_symbol_status status)
{
    switch (status) {
    case GM_SYMBOLS_FULL:
        return "symbols and lines";
    case GM_SYMBOLS_FUNCTIONS_ONLY:
        return "no debug info, function names only";
    case GM_SYMBOLS_COMPRESSION:
        return "debug info compressed with an unsupported method";
    case GM_SYMBOLS_NONE:
        return "no symbols";
    case GM_SYMBOLS_UNREADABLE:
        return "not a readable program or library";
    case GM_SYMBOLS_TOO_MUCH:
        return "debug info unpacks to too much";
    case GM_SYMBOLS_MODULE_CHANGED:
        return "changed since the recording";
    case GM_SYMBOLS_MODULE_MISSING:
        return "file missing";
    }
    return "unknown";
}
