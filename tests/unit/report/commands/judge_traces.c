/* Writes the traces of report_judge.py: each is a small story whose end is known.
 *
 *     judge_traces NAME FILE [MEMBER=VALUE...]
 *
 * Members of the header: pid, parent, began (the process's start, in ticks), generation, start (of
 * the record clock, ns), run, boot. */
#include "trace_writer.h"
#include <stdio.h>

#define KIB 1024u
#define MIB 1048576u
#define GIB (1024ull * MIB)
#define BASE 0x100000000ull

static struct writer writer;
static uint16_t cuda_malloc, cuda_malloc_async, cuda_ipc_open, cuda_memcpy;
static uint32_t mine, other, of_cublas;

#define EVENT(lane, what, ...)                                                                     \
    writer_add(&writer, (lane), (struct gm_record){.type = (what), __VA_ARGS__})
#define ALLOC(lane, where, bytes, ...)                                                             \
    EVENT(lane, GM_EVENT_ALLOC, .kind = GM_KIND_DEVICE, .address = (where), .size = (bytes),       \
          .api = cuda_malloc, __VA_ARGS__)
#define FREE(lane, where, ...) EVENT(lane, GM_EVENT_FREE, .address = (where), __VA_ARGS__)

/* ---- calls that were not seen ---------------------------------------------------------------- */

static void clean(void)
{
    ALLOC(0, BASE, MIB, .stack = mine);
    FREE(0, BASE);
}

static void nothing(void)
{
}

/* Until long after the rest. */
static void running(void)
{
    clean();
    writer.clock += 5000000000;
}

/* Its last record is an hour younger than the others. */
static void young(void)
{
    ALLOC(0, BASE, MIB, .stack = mine);
    writer.clock += UINT64_C(3600000000000);
    ALLOC(0, BASE + MIB, MIB, .stack = mine);
    writer.header.end = GM_END_NONE;
}

static void lost_free(void)
{
    ALLOC(0, BASE, MIB, .stack = mine);
    clean();
}

static void unknown_free(void)
{
    clean();
    FREE(0, BASE + MIB);
}

/* The driver refused it: the program freed memory that was not its own. */
static void refused_free(void)
{
    unknown_free();
    EVENT(0, GM_EVENT_UNDO, .kind = GM_EVENT_FREE, .address = BASE + MIB, .extra = 1);
}

static void malformed(void)
{
    clean();
    EVENT(0, GM_EVENT_ALLOC, .kind = 77, .address = BASE, .size = 1);
}

static void huge(void)
{
    clean();
    ALLOC(0, BASE + MIB, UINT64_MAX - 1, .stack = mine);
    ALLOC(0, BASE + 2 * MIB, 4096, .stack = mine);
    FREE(0, BASE + MIB);
    FREE(0, BASE + 2 * MIB);
}

static void newer_record(void)
{
    clean();
    EVENT(0, (enum gm_event)60, .address = BASE);
}

static void newer_counter(void)
{
    clean();
    writer.header.counters[GM_COUNTERS - 1] = 1;
}

static void unwritten(void)
{
    clean();
    writer.header.counters[GM_COUNT_WRITE_FAILED] = 5;
}

static void one_stack_cut(void)
{
    clean();
    writer.header.counters[GM_COUNT_STACK_TRUNCATED] = 1;
}

/* ---- cut ------------------------------------------------------------------------------------- */

static void cut(void)
{
    ALLOC(0, BASE, 10 * MIB, .stack = mine);
    ALLOC(0, 2 * BASE, 100 * MIB, .stack = of_cublas);
    EVENT(0, GM_EVENT_ALLOC, .kind = GM_KIND_PINNED, .address = 0x7000, .size = 5 * MIB,
          .stack = mine, .device = -1);
    writer.header.end = GM_END_NONE;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* One processor's clock is 50 ns ahead: a free at 150 came before an allocation at 120. */
static void skew(void)
{
    ALLOC(0, BASE, 10 * MIB, .stack = mine, .time = 2050);
    FREE(1, BASE, .time = 2150);
    ALLOC(0, BASE, 10 * MIB, .stack = other, .time = 2120);
}

/* The reverse: a free with a time before the allocation that it frees. */
static void skew_of_a_birth(void)
{
    ALLOC(0, BASE, 10 * MIB, .stack = mine, .time = 2150);
    FREE(1, BASE, .time = 2120);
}

/* The same, but the driver refused the free: the memory lives on. */
static void skew_of_a_failed_free(void)
{
    skew_of_a_birth();
    EVENT(1, GM_EVENT_UNDO, .kind = GM_EVENT_FREE, .address = BASE, .extra = 1, .time = 2200);
}

/* One graph frees memory that another one brings back to life on another thread; the freeing launch
 * returned last, after `call` units of the clock. */
static void launch_on_two_threads(uint32_t call)
{
    EVENT(0, GM_EVENT_GRAPH_ALLOC_NODE, .kind = GM_KIND_GRAPH, .address = BASE, .size = 4 * MIB,
          .aux = 1, .stack = mine);
    EVENT(0, GM_EVENT_GRAPH_INSTANTIATE, .address = 11, .aux = 1);
    EVENT(0, GM_EVENT_GRAPH_FREE_NODE, .address = BASE, .aux = 2);
    EVENT(0, GM_EVENT_GRAPH_INSTANTIATE, .address = 12, .aux = 2);
    EVENT(0, GM_EVENT_GRAPH_LAUNCH, .address = 11, .time = 3000);
    EVENT(0, GM_EVENT_GRAPH_LAUNCH, .address = 11, .time = 50000);
    EVENT(1, GM_EVENT_GRAPH_LAUNCH, .address = 12, .time = 90000, .extra = call);
}

static void launches(void)
{
    launch_on_two_threads(41000);
}

/* Its call began after the other had returned, so it frees the memory that the other brought to
 * life. */
static void launches_apart(void)
{
    launch_on_two_threads(1000);
}

/* Too far apart for any clock: a free is missing, whoever frees the address later. */
static void late_free(void)
{
    ALLOC(0, BASE, 10 * MIB, .stack = mine, .time = 2000);
    ALLOC(0, BASE, 10 * MIB, .stack = other, .time = 3000);
    FREE(1, BASE, .time = 2000000);
}

/* Within one thread the order is that of its records. */
static void one_thread(void)
{
    ALLOC(0, BASE, 10 * MIB, .stack = mine, .time = 2000);
    ALLOC(0, BASE, 10 * MIB, .stack = other, .time = 2010);
    FREE(0, BASE, .time = 2020);
}

/* ---- out of memory --------------------------------------------------------------------------- */

/* 900 MiB alive with gaps of 312 between them, then `asked`. */
static void refuse(uint64_t total, uint64_t others, uint64_t asked)
{
    if (total)
        EVENT(0, GM_EVENT_DEVICE, .size = total);
    ALLOC(0, 0x1000000000, 100 * MIB, .stack = mine);
    ALLOC(0, 0x1010000000, 100 * MIB, .stack = mine);
    ALLOC(0, 0x1020000000, 700 * MIB, .stack = other);
    if (others)
        EVENT(0, GM_EVENT_DEVICE_SAMPLE, .size = 900 * MIB, .aux = 900 * MIB + others);
    EVENT(0, GM_EVENT_ALLOC_FAILED, .kind = GM_KIND_DEVICE, .size = asked, .extra = 2,
          .api = cuda_malloc, .stack = other);
}

static void full(void)
{
    refuse(1 * GIB, 0, 300 * MIB);
}

static void full_of_others(void)
{
    refuse(2 * GIB, 1000 * MIB, 300 * MIB);
}

static void fragmented(void)
{
    refuse(2 * GIB, 0, 300 * MIB);
}

static void of_unknown_size(void)
{
    refuse(0, 0, 300 * MIB);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void ipc(void)
{
    EVENT(0, GM_EVENT_CONTEXT, .address = 77, .context = 1);
    EVENT(0, GM_EVENT_ALLOC, .kind = GM_KIND_EXTERNAL, .address = BASE, .size = 8 * MIB,
          .context = 1, .stack = mine, .api = cuda_ipc_open);
    EVENT(0, GM_EVENT_CONTEXT_END, .address = 77, .context = 1);
    EVENT(0, GM_EVENT_CONTEXT, .address = 78, .context = 2);
    EVENT(0, GM_EVENT_ALLOC, .kind = GM_KIND_EXTERNAL, .address = BASE, .size = 8 * MIB,
          .context = 2, .stack = mine, .api = cuda_ipc_open);
    FREE(0, BASE);
}

static void ipc_open(void)
{
    EVENT(0, GM_EVENT_ALLOC, .kind = GM_KIND_EXTERNAL, .address = BASE, .size = 8 * MIB,
          .stack = mine, .api = cuda_ipc_open);
}

static void without_stacks(void)
{
    ALLOC(0, BASE, 1 * MIB);
    for (uint64_t i = 0; i < 3; i++)
        EVENT(0, GM_EVENT_ALLOC, .kind = GM_KIND_DEVICE, .address = 2 * BASE + i * GIB,
              .size = 100 * MIB, .api = cuda_malloc_async, .flags = GM_FLAG_ASYNC | GM_FLAG_POOL);
    EVENT(0, GM_EVENT_COPY, .kind = GM_COPY_HOST_TO_DEVICE, .address = BASE, .aux = 0x5000,
          .size = 4096, .api = cuda_memcpy);
    EVENT(0, GM_EVENT_COPY, .kind = GM_COPY_HOST_TO_DEVICE, .address = BASE, .aux = 0x5000,
          .size = 8192, .api = cuda_malloc);
}

/* `turns` times 100 x 1 MiB taken and given back. */
static void take_and_give(unsigned turns)
{
    for (unsigned turn = 0; turn < turns; turn++) {
        for (uint64_t i = 0; i < 100; i++)
            ALLOC(0, BASE + i * MIB, MIB, .stack = mine);
        for (uint64_t i = 0; i < 100; i++)
            FREE(0, BASE + i * MIB);
    }
}

static void setup(void)
{
    take_and_give(1);
}

static void temporaries(void)
{
    take_and_give(4);
}

static void managed(void)
{
    EVENT(0, GM_EVENT_DEVICE, .size = 2 * GIB);
    EVENT(0, GM_EVENT_ALLOC, .kind = GM_KIND_MANAGED, .address = BASE, .size = 3 * GIB,
          .stack = mine, .api = cuda_malloc);
}

/* One file at places with more and with less room in the line. */
static void paths(void)
{
    static const char file[] = "/home/somebody/projects/a/long/way/down/to/training.py";
    uint32_t inner = writer_script_frame(&writer, file, "forward", 12);
    uint32_t outer = writer_script_frame(
        &writer, file, "a_function_with_a_name_that_takes_nearly_the_whole_line_for_itself",
        345678);
    uint32_t node = writer_node(&writer, 0, 0, outer, GM_NODE_SCRIPT);
    ALLOC(0, BASE, MIB, .stack = writer_node(&writer, 0, 0, inner, GM_NODE_SCRIPT));
    ALLOC(0, BASE + MIB, MIB, .stack = writer_node(&writer, node, 0, inner, GM_NODE_SCRIPT));
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*write)(void);
} stories[] = {
    {"nothing", nothing},
    {"running", running},
    {"young", young},
    {"clean", clean},
    {"lost-free", lost_free},
    {"unknown-free", unknown_free},
    {"refused-free", refused_free},
    {"malformed", malformed},
    {"huge", huge},
    {"newer-record", newer_record},
    {"newer-counter", newer_counter},
    {"unwritten", unwritten},
    {"one-stack-cut", one_stack_cut},
    {"cut", cut},
    {"skew", skew},
    {"skew-of-a-birth", skew_of_a_birth},
    {"skew-of-a-failed-free", skew_of_a_failed_free},
    {"launches", launches},
    {"launches-apart", launches_apart},
    {"late-free", late_free},
    {"one-thread", one_thread},
    {"full", full},
    {"full-of-others", full_of_others},
    {"fragmented", fragmented},
    {"of-unknown-size", of_unknown_size},
    {"ipc", ipc},
    {"ipc-open", ipc_open},
    {"without-stacks", without_stacks},
    {"setup", setup},
    {"temporaries", temporaries},
    {"managed", managed},
    {"paths", paths},
};

static void begin_story(void)
{
    writer_begin(&writer);
    cuda_malloc = writer_api(&writer, "cudaMalloc");
    cuda_malloc_async = writer_api(&writer, "cudaMallocAsync");
    cuda_ipc_open = writer_api(&writer, "cudaIpcOpenMemHandle");
    cuda_memcpy = writer_api(&writer, "cudaMemcpy");
    uint16_t program = writer_module(&writer, "/nonexistent/program");
    uint16_t cublas = writer_module(&writer, "/usr/lib/libcublas.so.12");
    mine = writer_node(&writer, 0, program, 0x1100, GM_NODE_NATIVE);
    other = writer_node(&writer, 0, program, 0x3300, GM_NODE_NATIVE);
    of_cublas = writer_node(&writer, mine, cublas, 0x2200, GM_NODE_NATIVE);
}

static bool is_set(const char *argument, const char *member, const char **value)
{
    size_t length = strlen(member);
    *value = argument + length + 1;
    return strncmp(argument, member, length) == 0 && argument[length] == '=';
}

static bool set_member(const char *argument)
{
    struct gm_trace_header *header = &writer.header;
    const char *value;
    if (is_set(argument, "pid", &value))
        header->pid = (uint32_t)atoi(value);
    else if (is_set(argument, "parent", &value))
        header->parent_pid = (uint32_t)atoi(value);
    else if (is_set(argument, "began", &value))
        header->process_start = strtoull(value, NULL, 10);
    else if (is_set(argument, "generation", &value))
        header->generation = (uint32_t)atoi(value);
    else if (is_set(argument, "run", &value))
        snprintf(header->run_id, sizeof(header->run_id), "%s", value);
    else if (is_set(argument, "boot", &value))
        snprintf(header->boot_id, sizeof(header->boot_id), "%s", value);
    else if (is_set(argument, "start", &value))
        writer.clock = 1000 + (header->clock_start.monotonic_ns = strtoull(value, NULL, 10));
    else
        return false;
    return true;
}

int main(int count, char **arguments)
{
    size_t at = 0, stories_count = sizeof(stories) / sizeof(stories[0]);
    while (count >= 3 && at < stories_count && strcmp(stories[at].name, arguments[1]) != 0)
        at++;
    FILE *file = count >= 3 && at < stories_count ? fopen(arguments[2], "wb") : NULL;
    if (!file)
        return 2;
    begin_story();
    for (int i = 3; i < count; i++)
        if (!set_member(arguments[i]))
            return 2;
    stories[at].write();
    writer_finish(&writer);
    bool good = fwrite(writer.bytes, 1, writer.size, file) == writer.size;
    return fclose(file) == 0 && good ? 0 : 1;
}
