/* See fake.h. */
#include "fake.h"
#include "base/api.h"
#include "base/handles.h"
#include "base/process_state.h"
#include "interpose/real.h"
#include "record/recorder.h"
#include "sources/nvml.h"
#include "writer/tables.h"
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 1 << 18 };

static struct gm_record records[RECORDS_MAX];
static uint32_t count;
_Atomic(void *) gm_real_first[GM_API_MAX];
int real_result;
uint32_t calls;
uint32_t records_at_call;

static _Thread_local struct gm_thread thread; /* set_recorded opens its gate */
static struct gm_trace_header header;

const struct gm_record *record_at(uint32_t index)
{
    return &records[index];
}

uint64_t counted(enum gm_counter counter)
{
    return header.counters[counter];
}

uint32_t record_count(void)
{
    return count;
}

int start_over(void **unused)
{
    (void)unused;
    count = calls = records_at_call = 0;
    memset(header.counters, 0, sizeof(header.counters));
    real_result = 0;
    set_recorded(true);
    calls_are_fast(0);
    for (uint16_t api = 0; api < GM_API_COUNT; api++)
        gm_real_first[api] = NULL;
    gm_captures_forget();
    gm_devices_forget();
    gm_graphics_forget();
    gm_contexts_forget();
    return 0;
}

void set_recorded(bool recorded)
{
    gm_process_page->epoch = recorded;
    gm_process_page->header = &header;
}

void set_real(uint16_t api, void *function)
{
    gm_real_first[api] = function;
}

int real_called(void)
{
    calls++;
    records_at_call = count;
    errno = REAL_ERRNO;
    return real_result;
}

void *gm_real(uint16_t api, const void *caller)
{
    (void)caller;
    return gm_real_first[api];
}

/* ---- recorder.h, without a trace ------------------------------------------------------------- */

struct gm_thread *gm_call_admit(void *frame)
{
    (void)frame;
    uint64_t epoch = gm_process_epoch();
    if (!epoch)
        return NULL;
    gm_tls = (struct gm_tls){.thread = &thread, .epoch = epoch, .gate = ~epoch};
    return &thread;
}

uint32_t gm_call_nested(struct gm_thread *of, uintptr_t frame, uint16_t api)
{
    (void)frame;
    (void)api;
    return of->depth;
}

void gm_call_return(struct gm_thread *of)
{
    (void)of;
}

void gm_call_clock(struct gm_call *call)
{
    call->start = 1;
}

uint32_t gm_call_elapsed_ns(const struct gm_call *call)
{
    return call->start ? FAKE_NS : 0;
}

uint32_t gm_call_slow_elapsed(const struct gm_call *call)
{
    return call->start ? FAKE_NS : 0;
}

void calls_are_fast(uint16_t calls_left)
{
    thread.fast_calls = calls_left;
}

uint32_t gm_call_elapsed(const struct gm_call *call)
{
    return call->start ? FAKE_NS : 0;
}

static bool is_of_life(unsigned type)
{
    return type == GM_EVENT_ALLOC || type == GM_EVENT_FREE || type == GM_EVENT_ALLOC_FAILED ||
           type == GM_EVENT_COPY || type == GM_EVENT_SET || type == GM_EVENT_CONTEXT_END;
}

static void keep_record(uint64_t what, uint64_t address, uint64_t size, uint64_t aux,
                        uint16_t context)
{
    if (count + 2 > RECORDS_MAX)
        abort();
    int8_t device = (int8_t)(what >> GM_WHAT_DEVICE);
    records[count++] = (struct gm_record){
        .type = (uint8_t)what,
        .kind = (uint8_t)(what >> GM_WHAT_KIND),
        .device = device < 0 ? (int8_t)gm_context_current_device(thread.api) : device,
        .flags = (uint8_t)(what >> GM_WHAT_FLAGS),
        .extra = (uint32_t)(what >> GM_WHAT_EXTRA),
        .context = context ? context : gm_context_current(),
        .api = thread.api,
        .address = address,
        .size = size,
        .aux = aux,
    };
    thread.events += is_of_life((uint8_t)what);
}

void gm_call_commit(struct gm_thread *of, void *frame, uint64_t what, uint64_t address,
                    uint64_t size, uint64_t aux)
{
    (void)of;
    (void)frame;
    keep_record(what, address, size, aux, 0);
}

void gm_call_commit_alloc(struct gm_thread *of, void *frame, uint64_t what, uint64_t address,
                          uint64_t size)
{
    gm_call_commit(of, frame, what, address, size, 0);
}

void gm_call_commit_free(struct gm_thread *of, uint64_t what, uint64_t address)
{
    gm_call_commit(of, NULL, what, address, 0, 0);
}

void gm_call_record(struct gm_call *call, const struct gm_record *record,
                    const struct gm_record *detail)
{
    if (!call->thread)
        return;
    keep_record(gm_what(record->type, record->kind, record->device, record->flags, record->extra),
                record->address, record->size, record->aux, record->context);
    if (detail) {
        records[count] = *detail;
        records[count++].type = GM_EVENT_DETAIL;
    }
}

uint32_t gm_string_intern(const char *bytes, size_t size)
{
    (void)bytes;
    errno = EMFILE; /* the real one may need a file */
    return (uint32_t)size;
}

void gm_nvml_context(int device)
{
    (void)device;
}

void gm_nvml_request(void)
{
}

bool gm_real_driver_defines(const char *symbol)
{
    (void)symbol;
    errno = ENOENT; /* the real one asks the loader */
    return false;
}

void *gm_real_driver_function(const char *symbol)
{
    (void)symbol;
    return NULL;
}

/* Rows of the table without a hook. */
CUresult cuGetProcAddress(void);
CUresult cuGetProcAddress_v2(void);

CUresult cuGetProcAddress(void)
{
    return 0;
}

CUresult cuGetProcAddress_v2(void)
{
    return 0;
}
