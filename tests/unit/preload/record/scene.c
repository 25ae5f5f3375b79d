/* See scene.h. */
#include "scene.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs what stands above */

#include "report/input/trace/lane.h"
#include "report/input/trace/trace_open.h"

bool scene_without_drainer;

static char folder[64];

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    const struct timespec meanwhile = {.tv_nsec = 20000000}; /* the scenes' threads record */
    if (scene_without_drainer && attributes) {               /* those take the default */
        nanosleep(&meanwhile, NULL);
        return EAGAIN;
    }
    return __real_pthread_create(thread, attributes, body, argument);
}

/* ---- the folder ------------------------------------------------------------------------------ */

const char *scene_begin(const char *output)
{
    static struct gm_config defaults;
    static bool kept;
    if (!kept)
        defaults = gm_config;
    kept = true;
    gm_config = defaults;
    gm_config.ring_records = 64;
    gm_config.drop_on_full = false;
    gm_config.run_id[0] = 0;
    scene_without_drainer = false;
    strcpy(folder, "/tmp/test_recorder.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(gm_config.output, sizeof(gm_config.output), "%s/%s", folder, output);
    return folder;
}

static unsigned each_file(bool remove)
{
    unsigned count = 0;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (remove)
            unlink(scene_path(entry->d_name));
    }
    closedir(stream);
    return count;
}

unsigned scene_files(void)
{
    return each_file(false);
}

void scene_end(void)
{
    each_file(true);
    rmdir(folder);
}

const char *scene_path(const char *name)
{
    static char paths[8][400];
    static unsigned at;
    char *path = paths[at++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

/* ---- the process ----------------------------------------------------------------------------- */

pid_t scene_start(void (*body)(void *), void *argument)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child)
        return child;
    body(argument);
    scene_leave();
}

int scene_play(void (*body)(void *), void *argument)
{
    int status = 0;
    pid_t child = scene_start(body, argument);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

void scene_leave(void)
{
    gm_process_mark_end(GM_END_EXIT, 0);
    _exit(0);
}

void scene_threads(unsigned count, void *(*body)(void *))
{
    pthread_t threads[SCENE_THREADS];
    for (unsigned n = 0; n < count; n++)
        if (pthread_create(&threads[n], NULL, body, (void *)(uintptr_t)n) != 0)
            _exit(99);
    for (unsigned n = 0; n < count; n++)
        pthread_join(threads[n], NULL);
}

/* ---- its records ----------------------------------------------------------------------------- */

/* Every third is an odd one: a hint with all bits set, a free, a map with a detail. */
struct gm_record scene_record(unsigned thread, uint64_t n)
{
    static const uint8_t types[] = {GM_EVENT_ALLOC, GM_EVENT_FREE, GM_EVENT_HINT, GM_EVENT_ALLOC,
                                    GM_EVENT_VMM_MAP};
    struct gm_record record = {
        .type = types[n % 5],
        .address = (uint64_t)thread << 56 | n,
        .size = n % 7 ? n * 4096 + thread : UINT64_MAX - n,
        .aux = n % 3   ? 0
               : n % 2 ? UINT64_MAX
                       : (1ull << 63) + n,
        .extra = n % 11 ? 0 : UINT32_MAX,
        .context = (uint16_t)(1 + n % UINT16_MAX),
        .kind = (uint8_t)(n % 256),
        .device = (int8_t)(n % 128),
        .flags = n % 2 ? 0xff : (uint8_t)(n % 128),
    };
    if (record.type == GM_EVENT_ALLOC || record.type == GM_EVENT_VMM_MAP)
        record.stack = n % 13 ? (uint32_t)n : UINT32_MAX;
    record.api = (uint16_t)(1 + thread % 2); /* a handler's record has that of the call around it */
    return record;
}

void scene_put(unsigned thread, uint64_t n)
{
    struct gm_record record = scene_record(thread, n);
    struct gm_record detail = {.address = ~record.address, .size = n};
    struct gm_call call;
    uint32_t stack_before = fake_stack; /* this may be a signal handler */
    fake_stack = record.stack;
    gm_call_begin(&call, record.api, __builtin_frame_address(0));
    gm_call_record(&call, &record, record.type == GM_EVENT_VMM_MAP ? &detail : NULL);
    gm_call_end(&call);
    fake_stack = stack_before;
}

void scene_put_many(unsigned thread, uint64_t count)
{
    for (uint64_t n = 0; n < count; n++)
        scene_put(thread, n);
}

/* ---- what is found of them ------------------------------------------------------------------- */

static void compare(struct scene_found *found, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    if (record->type == GM_EVENT_THREAD) { /* the recorder's own */
        found->threads++;
        return;
    }
    unsigned thread = (unsigned)(record->address >> 56) % SCENE_THREADS;
    uint64_t n = record->address & 0xffffffffffffff;
    struct gm_record expected = scene_record(thread, n);
    expected.time = record->time;
    found->wrong += memcmp(&expected, record, sizeof(expected)) != 0;
    found->strays +=
        entry->detail && (entry->detail->address != ~record->address || entry->detail->size != n ||
                          record->type != GM_EVENT_VMM_MAP);
    found->details += entry->detail != NULL;
    found->disorder += found->count[thread] && n < found->next[thread];
    found->next[thread] = n + 1;
    found->count[thread]++;
    found->records++;
}

/* All that lies in blocks and rings, details too, one by one. */
static uint64_t stored_records(struct gm_trace *trace)
{
    uint64_t stored = 0;
    ZSTD_DCtx *context = ZSTD_createDCtx();
    for (size_t lane = 0; lane < trace->lane_count; lane++) {
        struct gm_lane_reader reader;
        gm_lane_begin(&reader, trace, &trace->lanes[lane]);
        const struct gm_record *records;
        for (size_t count; (count = gm_lane_next(&reader, context, &records)) > 0;)
            for (size_t n = 0; n < count; n++)
                stored += records[n].type != GM_EVENT_THREAD;
        gm_lane_end(&reader);
    }
    ZSTD_freeDCtx(context);
    return stored;
}

struct scene_found scene_read(const char *name)
{
    char error[256] = "";
    struct scene_found found = {0};
    struct gm_trace *trace = gm_trace_open(scene_path(name), error, sizeof(error));
    if (!trace)
        fail_msg("%s: %s", name, error);
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    while (gm_stream_next(stream, &entry))
        compare(&found, &entry);
    found.lost = gm_stream_lost(stream);
    gm_stream_close(stream);
    found.stored = stored_records(trace);
    found.header = trace->header;
    found.ending = trace->ending;
    found.damaged = trace->damaged;
    found.truncated = trace->truncated;
    found.lanes = trace->lane_count;
    gm_trace_close(trace);
    return found;
}
