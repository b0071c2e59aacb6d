/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateways that are linked, for who asks: each thread of a gateway is linked
 * and told of rings for itself, and an operator sees one gateway, as far behind
 * as the last of its threads.
 */
#include "txn/admin/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/gateway_id.h"

#include <string.h>

static void begin_row(Rh__GatewayRow *row, const struct leader_peer *peer)
{
    *row = (Rh__GatewayRow)RH__GATEWAY_ROW__INIT;
    row->name = mem_string(peer->name);
    row->version = peer->told.have_version;
    row->digest0 = peer->told.digest0;
    row->digest1 = peer->told.digest1;
    row->threads = 1;
}

static void add_thread(const struct coordinator *c, Rh__GatewayRow *row,
                       const struct leader_peer *peer)
{
    const uint64_t silent_us = c->now_us - peer->heard_us;

    if (peer->told.have_version < row->version) {
        row->version = peer->told.have_version;
        row->digest0 = peer->told.digest0;
        row->digest1 = peer->told.digest1;
    }
    row->requests += peer->told.requests;
    row->in_flight += peer->told.in_flight;
    row->unknown += peer->told.unknown;
    row->stale_answers += peer->told.stale_answers;
    row->heard_us_ago = silent_us > row->heard_us_ago ? silent_us : row->heard_us_ago;
    row->threads = peer->told.threads > row->threads ? peer->told.threads : row->threads;
    row->linked++;
}

static bool is_process(const struct leader_peer *a, const struct leader_peer *b)
{
    return gateway_id_process(a->incarnation) == gateway_id_process(b->incarnation) &&
           strcmp(a->name, b->name) == 0;
}

void gateways_look(const struct coordinator *c, const struct leader_peer *peer)
{
    const struct leader_peer *namesake = NULL;

    for (size_t i = 0; i < c->peers.count && peer->role == ROLE_GATEWAY; i++) {
        const struct leader_peer *other = c->peers.item[i];

        if (other == peer || other->role != ROLE_GATEWAY || strcmp(other->name, peer->name) != 0) {
            continue;
        }
        if (is_process(other, peer)) {
            return; // Another thread of it was looked at.
        }
        namesake = other;
    }
    if (namesake != NULL) {
        log_warn("txn",
                 "gateway_name_twice",
                 "gateway=%s address=%s other=%s why=\"two processes have this name: both serve, "
                 "but metrics, kicks and checks can't tell them apart\"",
                 peer->name,
                 peer->address,
                 namesake->address);
    }
}

void admin_gateways(struct coordinator *c, Rh__AdminReply *reply)
{
    const struct leader_peer **first =
        mem_new(c->peers.count + 1, sizeof(struct leader_peer *)); /* of each row */

    reply->gateways = mem_new(c->peers.count + 1, sizeof(Rh__GatewayRow *));
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct leader_peer *peer = c->peers.item[i];
        size_t at = 0;

        if (peer->role != ROLE_GATEWAY) {
            continue;
        }
        while (at < reply->n_gateways && !is_process(first[at], peer)) {
            at++;
        }
        if (at == reply->n_gateways) {
            first[at] = peer;
            reply->gateways[at] = mem_new(1, sizeof(Rh__GatewayRow));
            begin_row(reply->gateways[at], peer);
            reply->n_gateways++;
        }
        add_thread(c, reply->gateways[at], peer);
    }
    mem_free(first);
}
