/* Looks at a process that runs, and that are cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the headers above */

#include "running_trace.h"
#include "tools/top/follow.h"
#include "trace_writer.h"

#define EVENTS 100000u

static char path[] = "/tmp/gpumem-test-XXXXXX";

/* Three of four allocations stay. */
static void write_trace(struct writer *writer)
{
    writer_begin(writer);
    writer->header.end = GM_END_NONE;
    name_ourselves(&writer->header);
    for (uint64_t i = 0; i < EVENTS; i++) {
        bool frees = i % 5 == 4;
        writer_add(writer, 0,
                   (struct gm_record){.type = frees ? GM_EVENT_FREE : GM_EVENT_ALLOC,
                                      .kind = GM_KIND_DEVICE,
                                      .address = 0x10000 + 512 * (frees ? i - 3 : i),
                                      .size = frees ? 0 : 512});
    }
    writer->lanes[0].packed = EVENTS;
    writer_finish(writer);
}

/* The first extent of a type. */
static struct gm_extent *find_extent(const struct writer *writer, enum gm_extent_type type)
{
    struct gm_extent *extent = (struct gm_extent *)(writer->bytes + GM_TRACE_PAGE);
    while (extent->type != type)
        extent = (struct gm_extent *)((unsigned char *)extent + extent->length);
    return extent;
}

/* The file as it was when the writer had packed its first block. */
static void write_first_block(const struct writer *writer)
{
    struct gm_trace_header *header = (struct gm_trace_header *)writer->bytes;
    struct gm_extent *block = find_extent(writer, GM_EXTENT_BLOCK);
    struct gm_lane *lane = (struct gm_lane *)(find_extent(writer, GM_EXTENT_LANE) + 1);
    uint64_t whole = header->file_end, head = lane->head, tail = lane->tail;
    header->file_end = (uint64_t)((unsigned char *)block + block->length - writer->bytes);
    lane->head = lane->tail = ((const struct gm_block *)(block + 1))->count;
    write_trace_file(writer, path);
    header->file_end = whole;
    lane->head = head;
    lane->tail = tail;
}

static void a_look_that_is_cut_off_is_taken_up_by_the_next(void **state)
{
    struct writer writer;
    struct gm_follow follow;
    char error[256];
    unsigned looks = 0;
    (void)state;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    write_trace(&writer);
    write_first_block(&writer);
    gm_follow_begin(&follow, path);
    assert_true(gm_follow_look(&follow, 1, error, sizeof(error)));
    assert_false(follow.is_behind); /* the first takes what it needs */
    uint64_t first = follow.events, before = first;
    assert_true(first > 0 && first < EVENTS);
    write_trace_file(&writer, path);
    do {
        assert_true(gm_follow_look(&follow, 1, error, sizeof(error)));
        assert_true(follow.events > before && follow.events <= EVENTS);
        before = follow.events;
        looks++;
    } while (follow.is_behind);
    assert_int_equal(follow.events, EVENTS);
    assert_true(looks > (EVENTS - first) / 20000);
    assert_int_equal(follow.replay->ledger.lives.count, EVENTS / 5 * 3);
    assert_int_equal(follow.replay->ledger.counters.live, EVENTS / 5 * 3 * 512);
    assert_int_equal(follow.replay->ledger.unknown_frees, 0);
    gm_follow_end(&follow);
    writer_free(&writer);
    unlink(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_that_is_cut_off_is_taken_up_by_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
