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

#include "base/text.h"
#include "names/symbols/demangle.h"
#include "names/symbols/symbolize_module.h"

/* Bytes of a raw name that are looked at; two names that agree in so many are shown alike. One
 * more than is decoded, so that a name that is too long still is too long. */
enum { RAW_TEXT_SIZE = GM_DEMANGLE_INPUT_LIMIT + 2 };

enum text_kind { TEXT_FUNCTION, TEXT_FILE };

struct text {
    uint64_t hash;
    char *raw;
    char *shown;
    enum text_kind kind;
};

/* The frames of an answer are `count` ones from `first` in the symbolizer's array. */
struct answer {
    struct gm_symbol_module *module; /* NULL: an empty slot */
    uint64_t address;
    size_t first;
    size_t count;
};

struct known_module {
    uint64_t hash;
    char *path;
    uint8_t *build_id;
    size_t build_id_size;
    struct gm_symbol_module *module;
};

/* Both hash tables are open addressing with a power of two of slots, at most half of them used. */
struct gm_symbolizer {
    struct gm_symbolizer_options options; /* their strings are its own */
    struct known_module *modules;
    size_t module_count, module_capacity;
    struct text *texts;
    size_t text_count, text_slots;
    struct answer *answers;
    size_t answer_count, answer_slots;
    struct gm_source_frame *frames;
    size_t frame_count, frame_capacity;
};

static const char unknown_function[] = "??";

/* ---- texts ----------------------------------------------------------------------------------- */

static bool grow_texts(struct gm_symbolizer *symbolizer)
{
    size_t slots = symbolizer->text_slots == 0 ? 256 : symbolizer->text_slots * 2;
    struct text *texts = calloc(slots, sizeof(*texts));

    if (texts == NULL)
        return false;
    for (size_t i = 0; i < symbolizer->text_slots; i++) {
        if (symbolizer->texts[i].raw == NULL)
            continue;
        size_t slot = symbolizer->texts[i].hash & (slots - 1);
        while (texts[slot].raw != NULL)
            slot = (slot + 1) & (slots - 1);
        texts[slot] = symbolizer->texts[i];
    }
    free(symbolizer->texts);
    symbolizer->texts = texts;
    symbolizer->text_slots = slots;
    return true;
}

static char *make_shown(const char *raw, enum text_kind kind)
{
    char shown[GM_DEMANGLE_OUTPUT_SIZE];

    if (kind == TEXT_FUNCTION) {
        gm_demangle(raw, shown, sizeof(shown));
    } else {
        snprintf(shown, sizeof(shown), "%s", raw);
        gm_clean_text(shown);
    }
    return strdup(shown);
}

/* Returns what is shown for `raw`, which is not empty and shorter than RAW_TEXT_SIZE; NULL if out
 * of memory. */
static const char *shown_text(struct gm_symbolizer *symbolizer, const char *raw,
                              enum text_kind kind)
{
    uint64_t hash = XXH3_64bits_withSeed(raw, strlen(raw), (uint64_t)kind);

    if (symbolizer->text_count * 2 >= symbolizer->text_slots && !grow_texts(symbolizer))
        return NULL;
    size_t slot = hash & (symbolizer->text_slots - 1);
    struct text *text = &symbolizer->texts[slot];
    while (text->raw != NULL) {
        if (text->hash == hash && text->kind == kind && strcmp(text->raw, raw) == 0)
            return text->shown;
        slot = (slot + 1) & (symbolizer->text_slots - 1);
        text = &symbolizer->texts[slot];
    }
    struct text fresh = {
        .hash = hash, .raw = strdup(raw), .shown = make_shown(raw, kind), .kind = kind};
    if (fresh.raw == NULL || fresh.shown == NULL) {
        free(fresh.raw);
        free(fresh.shown);
        return NULL;
    }
    *text = fresh;
    symbolizer->text_count++;
    return text->shown;
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
    const char *text = shown_text(symbolizer, name, TEXT_FUNCTION);
    return text == NULL ? unknown_function : text;
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

static struct gm_symbol_module *learn_module(struct gm_symbolizer *symbolizer, uint64_t hash,
                                             const struct gm_module_reference *reference)
{
    if (symbolizer->module_count == symbolizer->module_capacity) {
        size_t capacity = symbolizer->module_capacity == 0 ? 16 : symbolizer->module_capacity * 2;
        struct known_module *grown = realloc(symbolizer->modules, capacity * sizeof(*grown));
        if (grown == NULL)
            return NULL;
        symbolizer->modules = grown;
        symbolizer->module_capacity = capacity;
    }
    struct known_module fresh = {.hash = hash,
                                 .path = strdup(reference->path == NULL ? "" : reference->path),
                                 .build_id = malloc(reference->build_id_size + 1),
                                 .build_id_size = reference->build_id_size};
    if (fresh.path != NULL && fresh.build_id != NULL)
        fresh.module = gm_symbol_module_open(reference, &symbolizer->options);
    if (fresh.module == NULL) {
        free(fresh.path);
        free(fresh.build_id);
        return NULL;
    }
    if (fresh.build_id_size > 0)
        memcpy(fresh.build_id, reference->build_id, fresh.build_id_size);
    symbolizer->modules[symbolizer->module_count++] = fresh;
    return fresh.module;
}

/* A process has some hundreds of modules: a scan of their hashes is quick enough. */
static struct gm_symbol_module *find_module(struct gm_symbolizer *symbolizer,
                                            const struct gm_module_reference *reference)
{
    uint64_t hash = hash_reference(reference);

    for (size_t i = 0; i < symbolizer->module_count; i++) {
        const struct known_module *known = &symbolizer->modules[i];
        if (known->hash == hash && is_known_as(known, reference))
            return known->module;
    }
    return learn_module(symbolizer, hash, reference);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The slot of an answer, or the empty one where it belongs. */
static struct answer *answer_slot(struct answer *answers, size_t slots,
                                  const struct gm_symbol_module *module, uint64_t address)
{
    uint64_t key[2] = {(uint64_t)(uintptr_t)module, address};
    size_t slot = XXH3_64bits(key, sizeof(key)) & (slots - 1);

    while (answers[slot].module != NULL &&
           (answers[slot].module != module || answers[slot].address != address))
        slot = (slot + 1) & (slots - 1);
    return &answers[slot];
}

static bool grow_answers(struct gm_symbolizer *symbolizer)
{
    size_t slots = symbolizer->answer_slots == 0 ? 256 : symbolizer->answer_slots * 2;
    struct answer *answers = calloc(slots, sizeof(*answers));

    if (answers == NULL)
        return false;
    for (size_t i = 0; i < symbolizer->answer_slots; i++) {
        const struct answer *old = &symbolizer->answers[i];
        if (old->module != NULL)
            *answer_slot(answers, slots, old->module, old->address) = *old;
    }
    free(symbolizer->answers);
    symbolizer->answers = answers;
    symbolizer->answer_slots = slots;
    return true;
}

static bool reserve_frames(struct gm_symbolizer *symbolizer, size_t count)
{
    size_t capacity = symbolizer->frame_capacity == 0 ? 1024 : symbolizer->frame_capacity;

    while (capacity - symbolizer->frame_count < count)
        capacity *= 2;
    if (capacity == symbolizer->frame_capacity)
        return true;
    struct gm_source_frame *frames = realloc(symbolizer->frames, capacity * sizeof(*frames));
    if (frames == NULL)
        return false;
    symbolizer->frames = frames;
    symbolizer->frame_capacity = capacity;
    return true;
}

/* Asks the module and stores what it says behind the frames that are already there. */
static bool add_answer(struct gm_symbolizer *symbolizer, struct answer *answer)
{
    struct gm_raw_frame raw[GM_FRAMES_AT_ONE_ADDRESS];
    size_t count = gm_symbol_module_find(answer->module, answer->address, raw);

    if (count == 0)
        raw[count++] = (struct gm_raw_frame){0};
    if (!reserve_frames(symbolizer, count))
        return false;
    answer->first = symbolizer->frame_count;
    answer->count = count;
    for (size_t i = 0; i < count; i++) {
        symbolizer->frames[symbolizer->frame_count++] =
            (struct gm_source_frame){.function = function_text(symbolizer, &raw[i]),
                                     .file = file_text(symbolizer, &raw[i]),
                                     .line = raw[i].line,
                                     .inlined = raw[i].inlined};
    }
    return true;
}

/* Returns NULL if out of memory. */
static const struct answer *find_answer(struct gm_symbolizer *symbolizer,
                                        struct gm_symbol_module *module, uint64_t address)
{
    if (symbolizer->answer_count * 2 >= symbolizer->answer_slots && !grow_answers(symbolizer))
        return NULL;
    struct answer *slot =
        answer_slot(symbolizer->answers, symbolizer->answer_slots, module, address);
    if (slot->module == NULL) {
        struct answer fresh = {.module = module, .address = address};
        if (!add_answer(symbolizer, &fresh))
            return NULL;
        *slot = fresh;
        symbolizer->answer_count++;
    }
    return slot;
}

/* ---- public ---------------------------------------------------------------------------------- */

struct gm_symbolizer *gm_symbolizer_new(const struct gm_symbolizer_options *options)
{
    static const struct gm_symbolizer_options defaults = {0};
    struct gm_symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

    if (options == NULL)
        options = &defaults;
    if (symbolizer == NULL)
        return NULL;
    symbolizer->options = *options;
    symbolizer->options.sysroot = options->sysroot == NULL ? NULL : strdup(options->sysroot);
    symbolizer->options.cache_folder =
        options->cache_folder == NULL ? NULL : strdup(options->cache_folder);
    if (options->sysroot != NULL && symbolizer->options.sysroot == NULL) {
        gm_symbolizer_free(symbolizer);
        return NULL;
    }
    if (options->debuginfod)
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
        gm_symbol_module_free(symbolizer->modules[i].module);
        free(symbolizer->modules[i].path);
        free(symbolizer->modules[i].build_id);
    }
    for (size_t i = 0; i < symbolizer->text_slots; i++) {
        free(symbolizer->texts[i].raw);
        free(symbolizer->texts[i].shown);
    }
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
    struct gm_symbol_module *opened = find_module(symbolizer, module);
    const struct answer *answer = opened == NULL ? NULL : find_answer(symbolizer, opened, address);

    if (answer == NULL) {
        frames[0] = (struct gm_source_frame){.function = unknown_function};
        return 1;
    }
    size_t count = answer->count < max ? answer->count : max;
    memcpy(frames, symbolizer->frames + answer->first, count * sizeof(*frames));
    return count;
}

struct gm_symbol_outcome gm_symbolizer_outcome(struct gm_symbolizer *symbolizer,
                                               const struct gm_module_reference *module)
{
    const struct gm_symbol_module *opened = find_module(symbolizer, module);

    return opened == NULL ? (struct gm_symbol_outcome){.status = GM_SYMBOLS_UNREADABLE}
                          : gm_symbol_module_outcome(opened);
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
