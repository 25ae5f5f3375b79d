/* See stacks.h. */
#include "names/stacks/stacks.h"
#include "base/each.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/short_name.h"
#include "base/text.h"
#include "input/trace/same_stacks.h"
#include "names/cache/folder.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/owner.h"
#include "names/stacks/redact.h"
#include "names/symbols/symbolize.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_MAX 64 /* source frames at one address */

/* What is known of one module of the trace. */
struct module {
    char *path; /* clean, as it is shown and looked for */
    const char *base;
    uint8_t build_id[32];
    size_t build_id_size;
    bool is_road;
    bool is_recorder; /* of libgpumem */
    bool is_interpreter;
    bool is_framework;
};

/* The frames of one node, and what decides whether they are shown. */
struct place {
    struct gm_frame *frames;
    size_t count;
    bool is_road;
    bool is_recorder;
    bool is_interpreter;
};

struct gm_stacks {
    const struct gm_trace *trace;
    struct gm_stacks_options options;
    struct gm_symbolizer *symbolizer;
    struct module **modules; /* [number]; NULL: not looked at yet */
    size_t module_count;
    struct place *places;
    size_t place_count;
    size_t place_capacity;
    struct gm_map by_node; /* node id -> place */
    struct gm_stack *stacks;
    size_t stack_count;
    size_t stack_capacity;
    struct gm_map by_stack; /* stack id and API -> stack */
    char **texts;           /* owned strings */
    size_t text_count;
    size_t text_capacity;
};

/* Keeps a string for as long as the stacks live. */
static char *keep_name(struct gm_stacks *stacks, char *text)
{
    GM_RESERVE(stacks->texts, stacks->text_capacity, stacks->text_count + 1);
    return stacks->texts[stacks->text_count++] = text;
}

/* GPUMEM_SYMBOL_CACHE: a folder; if it is empty, answers are not kept. */
static bool find_cache_folder(char path[PATH_MAX])
{
    const char *named = getenv("GPUMEM_SYMBOL_CACHE");
    if (!named)
        return gm_cache_folder("symbols", path);
    int length = snprintf(path, PATH_MAX, "%s", named);
    return length > 0 && length < PATH_MAX;
}

struct gm_stacks *gm_stacks_new(const struct gm_trace *trace,
                                const struct gm_stacks_options *options)
{
    struct gm_stacks *stacks = gm_allocate(1, sizeof(*stacks));
    char cache_folder[PATH_MAX];
    struct gm_symbolizer_options symbols = {
        GM_SAME(options, debuginfod, sysroot, no_local_files),
        .cache_folder = find_cache_folder(cache_folder) ? cache_folder : NULL};
    stacks->trace = trace;
    stacks->options = *options;
    stacks->symbolizer = options->names ? gm_symbolizer_new(&symbols) : NULL;
    stacks->module_count = UINT16_MAX + 1;
    stacks->modules = gm_allocate(stacks->module_count, sizeof(struct module *));
    return stacks;
}

void gm_stacks_free(struct gm_stacks *stacks)
{
    if (!stacks)
        return;
    for (size_t i = 0; i < stacks->place_count; i++)
        free(stacks->places[i].frames);
    for (size_t i = 0; i < stacks->stack_count; i++)
        free(stacks->stacks[i].frames);
    for (size_t i = 0; i < stacks->text_count; i++)
        free(stacks->texts[i]);
    for (size_t i = 0; i < stacks->module_count; i++)
        free(stacks->modules[i]);
    free(stacks->places);
    free(stacks->stacks);
    free(stacks->texts);
    free(stacks->modules);
    gm_map_free(&stacks->by_node);
    gm_map_free(&stacks->by_stack);
    if (stacks->symbolizer)
        gm_symbolizer_free(stacks->symbolizer);
    free(stacks);
}

/* ---- modules --------------------------------------------------------------------------------- */

static struct module *module_of(struct gm_stacks *stacks, uint16_t number)
{
    if (stacks->modules[number])
        return stacks->modules[number];
    struct module *module = gm_allocate(1, sizeof(*module));
    const struct gm_module *entry = gm_trace_module(stacks->trace, number);
    struct gm_text path = gm_trace_string(stacks->trace, entry ? entry->path : 0);
    module->path = keep_name(stacks, gm_clean_copy(path));
    const char *slash = strrchr(module->path, '/');
    module->base = slash ? slash + 1 : module->path;
    module->is_road = gm_is_road(path);
    module->is_recorder = gm_is_recorder(path);
    module->is_interpreter = gm_is_interpreter(path);
    module->is_framework = module->is_interpreter || module->is_road || gm_is_framework(path);
    if (stacks->trace->redaction)
        module->base = gm_redact_module(stacks->trace->redaction, path);
    if (entry && entry->build_id_size <= sizeof(entry->build_id)) {
        module->build_id_size = entry->build_id_size;
        memcpy(module->build_id, entry->build_id, entry->build_id_size);
    }
    return stacks->modules[number] = module;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool text_starts_with(struct gm_text text, const char *start)
{
    size_t size = strlen(start);
    return text.size >= size && memcmp(text.bytes, start, size) == 0;
}

/* What is known of a native frame by its name alone: the interpreter is written in C, what it calls for PyTorch in
 * C++; and a frame may be of those who record. */
static void judge_named(struct gm_text function, struct place *place)
{
    static const char *const roads[] = {"torch::unwind::", "torch::CapturedTraceback::",
                                        "torch::cuda::(anonymous namespace)::gather",
                                        "c10::cuda::CUDACachingAllocator::"};
    for (size_t i = 0; i < sizeof(roads) / sizeof(roads[0]); i++)
        place->is_road |= text_starts_with(function, roads[i]);
    place->is_interpreter = !memmem(function.bytes, function.size, "::", 2);
}

/* "In [5]", or "train (In [5])", for a function of "<ipython-input-5-8d0a2f3f1c77>", a notebook's cell. */
static const char *frame_name(struct gm_stacks *stacks, struct gm_text file,
                              struct gm_text function)
{
    static const char start[] = "<ipython-input-";
    size_t at = strlen(start), digits = 0;
    char *name = function.size ? gm_clean_copy(function) : gm_copy_text("<unknown>");
    if (file.size > at && memcmp(file.bytes, start, at) == 0)
        while (at + digits < file.size && digits < 9 && file.bytes[at + digits] >= '0' &&
               file.bytes[at + digits] <= '9')
            digits++;
    if (!digits)
        return keep_name(stacks, name);
    size_t size = strlen(name) + digits + 16;
    char *with_cell = gm_allocate(size, 1);
    bool is_cell = gm_name_starts_with(name, "<module>") || gm_name_starts_with(name, "<cell line");
    snprintf(with_cell, size, is_cell ? "%sIn [%.*s]" : "%s (In [%.*s])", is_cell ? "" : name,
             (int)digits, file.bytes + at);
    free(name);
    return keep_name(stacks, with_cell);
}

/* The package that a file of Python is of; NULL: it is the program's. */
static const char *package_of_file(struct gm_stacks *stacks, struct gm_text file)
{
    const char *known = gm_framework_package(file);
    struct gm_text package = gm_installed_package(file);
    if (known || !package.size)
        return known;
    return stacks->trace->redaction ? "package" : keep_name(stacks, gm_clean_copy(package));
}

/* A source file as it is shown. `path`: clean, or NULL. */
static const char *shown_file(const struct gm_stacks *stacks, const char *path)
{
    struct gm_redaction *redaction = stacks->trace->redaction;
    return path && redaction ? gm_redact_file(redaction, path) : path;
}

static void script_place(struct gm_stacks *stacks, const struct gm_node *node, struct place *place)
{
    const struct gm_script_frame *frame = gm_trace_script_frame(stacks->trace, node->address);
    struct gm_text function = gm_trace_string(stacks->trace, frame ? frame->function : 0);
    struct gm_text file = gm_trace_string(stacks->trace, frame ? frame->file : 0);
    bool native = frame && frame->language == GM_LANGUAGE_NATIVE;
    place->count = 1;
    place->frames = gm_allocate(1, sizeof(*place->frames));
    if (native)
        judge_named(function, place);
    place->frames[0] = (struct gm_frame){
        .function = frame_name(stacks, file, function),
        .file = file.size ? shown_file(stacks, keep_name(stacks, gm_clean_copy(file))) : NULL,
        .line = frame ? frame->line : 0,
        .module = native ? "" : NULL,
        .framework = native ? "native" : package_of_file(stacks, file),
        .script = !native,
    };
}

/* "libfoo.so+0x1234": a place without a name. */
static const char *offset_name(struct gm_stacks *stacks, const struct module *module,
                               uint64_t address)
{
    size_t size = strlen(module->base) + 32;
    char *text = keep_name(stacks, gm_allocate(size, 1));
    if (module->base[0] && !address)
        snprintf(text, size, "%s", module->base);
    else if (module->base[0])
        snprintf(text, size, "%s+0x%" PRIx64, module->base, address);
    else
        snprintf(text, size, "0x%" PRIx64, address);
    return text;
}

/* "changed since the recording": what is wrong with a module's file, if it is that. */
static const char *trouble_with(struct gm_stacks *stacks,
                                const struct gm_module_reference *reference)
{
    enum gm_symbol_status status = gm_symbolizer_outcome(stacks->symbolizer, reference).status;
    return status >= GM_SYMBOLS_UNREADABLE ? gm_symbol_status_text(status) : NULL;
}

static void native_place(struct gm_stacks *stacks, const struct gm_node *node, struct place *place)
{
    struct module *module = module_of(stacks, node->module);
    struct gm_source_frame found[INLINE_MAX];
    struct gm_module_reference reference = {module->path, module->build_id, module->build_id_size};
    /* A module that is no file has no path but a name. */
    bool is_symbolized = stacks->symbolizer && (module->path[0] == '/' || module->path[0] == '[');
    size_t count = 0;
    if (is_symbolized) {
        /* A return address stands behind the call: the byte before it belongs to the call. */
        uint64_t address = node->address - (node->kind == GM_NODE_NATIVE);
        count = gm_symbolize(stacks->symbolizer, &reference, address, found, INLINE_MAX);
    }
    GM_COPY_MEMBERS(place, module, is_road, is_recorder, is_interpreter);
    place->count = count ? count : 1;
    place->frames = gm_allocate(place->count, sizeof(*place->frames));
    for (size_t i = 0; i < count; i++)
        place->frames[i] = (struct gm_frame){.function = found[i].function,
                                             .file = shown_file(stacks, found[i].file),
                                             .line = found[i].line,
                                             .module = module->base,
                                             .inlined = found[i].inlined};
    for (size_t i = 0; i < place->count; i++)
        place->frames[i].framework = module->is_framework ? module->base
                                     : i < count ? gm_known_header(found[i].file, found[i].function)
                                                 : NULL;
    struct gm_frame *outermost = &place->frames[place->count - 1];
    if (!count || strcmp(outermost->function, "??") == 0) {
        outermost->function = offset_name(stacks, module, node->address);
        outermost->module = module->base;
        outermost->trouble = is_symbolized ? trouble_with(stacks, &reference) : NULL;
    }
}

/* Place of a node. Nodes of one address under different parents share what the symbolizer keeps. */
static const struct place *place_of_node(struct gm_stacks *stacks, uint32_t id,
                                         const struct gm_node *node)
{
    uint32_t known = gm_map_get(&stacks->by_node, id);
    if (known == GM_NONE) {
        struct place place = {0};
        if (node->kind == GM_NODE_SCRIPT)
            script_place(stacks, node, &place);
        else
            native_place(stacks, node, &place);
        known = (uint32_t)stacks->place_count;
        GM_APPEND(stacks->places, stacks->place_capacity, stacks->place_count, place);
        gm_map_set(&stacks->by_node, id, known);
    }
    return &stacks->places[known];
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Code of the runtime library linked into the program, or the API function itself. */
static bool is_runtime_function(const struct gm_frame *frame, const char *api)
{
    return !frame->script && (gm_name_starts_with(frame->function, "cudart::") ||
                              gm_name_starts_with(frame->function, "libcudart_static_") ||
                              gm_name_starts_with(frame->function, "__cudart") ||
                              (api[0] && strcmp(frame->function, api) == 0));
}

/* What every thread begins with. */
static bool is_start_function(const struct gm_frame *frame)
{
    static const char *const names[] = {"_start",
                                        "__libc_start_main",
                                        "__libc_start_main_impl",
                                        "__libc_start_call_main",
                                        "clone",
                                        "clone3",
                                        "__clone",
                                        "__clone3",
                                        "start_thread",
                                        "__GI___clone3"};
    if (frame->script)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(frame->function, names[i]) == 0)
            return true;
    return frame->module && gm_name_starts_with(frame->module, "libc.so") && frame->line == 0;
}

/* All frames, and for each whether it is on the road to CUDA or the interpreter's own. */
struct walk {
    struct gm_frame *frames;
    bool *is_road;
    bool *is_interpreter;
    size_t count;
    size_t frame_capacity, road_capacity, interpreter_capacity;
    bool cut;
    bool has_script;
};

/* The recorder keeps at most 512 nodes of a stack; each may be some inlined functions. */
#define FRAMES_MAX 4096u

static void walk_frames(struct gm_stacks *stacks, uint32_t id, struct walk *walk)
{
    while (id) {
        const struct gm_node *node = gm_trace_node(stacks->trace, id);
        if (walk->count >= FRAMES_MAX || !gm_limits_take_frame()) {
            walk->cut = true;
            break;
        }
        if (!node || node->kind >= GM_NODE_CUT) {
            walk->cut = true;
            break;
        }
        const struct place *place = place_of_node(stacks, id, node);
        id = node->parent < id ? node->parent : 0; /* parents come first: this always ends */
        if (place->is_recorder && walk->count)
            continue; /* it stands before a function that is not CUDA's */
        walk->has_script |= place->frames[0].script;
        GM_RESERVE(walk->frames, walk->frame_capacity, walk->count + place->count);
        GM_RESERVE(walk->is_road, walk->road_capacity, walk->count + place->count);
        GM_RESERVE(walk->is_interpreter, walk->interpreter_capacity, walk->count + place->count);
        for (size_t i = 0; i < place->count; i++, walk->count++) {
            walk->frames[walk->count] = place->frames[i];
            walk->is_road[walk->count] = place->is_road;
            walk->is_interpreter[walk->count] = place->is_interpreter;
        }
    }
}

/* A stack of autograd's thread, which has nothing of the program, is shown as called from the line that
 * started the backward pass. */
static void walk_stack(struct gm_stacks *stacks, uint32_t id, struct walk *walk)
{
    uint32_t lender = gm_same_stacks_lender(stacks->trace->same_stacks, id);
    walk_frames(stacks, id, walk);
    if (!lender || walk->cut)
        return;
    while (walk->count > 1 && is_start_function(&walk->frames[walk->count - 1]))
        walk->count--;
    walk_frames(stacks, lender, walk);
}

/* Leaves out what only says how every call gets to CUDA and how every program starts, unless
 * nothing else would be left. */
static void trim_stack(struct walk *walk, const char *api)
{
    size_t first = 0, last = walk->count, kept = 0;
    while (first < last && (walk->is_road[first] || is_runtime_function(&walk->frames[first], api)))
        first++;
    if (first == last)
        return;
    while (!walk->cut && last > first + 1 && is_start_function(&walk->frames[last - 1]))
        last--;
    for (size_t i = first; i < last; i++)
        if (!(walk->has_script && walk->is_interpreter[i]))
            walk->frames[kept++] = walk->frames[i];
    walk->count = kept;
}

static struct gm_text file_of(const struct gm_frame *frame)
{
    return (struct gm_text){frame->file ? frame->file : "", frame->file ? strlen(frame->file) : 0};
}

/* Whether a frame is of a package that is installed and not known by name. */
static bool is_of_package(const struct gm_frame *frame)
{
    return frame->script && frame->framework && gm_installed_package(file_of(frame)).size &&
           !gm_framework_package(file_of(frame));
}

/* A program that is a package itself, with no frame of its own but what an installer wrote to start it:
 * the frames of the package that stands outermost are the program's. As callers.c has it. */
static void adopt_package(struct walk *walk)
{
    const struct gm_frame *outermost = NULL;
    size_t users = walk->count;
    for (size_t i = 0; i < walk->count && users == walk->count; i++) {
        if (walk->frames[i].script && !walk->frames[i].framework)
            users = i;
        else if (is_of_package(&walk->frames[i]))
            outermost = &walk->frames[i];
    }
    if (!outermost ||
        (users < walk->count && !gm_is_launcher(file_of(&walk->frames[users]), file_of(outermost))))
        return;
    const char *package = outermost->framework;
    for (size_t i = 0; i < walk->count; i++)
        if (is_of_package(&walk->frames[i]) && strcmp(walk->frames[i].framework, package) == 0)
            walk->frames[i].framework = NULL;
}

const struct gm_stack *gm_stacks_get(struct gm_stacks *stacks, uint32_t id, uint16_t api)
{
    uint64_t key = id | (uint64_t)api << 32;
    uint32_t known = gm_map_get(&stacks->by_stack, key);
    if (known == GM_NONE) {
        struct walk all = {0};
        walk_stack(stacks, id, &all);
        if (!stacks->options.all_frames)
            trim_stack(&all, gm_trace_api(stacks->trace, api));
        adopt_package(&all);
        known = (uint32_t)stacks->stack_count;
        GM_APPEND(stacks->stacks, stacks->stack_capacity, stacks->stack_count,
                  (struct gm_stack){all.frames, all.count, all.cut});
        gm_map_set(&stacks->by_stack, key, known);
        free(all.is_road);
        free(all.is_interpreter);
    }
    return &stacks->stacks[known];
}

/* What a node adds to an outline; 0: nothing, because a reader may not be shown it. */
static uint64_t outline_of(struct gm_stacks *stacks, const struct gm_node *node)
{
    if (node->kind == GM_NODE_SCRIPT) {
        const struct gm_script_frame *frame = gm_trace_script_frame(stacks->trace, node->address);
        return frame ? UINT64_C(1) << 63 | (frame->function * UINT64_C(31) ^ frame->file) : 1;
    }
    const struct module *module = module_of(stacks, node->module);
    return module->is_road || module->is_interpreter ? 0 : UINT64_C(1) << 62 | node->module;
}

uint64_t gm_stacks_outline(struct gm_stacks *stacks, uint32_t id)
{
    uint64_t outline = 0, last = 0;
    uint32_t lender = gm_same_stacks_lender(stacks->trace->same_stacks, id);
    for (unsigned count = 0; id && count < FRAMES_MAX; count++) {
        const struct gm_node *node = gm_trace_node(stacks->trace, id);
        if (!node || node->kind >= GM_NODE_CUT)
            break;
        uint64_t part = outline_of(stacks, node);
        if (part && part != last)
            outline = (outline ^ part) * UINT64_C(0x9e3779b97f4a7c15) ^ outline >> 29;
        last = part ? part : last;
        id = node->parent < id ? node->parent : 0;
        if (!id) {
            id = lender;
            lender = 0;
        }
    }
    return outline;
}
