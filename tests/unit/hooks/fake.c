/* See fake.h. */
#include "fake.h"
#include <stdlib.h>
#include <string.h>
#include "api.h"
#include "platform.h"
#include "process.h"
#include "real.h"
#include "recorder.h"
#include "tables.h"

enum { RECORDS_MAX = 16384 };

static struct gm_record records[RECORDS_MAX];
static uint32_t count;
static bool is_recorded = true;
static void *real[GM_API_COUNT];
int real_result;
uint32_t calls;
uint32_t records_at_call;

/* As in the recorder, per thread. */
static _Thread_local uint32_t depth, events;
static _Thread_local uint16_t outermost_api;

const struct gm_record *record_at(uint32_t index)
{
    return &records[index];
}

uint32_t record_count(void)
{
    return count;
}

int start_over(void **unused)
{
    (void)unused;
    count = calls = records_at_call = 0;
    real_result = 0;
    is_recorded = true;
    memset(real, 0, sizeof(real));
    gm_effects_forget();
    return 0;
}

void set_recorded(bool recorded)
{
    is_recorded = recorded;
}

void set_real(uint16_t api, void *function)
{
    real[api] = function;
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
    return real[api];
}

/* ---- recorder.h, without a trace ---- */

void gm_call_begin(struct gm_call *call, uint16_t api, void *frame)
{
    static int thread;
    *call = (struct gm_call){.frame = frame, .api = api, .events_before = events};
    if (!is_recorded)
        return;
    call->thread = (struct gm_thread *)(void *)&thread;
    call->outermost = depth++ == 0;
    if (call->outermost)
        outermost_api = api;
}

void gm_call_end(struct gm_call *call)
{
    if (call->thread)
        depth--;
}

bool gm_call_seen_below(const struct gm_call *call)
{
    return call->thread && call->events_before != events;
}

void gm_call_clock(struct gm_call *call)
{
    call->start = 1;
}

uint32_t gm_call_elapsed_ns(const struct gm_call *call)
{
    return call->start ? FAKE_NS : 0;
}

static bool is_of_life(unsigned type)
{
    return type == GM_EVENT_ALLOC || type == GM_EVENT_FREE || type == GM_EVENT_ALLOC_FAILED ||
           type == GM_EVENT_COPY || type == GM_EVENT_SET || type == GM_EVENT_CONTEXT_END;
}

void gm_call_commit(struct gm_call *call, uint64_t what, uint64_t address, uint64_t size,
                    uint64_t aux, const struct gm_record *detail)
{
    if (!call->thread)
        return;
    if (count + 2 > RECORDS_MAX)
        abort();
    int8_t device = (int8_t)(what >> GM_WHAT_DEVICE);
    records[count++] = (struct gm_record){
        .type = (uint8_t)what,
        .kind = (uint8_t)(what >> GM_WHAT_KIND),
        .device = device < 0 ? (int8_t)gm_context_current_device(outermost_api) : device,
        .flags = (uint8_t)(what >> GM_WHAT_FLAGS),
        .extra = (uint32_t)(what >> GM_WHAT_EXTRA),
        .context = call->context ? call->context : gm_context_current(),
        .api = outermost_api,
        .address = address,
        .size = size,
        .aux = aux,
    };
    events += is_of_life((uint8_t)what);
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

void gm_process_note_driver(void)
{
    errno = ENOENT; /* the real one asks the loader */
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
