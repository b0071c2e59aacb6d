/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients that speak HTTP are answered: actors' bytes, and problems, which say if the request
 * may have run (RFC 9457).
 */
#include "gateway/client/http_inside.h"

#include "base/format.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <string.h>

static const char json[] = "application/json";
static const char problem_json[] = "application/problem+json";
static const char octets[] = "application/octet-stream";

const char *http_allow(enum http_path path)
{
    switch (path) {
    case HTTP_PATH_ACTOR:
        return "POST, OPTIONS";
    case HTTP_PATH_WHERE:
        return "GET, HEAD, OPTIONS";
    case HTTP_PATH_EVENTS:
        return "GET, OPTIONS";
    case HTTP_PATH_NONE:
        break;
    }
    return NULL;
}

void http_put_local(struct client *c, struct bytes text)
{
    if (slots_count(&c->slots) == 0) {
        buffer_put(&c->out, text.data, text.size);
        return;
    }
    struct slot *slot = client_add_slot(c, SLOT_LOCAL, 0, NULL);

    buffer_put(&slot->text, text.data, text.size);
    c->slots.size += text.size;
}

/* A head, and the problem as its body, which HEAD leaves out. */
static void put_problem(struct buffer *out, struct http_head head, const struct http_problem *p)
{
    struct buffer body = {0};

    http_put_problem(&body, p);
    head.type = problem_json;
    head.body_size = body.size;
    http_put_head(out, p->status, &head);
    buffer_put(out, body.data, head.bodiless ? 0 : body.size);
    buffer_fini(&body);
}

static void put_refusal(struct buffer *out, enum http_refusal refusal, const char *text,
                        const struct http_head *head)
{
    const struct http_why *why = http_why(refusal);

    put_problem(out,
                *head,
                &(struct http_problem){.status = why->status,
                                       .word = why->word,
                                       .code = why->code,
                                       .detail = bytes_of(text, strlen(text))});
}

/* When it may be tried again, in seconds. */
static uint32_t retry_of(enum http_refusal why)
{
    switch (http_why(why)->status) {
    case 409:
        return why == HTTP_KEY_IN_USE ? 1 : 0;
    case 429:
    case 503:
        return 1;
    default:
        return 0;
    }
}

static void count_refusal(struct client *c, enum http_refusal why)
{
    c->all->stats.http_refused[why]++;
    c->all->stats.errors++;
    c->all->stats.unauthorized += why == HTTP_OTHER_ENTITY;
    c->all->stats.rate_limited += why == HTTP_RATE;
}

void http_refuse(struct client *c, enum http_refusal why, enum http_path path, bool last)
{
    struct buffer *text = &c->all->body;

    count_refusal(c, why);
    buffer_clear(text);
    put_refusal(text,
                why,
                http_why(why)->text,
                &(struct http_head){.allow = why == HTTP_METHOD ? http_allow(path) : NULL,
                                    .retry_s = retry_of(why),
                                    .challenge = http_why(why)->status == 401,
                                    .bodiless = c->http->bodiless,
                                    .last = last});
    http_put_local(c, buffer_bytes(text));
    if (last) {
        client_close(c);
    } else {
        client_spend(c);
    }
}

void http_put_refusal(struct client *c, struct buffer *out, enum http_refusal why, const char *text)
{
    count_refusal(c, why);
    put_refusal(out, why, text, &(struct http_head){.last = true});
}

struct bytes http_refusal(struct clients *all, uint32_t retry_ms, const char *why)
{
    all->stats.http_refused[HTTP_TURNED_AWAY]++;
    buffer_clear(&all->body);
    put_refusal(&all->body,
                HTTP_TURNED_AWAY,
                why,
                &(struct http_head){.retry_s = (retry_ms + 999) / 1000, .last = true});
    return buffer_bytes(&all->body);
}

/* ---- answers of actors ---- */

/* 502 for what was lost on the way to an answer, 504 for what may still come: a back end that does
 * not know more must not repeat either as it is. What surely did not run is 503, which may be
 * repeated. What the actor refuses is no fault of any server: 422. */
static const struct {
    unsigned status;
    uint32_t retry_s;
    bool may_have_run;
    const char *word;
    const char *code;
    const char *text;
} outcomes[REPLY_CODES] = {
    [REPLY_OK] = {200, 0, true, "", "", ""},
    [REPLY_APP_ERROR] = {422, 0, true, "actor_failed", "ACTOR_FAILED", "The actor gave no reason."},
    [REPLY_UNKNOWN] = {502,
                       0,
                       true,
                       "unknown",
                       "UNKNOWN",
                       "The node that had the request was lost: it may have run, at most once."},
    [REPLY_TIMEOUT] = {504,
                       0,
                       true,
                       "timeout",
                       "TIMEOUT",
                       "No answer in time: the request may have run or may still run, at most "
                       "once."},
    [REPLY_REJECTED] = {503,
                        1,
                        false,
                        "moving",
                        "MOVING",
                        "No node could run the request in time: it did not run."},
    [REPLY_NO_KIND] = {404,
                       0,
                       false,
                       "no_kind",
                       "NOKIND",
                       "No node hosts an actor of this kind and id: the request did not run."},
    [REPLY_OVERLOADED] = {503,
                          1,
                          false,
                          "overloaded",
                          "OVERLOADED",
                          "Its node or the gateway has no room for more requests: this one did not "
                          "run."},
    [REPLY_QUARANTINED] = {503,
                           0,
                           false,
                           "quarantined",
                           "QUARANTINED",
                           "The actor is in quarantine because it killed its node's process "
                           "repeatedly: the request did not run."},
    [REPLY_DEADLOCK] = {503,
                        1,
                        false,
                        "deadlock",
                        "DEADLOCK",
                        "The actor waits for the sender of this request: it did not run."},
};

static bool is_last(const struct client *c, uint8_t form)
{
    return (form & HTTP_FORM_LAST) != 0 || (c->http->leaving && slots_count(&c->slots) == 1);
}

void http_put_reply(struct client *c, struct buffer *out, uint8_t form,
                    const struct router_effect *reply, struct bytes body)
{
    const char *text = outcomes[reply->code].text;
    const uint64_t version = router_view(c->all->router)->ring.version;
    struct http_head head = {.retry_s = outcomes[reply->code].retry_s,
                             .ring = (form & HTTP_FORM_KEYED) != 0 ? version : 0,
                             .last = is_last(c, form)};

    if (reply->code == REPLY_OK) {
        head.type = octets;
        head.body_size = body.size;
        http_put_head(out, 200, &head);
        buffer_put(out, body.data, body.size);
        return;
    }
    c->all->stats.errors++;
    put_problem(
        out,
        head,
        &(struct http_problem){.status = outcomes[reply->code].status,
                               .word = outcomes[reply->code].word,
                               .code = outcomes[reply->code].code,
                               .detail = body.size > 0 ? body : bytes_of(text, strlen(text)),
                               .may_have_run = outcomes[reply->code].may_have_run});
}

void http_fill_slot(struct client *c, struct slot *slot, size_t before)
{
    slot->left = 0;
    c->slots.size += slot->text.size - before;
}

/* ---- where ---- */

static void put_where(struct buffer *out, const struct http_asking *a, const struct view *view,
                      const struct ring_vnode *vnode, const struct view_member *member)
{
    char name[ACTOR_NAME_SIZE];

    buffer_put_format(out,
                      "{\"actor\":\"%s\",\"vnode\":%" PRIu32
                      ",\"generation\":\"%s\",\"version\":\"%s\"",
                      actor_name_print(a->to.kind, a->to.id, name),
                      vnode->id,
                      STAMP(vnode->generation),
                      STAMP(view->ring.version));
    buffer_put(out, ",\"node\":", 8);
    http_put_json_text(out, bytes_of(member->name, strlen(member->name)));
    buffer_put(out, ",\"address\":", 11);
    http_put_json_text(out, bytes_of(member->address, strlen(member->address)));
    buffer_put(out, "}\n", 2);
}

void http_where(struct client *c, const struct http_asking *a)
{
    const struct view *view = router_view(c->all->router);
    const ring_hit hit = view_lookup(view, a->to.kind, a->to.id);
    const struct view_member *member = view_member(view, ring_hit_node(hit));
    const struct ring_vnode *vnode = ring_find(&view->ring, ring_hit_vnode(hit));
    const bool last = a->request->last;
    struct buffer body = {0};
    struct buffer text = {0};

    if (view->ring.version == 0 || member == NULL || vnode == NULL) {
        http_refuse(c, HTTP_NO_RING, a->path, last);
        return;
    }
    put_where(&body, a, view, vnode, member);
    http_put_head(
        &text, 200, &(struct http_head){.type = json, .body_size = body.size, .last = last});
    buffer_put(&text, body.data, c->http->bodiless ? 0 : body.size);
    http_put_local(c, buffer_bytes(&text));
    buffer_fini(&body);
    buffer_fini(&text);
    if (last) {
        client_close(c);
    }
}
