/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes from a gateway. Bytes that make no sense end the connection, not the
 * client.
 */
#include "client/inside.h"

#include "base/big.h"

#include <string.h>

enum {
    HELLO_ACK_SIZE = 24,
    AUTH_OK_HEADER = 11,
    ACK_AUTH = 1,
    RESPONSE_HEADER = 9,
    PUSH_HEADER = 8,
    NOTICE_HEADER = 4,
    BEGUN_SIZE = SESSION_SIZE + 8 + 4,
    AGAIN_MS = 200,
    PING_MAX = 64,
    LEAVE_MS = 10000, /* the gateway itself waits no longer */
    KICK_REPLACED = 1,
    KICK_TOO_LARGE = 101,
    KICK_NO_HELLO = 102,
    KICK_SILENT = 104,
    KICK_NO_MEMORY = 105,
    KICK_NO_AUTH = 106,
    KICK_TOKEN_FIRST = 107, /* what was shown to say who it is … */
    KICK_LOGIN_LAST = 113,  /* … was no good */
};

static const uint8_t *data_of(struct rhc_bytes b)
{
    return b.data;
}

static struct rhc_bytes behind(struct rhc_bytes b, size_t size)
{
    return bytes_at(data_of(b) + size, b.size - size);
}

static bool makes_no_sense(struct rhc *c)
{
    give_up(c, "the gateway sent an invalid packet");
    return false;
}

/* ---- hello, auth ---- */

/* Who shows what it had at first is who it was then. */
static void go_home(struct rhc *c)
{
    if (c->given_size == 0 && c->home.state != BIND_NONE) {
        c->session = c->home;
        c->home.state = BIND_NONE;
    }
}

static bool on_hello_ack(struct rhc *c, struct rhc_bytes body)
{
    const uint8_t *at = body.data;

    if (c->greeted || body.size < HELLO_ACK_SIZE || at[0] != 1) {
        return makes_no_sense(c);
    }
    if (big_get32(at + 8) < BODY_LEAST) {
        return makes_no_sense(c);
    }
    c->greeted = true;
    c->heartbeat_ms = big_get32(at + 4);
    c->body_max = big_get32(at + 8);
    log_limit(&c->log, HEAD + c->body_max);
    if ((big_get16(at + 2) & ACK_AUTH) == 0) {
        go_on(c);
    } else if (c->token[0] != '\0' || c->given_size > 0) {
        go_home(c);
        say_auth(c);
    } else {
        be_kicked(c, KICK_NO_AUTH, bytes_at("the gateway asks for a token", 25));
    }
    return false;
}

/* An entity: u64 expires, u16 kind, u8 size, id, perhaps u16 size, token. */
static bool take_entity(struct rhc *c, struct rhc_bytes body, enum rhc_event_type type,
                        struct rhc_event *event)
{
    const uint8_t *at = body.data;

    if (body.size < AUTH_OK_HEADER || at[10] == 0 || body.size - AUTH_OK_HEADER < at[10]) {
        return false;
    }
    const struct rhc_bytes rest = behind(body, AUTH_OK_HEADER + at[10]);
    const size_t size = rest.size < 2 ? 0 : big_get16(rest.data);
    if (size > TOKEN_MAX || (size > 0 && size > rest.size - 2)) {
        return false;
    }
    if (size > 0) {
        memcpy(c->given, data_of(rest) + 2, size);
    }
    if (size > 0 || type == RHC_EVENT_REBOUND) {
        c->given_size = size;
    }
    *event = (struct rhc_event){
        .type = type, .code = big_get16(at + 8), .payload = bytes_at(at + AUTH_OK_HEADER, at[10])};
    return true;
}

static bool on_auth_ok(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (!c->greeted || c->known || !take_entity(c, body, RHC_EVENT_KNOWN, event)) {
        return makes_no_sense(c);
    }
    go_on(c);
    return true;
}

/* ---- bind ---- */

/* The fields of a session that is kept, and begins: its pushes count from 1, and if the next one is
 * a later one, those between are lost. */
static void take_session(struct client_state_session *s, struct rhc_bytes payload)
{
    s->keeps = payload.size >= BEGUN_SIZE;
    s->pushed = 0;
    if (s->keeps) {
        memcpy(s->name, payload.data, SESSION_SIZE);
    }
}

static bool bound(struct rhc *c, struct rhc_bytes payload, struct rhc_event *event)
{
    struct client_state_session *s = &c->session;
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
    c->log.in_session = s->keeps;
    *event = (struct rhc_event){.type = RHC_EVENT_BOUND, .fresh = !resumed};
    if (c->state == RHC_GREETING) {
        be_ready(c);
    }
    return true;
}

static bool refused(struct rhc *c, unsigned status, struct rhc_bytes payload,
                    struct rhc_event *event)
{
    c->session.state = BIND_NONE;
    c->session.keeps = false;
    *event = (struct rhc_event){.type = RHC_EVENT_REFUSED, .status = status, .payload = payload};
    if (c->state == RHC_GREETING) {
        be_ready(c);
    }
    return true;
}

static uint32_t within(uint32_t retry_ms)
{
    return retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS;
}

static void bind_again(struct rhc *c, uint32_t retry_ms)
{
    c->session.again_ms = c->now_ms + jittered(c, retry_ms > 0 ? within(retry_ms) : AGAIN_MS);
    c->greet_by_ms = c->session.again_ms + c->greet_ms;
}

/* There is nothing to resume: begin afresh. */
static void bind_afresh(struct rhc *c)
{
    c->session.keeps = false;
    c->session.state = BIND_ASKED;
    c->log.in_session = false;
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
    struct client_state_session *s = &c->session;

    switch (status) {
    case RHC_BAD_REQUEST:
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

static bool on_bind_answer(struct rhc *c, unsigned status, uint32_t retry_ms,
                           struct rhc_bytes payload, struct rhc_event *event)
{
    const struct client_state_session *s = &c->session;

    if (s->state != BIND_ASKED && s->state != BIND_RESUMING) {
        return false;
    }
    if (status == RHC_OK) {
        return bound(c, payload, event);
    }
    return s->state == BIND_RESUMING ? on_resume_refused(c, status, retry_ms, payload, event)
                                     : on_bind_refused(c, status, retry_ms, payload, event);
}

static bool on_unbind_answer(struct rhc *c, struct rhc_event *event)
{
    if (c->session.state != BIND_LEAVING) {
        return false;
    }
    c->session = (struct client_state_session){.state = BIND_NONE, .plain = c->session.plain};
    c->log.in_session = false;
    log_forget_session(&c->log);
    *event = (struct rhc_event){.type = RHC_EVENT_UNBOUND};
    return true;
}

void bind_if_it_waits(struct rhc *c)
{
    // Behind a bind, nothing of before is answered.
    if (c->session.waits && c->state == RHC_READY && !log_owes(&c->log)) {
        go_on(c);
    }
}

static bool on_rebound(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    struct client_state_session *s = &c->session;

    if (!c->known || !take_entity(c, body, RHC_EVENT_REBOUND, event)) {
        return makes_no_sense(c);
    }
    if (s->state != BIND_HELD) {
        return true; // it is leaving
    }
    if (c->home.state == BIND_NONE) {
        c->home = (struct client_state_session){
            .state = BIND_WANTED, .kind = s->kind, .id_size = s->id_size};
        memcpy(c->home.id, s->id, s->id_size);
    }
    c->log.in_session = false;
    log_forget_session(&c->log);
    *s = (struct client_state_session){.state = BIND_WANTED,
                                       .kind = (uint16_t)event->code,
                                       .id_size = (uint8_t)event->payload.size,
                                       .waits = true};
    memcpy(s->id, event->payload.data, event->payload.size);
    bind_if_it_waits(c);
    return true;
}

/* ---- answers, pushes ---- */

static bool on_response(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (body.size < RESPONSE_HEADER) {
        return makes_no_sense(c);
    }
    const uint8_t *at = body.data;
    const uint32_t name = big_get32(at);
    const unsigned status = at[4];
    const uint32_t retry_ms = big_get32(at + 5);
    const struct rhc_bytes payload = behind(body, RESPONSE_HEADER);

    if (name == NAME_BIND) {
        return on_bind_answer(c, status, retry_ms, payload, event);
    }
    if (name == NAME_UNBIND) {
        return on_unbind_answer(c, event);
    }
    struct asked_entry *e = log_find(&c->log, name);

    if (e == NULL) {
        return false; // it has ended here, as nobody answered in time
    }
    if (status == RHC_MOVING && c->state == RHC_LEAVING) {
        // It never ran: it goes to the next gateway, in its place. Of what was sent by an earlier
        // connection this one can't know.
        if (!log_is_again(&c->log, e)) {
            e->sent = false;
            e->kept = false;
        }
        return false;
    }
    *event = (struct rhc_event){.type = RHC_EVENT_RESPONSE,
                                .status = status,
                                .retry_ms = retry_ms,
                                .request = name,
                                .payload = payload,
                                .done = e->done,
                                .context = e->context};
    log_over(&c->log, e);
    note_heard(c, body.size);
    bind_if_it_waits(c);
    return true;
}

static bool on_push(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    struct client_state_session *s = &c->session;

    if (body.size < PUSH_HEADER) {
        return makes_no_sense(c);
    }
    const uint64_t sequence = big_get64(body.data);

    if (s->state == BIND_HELD && !s->keeps && sequence == 1) {
        s->pushed = 0; // the actor, begun afresh
    }
    if (s->state != BIND_HELD || sequence <= s->pushed) {
        return false;
    }
    *event = (struct rhc_event){.type = RHC_EVENT_PUSH,
                                .sequence = sequence,
                                .lost = sequence - s->pushed - 1,
                                .payload = behind(body, PUSH_HEADER)};
    s->pushed = sequence;
    note_heard(c, body.size);
    return true;
}

static bool on_begun(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (body.size < BEGUN_SIZE) {
        return makes_no_sense(c);
    }
    if (c->session.state != BIND_HELD) {
        return false;
    }
    take_session(&c->session, body);
    log_forget_session(&c->log);
    *event = (struct rhc_event){.type = RHC_EVENT_BEGUN};
    return true;
}

/* ---- the gateway's own words ---- */

static bool on_goaway(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (body.size < NOTICE_HEADER) {
        return makes_no_sense(c);
    }
    const uint32_t retry_ms = big_get32(body.data);

    *event = (struct rhc_event){
        .type = RHC_EVENT_GOAWAY, .retry_ms = retry_ms, .payload = behind(body, NOTICE_HEADER)};
    c->retry_ms = within(retry_ms);
    if (c->state == RHC_READY) {
        c->state = RHC_LEAVING;
        c->leave_by_ms = c->now_ms + LEAVE_MS;
    } else if (c->state == RHC_GREETING) {
        give_up(c, "the gateway accepts no clients now");
    }
    return true;
}

static bool is_final(uint32_t code)
{
    switch (code) {
    case KICK_NO_HELLO: // the way there took too long
    case KICK_NO_AUTH:
    case KICK_SILENT:
    case KICK_NO_MEMORY:
        return false;
    default:
        return true;
    }
}

static bool on_kick(struct rhc *c, struct rhc_bytes body)
{
    if (body.size < NOTICE_HEADER) {
        return makes_no_sense(c);
    }
    const uint32_t code = big_get32(body.data);

    if (c->showed_given && !c->known && code >= KICK_TOKEN_FIRST && code <= KICK_LOGIN_LAST) {
        c->given_size = 0; // it is over: log in again
        give_up(c, "the token from the gateway is no longer valid");
    } else if (is_final(code) && !(code == KICK_TOO_LARGE && log_blame(&c->log))) {
        be_kicked(c, code, behind(body, NOTICE_HEADER));
    } else {
        c->session.keeps = false; // a kick ends it
        give_up(c, "the gateway kicked the client");
    }
    return false;
}

static bool on_ping(struct rhc *c, struct rhc_bytes body)
{
    if (body.size > PING_MAX) {
        return makes_no_sense(c);
    }
    say_ping(c, P_PONG, body);
    return false;
}

bool hear(struct rhc *c, uint8_t type, struct rhc_bytes body, struct rhc_event *event)
{
    const bool asked = type == P_RESPONSE || type == P_PUSH || type == P_BEGUN;

    if (asked && !c->known) {
        return makes_no_sense(c);
    }
    switch (type) {
    case P_HELLO_ACK:
        return on_hello_ack(c, body);
    case P_AUTH_OK:
        return on_auth_ok(c, body, event);
    case P_PING:
        return on_ping(c, body);
    case P_PONG:
        return false;
    case P_KICK:
        return on_kick(c, body);
    case P_RESPONSE:
        return on_response(c, body, event);
    case P_PUSH:
        return on_push(c, body, event);
    case P_GOAWAY:
        return on_goaway(c, body, event);
    case P_REBOUND:
        return on_rebound(c, body, event);
    case P_BEGUN:
        return on_begun(c, body, event);
    default:
        return type < P_LATER && makes_no_sense(c);
    }
}
