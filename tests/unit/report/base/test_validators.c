/* The validators of checked builds: each says yes to a sound structure, and no to one that is broken in any of the ways
 * that it knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/memory.h"
#include "model/tables.h"
#include "replay/ledger/ledger.h"
#include "replay/replica/allocator.h"
#include "replay/rules/replay.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the ledger ------------------------------------------------------------------------------ */

#define LIVES 40u

static void fill_ledger(struct gm_replay *replay)
{
    gm_replay_begin(replay);
    for (uint32_t i = 0; i < LIVES; i++) {
        struct gm_record record = {.type = GM_EVENT_ALLOC,
                                   .kind = i % 3 ? GM_KIND_DEVICE : GM_KIND_PINNED,
                                   .device = i % 3 ? (int8_t)(i % 2) : -1,
                                   .context = (uint16_t)(i % 2),
                                   .address = 0x1000 * (i + 1),
                                   .size = 100 + i,
                                   .time = i + 1};
        struct gm_entry entry = {.record = &record};
        gm_replay_apply(replay, &entry);
    }
    struct gm_record record = {.type = GM_EVENT_FREE, .address = 0x5000, .time = LIVES + 1};
    struct gm_entry entry = {.record = &record};
    gm_replay_apply(replay, &entry);
}

/* Ways to break it. */
static void lose_bytes_of_a_device(struct gm_ledger *ledger)
{
    ledger->counters.device[1].kind[GM_KIND_DEVICE].live--;
}
static void count_bytes_twice(struct gm_ledger *ledger)
{
    ledger->counters.live++;
}
static void lose_bytes_of_the_host(struct gm_ledger *ledger)
{
    ledger->counters.host[GM_KIND_PINNED].live++;
}
static void lower_a_peak(struct gm_ledger *ledger)
{
    ledger->counters.device[1].peak.bytes = 1;
}
static void resize_a_life(struct gm_ledger *ledger)
{
    ledger->lives.slots[0].size++;
}
static void move_a_life(struct gm_ledger *ledger)
{
    ledger->lives.slots[0].address++;
}
static void end_a_life_unseen(struct gm_ledger *ledger)
{
    ledger->lives.slots[1].kind = GM_KIND_NONE;
}
static void forget_a_slot(struct gm_ledger *ledger)
{
    ledger->lives.free = GM_NONE;
}
static void mistake_a_device(struct gm_ledger *ledger)
{
    ledger->lives.slots[1].device++;
}
static void change_a_hash(struct gm_ledger *ledger)
{
    for (size_t i = 0; i < ledger->lives.by_address.capacity; i++)
        if (ledger->lives.by_address.slots[i].number != GM_NONE) {
            ledger->lives.by_address.slots[i].hash ^= 1;
            return;
        }
}
static void count_a_slot_more(struct gm_ledger *ledger)
{
    ledger->lives.by_address.count++;
}
static void cut_a_list(struct gm_ledger *ledger)
{
    uint32_t first = gm_ledger_mortal(ledger, 1, 0);
    assert_true(first != GM_NONE);
    ledger->lives.slots[first].next = GM_NONE;
}
static void link_backward_wrongly(struct gm_ledger *ledger)
{
    uint32_t first = gm_ledger_mortal(ledger, 1, 0);
    ledger->lives.slots[ledger->lives.slots[first].next].previous = GM_NONE;
}

static void a_broken_ledger_is_seen(void **state)
{
    static void (*const breaks[])(struct gm_ledger *) = {
        lose_bytes_of_a_device, count_bytes_twice, lose_bytes_of_the_host, lower_a_peak,
        resize_a_life,          move_a_life,       end_a_life_unseen,      forget_a_slot,
        mistake_a_device,       change_a_hash,     count_a_slot_more,      cut_a_list,
        link_backward_wrongly};
    (void)state;
    for (size_t i = 0; i < COUNT(breaks); i++) {
        struct gm_replay replay;
        fill_ledger(&replay);
        assert_true(gm_ledger_is_valid(&replay.ledger));
        breaks[i](&replay.ledger);
        if (gm_ledger_is_valid(&replay.ledger))
            fail_msg("break %zu of the ledger was not seen", i);
        gm_replay_end(&replay);
    }
}

/* The checked files are the ones that are linked. */
static void a_broken_ledger_ends_the_replay(void **state)
{
    (void)state;
    struct gm_replay replay;
    fill_ledger(&replay);
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        count_bytes_twice(&replay.ledger);
        gm_replay_finish(&replay);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    gm_replay_end(&replay);
}

/* ---- the replica of the allocator ------------------------------------------------------------ */

static uint64_t reserve(void *argument, uint64_t size, bool expandable)
{
    uint64_t *next = argument, at = *next;
    (void)expandable;
    *next += size + (1 << 21);
    return at;
}

static void fill_allocator(struct gm_allocator *allocator, uint64_t *next)
{
    struct gm_allocator_settings settings;
    struct gm_allocator_device device = {.reserve = reserve, .argument = next};
    uint32_t blocks[64];
    gm_allocator_settings_default(&settings);
    gm_allocator_begin(allocator, &settings, &device);
    for (uint32_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = gm_allocator_malloc(allocator, 1000 * (i + 1) * (i % 5 + 1), 0, 0);
    for (uint32_t i = 0; i < COUNT(blocks); i += 3)
        gm_allocator_free(allocator, blocks[i]);
}

/* A block of which a part of the condition is true: 0 if there is none. */
static uint32_t find_block(const struct gm_allocator *allocator, bool allocated)
{
    for (uint32_t i = 1; i < allocator->block_count; i++)
        if (allocator->blocks[i].exists && allocator->blocks[i].allocated == allocated &&
            allocator->blocks[i].behind)
            return i;
    return 0;
}

static struct gm_replica_block *free_block(struct gm_allocator *allocator)
{
    return &allocator->blocks[find_block(allocator, false)];
}

static void reserve_nothing(struct gm_allocator *allocator)
{
    allocator->reserved += 512;
}
static void grow_a_block(struct gm_allocator *allocator)
{
    free_block(allocator)->size += 512;
}
static void shift_a_block(struct gm_allocator *allocator)
{
    free_block(allocator)->address += 512;
}
static void unlink_a_block(struct gm_allocator *allocator)
{
    allocator->blocks[free_block(allocator)->behind].before = 0;
}
static void take_a_block_out_of_its_tree(struct gm_allocator *allocator)
{
    for (size_t i = 0; i < allocator->pool_count; i++)
        allocator->pools[i].free = 0;
}
static void use_a_free_block(struct gm_allocator *allocator)
{
    free_block(allocator)->allocated = true;
}
static void free_a_used_block(struct gm_allocator *allocator)
{
    allocator->blocks[find_block(allocator, true)].allocated = false;
}
static void turn_a_tree_round(struct gm_allocator *allocator)
{
    for (size_t i = 0; i < allocator->pool_count; i++) {
        struct gm_replica_block *root = &allocator->blocks[allocator->pools[i].free];
        uint32_t left = root->left;
        root->left = root->right;
        root->right = left;
    }
}
static void sink_a_root(struct gm_allocator *allocator)
{
    for (size_t i = 0; i < allocator->pool_count; i++)
        allocator->blocks[allocator->pools[i].free].priority = 0;
}
static void lose_an_unused_block(struct gm_allocator *allocator)
{
    allocator->block_count++;
    GM_RESERVE(allocator->blocks, allocator->block_capacity, allocator->block_count);
    allocator->blocks[allocator->block_count - 1] = (struct gm_replica_block){0};
}

static void a_broken_allocator_is_seen(void **state)
{
    static void (*const breaks[])(struct gm_allocator *) = {
        reserve_nothing,     grow_a_block,      shift_a_block,
        unlink_a_block,      use_a_free_block,  take_a_block_out_of_its_tree,
        free_a_used_block,   turn_a_tree_round, sink_a_root,
        lose_an_unused_block};
    (void)state;
    for (size_t i = 0; i < COUNT(breaks); i++) {
        struct gm_allocator allocator;
        uint64_t next = 1 << 30;
        fill_allocator(&allocator, &next);
        assert_true(gm_allocator_is_valid(&allocator));
        struct gm_replica_block *blocks = gm_allocate(allocator.block_count, sizeof(*blocks));
        struct gm_replica_pool *pools = gm_allocate(allocator.pool_count, sizeof(*pools));
        struct gm_allocator sound = allocator;
        memcpy(blocks, allocator.blocks, allocator.block_count * sizeof(*blocks));
        memcpy(pools, allocator.pools, allocator.pool_count * sizeof(*pools));
        breaks[i](&allocator);
        if (gm_allocator_is_valid(&allocator))
            fail_msg("break %zu of the allocator was not seen", i);
        allocator.reserved = sound.reserved; /* as it was: what ends it looks, too */
        allocator.block_count = sound.block_count;
        memcpy(allocator.blocks, blocks, sound.block_count * sizeof(*blocks));
        memcpy(allocator.pools, pools, sound.pool_count * sizeof(*pools));
        gm_allocator_end(&allocator);
        free(blocks);
        free(pools);
    }
}

/* ---- the model ------------------------------------------------------------------------------- */

static struct gm_model *small_model(void)
{
    struct gm_model *model = gm_model_new();
    struct gm_frame frames[] = {{.function = "main", .file = "main.c", .line = 3}};
    struct gm_stack stack = {frames, 1, false};
    struct gm_model_place place = {.api = "cudaMalloc", .library = "application"};
    struct gm_model_run *run = gm_model_add_run(model);
    place.stack = gm_model_add_stack(model, &stack);
    place.kind = GM_KIND_DEVICE;
    uint32_t number = gm_model_add_place(model, &place);
    run->pinned_peak = GM_NONE;
    run->end = 0;
    run->moments = GM_MODEL_ARRAY(model, struct gm_model_moment, 1);
    run->moment_count = 1;
    run->moments[0].samples = GM_MODEL_ARRAY(model, struct gm_model_sample, 2);
    run->moments[0].samples[0] = (struct gm_model_sample){number, 70, 1};
    run->moments[0].samples[1] = (struct gm_model_sample){number, 30, 1};
    run->moments[0].sample_count = 2;
    run->moments[0].bytes = 100;
    run->findings = GM_MODEL_ARRAY(model, struct gm_model_finding, 2);
    run->finding_count = 2;
    for (size_t i = 0; i < 2; i++)
        run->findings[i] = (struct gm_model_finding){
            .stack = place.stack, .unlike = GM_NONE, .cause = "It stays."};
    run->devices = GM_MODEL_ARRAY(model, struct gm_model_device, 2);
    run->device_count = 2;
    run->devices[1].id = 1;
    run->devices[1].peak = GM_NONE;
    return model;
}

static void a_broken_model_is_seen(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct gm_model *model = small_model();
        struct gm_model_run *run = model->runs;
        assert_true(gm_model_is_valid(model));
        switch (i) {
        case 0:
            run->moments[0].bytes++;
            break;
        case 1:
            run->moments[0].samples[1].place = 7;
            break;
        case 2:
            run->moments[0].samples[1].bytes = 90, run->moments[0].bytes = 160;
            break;
        case 3:
            run->end = 1;
            break;
        case 4:
            run->devices[0].peak = 1;
            break;
        case 5:
            run->devices[1].id = 0;
            break;
        case 6:
            run->findings[1].severity = GM_SEVERITY_ERROR;
            break;
        default:
            run->findings[0].stack = 9;
            break;
        }
        if (gm_model_is_valid(model))
            fail_msg("break %u of the model was not seen", i);
        gm_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_ledger_is_seen),
        cmocka_unit_test(a_broken_ledger_ends_the_replay),
        cmocka_unit_test(a_broken_allocator_is_seen),
        cmocka_unit_test(a_broken_model_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
