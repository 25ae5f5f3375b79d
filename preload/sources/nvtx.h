/*
 * The part of NVTX's interface to tools that is used here, as its public headers declare it; a test
 * compares the two. NVTX is compiled into each program and library that uses it: on its first call
 * it opens NVTX_INJECTION64_PATH and calls InitializeInjectionNvtx2 with a way to get at the words
 * through which its functions go.
 */
#ifndef GPUMEM_PRELOAD_SOURCES_NVTX_H
#define GPUMEM_PRELOAD_SOURCES_NVTX_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef void gm_nvtx_function(void);                /* any */
typedef const void *gm_nvtx_get_table(uint32_t id); /* by which NVTX gives its tables */

enum { GM_NVTX_TABLE_CALLBACKS = 1 };

/* words: for each function of the module, by its number, where the pointer to it stands. */
struct gm_nvtx_callbacks {
    size_t size;
    int (*words_of)(int module, gm_nvtx_function ****words, unsigned *count);
};

enum gm_nvtx_module { GM_NVTX_CORE = 1, GM_NVTX_CORE2 = 5 };

enum gm_nvtx_core {
    GM_NVTX_MARK_EX = 1,
    GM_NVTX_MARK_A,
    GM_NVTX_MARK_W,
    GM_NVTX_START_EX,
    GM_NVTX_START_A,
    GM_NVTX_START_W,
    GM_NVTX_END,
    GM_NVTX_PUSH_EX,
    GM_NVTX_PUSH_A,
    GM_NVTX_PUSH_W,
    GM_NVTX_POP,
};

enum gm_nvtx_core2 {
    GM_NVTX_DOMAIN_MARK_EX = 1,
    GM_NVTX_DOMAIN_START_EX = 2,
    GM_NVTX_DOMAIN_END = 3,
    GM_NVTX_DOMAIN_PUSH_EX = 4,
    GM_NVTX_DOMAIN_POP = 5,
    GM_NVTX_REGISTER_STRING_A = 10,
    GM_NVTX_REGISTER_STRING_W = 11,
    GM_NVTX_DOMAIN_CREATE_A = 12,
    GM_NVTX_DOMAIN_CREATE_W = 13,
};

enum gm_nvtx_message { GM_NVTX_ASCII = 1, GM_NVTX_UNICODE = 2, GM_NVTX_REGISTERED = 3 };

/* What a program says of a mark or a range. `size` is what it knows of this struct. */
struct gm_nvtx_attributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type; /* enum gm_nvtx_message */
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};

/* What pushing and popping return where nobody counts levels. */
#define GM_NVTX_NO_LEVEL (-2)

#endif
