/* See lock_order.h. Not part of the library that users get. */
#include "base/lock_order.h"
#include <stdio.h>
#include <stdlib.h>

static _Thread_local uint32_t held __attribute__((tls_model("initial-exec"))); /* a bit per rank */

void gm_lock_order_take(enum gm_lock_rank rank)
{
    if (rank == GM_RANK_UNSET || held >> rank != 0) {
        fprintf(stderr, "gpumem: takes a lock of rank %d, holds those of the ranks in 0x%x\n",
                (int)rank, held);
        abort();
    }
    held |= 1u << rank;
}

void gm_lock_order_release(enum gm_lock_rank rank)
{
    held &= ~(1u << rank);
}
