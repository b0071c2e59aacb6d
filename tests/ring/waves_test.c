/* SPDX-License-Identifier: Apache-2.0
 *
 * Many transactions at a time, in virtual time: a hundred joins in a second, and
 * one node that answers fifty times slower than the others.
 */
#include "base/log.h"
#include "base/mem.h"
#include "link/link.h"
#include "txn/leader/coordinator.h"
#include "wire/control.h"

#include "tests/txn/proposed.h"

#include <stdio.h>
#include <string.h>

enum {
    NODES_MAX = 101,
    MAIL = 4096,
    STEP_US = 1000,
    LOG_US = 2000, /* a command takes so long through the log */
};

struct vote {
    unsigned node;
    uint64_t txn;
    uint64_t ready_us;
};

static struct {
    struct state state;
    struct coordinator *c;
    struct coordinator_effects effects;
    uint64_t now_us;
    struct proposed_log log;
    struct vote vote[MAIL];
    size_t vote_count;
    uint64_t incarnation[NODES_MAX]; /* by link - 1; 0 = none yet */
    uint64_t answer_us[NODES_MAX];
    uint64_t actors[NODES_MAX]; /* that live there, as it tells the leader */
    unsigned nodes;
    unsigned slow;           /* n2 and so many in all: commits that don't touch them are watched */
    uint64_t begun_us;       /* the first BEGIN since this was 0 */
    uint64_t others_done_us; /* the last of those commits */
    uint64_t moves;          /* in them, … */
    uint64_t before_slow;    /* … and those before the first that touches a slow one */
    bool slow_came;
    size_t slow_at_once; /* most transactions that touch slow ones pending when another began */
} w;

static void on_send(uint64_t link, const Rh__Control *m)
{
    const unsigned node = (unsigned)link - 1;

    if (m->body_case == RH__CONTROL__BODY_REG_OK) {
        w.incarnation[node] = m->reg_ok->incarnation;
    } else if (m->body_case == RH__CONTROL__BODY_PREPARE) {
        for (size_t i = 0; i < w.vote_count; i++) {
            if (w.vote[i].node == node && w.vote[i].txn == m->prepare->txn) {
                return; // asked again
            }
        }
        assert_true(w.vote_count < MAIL);
        w.vote[w.vote_count++] = (struct vote){node, m->prepare->txn, w.now_us + w.answer_us[node]};
    }
}

static void step(struct coordinator_event event)
{
    event.now_us = event.wall_us = w.now_us;
    coordinator_effects_clear(&w.effects);
    coordinator_step(w.c, &event, &w.effects);
    for (size_t i = 0; i < w.effects.count; i++) {
        const struct coordinator_effect *e = &w.effects.item[i];
        const struct bytes bytes = {w.effects.bytes.data + e->at, e->size};

        if (e->type == COORDINATOR_SEND) {
            Rh__Control *control = control_get(bytes);

            assert_non_null(control);
            on_send(e->peer, control);
            control_free(control);
            continue;
        }
        proposed_add(&w.log, &w.effects, e)->ready_us = w.now_us + LOG_US;
    }
}

static bool touches_slow(const struct state_txn *t)
{
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(&w.state, t->parts[i].slot);

        for (unsigned k = 1; k <= w.slow; k++) {
            if (node->incarnation == w.incarnation[k]) {
                return true;
            }
        }
    }
    return false;
}

static void note_begin(void)
{
    const struct state_txn *begun = &w.state.txn[w.state.txn_count - 1];
    size_t count = 0;

    w.begun_us = w.begun_us == 0 ? w.now_us : w.begun_us;
    for (size_t i = 0; i < w.state.txn_count && !touches_slow(begun); i++) {
        const struct state_txn *t = &w.state.txn[i];

        count += t->state == TXN_PENDING && touches_slow(t);
    }
    w.slow_at_once = count > w.slow_at_once ? count : w.slow_at_once;
}

static void note_commit(const Rh__Command *command, const struct state_result *result)
{
    const struct state_txn *t = state_txn(&w.state, command->commit->txn);

    if (!result->accepted || t == NULL || t->part_count == 0) {
        return;
    }
    if (touches_slow(t)) {
        w.before_slow = w.slow_came ? w.before_slow : w.moves;
        w.slow_came = true;
        return;
    }
    w.others_done_us = w.now_us;
    w.moves += t->op_count;
}

static void run_log(void)
{
    while (w.log.count > 0 && w.log.entry[0].ready_us <= w.now_us) {
        const struct proposed e = proposed_take(&w.log);
        struct state_result result;

        if (e.command != NULL) {
            state_apply(&w.state, e.command, &result);
            if (e.command->body_case == RH__COMMAND__BODY_COMMIT) {
                note_commit(e.command, &result);
            } else if (e.command->body_case == RH__COMMAND__BODY_BEGIN) {
                note_begin();
            }
            step((struct coordinator_event){.type = COORDINATOR_APPLIED,
                                            .tag = e.tag,
                                            .command = e.command,
                                            .result = &result});
            state_result_fini(&result);
            command_free(e.command);
        }
        step((struct coordinator_event){.type = COORDINATOR_DONE, .tag = e.tag});
    }
}

static void message(unsigned node, Rh__Control__BodyCase body, void *part)
{
    Rh__Control m = RH__CONTROL__INIT;

    m.body_case = body;
    m.register_ = part; // any member of the union
    m.source_incarnation = w.incarnation[node];
    step((struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = node + 1, .message = &m});
}

static void join(unsigned node)
{
    uint8_t uuid[STATE_UUID_SIZE] = {(uint8_t)(node + 1)};
    Rh__Register in = RH__REGISTER__INIT;
    char name[16];

    (void)snprintf(name, sizeof name, "n%u", node + 1);
    w.nodes = node + 1 > w.nodes ? node + 1 : w.nodes;
    step((struct coordinator_event){
        .type = COORDINATOR_PEER_UP, .peer = node + 1, .role = ROLE_NODE, .name = name});
    in.name = name;
    in.address = proto_text("h:1");
    in.boot_id = in.data_uuid = proto_bytes(bytes_of(uuid, sizeof uuid));
    in.lock_held = true;
    in.nonce = node + 1;
    in.weight = 1;
    message(node, RH__CONTROL__BODY_REGISTER_, &in);
}

static void run(uint64_t ms)
{
    const uint64_t end_us = w.now_us + ms * 1000;

    while (w.now_us < end_us) {
        w.now_us += STEP_US;
        run_log();
        for (size_t i = 0; i < w.vote_count; i++) {
            const struct vote v = w.vote[i];
            Rh__Prepared prepared = RH__PREPARED__INIT;

            if (v.ready_us <= w.now_us) {
                w.vote[i--] = w.vote[--w.vote_count];
                prepared.txn = v.txn;
                message(v.node, RH__CONTROL__BODY_PREPARED, &prepared);
            }
        }
        for (unsigned i = 0; i < w.nodes && w.now_us % 500000 == 0; i++) {
            Rh__Renew renew = RH__RENEW__INIT;

            renew.actors = w.actors[i];
            if (w.incarnation[i] != 0) {
                message(i, RH__CONTROL__BODY_RENEW, &renew);
            }
        }
        if (w.now_us % 20000 == 0) {
            step((struct coordinator_event){.type = COORDINATOR_TICK});
        }
    }
}

static void start(uint32_t vnodes, uint32_t txns_per_node)
{
    struct coordinator_config config = coordinator_config_default();

    log_set_level(LOG_ERROR);
    memset(&w, 0, sizeof w);
    w.now_us = 1000000;
    config.id = 1;
    (void)snprintf(config.cluster, sizeof config.cluster, "test");
    config.fleet.low = 1;
    config.key = (struct ring_key){1, 2};
    config.vnodes_per_weight = vnodes;
    config.txns_per_node = txns_per_node;
    state_init(&w.state);
    w.c = coordinator_new(&config, &w.state);
    for (unsigned i = 0; i < NODES_MAX; i++) {
        w.answer_us[i] = 5000;
    }
    step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    run(10);
}

static void stop(void)
{
    proposed_fini(&w.log);
    coordinator_free(w.c);
    coordinator_effects_fini(&w.effects);
    state_fini(&w.state);
}

/* As a node is shipped. */
static uint32_t shipped(void)
{
    return coordinator_config_default().txns_per_node;
}

static void a_hundred_joins_in_a_second_are_planned_twice_at_most(void **state)
{
    (void)state;
    start(8, shipped());
    join(0);
    run(2000);
    const uint64_t before = coordinator_plans_made(w.c);
    for (unsigned i = 1; i <= 100; i++) {
        join(i);
        run(10);
    }
    run(20000);
    print_message("100 joins: %u plans, %u transactions pending\n",
                  (unsigned)(coordinator_plans_made(w.c) - before),
                  (unsigned)state_pending_count(&w.state));
    assert_in_range(coordinator_plans_made(w.c) - before, 1, 2);
    assert_int_equal(state_pending_count(&w.state), 0);
    for (unsigned i = 0; i <= 100; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "n%u", i + 1);
        assert_true(ring_owned_count(&w.state.view.ring, state_node_named(&w.state, name)->slot) >
                    0);
    }
    stop();
}

/* Transactions of moves so far. */
static size_t moves_committed(void)
{
    size_t count = 0;

    for (size_t i = 0; i < w.state.txn_count; i++) {
        count += w.state.txn[i].state == TXN_COMMITTED && w.state.txn[i].part_count > 0;
    }
    return count;
}

static void many_actors_go_part_by_part_and_their_vnodes_are_whole_again(void **state)
{
    (void)state;
    start(8, shipped());
    join(0);
    run(2000);
    w.actors[0] = 10000;
    run(1000);
    join(1);
    run(20000);
    assert_int_equal(state_pending_count(&w.state), 0);
    print_message("5000 actors in %zu transactions\n", moves_committed());
    assert_in_range(moves_committed(), 5000 / 112, 5000 / 112 * 5 / 4);
    assert_int_equal(w.state.view.ring.vnode_count, 16);
    assert_int_equal(ring_owned_count(&w.state.view.ring, 2), 8);
    stop();
}

/* How long the moves of a join take that don't touch n2, or n2 and the next ones, which answer
 * after `slow_us`. */
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): a test's shorthand
static uint64_t join_us(uint64_t slow_us, unsigned slow, uint32_t txns_per_node)
{
    const unsigned nodes = 3 + slow;
    const uint64_t share = 3 * 64 / (nodes + 1);

    start(64, txns_per_node);
    w.slow = slow;
    for (unsigned i = 0; i < nodes; i++) {
        join(i);
    }
    run(20000);
    assert_int_equal(state_pending_count(&w.state), 0);
    for (unsigned i = 1; i <= slow; i++) {
        w.answer_us[i] = slow_us;
    }
    w.moves = w.before_slow = w.slow_at_once = 0;
    w.begun_us = 0;
    w.slow_came = false;
    join(nodes);
    run(60000);
    assert_int_equal(state_pending_count(&w.state), 0);
    assert_in_range(w.moves, share - 10, share + 10); // of the three others
    assert_true(ring_owned_count(&w.state.view.ring, (uint16_t)(nodes + 1)) > w.moves); // all came
    return w.others_done_us - w.begun_us;
}

static void a_slow_node_delays_only_its_own_moves(void **state)
{
    uint64_t took_us[3];
    static const uint64_t slow_us[] = {5000, 250000, 4000000};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        took_us[i] = join_us(slow_us[i], 1, shipped());
        if (i > 0) {
            assert_int_equal(w.before_slow, w.moves); // all of them came before the first of n2's
            assert_int_equal(w.slow_at_once, 1);      // which had one place, and no more
        }
        stop();
        print_message("n2 answers in %u ms: moves of the others took %u ms\n",
                      (unsigned)(slow_us[i] / 1000),
                      (unsigned)(took_us[i] / 1000));
    }
    assert_true(took_us[1] <= 2 * took_us[0]);
    assert_true(took_us[2] <= 2 * took_us[0]);
}

static void what_waits_for_a_slow_node_makes_room(void **state)
{
    size_t yielded = 0;

    (void)state;
    // The joining node takes part in one thing at a time, and in two beside it that wait for slow
    // nodes: one more of these fills its only place.
    const uint64_t took_us = join_us(1000000, 4, 1);
    for (size_t i = 0; i < w.state.txn_count; i++) {
        yielded +=
            strstr(w.state.txn[i].outcome_why, " is slow, and others waited for its place") != NULL;
    }
    print_message("%u made room, moves of the others took %u ms\n",
                  (unsigned)yielded,
                  (unsigned)(took_us / 1000));
    assert_in_range(yielded, 1, 8);
    assert_true(took_us < 2000000);
    stop();
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_hundred_joins_in_a_second_are_planned_twice_at_most),
        cmocka_unit_test(many_actors_go_part_by_part_and_their_vnodes_are_whole_again),
        cmocka_unit_test(a_slow_node_delays_only_its_own_moves),
        cmocka_unit_test(what_waits_for_a_slow_node_makes_room),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
