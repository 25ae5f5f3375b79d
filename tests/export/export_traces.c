/* Writes the traces that the tests of exports, of the HTML page and of `gpumem top` read.
 *
 *     export_traces hostile FILE           names as an attacker would choose them
 *     export_traces training FILE EVENTS   a training loop on two devices: segments, blocks, steps
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
static uint32_t chance(uint32_t below)
{
    static uint64_t state = 42;
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

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "hostile") == 0)
        hostile();
    else if (count == 3 && strcmp(arguments[1], "mapped") == 0)
        mapped();
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
