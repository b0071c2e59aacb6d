/* SPDX-License-Identifier: Apache-2.0
 *
 * Which versions run, and may the fleet's format rise? It may when every process
 * that must understand it is linked to the leader and reads the next one: all
 * coordinators, all registered nodes, the gateways that are there. An operator
 * says when (`ringhold upgrade --finish`), since no older version comes back
 * after that; docs/decisions/033.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "wire/gateway_id.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WHY_SIZE = 192 };

static Rh__BuildRow *add_row(Rh__AdminReply *reply, enum link_role role, const char *name)
{
    Rh__BuildRow *row = mem_new(1, sizeof *row);

    *row = (Rh__BuildRow)RH__BUILD_ROW__INIT;
    row->role = role;
    row->name = mem_string(name);
    reply->builds = mem_resize(reply->builds, (reply->n_builds + 1) * sizeof(Rh__BuildRow *));
    reply->builds[reply->n_builds++] = row;
    return row;
}

static void fill(Rh__BuildRow *row, const struct leader_peer *peer)
{
    if (peer != NULL) {
        admin_set_text(&row->product, peer->product);
        row->protocol = peer->protocol;
        row->format_min = peer->format.oldest;
        row->format = peer->format.newest;
        row->linked = true;
    }
}

static const struct leader_peer *fellow(const struct coordinator *c, const char *name)
{
    for (size_t i = c->peers.count; i-- > 0;) {
        if (c->peers.item[i]->role == ROLE_COORDINATOR &&
            strcmp(c->peers.item[i]->name, name) == 0) {
            return c->peers.item[i];
        }
    }
    return NULL;
}

static void add_coordinators(const struct coordinator *c, Rh__AdminReply *reply)
{
    const bool configured = c->config.voter_count > 0;
    const struct state_voter *voter = configured ? c->config.voter : c->state->voter;
    const size_t count = configured ? c->config.voter_count : c->state->voter_count;

    for (size_t i = 0; i < count; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "%" PRIu64, voter[i].id);
        Rh__BuildRow *row = add_row(reply, ROLE_COORDINATOR, name);
        if (voter[i].id == c->config.id) {
            admin_set_text(&row->product, "ringhold " RINGHOLD_VERSION);
            row->protocol = LINK_PROTOCOL;
            row->format_min = c->config.formats.oldest;
            row->format = c->config.formats.newest;
            row->linked = true;
        } else {
            fill(row, fellow(c, name));
        }
    }
}

/* Those that are barred register again, and are judged then. */
static void add_nodes(struct coordinator *c, Rh__AdminReply *reply)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (!node->barred) {
            fill(add_row(reply, ROLE_NODE, node->name), peers_of_node(c, node));
        }
    }
}

static bool is_first_of_process(const struct coordinator *c, size_t at)
{
    const struct leader_peer *peer = c->peers.item[at];

    for (size_t i = 0; i < at; i++) {
        const struct leader_peer *other = c->peers.item[i];

        if (other->role == ROLE_GATEWAY && strcmp(other->name, peer->name) == 0 &&
            gateway_id_process(other->incarnation) == gateway_id_process(peer->incarnation)) {
            return false;
        }
    }
    return true;
}

static void add_gateways(const struct coordinator *c, Rh__AdminReply *reply)
{
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.item[i]->role == ROLE_GATEWAY && is_first_of_process(c, i)) {
            fill(add_row(reply, ROLE_GATEWAY, c->peers.item[i]->name), c->peers.item[i]);
        }
    }
}

/* What forbids to rise to my newest format, into `why`; empty: nothing does. */
static void judge(const struct coordinator *c, const Rh__AdminReply *reply, char why[WHY_SIZE])
{
    const uint32_t wanted = c->config.formats.newest;
    bool newer = false;

    why[0] = '\0';
    for (size_t i = 0; i < reply->n_builds; i++) {
        const Rh__BuildRow *row = reply->builds[i];
        const char *role = link_role_name((enum link_role)row->role);

        newer = newer || row->format > c->state->format;
        if (!row->linked) {
            (void)snprintf(why, WHY_SIZE, "%s %s is not linked to the leader", role, row->name);
        } else if (row->format < wanted || row->format <= c->state->format) {
            (void)snprintf(why,
                           WHY_SIZE,
                           "%s %s reads formats %" PRIu32 "..%" PRIu32 ": upgrade it",
                           role,
                           row->name,
                           row->format_min,
                           row->format);
        }
    }
    if (!newer) {
        (void)snprintf(
            why, WHY_SIZE, "no process here reads a newer format than %" PRIu32, c->state->format);
    }
}

void upgrade_tell(struct coordinator *c, Rh__AdminReply *reply)
{
    char why[WHY_SIZE];

    add_coordinators(c, reply);
    add_nodes(c, reply);
    add_gateways(c, reply);
    judge(c, reply, why);
    reply->format = c->state->format;
    reply->format_next = why[0] == '\0' ? c->config.formats.newest : 0;
    admin_set_text(&reply->format_why, why);
}

struct proposal *upgrade_on_question(struct coordinator *c, Rh__AdminReply *reply,
                                     const Rh__AdminUpgrade *in)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandFormat body = RH__COMMAND_FORMAT__INIT;
    struct proposal *p;

    upgrade_tell(c, reply);
    if (!in->finish) {
        return NULL;
    }
    if (reply->format_next == 0) {
        admin_set_text(&reply->error, reply->format_why);
        return NULL;
    }
    body.format = reply->format_next;
    command.body_case = RH__COMMAND__BODY_FORMAT;
    command.format = &body;
    command.by = in->by;
    command.reason = in->reason;
    p = coordinator_propose(c, PROPOSAL_FORMAT, &command);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    return p;
}

void upgrade_run(struct coordinator *c)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandAhead body = RH__COMMAND_AHEAD__INIT;

    if (c->state->format < FLEET_FORMAT_AHEAD || c->upgrade.ahead_term == c->term) {
        return;
    }
    command.body_case = RH__COMMAND__BODY_AHEAD;
    command.ahead = &body;
    if (coordinator_propose(c, PROPOSAL_AHEAD, &command) != NULL) {
        c->upgrade.ahead_term = c->term;
    }
}
