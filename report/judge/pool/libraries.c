/* See libraries.h. */
#include "judge/pool/libraries.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "input/trace/same_stacks.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/owner.h"
#include "names/stacks/redact.h"
#include "replay/ledger/counters.h"
#include <stdlib.h>
#include <string.h>

#define UNKNOWN "unknown"

/* What is known of one module of the trace. */
struct module {
    bool looked_at;
    bool passed_over;
    unsigned traits;
    const char *name; /* of the owner */
};

struct gm_libraries {
    const struct gm_trace *trace;
    struct module *modules; /* [number] */
    struct gm_map by_stack; /* stack and whether it is host memory -> answer */
    struct gm_library *answers;
    size_t answer_count;
    size_t answer_capacity;
    char **texts; /* owned names */
    size_t text_count;
    size_t text_capacity;
};

struct gm_libraries *gm_libraries_new(const struct gm_trace *trace)
{
    struct gm_libraries *libraries = gm_allocate(1, sizeof(*libraries));
    libraries->trace = trace;
    libraries->modules = gm_allocate(UINT16_MAX + 1, sizeof(*libraries->modules));
    return libraries;
}

void gm_libraries_free(struct gm_libraries *libraries)
{
    for (size_t i = 0; i < libraries->text_count; i++)
        free(libraries->texts[i]);
    free(libraries->texts);
    free(libraries->answers);
    free(libraries->modules);
    gm_map_free(&libraries->by_stack);
    free(libraries);
}

/* ---- whose a stack is ------------------------------------------------------------------------ */

static const char *keep_library(struct gm_libraries *libraries, char *text)
{
    GM_RESERVE(libraries->texts, libraries->text_capacity, libraries->text_count + 1);
    return libraries->texts[libraries->text_count++] = text;
}

/* Shared libraries have ".so" in their names; what has not is a program. */
static bool is_program(struct gm_text base)
{
    return memmem(base.bytes, base.size, ".so", 3) == NULL;
}

static const char *shown_library(struct gm_libraries *libraries, struct gm_text path)
{
    struct gm_redaction *redaction = libraries->trace->redaction;
    return redaction ? gm_redact_module(redaction, path)
                     : keep_library(libraries, gm_clean_copy(gm_base_name(path)));
}

static const struct module *module_of(struct gm_libraries *libraries, uint16_t number)
{
    struct module *module = &libraries->modules[number];
    if (module->looked_at)
        return module;
    const struct gm_module *entry = gm_trace_module(libraries->trace, number);
    struct gm_text path = gm_trace_string(libraries->trace, entry ? entry->path : 0);
    struct gm_text base = gm_base_name(path);
    const struct gm_known_library *known = gm_known_library(path);
    module->looked_at = true;
    module->traits = known ? known->traits : 0;
    module->passed_over =
        base.size == 0 || gm_is_interpreter(path) ||
        (module->traits & (GM_LIBRARY_ROAD | GM_LIBRARY_ALLOCATOR | GM_LIBRARY_SYSTEM)) != 0;
    if (known)
        module->name = known->name;
    else if (!module->passed_over)
        module->name = is_program(base) ? GM_APPLICATION : shown_library(libraries, path);
    return module;
}

static const char *script_owner(const struct gm_trace *trace, uint64_t index)
{
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, index);
    if (frame && frame->language == GM_LANGUAGE_NATIVE)
        return NULL;
    const struct gm_known_library *package =
        gm_known_package(gm_trace_string(trace, frame ? frame->file : 0));
    if (!package)
        return GM_APPLICATION;
    return package->traits & (GM_LIBRARY_SYSTEM | GM_LIBRARY_ALLOCATOR) ? NULL : package->name;
}

static struct gm_library find_owner(struct gm_libraries *libraries, bool host, uint32_t stack)
{
    unsigned cache = host ? GM_LIBRARY_HOST_CACHE : GM_LIBRARY_DEVICE_CACHE;
    struct gm_library found = {.name = NULL};
    const char *allocator = NULL;
    bool inside = true; /* nothing but roads so far: who is next made the call */
    for (uint32_t id = stack; id && !found.name && gm_limits_spend(GM_STEPS_NODE);) {
        const struct gm_node *node = gm_trace_node(libraries->trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            break;
        if (node->kind == GM_NODE_SCRIPT) {
            found.name = script_owner(libraries->trace, node->address);
        } else {
            const struct module *module = module_of(libraries, node->module);
            if (inside && module->traits & cache)
                found.pool = module->name;
            if (!allocator && module->traits & GM_LIBRARY_ALLOCATOR)
                allocator = module->name;
            if (!module->passed_over)
                found.name = module->name;
            inside &= (module->traits & GM_LIBRARY_ROAD) != 0;
        }
        id = node->parent < id ? node->parent : 0;
    }
    if (!found.name)
        found.name = allocator ? allocator : UNKNOWN;
    return found;
}

struct gm_library gm_libraries_of(struct gm_libraries *libraries, unsigned kind, uint32_t stack)
{
    bool host = gm_kind_is_host(kind);
    uint64_t key = stack | (uint64_t)host << 32;
    uint32_t known = gm_map_get(&libraries->by_stack, key);
    if (known == GM_NONE) {
        known = (uint32_t)libraries->answer_count;
        GM_APPEND(libraries->answers, libraries->answer_capacity, libraries->answer_count,
                  find_owner(libraries, host, stack));
        gm_map_set(&libraries->by_stack, key, known);
    }
    return libraries->answers[known];
}

struct gm_library gm_libraries_of_site(struct gm_libraries *libraries, const struct gm_site *site)
{
    struct gm_library owner = gm_libraries_of(libraries, site->kind, site->stack);
    if (gm_trace_api_is_pooled(libraries->trace, site->api))
        owner.pool = NULL;
    owner.bytes = site->bytes;
    owner.count = site->count;
    return owner;
}
