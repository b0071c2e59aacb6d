/* SPDX-License-Identifier: Apache-2.0
 *
 * The session: bound, left, resumed, and what came in it acknowledged.
 */
#include "client/inside.h"

#include <string.h>

enum {
    ACK_MS = 500, /* the page says once a second */
    ACK_SIZE = 16 * 1024,
    ACK_COUNT = 16,
};

void session_leave(struct rhc *c)
{
    struct bound_session *s = &c->session.now;

    if (s->state == BIND_LEAVING) {
        *s = (struct bound_session){.state = BIND_NONE, .plain = s->plain};
        c->session.tell_unbound = true;
    } else if (s->state != BIND_NONE) {
        s->state = BIND_WANTED;
    }
    s->plain = false; // the next gateway may be a newer one
}

void session_ask(struct rhc *c)
{
    struct bound_session *s = &c->session.now;

    s->again_ms = 0;
    s->state = s->keeps ? BIND_RESUMING : BIND_ASKED;
    if (!s->keeps) {
        say_bind(c);
    } else if (say_resume(c, c->session.attempts + 1)) {
        c->session.attempts++;
    }
}

void session_go_on(struct rhc *c)
{
    connection_known(c);
    c->session.now.waits = false;
    if (c->session.now.state == BIND_NONE) {
        be_ready(c);
    } else {
        session_ask(c);
    }
}

void session_go_home(struct rhc *c)
{
    if (c->login.given_size == 0 && c->session.home.state != BIND_NONE) {
        c->session.now = c->session.home;
        c->session.home.state = BIND_NONE;
    }
}

void session_disconnected(struct rhc *c)
{
    c->session.now.again_ms = 0;
    c->session.now.ack_ms = 0;
}

void session_end(struct rhc *c)
{
    c->session.now.keeps = false;
}

bool session_tells(struct rhc *c, struct rhc_event *event)
{
    if (!c->session.tell_unbound) {
        return false;
    }
    c->session.tell_unbound = false;
    *event = (struct rhc_event){.type = RHC_EVENT_UNBOUND, .payload = bytes_at("", 0)};
    return true;
}

void note_heard(struct rhc *c, size_t size)
{
    struct bound_session *s = &c->session.now;

    if (s->state != BIND_HELD || !s->keeps) {
        return;
    }
    s->unacked_size += size;
    s->unacked_count++;
    if (s->unacked_size > ACK_SIZE || s->unacked_count >= ACK_COUNT) {
        s->ack_ms = c->now_ms > 0 ? c->now_ms : 1;
    } else if (s->ack_ms == 0) {
        s->ack_ms = c->now_ms + ACK_MS;
    }
}

int rhc_bind(struct rhc *c, uint16_t kind, struct rhc_bytes id)
{
    if (c == NULL || id.data == NULL) {
        return RHC_INVALID;
    }
    struct bound_session *s = &c->session.now;

    if (s->state != BIND_NONE || id.size < 1 || id.size > UINT8_MAX) {
        return RHC_INVALID;
    }
    *s = (struct bound_session){.state = BIND_WANTED, .kind = kind, .id_size = (uint8_t)id.size};
    memcpy(s->id, id.data, id.size);
    if (c->connection.state == RHC_READY) {
        session_ask(c);
    }
    return RHC_DONE;
}

int rhc_unbind(struct rhc *c)
{
    if (c == NULL) {
        return RHC_INVALID;
    }
    struct bound_session *s = &c->session.now;

    if (s->state == BIND_NONE || s->state == BIND_LEAVING) {
        return RHC_INVALID;
    }
    c->session.home.state = BIND_NONE;
    if (s->state == BIND_HELD) {
        s->state = BIND_LEAVING;
        say_unbind(c);
    } else if (s->state == BIND_WANTED) {
        *s = (struct bound_session){.state = BIND_NONE};
        log_forget_session(&c->log);
        log_rewind(&c->log, false);
        c->session.tell_unbound = true;
    } else {
        return RHC_INVALID; // its answer comes soon
    }
    return RHC_DONE;
}

void session_tend(struct rhc *c)
{
    struct bound_session *s = &c->session.now;

    bind_if_it_waits(c);
    if (s->again_ms > 0 && c->now_ms >= s->again_ms) {
        session_ask(c);
    }
    if (s->ack_ms > 0 && c->now_ms >= s->ack_ms && s->state == BIND_HELD && s->keeps) {
        s->ack_ms = 0;
        s->unacked_size = 0;
        s->unacked_count = 0;
        say_ack(c);
    }
}
