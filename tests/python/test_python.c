/*
 * The reader of Python stacks must refuse bad interpreters without a crash. Each interpreter is a
 * few bytes behind our own dlsym and has its own process, because a process has one interpreter.
 * (Real interpreters: run.py.)
 */
#include "stack/python/python.h"
#include "stack/python/python_lines.h"
#include "stack/python/python_offsets.h"
#include "stack/python/python_text.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs the headers above */

/* ---- an interpreter ---------------------------------------------------------------------------
 * Objects are arrays of words, addressed by byte offsets from the layouts.
 */

enum { WORDS = 128 };
typedef uint64_t object[WORDS];

static struct interpreter {
    const char *version;
    bool debug;
    bool without_types;
    bool finalizing;
    bool threadless;
    bool has_subinterpreter;
    void *running; /* thread state of the holder of the GIL */
    object other_thread, other_frame;
    object runtime, thread, cframe, frame, code, filename, name, lines;
} fake;

static object code_type, str_type, bytes_type;

static void set_word(object of, unsigned offset, uint64_t value)
{
    memcpy((char *)of + offset, &value, sizeof(value));
}

static uint64_t address_of(const void *place)
{
    return (uint64_t)(uintptr_t)place;
}

static const char *version(void)
{
    return fake.version;
}

static int finalizing(void)
{
    return fake.finalizing;
}

static void *thread_state(void)
{
    return fake.threadless ? NULL : fake.thread;
}

static void *main_interpreter(void)
{
    return &fake;
}

static void *newest(void)
{
    return fake.has_subinterpreter ? (void *)&fake.has_subinterpreter : &fake;
}

static void *running(void)
{
    return fake.running;
}

#define FUNCTION(name) ((void *)(uintptr_t)(name))

static void *look_up(void *handle, const char *symbol)
{
    assert_ptr_equal(handle, RTLD_DEFAULT);
    const struct {
        const char *symbol;
        void *value;
    } symbols[] = {
        {"PyGILState_GetThisThreadState", FUNCTION(thread_state)},
        {"Py_GetVersion", FUNCTION(version)},
        {"PyInterpreterState_Head", FUNCTION(newest)},
        {"PyInterpreterState_Main", FUNCTION(main_interpreter)},
        {"_PyThreadState_UncheckedGet", FUNCTION(running)},
        {"_Py_NegativeRefcount", fake.debug ? FUNCTION(version) : NULL},
        {"_Py_IsFinalizing", FUNCTION(finalizing)},
        {"Py_IsFinalizing", FUNCTION(finalizing)},
        {"PyCode_Type", fake.without_types ? NULL : code_type},
        {"PyUnicode_Type", str_type},
        {"PyBytes_Type", bytes_type},
        {"_PyRuntime", fake.runtime},
    };
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (strcmp(symbols[i].symbol, symbol) == 0)
            return symbols[i].value;
    return NULL;
}

static void *nothing(void *handle, const char *symbol)
{
    (void)handle;
    (void)symbol;
    return NULL;
}

static void make_str(object str, const char *text)
{
    set_word(str, GM_PYTHON_TYPE, address_of(str_type));
    set_word(str, GM_PYTHON_SIZE, strlen(text));
    set_word(str, GM_PYTHON_STR_STATE, 0x64);
    strcpy((char *)str + 48, text);
}

/* A thread of CPython 3.11.7 in one function, with everything valid. */
static void make_interpreter(void)
{
    memset(&fake, 0, sizeof(fake));
    fake.version = "3.11.7 (main, Jan  1 2024) [GCC 12.2.0]";
    set_word(fake.thread, 56, address_of(fake.cframe));
    set_word(fake.cframe, 8, address_of(fake.frame));
    set_word(fake.frame, 32, address_of(fake.code));
    set_word(fake.frame, 56, address_of(fake.code) + 184 + 6); /* position */
    set_word(fake.frame, 64, 1ull << 32);                      /* is_entry */
    set_word(fake.code, 0, 1);
    set_word(fake.code, GM_PYTHON_TYPE, address_of(code_type));
    set_word(fake.code, GM_PYTHON_SIZE, 8); /* code units */
    set_word(fake.code, 72, 100);           /* first line */
    set_word(fake.code, 112, address_of(fake.filename));
    set_word(fake.code, 128, address_of(fake.name));
    set_word(fake.code, 136, address_of(fake.lines));
    make_str(fake.filename, "train.py");
    make_str(fake.name, "Model.forward");
    set_word(fake.lines, GM_PYTHON_TYPE, address_of(bytes_type));
    set_word(fake.lines, GM_PYTHON_SIZE, 4);
    /* Two units on line 100, then six on line 102. */
    memcpy((char *)fake.lines + GM_PYTHON_BYTES_DATA, "\xd1\x00\xe5\x00", 4);
}

/* ---- meeting it ------------------------------------------------------------------------------ */

/* Memory in which the child of a fork reports its results. */
static struct result {
    char state[200];
    enum gm_python_status status;
    uint32_t frames;
    uint32_t line;
    bool unknown;
    bool unfiltered;
    char file[64], function[64];
    int error;
} * result;

static uint32_t add_string(const char *bytes, size_t size)
{
    static unsigned calls;
    memcpy(calls ? result->function : result->file, bytes, size);
    return ++calls;
}

static uint32_t add_frame(uint32_t file, uint32_t function, uint32_t line)
{
    assert_int_equal(file, 1);
    assert_int_equal(function, 2);
    result->line = line;
    return 7;
}

static void read_stack(void)
{
    static struct gm_python_thread thread;
    const struct gm_python_sink sink = {add_string, add_frame};
    struct gm_python_walk walk;
    errno = 4321;
    gm_python_attach(look_up);
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->error = errno;
    result->frames = walk.count;
    result->unknown = walk.unknown;
    for (uint32_t i = 0; i < walk.count; i++)
        gm_python_intern(&thread, &walk.frames[i], &sink);
    result->status = gm_python_status();
    strncpy(result->state, gm_python_state(), sizeof(result->state) - 1);
}

/* Runs `action` in its own process, which must end well. */
static void apart(void (*action)(void))
{
    memset(result, 0, sizeof(*result));
    pid_t child = fork();
    if (child == 0) {
        action();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void assert_refused(const char *why)
{
    apart(read_stack);
    assert_string_equal(result->state, why);
    assert_int_equal(result->status, GM_PYTHON_OFF);
    assert_int_equal(result->frames, 0);
    assert_int_equal(result->error, 4321);
}

static int make(void **state)
{
    (void)state;
    make_interpreter();
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_sound_interpreter_is_read(void **state)
{
    (void)state;
    apart(read_stack);
    assert_string_equal(result->state, "CPython 3.11.7");
    assert_int_equal(result->status, GM_PYTHON_ON);
    assert_int_equal(result->frames, 1);
    assert_string_equal(result->file, "train.py");
    assert_string_equal(result->function, "Model.forward");
    assert_int_equal(result->line, 102);
    assert_int_equal(result->error, 4321);
}

/* New code where old code was: same addresses, same first line. */
static void walk_again(void)
{
    static struct gm_python_thread thread;
    struct gm_python_walk walk;
    gm_python_attach(look_up);
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->line = walk.kept;
    make_str(fake.name, "Model.forwArd");
    set_word(fake.name, GM_PYTHON_HASH, 77);
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->frames += walk.kept;
    set_word(fake.name, GM_PYTHON_HASH, UINT64_MAX);
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->frames += walk.kept;
    make_str(fake.name, "Model.forwerd");
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->frames += walk.kept;
    make_str(fake.filename, "trail.py");
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->frames += walk.kept;
    memcpy((char *)fake.lines + GM_PYTHON_BYTES_DATA, "\xd1\x00\xe6\x00", 4);
    gm_python_walk(&thread, GM_PYTHON_DEPTH_MAX, &walk);
    result->frames += walk.kept;
}

static void code_is_known_by_what_it_holds(void **state)
{
    (void)state;
    set_word(fake.filename, GM_PYTHON_HASH, UINT64_MAX);
    set_word(fake.lines, GM_PYTHON_HASH, UINT64_MAX);
    apart(walk_again);
    assert_int_equal(result->line, 1);
    assert_int_equal(result->frames, 0);
}

static void attach_late(void)
{
    gm_python_attach(nothing);
    assert_string_equal(gm_python_state(), "no interpreter");
    assert_int_equal(gm_python_status(), GM_PYTHON_ABSENT);
    read_stack();
}

static void an_interpreter_may_come_later(void **state)
{
    (void)state;
    apart(attach_late);
    assert_int_equal(result->frames, 1);
}

static void look_up_for_real(void)
{
    dlerror();
    gm_python_attach(dlsym);
    result->error = dlerror() != NULL;
    result->status = gm_python_status();
}

static void no_interpreter_leaves_no_error(void **state)
{
    (void)state;
    apart(look_up_for_real);
    assert_int_equal(result->status, GM_PYTHON_ABSENT);
    assert_int_equal(result->error, 0);
}

/* Up to 3.11 the thread's state is surely the running one only if it holds the GIL. */
static void of_subinterpreters_only_what_is_known_is_read(void **state)
{
    (void)state;
    fake.has_subinterpreter = true;
    apart(read_stack);
    assert_int_equal(result->frames, 0);
    assert_true(result->unknown);
    fake.running = fake.thread;
    apart(read_stack);
    assert_int_equal(result->frames, 1);
    fake.running = fake.other_thread; /* of another thread */
    apart(read_stack);
    assert_int_equal(result->frames, 0);
    assert_true(result->unknown);
    fake.running = (void *)(uintptr_t)0x10; /* freed meanwhile, and unmapped */
    apart(read_stack);
    assert_int_equal(result->frames, 0);
    fake.running = fake.other_thread; /* of a subinterpreter, on this thread */
    set_word(fake.other_thread, 152, (uint64_t)pthread_self());
    set_word(fake.other_thread, 56, address_of(fake.cframe));
    set_word(fake.thread, 56, 0x10);
    apart(read_stack);
    assert_int_equal(result->frames, 1);
    assert_false(result->unknown);
}

static void unknown_versions_are_refused(void **state)
{
    (void)state;
    fake.version = "3.7.16 (default)";
    assert_refused("CPython 3.7.16 is not known");
    fake.version = "3.16.0 (main)";
    assert_refused("CPython 3.16.0 is not known");
    fake.version = "4.11.0";
    assert_refused("CPython 4.11.0 is not known");
    fake.version = "";
    assert_refused("CPython  is not known");
}

static void unusual_builds_are_refused(void **state)
{
    (void)state;
    fake.debug = true;
    assert_refused("debug build");
    make_interpreter();
    fake.without_types = true;
    assert_refused("validation failed: the interpreter lacks a symbol");
}

/* A row of words as 3.14 publishes it, of a free-threaded build or not. */
static void publish_offsets(bool free_threaded)
{
    enum { VERSION = 0x030e0af0, LARGE = 400 };
    const uint64_t header = free_threaded ? 16 : 0;
    const struct {
        unsigned word;
        uint64_t value;
    } words[] = {
        {1, VERSION},
        {2, free_threaded},
        {22, LARGE},
        {26, 72},
        {31, 88},
        {32, 8},
        {33, 0},
        {34, 56},
        {36, 74 + header / 4},
        {38, free_threaded ? 72 : 0},
        {39, LARGE},
        {40, 112 + header},
        {42, 128 + header},
        {43, 136 + header},
        {44, 68 + header},
        {48, 208 + header * 3 / 2},
        {49, free_threaded ? 224 : 0},
        {51, 8 + header},
        {76, 32 + header},
        {78, 32 + header},
        {79, 16 + header},
        {80, 40 + header},
    };
    fake.version = "3.14.10 (main)";
    memset(fake.runtime, 0, sizeof(fake.runtime));
    memcpy(fake.runtime, "xdebugpy", 8);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        fake.runtime[words[i].word] = words[i].value;
}

static void assert_told(unsigned word, uint64_t value, const char *why)
{
    uint64_t was = fake.runtime[word];
    fake.runtime[word] = value;
    assert_refused(why);
    fake.runtime[word] = was;
}

static void what_is_told_must_be_possible(void **state)
{
    (void)state;
    const char silent[] = "validation failed: the interpreter does not tell its offsets";
    const char other[] = "validation failed: the interpreter tells another version";
    const char early[] = "not released yet: an alpha or beta version";
    const char wrong[] = "validation failed: the interpreter tells offsets that cannot be";
    for (int free_threaded = 0; free_threaded < 2; free_threaded++) {
        publish_offsets(free_threaded);
        fake.threadless = true;
        apart(read_stack);
        assert_string_equal(result->state, "CPython 3.14.10");
        assert_int_equal(result->status, GM_PYTHON_UNPROVEN);
        assert_told(0, 0, silent);
        assert_told(2, 2, silent);
        assert_told(1, 0x030d0af0, other);
        assert_told(1, 0x030e00b4, early);
        assert_told(26, 396, wrong);        /* reaches beyond the thread state */
        assert_told(26, 76, wrong);         /* not aligned */
        assert_told(26, 0, wrong);          /* would mean none */
        assert_told(32, 56, wrong);         /* where another one is */
        assert_told(40, UINT64_MAX, wrong); /* wraps around */
        assert_told(40, 16, wrong);         /* in the object's header */
        assert_told(22, 16, wrong);         /* a thread state of 16 bytes */
        assert_told(51, 16, wrong);
        assert_told(80, 64, wrong);
        assert_told(2, !free_threaded, wrong);
    }
    assert_told(38, 8, wrong); /* copies of the bytecode: free-threaded builds only */
    assert_told(49, 0, wrong);
}

/* A filter that forbids process_vm_readv, as in containers, does not prevent reading. */
static void read_stack_filtered(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        result->unfiltered = true; /* an emulator */
    else
        read_stack();
}

static void what_cannot_be_asked_from_the_kernel_is_not_needed(void **state)
{
    (void)state;
    apart(read_stack_filtered);
    if (result->unfiltered)
        skip();
    assert_string_equal(result->state, "CPython 3.11.7");
    assert_int_equal(result->frames, 1);
}

static void what_does_not_hold_is_refused(void **state)
{
    (void)state;
    set_word(fake.thread, 56, 0x10);
    assert_refused("validation failed: a pointer leads nowhere");
    make_interpreter();
    set_word(fake.frame, 48, 0x7fffffffff000); /* previous, beyond user space */
    assert_refused("validation failed: a pointer leads nowhere");
    make_interpreter();
    set_word(fake.code, GM_PYTHON_TYPE, address_of(str_type));
    assert_refused("validation failed: a frame has no code object");
    make_interpreter();
    set_word(fake.name, GM_PYTHON_TYPE, address_of(bytes_type));
    assert_refused("validation failed: a name is not a str");
    make_interpreter();
    set_word(fake.name, GM_PYTHON_SIZE, UINT64_MAX);
    assert_refused("validation failed: a name is too long");
    make_interpreter();
    set_word(fake.name, GM_PYTHON_SIZE, 3);
    assert_refused("validation failed: a name does not end");
    make_interpreter();
    set_word(fake.lines, GM_PYTHON_TYPE, address_of(str_type));
    assert_refused("validation failed: a line table is not bytes");
    make_interpreter();
    set_word(fake.frame, 56, address_of(fake.code) + 184 + 16);
    assert_refused("validation failed: a position is outside its code");
    make_interpreter();
    set_word(fake.frame, 64, 0);
    assert_refused("validation failed: no frame begins an evaluation loop");
}

static void nothing_is_judged_without_frames(void **state)
{
    (void)state;
    fake.threadless = true;
    apart(read_stack);
    assert_int_equal(result->status, GM_PYTHON_UNPROVEN);
    assert_int_equal(result->frames, 0);
    make_interpreter();
    set_word(fake.cframe, 8, 0);
    apart(read_stack);
    assert_int_equal(result->status, GM_PYTHON_UNPROVEN);
    assert_int_equal(result->frames, 0);
    make_interpreter();
    fake.finalizing = true;
    apart(read_stack);
    assert_int_equal(result->frames, 0);
}

static void line_tables_have_an_end(void **state)
{
    (void)state;
    srand(1);
    for (unsigned round = 0; round < 30000; round++) {
        size_t size = (size_t)rand() % 12;
        uint8_t *table = malloc(size ? size : 1); /* a sanitizer notices reading past its end */
        for (size_t i = 0; i < size; i++)
            table[i] = (uint8_t)rand();
        gm_python_line((enum gm_python_lines)(round % 3), table, size, rand() - RAND_MAX / 2,
                       rand() % 64 - 2);
        free(table);
    }
    const uint8_t deltas[] = {6, 1, 4, 0xff, 0, 0x80};
    assert_int_equal(gm_python_line(GM_LINES_LNOTAB, deltas, 4, 10, 5), 10);
    assert_int_equal(gm_python_line(GM_LINES_LNOTAB, deltas, 4, 10, 6), 11);
    assert_int_equal(gm_python_line(GM_LINES_LNOTAB, deltas, 4, 10, 10), 10);
    assert_int_equal(gm_python_line(GM_LINES_LNOTAB, deltas, 4, 10, -1), 10);
    assert_int_equal(gm_python_line(GM_LINES_RANGES, deltas, 4, 10, 5), 11);
    assert_int_equal(gm_python_line(GM_LINES_RANGES, deltas, 4, 10, 6), 10);
    assert_int_equal(gm_python_line(GM_LINES_RANGES, deltas, 4, 10, 10), 0);
    const uint8_t lineless[] = {4, 0x80, 4, 2};
    assert_int_equal(gm_python_line(GM_LINES_RANGES, lineless, 4, 10, 2), 0);
    assert_int_equal(gm_python_line(GM_LINES_RANGES, lineless, 4, 10, 4), 12);
    /* Long forms with line deltas of -40 (two groups) and 3, then no line. */
    const uint8_t locations[] = {0xf0, 0x51, 0x01, 0, 1, 1, 0xe8, 0x06, 0xf8};
    assert_int_equal(gm_python_line(GM_LINES_LOCATIONS, locations, 9, 50, 1), 10);
    assert_int_equal(gm_python_line(GM_LINES_LOCATIONS, locations, 9, 50, 2), 13);
    assert_int_equal(gm_python_line(GM_LINES_LOCATIONS, locations, 9, 50, 4), 0);
}

static void texts_are_utf8(void **state)
{
    (void)state;
    static const uint32_t wide[] = {0x41,     0xe9,   0x7ff,  0x800,  0xffff, 0x10000,
                                    0x10ffff, 0xdc80, 0xdcff, 0xd800, 0xdfff, 0x110000};
    const struct gm_python_layout *layout = &gm_python_layouts[0];
    struct gm_python_text text;
    object str = {0};
    set_word(str, GM_PYTHON_SIZE, 12);
    set_word(str, GM_PYTHON_STR_STATE, 4 << 2 | 1 << 5);
    memcpy((char *)str + layout->str_compact, wide, sizeof(wide));
    gm_python_text(layout, address_of(str), &text);
    const char expected[] = "A\xc3\xa9\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80"
                            "\xf4\x8f\xbf\xbf\x80\xff\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd";
    assert_int_equal(text.size, sizeof(expected) - 1);
    assert_memory_equal(text.bytes, expected, text.size);

    static uint16_t many[GM_PYTHON_TEXT_MAX];
    for (unsigned i = 0; i < GM_PYTHON_TEXT_MAX; i++)
        many[i] = 0x20ac; /* three bytes */
    set_word(str, GM_PYTHON_SIZE, GM_PYTHON_TEXT_MAX);
    set_word(str, GM_PYTHON_STR_STATE, 2 << 2); /* not compact: a str of a derived type */
    set_word(str, layout->str_compact, address_of(many));
    gm_python_text(layout, address_of(str), &text);
    assert_int_equal(text.size % 3, 0);
    assert_true(text.size > GM_PYTHON_TEXT_MAX - 4 && text.size <= GM_PYTHON_TEXT_MAX);

    set_word(str, GM_PYTHON_STR_STATE, 0);
    gm_python_text(layout, address_of(str), &text);
    assert_int_equal(text.size, 0);
}

int main(void)
{
    result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (result == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_sound_interpreter_is_read, make),
        cmocka_unit_test_setup(code_is_known_by_what_it_holds, make),
        cmocka_unit_test_setup(an_interpreter_may_come_later, make),
        cmocka_unit_test_setup(no_interpreter_leaves_no_error, make),
        cmocka_unit_test_setup(of_subinterpreters_only_what_is_known_is_read, make),
        cmocka_unit_test_setup(unknown_versions_are_refused, make),
        cmocka_unit_test_setup(what_is_told_must_be_possible, make),
        cmocka_unit_test_setup(what_cannot_be_asked_from_the_kernel_is_not_needed, make),
        cmocka_unit_test_setup(unusual_builds_are_refused, make),
        cmocka_unit_test_setup(what_does_not_hold_is_refused, make),
        cmocka_unit_test_setup(nothing_is_judged_without_frames, make),
        cmocka_unit_test(line_tables_have_an_end),
        cmocka_unit_test(texts_are_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
