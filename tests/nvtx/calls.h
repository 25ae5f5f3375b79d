/* One of each relevant call of NVTX, by every file that includes this: each has its own copy of
 * NVTX. Prints what the calls return, except handles. */
#ifndef GM_TESTS_NVTX_CALLS_H
#define GM_TESTS_NVTX_CALLS_H

#include <errno.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

static nvtxEventAttributes_t with_message(int type, const void *message)
{
    nvtxEventAttributes_t attributes;
    memset(&attributes, 0, sizeof(attributes));
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = type;
    attributes.message.ascii = message;
    return attributes;
}

/* Each copy of NVTX looks for a tool in its first call, which may change errno even without any
 * tool (since CUDA 13.5), so errno counts from the second call on. The program prints numbers of
 * ranges only if a tool gives them: without one they are 0, and with gpumem alone they are not. */
static void name_everything(const char *who, int has_tool, void (*work)(void))
{
    static char too_long[5000];
    char name[64];
    nvtxEventAttributes_t ascii, wide, registered, short_struct;
    nvtxDomainHandle_t domain, wide_domain;
    snprintf(name, sizeof(name), "%s domain", who);
    domain = nvtxDomainCreateA(name);
    errno = ERANGE;
    wide_domain = nvtxDomainCreateW(L"b\u00fccher");
    nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
    nvtxStringHandle_t wide_string = nvtxDomainRegisterStringW(domain, L"\U0001f680");
    memset(too_long, 'x', sizeof(too_long) - 1);
    ascii = with_message(NVTX_MESSAGE_TYPE_ASCII, "ascii");
    wide = with_message(NVTX_MESSAGE_TYPE_UNICODE, L"w\u00efde");
    registered = with_message(NVTX_MESSAGE_TYPE_REGISTERED, string);
    short_struct = ascii;
    short_struct.size = 8; /* the caller says that there is no message */

    printf("%s: %d", who, nvtxRangePushA(who));
    printf(" %d", nvtxRangePushW(L"w\u00efde push"));
    work();
    printf(" %d", nvtxRangePushEx(&ascii));
    printf(" %d", nvtxRangePushEx(&wide));
    printf(" %d", nvtxRangePushEx(&short_struct));
    printf(" %d", nvtxRangePushEx(NULL));
    printf(" %d", nvtxRangePushA(NULL));
    printf(" %d", nvtxRangePushA(too_long));
    for (int i = 0; i < 8; i++)
        printf(" %d", nvtxRangePop());
    printf(" %d", nvtxRangePop()); /* one too many */
    printf("\n%s: %d", who, nvtxDomainRangePushEx(domain, &registered));
    registered.message.registered = wide_string;
    printf(" %d", nvtxDomainRangePushEx(wide_domain, &registered));
    work();
    printf(" %d", nvtxDomainRangePop(domain));
    printf(" %d", nvtxDomainRangePop(wide_domain));
    printf(" %d\n", nvtxDomainRangePop(NULL));

    nvtxRangeId_t ids[] = {nvtxRangeStartA("start a"), nvtxRangeStartW(L"start w"),
                           nvtxRangeStartEx(&ascii), nvtxDomainRangeStartEx(domain, &wide)};
    work();
    nvtxRangeEnd(ids[0]);
    nvtxDomainRangeEnd(domain, ids[3]);
    nvtxRangeEnd(ids[1]);
    nvtxRangeEnd(ids[2]);
    nvtxRangeEnd(999);
    for (int i = 0; has_tool && i < 4; i++)
        printf("%s: range %llu\n", who, (unsigned long long)ids[i]);
    nvtxMarkA("mark a");
    nvtxMarkW(L"mark w");
    nvtxMarkEx(&ascii);
    nvtxDomainMarkEx(domain, &registered);
    nvtxNameOsThreadA(1, "not of ours");
    nvtxDomainDestroy(domain);
    if (errno != ERANGE)
        printf("%s: errno changed\n", who);
}

#endif
