/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator's question about a durable actor's values: it stands in the actor's mailbox, and what
 * it changes is one commit, as of a callback.
 */
#include "node/runtime/durable.h"

#include "wire/values_ask.h"

static void answer_status(struct buffer *out, enum values_status status)
{
    values_answer_put(out, &(struct values_answer){.status = (uint8_t)status});
}

void values_run(struct rh_actor *a, struct bytes question)
{
    struct durable *d = a->extra->durable;
    struct buffer *out = &a->runtime->body;
    struct values_ask ask;

    buffer_clear(out);
    actor_enter_code(a);
    if (d == NULL) {
        answer_status(out, VALUES_VOLATILE);
    } else if (values_ask_get(question, &ask) != ERR_OK) {
        answer_status(out, VALUES_MALFORMED);
    } else {
        values_operate(&d->values, &d->batch, &ask, d->number, out);
    }
    actor_ran(a, ANSWER_OK, buffer_bytes(out));
    actor_end_task(a);
    actor_leave_code(a, true);
    actor_want_turn(a);
}
