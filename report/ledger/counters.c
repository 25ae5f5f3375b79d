/* See counters.h. */
#include "ledger/counters.h"

const char *gm_kind_name(unsigned kind)
{
    static const char *const names[GM_KINDS] = {
        [GM_KIND_NONE] = "unknown",
        [GM_KIND_DEVICE] = "device",
        [GM_KIND_MANAGED] = "managed",
        [GM_KIND_ARRAY] = "array",
        [GM_KIND_VMM] = "vmm",
        [GM_KIND_GRAPH] = "graph",
        [GM_KIND_EXTERNAL] = "external",
        [GM_KIND_PINNED] = "pinned",
        [GM_KIND_REGISTERED] = "registered",
        [GM_KIND_HOST_VMM] = "vmm",
    };
    return kind < GM_KINDS ? names[kind] : names[GM_KIND_NONE];
}
