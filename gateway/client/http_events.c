/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor pushes, as server-sent events (HTML, 9.2). The session is kept as a player's is
 * (docs/decisions/019-resume.md): each event's id names it and the last push, so that a client that
 * comes back with Last-Event-ID goes on behind that one, at any gateway.
 */
#include "gateway/client/http_inside.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/format.h"
#include "base/plain.h"

#include <inttypes.h>
#include <string.h>

enum {
    KEEP_ALIVE_US = 15 * 1000 * 1000,
    EVENT_NAME_SIZE = 24,                              /* of a session, in bytes */
    EVENT_NAME_LETTERS = BASE64_SIZE(EVENT_NAME_SIZE), /* and in letters */
    NUMBER_DIGITS_MAX = 20,
};

/* ---- ids: the session's name, a dot, the number of the last push */

bool http_event_id(struct bytes text, struct return_packet *out)
{
    uint8_t name[PACKET_RETURN_SIZE] = {0};
    size_t size = 0;
    uint64_t number = 0;

    if (text.size < EVENT_NAME_LETTERS + 2 || text.data[EVENT_NAME_LETTERS] != '.' ||
        text.size > EVENT_NAME_LETTERS + 1 + NUMBER_DIGITS_MAX - 1 ||
        base64_get(
            bytes_of(text.data, EVENT_NAME_LETTERS), BASE64_URL, name, EVENT_NAME_SIZE, &size) !=
            ERR_OK ||
        size != EVENT_NAME_SIZE) {
        return false;
    }
    for (size_t i = EVENT_NAME_LETTERS + 1; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (packet_get_return(bytes_of(name, sizeof name), out) != ERR_OK) {
        return false;
    }
    out->has.pushes = number;
    return out->name.key != 0 && out->name.session != 0;
}

/* The line "id: …"; nothing, if the session is not kept. */
static void put_id(struct buffer *out, const struct client *c, uint64_t number)
{
    uint8_t name[PACKET_SESSION_SIZE];
    struct session_packet session;

    if (!binding_name(c, &session) || session.name.session == 0) {
        return;
    }
    packet_put_session(name, &session);
    buffer_put(out, "id: ", 4);
    base64_put(out, bytes_of(name, EVENT_NAME_SIZE));
    buffer_put_format(out, ".%" PRIu64 "\n", number);
}

/* ---- events ---- */

/* A line for each line of the text. */
static void put_lines(struct buffer *out, struct bytes text)
{
    do {
        const uint8_t *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
        const size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        const size_t used = end == NULL ? size : size + 1;

        buffer_put(out, "data: ", 6);
        buffer_put(out, text.data, size);
        buffer_put(out, "\n", 1);
        if (end != NULL && used == text.size) {
            buffer_put(out, "data: \n", 7); // a last line that is empty is one
        }
        text = bytes_of(text.data + used, text.size - used);
    } while (text.size > 0);
    buffer_put(out, "\n", 1);
}

static void say(struct client *c)
{
    c->http->said_us = c->now_us;
}

/* `what` and its session: it is new, or is gone on with. */
static void put_session(struct buffer *out, const struct client *c, const char *what)
{
    struct session_packet session = {.next = 1};

    (void)binding_name(c, &session);
    buffer_put_format(out, "event: %s\n", what);
    put_id(out, c, session.next - 1);
    buffer_put_format(out,
                      "data: {\"next\":%" PRIu64 ",\"keep_ms\":%" PRIu32 "}\n\n",
                      session.next,
                      session.keep_ms);
}

void http_push(struct client *c, struct bytes key, const struct push_record *push)
{
    struct bytes text = push->payload;

    (void)key; // a connection is bound to one actor
    if (plain_is_lines((const char *)text.data, text.size)) {
        put_id(&c->out, c, push->number);
        put_lines(&c->out, text);
    } else {
        buffer_put_format(&c->out, "event: base64\n");
        put_id(&c->out, c, push->number);
        buffer_put(&c->out, "data: ", 6);
        base64_put(&c->out, text);
        buffer_put(&c->out, "\n\n", 2);
    }
    say(c);
}

/* It may come while answers before the one that begins the events are owed still. */
void http_kick(struct client *c, uint32_t code, struct bytes text)
{
    struct buffer *out = &c->all->body;

    buffer_clear(out);
    buffer_put_format(out, "event: kick\ndata: {\"code\":%" PRIu32 ",\"text\":", code);
    http_put_json_text(out, text);
    buffer_put(out, "}\n\n", 3);
    http_put_local(c, buffer_bytes(out));
}

void http_begun(struct client *c)
{
    struct buffer *out = &c->all->body;

    if (c->http->streaming) { // else the answer to the request says it
        buffer_clear(out);
        put_session(out, c, "begun");
        http_put_local(c, buffer_bytes(out)); // as a kick
        say(c);
    }
}

/* It is to listen to that entity instead, by another request. */
void http_rebound(struct client *c, const struct rebind *to)
{
    char name[ACTOR_NAME_SIZE];
    struct auth_ok_packet who;
    struct buffer token = {0};

    auth_become(c, to, &who, &token);
    buffer_put_format(&c->out,
                      "event: rebound\ndata: {\"actor\":\"%s\",\"token\":",
                      actor_name_print(to->kind, bytes_of(to->id, to->id_size), name));
    http_put_json_text(&c->out, who.token);
    buffer_put(&c->out, "}\n\n", 3);
    buffer_fini(&token);
    client_close(c);
}

void http_keep_alive(struct client *c)
{
    if (c->http->streaming && slots_count(&c->slots) == 0 &&
        c->now_us - c->http->said_us > KEEP_ALIVE_US) {
        buffer_put(&c->out, ":\n\n", 3);
        say(c);
    }
}

/* ---- the beginning ---- */

void http_listen(struct client *c, const struct http_asking *a)
{
    const uint64_t ticket = ticket_of(c->slots.tail, 0);

    if (binding_ask(c, a->to.id, &a->to, &a->wish, ticket)) {
        (void)client_add_slot(c, SLOT_BIND, 1, NULL);
    } else {
        http_refuse(c, HTTP_NO_SESSION, a->path, true);
    }
}

bool http_is_answered(const struct client *c, uint64_t ticket)
{
    return c->slots.head > ticket_slot(ticket);
}

void http_bind_over(struct client *c, uint64_t ticket, enum bound_result result, const char *why)
{
    const bool gone = result == BOUND_GONE || result == BOUND_OLD;
    const enum http_refusal refusal = gone ? HTTP_SESSION_GONE : HTTP_NO_SESSION;
    struct slot *slot = slots_at(&c->slots, ticket_slot(ticket));

    ASSERT(slot != NULL);
    const size_t before = slot->text.size;
    if (why == NULL) {
        http_put_head(
            &slot->text, 200, &(struct http_head){.type = "text/event-stream", .stream = true});
        put_session(&slot->text, c, "session");
        c->http->streaming = true;
        say(c);
    } else {
        http_put_refusal(c, &slot->text, refusal, why);
        client_close(c);
    }
    http_fill_slot(c, slot, before);
}

void http_bind_failed(struct client *c, const struct router_effect *reply, struct bytes body)
{
    struct slot *slot = slots_at(&c->slots, ticket_slot(reply->ticket));

    ASSERT(slot != NULL);
    const size_t before = slot->text.size;
    http_put_reply(c, &slot->text, HTTP_FORM_LAST, reply, body);
    client_close(c);
    http_fill_slot(c, slot, before);
}
