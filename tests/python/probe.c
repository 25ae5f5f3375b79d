/*
 * The library that the Python tests load: walks and interns the calling thread's Python stack as
 * the recorder does, next to the native stack by the C compiler's own unwinder.
 *
 * Loaded with ctypes.CDLL (the GIL is released around the call), with ctypes.PyDLL (it is held) and
 * with LD_PRELOAD, where getppid() stands for a hooked function of a library.
 */
#include "stack/python/python.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define EXPORT __attribute__((visibility("default")))
#define NATIVE_MAX 4096

/* ---- the sink: stands for the recorder's tables, without a trace ----------------------------- */

struct text {
    char *bytes;
    size_t size;
};

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static struct text *texts;
static uint32_t text_count = 1;
static struct {
    uint32_t file, function, line;
} * frames;
static uint32_t frame_count = 1;

static void *grown(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, 2 * count * size);
}

static uint32_t add_string(const char *bytes, size_t size)
{
    pthread_mutex_lock(&sink_lock);
    texts = grown(texts, text_count, sizeof(texts[0]));
    texts[text_count].bytes = memcpy(malloc(size + 1), bytes, size);
    texts[text_count].size = size;
    uint32_t id = text_count++;
    pthread_mutex_unlock(&sink_lock);
    return id;
}

static uint32_t add_frame(uint32_t file, uint32_t function, uint32_t line)
{
    pthread_mutex_lock(&sink_lock);
    frames = grown(frames, frame_count, sizeof(frames[0]));
    frames[frame_count].file = file;
    frames[frame_count].function = function;
    frames[frame_count].line = line;
    uint32_t id = frame_count++;
    pthread_mutex_unlock(&sink_lock);
    return id;
}

static const struct gm_python_sink sink = {add_string, add_frame};

/* ---- the native stack ------------------------------------------------------------------------ */

struct native {
    uint64_t pc[NATIVE_MAX];
    uint64_t sp[NATIVE_MAX];
    uint32_t count;
};

static _Unwind_Reason_Code add_native(struct _Unwind_Context *context, void *argument)
{
    struct native *native = argument;
    if (native->count == NATIVE_MAX)
        return _URC_END_OF_STACK;
    native->pc[native->count] = _Unwind_GetIP(context);
    native->sp[native->count++] = _Unwind_GetCFA(context);
    return _URC_NO_REASON;
}

/*
 * The places of the evaluation loop's code, including parts that the compiler moved elsewhere:
 * run.py reads them from the machine code and passes them in PROBE_LOOP, as "start-end" from the
 * symbol on.
 */
static struct {
    uint64_t start, end;
} loop_parts[16];
static unsigned loop_part_count;

__attribute__((constructor)) static void read_loop_parts(void)
{
    const char *text = getenv("PROBE_LOOP");
    uint64_t symbol = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    long long start, end;
    int used;
    for (; text && loop_part_count < 16 && sscanf(text, "%lld-%lld%n", &start, &end, &used) == 2;
         text += used) {
        loop_parts[loop_part_count].start = symbol + (uint64_t)start;
        loop_parts[loop_part_count++].end = symbol + (uint64_t)end;
    }
}

/* Takes a return address: that of a call at the end of a part lies one past the end. */
static bool runs_a_loop(uint64_t pc)
{
    for (unsigned i = 0; i < loop_part_count; i++)
        if (pc > loop_parts[i].start && pc <= loop_parts[i].end)
            return true;
    return false;
}

/* ---- one stack ------------------------------------------------------------------------------- */

/* As stacks.py knows it. `loop` counts the evaluation loops of the native stack from the innermost;
 * -1: the frame was not placed in one. */
struct probe_frame {
    const char *file;
    const char *function;
    uint32_t file_size;
    uint32_t function_size;
    uint32_t line;
    int32_t loop;
};

static _Thread_local struct gm_python_thread thread_memory;
static _Thread_local struct gm_python_walk last;
static _Thread_local int last_loops; /* in the native stack */
static _Atomic uint64_t kept_frames, walked_frames;
static _Atomic uint32_t node_mistakes;

/* Stands for the recorder's id of the stack from the root down to a frame. */
static uint32_t node_of(const struct gm_python_walk *walked, uint32_t i)
{
    uint32_t outer = i ? walked->frames[i - 1].node : walked->truncated;
    return (outer ^ walked->frames[i].script) * 0x9e3779b1u + 1;
}

static uint32_t walk_python(uint32_t depth)
{
    gm_python_attach(dlsym);
    errno = 4321;
    gm_python_walk(&thread_memory, depth, &last);
    for (uint32_t i = 0; i < last.count; i++) {
        if (!last.frames[i].script)
            gm_python_intern(&thread_memory, &last.frames[i], &sink);
        if (i < last.kept && last.frames[i].node != node_of(&last, i))
            node_mistakes++;
        last.frames[i].node = node_of(&last, i);
    }
    if (errno != 4321)
        abort(); /* errno is the program's */
    kept_frames += last.kept;
    walked_frames += last.count;
    return last.count;
}

/* Places the Python frames in the native ones: loops[i] for the i-th frame from the inner end. */
static void place(const struct native *native, int32_t *loops)
{
    uint32_t left = last.count;
    int32_t loop = -1;
    for (uint32_t i = 0; i < native->count; i++) {
        bool runs = runs_a_loop(native->pc[i]);
        loop += runs;
        uint64_t caller_sp = i + 1 == native->count ? 0 : native->sp[i + 1];
        uint32_t taken = gm_python_frames_in(last.frames, left, native->pc[i], caller_sp);
        for (; taken; taken--, left--)
            loops[last.count - left] = runs ? loop : -1;
    }
    for (; left; left--)
        loops[last.count - left] = -1;
    last_loops = loop + 1;
}

/* Innermost first. Returns how many, or -1 - count when the stack was deeper. */
static int describe(struct probe_frame *out, bool native_too)
{
    static _Thread_local struct native native;
    int32_t loops[GM_PYTHON_DEPTH_MAX] = {0};
    if (native_too) {
        native.count = 0;
        _Unwind_Backtrace(add_native, &native);
        place(&native, loops);
    }
    pthread_mutex_lock(&sink_lock);
    for (uint32_t i = 0; i < last.count; i++) {
        uint32_t script = last.frames[last.count - 1 - i].script;
        uint32_t file = script ? frames[script].file : 0;
        uint32_t function = script ? frames[script].function : 0;
        out[i] = (struct probe_frame){
            .file = file ? texts[file].bytes : "?",
            .file_size = file ? (uint32_t)texts[file].size : 1,
            .function = function ? texts[function].bytes : "?",
            .function_size = function ? (uint32_t)texts[function].size : 1,
            .line = script ? frames[script].line : 0,
            .loop = loops[i],
        };
    }
    pthread_mutex_unlock(&sink_lock);
    return last.truncated ? -1 - (int)last.count : (int)last.count;
}

/* `out` has room for GM_PYTHON_DEPTH_MAX frames. */
EXPORT int probe_walk(struct probe_frame *out, uint32_t depth, int native_too)
{
    walk_python(depth);
    return describe(out, native_too);
}

EXPORT const char *probe_state(void)
{
    gm_python_attach(dlsym);
    return gm_python_state();
}

/* Frames that were the same as in the walk before, in parts per thousand of all. */
EXPORT uint32_t probe_kept_permille(void)
{
    return walked_frames ? (uint32_t)(kept_frames * 1000 / walked_frames) : 0;
}

/* Evaluation loops in the native stack of this thread's last walk. */
EXPORT int probe_loops(void)
{
    return last_loops;
}

/* Whether this thread's last walk left frames out because it did not know which subinterpreter
 * runs. */
EXPORT int probe_unknown(void)
{
    return last.unknown;
}

/* Frames that the walk reported as kept, but whose node is not that of the present stack. */
EXPORT uint32_t probe_node_mistakes(void)
{
    return node_mistakes;
}

/* ---- LD_PRELOAD: a hooked function ----------------------------------------------------------- */

static _Thread_local struct probe_frame hooked[GM_PYTHON_DEPTH_MAX];
static _Thread_local int hooked_count;
static _Atomic bool hook_on;

EXPORT pid_t getppid(void)
{
    if (hook_on) {
        walk_python(GM_PYTHON_DEPTH_MAX);
        hooked_count = describe(hooked, true);
    }
    return (pid_t)syscall(SYS_getppid);
}

EXPORT void probe_hook(int on)
{
    hook_on = on;
}

EXPORT int probe_hooked(struct probe_frame *out)
{
    memcpy(out, hooked, sizeof(hooked));
    return hooked_count;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *walk_here(void *count)
{
    *(uint32_t *)count = walk_python(GM_PYTHON_DEPTH_MAX);
    return NULL;
}

/* Frames that a thread unknown to Python sees. */
EXPORT uint32_t probe_foreign(void)
{
    pthread_t id;
    uint32_t count = 1;
    if (pthread_create(&id, NULL, walk_here, &count) == 0)
        pthread_join(id, NULL);
    return count;
}

static void *call_here(void *function)
{
    ((void (*)(void))(uintptr_t)function)();
    return NULL;
}

/* Calls back into Python on a thread that Python did not make. */
EXPORT void probe_call_in_thread(void (*function)(void))
{
    pthread_t id;
    if (pthread_create(&id, NULL, call_here, (void *)(uintptr_t)function) == 0)
        pthread_join(id, NULL);
}

/* Walks until the process ends, like a daemon thread in the middle of native work. */
EXPORT void probe_walk_for_ever(void)
{
    for (;;) {
        walk_python(GM_PYTHON_DEPTH_MAX);
        usleep(50);
    }
}

/* ---- after finalisation: destructors run when the interpreter is gone ------------------------ */

__attribute__((destructor)) static void walk_at_the_end(void)
{
    if (getenv("PROBE_TELL_THE_END"))
        printf("after finalisation: %u\n", walk_python(GM_PYTHON_DEPTH_MAX));
}

/* ---- cost ------------------------------------------------------------------------------------ */

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/*
 * ns per stack here, the best of several rounds. `forget`: how many of the innermost frames the
 * thread forgets before each walk (all: no use of the walk before), or -1: only walk.
 */
EXPORT double probe_bench(int forget)
{
    enum { ROUNDS = 15, WALKS = 4000 };
    double best = 1e18;
    walk_python(GM_PYTHON_DEPTH_MAX);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < WALKS; i++) {
            if (forget > 0)
                thread_memory.count -=
                    (uint32_t)forget < thread_memory.count ? (uint32_t)forget : thread_memory.count;
            gm_python_walk(&thread_memory, GM_PYTHON_DEPTH_MAX, &last);
            for (uint32_t at = forget < 0 ? last.count : last.kept; at < last.count; at++)
                gm_python_intern(&thread_memory, &last.frames[at], &sink);
        }
        double each = (now_ns() - start) / (double)WALKS;
        best = each < best ? each : best;
    }
    return best;
}
