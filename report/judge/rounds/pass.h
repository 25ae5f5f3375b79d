/* What a stream held when a request was last refused came either in the pass that was refused, or earlier. */
#ifndef GPUMEM_REPORT_ROUNDS_PASS_H
#define GPUMEM_REPORT_ROUNDS_PASS_H

#include "judge/rounds/rounds.h"

enum gm_round_came {
    GM_ROUND_UNTOLD,  /* the stream held something else then, or nothing is asked about */
    GM_ROUND_LATELY,  /* most of it within the last quarter of all allocations */
    GM_ROUND_EARLIER, /* it had been there for longer */
};

struct gm_round_pass {
    enum gm_round_came came;
    bool
        repeats; /* a stack that holds some of it allocated twice or more since: not one pass, for certain */
    uint64_t
        before; /* bytes that the stream held at most before it came; 0: not known. If it came lately */
};

/* When `rest` of the `live` bytes came that a stream held when a request was last refused. */
struct gm_round_pass gm_rounds_pass(const struct gm_rounds *rounds, int device,
                                    enum gm_round_sort sort, uint64_t live, uint64_t rest);

#endif
