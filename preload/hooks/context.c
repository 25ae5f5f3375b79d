/*
 * Contexts, and the device an allocation is on, followed by the calls that make, choose and end
 * contexts. No CUDA call is made to find out. "Unknown" (context 0, device -1) is a legal answer
 * everywhere: the program may have chosen its context before we were there, or on a road we do not
 * see. What the driver tells the program about them is believed over what was followed.
 */
#include "base/count.h"
#include "base/handles.h"
#include "hooks/driver_kind.h"
#include "hooks/effects.h"
#include "sources/nvml.h"

_Atomic uint32_t gm_context_ends;
static _Atomic uint32_t next_number = 1;
GM_HANDLES(numbers, 4096);                       /* CUcontext -> number */
static _Atomic uint64_t primary[GM_DEVICES_MAX]; /* CUcontext, or its STAND_IN */
GM_HANDLES(green_contexts, 256);                 /* CUgreenCtx -> device + 1 */
GM_HANDLES(converted, 256);                      /* CUgreenCtx -> its CUcontext */

/* Of a primary context of which the driver has told no handle. No handle has this bit: they are user-space addresses. */
#define STAND_IN (1ull << 62)

#define self gm_context_self

static uint16_t context_number(uint64_t context)
{
    return (uint16_t)gm_handles_get(&numbers, context);
}

static void record_context(struct gm_call *call, uint64_t context, uint16_t number, int device,
                           uint8_t flags)
{
    struct gm_record record = {.type = GM_EVENT_CONTEXT,
                               .address = context,
                               .context = number,
                               .device = (int8_t)device,
                               .flags = flags};
    gm_call_record(call, &record, NULL);
    const int error = errno;
    gm_driver_kind_note(); /* by now it is loaded */
    errno = error;
    gm_nvml_context(device);
}

static uint16_t new_number(uint64_t context, int device)
{
    uint32_t number = atomic_load_explicit(&next_number, memory_order_relaxed);
    do {
        if (number >= GM_CONTEXTS_MAX)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&next_number, &number, number + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    gm_context_set_device((uint16_t)number, device);
    return gm_handles_add(&numbers, context, number) == number ? (uint16_t)number : 0;
}

/* All numbers are given, or the handle could not be noted. The handle keeps this one while it can
 * be noted, so that the context is counted once. */
static uint16_t untold(uint64_t context)
{
    gm_handles_add(&numbers, context, GM_CONTEXT_UNTOLD);
    gm_count(GM_COUNT_CONTEXT_LIMIT, 1);
    return GM_CONTEXT_UNTOLD;
}

uint16_t gm_context_number(struct gm_call *call, uint64_t context, int device, uint8_t flags)
{
    uint16_t number = context_number(context);
    if (!context)
        return 0;
    if (!number) {
        number = new_number(context, device);
        if (!number) {
            number = context_number(context); /* another thread was first */
            return number ? number : untold(context);
        }
    } else if (device < 0 || number == GM_CONTEXT_UNTOLD || gm_context_device(number) == device) {
        return number;
    }
    gm_context_set_device(number, device);
    record_context(call, context, number, device, flags);
    return number;
}

/* ---- the stack of current contexts; what does not fit is untold ------------------------------ */

static void set_top(uint16_t number)
{
    if (self.depth - 1 < GM_CONTEXT_STACK)
        self.number[self.depth - 1] = number;
}

static void push_context(uint16_t number)
{
    self.depth++;
    if (self.depth > GM_CONTEXT_STACK)
        gm_count(GM_COUNT_CONTEXT_DEPTH, 1);
    set_top(number);
}

static void pop_context(void)
{
    self.depth -= self.depth > 0;
}

void gm_driver_context_set(struct gm_call *call, int result, CUcontext context)
{
    if (result != 0)
        return;
    pop_context();
    if (context)
        push_context(gm_context_number(call, GM_WORD(context), -1, 0));
}

void gm_driver_context_push(struct gm_call *call, int result, CUcontext context)
{
    if (result == 0 && context)
        push_context(gm_context_number(call, GM_WORD(context), -1, 0));
}

void gm_driver_context_pop(struct gm_call *call, int result)
{
    (void)call;
    if (result == 0)
        pop_context();
}

void gm_driver_context_seen(struct gm_call *call, int result, uint64_t context)
{
    if (result != 0)
        return;
    if (context && self.depth == 0)
        push_context(0);
    const uint32_t ends = atomic_load_explicit(&gm_context_ends, memory_order_relaxed);
    const uint16_t number = gm_context_number(call, context, -1, 0);
    set_top(number);
    self.seen = number ? context : 0;
    self.seen_number = number;
    self.seen_ends = ends;
}

/* context NULL: the current one. */
void gm_driver_context_device(struct gm_call *call, int result, uint64_t device, CUcontext context)
{
    uint16_t number = context ? context_number(GM_WORD(context)) : gm_context_current();
    (void)call;
    if (result == 0 && number && gm_context_device(number) < 0)
        gm_context_set_device(number, (int)device);
}

/* ---- contexts of the program's own ----------------------------------------------------------- */

void gm_driver_context_create(struct gm_call *call, int result, uint64_t context, int device)
{
    if (result == 0 && context)
        push_context(gm_context_number(call, context, device, 0));
}

static void begin_end(struct gm_call *call, struct gm_record *begun, enum gm_event type,
                      uint64_t context, uint16_t number, int device, uint8_t flags)
{
    *begun = (struct gm_record){.type = (uint8_t)type,
                                .address = context,
                                .context = number,
                                .device = (int8_t)device,
                                .flags = flags};
    gm_call_record(call, begun, NULL);
}

/* Its handle may be that of another thread's new context before the call returns. */
void gm_before_context_end(struct gm_call *call, struct gm_record *begun, CUcontext context)
{
    if (!gm_call_active(call))
        return;
    const uint16_t number = (uint16_t)gm_handles_take(&numbers, GM_WORD(context));
    atomic_fetch_add_explicit(&gm_context_ends, 1, memory_order_relaxed);
    begin_end(call, begun, GM_EVENT_CONTEXT_END, GM_WORD(context), number,
              gm_context_device(number), 0);
}

void gm_driver_context_gone(struct gm_call *call, int result, CUcontext context,
                            const struct gm_record *begun)
{
    const uint16_t number = begun->context;
    (void)call;
    if (result != 0 && number)
        gm_handles_set(&numbers, GM_WORD(context), number);
    /* Of the untold it is not known whether the current one is this. */
    if (result == 0 && number && number != GM_CONTEXT_UNTOLD && gm_context_current() == number)
        pop_context();
}

void gm_driver_context_attach(struct gm_call *call, int result, uint64_t context)
{
    uint16_t number = result == 0 ? gm_context_number(call, context, -1, 0) : 0;
    if (number && number != GM_CONTEXT_UNTOLD)
        atomic_fetch_add_explicit(&gm_contexts[number].uses, 1, memory_order_relaxed);
}

static bool is_last_use(CUcontext context)
{
    return atomic_load_explicit(&gm_contexts[context_number(GM_WORD(context))].uses,
                                memory_order_relaxed) == 0;
}

void gm_before_context_detach(struct gm_call *call, struct gm_record *begun, CUcontext context)
{
    if (is_last_use(context))
        gm_before_context_end(call, begun, context);
}

void gm_driver_context_detached(struct gm_call *call, int result, CUcontext context,
                                const struct gm_record *begun)
{
    if (begun->type != GM_EVENT_NONE)
        gm_driver_context_gone(call, result, context, begun);
    else if (result == 0)
        atomic_fetch_sub_explicit(&gm_contexts[context_number(GM_WORD(context))].uses, 1,
                                  memory_order_relaxed);
}

/* ---- primary contexts ------------------------------------------------------------------------ */

static uint64_t primary_of(int device)
{
    return gm_device_is_followed(device)
               ? atomic_load_explicit(&primary[device], memory_order_relaxed)
               : 0;
}

void gm_driver_primary_retain(struct gm_call *call, int result, uint64_t context, int device)
{
    if (result != 0 || !context)
        return;
    const uint64_t before = primary_of(device);
    if (before & STAND_IN)
        gm_handles_add(&numbers, context, context_number(before));
    struct gm_record record = {
        .type = GM_EVENT_CONTEXT_RETAIN,
        .address = context,
        .context = gm_context_number(call, context, device, GM_FLAG_PRIMARY),
        .device = (int8_t)device,
        .flags = GM_FLAG_PRIMARY,
    };
    if (gm_device_is_followed(device))
        atomic_store_explicit(&primary[device], context, memory_order_relaxed);
    gm_call_record(call, &record, NULL);
}

/* Release and reset. The context keeps its number: the same handle is made alive again later. */
void gm_before_primary_end(struct gm_call *call, struct gm_record *begun, enum gm_event type,
                           int device)
{
    const uint64_t context = primary_of(device);
    if (gm_call_active(call))
        begin_end(call, begun, type, context, context_number(context), device, GM_FLAG_PRIMARY);
}

/* ---- green contexts: shares of a primary context --------------------------------------------- */

int gm_green_device(CUgreenCtx green)
{
    return (int)gm_handles_get(&green_contexts, GM_WORD(green)) - 1;
}

/* cuGreenCtxCreate: "This API will retain the primary context on device dev, which will is released when the green
 * context is destroyed." */
void gm_driver_green_create(struct gm_call *call, int result, uint64_t green, int device)
{
    if (result != 0 || !green || !gm_device_is_followed(device))
        return;
    const uint64_t context = primary_of(device);
    gm_handles_set(&green_contexts, green, (uint64_t)device + 1);
    gm_driver_primary_retain(call, 0, context ? context : STAND_IN | (unsigned)device, device);
}

/* "The converted context is a normal primary context but with the resources of the specified green context": another
 * name of it. */
void gm_driver_green_convert(struct gm_call *call, int result, uint64_t context, CUgreenCtx green)
{
    const uint64_t its = primary_of(gm_green_device(green));
    (void)call;
    if (result != 0 || !context || !its || context == its)
        return;
    gm_handles_set(&numbers, context, context_number(its));
    gm_handles_set(&converted, GM_WORD(green), context);
}

/* Both of its handles may soon be others'. */
void gm_before_green_destroy(struct gm_call *call, struct gm_record *begun, CUgreenCtx green)
{
    if (!gm_call_active(call) || gm_green_device(green) < 0)
        return;
    const int device = (int)gm_handles_take(&green_contexts, GM_WORD(green)) - 1;
    const uint64_t alias = gm_handles_take(&converted, GM_WORD(green));
    gm_handles_take(&numbers, alias);
    atomic_fetch_add_explicit(&gm_context_ends, 1, memory_order_relaxed);
    gm_before_primary_end(call, begun, GM_EVENT_CONTEXT_RELEASE, device);
    begun->aux = alias; /* for gm_driver_green_destroyed alone */
}

void gm_driver_green_destroyed(struct gm_call *call, int result, CUgreenCtx green,
                               const struct gm_record *begun)
{
    if (result == 0 || begun->type == GM_EVENT_NONE)
        return;
    gm_handles_set(&green_contexts, GM_WORD(green), (uint64_t)begun->device + 1);
    gm_driver_green_convert(call, 0, begun->aux, green);
}

/*
 * The runtime made the primary context of `device` current. Its driver calls have told us already,
 * unless it has ways that we do not see.
 */
void gm_runtime_set_device(struct gm_call *call, int result, int device)
{
    (void)call;
    if (result != 0)
        return;
    self.runtime_device = device + 1;
    uint16_t number = gm_context_current();
    if (number && gm_context_device(number) != device)
        set_top(context_number(primary_of(device)));
}

void gm_contexts_forget(void)
{
    gm_handles_clear(&numbers);
    gm_handles_clear(&green_contexts);
    gm_handles_clear(&converted);
    gm_current_forget(atomic_exchange_explicit(&next_number, 1, memory_order_relaxed));
    for (int device = 0; device < GM_DEVICES_MAX; device++)
        atomic_store_explicit(&primary[device], 0, memory_order_relaxed);
}
