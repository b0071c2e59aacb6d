/* SPDX-License-Identifier: Apache-2.0
 *
 * Does what an operator wants by the web page, as the commands of `ringhold` do it: drains, takes
 * drains back, pins, unpins; and shows the values of a durable actor.
 */
#include "coordinator/overview.h"

#include "base/clock.h"
#include "base/history.h"
#include "base/plain.h"
#include "base/random.h"
#include "coordinator/actor_of.h"
#include "daemon/json.h"
#include "wire/control.h"
#include "wire/values_ask.h"

#include <stdio.h>
#include <string.h>

enum {
    ASK_MS = 1000,
    BY_SIZE = 128,
    SHOWN_BYTES_MAX = 255, /* of a value */
    SHOWN_ROWS_MAX = 100,
};

/* An operator's wish under way. */
struct deed {
    struct admin *admin;
    const struct http_fields *fields;
    char by[BY_SIZE];
    Rh__Actor actor;
    struct actor_name id;
    struct buffer *out;
};

static enum http_told fail(struct deed *d, enum http_told told, const char *why)
{
    json_text(d->out, "error", why);
    return told;
}

/* NULL after telling why. */
static Rh__AdminReply *ask(struct deed *d, ProtobufCMessage *what, uint32_t timeout_ms,
                           enum http_told *told)
{
    Rh__AdminReply *reply = d->admin == NULL ? NULL : admin_try(d->admin, what, timeout_ms);

    *told = HTTP_TOLD;
    if (reply == NULL) {
        *told =
            fail(d, HTTP_TOLD_NOT, "no coordinator answers as leader: look whether it was done");
    } else if (reply->error[0] != '\0') {
        *told = fail(d, reply->again ? HTTP_TOLD_NOT : HTTP_TOLD_REFUSED, reply->error);
        admin_free(reply);
        reply = NULL;
    }
    return reply;
}

static enum http_told done(struct deed *d, ProtobufCMessage *what, const char *text)
{
    enum http_told told;
    Rh__AdminReply *reply = ask(d, what, ASK_MS, &told);

    if (reply != NULL) {
        json_text(d->out, "done", text == NULL ? reply->text : text);
    }
    admin_free(reply);
    return told;
}

/* ---- changes ---- */

/* Numbered, as what is asked may arrive twice, or late. */
static enum http_told drain(struct deed *d, bool cancel)
{
    Rh__AdminNodes nodes = RH__ADMIN_NODES__INIT;
    Rh__AdminDrain what = RH__ADMIN_DRAIN__INIT;
    enum http_told told;
    Rh__AdminReply *reply = ask(d, &nodes.base, ASK_MS, &told);
    char text[128];

    if (reply == NULL) {
        return told;
    }
    what.name = proto_text(d->fields->node);
    what.cancel = cancel;
    what.by = d->by;
    what.reason = proto_text(d->fields->reason);
    what.seen = reply->number;
    what.wish = random_u64() | 1; // 0 is none
    admin_free(reply);
    (void)snprintf(
        text, sizeof text, cancel ? "%s takes its share again" : "%s drains", d->fields->node);
    return done(d, &what.base, text);
}

static enum http_told pin(struct deed *d, bool remove)
{
    Rh__PinWish wish = RH__PIN_WISH__INIT;
    Rh__PinWish *wishes[] = {&wish};
    Rh__AdminPin what = RH__ADMIN_PIN__INIT;

    wish.actor = &d->actor;
    wish.node = proto_text(remove ? "" : d->fields->node);
    what.pins = wishes;
    what.n_pins = 1;
    what.remove = remove;
    what.by = d->by;
    what.reason = proto_text(d->fields->reason);
    return done(d, &what.base, NULL);
}

/* ---- values ---- */

/* Text as it is, if it is UTF-8; else a word as of history_word(). Cut. */
static void put_value(struct buffer *out, const struct values_piece *p)
{
    char text[SHOWN_BYTES_MAX + 1];
    char word[HISTORY_WORD_SIZE];
    size_t size = p->bytes.size < SHOWN_BYTES_MAX ? p->bytes.size : SHOWN_BYTES_MAX;

    while (size < p->bytes.size && size > 0 && (p->bytes.data[size] & 0xc0U) == 0x80U) {
        size--; // the cut goes before a character, not through it
    }
    memcpy(text, p->bytes.data, size);
    text[size] = '\0';
    const bool plain = strlen(text) == size && plain_is(text);
    json_begin(out, NULL, '{');
    json_text(out, "key", history_word(p->key, word));
    json_number(out, "size", p->whole);
    json_bool(out, "cut", size < p->whole);
    json_text(out, "as", plain ? "text" : "bytes");
    json_text(out, "value", plain ? text : history_word(bytes_of(p->bytes.data, size), word));
    json_end(out, '}');
}

static const char *value_fault(const Rh__OperatorRequestAnswer *a, struct values_answer *answer)
{
    if (strcmp(a->outcome, "ok") != 0) {
        return strcmp(a->outcome, "nobody") == 0    ? "no node hosts actors of this kind"
               : strcmp(a->outcome, "timeout") == 0 ? "no answer in time: the actor is busy"
                                                    : a->outcome;
    }
    if (a->body.len == 0 ||
        values_answer_get(bytes_of(a->body.data, a->body.len), answer) != ERR_OK) {
        return "the answer of its node can't be decoded";
    }
    return answer->status == VALUES_DONE       ? NULL
           : answer->status == VALUES_VOLATILE ? "its kind is not durable: it has no values"
                                               : "its node does not understand the question";
}

/* Values shown so far, and behind which key it goes on. */
struct page_of_values {
    size_t rows;
    bool more;
    struct buffer key;
    struct buffer list; /* JSON */
};

static void put_pieces(const struct values_answer *answer, struct page_of_values *v)
{
    struct reader in = {.at = answer->pieces.data, .left = answer->pieces.size};
    struct values_piece p;

    v->more = answer->more;
    while (values_piece_next(&in, &p)) {
        if (v->rows == SHOWN_ROWS_MAX) {
            v->more = true;
            return;
        }
        put_value(&v->list, &p);
        v->rows++;
        buffer_clear(&v->key);
        buffer_put(&v->key, p.key.data, p.key.size);
    }
}

static enum http_told ask_values(struct deed *d, struct page_of_values *v)
{
    const struct values_ask question = {.verb = VALUES_READ, .key = buffer_bytes(&v->key)};
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;
    struct values_answer answer;
    struct buffer bytes = {0};
    enum http_told told;

    values_ask_put(&bytes, &question);
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES;
    what.values = proto_bytes(buffer_bytes(&bytes));
    what.actor = &d->actor;
    what.by = d->by;
    what.reason = proto_text(d->fields->reason);
    what.timeout_ms = ASK_MS - 100; // that its answer has to come here
    Rh__AdminReply *reply = ask(d, &what.base, ASK_MS, &told);
    buffer_fini(&bytes);
    if (reply == NULL) {
        return told;
    }
    const char *fault = reply->operator_request == NULL
                            ? "the leader's answer can't be decoded"
                            : value_fault(reply->operator_request, &answer);
    if (fault != NULL) {
        told = fail(d, HTTP_TOLD_REFUSED, fault);
    } else {
        put_pieces(&answer, v);
    }
    admin_free(reply);
    return told;
}

/* A value that fills a page is shown by its beginning, and the next page begins behind it. */
static enum http_told values(struct deed *d)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)ASK_MS * 1000;
    struct page_of_values v = {.more = true};
    enum http_told told = HTTP_TOLD;

    json_begin(&v.list, "values", '[');
    do {
        told = ask_values(d, &v);
    } while (told == HTTP_TOLD && v.more && v.rows < SHOWN_ROWS_MAX &&
             clock_boottime_us() < end_us);
    json_end(&v.list, ']');
    if (told == HTTP_TOLD) {
        json_bool(d->out, "more", v.more);
        buffer_put(d->out, ",", 1);
        buffer_put(d->out, v.list.data, v.list.size);
    }
    buffer_fini(&v.list);
    buffer_fini(&v.key);
    return told;
}

/* ---- which ---- */

/* NULL, or what is missing of what the deed needs. */
static const char *fault_of(struct deed *d, enum http_deed deed)
{
    const bool of_node = deed == HTTP_DRAIN || deed == HTTP_CANCEL;

    if ((of_node || deed == HTTP_PIN) && d->fields->node[0] == '\0') {
        return "node: the name of a node is needed";
    }
    if (!of_node && !actor_of(d->fields->id, &d->actor, &d->id)) {
        return "id: must be ID or KIND/ID, such as 3/boss-7";
    }
    return plain_is(d->fields->node) && plain_is(d->fields->by) && plain_is(d->fields->reason)
               ? NULL
               : "node, by and reason are UTF-8 without control characters";
}

static enum http_told run(struct deed *d, enum http_deed deed)
{
    switch (deed) {
    case HTTP_DRAIN:
    case HTTP_CANCEL:
        return drain(d, deed == HTTP_CANCEL);
    case HTTP_PIN:
    case HTTP_UNPIN:
        return pin(d, deed == HTTP_UNPIN);
    case HTTP_VALUES:
        return values(d);
    case HTTP_DEED_COUNT:
        break;
    }
    return fail(d, HTTP_TOLD_MALFORMED, "there is no such deed");
}

enum http_told overview_operate(void *overview, enum http_deed deed,
                                const struct http_fields *fields, const char *from,
                                struct buffer *out)
{
    struct deed d = {.fields = fields, .actor = RH__ACTOR__INIT, .out = out};
    enum http_told told = HTTP_TOLD_MALFORMED;

    json_begin(out, NULL, '{');
    json_number(out, "schema", 1);
    const char *fault = fault_of(&d, deed);
    if (fault != NULL) {
        json_text(out, "error", fault);
    } else {
        (void)snprintf(d.by,
                       sizeof d.by,
                       "%s@%s by the web page",
                       fields->by[0] == '\0' ? "operator" : fields->by,
                       from);
        d.admin = overview_ask(overview);
        told = run(&d, deed);
        admin_close(d.admin);
    }
    json_end(out, '}');
    return told;
}
