/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that fell silent: PROTOCOL §4.2-4.3.
 *
 *     silent for suspect_ms, and another could take over --FENCE--> barred
 *     barred, and its lease surely ended --REASSIGN (cold)--> dead, owns nothing
 *
 * All of it is read from the state, so a new leader goes on where the old one
 * was; only the wait begins anew, with its election (hole 24). A node that
 * nobody could replace is left alone: fencing it would only destroy its memory.
 */
#include "txn/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <inttypes.h>

/* ---- who could take over ---- */

/* Nodes that drain are the last resort: they'd drain again. */
static bool may_take(struct coordinator *c, const struct state_node *node, bool last_resort)
{
    return peers_live(c, node) && !node->stopping && node->leaving == last_resort;
}

/* Heard of so lately that whatever silenced the suspect did not silence this one too. */
static bool is_fresh(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);

    return seen != NULL && c->now_us - seen->heard_us <= (uint64_t)c->config.suspect_ms * 1000 / 2;
}

static bool someone_could_take_over(struct coordinator *c, uint16_t slot)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (node->slot != slot && is_fresh(c, node) &&
            (may_take(c, node, false) || may_take(c, node, true))) {
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
            nodes[count++] = (struct plan_node){.slot = node->slot, .weight = node->weight};
        }
    }
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
    const struct peer *peer;

    if (!result->accepted || node == NULL || !node->barred || node->clean) {
        return;
    }
    log_warn("txn",
             "fenced",
             "node=%s incarnation=%" PRIu64 " vnodes=%zu",
             node->name,
             node->incarnation,
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
    c->deaf_us = c->now_us;
}

static bool is_suspect(struct coordinator *c, const struct state_node *node)
{
    return !node->barred && peers_gone(c, node) &&
           c->now_us - c->deaf_us > (uint64_t)c->config.suspect_ms * 1000;
}

/* ---- REASSIGN ---- */

/* I11: never before the last lease of that incarnation surely ended, whoever granted it. */
static void assert_waited(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    const uint64_t granted_us = seen == NULL ? 0 : seen->granted_us;
    const uint64_t wait_us = lease_longest_us(c) + c->config.lease_margin_us;

    if (mutant(M_NOWAIT) || mutant(M_NEWLEAD) || mutant(M_DRIFT)) {
        return; // the checkers shall see what comes of it
    }
    ASSERT(node->barred);
    ASSERT(c->now_us >= granted_us + wait_us && c->now_us >= c->lead_us + wait_us);
}

static void propose_reassign(struct coordinator *c, const struct state_node *node,
                             const struct ring_op *moves, size_t count)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandReassign body = RH__COMMAND_REASSIGN__INIT;
    struct proposal *p;

    assert_waited(c, node);
    body.slot = node->slot;
    body.incarnation = node->incarnation;
    body.moves = view_wire_ops(moves, count);
    body.n_moves = count;
    command.body_case = RH__COMMAND__BODY_REASSIGN;
    command.reassign = &body;
    p = coordinator_propose(c, PROPOSAL_REASSIGN, &command);
    if (p != NULL) {
        p->slot = node->slot;
        log_warn("txn", "reassigning", "node=%s vnodes=%zu", node->name, count);
    }
    for (size_t i = 0; i < count; i++) {
        mem_free(body.moves[i]);
    }
    mem_free(body.moves);
}

/* Everything it owns, to all who can take it; at most one entry's worth at a time. */
static void reassign(struct coordinator *c, const struct state_node *node)
{
    struct plan_node *nodes = mem_new(c->state->node_count, sizeof *nodes);
    size_t count = collect(c, nodes, false);
    struct ring_op *moves = NULL;
    size_t move_count = 0;

    if (count == 0) {
        count = collect(c, nodes, true);
    }
    moves = plan_reassign(&c->state->view.ring, nodes, count, node->slot, &move_count);
    if (move_count > 0) {
        propose_reassign(
            c, node, moves, move_count < STATE_TXN_OPS_MAX ? move_count : STATE_TXN_OPS_MAX);
    }
    mem_free(moves);
    mem_free(nodes);
}

static bool is_orphaned(const struct coordinator *c, const struct state_node *node)
{
    return node->barred && ring_owned_count(&c->state->view.ring, node->slot) > 0;
}

/* ---- all ---- */

void fence_run(struct coordinator *c)
{
    // Without leases nobody knows when a silent node stops.
    if (c->config.lease_us == 0 || c->now_us < c->quiet_us ||
        c->now_us - c->fence_us < (uint64_t)FENCE_PERIOD_MS * 1000) {
        return;
    }
    c->fence_us = c->now_us;
    look_who_is_heard(c);
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (is_suspect(c, node) && someone_could_take_over(c, node->slot)) {
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
