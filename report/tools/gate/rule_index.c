/* Which rules may accept a stack, found by a piece of text that each of them needs: a thousand rules
 * cost a stack no more than ten. See suppressions.h. A rule hangs in the bucket of four bytes in a row that one of its patterns has
 * between two wildcards: every stack that it accepts contains them. */
#include "base/memory.h"
#include "base/order.h"
#include "tools/gate/pattern.h"
#include "tools/gate/suppressions.h"
#include <stdlib.h>
#include <string.h>

#define GRAM_SIZE sizeof(uint32_t)
#define BUCKET_BITS 14 /* some for each of a thousand rules, and 128 KiB in all */
#define BUCKETS (1U << BUCKET_BITS)

struct gm_rule_index {
    uint32_t first[BUCKETS]; /* rule; GM_NONE */
    uint32_t asked[BUCKETS]; /* the question in which it was looked at last */
    uint32_t question;
    uint32_t *next;   /* by rule: the next in its bucket; GM_NONE */
    uint32_t *always; /* rules without such a piece, ascending */
    uint32_t *found;
    size_t always_count;
};

static uint32_t bucket_of_gram(const char *gram)
{
    uint32_t bytes;
    memcpy(&bytes, gram, GRAM_SIZE);
    return bytes * 2654435769U >> (32 - BUCKET_BITS); /* 2^32 / golden ratio: Knuth's hashing */
}

/* Calls `take` for the bucket of each four bytes that the rule needs. */
static void for_each_gram(const struct gm_rule *rule, void (*take)(uint32_t bucket, void *data),
                          void *data)
{
    for (size_t i = 0; i < rule->frame_count; i++) {
        if (rule->frames[i].what == GM_RULE_GAP || rule->frames[i].what == GM_RULE_END)
            continue;
        const char *piece = NULL;
        for (size_t size = 0; (piece = gm_pattern_piece(rule->frames[i].pattern, piece, &size));)
            for (size_t at = 0; at + GRAM_SIZE <= size; at++)
                take(bucket_of_gram(piece + at), data);
    }
}

static void count_bucket(uint32_t bucket, void *data)
{
    uint32_t *uses = data;
    uses[bucket]++;
}

struct rarest {
    const uint32_t *uses; /* by bucket, in all rules */
    uint32_t bucket;      /* with fewest so far; GM_NONE */
};

static void take_rarer(uint32_t bucket, void *data)
{
    struct rarest *rarest = data;
    if (rarest->bucket == GM_NONE || rarest->uses[bucket] < rarest->uses[rarest->bucket])
        rarest->bucket = bucket;
}

struct gm_rule_index *gm_rule_index_make(const struct gm_suppressions *suppressions)
{
    struct gm_rule_index *index = gm_allocate(1, sizeof(*index));
    size_t count = suppressions->count;
    index->next = gm_allocate(count + 1, sizeof(*index->next));
    index->always = gm_allocate(count + 1, sizeof(*index->always));
    index->found = gm_allocate(count + 1, sizeof(*index->found));
    memset(index->first, 0xff, sizeof(index->first)); /* GM_NONE */
    uint32_t *uses = gm_allocate(BUCKETS, sizeof(*uses));
    for (size_t i = 0; i < count; i++)
        for_each_gram(&suppressions->rules[i], count_bucket, uses);
    for (size_t i = 0; i < count; i++) {
        struct rarest rarest = {uses, GM_NONE};
        for_each_gram(&suppressions->rules[i], take_rarer, &rarest);
        if (rarest.bucket == GM_NONE) {
            index->always[index->always_count++] = (uint32_t)i;
            continue;
        }
        index->next[i] = index->first[rarest.bucket];
        index->first[rarest.bucket] = (uint32_t)i;
    }
    free(uses);
    return index;
}

void gm_rule_index_free(struct gm_rule_index *index)
{
    if (!index)
        return;
    free(index->next);
    free(index->always);
    free(index->found);
    free(index);
}

/* Each bucket is emptied once for a question, however often the texts lead to it. */
static size_t find_candidates(struct gm_rule_index *index, const char *text, size_t found)
{
    size_t size = text ? strlen(text) : 0;
    for (size_t at = 0; at + GRAM_SIZE <= size; at++) {
        uint32_t bucket = bucket_of_gram(text + at);
        if (index->first[bucket] == GM_NONE || index->asked[bucket] == index->question)
            continue;
        index->asked[bucket] = index->question;
        for (uint32_t rule = index->first[bucket]; rule != GM_NONE; rule = index->next[rule])
            index->found[found++] = rule;
    }
    return found;
}

GM_ORDER(by_number, uint32_t, GM_UP_OF(*a, *b))

const uint32_t *gm_rule_index_ask(struct gm_rule_index *index, const struct gm_stack *stack,
                                  size_t *count)
{
    size_t found = index->always_count;
    memcpy(index->found, index->always, found * sizeof(*index->found));
    if (++index->question == 0) { /* 2^32 questions later */
        memset(index->asked, 0, sizeof(index->asked));
        index->question = 1;
    }
    for (size_t i = 0; i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i], *before = i ? frame - 1 : NULL;
        found = find_candidates(index, frame->function, found);
        if (!before || frame->file != before->file)
            found = find_candidates(index, frame->file, found);
        if (!before || frame->module != before->module)
            found = find_candidates(index, frame->module, found);
    }
    qsort(index->found, found, sizeof(*index->found), by_number);
    *count = found;
    return index->found;
}
