/* Writes the traces of this folder anew: make_corpus FOLDER. Their bytes are checked in, so that
 * the tests read traces of older writers; expected.txt has the expected result of each. */
#include "../support/trace_writer.h"
#include <stdio.h>

#define DEVICE_ALLOC(where, bytes, ...)                                                            \
    writer_add(&writer, 0,                                                                         \
               (struct gm_record){.type = GM_EVENT_ALLOC,                                          \
                                  .kind = GM_KIND_DEVICE,                                          \
                                  .address = (where),                                              \
                                  .size = (bytes),                                                 \
                                  __VA_ARGS__})
#define FREE(where)                                                                                \
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_FREE, .address = (where)})

static struct writer writer;
static const char *folder;

static void save_bytes(const char *name, const void *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.trace", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* Recomputes the checksums of a changed trace, so that they do not reveal the change. */
static void save_mended(const char *name)
{
    writer_mend(&writer);
    save_bytes(name, writer.bytes, writer.size);
}

static void save_trace(const char *name)
{
    writer_finish(&writer);
    save_bytes(name, writer.bytes, writer.size);
    writer_free(&writer);
}

/* A program of three frames that allocates twice; one allocation is freed. */
static void begin_program(void)
{
    writer_begin(&writer);
    uint16_t api = writer_api(&writer, "cudaMalloc");
    uint16_t module = writer_module(&writer, "/nonexistent/program");
    uint32_t outer = writer_node(&writer, 0, module, 0x1100, GM_NODE_NATIVE);
    uint32_t inner = writer_node(&writer, outer, module, 0x1200, GM_NODE_NATIVE);
    DEVICE_ALLOC(0x7f0000000000, 4 << 20, .stack = inner, .api = api);
    DEVICE_ALLOC(0x7f0000800000, 1 << 20, .stack = outer, .api = api);
    FREE(0x7f0000000000);
}

static struct gm_extent *first_extent(enum gm_extent_type type)
{
    size_t at = GM_TRACE_PAGE;
    while (((struct gm_extent *)(writer.bytes + at))->type != type)
        at += ((struct gm_extent *)(writer.bytes + at))->length;
    return (struct gm_extent *)(writer.bytes + at);
}

static void save_bad_files(void)
{
    save_bytes("empty", "", 0);
    save_bytes("text", "this is no trace\n", 17);
    begin_program();
    writer_finish(&writer);
    save_bytes("cut-in-header", writer.bytes, 2000);
    save_bytes("cut-in-records", writer.bytes, 8192);
    ((struct gm_trace_header *)writer.bytes)->major = 9;
    save_bytes("other-version", writer.bytes, writer.size);
    ((struct gm_trace_header *)writer.bytes)->major = GM_TRACE_MAJOR;
    ((struct gm_trace_header *)writer.bytes)->record_size = 40;
    save_bytes("other-record-size", writer.bytes, writer.size);
    writer_free(&writer);
}

static void save_incomplete_files(void)
{
    begin_program();
    writer.header.end = GM_END_NONE;
    save_trace("killed");
    begin_program();
    writer.header.counters[GM_COUNT_DROPPED] = 3;
    save_trace("dropped");
    begin_program();
    writer.lanes[0].packed = 2;
    writer.lanes[0].overlap = 0;
    writer_finish(&writer);
    struct gm_block *block = (struct gm_block *)(first_extent(GM_EXTENT_BLOCK) + 1);
    block->first_time ^= 1;
    save_bytes("bad-checksum", writer.bytes, writer.size);
    block->first_time ^= 1;
    block->column_size[GM_COLUMN_TYPE]++;
    save_mended("bad-columns");
    block->column_size[GM_COLUMN_TYPE]--;
    block->distance = 0;
    save_mended("no-distance");
    block->distance = GM_DISTANCE_MAX + 1;
    save_mended("far-distance");
    block->distance = 1;
    block->near = 2;
    save_mended("near-beyond-distance");
    writer_free(&writer);
    begin_program();
    writer_finish(&writer);
    struct gm_lane *lane = (struct gm_lane *)(first_extent(GM_EXTENT_LANE) + 1);
    lane->capacity = 1ull << 60;
    save_mended("huge-ring");
    lane->head = 1ull << 59; /* a loop over the records would never end */
    writer_mend(&writer);
    save_bytes("huge-ring-cut", writer.bytes, writer.size - 64);
    lane->head = 3;
    lane->capacity = 64;
    lane->tail = 1000;
    save_mended("tail-beyond-head");
    writer_free(&writer);
}

static void save_whole_files(void)
{
    begin_program();
    save_trace("leak");
    begin_program();
    FREE(0x7f0000800000);
    save_trace("clean");
    writer_begin(&writer);
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_DEVICE, .size = 1 << 30});
    save_trace("nothing");
    writer_begin(&writer);
    writer.nodes[1] = (struct gm_node){0x10, 1, 7, GM_NODE_NATIVE}; /* its own parent */
    writer.nodes[2] = (struct gm_node){0x10, 3, 7, 99};             /* no such kind or module */
    writer.header.node_count = 3;
    DEVICE_ALLOC(0x1000, 1, .stack = 1, .api = 999);
    DEVICE_ALLOC(0x2000, 1, .stack = 2);
    DEVICE_ALLOC(0x3000, 1, .stack = 4000000);
    save_trace("bad-references");
    begin_program();
    static const char evil[] = "\033[2J\033]0;owned\a\r\n\xff\xc0\x80\"\\\t\0end";
    writer.modules[1].path = writer_text(&writer, evil, sizeof(evil) - 1);
    uint32_t text = writer_text(&writer, evil, sizeof(evil) - 1);
    writer.frames[1] = (struct gm_script_frame){text, text, 7, 1};
    writer.header.frame_count = 2;
    uint32_t node = writer_node(&writer, 2, 0, 1, GM_NODE_SCRIPT);
    memcpy(writer.header.command_line, evil, sizeof(evil));
    writer.header.command_line_size = sizeof(evil);
    memcpy(writer.header.host, evil, sizeof(evil));
    writer.names_count = 0;
    DEVICE_ALLOC(0x9000, 1, .stack = node);
    save_trace("hostile-text");
}

/* 3 MiB alive from before the checkpoint, 1 MiB of them freed after it, and 8 MiB allocated
 * since. */
static void begin_flight(void)
{
    writer_begin(&writer);
    uint16_t api = writer_api(&writer, "cudaMalloc");
    for (uint64_t i = 0; i < 3; i++)
        writer_carry(&writer, 0,
                     (struct gm_record){.type = GM_EVENT_ALLOC,
                                        .kind = GM_KIND_DEVICE,
                                        .address = 0x7f0000000000 + (i << 20),
                                        .size = 1 << 20,
                                        .api = api});
    writer.folded[0] = 2;
    for (uint64_t i = 0; i < 2; i++) /* before the checkpoint: not to be read */
        DEVICE_ALLOC(0x7f0000000000 + (i << 20), 1 << 20, .api = api);
    FREE(0x7f0000100000);
    DEVICE_ALLOC(0x7f0010000000, 8 << 20, .api = api);
    writer.block_records = 3;
    writer.lanes[0].packed = 3;
}

static void save_flight_files(void)
{
    begin_flight();
    save_trace("flight");
    begin_flight();
    writer_finish(&writer);
    struct gm_extent *extent = first_extent(GM_EXTENT_FLIGHT);
    struct gm_flight *flight = (struct gm_flight *)(extent + 1);
    extent = (struct gm_extent *)((char *)extent + GM_TRACE_PAGE);
    struct gm_checkpoint *checkpoint = (struct gm_checkpoint *)(extent + 1);
    struct gm_block *carried = (struct gm_block *)((char *)(extent + 1) + extent->length);
    checkpoint->carried++;
    save_bytes("flight-bad-checkpoint", writer.bytes, writer.size);
    checkpoint->carried--;
    carried->first_time ^= 1;
    save_bytes("flight-torn-carried", writer.bytes, writer.size);
    carried->first_time ^= 1;
    checkpoint->blocks = 7;
    save_mended("flight-missing-carried");
    flight->start = flight->end + 64;
    save_mended("flight-start-behind-end");
    flight->start = 0;
    flight->capacity = 1ull << 60; /* a walk over the area would never end */
    flight->end = 1ull << 59;
    save_mended("flight-huge-area");
    writer_free(&writer);
}

/* Eight steps, each in a range: each keeps 64 KiB at one place, and takes and returns more. */
static void save_phases(void)
{
    static const char *const modules[] = {"/lib/libnccl.so.2", "/lib/libc10_cuda.so",
                                          "/opt/\033[31mown\xff.so"};
    static const char evil[] = "\033[2Jname\r\n\xff\0end";
    uint32_t stacks[3];
    begin_program();
    uint32_t step = writer_string(&writer, "step"), forward = writer_string(&writer, "forward");
    uint32_t domain = writer_string(&writer, "NCCL"),
             ugly = writer_text(&writer, evil, sizeof(evil));
    for (int i = 0; i < 3; i++)
        stacks[i] =
            writer_node(&writer, 2, writer_module(&writer, modules[i]), 0x40, GM_NODE_NATIVE);
    for (uint64_t i = 0; i < 8; i++) {
        writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_RANGE_PUSH, .aux = step});
        writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_RANGE_PUSH, .aux = forward});
        DEVICE_ALLOC(0x7f0010000000, 3 << 20, .stack = stacks[1], .api = 1);
        DEVICE_ALLOC(0x7f0020000000 + i * 65536, 65536, .stack = stacks[0], .api = 1);
        writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_RANGE_POP});
        writer_add(&writer, 1,
                   (struct gm_record){
                       .type = GM_EVENT_RANGE_PUSH, .address = 9, .aux = ugly, .extra = domain});
        FREE(0x7f0010000000);
        writer_add(&writer, 1, (struct gm_record){.type = GM_EVENT_RANGE_POP, .address = 9});
        writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_RANGE_POP});
        writer_add(&writer, 0,
                   (struct gm_record){.type = GM_EVENT_MARK, .aux = i == 3 ? ugly : step});
    }
    writer_add(&writer, 0,
               (struct gm_record){.type = GM_EVENT_RANGE_START, .address = 5, .aux = ugly});
    DEVICE_ALLOC(0x7f0030000000, 4096, .stack = stacks[2], .api = 1);
    save_trace("phases");
}

static uint64_t allocated, reserved;

static void pool_event(enum gm_event type, uint64_t address, uint64_t size, uint32_t stack)
{
    allocated += type == GM_EVENT_BLOCK_ALLOC ? size : 0;
    allocated -= type == GM_EVENT_BLOCK_FREE ? size : 0;
    writer_add(&writer, 0,
               (struct gm_record){.type = (uint8_t)type,
                                  .address = address,
                                  .size = size,
                                  .aux = allocated,
                                  .stack = stack});
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_DETAIL, .address = reserved});
}

/* A pool of PyTorch's: a list that grows, segments held open by one block each, expandable
 * segments, refused requests, pageable copies to one place and pinned memory. Names are long and
 * hostile. */
static void save_pool(void)
{
    static const char evil[] = "/home/\033[2Jme/a/very/long/path/to/\xff/the/training/script.py";
    static const char function[] = "Trainer.<locals>.a_function_with_a_name_that_is_far_too_long\n";
    begin_program();
    uint32_t file = writer_text(&writer, evil, sizeof(evil) - 1);
    uint32_t name = writer_text(&writer, function, sizeof(function) - 1);
    uint32_t lines[3];
    for (uint32_t i = 0; i < 3; i++) {
        writer.frames[i + 1] = (struct gm_script_frame){file, name, 12345 + i, 1};
        lines[i] = writer_node(&writer, i ? lines[0] : 2, 0, i + 1, GM_NODE_SCRIPT);
    }
    writer.header.frame_count = 4;
    uint32_t torch = writer_node(&writer, lines[0], writer_module(&writer, "/v/libc10_cuda.so"), 16,
                                 GM_NODE_NATIVE);
    const uint64_t heap = 0x7f1000000000, mib = 1 << 20;
    writer_add(
        &writer, 0,
        (struct gm_record){.type = GM_EVENT_DEVICE_SAMPLE, .size = 9 * mib, .aux = 99 * mib});
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = heap + i * 32 * mib;
        DEVICE_ALLOC(at, 20 * mib, .stack = torch, .api = 1);
        reserved += 20 * mib;
        pool_event(GM_EVENT_BLOCK_ALLOC, at, 3 * mib, lines[1]);
        pool_event(GM_EVENT_BLOCK_ALLOC, at + 8 * mib, mib, lines[2]);
        pool_event(GM_EVENT_BLOCK_FREE, at + 8 * mib, mib, lines[2]);
        writer_add(&writer, 0,
                   (struct gm_record){.type = GM_EVENT_COPY,
                                      .kind = GM_COPY_HOST_TO_DEVICE,
                                      .address = heap,
                                      .aux = 0x1000,
                                      .size = mib,
                                      .stack = lines[1]});
        writer_add(&writer, 0,
                   (struct gm_record){.type = GM_EVENT_ALLOC,
                                      .kind = GM_KIND_PINNED,
                                      .address = 0x7e0000000000 + i * mib,
                                      .size = mib,
                                      .stack = lines[2]});
    }
    for (uint64_t i = 0; i < 3; i++) {
        writer_add(&writer, 0,
                   (struct gm_record){.type = GM_EVENT_VMM_CREATE,
                                      .kind = GM_KIND_VMM,
                                      .address = 100 + i,
                                      .size = 20 * mib,
                                      .stack = torch});
        writer_add(&writer, 0,
                   (struct gm_record){.type = GM_EVENT_VMM_MAP,
                                      .address = 0x7d0000000000 + i * 20 * mib,
                                      .aux = 100 + i,
                                      .size = 20 * mib});
        writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_DETAIL});
    }
    pool_event(GM_EVENT_BLOCK_ALLOC, 0x7d0000000000 + 19 * mib, 2 * mib, lines[1]);
    for (uint64_t i = 0; i < 3; i++)
        pool_event(GM_EVENT_BLOCK_OOM, 0, 600 * mib, lines[2]);
    pool_event(GM_EVENT_BLOCK_OOM, 0, 60000 * mib, torch);
    DEVICE_ALLOC(0x7c0000000000, 1 << 30, .device = 1, .stack = lines[2]);
    save_trace("pool");
}

#define EVENT(name, ...)                                                                           \
    writer_add(&writer, 0, (struct gm_record){.type = GM_EVENT_##name, __VA_ARGS__})

/* A graph of memory nodes, a child in it, a clone of it; launches of an executable that frees what
 * the launch before it left. */
static void save_graphs(void)
{
    begin_program();
    for (uint64_t i = 0; i < 4; i++)
        EVENT(GRAPH_ALLOC_NODE, .address = 0x7f2000000000 + (i << 20), .size = 1 << 20, .aux = 7,
              .stack = 2);
    EVENT(GRAPH_FREE_NODE, .address = 0x7f2000000000, .aux = 7);
    EVENT(GRAPH_ALLOC_NODE, .address = 0x7f3000000000, .size = 4096, .aux = 8);
    EVENT(GRAPH_CHILD, .address = 7, .aux = 8);
    EVENT(GRAPH_CLONE, .address = 9, .aux = 7);
    EVENT(GRAPH_INSTANTIATE, .address = 17, .aux = 7, .extra = 1);
    EVENT(GRAPH_INSTANTIATE, .address = 19, .aux = 9);
    for (int i = 0; i < 3; i++)
        EVENT(GRAPH_LAUNCH, .address = 17, .stack = 1);
    EVENT(GRAPH_EXEC_DESTROY, .address = 17);
    EVENT(GRAPH_LAUNCH, .address = 19);
    EVENT(GRAPH_TRIM, .device = 0);
    EVENT(GRAPH_DESTROY, .address = 9);
    DEVICE_ALLOC(0x7f4000000000, 1 << 20, .flags = GM_FLAG_CAPTURED, .aux = 30);
    EVENT(GRAPH_INSTANTIATE, .address = 31, .aux = 30);
    EVENT(GRAPH_LAUNCH, .address = 31);
    save_trace("graphs");
}

/* Two pieces of memory bound to a multicast object, one of them twice; an unbind that fails. */
static void save_multicast(void)
{
    begin_program();
    EVENT(MULTICAST_CREATE, .address = 1, .size = 8 << 20);
    for (uint64_t i = 0; i < 3; i++) {
        EVENT(VMM_CREATE, .kind = GM_KIND_VMM, .address = 2 + i, .size = 2 << 20, .stack = 2,
              .device = (int8_t)i);
        EVENT(MULTICAST_BIND, .address = 1, .aux = 2 + i, .size = 2 << 20);
        EVENT(DETAIL, .address = i << 21);
    }
    EVENT(VMM_MAP, .address = 0x7d0000000000, .size = 2 << 20, .aux = 2);
    EVENT(DETAIL);
    EVENT(MULTICAST_BIND, .address = 1, .aux = 0x7d0000000000, .size = 1 << 20);
    EVENT(DETAIL, .address = 6 << 20);
    EVENT(MULTICAST_UNBIND, .address = 1, .aux = 1 << 21, .size = 2 << 20, .device = 1);
    EVENT(MULTICAST_UNBIND, .address = 1, .size = 2 << 20);
    EVENT(UNDO, .address = 1, .kind = GM_EVENT_MULTICAST_UNBIND);
    EVENT(VMM_RELEASE, .address = 3);
    EVENT(VMM_UNMAP, .address = 0x7d0000000000, .size = 1 << 20);
    EVENT(VMM_RELEASE, .address = 1);
    save_trace("multicast");
}

/* Stacks of 200 frames, native ones and Python's, cut at both ends. */
static void save_deep(void)
{
    begin_program();
    writer_script_frame(&writer, "/home/me/deep.py", "recurse", 12);
    uint32_t inner = writer_node(&writer, 0, 0, 0, GM_NODE_CUT);
    for (uint64_t i = 0; i < 200; i++)
        inner = i % 3 ? writer_node(&writer, inner, 1, 0x2000 + i % 7, GM_NODE_NATIVE)
                      : writer_node(&writer, inner, 0, 1, GM_NODE_SCRIPT);
    for (uint64_t i = 0; i < 50; i++)
        DEVICE_ALLOC(0x7f5000000000 + (i << 20), 4096, .stack = inner - (uint32_t)i * 4, .api = 1);
    save_trace("deep");
}

/* Many places in one module. The fuzz target provides that module as a file, from the bytes behind
 * the trace. */
static void save_symbols(void)
{
    writer_begin(&writer);
    uint16_t module = writer_module(&writer, "/fuzz.elf");
    for (uint64_t i = 0; i < 100; i++) {
        uint32_t outer = writer_node(&writer, 0, module, 0x1000 + i * 40, GM_NODE_NATIVE);
        DEVICE_ALLOC(0x7f6000000000 + (i << 20), 4096,
                     .stack = writer_node(&writer, outer, module, 0x1010 + i * 4, GM_NODE_LEAF));
    }
    save_trace("symbols");
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fputs("usage: make_corpus FOLDER\n", stderr);
        return 2;
    }
    folder = arguments[1];
    save_bad_files();
    save_incomplete_files();
    save_whole_files();
    save_flight_files();
    save_phases();
    save_pool();
    save_graphs();
    save_multicast();
    save_deep();
    save_symbols();
    return 0;
}
