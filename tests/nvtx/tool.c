/* Another NVTX tool: prints each call with its arguments on standard error, in their order, and
 * counts levels, numbers and handles as tools do. With TOOL_FAILS set it refuses. */
#include <nvtx3/nvToolsExt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int level;
static uintptr_t handle = 0x1000;
static uint64_t id = 70;

static void print_call(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

static void tell_event(const char *what, const void *domain, const nvtxEventAttributes_t *event)
{
    if (!event)
        print_call("%s %p nothing", what, domain);
    else if (event->size < sizeof(*event))
        print_call("%s %p short", what, domain);
    else if (event->messageType == NVTX_MESSAGE_TYPE_ASCII)
        print_call("%s %p %s", what, domain, event->message.ascii);
    else if (event->messageType == NVTX_MESSAGE_TYPE_UNICODE)
        print_call("%s %p wide %x", what, domain, (unsigned)event->message.unicode[1]);
    else
        print_call("%s %p registered %p", what, domain, (const void *)event->message.registered);
}

static void mark_ex(const nvtxEventAttributes_t *event)
{
    tell_event("mark", NULL, event);
}

static void domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    tell_event("mark", domain, event);
}

static void mark_a(const char *text)
{
    print_call("mark a %s", text);
}

static void mark_w(const wchar_t *text)
{
    print_call("mark w %x", (unsigned)text[0]);
}

static nvtxRangeId_t start_ex(const nvtxEventAttributes_t *event)
{
    tell_event("start", NULL, event);
    return id++;
}

static nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    tell_event("start", domain, event);
    return id++;
}

static nvtxRangeId_t start_a(const char *text)
{
    print_call("start a %s", text);
    return id++;
}

static nvtxRangeId_t start_w(const wchar_t *text)
{
    print_call("start w %x", (unsigned)text[0]);
    return id++;
}

static void end_range(nvtxRangeId_t range)
{
    print_call("end %llu", (unsigned long long)range);
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t range)
{
    print_call("end %p %llu", (void *)domain, (unsigned long long)range);
}

static int push_ex(const nvtxEventAttributes_t *event)
{
    tell_event("push", NULL, event);
    return level++;
}

static int domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    tell_event("push", domain, event);
    return 1000 + level++;
}

static int push_a(const char *text)
{
    print_call("push a %.20s", text ? text : "nothing");
    return level++;
}

static int push_w(const wchar_t *text)
{
    print_call("push w %x", (unsigned)text[1]);
    return level++;
}

static int pop(void)
{
    print_call("pop");
    return --level;
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    print_call("pop %p", (void *)domain);
    return 1000 + --level;
}

static nvtxStringHandle_t register_string_a(nvtxDomainHandle_t domain, const char *text)
{
    print_call("register %p %s", (void *)domain, text);
    return (nvtxStringHandle_t)handle++;
}

static nvtxStringHandle_t register_string_w(nvtxDomainHandle_t domain, const wchar_t *text)
{
    print_call("register %p wide %x", (void *)domain, (unsigned)text[0]);
    return (nvtxStringHandle_t)handle++;
}

static nvtxDomainHandle_t domain_create_a(const char *text)
{
    print_call("create %s", text);
    return (nvtxDomainHandle_t)handle++;
}

static nvtxDomainHandle_t domain_create_w(const wchar_t *text)
{
    print_call("create wide %x", (unsigned)text[1]);
    return (nvtxDomainHandle_t)handle++;
}

static void name_thread(uint32_t thread, const char *name)
{
    print_call("thread %u %s", thread, name);
}

static void set_function(NvtxFunctionTable table, unsigned number, NvtxFunctionPointer function)
{
    *table[number] = function;
}

#define SET_CORE(name, function)                                                                   \
    set_function(core, NVTX_CBID_CORE_##name, (NvtxFunctionPointer)(function))
#define SET_CORE2(name, function)                                                                  \
    set_function(core2, NVTX_CBID_CORE2_##name, (NvtxFunctionPointer)(function))

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core, core2;
    print_call("initialize");
    if (getenv("TOOL_FAILS") ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, NULL) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, NULL))
        return 0;
    SET_CORE(MarkEx, mark_ex);
    SET_CORE(MarkA, mark_a);
    SET_CORE(MarkW, mark_w);
    SET_CORE(RangeStartEx, start_ex);
    SET_CORE(RangeStartA, start_a);
    SET_CORE(RangeStartW, start_w);
    SET_CORE(RangeEnd, end_range);
    SET_CORE(RangePushEx, push_ex);
    SET_CORE(RangePushA, push_a);
    SET_CORE(RangePushW, push_w);
    SET_CORE(RangePop, pop);
    SET_CORE(NameOsThreadA, name_thread);
    SET_CORE2(DomainMarkEx, domain_mark_ex);
    SET_CORE2(DomainRangeStartEx, domain_start_ex);
    SET_CORE2(DomainRangeEnd, domain_end);
    SET_CORE2(DomainRangePushEx, domain_push_ex);
    SET_CORE2(DomainRangePop, domain_pop);
    SET_CORE2(DomainRegisterStringA, register_string_a);
    SET_CORE2(DomainRegisterStringW, register_string_w);
    SET_CORE2(DomainCreateA, domain_create_a);
    SET_CORE2(DomainCreateW, domain_create_w);
    return 1;
}
