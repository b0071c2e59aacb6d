/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client is asked to send, until it is answered or due.
 */
#include "client/inside.h"

enum { SCAN_MS = 100 };

static int ask(struct rhc *c, const struct rhc_request *r, uint64_t now_ms, bool told)
{
    if (c == NULL || r == NULL) {
        return RHC_INVALID;
    }
    struct asked_entry *e = NULL;

    begin_step(c, now_ms);
    if (r->id.data == NULL || (r->payload.data == NULL && r->payload.size > 0) || r->id.size < 1 ||
        r->id.size > UINT8_MAX || r->payload.size > BODY_MAX / 2 ||
        (r->flags & ~(unsigned)RHC_IDEMPOTENT) != 0 || c->connection.state == RHC_ENDED ||
        c->asking.last_name == NAME_MAX_ASKED || HEAD + asking_size(r) > c->log.bytes_max) {
        return RHC_INVALID;
    }
    if (asking_size(r) > c->connection.body_max) {
        return RHC_TOO_LARGE;
    }
    uint8_t *at = log_put(&c->log, HEAD + asking_size(r), &e);

    if (at == NULL) {
        return RHC_FULL;
    }
    e->name = ++c->asking.last_name;
    e->told = told;
    e->idempotent = (r->flags & RHC_IDEMPOTENT) != 0;
    e->done = told ? NULL : r->done;
    e->context = r->context;
    e->due_ms = now_ms + c->answer_ms;
    asking_write(at, told ? P_NOTIFY : P_REQUEST, e->name, r);
    return RHC_DONE;
}

int rhc_ask(struct rhc *c, const struct rhc_request *r, uint64_t now_ms, uint32_t *request)
{
    const int result = ask(c, r, now_ms, false);

    if (result == RHC_DONE && request != NULL) {
        *request = c->asking.last_name;
    }
    return result;
}

int rhc_tell(struct rhc *c, const struct rhc_request *r, uint64_t now_ms)
{
    return ask(c, r, now_ms, true);
}

void asking_tick(struct rhc *c)
{
    if (c->now_ms < c->asking.scan_ms) {
        return;
    }
    c->asking.scan_ms = c->now_ms + SCAN_MS;
    for (uint32_t i = 0; i < c->log.count; i++) {
        struct asked_entry *e = log_entry(&c->log, i);

        const bool half = i == c->log.next && c->log.partial > 0;

        if (e->state == ENTRY_ASKED && c->now_ms >= e->due_ms) {
            log_doom(&c->log, e, e->sent || half ? RHC_TIMEOUT : RHC_MOVING);
        }
    }
}

bool asking_tells(struct rhc *c, struct rhc_event *event)
{
    struct asked_entry *e = log_next_doomed(&c->log);

    if (e == NULL) {
        return false;
    }
    *event = (struct rhc_event){.type = RHC_EVENT_RESPONSE,
                                .status = e->status,
                                .request = e->name,
                                .done = e->done,
                                .context = e->context};
    log_over(&c->log, e);
    return true;
}
