/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of calls that come past the hard end of the lease. Code of actors would run, so they wait
 * in a buffer, one after the other, until the lease lets it. Pure; the buffer is its worker's.
 */
#ifndef NODE_RUNTIME_LATE_ANSWERS_H
#define NODE_RUNTIME_LATE_ANSWERS_H

#include "base/bytes.h"
#include "node/calls/call.h"

#include <stdbool.h>
#include <string.h>

struct late_answer {
    uint64_t number;
    int status;
    size_t size; /* of the payload, which follows */
};

/* Copy the answer to the end of `late`. Whose worker it is of is not kept. */
static inline void late_answers_put(struct buffer *late, const struct call_answer *a)
{
    const struct late_answer head = {a->number, a->status, a->payload.size};

    buffer_put(late, &head, sizeof head);
    buffer_put(late, a->payload.data, a->payload.size);
}

/* Take the first answer of `left`; its payload is borrowed from there. False: there is none. */
static inline bool late_answers_next(struct bytes *left, struct call_answer *out)
{
    struct late_answer head;

    if (left->size == 0) {
        return false;
    }
    memcpy(&head, left->data, sizeof head);
    *out = (struct call_answer){.number = head.number,
                                .status = head.status,
                                .payload = bytes_of(left->data + sizeof head, head.size)};
    *left = bytes_of(left->data + sizeof head + head.size, left->size - sizeof head - head.size);
    return true;
}

#endif
