/* What the recorder's core calls and its tests do not want: stacks, contexts, the hooks' memory. */
#include "base/api.h"
#include "hooks/effects.h"
#include "hooks/handles.h"
#include "interpose/real.h"
#include "interpose/roads.h"
#include "process/loader_work.h"
#include "sources/nvtx_names.h"
#include "stack/stack.h"

_Thread_local struct gm_context_self gm_context_self __attribute__((tls_model("initial-exec")));

const struct gm_api_entry gm_api[] = {{.symbol = ""}, {.symbol = "first"}, {.symbol = "second"}};
const uint16_t gm_api_count = 3;

uint16_t gm_api_find(const char *symbol)
{
    (void)symbol;
    return 0;
}

struct gm_api_rows gm_api_rows(const char *name, size_t length)
{
    (void)name, (void)length;
    return (struct gm_api_rows){NULL, 0};
}

bool gm_object_told(const struct dl_phdr_info *info, struct link_map *map, struct gm_object *object)
{
    (void)info, (void)map, (void)object;
    return false;
}

void gm_object_each_needed(const struct gm_object *object,
                           void (*visit)(const char *name, void *data), void *data)
{
    (void)object, (void)visit, (void)data;
}

struct gm_definitions gm_object_definitions(const char *symbol)
{
    return (struct gm_definitions){.symbol = symbol};
}

struct gm_context gm_contexts[GM_CONTEXTS_MAX + 1];

int gm_context_device_without(uint16_t api)
{
    (void)api;
    return -1;
}

void gm_effects_forget(void)
{
}

size_t gm_stack_size(void)
{
    return 64;
}

void gm_stack_reset(struct gm_stack *stack)
{
    (void)stack;
}

void (*fake_capture)(void);

_Thread_local uint32_t fake_stack;

/* The tests say which stack they want to read back, and may stop here: the record has its time. */
uint32_t gm_stack_capture(struct gm_stack *stack, void *frame)
{
    (void)stack;
    (void)frame;
    if (fake_capture)
        fake_capture();
    return fake_stack;
}

void gm_loader_ask_early(void)
{
}

void gm_loader_ask(void)
{
}

void gm_nvtx_names_forget(void)
{
}

void gm_handles_after_fork(void)
{
}

void gm_loader_thread_came(void)
{
}

void gm_loader_forget(void)
{
}

void gm_real_find_early(void)
{
}

bool gm_real_driver_defines(const char *symbol)
{
    (void)symbol;
    return false;
}

void gm_stack_prepare(void)
{
}

/* As if a call had been looked up: the tests' own process leaves no trace. */
bool gm_real_driver_reached(void)
{
    return true;
}
