/* See purposes.h. */
#include "judge/pool/purposes.h"
#include "base/limit.h"
#include "base/memory.h"
#include "judge/pool/blocks.h"
#include <stdlib.h>

void gm_purposes_add_filling(struct gm_purposes *purposes, uint32_t stack)
{
    gm_map_set(&purposes->filling, gm_callers_line(purposes->callers, stack), 0);
}

void gm_purposes_free(struct gm_purposes *purposes)
{
    gm_map_free(&purposes->filling);
}

enum gm_category gm_purpose_of(const struct gm_purposes *purposes, uint32_t stack)
{
    enum gm_category category = gm_categories_get(purposes->categories, stack);
    if (category == GM_CATEGORY_OTHER &&
        gm_map_get(&purposes->filling, gm_callers_line(purposes->callers, stack)) != GM_NONE)
        return GM_CATEGORY_INPUT;
    return category;
}

/* Blocks that live, by category. */
struct uses {
    const struct gm_purposes *purposes;
    struct gm_map by_stack; /* stack -> category */
    uint64_t live[GM_DEVICES][GM_CATEGORIES];
    uint64_t (*peaks)[GM_CATEGORIES];
};

static uint32_t category_of(struct uses *uses, uint32_t stack)
{
    uint32_t category = gm_map_get(&uses->by_stack, stack);
    if (category == GM_NONE) {
        category = gm_purpose_of(uses->purposes, stack);
        gm_map_set(&uses->by_stack, stack, category);
    }
    return category;
}

/* A record, before `blocks` takes notice of it. */
static void note_use(struct uses *uses, const struct gm_record *record,
                     const struct gm_blocks *blocks)
{
    if (record->type != GM_EVENT_BLOCK_ALLOC && record->type != GM_EVENT_BLOCK_FREE)
        return;
    /* A block whose end is not on record ends when its address is given out again. */
    const struct gm_pool_block *there = gm_blocks_at(blocks, record->address);
    if (there)
        uses->live[there->device + 1][category_of(uses, there->stack)] -= there->size;
    if (record->type != GM_EVENT_BLOCK_ALLOC)
        return;
    uint8_t slot = gm_device_slot(record->device);
    uint32_t category = category_of(uses, record->stack);
    uint64_t *live = &uses->live[slot][category], *peak = &uses->peaks[slot][category];
    *live += gm_blocks_size(blocks, record);
    *peak = *live > *peak ? *live : *peak;
}

uint64_t (*gm_purpose_peaks(const struct gm_purposes *purposes,
                            struct gm_trace *trace))[GM_CATEGORIES]
{
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_blocks *blocks = gm_allocate(1, sizeof(*blocks));
    struct uses *uses = gm_allocate(1, sizeof(*uses));
    struct gm_entry entry;
    uint64_t(*peaks)[GM_CATEGORIES] = gm_allocate(GM_DEVICES, sizeof(*peaks));
    uses->purposes = purposes;
    uses->peaks = peaks;
    while (gm_stream_next(stream, &entry)) {
        gm_limits_spend(GM_STEPS_NOTES);
        note_use(uses, entry.record, blocks);
        gm_blocks_note(blocks, &entry);
    }
    gm_stream_close(stream);
    gm_blocks_free(blocks);
    gm_map_free(&uses->by_stack);
    free(blocks);
    free(uses);
    return peaks;
}
