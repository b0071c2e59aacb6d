/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gateway says of the session: a bind's answer, a rebind, a session that begins, pushes.
 */
#include "client/inside.h"

#include <string.h>

enum { AGAIN_MS = 200, KICK_REPLACED = 1 };

/* The fields of a session that is kept, and begins: its pushes count from 1, and if the next one is
 * a later one, those between are lost. */
static void take_session(struct bound_session *s, struct rhc_bytes payload)
{
    s->keeps = payload.size >= BEGUN_SIZE;
    s->pushed = 0;
    if (s->keeps) {
        memcpy(s->name, payload.data, SESSION_SIZE);
    }
}

static bool bound(struct rhc *c, struct rhc_bytes payload, struct rhc_event *event)
{
    struct bound_session *s = &c->session.now;
    const bool resumed = s->state == BIND_RESUMING;

    if (resumed) {
        log_mark_again(&c->log, true);
        if (payload.size >= BEGUN_SIZE) {
            memcpy(s->name, payload.data, SESSION_SIZE);
        }
    } else {
        take_session(s, payload);
    }
    s->state = BIND_HELD;
    s->was_held = true;
    log_in_session(&c->log, s->keeps);
    *event = (struct rhc_event){.type = RHC_EVENT_BOUND, .fresh = !resumed};
    if (c->connection.state == RHC_GREETING) {
        be_ready(c);
    }
    return true;
}

static bool refused(struct rhc *c, unsigned status, struct rhc_bytes payload,
                    struct rhc_event *event)
{
    c->session.now.state = BIND_NONE;
    c->session.now.keeps = false;
    *event = (struct rhc_event){.type = RHC_EVENT_REFUSED, .status = status, .payload = payload};
    if (c->connection.state == RHC_GREETING) {
        be_ready(c);
    }
    return true;
}

static void bind_again(struct rhc *c, uint32_t retry_ms)
{
    c->session.now.again_ms =
        c->now_ms + jittered(c, retry_ms > 0 ? retry_within(retry_ms) : AGAIN_MS);
    connection_greets_by(c, c->session.now.again_ms + c->greet_ms);
}

/* There is nothing to resume: begin afresh. */
static void bind_afresh(struct rhc *c)
{
    c->session.now.keeps = false;
    c->session.now.state = BIND_ASKED;
    log_in_session(&c->log, false);
    log_forget_session(&c->log);
    log_rewind(&c->log, false);
    say_bind(c);
}

static bool begins_with(struct rhc_bytes b, const char *word)
{
    return b.size >= strlen(word) && memcmp(b.data, word, strlen(word)) == 0;
}

static bool on_resume_refused(struct rhc *c, unsigned status, uint32_t retry_ms,
                              struct rhc_bytes payload, struct rhc_event *event)
{
    if (status == RHC_UNAUTHORIZED) {
        return refused(c, status, payload, event);
    }
    if (status == RHC_REJECTED && begins_with(payload, "REPLACED")) {
        be_kicked(c, KICK_REPLACED, payload);
    } else if (status == RHC_REJECTED || status == RHC_BAD_REQUEST) {
        bind_afresh(c);
    } else {
        bind_again(c, retry_ms);
    }
    return false;
}

static bool on_bind_refused(struct rhc *c, unsigned status, uint32_t retry_ms,
                            struct rhc_bytes payload, struct rhc_event *event)
{
    struct bound_session *s = &c->session.now;

    switch (status) {
    case RHC_BAD_REQUEST:
        if (begins_with(payload, "requests are in progress")) {
            bind_again(c, retry_ms); // what was asked of the actor before
            return false;
        }
        if (!s->plain) {
            s->plain = true; // a gateway that keeps no sessions yet
            say_bind(c);
            return false;
        }
        return refused(c, status, payload, event);
    case RHC_MOVING:
    case RHC_OVERLOADED:
    case RHC_RATE_LIMITED:
        bind_again(c, retry_ms);
        return false;
    case RHC_NO_OWNER:
        if (!s->was_held) {
            return refused(c, status, payload, event);
        }
        bind_again(c, retry_ms); // its nodes are being replaced
        return false;
    case RHC_UNKNOWN:
    case RHC_TIMEOUT:
        give_up(c, "the bind got no answer"); // it may be bound: a new connection isn't
        return false;
    default:
        return refused(c, status, payload, event);
    }
}

bool session_on_bind_answer(struct rhc *c, unsigned status, uint32_t retry_ms,
                            struct rhc_bytes payload, struct rhc_event *event)
{
    const struct bound_session *s = &c->session.now;

    if ((s->state != BIND_ASKED && s->state != BIND_RESUMING) || s->again_ms > 0) {
        return false; // with that time it is a second answer: it is asked again then
    }
    if (status == RHC_OK) {
        return bound(c, payload, event);
    }
    return s->state == BIND_RESUMING ? on_resume_refused(c, status, retry_ms, payload, event)
                                     : on_bind_refused(c, status, retry_ms, payload, event);
}

bool session_on_unbind_answer(struct rhc *c, struct rhc_event *event)
{
    if (c->session.now.state != BIND_LEAVING) {
        return false;
    }
    c->session.now = (struct bound_session){.state = BIND_NONE, .plain = c->session.now.plain};
    log_in_session(&c->log, false);
    log_forget_session(&c->log);
    *event = (struct rhc_event){.type = RHC_EVENT_UNBOUND};
    return true;
}

void bind_if_it_waits(struct rhc *c)
{
    // Behind a bind, nothing of before is answered.
    if (c->session.now.waits && c->connection.state == RHC_READY && !log_owes(&c->log)) {
        session_go_on(c);
    }
}

void session_on_rebound(struct rhc *c, const struct rhc_event *event)
{
    struct bound_session *s = &c->session.now;

    if (s->state != BIND_HELD) {
        return; // it is leaving
    }
    if (c->session.home.state == BIND_NONE) {
        c->session.home =
            (struct bound_session){.state = BIND_WANTED, .kind = s->kind, .id_size = s->id_size};
        memcpy(c->session.home.id, s->id, s->id_size);
    }
    log_in_session(&c->log, false);
    log_forget_session(&c->log);
    *s = (struct bound_session){.state = BIND_WANTED,
                                .kind = (uint16_t)event->code,
                                .id_size = (uint8_t)event->payload.size,
                                .waits = true};
    memcpy(s->id, event->payload.data, event->payload.size);
    bind_if_it_waits(c);
}

bool session_on_begun(struct rhc *c, struct rhc_bytes body)
{
    if (c->session.now.state != BIND_HELD) {
        return false;
    }
    take_session(&c->session.now, body);
    log_forget_session(&c->log);
    return true;
}

bool session_on_push(struct rhc *c, uint64_t sequence, uint64_t *lost)
{
    struct bound_session *s = &c->session.now;

    if (s->state == BIND_HELD && !s->keeps && sequence == 1) {
        s->pushed = 0; // the actor, begun afresh
    }
    if (s->state != BIND_HELD || sequence <= s->pushed) {
        return false;
    }
    *lost = sequence - s->pushed - 1;
    s->pushed = sequence;
    return true;
}
