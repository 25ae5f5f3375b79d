/*
 * Contexts, and the device an allocation is on, followed by the calls that make, choose and end
 * contexts. No CUDA call is made to find out. "Unknown" (context 0, device -1) is a legal answer
 * everywhere: the program may have chosen its context before we were there, or on a road we do not
 * see.
 *
 * Fixed tables in .bss; a full one answers "unknown".
 */
#include "api.h"
#include "effects.h"
#include "platform.h"
#include "tables.h"

#define CONTEXTS_MAX 4096u
#define POOLS_MAX 1024u
#define DEVICES_MAX 64

struct context {
    _Atomic(const void *) handle; /* NULL: ended */
    int device;
};

/* Number n stands at [n]; 0 is "unknown". Numbers are not used again: a handle can be, by a new
 * context. */
static struct context contexts[CONTEXTS_MAX];
static _Atomic uint32_t context_count = 1;
static _Atomic(const void *) primary[DEVICES_MAX];
static struct gm_lock lock;

static struct {
    _Atomic uint64_t handle;
    _Atomic int device;
} pools[POOLS_MAX];

_Thread_local struct gm_context_self gm_context_self __attribute__((tls_model("initial-exec")));
#define self gm_context_self

static uint16_t find(const void *handle)
{
    for (uint32_t i = atomic_load_explicit(&context_count, memory_order_acquire); i-- > 1;)
        if (atomic_load_explicit(&contexts[i].handle, memory_order_relaxed) == handle)
            return (uint16_t)i;
    return 0;
}

/* Number of `handle`, given at first sight, when a CONTEXT record tells the reader of it. */
static uint16_t number_of(struct gm_call *call, const void *handle, int device, uint8_t flags)
{
    if (!handle)
        return 0;
    uint16_t number = find(handle);
    if (number)
        return number;
    gm_lock_take(&lock);
    number = find(handle);
    uint32_t next = atomic_load_explicit(&context_count, memory_order_relaxed);
    bool is_new = !number && next < CONTEXTS_MAX;
    if (is_new) {
        contexts[next].device = device;
        atomic_store_explicit(&contexts[next].handle, handle, memory_order_relaxed);
        atomic_store_explicit(&context_count, next + 1, memory_order_release);
        number = (uint16_t)next;
    }
    gm_lock_release(&lock);
    if (is_new) {
        struct gm_record record = {.type = GM_EVENT_CONTEXT,
                                   .address = GM_WORD(handle),
                                   .context = number,
                                   .device = (int8_t)device,
                                   .flags = flags};
        gm_call_record(call, &record, NULL);
    }
    return number;
}

int gm_context_current_device(uint16_t api)
{
    uint16_t number = gm_context_current();
    if (number)
        return contexts[number].device;
    if (self.runtime_device)
        return self.runtime_device - 1;
    return gm_api[api].layer == GM_LAYER_RUNTIME
               ? 0
               : -1; /* the runtime's device until it is told another */
}

static void push(uint16_t number)
{
    self.number[self.depth++ % GM_CONTEXT_STACK] = number;
}

static void pop(void)
{
    self.depth -= self.depth > 0;
}

void gm_driver_context_create(struct gm_call *call, int result, uint64_t context, int device)
{
    if (result == 0 && context)
        push(number_of(call, (const void *)context, device, 0));
}

void gm_before_context_end(struct gm_call *call, struct gm_record *begun, CUcontext context)
{
    uint16_t number = find(context);
    gm_effect_end(call, begun, GM_EVENT_CONTEXT_END, GM_WORD(context), 0, number,
                  contexts[number].device);
}

void gm_driver_context_gone(struct gm_call *call, int result, CUcontext context)
{
    (void)call;
    uint16_t number = find(context);
    if (result != 0 || !number)
        return;
    atomic_store_explicit(&contexts[number].handle, NULL, memory_order_relaxed);
    if (gm_context_current() == number)
        pop();
}

void gm_driver_primary_retain(struct gm_call *call, int result, uint64_t context, int device)
{
    if (result != 0 || !context)
        return;
    uint16_t number = number_of(call, (const void *)context, device, GM_FLAG_PRIMARY);
    if (device >= 0 && device < DEVICES_MAX)
        atomic_store_explicit(&primary[device], (const void *)context, memory_order_relaxed);
    struct gm_record record = {.type = GM_EVENT_CONTEXT_RETAIN,
                               .address = context,
                               .context = number,
                               .device = (int8_t)device,
                               .flags = GM_FLAG_PRIMARY};
    gm_call_record(call, &record, NULL);
}

/* Release and reset: the context keeps its number, since the same handle is made alive again later.
 */
void gm_before_primary_end(struct gm_call *call, struct gm_record *begun, enum gm_event type,
                           int device)
{
    const void *handle = device >= 0 && device < DEVICES_MAX
                             ? atomic_load_explicit(&primary[device], memory_order_relaxed)
                             : NULL;
    if (!gm_call_active(call))
        return;
    *begun = (struct gm_record){.type = (uint8_t)type,
                                .address = GM_WORD(handle),
                                .context = handle ? find(handle) : 0,
                                .device = (int8_t)device,
                                .flags = GM_FLAG_PRIMARY};
    gm_call_record(call, begun, NULL);
}

void gm_driver_context_current(struct gm_call *call, int result, CUcontext context)
{
    if (result != 0)
        return;
    pop();
    if (context)
        push(number_of(call, context, -1, 0));
}

void gm_driver_context_push(struct gm_call *call, int result, CUcontext context)
{
    if (result == 0 && context)
        push(number_of(call, context, -1, 0));
}

void gm_driver_context_pop(struct gm_call *call, int result)
{
    (void)call;
    if (result == 0)
        pop();
}

void gm_runtime_set_device(struct gm_call *call, int result, int device)
{
    (void)call;
    if (result == 0)
        self.runtime_device = device + 1;
}

/* ---- devices and pools
 * -------------------------------------------------------------------------------- */

/* One record per device and fact: programs ask again and again. */
static bool first_time(_Atomic uint64_t *told, int device)
{
    if (device < 0 || device >= DEVICES_MAX)
        return false;
    uint64_t bit = 1ull << device;
    return !(atomic_fetch_or_explicit(told, bit, memory_order_relaxed) & bit);
}

void gm_driver_device_memory(struct gm_call *call, int result, int device, uint64_t bytes)
{
    static _Atomic uint64_t told;
    struct gm_record record = {.type = GM_EVENT_DEVICE, .size = bytes, .device = (int8_t)device};
    if (result == 0 && bytes && first_time(&told, device))
        gm_call_record(call, &record, NULL);
}

void gm_driver_device_name(struct gm_call *call, int result, int device, const char *name, int size)
{
    static _Atomic uint64_t told;
    if (result != 0 || !name || size <= 0 || !first_time(&told, device))
        return;
    size_t length = 0;
    while (length < (size_t)size && name[length])
        length++;
    struct gm_record record = {
        .type = GM_EVENT_DEVICE, .aux = gm_string_intern(name, length), .device = (int8_t)device};
    gm_call_record(call, &record, NULL);
}

int gm_pool_device(uint64_t pool)
{
    for (uint32_t i = 0; pool && i < POOLS_MAX; i++) {
        uint64_t handle = atomic_load_explicit(&pools[i].handle, memory_order_acquire);
        if (handle == pool)
            return atomic_load_explicit(&pools[i].device, memory_order_relaxed);
        if (!handle)
            break;
    }
    return -1;
}

void gm_pool_note(uint64_t pool, int device)
{
    for (uint32_t i = 0; i < POOLS_MAX; i++) {
        uint64_t none = 0;
        if (atomic_load_explicit(&pools[i].handle, memory_order_acquire) == pool ||
            atomic_compare_exchange_strong(&pools[i].handle, &none, pool)) {
            atomic_store_explicit(&pools[i].device, device, memory_order_relaxed);
            return;
        }
    }
}
