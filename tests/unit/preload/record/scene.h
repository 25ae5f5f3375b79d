/*
 * A scene of test_recorder.c: a process that records, and then what a reader finds of it.
 *
 * The tests' own process never records. Each scene is a forked child, which starts over as any
 * forked child does.
 */
#ifndef GM_TESTS_SCENE_H
#define GM_TESTS_SCENE_H

#include "preload/base/config.h"
#include "preload/process/process.h"
#include "preload/record/recorder.h"
#include "preload/writer/trace_file.h"
#include "report/input/trace/stream.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes an empty folder for the scene and puts the configuration back to the defaults, but for the
 * smallest ring and `output`, a name in that folder. Returns the folder. */
const char *scene_begin(const char *output);
void scene_end(void);

/* Full path of a file of the scene's folder; valid until the next but seven. */
const char *scene_path(const char *name);
unsigned scene_files(void); /* how many are in it */

/* Runs `body` in a child; returns its wait status. The child ends by scene_leave or _exit. */
pid_t scene_start(void (*body)(void *), void *argument);
int scene_play(void (*body)(void *), void *argument);
_Noreturn void scene_leave(void); /* a clean end, marked in the trace */

/* Refuses the drainer its thread. */
extern bool scene_without_drainer;

/* Called when a record has its time and is not committed yet, of those that carry a stack. */
extern void (*fake_capture)(void);

/* The stack of what this thread records next. */
extern _Thread_local uint32_t fake_stack;

/* Starts `count` threads on `body` (argument: their number) and joins them. */
void scene_threads(unsigned count, void *(*body)(void *));

/* What record n of thread `lane` looks like, and putting it there; `count` from 0 on. */
struct gm_record scene_record(unsigned thread, uint64_t n);
void scene_put(unsigned thread, uint64_t n);
void scene_put_many(unsigned thread, uint64_t count);

/* What was found, thread by thread as the addresses say. */
enum { SCENE_THREADS = 8 };
struct scene_found {
    struct gm_trace_header header;
    enum gm_ending ending;
    uint64_t damaged;
    bool truncated;
    uint64_t lost;                 /* gaps in sequence numbers */
    uint64_t lanes;                /* with a record or without */
    uint64_t threads;              /* records that say whose a lane is; not among the others */
    uint64_t records;              /* all but details */
    uint64_t details;              /* those that have one */
    uint64_t stored;               /* all, found lane by lane: also a detail whose record is lost */
    uint64_t count[SCENE_THREADS]; /* of this thread */
    uint64_t next[SCENE_THREADS];  /* one past the largest n */
    uint64_t disorder;             /* records not behind the one before of their thread */
    uint64_t wrong;                /* records that are not what scene_record says */
    uint64_t strays;               /* details that stand behind a record that is not theirs */
};
struct scene_found scene_read(const char *name);

#endif
