/*
 * See contents.h. Notes are ranges that do not overlap, each with the origin of its bytes. A device
 * address without a note holds zeros, as fresh memory does.
 */
#include "contents.h"
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum origin {
    FROM_HOST,    /* copied from the host, directly or by way of other device memory */
    FROM_SET,     /* set, and since then no kernel was launched if `epoch` is that of now */
    FROM_NOWHERE, /* copied from device memory that nobody had written */
};

struct note {
    struct gpusim_range range; /* first member */
    enum origin origin;
    bool stored; /* the bytes are there; else they were dropped and the memory holds zeros */
    uint64_t epoch;
    uint64_t polled_epoch; /* of the latest poll */
    uint32_t polls;        /* times the host read just these bytes, each time after kernels */
};

/* A loop of XLA's reads one byte, by which a kernel says whether it goes on. That kernel does not run, so what the host once
 * put there would be read for ever. Read so often it is taken for the kernel's, which reads as zero: the loop ends. */
enum { POLLS_MAX = 4096, POLLED_BYTES = 1 };

static struct gpusim_ranges notes;
static uint64_t epoch;
static _Thread_local bool has_read_unknown;

bool gpusim_contents_are_virtual(void)
{
    return gpusim_settings.virtual_above != 0;
}

static struct note *note_at_or_after(uint64_t address)
{
    struct gpusim_range *found = gpusim_ranges_find(&notes, address);

    return (struct note *)(found ? found : gpusim_ranges_ceiling(&notes, address));
}

static void add_note(uint64_t start, uint64_t size, const struct note *like)
{
    struct note *note = calloc(1, sizeof(*note));

    if (!note)
        return; /* out of host memory: a value counts as unknown that is known */
    *note = *like;
    note->range = (struct gpusim_range){.start = start, .size = size};
    gpusim_ranges_insert(&notes, &note->range);
}

/* Takes the notes about a span away; with `clear`, what was stored there becomes zero. */
static void remove_notes(uint64_t start, uint64_t bytes, bool clear)
{
    uint64_t end = start + bytes;

    for (struct note *note; (note = note_at_or_after(start)) && note->range.start < end;) {
        struct note old = *note;
        uint64_t old_end = old.range.start + old.range.size;
        uint64_t first = old.range.start > start ? old.range.start : start;
        uint64_t last = old_end < end ? old_end : end;

        gpusim_ranges_remove(&notes, &note->range);
        free(note);
        if (old.range.start < first)
            add_note(old.range.start, first - old.range.start, &old);
        if (old_end > last)
            add_note(last, old_end - last, &old);
        if (clear && old.stored)
            memset((void *)(uintptr_t)first, 0, last - first);
    }
}

static bool is_known(const struct note *note)
{
    return note->origin == FROM_HOST || (note->origin == FROM_SET && note->epoch == epoch);
}

/* Whether notes cover a span without a hole, and all of them tell of known bytes. */
static bool all_known(uint64_t start, uint64_t bytes)
{
    uint64_t end = start + bytes;

    while (start < end) {
        struct note *note = (struct note *)gpusim_ranges_find(&notes, start);

        if (!note || !is_known(note))
            return false;
        start = note->range.start + note->range.size;
    }
    return true;
}

static bool is_kept(uint64_t bytes)
{
    return bytes <= gpusim_settings.virtual_above;
}

/* A note of bytes that were dropped costs nothing to keep and is cleared without touching memory. */
static void note_origin(uint64_t start, uint64_t bytes, enum origin origin, bool stored)
{
    const struct note like = {.origin = origin, .stored = stored, .epoch = epoch};

    remove_notes(start, bytes, !stored);
    add_note(start, bytes, &like);
}

static void count_poll(uint64_t from)
{
    struct note *note = (struct note *)gpusim_ranges_find(&notes, from);

    if (!note || note->epoch == epoch || note->polled_epoch == epoch)
        return;
    note->polled_epoch = epoch;
    if (++note->polls == POLLS_MAX)
        remove_notes(from, POLLED_BYTES, true);
}

bool gpusim_contents_copy(uint64_t to, bool to_device, uint64_t from, bool from_device,
                          uint64_t bytes)
{
    if (!gpusim_contents_are_virtual() || bytes == 0)
        return true;
    if (from_device && !to_device && bytes == POLLED_BYTES)
        count_poll(from);
    bool known = !from_device || all_known(from, bytes);
    has_read_unknown = !to_device && !known;
    if (!to_device) {
        return !from_device || is_kept(bytes);
    }
    note_origin(to, bytes, known ? FROM_HOST : FROM_NOWHERE, is_kept(bytes));
    return is_kept(bytes);
}

bool gpusim_contents_set(uint64_t to, uint64_t bytes)
{
    if (!gpusim_contents_are_virtual() || bytes == 0)
        return true;
    note_origin(to, bytes, FROM_SET, is_kept(bytes));
    return is_kept(bytes);
}

void gpusim_contents_kernel(void)
{
    epoch++;
}

void gpusim_contents_drop(uint64_t address, uint64_t bytes)
{
    if (gpusim_contents_are_virtual())
        remove_notes(address, bytes, true);
}

/* A framework hands out device memory that had another owner before: it reads as zero from here on.
 * For an allocator that keeps its memory, which the driver never sees. */
extern GPUSIM_EXPORTED void gpumem_sim_forget(uint64_t address, uint64_t bytes);
void gpumem_sim_forget(uint64_t address, uint64_t bytes)
{
    if (gpusim_enter() != CUDA_SUCCESS)
        return;
    gpusim_contents_drop(address, bytes);
    gpusim_leave(NULL);
}

/* Whether the calling thread's latest copy, if it did not ask before, was one to the host of bytes
 * that only kernels could have written. Takes no lock. */
extern GPUSIM_EXPORTED bool gpumem_sim_has_read_unknown(void);
bool gpumem_sim_has_read_unknown(void)
{
    bool has = has_read_unknown;

    has_read_unknown = false;
    return has;
}

/* For the value plane of a dry run, which computes small operations on the host: whether all bytes of
 * a span are known, and that they are, or are not, from now on. */
extern GPUSIM_EXPORTED bool gpumem_sim_knows(uint64_t address, uint64_t bytes);
bool gpumem_sim_knows(uint64_t address, uint64_t bytes)
{
    if (gpusim_enter() != CUDA_SUCCESS)
        return false;
    bool known = gpusim_contents_are_virtual() && all_known(address, bytes);
    gpusim_leave(NULL);
    return known;
}

static void change_notes(uint64_t address, uint64_t bytes, enum origin origin)
{
    if (gpusim_enter() != CUDA_SUCCESS)
        return;
    if (gpusim_contents_are_virtual() && bytes) {
        const struct note like = {.origin = origin, .stored = true};

        remove_notes(address, bytes, false);
        add_note(address, bytes, &like);
    }
    gpusim_leave(NULL);
}

extern GPUSIM_EXPORTED void gpumem_sim_learn(uint64_t address, uint64_t bytes);
void gpumem_sim_learn(uint64_t address, uint64_t bytes)
{
    change_notes(address, bytes, FROM_HOST);
}

extern GPUSIM_EXPORTED void gpumem_sim_unlearn(uint64_t address, uint64_t bytes);
void gpumem_sim_unlearn(uint64_t address, uint64_t bytes)
{
    change_notes(address, bytes, FROM_NOWHERE);
}
