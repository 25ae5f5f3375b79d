/*
 * See tree.h. Compiled with -fexceptions: C++ exceptions pass through these frames.
 *
 * The empty assembly statements hide facts from the compiler that it would use: that a frame's
 * memory is not needed, that a call is a tail call (and could be a jump).
 */
#include "tree.h"
#include <alloca.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* What a handler continues with. Volatile: raise() is declared not to call back into this file. */
static __thread struct tree *volatile signalled;
static __thread volatile unsigned signalled_depth;

uint64_t tree_random(struct tree *tree, uint64_t below)
{
    tree->random ^= tree->random >> 12;
    tree->random ^= tree->random << 25;
    tree->random ^= tree->random >> 27;
    return (tree->random * UINT64_C(2685821657736338717) >> 20) % below;
}

APART void tree_see(struct tree *tree)
{
    tree->see(__builtin_frame_address(0));
    KEEP(tree);
}

/* The work of each frame: shows its stack and goes on, some times. */
static inline __attribute__((always_inline)) void live(struct tree *tree, unsigned depth)
{
    if (tree_random(tree, 3) == 0)
        tree_see(tree);
    tree_descend(tree, depth + 1);
    while (tree_random(tree, 4) == 0)
        tree_descend(tree, depth + 1);
    if (tree_random(tree, 4) == 0)
        tree_see(tree);
}

static APART void small_frame(struct tree *tree, unsigned depth)
{
    live(tree, depth);
    KEEP(tree);
}

static APART void odd_frame(struct tree *tree, unsigned depth)
{
    char memory[777];
    KEEP(memory);
    live(tree, depth);
    KEEP(memory);
}

/* Old return addresses stay in memory that nothing overwrites: a trap for code that compares only
 * them. */
static APART void alloca_unwritten(struct tree *tree, unsigned depth)
{
    char *memory = alloca(16 + tree_random(tree, 700));
    KEEP(memory);
    live(tree, depth);
    KEEP(memory);
}

static APART void alloca_written(struct tree *tree, unsigned depth)
{
    size_t size = 16 + tree_random(tree, 700);
    char *memory = alloca(size);
    memset(memory, (int)depth, size);
    KEEP(memory);
    live(tree, depth);
    KEEP(memory);
}

static APART void variable_array(struct tree *tree, unsigned depth)
{
    uint64_t memory[1 + tree_random(tree, 90)];
    memory[0] = depth;
    KEEP(memory);
    live(tree, depth);
    KEEP(memory);
}

static APART void realigned(struct tree *tree, unsigned depth)
{
    _Alignas(64) char memory[128];
    KEEP(memory);
    live(tree, depth);
    KEEP(memory);
}

/* Realigned with arguments on the stack and memory of unknown size: gcc keeps the CFA in a word. */
static APART uint64_t realigned_dynamic(struct tree *tree, unsigned depth, uint64_t a, uint64_t b,
                                        uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    _Alignas(64) uint64_t memory[16];
    uint64_t *more = alloca(8 + 8 * tree_random(tree, 60));
    memory[3] = a + b;
    KEEP(memory);
    KEEP(more);
    live(tree, depth);
    KEEP(more);
    KEEP(memory);
    return memory[3] + c + d + e + f;
}

static APART void stack_arguments(struct tree *tree, unsigned depth)
{
    uint64_t sum = realigned_dynamic(tree, depth, 1, 2, 3, 4, 5, depth);
    KEEP(sum);
}

/* Taking this address forces a frame pointer. */
static APART void frame_pointer(struct tree *tree, unsigned depth)
{
    KEEP(__builtin_frame_address(0));
    live(tree, depth);
    KEEP(tree);
}

/* More live values than registers, so the frame pointer holds one of them. */
static APART void register_pressure(struct tree *tree, unsigned depth)
{
    uint64_t a = tree_random(tree, 99), b = a * 3, c = a ^ 5, d = a + 7, e = a - 9, f = a << 3;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    tree_see(tree);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    live(tree, depth);
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

struct sorted {
    struct tree *tree;
    unsigned depth;
};

static int compare(const void *left, const void *right)
{
    const struct sorted *one = *(struct sorted *const *)left;
    live(one->tree, one->depth);
    (void)right;
    return 0;
}

static APART void through_libc(struct tree *tree, unsigned depth)
{
    struct sorted one = {tree, depth + 3};
    struct sorted *array[2] = {&one, &one};
    qsort(array, 2, sizeof array[0], compare);
    KEEP(array);
}

/*
 * Traps for an unwinder that reuses what it found before. Two calls of `shifted` show stacks that
 * differ only in where one frame in the middle begins: its stack pointer, its callee's frame and
 * the words of all outer frames' old places stay as they were. Only the saved frame pointer reveals it.
 */
#define SHIFTS 4

static APART void keeps_fp(struct tree *tree)
{
    tree_see(tree);
    KEEP(tree);
}

/* As many values as there are callee-saved registers: the frame pointer holds one, the same each time. */
static APART void saves_fp(struct tree *tree)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    tree_see(tree);
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

/* Through one call, so that the walk meets the frame again from an inner one that it left by
 * another rule. */
static APART void shifted_inner(struct tree *tree, uint64_t shift)
{
    static void (*const see[])(struct tree *) = {keeps_fp, saves_fp, saves_fp};
    char *memory = alloca(64 * shift);
    KEEP(memory);
    see[tree_random(tree, 3)](tree);
    KEEP(memory);
}

static APART void shifted_outer(struct tree *tree, uint64_t shift)
{
    char *memory = alloca(64 * shift);
    KEEP(memory);
    if (shift % 2 == 0) { /* two places to return to */
        shifted_inner(tree, SHIFTS - shift);
        KEEP(tree);
    } else {
        shifted_inner(tree, SHIFTS - shift);
        KEEP(memory);
    }
}

static APART void shifted(struct tree *tree, unsigned depth)
{
    for (int i = 0; i < 4; i++)
        shifted_outer(tree, tree_random(tree, SHIFTS));
    tree_descend(tree, depth + 1);
    KEEP(tree);
}

/* The same for a realigned frame: the frame pointer is the same too; only the word that holds the CFA reveals
 * it. */
static APART uint64_t realigned_see(struct tree *tree, uint64_t a, uint64_t b, uint64_t c,
                                    uint64_t d, uint64_t e, uint64_t f)
{
    _Alignas(64) uint64_t memory[16];
    uint64_t *more = alloca(8 * a);
    memory[3] = a + b;
    KEEP(memory);
    KEEP(more);
    saves_fp(tree);
    KEEP(more);
    KEEP(memory);
    return memory[3] + c + d + e + f;
}

static APART uint64_t ordinary_see(struct tree *tree, uint64_t a, uint64_t b, uint64_t c,
                                   uint64_t d, uint64_t e, uint64_t f)
{
    saves_fp(tree);
    return a + b + c + d + e + f;
}

static APART void shifted_realigned_once(struct tree *tree, uint64_t shift)
{
    static uint64_t (*const see[])(struct tree *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                   uint64_t) = {ordinary_see, realigned_see, realigned_see};
    char *memory = alloca(16 * shift);
    KEEP(memory);
    uint64_t sum = see[tree_random(tree, 3)](tree, 8, 2, 3, 4, 5, 6);
    KEEP(sum);
    KEEP(memory);
}

static APART void shifted_realigned(struct tree *tree, unsigned depth)
{
    for (int i = 0; i < 4; i++)
        shifted_realigned_once(tree, tree_random(tree, 3));
    tree_descend(tree, depth + 1);
    KEEP(tree);
}

/*
 * The unwind data change right after a call that never returns: the new data describe the code that
 * follows, not the call.
 */
void call_before_change(struct tree *tree);
__asm__(".text\n"
        ".type call_before_change, %function\n"
        "call_before_change:\n"
        "    .cfi_startproc\n"
#if defined(__x86_64__)
        "    subq $24, %rsp\n"
        "    .cfi_adjust_cfa_offset 24\n"
        "    call tree_throw@PLT\n"
        "    .cfi_adjust_cfa_offset 1000\n"
        "    ud2\n"
#elif defined(__aarch64__)
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_def_cfa_offset 32\n"
        "    .cfi_offset 29, -32\n"
        "    .cfi_offset 30, -24\n"
        "    bl tree_throw\n"
        "    .cfi_adjust_cfa_offset 1000\n"
        "    brk #0\n"
#endif
        "    .cfi_endproc\n"
        ".size call_before_change, . - call_before_change\n");

/* The return address of its last instruction lies outside of the function. */
static APART void last_call(struct tree *tree)
{
    tree_throw(tree);
}

static void handle(int number)
{
    (void)number;
    struct tree *tree = signalled;
    live(tree, signalled_depth);
}

static APART void through_signal(struct tree *tree, unsigned depth)
{
    if (tree_random(tree, 100) != 0) /* each stack asks libunwind, so not too often */
        return;
    struct tree *outer_tree = signalled;
    unsigned outer_depth = signalled_depth;
    unsigned calls_left = tree->calls_left, catchers = tree->catchers;
    signalled = tree;
    signalled_depth = depth;
    tree->signals++;
    tree->calls_left = calls_left < 20 ? calls_left : 20;
    tree->catchers = 0;
    tree->handlers++;
    raise(SIGUSR1);
    tree->handlers--;
    tree->catchers = catchers;
    tree->calls_left = calls_left;
    signalled = outer_tree;
    signalled_depth = outer_depth;
}

static tree_function *const functions[] = {
    small_frame,    small_frame,       odd_frame,    alloca_unwritten,  alloca_unwritten,
    alloca_written, variable_array,    realigned,    stack_arguments,   frame_pointer,
    frame_pointer,  register_pressure, through_libc, through_signal,    tree_catch,
    tree_coroutine, tree_plugin,       shifted,      shifted_realigned,
};

APART void tree_descend(struct tree *tree, unsigned depth)
{
    if (depth >= tree->depth_limit || tree->calls_left == 0) {
        tree_see(tree);
        return;
    }
    tree->calls_left--;
    if (tree->catchers > 0 && tree_random(tree, 64) == 0) {
        if (tree_random(tree, 2) == 0)
            call_before_change(tree);
        last_call(tree);
    }
    if (tree->coroutine && tree_random(tree, 16) == 0)
        tree_yield(tree);
    functions[tree_random(tree, sizeof functions / sizeof functions[0])](tree, depth);
    KEEP(tree);
}

void tree_grow(struct tree *tree)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    tree->depth_limit = 2 + (unsigned)tree_random(tree, 45);
    tree->calls_left = 4000;
    tree->catchers = 0;
    tree_descend(tree, 0);
}
