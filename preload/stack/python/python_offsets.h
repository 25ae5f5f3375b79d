/*
 * Where CPython keeps what a stack is made of, per minor version: byte offsets on LP64, release
 * builds, as offsetof gives them from the interpreters' own headers. They do not change within a
 * minor version. From 3.13 the interpreter tells most of them (python_told.h); rows of those
 * versions hold only what it does not tell.
 *
 * Object headers are the same in all of them: ob_refcnt @0, ob_type @8, ob_size @16. So are str
 * (length @16, hash @24, state @32) and bytes (size @16, hash @24, data @32). In free-threaded
 * builds the part before ob_type is longer, and all this further on by as much: `header`.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_OFFSETS_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_OFFSETS_H

#include "stack/python/python_lines.h"
#include <stdint.h>

enum {
    GM_PYTHON_REFERENCES = 0, /* not in free-threaded builds */
    GM_PYTHON_TYPE = 8,
    GM_PYTHON_SIZE = 16,
    GM_PYTHON_HASH = 24, /* -1 until it was asked for */
    GM_PYTHON_STR_STATE = 32,
    GM_PYTHON_STR_CHARACTERS = 40, /* from 3.12, of a compact ASCII str */
    GM_PYTHON_BYTES_DATA = 32,
};

/* How the frames hang together, and how a frame tells which evaluation loop runs it. */
enum gm_python_chain {
    GM_CHAIN_OBJECTS, /* frame objects, a loop each; 3.10: a CFrame per loop */
    GM_CHAIN_ENTRY,   /* interpreter frames; the outermost of a loop is marked, a _PyCFrame per
                         loop */
    GM_CHAIN_SHIM,    /* interpreter frames; each loop puts one of its own on the C stack */
    GM_CHAIN_COPIES,  /* the same, and threads run copies of the bytecode (free-threaded, 3.14) */
};

enum {
    GM_OWNER_GENERATOR = 1,
    GM_OWNER_C_STACK = 3, /* and above: not a frame of a Python function */
};

/* From 3.14 references in frames carry two bits beside the address; before, these are 0. */
#define GM_REFERENCE_TAGS UINT64_C(3)

/* The copies of a code object's bytecode: how many there is room for, then their addresses. */
enum { GM_COPIES_COUNT = 0, GM_COPIES_FIRST = 8 };

/* An offset that a version has no use for is 0. */
struct gm_python_layout {
    uint8_t minor;
    uint8_t last_minor; /* that is the same; 0: it stands alone */
    uint8_t free_threaded;
    uint8_t chain;      /* enum gm_python_chain */
    uint8_t lines;      /* enum gm_python_lines */
    uint8_t lasti_unit; /* bytes per unit of f_lasti; frame objects only */
    uint8_t header;     /* how much longer an object's header is */
    uint8_t str_kind;   /* lowest bit of `kind` in a str's state; compact and ascii follow it */

    uint16_t thread_frame;    /* in PyThreadState: the current frame; 0: the CFrame has it */
    uint16_t thread_base;     /* the frame below all others, which no loop runs */
    uint16_t thread_id;       /* pthread_self() of its thread */
    uint16_t thread_cframe;   /* newest CFrame */
    uint16_t cframe_frame;    /* in CFrame: the current frame */
    uint16_t cframe_previous; /* in CFrame */

    uint16_t frame_code;
    uint16_t frame_previous;
    uint16_t frame_position; /* f_lasti, or the address of the instruction */
    uint16_t frame_entry;    /* is_entry */
    uint16_t frame_owner;
    uint16_t frame_copy; /* which copy of the bytecode; 0: the code object's own */

    uint16_t code_first_line;
    uint16_t code_filename;
    uint16_t code_name;        /* for people: the qualified name where there is one */
    uint16_t code_lines;       /* the line table */
    uint16_t code_more;        /* a word more for the fingerprint: bytecode, constants or version */
    uint16_t code_first_trace; /* _co_firsttraceable, code units */
    uint16_t code_bytecode;
    uint16_t code_copies; /* copies of the bytecode */

    uint16_t str_ascii;   /* characters of a compact ASCII str */
    uint16_t str_compact; /* of any other compact str; the pointer to them where not compact */
};

static const struct gm_python_layout gm_python_layouts[] = {
    {
        .minor = 8,
        .last_minor = 9,
        .chain = GM_CHAIN_OBJECTS,
        .lines = GM_LINES_LNOTAB,
        .lasti_unit = 1,
        .thread_frame = 24,
        .thread_id = 176,
        .frame_code = 32,
        .frame_previous = 24,
        .frame_position = 104,
        .code_first_line = 40,
        .code_filename = 104,
        .code_name = 112,
        .code_lines = 120,
        .code_more = 48,
        .str_kind = 2,
        .str_ascii = 48,
        .str_compact = 72,
    },
    {
        .minor = 10,
        .chain = GM_CHAIN_OBJECTS,
        .lines = GM_LINES_RANGES,
        .lasti_unit = 2,
        .thread_frame = 24,
        .thread_id = 176,
        .thread_cframe = 48,
        .cframe_previous = 8,
        .frame_code = 32,
        .frame_previous = 24,
        .frame_position = 96,
        .code_first_line = 40,
        .code_filename = 104,
        .code_name = 112,
        .code_lines = 120,
        .code_more = 48,
        .str_kind = 2,
        .str_ascii = 48,
        .str_compact = 72,
    },
    {
        .minor = 11,
        .chain = GM_CHAIN_ENTRY,
        .lines = GM_LINES_LOCATIONS,
        .thread_id = 152,
        .thread_cframe = 56,
        .cframe_frame = 8,
        .cframe_previous = 16,
        .frame_code = 32,
        .frame_previous = 48,
        .frame_position = 56,
        .frame_entry = 68,
        .frame_owner = 69,
        .code_first_line = 72,
        .code_filename = 112,
        .code_name = 128,
        .code_lines = 136,
        .code_more = 24, /* co_consts */
        .code_first_trace = 168,
        .code_bytecode = 184,
        .str_kind = 2,
        .str_ascii = 48,
        .str_compact = 72,
    },
    {
        .minor = 12,
        .chain = GM_CHAIN_SHIM,
        .lines = GM_LINES_LOCATIONS,
        .thread_cframe = 56,
        .cframe_frame = 0,
        .frame_code = 0,
        .frame_previous = 8,
        .frame_position = 56,
        .frame_owner = 70,
        .code_first_line = 68,
        .code_filename = 112,
        .code_name = 128,
        .code_lines = 136,
        .code_more = 92, /* co_version, no two have the same, and the word behind it */
        .code_first_trace = 176,
        .code_bytecode = 192,
        .str_kind = 2,
        .str_ascii = 40,
        .str_compact = 56,
    },
    {
        .minor = 13,
        .chain = GM_CHAIN_SHIM,
        .lines = GM_LINES_LOCATIONS,
        .str_kind = 2,
        .code_more = 92,
        .code_first_trace = 184,
    },
    {
        .minor = 13,
        .free_threaded = 1,
        .chain = GM_CHAIN_SHIM,
        .lines = GM_LINES_LOCATIONS,
        .header = 16,
        .str_kind = 2,
        .code_more = 108,
        .code_first_trace = 200,
    },
    {
        .minor = 14,
        .chain = GM_CHAIN_SHIM,
        .lines = GM_LINES_LOCATIONS,
        .str_kind = 2,
        .code_more = 92,
        .code_first_trace = 192,
    },
    {
        .minor = 14,
        .free_threaded = 1,
        .chain = GM_CHAIN_COPIES,
        .lines = GM_LINES_LOCATIONS,
        .header = 16,
        .str_kind = 8,
        .code_more = 108,
        .code_first_trace = 208,
    },
    {
        .minor = 15,
        .chain = GM_CHAIN_SHIM,
        .lines = GM_LINES_LOCATIONS,
        .str_kind = 2,
        .code_more = 92,
        .code_first_trace = 192,
    },
    {
        .minor = 15,
        .free_threaded = 1,
        .chain = GM_CHAIN_COPIES,
        .lines = GM_LINES_LOCATIONS,
        .header = 16,
        .str_kind = 8,
        .code_more = 108,
        .code_first_trace = 208,
    },
};

#endif
