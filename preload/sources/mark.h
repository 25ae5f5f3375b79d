/* Records what a program calls its doings: for gpumem.h's functions and for NVTX. */
#ifndef GPUMEM_PRELOAD_SOURCES_MARK_H
#define GPUMEM_PRELOAD_SOURCES_MARK_H

#include <gpumem/trace.h>
#include <stddef.h>
#include <stdint.h>

/* Some bytes; `bytes` NULL: no name. */
struct gm_name {
    const char *bytes;
    size_t size;
};

struct gm_mark {
    enum gm_event type; /* MARK, or one of RANGE_... */
    uint64_t address;   /* as the type has it */
    struct gm_name name;
    struct gm_name owner; /* whose name it is; none: the program's */
};

/* The string reference of a name in the trace; 0: it has none, or there is no room. Within a call that records. */
uint32_t gm_name_intern(struct gm_name name);

/* `frame`: __builtin_frame_address(0) of the function that the program called. */
void gm_mark_record(const struct gm_mark *mark, void *frame);

#endif
