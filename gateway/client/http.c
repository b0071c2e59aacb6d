/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that speak HTTP: back ends that call and tell actors, ask where they live, and listen to
 * what they push (docs/http.md).
 *
 *     AWAITED   -the first byte of a request-> COMING   -nothing for a minute-> closed
 *     COMING    -whole, and it is allowed-> asked, AWAITED   -head_ms, then BODY_US-> 408, closed
 *               -refused by what it asks-> answered, the rest of it is dropped, AWAITED
 *               -refused by how it is written-> answered, closed
 *     AWAITED   -a request for events, and the actor binds-> LISTENING
 *     LISTENING -it sends something, the actor ends it-> closed
 *
 * Requests are asked as they come, and answered in that order (slots.h). Where the gateway has
 * keys, each request shows its token.
 */
#include "gateway/client/http_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "gateway/protocol/http_text.h"

#include <string.h>

enum {
    IDLE_US = 60 * 1000 * 1000,
    BODY_US = 30 * 1000 * 1000,
    DISCARD_MAX = 8 * 1024 * 1024, /* of a refused body; of a larger one the connection ends */
    KEY_MAX = 255,
    DEADLINE_DIGITS_MAX = 6,
};

static const enum http_refusal NONE = HTTP_REFUSAL_COUNT;

struct api_client *api_client_new(uint64_t now_us)
{
    struct api_client *h = mem_new(1, sizeof *h);

    h->since_us = now_us;
    list_init(&h->keyed);
    return h;
}

void http_opened(struct client *c, uint64_t now_us)
{
    if (c->http != NULL) {
        c->http->since_us = now_us;
    }
}

/* ---- what is asked ---- */

static bool begins_with(struct bytes text, const char *word)
{
    return text.size >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* /v1/actors/KIND/ID, and what stands behind it: KIND/ID is the actor's name, so a slash in the id
 * is %2F. */
static enum http_refusal read_path(struct bytes path, struct http_asking *out)
{
    static const char root[] = "/v1/actors/";

    out->path = HTTP_PATH_NONE;
    if (!begins_with(path, root)) {
        return HTTP_NOT_FOUND;
    }
    struct bytes rest = bytes_of(path.data + sizeof root - 1, path.size - (sizeof root - 1));
    const size_t kind_size = actor_name_kind(rest, &out->to.kind);
    if (kind_size == 0) {
        return HTTP_BAD_ACTOR;
    }
    rest = bytes_of(rest.data + kind_size, rest.size - kind_size);
    const bool more = memchr(rest.data, '/', rest.size) != NULL;
    if (!actor_name_parse_id(http_cut(&rest, '/'), out->id, &out->to.id.size)) {
        return HTTP_BAD_ACTOR;
    }
    out->to.id.data = out->id;
    out->path = !more                     ? HTTP_PATH_ACTOR
                : http_is(rest, "where")  ? HTTP_PATH_WHERE
                : http_is(rest, "events") ? HTTP_PATH_EVENTS
                                          : HTTP_PATH_NONE;
    return out->path == HTTP_PATH_NONE ? HTTP_NOT_FOUND : NONE;
}

static bool takes(enum http_path path, enum http_method method)
{
    switch (path) {
    case HTTP_PATH_ACTOR:
        return method == HTTP_POST;
    case HTTP_PATH_WHERE:
        return method == HTTP_GET || method == HTTP_HEAD;
    case HTTP_PATH_EVENTS:
        return method == HTTP_GET;
    case HTTP_PATH_NONE:
        break;
    }
    return false;
}

/* "500ms" or "2s". */
static bool read_deadline(const struct client *c, struct bytes text, uint32_t *out)
{
    uint32_t number = 0;
    size_t digits = 0;

    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9' &&
           digits < DEADLINE_DIGITS_MAX) {
        number = number * 10 + (uint32_t)(text.data[digits++] - '0');
    }
    const struct bytes unit = bytes_of(text.data + digits, text.size - digits);
    const bool seconds = http_is(unit, "s");

    *out = client_timeout(c, seconds ? number * 1000 : number);
    return number > 0 && (seconds || http_is(unit, "ms"));
}

static bool read_mode(struct bytes text, uint8_t *flags)
{
    *flags = http_is(text, "tell")   ? REQUEST_NO_REPLY
             : http_is(text, "read") ? REQUEST_IDEMPOTENT
                                     : 0;
    return *flags != 0 || http_is(text, "call");
}

/* Each at most once; only requests to the actor itself have any. */
static enum http_refusal read_query(const struct client *c, struct http_asking *out)
{
    struct bytes query = out->request->query;
    bool mode = false;
    bool deadline = false;

    if (query.size > 0 && out->path != HTTP_PATH_ACTOR) {
        return HTTP_BAD_QUERY;
    }
    while (query.size > 0) {
        struct bytes value = http_cut(&query, '&');
        const struct bytes name = http_cut(&value, '=');

        if (http_is(name, "mode") && !mode && read_mode(value, &out->flags)) {
            mode = true;
        } else if (http_is(name, "deadline") && !deadline &&
                   read_deadline(c, value, &out->timeout_ms)) {
            deadline = true;
        } else {
            return HTTP_BAD_QUERY;
        }
    }
    return NONE;
}

static bool is_visible(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

/* A key, and the mark of a request that was asked before. */
static enum http_refusal read_key(const struct client *c, struct http_asking *out)
{
    const struct bytes key = out->request->idempotency_key;
    const struct bytes again = out->request->again;
    char number[STAMP_TEXT_SIZE + 1] = "";

    out->again = again.data != NULL;
    if (key.data == NULL) {
        return out->again ? HTTP_BAD_KEY : NONE;
    }
    if (key.size < 1 || key.size > KEY_MAX || !is_visible(key) || again.size >= sizeof number) {
        return HTTP_BAD_KEY;
    }
    if (out->again) {
        memcpy(number, again.data, again.size);
        if (!stamp_parse(number, &out->first)) {
            return HTTP_BAD_KEY;
        }
    }
    // The secret that keys are drawn by comes with the ring.
    return router_view(c->all->router)->ring.version == 0 ? HTTP_NO_RING : NONE;
}

static enum http_refusal read_events(struct http_asking *out)
{
    const struct bytes id = out->request->last_event_id;

    out->wish.type = NOTE_KEEP;
    if (out->path != HTTP_PATH_EVENTS || id.size == 0) {
        return NONE; // an empty one is none (HTML, 9.2.4)
    }
    out->wish.type = NOTE_RETURN;
    return http_event_id(id, &out->wish.back) ? NONE : HTTP_BAD_EVENT_ID;
}

/* Who asks? */
static enum http_refusal check_token(struct client *c, const struct api_request *r)
{
    static const char bearer[] = "Bearer ";
    const size_t size = sizeof bearer - 1;
    struct bytes scheme = r->authorization;
    bool full = false;

    if (!auth_asks(c->all) || (mutant(M_ANYTOKEN) && c->identity != NULL)) {
        return NONE;
    }
    scheme.size = scheme.size < size ? scheme.size : size;
    if (scheme.data == NULL || !http_is_word(scheme, bearer)) {
        return HTTP_NO_TOKEN;
    }
    const enum token_verdict verdict =
        auth_show(c, bytes_of(r->authorization.data + size, r->authorization.size - size), &full);
    if (verdict != TOKEN_GOOD) {
        // The reasons stand in the order of the verdicts.
        return (enum http_refusal)(HTTP_TOKEN_MALFORMED + (verdict - TOKEN_MALFORMED));
    }
    return full ? HTTP_SHARE : NONE;
}

/* What is wrong with the request, as far as its head says. */
static enum http_refusal judge(struct client *c, const struct api_request *r,
                               struct http_asking *out)
{
    enum http_refusal why = NONE;

    *out = (struct http_asking){.request = r, .path = HTTP_PATH_NONE};
    if (r->browser) {
        return HTTP_BROWSER;
    }
    if ((why = check_token(c, r)) != NONE || (why = read_path(r->path, out)) != NONE) {
        return why;
    }
    if (!takes(out->path, r->method)) {
        return HTTP_METHOD;
    }
    if (!auth_allows(c, out->to.kind, out->to.id)) {
        return HTTP_OTHER_ENTITY;
    }
    if (r->coded) {
        return HTTP_CONTENT_CODING;
    }
    if ((why = read_query(c, out)) != NONE || (why = read_key(c, out)) != NONE) {
        return why;
    }
    return read_events(out);
}

/* ---- it is asked ---- */

static bool is_told(const struct http_asking *a)
{
    return (a->flags & REQUEST_NO_REPLY) != 0;
}

static void put_accepted(struct client *c, const struct http_asking *a)
{
    const uint64_t version = router_view(c->all->router)->ring.version;
    struct buffer *text = &c->all->body;

    buffer_clear(text);
    http_put_head(
        text,
        202,
        &(struct http_head){.ring = a->request->idempotency_key.data != NULL ? version : 0,
                            .last = a->request->last});
    http_put_local(c, buffer_bytes(text));
}

/* Call or tell the actor. */
static void ask_actor(struct client *c, const struct http_asking *a)
{
    const struct api_request *r = a->request;
    const bool keyed = r->idempotency_key.data != NULL;
    struct ask ask = {.timeout_ms = a->timeout_ms,
                      .flags = a->flags,
                      .kind = a->to.kind,
                      .id = a->to.id,
                      .body = r->body,
                      .again = a->again};
    struct trace_context trace;
    const uint64_t session = keyed ? keyed_session(c->all, &ask, r->idempotency_key) : 0;
    uint64_t number = 0;

    if (keyed && !keyed_is_free(c->all, session)) {
        http_refuse(c, HTTP_KEY_IN_USE, a->path, r->last);
        return;
    }
    // As W3C trace context has it, an invalid one is as good as none.
    if (traceparent_parse(r->traceparent, &trace)) {
        trace_context_store(c->all->brought, &trace);
        ask.trace = c->all->brought;
    }
    if (is_told(a)) {
        put_accepted(c, a);
    } else {
        struct slot *slot = client_add_slot(c, SLOT_OPAQUE, 1, &number);

        slot->protocol = (uint8_t)((r->last ? HTTP_FORM_LAST : 0) | (keyed ? HTTP_FORM_KEYED : 0));
        ask.ticket = ticket_of(number, 0);
    }
    if (keyed) {
        keyed_ask(c, session, &ask, a->first);
    } else {
        client_ask(c, &ask);
    }
    if (r->last) {
        client_close(c);
    }
}

static void put_options(struct client *c, const struct api_request *r)
{
    struct http_asking a = {.request = r};
    struct buffer *text = &c->all->body;

    (void)read_path(r->path, &a);
    buffer_clear(text);
    http_put_head(text,
                  204,
                  &(struct http_head){.allow = a.path == HTTP_PATH_NONE ? "GET, HEAD, POST, OPTIONS"
                                                                        : http_allow(a.path),
                                      .last = r->last});
    http_put_local(c, buffer_bytes(text));
    if (r->last) {
        client_close(c);
    }
}

/* Who shows no good token is not listened to any longer. */
static bool ends(const struct api_request *r, enum http_refusal why)
{
    return r->last || http_why(why)->status == 401 || why == HTTP_SHARE;
}

/* The request is whole. */
static void run(struct client *c, const struct api_request *r)
{
    struct http_asking a;

    c->all->stats.commands++;
    c->all->stats.http_requests++;
    c->http->asked = true;
    if (client_overspeed(c) > 0) {
        http_refuse(c, HTTP_RATE, HTTP_PATH_NONE, r->last);
        return;
    }
    if (r->method == HTTP_OPTIONS && !r->browser) {
        put_options(c, r);
        return;
    }
    const enum http_refusal why = judge(c, r, &a);
    if (why != NONE) {
        http_refuse(c, why, a.path, ends(r, why));
        return;
    }
    switch (a.path) {
    case HTTP_PATH_ACTOR:
        ask_actor(c, &a);
        break;
    case HTTP_PATH_WHERE:
        http_where(c, &a);
        break;
    case HTTP_PATH_EVENTS:
        http_listen(c, &a);
        break;
    case HTTP_PATH_NONE:
        break;
    }
}

/* ---- input ---- */

/* Bytes of the request that is refused are still to come: they are dropped, if they are few and
 * it is known how many. Returns how many of `in` are its own. */
static size_t drop_rest(struct client *c, const struct api_request *r, struct bytes in)
{
    const uint64_t size = r->head_size + r->body_size;
    const uint64_t here = in.size < size ? in.size : size;

    c->http->reader = (struct http_reader){0};
    c->http->discard = size - here;
    return (size_t)here;
}

/* Nothing is known of a request here whose head came before: its chunks turned out to be too many.
 */
static bool can_drop_rest(const struct api_request *r)
{
    return r->body_size > 0 && !r->expects && r->body_size <= DISCARD_MAX;
}

/* Its head is there. Returns how many bytes of `in` are done with: 0 if it may go on. */
static size_t take_head(struct client *c, const struct api_request *r, struct bytes in)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http_asking a;
    const enum http_refusal why = r->method == HTTP_OPTIONS ? NONE : judge(c, r, &a);

    c->http->since_us = c->now_us;
    if (why == NONE) {
        if (r->expects) {
            http_put_local(c, bytes_of(go_on, sizeof go_on - 1));
        }
        return 0;
    }
    c->http->asked = true;
    http_refuse(c, why, a.path, ends(r, why) || !can_drop_rest(r));
    return c->closing ? in.size : drop_rest(c, r, in);
}

/* It can't be read. */
static size_t refuse_unread(struct client *c, const struct api_request *r, enum http_refusal why,
                            struct bytes in)
{
    const bool goes_on = why == HTTP_BODY_TOO_LARGE && can_drop_rest(r) && !r->last;

    c->all->stats.bad_input += goes_on ? 0 : 1;
    http_refuse(c, why, HTTP_PATH_NONE, !goes_on);
    return goes_on ? drop_rest(c, r, in) : in.size;
}

static void await_next(struct client *c)
{
    c->http->coming = false;
    c->http->since_us = c->now_us;
}

/* Take what the front of `in` is. Returns how many bytes that was; sets `half` if more is needed.
 */
static size_t take_one(struct client *c, struct bytes in)
{
    struct api_client *h = c->http;
    struct api_request r = {0};
    enum http_refusal why = NONE;
    size_t taken = 0;

    if (h->discard > 0) {
        taken = in.size < h->discard ? in.size : (size_t)h->discard;
        h->discard -= taken;
        h->coming = h->discard > 0;
        return taken;
    }
    if (!h->coming) {
        h->coming = true;
        h->bodiless = false;
        h->since_us = c->now_us;
    }
    const enum http_step step = http_read(&h->reader, in, &c->all->words, &r, &why);

    h->bodiless = h->bodiless || r.method == HTTP_HEAD; // `r` may be empty behind its head
    switch (step) {
    case HTTP_MORE:
        client_note_half(c, true);
        return 0;
    case HTTP_HEADED:
        taken = take_head(c, &r, in);
        client_note_half(c, taken == 0);
        h->coming = taken == 0 || h->discard > 0;
        return taken;
    case HTTP_WHOLE:
        run(c, &r);
        await_next(c);
        return r.size;
    case HTTP_REFUSED:
        taken = refuse_unread(c, &r, why, in);
        h->coming = h->discard > 0;
        return taken;
    }
    return 0;
}

/* Who listens to events says nothing. */
static size_t take_while_streaming(struct client *c, struct bytes in)
{
    if (in.size > 0 && !c->closing) {
        c->all->stats.http_refused[HTTP_BEHIND_EVENTS]++;
        client_close(c);
    }
    return in.size;
}

static size_t take(struct client *c, struct bytes in)
{
    size_t at = 0;

    client_note_half(c, false);
    while (at < in.size && !c->half && client_has_room(c)) {
        const struct bytes rest = bytes_of(in.data + at, in.size - at);

        at += c->http->streaming ? take_while_streaming(c, rest) : take_one(c, rest);
    }
    return c->closing || c->dropped ? in.size : at;
}

static void refuse_half(struct client *c)
{
    http_refuse(c, HTTP_NO_MEMORY, HTTP_PATH_NONE, true);
}

/* ---- answers ---- */

static void answer(struct client *c, const struct router_effect *reply, struct bytes body)
{
    const uint64_t number = ticket_slot(reply->ticket);
    struct slot *slot = slots_at(&c->slots, number);

    ASSERT(slot != NULL && slot->left > 0);
    if (slot->shape == SLOT_BIND) {
        binding_answered(c, reply, body); // http_bind_over(), http_bind_failed(), or asked again
    } else if (number == c->slots.head) {
        http_put_reply(c, &c->out, slot->protocol, reply, body);
        slots_skip(&c->slots);
    } else {
        http_put_reply(c, &slot->text, slot->protocol, reply, body);
        http_fill_slot(c, slot, 0);
    }
    while (slots_pop(&c->slots, &c->out)) {
    }
}

static bool owes(const struct client *c)
{
    return slots_count(&c->slots) > 0 || (c->http->streaming && !c->closing && !c->ended);
}

/* ---- time ---- */

/* Some of a request is there, which has no answer yet. */
static bool is_half(const struct client *c)
{
    return c->http->coming && c->http->discard == 0;
}

static void end_silently(struct client *c)
{
    c->all->stats.http_refused[HTTP_IDLE]++;
    client_close(c);
}

/* What is awaited has not come in time. */
static void be_late(struct client *c)
{
    if (is_half(c)) {
        http_refuse(c, HTTP_TIMEOUT, HTTP_PATH_NONE, true);
    } else {
        end_silently(c);
    }
}

/* For what comes now. */
static uint64_t patience_us(const struct client *c)
{
    const struct api_client *h = c->http;
    const bool body = h->discard > 0 || h->reader.head_size > 0;

    if (body) {
        return BODY_US;
    }
    return h->coming || !h->asked ? (uint64_t)c->all->config.head_ms * 1000 : IDLE_US;
}

/* It has had its time. Who has to say who it is has it since it came: a byte a second buys none. */
static bool is_late(const struct client *c)
{
    const uint64_t auth_us = (uint64_t)c->all->config.auth_ms * 1000;

    return (c->unauthenticated_address != NULL && c->now_us - c->since_us > auth_us) ||
           c->now_us - c->http->since_us > patience_us(c);
}

static void tick(struct client *c)
{
    struct api_client *h = c->http;

    if (c->closing) {
        return;
    }
    if (h->streaming) {
        http_keep_alive(c);
        return;
    }
    if (slots_count(&c->slots) > 0 || !client_has_room(c)) {
        h->since_us = c->now_us; // it waits for us
    }
    if (is_late(c)) {
        be_late(c);
    }
}

static void drain(struct client *c)
{
    c->http->leaving = true;
    if (is_half(c) && !c->closing) {
        http_refuse(c, HTTP_STOPPING, HTTP_PATH_NONE, true);
    } else {
        client_close(c);
    }
}

const struct dialect dialect_http = {
    .take = take,
    .answer = answer,
    .owes = owes,
    .refuse_half = refuse_half,
    .tick = tick,
    .drain = drain,
    .bind_over = http_bind_over,
    .bind_failed = http_bind_failed,
    .is_answered = http_is_answered,
    .push = http_push,
    .kick = http_kick,
    .rebound = http_rebound,
    .begun = http_begun,
};
