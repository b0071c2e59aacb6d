/* SPDX-License-Identifier: Apache-2.0
 *
 * Two nodes without links, threads or files, each a host and one worker, driven as
 * the shell does: one hands vnodes with all their actors over to the other, then
 * back. What that costs is counted: by callgrind in bench/move_bench.c, as memory
 * asked for and records sent in tests/node/node_move_test.c. Node 2 has nothing at first.
 */
#ifndef BENCH_MOVE_MILL_H
#define BENCH_MOVE_MILL_H

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/actors/actors.h"
#include "node/host/host.h"
#include "node/worker/worker_uv.h"
#include "wire/args.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

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
    struct move_mill *mill;
    uint16_t slot;
    struct host *host;
    struct host_effects effects;
    struct limits limits;
    struct watchdog *watchdog;
    struct crash_record_slot crash_record;
    struct worker *worker;
    struct buffer out[2];     /* to the other node: STATE, STATE_ACK */
    uint64_t voted;           /* transaction */
    uint64_t persist;         /* ticket to be reported; 0 = none */
    size_t effect_count;      /* so far */
    size_t effect_count_most; /* of one step */
};

struct move_mill {
    struct move_node node[2];
    struct kind kind;
    struct view cluster;
    uint64_t number; /* of the last transaction or version */
    uint64_t now_us;
    size_t actor_count;
    size_t answered;
    size_t turns;   /* of both nodes' loops, with something to do */
    size_t records; /* STATE */
    size_t acks;
};

/* ---- the shell's part */

static inline void move_on_told(void *context)
{
    (void)context;
}

static inline void move_on_vote(struct move_node *n, struct bytes bytes)
{
    Rh__Control *c = control_get(bytes);

    ASSERT(c != NULL);
    if (c->body_case == RH__CONTROL__BODY_PREPARED) {
        n->voted = c->prepared->txn;
    }
    control_free(c);
}

static inline void move_post(struct move_node *n, const struct host_effect *e, struct bytes bytes)
{
    static const enum post_type types[] = {[HOST_ACTIVATE] = POST_ACTIVATE,
                                           [HOST_RUN] = POST_RUN,
                                           [HOST_TURN] = POST_TURN,
                                           [HOST_EXPORT] = POST_EXPORT,
                                           [HOST_UNFREEZE] = POST_UNFREEZE,
                                           [HOST_DISCARD] = POST_DISCARD};
    struct post post = {.type = types[e->type],
                        .number = e->ticket,
                        .flags = e->flags,
                        .has_state = e->has_state,
                        .fence = e->fence};

    if (e->type == HOST_ACTIVATE) {
        post.kind = &n->mill->kind;
        actor_set_instance(
            e->actor,
            worker_activation(n->worker, actor_kind(e->actor), actor_id(e->actor), e->actor));
    }
    post.activation = actor_instance(e->actor);
    if (e->type == HOST_DISCARD) {
        actor_set_instance(e->actor, NULL);
        activation_set_owner(post.activation, NULL);
    }
    worker_post(n->worker, &post, e->chain, bytes);
}

static inline void move_perform(struct move_node *n, const struct host_effect *e)
{
    const struct bytes bytes = {n->effects.bytes.data + e->at, e->size};

    switch ((int)e->type) {
    case HOST_SEND_COORDINATOR:
        move_on_vote(n, bytes);
        return;
    case HOST_SEND_PEER:
        if (e->peer == MOVE_GATEWAY) {
            n->mill->answered++;
        } else {
            buffer_put(&n->out[e->frame_type == FRAME_STATE_ACK ? 1 : 0], bytes.data, bytes.size);
        }
        return;
    case HOST_PERSIST:
        n->persist = e->ticket;
        return;
    case HOST_ACTIVATE:
    case HOST_RUN:
    case HOST_TURN:
    case HOST_EXPORT:
    case HOST_UNFREEZE:
    case HOST_DISCARD:
        move_post(n, e, bytes);
        return;
    default:
        return;
    }
}

static inline void move_step(struct move_node *n, struct host_event *event)
{
    event->now_us = n->mill->now_us;
    host_step(n->host, event, &n->effects);
    n->effect_count += n->effects.count;
    if (n->effects.count > n->effect_count_most) {
        n->effect_count_most = n->effects.count;
    }
    for (size_t i = 0; i < n->effects.count; i++) {
        move_perform(n, &n->effects.item[i]);
    }
    host_effects_clear(&n->effects);
}

static inline void move_take(struct move_node *n)
{
    const struct told *t = NULL;

    while ((t = worker_take(n->worker)) != NULL) {
        const struct entry *e = t->entry;
        struct host_event event = {.type = HOST_RAN,
                                   .actor = activation_owner(e->activation),
                                   .ticket = e->number,
                                   .error = e->error,
                                   .code = e->code,
                                   .has_state = e->has_state,
                                   .bond = t->bond,
                                   .bytes = t->bytes};

        if (e->type == TOLD_DISCARDED) {
            activation_free(e->activation);
            continue;
        }
        if (e->event == RUNTIME_ACTIVATED) {
            event.type = HOST_ACTIVATED;
        } else if (e->event == RUNTIME_EXPORTED) {
            event.type = HOST_EXPORTED;
        }
        if (event.actor != NULL) {
            move_step(n, &event);
        }
    }
}

/* Records of one kind that stand in `in`, which is emptied. */
static inline size_t move_deliver(struct move_node *n, uint64_t from, struct buffer *in, bool acks)
{
    struct reader r = {.at = in->data, .left = in->size};
    size_t count = 0;

    for (; r.left > 0; count++) {
        struct state_record state;
        struct state_ack_record ack;
        struct host_event event = {.type = acks ? HOST_STATE_ACK : HOST_STATE,
                                   .peer = from,
                                   .state = &state,
                                   .state_ack = &ack};

        ASSERT((acks ? state_ack_get(&r, &ack) : state_get(&r, &state)) == ERR_OK);
        move_step(n, &event);
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
    const size_t before = n->effect_count;
    size_t come = 0;

    (void)worker_poll(n->worker, 0);
    move_take(n);
    if (n->persist != 0) {
        n->persist = 0;
        move_step(n, &persisted);
    }
    const size_t records = move_deliver(n, other->slot, &other->out[0], false);
    const size_t acks = move_deliver(n, other->slot, &other->out[1], true);
    n->mill->records += records;
    n->mill->acks += acks;
    come = records + acks;
    if (host_has_more(n->host)) {
        move_step(n, &go_on);
        come++;
    }
    worker_send(n->worker);
    const bool busy = come > 0 || n->effect_count > before;
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

/* ---- the coordinator's part */

static inline void move_tell(struct move_mill *m, struct move_node *n, Rh__Control *c)
{
    struct host_event event = {.type = HOST_CONTROL, .message = c};

    c->era = 1;
    c->version = m->cluster.ring.version;
    move_step(n, &event);
}

static inline void move_register(struct move_mill *m, struct move_node *n)
{
    const struct move_node *other = &m->node[n->slot == 1 ? 1 : 0];
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;
    Rh__Control r = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config config;
    struct host_event up = {.type = HOST_COORDINATOR_UP};
    struct host_event gateway = {.type = HOST_PEER_UP,
                                 .peer = MOVE_GATEWAY,
                                 .role = ROLE_GATEWAY,
                                 .name = "g",
                                 .incarnation = MOVE_GATEWAY};
    char name[16];
    struct host_event peer = {.type = HOST_PEER_UP,
                              .peer = other->slot,
                              .role = ROLE_NODE,
                              .name = name,
                              .incarnation = 100u + other->slot};

    (void)snprintf(name, sizeof name, "n%u", other->slot);
    move_step(n, &up);
    leader.leading = true;
    leader.term = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    move_tell(m, n, &c);
    view_config(&m->cluster, &config);
    ok.nonce = 7;
    ok.slot = n->slot;
    ok.incarnation = 100u + n->slot;
    ok.floor = MOVE_VERSION;
    ok.config = &config;
    r.body_case = RH__CONTROL__BODY_REG_OK;
    r.reg_ok = &ok;
    move_tell(m, n, &r);
    view_config_fini(&config);
    move_step(n, &gateway);
    move_step(n, &peer);
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
    move_until_quiet(m);
    ASSERT(m->node[to - 1].voted == m->number);
    move_prepare(m, &m->node[from - 1], vnode, from, to);
    move_until_quiet(m);
    ASSERT(m->node[from - 1].voted == m->number);
    move_commit(m, vnode, from, to);
    move_until_quiet(m);
}

static inline void move_all(struct move_mill *m, uint16_t from, uint16_t to)
{
    for (uint32_t vnode = 0; vnode < MOVE_VNODES; vnode++) {
        move_vnode(m, vnode, from, to);
    }
}

/* ---- its start and end */

static inline void move_node_open(struct move_mill *m, struct move_node *n, uint16_t slot)
{
    static const struct host_kind kinds[] = {{.number = 0, .idle_ms = UINT32_MAX}};
    struct host_config config = host_config_default();
    struct worker_config worker = {.embedded = true, .on_told = move_on_told, .context = n};

    n->mill = m;
    n->slot = slot;
    atomic_store(&n->limits.start_us, UINT64_MAX);
    atomic_store(&n->limits.gate_us, UINT64_MAX);
    atomic_store(&n->limits.hard_end_us, UINT64_MAX);
    n->watchdog = watchdog_new(RH_OVERRUN_GATE, 1);
    worker.limits = &n->limits;
    worker.watchdog = n->watchdog;
    worker.crash_record = &n->crash_record;
    worker.state_size_max = config.staged_size_max;
    n->worker = worker_new(&worker);
    ASSERT(n->watchdog != NULL && n->worker != NULL);
    (void)snprintf(config.name, sizeof config.name, "n%u", slot);
    config.kinds = kinds;
    config.kind_count = 1;
    config.nonce = 7;
    n->host = host_new(&config);
}

static inline void move_open(struct move_mill *m)
{
    *m = (struct move_mill){.now_us = clock_boottime_us(), .number = MOVE_VERSION};
    m->kind.ops = actor_kv;
    view_init(&m->cluster, RING_GRID_MIN);
    m->cluster.key = (struct ring_key){3, 4};
    m->cluster.era = 1;
    ring_create(&m->cluster.ring, MOVE_VNODES, 1, MOVE_VERSION);
    m->cluster.member = mem_new(2, sizeof *m->cluster.member);
    m->cluster.member_count = 2;
    for (uint16_t slot = 1; slot <= 2; slot++) {
        struct view_member *self = &m->cluster.member[slot - 1];

        self->slot = slot;
        self->incarnation = 100u + slot;
        self->weight = 1;
        (void)snprintf(self->name, sizeof self->name, "n%u", slot);
        (void)snprintf(self->address, sizeof self->address, "h%u", slot);
        move_node_open(m, &m->node[slot - 1], slot);
    }
    move_register(m, &m->node[0]);
    move_register(m, &m->node[1]);
}

static inline void move_close(struct move_mill *m)
{
    for (int i = 0; i < 2; i++) {
        struct move_node *n = &m->node[i];

        worker_stop(n->worker, 0);
        (void)worker_poll(n->worker, 0);
        worker_free(n->worker);
        watchdog_free(n->watchdog);
        host_free(n->host);
        host_effects_fini(&n->effects);
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
        move_step(n, &event);
    }
    buffer_fini(&body);
    worker_send(n->worker);
    move_until_quiet(m);
    ASSERT(m->answered == answered + count);
}

#endif
