/* Contexts as the hooks follow them, devices, and the table of functions. */
#include "base/api.h"
#include "fake.h"
#include <pthread.h>
#include <string.h>

#define FIRST ((CUcontext)0x100)
#define SECOND ((CUcontext)0x200)
#define GREEN ((CUgreenCtx)0x300)

static CUcontext next_context; /* contexts that the driver returns or calls current */

REAL(CUresult, cuMemAlloc_v2, (CUdeviceptr * address, size_t size), { *address = 0x7000; })
REAL(CUresult, cuCtxCreate_v4,
     (CUcontext * context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device),
     { *context = next_context; })
REAL(CUresult, cuGLCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
     { *context = next_context; })
REAL(CUresult, cuVDPAUCtxCreate_v2,
     (CUcontext * context, unsigned int flags, CUdevice device, unsigned int vdpau, void *lookup),
     { *context = next_context; })
static void (*while_ending)(void); /* what another thread does when the driver gave a handle away */

static void *end_elsewhere(void *unused)
{
    while_ending();
    return NULL;
}

static void give_handle_away(void)
{
    pthread_t thread;
    if (!while_ending)
        return;
    assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
}

REAL(CUresult, cuCtxDestroy_v2, (CUcontext context), { give_handle_away(); })
REAL(CUresult, cuGreenCtxDestroy, (CUgreenCtx context), {})
REAL(CUresult, cuCtxAttach, (CUcontext * context, unsigned int flags), { *context = next_context; })
REAL(CUresult, cuCtxDetach, (CUcontext context), {})
REAL(CUresult, cuCtxSetCurrent, (CUcontext context), {})
REAL(CUresult, cuCtxGetCurrent, (CUcontext * context), { *context = next_context; })
REAL(CUresult, cuCtxGetDevice, (CUdevice * device), { *device = 6; })
REAL(CUresult, cuCtxPushCurrent_v2, (CUcontext context), {})
REAL(CUresult, cuCtxPopCurrent_v2, (CUcontext * context), {
    if (context)
        *context = NULL;
})
REAL(CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
     { *context = next_context; })
REAL(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device), {})
REAL(CUresult, cuDevicePrimaryCtxReset_v2, (CUdevice device), {})
REAL(CUresult, cuGreenCtxCreate,
     (CUgreenCtx * context, CUdevResourceDesc description, CUdevice device, unsigned int flags),
     { *context = GREEN; })
REAL(CUresult, cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green),
     { *context = next_context; })
REAL(CUresult, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), { *bytes = 1000; })
REAL(CUresult, cuDeviceGetName, (char *name, int size, CUdevice device),
     { strncpy(name, "simulated", (size_t)size); })
REAL(cudaError_t, cudaSetDevice, (int device), {})
REAL(cudaError_t, cudaMalloc, (void **address, size_t size), { *address = (void *)0x7000; })

static int start(void **unused)
{
    start_over(unused);
    USE(cuMemAlloc_v2);
    USE(cuCtxCreate_v4);
    USE(cuGLCtxCreate_v2);
    USE(cuVDPAUCtxCreate_v2);
    USE(cuCtxDestroy_v2);
    USE(cuCtxAttach);
    USE(cuCtxDetach);
    USE(cuCtxSetCurrent);
    USE(cuCtxGetCurrent);
    USE(cuCtxGetDevice);
    USE(cuCtxPushCurrent_v2);
    USE(cuCtxPopCurrent_v2);
    USE(cuDevicePrimaryCtxRetain);
    USE(cuDevicePrimaryCtxRelease_v2);
    USE(cuDevicePrimaryCtxReset_v2);
    USE(cuGreenCtxCreate);
    USE(cuGreenCtxDestroy);
    while_ending = NULL;
    USE(cuCtxFromGreenCtx);
    USE(cuDeviceTotalMem_v2);
    USE(cuDeviceGetName);
    USE(cudaSetDevice);
    USE(cudaMalloc);
    return 0;
}

static const struct gm_record *last_record(void)
{
    assert_int_not_equal(record_count(), 0);
    return record_at(record_count() - 1);
}

static uint16_t create(CUcontext context, int device)
{
    CUcontext created;
    next_context = context;
    assert_int_equal(cuCtxCreate_v4(&created, NULL, 0, device), 0);
    assert_int_equal(last_record()->type, GM_EVENT_CONTEXT);
    return last_record()->context;
}

static void retain(CUcontext context, int device)
{
    CUcontext retained;
    next_context = context;
    assert_int_equal(cuDevicePrimaryCtxRetain(&retained, device), 0);
}

/* An allocation now is in this context, on this device. */
static void assert_current(uint16_t number, int device)
{
    CUdeviceptr address;
    cuMemAlloc_v2(&address, 1);
    assert_int_equal(last_record()->type, GM_EVENT_ALLOC);
    assert_int_equal(last_record()->context, number);
    assert_int_equal(last_record()->device, device);
}

static void a_context_is_told_when_it_is_new_and_is_current(void **unused)
{
    assert_current(0, -1);
    uint16_t number = create(FIRST, 3);
    assert_int_not_equal(number, 0);
    assert_int_equal(last_record()->address, GM_WORD(FIRST));
    assert_int_equal(last_record()->device, 3);
    assert_current(number, 3);
}

static void a_context_for_graphics_is_one(void **unused)
{
    CUcontext created;
    next_context = FIRST;
    assert_int_equal(cuGLCtxCreate_v2(&created, 0, 2), 0);
    assert_current(last_record()->context, 2);
    next_context = SECOND;
    assert_int_equal(cuVDPAUCtxCreate_v2(&created, 0, 1, 0, NULL), 0);
    assert_current(last_record()->context, 1);
}

/* ---- many of them ---------------------------------------------------------------------------- */

#define NUMBERS 65534u /* 1 to 65,534 */

static CUcontext nth(uint32_t n)
{
    return (CUcontext)(uintptr_t)(0x10000 + n * 0x40ull);
}

/* All contexts live at the same time, and the thread's stack of them stays small. */
static void create_and_pop(uint32_t n)
{
    CUcontext created;
    next_context = nth(n);
    cuCtxCreate_v4(&created, NULL, 0, 0);
    cuCtxPopCurrent_v2(NULL);
}

static void each_of_many_contexts_has_a_number_of_its_own(void **unused)
{
    for (uint32_t n = 0; n < NUMBERS; n++) {
        create_and_pop(n);
        assert_int_equal(last_record()->type, GM_EVENT_CONTEXT);
        assert_int_equal(last_record()->context, n + 1);
    }
    assert_int_equal(counted(GM_COUNT_CONTEXT_LIMIT), 0);
    assert_int_equal(counted(GM_COUNT_HANDLE_LIMIT), 0);
    for (uint32_t n = 0; n < NUMBERS; n += 1000) {
        cuCtxPushCurrent_v2(nth(n));
        assert_current((uint16_t)(n + 1), 0);
        cuCtxPopCurrent_v2(NULL);
    }
}

static void contexts_beyond_the_last_number_are_untold_and_counted(void **unused)
{
    for (uint32_t n = 0; n < NUMBERS; n++)
        create_and_pop(n);
    uint32_t before = record_count();
    create_and_pop(NUMBERS);
    assert_int_equal(record_count(), before); /* no record contains it */
    cuCtxPushCurrent_v2(nth(NUMBERS));
    assert_current(GM_CONTEXT_UNTOLD, -1);
    assert_int_equal(counted(GM_COUNT_CONTEXT_LIMIT), 1);
    cuCtxDestroy_v2(nth(NUMBERS));
    assert_current(GM_CONTEXT_UNTOLD, -1); /* the recorder does not know that it is gone */
    create_and_pop(NUMBERS);
    assert_int_equal(counted(GM_COUNT_CONTEXT_LIMIT), 2);
    cuCtxSetCurrent(nth(0));
    assert_current(1, 0);
}

static void contexts_are_stacked(void **unused)
{
    uint16_t first = create(FIRST, 0), second = create(SECOND, 1);
    assert_current(second, 1);
    cuCtxPopCurrent_v2(NULL);
    assert_current(first, 0);
    cuCtxPushCurrent_v2(SECOND);
    assert_current(second, 1);
    cuCtxSetCurrent(FIRST); /* replaces the top */
    assert_current(first, 0);
    cuCtxSetCurrent(NULL); /* pops it */
    assert_current(first, 0);
    cuCtxPopCurrent_v2(NULL);
    assert_current(0, -1);
    cuCtxPopCurrent_v2(NULL);
    cuCtxSetCurrent(SECOND);
    assert_current(second, 1);
}

static void a_call_that_fails_changes_nothing(void **unused)
{
    CUcontext context;
    uint16_t first = create(FIRST, 0);
    create(SECOND, 1);
    cuCtxPopCurrent_v2(&context);
    uint32_t before = record_count();
    real_result = 201;
    cuCtxPushCurrent_v2(SECOND);
    cuCtxSetCurrent(SECOND);
    cuCtxPopCurrent_v2(&context);
    cuCtxCreate_v4(NULL, NULL, 0, 1);
    cuDevicePrimaryCtxRetain(NULL, 1);
    assert_int_equal(record_count(), before);
    real_result = 0;
    assert_current(first, 0);
}

static void a_stack_too_deep_is_untold_counted_and_comes_back(void **unused)
{
    uint16_t first = create(FIRST, 0);
    for (unsigned i = 1; i < GM_CONTEXT_STACK + 10; i++)
        cuCtxPushCurrent_v2(FIRST);
    assert_current(GM_CONTEXT_UNTOLD, -1);
    assert_int_equal(counted(GM_COUNT_CONTEXT_DEPTH), 10);
    for (unsigned i = 0; i < 10; i++)
        cuCtxPopCurrent_v2(NULL);
    assert_current(first, 0);
}

static void the_end_of_a_context_is_told_before_the_call(void **unused)
{
    uint16_t number = create(FIRST, 3);
    uint32_t before = record_count();
    real_result = 1;
    cuCtxDestroy_v2(FIRST);
    assert_int_equal(records_at_call, before + 1);
    assert_record(before, GM_EVENT_CONTEXT_END, FIRST, 0);
    assert_int_equal(record_at(before)->context, number);
    assert_int_equal(record_at(before)->device, 3);
    assert_record(before + 1, GM_EVENT_UNDO, FIRST, 0);
    assert_int_equal(record_at(before + 1)->kind, GM_EVENT_CONTEXT_END);
    real_result = 0;
    assert_current(number, 3);
    cuCtxDestroy_v2(FIRST);
    assert_current(0, -1);
    assert_int_not_equal(create(FIRST, 3), number); /* another context at the same place */
}

static void an_attached_context_ends_with_its_last_use(void **unused)
{
    CUcontext context;
    uint16_t number = create(FIRST, 3);
    cuCtxAttach(&context, 0);
    uint32_t before = record_count();
    cuCtxDetach(FIRST);
    assert_int_equal(record_count(), before);
    assert_current(number, 3);
    cuCtxDetach(FIRST);
    assert_int_equal(last_record()->type, GM_EVENT_CONTEXT_END);
    assert_current(0, -1);
}

static void a_primary_context_is_retained_released_and_reset(void **unused)
{
    retain(FIRST, 2);
    assert_record(0, GM_EVENT_CONTEXT, FIRST, 0);
    assert_int_equal(record_at(0)->flags, GM_FLAG_PRIMARY);
    assert_record(1, GM_EVENT_CONTEXT_RETAIN, FIRST, 0);
    assert_int_equal(record_at(1)->device, 2);
    assert_int_equal(record_at(1)->context, record_at(0)->context);
    retain(FIRST, 2);
    assert_record(2, GM_EVENT_CONTEXT_RETAIN, FIRST, 0);
    cuDevicePrimaryCtxRelease_v2(2);
    assert_int_equal(records_at_call, 4);
    assert_record(3, GM_EVENT_CONTEXT_RELEASE, FIRST, 0);
    cuDevicePrimaryCtxReset_v2(2);
    assert_record(4, GM_EVENT_CONTEXT_END, FIRST, 0);
    assert_int_equal(record_at(4)->flags, GM_FLAG_PRIMARY);
    assert_int_equal(record_at(4)->context, record_at(0)->context);
    cuDevicePrimaryCtxReset_v2(5); /* one that we never saw */
    assert_record(5, GM_EVENT_CONTEXT_END, 0, 0);
    assert_int_equal(record_at(5)->device, 5);
    cuDevicePrimaryCtxReset_v2(-7);
    cuDevicePrimaryCtxReset_v2(1 << 20);
}

static void a_context_gets_its_device_when_it_is_learnt(void **unused)
{
    cuCtxSetCurrent(FIRST);
    assert_record(0, GM_EVENT_CONTEXT, FIRST, 0);
    assert_int_equal(record_at(0)->device, -1);
    uint16_t number = record_at(0)->context;
    assert_current(number, -1);
    retain(FIRST, 2);
    assert_record(2, GM_EVENT_CONTEXT, FIRST, 0);
    assert_int_equal(record_at(2)->device, 2);
    assert_int_equal(record_at(2)->flags, GM_FLAG_PRIMARY);
    assert_current(number, 2);
}

static void what_the_driver_says_is_believed(void **unused)
{
    CUcontext context;
    CUdevice device;
    next_context = SECOND;
    cuCtxGetCurrent(&context);
    uint16_t number = last_record()->context;
    cuCtxGetDevice(&device);
    assert_current(number, 6);
    next_context = NULL;
    cuCtxGetCurrent(&context);
    assert_current(0, -1);
    next_context = SECOND;
    cuCtxGetCurrent(&context);
    assert_current(number, 6);
}

/* The first call that the recorder opens for a thread without a gate gives it one. */
static bool opens_a_call(void)
{
    CUcontext context;
    CUdevice device;
    gm_tls.gate = 0;
    cuCtxGetCurrent(&context);
    cuCtxGetDevice(&device);
    bool opened = gm_tls.gate != 0;
    gm_tls.gate = ~gm_tls.epoch;
    return opened;
}

static void a_question_opens_no_call_while_the_answer_is_known(void **unused)
{
    (void)unused;
    create(FIRST, 3);
    assert_true(opens_a_call()); /* the driver had not yet said which one is current */
    assert_false(opens_a_call());
    cuCtxPushCurrent_v2(SECOND);
    assert_true(opens_a_call());
    assert_current(record_at(0)->context, 3);
    cuCtxDestroy_v2(FIRST);
    uint16_t again = create(FIRST, 4); /* another context by the same handle */
    assert_true(opens_a_call());
    assert_false(opens_a_call());
    assert_current(again, 4);
    real_result = 4; /* CUDA_ERROR_DEINITIALIZED */
    assert_true(opens_a_call());
}

static void *destroy_first(void *unused)
{
    cuCtxDestroy_v2(FIRST);
    return unused;
}

static void a_handle_is_not_known_once_another_thread_ended_its_context(void **unused)
{
    pthread_t thread;
    (void)unused;
    create(FIRST, 3);
    assert_true(opens_a_call());
    assert_false(opens_a_call());
    pthread_create(&thread, NULL, destroy_first, NULL);
    pthread_join(thread, NULL);
    assert_true(opens_a_call());
    assert_true(last_record()->context != record_at(0)->context);
}

static void the_context_of_a_green_context_is_on_its_device(void **unused)
{
    CUgreenCtx green;
    CUcontext context;
    cuGreenCtxCreate(&green, NULL, 4, 1);
    next_context = SECOND;
    cuCtxFromGreenCtx(&context, green);
    cuCtxSetCurrent(context);
    assert_current(last_record()->context, 4);
}

static CUcontext convert(CUgreenCtx green, CUcontext context)
{
    next_context = context;
    assert_int_equal(cuCtxFromGreenCtx(&context, green), 0);
    return context;
}

static void a_green_context_holds_the_primary_one(void **unused)
{
    CUgreenCtx green;
    retain(FIRST, 4);
    const uint16_t number = last_record()->context;
    cuGreenCtxCreate(&green, NULL, 4, 1);
    assert_int_equal(last_record()->type, GM_EVENT_CONTEXT_RETAIN);
    assert_int_equal(last_record()->address, GM_WORD(FIRST));
    cuCtxSetCurrent(convert(green, SECOND));
    assert_current(number, 4); /* another name of it */
    real_result = 1;
    cuGreenCtxDestroy(green);
    real_result = 0;
    assert_int_equal(last_record()->type, GM_EVENT_UNDO);
    cuCtxSetCurrent(FIRST);
    cuCtxSetCurrent(SECOND);
    assert_current(number, 4);
    cuGreenCtxDestroy(green);
    assert_int_equal(last_record()->type, GM_EVENT_CONTEXT_RELEASE);
    assert_int_equal(last_record()->context, number);
    assert_int_equal(last_record()->flags, GM_FLAG_PRIMARY);
    assert_int_not_equal(create(SECOND, 4), number); /* its handle is another's */
}

static void a_green_context_may_come_before_the_primary_one(void **unused)
{
    CUgreenCtx green;
    cuGreenCtxCreate(&green, NULL, 4, 1);
    const uint16_t number = last_record()->context;
    assert_int_not_equal(number, 0);
    retain(FIRST, 4);
    assert_int_equal(last_record()->type, GM_EVENT_CONTEXT_RETAIN);
    assert_int_equal(last_record()->context, number);
    cuCtxSetCurrent(FIRST);
    assert_current(number, 4);
    cuGreenCtxDestroy(green);
    assert_int_equal(last_record()->context, number);
    uint32_t before = record_count();
    cuGreenCtxDestroy(GREEN); /* one that is not known */
    assert_int_equal(record_count(), before);
}

static uint16_t others_number;

static void create_first_elsewhere(void)
{
    others_number = create(FIRST, 2);
}

/* The driver may give a handle to another thread before its destruction has returned here. */
static void a_handle_that_is_used_again_at_once_is_another_context(void **unused)
{
    const uint16_t outer = create(SECOND, 1), number = create(FIRST, 1);
    while_ending = create_first_elsewhere;
    cuCtxDestroy_v2(FIRST);
    while_ending = NULL;
    assert_int_not_equal(others_number, number);
    assert_current(outer, 1); /* what was taken is popped */
    cuCtxSetCurrent(FIRST);
    assert_current(others_number, 2);
    real_result = 1;
    cuCtxDestroy_v2(FIRST); /* refused: it stays what it was */
    real_result = 0;
    cuCtxSetCurrent(SECOND);
    cuCtxSetCurrent(FIRST);
    assert_current(others_number, 2);
}

static void without_a_context_the_device_of_the_runtime_counts(void **unused)
{
    void *address;
    cudaMalloc(&address, 1);
    assert_int_equal(last_record()->device, 0);
    cudaSetDevice(3);
    cudaMalloc(&address, 1);
    assert_int_equal(last_record()->device, 3);
    assert_current(0, 3);
}

static void another_device_of_the_runtime_is_another_context(void **unused)
{
    retain(FIRST, 0);
    retain(SECOND, 1);
    cuCtxSetCurrent(FIRST);
    cudaSetDevice(1); /* by a runtime whose driver calls are invisible to us */
    assert_current(last_record()->context, 1);
    cudaSetDevice(2);
    assert_current(0, 2);
    real_result = 101;
    cudaSetDevice(0);
    real_result = 0;
    assert_current(0, 2);
}

static void *no_context(void *result)
{
    *(uint16_t *)result = gm_context_current();
    return NULL;
}

static void each_thread_has_its_own_context(void **unused)
{
    uint16_t number = 77;
    pthread_t thread;
    create(FIRST, 0);
    pthread_create(&thread, NULL, no_context, &number);
    pthread_join(thread, NULL);
    assert_int_equal(number, 0);
}

static void a_device_is_described_once(void **unused)
{
    size_t bytes;
    char name[16];
    for (int i = 0; i < 3; i++) {
        cuDeviceTotalMem_v2(&bytes, 1);
        cuDeviceGetName(name, sizeof(name), 1);
        assert_int_equal(errno, REAL_ERRNO);
    }
    assert_int_equal(record_count(), 2);
    assert_record(0, GM_EVENT_DEVICE, 0, 1000);
    assert_int_equal(record_at(1)->aux, strlen("simulated"));
    assert_int_equal(record_at(1)->device, 1);
    cuDeviceTotalMem_v2(&bytes, 63);
    cuDeviceTotalMem_v2(&bytes, 64); /* more than there is room for */
    cuDeviceTotalMem_v2(&bytes, -1);
    assert_int_equal(record_count(), 3);
}

static void a_new_context_leaves_errno_alone(void **unused)
{
    errno = 0;
    create(FIRST, 0);
    assert_int_equal(errno, REAL_ERRNO);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void every_function_is_found_by_its_exact_name(void **unused)
{
    for (uint16_t api = 1; api < gm_api_count; api++)
        assert_int_equal(gm_api_find(gm_api[api].symbol), api);
    assert_int_equal(gm_api_find(""), 0);
    assert_int_equal(gm_api_find("cu"), 0);
    assert_int_equal(gm_api_find("cuMemAllo"), 0);
    assert_int_equal(gm_api_find("cuMemAlloc_v3"), 0);
    assert_int_equal(gm_api_find("cuGetExportTable"), 0);
    assert_int_equal(gm_api_find("malloc"), 0);
    assert_int_equal(gm_api_find("zzz"), 0);
}

static uint16_t version(const char *name, uint32_t cuda, int per_thread)
{
    return gm_api_find_version(name, cuda, per_thread);
}

static void a_version_means_the_youngest_interface_that_is_old_enough(void **unused)
{
    assert_int_equal(version("cuMemAlloc", 1000, 0), 0);
    assert_int_equal(version("cuMemAlloc", 2000, 0), GM_API_cuMemAlloc);
    assert_int_equal(version("cuMemAlloc", 3010, 0), GM_API_cuMemAlloc);
    assert_int_equal(version("cuMemAlloc", 3020, 0), GM_API_cuMemAlloc_v2);
    assert_int_equal(version("cuMemAlloc", 13000, 1), GM_API_cuMemAlloc_v2); /* has one form */
    assert_int_equal(version("cuMemAllocAsync", 13000, 0), GM_API_cuMemAllocAsync);
    assert_int_equal(version("cuMemAllocAsync", 13000, 1), GM_API_cuMemAllocAsync_ptsz);
    assert_int_equal(version("cuMemPrefetchAsync", 12010, 1), GM_API_cuMemPrefetchAsync_ptsz);
    assert_int_equal(version("cuMemPrefetchAsync", 12020, 1), GM_API_cuMemPrefetchAsync_v2_ptsz);
    assert_int_equal(version("cuCtxCreate", 12040, 0), GM_API_cuCtxCreate_v3);
    assert_int_equal(version("cuGetProcAddress", 11030, 0), GM_API_cuGetProcAddress);
    assert_int_equal(version("cuGetProcAddress", 12000, 0), GM_API_cuGetProcAddress_v2);
    assert_int_equal(version("cuMemAlloc_v2", 13000, 0), 0);
    assert_int_equal(version("cudaMalloc", 13000, 0), 0);
    assert_int_equal(version("", 13000, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_context_is_told_when_it_is_new_and_is_current),
        TEST(a_context_for_graphics_is_one),
        TEST(contexts_are_stacked),
        TEST(each_of_many_contexts_has_a_number_of_its_own),
        TEST(contexts_beyond_the_last_number_are_untold_and_counted),
        TEST(a_call_that_fails_changes_nothing),
        TEST(a_stack_too_deep_is_untold_counted_and_comes_back),
        TEST(the_end_of_a_context_is_told_before_the_call),
        TEST(an_attached_context_ends_with_its_last_use),
        TEST(a_primary_context_is_retained_released_and_reset),
        TEST(a_context_gets_its_device_when_it_is_learnt),
        TEST(what_the_driver_says_is_believed),
        TEST(a_question_opens_no_call_while_the_answer_is_known),
        TEST(a_handle_is_not_known_once_another_thread_ended_its_context),
        TEST(the_context_of_a_green_context_is_on_its_device),
        TEST(a_green_context_holds_the_primary_one),
        TEST(a_green_context_may_come_before_the_primary_one),
        TEST(a_handle_that_is_used_again_at_once_is_another_context),
        TEST(without_a_context_the_device_of_the_runtime_counts),
        TEST(another_device_of_the_runtime_is_another_context),
        TEST(each_thread_has_its_own_context),
        TEST(a_device_is_described_once),
        TEST(a_new_context_leaves_errno_alone),
        TEST(every_function_is_found_by_its_exact_name),
        TEST(a_version_means_the_youngest_interface_that_is_old_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
