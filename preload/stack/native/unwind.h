/*
 * The native stack of the calling thread, cheap enough for every event.
 *
 * A frame is unwound by a rule (how CFA, return address and saved frame pointer follow from pc, sp
 * and frame pointer: rbp on x86-64, x29 on aarch64) that is read from .eh_frame once per return
 * address and kept in a hash of the thread. The frames of the thread's last walk are kept too: a new
 * walk stops at the first frame that is in the same state (pc, sp, fp) as a kept one, provided that
 * all words from which the frames outside of it were found still hold what they held. A frame's
 * state is a function of the inner frame's state and of exactly those words, so what is reused
 * equals what would have been found, frame by frame.
 *
 * Frames that the rules do not cover (signal frames, unusual CFA expressions, code without CFI)
 * make libunwind walk the whole stack, if it could be opened; other machines always use it.
 *
 * Guarantees: no malloc, no stdio, no lock and no loader lock on the way of the rules (libunwind
 * takes the loader lock); reads only between the given stack pointer and the end of the mapping it
 * lies in; errno is preserved; a walk in a signal handler that interrupted a walk of the same
 * thread gives an empty stack. Relies on: gm_unwind_new_generation() around every dlclose.
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_H

#include "stack/native/unwind_image.h"
#include "stack/native/unwind_rule.h"
#include <stdbool.h>
#include <stdint.h>

#define GM_UNWIND_DEPTH_MAX 256u
#define GM_UNWIND_RULE_SETS 512u /* a power of two */
#define GM_UNWIND_FIRST_SETS 16u /* likewise */
#define GM_UNWIND_RULE_WAYS 4u   /* one cache line */
#define GM_UNWIND_IMAGES 32u
#define GM_UNWIND_NEW_FRAMES (GM_UNWIND_DEPTH_MAX + 1) /* one more is looked at than asked for */
#define GM_UNWIND_FRAMES (GM_UNWIND_NEW_FRAMES + GM_UNWIND_DEPTH_MAX)

/* Where a walk starts: the state right after the return from the function whose frame was given. */
struct gm_registers {
    uint64_t pc;
    uint64_t sp;
    uint64_t fp;
};

enum gm_frame_flags {
    GM_FRAME_EXACT = 1u << 0, /* pc is the interrupted instruction, not a return address */
};

/*
 * One frame. `saved` tells from which words of the stack, counted from sp, its state was found (see
 * unwind.c).
 */
struct gm_frame {
    uint64_t pc; /* return address into this frame's function */
    uint64_t sp; /* stack pointer after that return, the CFA of the inner frame; 0: not known */
    uint64_t fp; /* frame pointer after that return */
    uint64_t fp_place; /* kept frame: the word in which that was saved; `fp` itself if none */
    uint32_t node;     /* the recorder's, for the stack from the root down to this frame */
    struct gm_saved_words saved;
    uint8_t flags; /* enum gm_frame_flags */
};

enum gm_walk_flags {
    GM_WALK_TRUNCATED = 1u << 0, /* deeper than asked for: the innermost frames are given */
    GM_WALK_CUT = 1u << 1,       /* ends at a frame that could not be unwound */
    GM_WALK_FALLBACK = 1u << 2,  /* libunwind was asked */
    GM_WALK_BUSY = 1u << 3,      /* empty: a signal handler interrupted a walk of this thread */
};

/* A walked stack, root first. Valid until the thread's next walk. */
struct gm_walk {
    struct gm_frame *frames;
    uint32_t count;
    uint32_t kept;  /* frames [0, kept) still carry valid nodes */
    uint32_t flags; /* enum gm_walk_flags */
};

/*
 * What a thread keeps between walks. The caller gives the memory; zeroed is the valid first state,
 * and the content may be thrown away at any time by zeroing it again. Only its thread touches it.
 * 54 KiB; at a multiple of 64 bytes a rule is found in one cache line.
 *
 * A thread that records one call should not have to pay for the pages of all of it: what it touches
 * then lies together. It has few rules at first, and new frames, which are found from the inside
 * out, end where kept ones begin.
 */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the order is what saves pages */
struct gm_unwind_thread {
    uint64_t stack_low; /* the thread's own stack, [stack_low, stack_high) */
    uint64_t stack_high;
    uint64_t readable_end; /* of this walk: from its sp to here the stack is known to be readable */
    uint64_t readable_limit; /* and up to here it is worth asking the kernel for more */
    uintptr_t busy;          /* frame address of the walk under way, 0 none */
    uint32_t cached;         /* frames that the next walk may reuse */
    uint32_t interned;       /* of these, how many carry valid nodes */
    uint32_t generation;     /* of the rules and frames */
    uint32_t next_image;
    uint32_t more_sets;  /* in use, than GM_UNWIND_FIRST_SETS */
    uint32_t read;       /* rules, since there are so many sets */
    bool base_truncated; /* the outermost kept frame is not the root */
    bool has_realigned;  /* among the kept frames: their CFA was read from the stack */
    bool stack_known;
    uint8_t walks; /* before that */
    struct gm_rule rules[GM_UNWIND_RULE_SETS][GM_UNWIND_RULE_WAYS] __attribute__((aligned(64)));
    struct gm_image images[GM_UNWIND_IMAGES]; /* only where finding them is slow */
    struct gm_frame frames[GM_UNWIND_FRAMES]; /* new ones, from their end down, then kept ones */
};

_Static_assert(sizeof(struct gm_unwind_thread) <= 64 * 1024, "small enough for every thread");

/*
 * Opens libunwind.so.8 privately and looks up what the C library offers. To be called once, before
 * the first walk, with no lock held (it calls dlopen and dlsym). Returns whether libunwind is
 * there.
 */
bool gm_unwind_open_fallback(void);

/*
 * Makes every thread drop what it learnt of loaded code. To be called before a dlclose, because
 * another thread may map other code as soon as the pages are free, and again after it, because
 * destructors run in it may have been walked through.
 */
void gm_unwind_new_generation(void);

/*
 * State of the caller of the function whose __builtin_frame_address(0) is `frame`, which has called
 * this one and not returned. That builtin makes the compiler keep a frame pointer there.
 *
 * On x86-64 two words tell the state without any rule. On aarch64 they lie somewhere in the frame,
 * so that function's rule tells how far from its end; all functions between it and this one must
 * keep a frame pointer, too.
 */
#if defined(__aarch64__)

struct gm_registers gm_registers_of_caller(const void *frame);

#else

static inline struct gm_registers gm_registers_of_caller(const void *frame)
{
    const uint64_t *record = (const uint64_t *)frame;
    return (struct gm_registers){
        .pc = record[1], .sp = (uint64_t)(uintptr_t)(record + 2), .fp = record[0]};
}

#endif

/*
 * Walks the calling thread's stack outwards from `registers`, a state of a function that has not
 * returned yet. At most `depth` (1 .. GM_UNWIND_DEPTH_MAX) frames, the innermost.
 */
void gm_unwind_walk(struct gm_unwind_thread *thread, struct gm_registers registers, uint32_t depth,
                    struct gm_walk *walk);

/* A word of the stack that a walk has read, and what it held. */
struct gm_stack_word {
    uint64_t place;
    uint64_t value;
};

/*
 * All that the pcs and sps of a walk follow from, in the order of the walk: where it started, and
 * the words from which it found one frame after the other. While they hold, a walk finds the same.
 */
struct gm_stack_words {
    struct gm_registers state;
    uint64_t fp_mask; /* 0: no frame was found from the frame pointer it started with */
    uint32_t count;
    uint32_t reserved;
    struct gm_stack_word word[]; /* room for GM_UNWIND_WORDS_MAX */
};

#define GM_UNWIND_WORDS_MAX (3 * GM_UNWIND_DEPTH_MAX)

/*
 * The words of the thread's last walk. False where that cannot be told: frames that libunwind
 * found, a stack that is not the thread's own.
 */
bool gm_unwind_words(struct gm_unwind_thread *thread, const struct gm_walk *walk,
                     struct gm_stack_words *words);

/* Whether they hold for a walk of the same thread that starts at `registers`. */
bool gm_unwind_words_hold(const struct gm_stack_words *words, struct gm_registers registers);

/* Counts up around each dlclose: what was learnt of code before is out of date. */
uint32_t gm_unwind_generation(void);

/* The calling thread has taken the memory over from one that has ended, at rest: what was learnt of
 * code still holds, what was learnt of the other's stack does not. */
void gm_unwind_take_over(struct gm_unwind_thread *thread);

/* The caller has set the nodes of frames [0, count) of the last walk. Without it `kept` stays 0. */
static inline void gm_unwind_interned(struct gm_unwind_thread *thread, uint32_t count)
{
    thread->interned = count < thread->cached ? count : thread->cached;
}

/* ---- libunwind (unwind_fallback.c) --------------------------------------------------------------- */

/* Finds the library and its functions. Calls dlopen; once, outside of any hook. */
bool gm_fallback_open(void);

/*
 * Walks the calling thread's stack from the first frame whose stack pointer is `sp` or above, and
 * writes the frames downwards from frames[-1]: the outermost ends up at frames[-count]. At most
 * `depth` frames. `generation` tells when what libunwind remembers of loaded code is out of date.
 * `*flags` becomes a set of GM_WALK_TRUNCATED, GM_WALK_CUT. Returns the count; 0 also when
 * libunwind is not there.
 */
uint32_t gm_fallback_walk(uint64_t sp, uint32_t generation, struct gm_frame *frames, uint32_t depth,
                          uint32_t *flags);

/* In a child: libunwind is used no more if a thread of the parent was inside of it at the fork. */
void gm_fallback_forget(void);

#endif
