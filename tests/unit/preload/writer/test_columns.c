/* Columns: the report unpacks what the recorder packed, whatever the records repeat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs the headers above */

#include "assert_between.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "preload/writer/columns.h"
#include "report/input/trace/block_reader.h"

#define RING 16384u

static struct gm_record *ring;
static struct gm_block *block; /* its bytes follow */

static int set_up(void **state)
{
    (void)state;
    ring = calloc(RING, sizeof(*ring));
    block = calloc(1, sizeof(*block) + GM_BLOCK_RAW_MAX);
    return !ring || !block;
}

static int tear_down(void **state)
{
    (void)state;
    free(ring);
    free(block);
    return 0;
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 11;
}

/* A number of any size, small ones as often as large ones. */
static uint64_t draw_number(uint64_t *seed)
{
    uint64_t number = draw(seed) << 32 ^ draw(seed);
    return number >> draw(seed) % 64;
}

static void draw_record(uint64_t *seed, struct gm_record *record)
{
    *record = (struct gm_record){
        .address = draw_number(seed),
        .size = draw_number(seed),
        .aux = draw_number(seed),
        .stack = (uint32_t)draw_number(seed),
        .extra = (uint32_t)draw_number(seed),
        .context = (uint16_t)draw_number(seed),
        .api = (uint16_t)draw_number(seed),
        .type = (uint8_t)draw_number(seed),
        .kind = (uint8_t)draw_number(seed),
        .device = (int8_t)draw_number(seed),
        .flags = (uint8_t)draw_number(seed),
    };
}

/* Changes one field. */
static void disturb(uint64_t *seed, struct gm_record *record)
{
    struct gm_record other;
    draw_record(seed, &other);
    size_t at = 8 + draw(seed) % (sizeof(other) - 8);
    memcpy((char *)record + at, (const char *)&other + at, 1);
}

static void encode(const struct gm_run *run)
{
    memset(block, 0, sizeof(*block));
    block->count = run->count;
    block->first_time = gm_run_at(run, 0)->time;
    gm_columns_encode(run, (unsigned char *)(block + 1), block);
    block->stored_size = block->raw_size;
}

static void expect_equal(const struct gm_run *run, uint32_t batch)
{
    struct gm_block_reader reader = {0};
    const struct gm_record *records;
    uint32_t done = 0;
    int count;
    assert_true(gm_block_begin(&reader, block, NULL));
    while ((count = gm_block_read(&reader, &records, batch)) > 0)
        for (int n = 0; n < count; n++, done++)
            assert_memory_equal(&records[n], gm_run_at(run, done), sizeof(records[n]));
    assert_int_equal(count, 0);
    assert_int_equal(done, run->count);
    for (int column = 0; column < GM_COLUMNS; column++)
        assert_ptr_equal(reader.at[column], reader.end[column]);
    gm_block_end(&reader);
}

/* Loops of random bodies, with random exceptions, anywhere in the ring. */
static void what_is_packed_is_unpacked(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 400; round++) {
        uint64_t seed = round, time = draw_number(&seed);
        struct gm_run run = {ring, RING - 1, draw(&seed), (uint32_t)(1 + draw(&seed) % RING)};
        if (round % 2)
            run.count = 1 + run.count % 700;
        uint32_t period = 1 + (uint32_t)draw(&seed) % (round % 4 ? 40 : 6000);
        uint64_t rare = 2 + draw_number(&seed) % 1000;
        for (uint32_t n = 0; n < run.count; n++) {
            struct gm_record *record = &ring[(run.first + n) & run.mask];
            if (n < period)
                draw_record(&seed, record);
            else
                *record = *gm_run_at(&run, n - period);
            if (draw(&seed) % rare == 0)
                disturb(&seed, record);
            record->time = time += draw_number(&seed) >> draw(&seed) % 64;
        }
        encode(&run);
        assert_between(block->distance, 1, GM_DISTANCE_MAX);
        assert_between(block->near, 1, block->distance);
        expect_equal(&run, round % 3 ? GM_TILE_RECORDS : 1 + (uint32_t)round % 97);
    }
}

static void fill_with_loop(const struct gm_run *run, uint32_t period, uint64_t stride)
{
    for (uint32_t n = 0; n < run->count; n++)
        ring[n] = (struct gm_record){.time = 1000 + 100 * n,
                                     .type = n % 2 ? GM_EVENT_FREE : GM_EVENT_ALLOC,
                                     .address = 0x7f0000000000 + n / 2 * stride,
                                     .size = n % 2 ? 0 : 64 + n % period,
                                     .stack = n % 2 ? 0 : 10 + n % period};
}

/* Equal records need room only for their times: nothing after the first round. */
static void a_loop_is_found(void **state)
{
    (void)state;
    static const uint32_t periods[] = {2, 16, 34, 1000, 4096};
    for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
        struct gm_run run = {ring, RING - 1, 0, RING};
        fill_with_loop(&run, periods[i], 0);
        encode(&run);
        assert_int_equal(block->distance, periods[i]);
        assert_int_equal(block->near, 2); /* an allocation is most like the one before */
        uint32_t tiles = (periods[i] + GM_TILE_RECORDS - 1) / GM_TILE_RECORDS;
        uint32_t most = tiles * GM_TILE_RECORDS * 30 + gm_block_sets_size(run.count);
        assert_int_equal(block->column_size[GM_COLUMN_TIME], run.count);
        assert_true(block->raw_size <= run.count + most);
        expect_equal(&run, GM_TILE_RECORDS);
    }
}

static void a_loop_is_found_though_addresses_move(void **state)
{
    (void)state;
    struct gm_run run = {ring, RING - 1, 0, RING};
    fill_with_loop(&run, 16, 512);
    encode(&run);
    assert_int_equal(block->distance, 16);
    assert_true(block->column_size[GM_COLUMN_SIZE] <= 2 * GM_TILE_RECORDS);
}

/* Damage that no checksum reveals, because it was there before. */
static void wrong_blocks_are_told(void **state)
{
    (void)state;
    struct gm_run run = {ring, RING - 1, 0, 300};
    const struct gm_record *records;
    fill_with_loop(&run, 16, 512);
    for (int wrong = 0; wrong < 3; wrong++) {
        struct gm_block_reader reader = {0};
        encode(&run);
        unsigned char *bytes = (unsigned char *)(block + 1);
        if (wrong == 0) /* the third tile has no times */
            bytes[4] &= (unsigned char)~(1u << GM_COLUMN_TIME);
        else if (wrong == 1) /* and has more than there is in a column */
            bytes[4] |= 1u << GM_COLUMN_AUX;
        else
            memset(bytes + gm_block_sets_size(run.count) + block->column_size[GM_COLUMN_TYPE], 0xff,
                   block->column_size[GM_COLUMN_TIME]);
        assert_true(gm_block_begin(&reader, block, NULL));
        int count;
        do
            count = gm_block_read(&reader, &records, GM_TILE_RECORDS);
        while (count > 0);
        assert_int_equal(count, -1);
        gm_block_end(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_is_unpacked),
        cmocka_unit_test(a_loop_is_found),
        cmocka_unit_test(a_loop_is_found_though_addresses_move),
        cmocka_unit_test(wrong_blocks_are_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
