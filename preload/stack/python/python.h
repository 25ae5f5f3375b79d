/*
 * The Python stack of the calling thread, read from CPython's own structures.
 *
 * A thread's frame chain is changed by that thread alone, every frame on it holds a reference to
 * its code object, and the thread is inside our C function: so the chain and the immutable names
 * and line tables behind it can be read without the GIL, whoever holds it.
 *
 * Guarantees: read-only; no GIL, no reference counts, no allocation, no lock; errno preserved; no
 * frames (rather than wrong ones) for threads unknown to Python, while and after the interpreter
 * finalises, for interpreters whose structures are not known or do not look as expected, and where
 * it is not known which subinterpreter the thread runs. Of the first stack each page is tried
 * through the kernel, so that a wrong guess is an error code, not a crash.
 *
 * Relies on: gm_python_walk and gm_python_intern are not re-entered by a signal handler on the same
 * thread. A daemon thread that is in a hook at the very moment in which another thread finalises
 * the interpreter can read a thread state that was just freed: CPython gives no way to see it.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_H

#include "stack/python/python_offsets.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_PYTHON_DEPTH_MAX 256u
#define GM_PYTHON_SETS 1024u /* a power of two */
#define GM_PYTHON_WAYS 4u

enum gm_python_status {
    GM_PYTHON_ABSENT,   /* no interpreter in this process so far */
    GM_PYTHON_UNPROVEN, /* a known interpreter; the first stack will tell */
    GM_PYTHON_ON,
    GM_PYTHON_OFF, /* for the rest of the run; gm_python_state says why */
};

/*
 * One Python frame. (code, fingerprint, lasti) names a place in a program as long as the process
 * lives: addresses of code objects are used again, so the address alone does not.
 */
struct gm_python_frame {
    uint64_t code;        /* PyCodeObject */
    uint64_t fingerprint; /* of what the code object holds */
    uint64_t anchor;      /* an address in the C frame of the evaluation loop that runs this Python
                             frame (equal for all frames of one loop); 0 before CPython 3.10, where
                             each frame has a loop of its own */
    uint32_t lasti;       /* byte offset of the instruction */
    uint32_t script;      /* set by gm_python_intern; 0 until then */
    uint32_t node;        /* the caller's; 0 until it sets it */
    uint32_t reserved;
};

struct gm_python_entry {
    uint64_t code; /* 0: free */
    uint64_t fingerprint;
    uint32_t lasti;
    uint32_t script;
};

/*
 * What a thread keeps between walks. The caller gives the memory; zeroed is the valid first state,
 * and the content may be thrown away at any time by zeroing it again (after a fork it must be: the
 * ids belong to another trace). Only its thread touches it.
 */
struct gm_python_thread {
    struct gm_python_frame frames[2 * GM_PYTHON_DEPTH_MAX]; /* last walk; from the end down, new */
    uint32_t count;
    bool truncated;
    struct gm_python_entry known[GM_PYTHON_SETS][GM_PYTHON_WAYS];
};

/* A walked stack, root first. Valid until the thread's next walk. */
struct gm_python_walk {
    struct gm_python_frame *frames;
    uint32_t count;
    uint32_t kept; /* frames [0, kept) are as the last walk left them, scripts and nodes included */
    bool truncated; /* deeper than asked for: the innermost frames are given */
    bool unknown;   /* no frames because it is not known which subinterpreter runs */
};

/* Where the texts and frames go: gm_string_intern and gm_frame_intern of the recorder. */
struct gm_python_sink {
    uint32_t (*add_string)(const char *bytes, size_t size);
    uint32_t (*add_frame)(uint32_t file, uint32_t function, uint32_t line);
};

/*
 * Looks for an interpreter with the given dlsym and RTLD_DEFAULT; does nothing once one was found.
 * To be called outside of any lock (dlsym takes the loader's), when a trace is created and again
 * while gm_python_status() is GM_PYTHON_ABSENT.
 */
void gm_python_attach(void *(*real_dlsym)(void *handle, const char *name));

enum gm_python_status gm_python_status(void);

/* For the trace: "CPython 3.11.7", or why there are no Python frames. */
const char *gm_python_state(void);

/*
 * Walks the calling thread's Python stack: the innermost `depth` frames (1..GM_PYTHON_DEPTH_MAX).
 * A look leaves the last walk as it was and has no frames of it; gm_python_keep makes a walk of it.
 */
void gm_python_look(struct gm_python_thread *thread, uint32_t depth, struct gm_python_walk *walk);
void gm_python_keep(struct gm_python_thread *thread, struct gm_python_walk *walk);

static inline void gm_python_walk(struct gm_python_thread *thread, uint32_t depth,
                                  struct gm_python_walk *walk)
{
    gm_python_look(thread, depth, walk);
    gm_python_keep(thread, walk);
}

/* The calling thread has taken the memory over from one that has ended, at rest. */
void gm_python_take_over(struct gm_python_thread *thread);

/*
 * Index of the script frame for a frame of the thread's last walk, also stored in frame->script.
 * Strings are copied at first sight, now, while the frame keeps its code object alive; what the
 * thread has met before costs one look into its cache. The cache forgets what was not met for long.
 */
uint32_t gm_python_intern(struct gm_python_thread *thread, struct gm_python_frame *frame,
                          const struct gm_python_sink *sink);

/*
 * How many of frames [0, count), counted from the inner end, a native frame runs. To merge, go
 * through the native frames from the innermost outwards and take that many Python frames off the
 * end each time; they belong inside of that native frame. What is left at last is outermost.
 *
 * `caller_sp` is the stack pointer of the native frame's caller (gm_frame.sp of the next frame
 * outwards), the upper end of its stack; 0 where that is not known. A Python frame belongs to the
 * native frame whose stack its anchor lies on: that needs no name, so that it holds wherever the
 * compiler put the parts of the loop. Before CPython 3.10 there is no anchor, and it is
 * gm_python_is_eval(pc) that tells, with `pc` the native frame's return address.
 */
uint32_t gm_python_frames_in(const struct gm_python_frame *frames, uint32_t count, uint64_t pc,
                             uint64_t caller_sp);

/*
 * Whether a return address lies in the evaluation loop, by the bounds of its symbol. Not seen:
 * parts of it that the compiler moved away as cold. Before CPython 3.10, the frames they run go to
 * the next loop outwards.
 */
bool gm_python_is_eval(uint64_t pc);

/* ---- the interpreter of this process (python_attach.c) ------------------------------------------- */

struct gm_python_interpreter {
    struct gm_python_layout layout;
    void *(*thread_state)(void); /* PyGILState_GetThisThreadState: of this OS thread, NULL none */
    void *(*newest)(void);       /* PyInterpreterState_Head; NULL where thread_state knows of
                                    subinterpreters, which is from 3.12 */
    void *(*find_main)(void);    /* PyInterpreterState_Main: NULL before there is one */
    void *main;                  /* what newest() says while there is but one */
    void *(*running)(void);      /* _PyThreadState_UncheckedGet: of who holds the GIL */
    int (*finalizing)(void);
    uint64_t code_type;
    uint64_t str_type;
    uint64_t bytes_type;
    uint64_t eval_start; /* _PyEval_EvalFrameDefault; both 0 when not known */
    uint64_t eval_end;
};

/* Valid once gm_python_status() is past GM_PYTHON_ABSENT, and constant from then on; `main` after
 * gm_python_find_main. */
extern struct gm_python_interpreter gm_python_interpreter;

/* Called on a thread that has a thread state: who attached came perhaps before the interpreter. */
void gm_python_find_main(void);

/*
 * Follows the stack of the calling thread; asks the kernel before each read whether it would crash.
 * Returns whether frames may be read from now on; false also while the thread has no frame to judge
 * by.
 */
bool gm_python_prove(uint64_t thread_state);

/* In a child: who was attaching may not be there. */
void gm_python_attach_forget(void);

#endif
