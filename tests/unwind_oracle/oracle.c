/*
 * Compares the unwinder's answer with other answers to the same question, frame by frame, over the
 * stacks of random call trees:
 *
 *  - always: with a walk by the same rules that reuses nothing of earlier walks;
 *  - always: the nodes of the kept frames with what each frame's node must be;
 *  - always: the remembered whole stack (known_stacks.c) with that same walk;
 *  - with libunwind's unw_step (pc and sp of every frame): each stack in which a return address is
 *    seen for the first time since its code was loaded, each one that was walked by libunwind
 *    itself, and one of 64 of the others.
 *
 * A stack that the rules decline while no signal handler runs counts as wrong, too. Together these
 * comparisons check every rule against libunwind's, and every application of rules and every reuse
 * against a fresh walk.
 *
 *     unwind_oracle [-s SEED] [-t THREADS] [-a] [-p PLUGIN-FOLDER] [STACKS]
 *
 * -a: all stacks with unw_step. Exit status 1 when anything differed. With several threads
 * libunwind itself is wrong in rare cases, because all threads test memory through one pipe.
 */
#define UNW_LOCAL_ONLY
#include "stack/known_stacks.h"
#include "stack/native/unwind.h"
#include "tree.h"
#include <getopt.h>
#include <inttypes.h>
#include <libunwind.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_PLACES (1u << 16)
#define SAMPLE 64

/* One thread's oracle. */
struct oracle {
    struct tree tree; /* first: a tree's `see` knows only it */
    struct gm_unwind_thread *kept;
    struct gm_unwind_thread *plain;
    struct gm_known_stacks *known;
    uint64_t seen[SEEN_PLACES]; /* return addresses whose rule was compared */
    uint64_t seen_swaps;
    uint64_t wanted;
    uint64_t stacks, frames, kept_frames, known_stacks, stepped, general, truncated, wrong;
    uint32_t deepest;
};

struct reference {
    uint64_t pc[GM_UNWIND_DEPTH_MAX];
    uint64_t sp[GM_UNWIND_DEPTH_MAX];
    uint32_t count; /* innermost first */
};

static bool step_all = false;
static __thread struct oracle *oracle;

/* ---- expectations ---------------------------------------------------------------------------- */

static void walk_by_libunwind(uint64_t sp, struct reference *reference)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    reference->count = 0;
    unw_word_t last_pc = 0, last_sp = 0;
    do {
        unw_word_t pc, at;
        unw_get_reg(&cursor, UNW_REG_IP, &pc);
        unw_get_reg(&cursor, UNW_REG_SP, &at);
        if (pc == 0)
            return;
        if (pc == last_pc && at == last_sp) /* aarch64: a coroutine's outermost frame comes twice */
            return;
        last_pc = pc;
        last_sp = at;
        if (at >= sp && reference->count < GM_UNWIND_DEPTH_MAX) {
            reference->pc[reference->count] = pc;
            reference->sp[reference->count++] = at;
        }
    } while (unw_step(&cursor) > 0);
}

static void report(const char *what, const struct gm_walk *walk, const struct gm_walk *plain,
                   const struct reference *reference)
{
    if (oracle->wrong++ > 0)
        return;
    fprintf(stderr, "%s differs (flags %x, kept %u, plain flags %x)\n", what, walk->flags,
            walk->kept, plain->flags);
    uint32_t most = walk->count > plain->count ? walk->count : plain->count;
    for (uint32_t i = 0; i < most; i++) {
        fprintf(stderr, "%3u", i);
        const struct gm_walk *both[2] = {walk, plain};
        for (int j = 0; j < 2; j++)
            if (i < both[j]->count)
                fprintf(stderr, "  %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %d",
                        both[j]->frames[i].pc, both[j]->frames[i].sp, both[j]->frames[i].fp,
                        (int)gm_fp_word(both[j]->frames[i].saved));
        if (reference && i < reference->count)
            fprintf(stderr, "  unw_step %#" PRIx64 " %#" PRIx64,
                    reference->pc[reference->count - 1 - i],
                    reference->sp[reference->count - 1 - i]);
        fputc('\n', stderr);
    }
}

static bool equals_plain(const struct gm_walk *walk, const struct gm_walk *plain)
{
    if (walk->count != plain->count || walk->flags != plain->flags)
        return false;
    for (uint32_t i = 0; i < walk->count; i++) {
        const struct gm_frame *one = &walk->frames[i], *other = &plain->frames[i];
        if (one->pc != other->pc || one->sp != other->sp || one->fp != other->fp)
            return false;
    }
    return true;
}

static bool equals_reference(const struct gm_walk *walk, const struct reference *reference)
{
    if (walk->count != reference->count)
        return false;
    for (uint32_t i = 0; i < walk->count; i++) {
        uint32_t other = walk->count - 1 - i;
        if (walk->frames[i].pc != reference->pc[other])
            return false;
        if (!(walk->flags & GM_WALK_FALLBACK) && walk->frames[i].sp != reference->sp[other])
            return false;
    }
    return true;
}

/* A parent and a return address identify a node, as in the recorder's table. */
static bool intern(struct gm_walk *walk)
{
    uint32_t parent = 0;
    for (uint32_t i = 0; i < walk->count; i++) {
        uint64_t mixed = (parent ^ walk->frames[i].pc) * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t node = (uint32_t)(mixed >> 32) | 1;
        if (i < walk->kept && walk->frames[i].node != node)
            return false;
        walk->frames[i].node = node;
        parent = node;
    }
    return true;
}

/* Identifies a walk by all its pcs and sps; stands for a node in the memory of known stacks. */
static uint32_t mark_of(const struct gm_walk *walk)
{
    uint64_t mark = walk->flags;
    for (uint32_t i = 0; i < walk->count; i++)
        mark =
            (mark ^ walk->frames[i].pc ^ walk->frames[i].sp << 20) * UINT64_C(0x9e3779b97f4a7c15) +
            (mark >> 29);
    return (uint32_t)(mark >> 32) | 1;
}

static bool equals_known(struct gm_registers registers, const struct gm_walk *walk)
{
    const struct gm_known_key key = {.registers = registers};
    uint32_t flags = 0, mark = mark_of(walk);
    uint32_t found = gm_known_find(oracle->known, &key, &flags);
    oracle->known_stacks += found != 0;
    if (!found)
        gm_known_add(oracle->known, &key, oracle->kept, walk, mark);
    return !found || (found == mark && flags == walk->flags);
}

/* Notes a return address; true if it is new. The plugin's belong to other code after each swap. */
static bool note_address(uint64_t pc)
{
    uint64_t key = tree_is_plugin(pc) ? pc ^ (oracle->tree.swaps << 48) : pc;
    uint64_t place = key * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    while (oracle->seen[place] != 0) {
        if (oracle->seen[place] == key)
            return false;
        place = (place + 1) % SEEN_PLACES;
    }
    oracle->seen[place] = key;
    return true;
}

static bool is_stepped(const struct gm_walk *walk)
{
    bool stepped = step_all || (walk->flags & GM_WALK_FALLBACK) || oracle->stacks % SAMPLE == 0;
    for (uint32_t i = 0; i < walk->count; i++)
        stepped |= note_address(walk->frames[i].pc);
    return stepped;
}

/* ---- one stack ------------------------------------------------------------------------------- */

static void compare_stack(const void *frame)
{
    if (oracle->stacks >= oracle->wanted)
        return;
    struct gm_registers registers = gm_registers_of_caller(frame);
    struct gm_walk walk, plain;
    gm_unwind_walk(oracle->kept, registers, GM_UNWIND_DEPTH_MAX, &walk);
    oracle->plain->cached = 0; /* what makes it plain */
    gm_unwind_walk(oracle->plain, registers, GM_UNWIND_DEPTH_MAX, &plain);
    oracle->stacks++;
    oracle->frames += walk.count;
    oracle->kept_frames += walk.kept;
    oracle->general += (walk.flags & GM_WALK_FALLBACK) != 0;
    oracle->truncated += (walk.flags & (GM_WALK_TRUNCATED | GM_WALK_CUT | GM_WALK_BUSY)) != 0;
    if (walk.count > oracle->deepest)
        oracle->deepest = walk.count;
    bool right = equals_plain(&walk, &plain);
    if (!right)
        report("reuse", &walk, &plain, NULL);
    if (!intern(&walk) && right) {
        right = false;
        report("node", &walk, &plain, NULL);
    }
    if (!equals_known(registers, &walk) && right) {
        right = false;
        report("what is known of the stack", &walk, &plain, NULL);
    }
    gm_unwind_interned(oracle->kept, walk.count);
    if (oracle->seen_swaps != oracle->tree.swaps) { /* libunwind clears its cache on request */
        oracle->seen_swaps = oracle->tree.swaps;
        unw_flush_cache(unw_local_addr_space, 0, 0);
    }
    if (is_stepped(&walk)) {
        struct reference reference;
        oracle->stepped++;
        walk_by_libunwind(registers.sp, &reference);
        if (right && !equals_reference(&walk, &reference))
            report("unw_step", &walk, &plain, &reference);
        else if (right && (walk.flags & GM_WALK_FALLBACK) && oracle->tree.handlers == 0)
            report("declined without a signal handler: rules", &walk, &plain, &reference);
    }
}

static void *run_thread(void *argument)
{
    oracle = argument;
    oracle->tree.see = compare_stack;
    while (oracle->stacks < oracle->wanted)
        tree_grow(&oracle->tree);
    return NULL;
}

/* ---- the program ----------------------------------------------------------------------------- */

static struct gm_unwind_thread *new_unwinder(void)
{
    void *memory;
    if (posix_memalign(&memory, 64, sizeof(struct gm_unwind_thread)) != 0)
        abort();
    return memset(memory, 0, sizeof(struct gm_unwind_thread));
}

static struct oracle *new_oracle(uint64_t seed, uint64_t wanted)
{
    struct oracle *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    made->kept = new_unwinder();
    made->plain = new_unwinder();
    made->known = calloc(1, sizeof *made->known);
    if (!made->known)
        abort();
    made->tree.random = seed * 2 + 1;
    made->wanted = wanted;
    return made;
}

static uint64_t print(struct oracle *const *oracles, unsigned count)
{
    struct oracle sum = {.wrong = 0};
    for (unsigned i = 0; i < count; i++) {
        sum.stacks += oracles[i]->stacks;
        sum.frames += oracles[i]->frames;
        sum.kept_frames += oracles[i]->kept_frames;
        sum.known_stacks += oracles[i]->known_stacks;
        sum.stepped += oracles[i]->stepped;
        sum.general += oracles[i]->general;
        sum.truncated += oracles[i]->truncated;
        sum.wrong += oracles[i]->wrong;
        sum.deepest = oracles[i]->deepest > sum.deepest ? oracles[i]->deepest : sum.deepest;
        sum.tree.signals += oracles[i]->tree.signals;
        sum.tree.coroutines += oracles[i]->tree.coroutines;
        sum.tree.throws += oracles[i]->tree.throws;
        sum.tree.swaps += oracles[i]->tree.swaps;
        sum.tree.swaps_in_place += oracles[i]->tree.swaps_in_place;
    }
    printf("%" PRIu64 " stacks, %" PRIu64
           " wrong (depth %.1f, at most %u; %.0f %% of frames kept, %" PRIu64 " stacks known; "
           "%" PRIu64 " also by unw_step, %" PRIu64 " walked by libunwind, %" PRIu64 " incomplete; "
           "%" PRIu64 " signals, %" PRIu64 " coroutines, %" PRIu64 " exceptions, %" PRIu64
           " library swaps, %" PRIu64 " of them in place)\n",
           sum.stacks, sum.wrong, (double)sum.frames / (double)sum.stacks, sum.deepest,
           100.0 * (double)sum.kept_frames / (double)sum.frames, sum.known_stacks, sum.stepped,
           sum.general, sum.truncated, sum.tree.signals, sum.tree.coroutines, sum.tree.throws,
           sum.tree.swaps, sum.tree.swaps_in_place);
    return sum.wrong;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, stacks = 200000;
    unsigned threads = 1;
    int option;
    while ((option = getopt(argc, argv, "s:t:ap:")) != -1) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 't')
            threads = (unsigned)strtoul(optarg, NULL, 0);
        else if (option == 'a')
            step_all = true;
        else if (option != 'p' || !tree_plugin_open(optarg))
            return 2;
    }
    if (optind < argc)
        stacks = strtoull(argv[optind], NULL, 0);
    if (threads < 1 || threads > 16 || stacks == 0)
        return 2;
    if (!gm_unwind_open_fallback()) {
        fprintf(stderr, "no libunwind.so.8\n");
        return 2;
    }
    struct oracle *oracles[16];
    pthread_t others[16];
    for (unsigned i = 0; i < threads; i++)
        oracles[i] = new_oracle(seed * 100 + i, stacks / threads);
    for (unsigned i = 1; i < threads; i++) {
        oracles[i]->tree.plugin_open = true; /* one thread swaps; the others must not hold it */
        if (pthread_create(&others[i], NULL, run_thread, oracles[i]) != 0)
            return 2;
    }
    run_thread(oracles[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    return print(oracles, threads) ? 1 : 0;
}
