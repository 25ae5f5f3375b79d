/*
 * A thread of CPython built from the interpreter's own structures, for builds that are not
 * available: compiled with its headers (from 3.14), also with Py_GIL_DISABLED, so that every offset
 * comes from the compiler. The preload's code reads it; image.py compiles and runs it.
 */
#define Py_BUILD_CORE 1
#include <Python.h> /* first: it sets macros for the others */

#include "internal/pycore_code.h"
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_tstate.h"
#include "stack/python/python.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef assert
#define assert(holds)                                                                              \
    do                                                                                             \
        if (!(holds)) {                                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #holds);                                     \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

static struct { /* as _PyRuntime begins */
    _Py_DebugOffsets told;
} runtime = {_Py_DebugOffsets_INIT(_Py_Debug_Cookie)};

static PyTypeObject code_type, str_type, bytes_type;
static _PyThreadStateImpl thread;
static _PyInterpreterFrame entry, outer, generator, leaf;

static struct {
    PyASCIIObject header;
    char text[32];
} file, outer_name;

static struct {
    PyCompactUnicodeObject header;
    uint16_t text[32];
} leaf_name;

static struct {
    PyBytesObject header;
    char text[32];
} lines;

static struct {
    PyCodeObject code;
    _Py_CODEUNIT more[16];
} outer_code, leaf_code;

static void make_str(PyASCIIObject *str, unsigned kind, bool ascii, size_t length)
{
    ((PyObject *)str)->ob_type = &str_type;
    str->length = (Py_ssize_t)length;
    str->hash = -1;
    str->state.interned = 2;
    str->state.kind = kind & 7;
    str->state.compact = 1;
    str->state.ascii = ascii;
}

static void make_code(PyCodeObject *code, void *name)
{
    ((PyObject *)code)->ob_type = &code_type;
    ((PyVarObject *)code)->ob_size = 8;
    code->co_filename = (PyObject *)&file;
    code->co_qualname = name;
    code->co_linetable = (PyObject *)&lines;
    code->co_firstlineno = 100;
    code->_co_firsttraceable = 1;
}

/* The reference to the code object is a tagged one. */
static void make_frame(_PyInterpreterFrame *frame, PyCodeObject *code, int owner,
                       _PyInterpreterFrame *previous)
{
    frame->f_executable.bits = (uintptr_t)code | 1;
    frame->previous = previous;
    frame->owner = (char)owner;
    if (code)
        frame->instr_ptr = (_Py_CODEUNIT *)code->co_code_adaptive + 3;
}

static void make_thread(void)
{
    _PyInterpreterFrame *base = NULL;
#if PY_MINOR_VERSION >= 15
    base = &thread.base_frame;
    make_frame(base, NULL, FRAME_OWNED_BY_INTERPRETER, NULL);
    thread.base.base_frame = base;
#endif
    strcpy(file.text, "train.py");
    strcpy(outer_name.text, "Model.forward");
    memcpy(leaf_name.text, (uint16_t[]){0x20ac, 'x'}, 4);
    make_str(&file.header, 1, true, 8);
    make_str(&outer_name.header, 1, true, 13);
    make_str(&leaf_name.header._base, 2, false, 2);
    ((PyObject *)&lines)->ob_type = &bytes_type;
    ((PyVarObject *)&lines)->ob_size = 4;
    /* Two units on line 100, then six on line 102. */
    memcpy(lines.header.ob_sval, "\xd1\x00\xe5\x00", 4);
    make_code(&outer_code.code, &outer_name);
    make_code(&leaf_code.code, &leaf_name);
    make_frame(&entry, NULL, FRAME_OWNED_BY_INTERPRETER, base);
    make_frame(&outer, &outer_code.code, FRAME_OWNED_BY_THREAD, &entry);
    make_frame(&generator, &outer_code.code, FRAME_OWNED_BY_GENERATOR, &outer);
    make_frame(&leaf, &leaf_code.code, FRAME_OWNED_BY_FRAME_OBJECT, &generator);
    thread.base.current_frame = &leaf;
}

/* ---- functions that the preload calls -------------------------------------------------------- */

static void *thread_state(void)
{
    return &thread;
}

static const char *version(void)
{
    return PY_VERSION " (main)";
}

static int finalizing(void)
{
    return 0;
}

static void *look_up(void *handle, const char *name)
{
    (void)handle;
    const struct {
        const char *name;
        void *value;
    } symbols[] = {
        {"PyGILState_GetThisThreadState", (void *)(uintptr_t)thread_state},
        {"Py_GetVersion", (void *)(uintptr_t)version},
        {"Py_IsFinalizing", (void *)(uintptr_t)finalizing},
        {"PyCode_Type", &code_type},
        {"PyUnicode_Type", &str_type},
        {"PyBytes_Type", &bytes_type},
        {"_PyRuntime", &runtime},
    };
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (strcmp(symbols[i].name, name) == 0)
            return symbols[i].value;
    return NULL;
}

static char texts[64][64];
static unsigned text_count = 1;
static struct {
    uint32_t file, function, line;
} script;

static uint32_t add_string(const char *bytes, size_t size)
{
    memcpy(texts[text_count], bytes, size);
    texts[text_count][size] = '\0';
    return text_count++;
}

static uint32_t add_frame(uint32_t of_file, uint32_t function, uint32_t line)
{
    script.file = of_file;
    script.function = function;
    script.line = line;
    return 1;
}

/* ---- the walks ------------------------------------------------------------------------------- */

static struct gm_python_thread memory;

static void expect_frame(struct gm_python_frame *frame, const char *function, uint32_t line)
{
    static const struct gm_python_sink sink = {add_string, add_frame};
    memset(memory.known, 0, sizeof(memory.known));
    text_count = 1;
    gm_python_intern(&memory, frame, &sink);
    assert(strcmp(texts[script.file], "train.py") == 0);
    assert(strcmp(texts[script.function], function) == 0);
    assert(script.line == line);
    assert(frame->anchor == (uintptr_t)&entry);
}

static void expect_stack(uint32_t leaf_line)
{
    struct gm_python_walk walk;
    gm_python_walk(&memory, GM_PYTHON_DEPTH_MAX, &walk);
    if (!walk.count)
        printf("%s\n", gm_python_state());
    assert(walk.count == 3 && !walk.truncated);
    expect_frame(&walk.frames[0], "Model.forward", 102);
    expect_frame(&walk.frames[1], "Model.forward", 102);
    expect_frame(&walk.frames[2], "\xe2\x82\xacx", leaf_line);
    gm_python_walk(&memory, 3, &walk);
    assert(walk.count == 3 && !walk.truncated);
    gm_python_walk(&memory, 2, &walk);
    assert(walk.count == 2 && walk.truncated);
}

/* A thread other than the first runs a copy of the bytecode. */
static void run_copies(void)
{
#ifdef Py_GIL_DISABLED
    static _Py_CODEUNIT copy[8];
    static struct {
        _PyCodeArray array;
        char *second;
    } copies;
    copies.array.size = 2;
    copies.array.entries[0] = leaf_code.code.co_code_adaptive;
    copies.array.entries[1] = (char *)copy;
    leaf_code.code.co_tlbc = &copies.array;
    leaf.tlbc_index = 1;
    leaf.instr_ptr = copy + 1;
    expect_stack(100);
    leaf.instr_ptr = copy + 2;
    expect_stack(102);
    leaf.tlbc_index = 2; /* missing: then the line is unknown */
    expect_stack(0);
    leaf.tlbc_index = 1;
    leaf.instr_ptr = copy + 8;
    expect_stack(0);
#endif
}

int main(void)
{
    make_thread();
    gm_python_attach(look_up);
    expect_stack(102);
    run_copies();
    puts(gm_python_state());
    return 0;
}
