/* See known_stacks.h. */
#include "stack/known_stacks.h"
#include "base/platform.h"
#include <stdatomic.h>
#include <string.h>

/* What must be the same of a Python frame. */
struct script {
    uint64_t code;
    uint64_t fingerprint;
    uint64_t anchor;
    uint64_t lasti;
};

struct gm_known_stack {
    uint64_t next; /* place + 1 of the one that came after it last time, 0 none */
    uint32_t node;
    uint32_t flags; /* of its walk */
    uint32_t script_count;
    uint32_t scripts_truncated;
    struct gm_stack_words native; /* behind its last word, the scripts, innermost first */
};

#define STACK_MAX                                                                                  \
    (sizeof(struct gm_known_stack) + GM_UNWIND_WORDS_MAX * sizeof(struct gm_stack_word) +          \
     GM_PYTHON_DEPTH_MAX * sizeof(struct script))

_Static_assert(4 * STACK_MAX <= GM_KNOWN_BYTES, "the ring holds more than one of any size");

/* NULL unless the stack is in the ring still. */
static inline struct gm_known_stack *stack_at(struct gm_known_stacks *known, uint64_t place_plus_1)
{
    uint64_t place = place_plus_1 - 1;
    if (place - known->oldest >= known->end - known->oldest || known->end - place > GM_KNOWN_BYTES)
        return NULL;
    return (struct gm_known_stack *)(void *)(known->ring + place % GM_KNOWN_BYTES);
}

static inline struct script *scripts_of(const struct gm_known_stack *stack)
{
    return (struct script *)(void *)(uintptr_t)(stack->native.word + stack->native.count);
}

static inline uint64_t *newest_of(struct gm_known_stacks *known, const struct gm_known_key *key)
{
    uint64_t mixed = key->registers.sp ^ (key->registers.pc << 16) ^ key->registers.pc >> 48;
    if (key->script_count) {
        const struct gm_python_frame *inner = &key->scripts[key->script_count - 1];
        mixed ^= inner->code * UINT64_C(0xbf58476d1ce4e5b9) + inner->lasti;
    }
    return &known->newest[mixed * UINT64_C(0x9e3779b97f4a7c15) >> (64 - GM_KNOWN_BITS)];
}

static inline bool has_scripts(const struct gm_known_stack *stack, const struct gm_known_key *key)
{
    const struct script *script = scripts_of(stack);
    const struct gm_python_frame *frame = key->scripts + key->script_count;
    for (uint32_t i = 0; i < key->script_count; i++, script++) {
        frame--;
        if (((script->code ^ frame->code) | (script->fingerprint ^ frame->fingerprint) |
             (script->anchor ^ frame->anchor) | (script->lasti ^ frame->lasti)) != 0)
            return false;
    }
    return true;
}

static inline bool is_for(const struct gm_known_stack *stack, const struct gm_known_key *key)
{
    return stack->script_count == key->script_count &&
           stack->scripts_truncated == key->scripts_truncated && has_scripts(stack, key) &&
           gm_unwind_words_hold(&stack->native, key->registers);
}

void gm_known_forget(struct gm_known_stacks *known)
{
    known->oldest = known->end;
    known->last = 0;
}

uint32_t gm_known_find(struct gm_known_stacks *known, const struct gm_known_key *key,
                       uint32_t *flags)
{
    if (gm_unlikely(known->generation != gm_unwind_generation())) {
        known->oldest = known->end; /* code may have gone that they were walked through */
        known->generation = gm_unwind_generation();
    }
    struct gm_known_stack *before = stack_at(known, known->last);
    uint64_t place = before ? before->next : 0;
    struct gm_known_stack *stack = stack_at(known, place);
    if (gm_unlikely(!stack || !is_for(stack, key))) {
        place = *newest_of(known, key);
        stack = stack_at(known, place);
        if (!stack || !is_for(stack, key))
            return 0;
        if (before)
            before->next = place;
    }
    known->last = place;
    *flags = stack->flags;
    return stack->node;
}

/*
 * Room in one piece for a stack of any size. What it takes is no longer known from here on, should
 * this thread never come back from filling it.
 */
static uint64_t make_room_for_stack(struct gm_known_stacks *known)
{
    uint64_t place = known->end;
    if (GM_KNOWN_BYTES - place % GM_KNOWN_BYTES < STACK_MAX)
        place += GM_KNOWN_BYTES - place % GM_KNOWN_BYTES;
    known->end = place + STACK_MAX;
    atomic_signal_fence(memory_order_seq_cst);
    return place;
}

void gm_known_add(struct gm_known_stacks *known, const struct gm_known_key *key,
                  struct gm_unwind_thread *thread, const struct gm_walk *walk, uint32_t node)
{
    const uint64_t end = known->end, place = make_room_for_stack(known);
    struct gm_known_stack *stack = (void *)(known->ring + place % GM_KNOWN_BYTES);
    if (key->registers.pc == 0) {
        stack->native = (struct gm_stack_words){.count = 0};
    } else if (!gm_unwind_words(thread, walk, &stack->native)) {
        known->end = end; /* nothing was written */
        return;
    }
    stack->next = 0;
    stack->node = node;
    stack->flags = walk->flags;
    stack->script_count = key->script_count;
    stack->scripts_truncated = key->scripts_truncated;
    struct script *script = scripts_of(stack);
    for (uint32_t i = key->script_count; i-- > 0; script++)
        *script = (struct script){key->scripts[i].code, key->scripts[i].fingerprint,
                                  key->scripts[i].anchor, key->scripts[i].lasti};
    atomic_signal_fence(memory_order_seq_cst);
    known->end = place + (uint64_t)((char *)script - (char *)stack);
    struct gm_known_stack *before = stack_at(known, known->last);
    if (before)
        before->next = place + 1;
    *newest_of(known, key) = place + 1;
    known->last = place + 1;
}
