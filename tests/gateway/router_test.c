/* SPDX-License-Identifier: Apache-2.0
 *
 * The router's limits, and a fleet of three nodes that run requests as nodes
 * do: by prev and base, refusing and passing on at random. The protocol's rows
 * are told one by one in tests/story/router-*.txt.
 */
#include "tests/gateway/router_rig.h"

#include "base/prng.h"
#include "tests/planted.h"
#include "tests/test.h"

enum {
    NODES = 3,
    IDS = 6,
    SESSIONS = 3,
    TICKETS_MAX = 4000,
    MAIL_MAX = 20000,
    KEYS = IDS * SESSIONS
};

struct mail {
    uint16_t from; /* 0 = the router */
    uint16_t to;
    struct buffer record; /* owned: a request, or an answer when `to` is 0 */
};

/* What the owner of an entity knows of one session. */
struct order {
    uint64_t last;
    struct buffer waiting[64]; /* request records that came too early */
    size_t waiting_count;
};

struct world {
    struct rig rig;
    struct prng prng;
    struct mail mail[MAIL_MAX]; /* in order per (from, to) */
    size_t mail_count;
    bool up[NODES + 1];
    struct order order[KEYS]; /* moves with its entity */
    int runs[TICKETS_MAX];
    int reply[TICKETS_MAX]; /* enum reply_code + 1; 0 = none yet */
    size_t tickets;
    bool refuse; /* nodes refuse, pass on and answer twice at random */
};

static const char *const ids[IDS] = {"a", "bb", "ccc", "d", "ee", "f"};

static void post(struct world *w, struct mail mail)
{
    assert_true(w->mail_count < MAIL_MAX);
    w->mail[w->mail_count++] = mail;
}

static size_t key_of(uint64_t session, struct bytes id)
{
    size_t i = 0;

    while (!bytes_equal(id, bytes_of(ids[i], strlen(ids[i])))) {
        i++;
    }
    return (size_t)(session - 1) * IDS + i;
}

static void do_effects(struct world *w)
{
    for (size_t i = 0; i < w->rig.effects.count; i++) {
        const struct router_effect *e = &w->rig.effects.item[i];

        if (e->type == ROUTER_SEND_NODE) {
            struct mail mail = {.to = e->slot};

            assert_true(w->up[e->slot]);
            buffer_put(&mail.record, w->rig.effects.bytes.data + e->at, e->size);
            post(w, mail);
        } else if (e->type == ROUTER_REPLY) {
            assert_true(e->ticket < w->tickets);
            assert_int_equal(w->reply[e->ticket], 0);
            w->reply[e->ticket] = (int)e->code + 1;
        }
    }
}

static void step(struct world *w, struct router_event event)
{
    rig_step(&w->rig, event);
    do_effects(w);
}

static void answer(struct world *w, uint16_t from, const struct request_record *q,
                   enum answer_code code, uint64_t aux)
{
    const struct answer_record a = {.gateway = q->gateway,
                                    .session = q->session,
                                    .seq = q->seq,
                                    .fence = w->rig.leader.ring.version,
                                    .version = w->rig.leader.ring.version,
                                    .aux = aux,
                                    .code = (uint8_t)code,
                                    .copy = q->copy};
    const size_t copies = w->refuse && prng_chance(&w->prng, 5) ? 2 : 1;

    for (size_t i = 0; i < copies; i++) {
        struct mail mail = {.from = from};

        answer_put(&mail.record, &a);
        post(w, mail);
    }
}

static void run(struct world *w, uint16_t node, const struct request_record *q)
{
    uint64_t ticket = 0;

    assert_int_equal(q->body.size, sizeof ticket);
    memcpy(&ticket, q->body.data, sizeof ticket);
    w->runs[ticket]++;
    answer(w, node, q, ANSWER_OK, 0);
}

/* Run `q` if its turn has come; true: it is dealt with. */
static bool try_run(struct world *w, uint16_t node, const struct request_record *q)
{
    struct order *o = &w->order[key_of(q->session, q->id)];

    if (q->seq <= o->last) {
        answer(w, node, q, ANSWER_OK, 0); // a second copy
        return true;
    }
    if (o->last < q->prev && q->prev >= q->base) {
        return false;
    }
    o->last = q->seq;
    run(w, node, q);
    return true;
}

static struct request_record request_of(const struct buffer *record)
{
    struct reader in = {.at = record->data, .left = record->size};
    struct request_record q;

    assert_int_equal(request_get(&in, &q), ERR_OK);
    return q;
}

static void run_waiting(struct world *w, uint16_t node, struct order *o)
{
    for (size_t i = 0; i < o->waiting_count;) {
        const struct request_record q = request_of(&o->waiting[i]);

        if (!try_run(w, node, &q)) {
            i++;
            continue;
        }
        buffer_fini(&o->waiting[i]);
        o->waiting[i] = o->waiting[--o->waiting_count];
        i = 0;
    }
}

static void on_request(struct world *w, struct mail *mail)
{
    const struct request_record q = request_of(&mail->record);
    const uint16_t owner = ring_hit_node(view_lookup(&w->rig.leader, 0, q.id));
    struct order *o = &w->order[key_of(q.session, q.id)];

    if (owner != mail->to && (mail->from != 0 || prng_chance(&w->prng, 50))) {
        post(w, (struct mail){.from = mail->to, .to = owner, .record = mail->record});
        return;
    }
    if (owner != mail->to) {
        answer(w, mail->to, &q, ANSWER_MOVED, w->rig.leader.ring.version);
    } else if (w->refuse && prng_chance(&w->prng, 10)) {
        answer(w, mail->to, &q, ANSWER_BUSY, prng_between(&w->prng, 0, 40));
    } else if (!try_run(w, mail->to, &q)) {
        if (o->waiting_count < 64) {
            o->waiting[o->waiting_count++] = mail->record;
            return;
        }
        answer(w, mail->to, &q, ANSWER_BUSY, 5);
    }
    run_waiting(w, mail->to, o);
    buffer_fini(&mail->record);
}

/* Deliver the oldest of a random pair of ends: links keep order, the fleet does not. */
static void deliver(struct world *w)
{
    const size_t pick = (size_t)prng_between(&w->prng, 0, w->mail_count - 1);
    size_t at = 0;

    while (w->mail[at].from != w->mail[pick].from || w->mail[at].to != w->mail[pick].to) {
        at++;
    }
    struct mail mail = w->mail[at];
    w->mail_count--;
    memmove(&w->mail[at], &w->mail[at + 1], (w->mail_count - at) * sizeof w->mail[0]);
    if (mail.to != 0) {
        on_request(w, &mail);
        return;
    }
    struct reader in = {.at = mail.record.data, .left = mail.record.size};
    struct answer_record a;
    assert_int_equal(answer_get(&in, &a), ERR_OK);
    step(w, (struct router_event){.type = ROUTER_ANSWER, .slot = mail.from, .answer = &a});
    buffer_fini(&mail.record);
}

/* Cut the link to a node: what is on it, in both directions, is gone. The node lives on. */
static void cut(struct world *w, uint16_t node)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->mail_count; i++) {
        struct mail *m = &w->mail[i];

        if ((m->from == 0 && m->to == node) || (m->to == 0 && m->from == node)) {
            buffer_fini(&m->record);
        } else {
            w->mail[kept++] = *m;
        }
    }
    w->mail_count = kept;
    w->up[node] = false;
    step(w, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = node});
}

static void join(struct world *w, uint16_t node)
{
    w->up[node] = true;
    step(w, (struct router_event){.type = ROUTER_NODE_UP, .slot = node, .incarnation = node});
}

static void request(struct world *w)
{
    const char *id = ids[prng_between(&w->prng, 0, IDS - 1)];
    const uint64_t ticket = w->tickets++;

    step(w,
         (struct router_event){.type = ROUTER_REQUEST,
                               .session = prng_between(&w->prng, 1, SESSIONS),
                               .ticket = ticket,
                               .origin = ticket % 3, // some are no client's
                               .id = bytes_of(id, strlen(id)),
                               .body = bytes_of(&ticket, sizeof ticket)});
}

static void move(struct world *w)
{
    const char *id = ids[prng_between(&w->prng, 0, IDS - 1)];
    const struct bytes bytes = bytes_of(id, strlen(id));
    const uint16_t owner = ring_hit_node(view_lookup(&w->rig.leader, 0, bytes));
    const uint16_t to = (uint16_t)(owner % NODES + 1);

    rig_move(&w->rig, bytes, to, w->rig.leader.ring.version + 1, prng_chance(&w->prng, 60));
    do_effects(w);
}

static void tick(struct world *w, uint64_t ms)
{
    w->rig.now_us += ms * 1000;
    step(w, (struct router_event){.type = ROUTER_TICK});
}

static void world_init(struct world *w, uint64_t seed)
{
    struct router_config config = router_config_default();

    memset(w, 0, sizeof *w);
    config.gateway = seed + 1;
    config.window = 4;
    config.peer_size_max = seed % 3 == 0 ? 3000 : 100000; // some have to wait for room
    rig_init(&w->rig, &config);
    w->prng.state = seed;
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        rig_add_member(&w->rig, node, node);
    }
    ring_create(&w->rig.leader.ring, RIG_VNODES, 1, 10);
    rig_config(&w->rig);
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        join(w, node);
    }
}

static void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->mail_count; i++) {
        buffer_fini(&w->mail[i].record);
    }
    for (size_t k = 0; k < KEYS; k++) {
        for (size_t i = 0; i < w->order[k].waiting_count; i++) {
            buffer_fini(&w->order[k].waiting[i]);
        }
    }
    rig_fini(&w->rig);
}

/* Let the fleet come to rest: the ring is known, the links are up. */
static void settle(struct world *w)
{
    w->refuse = false;
    rig_config(&w->rig);
    do_effects(w);
    for (uint16_t node = 1; node <= (uint16_t)NODES; node++) {
        if (!w->up[node]) {
            join(w, node);
        }
    }
    for (int i = 0; i < 1000; i++) {
        while (w->mail_count > 0) {
            deliver(w);
        }
        tick(w, 20);
    }
}

static void check_replies(const struct world *w, bool links_were_cut)
{
    size_t ok = 0;

    for (size_t t = 0; t < w->tickets; t++) {
        assert_int_not_equal(w->reply[t], 0);
        assert_true(w->runs[t] <= 1);
        if (w->reply[t] - 1 == REPLY_OK) {
            assert_int_equal(w->runs[t], 1);
            ok++;
        } else if (w->reply[t] - 1 == REPLY_REJECTED) {
            assert_int_equal(w->runs[t], 0);
        } else {
            assert_true(links_were_cut);
            assert_int_equal(w->reply[t] - 1, REPLY_TIMEOUT);
        }
    }
    assert_true(links_were_cut || ok == w->tickets);
    assert_true(ok > w->tickets / 2);
}

static void play(struct world *w, uint64_t seed, bool cuts)
{
    world_init(w, seed);
    w->refuse = true;
    for (int i = 0; i < 4000; i++) {
        const uint64_t dice = prng_between(&w->prng, 1, 1000);
        const uint16_t node = (uint16_t)prng_between(&w->prng, 1, NODES);

        if (dice <= 250) {
            request(w);
        } else if (dice <= 260) {
            move(w);
        } else if (dice <= 263) {
            rig_config(&w->rig);
            do_effects(w);
        } else if (dice <= 300) {
            tick(w, 3);
        } else if (dice <= 302 && cuts && w->up[node]) {
            cut(w, node);
        } else if (dice <= 310 && !w->up[node]) {
            join(w, node);
        } else if (w->mail_count > 0) {
            deliver(w);
        }
    }
    settle(w);
    check_replies(w, cuts);
    world_fini(w);
}

static void moves_lose_nothing_and_run_nothing_twice(void **state)
{
    struct world *w = mem_new(1, sizeof *w);

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        play(w, seed, false);
    }
    mem_free(w);
}

static void with_lost_links_every_request_still_has_an_honest_answer(void **state)
{
    struct world *w = mem_new(1, sizeof *w);

    (void)state;
    for (uint64_t seed = 1000; seed <= 1060; seed++) {
        play(w, seed, true);
    }
    mem_free(w);
}

static struct router_event request_event(uint64_t session, const uint64_t *id)
{
    return (struct router_event){
        .type = ROUTER_REQUEST, .session = session, .id = bytes_of(id, sizeof *id)};
}

static void a_full_router_says_so_and_refuses_what_comes_anyway(void **state)
{
    struct router_config config = router_config_default();
    struct rig rig;
    const uint64_t id = 5;

    (void)state;
    config.in_flight_max = 2;
    rig_init(&rig, &config);
    rig_step(&rig, request_event(1, &id));
    assert_false(router_full(rig.router));
    rig_step(&rig, request_event(1, &id));
    assert_true(router_full(rig.router));
    assert_int_equal(rig.effects.count, 0);
    rig_step(&rig, request_event(1, &id));
    assert_int_equal(rig.effects.count, 1);
    assert_int_equal(rig.effects.item[0].code, REPLY_OVERLOADED);
    rig.now_us += 10001000;
    rig_step(&rig, (struct router_event){.type = ROUTER_TICK});
    assert_int_equal(rig.effects.count, 2);
    assert_false(router_full(rig.router));
    rig_fini(&rig);
}

/* Halfway through a deploy: node 2 has the kind already, node 1 owns the id and lacks it. */
static void set_up_half_a_deploy(struct rig *rig, const struct router_config *config)
{
    rig_init(rig, config);
    rig_add_member(rig, 1, 1);
    rig_add_member(rig, 2, 2);
    (void)ring_kinds_add(&rig->leader.member[0].kinds, 0);
    (void)ring_kinds_add(&rig->leader.member[1].kinds, 0);
    (void)ring_kinds_add(&rig->leader.member[1].kinds, 5);
    ring_create(&rig->leader.ring, RIG_VNODES, 1, 10);
    rig_config(rig);
    rig_step(rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 1});
    rig_step(rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 2, .incarnation = 2});
}

static size_t sends(const struct rig *rig)
{
    size_t count = 0;

    for (size_t i = 0; i < rig->effects.count; i++) {
        count += rig->effects.item[i].type == ROUTER_SEND_NODE ? 1 : 0;
    }
    return count;
}

/* Specification §10.2: it goes as soon as the directory says that its owner has the kind, too. */
static void what_its_owner_lacks_waits_for_the_next_build_of_it(void **state)
{
    const struct router_config config = router_config_default();
    struct rig rig;
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);

    (void)state;
    set_up_half_a_deploy(&rig, &config);
    event.kind = 5;
    rig_step(&rig, event);
    assert_int_equal(sends(&rig), 0);
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = 1});
    rig_add_member(&rig, 1, 12);
    (void)ring_kinds_add(&rig.leader.member[0].kinds, 0);
    (void)ring_kinds_add(&rig.leader.member[0].kinds, 5);
    ring_set_version(&rig.leader.ring, 12);
    rig_config(&rig);
    size_t sent = sends(&rig);
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 12});
    sent += sends(&rig);
    assert_int_equal(sent, 1);
    rig_fini(&rig);
}

/* A stranger may name any kind: that takes no row. */
static void kinds_that_nodes_host_have_rows_and_no_others(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);
    struct answer_record a = {.session = 1, .seq = 1, .version = 10, .fence = 10, .copy = 1};
    struct rig rig;

    (void)state;
    set_up_half_a_deploy(&rig, &config);
    const struct latencies *l = router_latencies(rig.router);
    assert_int_equal(l->count, 2); // 0 and 5
    rig_step(&rig, event);
    rig.now_us += 300;
    const uint16_t slot = rig.effects.item[0].slot;
    rig_step(&rig, (struct router_event){.type = ROUTER_ANSWER, .slot = slot, .answer = &a});
    const struct latency *ok = &l->row[latencies_find(l, 0)].of[REPLY_OK];
    assert_int_equal(latency_read(&ok->bucket[3]), 1); // below 512 us
    assert_int_equal(latency_read(&ok->sum_us), 300);
    for (uint16_t kind = 100; kind < 200; kind++) {
        event.session = kind;
        event.kind = kind;
        rig_step(&rig, event);
    }
    rig.now_us += 10001000;
    rig_step(&rig, (struct router_event){.type = ROUTER_TICK});
    assert_int_equal(l->count, 2);
    uint64_t others = 0;
    for (unsigned code = 0; code < REPLY_CODES; code++) {
        others += latency_count(&l->row[0].of[code]);
    }
    assert_int_equal(others, 100);
    rig_fini(&rig);
}

static void what_its_owner_lacks_for_good_is_no_kind(void **state)
{
    const struct router_config config = router_config_default();
    struct rig rig;
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);

    (void)state;
    set_up_half_a_deploy(&rig, &config);
    event.kind = 5;
    rig_step(&rig, event);
    rig.now_us += 10001000;
    rig_step(&rig, (struct router_event){.type = ROUTER_TICK});
    assert_int_equal(rig.effects.count, 1);
    assert_int_equal(rig.effects.item[0].code, REPLY_NO_KIND);
    rig_fini(&rig);
}

/* The fleet has had its time to start. */
static void pass_start(struct rig *rig)
{
    rig->now_us += (uint64_t)ROUTER_BARE_MS * 1000;
    rig_step(rig, (struct router_event){.type = ROUTER_TICK});
}

/* Node 1 has the default role. Role "match" has kind 5, and a node of it if `matched`. */
static void set_up_a_role(struct rig *rig, const struct router_config *config, bool matched)
{
    const struct ring_segment match = {
        .policy = RING_HASH, .bits = 4, .role = "match", .kind = {5}, .kind_count = 1};

    rig_init(rig, config);
    rig_add_member(rig, 1, 1);
    if (matched) {
        rig_add_member(rig, 2, 2);
        (void)snprintf(rig->leader.member[1].role, RING_ROLE_MAX + 1, "match");
    }
    ring_create(&rig->leader.ring, RIG_VNODES, 1, 10);
    ring_put_segment(&rig->leader.ring, 0, &match, 4, 11);
    rig_config(rig);
    pass_start(rig);
}

/* Returns the code of the only reply, -1 if there is none. */
static int code_of(const struct rig *rig)
{
    int code = -1;

    for (size_t i = 0; i < rig->effects.count; i++) {
        if (rig->effects.item[i].type == ROUTER_REPLY) {
            assert_int_equal(code, -1);
            code = (int)rig->effects.item[i].code;
        }
    }
    return code;
}

static void assert_bare(const struct rig *rig, const char *role)
{
    char text[64];

    assert_int_equal(code_of(rig), REPLY_NO_KIND);
    (void)snprintf(text, sizeof text, "no node of the role '%s' is in the fleet", role);
    for (size_t i = 0; i < rig->effects.count; i++) {
        const struct router_effect *e = &rig->effects.item[i];

        if (e->type == ROUTER_REPLY) {
            const struct bytes body = router_effect_bytes(&rig->effects, e);

            assert_true(body.size > strlen(text));
            assert_memory_equal(body.data, text, strlen(text));
        }
    }
}

static void a_role_without_nodes_is_told_at_once(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);
    struct router_stats stats;
    struct rig rig;

    (void)state;
    set_up_a_role(&rig, &config, false);
    event.kind = 5;
    rig_step(&rig, event);
    assert_bare(&rig, "match");
    rig_step(&rig, event); // nothing is left of the first
    assert_bare(&rig, "match");
    router_stats(rig.router, &stats);
    assert_int_equal(stats.in_flight, 0);
    rig_fini(&rig);
}

/* Its first cells are given away soon, or when there are as many nodes as it is to have. */
static void a_role_whose_first_node_is_there_is_waited_for(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);
    struct rig rig;

    (void)state;
    set_up_a_role(&rig, &config, true);
    event.kind = 5;
    rig_step(&rig, event);
    assert_int_equal(code_of(&rig), -1);
    rig.now_us += 10001000;
    rig_step(&rig, (struct router_event){.type = ROUTER_TICK});
    assert_int_equal(code_of(&rig), REPLY_REJECTED);
    rig_fini(&rig);
}

/* A fleet of one node, of role "match": its gateway knows of it since just now. */
static void found_by_another_role(struct rig *rig)
{
    rig_add_member(rig, 1, 1);
    (void)snprintf(rig->leader.member[0].role, RING_ROLE_MAX + 1, "match");
    ring_create(&rig->leader.ring, RIG_VNODES, RING_NODE_NONE, 10);
    rig_config(rig);
}

/* Clients may come before the first node, and the first nodes of several roles all at once. */
static void while_a_fleet_starts_its_clients_wait(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);
    struct rig rig;

    (void)state;
    rig_init(&rig, &config);
    rig_step(&rig, event);
    assert_int_equal(code_of(&rig), -1);
    rig.now_us += 5000000; // without any ring, for as long as it takes
    found_by_another_role(&rig);
    assert_int_equal(code_of(&rig), -1);
    event.session = 2;
    rig_step(&rig, event);
    assert_int_equal(code_of(&rig), -1);
    rig_add_member(&rig, 2, 2);
    ring_create(&rig.leader.ring, RIG_VNODES, 2, 12);
    rig_config(&rig);
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 2, .incarnation = 2});
    assert_int_equal(sends(&rig), 2);
    rig_fini(&rig);
}

static void when_a_fleet_has_started_who_waits_is_told(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);
    struct router_event again = event;
    struct rig rig;

    (void)state;
    rig_init(&rig, &config);
    found_by_another_role(&rig);
    rig_step(&rig, event);
    again.session = 2;
    again.again = true;
    rig_step(&rig, again);
    assert_int_equal(code_of(&rig), -1);
    pass_start(&rig);
    assert_bare(&rig, "default"); // the first, and not the other
    rig_fini(&rig);
}

/* Another gateway was asked the same, before a restore; who is told "it did not run" believes it.
 */
static void what_may_have_run_waits_for_a_node_of_its_role(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);
    struct rig rig;

    (void)state;
    set_up_a_role(&rig, &config, false);
    event.kind = 5;
    event.again = true;
    rig_step(&rig, event);
    assert_int_equal(code_of(&rig), -1);
    rig_fini(&rig);
}

/* They have nobody behind them who tries again. */
static void calls_and_sessions_wait_for_a_node_of_their_role(void **state)
{
    const struct router_config config = router_config_default();
    const uint64_t id = 5;
    struct router_event must = request_event(1, &id);
    struct router_event awake = request_event(2, &id);
    struct router_event kept = request_event(3, &id);
    struct rig rig;

    (void)state;
    set_up_a_role(&rig, &config, false);
    must.kind = awake.kind = kept.kind = 5;
    must.must = true;
    awake.flags = REQUEST_SESSION | REQUEST_AWAKE;
    kept.seq = kept.base = kept.epoch = 1;
    rig_step(&rig, must);
    assert_int_equal(code_of(&rig), -1);
    rig_step(&rig, awake);
    assert_int_equal(code_of(&rig), -1);
    rig_step(&rig, kept);
    assert_int_equal(code_of(&rig), -1);
    rig_fini(&rig);
}

static void bytes_of_unfinished_requests_are_bounded_too(void **state)
{
    static uint8_t body[RECORD_BODY_MAX];
    struct router_config config = router_config_default();
    struct rig rig;
    const uint64_t id = 5;
    struct router_event event = request_event(1, &id);

    (void)state;
    config.waiting_size_max = 2 * (size_t)RECORD_BODY_MAX;
    event.body = bytes_of(body, sizeof body);
    rig_init(&rig, &config);
    rig_step(&rig, event);
    assert_false(router_full(rig.router));
    rig_step(&rig, event);
    assert_true(router_full(rig.router));
    rig_fini(&rig);
}

static void one_node_is_sent_no_more_than_its_link_holds(void **state)
{
    static uint8_t body[1000];
    struct router_config config = router_config_default();
    struct rig rig;
    uint64_t sent = 0;

    (void)state;
    config.peer_size_max = 100000;
    rig_init(&rig, &config);
    rig_add_member(&rig, 1, 1);
    ring_create(&rig.leader.ring, RIG_VNODES, 1, 10);
    rig_config(&rig);
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 1});
    for (uint64_t id = 0; id < 1000; id++) {
        struct router_event event = request_event(1, &id);

        event.body = bytes_of(body, sizeof body);
        rig_step(&rig, event);
        sent += rig.effects.count;
    }
    assert_true(sent > 70 && sent < 100);
    // Each answer, as large as the request, makes room; all are sent in the end, none twice. The
    // replies count before they come, so fewer are under way from then on.
    for (uint64_t seq = 1; seq <= 1000; seq++) {
        const struct answer_record answer = {.gateway = config.gateway,
                                             .session = 1,
                                             .seq = seq,
                                             .version = UINT64_MAX,
                                             .copy = 1,
                                             .body = bytes_of(body, sizeof body)};

        rig_step(&rig, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &answer});
        assert_int_equal(rig.effects.item[0].type, ROUTER_REPLY);
        sent += rig.effects.count - 1;
        assert_true(sent - seq < 100);
        assert_true(seq < 100 || sent == 1000 || sent - seq < 60);
    }
    assert_int_equal(sent, 1000);
    rig_fini(&rig);
}

static void a_hundred_thousand_requests_in_flight_are_fine(void **state)
{
    struct router_config config = router_config_default();
    struct rig rig;
    struct router_event event;

    (void)state;
    config.peer_size_max = SIZE_MAX;
    rig_init(&rig, &config);
    rig_add_member(&rig, 1, 1);
    ring_create(&rig.leader.ring, RIG_VNODES, 1, 10);
    rig_config(&rig);
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 1});
    router_effects_clear(&rig.effects);
    for (uint64_t id = 0; id < 100000; id++) {
        event = request_event(id % 1000, &id);
        event.now_us = rig.now_us;
        router_step(rig.router, &event, &rig.effects);
    }
    assert_int_equal(rig.effects.count, 100000);
    assert_true(router_full(rig.router));
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = 1});
    assert_int_equal(rig.effects.count, 0);
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 1});
    assert_int_equal(rig.effects.count, 100001); // Adopted, and all of them again
    rig_fini(&rig);
}

static void sessions_of_two_gateways_and_of_one_differ(void **state)
{
    struct router_config config = router_config_default();

    (void)state;
    config.gateway = 1;
    struct router *a = router_new(&config);
    config.gateway = 2;
    struct router *b = router_new(&config);
    const uint64_t first = router_session(a);

    assert_true(first != router_session(a));
    assert_true(first >> 24 != router_session(b) >> 24);
    assert_true(first >> 24 == router_session(a) >> 24);
    router_free(a);
    router_free(b);
    router_free(NULL);
}

/* Ticks as a gateway's thread does that nobody asks anything, for that long; counts questions. */
static size_t rest(struct rig *rig, uint64_t ms, size_t *ticks)
{
    const uint64_t end_us = rig->now_us + ms * 1000;
    size_t asked = 0;

    while (rig->now_us < end_us) {
        const uint64_t until_us = router_rests_until_us(rig->router);
        bool asks = false;

        assert_true(until_us > rig->now_us);
        rig->now_us = until_us < rig->now_us + 250000 ? until_us : rig->now_us + 250000;
        rig_step(rig, (struct router_event){.type = ROUTER_TICK});
        for (size_t i = 0; i < rig->effects.count; i++) {
            asks = asks || rig->effects.item[i].type == ROUTER_SEND_COORDINATOR;
        }
        if (asks) {
            asked++;
            rig_config(rig);
        }
        (*ticks)++;
    }
    return asked;
}

static void a_router_that_nobody_asks_ticks_when_the_configuration_is_due(void **state)
{
    struct router_config config = router_config_default();
    size_t ticks = 0;
    struct rig rig;

    (void)state;
    rig_init(&rig, &config);
    assert_int_equal(router_rests_until_us(rig.router), UINT64_MAX); // there is nobody to ask
    rig_step(&rig, (struct router_event){.type = ROUTER_COORDINATOR_UP, .coordinator = 0});
    ring_create(&rig.leader.ring, RIG_VNODES, 1, 10);
    rig_add_member(&rig, 1, 7);
    rig_config(&rig);
    assert_in_range(rest(&rig, 10000, &ticks), 20, 21);
    assert_in_range(ticks, 40, 42);
    rig_fini(&rig);
}

/* When the next question is due, after the one that is answered now with that wish. */
static uint64_t next_question_us(struct rig *rig, uint32_t again_us)
{
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    answer.version = rig->leader.ring.version;
    answer.again_us = again_us;
    control.body_case = RH__CONTROL__BODY_CONFIG;
    control.config = &answer;
    rig_step(rig, (struct router_event){.type = ROUTER_CONTROL, .message = &control});
    return router_rests_until_us(rig->router);
}

static void a_leader_may_wish_when_it_is_asked_again(void **state)
{
    struct router_config config = router_config_default();
    struct rig rig;

    (void)state;
    rig_init(&rig, &config);
    rig_step(&rig, (struct router_event){.type = ROUTER_COORDINATOR_UP, .coordinator = 0});
    ring_create(&rig.leader.ring, RIG_VNODES, 1, 10);
    rig_add_member(&rig, 1, 7);
    rig_config(&rig);
    const uint64_t asked_us = rig.now_us;
    rig.now_us += 10000;
    assert_int_equal(next_question_us(&rig, 0), asked_us + 500000);
    assert_int_equal(next_question_us(&rig, 400000), asked_us + 410000);
    assert_int_equal(next_question_us(&rig, 1), asked_us + 250000); // not much more often
    assert_int_equal(next_question_us(&rig, UINT32_MAX), asked_us + 562500);
    rig_fini(&rig);
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_router_that_nobody_asks_ticks_when_the_configuration_is_due),
        cmocka_unit_test(a_leader_may_wish_when_it_is_asked_again),
        cmocka_unit_test(moves_lose_nothing_and_run_nothing_twice),
        cmocka_unit_test(with_lost_links_every_request_still_has_an_honest_answer),
        cmocka_unit_test(a_full_router_says_so_and_refuses_what_comes_anyway),
        cmocka_unit_test(bytes_of_unfinished_requests_are_bounded_too),
        cmocka_unit_test(what_its_owner_lacks_waits_for_the_next_build_of_it),
        cmocka_unit_test(what_its_owner_lacks_for_good_is_no_kind),
        cmocka_unit_test(a_role_without_nodes_is_told_at_once),
        cmocka_unit_test(a_role_whose_first_node_is_there_is_waited_for),
        cmocka_unit_test(while_a_fleet_starts_its_clients_wait),
        cmocka_unit_test(when_a_fleet_has_started_who_waits_is_told),
        cmocka_unit_test(what_may_have_run_waits_for_a_node_of_its_role),
        cmocka_unit_test(calls_and_sessions_wait_for_a_node_of_their_role),
        cmocka_unit_test(kinds_that_nodes_host_have_rows_and_no_others),
        cmocka_unit_test(one_node_is_sent_no_more_than_its_link_holds),
        cmocka_unit_test(a_hundred_thousand_requests_in_flight_are_fine),
        cmocka_unit_test(sessions_of_two_gateways_and_of_one_differ),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_ROUTE_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
