/* SPDX-License-Identifier: Apache-2.0
 *
 * Completions that outlive what they borrow: what a queue between runtime and host keeps.
 */
#include "node/bridge/operation.h"

#include "node/calls/call.h"

size_t completion_size(const struct completion *c)
{
    return c->verb == VERB_CALL
               ? sizeof *c->call + c->call->from.size + c->call->id.size + c->call->payload.size
               : c->head.size + c->bytes.size;
}

/* Returns what comes behind its copy. */
static uint8_t *copy_to(uint8_t *at, struct bytes *borrowed)
{
    if (borrowed->size > 0) {
        memcpy(at, borrowed->data, borrowed->size);
    }
    borrowed->data = at;
    return at + borrowed->size;
}

void completion_copy(const struct completion *c, struct completion *to, uint8_t *room)
{
    *to = *c;
    if (c->verb == VERB_CALL) {
        struct call *call = (void *)room;

        *call = *c->call;
        room = copy_to(room + sizeof *call, &call->from);
        room = copy_to(room, &call->id);
        (void)copy_to(room, &call->payload);
        to->call = call;
    } else {
        room = copy_to(room, &to->head);
        (void)copy_to(room, &to->bytes);
    }
}
