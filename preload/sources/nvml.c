/*
 * See nvml.h.
 *
 * A sample is worth something only next to what the records say at that moment. So it is taken
 * while no hook is open and no record is made; if that cannot be had in a few tries, the use by
 * this process is left out of the sample (0) rather than told wrong; so it is for good after a
 * thread was ended inside a hook. Use by this process is also unknown where NVML does not say it:
 * in containers with process ids of their own.
 *
 * CUDA numbers its devices by CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, NVML by their place on
 * the bus. A sample whose device is not certain to be CUDA's, or of which the process may have only
 * a part, is flagged ESTIMATED.
 */
#include "sources/nvml.h"
#include "base/config.h"
#include "base/count.h"
#include "base/environment.h"
#include "base/own_thread.h"
#include "base/ticks.h"
#include "loader/libc_dlsym.h"
#include "record/recorder.h"
#include "ring/lane.h"
#include "stack/loader_work.h"
#include "writer/trace_file.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64
#define PROCESSES_MAX 512 /* of one device */
#define VISIBLE_MAX 1024  /* bytes of CUDA_VISIBLE_DEVICES, the terminator included */
#define ENTRY_MAX 128     /* of one entry there */
#define TRIES 5
#define MILLISECOND 1000000u /* in ns */

/* ---- the few things of NVML that are used; its binary interface is stable -------------------- */

enum { NVML_SUCCESS = 0, NVML_ERROR_INSUFFICIENT_SIZE = 7 };

typedef struct nvml_device *nvml_device;

struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

/* nvmlProcessInfo_v2_t, which _v2 and _v3 of the call both fill. */
struct nvml_process {
    unsigned int pid;
    unsigned long long used; /* all ones: not available */
    unsigned int gpu_instance;
    unsigned int compute_instance;
};

static struct {
    int (*init)(void);
    int (*count)(unsigned int *count);
    int (*by_index)(unsigned int index, nvml_device *device);
    int (*by_uuid)(const char *uuid, nvml_device *device);
    int (*memory)(nvml_device device, struct nvml_memory *memory);
    int (*processes)(nvml_device device, unsigned int *count, struct nvml_process *processes);
    int (*mig_mode)(nvml_device device, unsigned int *current, unsigned int *pending);
} nvml;

/* ---- state ----------------------------------------------------------------------------------- */

enum { IDLE, WANTED, LAST, DONE };
enum { OPENING, OPENED, MISSING };

static _Atomic uint64_t started_in; /* epoch of the process that has or wanted the thread */
static _Atomic uint32_t state;      /* futex: what is asked of the thread; DONE: there is none */
static _Atomic uint32_t library;    /* futex: OPENING, OPENED or MISSING */
static _Atomic uint64_t devices;    /* one bit per device with a context */
static char visible[VISIBLE_MAX];   /* CUDA_VISIBLE_DEVICES */
static bool is_visible_cut;         /* it is longer: no device is certain */
static bool ordered_by_bus;         /* CUDA_DEVICE_ORDER=PCI_BUS_ID */

/* ---- which device ---------------------------------------------------------------------------- */

/* The entry of CUDA_VISIBLE_DEVICES for a device; false when there is none. */
static bool visible_entry(int device, char *entry, size_t size)
{
    const char *at = visible;
    for (; device > 0; device--) {
        at += strcspn(at, ",");
        if (*at++ != ',')
            return false;
    }
    at += strspn(at, " ");
    size_t length = strcspn(at, ", ");
    if (length >= size)
        gm_count(GM_COUNT_SAMPLE_LIMIT, 1);
    if (length == 0 || length >= size)
        return false;
    memcpy(entry, at, length);
    entry[length] = 0;
    return true;
}

static bool find_device(int device, nvml_device *found, bool *certain)
{
    char entry[ENTRY_MAX], *end = entry;
    unsigned long index = (unsigned long)device;
    unsigned int count = 0;
    *certain = true;
    if (is_visible_cut) {
        gm_count(GM_COUNT_SAMPLE_LIMIT, 1);
        return false;
    }
    if (visible[0]) {
        if (!visible_entry(device, entry, sizeof(entry)))
            return false;
        index = strtoul(entry, &end, 10);
        if (end == entry || *end)
            return nvml.by_uuid && nvml.by_uuid(entry, found) == NVML_SUCCESS;
    }
    *certain = ordered_by_bus || (nvml.count(&count) == NVML_SUCCESS && count == 1);
    return nvml.by_index((unsigned int)index, found) == NVML_SUCCESS;
}

/*
 * A card in MIG mode, whole: the process has one part of it, and others have the rest. NVML answers
 * for a part as an entry names it (MIG-...), but CUDA takes the first one where nothing names any.
 */
static bool is_divided(nvml_device device)
{
    unsigned int current = 0, pending;
    return nvml.mig_mode && nvml.mig_mode(device, &current, &pending) == NVML_SUCCESS &&
           current != 0;
}

/* ---- one sample ------------------------------------------------------------------------------ */

/* Bytes used by this process; 0 unknown. */
static uint64_t used_by_us(nvml_device device)
{
    static struct nvml_process processes[PROCESSES_MAX];
    unsigned int count = PROCESSES_MAX;
    int result = nvml.processes ? nvml.processes(device, &count, processes) : NVML_SUCCESS;
    if (result == NVML_ERROR_INSUFFICIENT_SIZE)
        gm_count(GM_COUNT_SAMPLE_LIMIT, 1);
    if (!nvml.processes || result != NVML_SUCCESS)
        return 0;
    for (unsigned int i = 0; i < count && i < PROCESSES_MAX; i++)
        if (processes[i].pid == gm_file.header->pid && processes[i].used != ~0ull)
            return processes[i].used;
    return 0;
}

/*
 * A number that is another one after any record by others than this thread; 0 while a hook is open,
 * when memory may have come without its record or be still there after it.
 */
static uint64_t moment(void)
{
    uint64_t records = 1;
    for (uint32_t number = 0; number < gm_thread_count(); number++) {
        const struct gm_thread *thread = gm_thread_at(number);
        if (thread == gm_tls.thread)
            continue;
        if (__atomic_load_n(&thread->depth, __ATOMIC_ACQUIRE) != 0)
            return 0;
        records += __atomic_load_n(&gm_thread_lane(thread)->head, __ATOMIC_ACQUIRE);
    }
    return records;
}

static void sample(int ordinal)
{
    nvml_device device;
    struct nvml_memory memory;
    struct gm_call call;
    struct gm_record record = {.type = GM_EVENT_DEVICE_SAMPLE, .device = (int8_t)ordinal};
    bool certain;
    if (!find_device(ordinal, &device, &certain))
        return;
    const bool divided = is_divided(device); /* what others use is no part of what CUDA gives */
    record.flags = certain && !divided ? 0 : GM_FLAG_ESTIMATED;
    gm_call_begin(&call, 0, __builtin_frame_address(0)); /* first: the lane is claimed here */
    for (int i = 0; i < TRIES && !record.size; i++) {
        if (i > 0)
            syscall(SYS_nanosleep, &(struct timespec){0, 10 * MILLISECOND}, NULL);
        uint64_t before = moment();
        uint64_t used = used_by_us(device);
        gm_call_clock(&call); /* the time of the record: nothing had happened until then */
        if (before && before == moment())
            record.size = used;
        else if (!used)
            break;
    }
    if (!divided && nvml.memory(device, &memory) == NVML_SUCCESS)
        record.aux = memory.used;
    gm_call_record(&call, &record, NULL);
    gm_call_end(&call);
}

/* Until somebody changes the word, or a signal or the limit comes. */
static void wait_while(_Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    struct timespec limit = {(time_t)(nanoseconds / (1000 * MILLISECOND)),
                             (long)(nanoseconds % (1000 * MILLISECOND))};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void sample_all(void)
{
    uint64_t wanted = atomic_load_explicit(&devices, memory_order_relaxed);
    for (int device = 0; device < DEVICES_MAX; device++)
        if (wanted >> device & 1)
            sample(device);
}

static bool open_nvml(void)
{
    gm_loader_wait_for_list();
    void *handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        dlerror(); /* not the program's error */
        return false;
    }
    nvml.init = (__typeof__(nvml.init))gm_real_dlsym(handle, "nvmlInit_v2");
    nvml.count = (__typeof__(nvml.count))gm_real_dlsym(handle, "nvmlDeviceGetCount_v2");
    nvml.by_index =
        (__typeof__(nvml.by_index))gm_real_dlsym(handle, "nvmlDeviceGetHandleByIndex_v2");
    nvml.by_uuid = (__typeof__(nvml.by_uuid))gm_real_dlsym(handle, "nvmlDeviceGetHandleByUUID");
    nvml.memory = (__typeof__(nvml.memory))gm_real_dlsym(handle, "nvmlDeviceGetMemoryInfo");
    nvml.mig_mode = (__typeof__(nvml.mig_mode))gm_real_dlsym(handle, "nvmlDeviceGetMigMode");
    nvml.processes = (__typeof__(nvml.processes))gm_real_dlsym(
        handle, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!nvml.processes)
        nvml.processes = (__typeof__(nvml.processes))gm_real_dlsym(
            handle, "nvmlDeviceGetComputeRunningProcesses_v2");
    return nvml.init && nvml.count && nvml.by_index && nvml.memory;
}

static void set_nvml_word(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static bool is_library_there(void)
{
    while (atomic_load_explicit(&library, memory_order_acquire) == OPENING && !gm_own_must_leave())
        wait_while(&library, OPENING, GM_OWN_WAIT_MAX);
    return atomic_load_explicit(&library, memory_order_acquire) == OPENED;
}

static void sample_until_last(void)
{
    bool working = is_library_there() && nvml.init() == NVML_SUCCESS;
    while (working) {
        wait_while(&state, IDLE, GM_OWN_WAIT_MAX);
        uint32_t asked = WANTED;
        atomic_compare_exchange_strong(&state, &asked, IDLE);
        sample_all();
        working = asked != LAST && !gm_own_must_leave();
        if (working) { /* modules are loaded in crowds: one sample for all */
            wait_while(&state, IDLE, 100 * MILLISECOND);
            wait_while(&state, WANTED, 100 * MILLISECOND);
        }
    }
    set_nvml_word(&state, DONE);
}

static void ask_nvml(uint32_t wanted)
{
    uint32_t now = atomic_load_explicit(&state, memory_order_relaxed);
    while (now < wanted && !atomic_compare_exchange_weak(&state, &now, wanted))
        ;
    if (now < wanted)
        syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void ask_for_last(void)
{
    ask_nvml(LAST);
}

/*
 * NVML is a guest too: it gets room. What it opens stays open for the whole process, which may ask
 * NVML itself, as PyTorch does when memory is short: the descriptors must be the process's.
 */
static struct gm_own_thread sampler = {.name = "gpumem-nvml",
                                       .stack_size = 1024 * 1024,
                                       .run = sample_until_last,
                                       .wake = ask_for_last};

static void open_library(void)
{
    set_nvml_word(&library, open_nvml() ? OPENED : MISSING);
}

/* The library is opened by a thread that records nothing: it has no descriptor of the trace. */
static struct gm_own_thread opener = {
    .name = "gpumem-nvml-ld", .stack_size = 1024 * 1024, .opens_files = true, .run = open_library};

static void start_nvml(void)
{
    const char *value = gm_environment_value("CUDA_VISIBLE_DEVICES");
    visible[0] = 0;
    is_visible_cut = value && strlen(value) >= sizeof(visible);
    if (value && !is_visible_cut)
        strcpy(visible, value);
    value = gm_environment_value("CUDA_DEVICE_ORDER");
    ordered_by_bus = value && strcmp(value, "PCI_BUS_ID") == 0;
    atomic_store(&state, IDLE);
    atomic_store(&library, OPENING);
    if (!gm_own_start(&opener))
        set_nvml_word(&library, MISSING);
    if (!gm_own_start(&sampler))
        set_nvml_word(&state, DONE);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool is_started(void)
{
    uint64_t epoch = gm_process_page->epoch;
    return epoch && atomic_load_explicit(&started_in, memory_order_acquire) == epoch;
}

void gm_nvml_request(void)
{
    const int error = errno;
    if (is_started())
        ask_nvml(WANTED);
    errno = error;
}

void gm_nvml_context(int device)
{
    const int error = errno;
    uint64_t epoch = gm_process_page->epoch, before = atomic_load(&started_in);
    if (gm_config.nvml && device >= DEVICES_MAX)
        gm_count(GM_COUNT_SAMPLE_LIMIT, 1);
    if (!gm_config.nvml || device < 0 || device >= DEVICES_MAX || !epoch)
        return;
    if (before != epoch && atomic_compare_exchange_strong(&started_in, &before, epoch)) {
        atomic_store(&devices, 0);
        start_nvml();
    }
    atomic_fetch_or(&devices, 1ull << device);
    ask_nvml(WANTED);
    errno = error;
}

/*
 * The last sample. It comes before the end is marked: destructors without a priority run before
 * those with one, as that of process.c.
 */
__attribute__((destructor)) static void take_last_sample(void)
{
    uint64_t limit = gm_clock_ns(CLOCK_MONOTONIC) + 500 * MILLISECOND;
    if (!is_started())
        return;
    ask_nvml(LAST);
    while (atomic_load_explicit(&state, memory_order_acquire) != DONE) {
        uint64_t now = gm_clock_ns(CLOCK_MONOTONIC);
        if (now >= limit)
            return;
        wait_while(&state, LAST, limit - now);
    }
}
