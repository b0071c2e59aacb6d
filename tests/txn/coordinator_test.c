/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's machine in a storm: nodes that vote late or never, restart and
 * come and go, a log that loses proposals or hides their outcome, leadership
 * that is lost at any moment. Then the storm ends, and everything must come to
 * rest. tests/txn/coordinator_story_test.c has the single situations.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "link/link.h"
#include "ring/plan.h"
#include "txn/leader/coordinator.h"
#include "wire/control.h"

#include "tests/planted.h"
#include "tests/txn/proposed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 6, MAIL = 512, FOLLOWERS = 2, ROWS = 256, COSTS_US = 5000000 };

/* A node that has no actors: it votes, sooner or later. */
struct fake {
    bool up;
    uint64_t link;
    uint64_t nonce;
    uint64_t incarnation;
    uint64_t renew_us; /* in a calm fleet: when it renews next, … */
    uint64_t costs_us; /* … and tells what its vnodes cost; 0 = it does not */
    struct view view;
};

/* A vote on its way. */
struct letter {
    unsigned node;
    uint64_t link;
    uint64_t incarnation;
    uint64_t txn;
    uint64_t deliver_us;
};

static struct {
    struct prng prng;
    struct state state;
    struct coordinator *c;
    struct coordinator_effects effects;
    uint64_t now_us;
    uint64_t links;
    bool storm;
    bool leading;
    struct proposed_log log;
    struct fake node[NODES];
    struct letter mail[MAIL];
    size_t mail_count;
    struct view follower[FOLLOWERS]; /* they see every delta */
    uint64_t committed;
    uint64_t aborted;
    unsigned barriers;
    uint64_t requests_of[ROWS]; /* in a calm fleet: what each vnode is asked in a report's time */
    bool by_load;
    bool by_memory;   /* what nodes tell is memory */
    unsigned slow;    /* this node needs a third more for the same; NODES = none does */
    uint64_t vote_ms; /* so much later than usual nodes vote */
} w;

/* What a node tells of its vnodes. */
static struct {
    Rh__Costs costs;
    Rh__VnodeCost row[ROWS];
    Rh__VnodeCost *list[ROWS];
} told;

static bool chance(uint64_t percent)
{
    return w.storm && prng_chance(&w.prng, percent);
}

static void post(const struct letter *letter)
{
    if (w.mail_count < MAIL) {
        w.mail[w.mail_count++] = *letter;
    }
}

/* ---- what comes out ---- */

static void on_reg_ok(struct fake *node, const Rh__RegOk *m)
{
    if (m->nonce == node->nonce) {
        node->incarnation = m->incarnation;
        (void)view_load(&node->view, m->config, true);
        assert_true(node->view.ring.version >= m->incarnation);
    }
}

static void on_prepare(unsigned number, const Rh__Prepare *m)
{
    struct fake *node = &w.node[number];
    const uint64_t delay_ms = w.vote_ms + prng_between(&w.prng, 0, chance(10) ? 5000 : 50);

    for (size_t i = 0; i < m->n_arcs; i++) {
        assert_true(m->arcs[i]->from < m->arcs[i]->to);
    }
    if (!chance(10)) {
        post(&(struct letter){.node = number,
                              .link = node->link,
                              .incarnation = node->incarnation,
                              .txn = m->txn,
                              .deliver_us = w.now_us + delay_ms * 1000});
    }
}

static void on_send(uint64_t link, const Rh__Control *m)
{
    for (unsigned i = 0; i < NODES; i++) {
        struct fake *node = &w.node[i];

        if (!node->up || node->link != link) {
            continue;
        }
        if (m->body_case == RH__CONTROL__BODY_REG_OK) {
            on_reg_ok(node, m->reg_ok);
        } else if (m->body_case == RH__CONTROL__BODY_PREPARE) {
            on_prepare(i, m->prepare);
        } else if (m->body_case == RH__CONTROL__BODY_COMMIT) {
            assert_int_not_equal(view_apply(&node->view, m->commit->delta), VIEW_DIFFERS);
        } else if (m->body_case == RH__CONTROL__BODY_GRANT) {
            node->renew_us = w.now_us + m->grant->renew_us;
        } else if (m->body_case == RH__CONTROL__BODY_BARRED) {
            node->incarnation = 0;
            node->nonce = prng_u64(&w.prng);
        }
    }
}

static void step(struct coordinator_event event)
{
    event.now_us = w.now_us;
    event.wall_us = w.now_us;
    coordinator_effects_clear(&w.effects);
    coordinator_step(w.c, &event, &w.effects);
    for (size_t i = 0; i < w.effects.count; i++) {
        const struct coordinator_effect *e = &w.effects.item[i];
        const struct bytes bytes = {w.effects.bytes.data + e->at, e->size};

        if (e->type == COORDINATOR_SEND) {
            Rh__Control *control = control_get(bytes);

            on_send(e->peer, control);
            control_free(control);
        } else {
            w.barriers += e->type == COORDINATOR_BARRIER;
            (void)proposed_add(&w.log, &w.effects, e);
        }
    }
}

/* ---- the log ---- */

static void apply(const struct proposed *e, bool tell)
{
    const uint64_t number = w.state.number;
    struct state_result result;

    state_apply(&w.state, e->command, &result);
    assert_true(w.state.number >= number);
    for (size_t i = 0; result.delta != NULL && i < FOLLOWERS; i++) {
        w.follower[i].key = w.state.view.key;
        assert_int_equal(view_apply(&w.follower[i], result.delta), VIEW_APPLIED);
    }
    w.committed += e->command->body_case == RH__COMMAND__BODY_COMMIT && result.accepted;
    w.aborted += result.aborted_count;
    step((struct coordinator_event){.type = COORDINATOR_APPLIED,
                                    .tag = tell ? e->tag : 0,
                                    .command = e->command,
                                    .result = &result});
    state_result_fini(&result);
}

static void lose_leadership(void)
{
    w.leading = false;
    while (w.log.count > 0) {
        const struct proposed e = proposed_take(&w.log);

        // Its outcome is unknown: some of the tail survives.
        step((struct coordinator_event){
            .type = COORDINATOR_DONE, .tag = e.tag, .error = ERR_TIMEOUT});
        if (e.command != NULL && prng_chance(&w.prng, 50)) {
            apply(&e, false);
        }
        command_free(e.command);
    }
    step((struct coordinator_event){.type = COORDINATOR_FOLLOW, .leader = 2});
}

static void run_log(void)
{
    while (w.log.count > 0 && !chance(20)) {
        const struct proposed e = proposed_take(&w.log);
        const bool lost = chance(3);

        if (e.command != NULL && !lost) {
            apply(&e, true);
        }
        step((struct coordinator_event){
            .type = COORDINATOR_DONE, .tag = e.tag, .error = lost ? ERR_TIMEOUT : ERR_OK});
        command_free(e.command);
    }
}

/* ---- the nodes ---- */

static void message(const struct fake *node, Rh__Control__BodyCase body, void *part)
{
    Rh__Control m = RH__CONTROL__INIT;

    m.body_case = body;
    m.register_ = part; // any member of the union
    m.source_incarnation = node->incarnation;
    step(
        (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = node->link, .message = &m});
}

static void node_stop(unsigned number)
{
    step((struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = w.node[number].link});
    w.node[number].up = false;
}

static void node_start(unsigned number)
{
    struct fake *node = &w.node[number];
    char name[8];

    (void)snprintf(name, sizeof name, "n%u", number);
    node->up = true;
    node->incarnation = 0;
    node->nonce = prng_u64(&w.prng);
    node->link = ++w.links;
    step((struct coordinator_event){
        .type = COORDINATOR_PEER_UP, .peer = node->link, .role = ROLE_NODE, .name = name});
}

static void node_register(unsigned number)
{
    uint8_t uuid[STATE_UUID_SIZE] = {(uint8_t)number};
    Rh__Register in = RH__REGISTER__INIT;
    char name[8];

    (void)snprintf(name, sizeof name, "n%u", number);
    const struct state_node *row = state_node_named(&w.state, name);

    in.name = name;
    in.address = proto_text("h:1");
    in.boot_id = in.data_uuid = proto_bytes(bytes_of(uuid, sizeof uuid));
    in.lock_held = true;
    in.disk_floor = row == NULL ? 0 : row->incarnation;
    in.nonce = w.node[number].nonce;
    in.weight = 1 + number % 3;
    message(&w.node[number], RH__CONTROL__BODY_REGISTER_, &in);
}

static void tell_begin(Rh__Renew *renew)
{
    told.costs = (Rh__Costs)RH__COSTS__INIT;
    told.costs.period_us = COSTS_US;
    told.costs.vnodes = told.list;
    renew->costs = &told.costs;
}

static void tell(uint32_t vnode, uint64_t requests)
{
    Rh__VnodeCost *row = &told.row[told.costs.n_vnodes];

    *row = (Rh__VnodeCost)RH__VNODE_COST__INIT;
    row->vnode = vnode;
    row->requests = requests;
    told.list[told.costs.n_vnodes++] = row;
}

/* Of its own and of others' vnodes, and of such as there are none: whatever comes over a link. */
static void tell_nonsense(Rh__Renew *renew)
{
    const uint64_t rows = prng_between(&w.prng, 0, 8);

    tell_begin(renew);
    told.costs.period_us = chance(5) ? 0 : prng_between(&w.prng, 1, 20000000);
    told.costs.busy_us = chance(5) ? UINT64_MAX : prng_between(&w.prng, 0, 10000000);
    told.costs.requests = chance(5) ? UINT64_MAX : prng_between(&w.prng, 0, 100000);
    for (uint64_t i = 0; i < rows; i++) {
        tell(chance(5) ? UINT32_MAX : (uint32_t)prng_between(&w.prng, 0, 200),
             chance(5) ? UINT64_MAX : prng_between(&w.prng, 0, 20000));
        told.row[i].cut = (uint32_t)prng_between(&w.prng, 0, 1 << RING_GRID_MIN);
        told.row[i].left = prng_between(&w.prng, 0, 20000);
    }
}

static void node_tick(unsigned number)
{
    struct fake *node = &w.node[number];
    Rh__Renew renew = RH__RENEW__INIT;
    Rh__Bye bye = RH__BYE__INIT;
    const struct state_node *row;
    char name[8];

    (void)snprintf(name, sizeof name, "n%u", number);
    if (!node->up) {
        if (!chance(95)) {
            node_start(number);
        }
        return;
    }
    if (chance(1)) {
        node_stop(number);
        return;
    }
    if (node->incarnation == 0) {
        node_register(number);
        return;
    }
    renew.stopping = chance(1) && number > 0;
    renew.actors = number % 2 == 0 ? 0 : 1000; // every other node gives its vnodes in parts
    if (chance(10)) {
        tell_nonsense(&renew);
    }
    message(node, RH__CONTROL__BODY_RENEW, &renew);
    row = state_node_named(&w.state, name);
    if (row != NULL && row->leaving && ring_owned_count(&w.state.view.ring, row->slot) == 0) {
        message(node, RH__CONTROL__BODY_BYE, &bye);
    }
}

static void deliver(void)
{
    for (size_t i = 0; i < w.mail_count; i++) {
        const struct letter l = w.mail[i];
        Rh__Prepared prepared = RH__PREPARED__INIT;
        Rh__Control m = RH__CONTROL__INIT;

        if (l.deliver_us > w.now_us) {
            continue;
        }
        w.mail[i--] = w.mail[--w.mail_count];
        prepared.txn = l.txn;
        m.body_case = RH__CONTROL__BODY_PREPARED;
        m.prepared = &prepared;
        m.source_incarnation = l.incarnation;
        step(
            (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = l.link, .message = &m});
    }
}

/* ---- the run ---- */

static void run(uint64_t ms)
{
    const uint64_t end_us = w.now_us + ms * 1000;

    while (w.now_us < end_us) {
        w.now_us += 50000;
        if (w.leading && chance(1)) {
            lose_leadership();
        } else if (!w.leading && !chance(80)) {
            w.leading = true;
            step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = w.now_us});
        }
        for (unsigned i = 0; i < NODES; i++) {
            if (w.now_us / 50000 % 10 == i) {
                node_tick(i);
            }
        }
        deliver();
        step((struct coordinator_event){.type = COORDINATOR_TICK});
        run_log();
    }
}

/* What it owns, and by the first node, which lies, also what it does not. */
static void tell_truly(unsigned number, Rh__Renew *renew)
{
    const struct ring *ring = &w.state.view.ring;
    char name[8];

    (void)snprintf(name, sizeof name, "n%u", number);
    const struct state_node *node = state_node_named(&w.state, name);
    tell_begin(renew);
    for (size_t i = 0; i < ring->vnode_count && told.costs.n_vnodes < ROWS; i++) {
        const struct ring_vnode *v = &ring->vnode[i];

        if (v->id < ROWS && v->owner == node->slot) {
            const uint64_t cost = w.requests_of[v->id] * (number == w.slow ? 4 : 3) / 3;

            told.costs.requests += cost;
            tell(v->id, cost);
        } else if (number == 0) {
            told.costs.requests += 50000;
            tell(v->id, 50000);
        }
    }
    for (size_t i = 0; w.by_memory && i < told.costs.n_vnodes; i++) {
        told.row[i].memory = told.row[i].requests * 1024;
        told.row[i].requests = 0;
    }
    if (w.by_memory) {
        told.costs.memory = told.costs.requests * 1024;
        told.costs.requests = 0;
        told.costs.actors = 1000;
    }
    w.node[number].costs_us = w.now_us + COSTS_US;
}

/* Return how many barriers there are in a second of a calm fleet. */
static unsigned run_calm_second(void)
{
    const uint64_t end_us = w.now_us + 1000000;

    w.barriers = 0;
    while (w.now_us < end_us) {
        w.now_us += 1000;
        for (unsigned i = 0; i < NODES; i++) {
            Rh__Renew renew = RH__RENEW__INIT;

            if (w.now_us >= w.node[i].renew_us) {
                w.node[i].renew_us = w.now_us + 500000;
                if (w.node[i].costs_us != 0 && w.now_us >= w.node[i].costs_us) {
                    tell_truly(i, &renew);
                }
                message(&w.node[i], RH__CONTROL__BODY_RENEW, &renew);
            }
        }
        deliver();
        if (w.now_us % 10000 == 0) {
            step((struct coordinator_event){.type = COORDINATOR_TICK});
        }
        run_log();
    }
    return w.barriers;
}

static void start(uint64_t seed, uint32_t lease_ms)
{
    struct coordinator_config config = coordinator_config_default();

    memset(&w, 0, sizeof w);
    w.prng.state = seed;
    w.now_us = 1000000;
    w.storm = true;
    w.slow = NODES;
    config.id = 1;
    (void)snprintf(config.cluster, sizeof config.cluster, "test");
    config.fleet.low = 1;
    config.key = (struct ring_key){1, seed};
    config.vnodes_per_weight = 16;
    config.prepare_ms = 2000;
    w.by_load = seed % 2 == 0;
    config.balance_by = w.by_load ? BALANCE_BY_LOAD : BALANCE_BY_HASH;
    if (lease_ms > 0) {
        coordinator_config_lease(&config, lease_ms);
    }
    state_init(&w.state);
    w.c = coordinator_new(&config, &w.state);
    for (unsigned i = 0; i < NODES; i++) {
        view_init(&w.node[i].view, RING_GRID_MIN);
    }
    for (unsigned i = 0; i < FOLLOWERS; i++) {
        view_init(&w.follower[i], RING_GRID_MIN);
    }
}

static void stop(void)
{
    proposed_fini(&w.log);
    for (unsigned i = 0; i < NODES; i++) {
        view_fini(&w.node[i].view);
    }
    for (unsigned i = 0; i < FOLLOWERS; i++) {
        view_fini(&w.follower[i]);
    }
    coordinator_free(w.c);
    coordinator_effects_fini(&w.effects);
    state_fini(&w.state);
}

/* Nothing pends, and the planner has nothing to wish for. */
static void expect_rest(void)
{
    const struct plan_limits limits = {.vnodes_per_weight = 16, .moves_per_txn = 8, .wave_cap = 4};
    struct plan_node nodes[NODES] = {{0}};
    struct plan plan;

    state_check(&w.state);
    assert_int_equal(state_pending_count(&w.state), 0);
    for (size_t i = 0; i < w.state.node_count; i++) {
        assert_false(w.state.node[i].leaving);
        nodes[i] =
            (struct plan_node){.slot = w.state.node[i].slot, .weight = w.state.node[i].weight};
    }
    assert_int_equal(plan_make(&plan,
                               plan_by_weight,
                               &(struct plan_view){&w.state.view.ring, nodes, w.state.node_count},
                               NULL,
                               NULL,
                               &limits),
                     ERR_OK);
    assert_true(w.by_load || plan.txn_count == 0);
    plan_fini(&plan);
    for (unsigned i = 0; i < FOLLOWERS; i++) {
        assert_int_equal(w.follower[i].ring.version, w.state.view.ring.version);
        assert_memory_equal(
            w.follower[i].ring.digest, w.state.view.ring.digest, sizeof w.state.view.ring.digest);
    }
}

/* So is the clock: it ticks as seldom as may be, until a node is silent. Long before it is
 * suspected the ticks come as ever. */
static void expect_few_ticks(void)
{
    const uint64_t suspect_us = (uint64_t)coordinator_config_default().suspect_ms * 1000;
    const uint64_t begin_us = w.now_us;

    assert_int_equal(coordinator_rests_ms(w.c), 170);
    while (coordinator_rests_ms(w.c) > 0) {
        w.now_us += (uint64_t)coordinator_rests_ms(w.c) * 1000;
        step((struct coordinator_event){.type = COORDINATOR_TICK});
    }
    assert_in_range(w.now_us - begin_us, 50000, suspect_us * 2 / 3);
}

static void after_any_storm_everything_comes_to_rest(void **state)
{
    const char *only = getenv("SEED");
    uint64_t committed = 0;
    uint64_t aborted = 0;

    (void)state;
    log_set_level(LOG_ERROR);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        start(only != NULL ? strtoull(only, NULL, 10) : seed, 0);
        run(60000);
        w.storm = false;
        run(120000);
        if (state_pending_count(&w.state) != 0 || only != NULL) {
            print_message("seed %u: %zu pending\n", (unsigned)seed, state_pending_count(&w.state));
        }
        expect_rest();
        expect_few_ticks();
        committed += w.committed;
        aborted += w.aborted;
        stop();
    }
    print_message("committed %u, aborted %u\n", (unsigned)committed, (unsigned)aborted);
    assert_true(committed > 1000 && aborted > 100); // it was a storm
}

/* Each barrier asks all coordinators. */
static void nodes_of_a_calm_fleet_renew_at_one_moment_and_share_a_barrier(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, 3000);
    w.storm = false;
    run(60000);
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_not_equal(w.node[i].incarnation, 0);
        w.node[i].renew_us = w.now_us + (uint64_t)i * 70000;
    }
    assert_in_range(run_calm_second(), NODES, 2 * NODES); // each renews at a moment of its own
    assert_in_range(run_calm_second(), 2, 3);             // each 480 ms
    assert_in_range(run_calm_second(), 2, 3);
    stop();
}

static void who_renews_last_need_not_wait_for_a_tick(void **state)
{
    Rh__Renew renew = RH__RENEW__INIT;

    (void)state;
    log_set_level(LOG_ERROR);
    start(1, 3000);
    w.storm = false;
    run(60000);
    (void)run_calm_second();
    run_log();
    const unsigned before = w.barriers;
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(w.barriers, before); // others may come
        message(&w.node[i], RH__CONTROL__BODY_RENEW, &renew);
    }
    assert_int_equal(w.barriers, before + 1);
    stop();
}

/* The greatest of what nodes are asked, in thousandths of what they should be, by weight. */
static uint64_t worst_permille(void)
{
    const struct ring *ring = &w.state.view.ring;
    uint64_t all = 0;
    uint64_t weight = 0;
    uint64_t worst = 0;

    for (size_t i = 0; i < ring->vnode_count; i++) {
        all += w.requests_of[ring->vnode[i].id];
    }
    for (size_t i = 0; i < w.state.node_count; i++) {
        weight += w.state.node[i].weight;
    }
    for (size_t i = 0; i < w.state.node_count; i++) {
        const struct state_node *n = &w.state.node[i];
        uint64_t own = 0;

        for (size_t k = 0; k < ring->vnode_count; k++) {
            own += ring->vnode[k].owner == n->slot ? w.requests_of[ring->vnode[k].id] : 0;
        }
        const uint64_t share = all * n->weight;
        const uint64_t permille = share == 0 ? 0 : own * 1000 * weight / share;
        worst = permille > worst ? permille : worst;
    }
    return worst;
}

/* The last node's vnodes are asked three times as often as others. */
static void start_uneven(void)
{
    log_set_level(LOG_ERROR);
    start(2, 3000);
    w.storm = false;
    run(60000);
    const struct ring *ring = &w.state.view.ring;
    const uint16_t hot = state_node_named(&w.state, "n5")->slot;
    for (size_t i = 0; i < ring->vnode_count; i++) {
        assert_true(ring->vnode[i].id < ROWS);
        w.requests_of[ring->vnode[i].id] = ring->vnode[i].owner == hot ? 3000 : 1000;
    }
    for (unsigned i = 0; i < NODES; i++) {
        w.node[i].renew_us = w.now_us + (uint64_t)i * 1000;
        w.node[i].costs_us = w.now_us;
    }
    assert_true(worst_permille() > 1700);
}

static void run_calm(int seconds)
{
    for (int s = 0; s < seconds; s++) {
        (void)run_calm_second();
    }
}

static void what_vnodes_cost_is_shared_out_once_all_nodes_tell(void **state)
{
    (void)state;
    start_uneven();
    const struct ring *ring = &w.state.view.ring;
    const uint64_t version = ring->version;
    w.node[NODES - 1].costs_us = 0;
    run_calm(60); // the last one does not tell: nobody knows enough
    assert_int_equal(ring->version, version);
    w.node[NODES - 1].costs_us = w.now_us;
    run_calm(90);
    print_message("max/mean %u / 1000\n", (unsigned)worst_permille());
    assert_true(worst_permille() <= 1150);
    assert_int_equal(state_pending_count(&w.state), 0);
    const uint64_t settled = ring->version;
    run_calm(600);
    assert_int_equal(ring->version, settled); // and there it stays
    stop();
}

static uint16_t owner_of(uint32_t vnode)
{
    const struct ring_vnode *v = ring_find(&w.state.view.ring, vnode);

    return v == NULL ? 0 : v->owner;
}

/* Then just what moved is asked ten times as often: others make room for it. */
static void what_moved_for_its_load_stays_for_ten_minutes(void **state)
{
    uint16_t before[ROWS];
    uint16_t after[ROWS];
    size_t moved = 0;

    (void)state;
    start_uneven();
    for (uint32_t id = 0; id < ROWS; id++) {
        before[id] = owner_of(id);
    }
    run_calm(60);
    for (uint32_t id = 0; id < ROWS; id++) {
        after[id] = owner_of(id);
        if (after[id] != before[id]) {
            moved++;
            w.requests_of[id] *= 10;
        }
    }
    assert_true(moved > 0);
    run_calm(500);
    for (uint32_t id = 0; id < ROWS; id++) {
        assert_true(after[id] == before[id] || owner_of(id) == after[id]);
    }
    stop();
}

static void weigh(uint16_t slot, uint32_t weight)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDesire desire = RH__COMMAND_DESIRE__INIT;
    char name[VIEW_NAME_MAX + 1];

    (void)snprintf(name, sizeof name, "%s", state_node(&w.state, slot)->name);
    desire.name = name;
    desire.weight = weight;
    command.body_case = RH__COMMAND__BODY_DESIRE;
    command.desire = &desire;
    apply(&(struct proposed){.command = &command}, false);
}

/* The first MOVE that pends for the load's sake to a node of more than the least weight. */
static const struct ring_op *moving_for_load(void)
{
    for (size_t i = 0; i < w.state.txn_count; i++) {
        const struct state_txn *t = &w.state.txn[i];

        if (t->state == TXN_PENDING && strcmp(t->why, "load") == 0 &&
            state_node(&w.state, t->ops[0].to)->weight > 1) {
            return &t->ops[0];
        }
    }
    return NULL;
}

/* It costs most of what its target will have, when that is to have less. */
static void what_is_on_its_way_for_its_load_is_not_planned_on(void **state)
{
    struct coordinator_config config = coordinator_config_default();
    struct ring_op move;

    (void)state;
    start_uneven();
    config.balance_by = BALANCE_BY_LOAD;
    config.prepare_ms = 60000;
    config.txns_per_node = config.txns_max; // what waits for late votes is in nothing's way
    coordinator_configure(w.c, &config);
    w.vote_ms = 8000;
    for (int s = 0; moving_for_load() == NULL; s++) {
        assert_true(s < 120);
        run_calm(1);
    }
    move = *moving_for_load();
    run_calm((int)(config.balance_period_ms / 1000)); // then a plan may move for the load again
    assert_int_equal(owner_of(move.vnode), move.from);
    weigh(move.to, 1);
    run_calm(60);
    assert_int_equal(owner_of(move.vnode), move.to);
    stop();
}

/* Each node by turns needs more time for the same, as on a machine that has other things to do. */
static void noise_moves_no_vnode_twice_in_ten_minutes(void **state)
{
    enum { TURN = 100, TEN_MINUTES = 600 }; /* seconds */
    int moved_at[ROWS] = {0};
    uint16_t owner[ROWS];
    size_t moves = 0;

    (void)state;
    start_uneven();
    run_calm(60);
    for (uint32_t id = 0; id < ROWS; id++) {
        owner[id] = owner_of(id);
    }
    for (int s = 1; s <= 2 * TEN_MINUTES; s++) {
        w.slow = (unsigned)(s / TURN) % NODES;
        run_calm(1);
        for (uint32_t id = 0; id < ROWS; id++) {
            if (owner_of(id) != owner[id]) {
                assert_true(moved_at[id] == 0 || s - moved_at[id] >= TEN_MINUTES);
                moved_at[id] = s;
                owner[id] = owner_of(id);
                moves++;
            }
        }
    }
    print_message("%zu moves in 20 minutes of noise\n", moves);
    assert_true(moves > 0);
    stop();
}

/* Of as many requests each, the last node's vnodes have actors that take three times as much. */
static void what_actors_take_is_shared_out(void **state)
{
    struct coordinator_config config = coordinator_config_default();

    (void)state;
    start_uneven();
    w.by_memory = true;
    config.balance_by = BALANCE_BY_MEMORY;
    coordinator_configure(w.c, &config);
    run_calm(60);
    print_message("max/mean %u / 1000\n", (unsigned)worst_permille());
    assert_true(worst_permille() <= 1150);
    const uint64_t settled = w.state.view.ring.version;
    run_calm(300);
    assert_int_equal(w.state.view.ring.version, settled);
    stop();
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(after_any_storm_everything_comes_to_rest),
        cmocka_unit_test(nodes_of_a_calm_fleet_renew_at_one_moment_and_share_a_barrier),
        cmocka_unit_test(who_renews_last_need_not_wait_for_a_tick),
        cmocka_unit_test(what_vnodes_cost_is_shared_out_once_all_nodes_tell),
        cmocka_unit_test(what_moved_for_its_load_stays_for_ten_minutes),
        cmocka_unit_test(what_is_on_its_way_for_its_load_is_not_planned_on),
        cmocka_unit_test(noise_moves_no_vnode_twice_in_ten_minutes),
        cmocka_unit_test(what_actors_take_is_shared_out),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_BELIEVED, M_MOVEDON, M_RESTLESS};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
