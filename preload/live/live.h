/*
 * What is alive now, for a program that asks (sources/inside.c): in any mode, the records of all
 * threads are folded (fold.h) up to the present, and then the fold knows.
 *
 * A flight recorder folds anyway. A trace that grows is folded only when it is asked for: the
 * records since the last time are read from the rings and, where these were packed meanwhile, from
 * the blocks of the file. So a program that never asks pays nothing, and one that asks pays for each
 * record once.
 */
#ifndef GPUMEM_PRELOAD_LIVE_LIVE_H
#define GPUMEM_PRELOAD_LIVE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

enum gm_live_state {
    GM_LIVE_KNOWN,
    GM_LIVE_UNSETTLED, /* a thread stays between the time of a record and its commit: try again */
    GM_LIVE_INEXACT,   /* records were lost or calls not seen: what is alive is not known */
};

/* Folds all that was committed before the call, and holds off whoever would fold more, until
 * gm_live_end. No lock of the recorder may be held, and the gate of the thread is closed. */
enum gm_live_state gm_live_begin(void);
void gm_live_end(void);

/* In a child: nothing is read. */
void gm_live_forget(void);

#endif
