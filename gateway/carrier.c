/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/carrier.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/packet.h"
#include "gateway/websocket.h"

struct carrier {
    const struct carrier_rules *rules; /* borrowed */
    enum carrier_state state;
    uint64_t since_us;
    struct buffer head;   /* of the handshake, until it is whole */
    size_t scanned;       /* of it */
    struct websocket *ws; /* owned; NULL until its handshake is done */
    struct buffer out;
};

static void count(struct carrier *c, enum carrier_event event)
{
    c->rules->figures->count[event]++;
}

/* ---- the handshake ---- */

static enum carrier_event event_of_refusal(enum upgrade_result why)
{
    switch (why) {
    case UPGRADE_FORBIDDEN:
        return CARRIER_HTTP_FORBIDDEN;
    case UPGRADE_NOT_FOUND:
        return CARRIER_HTTP_NOT_FOUND;
    case UPGRADE_METHOD:
        return CARRIER_HTTP_METHOD;
    case UPGRADE_TIMEOUT:
        return CARRIER_HTTP_TIMEOUT;
    case UPGRADE_REQUIRED:
        return CARRIER_HTTP_UPGRADE_REQUIRED;
    case UPGRADE_TOO_LARGE:
        return CARRIER_HTTP_TOO_LARGE;
    case UPGRADE_FULL:
        return CARRIER_HTTP_FULL;
    case UPGRADE_BAD_REQUEST:
    case UPGRADE_GOOD:
    case UPGRADE_MORE:
        break;
    }
    return CARRIER_HTTP_BAD_REQUEST;
}

static void refuse(struct carrier *c, enum upgrade_result why, uint32_t retry_s)
{
    count(c, event_of_refusal(why));
    upgrade_put_refusal(&c->out, why, retry_s);
    buffer_fini(&c->head);
    c->state = CARRIER_ENDED;
}

static enum carrier_event event_of_end(enum websocket_end end)
{
    switch (end) {
    case WEBSOCKET_TEXT:
        return CARRIER_WS_TEXT;
    case WEBSOCKET_BAD_UTF8:
        return CARRIER_WS_BAD_UTF8;
    case WEBSOCKET_BAD_MESSAGE:
        return CARRIER_WS_BAD_MESSAGE;
    case WEBSOCKET_PINGS:
        return CARRIER_WS_PINGS;
    case WEBSOCKET_TOO_LARGE:
        return CARRIER_WS_TOO_LARGE;
    case WEBSOCKET_LEFT:
        return CARRIER_WS_LEFT;
    case WEBSOCKET_OPEN:
    case WEBSOCKET_PROTOCOL:
        break;
    }
    return CARRIER_WS_PROTOCOL;
}

static void on_frames(struct carrier *c, struct bytes in, struct buffer *plain)
{
    websocket_on_bytes(c->ws, in, plain, &c->out);
    if (websocket_end(c->ws) != WEBSOCKET_OPEN) {
        count(c, event_of_end(websocket_end(c->ws)));
        c->state = CARRIER_ENDED;
    } else if (c->out.size > CARRIER_UNREAD_MAX) {
        count(c, CARRIER_UNREAD);
        buffer_fini(&c->out);
        c->state = CARRIER_ENDED;
    }
}

static void on_handshake(struct carrier *c, struct bytes in, struct buffer *plain)
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
    upgrade_put_answer(&c->out, &upgrade);
    count(c, CARRIER_WS_OPENED);
    c->ws = websocket_new(c->rules->packet_size_max + PACKET_HEADER);
    c->state = CARRIER_OPEN;
    on_frames(c, bytes_of(head.data + upgrade.size, head.size - upgrade.size), plain);
    buffer_fini(&head);
}

/* ---- events ---- */

void carrier_on_bytes(struct carrier *c, struct bytes in, struct buffer *plain)
{
    switch (c->state) {
    case CARRIER_OPENING:
        on_handshake(c, in, plain);
        break;
    case CARRIER_OPEN:
        on_frames(c, in, plain);
        break;
    case CARRIER_ENDED:
        break;
    }
}

void carrier_tick(struct carrier *c, uint64_t now_us)
{
    const uint64_t opening_us = (uint64_t)c->rules->opening_ms * 1000;

    if (c->state == CARRIER_OPENING && now_us - c->since_us > opening_us) {
        refuse(c, UPGRADE_TIMEOUT, 0);
    } else if (c->state == CARRIER_OPEN) {
        websocket_rest(c->ws);
    }
}

void carrier_put(struct carrier *c, struct bytes plain)
{
    ASSERT(c->state == CARRIER_OPEN);
    websocket_put(c->ws, plain, &c->out);
}

void carrier_close(struct carrier *c, bool leaving)
{
    if (c->state == CARRIER_OPEN) {
        websocket_close(c->ws, leaving ? WEBSOCKET_GOING_AWAY : WEBSOCKET_NORMAL, &c->out);
    }
    c->state = CARRIER_ENDED;
}

void carrier_refuse(struct carrier *c, struct bytes goaway)
{
    struct notice_packet notice = {.number = 0};
    struct packet p;

    if (packet_next(goaway, PACKET_BODY_MAX, &p) == PACKET_WHOLE &&
        packet_get_notice(p.body, &notice) != ERR_OK) {
        notice.number = 0;
    }
    refuse(c, UPGRADE_FULL, notice.number / 1000 + 1);
}

/* ---- life ---- */

const char *carrier_event_name(enum carrier_event event)
{
#define CARRIER_NAME(name, text) text,
    static const char *const names[CARRIER_EVENT_COUNT] = {CARRIER_EVENTS(CARRIER_NAME)};
#undef CARRIER_NAME

    return names[event];
}

struct carrier_rules carrier_rules_default(void)
{
    return (struct carrier_rules){.upgrade = {.path = "/", .origins = ""}, .opening_ms = 5000};
}

struct carrier *carrier_new(enum entry entry, const struct carrier_rules *rules, uint64_t now_us)
{
    if (!entry_shape(entry).websocket) {
        return NULL;
    }
    struct carrier *c = mem_new(1, sizeof *c);

    c->rules = rules;
    c->since_us = now_us;
    return c;
}

void carrier_free(struct carrier *c)
{
    if (c != NULL) {
        buffer_fini(&c->head);
        buffer_fini(&c->out);
        websocket_free(c->ws);
        mem_free(c);
    }
}

enum carrier_state carrier_state(const struct carrier *c)
{
    return c->state;
}

struct buffer *carrier_output(struct carrier *c)
{
    return &c->out;
}
