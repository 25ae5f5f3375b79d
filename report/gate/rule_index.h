/* Which rules may accept a stack, found by a piece of text that each of them needs: a thousand rules
 * cost a stack no more than ten.
 */
#ifndef GPUMEM_REPORT_GATE_RULE_INDEX_H
#define GPUMEM_REPORT_GATE_RULE_INDEX_H

#include "gate/suppressions.h"

/* Of the rules as they are now. */
struct gm_rule_index *gm_rule_index_make(const struct gm_suppressions *suppressions);
void gm_rule_index_free(struct gm_rule_index *index); /* NULL is fine */

/* The numbers of all rules whose frames can be among those of the stack, and of few others, in
 * ascending order. They are valid until the next call. */
const uint32_t *gm_rule_index_ask(struct gm_rule_index *index, const struct gm_stack *stack,
                                  size_t *count);

#endif
