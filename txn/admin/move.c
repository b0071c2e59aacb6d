/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves by an operator, or by a strategy of his: each is judged, and all are taken or none. What is
 * taken is a wish, which the planner does in transactions like any other, under the same caps.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "base/stamp.h"
#include "txn/state/roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSALS_TOLD = 8, SUMMARY_SIZE = 80 };

struct judged {
    struct plan_wishes wishes; /* of the moves that may be */
    size_t refused;
    char text[REFUSALS_TOLD * (ADMIN_TEXT_SIZE + 24) + SUMMARY_SIZE];
};

/* What is wrong with a node as the target of `v`, and what to do, into `text`; "" = nothing. */
static void target_fault(struct coordinator *c, const struct state_node *node,
                         const struct ring_vnode *v, char text[ADMIN_TEXT_SIZE])
{
    const char *role = roles_of_vnode(&c->state->view.ring, v);

    if (node->leaving) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "node '%s' drains: take another, or `ringhold node drain %s cancel`",
                       node->name,
                       node->name);
    } else if (!peers_live(c, node)) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "node '%s' is %s: take another, or wait until it is live",
                       node->name,
                       fence_state(c, node));
    } else if (strcmp(role, node->role) != 0) {
        (void)snprintf(
            text,
            ADMIN_TEXT_SIZE,
            "its cells are of role '%s', node '%s' has another: take a node of that role",
            role[0] == '\0' ? "default" : role,
            node->name);
    } else if (!roles_fit(c->state, node, v->id)) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "node '%s' does not host its kind: take a node that does",
                       node->name);
    }
}

/* What is wrong with the move, into `text`; "" = nothing. */
static void move_fault(struct coordinator *c, const Rh__VnodeMove *in, const struct ring_vnode *v,
                       const struct state_node *node, char text[ADMIN_TEXT_SIZE])
{
    const struct ring_op op = {.kind = RING_MOVE, .vnode = in->vnode};
    const struct state_txn *t = state_conflict(c->state, &op, 1, 0);

    text[0] = '\0';
    if (v == NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "no such vnode: `ringhold ring` lists them");
    } else if (node == NULL) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "unknown node '%.64s': `ringhold node list` lists them",
                       in->node);
    } else if (v->owner == RING_NODE_NONE) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "it is nobody's yet: wait for a node of its role");
    } else if (t != NULL) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "transaction %s changes it: wait for its end (`ringhold txn show %s`)",
                       STAMP(t->number),
                       STAMP(t->number));
    } else {
        target_fault(c, node, v, text);
    }
}

static void refuse(struct judged *j, uint32_t vnode, const char *why)
{
    const size_t used = strlen(j->text);

    if (j->refused++ < REFUSALS_TOLD) {
        (void)snprintf(j->text + used,
                       sizeof j->text - used,
                       "%svnode %" PRIu32 ": %s",
                       used == 0 ? "" : "; ",
                       vnode,
                       why);
    }
}

static int by_from(const void *a, const void *b)
{
    const struct plan_wish *x = a;
    const struct plan_wish *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static void judge(struct coordinator *c, const Rh__AdminMove *in, struct judged *j)
{
    const struct ring *ring = &c->state->view.ring;
    char text[ADMIN_TEXT_SIZE];

    *j = (struct judged){.wishes = {.wish = mem_new(in->n_moves + 1, sizeof(struct plan_wish))}};
    for (size_t i = 0; i < in->n_moves; i++) {
        const struct ring_vnode *v = ring_find(ring, in->moves[i]->vnode);
        const struct state_node *node = state_node_named(c->state, in->moves[i]->node);

        move_fault(c, in->moves[i], v, node, text);
        if (text[0] == '\0') {
            struct state_pin pin = {.from = v->from, .to = ring_end(ring, v), .waits = in->waits};

            (void)snprintf(pin.node, sizeof pin.node, "%s", node->name);
            pin_rival_text(c, &pin, text);
        }
        if (text[0] == '\0') {
            j->wishes.wish[j->wishes.count++] =
                (struct plan_wish){v->from, ring_end(ring, v), node->slot, PLAN_AT};
        } else {
            refuse(j, in->moves[i]->vnode, text);
        }
    }
    qsort(j->wishes.wish, j->wishes.count, sizeof *j->wishes.wish, by_from);
    for (size_t i = 1; i < j->wishes.count; i++) {
        if (j->wishes.wish[i].from == j->wishes.wish[i - 1].from) {
            refuse(j,
                   ring_hit_vnode(ring->cell[j->wishes.wish[i].from]),
                   "it is named twice: name it once");
        }
    }
}

static bool note(struct coordinator *c, const Rh__AdminMove *in)
{
    char subject[64];
    char what[ADMIN_TEXT_SIZE];

    (void)snprintf(subject, sizeof subject, "vnode %" PRIu32, in->moves[0]->vnode);
    (void)snprintf(what,
                   sizeof what,
                   "it is to move to %.64s once%s",
                   in->moves[0]->node,
                   in->n_moves > 1 ? ", and others" : "");
    const struct history_note told = {
        .action = "move", .subject = subject, .what = what, .by = in->by, .reason = in->reason};

    return coordinator_propose_note(c, PROPOSAL_NOTE, &told) != NULL;
}

static void wish_once(struct coordinator *c, struct leader_peer *peer, Rh__AdminReply *reply,
                      const Rh__AdminMove *in, const struct plan_wishes *wishes)
{
    char text[ADMIN_TEXT_SIZE];

    if (!note(c, in)) {
        admin_not_ready(c, reply);
        return;
    }
    wishes_add_once(c, wishes);
    peer->done = reply->tag;
    (void)snprintf(
        text,
        sizeof text,
        "%zu vnodes move once; when they are there, the planner may move them again, and "
        "a new leader forgets what has not moved",
        wishes->count);
    admin_set_text(&reply->text, text);
}

static void tell_refusals(struct judged *j, Rh__AdminReply *reply, size_t all)
{
    const size_t used = strlen(j->text);

    (void)snprintf(j->text + used,
                   sizeof j->text - used,
                   "; %zu of %zu moves are refused, so nothing moves",
                   j->refused,
                   all);
    admin_set_text(&reply->error, j->text);
}

bool move_ask(struct coordinator *c, struct leader_peer *peer, Rh__AdminReply *reply,
              const Rh__AdminMove *in)
{
    struct judged j;
    bool later = false;

    if (in->n_moves == 0 || in->n_moves > STATE_TXN_OPS_MAX) {
        admin_set_text(&reply->error, "a plan has 1 to 4096 moves");
        return false;
    }
    judge(c, in, &j);
    if (j.refused > 0) {
        tell_refusals(&j, reply, in->n_moves);
    } else if (in->dry_run) {
        struct plan_node *nodes = rebalance_nodes(c, 0);

        const struct preview p = preview_of(c, nodes, c->state->node_count, &j.wishes);

        preview_plan(c, reply, &p);
        mem_free(nodes);
    } else if (in->once) {
        wish_once(c, peer, reply, in, &j.wishes);
    } else {
        later = pin_cells(c, peer, reply, &j.wishes, in);
    }
    mem_free(j.wishes.wish);
    return later;
}
