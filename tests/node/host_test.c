/* SPDX-License-Identifier: Apache-2.0
 *
 * Three hosts, one coordinator that knows no mercy, one gateway: vnodes move at random under load
 * while control messages are lost and links between nodes break; actors retire, fail, do things
 * between requests, hand over later or nothing. Nothing may run twice, out of order, at two nodes,
 * or without the state that the actor had before.
 *
 * The fleet's simulator (sim/) does this with the real coordinator and gateway; this one knows
 * nothing of either, and ends with everything answered.
 */
#include "tests/node/host_shell.h"

static void send_node(int node, Rh__Control *c)
{
    struct buffer b = {0};

    c->era = 1;
    c->version = cluster.ring.version;
    control_put(&b, c);
    post((struct packet){.from = COORDINATOR, .to = node, .frame_type = FRAME_CONTROL},
         buffer_bytes(&b));
    buffer_fini(&b);
}

static void send_prepare(int node)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare p = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *arcs[] = {&arc};
    const struct ring_vnode *v = ring_find(&cluster.ring, pending.vnode);

    p.txn = pending.txn;
    p.base_version = pending.base;
    p.supersedes = pending.superseded;
    p.n_arcs = 1;
    p.arcs = arcs;
    arc.from = v->from;
    arc.to = ring_end(&cluster.ring, v);
    arc.vnode = v->id;
    arc.out = node == pending.from;
    arc.peer = arc.out ? pending.to : pending.from;
    arc.peer_incarnation = 100 + arc.peer;
    c.body_case = RH__CONTROL__BODY_PREPARE;
    c.prepare = &p;
    send_node(node, &c);
}

static void commit(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Commit message = RH__COMMIT__INIT;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};
    const struct ring_op move = {
        .kind = RING_MOVE, .vnode = pending.vnode, .from = pending.from, .to = pending.to};

    delta.prev_version = cluster.ring.version;
    delta.version = ++number;
    delta.txn = pending.txn;
    ring_apply(&cluster.ring, &move, 1, delta.version, delta.txn);
    op.kind = RING_MOVE;
    op.vnode = move.vnode;
    op.from = move.from;
    op.to = move.to;
    delta.n_ops = 1;
    delta.ops = ops;
    delta.digest0 = cluster.ring.digest[0];
    delta.digest1 = cluster.ring.digest[1];
    message.txn = pending.txn;
    message.delta = &delta;
    c.body_case = RH__CONTROL__BODY_COMMIT;
    c.commit = &message;
    for (int node = 1; node <= NODES; node++) {
        send_node(node, &c);
    }
    pending.txn = 0;
    commits++;
}

static void cancel(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Cancel message = RH__CANCEL__INIT;

    message.txn = pending.txn;
    c.body_case = RH__CONTROL__BODY_CANCEL;
    c.cancel = &message;
    send_node(pending.from, &c);
    send_node(pending.to, &c);
    pending.txn = 0;
    cancels++;
}

static void begin(void)
{
    const struct ring_vnode *v =
        ring_find(&cluster.ring, (uint32_t)prng_between(&prng, 0, VNODES - 1));

    pending.txn = ++number;
    pending.vnode = v->id;
    pending.from = v->owner;
    pending.to = (uint16_t)(v->owner % NODES + 1);
    pending.superseded = 0;
    pending.base = cluster.ring.version;
    pending.in_voted = false;
}

static void supersede(void)
{
    pending.superseded = pending.txn;
    pending.txn = ++number;
    pending.in_voted = false;
    supersedes++;
}

static void answer_poll(int node, const Rh__Poll *poll)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__PollAnswer answer = RH__POLL_ANSWER__INIT;
    Rh__TxnState state[64];
    Rh__TxnState *states[64];

    answer.n_txns = poll->n_txns;
    answer.txns = states;
    for (size_t i = 0; i < poll->n_txns; i++) {
        states[i] = &state[i];
        state[i] = (Rh__TxnState)RH__TXN_STATE__INIT;
        state[i].txn = poll->txns[i];
        state[i].pending = poll->txns[i] == pending.txn;
    }
    answer.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_POLL_ANSWER;
    c.poll_answer = &answer;
    send_node(node, &c);
}

static void answer_config(int node)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Config config;

    view_config(&cluster, &config);
    answer.config = &config;
    answer.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_CONFIG;
    c.config = &answer;
    send_node(node, &c);
    view_config_fini(&config);
}

static void on_vote(int node, uint64_t txn)
{
    if (txn == pending.txn && node == pending.to) {
        pending.in_voted = true;
    } else if (txn == pending.txn && node == pending.from && pending.in_voted) {
        commit();
    }
}

static void coordinator_takes(int node, struct bytes bytes)
{
    Rh__Control *c = control_get(bytes);

    assert_non_null(c);
    if (c->body_case == RH__CONTROL__BODY_PREPARED) {
        on_vote(node, c->prepared->txn);
    } else if (c->body_case == RH__CONTROL__BODY_POLL) {
        answer_poll(node, c->poll);
    } else if (c->body_case == RH__CONTROL__BODY_GET_CONFIG) {
        answer_config(node);
    } else {
        assert_int_not_equal(c->body_case, RH__CONTROL__BODY_REFUSED);
    }
    control_free(c);
}

static void coordinator_acts(void)
{
    if (pending.txn == 0) {
        begin();
    } else if (prng_chance(&prng, 3)) {
        cancel();
    } else if (prng_chance(&prng, 3)) {
        supersede();
    } else {
        send_prepare(pending.in_voted ? pending.from : pending.to);
    }
}

/* ---- the gateway ---- */

static uint64_t base_of(unsigned session, unsigned entity)
{
    uint64_t base = lane[session][entity].done + 1;

    for (uint64_t bits = lane[session][entity].finished; (bits & 1) != 0; bits >>= 1) {
        base++;
    }
    return base;
}

static void send_request(unsigned session, unsigned entity, uint64_t seq)
{
    const size_t at = seq % LANE;
    const uint64_t body[2] = {session, seq};
    const uint64_t base = base_of(session, entity);
    struct buffer b = {0};
    struct request_record r = {
        .gateway = GATEWAY_LINK,
        .session = 1000u * (entity * SESSIONS + session) + 7u, // one for each pair
        .seq = seq,
        .prev = seq - 1 >= base ? seq - 1 : 0,
        .base = base,
        .first = lane[session][entity].first[at],
        .version = routes.ring.version,
        .ttl_ms = 100000,
        .copy = ++lane[session][entity].copy[at],
        .id = entity_id(entity),
        .body = bytes_of(body, sizeof body),
    };

    request_put(&b, &r);
    post((struct packet){.from = GATEWAY,
                         .to = ring_hit_node(view_lookup(&routes, 0, r.id)),
                         .frame_type = FRAME_REQUEST},
         buffer_bytes(&b));
    buffer_fini(&b);
    lane[session][entity].asked[at] = now_us + 400000;
}

static void gateway_acts(bool more)
{
    const unsigned session = (unsigned)prng_between(&prng, 0, SESSIONS - 1);
    const unsigned entity = (unsigned)prng_between(&prng, 0, ENTITIES - 1);
    const uint64_t base = base_of(session, entity);

    if (prng_chance(&prng, 2)) {
        view_fini(&routes);
        view_copy(&routes, &cluster);
    }
    for (uint64_t seq = base; seq <= lane[session][entity].sent; seq++) {
        const bool is_done =
            seq <= lane[session][entity].done ||
            (lane[session][entity].finished >> (seq - lane[session][entity].done - 1) & 1) != 0;
        if (!is_done && lane[session][entity].asked[seq % LANE] <= now_us) {
            send_request(session, entity, seq);
        }
    }
    if (more && lane[session][entity].sent < base + WINDOW - 1) {
        const uint64_t seq = ++lane[session][entity].sent;
        lane[session][entity].copy[seq % LANE] = 0;
        lane[session][entity].first[seq % LANE] = routes.ring.version;
        send_request(session, entity, seq);
    }
}

static void gateway_takes(struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct answer_record a;

    assert_int_equal(answer_get(&in, &a), ERR_OK);
    const unsigned session = (unsigned)(a.session / 1000u) % SESSIONS;
    const unsigned entity = (unsigned)(a.session / 1000u) / SESSIONS;
    if (a.code != ANSWER_OK) {
        assert_true(a.code == ANSWER_MOVED || a.code == ANSWER_BUSY);
        lane[session][entity].asked[a.seq % LANE] = now_us + 20000;
        if (a.code == ANSWER_MOVED && a.aux > routes.ring.version) {
            view_fini(&routes);
            view_copy(&routes, &cluster);
        }
        return;
    }
    if (a.seq > lane[session][entity].done) {
        lane[session][entity].finished |= (uint64_t)1 << (a.seq - lane[session][entity].done - 1);
        while ((lane[session][entity].finished & 1) != 0) {
            lane[session][entity].finished >>= 1;
            lane[session][entity].done++;
            answered++;
        }
    }
}

/* ---- the world ---- */

static void node_takes(const struct packet *p)
{
    struct reader in = {.at = p->bytes.data, .left = p->bytes.size};
    const uint64_t peer = p->from == GATEWAY ? GATEWAY_LINK : link_of(p->from);
    struct request_record request;
    struct answer_record answer;
    struct state_record state;
    struct state_ack_record state_ack;
    struct host_event event = {.peer = peer};
    Rh__Control *c = NULL;

    if (p->frame_type == FRAME_CONTROL) {
        c = control_get(p->bytes);
        event = (struct host_event){.type = HOST_CONTROL, .message = c};
    } else if (p->frame_type == FRAME_REQUEST) {
        assert_int_equal(request_get(&in, &request), ERR_OK);
        event.type = HOST_REQUEST;
        event.request = &request;
    } else if (p->frame_type == FRAME_ANSWER) {
        assert_int_equal(answer_get(&in, &answer), ERR_OK);
        event.type = HOST_ANSWER;
        event.answer = &answer;
    } else if (p->frame_type == FRAME_STATE) {
        assert_int_equal(state_get(&in, &state), ERR_OK);
        event.type = HOST_STATE;
        event.state = &state;
        event.state_count = 1;
    } else if (p->frame_type == FRAME_STATE_ACK) {
        assert_int_equal(state_ack_get(&in, &state_ack), ERR_OK);
        event.type = HOST_STATE_ACK;
        event.state_ack = &state_ack;
    } else {
        event = (struct host_event){.type = p->actor == NULL ? HOST_WAKE : HOST_COMPLETED,
                                    .actor = p->actor,
                                    .completion = p->completion,
                                    .id = p->bytes};
        event.completion.bytes = p->bytes;
    }
    step(p->to, event);
    control_free(c);
}

/* Any packet may be next that is the first on its way from one end to another. */
static void deliver_one(unsigned loss)
{
    const size_t chosen = (size_t)prng_between(&prng, 0, packet_count - 1);
    size_t first = 0;

    if (packets[chosen]->late_us > now_us) {
        return;
    }
    while (packets[chosen]->late_us == 0 &&
           (packets[first]->late_us != 0 || packets[first]->from != packets[chosen]->from ||
            packets[first]->to != packets[chosen]->to)) {
        first++;
    }
    first = packets[chosen]->late_us == 0 ? first : chosen;
    struct packet *p = take_packet(first);
    if (p->frame_type == FRAME_CONTROL && prng_chance(&prng, loss)) {
        packet_free(p);
        return;
    }
    if (p->frame_type == FRAME_CONTROL && loss > 0 && prng_chance(&prng, 10)) {
        struct packet again = *p;
        again.late_us = now_us + prng_between(&prng, 0, 500000);
        post(again, p->bytes); // and once more, later
    }
    if (p->to == COORDINATOR) {
        coordinator_takes(p->from, p->bytes);
    } else if (p->to == GATEWAY) {
        gateway_takes(p->bytes);
    } else {
        node_takes(p);
    }
    packet_free(p);
}

static void set_link(int a, int b, bool up)
{
    if (shells[a].linked[b] == up) {
        return;
    }
    lose_between(a, b);
    for (int i = 0; i < 2; i++) {
        const int node = i == 0 ? a : b;
        const int other = i == 0 ? b : a;
        char name[16];

        (void)snprintf(name, sizeof name, "n%d", other);
        shells[node].linked[other] = up;
        step(node,
             (struct host_event){.type = up ? HOST_PEER_UP : HOST_PEER_DOWN,
                                 .peer = link_of(other),
                                 .role = ROLE_NODE,
                                 .name = name,
                                 .incarnation = 100u + (unsigned)other});
    }
}

static void start_node(int node)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;
    Rh__Control r = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config view;
    struct host_config config = host_config_default();

    (void)snprintf(config.name, sizeof config.name, "n%d", node);
    config.kinds = kinds;
    config.kind_count = 1;
    config.nonce = 7;
    config.state_window = 100000;
    config.session_keep_ms = 600000;
    shells[node].host = host_new(&config);
    leader.leading = true;
    leader.term = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    step(node, (struct host_event){.type = HOST_COORDINATOR_UP});
    step(node, (struct host_event){.type = HOST_CONTROL, .message = &c});
    view_config(&cluster, &view);
    ok.nonce = 7;
    ok.slot = (uint32_t)node;
    ok.incarnation = 100u + (unsigned)node;
    ok.floor = number;
    ok.config = &view;
    r.body_case = RH__CONTROL__BODY_REG_OK;
    r.reg_ok = &ok;
    step(node, (struct host_event){.type = HOST_CONTROL, .message = &r});
    view_config_fini(&view);
    step(node,
         (struct host_event){.type = HOST_PEER_UP,
                             .peer = GATEWAY_LINK,
                             .role = ROLE_GATEWAY,
                             .name = "g",
                             .incarnation = GATEWAY_LINK});
}

static void start(uint64_t seed)
{
    prng = (struct prng){.state = seed};
    now_us = 1000000;
    number = 10;
    answered = 0;
    memset(truth, 0, sizeof truth);
    memset(lane, 0, sizeof lane);
    memset(&pending, 0, sizeof pending);
    kinds[0].remembered = seed % 2 == 0;
    kinds[0].idle_ms = 150;
    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){3, 4};
    cluster.era = 1;
    ring_create(&cluster.ring, VNODES, 1, number);
    cluster.member = mem_new(NODES, sizeof *cluster.member);
    cluster.member_count = NODES;
    for (unsigned i = 0; i < NODES; i++) {
        struct view_member *m = &cluster.member[i];

        *m = (struct view_member){.slot = (uint16_t)(i + 1), .incarnation = 101u + i, .weight = 1};
        (void)snprintf(m->name, sizeof m->name, "n%u", i + 1u);
        (void)snprintf(m->address, sizeof m->address, "h%u", i + 1u);
    }
    view_copy(&routes, &cluster);
    for (int node = 1; node <= NODES; node++) {
        start_node(node);
    }
    for (int a = 1; a <= NODES; a++) {
        for (int b = a + 1; b <= NODES; b++) {
            set_link(a, b, true);
        }
    }
}

static void end(void)
{
    while (packet_count > 0) {
        packet_free(take_packet(0));
    }
    for (int node = 1; node <= NODES; node++) {
        const struct host *h = shells[node].host;

        for (uint32_t c = 0; c < h->actors.cell_count; c++) {
            for (struct actor *a = cell_first(&h->actors, c); a; a = cell_next(&h->actors, c, a)) {
                mem_free(actor_instance(a)); // a packed one has none
            }
        }
        host_free(shells[node].host);
        host_effects_fini(&shells[node].effects);
        memset(&shells[node], 0, sizeof shells[node]);
    }
    view_fini(&cluster);
    view_fini(&routes);
}

static void round_of_all(bool faults)
{
    now_us += 1000;
    gateway_acts(faults);
    if (faults ? prng_chance(&prng, 10) : pending.txn != 0 && prng_chance(&prng, 10)) {
        coordinator_acts();
    }
    for (int node = 1; node <= NODES; node++) {
        struct shell *s = &shells[node];

        if (s->persist_ticket != 0 && prng_chance(&prng, 30)) {
            const uint64_t ticket = s->persist_ticket;
            s->persist_ticket = 0;
            step(node, (struct host_event){.type = HOST_PERSISTED, .ticket = ticket});
        }
        if (prng_chance(&prng, 5)) {
            step(node, (struct host_event){.type = HOST_TICK});
            host_check(s->host);
        }
    }
    if (faults && prng_chance(&prng, 1)) {
        const int a = (int)prng_between(&prng, 1, NODES);
        set_link(a < NODES ? a : 1, a < NODES ? a + 1 : NODES, prng_chance(&prng, 50));
    }
    for (unsigned i = 0; i < 8 && packet_count > 0; i++) {
        deliver_one(faults ? 20 : 0);
    }
}

static bool is_quiet(void)
{
    for (unsigned s = 0; s < SESSIONS; s++) {
        for (unsigned e = 0; e < ENTITIES; e++) {
            if (lane[s][e].done != lane[s][e].sent) {
                return false;
            }
        }
    }
    for (int node = 1; node <= NODES; node++) {
        if (shells[node].host->txns.participant.part_count > 0) {
            return false;
        }
    }
    for (unsigned e = 0; e < ENTITIES && kinds[0].remembered; e++) {
        if (truth[e].lives_at == 0) {
            return false;
        }
    }
    return pending.txn == 0;
}

static void fleet_of(uint64_t seed)
{
    start(seed);
    faulty = true;
    for (unsigned i = 0; i < ROUNDS; i++) {
        round_of_all(true);
    }
    faulty = false;
    for (int a = 1; a <= NODES; a++) {
        for (int b = a + 1; b <= NODES; b++) {
            set_link(a, b, true);
        }
    }
    for (unsigned i = 0; i < 200000 && !is_quiet(); i++) {
        round_of_all(false);
    }
    assert_true(is_quiet()); // P4: every transaction ends, every request is answered
    assert_true(answered > 100);
    for (unsigned e = 0; e < ENTITIES; e++) {
        for (unsigned s = 0; s < SESSIONS; s++) {
            assert_int_equal(truth[e].last[s], lane[s][e].sent);
        }
    }
    end();
}

static void nothing_is_lost_doubled_or_out_of_order_while_vnodes_move(void **state)
{
    const char *seed = getenv("SEED");

    (void)state;
    if (seed != NULL) {
        fleet_of(strtoull(seed, NULL, 10));
        return;
    }
    for (uint64_t i = 1; i <= 6; i++) {
        print_message("seed %u\n", (unsigned)i);
        fleet_of(i);
    }
    assert_true(commits > 20 && cancels > 10 && supersedes > 10);
    assert_true(failures > 20 && turns > 20 && retirements > 20);
}

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_doubled_or_out_of_order_while_vnodes_move),
    };

    if (getenv("SEED") == NULL) {
        log_set_sink(quiet, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
