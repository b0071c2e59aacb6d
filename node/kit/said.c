/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime tells in the test of a game: ends of tasks, calls, pushes.
 */
#include "node/kit/inside.h"

#include "base/assert.h"

static void call_one(struct rh_test *t, const struct call *call, struct bytes id)
{
    const struct caller from = {.kind = call->from_kind, .id = call->from};
    const bool sends = call->number == 0;
    const uint8_t flags = (uint8_t)(REQUEST_CALL | (sends ? REQUEST_NO_REPLY : 0) |
                                    ((call->flags & RH_IDEMPOTENT) != 0 ? REQUEST_IDEMPOTENT : 0) |
                                    (call->push || call->outgoing ? REQUEST_SESSION : 0));
    struct buffer body = {0};
    uint8_t head[RECORD_ID_MAX + 16];
    struct writer w = {.at = head, .left = sizeof head};

    ASSERT(caller_size(&from) <= sizeof head);
    caller_put(&w, &from);
    buffer_put(&body, head, sizeof head - w.left);
    buffer_put(&body, call->payload.data, call->payload.size);
    if (call->push) { // only for who is awake
        struct puppet *s = puppet_find(t, call->kind, id);

        if (s != NULL && s->actor != NULL) {
            (void)letter_put(t, s, flags, buffer_bytes(&body), KIT_SEND_US);
        }
    } else {
        struct letter *l = letter_put(t,
                                      puppet_of(t, call->kind, id),
                                      flags,
                                      buffer_bytes(&body),
                                      sends ? KIT_SEND_US : (uint64_t)call->timeout_ms * 1000);
        l->call = call->number;
    }
    buffer_fini(&body);
}

static void call(struct rh_test *t, const struct call *c)
{
    struct bytes ids = c->id;

    if (c->count == 0) {
        call_one(t, c, c->id);
        return;
    }
    while (ids.size > 0) { // u8 size, bytes
        const size_t size = ids.data[0];

        call_one(t, c, bytes_of(ids.data + 1, size));
        ids = bytes_of(ids.data + 1 + size, ids.size - 1 - size);
    }
}

static void push(struct puppet *s, const struct push_record *p)
{
    const uint64_t size = p->payload.size;

    if (p->type == PUSH_DATA) {
        buffer_put(&s->pushes, &size, sizeof size);
        buffer_put(&s->pushes, p->payload.data, p->payload.size);
    } else {
        s->connection = 0; // kicked, or it goes on elsewhere
    }
}

static void keep(struct buffer *to, struct bytes bytes)
{
    buffer_clear(to);
    buffer_put(to, bytes.data, bytes.size);
}

static void on_task(struct rh_test *t, struct puppet *s, const struct completion *c)
{
    s->task = VERB_NONE;
    s->error = c->error;
    if (c->verb == VERB_RUN) {
        letter_ran(t, s, c);
    } else if (c->verb == VERB_EXPORT && c->error == ERR_OK) {
        s->has_state = c->has_state;
        keep(&s->state, c->bytes);
        keep(&s->bond, c->head);
    } else if (c->verb == VERB_ACTIVATE && c->error != ERR_OK) {
        puppet_gone(s);
        s->not_before_us = t->now_us + KIT_RETRY_US;
    } else if (c->verb == VERB_RETIRE && c->error == ERR_OK) {
        puppet_gone(s);
        s->awake = false;
    }
}

void kit_on_completion(void *context, const struct completion *c)
{
    struct rh_test *t = context;
    struct puppet *s = c->actor;

    switch ((enum verb)c->verb) {
    case VERB_ACTIVATE:
    case VERB_RUN:
    case VERB_TURN:
    case VERB_EXPORT:
    case VERB_RETIRE:
        on_task(t, s, c);
        break;
    case VERB_POKE:
        s->poked = true;
        break;
    case VERB_PASSIVATE:
        s->ends = true;
        break;
    case VERB_FAIL:
        s->failed = true;
        break;
    case VERB_CALL:
        call(t, c->call);
        break;
    case VERB_PUSH:
        push(s, c->push);
        break;
    case VERB_DEFER:
    case VERB_FINISH:
    case VERB_DISCARD:
    case VERB_NONE:
    case VERB_COPY:
    case VERB_UNFREEZE:
    case VERB_ANSWER:
    case VERB_GATEWAY:
    case VERB_BIND:
    case VERB_END_CALLS:
    case VERB_SPENT:
    case VERB_SAVE:
        break;
    }
}
