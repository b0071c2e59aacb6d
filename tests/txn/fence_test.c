/* SPDX-License-Identifier: Apache-2.0
 *
 * How leases are set, and a storm of nodes that fall silent, return and die
 * under leaders that come and go: no vnode changes hands without drain before
 * every lease of its owner surely ended, by a judge that knows every grant.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "link/link.h"
#include "txn/leader/coordinator.h"
#include "txn/leader/inside.h"
#include "wire/control.h"

#include "tests/planted.h"
#include "tests/txn/proposed.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 6, LEADERS = 3, LEASES = 4096, LEASE_MS = 3000, OPERATOR = 99, FELLOW = 98 };

enum { LEASE_OWN_MAX_US = (LEASE_MS + 1000 * LEADERS) * 1000 }; /* no leader has longer ones */

/* ---- settings ---- */

static void settings_that_fit_are_taken(void **state)
{
    struct coordinator_config c = coordinator_config_default();

    (void)state;
    assert_null(coordinator_config_fault(&c, 500)); // not in force
    coordinator_config_lease(&c, 3000);
    assert_int_equal(c.lease_us, 3000000);
    assert_int_equal(c.lease_margin_us, 300000);
    assert_int_equal(c.suspect_ms, 1500);
    assert_null(coordinator_config_fault(&c, 500));
    coordinator_config_lease(&c, 300000);
    assert_null(coordinator_config_fault(&c, 500));
}

static void settings_that_break_a_promise_are_refused(void **state)
{
    struct coordinator_config c = coordinator_config_default();

    (void)state;
    coordinator_config_lease(&c, 1000);
    assert_non_null(strstr(coordinator_config_fault(&c, 500), "three election time-outs"));
    assert_null(coordinator_config_fault(&c, 300));
    coordinator_config_lease(&c, 3000);
    c.lease_margin_us = 60000; // (3 s - 81 ms) * 1.05 = 3.065 s
    assert_non_null(strstr(coordinator_config_fault(&c, 500), "margin is too small"));
    c.lease_margin_us = 70000;
    assert_null(coordinator_config_fault(&c, 500));
    c.suspect_ms = 3000;
    assert_non_null(strstr(coordinator_config_fault(&c, 500), "before its lease ends"));
    c.suspect_ms = 700;
    assert_non_null(strstr(coordinator_config_fault(&c, 500), "missed two renewals"));
}

/* A lease that was granted, as its holder counts it. */
struct held {
    uint64_t incarnation;
    uint64_t until_us;
};

/* ---- the storm: one log, coordinators that take turns at leading it ---- */

struct renewer {
    uint64_t nonce;
    uint64_t incarnation;
    uint64_t silent_until_us;
    uint64_t renewed_us;
    uint64_t sent_us; /* of the renewal under way */
    uint64_t boot;    /* changes when it starts on another machine */
    uint64_t seq;     /* of the last renewal */
    uint64_t lease_term;
    uint64_t lease_seq;
    uint64_t until_us;  /* its lease, by its clock … */
    uint64_t length_us; /* … and how long that is */
};

static struct {
    struct prng prng;
    struct state state; /* as applied by all: the log is one */
    struct coordinator *c[LEADERS];
    struct coordinator_effects effects;
    uint64_t now_us;
    int leading; /* -1 = nobody */
    bool calm;   /* no faults but those that the test makes */
    struct proposed_log log;
    struct renewer node[NODES];
    struct held held[LEASES]; /* of every incarnation ever */
    size_t held_count;
    unsigned reassigned;
    unsigned fenced;
    unsigned odd;   /* this node, counted from 1, has another ring at the same version … */
    bool odder;     /* … or at one that never was */
    unsigned older; /* this one, counted from 1, tells nothing of which lease it has */
    unsigned liar;  /* likewise: it says that it has the longest lease there is; 0 = nobody does */
    unsigned late;  /* to this one, counted from 1, an extended lease is on its way for ever … */
    uint64_t late_seq;       /* … of that renewal, the last */
    unsigned mended;         /* times it was told to fetch it */
    unsigned regained;       /* a name given to a new process by the wait alone */
    unsigned extended;       /* leases that were longer than any leader's own … */
    unsigned replaced;       /* … and those that took the place of one */
    uint32_t maintenance_ms; /* asked for now and then, up to that long; 0 = never */
} w;

/* The last instant at which a holder may run: it counts from its sending, by a clock that is as
 * slow as the margin allows. */
static uint64_t lease_end(uint64_t sent_us, uint64_t lease_us)
{
    return sent_us + lease_us + lease_us / 10 - 1;
}

static void hold(uint64_t incarnation, uint64_t until_us, bool instead)
{
    size_t at = 0;

    while (at < w.held_count && w.held[at].incarnation != incarnation) {
        at++;
    }
    assert_true(at < LEASES);
    w.held_count = at == w.held_count ? at + 1 : w.held_count;
    w.held[at].incarnation = incarnation;
    w.held[at].until_us =
        until_us > w.held[at].until_us || instead ? until_us : w.held[at].until_us;
}

static void expect_lease_over(uint64_t incarnation)
{
    for (size_t i = 0; i < w.held_count; i++) {
        assert_true(w.held[i].incarnation != incarnation || w.now_us > w.held[i].until_us);
    }
}

/* As node/books/lease.h has it; but for one, messages are never late here. */
static void on_grant(struct renewer *n, const Rh__Grant *grant)
{
    const uint64_t until_us = n->sent_us + grant->lease_us;

    if (w.late > 0 && n == &w.node[w.late - 1] && grant->lease_us > LEASE_OWN_MAX_US) {
        w.late_seq = grant->seq;
        return;
    }

    assert_true(grant->lease_us > 0 && grant->lease_us <= w.state.lease_us);
    hold(n->incarnation, lease_end(n->sent_us, grant->lease_us), grant->instead);
    w.extended += grant->lease_us > LEASE_OWN_MAX_US;
    w.replaced += grant->instead && until_us < n->until_us;
    if (until_us > n->until_us || grant->instead) {
        n->until_us = until_us;
        n->length_us = grant->lease_us;
        n->lease_term = grant->term;
        n->lease_seq = grant->seq;
    }
}

static void on_send(uint64_t link, const Rh__Control *m)
{
    struct renewer *n = link > NODES ? NULL : &w.node[link - 1];

    if (n == NULL) {
        return;
    }
    if (m->body_case == RH__CONTROL__BODY_REG_OK && m->reg_ok->nonce == n->nonce) {
        n->incarnation = m->reg_ok->incarnation;
        n->lease_term = n->lease_seq = n->until_us = 0;
    } else if (m->body_case == RH__CONTROL__BODY_GRANT && m->target_incarnation == n->incarnation) {
        on_grant(n, m->grant);
    } else if (m->body_case == RH__CONTROL__BODY_REPAIR) {
        w.mended++;
    } else if (m->body_case == RH__CONTROL__BODY_BARRED) {
        n->incarnation = 0;
        n->nonce = prng_u64(&w.prng);
    }
}

static void step(unsigned leader, struct coordinator_event event)
{
    event.now_us = w.now_us;
    event.wall_us = w.now_us;
    coordinator_effects_clear(&w.effects);
    coordinator_step(w.c[leader], &event, &w.effects);
    for (size_t i = 0; i < w.effects.count; i++) {
        const struct coordinator_effect *e = &w.effects.item[i];
        const struct bytes bytes = {w.effects.bytes.data + e->at, e->size};

        if (e->type == COORDINATOR_SEND) {
            Rh__Control *control = control_get(bytes);

            on_send(e->peer, control);
            control_free(control);
            continue;
        }
        proposed_add(&w.log, &w.effects, e)->leader = leader;
    }
}

/* May this be? What an incarnation owns changes hands without its doing only when it can't run. */
static void judge(const Rh__Command *command)
{
    if (command->body_case == RH__COMMAND__BODY_REASSIGN) {
        expect_lease_over(command->reassign->incarnation);
    } else if (command->body_case == RH__COMMAND__BODY_REGISTER_) {
        const struct state_node *row = state_node_named(&w.state, command->register_->name);

        if (row != NULL &&
            memcmp(row->boot_id, command->register_->boot_id.data, STATE_UUID_SIZE) != 0) {
            expect_lease_over(row->incarnation);
            w.regained++;
        }
    }
}

static void run_log(void)
{
    while (w.log.count > 0) {
        const struct proposed e = proposed_take(&w.log);

        if ((int)e.leader != w.leading) {
            command_free(e.command);
            continue;
        }
        if (e.command != NULL) {
            struct state_result result;

            judge(e.command);
            state_apply(&w.state, e.command, &result);
            state_check(&w.state);
            w.reassigned += result.accepted && e.command->body_case == RH__COMMAND__BODY_REASSIGN;
            w.fenced += result.accepted && e.command->body_case == RH__COMMAND__BODY_FENCE;
            for (unsigned i = 0; i < LEADERS; i++) {
                step(i,
                     (struct coordinator_event){.type = COORDINATOR_APPLIED,
                                                .tag = i == e.leader ? e.tag : 0,
                                                .command = e.command,
                                                .result = &result});
            }
            state_result_fini(&result);
            command_free(e.command);
        }
        step(e.leader, (struct coordinator_event){.type = COORDINATOR_DONE, .tag = e.tag});
    }
}

/* ---- the nodes ---- */

static void message(unsigned number, Rh__Control__BodyCase body, void *part)
{
    Rh__Control m = RH__CONTROL__INIT;

    if (w.leading < 0) {
        return;
    }
    m.body_case = body;
    m.register_ = part; // any member of the union
    m.source_incarnation = w.node[number].incarnation;
    step(
        (unsigned)w.leading,
        (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = number + 1, .message = &m});
    run_log();
}

static void node_register(unsigned number)
{
    const uint8_t uuid[STATE_UUID_SIZE] = {(uint8_t)number, (uint8_t)w.node[number].boot};
    Rh__Register in = RH__REGISTER__INIT;
    char name[8];

    (void)snprintf(name, sizeof name, "n%u", number);
    in.name = name;
    in.address = proto_text("h:1");
    in.boot_id = in.data_uuid = proto_bytes(bytes_of(uuid, sizeof uuid));
    in.lock_held = true;
    in.disk_floor = w.state.number; // the folder of before, not a copy
    in.nonce = w.node[number].nonce;
    in.weight = 1 + number % 3;
    message(number, RH__CONTROL__BODY_REGISTER_, &in);
}

/* The process is gone; the next is on another machine, where nothing proves that. */
static void node_moves_house(struct renewer *n)
{
    n->silent_until_us = w.now_us + prng_between(&w.prng, 100000, 6000000);
    n->incarnation = 0;
    n->nonce = prng_u64(&w.prng);
    n->boot++;
}

static void node_tick(unsigned number)
{
    struct renewer *n = &w.node[number];
    Rh__Renew renew = RH__RENEW__INIT;

    if (w.now_us < n->silent_until_us || w.now_us - n->renewed_us < 500000) {
        return;
    }
    n->renewed_us = w.now_us;
    if (n->incarnation == 0) {
        node_register(number);
        return;
    }
    n->sent_us = w.now_us;
    renew.seq = ++n->seq;
    if (number + 1 != w.older) {
        renew.lease_length_us = n->length_us == 0 ? 1 : n->length_us;
        renew.lease_term = n->lease_term;
        renew.lease_seq = n->lease_seq;
    }
    renew.lease_us = n->until_us > w.now_us ? n->until_us - w.now_us : 0;
    if (number + 1 == w.liar) {
        renew.lease_us = renew.lease_length_us = (uint64_t)LEASE_EXTENDED_MS_MAX * 1000;
    }
    renew.version = w.state.view.ring.version - (number + 1 == w.odd && w.odder);
    renew.digest0 = w.state.view.ring.digest[0] ^ (number + 1 == w.odd);
    renew.digest1 = w.state.view.ring.digest[1];
    message(number, RH__CONTROL__BODY_RENEW, &renew);
    if (w.calm) {
        return;
    }
    if (prng_chance(&w.prng, 1)) {
        n->silent_until_us = w.now_us + prng_between(&w.prng, 100000, 8000000);
    } else if (prng_chance(&w.prng, 1)) {
        node_moves_house(n);
    }
}

/* An operator wants a time without coordinators; 0: he is through. */
static void maintain(uint32_t for_ms)
{
    Rh__Control m = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminMaintenance body = RH__ADMIN_MAINTENANCE__INIT;

    body.for_ms = for_ms;
    admin.what_case = RH__ADMIN__WHAT_MAINTENANCE;
    admin.maintenance = &body;
    m.body_case = RH__CONTROL__BODY_ADMIN;
    m.admin = &admin;
    if (w.leading >= 0) {
        step((unsigned)w.leading,
             (struct coordinator_event){
                 .type = COORDINATOR_MESSAGE, .peer = OPERATOR, .message = &m});
        run_log();
    }
}

static void change_leader(void)
{
    if (w.leading >= 0) {
        const unsigned old = (unsigned)w.leading;

        w.leading = -1;
        step(old, (struct coordinator_event){.type = COORDINATOR_FOLLOW});
        run_log();
        return;
    }
    w.leading = (int)prng_between(&w.prng, 0, LEADERS - 1);
    step((unsigned)w.leading,
         (struct coordinator_event){.type = COORDINATOR_LEAD, .term = w.now_us});
    run_log();
}

static void run(uint64_t ms)
{
    const uint64_t end_us = w.now_us + ms * 1000;

    while (w.now_us < end_us) {
        w.now_us += 50000;
        if (!w.calm && prng_between(&w.prng, 1, w.leading < 0 ? 10 : 300) == 1) {
            change_leader();
        }
        if (w.maintenance_ms > 0 && prng_chance(&w.prng, 5)) {
            maintain((uint32_t)prng_between(&w.prng, 1, w.maintenance_ms));
        }
        if (w.maintenance_ms > 0 && prng_chance(&w.prng, 5)) {
            maintain(0);
        }
        for (unsigned i = 0; i < NODES; i++) {
            node_tick(i);
        }
        for (unsigned i = 0; i < LEADERS; i++) {
            step(i, (struct coordinator_event){.type = COORDINATOR_TICK});
        }
        run_log();
    }
}

struct ring_size {
    uint8_t grid;
    uint32_t vnodes;
    uint32_t apart_ms; /* the leases of two leaders; 0 = 1000 */
};

static void start(uint64_t seed, struct ring_size size)
{
    memset(&w, 0, sizeof w);
    w.prng.state = seed;
    w.now_us = 1000000;
    w.leading = -1;
    state_init(&w.state);
    for (unsigned i = 0; i < LEADERS; i++) {
        struct coordinator_config config = coordinator_config_default();

        config.id = i + 1;
        (void)snprintf(config.cluster, sizeof config.cluster, "test");
        config.fleet.low = 1;
        config.key = (struct ring_key){1, seed};
        config.grid = size.grid;
        config.vnodes_per_weight = size.vnodes;
        const uint32_t apart_ms = size.apart_ms == 0 ? 1000 : size.apart_ms;
        coordinator_config_lease(&config, LEASE_MS + apart_ms * i); // they needn't agree
        w.c[i] = coordinator_new(&config, &w.state);
    }
    for (unsigned k = 0; k < LEADERS; k++) {
        step(k,
             (struct coordinator_event){
                 .type = COORDINATOR_PEER_UP, .peer = OPERATOR, .role = ROLE_CLI, .name = "op"});
    }
    for (unsigned i = 0; i < NODES; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "n%u", i);
        w.node[i].nonce = prng_u64(&w.prng);
        for (unsigned k = 0; k < LEADERS; k++) {
            step(k,
                 (struct coordinator_event){
                     .type = COORDINATOR_PEER_UP, .peer = i + 1, .role = ROLE_NODE, .name = name});
        }
    }
}

static void stop(void)
{
    for (unsigned i = 0; i < LEADERS; i++) {
        coordinator_free(w.c[i]);
    }
    coordinator_effects_fini(&w.effects);
    state_fini(&w.state);
}

static uint64_t weight_of_others(const struct state_node *but)
{
    uint64_t weight = 0;

    for (size_t i = 0; i < w.state.node_count; i++) {
        weight += &w.state.node[i] == but ? 0 : w.state.node[i].weight;
    }
    return weight;
}

static void nothing_changes_hands_before_its_lease_is_over(void **state)
{
    unsigned reassigned = 0;
    unsigned regained = 0;
    unsigned fenced = 0;

    (void)state;
    log_set_level(LOG_ERROR);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        start(seed, (struct ring_size){.grid = 14, .vnodes = 4});
        run(300000);
        reassigned += w.reassigned;
        regained += w.regained;
        fenced += w.fenced;
        stop();
    }
    print_message("fenced %u, reassigned %u, regained %u\n", fenced, reassigned, regained);
    assert_true(fenced > 100 && reassigned > 50 && regained > 50); // it was a storm
}

/* Who has short leases, and a margin for those, waits for what others granted by the clocks of
 * that. */
static void a_short_lease_waits_with_the_margin_of_a_long_one(void **state)
{
    unsigned reassigned = 0;

    (void)state;
    log_set_level(LOG_ERROR);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        start(seed, (struct ring_size){.grid = 14, .vnodes = 4, .apart_ms = 30000});
        run(300000);
        reassigned += w.reassigned;
        stop();
    }
    assert_true(reassigned > 0);
}

/* By leaders that come and go in the midst of it, and nodes that die then. */
static void extended_leases_are_waited_for(void **state)
{
    unsigned reassigned = 0;
    unsigned extended = 0;
    unsigned replaced = 0;

    (void)state;
    log_set_level(LOG_ERROR);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        start(seed, (struct ring_size){.grid = 14, .vnodes = 4});
        w.maintenance_ms = 20000;
        run(300000);
        reassigned += w.reassigned;
        extended += w.extended;
        replaced += w.replaced;
        stop();
    }
    print_message("reassigned %u, extended %u, replaced %u\n", reassigned, extended, replaced);
    assert_true(reassigned > 20 && extended > 1000 && replaced > 100);
}

static uint64_t held_until(uint64_t incarnation)
{
    for (size_t i = 0; i < w.held_count; i++) {
        if (w.held[i].incarnation == incarnation) {
            return w.held[i].until_us;
        }
    }
    return 0;
}

static void expect_all_short(uint64_t lease_us)
{
    assert_int_equal(w.state.lease_us, lease_us);
    for (unsigned i = 0; i < NODES; i++) {
        assert_true(w.node[i].until_us <= w.now_us + lease_us);
    }
}

/* None would be SOFT for so long. */
static void expect_all_serve_for(uint64_t ms)
{
    for (unsigned i = 0; i < NODES; i++) {
        const struct renewer *n = &w.node[i];

        assert_true(n->until_us - n->length_us / 5 > w.now_us + ms * 1000);
    }
}

/* Until every lease that its leader extended is over. */
static void the_longest_lease_is_long_only_while_one_is(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    const uint64_t own_us = (uint64_t)(LEASE_MS + 1000 * w.leading) * 1000;
    run(5000);
    assert_int_equal(w.state.lease_us, own_us);
    maintain(30000);
    const uint64_t long_us = w.state.lease_us;
    assert_int_equal(long_us, 40000000 + own_us);
    run(1000);
    for (unsigned i = 0; i < NODES; i++) {
        assert_true(w.node[i].until_us > w.now_us + 30000000);
    }
    run(40000);
    assert_int_equal(w.state.lease_us, long_us);
    run(15000);
    assert_int_equal(w.state.lease_us, own_us);
    stop();
}

/* Nobody takes them back in silence: all coordinators may have been stopped one after the other,
 * and are about to be once more. */
static void a_new_leader_leaves_extended_leases_until_the_operator_is_through(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    run(5000);
    maintain(30000);
    const uint64_t long_us = w.state.lease_us;
    run(1000);
    for (unsigned i = 0; i < 3; i++) {
        change_leader();
        for (unsigned k = 0; k < LEADERS; k++) { // its process, too
            step(k, (struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = FELLOW});
            step(k,
                 (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                            .peer = FELLOW,
                                            .role = ROLE_COORDINATOR,
                                            .name = "1"});
        }
        change_leader();
        run(8000);
        assert_int_equal(w.state.lease_us, long_us);
        expect_all_serve_for(29000 - (i + 1) * 8000);
    }
    maintain(0);
    run(2000);
    expect_all_short((uint64_t)(LEASE_MS + 1000 * w.leading) * 1000);
    stop();
}

static void who_extended_leases_takes_them_back_likewise(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    run(5000);
    maintain(30000);
    run(1000);
    expect_all_serve_for(29000);
    maintain(0);
    run(2000);
    expect_all_short((uint64_t)(LEASE_MS + 1000 * w.leading) * 1000);
    maintain(30000); // it was not for ever
    run(1000);
    expect_all_serve_for(29000);
    stop();
}

/* It may come yet, and counts unless the node has one of a later renewal by then. */
static void a_late_extended_lease_is_waited_for_by_who_takes_it_back(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    run(5000);
    const uint64_t own_us = (uint64_t)(LEASE_MS + 1000 * w.leading) * 1000;
    w.late = 1;
    maintain(30000);
    while (w.late_seq == 0) {
        run(50);
    }
    maintain(0);
    const uint64_t end_us = w.now_us + 3000000;
    while (w.state.lease_us != own_us && w.now_us < end_us) {
        run(50);
    }
    expect_all_short(own_us);
    assert_true(w.node[0].lease_seq > w.late_seq);
    stop();
}

/* Its margins would go by the last grant, and it counts a lease's end otherwise. */
static void who_is_of_an_older_version_keeps_its_short_lease(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    w.older = 3;
    change_leader();
    run(5000);
    maintain(30000);
    run(1000);
    for (unsigned i = 0; i < NODES; i++) {
        assert_true((w.node[i].until_us > w.now_us + 30000000) == (i != 2));
    }
    // A new leader can't know that it has no longer one of an earlier leader: that is waited for.
    const uint64_t long_us = w.state.lease_us;
    change_leader();
    change_leader();
    maintain(0);
    run(30000);
    assert_int_equal(w.state.lease_us, long_us);
    run(30000);
    assert_true(w.state.lease_us < long_us);
    stop();
}

/* The log is an older copy: what it has forgotten nodes tell, and who is silent is waited for. */
static void a_lease_that_the_log_does_not_know_is_believed(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    const uint64_t own_us = (uint64_t)(LEASE_MS + 1000 * w.leading) * 1000;
    run(15000);
    maintain(30000);
    run(1000);
    const uint64_t owner = UINT64_C(1) << 40 | 1; // nobody votes: the first keeps the whole ring
    const uint64_t until_us = held_until(owner);
    for (unsigned i = 0; i < NODES; i++) {
        w.node[i].silent_until_us = w.node[i].incarnation == owner ? UINT64_MAX : 0;
    }
    change_leader();
    w.state.lease_us = own_us;
    change_leader();
    while (w.reassigned == 0 && w.now_us < until_us + 10000000) {
        run(100); // judge() says whether it is early
    }
    assert_int_equal(w.reassigned, 1);
    stop();
}

/* No leader of before can have granted what it tells again and again: take-overs go on. */
static void who_lies_of_its_lease_does_not_end_all_take_overs(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    run(15000);
    const uint64_t owner = UINT64_C(1) << 40 | 1; // nobody votes: the first keeps the whole ring
    for (unsigned i = 0; i < NODES; i++) {
        const bool is_owner = w.node[i].incarnation == owner;

        w.node[i].silent_until_us = is_owner ? UINT64_MAX : 0;
        w.liar = is_owner ? w.liar : i + 1;
    }
    const uint64_t last_us = w.now_us + (uint64_t)LEASE_EXTENDED_MS_MAX * 1000 * 5 / 4;
    while (w.reassigned == 0 && w.now_us < last_us) {
        run(1000);
    }
    assert_int_equal(w.reassigned, 1);
    stop();
}

/* Hole 58: it would serve what others own. It is told to fetch the map, and has leases then. */
static void who_has_another_map_gets_no_lease(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 14, .vnodes = 4});
    w.calm = true;
    change_leader();
    run(5000);
    const uint64_t incarnation = w.node[2].incarnation;
    assert_true(held_until(incarnation) > w.now_us);
    assert_int_equal(w.mended, 0);
    w.odd = 3;
    run(1000);
    const uint64_t until_us = held_until(incarnation);
    run(5000);
    assert_true(until_us == held_until(incarnation) && until_us < w.now_us);
    assert_true(w.mended > 5);
    for (unsigned i = 0; i < NODES; i++) {
        assert_true(i == 2 || held_until(w.node[i].incarnation) > w.now_us);
    }
    w.odd = 0;
    run(1000);
    assert_true(held_until(incarnation) > w.now_us);
    w.odd = 3;
    w.odder = true;
    run(1000);
    const uint64_t again_us = held_until(incarnation);
    run(5000);
    assert_true(again_us == held_until(incarnation) && again_us < w.now_us);
    w.odd = 0;
    run(1000);
    assert_int_equal(w.node[2].incarnation, incarnation); // it was heard of: nobody fenced it
    assert_true(held_until(incarnation) > w.now_us);
    stop();
}

/* More than one entry takes: it goes in several, and all of it. */
static void thousands_of_vnodes_are_reassigned(void **state)
{
    const struct state_node *first;

    (void)state;
    log_set_level(LOG_ERROR);
    start(1, (struct ring_size){.grid = 16, .vnodes = 2000});
    w.calm = true;
    change_leader();
    run(5000); // nobody votes: the first node keeps the whole ring
    for (unsigned i = 0; i < NODES; i++) {
        w.node[i].silent_until_us =
            w.node[i].incarnation == (UINT64_C(1) << 40 | 1) ? UINT64_MAX : 0;
    }
    first = &w.state.node[0];
    assert_true(ring_owned_count(&w.state.view.ring, first->slot) > (size_t)2 * STATE_TXN_OPS_MAX);
    run(5000);
    assert_int_equal(ring_owned_count(&w.state.view.ring, first->slot), 0);
    assert_true(w.reassigned >= 3);
    for (unsigned i = 1; i < NODES; i++) {
        const struct state_node *n = &w.state.node[i];
        const uint64_t fair = (n->weight << 16) / weight_of_others(first);
        const uint64_t own = ring_owned_cells(&w.state.view.ring, n->slot);

        assert_true(own + 8 >= fair && own <= fair + 8);
    }
    stop();
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(settings_that_fit_are_taken),
        cmocka_unit_test(settings_that_break_a_promise_are_refused),
        cmocka_unit_test(nothing_changes_hands_before_its_lease_is_over),
        cmocka_unit_test(a_short_lease_waits_with_the_margin_of_a_long_one),
        cmocka_unit_test(extended_leases_are_waited_for),
        cmocka_unit_test(the_longest_lease_is_long_only_while_one_is),
        cmocka_unit_test(a_new_leader_leaves_extended_leases_until_the_operator_is_through),
        cmocka_unit_test(who_extended_leases_takes_them_back_likewise),
        cmocka_unit_test(a_late_extended_lease_is_waited_for_by_who_takes_it_back),
        cmocka_unit_test(who_is_of_an_older_version_keeps_its_short_lease),
        cmocka_unit_test(a_lease_that_the_log_does_not_know_is_believed),
        cmocka_unit_test(who_lies_of_its_lease_does_not_end_all_take_overs),
        cmocka_unit_test(who_has_another_map_gets_no_lease),
        cmocka_unit_test(thousands_of_vnodes_are_reassigned),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_OTHERMAP};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
