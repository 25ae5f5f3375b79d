/*
 * Where CPython keeps what a stack is made of, per minor version: byte offsets on LP64, release
 * builds, as offsetof gives them from the interpreters' own headers. They do not change within a
 * minor version.
 *
 * Object headers are the same in all of them: ob_refcnt @0, ob_type @8, ob_size @16. So are str
 * (length @16, hash @24, state @32) and bytes (size @16, hash @24, data @32).
 */
#ifndef GPUMEM_PRELOAD_PYTHON_OFFSETS_H
#define GPUMEM_PRELOAD_PYTHON_OFFSETS_H

#include <stdint.h>
#include "python_lines.h"

enum {
    GM_PYTHON_TYPE = 8,
    GM_PYTHON_SIZE = 16,
    GM_PYTHON_HASH = 24, /* -1 until it was asked for */
    GM_PYTHON_STR_STATE = 32,
    GM_PYTHON_BYTES_DATA = 32,
};

/* How the frames hang together, and how a frame tells which evaluation loop runs it. */
enum gm_python_chain {
    GM_CHAIN_OBJECTS, /* frame objects, a loop each; 3.10: a CFrame per loop */
    GM_CHAIN_ENTRY,   /* interpreter frames; the outermost of a loop is marked, a _PyCFrame per
                         loop */
    GM_CHAIN_SHIM,    /* interpreter frames; each loop puts one of its own on the C stack */
};

enum {
    GM_OWNER_GENERATOR = 1,
    GM_OWNER_C_STACK = 3, /* and above: not a frame of a Python function */
};

/* An offset that a version has no use for is 0. */
struct gm_python_layout {
    uint8_t minor;
    uint8_t chain;      /* enum gm_python_chain */
    uint8_t lines;      /* enum gm_python_lines */
    uint8_t lasti_unit; /* bytes per unit of f_lasti; frame objects only */

    uint8_t thread_frame;    /* in PyThreadState: the current frame; 0: the CFrame has it */
    uint8_t thread_cframe;   /* newest CFrame */
    uint8_t cframe_frame;    /* in CFrame: the current frame */
    uint8_t cframe_previous; /* in CFrame */

    uint8_t frame_code;
    uint8_t frame_previous;
    uint8_t frame_position; /* f_lasti, or the address of the instruction */
    uint8_t frame_entry;    /* is_entry */
    uint8_t frame_owner;

    uint8_t code_first_line;
    uint8_t code_filename;
    uint8_t code_name;        /* for people: the qualified name where there is one */
    uint8_t code_lines;       /* the line table */
    uint8_t code_more;        /* a word more for the fingerprint: bytecode, constants or version */
    uint8_t code_first_trace; /* _co_firsttraceable, code units */
    uint8_t code_bytecode;

    uint8_t str_ascii;   /* characters of a compact ASCII str */
    uint8_t str_compact; /* of any other compact str; the pointer to them where not compact */
};

static const struct gm_python_layout gm_python_layouts[] = {
    {
        .minor = 8,
        .chain = GM_CHAIN_OBJECTS,
        .lines = GM_LINES_LNOTAB,
        .lasti_unit = 1,
        .thread_frame = 24,
        .frame_code = 32,
        .frame_previous = 24,
        .frame_position = 104,
        .code_first_line = 40,
        .code_filename = 104,
        .code_name = 112,
        .code_lines = 120,
        .code_more = 48,
        .str_ascii = 48,
        .str_compact = 72,
    },
    {
        .minor = 9,
        .chain = GM_CHAIN_OBJECTS,
        .lines = GM_LINES_LNOTAB,
        .lasti_unit = 1,
        .thread_frame = 24,
        .frame_code = 32,
        .frame_previous = 24,
        .frame_position = 104,
        .code_first_line = 40,
        .code_filename = 104,
        .code_name = 112,
        .code_lines = 120,
        .code_more = 48,
        .str_ascii = 48,
        .str_compact = 72,
    },
    {
        .minor = 10,
        .chain = GM_CHAIN_OBJECTS,
        .lines = GM_LINES_RANGES,
        .lasti_unit = 2,
        .thread_frame = 24,
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
        .str_ascii = 48,
        .str_compact = 72,
    },
    {
        .minor = 11,
        .chain = GM_CHAIN_ENTRY,
        .lines = GM_LINES_LOCATIONS,
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
        .str_ascii = 40,
        .str_compact = 56,
    },
    {
        .minor = 13,
        .chain = GM_CHAIN_SHIM,
        .lines = GM_LINES_LOCATIONS,
        .thread_frame = 72,
        .frame_code = 0,
        .frame_previous = 8,
        .frame_position = 56,
        .frame_owner = 70,
        .code_first_line = 68,
        .code_filename = 112,
        .code_name = 128,
        .code_lines = 136,
        .code_more = 92,
        .code_first_trace = 184,
        .code_bytecode = 200,
        .str_ascii = 40,
        .str_compact = 56,
    },
};

#endif
