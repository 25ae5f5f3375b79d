/* See peak_lives.h. */
#include "replay/ledger/peak_lives.h"
#include "base/each.h"
#include "base/memory.h"
#include <stdlib.h>

static bool counts_on_device(const struct gm_life *life)
{
    return !gm_kind_is_host(life->kind) && life->kind != GM_KIND_EXTERNAL;
}

static void keep_live(struct gm_gone_lives *gone, const struct gm_ledger *ledger,
                      const struct gm_peak *peak, const struct gm_life *life)
{
    if (gone->step != peak->step) {
        gone->step = peak->step;
        gone->count = 0;
    }
    if (life->entered > peak->step)
        return;
    GM_APPEND(gone->entries, gone->capacity, gone->count,
              (struct gm_gone_life){
                  .address = life->address,
                  .size = life->size,
                  .number = (uint32_t)(life - ledger->lives.slots),
                  GM_SAME(life, stack, api, kind, device),
              });
}

void gm_peak_lives_keep(struct gm_peak_lives *peaks, const struct gm_ledger *ledger,
                        const struct gm_life *life)
{
    uint8_t slot = life->slot;
    if (life->kind == GM_KIND_PINNED)
        keep_live(&peaks->pinned, ledger, &ledger->counters.host[GM_KIND_PINNED].peak, life);
    else if (counts_on_device(life))
        keep_live(&peaks->device[slot], ledger, &ledger->counters.device[slot].peak, life);
}

#define AHEAD 16u /* a life that is gone is brought near so many numbers before it is its turn */

void gm_peak_lives_visit(const struct gm_peak_lives *peaks, const struct gm_ledger *ledger,
                         unsigned kind, int device,
                         void (*visit)(void *argument, const struct gm_life *life), void *argument)
{
    bool pinned = kind == GM_KIND_PINNED;
    uint8_t slot = gm_device_slot(device);
    const struct gm_gone_lives *gone = pinned ? &peaks->pinned : &peaks->device[slot];
    const struct gm_peak *peak =
        pinned ? &ledger->counters.host[kind].peak : &ledger->counters.device[slot].peak;
    const struct gm_lives *lives = &ledger->lives;
    /* By number: which of those that are gone had it then, counted from 1. */
    uint32_t *by_number = gm_allocate((size_t)lives->used + AHEAD, sizeof(*by_number));
    for (size_t i = 0; gone->step == peak->step && i < gone->count; i++)
        by_number[gone->entries[i].number] = (uint32_t)i + 1;
    for (uint32_t number = 0; number < lives->used; number++) {
        const struct gm_life *life = &lives->slots[number];
        if (by_number[number + AHEAD - 1])
            __builtin_prefetch(&gone->entries[by_number[number + AHEAD - 1] - 1]);
        if (by_number[number]) {
            const struct gm_gone_life *one = &gone->entries[by_number[number] - 1];
            const struct gm_life then = {GM_SAME(one, address, size, stack, api, kind, device)};
            if (pinned || one->device == device)
                visit(argument, &then);
        } else if (life->kind != GM_KIND_NONE && life->entered <= peak->step &&
                   (pinned ? life->kind == kind
                           : counts_on_device(life) && life->device == device)) {
            visit(argument, life);
        }
    }
    free(by_number);
}

void gm_peak_lives_free(struct gm_peak_lives *peaks)
{
    for (int i = 0; i < GM_DEVICES; i++)
        free(peaks->device[i].entries);
    free(peaks->pinned.entries);
}
