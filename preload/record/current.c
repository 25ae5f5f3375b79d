/* See current.h. */
#include "record/current.h"
#include "base/api.h"
#include "base/count.h"

struct gm_context gm_contexts[GM_CONTEXTS_MAX + 1];
_Thread_local struct gm_context_self gm_context_self __attribute__((tls_model("initial-exec")));

bool gm_device_is_followed(int device)
{
    if (device < GM_DEVICES_MAX)
        return device >= 0;
    gm_count(GM_COUNT_DEVICE_LIMIT, 1);
    return false;
}

int gm_context_device_without(uint16_t api)
{
    if (gm_context_self.runtime_device)
        return gm_context_self.runtime_device - 1;
    /* The runtime's device until it is told another. */
    return gm_api[api].layer == GM_LAYER_RUNTIME ? 0 : -1;
}

void gm_current_forget(uint32_t given)
{
    for (uint32_t number = 1; number < given; number++)
        atomic_store_explicit(&gm_contexts[number].uses, 0, memory_order_relaxed);
    gm_context_self = (struct gm_context_self){0};
}
