/* See limit.h. */
#include "base/limit.h"
#include "base/size.h"
#include <malloc.h>

/*
 * What a trace of up to SMALL bytes may cost, and what a larger one may cost more for each byte
 * beyond. A record takes 4 bytes as a rule, 0.4 in a loop without end, and is read twice; what lives
 * takes about 200 bytes of memory, and a block unpacks to 10 times its size. Of a small file that
 * a recorder wrote a megabyte is rings and tables, so that less is left for records.
 */
#define SMALL (2 * GM_MIB)
#define MEMORY (160 * GM_MIB)
#define MEMORY_PER_BYTE 256
#define STEPS (800 * GM_MIB)
#define STEPS_PER_BYTE 512
#define COLUMNS (48 * GM_MIB)
#define COLUMNS_PER_BYTE 48
#define FRAMES (GM_MIB - GM_MIB / 4)
#define FRAMES_PER_BYTE 2

#define LARGE_ENOUGH (GM_MIB / 4) /* malloc is asked each time so much was wanted */

static struct {
    uint64_t memory; /* in all, with what was in use before */
    uint64_t wanted; /* since malloc was asked last */
    uint64_t columns;
    uint64_t frames;
    bool reached;
    bool lifted;
} limits = {UINT64_MAX, 0, UINT64_MAX, UINT64_MAX, false, false};

extern uint64_t gm_limits_steps_left; /* of gm_limits_spend, which is inline */
uint64_t gm_limits_steps_left = UINT64_MAX;

/* No more of anything. */
static void call_reached(void)
{
    limits.reached = true;
    gm_limits_steps_left = 0;
}

/* glibc 2.33 and later: without it, memory is not limited. Declared here to be weak. */
struct heap {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
extern struct heap heap_in_use(void) __asm__("mallinfo2") __attribute__((weak));

static uint64_t in_use(void)
{
    if (!heap_in_use)
        return 0;
    struct heap heap = heap_in_use();
    return (uint64_t)heap.uordblks + heap.hblkhd;
}

static uint64_t allowed(uint64_t base, uint64_t size, uint64_t per_byte)
{
    uint64_t beyond = size > SMALL ? size - SMALL : 0;
    return beyond < UINT64_MAX / 2 / per_byte ? base + beyond * per_byte : UINT64_MAX;
}

void gm_limits_begin(uint64_t size)
{
    limits.reached = false;
    if (limits.lifted)
        return;
    uint64_t used = in_use(), memory = allowed(MEMORY, size, MEMORY_PER_BYTE);
    limits.memory = memory < UINT64_MAX - used ? memory + used : UINT64_MAX;
    limits.wanted = 0;
    gm_limits_steps_left = allowed(STEPS, size, STEPS_PER_BYTE);
    limits.columns = allowed(COLUMNS, size, COLUMNS_PER_BYTE);
    limits.frames = allowed(FRAMES, size, FRAMES_PER_BYTE);
}

void gm_limits_end_reading(void)
{
    limits.memory = UINT64_MAX;
}

bool gm_limits_reached(void)
{
    return limits.reached;
}

bool gm_limits_exceed(void);
bool gm_limits_exceed(void)
{
    if (!limits.lifted)
        call_reached();
    return limits.lifted;
}

bool gm_limits_take_frame(void)
{
    if (limits.frames == 0)
        call_reached();
    else if (!limits.lifted)
        limits.frames--;
    return !limits.reached;
}

bool gm_limits_allow_memory(size_t bytes)
{
    limits.wanted = 0;
    if (limits.memory == UINT64_MAX ||
        (bytes <= limits.memory && in_use() <= limits.memory - bytes))
        return true;
    call_reached();
    return false;
}

void gm_limits_note_memory(size_t bytes)
{
    if (bytes >= LARGE_ENOUGH || (limits.wanted += bytes) >= LARGE_ENOUGH)
        gm_limits_allow_memory(bytes);
}

bool gm_limits_take_columns(uint64_t bytes)
{
    if (bytes > limits.columns) {
        call_reached();
        return false;
    }
    if (limits.columns != UINT64_MAX)
        limits.columns -= bytes;
    return true;
}

void gm_limits_return_columns(uint64_t bytes)
{
    if (limits.columns != UINT64_MAX)
        limits.columns += bytes;
}

void gm_limits_lift(void)
{
    limits.lifted = true;
    limits.memory = limits.columns = limits.frames = UINT64_MAX;
}
