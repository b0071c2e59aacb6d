/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks for pages of values, and puts them together.
 */
#include "cli/values_source.h"

#include "base/log.h"
#include "base/random.h"
#include "cli/operator_request.h"
#include "cli/values_offline.h"
#include "storage/actors/tools.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 5 /* to read all of an actor that changes meanwhile */ };

static bool complain(const struct values_source *s, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s: %s\n", s->command, s->q->arguments[0], why);
    return false;
}

bool values_source_open(struct values_source *s, const struct query *q, const char *command,
                        const char *store)
{
    char why[VALUES_OFFLINE_WHY_SIZE];

    *s = (struct values_source){.q = q, .command = command, .actor = RH__ACTOR__INIT};
    log_set_level(LOG_ERROR); // what fails is told in one line
    if (!actor_read(q, command, q->arguments[0], &s->actor, s->id)) {
        return false;
    }
    if (store[0] == '\0') {
        return true;
    }
    s->offline = values_offline_open(store, &s->actor, why);
    if (s->offline == NULL) {
        (void)fprintf(
            stderr, "ringhold %s: can't use %s: %s\n", command, store_tools_shown(store), why);
    }
    return s->offline != NULL;
}

void values_source_close(struct values_source *s)
{
    admin_free(s->reply);
    values_offline_close(s->offline);
}

/* ---- one page ---- */

/* By the leader, from the actor. The answer is borrowed until the next. */
static bool ask_live(struct values_source *s, const struct values_ask *ask, struct bytes *answer)
{
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;
    struct buffer bytes = {0};
    char reason[ADMIN_REASON_MAX + 1];

    (void)snprintf(reason, sizeof reason, "%s", s->q->reason);
    values_ask_put(&bytes, ask);
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES;
    what.values = proto_bytes(buffer_bytes(&bytes));
    what.reason = reason;
    admin_free(s->reply);
    s->reply = operator_request_send(s->q, s->command, &what);
    buffer_fini(&bytes);
    if (s->reply == NULL) {
        return false;
    }
    const Rh__OperatorRequestAnswer *a = s->reply->operator_request;
    const char *fault = strcmp(a->outcome, "nobody") == 0 ? "no node hosts actors of this kind"
                                                          : operator_request_fault(a);
    *answer = bytes_of(a->body.data, a->body.len);
    return fault == NULL || complain(s, fault);
}

static const char *text_of(enum values_status status)
{
    switch (status) {
    case VALUES_DONE:
        return NULL;
    case VALUES_VOLATILE:
        return "its kind is not durable: it has no values";
    case VALUES_FULL:
        return "it would have more than 65536 values or 64 MiB: nothing was changed";
    case VALUES_INTERRUPTED:
        return "it moved or ended meanwhile: nothing was changed; do it again";
    case VALUES_MALFORMED:
        return "its node does not understand the question: check whether it is another version";
    }
    return "its node answers with nothing that is known";
}

/* The answer is borrowed until the next. */
static bool ask_page(struct values_source *s, const struct values_ask *ask, struct values_answer *a)
{
    struct bytes answer = {0};

    if (s->offline != NULL) {
        answer = values_offline_ask(s->offline, ask);
    } else if (!ask_live(s, ask, &answer)) {
        return false;
    }
    if (answer.size == 0) {
        return complain(s,
                        "the change was not saved: the store failed, or the actor has another "
                        "owner; its node's log tells");
    }
    if (values_answer_get(answer, a) != ERR_OK) {
        return complain(s, "its answer can't be decoded");
    }
    const char *fault = text_of((enum values_status)a->status);
    return fault == NULL || complain(s, fault);
}

/* ---- reading ---- */

/* Pages that were read, as rows, and the value that goes on in the next. */
struct gathering {
    struct buffer *rows;
    struct buffer key;
    struct buffer value;
};

/* False: it does not follow what came before. */
static bool add_piece(struct gathering *g, const struct values_piece *p)
{
    if (p->at == 0) {
        buffer_clear(&g->key);
        buffer_clear(&g->value);
        buffer_put(&g->key, p->key.data, p->key.size);
    }
    if (!bytes_equal(buffer_bytes(&g->key), p->key) || g->value.size != p->at ||
        g->rows->size > VALUES_BATCH_MAX) {
        return false;
    }
    buffer_put(&g->value, p->bytes.data, p->bytes.size);
    if (g->value.size == p->whole) {
        values_row_put(
            g->rows,
            &(struct values_row){.key = buffer_bytes(&g->key), .value = buffer_bytes(&g->value)});
        buffer_clear(&g->value);
    }
    return true;
}

/* False: they make no sense. */
static bool add_page(struct gathering *g, struct bytes pieces)
{
    struct reader in = {.at = pieces.data, .left = pieces.size};
    struct values_piece p;

    while (values_piece_next(&in, &p)) {
        if (!add_piece(g, &p)) {
            return false;
        }
    }
    return !in.bad;
}

enum read_end { READ_DONE, READ_CHANGED, READ_FAILED };

static enum read_end read_pages(struct values_source *s, struct bytes key, struct gathering *g,
                                uint64_t *number)
{
    struct values_ask ask = {.verb = VALUES_READ, .one = key.size > 0, .key = key};
    struct values_answer a = {.more = true};
    bool first = true;

    while (a.more) {
        if (!ask_page(s, &ask, &a)) {
            return READ_FAILED;
        }
        if (!first && a.number != *number) {
            return READ_CHANGED;
        }
        *number = a.number;
        if (!add_page(g, a.pieces) || (a.more && a.pieces.size == 0)) {
            (void)complain(s, "its answer can't be decoded");
            return READ_FAILED;
        }
        ask.key = buffer_bytes(&g->key);
        ask.offset = (uint32_t)g->value.size;
        first = false;
    }
    return READ_DONE;
}

bool values_source_read(struct values_source *s, struct bytes key, struct buffer *rows,
                        uint64_t *number)
{
    struct gathering g = {.rows = rows};
    enum read_end end = READ_CHANGED;
    int tries = 0;

    for (; end == READ_CHANGED && tries < TRIES; tries++) {
        buffer_clear(rows);
        buffer_clear(&g.key);
        buffer_clear(&g.value);
        end = read_pages(s, key, &g, number);
    }
    buffer_fini(&g.key);
    buffer_fini(&g.value);
    return end == READ_DONE ||
           (end == READ_CHANGED && complain(s, "its values change all the time: try again"));
}

/* ---- changing ---- */

bool values_source_change(struct values_source *s, struct bytes rows, bool replace, uint32_t *count)
{
    struct values_ask ask = {.verb = VALUES_CHANGE, .replace = replace, .batch = random_u64() | 1};
    struct values_answer a;

    if (rows.size > VALUES_BATCH_MAX) {
        return complain(s, text_of(VALUES_FULL));
    }
    do {
        const size_t left = rows.size - ask.at;

        ask.last = left <= VALUES_PAGE_SIZE;
        ask.page = bytes_of(rows.data + ask.at, ask.last ? left : VALUES_PAGE_SIZE);
        if (!ask_page(s, &ask, &a)) {
            return false;
        }
        ask.at += (uint32_t)ask.page.size;
    } while (!ask.last);
    *count = a.count;
    return true;
}
