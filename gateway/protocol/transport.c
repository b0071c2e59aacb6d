/* SPDX-License-Identifier: Apache-2.0
 *
 * Unwraps a client's bytes from TLS and WebSocket, and wraps the replies.
 */
#include "gateway/protocol/transport.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/protocol/frame16.h"
#include "gateway/protocol/packet.h"
#include "gateway/protocol/websocket.h"
#include "link/tls.h"

#include <string.h>

struct client_transport {
    const struct transport_rules *rules; /* borrowed */
    enum transport_state state;
    bool websocket; /* is to be one */
    uint64_t since_us;
    struct tls *tls;        /* owned; NULL = without */
    struct buffer head;     /* of the WebSocket's handshake, until it is whole */
    size_t scanned;         /* of it */
    struct websocket *ws;   /* owned; NULL until its handshake is done */
    bool framed;            /* in skynet's frames */
    struct frame16 frame;   /* of those that come */
    struct buffer farewell; /* what it is told once it is open, and then that it ends */
    struct buffer said;     /* what TLS is to carry, of this call */
    struct buffer out;
};

static void count(struct client_transport *c, enum transport_event event)
{
    c->rules->stats->count[event]++;
}

/* Where to say what the WebSocket says. */
static struct buffer *mouth(struct client_transport *c)
{
    return c->tls == NULL ? &c->out : &c->said;
}

/* It goes into TLS, which may break over it: whatever is to follow could never be read. */
static void put_records(struct client_transport *c, struct bytes plain)
{
    tls_put(c->tls, plain, &c->out);
    if (tls_state(c->tls) == TLS_ENDED && c->state != TRANSPORT_ENDED) {
        count(c, TRANSPORT_TLS_BROKEN);
        c->state = TRANSPORT_ENDED;
    }
}

/* The end of each call: what was said in it goes into TLS. */
static void seal(struct client_transport *c)
{
    if (c->tls == NULL) {
        return;
    }
    if (tls_state(c->tls) == TLS_OPEN) {
        put_records(c, buffer_bytes(&c->said));
    }
    buffer_fini(&c->said);
    if (c->state == TRANSPORT_ENDED) {
        tls_close(c->tls, &c->out);
    }
}

/* ---- the WebSocket's handshake ---- */

static enum transport_event event_of_refusal(enum upgrade_result why)
{
    switch (why) {
    case UPGRADE_FORBIDDEN:
        return TRANSPORT_HTTP_FORBIDDEN;
    case UPGRADE_NOT_FOUND:
        return TRANSPORT_HTTP_NOT_FOUND;
    case UPGRADE_METHOD:
        return TRANSPORT_HTTP_METHOD;
    case UPGRADE_TIMEOUT:
        return TRANSPORT_HTTP_TIMEOUT;
    case UPGRADE_REQUIRED:
        return TRANSPORT_HTTP_UPGRADE_REQUIRED;
    case UPGRADE_TOO_LARGE:
        return TRANSPORT_HTTP_TOO_LARGE;
    case UPGRADE_FULL:
        return TRANSPORT_HTTP_FULL;
    case UPGRADE_BAD_REQUEST:
    case UPGRADE_GOOD:
    case UPGRADE_MORE:
        break;
    }
    return TRANSPORT_HTTP_BAD_REQUEST;
}

static void refuse(struct client_transport *c, enum upgrade_result why, uint32_t retry_s)
{
    count(c, event_of_refusal(why));
    upgrade_put_refusal(mouth(c), why, retry_s);
    buffer_fini(&c->head);
    c->state = TRANSPORT_ENDED;
}

static enum transport_event event_of_end(enum websocket_end end)
{
    switch (end) {
    case WEBSOCKET_TEXT:
        return TRANSPORT_WS_TEXT;
    case WEBSOCKET_BAD_UTF8:
        return TRANSPORT_WS_BAD_UTF8;
    case WEBSOCKET_BAD_MESSAGE:
        return TRANSPORT_WS_BAD_MESSAGE;
    case WEBSOCKET_PINGS:
        return TRANSPORT_WS_PINGS;
    case WEBSOCKET_TOO_LARGE:
        return TRANSPORT_WS_TOO_LARGE;
    case WEBSOCKET_LEFT:
        return TRANSPORT_WS_LEFT;
    case WEBSOCKET_OPEN:
    case WEBSOCKET_PROTOCOL:
        break;
    }
    return TRANSPORT_WS_PROTOCOL;
}

static void on_frames(struct client_transport *c, struct bytes in, struct buffer *plain)
{
    websocket_on_bytes(c->ws, in, plain, mouth(c));
    if (websocket_end(c->ws) != WEBSOCKET_OPEN) {
        count(c, event_of_end(websocket_end(c->ws)));
        c->state = TRANSPORT_ENDED;
    }
}

/* It is open, but not to stay. */
static void say_farewell(struct client_transport *c)
{
    count(c, TRANSPORT_TOLD);
    if (c->ws != NULL) {
        websocket_put(c->ws, buffer_bytes(&c->farewell), mouth(c));
        websocket_close(c->ws, WEBSOCKET_TRY_AGAIN, mouth(c));
    } else {
        buffer_put(mouth(c), c->farewell.data, c->farewell.size);
    }
    c->state = TRANSPORT_ENDED;
}

static void on_handshake(struct client_transport *c, struct bytes in, struct buffer *plain)
{
    struct upgrade upgrade;

    buffer_put(&c->head, in.data, in.size);
    const enum upgrade_result result =
        upgrade_parse(buffer_bytes(&c->head), &c->scanned, &c->rules->upgrade, &upgrade);
    if (result == UPGRADE_MORE) {
        return;
    }
    if (result != UPGRADE_GOOD) {
        refuse(c, result, 0);
        return;
    }
    struct buffer head = c->head;

    c->head = (struct buffer){0};
    upgrade_put_answer(mouth(c), &upgrade);
    c->ws = websocket_new(c->rules->packet_size_max + PACKET_HEADER);
    c->state = TRANSPORT_OPEN;
    if (c->farewell.size > 0) {
        say_farewell(c);
    } else {
        count(c, TRANSPORT_WS_OPENED);
        on_frames(c, bytes_of(head.data + upgrade.size, head.size - upgrade.size), plain);
    }
    buffer_fini(&head);
}

static void on_http(struct client_transport *c, struct bytes in, struct buffer *plain)
{
    if (c->state == TRANSPORT_OPENING) {
        on_handshake(c, in, plain);
    } else if (c->state == TRANSPORT_OPEN) {
        on_frames(c, in, plain);
    }
}

/* ---- TLS ---- */

static enum transport_event event_of_tls(enum tls_end end)
{
    switch (end) {
    case TLS_PLAIN:
        return TRANSPORT_TLS_PLAIN;
    case TLS_UNSHARED:
        return TRANSPORT_TLS_UNSHARED;
    case TLS_ALERT:
        return TRANSPORT_TLS_ALERT;
    case TLS_HANDSHAKE:
    case TLS_NO_CERTIFICATE: // this and the next two: no player is asked for one
    case TLS_UNTRUSTED:
    case TLS_EXPIRED:
        return TRANSPORT_TLS_HANDSHAKE;
    case TLS_BROKEN:
    case TLS_CLOSED:
        break;
    }
    return TRANSPORT_TLS_BROKEN;
}

static void on_tls_opened(struct client_transport *c)
{
    count(c, TRANSPORT_TLS_OPENED);
    if (!c->websocket && c->farewell.size > 0) {
        say_farewell(c);
    } else if (!c->websocket) {
        c->state = TRANSPORT_OPEN;
    }
}

/* A WebSocket has a word of its own for going; without it, it is over. */
static void on_tls_over(struct client_transport *c)
{
    if (c->state == TRANSPORT_ENDED) {
        return;
    }
    if (tls_state(c->tls) == TLS_ENDED) {
        count(c, event_of_tls(tls_end(c->tls)));
        c->state = TRANSPORT_ENDED;
    } else if (tls_has_left(c->tls)) {
        count(c, TRANSPORT_TLS_LEFT);
        c->state = c->websocket ? TRANSPORT_ENDED : c->state;
    }
}

static void on_records(struct client_transport *c, struct bytes in, struct buffer *plain)
{
    const bool was_open = tls_has_opened(c->tls);
    struct buffer http = {0};

    if (c->state == TRANSPORT_ENDED || tls_has_left(c->tls)) {
        return;
    }
    tls_on_bytes(c->tls, in, c->websocket ? &http : plain, &c->out);
    if (!was_open && tls_has_opened(c->tls)) {
        on_tls_opened(c);
    }
    if (http.size > 0) {
        on_http(c, buffer_bytes(&http), plain);
    }
    on_tls_over(c);
    buffer_fini(&http);
}

/* ---- skynet's frames ---- */

static void put_kick(struct client_transport *c, enum packet_kick code, const char *why)
{
    struct buffer kick = {0};

    packet_put_notice(&kick,
                      PACKET_KICK,
                      &(struct notice_packet){.number = code, .text = bytes_of(why, strlen(why))});
    (void)frame16_put(buffer_bytes(&kick), &c->out);
    buffer_fini(&kick);
    c->state = TRANSPORT_ENDED;
}

static void on_frames16(struct client_transport *c, struct bytes in, struct buffer *plain)
{
    if (c->state == TRANSPORT_OPEN && !frame16_on_bytes(&c->frame, in, plain)) {
        count(c, TRANSPORT_FRAME_EMPTY);
        put_kick(c, PACKET_KICK_BAD_PACKET, "a frame without a type");
    }
}

static void put_frames16(struct client_transport *c, struct bytes plain)
{
    if (!frame16_put(plain, &c->out)) {
        count(c, TRANSPORT_FRAME_TOO_LARGE);
        put_kick(c, PACKET_KICK_TOO_LARGE, "an answer or a push is too large for a frame");
    }
}

/* ---- events ---- */

void transport_on_bytes(struct client_transport *c, struct bytes in, struct buffer *plain)
{
    if (c->tls != NULL) {
        on_records(c, in, plain);
    } else if (c->framed) {
        on_frames16(c, in, plain);
    } else {
        on_http(c, in, plain);
    }
    seal(c);
    if (c->state == TRANSPORT_OPEN && c->out.size > TRANSPORT_UNREAD_MAX) {
        count(c, TRANSPORT_UNREAD);
        buffer_fini(&c->out);
        c->state = TRANSPORT_ENDED;
    }
}

bool transport_has_left(const struct client_transport *c)
{
    return c->tls != NULL && tls_has_left(c->tls);
}

void transport_on_end(struct client_transport *c)
{
    if (c->state != TRANSPORT_ENDED && c->tls != NULL && !tls_has_left(c->tls)) {
        count(c, tls_has_opened(c->tls) ? TRANSPORT_TLS_CUT : TRANSPORT_TLS_GAVE_UP);
    }
    c->state = TRANSPORT_ENDED;
}

static void on_late(struct client_transport *c)
{
    if (c->tls != NULL && !tls_has_opened(c->tls)) {
        count(c, TRANSPORT_TLS_TIMEOUT);
        c->state = TRANSPORT_ENDED;
    } else {
        refuse(c, UPGRADE_TIMEOUT, 0);
    }
}

void transport_tick(struct client_transport *c, uint64_t now_us)
{
    const uint64_t opening_us = (uint64_t)c->rules->opening_ms * 1000;

    if (c->state == TRANSPORT_OPENING && now_us - c->since_us > opening_us) {
        on_late(c);
    } else if (c->ws != NULL) {
        websocket_rest(c->ws);
    }
    seal(c);
}

void transport_put(struct client_transport *c, struct bytes plain)
{
    ASSERT(c->state == TRANSPORT_OPEN);
    if (c->ws != NULL) {
        websocket_put(c->ws, plain, mouth(c));
        seal(c);
    } else if (c->framed) {
        put_frames16(c, plain);
    } else {
        put_records(c, plain);
    }
}

void transport_close(struct client_transport *c, bool leaving)
{
    if (c->state == TRANSPORT_OPEN && c->ws != NULL) {
        websocket_close(c->ws, leaving ? WEBSOCKET_GOING_AWAY : WEBSOCKET_NORMAL, mouth(c));
    }
    c->state = TRANSPORT_ENDED;
    seal(c);
}

void transport_part(struct client_transport *c, struct bytes words)
{
    buffer_put(&c->farewell, words.data, words.size);
}

void transport_refuse(struct client_transport *c, struct bytes words)
{
    struct notice_packet notice = {.number = 0};
    struct packet p;

    if (c->tls != NULL) {
        count(c, TRANSPORT_TLS_FULL);
        c->state = TRANSPORT_ENDED; // nobody could read a word yet
        return;
    }
    if (c->framed) {
        put_frames16(c, words);
        c->state = TRANSPORT_ENDED;
        return;
    }
    if (packet_next(words, PACKET_BODY_MAX, &p) == PACKET_WHOLE &&
        packet_get_notice(p.body, &notice) != ERR_OK) {
        notice.number = 0;
    }
    refuse(c, UPGRADE_FULL, notice.number / 1000 + 1);
}

/* ---- life ---- */

const char *transport_event_name(enum transport_event event)
{
#define TRANSPORT_NAME(name, text) text,
    static const char *const names[TRANSPORT_EVENT_COUNT] = {TRANSPORT_EVENTS(TRANSPORT_NAME)};
#undef TRANSPORT_NAME

    return names[event];
}

struct transport_rules transport_rules_default(void)
{
    return (struct transport_rules){.upgrade = {.path = "/", .origins = ""}, .opening_ms = 5000};
}

struct client_transport *transport_new(enum entry entry, const struct transport_rules *rules,
                                       uint64_t now_us)
{
    const struct entry_shape shape = entry_shape(entry);

    if (!shape.websocket && !shape.tls && !shape.frame16) {
        return NULL;
    }
    struct client_transport *c = mem_new(1, sizeof *c);

    ASSERT(IMPLIES(shape.tls, rules->keys != NULL));
    c->rules = rules;
    c->websocket = shape.websocket;
    c->tls =
        shape.tls ? tls_new(rules->keys, shape.websocket || shape.speech == CLIENT_HTTP) : NULL;
    c->since_us = now_us;
    c->framed = shape.frame16;
    if (c->framed) {
        count(c, TRANSPORT_FRAME_OPENED);
        c->state = TRANSPORT_OPEN;
    }
    return c;
}

void transport_free(struct client_transport *c)
{
    if (c != NULL) {
        buffer_fini(&c->head);
        buffer_fini(&c->farewell);
        buffer_fini(&c->said);
        buffer_fini(&c->out);
        websocket_free(c->ws);
        tls_free(c->tls);
        mem_free(c);
    }
}

enum transport_state transport_state(const struct client_transport *c)
{
    return c->state;
}

struct buffer *transport_output(struct client_transport *c)
{
    return &c->out;
}
