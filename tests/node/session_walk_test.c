/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions at random: two gateways, an actor that pushes, moves and breaks, and players that lose
 * their lines, come back by either gateway, send again what has no answer, and log in over one
 * another, or beside. A room on another node broadcasts to many, the actor among them, and sends to
 * it too. The cores are the real ones, of gateways (clients, router) and of the actor's runtime;
 * links, and the node's order of requests, are played here.
 *
 *     session_walk_test               so many seeds
 *     SEED=n session_walk_test        one
 *     session_walk_test --mutants     each bug planted in the rules must be found
 */
#include "tests/node/session_walk_players.h"
#include "tests/planted.h"

static void gateway_dies(struct walk_gateway *g)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        struct walk_player *p = &w->player[i];

        if (p->client != NULL && &w->gateway[p->gateway] == g) {
            hang_up(p);
        }
    }
    g->gone_id = g->id;
    g->gone_us = w->now_us + MISSED_US;
    g->up.count = 0;
    g->down.count = 0;
    gateway_close(g);
    gateway_open(g);
}

static void deliver(struct walk_gateway *g)
{
    bool push = false;

    while (g->up.count > 0 && (w->quiet || (w->now_us >= g->slow_us && chance(800)))) {
        on_request(&g->down, buffer_bytes(queue_take(&g->up, &push)));
    }
    while (g->down.count > 0 && (w->quiet || chance(800))) {
        const struct buffer *b = queue_take(&g->down, &push);

        on_down(g, buffer_bytes(b), push);
    }
}

/* ---- the room */

static void room_effects(void)
{
    struct calls_effect e;

    while (calls_take(w->room.calls, &e)) {
        struct buffer whole = {0};

        if (e.type != CALLS_SEND || e.frame_type != FRAME_REQUEST) {
            continue;
        }
        if (e.common.data == NULL) {
            buffer_put(&whole, e.bytes.data, e.bytes.size);
        } else {
            request_put_whole(&whole, e.bytes, e.common);
        }
        queue_put(&w->room.up, buffer_bytes(&whole), false);
        buffer_fini(&whole);
    }
    calls_check(w->room.calls);
}

static void room_ask(struct call *call, struct bytes payload)
{
    call->session = 1;
    call->from = bytes_of("room", 4);
    call->payload = payload;
    call->flags = RH_NO_REPLY;
    calls_ask(w->room.calls, call, w->now_us);
}

/* The actor is one of many, somewhere among them. */
static void room_casts(struct bytes number)
{
    const uint64_t count = prng_between(&w->room.prng, 1, ROOM_MEMBERS);
    const uint64_t actor = prng_between(&w->room.prng, 1, count);
    const struct note note = {.type = NOTE_PUSH, .payload = number};
    struct buffer body = {0};
    uint8_t ids[2 * ROOM_MEMBERS];

    for (uint64_t i = 0; i < count; i++) {
        ids[2 * i] = 1;
        ids[2 * i + 1] = (uint8_t)(i + 1 == actor ? 'a' : 'b' + i);
    }
    note_put(&body, &note);
    struct call call = {.id = bytes_of(ids, 2 * count), .count = count, .push = true};
    room_ask(&call, buffer_bytes(&body));
    buffer_fini(&body);
    w->room.broadcasts++;
}

static void room_says(void)
{
    const uint64_t number = ROOM_MARK | ++w->room.said;
    const struct bytes bytes = bytes_of((const uint8_t *)&number, sizeof number);

    if (prng_between(&w->room.prng, 0, 2) > 0) {
        room_casts(bytes);
        return;
    }
    struct call call = {.id = bytes_of("a", 1)};
    room_ask(&call, bytes);
}

static void room_open(void)
{
    struct router_config config = router_config_default();

    w->room.prng.state = seed_now + 1;
    config.gateway = ROOM_ID;
    config.seed = ROOM_ID;
    rig_init(&w->room.rig, &config);
    rig_add_member(&w->room.rig, 1, 10);
    ring_create(&w->room.rig.leader.ring, RIG_VNODES, 1, 5);
    rig_config(&w->room.rig);
    w->room.calls = calls_new(&config);
    calls_look(w->room.calls, router_view(w->room.rig.router), ROOM_ID, w->now_us);
    calls_up(w->room.calls, ++w->room.peer, "n1", 10, true, w->now_us);
    room_effects();
}

static void room_close(void)
{
    calls_free(w->room.calls);
    rig_fini(&w->room.rig);
    queue_fini(&w->room.up);
    queue_fini(&w->room.down);
}

static bool room_chance(unsigned per_mille)
{
    return prng_between(&w->room.prng, 1, 1000) <= per_mille;
}

static void room_link_breaks(void)
{
    w->room.up.count = 0;
    w->room.down.count = 0;
    calls_down(w->room.calls, w->room.peer, w->now_us);
    calls_up(w->room.calls, ++w->room.peer, "n1", 10, true, w->now_us);
}

static void room_turn(void)
{
    struct walk_room *r = &w->room;
    bool push = false;

    calls_tick(r->calls, w->now_us);
    while (!w->quiet && room_chance(300)) {
        room_says();
    }
    room_effects();
    while (r->up.count > 0 && (w->quiet || room_chance(900))) {
        on_request(&r->down, buffer_bytes(queue_take(&r->up, &push)));
    }
    while (r->down.count > 0 && (w->quiet || room_chance(900))) {
        const struct buffer *b = queue_take(&r->down, &push);
        struct reader in = {.at = b->data, .left = b->size};
        struct answer_record a;

        CHECK(answer_get(&in, &a) == ERR_OK, "no answer");
        (void)calls_answer(r->calls, r->peer, &a, w->now_us);
    }
    if (!w->quiet && room_chance(10)) {
        room_link_breaks();
    }
    room_effects();
}

static void gateway_turn(struct walk_gateway *g)
{
    g->r.rig.now_us = w->now_us;
    event(g, (struct router_event){.type = ROUTER_TICK});
    deliver(g);
    while (clients_go_on(g->r.all, w->now_us, &g->r.effects) != NULL) {
    }
    own_effects(g);
    if (g->gone_id != 0 && w->now_us >= g->gone_us) {
        runtime_gateway_gone(w->runtime, g->gone_id);
        g->gone_id = 0;
        turn();
    }
}

static void fault(void)
{
    struct walk_gateway *g = &w->gateway[prng_between(&w->prng, 0, GATEWAYS - 1)];

    if (chance(10)) {
        link_breaks(g);
    }
    if (chance(10)) {
        g->slow_us = w->now_us + prng_between(&w->prng, 2, 40) * STEP_US;
    }
    if (chance(3) && g->gone_id == 0) {
        gateway_dies(g);
    }
    if (chance(20)) {
        actor_moves();
    }
    if (chance(w->breaks_pm)) {
        actor_breaks();
    }
}

static void step(void)
{
    w->now_us += STEP_US;
    runtime_tick(w->runtime, w->now_us);
    turn();
    for (size_t i = 0; i < GATEWAYS; i++) {
        gateway_turn(&w->gateway[i]);
    }
    room_turn();
    for (size_t i = 0; i < PLAYERS; i++) {
        struct walk_player *p = &w->player[i];

        act(p);
        if (p->client != NULL && client_has_input(p->client)) {
            client_resume(p->client, w->now_us, &w->gateway[p->gateway].r.effects);
            own_effects(&w->gateway[p->gateway]);
        }
        if (p->client != NULL) {
            listen(p);
        }
    }
    if (!w->quiet) {
        fault();
        if (chance(100)) {
            const struct runtime_message m = {.ticket = 1};

            runtime_run(w->actor, &m);
            turn();
        }
    }
}

/* All that its session was pushed. */
static bool has_all(const struct walk_player *p)
{
    for (size_t i = 0; i < SEATS; i++) {
        const struct seat *s = &w->seat[i];

        if (s->client == THERE && (s->session & TAG_MASK) == p->tag) {
            return p->seen == s->counted;
        }
    }
    return false;
}

/* No faults any more: who has a session comes back, is answered, and has all that was pushed. */
static void check_end(void)
{
    size_t there = 0;

    for (size_t i = 0; i < PLAYERS; i++) {
        const struct walk_player *p = &w->player[i];

        CHECK(!p->keeps || p->seated, "a session is not resumed");
        CHECK(!p->seated || lowest_open(p) == p->named + 1, "a request has no answer");
        there += p->seated;
        CHECK(!p->seated || has_all(p), "a push did not come");
    }
    CHECK(there <= w->seats_max, "more are bound in the end than may be");
    CHECK(w->room.heard == w->room.said, "what the room said did not come");
    CHECK(there == count_seats(false), "the actor thinks otherwise");
}

/* Of those with several, some have room for all. */
static void draw_policy(void)
{
    static const uint32_t max[] = {1, 2, 3, RH_SESSIONS_MAX, RH_SESSIONS_MAX};

    w->seats_max = 1;
    w->ops.sessions = (uint32_t)prng_between(&w->prng, 0, RH_SESSIONS_ALLOW);
    if (w->ops.sessions == RH_SESSIONS_ALLOW) {
        w->ops.sessions_max = max[prng_between(&w->prng, 0, sizeof max / sizeof max[0] - 1)];
        w->seats_max = w->ops.sessions_max;
    }
}

static void open_world(void)
{
    const struct runtime_config config = {.on_completion = on_completion, .context = NULL};

    w = mem_new(1, sizeof *w);
    w->prng.state = seed_now;
    w->now_us = 1000000;
    w->breaks_pm = chance(500) ? 0 : 5;
    w->ops = (struct rh_actor_ops){.abi = RH_ABI,
                                   .size = sizeof w->ops,
                                   .name = "walker",
                                   .activate = on_activate,
                                   .message = on_message,
                                   .deactivate = on_deactivate,
                                   .session = on_session};
    draw_policy();
    w->runtime = runtime_new(&config);
    actor_enters(false);
    for (size_t i = 0; i < GATEWAYS; i++) {
        gateway_open(&w->gateway[i]);
    }
    room_open();
    for (unsigned i = 0; i < PLAYERS; i++) {
        w->player[i].number = i;
    }
}

static void close_world(void)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        if (w->player[i].client != NULL) {
            hang_up(&w->player[i]);
        }
        buffer_fini(&w->player[i].heard);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        gateway_close(&w->gateway[i]);
        queue_fini(&w->gateway[i].up);
        queue_fini(&w->gateway[i].down);
    }
    room_close();
    runtime_close(w->runtime, RH_STOP);
    buffer_fini(&w->answer);
    buffer_fini(&w->bond);
    mem_free(w);
}

struct walk_totals {
    uint64_t returned;
    uint64_t replaced;
    uint64_t begun;
    uint64_t moved;
    uint64_t broadcasts;
};

static void walk(uint64_t seed, struct walk_totals *sum)
{
    seed_now = seed;
    open_world();
    for (int i = 0; i < STEPS; i++) {
        step();
    }
    w->quiet = true;
    for (int i = 0; i < QUIET_STEPS; i++) {
        step();
    }
    check_end();
    sum->returned += w->returned;
    sum->replaced += w->replaced;
    sum->begun += w->begun;
    sum->moved += w->moved;
    sum->broadcasts += w->room.broadcasts;
    close_world();
}

static void sessions_hold_whatever_happens(void **state)
{
    const char *given = getenv("SEED");
    const char *count = getenv("SEEDS");
    const uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : SEEDS;
    struct walk_totals sum = {0};

    (void)state;
    if (given != NULL) {
        walk(strtoull(given, NULL, 10), &sum);
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        walk(seed, &sum);
    }
    (void)printf("%llu seeds: %llu returned, %llu replaced, %llu begun afresh, %llu moves, "
                 "%llu broadcasts\n",
                 (unsigned long long)seeds,
                 (unsigned long long)sum.returned,
                 (unsigned long long)sum.replaced,
                 (unsigned long long)sum.begun,
                 (unsigned long long)sum.moved,
                 (unsigned long long)sum.broadcasts);
    assert_true(sum.returned > 0 && sum.replaced > 0 && sum.begun > 0 && sum.moved > 0 &&
                sum.broadcasts > 0);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_hold_whatever_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_SESSION_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
