/* Writes a small trace that demands much of a reader: bombs KIND FILE [BYTES | PATH]. BYTES of padding
 * make it larger, and with it what it may demand. bombs.py has the expected result of each. */
#include "../support/trace_writer.h"
#include <stdio.h>

#define BLOCK GM_BLOCK_RECORDS_MAX

static struct writer writer;
static struct gm_record records[BLOCK];
static uint32_t filled;
static uint64_t written;

static void flush(uint32_t lane)
{
    if (filled)
        writer_packed(&writer, GM_EXTENT_BLOCK, lane, written, filled, records, NULL);
    written += filled;
    filled = 0;
}

static void put_record(struct gm_record record)
{
    record.time = 1000 + written + filled;
    records[filled++] = record;
    if (filled == BLOCK)
        flush(0);
}

#define PUT(name, ...) put_record((struct gm_record){.type = GM_EVENT_##name, __VA_ARGS__})

static void put_allocation(uint64_t number, uint16_t context, uint32_t stack)
{
    PUT(ALLOC, .kind = GM_KIND_DEVICE, .address = 0x7f0000000000 + number * 4096, .size = 4096,
        .context = context, .stack = stack);
}

/* Nothing is ever freed. */
static void alloc(uint64_t number)
{
    for (uint64_t i = 0; i < number; i++)
        put_allocation(i, 0, 0);
}

/* A graph that holds itself, and launches of it. */
static void graph(uint64_t number)
{
    PUT(GRAPH_ALLOC_NODE, .address = 0x1000, .size = 1, .aux = 7);
    for (int i = 0; i < 20; i++)
        PUT(GRAPH_CHILD, .address = 7, .aux = 7);
    PUT(GRAPH_INSTANTIATE, .address = 9, .aux = 7);
    for (uint64_t i = 0; i < number; i++)
        PUT(GRAPH_LAUNCH, .address = 9);
}

/* Each graph holds the one before twice. */
static void doubling(uint64_t number)
{
    PUT(GRAPH_ALLOC_NODE, .address = 0x1000, .size = 1, .aux = 100);
    PUT(GRAPH_FREE_NODE, .address = 0x1000, .aux = 100);
    for (uint64_t i = 101; i < 120; i++) {
        PUT(GRAPH_CHILD, .address = i, .aux = i - 1);
        PUT(GRAPH_CHILD, .address = i, .aux = i - 1);
    }
    PUT(GRAPH_INSTANTIATE, .address = 9, .aux = 119);
    for (uint64_t i = 0; i < number; i++)
        PUT(GRAPH_LAUNCH, .address = 9);
}

/* Each of many lanes has one block whose columns are as large as they may be. */
static void lanes(uint64_t number)
{
    writer.distance = GM_DISTANCE_MAX;
    for (uint32_t lane = 0; lane < number; lane++) {
        for (filled = 0; filled < BLOCK; filled++) {
            uint64_t swing = filled % 2 ? UINT64_MAX / 3 : 0;
            records[filled] = (struct gm_record){.time = 1000 + filled,
                                                 .type = GM_EVENT_HINT,
                                                 .address = swing,
                                                 .size = UINT64_MAX,
                                                 .aux = ~swing,
                                                 .extra = UINT32_MAX,
                                                 .context = UINT16_MAX,
                                                 .stack = (uint32_t)swing,
                                                 .api = UINT16_MAX};
        }
        written = 0;
        flush(lane);
    }
}

/* Stacks along one chain of nodes; the n-th has n frames. */
static void deep(uint64_t number)
{
    for (uint32_t at = 0; at <= number; at += GM_NODES_PER_EXTENT) {
        struct gm_node *nodes = writer_extent(&writer, GM_EXTENT_NODES, at / GM_NODES_PER_EXTENT,
                                              GM_NODES_PER_EXTENT * sizeof(*nodes));
        for (uint32_t i = 0; i < GM_NODES_PER_EXTENT; i++)
            nodes[i] = (struct gm_node){
                .address = 0x1000, .parent = at + i ? at + i - 1 : 0, .kind = GM_NODE_NATIVE};
    }
    writer.header.node_count = (uint32_t)number + 1;
    for (uint64_t i = 0; i < number; i++)
        put_allocation(i, 0, (uint32_t)i + 1);
}

/* Many binds of one piece of memory, and unbinds that match none of them exactly. */
static void multicast(uint64_t number)
{
    PUT(MULTICAST_CREATE, .address = 1);
    PUT(VMM_CREATE, .address = 2, .size = 4096, .kind = GM_KIND_VMM);
    for (uint64_t i = 0; i < number; i++)
        PUT(MULTICAST_BIND, .address = 1, .aux = 2, .size = 4096);
    for (uint64_t i = 0; i < number; i++)
        PUT(MULTICAST_UNBIND, .address = 1, .aux = 1, .size = 4096);
}

/* A context with many lives, destroyed again and again, always in vain. */
static void undo(uint64_t number)
{
    PUT(CONTEXT, .address = 77, .context = 1);
    for (uint64_t i = 0; i < number; i++)
        put_allocation(i, 1, 0);
    for (int i = 0; i < 8000; i++) {
        PUT(CONTEXT_END, .address = 77);
        PUT(UNDO, .address = 77, .kind = GM_EVENT_CONTEXT_END);
    }
}

/* Addresses that a hash without a secret puts into one slot: of the map of report/base/map.c as it
 * would be without one. */
static uint64_t collide(uint64_t number)
{
    uint64_t key = number << 24, inverse = 1;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - 0x9e3779b97f4a7c15 * inverse;
    key ^= key >> 29 ^ key >> 58;
    key *= inverse;
    return key ^ key >> 32;
}

static void collisions(uint64_t number)
{
    for (uint64_t i = 1; i <= number; i++)
        PUT(ALLOC, .kind = GM_KIND_DEVICE, .address = collide(i), .size = 1);
}

/* As report/base/ranges.c would draw them without a secret. */
static uint32_t next_priority(uint32_t value)
{
    value ^= value << 13;
    value ^= value >> 17;
    return value ^ value << 5;
}

struct drawn {
    uint32_t priority, number;
};

static int by_priority(const void *left, const void *right)
{
    const struct drawn *a = left, *b = right;
    return a->priority < b->priority ? -1 : a->priority > b->priority;
}

/* Ranges whose addresses are in the order of the priorities they will draw: a tree without
 * branches. */
static void branchless(uint64_t number)
{
    struct drawn *drawn = malloc(number * sizeof(*drawn));
    uint64_t *addresses = malloc(number * sizeof(*addresses));
    if (!drawn || !addresses)
        abort();
    for (uint32_t i = 0, value = 0x2545f491; i < number; i++)
        drawn[i] = (struct drawn){value = next_priority(value), i};
    qsort(drawn, number, sizeof(*drawn), by_priority);
    for (uint64_t i = 0; i < number; i++)
        addresses[drawn[i].number] = (i + 1) << 12;
    for (uint64_t i = 0; i < number; i++)
        PUT(VMM_RESERVE, .address = addresses[i], .size = 4096);
    free(drawn);
    free(addresses);
}

/* As `deep`, in a library that every walk passes over. */
static void roads(uint64_t number)
{
    uint16_t module = writer_module(&writer, "/usr/lib/libcuda.so.1");
    for (uint32_t at = 0; at <= number; at += GM_NODES_PER_EXTENT) {
        struct gm_node *nodes = writer_extent(&writer, GM_EXTENT_NODES, at / GM_NODES_PER_EXTENT,
                                              GM_NODES_PER_EXTENT * sizeof(*nodes));
        for (uint32_t i = 0; i < GM_NODES_PER_EXTENT; i++)
            nodes[i] = (struct gm_node){.address = 0x1000,
                                        .parent = at + i ? at + i - 1 : 0,
                                        .module = module,
                                        .kind = GM_NODE_NATIVE};
    }
    writer.header.node_count = (uint32_t)number + 1;
    for (uint64_t i = 0; i < number; i++)
        put_allocation(i, 0, (uint32_t)i + 1);
}

/* Ranges that are all open at once, each with a name of its own, on devices without number. */
static void ranges(uint64_t number)
{
    for (int device = 0; device < 127; device++)
        PUT(ALLOC, .kind = GM_KIND_DEVICE, .address = 0x1000 + (uint64_t)device, .size = 1,
            .device = (int8_t)device);
    for (uint64_t i = 0; i < number; i++)
        PUT(RANGE_START, .address = i, .aux = 1 + i % 16000, .extra = 0);
    for (uint64_t i = 0; i < number; i++) {
        PUT(RANGE_PUSH, .aux = 1 + i % 16000);
        PUT(RANGE_POP);
    }
}

/* Marks with names of their own, and much to look at for each. */
static void phases(uint64_t number)
{
    for (int device = 0; device < 127; device++)
        PUT(ALLOC, .kind = GM_KIND_DEVICE, .address = 0x1000 + (uint64_t)device, .size = 1,
            .device = (int8_t)device);
    for (uint64_t i = 0; i < number; i++)
        PUT(MARK, .aux = 1 + i % 16000);
}

/* Refusals of a pool with many blocks, each of which is a moment to remember. */
static void pools(uint64_t number)
{
    put_allocation(0, 0, 0);
    for (uint64_t i = 0; i < number; i++)
        PUT(BLOCK_ALLOC, .address = 0x7f0000000000 + i * 512, .size = 256);
    for (uint64_t i = 0; i < number; i++)
        PUT(BLOCK_OOM, .size = 1 << 30, .stack = (uint32_t)i, .device = (int8_t)(i % 127));
    for (uint64_t i = 0; i < number; i++)
        PUT(POOL_CREATE, .address = i);
}

/* Times that swing on all lanes, so that the lanes take turns, and what they do is never paired. */
static void times(uint64_t number)
{
    for (uint32_t lane = 0; lane < 64; lane++) {
        for (uint64_t block = 0; block < number / 64 / BLOCK; block++) {
            for (filled = 0; filled < BLOCK; filled++)
                records[filled] =
                    (struct gm_record){.time = filled % 2 ? 1000 : UINT64_MAX / 2,
                                       .type = filled % 3 ? GM_EVENT_FREE : GM_EVENT_ALLOC,
                                       .kind = GM_KIND_DEVICE,
                                       .address = 0x1000 + filled % 5 * 4096,
                                       .size = 4096};
            written = block * BLOCK;
            flush(lane);
        }
    }
    written = 0;
}

/* No bomb: a loop as a recorder sees it. */
static void loop(uint64_t number)
{
    for (uint64_t i = 0; i < number; i++) {
        put_allocation(i % 2, 0, 0);
        PUT(FREE, .address = 0x7f0000000000 + i % 2 * 4096);
    }
}

/* No bomb either: a graph of many nodes that is launched again and again. */
static void launches(uint64_t number)
{
    for (uint64_t i = 0; i < 2000; i++)
        put_record((struct gm_record){.type = i < 1000 ? GM_EVENT_GRAPH_ALLOC_NODE
                                                       : GM_EVENT_GRAPH_FREE_NODE,
                                      .address = 0x7f0000000000 + i % 1000 * 4096,
                                      .size = 4096,
                                      .stack = (uint32_t)(i % 100),
                                      .aux = 7});
    PUT(GRAPH_INSTANTIATE, .address = 9, .aux = 7);
    for (uint64_t i = 0; i < number; i++) {
        PUT(RANGE_PUSH, .aux = 1);
        PUT(GRAPH_LAUNCH, .address = 9);
        PUT(RANGE_POP);
    }
}

/* Blocks that unpack to as much as they may, for one record. */
static void claims(uint64_t number)
{
    static unsigned char raw[GM_BLOCK_RAW_MAX], stored[GM_BLOCK_RAW_MAX];
    raw[0] = 1u << GM_COLUMN_TYPE | 1u << GM_COLUMN_TIME;
    size_t size = ZSTD_compress(stored, sizeof(stored), raw, sizeof(raw), 1);
    for (uint64_t i = 0; i < number; i++) {
        struct gm_block block = {.count = 1,
                                 .first_sequence = i,
                                 .first_time = 1000,
                                 .last_time = 1000,
                                 .codec = GM_CODEC_ZSTD,
                                 .distance = 1,
                                 .near = 1,
                                 .raw_size = sizeof(raw),
                                 .stored_size = (uint32_t)size};
        block.column_size[GM_COLUMN_TYPE] = 1;
        block.column_size[GM_COLUMN_TIME] = (uint32_t)(sizeof(raw) - gm_block_sets_size(1) - 1);
        unsigned char *payload = writer_extent(&writer, GM_EXTENT_BLOCK, 0, sizeof(block) + size);
        memcpy(payload, &block, sizeof(block));
        memcpy(payload + sizeof(block), stored, size);
    }
}

/* Lanes without number, each with one record. */
static void crowd(uint64_t number)
{
    for (uint32_t lane = 0; lane < number; lane++) {
        records[0] = (struct gm_record){.time = 1000, .type = GM_EVENT_HINT};
        filled = 1;
        written = 0;
        flush(lane);
    }
}

/* An environment of settings that nobody understands. */
static void environment(uint64_t number)
{
    char *text = writer_extent(&writer, GM_EXTENT_ENVIRONMENT, 0, number);
    for (uint64_t at = 0; at + 16 <= number; at += 16)
        memcpy(text + at, "GPUMEM_DEPTH=xx", 16);
    put_allocation(0, 0, 0);
}

static void save_trace(const char *path)
{
    writer_table(&writer, GM_EXTENT_MODULES, writer.modules,
                 writer.header.module_count * sizeof(struct gm_module));
    writer_table(&writer, GM_EXTENT_STRINGS, writer.strings, writer.header.string_bytes);
    writer.header.file_end = writer.size;
    writer.header.end_time = UINT64_C(1) << 40;
    memcpy(writer.bytes, &writer.header, sizeof(writer.header));
    writer_mend(&writer);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(writer.bytes, 1, writer.size, file) != writer.size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*make)(uint64_t);
        uint64_t number;
    } kinds[] = {{"alloc", alloc, 4000000},
                 {"graph", graph, 1600000},
                 {"doubling", doubling, 16000},
                 {"lanes", lanes, 200},
                 {"deep", deep, 60000},
                 {"roads", roads, 60000},
                 {"multicast", multicast, 400000},
                 {"undo", undo, 100000},
                 {"collisions", collisions, 150000},
                 {"branchless", branchless, 200000},
                 {"ranges", ranges, 300000},
                 {"phases", phases, 400000},
                 {"pools", pools, 1000000},
                 {"times", times, 6000000},
                 {"loop", loop, 1000000},
                 {"launches", launches, 100000},
                 {"claims", claims, 4000},
                 {"crowd", crowd, 10000},
                 {"environment", environment, 2000000},
                 {"path", NULL, 0}};
    size_t kind = 0;
    while (count > 2 && kind < sizeof(kinds) / sizeof(kinds[0]) &&
           strcmp(kinds[kind].name, arguments[1]) != 0)
        kind++;
    if (count < 3 || kind == sizeof(kinds) / sizeof(kinds[0])) {
        fputs("usage: bombs KIND FILE [BYTES | PATH]\n", stderr);
        return 2;
    }
    writer_begin(&writer);
    uint32_t node = 0;
    uint64_t padding = kinds[kind].make && count > 3 ? strtoull(arguments[3], NULL, 10) : 0;
    if (!kinds[kind].make && count > 3) /* names something that is not a regular file */
        node =
            writer_node(&writer, 0, writer_module(&writer, arguments[3]), 0x1100, GM_NODE_NATIVE);
    writer_room(&writer, GM_TRACE_PAGE);
    if (node)
        writer_table(&writer, GM_EXTENT_NODES, writer.nodes, 2 * sizeof(struct gm_node));
    if (kinds[kind].make)
        kinds[kind].make(kinds[kind].number);
    else
        put_allocation(1, 0, node);
    flush(0);
    if (padding)
        writer_extent(&writer, GM_EXTENT_PAD, 0, padding);
    save_trace(arguments[2]);
    return 0;
}
