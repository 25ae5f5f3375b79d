/* See limit.h. */
#include "base/limit.h"
#include <malloc.h>

#define MIB (UINT64_C(1) << 20)

/* What any trace may have, and what it may have more for each of its bytes. A record takes 4 bytes
 * as a rule, 0.4 in a loop without end; what lives takes about 200 bytes of memory, and a block
 * unpacks to 10 times its size. */
#define MEMORY (96 * MIB)
#define MEMORY_PER_BYTE 1024
#define STEPS (8 * MIB)
#define STEPS_PER_BYTE 1024
#define COLUMNS (48 * MIB)
#define COLUMNS_PER_BYTE 48
#define FRAMES (MIB + MIB / 2)
#define FRAMES_PER_BYTE 2

#define LARGE_ENOUGH 65536 /* malloc is asked only when so much is wanted at once */

static struct {
    uint64_t memory; /* in all, with what was in use before */
    uint64_t columns;
    uint64_t frames;
    bool reached;
    bool lifted;
} limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX, false, false};

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

static uint64_t scaled(uint64_t base, uint64_t size, uint64_t per_byte)
{
    return size < UINT64_MAX / 2 / per_byte ? base + size * per_byte : UINT64_MAX;
}

void gm_limits_begin(uint64_t size)
{
    limits.reached = false;
    if (limits.lifted)
        return;
    uint64_t used = in_use(), memory = scaled(MEMORY, size, MEMORY_PER_BYTE);
    limits.memory = memory < UINT64_MAX - used ? memory + used : UINT64_MAX;
    gm_limits_steps_left = scaled(STEPS, size, STEPS_PER_BYTE);
    limits.columns = scaled(COLUMNS, size, COLUMNS_PER_BYTE);
    limits.frames = scaled(FRAMES, size, FRAMES_PER_BYTE);
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

void gm_limits_note_memory(size_t bytes)
{
    if (bytes >= LARGE_ENOUGH && limits.memory != UINT64_MAX &&
        (bytes > limits.memory || in_use() > limits.memory - bytes))
        call_reached();
}

bool gm_limits_take_columns(uint64_t bytes)
{
    if (bytes > limits.columns)
        return false;
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
