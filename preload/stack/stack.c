/*
 * See stack.h.
 *
 * Native frames come root first, and so do Python frames; both walks tell how many at the root are
 * as they were at the thread's last capture. A Python frame belongs inside the native frame whose
 * evaluation loop runs it. The merged stack is a chain of nodes, each made from its parent and its
 * frame; a node found for the same chain last time is used again. For a frame that was there under
 * the same parent some time before, the thread remembers the node: that saves the look for its
 * module and the one into the table that all threads share.
 *
 * Where paths take turns, as those of PyTorch's operators do, little of the last chain holds for
 * the next, and a walk with a look for each frame's node costs a cache miss or two per frame. There
 * whole stacks are remembered (known_stacks.c).
 */
#include "stack/stack.h"
#include "base/change.h"
#include "base/config.h"
#include "base/count.h"
#include "stack/known_stacks.h"
#include "stack/loader_work.h"
#include "stack/native/unwind.h"
#include "stack/python/python.h"
#include "writer/modules.h"
#include "writer/tables.h"
#include "writer/trace_file.h"
#include <string.h>
#include <sys/mman.h>

/* 128 KiB. In a loop of 700 nodes one of 12 finds its place taken by another; with 10 bits every
 * second did, and its stacks took 7 ns more. */
#define NODES_KEPT_BITS 13
#define NODES_KEPT (1u << NODES_KEPT_BITS)
#define NODES_FIRST 64u /* 1 KiB, for a thread that has met few */

#define NODES_KEPT_WAYS 2u

struct kept_node {
    uint64_t frame;  /* pc, or script with FRAME_SCRIPT */
    uint32_t parent; /* with NODE_EXACT, if the frame is GM_FRAME_EXACT */
    uint32_t node;   /* 0: free */
};

#define NODE_EXACT (UINT32_C(1) << 31)
#define FRAME_SCRIPT (UINT64_C(1) << 63) /* no user code lies there */

_Static_assert(GM_NODES_MAX <= NODE_EXACT, "a parent leaves the upper bit free");

/* In the order in which a thread comes to need it: its first page is all that many ever touch. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the order is what saves pages */
struct gm_stack {
    uint32_t more_places;      /* for nodes, than the first */
    uint32_t kept;             /* nodes, since there are so many places */
    uint32_t nodes_generation; /* unwind.generation that they are of */
    uint32_t missed;           /* nodes that were not among them, ever */
    uint32_t costly;           /* captures during which known stacks are looked for */
    uint32_t native_count;     /* of the last capture */
    uint32_t script_count;
    uint32_t node;
    bool lost;        /* some node could not be recorded: what hangs on it would be another stack */
    bool has_scripts; /* `python` was used */
    bool has_known;   /* `known` was */
    uint16_t python_end
        [GM_UNWIND_DEPTH_MAX]; /* where the Python frames of native frames [0, i] ended, last time */
    struct kept_node first_nodes[NODES_FIRST]; /* by hash of frame and parent */
    struct gm_unwind_thread unwind;
    struct kept_node nodes[NODES_KEPT]; /* instead of the first ones, once these are too few */
    struct gm_python_thread python;     /* these pages are touched only where there is Python, */
    struct gm_known_stacks known;       /* and these where paths take turns */
};

/* Both walks of one capture. */
struct capture {
    struct gm_stack *stack;
    struct gm_walk native;
    struct gm_python_walk python;
    uint32_t looked_up; /* nodes that are not those of the last capture */
};

static const struct gm_python_sink sink = {gm_string_intern, gm_frame_intern};
static _Atomic int told_status; /* what the header's python_state says: status + 1 */

size_t gm_stack_size(void)
{
    return sizeof(struct gm_stack);
}

/* Most of its pages were never touched: those that were are given back instead of being wiped. */
void gm_stack_reset(struct gm_stack *stack)
{
    uintptr_t end = (uintptr_t)(stack + 1);
    uintptr_t first = ((uintptr_t)stack + GM_TRACE_PAGE - 1) & ~(uintptr_t)(GM_TRACE_PAGE - 1);
    uintptr_t last = end & ~(uintptr_t)(GM_TRACE_PAGE - 1);
    if (madvise((void *)first, last - first, MADV_DONTNEED) != 0) {
        memset(stack, 0, offsetof(struct gm_stack, known) + GM_KNOWN_TO_CLEAR);
        return;
    }
    memset(stack, 0, first - (uintptr_t)stack);
    memset((void *)last, 0, end - last);
}

void gm_stack_take_over(struct gm_stack *stack)
{
    gm_unwind_take_over(&stack->unwind);
    if (stack->has_scripts)
        gm_python_take_over(&stack->python);
    if (stack->has_known)
        gm_known_forget(&stack->known);
    stack->costly = 0;
    stack->native_count = 0;
    stack->script_count = 0;
    stack->node = 0;
    stack->lost = false;
}

void gm_stack_prepare(void)
{
    atomic_store(&told_status, 0);
    gm_loader_ask();
}

static void tell_python_state(int status)
{
    int saved_errno = errno;
    const char *text = gm_python_state();
    uint32_t string = gm_string_intern(text, strlen(text));
    atomic_store_explicit(&told_status, status + 1, memory_order_relaxed);
    gm_change_begin();
    __atomic_store_n(&gm_file.header->python_state, string, __ATOMIC_RELEASE);
    gm_change_end();
    errno = saved_errno;
}

static void count_troubles(uint32_t flags)
{
    if (flags & (GM_WALK_TRUNCATED | GM_WALK_CUT))
        gm_count(GM_COUNT_STACK_TRUNCATED, 1);
    if (flags & GM_WALK_FALLBACK)
        gm_count(GM_COUNT_FALLBACK, 1);
}

static inline uint32_t places_in_use(const struct gm_stack *stack)
{
    return stack->more_places + NODES_FIRST;
}

static inline struct kept_node *kept_nodes(struct gm_stack *stack)
{
    return gm_likely(stack->more_places) ? stack->nodes : stack->first_nodes;
}

static inline struct kept_node *kept_set(struct gm_stack *stack, uint64_t frame, uint32_t parent)
{
    uint64_t hash = (frame ^ (uint64_t)parent << 40) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mask = places_in_use(stack) - NODES_KEPT_WAYS;
    return kept_nodes(stack) + (hash >> (64 - NODES_KEPT_BITS) & mask);
}

/* 0: not remembered. */
static inline uint32_t kept_in(const struct kept_node *set, uint64_t frame, uint32_t parent)
{
    if (gm_likely(set[0].frame == frame && set[0].parent == parent))
        return set[0].node;
    return set[1].frame == frame && set[1].parent == parent ? set[1].node : 0;
}

/*
 * Half as many nodes were kept as there are first places. All places are in use from here on, so that
 * few nodes share a set. Each is looked up again where it belongs then; one that stays elsewhere is
 * right if it is looked for there.
 */
static void add_places(struct gm_stack *stack)
{
    stack->more_places = NODES_KEPT - NODES_FIRST;
}

/* `set`: where it belongs while there are no more places than now. */
static inline void keep_node(struct gm_stack *stack, struct kept_node *set, uint64_t frame,
                             uint32_t parent, uint32_t exact, uint32_t node)
{
    if (gm_unlikely(!stack->more_places) && ++stack->kept > NODES_FIRST / 2) {
        add_places(stack);
        set = kept_set(stack, frame, parent);
    }
    set[1] = set[0];
    set[0] = (struct kept_node){frame, parent | exact, node};
    stack->missed++;
}

static __attribute__((noinline)) uint32_t find_node(struct gm_stack *stack, struct kept_node *set,
                                                    uint32_t parent, const struct gm_frame *frame)
{
    if (stack->lost)
        return 0;
    int saved_errno = errno; /* new frames can cost system calls */
    uint64_t offset;
    bool exact = frame->flags & GM_FRAME_EXACT;
    uint32_t modules_before = __atomic_load_n(&gm_file.header->module_count, __ATOMIC_RELAXED);
    uint16_t module = gm_module_of(frame->pc, &offset);
    if (modules_before != __atomic_load_n(&gm_file.header->module_count, __ATOMIC_RELAXED))
        gm_loader_ask(); /* it may be that of an interpreter */
    uint32_t node = gm_node_intern(parent, module, offset, exact ? GM_NODE_LEAF : GM_NODE_NATIVE);
    keep_node(stack, set, frame->pc, parent, exact ? NODE_EXACT : 0, node);
    stack->lost = node == 0;
    errno = saved_errno;
    return node;
}

static inline uint32_t native_node(struct gm_stack *stack, uint32_t parent,
                                   const struct gm_frame *frame)
{
    struct kept_node *set = kept_set(stack, frame->pc, parent);
    uint32_t exact = frame->flags & GM_FRAME_EXACT ? NODE_EXACT : 0;
    uint32_t node = kept_in(set, frame->pc, parent | exact);
    return gm_likely(node) ? node : find_node(stack, set, parent, frame);
}

static uint32_t script_node(struct gm_stack *stack, uint32_t parent, struct gm_python_frame *frame)
{
    if (stack->lost)
        return 0;
    int saved_errno = errno;
    uint32_t script = gm_python_intern(&stack->python, frame, &sink);
    struct kept_node *set = kept_set(stack, script | FRAME_SCRIPT, parent);
    uint32_t node = script ? kept_in(set, script | FRAME_SCRIPT, parent) : parent;
    if (gm_unlikely(!script))
        stack->missed++; /* it may be told the next time */
    if (gm_unlikely(!node)) {
        node = gm_node_intern(parent, 0, script, GM_NODE_SCRIPT);
        keep_node(stack, set, script | FRAME_SCRIPT, parent, 0, node);
    }
    stack->lost = script && !node;
    errno = saved_errno;
    return node;
}

/*
 * Assigns Python frames to the native frames that run them. Native frame i runs those from
 * python_end[i - 1] up to python_end[i], both lists root first:
 *
 *     native   main   Py_Run   _PyEval   read   _PyEval   extension
 *     Python                   <module>         train
 *     end      0      0        1         1      2         2
 *
 * Starts at the inner end, which is where the walk knows them, and stops at a native frame from which
 * outwards all is as in the last capture. Returns the number of native frames up to that one: the
 * first to look at again. Fills python_end[] from there on.
 */
static uint32_t assign_python_frames(const struct capture *capture,
                                     uint16_t python_end[GM_UNWIND_DEPTH_MAX])
{
    const struct gm_walk *native = &capture->native;
    uint32_t scripts = capture->python.count;
    for (uint32_t i = native->count; i-- > 0;) {
        if (i < native->kept && i < capture->stack->native_count &&
            scripts <= capture->python.kept && scripts == capture->stack->python_end[i])
            return i + 1;
        python_end[i] = (uint16_t)scripts;
        if (scripts)
            scripts -= gm_python_frames_in(capture->python.frames, scripts, native->frames[i].pc,
                                           i ? native->frames[i - 1].sp : 0);
    }
    return 0;
}

/* Goes on from `node` with Python frames [*script, end). */
static uint32_t add_scripts(struct capture *capture, uint32_t node, uint32_t *script, uint32_t end,
                            bool *unchanged)
{
    for (; *script < end; (*script)++) {
        struct gm_python_frame *frame = &capture->python.frames[*script];
        *unchanged = *unchanged && *script < capture->python.kept && frame->node;
        if (!*unchanged) {
            frame->node = script_node(capture->stack, node, frame);
            capture->looked_up++;
        }
        node = frame->node;
    }
    return node;
}

static uint32_t cut_node(struct gm_stack *stack)
{
    int saved_errno = errno;
    uint32_t node = gm_node_intern(0, 0, 0, GM_NODE_CUT);
    stack->lost = node == 0;
    errno = saved_errno;
    return node;
}

/* What merge comes to where there is no Python frame, nor was at the last capture. */
static uint32_t add_native(struct gm_stack *stack, const struct gm_walk *native)
{
    struct gm_frame *frames = native->frames;
    uint32_t i = native->kept;
    uint32_t node = i ? frames[i - 1].node : 0;
    if (gm_unlikely(!i && native->flags & (GM_WALK_TRUNCATED | GM_WALK_CUT)))
        node = cut_node(stack);
    for (; i < native->count; i++) {
        node = frames[i].node = native_node(stack, node, &frames[i]);
        stack->python_end[i] = 0;
    }
    return node;
}

static uint32_t merge_frames(struct capture *capture)
{
    struct gm_stack *stack = capture->stack;
    struct gm_frame *frames = capture->native.frames;
    struct gm_python_frame *scripts = capture->python.frames;
    uint16_t python_end[GM_UNWIND_DEPTH_MAX];
    uint32_t first = assign_python_frames(capture, python_end);
    uint32_t script = first ? stack->python_end[first - 1] : 0;
    uint32_t node = 0;
    bool unchanged =
        first > 0 || capture->native.count == 0; /* the chain so far is that of the last capture */
    if (first) {
        bool runs_scripts = script > (first > 1 ? stack->python_end[first - 2] : 0);
        node = runs_scripts ? scripts[script - 1].node : frames[first - 1].node;
    } else if (capture->native.flags & (GM_WALK_TRUNCATED | GM_WALK_CUT)) {
        node = cut_node(stack);
    }
    for (uint32_t i = first; i < capture->native.count; i++) {
        unchanged = unchanged && i < capture->native.kept;
        if (!unchanged) {
            frames[i].node = native_node(stack, node, &frames[i]);
            capture->looked_up++;
        }
        node = frames[i].node;
        node = add_scripts(capture, node, &script, python_end[i], &unchanged);
        unchanged = unchanged && python_end[i] == stack->python_end[i];
        stack->python_end[i] = python_end[i];
    }
    /* Left over only where native stacks are off. */
    return add_scripts(capture, node, &script, capture->python.count, &unchanged);
}

/* The modules of the stack are not known any more: code was unloaded since, or this is the first. */
static __attribute__((noinline)) void check_modules(const struct gm_walk *native)
{
    uint64_t addresses[64]; /* those of a deeper stack are looked up one by one */
    uint32_t count = 0;
    int saved_errno = errno;
    uint32_t modules_before = __atomic_load_n(&gm_file.header->module_count, __ATOMIC_RELAXED);
    while (count < native->count && count < sizeof(addresses) / sizeof(addresses[0])) {
        addresses[count] = native->frames[count].pc;
        count++;
    }
    gm_modules_check(addresses, count);
    if (modules_before != __atomic_load_n(&gm_file.header->module_count, __ATOMIC_RELAXED))
        gm_loader_ask(); /* one may be that of an interpreter */
    errno = saved_errno;
}

/* Before nodes are looked for. */
static inline void prepare_nodes(struct gm_stack *stack, const struct gm_walk *native, int status)
{
    if (gm_unlikely(atomic_load_explicit(&told_status, memory_order_relaxed) != status + 1))
        tell_python_state(status);
    if (gm_unlikely(stack->nodes_generation != stack->unwind.generation)) {
        memset(kept_nodes(stack), 0, places_in_use(stack) * sizeof(struct kept_node));
        stack->nodes_generation = stack->unwind.generation;
        check_modules(native);
    }
}

/*
 * What a capture leaves behind for the next. A stack that could not be recorded whole is none, and
 * nothing of it is remembered: there may be room for it the next time.
 */
static inline void remember_stack(struct gm_stack *stack, uint32_t native_count,
                                  uint32_t script_count)
{
    stack->native_count = native_count;
    stack->script_count = script_count;
    if (gm_likely(!stack->lost))
        return;
    stack->lost = false;
    stack->node = 0;
    stack->native_count = 0;
    stack->script_count = UINT32_MAX; /* as no other stack has: it is looked at again */
}

/*
 * Whole stacks are remembered where it takes long to find them out again, and looked for only while
 * there are such: a loop that goes round in one function is better off without. Nor is one worth
 * its place that was not met before.
 */
#define COSTLY_NODES 8u     /* looked up, and */
#define COSTLY_FRACTION 4u  /* such a part of all */
#define COSTLY_CAPTURES 64u /* after the last costly or known one */

static inline bool is_costly(uint32_t looked_up, uint32_t frames)
{
    return gm_unlikely(looked_up >= COSTLY_NODES && looked_up * COSTLY_FRACTION >= frames);
}

static __attribute__((noinline)) void add_known(struct gm_stack *stack,
                                                const struct gm_known_key *key,
                                                const struct gm_walk *native,
                                                uint32_t missed_before)
{
    if (stack->missed != missed_before)
        return;
    stack->costly = COSTLY_CAPTURES;
    stack->has_known = true;
    if (stack->node)
        gm_known_add(&stack->known, key, &stack->unwind, native, stack->node);
}

static uint32_t find_known(struct gm_stack *stack, const struct gm_known_key *key)
{
    uint32_t flags = 0;
    uint32_t node = gm_known_find(&stack->known, key, &flags);
    stack->costly = node ? COSTLY_CAPTURES : stack->costly - 1;
    if (gm_unlikely(flags))
        count_troubles(flags);
    return node;
}

static inline void walk_native(struct gm_stack *stack, struct gm_registers registers,
                               struct gm_walk *walk)
{
    gm_unwind_walk(&stack->unwind, registers, gm_config.depth, walk);
    if (gm_unlikely(walk->flags))
        count_troubles(walk->flags);
}

/* Of a capture without Python frames, nor were there any at the last one. */
static inline __attribute__((always_inline)) uint32_t
capture_native(struct gm_stack *stack, struct gm_registers registers, int status)
{
    struct gm_walk native;
    walk_native(stack, registers, &native);
    if (native.kept != native.count || native.count != stack->native_count) {
        uint32_t missed = stack->missed;
        prepare_nodes(stack, &native, status);
        stack->node = add_native(stack, &native);
        remember_stack(stack, native.count, 0);
        if (is_costly(native.count - native.kept, native.count))
            add_known(stack, &(struct gm_known_key){.registers = registers}, &native, missed);
    }
    gm_unwind_interned(&stack->unwind, stack->native_count);
    return stack->node;
}

static __attribute__((noinline)) uint32_t
capture_among_known(struct gm_stack *stack, struct gm_registers registers, int status)
{
    uint32_t node = find_known(stack, &(struct gm_known_key){.registers = registers});
    return node ? node : capture_native(stack, registers, status);
}

/* With Python frames, now or at the last capture, or without native ones. */
static __attribute__((noinline)) uint32_t capture_scripts(struct gm_stack *stack,
                                                          struct gm_registers registers, int status,
                                                          bool walks_scripts)
{
    struct capture capture = {.stack = stack};
    stack->has_scripts |= walks_scripts;
    if (walks_scripts)
        gm_python_look(&stack->python, gm_config.depth, &capture.python);
    if (gm_unlikely(capture.python.unknown))
        gm_count(GM_COUNT_PYTHON_UNKNOWN, 1);
    const struct gm_known_key key = {
        .registers = gm_config.native_stacks ? registers : (struct gm_registers){0},
        .scripts = capture.python.frames,
        .script_count = capture.python.count,
        .scripts_truncated = capture.python.truncated,
    };
    uint32_t known = stack->costly ? find_known(stack, &key) : 0;
    if (known)
        return known;
    if (gm_config.native_stacks)
        walk_native(stack, registers, &capture.native);
    if (walks_scripts)
        gm_python_keep(&stack->python, &capture.python);
    bool same_scripts =
        capture.python.kept == capture.python.count && capture.python.count == stack->script_count;
    if (!same_scripts || capture.native.kept != capture.native.count ||
        capture.native.count != stack->native_count) {
        uint32_t missed = stack->missed;
        prepare_nodes(stack, &capture.native, status);
        stack->node = same_scripts && capture.python.count == 0 ? add_native(stack, &capture.native)
                                                                : merge_frames(&capture);
        remember_stack(stack, capture.native.count, capture.python.count);
        if (!gm_config.native_stacks ||
            is_costly(capture.looked_up, capture.native.count + capture.python.count))
            add_known(stack, &key, &capture.native, missed);
    }
    gm_unwind_interned(&stack->unwind, stack->native_count);
    return stack->node;
}

uint32_t gm_stack_capture(struct gm_stack *stack, void *frame)
{
    int status = (int)gm_python_status();
    struct gm_registers registers = gm_registers_of_caller(frame);
    bool walks_scripts =
        gm_config.python_stacks && (status == GM_PYTHON_ON || status == GM_PYTHON_UNPROVEN);
    if (gm_unlikely(walks_scripts || stack->script_count || !gm_config.native_stacks))
        return capture_scripts(stack, registers, status, walks_scripts);
    if (gm_unlikely(stack->costly))
        return capture_among_known(stack, registers, status);
    return capture_native(stack, registers, status);
}
