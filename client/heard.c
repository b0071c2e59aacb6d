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
    PING_MAX = 64,
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

static bool on_hello_ack(struct rhc *c, struct rhc_bytes body)
{
    const uint8_t *at = body.data;

    if (c->connection.greeted || body.size < HELLO_ACK_SIZE || at[0] != 1) {
        return makes_no_sense(c);
    }
    if (big_get32(at + 8) < BODY_LEAST) {
        return makes_no_sense(c);
    }
    connection_greeted(c, big_get32(at + 4), big_get32(at + 8));
    log_limit(&c->log, HEAD + c->connection.body_max);
    if ((big_get16(at + 2) & ACK_AUTH) == 0) {
        session_go_on(c);
    } else if (login_has(&c->login)) {
        session_go_home(c);
        say_auth(c);
    } else {
        be_kicked(c, KICK_NO_AUTH, bytes_at("the gateway asks for a token", 28));
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
    if (size > 0 || type == RHC_EVENT_REBOUND) {
        login_take(c, size > 0 ? bytes_at(data_of(rest) + 2, size) : bytes_at(NULL, 0));
    }
    *event = (struct rhc_event){
        .type = type, .code = big_get16(at + 8), .payload = bytes_at(at + AUTH_OK_HEADER, at[10])};
    return true;
}

static bool on_auth_ok(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (!c->connection.greeted || c->connection.known ||
        !take_entity(c, body, RHC_EVENT_KNOWN, event)) {
        return makes_no_sense(c);
    }
    session_go_on(c);
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
        return session_on_bind_answer(c, status, retry_ms, payload, event);
    }
    if (name == NAME_UNBIND) {
        return session_on_unbind_answer(c, event);
    }
    struct asked_entry *e = log_find(&c->log, name);

    if (e == NULL) {
        return false; // it has ended here, as nobody answered in time
    }
    if (status == RHC_MOVING && c->connection.state == RHC_LEAVING) {
        // It never ran: it goes to the next gateway, in its place. Of what was sent by an earlier
        // connection this one can't know.
        if (!log_is_again(&c->log, e)) {
            log_never_ran(e);
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
    if (body.size < PUSH_HEADER) {
        return makes_no_sense(c);
    }
    const uint64_t sequence = big_get64(body.data);
    uint64_t lost = 0;

    if (!session_on_push(c, sequence, &lost)) {
        return false;
    }
    *event = (struct rhc_event){.type = RHC_EVENT_PUSH,
                                .sequence = sequence,
                                .lost = lost,
                                .payload = behind(body, PUSH_HEADER)};
    note_heard(c, body.size);
    return true;
}

static bool on_begun(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (body.size < BEGUN_SIZE) {
        return makes_no_sense(c);
    }
    if (!session_on_begun(c, body)) {
        return false;
    }
    *event = (struct rhc_event){.type = RHC_EVENT_BEGUN};
    return true;
}

static bool on_rebound(struct rhc *c, struct rhc_bytes body, struct rhc_event *event)
{
    if (!c->connection.known || !take_entity(c, body, RHC_EVENT_REBOUND, event)) {
        return makes_no_sense(c);
    }
    session_on_rebound(c, event);
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
    connection_goaway(c, retry_ms);
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

    if (c->login.showed_given && !c->connection.known && code >= KICK_TOKEN_FIRST &&
        code <= KICK_LOGIN_LAST) {
        login_forget(c); // log in again
        give_up(c, "the token from the gateway is no longer valid");
    } else if (is_final(code) && !(code == KICK_TOO_LARGE && log_blame(&c->log))) {
        be_kicked(c, code, behind(body, NOTICE_HEADER));
    } else {
        session_end(c);
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

    if (asked && !c->connection.known) {
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
