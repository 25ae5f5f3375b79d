/* See owner.h. */
#include "names/stacks/owner.h"
#include "base/limit.h"
#include "base/map.h"
#include "base/memory.h"
#include "names/stacks/known_libraries.h"
#include "replay/ledger/counters.h"
#include <stdlib.h>
#include <string.h>

struct gm_owners {
    const struct gm_trace *trace;
    struct gm_map known;     /* stack -> enum gm_owner */
    struct gm_map of_module; /* module -> traits of its library */
};

static unsigned traits_of(struct gm_text path)
{
    const struct gm_known_library *library = gm_known_library(path);
    return library ? library->traits : 0;
}

bool gm_is_road(struct gm_text path)
{
    return (traits_of(path) & GM_LIBRARY_ROAD) != 0;
}

bool gm_is_recorder(struct gm_text path)
{
    const struct gm_known_library *library = gm_known_library(path);
    return library && strcmp(library->file, "libgpumem") == 0;
}

/* Python's own modules: in its library folder, but not where packages are installed; or frozen. What a
 * dry run adds to the interpreter (sim/dry/python/) counts as the interpreter's. */
static bool is_standard_library(struct gm_text path)
{
    static const char frozen[] = "<frozen ";
    if (path.size >= strlen(frozen) && memcmp(path.bytes, frozen, strlen(frozen)) == 0)
        return true;
    if (gm_text_contains(path, "/dry-run/python/"))
        return true;
    return gm_text_contains(path, "/lib/python3.") && !gm_text_contains(path, "/site-packages/") &&
           !gm_text_contains(path, "/dist-packages/");
}

const char *gm_framework_package(struct gm_text path)
{
    const struct gm_known_library *package = gm_known_package(path);
    if (!package && is_standard_library(path))
        return "python";
    if (!package && gm_is_generated(path))
        return "generated";
    return package ? package->file : NULL;
}

bool gm_is_framework(struct gm_text path)
{
    const struct gm_known_library *library = gm_known_library(path);
    return library && !(library->traits & GM_LIBRARY_ROAD);
}

struct gm_owners *gm_owners_new(const struct gm_trace *trace)
{
    struct gm_owners *owners = gm_allocate(1, sizeof(*owners));
    owners->trace = trace;
    return owners;
}

void gm_owners_free(struct gm_owners *owners)
{
    gm_map_free(&owners->known);
    gm_map_free(&owners->of_module);
    free(owners);
}

static unsigned traits_of_module(struct gm_owners *owners, uint16_t number)
{
    uint32_t known = gm_map_get(&owners->of_module, number);
    if (known == GM_NONE) {
        const struct gm_module *module = gm_trace_module(owners->trace, number);
        known = traits_of(gm_trace_string(owners->trace, module ? module->path : 0));
        gm_map_set(&owners->of_module, number, known);
    }
    return known;
}

static unsigned owner_of(struct gm_owners *owners, uint32_t stack)
{
    for (uint32_t id = stack; id && gm_limits_spend(GM_STEPS_NODE);) {
        const struct gm_node *node = gm_trace_node(owners->trace, id);
        if (!node || node->kind > GM_NODE_LEAF)
            return 0;
        unsigned traits = traits_of_module(owners, node->module);
        if (!(traits & GM_LIBRARY_ROAD))
            return (traits & GM_LIBRARY_VENDOR ? GM_OWNER_VENDOR : 0u) |
                   (traits & GM_LIBRARY_DEVICE_CACHE ? GM_OWNER_DEVICE_CACHE : 0u) |
                   (traits & GM_LIBRARY_HOST_CACHE ? GM_OWNER_HOST_CACHE : 0u);
        id = node->parent < id ? node->parent : 0;
    }
    return 0;
}

unsigned gm_owners_get(struct gm_owners *owners, uint32_t stack)
{
    uint32_t known = gm_map_get(&owners->known, stack);
    if (known == GM_NONE) {
        known = owner_of(owners, stack);
        gm_map_set(&owners->known, stack, known);
    }
    return known;
}

bool gm_owners_cache(struct gm_owners *owners, unsigned kind, uint32_t stack)
{
    unsigned wanted = gm_kind_is_host(kind) ? GM_OWNER_HOST_CACHE : GM_OWNER_DEVICE_CACHE;
    return (gm_owners_get(owners, stack) & wanted) != 0;
}
