/*
 * The context that is current on the calling thread, and the device of each context: what a record
 * takes from them. The hooks of the calls that make and choose contexts (hooks/context.c) keep this
 * up to date; "unknown" (context 0, device -1) is a legal answer.
 */
#ifndef GPUMEM_PRELOAD_RECORD_CURRENT_H
#define GPUMEM_PRELOAD_RECORD_CURRENT_H

#include "base/platform.h"

#define GM_DEVICES_MAX 64 /* more are counted, and "unknown" */

/* Whether what belongs to a device is followed. One that is beyond the limit is counted. */
bool gm_device_is_followed(int device);

/* The calling thread's stack of current contexts, as cuCtxPush/Pop/SetCurrent have it. */
#define GM_CONTEXT_STACK 32u
struct gm_context_self {
    uint16_t number[GM_CONTEXT_STACK];
    uint32_t depth;
    int runtime_device; /* device + 1 of the last cudaSetDevice; 0: none */
    uint64_t seen;      /* the driver's last answer; seen_number is our number for it */
    uint32_t seen_ends; /* gm_context_ends then */
    uint16_t seen_number;
};
extern _Thread_local struct gm_context_self gm_context_self
    __attribute__((tls_model("initial-exec")));

/* Number of the calling thread's current context, 0 unknown or none. */
static inline uint16_t gm_context_current(void)
{
    uint32_t depth = gm_context_self.depth;
    if (gm_likely(depth - 1 < GM_CONTEXT_STACK))
        return gm_context_self.number[depth - 1];
    return depth ? GM_CONTEXT_UNTOLD : 0;
}

struct gm_context {
    _Atomic int device; /* device + 1; 0: unknown */
    _Atomic int uses;   /* cuCtxAttach beyond the first */
};

/*
 * Number n stands at [n]; 0 is "unknown", the last one GM_CONTEXT_UNTOLD. Numbers are not used
 * again: a record that comes late, of another thread, would be taken for one of the new context.
 * The kernel backs only the pages in use.
 */
#define GM_CONTEXTS_MAX GM_CONTEXT_UNTOLD
extern struct gm_context gm_contexts[GM_CONTEXTS_MAX + 1];

/* -1 unknown. */
static inline int gm_context_device(uint16_t number)
{
    return atomic_load_explicit(&gm_contexts[number].device, memory_order_relaxed) - 1;
}

static inline void gm_context_set_device(uint16_t number, int device)
{
    if (number && number < GM_CONTEXTS_MAX)
        atomic_store_explicit(&gm_contexts[number].device, device + 1, memory_order_relaxed);
}

/* The device where there is no context that would tell it. */
int gm_context_device_without(uint16_t api);

/* Device for an allocation of the calling thread inside a call of `api`, -1 unknown. */
static inline int gm_context_current_device(uint16_t api)
{
    const int device = gm_context_device(gm_context_current());
    return gm_likely(device >= 0) ? device : gm_context_device_without(api);
}

/* In a child: it has none of its parent's contexts. `given`: numbers below that were given. */
void gm_current_forget(uint32_t given);

#endif
