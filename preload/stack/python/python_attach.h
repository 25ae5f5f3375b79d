/*
 * The interpreter of this process: finding it, knowing its layout, and proving on the first stack
 * that its structures are what the layout says.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_ATTACH_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_ATTACH_H

#include "stack/python/python_offsets.h"
#include <stdbool.h>
#include <stdint.h>

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
