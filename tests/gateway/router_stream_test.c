/* SPDX-License-Identifier: Apache-2.0
 *
 * A router whose requests go by streams, with nodes that have the shipped other end: rules one by
 * one, and a fleet of three, one of which speaks no streams, whose links break, whose nodes die,
 * and where vnodes move by chance.
 */
#include "tests/gateway/router_rig.h"
#include "tests/gateway/stream_node.h"

#include "base/prng.h"
#include "node/host/host.h"
#include "ring/unanswered.h"
#include "route/by_stream.h"
#include "tests/planted.h"
#include "tests/test.h"

enum {
    NODES = 3,
    OLD = 3, /* this one speaks no streams */
    IDS = 6,
    SESSIONS = 3, /* that play */
    TICKETS_MAX = 4000,
    QUEUE_MAX = 4096,
    GATEWAY = 77,
    SESSIONS_MAX = 40,
};

_Static_assert((int)BY_STREAM_KEEP_MS >= (int)HOST_KEEP_MIN_MS, "no copy outlives it");

/* A request that a node has taken, by a stream or as a record. */
struct queued {
    struct stream_served *by; /* NULL = it is a record */
    struct request_record record;
    uint64_t rid;
    uint64_t ack;
    uint64_t position;
    uint64_t ticket;
    size_t lane;
    bool lost; /* it may have run at a node that is dead, and may not run twice */
};

struct world {
    struct rig rig;
    struct prng prng;
    struct stream_node node[NODES + 1];
    bool up[NODES + 1];
    bool dead[NODES + 1]; /* and not back yet */
    struct queued queue[NODES + 1][QUEUE_MAX];
    size_t queued[NODES + 1];
    uint64_t last_ran[SESSIONS_MAX * IDS]; /* ticket + 1, by lane */
    uint64_t last_seq[SESSIONS_MAX * IDS]; /* of records */
    int runs[TICKETS_MAX];
    int reply[TICKETS_MAX]; /* enum reply_code + 1; 0 = none yet */
    size_t tickets;
    size_t records; /* that were sent */
    int awaits;     /* as the last Adopted said */
    bool refuse;    /* nodes refuse at random */
    bool crashed;   /* one did */
    bool must;      /* what is asked must be told */
};

static struct world *world;

static const char *const ids[IDS] = {"a", "bb", "ccc", "d", "ee", "f"};

static struct bytes id_of(size_t i)
{
    return bytes_of(ids[i], strlen(ids[i]));
}

static size_t lane_of(uint64_t session, struct bytes id)
{
    size_t i = 0;

    while (!bytes_equal(id, id_of(i))) {
        i++;
    }
    return (size_t)(session - 1) * IDS + i;
}

static uint16_t owner_of(const struct world *w, struct bytes id)
{
    return ring_hit_node(view_lookup(&w->rig.leader, 0, id));
}

static void enqueue(struct world *w, uint16_t node, const struct queued *q)
{
    assert_true(w->queued[node] < QUEUE_MAX);
    w->queue[node][w->queued[node]++] = *q;
}

static void on_taken(void *context, const struct stream_taken *t)
{
    const struct stream_node *n = context;
    const struct queued q = {.by = t->by,
                             .rid = t->request->rid,
                             .ack = t->ack,
                             .position = ring_position(n->key, t->request->id),
                             .ticket = load_u64(t->request->body.data),
                             .lane = lane_of(t->request->session, t->request->id),
                             .lost = t->request->again &&
                                     (t->request->flags & REQUEST_IDEMPOTENT) == 0};

    enqueue(world, (uint16_t)(n - world->node), &q);
}

static struct ring_key key_of(const struct world *w)
{
    return ring_key_of_kind(w->rig.leader.key, 0);
}

static void pour_all(struct world *w)
{
    struct sendlog *log = NULL;
    uint16_t slot = 0;

    while ((log = router_unsent(w->rig.router, &slot)) != NULL) {
        assert_true(w->up[slot]);
        stream_node_pour(log, &w->node[slot].there);
    }
}

static void on_record(struct world *w, uint16_t node, struct bytes record)
{
    struct reader in = {.at = record.data, .left = record.size};
    struct queued q = {0};

    assert_int_equal(request_get(&in, &q.record), ERR_OK);
    struct caller from;
    struct bytes body = q.record.body;
    w->records++;
    assert_true((q.record.flags & REQUEST_CALL) == 0 || caller_get(&body, &from) == ERR_OK);
    q.ticket = load_u64(body.data);
    q.lost = q.record.again;
    q.lane = lane_of(q.record.session, q.record.id);
    q.record.id = q.record.body = bytes_of(NULL, 0);
    enqueue(w, node, &q);
}

static void do_effects(struct world *w)
{
    for (size_t i = 0; i < w->rig.effects.count; i++) {
        const struct router_effect *e = &w->rig.effects.item[i];
        const struct bytes bytes = router_effect_bytes(&w->rig.effects, e);

        if (e->type == ROUTER_SEND_NODE) {
            assert_true(w->up[e->slot]);
            on_record(w, e->slot, bytes);
        } else if (e->type == ROUTER_SEND_STREAM) {
            assert_true(w->up[e->slot]);
            stream_node_say(&w->node[e->slot], e->frame, bytes);
        } else if (e->type == ROUTER_TELL_NODE) {
            Rh__Control *m = control_get(bytes);

            w->awaits = m->adopted->awaits != 0;
            control_free(m);
        } else if (e->type == ROUTER_REPLY) {
            assert_true(e->ticket < w->tickets);
            assert_int_equal(w->reply[e->ticket], 0);
            w->reply[e->ticket] = (int)e->code + 1;
            if (e->code == REPLY_OK) {
                assert_int_equal(load_u64(bytes.data), e->ticket);
            }
        }
    }
    pour_all(w);
}

static void step(struct world *w, struct router_event event)
{
    rig_step(&w->rig, event);
    do_effects(w);
}

/* ---- nodes ---- */

static void answer_record(struct world *w, uint16_t node, const struct queued *q,
                          enum answer_code code, uint64_t aux)
{
    const struct answer_record a = {.gateway = q->record.gateway,
                                    .session = q->record.session,
                                    .seq = q->record.seq,
                                    .fence = w->rig.leader.ring.version,
                                    .version = w->rig.leader.ring.version,
                                    .aux = aux,
                                    .code = (uint8_t)code,
                                    .copy = q->record.copy,
                                    .body = bytes_of(&q->ticket, sizeof q->ticket)};

    if (w->up[node]) {
        step(w, (struct router_event){.type = ROUTER_ANSWER, .slot = node, .answer = &a});
    }
}

static void end(struct world *w, uint16_t node, const struct queued *q, enum answer_code code,
                uint64_t aux)
{
    const struct stream_answer a = {.rid = q->rid,
                                    .token = w->rig.leader.ring.version,
                                    .aux = aux,
                                    .code = (uint8_t)code,
                                    .body = bytes_of(&q->ticket, sizeof q->ticket)};

    if (q->by == NULL) {
        answer_record(w, node, q, code, aux);
    } else if (code == ANSWER_OK || code == ANSWER_LOST) {
        server_answer(&q->by->stream, &a);
    } else {
        server_refuse(&q->by->stream, q->rid, q->position, (uint8_t)code, aux);
    }
}

/* In the order of asking, however each of its lane came. Nobody saves answers. */
static void run(struct world *w, uint16_t node, const struct queued *q)
{
    if (q->lost) {
        end(w, node, q, ANSWER_LOST, 0);
        return;
    }
    assert_true(w->last_ran[q->lane] <= q->ticket);
    w->last_ran[q->lane] = q->ticket + 1;
    w->runs[q->ticket]++;
    end(w, node, q, ANSWER_OK, 0);
}

static bool is_refused(struct world *w, uint16_t node, const struct queued *q)
{
    static const enum answer_code codes[] = {ANSWER_BUSY, ANSWER_OVERLOAD};
    const enum answer_code code = codes[prng_between(&w->prng, 0, 1)];

    if (owner_of(w, id_of(q->lane % IDS)) != node) {
        end(w, node, q, ANSWER_MOVED, w->rig.leader.ring.version);
        return true;
    }
    if (w->refuse && prng_chance(&w->prng, 10)) {
        end(w, node, q, code, prng_between(&w->prng, 0, 40));
        return true;
    }
    return false;
}

/* A record runs behind the one that it names; a second copy is answered. */
static void work_record(struct world *w, uint16_t node, const struct queued *q)
{
    uint64_t *last = &w->last_seq[q->lane];

    if (is_refused(w, node, q)) {
        return;
    }
    if (q->record.seq <= *last) {
        end(w, node, q, ANSWER_OK, 0);
    } else if (*last < q->record.prev && q->record.prev >= q->record.base) {
        end(w, node, q, ANSWER_BUSY, 5);
    } else {
        *last = q->record.seq;
        run(w, node, q);
    }
}

/* The node comes to what it has taken first. */
static void work(struct world *w, uint16_t node)
{
    if (w->queued[node] == 0 || w->dead[node]) {
        return;
    }
    const struct queued q = w->queue[node][0];

    memmove(&w->queue[node][0], &w->queue[node][1], --w->queued[node] * sizeof q);
    if (q.by == NULL) {
        work_record(w, node, &q);
        return;
    }
    switch (server_judge(&q.by->stream, q.rid, q.position, q.ack)) {
    case SERVER_RUN:
        if (!is_refused(w, node, &q)) {
            run(w, node, &q);
        }
        break;
    case SERVER_DROP:
        end(w, node, &q, ANSWER_OK, 0);
        break;
    case SERVER_BEHIND:
        break;
    case SERVER_FOLLOWS:
    case SERVER_AGAIN:
        fail();
    }
    stream_node_writes(&w->node[node]);
}

static void node_start(struct world *w, uint16_t node, uint64_t incarnation)
{
    stream_node_init(&w->node[node], incarnation, GATEWAY, key_of(w), on_taken);
    servers_ring(&w->node[node].servers, w->rig.leader.ring.version);
}

static void follow(struct world *w)
{
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        if (!w->dead[node]) {
            servers_ring(&w->node[node].servers, w->rig.leader.ring.version);
            servers_go_on(&w->node[node].servers);
        }
    }
}

/* The router reads a frame of a node. */
static void router_reads(struct world *w, uint16_t node)
{
    struct buffer *back = &w->node[node].back;

    if (back->size == 0) {
        return;
    }
    const struct frame frame = stream_node_frame(back);
    struct router_frame f = {.now_us = w->rig.now_us, .frame = &frame, .slot = node};

    do {
        router_effects_clear(&w->rig.effects);
        assert_int_equal(router_frame(w->rig.router, &f, &w->rig.effects), ERR_OK);
        router_check(w->rig.router);
        do_effects(w);
    } while (f.left > 0);
    buffer_consume(back, FRAME_HEADER_SIZE + frame.body.size);
}

/* ---- what happens ---- */

static void link_up(struct world *w, uint16_t node)
{
    w->up[node] = true;
    stream_node_up(&w->node[node]);
    step(w,
         (struct router_event){.type = ROUTER_NODE_UP,
                               .slot = node,
                               .incarnation = w->node[node].incarnation,
                               .speaks_streams = node != OLD});
}

static void link_down(struct world *w, uint16_t node)
{
    w->up[node] = false;
    stream_node_down(&w->node[node]);
    for (size_t i = 0; i < w->queued[node]; i++) {
        // The link of records loses what is on its way; here that is all that waits.
        if (w->queue[node][i].by == NULL) {
            memmove(&w->queue[node][i],
                    &w->queue[node][i + 1],
                    (--w->queued[node] - i) * sizeof w->queue[node][0]);
            i--;
        }
    }
    step(w, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = node});
}

static void ask(struct world *w, uint64_t session, size_t id, uint8_t flags)
{
    const uint64_t ticket = w->tickets++;

    step(w,
         (struct router_event){.type = ROUTER_REQUEST,
                               .session = session,
                               .ticket = ticket,
                               .flags = flags,
                               .must = w->must,
                               .origin = ticket % 3, // some are no client's
                               .id = id_of(id),
                               .body = bytes_of(&ticket, sizeof ticket)});
}

static void move(struct world *w, struct bytes id, uint16_t to, bool told)
{
    rig_move(&w->rig, id, to, w->rig.leader.ring.version + 1, told);
    follow(w);
    do_effects(w);
}

static void config(struct world *w)
{
    rig_config(&w->rig);
    do_effects(w);
}

/* It dies. Its vnodes go to another, its name to its next incarnation later. */
static void crash(struct world *w, uint16_t node)
{
    w->crashed = w->dead[node] = true;
    if (w->up[node]) {
        link_down(w, node);
    }
    w->queued[node] = 0;
    stream_node_fini(&w->node[node]);
}

static uint16_t heir_of(const struct world *w, uint16_t node)
{
    uint16_t heir = (uint16_t)(node % NODES + 1);

    return w->dead[heir] ? (uint16_t)(heir % NODES + 1) : heir;
}

/* All that it had goes to another. The router may hear of it later, with all else. */
static void take_over(struct world *w, uint16_t node, bool told)
{
    const struct ring *ring = &w->rig.leader.ring;
    struct rig_moves moves = {.count = 0};

    for (size_t i = 0; i < ring->vnode_count; i++) {
        if (ring->vnode[i].owner == node) {
            moves.item[moves.count++] = (struct ring_op){.kind = RING_MOVE,
                                                         .vnode = ring->vnode[i].id,
                                                         .from = node,
                                                         .to = heir_of(w, node)};
        }
    }
    if (moves.count > 0) {
        rig_give(&w->rig, &moves, ring->version + 1, true, told);
        follow(w);
        do_effects(w);
    }
}

static void restart(struct world *w, uint16_t node)
{
    const uint64_t incarnation = w->node[node].incarnation + 100;

    take_over(w, node, prng_chance(&w->prng, 50));
    w->dead[node] = false;
    node_start(w, node, incarnation);
    rig_add_member(&w->rig, node, incarnation);
    w->rig.leader.ring.version++;
    follow(w);
    config(w);
}

static void tick(struct world *w, uint64_t ms)
{
    w->rig.now_us += ms * 1000;
    step(w, (struct router_event){.type = ROUTER_TICK});
}

static void world_init(struct world *w, uint64_t seed)
{
    struct router_config limits = router_config_default();

    memset(w, 0, sizeof *w);
    limits.gateway = GATEWAY;
    limits.streams = true;
    limits.peer_size_max = seed % 3 == 0 ? 600 : 100000; // some have to wait for room
    rig_init(&w->rig, &limits);
    world = w;
    w->prng.state = seed;
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        rig_add_member(&w->rig, node, node);
    }
    ring_create(&w->rig.leader.ring, RIG_VNODES, 1, 10);
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        node_start(w, node, node);
    }
    config(w);
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        link_up(w, node);
    }
}

static void world_fini(struct world *w)
{
    rig_fini(&w->rig);
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        if (!w->dead[node]) {
            stream_node_fini(&w->node[node]);
        }
    }
}

/* All that is on its way arrives, and is done. */
static void pass(struct world *w)
{
    for (int i = 0; i < 4; i++) {
        for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
            while (!w->dead[node] && w->up[node] && stream_node_reads(&w->node[node])) {
            }
            while (w->queued[node] > 0 && !w->dead[node]) {
                work(w, node);
            }
            while (!w->dead[node] && w->node[node].back.size > 0) {
                router_reads(w, node);
            }
        }
    }
}

static void settle(struct world *w)
{
    w->refuse = false;
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        if (w->dead[node]) {
            restart(w, node);
        }
    }
    config(w);
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        if (!w->up[node]) {
            link_up(w, node);
        }
    }
    for (int i = 0; i < 1000; i++) {
        pass(w);
        tick(w, 20);
    }
}

static void check_replies(const struct world *w, bool cuts)
{
    size_t ok = 0;

    for (size_t t = 0; t < w->tickets; t++) {
        assert_int_not_equal(w->reply[t], 0);
        assert_true(w->runs[t] <= 1);
        switch ((enum reply_code)(w->reply[t] - 1)) {
        case REPLY_OK:
            assert_int_equal(w->runs[t], 1);
            ok++;
            break;
        case REPLY_REJECTED:
        case REPLY_OVERLOADED:
            assert_int_equal(w->runs[t], 0);
            break;
        case REPLY_TIMEOUT:
            assert_true(cuts);
            break;
        case REPLY_UNKNOWN:
            assert_true(w->crashed);
            break;
        case REPLY_APP_ERROR:
        case REPLY_NO_KIND:
        case REPLY_QUARANTINED:
        case REPLY_DEADLOCK:
            fail();
        }
    }
    assert_true(ok > w->tickets / 3);
}

static void play(struct world *w, uint64_t seed, bool cuts, bool crashes)
{
    world_init(w, seed);
    w->refuse = true;
    for (int i = 0; i < 4000; i++) {
        const uint64_t dice = prng_between(&w->prng, 1, 1000);
        const uint16_t node = (uint16_t)prng_between(&w->prng, 1, NODES);
        const struct bytes id = id_of(prng_between(&w->prng, 0, IDS - 1));

        if (dice <= 250) {
            ask(w, prng_between(&w->prng, 1, SESSIONS), prng_between(&w->prng, 0, IDS - 1), 0);
        } else if (dice <= 260 && !w->dead[owner_of(w, id)]) {
            move(w, id, heir_of(w, owner_of(w, id)), prng_chance(&w->prng, 60));
        } else if (dice <= 263) {
            config(w);
        } else if (dice <= 300) {
            tick(w, 3);
        } else if (dice <= 302 && cuts && w->up[node]) {
            link_down(w, node);
        } else if (dice <= 303 && crashes && node != OLD && !w->dead[1] && !w->dead[2]) {
            crash(w, node);
        } else if (dice <= 310 && w->dead[node]) {
            restart(w, node);
        } else if (dice <= 320 && !w->up[node] && !w->dead[node]) {
            link_up(w, node);
        } else if (w->dead[node]) {
            continue;
        } else if (dice <= 500) {
            (void)stream_node_reads(&w->node[node]);
        } else if (dice <= 800) {
            work(w, node);
        } else {
            router_reads(w, node);
        }
    }
    settle(w);
    check_replies(w, cuts || crashes);
    world_fini(w);
}

static void both_ways_keep_each_lane_in_its_order(void **state)
{
    struct world *w = mem_new(1, sizeof *w);

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        play(w, seed, false, false);
    }
    mem_free(w);
}

static void so_they_do_when_links_break(void **state)
{
    struct world *w = mem_new(1, sizeof *w);

    (void)state;
    for (uint64_t seed = 1000; seed <= 1040; seed++) {
        play(w, seed, true, false);
    }
    mem_free(w);
}

static void and_when_nodes_die(void **state)
{
    struct world *w = mem_new(1, sizeof *w);

    (void)state;
    for (uint64_t seed = 2000; seed <= 2040; seed++) {
        play(w, seed, true, true);
    }
    mem_free(w);
}

/* ---- rules, one by one: all ids are node 1's ---- */

static const struct bytes A = {(const uint8_t *)"a", 1};

static int reply_to(const struct world *w, uint64_t ticket)
{
    return w->reply[ticket] - 1;
}

static struct world *fleet(void)
{
    struct world *w = mem_new(1, sizeof *w);

    world_init(w, 1);
    pass(w);
    return w;
}

/* Requests of which it was counted how long they took. */
static uint64_t timed(const struct router *r)
{
    const struct latencies *l = router_latencies(r);
    uint64_t sum = 0;

    for (uint32_t row = 0; row <= l->count; row++) {
        for (unsigned code = 0; code < REPLY_CODES; code++) {
            sum += latency_count(&l->row[row].of[code]);
        }
    }
    return sum;
}

static void end_fleet(struct world *w)
{
    struct router_stats stats;

    router_stats(w->rig.router, &stats);
    assert_int_equal(timed(w->rig.router), stats.replied); // each once
    world_fini(w);
    mem_free(w);
}

/* What was sent arrives, and is not run. */
static void arrive(struct world *w, uint16_t node)
{
    while (stream_node_reads(&w->node[node])) {
    }
}

/* The last that it has taken may have run elsewhere, and nobody knows. */
static void lose_last(struct world *w, uint16_t node, uint64_t ticket)
{
    tick(w, 10);
    arrive(w, node);
    assert_true(w->queued[node] > 0);
    const struct queued q = w->queue[node][--w->queued[node]];
    assert_true(q.lost);
    assert_int_equal(q.ticket, ticket);
    assert_int_equal(reply_to(w, ticket), -1);
    end(w, node, &q, ANSWER_LOST, 0);
    stream_node_writes(&w->node[node]);
    router_reads(w, node);
    assert_int_equal(reply_to(w, ticket), REPLY_UNKNOWN);
}

static void two_deaths_with_one_request_are_enough(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, REQUEST_IDEMPOTENT);
    ask(w, 1, 1, 0);
    arrive(w, 1);
    crash(w, 1);
    const struct unanswered *u = router_unanswered(w->rig.router);
    assert_int_equal(u->count, 1);
    assert_int_equal(u->node[0].incarnation, 1);
    assert_int_equal(u->node[0].count, 2);
    assert_int_equal(u->node[0].actor[0].before, 0);
    assert_int_equal(reply_to(w, 1), -1); // it may come back
    take_over(w, 1, true);
    lose_last(w, 2, 1);
    assert_int_equal(reply_to(w, 0), -1);
    assert_int_equal(w->queued[2], 1);
    crash(w, 2);
    assert_int_equal(u->count, 1); // who owns nothing any more is nobody's matter
    assert_int_equal(u->node[0].incarnation, 2);
    assert_int_equal(u->node[0].actor[0].before, 1);
    take_over(w, 2, true);
    assert_int_equal(reply_to(w, 0), REPLY_UNKNOWN);
    end_fleet(w);
}

/* An actor asks, by a record. Returns what the owner got of it. */
static struct queued asks_by_record(struct world *w)
{
    const uint64_t ticket = w->tickets++;
    const struct caller from = {.id = id_of(3)};

    step(w,
         (struct router_event){.type = ROUTER_REQUEST,
                               .session = 1,
                               .ticket = ticket,
                               .from = &from,
                               .id = id_of(0),
                               .body = bytes_of(&ticket, sizeof ticket)});
    assert_int_equal(w->queued[1], 1);
    return w->queue[1][0];
}

/* Likewise. Returns what the next owner got of it when the first was dead, asked again for `cold`.
 */
static struct queued asked_in_vain(struct world *w)
{
    (void)asks_by_record(w);
    crash(w, 1);
    take_over(w, 1, true);
    assert_int_equal(w->queued[2], 1);
    const struct queued q = w->queue[2][--w->queued[2]];
    assert_false(q.lost);
    answer_record(w, 2, &q, ANSWER_COLD, w->rig.leader.ring.version);
    return q;
}

static void what_an_actor_asked_is_asked_again(void **state)
{
    static const enum answer_code codes[] = {ANSWER_OK, ANSWER_LOST, ANSWER_COLD};
    static const enum reply_code replies[] = {REPLY_OK, REPLY_UNKNOWN, REPLY_UNKNOWN};

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct world *w = fleet();

        (void)asked_in_vain(w);
        tick(w, 100);
        assert_int_equal(w->queued[2], 1);
        const struct queued q = w->queue[2][--w->queued[2]];
        assert_true(q.lost);
        assert_int_equal(reply_to(w, 0), -1);
        answer_record(w, 2, &q, codes[i], w->rig.leader.ring.version + 1); // a second death
        assert_int_equal(reply_to(w, 0), replies[i]);
        end_fleet(w);
    }
}

/* fleet_sim --profile mixed --seed 1271: it waited for nothing, at an owner of an older version. */
static void what_is_asked_again_waits_for_an_owner_that_knows_how(void **state)
{
    struct world *w = fleet();

    (void)state;
    (void)asked_in_vain(w);
    link_down(w, 2); // before it heard that it is asked again
    w->queued[2] = 0;
    move(w, A, OLD, true);
    tick(w, 100);
    router_check(w->rig.router);
    assert_int_equal(w->queued[OLD], 0);
    assert_int_equal(reply_to(w, 0), -1);
    link_up(w, 2);
    move(w, A, 2, true);
    tick(w, 100);
    assert_int_equal(w->queued[2], 1);
    const struct queued q = w->queue[2][--w->queued[2]];
    assert_true(q.lost);
    answer_record(w, 2, &q, ANSWER_OK, w->rig.leader.ring.version);
    assert_int_equal(reply_to(w, 0), REPLY_OK);
    end_fleet(w);
}

/* fleet_sim --profile durable --seed 14: its answer was saved, and it heard UNKNOWN. */
static void a_late_answer_of_a_fenced_owner_is_asked_for_again(void **state)
{
    struct world *w = fleet();
    const uint64_t version = w->rig.leader.ring.version;
    const struct queued first = asks_by_record(w);
    const struct answer_record late = {.gateway = first.record.gateway,
                                       .session = first.record.session,
                                       .seq = first.record.seq,
                                       .fence = version,
                                       .version = version,
                                       .code = ANSWER_OK,
                                       .copy = first.record.copy,
                                       .body = bytes_of(&first.ticket, sizeof first.ticket)};

    (void)state;
    take_over(w, 1, true);
    step(w, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &late});
    assert_int_equal(reply_to(w, 0), -1);
    tick(w, 100);
    assert_int_equal(w->queued[2], 1);
    const struct queued second = w->queue[2][--w->queued[2]];
    answer_record(w, 2, &second, ANSWER_COLD, w->rig.leader.ring.version);
    tick(w, 100);
    assert_int_equal(w->queued[2], 1);
    const struct queued third = w->queue[2][--w->queued[2]];
    assert_true(third.lost);
    answer_record(w, 2, &third, ANSWER_OK, w->rig.leader.ring.version);
    assert_int_equal(reply_to(w, 0), REPLY_OK);
    end_fleet(w);
}

/* fleet_sim --profile sessions --seed 157000046: a client that had gone was told of for ever. */
static void who_sleeps_has_nothing_to_hear(void **state)
{
    static const uint8_t flags[] = {0, REQUEST_AWAKE};

    (void)state;
    for (size_t i = 0; i < sizeof flags; i++) {
        struct world *w = fleet();
        struct router_stats stats;

        ask(w, 1, 0, REQUEST_IDEMPOTENT | flags[i]);
        arrive(w, 1);
        crash(w, 1);
        take_over(w, 1, true);
        tick(w, 10);
        arrive(w, 2);
        const struct queued asked = w->queue[2][--w->queued[2]];
        end(w, 2, &asked, ANSWER_NO_KIND, 0);
        stream_node_writes(&w->node[2]);
        router_reads(w, 2);
        router_stats(w->rig.router, &stats);
        assert_int_equal(stats.in_flight, flags[i] == 0 ? 1 : 0); // a first copy may have run
        end_fleet(w);
    }
}

static void a_death_that_only_a_whole_configuration_tells_counts(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    arrive(w, 1);
    crash(w, 1);
    take_over(w, 1, false);
    assert_int_equal(reply_to(w, 0), -1);
    config(w);
    lose_last(w, 2, 0);
    end_fleet(w);
}

static void a_silent_node_is_asked_little(void **state)
{
    struct world *w = fleet();

    (void)state;
    for (uint64_t session = 1; session <= 20; session++) {
        ask(w, session, 0, 0);
    }
    arrive(w, 1);
    assert_int_equal(w->node[1].servers.chunks.count, 0);
    for (int i = 0; i < 30; i++) {
        tick(w, 10);
    }
    for (uint64_t session = 21; session <= 40; session++) {
        ask(w, session, 0, 0);
    }
    arrive(w, 1);
    assert_true(w->queued[1] <= 21);
    for (int i = 0; i < 100; i++) {
        tick(w, 10);
        arrive(w, 1);
    }
    assert_in_range(w->queued[1], 22, 30); // now and then one
    // An answer ends the silence.
    pass(w);
    tick(w, 10);
    pass(w);
    for (size_t t = 0; t < 40; t++) {
        assert_int_equal(reply_to(w, t), REPLY_OK);
    }
    end_fleet(w);
}

static void at_its_deadline_a_request_ran_or_never_will(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    link_down(w, 1);
    ask(w, 1, 0, 0);
    tick(w, 10001);
    assert_int_equal(reply_to(w, 0), REPLY_TIMEOUT);
    assert_int_equal(reply_to(w, 1), REPLY_REJECTED);
    const struct latency *timed_out = &router_latencies(w->rig.router)->row[0].of[REPLY_TIMEOUT];
    assert_int_equal(latency_count(timed_out), 1);
    assert_in_range(latency_read(&timed_out->sum_us), 10000000, 10001000);
    // What it sent is not over: the lane's next one waits for that.
    ask(w, 1, 0, 0);
    link_up(w, 1);
    pass(w);
    tick(w, 10);
    pass(w);
    assert_int_equal(reply_to(w, 2), REPLY_OK);
    end_fleet(w);
}

static void a_node_without_room_is_waited_for_a_second(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    for (int i = 0; i < 110; i++) {
        assert_int_equal(reply_to(w, 0), i <= 100 ? -1 : reply_to(w, 0));
        arrive(w, 1);
        if (w->queued[1] > 0) {
            const struct queued q = w->queue[1][--w->queued[1]];

            end(w, 1, &q, ANSWER_OVERLOAD, 5);
            stream_node_writes(&w->node[1]);
        }
        router_reads(w, 1);
        tick(w, 10);
    }
    assert_int_equal(reply_to(w, 0), REPLY_OVERLOADED);
    end_fleet(w);
}

static void nobody_hears_what_a_closed_session_asked(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    step(w, (struct router_event){.type = ROUTER_SESSION_CLOSED, .session = 1});
    pass(w);
    assert_int_equal(w->runs[0], 1);
    assert_int_equal(reply_to(w, 0), -1);
    struct router_stats stats;
    router_stats(w->rig.router, &stats);
    assert_int_equal(stats.in_flight, 0);
    end_fleet(w);
}

/* The shell tells with it that a client has gone: its fleet may be away for longer. */
static void what_must_be_told_is_asked_until_it_is_answered(void **state)
{
    struct world *w = fleet();
    struct router_stats stats;

    (void)state;
    w->must = true;
    ask(w, 1, 0, REQUEST_NO_REPLY);
    w->must = false;
    ask(w, 2, 0, 0);
    step(w, (struct router_event){.type = ROUTER_SESSION_CLOSED, .session = 1});
    arrive(w, 1);
    const struct queued gone = w->queue[1][--w->queued[1]];
    const struct queued told = w->queue[1][--w->queued[1]];
    end(w, 1, &told, ANSWER_EXPIRED, 0);
    end(w, 1, &gone, ANSWER_EXPIRED, 0);
    stream_node_writes(&w->node[1]);
    router_reads(w, 1);
    assert_int_equal(reply_to(w, 1), REPLY_REJECTED); // it must not
    link_down(w, 1);
    tick(w, 10001);
    tick(w, REQUEST_TTL_MAX_MS + 1);
    router_stats(w->rig.router, &stats);
    assert_int_equal(stats.in_flight, 1);
    link_up(w, 1);
    pass(w);
    tick(w, 10);
    pass(w);
    router_stats(w->rig.router, &stats);
    assert_int_equal(stats.in_flight, 0);
    assert_int_equal(w->runs[0], 1);
    end_fleet(w);
}

static void nothing_is_sent_before_the_stream_is_joined(void **state)
{
    struct world *w = fleet();

    (void)state;
    assert_non_null(router_log(w->rig.router, 1));
    ask(w, 1, 0, 0); // it lies in the log when the link breaks
    link_down(w, 1);
    link_up(w, 1);
    assert_null(router_log(w->rig.router, 1));
    pass(w);
    assert_non_null(router_log(w->rig.router, 1));
    assert_int_equal(reply_to(w, 0), REPLY_OK);
    assert_int_equal(w->runs[0], 1);
    end_fleet(w);
}

static void who_leaves_hears_when_nothing_is_awaited(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    arrive(w, 1);
    w->rig.leader.member[0].leaving = true;
    w->rig.leader.ring.version++;
    config(w);
    assert_int_equal(w->awaits, 1);
    follow(w);
    pass(w);
    assert_int_equal(reply_to(w, 0), REPLY_OK);
    assert_int_equal(w->awaits, 0);
    end_fleet(w);
}

static void a_lane_keeps_to_records_while_a_copy_may_come(void **state)
{
    struct world *w = fleet();

    (void)state;
    move(w, A, OLD, true);
    ask(w, 1, 0, 0);
    assert_int_equal(w->records, 1);
    link_down(w, OLD);
    tick(w, 10001);
    assert_int_equal(reply_to(w, 0), REPLY_TIMEOUT);
    move(w, A, 1, true);
    ask(w, 1, 0, 0);
    assert_int_equal(w->records, 2);
    ask(w, 2, 0, 0); // another lane
    assert_int_equal(w->records, 2);
    pass(w);
    tick(w, BY_STREAM_KEEP_MS);
    ask(w, 1, 0, 0);
    assert_int_equal(w->records, 2);
    pass(w);
    assert_int_equal(reply_to(w, 3), REPLY_OK);
    end_fleet(w);
}

static void what_waits_goes_back_to_records(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    link_down(w, 1); // it was not sent
    ask(w, 1, 0, 0);
    move(w, A, OLD, true);
    assert_int_equal(w->records, 0); // the first may have been taken
    link_up(w, 1);
    pass(w);
    tick(w, 10);
    assert_int_equal(w->records, 2);
    pass(w);
    assert_int_equal(reply_to(w, 0), REPLY_OK);
    assert_int_equal(reply_to(w, 1), REPLY_OK);
    end_fleet(w);
}

static void a_node_that_forgot_the_stream_begins_another(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    arrive(w, 1);
    link_down(w, 1);
    (void)servers_tick(&w->node[1].servers, 1);
    assert_int_equal(servers_tick(&w->node[1].servers, 10001), 1);
    link_up(w, 1);
    pass(w);
    tick(w, 10);
    pass(w);
    assert_int_equal(reply_to(w, 0), REPLY_UNKNOWN);
    assert_int_equal(w->runs[0], 0);
    ask(w, 1, 0, 0);
    pass(w);
    assert_int_equal(reply_to(w, 1), REPLY_OK);
    end_fleet(w);
}

/* A node's gate was full, and dropped JOINED; the link is well. */
static void a_lost_joined_is_asked_for_again(void **state)
{
    struct world *w = fleet();

    (void)state;
    link_down(w, 1);
    link_up(w, 1);
    arrive(w, 1);
    buffer_clear(&w->node[1].back);
    ask(w, 1, 0, 0);
    for (unsigned i = 0; i < 3; i++) {
        tick(w, 1000);
        pass(w);
    }
    assert_int_equal(reply_to(w, 0), REPLY_OK);
    end_fleet(w);
}

/* Node 1 says a frame of one answer, with that number. Returns what the router makes of it. */
static enum err say_answer(struct world *w, uint64_t number)
{
    uint8_t bytes[STREAM_HEADER_SIZE + STREAM_ANSWER_SIZE] = {0};
    const struct stream_head head = {.from = 1, .to = GATEWAY, .first = number};

    stream_head_store(bytes, STREAM_ANSWER, &head);
    stream_answer_store(bytes + STREAM_HEADER_SIZE, &(struct stream_answer){.rid = 1});
    const struct frame frame = {
        .type = FRAME_STREAM_ANSWER,
        .count = 1,
        .body = bytes_of(bytes + FRAME_HEADER_SIZE, sizeof bytes - FRAME_HEADER_SIZE)};
    struct router_frame f = {.now_us = w->rig.now_us, .frame = &frame, .slot = 1};

    router_effects_clear(&w->rig.effects);
    return router_frame(w->rig.router, &f, &w->rig.effects);
}

static void each_answer_that_is_dropped_is_counted(void **state)
{
    struct world *w = fleet();
    struct router_stats stats;

    (void)state;
    ask(w, 1, 0, 0);
    tick(w, 10001);
    assert_int_equal(reply_to(w, 0), REPLY_TIMEOUT);
    pass(w);
    router_stats(w->rig.router, &stats);
    assert_int_equal(stats.late_answers, 1);
    assert_int_equal(say_answer(w, 1), ERR_OK); // which was read
    assert_int_equal(say_answer(w, 2), ERR_OK); // to whom nobody knows
    assert_int_equal(say_answer(w, 4), ERR_CORRUPT);
    link_down(w, 1);
    link_up(w, 1);
    assert_int_equal(say_answer(w, 3), ERR_OK); // it is not joined yet
    router_stats(w->rig.router, &stats);
    assert_int_equal(stats.late_answers, 3);
    assert_int_equal(stats.bad_streams, 1);
    assert_int_equal(stats.loose_answers, 1);
    end_fleet(w);
}

static void a_node_says_how_long_for_a_second_at_most(void **state)
{
    struct world *w = fleet();

    (void)state;
    ask(w, 1, 0, 0);
    arrive(w, 1);
    const struct queued q = w->queue[1][--w->queued[1]];
    end(w, 1, &q, ANSWER_OVERLOAD, UINT64_MAX);
    stream_node_writes(&w->node[1]);
    tick(w, 500); // its rest begins when the answer is here
    while (w->node[1].back.size > 0) {
        router_reads(w, 1);
    }
    tick(w, 1000);
    arrive(w, 1);
    assert_int_equal(w->queued[1], 0);
    tick(w, 100);
    arrive(w, 1);
    assert_int_equal(w->queued[1], 1);
    end_fleet(w);
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(both_ways_keep_each_lane_in_its_order),
        cmocka_unit_test(so_they_do_when_links_break),
        cmocka_unit_test(and_when_nodes_die),
        cmocka_unit_test(two_deaths_with_one_request_are_enough),
        cmocka_unit_test(what_an_actor_asked_is_asked_again),
        cmocka_unit_test(what_is_asked_again_waits_for_an_owner_that_knows_how),
        cmocka_unit_test(a_late_answer_of_a_fenced_owner_is_asked_for_again),
        cmocka_unit_test(who_sleeps_has_nothing_to_hear),
        cmocka_unit_test(a_death_that_only_a_whole_configuration_tells_counts),
        cmocka_unit_test(a_silent_node_is_asked_little),
        cmocka_unit_test(at_its_deadline_a_request_ran_or_never_will),
        cmocka_unit_test(a_node_without_room_is_waited_for_a_second),
        cmocka_unit_test(nobody_hears_what_a_closed_session_asked),
        cmocka_unit_test(what_must_be_told_is_asked_until_it_is_answered),
        cmocka_unit_test(nothing_is_sent_before_the_stream_is_joined),
        cmocka_unit_test(who_leaves_hears_when_nothing_is_awaited),
        cmocka_unit_test(a_lane_keeps_to_records_while_a_copy_may_come),
        cmocka_unit_test(what_waits_goes_back_to_records),
        cmocka_unit_test(a_node_that_forgot_the_stream_begins_another),
        cmocka_unit_test(a_lost_joined_is_asked_for_again),
        cmocka_unit_test(each_answer_that_is_dropped_is_counted),
        cmocka_unit_test(a_node_says_how_long_for_a_second_at_most),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_SLEEPERASKED};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
