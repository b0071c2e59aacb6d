/* SPDX-License-Identifier: Apache-2.0
 *
 * Two local nodes (bench/local_node.h): one hands vnodes with all their actors over to the
 * other, then back. What that costs is counted: by callgrind in bench/move_bench.c, as memory
 * asked for and records sent in tests/node/node_move_test.c. Node 2 has nothing at first.
 */
#ifndef BENCH_MOVE_MILL_H
#define BENCH_MOVE_MILL_H

#include "base/mem.h"
#include "bench/local_node.h"
#include "node/actors/actors.h"
#include "wire/args.h"

#include <stdio.h>
#include <string.h>

enum {
    MOVE_VNODES = 16,
    MOVE_VERSION = 10,
    MOVE_GATEWAY = 900,
    MOVE_STATE = 1024, /* bytes of an actor's state */
};

struct move_mill;

struct move_node {
    struct local_node node;
    struct move_mill *mill;
    uint16_t slot;
    struct buffer out[2]; /* to the other node: STATE, STATE_ACK */
    uint64_t voted;       /* transaction */
    uint64_t persist;     /* ticket to be reported; 0 = none */
};

struct move_mill {
    struct move_node node[2];
    struct kind kind;
    struct view cluster;
    uint64_t number; /* of the last transaction or version */
    size_t actor_count;
    size_t answered;
    size_t turns;   /* of both nodes' loops, with something to do */
    size_t records; /* STATE */
    size_t acks;
    bool ahead; /* images go before the hold does */
    uint32_t vnodes;
};

/* ---- the shell's part */

static inline void move_on_vote(struct move_node *n, struct bytes bytes)
{
    Rh__Control *c = control_get(bytes);

    ASSERT(c != NULL);
    if (c->body_case == RH__CONTROL__BODY_PREPARED) {
        n->voted = c->prepared->txn;
    }
    control_free(c);
}

static inline void move_perform(struct local_node *local, const struct host_effect *e,
                                struct bytes bytes)
{
    struct move_node *n = CONTAINER_OF(local, struct move_node, node);

    if (e->type == HOST_SEND_COORDINATOR) {
        move_on_vote(n, bytes);
    } else if (e->type == HOST_PERSIST) {
        n->persist = e->ticket;
    } else if (e->type == HOST_SEND_PEER && e->peer == MOVE_GATEWAY) {
        n->mill->answered++;
    } else if (e->type == HOST_SEND_PEER) {
        buffer_put(&n->out[e->frame_type == FRAME_STATE_ACK ? 1 : 0], bytes.data, bytes.size);
    }
}

/* Images that stand in `in`, which is emptied: some to a step. */
static inline size_t move_deliver_states(struct move_node *n, uint64_t from, struct buffer *in)
{
    enum { AT_ONCE = 32 };
    struct reader r = {.at = in->data, .left = in->size};
    size_t count = 0;

    while (r.left > 0) {
        struct state_record state[AT_ONCE];
        struct host_event event = {.type = HOST_STATE, .peer = from, .state = state};

        while (event.state_count < AT_ONCE && r.left > 0) {
            const enum err error = state_get(&r, &state[event.state_count++]);

            ASSERT(error == ERR_OK);
        }
        local_node_step(&n->node, &event);
        count += event.state_count;
    }
    buffer_clear(in);
    return count;
}

/* Likewise acknowledgements. */
static inline size_t move_deliver_acks(struct move_node *n, uint64_t from, struct buffer *in)
{
    struct reader r = {.at = in->data, .left = in->size};
    size_t count = 0;

    for (; r.left > 0; count++) {
        struct state_ack_record ack;
        struct host_event event = {.type = HOST_STATE_ACK, .peer = from, .state_ack = &ack};
        const enum err error = state_ack_get(&r, &ack);

        ASSERT(error == ERR_OK);
        local_node_step(&n->node, &event);
    }
    buffer_clear(in);
    return count;
}

/* One turn of a node's loop: what its worker told, what came, what is to be done next. */
__attribute__((noinline)) static bool move_turn(struct move_node *n)
{
    struct move_node *other = &n->mill->node[n->slot == 1 ? 1 : 0];
    struct host_event go_on = {.type = HOST_GO_ON};
    struct host_event persisted = {.type = HOST_PERSISTED, .ticket = n->persist};
    const size_t before = n->node.effect_count;
    size_t come = 0;

    (void)worker_poll(n->node.worker, 0);
    local_node_take(&n->node);
    if (n->persist != 0) {
        n->persist = 0;
        local_node_step(&n->node, &persisted);
    }
    const size_t records = move_deliver_states(n, other->slot, &other->out[0]);
    const size_t acks = move_deliver_acks(n, other->slot, &other->out[1]);
    n->mill->records += records;
    n->mill->acks += acks;
    come = records + acks;
    if (host_has_more(n->node.host)) {
        local_node_step(&n->node, &go_on);
        come++;
    }
    worker_send(n->node.worker);
    const bool busy = come > 0 || n->node.effect_count > before;
    n->mill->turns += busy ? 1 : 0;
    return busy;
}

static inline void move_until_quiet(struct move_mill *m)
{
    int quiet = 0;

    while (quiet < 3) { // What was sent in one turn is taken in the next one.
        const bool first = move_turn(&m->node[0]);
        const bool second = move_turn(&m->node[1]);

        quiet = first || second ? 0 : quiet + 1;
    }
}

/* Until node `slot` has voted; what goes ahead of its hold goes by the clock. */
static inline void move_until_voted(struct move_mill *m, uint16_t slot)
{
    enum { TICKS_MAX = 1000, TICK_US = 10000 };

    move_until_quiet(m);
    for (int i = 0; i < TICKS_MAX && m->ahead && m->node[slot - 1].voted != m->number; i++) {
        for (int k = 0; k < 2; k++) {
            struct host_event tick = {.type = HOST_TICK};

            m->node[k].node.now_us += TICK_US;
            local_node_step(&m->node[k].node, &tick);
        }
        move_until_quiet(m);
    }
    ASSERT(m->node[slot - 1].voted == m->number);
}

/* ---- the coordinator's part */

static inline void move_tell(struct move_mill *m, struct move_node *n, Rh__Control *c)
{
    c->version = m->cluster.ring.version;
    local_node_control(&n->node, c);
}

static inline void move_prepare(struct move_mill *m, struct move_node *n, uint32_t vnode,
                                uint16_t from, uint16_t to)
{
    const struct ring_vnode *v = ring_find(&m->cluster.ring, vnode);
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare p = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *arcs[] = {&arc};

    p.txn = m->number;
    p.base_version = m->cluster.ring.version;
    p.n_arcs = 1;
    p.arcs = arcs;
    arc.from = v->from;
    arc.to = ring_end(&m->cluster.ring, v);
    arc.vnode = v->id;
    arc.out = n->slot == from;
    arc.peer = arc.out ? to : from;
    arc.peer_incarnation = 100u + arc.peer;
    c.body_case = RH__CONTROL__BODY_PREPARE;
    c.prepare = &p;
    move_tell(m, n, &c);
}

/* `out` is filled in with the commit of the transaction prepared last. */
static inline void move_commit(struct move_mill *m, uint32_t vnode, uint16_t from, uint16_t to)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Commit message = RH__COMMIT__INIT;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};
    const struct ring_op move = {.kind = RING_MOVE, .vnode = vnode, .from = from, .to = to};

    delta.prev_version = m->cluster.ring.version;
    delta.txn = m->number;
    delta.version = ++m->number;
    ring_apply(&m->cluster.ring, &move, 1, delta.version, delta.txn);
    op.kind = RING_MOVE;
    op.vnode = vnode;
    op.from = from;
    op.to = to;
    delta.n_ops = 1;
    delta.ops = ops;
    delta.digest0 = m->cluster.ring.digest[0];
    delta.digest1 = m->cluster.ring.digest[1];
    message.txn = delta.txn;
    message.delta = &delta;
    c.body_case = RH__CONTROL__BODY_COMMIT;
    c.commit = &message;
    move_tell(m, &m->node[to - 1], &c);
    move_tell(m, &m->node[from - 1], &c);
}

/* One transaction from its PREPARE to its end; it moves one vnode. */
__attribute__((noinline)) static void move_vnode(struct move_mill *m, uint32_t vnode, uint16_t from,
                                                 uint16_t to)
{
    m->number++;
    move_prepare(m, &m->node[to - 1], vnode, from, to);
    move_until_voted(m, to);
    move_prepare(m, &m->node[from - 1], vnode, from, to);
    move_until_voted(m, from);
    move_commit(m, vnode, from, to);
    move_until_quiet(m);
}

static inline void move_all(struct move_mill *m, uint16_t from, uint16_t to)
{
    for (uint32_t vnode = 0; vnode < m->vnodes; vnode++) {
        move_vnode(m, vnode, from, to);
    }
}

/* ---- its start and end */

/* `ahead`: their images go before the hold does. Each of so many vnodes is moved alone. */
static inline void move_open(struct move_mill *m, bool ahead, uint32_t vnodes)
{
    static const struct host_kind held[] = {{.number = 0, .idle_ms = UINT32_MAX}};
    static const struct host_kind copied[] = {{.number = 0, .idle_ms = UINT32_MAX, .ahead = true}};

    *m = (struct move_mill){.number = MOVE_VERSION, .ahead = ahead, .vnodes = vnodes};
    m->kind.ops = actor_kv;
    view_init(&m->cluster, RING_GRID_MIN);
    m->cluster.key = (struct ring_key){3, 4};
    m->cluster.era = 1;
    ring_create(&m->cluster.ring, vnodes, 1, MOVE_VERSION);
    m->cluster.member = mem_new(2, sizeof *m->cluster.member);
    m->cluster.member_count = 2;
    for (uint16_t slot = 1; slot <= 2; slot++) {
        struct view_member *self = &m->cluster.member[slot - 1];
        struct move_node *n = &m->node[slot - 1];

        self->slot = slot;
        self->incarnation = 100u + slot;
        self->weight = 1;
        (void)snprintf(self->name, sizeof self->name, "n%u", slot);
        (void)snprintf(self->address, sizeof self->address, "h%u", slot);
        *n = (struct move_node){.node = {.perform = move_perform}, .mill = m, .slot = slot};
        local_node_open(&n->node, self->name, ahead ? copied : held, 1, &m->kind);
    }
    for (uint16_t slot = 1; slot <= 2; slot++) {
        const struct view_member *other = &m->cluster.member[slot == 1 ? 1 : 0];
        struct local_node *n = &m->node[slot - 1].node;

        local_node_register(n, &m->cluster, slot, 100u + slot);
        local_node_link(n, MOVE_GATEWAY, ROLE_GATEWAY, "g", MOVE_GATEWAY);
        local_node_link(n, other->slot, ROLE_NODE, other->name, other->incarnation);
    }
}

static inline void move_close(struct move_mill *m)
{
    for (int i = 0; i < 2; i++) {
        struct move_node *n = &m->node[i];

        local_node_close(&n->node);
        buffer_fini(&n->out[0]);
        buffer_fini(&n->out[1]);
    }
    view_fini(&m->cluster);
}

/* A gateway asks node `slot` for each of `count` actors: SET of MOVE_STATE bytes, or STRLEN. */
static inline void move_ask(struct move_mill *m, uint16_t slot, bool set, size_t count)
{
    static const uint8_t value[MOVE_STATE] = "value";
    struct move_node *n = &m->node[slot - 1];
    struct buffer body = {0};
    const size_t answered = m->answered;

    for (size_t i = 0; i < count; i++) {
        char id[32];
        const int size = snprintf(id, sizeof id, "key:%012zu", i);
        const struct args args = {.count = set ? 3 : 2,
                                  .arg = {set ? bytes_of("SET", 3) : bytes_of("STRLEN", 6),
                                          bytes_of(id, (size_t)size),
                                          bytes_of(value, sizeof value)}};

        buffer_clear(&body);
        args_put(&body, &args);
        const struct request_record r = {.gateway = MOVE_GATEWAY,
                                         .session = 1,
                                         .seq = ++m->actor_count,
                                         .base = m->actor_count,
                                         .first = m->cluster.ring.version,
                                         .version = m->cluster.ring.version,
                                         .ttl_ms = 60000,
                                         .copy = 1,
                                         .flags = REQUEST_COMMAND,
                                         .id = bytes_of(id, (size_t)size),
                                         .body = buffer_bytes(&body)};
        struct host_event event = {.type = HOST_REQUEST, .peer = MOVE_GATEWAY, .request = &r};
        local_node_step(&n->node, &event);
    }
    buffer_fini(&body);
    worker_send(n->node.worker);
    move_until_quiet(m);
    ASSERT(m->answered == answered + count);
}

#endif
