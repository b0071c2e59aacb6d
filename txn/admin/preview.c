/* SPDX-License-Identifier: Apache-2.0
 *
 * What would move if a node came, went or had another weight: the planner's own
 * work, on the nodes as they would be. What pends already counts as done, and
 * what is still to begin is part of it.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"

#include <stdio.h>

static const char *kind_name(const struct plan_txn *t)
{
    switch (t->ops[0].kind) {
    case RING_SPLIT:
        return "split";
    case RING_MERGE:
        return "merge";
    case RING_MOVE:
        break;
    }
    return "move";
}

/* `added` has `added_slot`, and is no member. */
static const char *name_of(const struct coordinator *c, uint16_t slot, const char *added,
                           uint16_t added_slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node != NULL ? node->name : slot != 0 && slot == added_slot ? added : "";
}

static uint64_t cells_of(const struct ring *ring, const struct ring_op *op)
{
    const struct ring_vnode *v = op->kind == RING_MOVE ? ring_find(ring, op->vnode) : NULL;

    return v == NULL ? 0 : ring_end(ring, v) - v->from;
}

/* Applies it to `ring`, so that what comes behind is measured on what it builds on. */
static Rh__PlanRow *plan_row(const struct coordinator *c, const struct plan_txn *t,
                             struct ring *ring, const char *added, uint16_t added_slot)
{
    Rh__PlanRow *row = mem_new(1, sizeof *row);

    *row = (Rh__PlanRow)RH__PLAN_ROW__INIT;
    row->wave = t->wave;
    row->kind = mem_string(kind_name(t));
    row->from = mem_string(name_of(c, t->source, added, added_slot));
    row->to = mem_string(name_of(c, t->target, added, added_slot));
    row->vnodes = mem_new(t->op_count, sizeof *row->vnodes);
    for (size_t i = 0; i < t->op_count; i++) {
        row->vnodes[row->n_vnodes++] = t->ops[i].vnode;
        row->cells += cells_of(ring, &t->ops[i]);
    }
    if (ring_check(ring, t->ops, t->op_count) == ERR_OK) {
        ring_apply(ring, t->ops, t->op_count, ring->version, 0);
    }
    return row;
}

static uint16_t free_slot(const struct coordinator *c)
{
    uint16_t slot = 1;

    while (slot < RING_NODES_MAX && state_node(c->state, slot) != NULL) {
        slot++;
    }
    return slot;
}

static struct plan_node *node_at(const struct coordinator *c, struct plan_node *nodes,
                                 const struct state_node *node)
{
    return &nodes[node - c->state->node];
}

/* Why it makes no sense, into `text`; "" = it does. */
static void find_fault(struct coordinator *c, const Rh__AdminPreview *in, char *text)
{
    const struct state_node *node = state_node_named(c->state, in->name);
    const bool weighs = in->what != RH__PREVIEW_WHAT__PREVIEW_DRAIN;

    text[0] = '\0';
    if (in->what == RH__PREVIEW_WHAT__PREVIEW_BALANCE) {
        const struct loads_state load = loads_state(c);

        if (!load.known) {
            (void)snprintf(
                text, ADMIN_TEXT_SIZE, "the load is not known yet: %s; try again later", load.why);
        }
        return;
    }
    if (in->what == RH__PREVIEW_WHAT__PREVIEW_ADD && node != NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "node '%.64s' exists already", in->name);
    } else if (in->what != RH__PREVIEW_WHAT__PREVIEW_ADD && node == NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "unknown node '%.64s'", in->name);
    } else if (weighs && (in->weight < 1 || in->weight > VIEW_WEIGHT_MAX)) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "WEIGHT must be 1 to %d", VIEW_WEIGHT_MAX);
    } else if (!weighs && !node->leaving && !state_others_stay(c->state, node->slot)) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       node->role[0] == '\0' ? "the node is the last one"
                                             : "the node is the last one of its role");
    }
}

/* Owned. `slot` is of the one that comes, or 0. */
static struct plan_node *nodes_then(struct coordinator *c, const Rh__AdminPreview *in,
                                    size_t *count, uint16_t *slot)
{
    const struct state_node *node = state_node_named(c->state, in->name);
    struct plan_node *nodes = rebalance_nodes(c, 1);

    *count = c->state->node_count;
    *slot = 0;
    if (in->what == RH__PREVIEW_WHAT__PREVIEW_ADD) {
        *slot = free_slot(c);
        nodes[(*count)++] = (struct plan_node){
            .slot = *slot, .weight = in->weight, .role = in->role, .incarnation = UINT64_MAX};
    } else if (in->what == RH__PREVIEW_WHAT__PREVIEW_WEIGHT) {
        node_at(c, nodes, node)->weight = in->weight;
    } else if (in->what == RH__PREVIEW_WHAT__PREVIEW_DRAIN) {
        node_at(c, nodes, node)->leaving = true;
    }
    return nodes;
}

struct preview preview_of(struct coordinator *c, struct plan_node *nodes, size_t count,
                          const struct plan_wishes *more)
{
    return (struct preview){.of = {.nodes = nodes,
                                   .count = count,
                                   .more = more,
                                   .by_load = c->config.balance_by != BALANCE_BY_HASH},
                            .added = ""};
}

void preview_plan(struct coordinator *c, Rh__AdminReply *reply, const struct preview *p)
{
    struct plan plan;
    struct ring ring;

    if (rebalance_plan(c, &p->of, &plan, &ring) != ERR_OK) {
        admin_set_text(&reply->error, "no plan is possible: no node would stay");
    }
    reply->plan = mem_new(plan.txn_count + 1, sizeof(Rh__PlanRow *));
    for (size_t i = 0; i < plan.txn_count; i++) {
        reply->plan[reply->n_plan++] = plan_row(c, &plan.txn[i], &ring, p->added, p->added_slot);
    }
    admin_add_nodes(c, reply);
    plan_fini(&plan);
    ring_fini(&ring);
}

void admin_preview(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminPreview *in)
{
    char text[ADMIN_TEXT_SIZE];
    size_t count = 0;
    uint16_t slot = 0;

    find_fault(c, in, text);
    if (text[0] != '\0') {
        admin_set_text(&reply->error, text);
        return;
    }
    struct plan_node *nodes = nodes_then(c, in, &count, &slot);
    struct preview p = preview_of(c, nodes, count, NULL);

    p.added = in->name;
    p.added_slot = slot;
    if (in->what == RH__PREVIEW_WHAT__PREVIEW_BALANCE) {
        p.of.by_load = true;
        p.of.moves = UINT32_MAX;
    }
    preview_plan(c, reply, &p);
    mem_free(nodes);
}
