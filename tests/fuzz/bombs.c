/* Writes a small trace that demands much of a reader: bombs KIND FILE [NUMBER | PATH]. bombs.py has
 * the expected result of each. */
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
    } kinds[] = {{"alloc", alloc, 1600000},     {"graph", graph, 16000},
                 {"doubling", doubling, 16000}, {"lanes", lanes, 1000},
                 {"deep", deep, 30000},         {"multicast", multicast, 100000},
                 {"undo", undo, 100000},        {"path", NULL, 0}};
    size_t kind = 0;
    while (count > 2 && kind < sizeof(kinds) / sizeof(kinds[0]) &&
           strcmp(kinds[kind].name, arguments[1]) != 0)
        kind++;
    if (count < 3 || kind == sizeof(kinds) / sizeof(kinds[0])) {
        fputs("usage: bombs KIND FILE [PATH]\n", stderr);
        return 2;
    }
    writer_begin(&writer);
    uint32_t node = 0;
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
    save_trace(arguments[2]);
    return 0;
}
