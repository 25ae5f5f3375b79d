/*
 * The library's side of include/gpumem/gpumem.h, which says what these functions promise.
 *
 * They are calls like those of CUDA: inside a hook of ours they cannot be, so they need no api id,
 * and a record of theirs carries no stack, because the program named the place itself.
 */
#include "sources/mark.h"
#include "base/platform.h"
#include "record/recorder.h"
#include "ring/lane.h"
#include "writer/tables.h"
#include <stddef.h>
#include <string.h>

GM_EXPORT void gpumem_mark(const char *name);
GM_EXPORT void gpumem_range_push(const char *name);
GM_EXPORT void gpumem_range_pop(void);

/*
 * A signal handler that records while this thread holds the lock of the strings would wait for
 * itself: the closed gate keeps it out.
 */
uint32_t gm_name_intern(struct gm_name name)
{
    if (name.bytes == NULL)
        return 0;
    int saved_errno = errno;
    gm_gate_close(&gm_tls);
    uint32_t string = gm_string_intern_mark(name.bytes, name.size);
    gm_gate_open(&gm_tls);
    errno = saved_errno;
    return string;
}

void gm_mark_record(const struct gm_mark *mark, void *frame)
{
    struct gm_call call;
    gm_call_begin(&call, 0, frame);
    if (gm_call_active(&call)) {
        struct gm_record event = {.type = (uint8_t)mark->type,
                                  .address = mark->address,
                                  .aux = gm_name_intern(mark->name),
                                  .extra = gm_name_intern(mark->owner),
                                  .device = -1};
        gm_call_record(&call, &event, NULL);
    }
    gm_call_end(&call);
}

static void record_mark(enum gm_event type, const char *name, void *frame)
{
    size_t size = name != NULL ? strnlen(name, GM_STRING_LENGTH_MAX) : 0;
    gm_mark_record(&(struct gm_mark){.type = type, .name = {name, size}}, frame);
}

void gpumem_mark(const char *name)
{
    record_mark(GM_EVENT_MARK, name, __builtin_frame_address(0));
}

void gpumem_range_push(const char *name)
{
    record_mark(GM_EVENT_RANGE_PUSH, name, __builtin_frame_address(0));
}

void gpumem_range_pop(void)
{
    record_mark(GM_EVENT_RANGE_POP, NULL, __builtin_frame_address(0));
}
