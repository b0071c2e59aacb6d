/* SPDX-License-Identifier: Apache-2.0
 *
 * What only planted bugs do; nothing in any other build.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"

#ifdef RINGHOLD_MUTANTS

void planted_fini(struct coordinator *c)
{
    buffer_fini(&c->planted.config);
}

static bool is_part(const Rh__RingOp *op, const struct state_node *node)
{
    return op->kind == RING_MOVE && (op->from == node->slot || op->to == node->slot);
}

static void prepare(struct coordinator *c, const Rh__CommandBegin *begin, uint64_t number,
                    const struct state_node *node)
{
    const struct ring *ring = &c->state->view.ring;
    const struct leader_peer *peer = peers_of_node(c, node);
    Rh__Arc *arcs = mem_new(begin->n_ops, sizeof *arcs);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Prepare body = RH__PREPARE__INIT;

    body.txn = number;
    body.base_version = begin->base_version;
    body.supersedes = begin->supersedes;
    body.deadline_ms = c->config.prepare_ms;
    body.arcs = mem_new(begin->n_ops, sizeof(Rh__Arc *));
    for (size_t i = 0; i < begin->n_ops; i++) {
        const Rh__RingOp *op = begin->ops[i];
        const struct ring_vnode *v = ring_find(ring, op->vnode);
        const bool out_of = op->from == node->slot;
        const struct state_node *other =
            state_node(c->state, (uint16_t)(out_of ? op->to : op->from));

        if (!is_part(op, node) || v == NULL || other == NULL) {
            continue;
        }
        arcs[body.n_arcs] = (Rh__Arc)RH__ARC__INIT;
        arcs[body.n_arcs].from = v->from;
        arcs[body.n_arcs].to = ring_end(ring, v);
        arcs[body.n_arcs].out = out_of;
        arcs[body.n_arcs].peer = other->slot;
        arcs[body.n_arcs].peer_incarnation = other->incarnation;
        arcs[body.n_arcs].vnode = op->vnode;
        body.arcs[body.n_arcs] = &arcs[body.n_arcs];
        body.n_arcs++;
    }
    out.target_incarnation = node->incarnation;
    out.body_case = RH__CONTROL__BODY_PREPARE;
    out.prepare = &body;
    if (peer != NULL && body.n_arcs > 0) {
        peers_send(c, peer->id, &out);
    }
    mem_free(body.arcs);
    mem_free(arcs);
}

void planted_localnum(struct coordinator *c, const Rh__CommandBegin *begin)
{
    const uint64_t number = c->state->number + 1 + c->proposals.count;

    for (size_t i = 0; i < c->state->node_count; i++) {
        if (!c->state->node[i].barred) {
            prepare(c, begin, number, &c->state->node[i]);
        }
    }
}

ProtobufCMessage *planted_readfirst(struct coordinator *c)
{
    if (c->planted.config.size == 0 || c->now_us - c->planted.read_us > 1000000) {
        Rh__Config config;

        buffer_clear(&c->planted.config);
        view_config(&c->state->view, &config);
        proto_put(&c->planted.config, &config.base);
        view_config_fini(&config);
        c->planted.read_us = c->now_us;
    }
    return proto_get(&rh__config__descriptor, buffer_bytes(&c->planted.config));
}

#endif
