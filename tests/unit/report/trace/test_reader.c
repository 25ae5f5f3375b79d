/* The reader against whole, cut, damaged and hostile traces. It must never crash, read beyond the
 * file (the sanitizers see that), or call an incomplete trace complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs the headers above */

#include "input/trace/stream.h"
#include "input/trace/trace_open.h"
#include "judge/analysis/analysis.h"
#include "judge/verdict/completeness.h"
#include "names/stacks/stacks.h"
#include "running_trace.h"
#include "trace_writer.h"

/* ---- traces to read -------------------------------------------------------------------------- */

/* Three threads allocate and free; part of it is packed, part still in the rings. */
static void write_busy_trace(struct writer *writer)
{
    writer_begin(writer);
    uint16_t api = writer_api(writer, "cudaMalloc");
    uint16_t module = writer_module(writer, "/opt/app/program");
    uint32_t outer = writer_node(writer, 0, module, 0x100, GM_NODE_NATIVE);
    uint32_t inner = writer_node(writer, outer, module, 0x200, GM_NODE_NATIVE);
    uint32_t script = writer_script_frame(writer, "train.py", "step", 12);
    uint32_t python = writer_node(writer, inner, 0, script, GM_NODE_SCRIPT);
    uint32_t stacks[] = {outer, inner, python};
    for (uint64_t n = 0; n < 900; n++) {
        unsigned lane = (unsigned)(n % 3);
        struct gm_record record = {.type = GM_EVENT_ALLOC,
                                   .kind = GM_KIND_DEVICE,
                                   .address = 0x7f0000000000 + (n / 2) * 0x10000,
                                   .size = 1000 + n * 7,
                                   .stack = stacks[n / 2 % 3],
                                   .api = api,
                                   .context = 1};
        if (n % 2)
            record = (struct gm_record){.type = GM_EVENT_FREE, .address = record.address};
        writer_add(writer, lane, record);
    }
    for (unsigned lane = 0; lane < 3; lane++) {
        writer->lanes[lane].packed = 250;
        writer->lanes[lane].overlap = 20 * lane;
    }
}

static void names_of_functions_are_clean(void **state)
{
    (void)state;
    struct writer writer;
    char error[256];
    writer_begin(&writer);
    uint16_t first = writer_api(&writer, "cuda\033[2JMalloc\x9b"),
             second = writer_api(&writer, "ok");
    writer_finish(&writer);
    struct gm_trace *trace = gm_trace_open_memory(writer.bytes, writer.size, error, sizeof(error));
    assert_non_null(trace);
    assert_string_equal(gm_trace_api(trace, first), "cuda?[2JMalloc?");
    assert_string_equal(gm_trace_api(trace, second), "ok");
    gm_trace_close(trace);
    writer_free(&writer);
}

/* The results of a stream: enough to see whether two are the same. */
struct digest {
    uint64_t records;
    uint64_t sum;
    uint64_t lost;
    uint64_t backward; /* steps back in time */
};

static struct digest digest(struct gm_trace *trace)
{
    struct digest digest = {0};
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    uint64_t time = 0;
    while (gm_stream_next(stream, &entry)) {
        digest.records++;
        digest.sum = digest.sum * 31 + XXH3_64bits(entry.record, sizeof(*entry.record)) +
                     (entry.detail ? entry.detail->address : 0);
        digest.backward += entry.record->time < time;
        time = entry.record->time;
    }
    digest.lost = gm_stream_lost(stream);
    gm_stream_close(stream);
    return digest;
}

static struct gm_trace *open_trace(const struct writer *writer)
{
    char error[256];
    struct gm_trace *trace =
        gm_trace_open_memory(writer->bytes, writer->size, error, sizeof(error));
    assert_non_null(trace);
    return trace;
}

static void build_all_stacks(struct gm_trace *trace)
{
    struct gm_stacks_options options = {0};
    struct gm_stacks *stacks = gm_stacks_new(trace, &options);
    for (uint32_t id = 0; id < 6; id++)
        gm_stacks_get(stacks, id, (uint16_t)id);
    gm_stacks_free(stacks);
}

/* Runs everything that reads a trace on arbitrary bytes. True if it calls them complete. */
static bool survive(const unsigned char *bytes, size_t size)
{
    char error[256] = "";
    void *copy = aligned_alloc(64, (size + 127) / 64 * 64);
    memcpy(copy, bytes, size);
    struct gm_trace *trace = gm_trace_open_memory(copy, size, error, sizeof(error));
    bool complete = false;
    if (trace) {
        struct gm_analysis *analysis = gm_analyse(trace);
        complete = gm_analysis_is_complete(analysis);
        build_all_stacks(trace);
        gm_analysis_free(analysis);
        gm_trace_close(trace);
    } else {
        assert_true(error[0] != 0 && !strchr(error, '\n'));
    }
    free(copy);
    return complete;
}

/* ---- whole traces ---------------------------------------------------------------------------- */

static void blocks_and_rings_make_one_stream(void **state)
{
    (void)state;
    struct writer writer;
    write_busy_trace(&writer);
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct digest whole = digest(trace);
    assert_int_equal(whole.records, 900);
    assert_int_equal(whole.lost, 0);
    assert_int_equal(whole.backward, 0);
    assert_int_equal(trace->damaged, 0);
    assert_int_equal(digest(trace).sum, whole.sum);
    gm_trace_close(trace);
    writer_free(&writer);
}

static void it_does_not_matter_where_a_record_stands(void **state)
{
    (void)state;
    enum { WAYS = 8 };
    uint64_t sums[WAYS];
    for (int way = 0; way < WAYS; way++) {
        struct writer writer;
        write_busy_trace(&writer);
        for (int lane = 0; lane < 3; lane++) {
            struct writer_lane *of = &writer.lanes[lane];
            of->packed = way == 0 ? 0 : of->count;
            of->overlap = way == 3 ? of->count : 0;
        }
        writer.codec = way == 2 ? GM_CODEC_NONE : GM_CODEC_ZSTD;
        writer.block_records = way == 1 ? 7 : way == 4 ? 300 : 200;
        writer.distance = way < 4 ? 1 : way == 4 ? 2 : way == 5 ? 6 : way == 6 ? 150 : 4096;
        writer.near = way < 5 ? 1 : way == 5 ? 2 : way == 6 ? 140 : 3;
        writer_finish(&writer);
        struct gm_trace *trace = open_trace(&writer);
        sums[way] = digest(trace).sum;
        gm_trace_close(trace);
        writer_free(&writer);
    }
    for (int way = 1; way < WAYS; way++)
        assert_int_equal(sums[0], sums[way]);
}

static void a_lane_keeps_its_order_where_clocks_disagree(void **state)
{
    (void)state;
    struct writer writer;
    struct gm_entry entry;
    writer_begin(&writer);
    static const uint64_t times[] = {5000, 4000, 4500, 6000};
    for (uint64_t n = 0; n < 4; n++)
        writer_add(&writer, 0, (struct gm_record){.time = times[n], .address = n});
    writer_add(&writer, 1, (struct gm_record){.time = 4800, .address = 10});
    writer_add(&writer, 1, (struct gm_record){.time = 5500, .address = 11});
    writer.lanes[0].packed = 3;
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct gm_stream *stream = gm_stream_open(trace);
    static const uint64_t order[] = {10, 0, 1, 2, 11, 3};
    for (size_t i = 0; i < 6; i++) {
        assert_true(gm_stream_next(stream, &entry));
        assert_int_equal(entry.record->address, order[i]);
    }
    assert_false(gm_stream_next(stream, &entry));
    assert_false(gm_stream_next(stream, &entry));
    gm_stream_close(stream);
    gm_trace_close(trace);
    writer_free(&writer);
}

static void details_come_with_their_record(void **state)
{
    (void)state;
    struct writer writer;
    struct gm_entry entry;
    writer_begin(&writer);
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_DETAIL, .address = 1}); /* stray */
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_VMM_MAP, .address = 2});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_DETAIL, .address = 3});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_VMM_MAP, .address = 4});
    writer.lanes[0].packed = 2; /* a detail in the ring, its record in a block */
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct gm_stream *stream = gm_stream_open(trace);
    assert_true(gm_stream_next(stream, &entry));
    assert_int_equal(entry.record->address, 2);
    assert_int_equal(entry.detail->address, 3);
    assert_true(gm_stream_next(stream, &entry));
    assert_int_equal(entry.record->address, 4);
    assert_null(entry.detail);
    assert_false(gm_stream_next(stream, &entry));
    gm_stream_close(stream);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* The record of the detail was in a block that is gone. */
static void a_detail_behind_a_gap_belongs_to_nothing(void **state)
{
    (void)state;
    struct writer writer;
    struct gm_entry entry;
    writer_begin(&writer);
    writer.block_records = 1;
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_VMM_MAP, .address = 1});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_VMM_MAP, .address = 2});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_DETAIL, .address = 3});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_MARK, .address = 4});
    writer.lanes[0].packed = 2;
    writer_finish(&writer);
    for (size_t at = GM_TRACE_PAGE; at < writer.size;) {
        struct gm_extent *extent = (struct gm_extent *)(writer.bytes + at);
        struct gm_block *block = (struct gm_block *)(extent + 1);
        if (extent->type == GM_EXTENT_BLOCK && block->first_sequence == 1)
            extent->type = 99; /* of a newer minor version: skipped */
        at += extent->length;
    }
    writer_mend(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct gm_stream *stream = gm_stream_open(trace);
    assert_true(gm_stream_next(stream, &entry));
    assert_int_equal(entry.record->address, 1);
    assert_null(entry.detail);
    assert_true(gm_stream_next(stream, &entry));
    assert_int_equal(entry.record->address, 4);
    assert_false(gm_stream_next(stream, &entry));
    assert_int_equal(gm_stream_lost(stream), 1);
    gm_stream_close(stream);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* A checkpoint of lanes 0 and 1; two records of lane 0 came before it, none of lane 1. */
static void the_history_of_a_flight_begins_with_a_checkpoint(void **state)
{
    (void)state;
    struct writer writer;
    struct gm_entry entry;
    writer_begin(&writer);
    writer_carry(&writer, 1, (struct gm_record){.type = GM_EVENT_VMM_MAP, .address = 1});
    writer_carry(&writer, 1, (struct gm_record){.type = GM_EVENT_DETAIL, .address = 2});
    writer_carry(&writer, 0, (struct gm_record){.type = GM_EVENT_ALLOC, .address = 3});
    writer.folded[0] = 2;
    for (uint64_t i = 0; i < 4; i++)
        writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_MARK, .address = 10 + i});
    writer_add(&writer, 1, (struct gm_record){.type = GM_EVENT_MARK, .address = 20});
    writer.block_records = 1; /* some of them are skipped as a whole */
    writer.lanes[0].packed = 2;
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    static const struct {
        uint64_t address;
        uint32_t lane;
        bool carried;
    } expected[] = {{1, 1, true}, {3, 0, true}, {12, 0, false}, {13, 0, false}, {20, 1, false}};
    assert_int_equal(trace->damaged, 0);
    assert_non_null(trace->checkpoint);
    struct gm_stream *stream = gm_stream_open(trace);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(gm_stream_next(stream, &entry));
        assert_int_equal(entry.record->address, expected[i].address);
        assert_int_equal(entry.lane, expected[i].lane);
        assert_int_equal(entry.carried, expected[i].carried);
        assert_int_equal(entry.detail ? entry.detail->address : 0, i == 0 ? 2 : 0);
    }
    assert_false(gm_stream_next(stream, &entry));
    assert_int_equal(gm_stream_lost(stream), 0); /* overwritten records are not a loss */
    assert_int_equal(trace->damaged, 0);
    gm_stream_close(stream);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* The free comes first, and a peak before the history does not count. */
static void a_flight_begins_at_what_is_alive(void **state)
{
    (void)state;
    struct writer writer;
    writer_begin(&writer);
    for (uint64_t i = 1; i < 4; i++)
        writer_carry(
            &writer, 0,
            (struct gm_record){
                .type = GM_EVENT_ALLOC, .kind = GM_KIND_DEVICE, .address = i, .size = 100});
    writer_carry(&writer, 0, (struct gm_record){.type = GM_EVENT_FREE, .address = 2});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_FREE, .address = 1});
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct gm_analysis *analysis = gm_analyse(trace);
    const struct gm_tally *tally =
        gm_counters_kind(&analysis->replay.ledger.counters, GM_KIND_DEVICE, 0);
    assert_true(gm_analysis_is_complete(analysis));
    assert_int_equal(tally->live, 100);
    assert_int_equal(tally->allocs, 2);
    assert_int_equal(tally->frees, 1);
    assert_int_equal(tally->peak.bytes, 200);
    assert_int_equal(tally->peak.time, writer.carried_until);
    assert_int_equal(analysis->device_peaks[0].owners.bytes, 200);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* Neither counts, and both are taken back. */
static void frees_before_a_flight_can_fail_in_it(void **state)
{
    (void)state;
    struct writer writer;
    writer_begin(&writer);
    writer_carry(&writer, 0,
                 (struct gm_record){
                     .type = GM_EVENT_ALLOC, .kind = GM_KIND_DEVICE, .address = 1, .size = 100});
    for (uint8_t lane = 0; lane < 2; lane++) {
        writer_carry(&writer, lane, (struct gm_record){.type = GM_EVENT_FREE, .address = 1 + lane});
        writer_add(
            &writer, lane,
            (struct gm_record){.type = GM_EVENT_UNDO, .kind = GM_EVENT_FREE, .address = 1 + lane});
    }
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct gm_analysis *analysis = gm_analyse(trace);
    const struct gm_tally *tally =
        gm_counters_kind(&analysis->replay.ledger.counters, GM_KIND_DEVICE, 0);
    assert_int_equal(tally->live, 100);
    assert_int_equal(tally->allocs, 1);
    assert_int_equal(tally->frees, 0);
    assert_int_equal(analysis->replay.ledger.unknown_frees, 0);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
    writer_free(&writer);
}

static void extreme_values_come_through(void **state)
{
    (void)state;
    struct writer writer;
    struct gm_entry entry;
    static const struct gm_record records[] = {
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT16_MAX,
         UINT16_MAX, 200, 255, -128, 255},
        {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1ull << 63, 1ull << 63, 1, 1ull << 63, 1u << 31, 1, 1, 1, 1, 1, 1, 1},
    };
    writer_begin(&writer);
    for (size_t i = 0; i < 3; i++)
        writer_add(&writer, 0, records[i]);
    writer.lanes[0].packed = 3;
    writer_finish(&writer);
    struct gm_trace *trace = open_trace(&writer);
    struct gm_stream *stream = gm_stream_open(trace);
    for (size_t i = 0; i < 3; i++) {
        assert_true(gm_stream_next(stream, &entry));
        assert_memory_equal(entry.record, &records[i], sizeof(records[i]));
    }
    gm_stream_close(stream);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void ticks_become_nanoseconds(void **state)
{
    (void)state;
    struct gm_trace_header header = {.clock = GM_CLOCK_TICKS,
                                     .clock_start = {.ticks = 1000, .monotonic_ns = 50},
                                     .clock_latest_index = 1};
    header.clock_latest[1] = (struct gm_clock_pair){.ticks = 4000, .monotonic_ns = 1050};
    struct gm_clock_scale scale = gm_clock_scale(&header);
    assert_int_equal(gm_clock_elapsed(&scale, 1000), 0);
    assert_int_equal(gm_clock_elapsed(&scale, 2500), 500);
    assert_int_equal(gm_clock_elapsed(&scale, 10), 0);
    assert_int_equal(gm_clock_elapsed(&scale, UINT64_MAX), 6148914691236516871u);
    header.clock_latest[1] = header.clock_start; /* killed at once: no rate is known */
    scale = gm_clock_scale(&header);
    assert_int_equal(gm_clock_elapsed(&scale, 1001), 1);
    header.clock = GM_CLOCK_MONOTONIC;
    scale = gm_clock_scale(&header);
    assert_int_equal(gm_clock_elapsed(&scale, 1050), 1000);
}

/* ---- cut and damaged traces ------------------------------------------------------------------ */

static void a_trace_cut_anywhere_is_read_up_to_there(void **state)
{
    (void)state;
    struct writer writer;
    write_busy_trace(&writer);
    writer_finish(&writer);
    for (size_t size = 0; size < writer.size; size += 64)
        assert_false(survive(writer.bytes, size));
    for (size_t size = writer.size - 130; size < writer.size; size++)
        assert_false(survive(writer.bytes, size));
    assert_true(survive(writer.bytes, writer.size));
    writer_free(&writer);
}

static void a_cut_keeps_what_stands_before_it(void **state)
{
    (void)state;
    char error[256];
    struct writer writer;
    write_busy_trace(&writer);
    for (int lane = 0; lane < 3; lane++) {
        writer.lanes[lane].packed = writer.lanes[lane].count;
        writer.lanes[lane].overlap = 0;
    }
    writer_finish(&writer);
    /* Cut inside the last block of lane 2: all others are there. */
    const struct gm_extent *last = NULL;
    for (size_t at = GM_TRACE_PAGE; at < writer.size;) {
        const struct gm_extent *extent = (const struct gm_extent *)(writer.bytes + at);
        if (extent->type == GM_EXTENT_BLOCK)
            last = extent;
        at += extent->length;
    }
    size_t size = (size_t)((const unsigned char *)last - writer.bytes) + 192;
    struct gm_trace *trace = gm_trace_open_memory(writer.bytes, size, error, sizeof(error));
    assert_non_null(trace);
    assert_true(trace->truncated);
    assert_int_equal(digest(trace).records, 800);
    gm_trace_close(trace);
    writer_free(&writer);
}

static void a_damaged_block_is_skipped_and_counted(void **state)
{
    (void)state;
    struct writer writer;
    write_busy_trace(&writer);
    writer_finish(&writer);
    for (size_t at = GM_TRACE_PAGE; at < writer.size;) {
        struct gm_extent *extent = (struct gm_extent *)(writer.bytes + at);
        struct gm_block *block = (struct gm_block *)(extent + 1);
        if (extent->type == GM_EXTENT_BLOCK && block->lane == 1 && block->first_sequence == 100)
            ((unsigned char *)(block + 1))[10] ^= 1;
        at += extent->length;
    }
    struct gm_trace *trace = open_trace(&writer);
    struct digest rest = digest(trace);
    assert_int_equal(rest.records, 800);
    assert_int_equal(rest.lost, 100);
    assert_int_equal(trace->damaged, 1);
    digest(trace);
    assert_int_equal(trace->damaged, 1); /* counted once */
    gm_trace_close(trace);
    writer_free(&writer);
}

static void a_missing_block_is_a_loss(void **state)
{
    (void)state;
    struct writer writer;
    write_busy_trace(&writer);
    writer_finish(&writer);
    for (size_t at = GM_TRACE_PAGE; at < writer.size;) {
        struct gm_extent *extent = (struct gm_extent *)(writer.bytes + at);
        struct gm_block *block = (struct gm_block *)(extent + 1);
        if (extent->type == GM_EXTENT_BLOCK && block->lane == 0 && block->first_sequence == 0)
            extent->type = 99; /* of a newer minor version: skipped */
        at += extent->length;
    }
    writer_mend(&writer);
    struct gm_trace *trace = open_trace(&writer);
    assert_int_equal(digest(trace).lost, 100);
    assert_int_equal(trace->damaged, 0);
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_false(gm_analysis_is_complete(analysis));
    gm_analysis_free(analysis);
    gm_trace_close(trace);
    writer_free(&writer);
}

static void extents_are_found_again_behind_damage(void **state)
{
    (void)state;
    struct writer writer;
    write_busy_trace(&writer);
    writer_finish(&writer);
    struct gm_extent *names = (struct gm_extent *)(writer.bytes + GM_TRACE_PAGE);
    names->length = 64 * 1000000;
    struct gm_trace *trace = open_trace(&writer);
    assert_int_equal(digest(trace).records, 900);
    assert_int_equal(trace->damaged, 1);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* A small generator, for the same damage in every run. */
static uint64_t draw_number(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void flipped_bytes_never_crash_it(void **state)
{
    (void)state;
    struct writer writer;
    write_busy_trace(&writer);
    writer_finish(&writer);
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 1500; round++) {
        size_t places[8];
        unsigned char before[8];
        for (int i = 0; i < 8; i++) {
            /* Most damage goes to the header, where it does most harm. */
            places[i] = draw_number(&seed) % (i < 3 ? sizeof(struct gm_trace_header) : writer.size);
            before[i] = writer.bytes[places[i]];
            writer.bytes[places[i]] = (unsigned char)draw_number(&seed);
        }
        survive(writer.bytes, writer.size);
        for (int i = 8; i-- > 0;)
            writer.bytes[places[i]] = before[i];
    }
    assert_true(survive(writer.bytes, writer.size));
    writer_free(&writer);
}

static void random_bytes_are_no_trace(void **state)
{
    (void)state;
    unsigned char bytes[8192];
    uint64_t seed = 1;
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (unsigned char)draw_number(&seed);
        assert_false(survive(bytes, sizeof(bytes)));
        memcpy(bytes, GM_TRACE_MAGIC, 8);
        assert_false(survive(bytes, sizeof(bytes)));
    }
}

static void nonsense_records_never_crash_it(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < 30; round++) {
        struct writer writer;
        writer_begin(&writer);
        for (int n = 0; n < 3000; n++) {
            struct gm_record record = {
                .address = draw_number(&seed) % 64 << (round % 3 ? 12 : 58),
                .size = draw_number(&seed) % (round % 2 ? 16384 : UINT64_MAX),
                .aux = draw_number(&seed) % 64 << (round % 5 ? 12 : 3),
                .stack = (uint32_t)draw_number(&seed) % 16,
                .extra = (uint32_t)draw_number(&seed) % 5,
                .context = (uint16_t)(draw_number(&seed) % 6),
                .type = (uint8_t)(draw_number(&seed) % (GM_EVENTS + 3)),
                .kind = (uint8_t)(draw_number(&seed) % (GM_KINDS + 2)),
                .device = (int8_t)(draw_number(&seed) % 4 - 1),
                .flags = (uint8_t)draw_number(&seed),
            };
            writer_add(&writer, (unsigned)(draw_number(&seed) % 3), record);
        }
        writer.lanes[0].packed = writer.lanes[0].count / 2;
        writer_finish(&writer);
        survive(writer.bytes, writer.size);
        writer_free(&writer);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refusals_say_why(void **state)
{
    (void)state;
    struct writer writer;
    char error[256];
    writer_begin(&writer);
    writer_finish(&writer);
    struct gm_trace_header *header = (struct gm_trace_header *)writer.bytes;
    assert_null(gm_trace_open_memory(writer.bytes, 0, error, sizeof(error)));
    assert_string_equal(error, "the file is empty");
    assert_null(gm_trace_open_memory("#!/bin/sh\n", 10, error, sizeof(error)));
    assert_string_equal(error, "this is not a gpumem trace");
    assert_null(gm_trace_open_memory(writer.bytes, 4095, error, sizeof(error)));
    assert_string_equal(error, "the trace is cut inside its header");
    header->major = 7;
    assert_null(gm_trace_open_memory(writer.bytes, writer.size, error, sizeof(error)));
    assert_string_equal(error, "the trace has format version 7.4, this gpumem reads version 3");
    header->major = GM_TRACE_MAJOR;
    header->minor = 99; /* a newer minor only adds */
    struct gm_trace *trace = gm_trace_open_memory(writer.bytes, writer.size, error, sizeof(error));
    assert_non_null(trace);
    gm_trace_close(trace);
    writer_free(&writer);
}

/* ---- a file that is being written ------------------------------------------------------------ */

static char temporary[] = "/tmp/gpumem-test-XXXXXX";

static void make_temporary(void)
{
    strcpy(strrchr(temporary, '-'), "-XXXXXX");
    int descriptor = mkstemp(temporary);
    assert_true(descriptor >= 0);
    close(descriptor);
}

static void the_ending_of_a_process_is_told(void **state)
{
    (void)state;
    struct writer writer;
    char error[256];
    make_temporary();
    for (int way = 0; way < 4; way++) {
        write_busy_trace(&writer);
        writer.header.end = way == 0 ? GM_END_EXIT : GM_END_NONE;
        if (way >= 2)
            name_ourselves(&writer.header);
        if (way == 3)
            writer.header.process_start++; /* another process that had this number */
        writer_finish(&writer);
        write_trace_file(&writer, temporary);
        struct gm_trace *trace = gm_trace_open(temporary, error, sizeof(error));
        static const enum gm_ending expected[] = {GM_ENDING_NORMAL, GM_ENDING_CUT,
                                                  GM_ENDING_RUNNING, GM_ENDING_CUT};
        assert_non_null(trace);
        assert_int_equal(trace->ending, expected[way]);
        assert_int_equal(digest(trace).records, 900);
        gm_trace_close(trace);
        writer_free(&writer);
    }
    unlink(temporary);
}

/* The last block of a trace. */
static struct gm_extent *last_block(const struct writer *writer)
{
    struct gm_extent *last = NULL;
    for (size_t at = GM_TRACE_PAGE; at < writer->size;) {
        struct gm_extent *extent = (struct gm_extent *)(writer->bytes + at);
        last = extent->type == GM_EXTENT_BLOCK ? extent : last;
        at += extent->length;
    }
    assert_non_null(last);
    return last;
}

/* Damage that a look finds which knows `before`. Takes over `before`. */
static uint64_t damage_after(struct gm_trace *before, struct gm_trace **look)
{
    char error[256];
    struct gm_trace *trace = gm_trace_open_at_once(temporary, before, error, sizeof(error));
    assert_non_null(trace);
    assert_int_equal(trace->ending, GM_ENDING_RUNNING);
    uint64_t damaged = trace->damaged;
    gm_trace_close(before);
    *look = trace;
    return damaged;
}

static void what_was_found_intact_is_not_checked_again(void **state)
{
    (void)state;
    struct writer writer;
    struct gm_trace *look = NULL;
    make_temporary();
    write_busy_trace(&writer);
    writer.header.end = GM_END_NONE;
    name_ourselves(&writer.header);
    writer_finish(&writer);
    struct gm_trace_header *header = (struct gm_trace_header *)writer.bytes;
    struct gm_extent *block = last_block(&writer);
    unsigned char *byte = (unsigned char *)(block + 1) + block->used - 1;
    uint64_t whole = header->file_end;

    /* The writer has not come to the last block yet. */
    header->file_end = (uint64_t)((unsigned char *)block - writer.bytes);
    write_trace_file(&writer, temporary);
    assert_int_equal(damage_after(NULL, &look), 0);
    assert_int_equal(look->checked, header->file_end);
    /* What comes then is checked. */
    header->file_end = whole;
    *byte ^= 1;
    write_trace_file(&writer, temporary);
    assert_int_equal(damage_after(look, &look), 1);
    /* Behind damage nothing counts as checked. */
    assert_true(look->checked < whole);
    *byte ^= 1;
    write_trace_file(&writer, temporary);
    assert_int_equal(damage_after(look, &look), 0);
    assert_int_equal(look->checked, whole);
    /* What was intact is not looked at again, unless the file is of another run. */
    *byte ^= 1;
    write_trace_file(&writer, temporary);
    assert_int_equal(damage_after(look, &look), 0);
    header->clock_start.monotonic_ns++;
    header->checksum = gm_header_checksum(header);
    write_trace_file(&writer, temporary);
    assert_int_equal(damage_after(look, &look), 1);
    gm_trace_close(look);
    unlink(temporary);
    writer_free(&writer);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_functions_are_clean),
        cmocka_unit_test(blocks_and_rings_make_one_stream),
        cmocka_unit_test(it_does_not_matter_where_a_record_stands),
        cmocka_unit_test(a_lane_keeps_its_order_where_clocks_disagree),
        cmocka_unit_test(details_come_with_their_record),
        cmocka_unit_test(a_detail_behind_a_gap_belongs_to_nothing),
        cmocka_unit_test(the_history_of_a_flight_begins_with_a_checkpoint),
        cmocka_unit_test(a_flight_begins_at_what_is_alive),
        cmocka_unit_test(frees_before_a_flight_can_fail_in_it),
        cmocka_unit_test(extreme_values_come_through),
        cmocka_unit_test(what_was_found_intact_is_not_checked_again),
        cmocka_unit_test(ticks_become_nanoseconds),
        cmocka_unit_test(a_trace_cut_anywhere_is_read_up_to_there),
        cmocka_unit_test(a_cut_keeps_what_stands_before_it),
        cmocka_unit_test(a_damaged_block_is_skipped_and_counted),
        cmocka_unit_test(a_missing_block_is_a_loss),
        cmocka_unit_test(extents_are_found_again_behind_damage),
        cmocka_unit_test(flipped_bytes_never_crash_it),
        cmocka_unit_test(random_bytes_are_no_trace),
        cmocka_unit_test(nonsense_records_never_crash_it),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(the_ending_of_a_process_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
