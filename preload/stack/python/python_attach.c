/* See python.h. */
#include "stack/native/stack_bounds.h"
#include "stack/python/python.h"
#include "stack/python/python_memory.h"
#include "stack/python/python_told.h"
#include "writer/why.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* Enough to judge by, and a bound for chains that run in circles. */
#define PROOF_FRAMES 64

struct gm_python_interpreter gm_python_interpreter;

static _Atomic enum gm_python_status status;
static atomic_flag attaching = ATOMIC_FLAG_INIT;
static char version_text[64];                /* "CPython 3.11.7" */
static char unknown_text[96];                /* "CPython 3.99.0 is not known" */
static _Atomic(const char *) trouble = NULL; /* set before status becomes GM_PYTHON_OFF */

enum gm_python_status gm_python_status(void)
{
    return atomic_load_explicit(&status, memory_order_acquire);
}

const char *gm_python_state(void)
{
    switch (gm_python_status()) {
    case GM_PYTHON_ABSENT:
        return "no interpreter";
    case GM_PYTHON_OFF:
        return atomic_load_explicit(&trouble, memory_order_relaxed);
    default:
        return version_text;
    }
}

static void turn_off(const char *why)
{
    gm_why(GM_WHY_PYTHON_OFF, 0, why);
    atomic_store_explicit(&trouble, why, memory_order_relaxed);
    atomic_store_explicit(&status, GM_PYTHON_OFF, memory_order_release);
}

/* ---- finding --------------------------------------------------------------------------------- */

typedef void *dlsym_function(void *handle, const char *name);
typedef int dladdr1_function(const void *address, Dl_info *info, void **extra, int flags);

static uint64_t address_of(dlsym_function *look_up, const char *name)
{
    return (uint64_t)(uintptr_t)look_up(RTLD_DEFAULT, name);
}

/* Bounds of the evaluation loop: a symbol's size stands in the dynamic symbol table beside it. */
static void measure_eval(void *eval, dladdr1_function *describe)
{
    Dl_info info;
    void *symbol = NULL;
    if (!eval || !describe || !describe(eval, &info, &symbol, RTLD_DL_SYMENT) || !symbol)
        return;
    gm_python_interpreter.eval_start = (uint64_t)(uintptr_t)eval;
    gm_python_interpreter.eval_end =
        (uint64_t)(uintptr_t)eval + ((const ElfW(Sym) *)symbol)->st_size;
}

/* Number at *text, which is moved behind it and the dot that follows; -1 if there is none. */
static int read_version_number(const char **text)
{
    if (**text < '0' || **text > '9')
        return -1;
    int number = 0;
    for (; **text >= '0' && **text <= '9' && number < 1000; ++*text)
        number = number * 10 + (**text - '0');
    if (**text == '.')
        ++*text;
    return number;
}

static void append_bytes(char *to, size_t room, const char *text, size_t size)
{
    size_t used = strlen(to);
    if (size > room - 1 - used)
        size = room - 1 - used;
    memcpy(to + used, text, size);
    to[used + size] = '\0';
}

/* `version` is what Py_GetVersion says: "3.11.7 (main, ...) [GCC 12.2.0]". Returns the minor, or
 * -1.
 */
static int read_version(const char *version)
{
    append_bytes(version_text, sizeof(version_text), "CPython ", 8);
    append_bytes(version_text, sizeof(version_text), version, strcspn(version, " "));
    append_bytes(unknown_text, sizeof(unknown_text), version_text, strlen(version_text));
    append_bytes(unknown_text, sizeof(unknown_text), " is not known", 13);
    int major = read_version_number(&version);
    int minor = read_version_number(&version);
    return major == 3 ? minor : -1;
}

static const struct gm_python_layout *row_of(int minor, bool free_threaded)
{
    const size_t rows = sizeof(gm_python_layouts) / sizeof(gm_python_layouts[0]);
    for (size_t i = 0; i < rows; i++) {
        const struct gm_python_layout *row = &gm_python_layouts[i];
        if ((row->minor == minor || (row->minor < minor && minor <= row->last_minor)) &&
            row->free_threaded == free_threaded)
            return row;
    }
    return NULL;
}

/* NULL when `layout` tells how the interpreter is to be read, else why not. */
static const char *find_layout(dlsym_function *look_up, int minor, struct gm_python_layout *layout)
{
    const uint64_t *told = (const uint64_t *)look_up(RTLD_DEFAULT, "_PyRuntime");
    bool tells = minor >= GM_PYTHON_TELLS_FROM;
    const struct gm_python_layout *row =
        row_of(minor, tells && gm_python_tells_free_threaded(told));
    if (!row)
        return unknown_text;
    *layout = *row;
    return tells ? gm_python_take_told(told, layout) : NULL;
}

/*
 * To 3.11 PyGILState_GetThisThreadState() gives the main interpreter's thread state, also where a
 * subinterpreter runs. The list of interpreters has the newest first.
 */
static bool find_subinterpreters(dlsym_function *look_up, struct gm_python_interpreter *found)
{
    found->find_main = (void *(*)(void))look_up(RTLD_DEFAULT, "PyInterpreterState_Main");
    found->newest = (void *(*)(void))look_up(RTLD_DEFAULT, "PyInterpreterState_Head");
    found->running = (void *(*)(void))look_up(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    return found->find_main && found->newest && found->running;
}

void gm_python_find_main(void)
{
    void *main = gm_python_interpreter.find_main ? gm_python_interpreter.find_main() : NULL;
    __atomic_store_n(&gm_python_interpreter.main, main, __ATOMIC_RELAXED);
}

/* NULL when the interpreter can be read, else why not. */
static const char *examine(dlsym_function *look_up, struct gm_python_interpreter *found)
{
    const char *(*get_version)(void) =
        (const char *(*)(void))look_up(RTLD_DEFAULT, "Py_GetVersion");
    const char *version = get_version ? get_version() : NULL;
    if (!version)
        return "validation failed: the interpreter does not tell its version";
    int minor = read_version(version);
    const char *why = find_layout(look_up, minor, &found->layout);
    if (why)
        return why;
    if (look_up(RTLD_DEFAULT, "_Py_NegativeRefcount")) /* exists with Py_REF_DEBUG only */
        return "debug build";
    found->finalizing =
        (int (*)(void))look_up(RTLD_DEFAULT, minor >= 13 ? "Py_IsFinalizing" : "_Py_IsFinalizing");
    found->code_type = address_of(look_up, "PyCode_Type");
    found->str_type = address_of(look_up, "PyUnicode_Type");
    found->bytes_type = address_of(look_up, "PyBytes_Type");
    if (!found->finalizing || !found->code_type || !found->str_type || !found->bytes_type ||
        (minor <= 11 && !find_subinterpreters(look_up, found)))
        return "validation failed: the interpreter lacks a symbol";
    return NULL;
}

/* Returns whether there is an interpreter; *why is NULL when it can be read. */
static bool find_interpreter(dlsym_function *look_up, const char **why)
{
    struct gm_python_interpreter *found = &gm_python_interpreter;
    found->thread_state = (void *(*)(void))look_up(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    *why = found->thread_state ? examine(look_up, found) : NULL;
    void *eval = found->thread_state ? look_up(RTLD_DEFAULT, "_PyEval_EvalFrameDefault") : NULL;
    /* Looked up because it is not in libc before glibc 2.34; and as the last of all because it is
     * found: dlerror() must not tell the program of our lookups that failed. */
    measure_eval(eval, (dladdr1_function *)look_up(RTLD_DEFAULT, "dladdr1"));
    return found->thread_state != NULL;
}

void gm_python_attach(dlsym_function *real_dlsym)
{
    if (gm_python_status() != GM_PYTHON_ABSENT ||
        atomic_flag_test_and_set_explicit(&attaching, memory_order_acquire))
        return;
    int saved_errno = errno;
    const char *why;
    if (gm_python_status() == GM_PYTHON_ABSENT && find_interpreter(real_dlsym, &why)) {
        if (why)
            turn_off(why);
        else
            atomic_store_explicit(&status, GM_PYTHON_UNPROVEN, memory_order_release);
    }
    errno = saved_errno;
    atomic_flag_clear_explicit(&attaching, memory_order_release);
}

void gm_python_attach_forget(void)
{
    atomic_flag_clear_explicit(&attaching, memory_order_release);
}

/* ---- proving ------------------------------------------------------------------------------------
 * `wrong` keeps the first thing that was not as expected; from then on all reads give 0.
 */

struct proof {
    const struct gm_python_layout *layout;
    const char *wrong;
};

static uint64_t peek_word(struct proof *proof, uint64_t object, unsigned offset, size_t size)
{
    const uint64_t first = object + offset;
    uint64_t value = 0;
    if (proof->wrong)
        return 0;
    if (gm_page_is_readable(first) && gm_page_is_readable(first + size - 1))
        memcpy(&value, (const void *)(uintptr_t)first, size);
    else
        proof->wrong = "validation failed: a pointer leads nowhere";
    return value;
}

static uint64_t peek_pointer(struct proof *proof, uint64_t object, unsigned offset)
{
    return peek_word(proof, object, offset, sizeof(uint64_t));
}

/* `offset` is that with the ordinary object header. */
static uint64_t peek_object(struct proof *proof, uint64_t object, unsigned offset)
{
    return peek_pointer(proof, object + proof->layout->header, offset);
}

static void expect(struct proof *proof, bool holds, const char *wrong)
{
    if (!proof->wrong && !holds)
        proof->wrong = wrong;
}

static void expect_str(struct proof *proof, uint64_t str)
{
    const uint64_t longest = 1u << 20;
    expect(proof, peek_object(proof, str, GM_PYTHON_TYPE) == gm_python_interpreter.str_type,
           "validation failed: a name is not a str");
    uint64_t length = peek_object(proof, str, GM_PYTHON_SIZE);
    expect(proof, length < longest, "validation failed: a name is too long");
    /* Kind 1, compact, ASCII: then the characters end with a zero, where we look for them. */
    uint64_t state = peek_object(proof, str, GM_PYTHON_STR_STATE) >> proof->layout->str_kind;
    if (!proof->wrong && (state & 0x1f) == 0x19)
        expect(proof, peek_word(proof, str + length, proof->layout->str_ascii, 1) == 0,
               "validation failed: a name does not end");
}

static void expect_code(struct proof *proof, uint64_t code)
{
    const struct gm_python_layout *layout = proof->layout;
    expect(proof, peek_object(proof, code, GM_PYTHON_TYPE) == gm_python_interpreter.code_type,
           "validation failed: a frame has no code object");
    expect_str(proof, peek_pointer(proof, code, layout->code_filename));
    expect_str(proof, peek_pointer(proof, code, layout->code_name));
    uint64_t lines = peek_pointer(proof, code, layout->code_lines);
    expect(proof, peek_object(proof, lines, GM_PYTHON_TYPE) == gm_python_interpreter.bytes_type,
           "validation failed: a line table is not bytes");
    expect(proof, (int32_t)peek_word(proof, code, layout->code_first_line, 4) >= 0,
           "validation failed: a first line is negative");
}

/* Where the bytecode that the frame runs begins; see bytecode_of in python.c. */
static uint64_t peek_bytecode(struct proof *proof, uint64_t frame, uint64_t code)
{
    const struct gm_python_layout *layout = proof->layout;
    bool copied = layout->chain == GM_CHAIN_COPIES;
    uint64_t copy = copied ? peek_word(proof, frame, layout->frame_copy, 4) : 0;
    if (!copy)
        return code + layout->code_bytecode;
    uint64_t copies = peek_pointer(proof, code, layout->code_copies);
    expect(proof, copy < peek_pointer(proof, copies, GM_COPIES_COUNT),
           "validation failed: a frame runs a copy that is not there");
    return peek_pointer(proof, copies + 8 * copy, GM_COPIES_FIRST);
}

static void expect_position(struct proof *proof, uint64_t frame, uint64_t code)
{
    const struct gm_python_layout *layout = proof->layout;
    int64_t lasti, size;
    if (layout->chain == GM_CHAIN_OBJECTS) {
        uint64_t bytecode = peek_pointer(proof, code, layout->code_more);
        lasti = (int32_t)peek_word(proof, frame, layout->frame_position, 4) *
                (int64_t)layout->lasti_unit;
        size = (int64_t)peek_object(proof, bytecode, GM_PYTHON_SIZE);
    } else {
        lasti = (int64_t)(peek_pointer(proof, frame, layout->frame_position) -
                          peek_bytecode(proof, frame, code));
        size = (int64_t)peek_object(proof, code, GM_PYTHON_SIZE) * 2;
    }
    expect(proof, lasti >= -2 && lasti < size, "validation failed: a position is outside its code");
}

/* Innermost frame; also reads the chain of CFrames as far as a walk begins with it. */
static uint64_t first_frame(struct proof *proof, uint64_t thread_state)
{
    const struct gm_python_layout *layout = proof->layout;
    if (!layout->thread_cframe)
        return peek_pointer(proof, thread_state, layout->thread_frame);
    uint64_t cframe = peek_pointer(proof, thread_state, layout->thread_cframe);
    if (layout->chain != GM_CHAIN_OBJECTS)
        return peek_pointer(proof, cframe, layout->cframe_frame);
    peek_pointer(proof, cframe, layout->cframe_previous);
    return peek_pointer(proof, thread_state, layout->thread_frame);
}

bool gm_python_prove(uint64_t thread_state)
{
    struct proof proof = {.layout = &gm_python_interpreter.layout};
    const struct gm_python_layout *layout = proof.layout;
    int saved_errno = errno;
    unsigned seen = 0, loops = 0, depth = 0;
    uint64_t frame = first_frame(&proof, thread_state);
    for (; frame && !proof.wrong && depth < PROOF_FRAMES; depth++) {
        uint64_t owner = layout->frame_owner ? peek_word(&proof, frame, layout->frame_owner, 1) : 0;
        if (layout->chain == GM_CHAIN_ENTRY)
            loops += peek_word(&proof, frame, layout->frame_entry, 1) == 1;
        if (owner < GM_OWNER_C_STACK) {
            uint64_t code = peek_pointer(&proof, frame, layout->frame_code) & ~GM_REFERENCE_TAGS;
            expect_code(&proof, code);
            expect_position(&proof, frame, code);
            seen++;
        } else {
            loops++;
        }
        frame = peek_pointer(&proof, frame, layout->frame_previous);
    }
    if (layout->chain != GM_CHAIN_OBJECTS && seen && !frame)
        expect(&proof, loops > 0, "validation failed: no frame begins an evaluation loop");
    errno = saved_errno;
    if (proof.wrong)
        turn_off(proof.wrong);
    else if (seen)
        atomic_store_explicit(&status, GM_PYTHON_ON, memory_order_release);
    return !proof.wrong && seen;
}
