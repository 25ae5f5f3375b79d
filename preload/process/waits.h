/*
 * A child that a signal ended could mark nothing: its parent, who waits for it, learns the signal.
 * If the child left a trace without an end, the parent writes there how it ended.
 *
 * Does only what is certain: a wait that was told of a signal, a trace of that process id where this
 * process's own settings would put it, without an end. No memory, no lock, errno kept; safe in a
 * signal handler, as waitpid is. Not seen: children of another program name or output pattern, and
 * those that are waited for by a system call, as the runtime of Go does.
 */
#ifndef GPUMEM_PRELOAD_PROCESS_WAITS_H
#define GPUMEM_PRELOAD_PROCESS_WAITS_H

/* In the constructor: finds what must not be looked for in a signal handler. */
void gm_waits_prepare(void);

#endif
