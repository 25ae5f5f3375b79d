/*
 * The part of XLA's plugin interface (the PJRT C API, 0.x) that is used here. A plugin exports one
 * function, GetPjrtApi, which gives a table: its size in bytes, extensions, a version, and from word
 * GM_PJRT_FIRST on a function a word. Within major version 0 the table only grows at its end, and so
 * do the arguments, which each function takes as a pointer to words of its own: word 0 is their size,
 * word 1 extensions. Published as xla/pjrt/c/pjrt_c_api.h; the order of the functions below is that of 0.33,
 * behind it what was added by 0.116.
 */
#ifndef GPUMEM_PRELOAD_SOURCES_PJRT_H
#define GPUMEM_PRELOAD_SOURCES_PJRT_H

#include <stdint.h>

typedef uint64_t gm_pjrt_words;
typedef const gm_pjrt_words *gm_pjrt_get(void);           /* GetPjrtApi */
typedef void *gm_pjrt_function(gm_pjrt_words *arguments); /* NULL, or an error */

/* Words of the table. */
enum gm_pjrt_slot {
    GM_PJRT_SIZE = 0,
    GM_PJRT_VERSION = 4, /* int major, int minor */
    GM_PJRT_FIRST = 5,
    GM_PJRT_ERROR_DESTROY = 5,
    GM_PJRT_ERROR_MESSAGE = 6,
    GM_PJRT_ERROR_CODE = 7,
    GM_PJRT_EVENT_IS_READY = 11,
    GM_PJRT_EVENT_ERROR = 12,
    GM_PJRT_CLIENT_DEVICES = 21,
    GM_PJRT_COMPILE = 25,
    GM_PJRT_FROM_HOST = 27,
    GM_PJRT_HARDWARE_ID = 36,
    GM_PJRT_MEMORY_STATS = 39,
    GM_PJRT_MEMORY_KIND = 41,
    GM_PJRT_MEMORY_DEVICES = 44,
    GM_PJRT_EXECUTABLE_DESTROY = 45,
    GM_PJRT_EXECUTABLE_NAME = 46,
    GM_PJRT_OUTPUTS = 49,
    GM_PJRT_LOADED_DESTROY = 55,
    GM_PJRT_LOADED_EXECUTABLE = 56,
    GM_PJRT_LOADED_DEVICES = 57,
    GM_PJRT_EXECUTE = 60,
    GM_PJRT_BUFFER_DESTROY = 63,
    GM_PJRT_BUFFER_SIZE = 69,
    GM_PJRT_BUFFER_MEMORY = 71,
    GM_PJRT_BUFFER_DELETE = 72,
    GM_PJRT_BUFFER_IS_DELETED = 73,
    GM_PJRT_COPY_TO_DEVICE = 74,
    GM_PJRT_UNSAFE_POINTER = 78,
    GM_PJRT_OPAQUE_POINTER = 81,
    GM_PJRT_COPY_TO_MEMORY = 97,
    GM_PJRT_VIEW = 98,
    GM_PJRT_COMPILED_STATS = 101,
    GM_PJRT_ASYNC_BUFFERS = 108,
    GM_PJRT_RETRIEVE_BUFFER = 109,
    GM_PJRT_UNINITIALIZED = 117,
};

enum { GM_PJRT_RESOURCE_EXHAUSTED = 8 }; /* of error codes, which are those of Abseil's statuses */

/* Tells a trace that begins of plugins that were left alone. */
void gm_pjrt_tell(void);

/* After a fork: no lock of its tables is held, and the parent's arrays are not this process's. */
void gm_pjrt_forget(void);

#endif
