/*
 * What only the loader can tell, and what it has to open: libunwind, and where a Python interpreter
 * is.
 *
 * Guarantee: no thread of the host's waits for the loader's lock because of us. That lock is held
 * while constructors of libraries run, and these may wait for threads that call CUDA. So the loader
 * is asked in our own constructor, where the lock is held for us, if the program looks as if it
 * will want the answers; else by a thread of our own, for which nobody waits: the first stacks of
 * such a program may lack what it finds.
 */
#ifndef GPUMEM_PRELOAD_STACK_LOADER_WORK_H
#define GPUMEM_PRELOAD_STACK_LOADER_WORK_H

/* From our constructor. */
void gm_loader_ask_early(void);

/* Has the loader asked if there is something left to ask. From any hook: takes no lock, does not
 * wait. To be called when a process begins to record and when a module is new on a stack. */
void gm_loader_ask(void);

/* A thread begins to record. The same, now and then. */
void gm_loader_thread_came(void);

/*
 * On a thread of our own, right before it opens a library. To open one takes several locks of the
 * loader's, the last of which is that of its list, held while a callback of dl_iterate_phdr runs.
 * Who waits for that one has the others, and pthread_create needs one of them. So it is waited for
 * alone, before. (A callback that begins in the moment between, and waits for a new thread, still
 * waits.)
 */
void gm_loader_wait_for_list(void);

/* In a child: who was asking is not there. */
void gm_loader_forget(void);

#endif
