/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the leader for the whole fleet and writes the JSON of /fleet; and that of /actors.
 */
#include "coordinator/overview.h"

#include "base/actor_name.h"
#include "base/history.h"
#include "base/stamp.h"
#include "daemon/admin.h"
#include "daemon/json.h"
#include "wire/control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 1000, TXNS_MAX = 50 };

static Rh__AdminReply *ask_status(struct admin *a, uint64_t trend_from)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

    what.trend_from = trend_from;
    return admin_try(a, &what.base, ASK_MS);
}

static Rh__AdminReply *ask_ring(struct admin *a)
{
    Rh__AdminRing what = RH__ADMIN_RING__INIT;

    return admin_try(a, &what.base, ASK_MS);
}

static Rh__AdminReply *ask_txns(struct admin *a)
{
    Rh__AdminTxns what = RH__ADMIN_TXNS__INIT;

    what.limit = TXNS_MAX;
    return admin_try(a, &what.base, ASK_MS);
}

static void put_coordinators(const Rh__AdminReply *reply, struct buffer *out)
{
    json_begin(out, "coordinators", '[');
    for (size_t i = 0; i < reply->n_voters; i++) {
        const Rh__VoterRow *v = reply->voters[i];

        json_begin(out, NULL, '{');
        json_number(out, "id", v->id);
        json_text(out, "address", v->address);
        json_text(out, "role", v->leader ? "leader" : (v->linked ? "follower" : "unreachable"));
        json_end(out, '}');
    }
    json_end(out, ']');
}

static void put_nodes(const Rh__AdminReply *reply, struct buffer *out)
{
    json_begin(out, "nodes", '[');
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        json_begin(out, NULL, '{');
        json_text(out, "name", n->member->name);
        json_text(out, "role", role_text(n->member->role));
        json_text(out, "address", n->member->address);
        json_text(out, "state", n->state);
        json_number(out, "vnodes", n->vnodes);
        json_number(out, "cells", n->cells);
        json_number(out, "actors", n->actors);
        json_number(out, "held", n->held);
        json_number(out, "requests", n->executed);
        json_number(out, "p99_us", n->p99_us);
        json_number(out, "forwarded", n->forwarded);
        json_number(out, "lease_ms", n->lease_us_left / 1000);
        json_end(out, '}');
    }
    json_end(out, ']');
}

static void put_gateways(const Rh__AdminReply *reply, struct buffer *out)
{
    json_begin(out, "gateways", '[');
    for (size_t i = 0; i < reply->n_gateways; i++) {
        const Rh__GatewayRow *g = reply->gateways[i];

        json_begin(out, NULL, '{');
        json_text(out, "name", g->name);
        json_number(out, "requests", g->requests);
        json_number(out, "in_flight", g->in_flight);
        json_number(out, "unknown", g->unknown);
        json_number(out, "behind", g->version < reply->version);
        json_number(out, "linked", g->linked);
        json_end(out, '}');
    }
    json_end(out, ']');
}

/* [from, to, owner, mover's target] of each vnode; names once. */
static void put_vnodes(const Rh__AdminReply *ring, struct buffer *out)
{
    json_begin(out, "vnodes", '[');
    for (size_t i = 0; i < ring->n_vnodes; i++) {
        const Rh__VnodeRow *v = ring->vnodes[i];

        json_begin(out, NULL, '[');
        json_number(out, NULL, v->from);
        json_number(out, NULL, v->to);
        json_text(out, NULL, v->owner);
        json_text(out, NULL, v->to_node);
        json_text(out, NULL, role_text(v->role));
        json_end(out, ']');
    }
    json_end(out, ']');
}

static void put_txns(const Rh__AdminReply *reply, struct buffer *out)
{
    json_begin(out, "transactions", '[');
    for (size_t i = 0; i < reply->n_txns; i++) {
        const Rh__TxnRow *t = reply->txns[i];

        json_begin(out, NULL, '{');
        json_text(out, "number", STAMP(t->txn));
        json_text(out, "state", t->state);
        json_text(out, "why", t->why);
        json_text(out, "outcome", t->outcome_why);
        json_text(out, "from", t->n_moves == 0 ? "" : t->moves[0]->from);
        json_text(out, "to", t->n_moves == 0 ? "" : t->moves[0]->to);
        json_number(out, "vnodes", t->n_moves);
        json_number(out, "created_ms", t->created_us / 1000);
        json_number(out, "decided_ms", t->decided_us / 1000);
        json_text(out, "waiting_for", t->waiting_for);
        json_end(out, '}');
    }
    json_end(out, ']');
}

/* Why nothing moves, if something is to. */
static void put_waits(const Rh__AdminReply *reply, struct buffer *out)
{
    json_begin(out, "waits", '[');
    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];

        json_begin(out, NULL, '{');
        json_text(out, "reason", o->reason);
        json_text(out, "drains", o->drains);
        json_number(out, "transactions", o->transactions);
        json_number(out, "vnodes", o->vnodes);
        json_number(out, "left_ms", (o->left_us + 999) / 1000);
        json_text(out, "text", o->text);
        json_end(out, '}');
    }
    json_end(out, ']');
}

/* Of each point [end, took, …], with the names of what it has; an older leader keeps none. */
static void put_trend(const Rh__AdminReply *reply, struct buffer *out)
{
    json_begin(out, "trend", '{');
    json_number(out, "next", reply->trend_next);
    json_begin(out, "columns", '[');
    json_text(out, NULL, "end_ms");
    json_text(out, NULL, "took_ms");
    json_text(out, NULL, "requests");
    json_text(out, NULL, "held");
    json_text(out, NULL, "moves");
    json_text(out, NULL, "p99_us");
    json_end(out, ']');
    json_begin(out, "points", '[');
    for (size_t i = 0; i < reply->n_trend; i++) {
        const Rh__TrendRow *p = reply->trend[i];

        json_begin(out, NULL, '[');
        json_number(out, NULL, p->wall_us / 1000);
        json_number(out, NULL, p->took_us / 1000);
        json_number(out, NULL, p->requests);
        json_number(out, NULL, p->held);
        json_number(out, NULL, p->moves);
        json_number(out, NULL, p->p99_us);
        json_end(out, ']');
    }
    json_end(out, ']');
    json_end(out, '}');
}

static void put_head(const struct overview *o, const Rh__AdminReply *reply, const char *version,
                     struct buffer *out)
{
    json_text(out, "cluster", o->cluster);
    json_number(out, "leader", reply->leader);
    json_number(out, "term", reply->term);
    json_text(out, "version", version);
    json_number(out, "pending", reply->pending);
    json_number(out, "planned", reply->planned);
    json_bool(out, "planning", reply->planning);
}

/* Digits alone, at most `max`; NULL is `missing`. */
static bool parse(const char *text, uint64_t missing, uint64_t max, uint64_t *out)
{
    char *end = NULL;

    *out = missing;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= max;
}

/* The ring's version as text, for those that ask again with it. */
static bool put_all(const struct overview *o, struct admin *a, const struct http_look *look,
                    struct buffer *out)
{
    uint64_t trend_from;
    char version[STAMP_TEXT_SIZE];
    uint64_t number = 0;

    if (!parse(look->trend, 0, UINT64_MAX, &trend_from)) {
        trend_from = 0; // as if it was not asked for
    }
    Rh__AdminReply *status = ask_status(a, trend_from);
    if (status == NULL || status->error[0] != '\0') {
        admin_free(status);
        return false;
    }
    (void)stamp_text(status->version, version);
    const bool same = stamp_parse(look->known, &number) && number == status->version;
    Rh__AdminReply *ring = same && status->pending == 0 ? NULL : ask_ring(a);
    Rh__AdminReply *txns = ask_txns(a);
    if (ring != NULL) { // newer, maybe
        (void)stamp_text(ring->version, version);
    }
    put_head(o, status, version, out);
    json_text(out, "changes", look->changes);
    put_waits(status, out);
    if (trend_from != 0) {
        put_trend(status, out);
    }
    put_coordinators(status, out);
    put_nodes(status, out);
    put_gateways(status, out);
    if (ring != NULL) {
        put_vnodes(ring, out);
    }
    if (txns != NULL) {
        put_txns(txns, out);
    }
    admin_free(status);
    admin_free(ring);
    admin_free(txns);
    return true;
}

void overview_set_coordinators(struct overview *o, const char *coordinators)
{
    (void)pthread_mutex_lock(&o->lock);
    (void)snprintf(o->coordinators, sizeof o->coordinators, "%s", coordinators);
    (void)pthread_mutex_unlock(&o->lock);
}

struct admin *overview_ask(struct overview *o)
{
    char coordinators[OVERVIEW_COORDINATORS_SIZE];

    (void)pthread_mutex_lock(&o->lock);
    memcpy(coordinators, o->coordinators, sizeof coordinators);
    (void)pthread_mutex_unlock(&o->lock);
    const struct admin_where where = {
        .cluster = o->cluster, .coordinators = coordinators, .tls = o->tls};
    return admin_open(&where);
}

bool overview_put(void *overview, const struct http_look *look, struct buffer *out)
{
    struct overview *o = overview;
    struct admin *a = overview_ask(o);

    json_begin(out, NULL, '{');
    json_number(out, "schema", 1);
    const bool answered = a != NULL && put_all(o, a, look, out);
    if (!answered) {
        json_text(out, "error", "no coordinator answers as leader");
    }
    json_end(out, '}');
    admin_close(a);
    return answered;
}

/* ---- who lives at a node ---- */

/* NULL, or what is wrong. `what` borrows of `asked`. */
static const char *fault_of(const struct http_actors *asked, Rh__AdminActors *what)
{
    const char *prefix = asked->prefix == NULL ? "" : asked->prefix;
    uint64_t kind;
    uint64_t limit;

    if (asked->node == NULL || asked->node[0] == '\0') {
        return "node: the name of a node is needed";
    }
    if (!parse(asked->kind, 0, UINT16_MAX, &kind)) {
        return "kind: must be a whole number from 0 to 65535";
    }
    if (!parse(asked->limit, 0, UINT32_MAX, &limit)) {
        return "limit: must be a whole number";
    }
    if (!parse(asked->cursor, 0, UINT64_MAX, &what->cursor)) {
        return "cursor: must be what the page before said as next";
    }
    what->node = proto_text(asked->node);
    what->any_kind = asked->kind == NULL;
    what->kind = (uint32_t)kind;
    what->limit = (uint32_t)limit;
    what->prefix = proto_bytes(bytes_of(prefix, strlen(prefix)));
    return NULL;
}

static void put_residents(const Rh__ActorsAnswer *page, struct buffer *out)
{
    char word[HISTORY_WORD_SIZE];
    char name[ACTOR_NAME_SIZE];
    char next[24];

    json_text(out, "node", page->name);
    json_begin(out, "actors", '[');
    for (size_t i = 0; i < page->n_rows; i++) {
        const Rh__ActorRow *row = page->rows[i];

        json_begin(out, NULL, '{');
        json_text(
            out, "actor", actor_name_print(row->kind, bytes_of(row->id.data, row->id.len), name));
        json_number(out, "kind", row->kind);
        json_text(out, "id", history_word(bytes_of(row->id.data, row->id.len), word));
        json_text(out, "state", row->state);
        json_number(out, "unused_ms", row->unused_ms);
        json_end(out, '}');
    }
    json_end(out, ']');
    (void)snprintf(next, sizeof next, "%" PRIu64, page->next);
    json_text(out, "next", next);
}

/* NULL, or why there is no page. */
static const char *ask_page(struct overview *o, Rh__AdminActors *what, Rh__AdminReply **reply)
{
    struct admin *a = overview_ask(o);

    *reply = a == NULL ? NULL : admin_try(a, &what->base, ASK_MS);
    admin_close(a);
    return *reply == NULL               ? "neither the node nor a leader answers"
           : (*reply)->error[0] != '\0' ? (*reply)->error
           : (*reply)->actors == NULL   ? "the leader is an older version"
                                        : NULL;
}

enum http_told overview_put_actors(void *overview, const struct http_actors *asked,
                                   struct buffer *out)
{
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;
    Rh__AdminReply *reply = NULL;
    const char *malformed = fault_of(asked, &what);
    const char *fault = malformed != NULL ? malformed : ask_page(overview, &what, &reply);

    json_begin(out, NULL, '{');
    json_number(out, "schema", 1);
    if (fault == NULL) {
        put_residents(reply->actors, out);
    } else {
        json_text(out, "error", fault);
    }
    json_end(out, '}');
    admin_free(reply);
    return malformed != NULL ? HTTP_TOLD_MALFORMED : fault != NULL ? HTTP_TOLD_NOT : HTTP_TOLD;
}
