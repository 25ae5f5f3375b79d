/*
 * Why the recorder declined a call, a road to CUDA, a step of a stack or a Python frame, told in its
 * trace by a debug build (cmake -DGPUMEM_WHY=ON); `gpumem info --why` shows it. In the build that
 * users get nothing of this is there, and arguments are not evaluated.
 *
 * Guarantees: as all of the recorder, no malloc, no loader lock, errno kept. What is told before
 * there is a trace, or by a parent, is in the next trace. A bounded ring: see struct gm_why_ring.
 */
#ifndef GPUMEM_PRELOAD_WRITER_WHY_H
#define GPUMEM_PRELOAD_WRITER_WHY_H

#include <gpumem/trace.h>

/* `address`: of the code it is about, 0 none. `name`: a symbol or a reason in words, NULL none. */
void gm_why_note(enum gm_why reason, uint64_t address, const char *name);

#ifdef GPUMEM_WHY
#define gm_why(reason, address, name) gm_why_note(reason, address, name)

/* Gives a new trace the ring. Without room for it the trace has none. */
void gm_why_begin(void);

/* In a child: its parent's trace is not mapped. */
void gm_why_forget(void);
#else
#define gm_why(reason, address, name)                                                              \
    do {                                                                                           \
        if (0)                                                                                     \
            gm_why_note(reason, address, name);                                                    \
    } while (0)

static inline void gm_why_begin(void)
{
}

static inline void gm_why_forget(void)
{
}
#endif

#endif
