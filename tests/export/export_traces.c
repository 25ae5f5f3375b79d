/* Writes the traces that the tests of exports, of the HTML page and of `gpumem top` read.
 *
 *     export_traces hostile FILE           names as an attacker would choose them
 *     export_traces training FILE EVENTS   a training loop on two devices: segments, blocks, steps
 *     export_traces figures FILE SEED      something of everything that outputs have figures of, by chance
 *     export_traces mapped FILE            memory of the VMM: expandable segments on device 0, and on
 *                                          device 1 all that a program can do with mappings
 */
#include "trace_writer.h"
#include <stdbool.h>
#include <stdio.h>

#define KIB 1024u
#define MIB 1048576u
#define GIB (1024ull * MIB)
#define BASE 0x7f0000000000ull

static struct writer writer;
static uint16_t cuda_malloc, cuda_malloc_host;

static void event(uint8_t type, struct gm_record record)
{
    record.type = type;
    writer_add(&writer, 0, record);
}

static void begin(void)
{
    writer_begin(&writer);
    cuda_malloc = writer_api(&writer, "cudaMalloc");
    cuda_malloc_host = writer_api(&writer, "cudaMallocHost");
    memcpy(writer.header.host, "host", 5);
}

static void allocate(int device, uint64_t address, uint64_t size, uint32_t stack)
{
    event(GM_EVENT_ALLOC, (struct gm_record){.kind = GM_KIND_DEVICE,
                                             .device = (int8_t)device,
                                             .address = address,
                                             .size = size,
                                             .api = cuda_malloc,
                                             .stack = stack});
}

static uint32_t frame(uint32_t parent, const char *file, const char *function, uint32_t line)
{
    return writer_node(&writer, parent, 0, writer_script_frame(&writer, file, function, line),
                       GM_NODE_SCRIPT);
}

/* PyTorch's allocator, called by `parent`. */
static uint32_t pool_frame(uint32_t parent)
{
    return writer_node(&writer, parent, writer_module(&writer, "/v/libc10_cuda.so"), 0x100,
                       GM_NODE_NATIVE);
}

static void mark(const char *name)
{
    event(GM_EVENT_MARK, (struct gm_record){.aux = writer_string(&writer, name)});
}

static uint64_t allocated[2], reserved[2], events;

static void block(int device, uint8_t type, uint64_t address, uint64_t size, uint32_t stack)
{
    allocated[device] += type == GM_EVENT_BLOCK_ALLOC  ? size
                         : type == GM_EVENT_BLOCK_FREE ? 0 - size
                                                       : 0;
    event(type, (struct gm_record){.address = address,
                                   .size = size,
                                   .stack = stack,
                                   .aux = allocated[device],
                                   .device = (int8_t)device});
    event(GM_EVENT_DETAIL,
          (struct gm_record){.address = reserved[device], .device = (int8_t)device});
    events++;
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void hostile(void)
{
    static char very_long[3000];
    static const char *const names[] = {
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "=cmd|'/c calc'!A1",
        "a;b;c 12",
        "quote\" and 'quote' and back\\slash, comma",
        "line\r\nbreak\ttab\033[2Jescape",
        "\xff\xfe\xc0\x80not utf-8",
        "\xe2\x80\xaeright to left\xe2\x80\xa8line separator",
        "&lt;b&gt; &amp; ${7*7} {{7*7}} <!-- --> ]]>",
        "'; DROP TABLE allocations; --",
        "# EOF",
        "",
        "::error file=x,line=1::a workflow command",
        "a ::stop-commands::word",
        "##[error]an older one, `id` $(id) %0A::warning::",
        "\xe2\x81\xa6isolated\xe2\x81\xa9 \xd8\x9cmark \xc2\x9b",
        "{\"a\": [1, null]}, \"b\": \"c\\u2028\\",
        "+1-2@3\tDDE(\"cmd\";\"/c\")",
        "| --- | [link](javascript:alert(1)) **bold**",
        very_long,
    };
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    for (unsigned i = 0; i + 1 < sizeof(very_long); i++)
        very_long[i] = "x<\"';,=\\"[i % 8];
    begin();
    memcpy(writer.header.host, "<b>host\"\\\n", 11);
    static const char command[] = "</script>\0--x=\"'&\0\xff";
    memcpy(writer.header.command_line, command, sizeof(command));
    writer.header.command_line_size = sizeof(command);
    uint64_t blocks = BASE + GIB;
    allocate(0, blocks, 64 * MIB, 0); /* a segment without a stack, known by its blocks alone */
    reserved[0] = 64 * MIB;
    for (unsigned i = 0; i < NAMES; i++) {
        uint32_t outer = frame(0, names[(i + 1) % NAMES], names[i], i);
        uint32_t stack = frame(outer, names[i], names[(i + 5) % NAMES], 7);
        allocate(0, BASE + i * MIB, (i + 1) * 1000, stack);
        block(0, GM_EVENT_BLOCK_ALLOC, blocks + i * MIB, (i + 1) * 512, stack);
        mark(names[i]);
        if (i % 3 == 0)
            event(GM_EVENT_FREE, (struct gm_record){.address = BASE + i * MIB});
    }
}

/* ---- training -------------------------------------------------------------------------------- */

enum { LAYERS = 24, LIVE = 512 };

/* A linear congruential generator: the same trace each time. */
static uint64_t state = 42;

static uint32_t chance(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void training(uint64_t wanted)
{
    begin();
    uint32_t layers[LAYERS];
    uint32_t top = frame(0, "/home/me/train.py", "main", 12);
    uint32_t pool = pool_frame(top);
    for (unsigned i = 0; i < LAYERS; i++)
        layers[i] =
            frame(frame(top, "/home/me/train.py", i % 2 ? "backward" : "forward", 40 + i % 2),
                  "/home/me/model.py", "layer", 100 + i);
    for (int device = 0; device < 2; device++) {
        event(GM_EVENT_DEVICE, (struct gm_record){.device = (int8_t)device, .size = 16 * GIB});
        for (unsigned i = 0; i < 64; i++) {
            reserved[device] += 64 * MIB;
            allocate(device, BASE + (uint64_t)device * 64 * GIB + i * 80ull * MIB, 64 * MIB, pool);
        }
    }
    event(GM_EVENT_ALLOC, (struct gm_record){.kind = GM_KIND_PINNED,
                                             .address = 0x1000000,
                                             .size = 256 * MIB,
                                             .api = cuda_malloc_host,
                                             .stack = top});
    struct {
        uint64_t address, size;
    } live[2][LIVE] = {0};
    for (uint64_t round = 0; events < wanted; round++) {
        int device = (int)(round % 2);
        unsigned slot = chance(LIVE);
        if (live[device][slot].address)
            block(device, GM_EVENT_BLOCK_FREE, live[device][slot].address, live[device][slot].size,
                  0);
        uint64_t size = 512ull << chance(12);
        uint64_t address =
            BASE + (uint64_t)device * 64 * GIB + (slot / 8) * 80ull * MIB + (slot % 8) * 8ull * MIB;
        live[device][slot].address = address;
        live[device][slot].size = size;
        block(device, GM_EVENT_BLOCK_ALLOC, address, size, layers[chance(LAYERS)]);
        if (round % 4096 == 0)
            event(GM_EVENT_MARK, (struct gm_record){.aux = 0});
        writer.clock += chance(2000);
    }
    block(0, GM_EVENT_BLOCK_OOM, 0, 20 * GIB, layers[1]);
    event(GM_EVENT_ALLOC_FAILED, (struct gm_record){.kind = GM_KIND_DEVICE,
                                                    .size = 20 * GIB,
                                                    .extra = 2,
                                                    .api = cuda_malloc,
                                                    .stack = pool});
}

/* ---- mapped ---------------------------------------------------------------------------------- */

enum { PIECES = 40, MEMORIES = 24 };

#define PIECE (2ull * MIB)

static uint16_t mem_create, mem_map;

static void vmm(uint8_t type, int device, struct gm_record record)
{
    record.device = (int8_t)device;
    record.kind = type == GM_EVENT_VMM_CREATE ? GM_KIND_VMM : record.kind;
    record.api = type == GM_EVENT_VMM_CREATE ? mem_create : mem_map;
    event(type, record);
}

/* Of a call that failed after all. */
static void undo(uint8_t type, uint64_t address)
{
    event(GM_EVENT_UNDO, (struct gm_record){.kind = type, .address = address});
}

static void map_piece(unsigned piece, uint32_t pool)
{
    uint64_t handle = 0x5000 + piece, address = BASE + piece * PIECE;
    vmm(GM_EVENT_VMM_CREATE, 0,
        (struct gm_record){.address = handle, .size = PIECE, .stack = pool});
    vmm(GM_EVENT_VMM_MAP, 0, (struct gm_record){.address = address, .size = PIECE, .aux = handle});
    reserved[0] += PIECE;
}

static void unmap_piece(unsigned piece)
{
    uint64_t address = BASE + piece * PIECE;
    vmm(GM_EVENT_VMM_UNMAP, 0, (struct gm_record){.address = address, .size = PIECE});
    if (piece % 5 == 1) { /* the driver refused at first */
        undo(GM_EVENT_VMM_UNMAP, address);
        vmm(GM_EVENT_VMM_UNMAP, 0, (struct gm_record){.address = address, .size = PIECE});
    }
    vmm(GM_EVENT_VMM_RELEASE, 0, (struct gm_record){.address = 0x5000 + piece});
    reserved[0] -= PIECE;
}

/* PyTorch maps pieces as it needs them, lets blocks lie across them, and gives back what is empty. */
static void expandable(uint32_t pool, uint32_t user)
{
    vmm(GM_EVENT_VMM_RESERVE, 0, (struct gm_record){.address = BASE, .size = GIB});
    for (unsigned piece = 0; piece < PIECES; piece++)
        map_piece(piece, piece < 3 ? 0 : pool); /* the first are known by their block alone */
    block(0, GM_EVENT_BLOCK_ALLOC, BASE, 5 * MIB, user);
    block(0, GM_EVENT_BLOCK_ALLOC, BASE + 5 * MIB, 512 * KIB, user);
    block(0, GM_EVENT_BLOCK_ALLOC, BASE + 7 * MIB, 33 * MIB, user);
    block(0, GM_EVENT_BLOCK_ALLOC, BASE + 60 * MIB, 20 * MIB, user);
    block(0, GM_EVENT_BLOCK_FREE, BASE + 7 * MIB, 33 * MIB, 0);
    for (unsigned piece = 4; piece < 30; piece++)
        unmap_piece(piece);
    for (unsigned piece = 20; piece < 25; piece++)
        map_piece(piece, pool);
    block(0, GM_EVENT_BLOCK_ALLOC, BASE + 20 * PIECE, 5 * PIECE, user);
}

/* Memories are mapped, in part, twice and again, and released before they are unmapped. Two of them take
 * turns at one address. */
static void all_mappings(uint32_t user)
{
    bool is_there[MEMORIES] = {false}, is_mapped[MEMORIES][3] = {{false}};
    for (unsigned turn = 0; turn < 2000; turn++) {
        unsigned number = chance(MEMORIES), way = chance(3);
        uint64_t handle = (1 + number) * GIB, size = (number + 1) * PIECE;
        uint64_t address = BASE + (1 + (way == 1 ? number / 2 * 2 : number) * 3 + way) * GIB;
        uint64_t part = way == 2 ? PIECE : size;
        if (chance(6) == 0 && is_there[number]) {
            vmm(GM_EVENT_VMM_RELEASE, 1, (struct gm_record){.address = handle});
            is_there[number] = chance(2);
            if (is_there[number])
                undo(GM_EVENT_VMM_RELEASE, handle);
        } else if (is_mapped[number][way]) {
            vmm(GM_EVENT_VMM_UNMAP, 1, (struct gm_record){.address = address, .size = part});
            is_mapped[number][way] = chance(4) == 0;
            if (is_mapped[number][way])
                undo(GM_EVENT_VMM_UNMAP, address);
        } else if (is_there[number] && !(way == 1 && is_mapped[number ^ 1][1])) {
            vmm(GM_EVENT_VMM_MAP, 1,
                (struct gm_record){.address = address, .size = part, .aux = handle});
            is_mapped[number][way] = true;
        } else if (!is_there[number] && !is_mapped[number][0] && !is_mapped[number][1] &&
                   !is_mapped[number][2]) {
            vmm(GM_EVENT_VMM_CREATE, 1,
                (struct gm_record){.address = handle, .size = size, .stack = user});
            is_there[number] = true;
        }
        writer.clock += 1000;
    }
}

static void mapped(void)
{
    begin();
    mem_create = writer_api(&writer, "cuMemCreate");
    mem_map = writer_api(&writer, "cuMemMap");
    uint32_t user = frame(0, "/home/me/train.py", "main", 12);
    for (int device = 0; device < 2; device++)
        event(GM_EVENT_DEVICE, (struct gm_record){.device = (int8_t)device, .size = 16 * GIB});
    expandable(pool_frame(user), user);
    all_mappings(user);
}

/* ---- figures --------------------------------------------------------------------------------- */

enum { HELD = 48, PLACES = 9, DEVICES = 3 };

static struct {
    uint64_t address, size;
    uint8_t kind;
    int device;
    bool is_block;
} held[HELD];

static uint32_t places[PLACES];
static uint16_t kind_apis[GM_KIND_REGISTERED + 1];

/* Ends what a slot holds, if it does. */
static void give_back(unsigned slot)
{
    if (!held[slot].address)
        return;
    if (held[slot].is_block)
        block(held[slot].device, GM_EVENT_BLOCK_FREE, held[slot].address, held[slot].size, 0);
    else if (held[slot].kind == GM_KIND_VMM)
        event(GM_EVENT_VMM_RELEASE, (struct gm_record){.address = held[slot].address});
    else
        event(GM_EVENT_FREE, (struct gm_record){.address = held[slot].address});
    held[slot].address = 0;
}

static void take(unsigned slot, unsigned devices, uint64_t address)
{
    static const uint8_t kinds[] = {GM_KIND_DEVICE,   GM_KIND_DEVICE, GM_KIND_MANAGED,
                                    GM_KIND_ARRAY,    GM_KIND_PINNED, GM_KIND_REGISTERED,
                                    GM_KIND_EXTERNAL, GM_KIND_VMM};
    uint8_t kind = kinds[chance(sizeof(kinds))];
    struct gm_record record = {.kind = kind,
                               .device = (int8_t)chance(devices),
                               .address = address,
                               .size = (1 + chance(4000)) * KIB,
                               .api = kind_apis[kind == GM_KIND_VMM ? 0 : kind],
                               .stack = places[chance(PLACES)]};
    give_back(slot);
    held[slot].address = address;
    held[slot].size = record.size;
    held[slot].kind = kind;
    held[slot].is_block = false;
    event(kind == GM_KIND_VMM ? GM_EVENT_VMM_CREATE : GM_EVENT_ALLOC, record);
}

/* A block of a pool that lies in the one segment of its device. */
static void take_block(unsigned slot, unsigned devices)
{
    give_back(slot);
    held[slot].device = (int)chance(devices);
    held[slot].address = BASE + ((uint64_t)held[slot].device * 1000 + 1 + slot) * 4 * MIB;
    held[slot].size = (1 + chance(4096)) * 512;
    held[slot].is_block = true;
    block(held[slot].device, GM_EVENT_BLOCK_ALLOC, held[slot].address, held[slot].size,
          places[chance(PLACES)]);
}

static void name_places(void)
{
    static const char *const names[] = {"cuMemCreate", "cudaMalloc", "cudaMallocManaged"};
    uint32_t top = frame(0, "/home/me/run.py", "main", 3);
    for (unsigned i = 0; i < PLACES; i++)
        places[i] =
            frame(i % 2 ? top : places[i / 2], "/home/me/run.py", i % 3 ? "step" : "load", 10 + i);
    for (unsigned i = 0; i <= GM_KIND_REGISTERED; i++)
        kind_apis[i] = writer_api(&writer, names[i % 3]);
}

static void end_somehow(void)
{
    static const uint32_t statuses[] = {0,
                                        GM_STATUS_TOLD,
                                        GM_STATUS_TOLD | 3u << 8,
                                        GM_STATUS_TOLD | 9,
                                        GM_STATUS_TOLD | GM_STATUS_WAITED | 15,
                                        GM_STATUS_TOLD | 11};
    unsigned way = chance(sizeof(statuses) / sizeof(statuses[0]) + 1);
    writer.header.status = statuses[way % 6];
    if (way >= 3)
        writer.header.end = GM_END_NONE;
}

static void graph_once(void)
{
    for (uint64_t i = 0; i < 3; i++)
        event(GM_EVENT_GRAPH_ALLOC_NODE, (struct gm_record){.address = BASE + (9000 + i) * GIB,
                                                            .size = 64 * KIB,
                                                            .aux = 7,
                                                            .stack = places[i]});
    event(GM_EVENT_GRAPH_FREE_NODE, (struct gm_record){.address = BASE + 9000 * GIB, .aux = 7});
    event(GM_EVENT_GRAPH_INSTANTIATE, (struct gm_record){.address = 17, .aux = 7, .extra = 1});
    for (unsigned i = 0; i < 3; i++)
        event(GM_EVENT_GRAPH_LAUNCH, (struct gm_record){.address = 17, .stack = places[4]});
}

/* As NVML tells: of this process, where it says so, and of all; more or less than is on record. */
static void sample(uint8_t device)
{
    uint64_t own = chance(3) ? (1 + chance(40)) * 100 * MIB : 0;
    event(GM_EVENT_DEVICE_SAMPLE,
          (struct gm_record){.device = (int8_t)device,
                             .size = own,
                             .aux = own + chance(3) * chance(30) * 100 * MIB});
}

static void figures(uint64_t seed)
{
    begin();
    state = seed * 2654435761u + 99;
    unsigned devices = 1 + chance(DEVICES), steps = 20 + chance(200), has_blocks = chance(2);
    name_places();
    writer.header.clock_start.realtime_ns = 1700000000000000000u + seed;
    for (unsigned i = 0; i < devices; i++) {
        if (chance(3))
            event(GM_EVENT_DEVICE,
                  (struct gm_record){.device = (int8_t)i, .size = (1 + chance(8)) * GIB});
        if (has_blocks) {
            reserved[i] = 3000 * MIB;
            allocate((int)i, BASE + (uint64_t)i * 4000 * MIB, reserved[i], pool_frame(places[0]));
        }
    }
    if (chance(3) == 0)
        graph_once();
    for (unsigned i = 0; i < steps; i++) {
        unsigned what = chance(20), slot = chance(HELD);
        uint8_t device = (uint8_t)chance(devices);
        if (what < 8)
            take(slot, devices, BASE + (100 + i) * GIB);
        else if (what < 11 && has_blocks)
            take_block(slot, devices);
        else if (what < 15)
            give_back(slot);
        else if (what == 15)
            event(GM_EVENT_ALLOC_FAILED, (struct gm_record){.kind = GM_KIND_DEVICE,
                                                            .device = (int8_t)device,
                                                            .size = (1 + chance(9)) * GIB,
                                                            .extra = chance(3) ? 2 : 999,
                                                            .api = cuda_malloc,
                                                            .stack = places[chance(PLACES)]});
        else if (what < 18)
            event(GM_EVENT_COPY,
                  (struct gm_record){.kind = (uint8_t)(GM_COPY_HOST_TO_DEVICE + chance(3)),
                                     .address = BASE + (100 + i) * GIB,
                                     .aux = 0x4000,
                                     .size = chance(4000),
                                     .stack = places[chance(PLACES)]});
        else if (what == 18)
            sample(device);
        else
            mark(chance(2) ? "step" : "epoch");
        writer.clock += chance(5000);
    }
    for (unsigned slot = 0; slot < HELD && chance(4); slot++)
        give_back(slot);
    end_somehow();
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "hostile") == 0)
        hostile();
    else if (count == 3 && strcmp(arguments[1], "mapped") == 0)
        mapped();
    else if (count == 4 && strcmp(arguments[1], "figures") == 0)
        figures(strtoull(arguments[3], NULL, 10));
    else if (count == 4 && strcmp(arguments[1], "training") == 0)
        training(strtoull(arguments[3], NULL, 10));
    else
        return 2;
    for (unsigned lane = 0; lane < WRITER_LANES; lane++)
        writer.lanes[lane].packed = writer.lanes[lane].count;
    writer_finish(&writer);
    FILE *file = fopen(arguments[2], "wb");
    bool good = file && fwrite(writer.bytes, 1, writer.size, file) == writer.size;
    good = file && fclose(file) == 0 && good;
    writer_free(&writer);
    return good ? 0 : 1;
}
