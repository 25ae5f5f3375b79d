/* Compares the declarations of preload/sources/nvtx.h with NVTX's own headers. Compiling it is the
 * test. */
#include "sources/nvtx.h"
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>

#define SAME(mine, theirs) _Static_assert((int)(mine) == (int)(theirs), #mine)

SAME(GM_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(GM_NVTX_CORE, NVTX_CB_MODULE_CORE);
SAME(GM_NVTX_CORE2, NVTX_CB_MODULE_CORE2);
SAME(GM_NVTX_MARK_EX, NVTX_CBID_CORE_MarkEx);
SAME(GM_NVTX_MARK_A, NVTX_CBID_CORE_MarkA);
SAME(GM_NVTX_MARK_W, NVTX_CBID_CORE_MarkW);
SAME(GM_NVTX_START_EX, NVTX_CBID_CORE_RangeStartEx);
SAME(GM_NVTX_START_A, NVTX_CBID_CORE_RangeStartA);
SAME(GM_NVTX_START_W, NVTX_CBID_CORE_RangeStartW);
SAME(GM_NVTX_END, NVTX_CBID_CORE_RangeEnd);
SAME(GM_NVTX_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(GM_NVTX_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(GM_NVTX_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME(GM_NVTX_POP, NVTX_CBID_CORE_RangePop);
SAME(GM_NVTX_DOMAIN_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
SAME(GM_NVTX_DOMAIN_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(GM_NVTX_DOMAIN_END, NVTX_CBID_CORE2_DomainRangeEnd);
SAME(GM_NVTX_DOMAIN_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(GM_NVTX_DOMAIN_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(GM_NVTX_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(GM_NVTX_REGISTER_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(GM_NVTX_DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME(GM_NVTX_DOMAIN_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
SAME(GM_NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(GM_NVTX_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(GM_NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(GM_NVTX_NO_LEVEL, NVTX_NO_PUSH_POP_TRACKING);

SAME(sizeof(struct gm_nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME(offsetof(struct gm_nvtx_attributes, size), offsetof(nvtxEventAttributes_t, size));
SAME(offsetof(struct gm_nvtx_attributes, message_type),
     offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(struct gm_nvtx_attributes, message), offsetof(nvtxEventAttributes_t, message));
SAME(sizeof(struct gm_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(struct gm_nvtx_callbacks, words_of),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME(sizeof(nvtxRangeId_t), sizeof(uint64_t));

int main(void)
{
    return 0;
}
