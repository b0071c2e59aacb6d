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
    struct client_state_session *s = &c->session;

    if (s->state == BIND_LEAVING) {
        *s = (struct client_state_session){.state = BIND_NONE, .plain = s->plain};
        c->tell_unbound = true;
    } else if (s->state != BIND_NONE) {
        s->state = BIND_WANTED;
    }
    s->plain = false; // the next gateway may be a newer one
}

void be_ready(struct rhc *c)
{
    c->state = RHC_READY;
    c->ready_ms = c->now_ms;
    c->tell_ready = true;
}

void session_ask(struct rhc *c)
{
    struct client_state_session *s = &c->session;

    s->again_ms = 0;
    s->state = s->keeps ? BIND_RESUMING : BIND_ASKED;
    if (s->keeps) {
        say_resume(c);
    } else {
        say_bind(c);
    }
}

void go_on(struct rhc *c)
{
    c->known = true;
    c->session.waits = false;
    if (c->session.state == BIND_NONE) {
        be_ready(c);
    } else {
        session_ask(c);
    }
}

void note_heard(struct rhc *c, size_t size)
{
    struct client_state_session *s = &c->session;

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
    struct client_state_session *s = &c->session;

    if (s->state != BIND_NONE || id.size < 1 || id.size > UINT8_MAX) {
        return RHC_INVALID;
    }
    *s = (struct client_state_session){
        .state = BIND_WANTED, .kind = kind, .id_size = (uint8_t)id.size};
    memcpy(s->id, id.data, id.size);
    if (c->state == RHC_READY) {
        session_ask(c);
    }
    return RHC_DONE;
}

int rhc_unbind(struct rhc *c)
{
    if (c == NULL) {
        return RHC_INVALID;
    }
    struct client_state_session *s = &c->session;

    if (s->state == BIND_NONE || s->state == BIND_LEAVING) {
        return RHC_INVALID;
    }
    c->home.state = BIND_NONE;
    if (s->state == BIND_HELD) {
        s->state = BIND_LEAVING;
        say_unbind(c);
    } else if (s->state == BIND_WANTED) {
        *s = (struct client_state_session){.state = BIND_NONE};
        log_forget_session(&c->log);
        log_rewind(&c->log, false);
        c->tell_unbound = true;
    } else {
        return RHC_INVALID; // its answer comes soon
    }
    return RHC_DONE;
}

void session_tend(struct rhc *c)
{
    struct client_state_session *s = &c->session;

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
