/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that fell silent: specification §4.2-4.3.
 *
 *     silent for suspect_ms, and another could take over --> suspect: its transactions are aborted
 *     suspect, until any lease of it has surely ended --FENCE--> barred
 *     barred, and its lease surely ended --REASSIGN (cold)--> dead, owns nothing
 *
 * FENCE can't be taken back, and costs the memory of actors that the node might go on with: so it
 * comes as late as REASSIGN does, and who is heard of before goes on.
 *
 * All of it is read from the state, so a new leader goes on where the old one
 * was; only the wait begins anew, with its election (hole 24). A node that
 * nobody could replace is left alone: fencing it would only destroy its memory.
 */
#include "txn/leader/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <string.h>

enum { FENCE_PERIOD_MS = 10 };

/* ---- who could take over ---- */

/* Nodes that drain are the last resort: they'd drain again. */
static bool may_take(struct coordinator *c, const struct state_node *node, bool last_resort)
{
    return peers_live(c, node) && !node->stopping && node->leaving == last_resort;
}

/* Heard of so lately that whatever silenced the suspect did not silence this one too. A node is
 * heard of at each renewal, every sixth part of a lease: with a shorter `--suspect` a few nodes
 * would never all be fresh, and nobody would be fenced. */
static bool is_fresh(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    const uint64_t half_us = (uint64_t)c->config.suspect_ms * 1000 / 2;
    const uint64_t renewal_us = c->config.lease_us / 4;

    return seen != NULL &&
           c->now_us - seen->heard_us <= (half_us > renewal_us ? half_us : renewal_us);
}

static bool someone_could_take_over(struct coordinator *c, const struct state_node *suspect)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (node->slot != suspect->slot && strcmp(node->role, suspect->role) == 0 &&
            is_fresh(c, node) && (may_take(c, node, false) || may_take(c, node, true))) {
            return true;
        }
    }
    return false;
}

static size_t collect(struct coordinator *c, struct plan_node *nodes, bool last_resort)
{
    size_t count = 0;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (may_take(c, node, last_resort)) {
            nodes[count] = (struct plan_node){.slot = node->slot,
                                              .weight = node->weight,
                                              .role = node->role,
                                              .kinds = &node->kinds,
                                              .incarnation = node->incarnation,
                                              .zone = node->zone};
            parts_set(c, node, &nodes[count++]);
        }
    }
    zones_keep(&c->config, nodes, count);
    return count;
}

/* ---- FENCE ---- */

void fence_propose(struct coordinator *c, const struct state_node *node, bool clean)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandFence body = RH__COMMAND_FENCE__INIT;
    struct proposal *p;

    if (node->barred || coordinator_proposal(c, PROPOSAL_FENCE, node->slot) != NULL) {
        return;
    }
    body.slot = node->slot;
    body.incarnation = node->incarnation;
    body.clean = clean;
    command.body_case = RH__COMMAND__BODY_FENCE;
    command.fence = &body;
    p = coordinator_propose(c, PROPOSAL_FENCE, &command);
    if (p != NULL) {
        p->slot = node->slot;
    }
}

void fence_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result)
{
    const struct state_node *node = state_node(c->state, (uint16_t)p->slot);
    const struct leader_peer *peer;

    if (!result->accepted || node == NULL || !node->barred || node->clean) {
        return;
    }
    log_warn("txn",
             "fenced",
             "node=%s incarnation=%s vnodes=%zu",
             node->name,
             STAMP(node->incarnation),
             ring_owned_count(&c->state->view.ring, node->slot));
    peer = peers_of_node(c, node);
    if (peer != NULL) {
        register_bar(c, peer->id, node); // it may only have slept: it need not find out by itself
    }
}

/* When the whole fleet falls silent it is not the fleet that is ill: once one comes back, the
 * others have as long again. */
static void look_who_is_heard(struct coordinator *c)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        if (is_fresh(c, &c->state->node[i])) {
            return;
        }
    }
    c->fence.deaf_us = mutant(M_FIRSTHEARD) ? c->fence.deaf_us : c->now_us;
}

bool fence_rests(const struct coordinator *c)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (node->barred ? ring_owned_count(&c->state->view.ring, node->slot) > 0
                         : node->stopping || node->leaving || !is_fresh(c, node)) {
            return false;
        }
    }
    return true;
}

bool fence_suspects(struct coordinator *c, const struct state_node *node)
{
    return !node->barred && peers_gone(c, node) &&
           c->now_us - c->fence.deaf_us > (uint64_t)c->config.suspect_ms * 1000 &&
           someone_could_take_over(c, node);
}

/* What it was granted last is over: whoever granted it heard of it then, or led before me. */
static bool is_over(const struct coordinator *c, const struct state_node *node)
{
    // The wait for REASSIGN has mutants of its own, which this one would hide.
    const bool early = mutant(M_NOWAIT) || mutant(M_NEWLEAD) || mutant(M_DRIFT) ||
                       mutant(M_NOSTOP) || mutant(M_FENCEPEND);

    return early || mutant(M_EAGER) ||
           (peers_silent_us(c, node) >= lease_wait_us(c) && c->now_us >= c->fence.told_us &&
            c->now_us - c->fence.deaf_us >= lease_wait_us(c));
}

/* ---- REASSIGN ---- */

/* I11: never before the last lease of that incarnation surely ended, whoever granted it. */
static void assert_waited(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    const uint64_t granted_us = seen == NULL ? 0 : seen->granted_us;
    const uint64_t wait_us = lease_wait_us(c);

    if (mutant(M_NOWAIT) || mutant(M_NEWLEAD) || mutant(M_DRIFT)) {
        return; // the checkers shall see what comes of it
    }
    ASSERT(node->barred);
    ASSERT(c->now_us >= granted_us + wait_us && c->now_us >= c->lead_us + wait_us);
}

/* Of `node`; NULL: what is nobody's. */
static void propose_reassign(struct coordinator *c, const struct state_node *node,
                             const struct ring_op *moves, size_t count)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandReassign body = RH__COMMAND_REASSIGN__INIT;
    struct proposal *p;

    if (node != NULL) {
        assert_waited(c, node);
        body.slot = node->slot;
        body.incarnation = node->incarnation;
        body.silent_us = peers_silent_us(c, node);
    }
    body.moves = view_wire_ops(moves, count);
    body.n_moves = count;
    body.suspects = node == NULL ? NULL : unanswered_suspects(c, node, &body.n_suspects);
    command.body_case = RH__COMMAND__BODY_REASSIGN;
    command.reassign = &body;
    p = coordinator_propose(c, PROPOSAL_REASSIGN, &command);
    if (p != NULL) {
        p->slot = body.slot;
        if (node == NULL) {
            log_info("txn", "allocating", "vnodes=%zu", count);
        } else {
            log_warn("txn", "reassigning", "node=%s vnodes=%zu", node->name, count);
        }
    }
    for (size_t i = 0; i < count; i++) {
        mem_free(body.moves[i]);
    }
    mem_free(body.moves);
    for (size_t i = 0; i < body.n_suspects; i++) {
        proto_free(&body.suspects[i]->base);
    }
    mem_free(body.suspects);
}

/* `nodes` has room for one more. */
static void give_to(struct coordinator *c, const struct state_node *node, struct plan_node *nodes,
                    size_t count, size_t *given)
{
    const uint16_t slot = node == NULL ? RING_NODE_NONE : node->slot;
    struct plan_wishes wishes;

    if (node != NULL) { // for its zone
        nodes[count++] = (struct plan_node){.slot = slot,
                                            .weight = node->weight,
                                            .leaving = true,
                                            .role = node->role,
                                            .zone = node->zone};
    }

    wishes_make(c, NULL, &wishes);
    struct ring_op *moves = plan_reassign(
        &(struct plan_view){&c->state->view.ring, nodes, count}, &wishes, slot, given);
    wishes_end(&wishes);
    if (*given > 0) {
        propose_reassign(c, node, moves, *given < STATE_TXN_OPS_MAX ? *given : STATE_TXN_OPS_MAX);
    }
    mem_free(moves);
}

/* Everything it owns, to all who can take it; at most one entry's worth at a time. */
static void reassign(struct coordinator *c, const struct state_node *node)
{
    struct plan_node *nodes = mem_new(c->state->node_count + 1, sizeof *nodes);
    size_t given = 0;

    give_to(c, node, nodes, collect(c, nodes, false), &given);
    if (given == 0) { // of its role there are only some that drain, if any
        give_to(c, node, nodes, collect(c, nodes, true), &given);
    }
    mem_free(nodes);
}

/* ---- what is nobody's yet ---- */

uint32_t fence_least_members(const struct coordinator *c, const char *role)
{
    for (size_t i = 0; i < c->config.least_count; i++) {
        if (strcmp(c->config.least[i].role, role) == 0) {
            return c->config.least[i].members;
        }
    }
    return 1;
}

bool fence_role_is_short(struct coordinator *c, const char *role, uint32_t more)
{
    uint32_t members = more;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        members += strcmp(node->role, role) == 0 && may_take(c, node, false);
    }
    return members < fence_least_members(c, role);
}

/* Looked at once for each version. */
static bool all_is_owned(struct coordinator *c)
{
    const struct ring *ring = &c->state->view.ring;

    if (c->fence.owned_version == 0 || c->fence.owned_version != ring->version) {
        c->fence.owned_version = ring_owned_count(ring, RING_NODE_NONE) == 0 ? ring->version : 0;
    }
    return c->fence.owned_version != 0 || ring->vnode_count == 0;
}

/* The first allocation of a role's cells: nobody ever had them, so nobody is asked. */
static void allocate(struct coordinator *c)
{
    struct plan_node *nodes;
    size_t count;
    size_t kept = 0;
    size_t given = 0;

    // Restored from a backup it may be somebody's, who was given it later (hole 52).
    if (fence_settling(c) || all_is_owned(c) ||
        coordinator_proposal(c, PROPOSAL_REASSIGN, RING_NODE_NONE) != NULL) {
        return;
    }
    nodes = mem_new(c->state->node_count, sizeof *nodes);
    count = collect(c, nodes, false);
    for (size_t i = 0; i < count; i++) {
        if (!fence_role_is_short(c, nodes[i].role, 0)) {
            nodes[kept++] = nodes[i];
        }
    }
    give_to(c, NULL, nodes, kept, &given);
    mem_free(nodes);
}

static bool is_orphaned(struct coordinator *c, const struct state_node *node)
{
    return node->barred && wishes_to_give(c, node) > 0;
}

/* ---- all ---- */

void fence_run(struct coordinator *c)
{
    if (c->now_us < c->proposals.quiet_us ||
        c->now_us - c->fence.looked_us < (uint64_t)FENCE_PERIOD_MS * 1000) {
        return;
    }
    c->fence.looked_us = c->now_us;
    allocate(c);
    // Without leases nobody knows when a silent node stops.
    if (c->config.lease_us == 0) {
        return;
    }
    look_who_is_heard(c);
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (fence_suspects(c, node) && is_over(c, node)) {
            fence_propose(c, node, false);
        }
    }
    // One at a time: each plan must see what the last one gave.
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (coordinator_proposal(c, PROPOSAL_REASSIGN, node->slot) != NULL) {
            return;
        }
    }
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (is_orphaned(c, node) && c->now_us >= lease_over_us(c, node)) {
            reassign(c, node);
            return;
        }
    }
}

void fence_settle(struct coordinator *c)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandSettled body = RH__COMMAND_SETTLED__INIT;

    if (fence_settling(c)) {
        c->fence.deaf_us = c->now_us;
    }
    if (!c->state->settling || coordinator_proposal(c, PROPOSAL_SETTLE, 0) != NULL ||
        (c->now_us < lease_elders_over_us(c) && !mutant(M_RESTORE))) {
        return;
    }
    command.body_case = RH__COMMAND__BODY_SETTLED;
    command.settled = &body;
    if (coordinator_propose(c, PROPOSAL_SETTLE, &command) != NULL) {
        log_info("txn", "settled", "era=%" PRIu64, c->state->view.era);
    }
}

bool fence_settling(const struct coordinator *c)
{
    return c->state->settling && !mutant(M_RESTORE);
}

void fence_forget(struct coordinator *c)
{
    c->fence.deaf_us = 0;
    c->fence.owned_version = 0;
    c->fence.extended_us = 0;
    c->fence.taken_back = false;
    c->fence.told_us = 0;
}

/* ---- for people ---- */

const char *fence_state(struct coordinator *c, const struct state_node *node)
{
    if (node->barred) {
        return is_orphaned(c, node) ? "fenced" : "dead";
    }
    if (peers_gone(c, node)) {
        return "suspect";
    }
    return node->leaving ? "leaving" : "live";
}

uint64_t fence_lease_left_us(const struct coordinator *c, const struct state_node *node)
{
    const uint64_t over_us = lease_over_us(c, node);

    return c->leading && over_us > c->now_us ? over_us - c->now_us : 0;
}
