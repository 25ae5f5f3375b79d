/*
 * What a program asks the recorder about itself: the library's side of the functions in
 * include/gpumem/gpumem.h that are not marks. That header says what they promise.
 */
#include "base/platform.h"
#include "base/ticks.h"
#include "flight/alive.h"
#include "live/live.h"
#include "record/recorder.h"
#define GPUMEM_TYPES_ONLY
#include <gpumem/gpumem.h>

GM_EXPORT gpumem_live_function gpumem_live_bytes;
GM_EXPORT gpumem_peak_function gpumem_peak_bytes;
GM_EXPORT gpumem_plain_function gpumem_peak_restart;
GM_EXPORT gpumem_moment_function gpumem_moment;
GM_EXPORT gpumem_check_function gpumem_check_now;
GM_EXPORT gpumem_plain_function gpumem_ignore_begin;
GM_EXPORT gpumem_plain_function gpumem_ignore_end;

_Static_assert((int)GPUMEM_KIND_DEVICE == GM_KIND_DEVICE &&
                   (int)GPUMEM_KIND_HOST_VMM == GM_KIND_HOST_VMM &&
                   (int)GPUMEM_KIND_EXTERNAL == GM_KIND_EXTERNAL,
               "kinds are those of the trace");

#define SUM_MAX INT64_MAX /* sums that a hostile size would make larger */

/* Around each question: the thread is in the recorder, and no signal handler interrupts it. */
struct question {
    struct gm_call call;
    uint64_t signals;
    int saved_errno;
};

/* 0, or why there is no answer. */
static long long begin_inside_call(struct question *question, void *frame)
{
    question->saved_errno = errno;
    question->call.thread = NULL;
    if (gm_tls.gate == GM_GATE_BUSY) /* asked by a signal handler that interrupted the recorder */
        return GPUMEM_UNCERTAIN;
    gm_call_begin(&question->call, 0, frame);
    if (!gm_call_active(&question->call)) {
        errno = question->saved_errno;
        return GPUMEM_OFF;
    }
    question->signals = gm_signals_block();
    gm_gate_close(&gm_tls);
    return gm_live_begin() == GM_LIVE_KNOWN ? 0 : GPUMEM_UNCERTAIN;
}

static void end_inside_call(struct question *question)
{
    if (!gm_call_active(&question->call))
        return;
    gm_live_end();
    gm_gate_open(&gm_tls);
    gm_signals_restore(question->signals);
    gm_call_end(&question->call);
    errno = question->saved_errno;
}

static uint64_t live_of(const struct gm_alive *sums, int kind)
{
    if (kind == GPUMEM_KIND_IN_USE)
        return gm_alive_in_use(sums);
    if (kind == GPUMEM_KIND_BLOCKS)
        return sums->blocks;
    return kind == GPUMEM_KIND_ON_DEVICE ? gm_alive_bytes(sums) : sums->live[kind];
}

static bool is_device(int device)
{
    return device >= GPUMEM_ALL_DEVICES && device < (int)GM_ALIVE_DEVICES - 1;
}

/* The tallies that a device, or all, stand for. */
static uint32_t first_sums(int device)
{
    return device == GPUMEM_ALL_DEVICES ? 0 : (uint32_t)device + 1;
}

static uint32_t last_sums(int device)
{
    return device == GPUMEM_ALL_DEVICES ? GM_ALIVE_DEVICES - 1 : (uint32_t)device + 1;
}

long long gpumem_live_bytes(int device, int kind)
{
    if (!is_device(device) || kind < GPUMEM_KIND_ON_DEVICE || kind > GPUMEM_KIND_BLOCKS)
        return GPUMEM_NO_SUCH;
    struct question question;
    long long answer = begin_inside_call(&question, __builtin_frame_address(0));
    if (answer == 0) {
        uint64_t sum = 0;
        for (uint32_t n = first_sums(device); n <= last_sums(device); n++)
            sum += live_of(&gm_alive_on[n], kind);
        answer = sum > SUM_MAX ? SUM_MAX : (long long)sum;
    }
    end_inside_call(&question);
    return answer;
}

long long gpumem_peak_bytes(int device)
{
    if (!is_device(device) || device == GPUMEM_ALL_DEVICES)
        return GPUMEM_NO_SUCH;
    struct question question;
    long long answer = begin_inside_call(&question, __builtin_frame_address(0));
    if (answer == 0) {
        uint64_t peak = gm_alive_peak(&gm_alive_on[first_sums(device)]);
        answer = peak > SUM_MAX ? SUM_MAX : (long long)peak;
    }
    end_inside_call(&question);
    return answer;
}

void gpumem_peak_restart(void)
{
    struct question question;
    begin_inside_call(&question, __builtin_frame_address(0));
    if (gm_call_active(&question.call))
        gm_alive_restart();
    end_inside_call(&question);
}

unsigned long long gpumem_moment(void)
{
    struct gm_call call; /* a trace that begins chooses the clock */
    gm_call_begin(&call, 0, __builtin_frame_address(0));
    unsigned long long now = gm_call_active(&call) ? gm_ticks_after() : 0;
    gm_call_end(&call);
    return now;
}

long long gpumem_check_now(unsigned long long since, struct gpumem_left *left)
{
    struct question question;
    long long answer = begin_inside_call(&question, __builtin_frame_address(0));
    struct gm_left found = {0, 0};
    if (answer == 0) {
        found = gm_alive_left(since);
        answer = found.count > SUM_MAX ? SUM_MAX : (long long)found.count;
    }
    if (left)
        *left = (struct gpumem_left){.bytes = found.bytes, .count = found.count};
    end_inside_call(&question);
    return answer;
}

static void tell_ignoring(void *frame)
{
    struct gm_call call;
    gm_call_begin(&call, 0, frame);
    if (gm_call_active(&call))
        gm_ignore_tell(call.thread);
    gm_call_end(&call);
}

void gpumem_ignore_begin(void)
{
    if (gm_ignore_depth != UINT32_MAX)
        gm_ignore_depth++;
    tell_ignoring(__builtin_frame_address(0));
}

void gpumem_ignore_end(void)
{
    if (gm_ignore_depth != 0)
        gm_ignore_depth--;
    tell_ignoring(__builtin_frame_address(0));
}
