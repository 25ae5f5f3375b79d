/*
 * The walk. See unwind.h for what it guarantees.
 *
 * A state is (pc, sp, fp). A rule, fixed by pc, maps a frame's state to the next outer one and reads
 * two words of the stack for it: the one in which the return address was saved, and the one in which
 * the frame pointer was, if it was. Both are counted from the new sp. A dynamically realigned frame
 * (x86-64) reads a third, the new sp itself, counted from the saved rbp.
 *
 * So if a new walk meets a kept frame's state again, and these words of all frames outside of it
 * are unchanged, then by induction so are the frames. The check reads the words in the order and at
 * the places a walk by rules would, only without waiting for one before asking for the next.
 * Comparing return addresses alone would be wrong: with alloca the same return address can stand in
 * the same place under another frame pointer, while old return addresses still lie in memory not yet
 * written.
 */
#include "stack/native/unwind.h"
#include "base/platform.h"
#include "stack/native/stack_bounds.h"
#include "writer/why.h"
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static _Atomic uint32_t generation;

bool gm_unwind_open_fallback(void)
{
    gm_image_open();
    return gm_fallback_open();
}

void gm_unwind_new_generation(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_acq_rel);
}

uint32_t gm_unwind_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_acquire);
}

/* Forgets the last walk, not the rules. */
static void drop_frames(struct gm_unwind_thread *thread)
{
    thread->cached = 0;
    thread->interned = 0;
}

static inline uint32_t sets_in_use(const struct gm_unwind_thread *thread)
{
    return thread->more_sets + GM_UNWIND_FIRST_SETS;
}

static void drop_all(struct gm_unwind_thread *thread)
{
    drop_frames(thread);
    memset(thread->rules, 0, sets_in_use(thread) * sizeof thread->rules[0]);
    if (thread->next_image)
        memset(thread->images, 0, sizeof thread->images);
}

void gm_unwind_take_over(struct gm_unwind_thread *thread)
{
    drop_frames(thread);
    thread->stack_low = thread->stack_high = 0;
    thread->stack_known = false;
    thread->walks = 0;
}

static inline struct gm_frame *kept_frames(struct gm_unwind_thread *thread)
{
    return thread->frames + GM_UNWIND_NEW_FRAMES;
}

/* The walk ends with the `native` frames found before one was declined. */
static void cut_stack(struct gm_unwind_thread *thread, uint32_t native, struct gm_walk *walk)
{
    drop_frames(thread);
    walk->frames = kept_frames(thread) - native;
    walk->count = native;
    walk->flags = GM_WALK_CUT;
}

/*
 * The general unwinder's answer takes the place of `native` frames found before one was declined.
 * It is not kept for the next walk: nothing is known of the words it read.
 */
static void walk_general(struct gm_unwind_thread *thread, struct gm_registers registers,
                         uint32_t depth, uint32_t native, struct gm_walk *walk)
{
    drop_frames(thread);
    struct gm_frame *general_end = thread->frames + GM_UNWIND_FRAMES;
    uint32_t flags = GM_WALK_FALLBACK;
    walk->count = gm_fallback_walk(registers.sp, thread->generation, general_end, depth, &flags);
    if (walk->count >= native && walk->count > 0) {
        walk->frames = general_end - walk->count;
        walk->flags = flags;
    } else {
        cut_stack(thread, native, walk);
    }
    if (walk->flags & GM_WALK_CUT && walk->count > 0)
        gm_why(GM_WHY_WALK_CUT, walk->frames[0].pc, NULL);
}

#if GM_UNWIND_HAS_RULES

/*
 * The words of the stack are other functions' variables: sanitizers must not look at these reads.
 * A function with these attributes may not be inlined into one without, so all of the walk has
 * them.
 */
#define RAW_STACK __attribute__((no_sanitize("address", "thread")))

RAW_STACK static inline uint64_t load(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

/* Where the `words`-th word from `base` lies. */
static inline uint64_t word_from(uint64_t base, int64_t words)
{
    return base + 8 * (uint64_t)words;
}

/* The word in which the return address was saved that `frame` was found from. */
static inline uint64_t return_place(const struct gm_frame *frame)
{
    return word_from(frame->sp, gm_return_word(frame->saved));
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* As gm_image_find; if that is slow, out of what the thread has found before. */
static bool find_image(struct gm_unwind_thread *thread, uint64_t address, struct gm_image *image)
{
    if (!gm_image_find_is_slow())
        return gm_image_find(address, image);
    for (uint32_t i = 0; i < GM_UNWIND_IMAGES; i++) {
        if (address >= thread->images[i].start && address < thread->images[i].end) {
            *image = thread->images[i];
            return true;
        }
    }
    if (!gm_image_find(address, image))
        return false;
    thread->images[thread->next_image++ % GM_UNWIND_IMAGES] = *image;
    return true;
}

static const struct gm_rule no_cfi = {.kind = GM_RULE_NO_CFI};

/*
 * As many rules were read as half of the first places hold. All sets are in use from here on, so
 * that most sets hold one rule: the processor cannot guess which of several it will be. Each rule is
 * read again where it belongs then; one that stays elsewhere is right if it is looked for there.
 */
static void add_sets(struct gm_unwind_thread *thread)
{
    thread->more_sets = GM_UNWIND_RULE_SETS - GM_UNWIND_FIRST_SETS;
}

static inline struct gm_rule *set_of(struct gm_unwind_thread *thread, uint64_t pc)
{
    uint64_t hash = pc * UINT64_C(0x9e3779b97f4a7c15);
    return thread->rules[hash >> 55 & (thread->more_sets + (GM_UNWIND_FIRST_SETS - 1))];
}

/*
 * Reads a rule and keeps it as the first of its set; the last falls out. Code outside of all images
 * is generated and may be replaced without a dlclose, so nothing is kept of it.
 */
static __attribute__((noinline)) const struct gm_rule *read_rule(struct gm_unwind_thread *thread,
                                                                 struct gm_rule *set, uint64_t pc)
{
    struct gm_image image;
    if (!find_image(thread, pc - 1, &image))
        return &no_cfi;
    if (!thread->more_sets && ++thread->read > GM_UNWIND_FIRST_SETS * GM_UNWIND_RULE_WAYS / 2) {
        add_sets(thread);
        set = set_of(thread, pc);
    }
    struct gm_rule rule = gm_rule_read(&image, pc);
    memmove(set + 1, set, (GM_UNWIND_RULE_WAYS - 1) * sizeof *set);
    set[0] = rule;
    return &set[0];
}

static inline const struct gm_rule *find_rule(struct gm_unwind_thread *thread, uint64_t pc)
{
    struct gm_rule *set = set_of(thread, pc);
    for (unsigned i = 0; i < GM_UNWIND_RULE_WAYS; i++)
        if (gm_likely(set[i].pc == pc))
            return &set[i];
    return read_rule(thread, set, pc);
}

_Static_assert(GM_UNWIND_RULE_SETS == 1u << (64 - 55), "set_of takes the upper 9 bits");
_Static_assert((GM_UNWIND_FIRST_SETS & (GM_UNWIND_FIRST_SETS - 1)) == 0, "and masks them");

/* ---- where a walk starts --------------------------------------------------------------------- */

#if defined(__aarch64__)

#define OWN_FRAMES_MAX 32u /* between a hook and here */
#define SIZES_KEPT 64u     /* a power of two */
#define SIZE_BITS 16

/*
 * How far above its frame record the function that holds return address `pc` has its CFA, in words;
 * 0: not known. The library's own functions are never unloaded, so what was found is kept for good,
 * pc and size in one word.
 */
static uint64_t words_above_record(uint64_t pc)
{
    static _Atomic uint64_t kept[SIZES_KEPT];
    _Atomic uint64_t *place = &kept[pc / 4 % SIZES_KEPT];
    uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
    if (gm_likely(found >> SIZE_BITS == pc))
        return found & ((1u << SIZE_BITS) - 1);
    struct gm_image image;
    if (!gm_image_find(pc - 1, &image))
        return 0;
    struct gm_rule rule = gm_rule_read(&image, pc);
    int64_t words = -gm_fp_word(rule.saved);
    if ((rule.kind != GM_RULE_SP && rule.kind != GM_RULE_FP) || words <= 0 ||
        gm_return_word(rule.saved) != 1 - words)
        return 0;
    if (pc >> (64 - SIZE_BITS) == 0)
        atomic_store_explicit(place, pc << SIZE_BITS | (uint64_t)words, memory_order_relaxed);
    return (uint64_t)words;
}

/*
 * The frame records of the library's own functions lead from here to the one of which `frame` is the
 * record: the last of them holds the address at which that one goes on.
 */
RAW_STACK __attribute__((noinline)) struct gm_registers gm_registers_of_caller(const void *frame)
{
    const uint64_t *record = frame, *inner = __builtin_frame_address(0);
    uint64_t words = 0;
    for (unsigned i = 0; i < OWN_FRAMES_MAX && inner < record; i++) {
        const uint64_t *next = (const uint64_t *)(uintptr_t)inner[0];
        if (next == record)
            words = words_above_record(gm_code_address(inner[1]));
        if (next <= inner)
            break;
        inner = next;
    }
    /* No rule counts from a stack pointer that is not aligned: libunwind walks, from there on. */
    uint64_t sp = (uint64_t)(uintptr_t)record + (words ? 8 * words : 9);
    return (struct gm_registers){.pc = gm_code_address(record[1]), .sp = sp, .fp = record[0]};
}

#endif

/* ---- one step -------------------------------------------------------------------------------- */

enum step {
    STEP_DONE,
    STEP_END,      /* there is no outer frame */
    STEP_DECLINED, /* not for the rules, or out of the stack's bounds */
};

/* Of a stack that is not known, so much may lie between the pages of two frames. */
#define PAGE_SIZE_MIN UINT64_C(4096)
#define UNKNOWN_STEP_MAX (UINT64_C(1) << 20)

/* Makes sure that the stack is readable up to and including the word at `address`. */
static __attribute__((noinline)) bool extend_readable(struct gm_unwind_thread *thread,
                                                      uint64_t address)
{
    if (thread->readable_end >= thread->readable_limit ||
        address - thread->readable_end > UNKNOWN_STEP_MAX)
        return false;
    while (thread->readable_end <= address) {
        if (!gm_page_is_readable(thread->readable_end))
            return false;
        thread->readable_end += PAGE_SIZE_MIN;
    }
    return true;
}

/* A word that may be read: aligned, not below the inner frame, inside the stack. */
static inline bool readable(struct gm_unwind_thread *thread, const struct gm_frame *inner,
                            uint64_t address)
{
    return address >= inner->sp && address % 8 == 0 &&
           (gm_likely(address < thread->readable_end) || extend_readable(thread, address));
}

#if defined(__x86_64__)

RAW_STACK static enum step step_realigned(struct gm_unwind_thread *thread,
                                          const struct gm_rule *rule, const struct gm_frame *inner,
                                          struct gm_frame *outer)
{
    uint64_t saved_fp = inner->fp;
    uint64_t cfa_place = word_from(saved_fp, rule->saved.cfa);
    if (!readable(thread, inner, saved_fp) || !readable(thread, inner, cfa_place))
        return STEP_DECLINED;
    uint64_t cfa = load(cfa_place);
    if (!readable(thread, inner, cfa - 8) || saved_fp >= cfa - 8)
        return STEP_DECLINED;
    int64_t fp_word = (int64_t)(saved_fp - cfa) / 8;
    if (fp_word < INT16_MIN)
        return STEP_DECLINED;
    outer->sp = cfa;
    outer->pc = load(cfa - 8);
    outer->fp = load(saved_fp);
    outer->saved.fp = (int16_t)fp_word;
    outer->saved.cfa = rule->saved.cfa;
    return STEP_DONE;
}

#else

static enum step step_realigned(struct gm_unwind_thread *thread, const struct gm_rule *rule,
                                const struct gm_frame *inner, struct gm_frame *outer)
{
    (void)thread;
    (void)rule;
    (void)inner;
    (void)outer;
    return STEP_DECLINED;
}

#endif

/* The frame outside of `inner`. Its sp is always higher, so every walk ends. */
RAW_STACK static inline enum step step(struct gm_unwind_thread *thread,
                                       const struct gm_frame *inner, struct gm_frame *outer)
{
    const struct gm_rule *rule = find_rule(thread, inner->pc);
    uint64_t base;
    if (gm_likely(rule->kind == GM_RULE_SP))
        base = inner->sp;
    else if (gm_likely(rule->kind == GM_RULE_FP))
        base = inner->fp;
    else if (rule->kind == GM_RULE_REALIGNED)
        return step_realigned(thread, rule, inner, outer);
    else if (rule->kind == GM_RULE_END || (rule->kind == GM_RULE_NO_CFI && inner->fp == 0))
        return STEP_END;
    else
        return STEP_DECLINED;
    uint64_t cfa = base + (uint64_t)(int64_t)rule->cfa_offset;
    uint64_t saved_pc = word_from(cfa, gm_return_word(rule->saved));
    if (gm_unlikely(!readable(thread, inner, saved_pc)))
        return STEP_DECLINED;
    outer->sp = cfa;
    outer->pc = gm_code_address(load(saved_pc));
    outer->fp = inner->fp;
    outer->saved = rule->saved;
    if (gm_fp_word(rule->saved)) {
        uint64_t saved_fp = word_from(cfa, gm_fp_word(rule->saved));
        if (gm_unlikely(!readable(thread, inner, saved_fp)))
            return STEP_DECLINED;
        outer->fp = load(saved_fp);
    }
    return STEP_DONE;
}

/* What a debug build says of it. */
static inline enum gm_why why_declined(struct gm_unwind_thread *thread,
                                       const struct gm_frame *inner)
{
    switch (find_rule(thread, inner->pc)->kind) {
    case GM_RULE_NO_CFI:
        return GM_WHY_STEP_NO_RULE;
    case GM_RULE_DECLINED:
        return GM_WHY_STEP_DECLINED;
    default:
        return GM_WHY_STEP_BEYOND;
    }
}

/* ---- reuse of the last walk ------------------------------------------------------------------ */

static inline bool same_state(const struct gm_frame *one, const struct gm_frame *other)
{
    return one->sp == other->sp && one->pc == other->pc && one->fp == other->fp;
}

/* Whether the words from which a kept frame was found still hold what they held, but for its CFA. */
RAW_STACK static inline bool has_same_words(const struct gm_frame *frame)
{
    return gm_code_address(load(return_place(frame))) == frame->pc &&
           load(frame->fp_place) == frame->fp;
}

RAW_STACK static inline bool has_same_cfa(const struct gm_frame *frame)
{
    return gm_cfa_word(frame->saved) == 0 ||
           load(word_from(frame->fp_place, gm_cfa_word(frame->saved))) == frame->sp;
}

/*
 * Given that the last of `*candidates` kept frames is in its old state: whether all frames outside
 * of it are too. If not, lowers `*candidates` to those that a walk may still meet in their old
 * state: a frame found from words that have changed can be met, the ones inside of it cannot.
 */
RAW_STACK static inline bool are_unchanged(struct gm_unwind_thread *thread, uint32_t *candidates)
{
    const struct gm_frame *frames = kept_frames(thread);
    uint64_t highest = frames[0].sp - 8; /* of all words read here */
    if (gm_unlikely(highest >= thread->readable_end) && !extend_readable(thread, highest)) {
        *candidates = 0;
        return false;
    }
    const struct gm_frame *frame = &frames[*candidates - 1];
    if (gm_unlikely(thread->has_realigned))
        while (frame > frames && has_same_words(frame - 1) && has_same_cfa(frame - 1))
            frame--;
    else
        while (frame > frames && gm_likely(has_same_words(frame - 1)))
            frame--;
    *candidates = frame == frames ? *candidates : (uint32_t)(frame - frames);
    return frame == frames;
}

/*
 * Whether the frames outside of `frame` depend on its frame pointer, where those outside of the next
 * outer one depend on that one's if `outer_does`. Many functions keep any value in that register,
 * which changes from call to call, and no frame is found from it.
 */
static bool depends_on_fp(struct gm_unwind_thread *thread, const struct gm_frame *frame,
                          bool outer_does)
{
    const struct gm_rule *rule = find_rule(thread, frame->pc);
    if (rule->kind == GM_RULE_SP)
        return outer_does && gm_fp_word(rule->saved) == 0;
    return rule->kind != GM_RULE_END;
}

RAW_STACK bool gm_unwind_words(struct gm_unwind_thread *thread, const struct gm_walk *walk,
                               struct gm_stack_words *words)
{
    const struct gm_frame *frames = walk->frames;
    bool matters[GM_UNWIND_DEPTH_MAX]; /* the frame's fp */
    if (walk->count == 0 || walk->flags & ~(uint32_t)GM_WALK_TRUNCATED ||
        frames[walk->count - 1].sp - thread->stack_low >= thread->stack_high - thread->stack_low)
        return false;
    for (uint32_t i = 0; i < walk->count; i++)
        matters[i] = depends_on_fp(thread, &frames[i], i > 0 && matters[i - 1]);
    struct gm_stack_word *word = words->word;
    for (uint32_t i = walk->count - 1; i-- > 0;) {
        const struct gm_frame *frame = &frames[i];
        uint64_t saved_pc = return_place(frame),
                 saved_fp = word_from(frame->sp, gm_fp_word(frame->saved));
        *word++ = (struct gm_stack_word){saved_pc, load(saved_pc)}; /* with its signature */
        if (saved_fp != frame->sp && matters[i])
            *word++ = (struct gm_stack_word){saved_fp, frame->fp};
        if (gm_cfa_word(frame->saved))
            *word++ =
                (struct gm_stack_word){word_from(saved_fp, gm_cfa_word(frame->saved)), frame->sp};
    }
    words->state = (struct gm_registers){frames[walk->count - 1].pc, frames[walk->count - 1].sp,
                                         frames[walk->count - 1].fp};
    words->fp_mask = matters[walk->count - 1] ? UINT64_MAX : 0;
    words->count = (uint32_t)(word - words->word);
    return true;
}

RAW_STACK bool gm_unwind_words_hold(const struct gm_stack_words *words,
                                    struct gm_registers registers)
{
    if (words->state.sp != registers.sp || words->state.pc != registers.pc ||
        ((words->state.fp ^ registers.fp) & words->fp_mask) != 0)
        return false;
    const struct gm_stack_word *end = words->word + words->count;
    for (const struct gm_stack_word *word = words->word; word < end; word++)
        if (gm_unlikely(load(word->place) != word->value))
            return false;
    return true;
}

/* From which words a kept frame was found. */
static inline void set_saved(struct gm_unwind_thread *thread, struct gm_frame *frame,
                             struct gm_saved_words saved)
{
    int64_t fp_word = gm_fp_word(saved);
    frame->saved = saved;
    frame->fp_place = fp_word ? word_from(frame->sp, fp_word) : (uint64_t)(uintptr_t)&frame->fp;
    thread->has_realigned |= gm_cfa_word(saved) != 0;
}

/* `fresh` new frames, the last at their end, take their place above `kept` ones. */
static inline void join_stacks(struct gm_unwind_thread *thread, uint32_t kept, uint32_t fresh,
                               bool base_truncated, struct gm_walk *walk)
{
    struct gm_frame *frames = kept_frames(thread);
    const struct gm_frame *from = frames - fresh;
    if (kept == 0)
        thread->has_realigned = false;
    for (uint32_t i = 0; i < fresh; i++) {
        struct gm_frame *frame = &frames[kept + i];
        frame->pc = from[i].pc;
        frame->sp = from[i].sp;
        frame->fp = from[i].fp;
        frame->node = 0;
        frame->flags = 0;
        set_saved(thread, frame, from[i].saved);
    }
    thread->cached = kept + fresh;
    thread->base_truncated = base_truncated;
    if (thread->interned > kept)
        thread->interned = kept;
    walk->frames = frames;
    walk->count = thread->cached;
    walk->kept = thread->interned;
    walk->flags = base_truncated ? GM_WALK_TRUNCATED : 0;
}

/* Whether `kept` old frames and `fresh` new ones are what a walk without the old ones would give.
 */
static inline bool fits_depth(const struct gm_unwind_thread *thread, uint32_t kept, uint32_t fresh,
                              uint32_t depth)
{
    return thread->base_truncated ? kept + fresh == depth : kept + fresh <= depth;
}

RAW_STACK static void walk_rules(struct gm_unwind_thread *thread, struct gm_registers registers,
                                 uint32_t depth, struct gm_walk *walk)
{
    struct gm_frame *frames = kept_frames(thread);
    struct gm_frame *frame = frames - 1;
    uint32_t fresh = 0;
    uint32_t candidates = thread->cached; /* kept frames below this number may be met */
    *frame = (struct gm_frame){.pc = registers.pc, .sp = registers.sp, .fp = registers.fp};
    for (;;) {
        while (candidates > 0 && frames[candidates - 1].sp < frame->sp)
            candidates--;
        if (candidates > 0 && same_state(&frames[candidates - 1], frame)) {
            if (are_unchanged(thread, &candidates)) {
                if (fits_depth(thread, candidates, fresh, depth)) {
                    if (fresh > 0) /* found on another way this time, from other words */
                        set_saved(thread, &frames[candidates - 1], frame->saved);
                    join_stacks(thread, candidates, fresh, thread->base_truncated, walk);
                    return;
                }
                candidates = 0;
            }
        }
        if (fresh == depth) {
            join_stacks(thread, 0, fresh, true, walk);
            return;
        }
        fresh++;
        enum step result = step(thread, frame, frame - 1);
        if (result == STEP_END || (result == STEP_DONE && frame[-1].pc == 0)) {
            join_stacks(thread, 0, fresh, false, walk);
            return;
        }
        if (gm_unlikely(result == STEP_DECLINED)) {
            enum gm_why why = why_declined(thread, frame);
            gm_why(why, frame->pc, NULL);
            if (why == GM_WHY_STEP_BEYOND && !GM_FALLBACK_CHECKS_READS)
                cut_stack(thread, fresh, walk);
            else
                walk_general(thread, registers, depth, fresh, walk);
            return;
        }
        frame--;
    }
}

/* To find a stack takes the longer the more threads there are, each of which has one. One that
 * records a few calls only is not worth it: until then its pages are asked for one by one. */
#define WALKS_BEFORE_MAPS 16u

static __attribute__((noinline)) void find_own_stack(struct gm_unwind_thread *thread)
{
    if (!gm_stack_of_thread(&thread->stack_low, &thread->stack_high))
        thread->stack_low = thread->stack_high = 0;
    thread->stack_known = true;
}

/*
 * On its own stack a thread may read up to the stack's end. Any other can have been put in the
 * place of a larger one that was unmapped, so there each walk asks anew, page by page.
 */
static void walk_stack(struct gm_unwind_thread *thread, struct gm_registers registers,
                       uint32_t depth, struct gm_walk *walk)
{
    if (gm_unlikely(!thread->stack_known) && ++thread->walks > WALKS_BEFORE_MAPS)
        find_own_stack(thread);
    if (gm_likely(registers.sp - thread->stack_low < thread->stack_high - thread->stack_low)) {
        thread->readable_end = thread->stack_high;
        thread->readable_limit = thread->stack_high;
    } else {
        thread->readable_end = (registers.sp | (PAGE_SIZE_MIN - 1)) + 1;
        thread->readable_limit = UINT64_MAX;
    }
    walk_rules(thread, registers, depth, walk);
}

/*
 * Whether the walk that `busy` tells of is gone: a signal handler left it by longjmp. A handler
 * that interrupts a walk has its frames below it, so a walk that starts above, on the same stack,
 * cannot be inside of the old one.
 */
static bool is_abandoned(struct gm_unwind_thread *thread, uintptr_t here)
{
    if (!thread->stack_known)
        find_own_stack(thread);
    return here >= thread->busy && thread->busy >= thread->stack_low && here < thread->stack_high;
}

#else

static void walk_stack(struct gm_unwind_thread *thread, struct gm_registers registers,
                       uint32_t depth, struct gm_walk *walk)
{
    walk_general(thread, registers, depth, 0, walk);
}

static bool is_abandoned(struct gm_unwind_thread *thread, uintptr_t here)
{
    (void)thread;
    (void)here;
    return false;
}

bool gm_unwind_words(struct gm_unwind_thread *thread, const struct gm_walk *walk,
                     struct gm_stack_words *words)
{
    (void)thread;
    (void)walk;
    (void)words;
    return false;
}

bool gm_unwind_words_hold(const struct gm_stack_words *words, struct gm_registers registers)
{
    (void)words;
    (void)registers;
    return false;
}

#endif

void gm_unwind_walk(struct gm_unwind_thread *thread, struct gm_registers registers, uint32_t depth,
                    struct gm_walk *walk)
{
    *walk = (struct gm_walk){.frames = kept_frames(thread)};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (gm_unlikely(thread->busy)) {
        if (!is_abandoned(thread, here)) {
            walk->flags = GM_WALK_BUSY;
            gm_why(GM_WHY_WALK_BUSY, registers.pc, NULL);
            return;
        }
        drop_all(thread);
    }
    thread->busy = here;
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t now = gm_unwind_generation();
    if (gm_unlikely(thread->generation != now)) {
        drop_all(thread);
        thread->generation = now;
    }
    if (depth < 1 || depth > GM_UNWIND_DEPTH_MAX)
        depth = GM_UNWIND_DEPTH_MAX;
    walk_stack(thread, registers, depth, walk);
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy = 0;
}
