/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the leader for the whole fleet and writes the JSON of /fleet.
 */
#include "coordinator/overview.h"

#include "daemon/admin.h"
#include "daemon/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ASK_MS = 1000, TXNS_MAX = 50 };

static Rh__AdminReply *ask_status(struct admin *a)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

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
        char number[24];

        (void)snprintf(number, sizeof number, "%" PRIu64, t->txn);
        json_begin(out, NULL, '{');
        json_text(out, "number", number);
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

/* The ring's version as text, for those that ask again with it. */
static bool put_all(const struct overview *o, struct admin *a, const char *known,
                    struct buffer *out)
{
    Rh__AdminReply *status = ask_status(a);
    char version[24];

    if (status == NULL || status->error[0] != '\0') {
        admin_free(status);
        return false;
    }
    (void)snprintf(version, sizeof version, "%" PRIu64, status->version);
    Rh__AdminReply *ring = strcmp(version, known) == 0 && status->pending == 0 ? NULL : ask_ring(a);
    Rh__AdminReply *txns = ask_txns(a);
    if (ring != NULL) { // newer, maybe
        (void)snprintf(version, sizeof version, "%" PRIu64, ring->version);
    }
    put_head(o, status, version, out);
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

bool overview_put(void *overview, const char *known, struct buffer *out)
{
    struct overview *o = overview;
    char coordinators[OVERVIEW_COORDINATORS_SIZE];

    (void)pthread_mutex_lock(&o->lock);
    memcpy(coordinators, o->coordinators, sizeof coordinators);
    (void)pthread_mutex_unlock(&o->lock);
    const struct admin_where where = {
        .cluster = o->cluster, .coordinators = coordinators, .tls = o->tls};
    struct admin *a = admin_open(&where);

    json_begin(out, NULL, '{');
    json_number(out, "schema", 1);
    const bool answered = a != NULL && put_all(o, a, known, out);
    if (!answered) {
        json_text(out, "error", "no coordinator answers as leader");
    }
    json_end(out, '}');
    if (a != NULL) {
        admin_close(a);
    }
    return answered;
}
