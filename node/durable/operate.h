/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator reads and changes of one durable actor's values (`ringhold actor`), page by
 * page.
 *
 *     CHANGE at 0 -> gathering -> … -> the last page: one change of the values, or none at all
 *
 * A batch is done once, though its last page comes twice. Pure.
 */
#ifndef NODE_DURABLE_OPERATE_H
#define NODE_DURABLE_OPERATE_H

#include "node/durable/values.h"
#include "wire/values_ask.h"

/* The pages that came of a batch that is not whole. All zero is a valid empty one. */
struct values_batch {
    struct buffer bytes; /* owned; VALUES_BATCH_MAX at most */
    uint64_t batch;      /* whose pages they are; 0 = there are none */
    uint64_t done;       /* the batch that was done last, … */
    uint32_t done_count; /* … and what its answer said */
};

void values_batch_fini(struct values_batch *b);

/* Do what is asked, and append the answer to `out`. What is changed is for the caller to seal; of a
 * batch that is refused nothing is changed. `number`: of the actor's last commit. */
void values_operate(struct named_values *v, struct values_batch *b, const struct values_ask *ask,
                    uint64_t number, struct buffer *out);

#endif
