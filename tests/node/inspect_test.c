/* SPDX-License-Identifier: Apache-2.0
 *
 * What each process tells `ringhold check`, what `ringhold fix` has it do, and how a
 * kick or a trace leaves: ring, node, gateway, coordinator, each by itself.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "link/link.h"
#include "node/host/inside.h"
#include "ring/inspect.h"
#include "txn/leader/coordinator.h"
#include "txn/state/digest.h"
#include "wire/control.h"
#include "wire/gateway_id.h"
#include "wire/repair.h"
#include "wire/values_ask.h"

#include "tests/gateway/router_rig.h"
#include "tests/test.h"

#include <time.h>

enum { VNODES = 16, CLI_LINK = 1, GATEWAY_LINK = 2, NODE_LINK = 3, GATEWAY = 77 };

/* ---- ring and state ---- */

static void a_ring_that_contradicts_itself_is_told_of(void **state)
{
    char fault[RING_FAULT_SIZE];
    struct ring_vnode *v = NULL;
    uint64_t sum[2];
    struct ring r;

    (void)state;
    ring_init(&r, RING_GRID_MIN);
    ring_inspect(&r, sum, fault);
    assert_string_equal(fault, "");
    ring_create(&r, VNODES, 1, 5);
    ring_inspect(&r, sum, fault);
    assert_string_equal(fault, "");
    assert_memory_equal(sum, r.digest, sizeof sum);

    r.cell[7] = 9u << 12 | 2;
    ring_inspect(&r, sum, fault);
    assert_string_equal(fault, "cell 7 is of vnode 0, its table says vnode 9 of slot 2");
    r.cell[7] = r.cell[6];

    v = &r.vnode[3];
    v->generation++;
    ring_inspect(&r, sum, fault);
    assert_string_equal(fault, "vnode 3 has a generation newer than the ring");
    v->generation -= 2;
    v->cold = v->generation;
    ring_inspect(&r, sum, fault);
    assert_string_equal(fault, "the announced digest is not the ring's");
    v->from = r.vnode[4].from;
    ring_inspect(&r, sum, fault);
    assert_true(fault[0] != '\0');
    v->id = 4;
    v->from = r.vnode[2].from + 1;
    ring_inspect(&r, sum, fault);
    assert_true(fault[0] != '\0');
    ring_fini(&r);
}

static void views_and_states_differ_in_any_field(void **state)
{
    struct view_member member = {.slot = 1, .name = "n1", .address = "h:1", .incarnation = 5};
    struct state_node node = {.slot = 1, .name = "n1", .incarnation = 5};
    struct view v = {.key = {1, 2}, .era = 3, .member = &member, .member_count = 1};
    struct state s = {.begun = true, .number = 9, .node = &node, .node_count = 1};
    uint64_t before = view_digest(&v);

    (void)state;
    assert_int_equal(before, view_digest(&v));
    member.leaving = true;
    assert_int_not_equal(before, view_digest(&v));
    member.leaving = false;
    member.address[0] = 'g';
    assert_int_not_equal(before, view_digest(&v));
    member.address[0] = 'h';
    v.key.k1 = 3;
    assert_int_not_equal(before, view_digest(&v));
    v.key.k1 = 2;
    assert_int_equal(before, view_digest(&v));

    before = state_digest(&s);
    assert_int_equal(before, state_digest(&s));
    node.barred = true;
    assert_int_not_equal(before, state_digest(&s));
    node.barred = false;
    s.number++;
    assert_int_not_equal(before, state_digest(&s));
}

/* ---- a gateway ---- */

/* The answer that the last step sent to a coordinator; owned by the Control. */
static Rh__Control *router_said(const struct rig *rig, Rh__Control__BodyCase body)
{
    for (size_t i = 0; i < rig->effects.count; i++) {
        if (rig->effects.item[i].type == ROUTER_SEND_COORDINATOR) {
            Rh__Control *c = control_get(rig_effect_bytes(rig, &rig->effects.item[i]));

            if (c->body_case == body) {
                return c;
            }
            control_free(c);
        }
    }
    return NULL;
}

static void router_control(struct rig *rig, const Rh__Control *c)
{
    rig_step(rig, (struct router_event){.type = ROUTER_CONTROL, .message = c});
}

static void a_gateway_tells_its_ring_and_fetches_when_told(void **state)
{
    struct router_config config = router_config_default();
    Rh__Control question = RH__CONTROL__INIT;
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Inspect inspect = RH__INSPECT__INIT;
    Rh__Repair repair = RH__REPAIR__INIT;
    Rh__Control *said = NULL;
    struct rig rig;

    (void)state;
    config.gateway = GATEWAY;
    (void)snprintf(config.name, sizeof config.name, "g1");
    rig_init(&rig, &config);
    rig_add_member(&rig, 1, 10);
    rig_add_member(&rig, 2, 11);
    ring_create(&rig.leader.ring, RIG_VNODES, 1, 5);
    rig_config(&rig);
    rig_step(&rig, (struct router_event){.type = ROUTER_COORDINATOR_UP});
    rig_step(&rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 2, .incarnation = 11});
    inspect.tag = 4;
    inspect.route = 5;
    question.body_case = RH__CONTROL__BODY_INSPECT;
    question.inspect = &inspect;
    router_control(&rig, &question);
    said = router_said(&rig, RH__CONTROL__BODY_INSPECT_ANSWER);
    assert_non_null(said);
    assert_int_equal(said->inspect_answer->tag, 4);
    assert_int_equal(said->inspect_answer->route, 5);
    assert_int_equal(said->inspect_answer->role, ROLE_GATEWAY);
    assert_string_equal(said->inspect_answer->name, "g1");
    assert_int_equal(said->inspect_answer->incarnation, GATEWAY);
    assert_int_equal(said->inspect_answer->ring0, rig.leader.ring.digest[0]);
    assert_int_equal(said->inspect_answer->members, view_digest(&rig.leader));
    assert_string_equal(said->inspect_answer->ring_fault, "");
    assert_int_equal(said->inspect_answer->n_unlinked, 1); // n2 owns nothing
    assert_int_equal(said->inspect_answer->unlinked[0], 1);
    control_free(said);

    rig.now_us += 1000000;
    repair.what = REPAIR_TASK_FETCH;
    control.body_case = RH__CONTROL__BODY_REPAIR;
    control.repair = &repair;
    router_control(&rig, &control);
    said = router_said(&rig, RH__CONTROL__BODY_GET_CONFIG);
    assert_non_null(said);
    assert_int_equal(said->get_config->have_version, 0);
    control_free(said);
    rig_fini(&rig);
}

/* ---- a node ---- */

struct stage {
    struct host *host;
    struct host_effects effects;
    struct view leader;
    uint64_t now_us;
    clock_t longest; /* page of who lives there, in CPU time */
};

static void host_hears(struct stage *s, const Rh__Control *c)
{
    const struct host_event event = {
        .type = HOST_CONTROL, .now_us = s->now_us, .coordinator = 0, .message = c};

    host_effects_clear(&s->effects);
    host_step(s->host, &event, &s->effects);
}

static void stage_open(struct stage *s)
{
    static const struct host_kind kinds[] = {{.number = 0}};
    struct host_config config = host_config_default();
    Rh__Config whole;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Control c = RH__CONTROL__INIT;
    struct host_event event = {.type = HOST_COORDINATOR_UP, .now_us = 1000000};

    *s = (struct stage){.now_us = 1000000};
    view_init(&s->leader, RING_GRID_MIN);
    s->leader.key = (struct ring_key){1, 2};
    s->leader.era = 1;
    ring_create(&s->leader.ring, VNODES, 1, 12);
    s->leader.ring.vnode[0].owner = 1;
    s->leader.member = mem_new(2, sizeof *s->leader.member);
    s->leader.member[0] = (struct view_member){1, "n1", "h:1", 10, 1, false, "", {0}};
    s->leader.member[1] = (struct view_member){2, "n2", "h:2", 11, 1, false, "", {0}};
    s->leader.member_count = 2;
    const struct ring_op move = {.kind = RING_MOVE, .vnode = VNODES - 1, .from = 1, .to = 2};
    ring_apply(&s->leader.ring, &move, 1, 13, 13);
    (void)snprintf(config.name, sizeof config.name, "n1");
    config.nonce = 99;
    config.kinds = kinds;
    config.kind_count = 1;
    s->host = host_new(&config);
    host_step(s->host, &event, &s->effects);
    view_config(&s->leader, &whole);
    ok.nonce = 99;
    ok.slot = 1;
    ok.incarnation = 10;
    ok.floor = 13;
    ok.config = &whole;
    c.era = 1;
    c.body_case = RH__CONTROL__BODY_REG_OK;
    c.reg_ok = &ok;
    host_hears(s, &c);
    view_config_fini(&whole);
    assert_int_equal(s->host->membership.life, LIFE_SERVING);
}

static void stage_close(struct stage *s)
{
    host_free(s->host);
    host_effects_fini(&s->effects);
    view_fini(&s->leader);
}

static Rh__Control *host_said(const struct stage *s, Rh__Control__BodyCase body)
{
    for (size_t i = 0; i < s->effects.count; i++) {
        const struct host_effect *e = &s->effects.item[i];

        if (e->type == HOST_SEND_COORDINATOR) {
            Rh__Control *c = control_get(bytes_of(s->effects.bytes.data + e->at, e->size));

            if (c->body_case == body) {
                return c;
            }
            control_free(c);
        }
    }
    return NULL;
}

/* Its answer, with the ids of all cells. */
static Rh__Control *inspect_host(struct stage *s)
{
    Rh__Control question = RH__CONTROL__INIT;
    Rh__Inspect inspect = RH__INSPECT__INIT;
    Rh__Cells all = RH__CELLS__INIT;
    Rh__Cells *cells = &all;
    Rh__Control *said = NULL;

    all.to = 1u << RING_GRID_MIN;
    inspect.tag = 4;
    inspect.n_ids_of = 1;
    inspect.ids_of = &cells;
    question.era = 9; // it does not matter
    question.body_case = RH__CONTROL__BODY_INSPECT;
    question.inspect = &inspect;
    host_hears(s, &question);
    said = host_said(s, RH__CONTROL__BODY_INSPECT_ANSWER);
    assert_non_null(said);
    assert_int_equal(said->inspect_answer->tag, 4);
    return said;
}

/* ---- who lives there ---- */

/* A page, owned. */
static Rh__Control *page_of(struct stage *s, Rh__AdminActors *what)
{
    Rh__Control question = RH__CONTROL__INIT;
    Rh__Actors actors = RH__ACTORS__INIT;

    actors.tag = 4;
    actors.route = 5;
    actors.what = what;
    question.era = 9; // it does not matter
    question.body_case = RH__CONTROL__BODY_ACTORS;
    question.actors = &actors;
    const clock_t began = clock();
    host_hears(s, &question);
    const clock_t took = clock() - began;
    s->longest = took > s->longest ? took : s->longest;
    Rh__Control *said = host_said(s, RH__CONTROL__BODY_ACTORS_ANSWER);
    assert_non_null(said);
    assert_int_equal(said->actors_answer->tag, 4);
    assert_int_equal(said->actors_answer->route, 5);
    assert_string_equal(said->actors_answer->name, "n1");
    return said;
}

static struct actor *make_actor(struct stage *s, uint16_t kind, const char *id)
{
    const struct bytes bytes = bytes_of(id, strlen(id));
    const struct image_name name = {
        .position = host_position(s->host, kind, bytes), .kind = kind, .id = bytes};

    return actor_new(&s->host->actors, name);
}

static size_t rows_of(struct stage *s, Rh__AdminActors *what)
{
    Rh__Control *said = page_of(s, what);
    const size_t count = said->actors_answer->n_rows;

    assert_int_equal(said->actors_answer->next, 0);
    control_free(said);
    return count;
}

static void a_page_has_who_is_wanted(void **state)
{
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;
    struct stage s;

    (void)state;
    stage_open(&s);
    what.any_kind = true;
    assert_int_equal(rows_of(&s, &what), 0);
    struct actor *a = make_actor(&s, 0, "boss-7");
    a->live = true;
    a->state = ACTOR_FROZEN; // it moves, and is still here
    a->used_ms = (uint32_t)(s.now_us / 1000) - 250;
    make_actor(&s, 0, "boss-70")->state = ACTOR_ACTIVATING;
    (void)make_actor(&s, 0, "boss-9"); // absent: it waits for something, or its state does
    make_actor(&s, 3, "boss-7")->live = true;
    assert_int_equal(rows_of(&s, &what), 3);
    what.any_kind = false;
    assert_int_equal(rows_of(&s, &what), 2);
    what.kind = UINT16_MAX + 1 + 3;
    assert_int_equal(rows_of(&s, &what), 0);
    what.kind = 0;
    what.prefix = proto_bytes(bytes_of("boss-70", 7));
    assert_int_equal(rows_of(&s, &what), 1);
    what.prefix.len = 8; // longer than its id
    what.prefix.data = (uint8_t *)proto_text("boss-701");
    assert_int_equal(rows_of(&s, &what), 0);
    what.prefix.len = 6;
    what.prefix.data = (uint8_t *)proto_text("boss-7");
    assert_int_equal(rows_of(&s, &what), 2);
    what.whole = true;
    Rh__Control *said = page_of(&s, &what);
    assert_int_equal(said->actors_answer->n_rows, 1);
    assert_int_equal(said->actors_answer->rows[0]->id.len, 6);
    assert_int_equal(said->actors_answer->rows[0]->unused_ms, 250);
    assert_string_equal(said->actors_answer->rows[0]->state, "frozen");
    assert_int_equal(said->actors_answer->rows[0]->came, RESIDENT_STARTED);
    assert_int_equal(said->actors_answer->rows[0]->here_ms, 0); // it never began
    control_free(said);
    actor_note_began(&s.host->actors, a, s.now_us);
    s.now_us += 1500000;
    said = page_of(&s, &what);
    const uint64_t here_ms = said->actors_answer->rows[0]->here_ms;
    assert_true(here_ms >= 1500 && here_ms < 1600);
    control_free(said);
    struct cell_state *cell = &s.host->cells.state[ring_point_cell(actor_position(a))];
    a->came = cell->mine = true;
    cell->since_us = s.now_us - 90000;
    said = page_of(&s, &what);
    assert_int_equal(said->actors_answer->rows[0]->came, RESIDENT_MOVED);
    assert_int_equal(said->actors_answer->rows[0]->here_ms, 90);
    control_free(said);
    what.any_kind = true;
    assert_int_equal(rows_of(&s, &what), 2);
    what.any_kind = false;
    what.kind = 77; // not hosted
    assert_int_equal(rows_of(&s, &what), 0);
    what.prefix.data = (uint8_t *)proto_text("boss-9");
    what.kind = 0;
    assert_int_equal(rows_of(&s, &what), 0);
    stage_close(&s);
}

/* All pages; who is in them is counted in `met`, by the number in his id. Returns how many. */
static size_t list_all(struct stage *s, Rh__AdminActors *what, uint8_t *met)
{
    const clock_t began = clock();
    size_t pages = 0;

    s->longest = 0;
    what->cursor = 0;
    do {
        Rh__Control *said = page_of(s, what);
        const Rh__ActorsAnswer *page = said->actors_answer;

        ASSERT(page->n_rows < RESIDENTS_ROWS_MAX + 16); // with the rest of a bucket
        for (size_t i = 0; i < page->n_rows; i++) {
            uint32_t number = 0;

            memcpy(&number, page->rows[i]->id.data + 1, sizeof number);
            met[number]++;
        }
        what->cursor = page->next;
        pages++;
        control_free(said);
    } while (what->cursor != 0);
    print_message("%zu pages in %ld ms; the longest held the loop for %ld us\n",
                  pages,
                  (long)(clock() - began) * 1000 / CLOCKS_PER_SEC,
                  (long)s->longest * 1000000 / CLOCKS_PER_SEC);
    return pages;
}

static void a_page_costs_the_same_with_a_million(void **state)
{
    enum { MANY = 1000000 };
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;
    uint8_t *met = mem_new(MANY, 1);
    struct stage s;

    (void)state;
    stage_open(&s);
    for (uint32_t i = 0; i < MANY; i++) {
        uint8_t id[5] = {'p'};

        memcpy(&id[1], &i, sizeof i);
        const struct bytes bytes = bytes_of(id, sizeof id);
        const struct image_name name = {.position = host_position(s.host, 0, bytes), .id = bytes};
        actor_new(&s.host->actors, name)->live = true;
    }
    what.any_kind = true;
    (void)list_all(&s, &what, met);
    for (size_t i = 0; i < MANY; i++) {
        ASSERT(met[i] == 1);
    }
    // Where nobody is wanted a page is so many buckets.
    what.prefix = proto_bytes(bytes_of("q", 1));
    const size_t buckets = s.host->actors.table.bucket_count;
    assert_int_equal(list_all(&s, &what, met),
                     (buckets + RESIDENTS_BUCKETS_MAX - 1) / RESIDENTS_BUCKETS_MAX);
    mem_free(met);
    stage_close(&s);
}

static void repair_host(struct stage *s, uint32_t what)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Repair repair = RH__REPAIR__INIT;

    repair.what = what;
    c.body_case = RH__CONTROL__BODY_REPAIR;
    c.repair = &repair;
    host_hears(s, &c);
}

static void a_node_tells_what_lives_where(void **state)
{
    const struct image_name mine = {.position = 5, .id = bytes_of("anna", 4)};
    const struct image_name other = {.position =
                                         (UINT64_C(1) << (RING_GRID_MIN + RING_POINT_BITS)) - 1,
                                     .id = bytes_of("bert", 4)};
    const struct image_name another = {.position = other.position, .id = bytes_of("carl", 4)};
    const Rh__InspectAnswer *a = NULL;
    Rh__Control *said = NULL;
    struct stage s;

    (void)state;
    stage_open(&s);
    said = inspect_host(&s);
    a = said->inspect_answer;
    assert_string_equal(a->name, "n1");
    assert_string_equal(a->life, "serving");
    assert_string_equal(a->ring_fault, "");
    assert_int_equal(a->incarnation, 10);
    assert_int_equal(a->ring1, s.leader.ring.digest[1]);
    assert_int_equal(a->members, view_digest(&s.leader));
    assert_int_equal(a->disk_floor, 13);
    assert_int_equal(a->n_live + a->strays + a->n_ids + a->n_holds, 0);
    assert_int_equal(s.host->membership.life, LIFE_SERVING); // a strange era did nothing
    assert_null(a->calls);
    control_free(said);
    const struct router_stats calls = {.requests = 9, .in_flight = 2, .replied = 7, .timeout = 1};
    host_set_calls(s.host, &calls);
    said = inspect_host(&s);
    assert_int_equal(said->inspect_answer->calls->requests, 9);
    assert_int_equal(said->inspect_answer->calls->in_flight, 2);
    assert_int_equal(said->inspect_answer->calls->replied, 7);
    assert_int_equal(said->inspect_answer->calls->timeout, 1);
    assert_int_equal(said->inspect_answer->n_kinds, 0);
    host_set_calls(s.host, NULL);
    control_free(said);
    struct latency *of = s.host->times.all.row[latencies_find(&s.host->times.all, 0)].of;
    latency_add(&of[TIMES_REQUEST + ANSWER_OK], 100, 3);
    latency_add(&of[TIMES_REQUEST + ANSWER_APP_ERROR], 100, 1);
    latency_add(&of[TIMES_REQUEST + ANSWER_MOVED], 100, 1); // no actor's answer
    said = inspect_host(&s);
    assert_int_equal(said->inspect_answer->n_kinds, 1);
    assert_int_equal(said->inspect_answer->kinds[0]->kind, 0);
    assert_int_equal(said->inspect_answer->kinds[0]->n_took, LATENCY_BUCKETS);
    assert_int_equal(said->inspect_answer->kinds[0]->took[1], 4);
    control_free(said);

    actor_new(&s.host->actors, mine)->state = ACTOR_IDLE;
    struct actor *asked = actor_new(&s.host->actors, other);
    struct actor *turns = actor_new(&s.host->actors, another);
    asked->state = turns->state = ACTOR_RUNNING;
    actor_work(&s.host->actors, asked)->running.order = order_new(&s.host->orders, asked, 1);
    actor_work(&s.host->actors, asked)->running.request = true;
    (void)actor_work(&s.host->actors, turns); // a turn is no request
    s.host->work.tasks += 2;
    s.host->work.running = s.host->requests.accepted = 1;
    said = inspect_host(&s);
    a = said->inspect_answer;
    assert_int_equal(a->n_live, 2);
    assert_int_equal(a->live[0]->vnode, 0);
    assert_false(a->live[0]->stray);
    assert_int_equal(a->live[1]->vnode, VNODES - 1);
    assert_true(a->live[1]->stray);
    assert_int_equal(a->strays, 2);
    assert_int_equal(a->n_ids, 3);
    assert_memory_equal(a->ids[1]->id.data, "bert", 4);
    control_free(said);

    repair_host(&s, REPAIR_TASK_STRAYS);
    said = inspect_host(&s);
    assert_int_equal(said->inspect_answer->strays, 0);
    assert_int_equal(said->inspect_answer->n_live, 1); // anna
    assert_int_equal(s.host->work.running, 0);
    assert_int_equal(s.host->cells.doubles_total, 2);
    control_free(said);
    actor_remove(s.host, actor_find(&s.host->actors, mine), DISCARD_STOP);
    stage_close(&s);
}

static void a_node_does_as_it_is_told(void **state)
{
    Rh__Control *said = NULL;
    struct stage s;

    (void)state;
    stage_open(&s);
    s.now_us += 1000000;
    repair_host(&s, REPAIR_TASK_FETCH);
    said = host_said(&s, RH__CONTROL__BODY_GET_CONFIG);
    assert_non_null(said);
    assert_int_equal(said->get_config->have_version, 0);
    control_free(said);
    repair_host(&s, 1234); // of a newer version
    assert_int_equal(s.host->membership.life, LIFE_SERVING);
    repair_host(&s, REPAIR_TASK_EXIT);
    assert_int_equal(s.host->membership.life, LIFE_OVER);
    assert_int_equal(s.effects.item[s.effects.count - 1].type, HOST_EXIT);
    assert_int_equal(s.effects.item[s.effects.count - 1].code, 75);
    stage_close(&s);
}

/* ---- a coordinator ---- */

struct bench {
    struct state state;
    struct coordinator *c;
    struct coordinator_effects effects;
};

static void bench_step(struct bench *b, struct coordinator_event event)
{
    event.now_us = 1000000;
    event.wall_us = 1000000;
    coordinator_effects_clear(&b->effects);
    coordinator_step(b->c, &event, &b->effects);
}

static void bench_open(struct bench *b)
{
    struct coordinator_config config = coordinator_config_default();
    struct state_result result = {0};
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandInit init = RH__COMMAND_INIT__INIT;

    *b = (struct bench){0};
    state_init(&b->state);
    init.cluster = proto_text("t");
    init.grid = RING_GRID_MIN;
    init.vnodes_per_weight = 8;
    init.fleet_low = 1;
    init.key0 = 1;
    init.era = 1;
    command.body_case = RH__COMMAND__BODY_INIT;
    command.init = &init;
    state_apply(&b->state, &command, &result);
    assert_true(result.accepted);
    state_result_fini(&result);
    config.id = 3;
    b->c = coordinator_new(&config, &b->state);
    bench_step(b,
               (struct coordinator_event){
                   .type = COORDINATOR_PEER_UP, .peer = CLI_LINK, .role = ROLE_CLI, .name = "cli"});
    bench_step(b,
               (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                          .peer = GATEWAY_LINK,
                                          .role = ROLE_GATEWAY,
                                          .name = "g1",
                                          .incarnation = GATEWAY});
}

static void bench_close(struct bench *b)
{
    coordinator_free(b->c);
    coordinator_effects_fini(&b->effects);
    state_fini(&b->state);
}

/* What went to that link in the last step: owned, of that body; or NULL. */
static Rh__Control *sent_to(const struct bench *b, uint64_t peer, Rh__Control__BodyCase body)
{
    for (size_t i = 0; i < b->effects.count; i++) {
        const struct coordinator_effect *e = &b->effects.item[i];

        if (e->type == COORDINATOR_SEND && e->peer == peer) {
            Rh__Control *c = control_get(bytes_of(b->effects.bytes.data + e->at, e->size));

            if (c->body_case == body) {
                return c;
            }
            control_free(c);
        }
    }
    return NULL;
}

static void bench_admin(struct bench *b, Rh__Admin *admin)
{
    Rh__Control c = RH__CONTROL__INIT;

    c.body_case = RH__CONTROL__BODY_ADMIN;
    c.admin = admin;
    bench_step(
        b,
        (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = CLI_LINK, .message = &c});
}

static void a_follower_answers_and_passes_on(void **state)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminInspect what = RH__ADMIN_INSPECT__INIT;
    Rh__Control back = RH__CONTROL__INIT;
    char gateway[] = "g1";
    Rh__InspectAnswer answer = RH__INSPECT_ANSWER__INIT;
    Rh__Control *said = NULL;
    struct bench b;

    (void)state;
    bench_open(&b);
    admin.tag = 8;
    admin.what_case = RH__ADMIN__WHAT_INSPECT;
    admin.inspect = &what;
    bench_admin(&b, &admin);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(said);
    assert_int_equal(said->admin_reply->tag, 8);
    assert_false(said->admin_reply->leading);
    assert_int_equal(said->admin_reply->inspection->id, 3);
    assert_int_equal(said->admin_reply->inspection->state, state_digest(&b.state));
    assert_int_equal(said->admin_reply->inspection->n_links, 1);
    assert_string_equal(said->admin_reply->inspection->links[0]->name, "g1");
    control_free(said);
    said = sent_to(&b, GATEWAY_LINK, RH__CONTROL__BODY_INSPECT);
    assert_non_null(said);
    assert_int_equal(said->inspect->route, CLI_LINK);

    answer.tag = said->inspect->tag;
    answer.route = said->inspect->route;
    answer.role = ROLE_GATEWAY;
    answer.name = gateway;
    control_free(said);
    back.body_case = RH__CONTROL__BODY_INSPECT_ANSWER;
    back.inspect_answer = &answer;
    const struct coordinator_event event = {
        .type = COORDINATOR_MESSAGE, .peer = GATEWAY_LINK, .message = &back};
    bench_step(&b, event);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_INSPECT_ANSWER);
    assert_non_null(said);
    assert_int_equal(said->inspect_answer->tag, 8);
    control_free(said);
    answer.route = GATEWAY_LINK; // to no operator: it goes nowhere
    bench_step(&b, event);
    assert_int_equal(b.effects.count, 0);
    bench_close(&b);
}

/* Ask; the barrier is done. */
static void ask_leader(struct bench *b, Rh__Admin *admin)
{
    bench_admin(b, admin);
    for (size_t i = 0; i < b->effects.count; i++) {
        if (b->effects.item[i].type == COORDINATOR_BARRIER) {
            bench_step(b,
                       (struct coordinator_event){.type = COORDINATOR_DONE,
                                                  .tag = b->effects.item[i].tag});
            return;
        }
    }
    fail_msg("no barrier was asked for");
}

static void ask_repair(struct bench *b, Rh__AdminRepair *repair)
{
    Rh__Admin admin = RH__ADMIN__INIT;

    admin.tag = 9;
    admin.what_case = RH__ADMIN__WHAT_REPAIR;
    admin.repair = repair;
    ask_leader(b, &admin);
}

static void a_repair_is_recorded_and_then_done(void **state)
{
    Rh__AdminRepair repair = RH__ADMIN_REPAIR__INIT;
    struct coordinator_effect proposed = {0};
    struct state_result result = {0};
    Rh__Control *said = NULL;
    struct bench b;

    (void)state;
    bench_open(&b);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    repair.role = ROLE_GATEWAY;
    repair.name = proto_text("g1");
    repair.incarnation = GATEWAY + 1; // another process of that name
    repair.what = REPAIR_TASK_FETCH;
    repair.by = proto_text("ann@desk");
    repair.why = proto_text("its ring is odd");
    ask_repair(&b, &repair);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_string_equal(said->admin_reply->error, "g1: that process is not linked to the leader");
    control_free(said);
    repair.incarnation = GATEWAY;
    repair.what = REPAIR_TASK_STRAYS;
    ask_repair(&b, &repair);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_string_equal(said->admin_reply->error, "g1: only a node does this repair");
    control_free(said);

    repair.what = REPAIR_TASK_FETCH;
    ask_repair(&b, &repair);
    for (size_t i = 0; i < b.effects.count; i++) {
        if (b.effects.item[i].type == COORDINATOR_PROPOSE) {
            proposed = b.effects.item[i];
        }
    }
    assert_true(proposed.size > 0);
    assert_null(sent_to(&b, GATEWAY_LINK, RH__CONTROL__BODY_REPAIR)); // not before
    const uint64_t tag = proposed.tag;
    Rh__Command *command = command_get(bytes_of(b.effects.bytes.data + proposed.at, proposed.size));
    assert_int_equal(command->body_case, RH__COMMAND__BODY_NOTE);
    assert_string_equal(command->note->subject, "gateway g1");
    assert_string_equal(command->by, "ann@desk");
    assert_string_equal(command->reason, "its ring is odd");
    const uint64_t before = state_digest(&b.state);
    state_apply(&b.state, command, &result);
    assert_true(result.accepted);
    assert_int_equal(state_digest(&b.state), before);
    bench_step(&b,
               (struct coordinator_event){.type = COORDINATOR_APPLIED,
                                          .tag = tag,
                                          .index = 5,
                                          .command = command,
                                          .result = &result});
    said = sent_to(&b, GATEWAY_LINK, RH__CONTROL__BODY_REPAIR);
    assert_non_null(said);
    assert_int_equal(said->repair->what, REPAIR_TASK_FETCH);
    control_free(said);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(said);
    assert_int_equal(said->admin_reply->tag, 9);
    assert_string_equal(said->admin_reply->error, "");
    control_free(said);
    state_result_fini(&result);
    command_free(command);
    bench_close(&b);
}

/* fleet_sim --profile operator --seed 42000090: what was told to incarnation 0 came when the
 * process had become a member, and ended it. */
static void who_only_registers_is_not_ended(void **state)
{
    Rh__AdminRepair repair = RH__ADMIN_REPAIR__INIT;
    Rh__Control *said = NULL;
    struct bench b;

    (void)state;
    bench_open(&b);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    bench_step(
        &b,
        (struct coordinator_event){
            .type = COORDINATOR_PEER_UP, .peer = NODE_LINK, .role = ROLE_NODE, .name = "n1"});
    repair.role = ROLE_NODE;
    repair.name = proto_text("n1");
    repair.what = REPAIR_TASK_EXIT;
    ask_repair(&b, &repair);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(said);
    assert_string_equal(said->admin_reply->error, "n1: the process only wants to become a member");
    control_free(said);
    bench_close(&b);
}

/* fleet_sim --profile operator --seed 74003863: a node was told that a transaction was over that
 * began while the word was under way, and dropped the images that it had prepared. */
static void no_outcome_is_told_of_a_number_that_is_not_drawn(void **state)
{
    Rh__AdminRepair repair = RH__ADMIN_REPAIR__INIT;
    Rh__Control *said = NULL;
    struct bench b;

    (void)state;
    bench_open(&b);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    bench_step(
        &b,
        (struct coordinator_event){
            .type = COORDINATOR_PEER_UP, .peer = NODE_LINK, .role = ROLE_NODE, .name = "n1"});
    repair.role = ROLE_NODE;
    repair.name = proto_text("n1");
    repair.what = REPAIR_TASK_OUTCOME;
    repair.txn = b.state.number + 1;
    ask_repair(&b, &repair);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(said);
    assert_string_equal(said->admin_reply->error, "n1: no transaction has this number yet");
    control_free(said);
    bench_close(&b);
}

static void link_thread(struct bench *b, uint64_t link, uint64_t id)
{
    bench_step(b,
               (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                          .peer = link,
                                          .role = ROLE_GATEWAY,
                                          .name = "g2",
                                          .incarnation = id});
}

static void tell_stats(struct bench *b, uint64_t link, Rh__GetConfig get)
{
    Rh__Control c = RH__CONTROL__INIT;

    get.digest0 = get.have_version + 100;
    get.threads = 3;
    c.body_case = RH__CONTROL__BODY_GET_CONFIG;
    c.get_config = &get;
    bench_step(
        b, (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = link, .message = &c});
}

static void the_threads_of_a_gateway_are_one_in_the_overview(void **state)
{
    const uint64_t process = (uint64_t)7 * GATEWAY_THREADS_MAX;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminInspect what = RH__ADMIN_INSPECT__INIT;
    Rh__GetConfig get = RH__GET_CONFIG__INIT;
    Rh__Control *said = NULL;
    struct bench b;

    (void)state;
    bench_open(&b);
    link_thread(&b, 10, process);
    link_thread(&b, 11, process + 1);
    link_thread(&b, 12, process + GATEWAY_THREADS_MAX); // another process of that name
    get.have_version = 9;
    get.requests = 1000;
    tell_stats(&b, 10, get);
    get.have_version = 8;
    get.requests = 200;
    tell_stats(&b, 11, get);
    get.have_version = 7;
    get.requests = 30;
    tell_stats(&b, 12, get);
    admin.what_case = RH__ADMIN__WHAT_INSPECT;
    admin.inspect = &what;
    bench_admin(&b, &admin);
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(said);
    assert_int_equal(said->admin_reply->n_gateways, 3);
    assert_string_equal(said->admin_reply->gateways[0]->name, "g1");
    assert_int_equal(said->admin_reply->gateways[0]->threads, 1);

    const Rh__GatewayRow *row = said->admin_reply->gateways[1];
    assert_string_equal(row->name, "g2");
    assert_int_equal(row->requests, 1200);
    assert_int_equal(row->version, 8); // of the thread that is behind
    assert_int_equal(row->digest0, 108);
    assert_int_equal(row->threads, 3);
    assert_int_equal(row->linked, 2);
    assert_int_equal(said->admin_reply->gateways[2]->requests, 30);
    control_free(said);
    bench_close(&b);
}

/* ---- who lives ---- */

static void ask_actors(struct bench *b, const char *node)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;

    what.node = proto_text(node);
    what.any_kind = true;
    what.prefix = proto_bytes(bytes_of("boss", 4));
    what.cursor = 77;
    what.limit = 20;
    admin.tag = 9;
    admin.what_case = RH__ADMIN__WHAT_ACTORS;
    admin.actors = &what;
    bench_admin(b, &admin);
}

static void node_comes(struct bench *b, uint64_t link, const char *name, uint32_t protocol)
{
    bench_step(b,
               (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                          .peer = link,
                                          .role = ROLE_NODE,
                                          .name = name,
                                          .protocol = protocol});
}

static void expect_error(const struct bench *b, const char *text)
{
    Rh__Control *said = sent_to(b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);

    assert_non_null(said);
    assert_string_equal(said->admin_reply->error, text);
    control_free(said);
}

static void the_leader_has_a_node_tell_who_lives_there(void **state)
{
    Rh__Control back = RH__CONTROL__INIT;
    Rh__ActorsAnswer answer = RH__ACTORS_ANSWER__INIT;
    Rh__ActorRow row = RH__ACTOR_ROW__INIT;
    Rh__ActorRow *rows = &row;
    Rh__Control *said = NULL;
    struct bench b;

    (void)state;
    bench_open(&b);
    node_comes(&b, 5, "n1", LINK_PROTOCOL_ACTORS);
    node_comes(&b, 6, "old", LINK_PROTOCOL_ACTORS - 1);
    ask_actors(&b, "n1"); // it does not lead
    assert_null(sent_to(&b, 5, RH__CONTROL__BODY_ACTORS));
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    ask_actors(&b, "n2");
    expect_error(&b, "unknown node 'n2'");
    ask_actors(&b, "g1"); // a gateway's
    expect_error(&b, "unknown node 'g1'");
    ask_actors(&b, "old");
    expect_error(&b, "node old speaks protocol 4, and this command needs 5: upgrade the node");
    assert_null(sent_to(&b, 6, RH__CONTROL__BODY_ACTORS));
    ask_actors(&b, "n1");
    assert_null(sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY)); // not yet
    said = sent_to(&b, 5, RH__CONTROL__BODY_ACTORS);
    assert_non_null(said);
    assert_int_equal(said->actors->tag, 9);
    assert_int_equal(said->actors->route, CLI_LINK);
    assert_int_equal(said->actors->what->cursor, 77);
    assert_int_equal(said->actors->what->limit, 20);
    assert_int_equal(said->actors->what->prefix.len, 4);
    control_free(said);

    row.id = proto_bytes(bytes_of("boss-7", 6));
    answer.tag = 9;
    answer.route = CLI_LINK;
    answer.name = proto_text("n1");
    answer.n_rows = 1;
    answer.rows = &rows;
    answer.next = 78;
    back.body_case = RH__CONTROL__BODY_ACTORS_ANSWER;
    back.actors_answer = &answer;
    bench_step(
        &b, (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = 5, .message = &back});
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(said);
    assert_int_equal(said->admin_reply->tag, 9);
    assert_int_equal(said->admin_reply->actors->next, 78);
    assert_memory_equal(said->admin_reply->actors->rows[0]->id.data, "boss-7", 6);
    control_free(said);
    bench_close(&b);
}

/* ---- operator requests ---- */

static void ask_kick_for(struct bench *b, uint64_t tag, const char *gateway, const char *reason)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;

    actor.kind = 3;
    actor.id = proto_bytes(bytes_of("ann", 3));
    what.actor = &actor;
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK;
    what.code = 1077;
    what.text = proto_text("maintenance");
    what.by = proto_text("op@desk");
    what.gateway = proto_text(gateway);
    what.reason = proto_text(reason);
    admin.tag = tag;
    admin.what_case = RH__ADMIN__WHAT_OPERATOR_REQUEST;
    admin.operator_request = &what;
    ask_leader(b, &admin);
}

static void ask_kick(struct bench *b, uint64_t tag, const char *gateway)
{
    ask_kick_for(b, tag, gateway, "");
}

static void gateway_comes(struct bench *b, uint64_t link, const char *name, uint32_t protocol)
{
    bench_step(b,
               (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                          .peer = link,
                                          .role = ROLE_GATEWAY,
                                          .name = name,
                                          .protocol = protocol,
                                          .incarnation = GATEWAY + link});
}

/* What the last step proposes; NULL = nothing. */
static Rh__Command *proposed(const struct bench *b, uint64_t *tag)
{
    for (size_t i = 0; i < b->effects.count; i++) {
        const struct coordinator_effect *e = &b->effects.item[i];

        if (e->type == COORDINATOR_PROPOSE) {
            Rh__Command *command = command_get(bytes_of(b->effects.bytes.data + e->at, e->size));

            if (command->body_case == RH__COMMAND__BODY_NOTE) {
                *tag = e->tag;
                return command;
            }
            command_free(command);
        }
    }
    return NULL;
}

static void an_older_gateway_is_not_asked_what_it_does_not_know(void **state)
{
    Rh__Control *said = NULL;
    struct bench b;
    uint64_t tag = 0;

    (void)state;
    bench_open(&b);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = GATEWAY_LINK});
    gateway_comes(&b, 5, "old", LINK_PROTOCOL_OPERATOR_REQUESTS - 1);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    ask_kick(&b, 9, "");
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_string_equal(
        said->admin_reply->error,
        "gateway old speaks protocol 3, and this command needs 4: upgrade the gateway");
    control_free(said);
    assert_null(proposed(&b, &tag));
    // Beside one that does it is passed over.
    gateway_comes(&b, 4, "new", LINK_PROTOCOL_OPERATOR_REQUESTS);
    gateway_comes(&b, 6, "old2", LINK_PROTOCOL_OPERATOR_REQUESTS - 1);
    ask_kick(&b, 10, "");
    Rh__Command *command = proposed(&b, &tag);
    assert_non_null(command);
    command_free(command);
    ask_kick(&b, 11, "old2");
    said = sent_to(&b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    assert_non_null(strstr(said->admin_reply->error, "old2 speaks protocol 3"));
    control_free(said);
    bench_close(&b);
}

static void a_kick_stands_in_the_history_before_it_leaves(void **state)
{
    struct state_result result = {0};
    Rh__Control *said = NULL;
    struct bench b;
    uint64_t tag = 0;
    uint64_t other = 0;

    (void)state;
    bench_open(&b);
    gateway_comes(&b, 4, "g2", LINK_PROTOCOL_OPERATOR_REQUESTS);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    ask_kick(&b, 9, "g2");
    Rh__Command *command = proposed(&b, &tag);
    assert_non_null(command);
    assert_string_equal(command->note->subject, "actor 3/ann");
    assert_string_equal(command->note->what, "its session was told to end, code 1077");
    assert_string_equal(command->by, "op@desk");
    assert_string_equal(command->reason, "maintenance");
    assert_null(sent_to(&b, 4, RH__CONTROL__BODY_OPERATOR_REQUEST)); // not before
    ask_kick(&b, 9, "g2");                                           // who waits asks again
    assert_null(proposed(&b, &other));
    state_apply(&b.state, command, &result);
    bench_step(&b,
               (struct coordinator_event){.type = COORDINATOR_APPLIED,
                                          .tag = tag,
                                          .index = 5,
                                          .command = command,
                                          .result = &result});
    said = sent_to(&b, 4, RH__CONTROL__BODY_OPERATOR_REQUEST);
    assert_non_null(said);
    assert_int_equal(said->operator_request->tag, 9);
    assert_int_equal(said->operator_request->route, CLI_LINK);
    assert_string_equal(said->operator_request->what->text, "maintenance");
    control_free(said);
    // It may have been lost: it leaves once more, and stands there once.
    ask_kick(&b, 9, "g2");
    assert_null(proposed(&b, &other));
    said = sent_to(&b, 4, RH__CONTROL__BODY_OPERATOR_REQUEST);
    assert_non_null(said);
    control_free(said);
    ask_kick(&b, 10, "g2");
    Rh__Command *another = proposed(&b, &other);
    assert_non_null(another);
    command_free(another);
    // Who leads no more forgets it.
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_FOLLOW});
    state_result_fini(&result);
    command_free(command);
    bench_close(&b);
}

static void the_reason_of_a_kick_stands_in_place_of_its_text(void **state)
{
    struct bench b;
    uint64_t tag = 0;

    (void)state;
    bench_open(&b);
    gateway_comes(&b, 4, "g2", LINK_PROTOCOL_OPERATOR_REQUESTS);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    ask_kick_for(&b, 9, "g2", "ticket 4711");
    Rh__Command *command = proposed(&b, &tag);
    assert_non_null(command);
    assert_string_equal(command->reason, "ticket 4711");
    command_free(command);
    bench_close(&b);
}

/* ---- values ---- */

static void node_registers(struct bench *b, uint64_t link)
{
    struct state_result result = {0};
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandRegister body = RH__COMMAND_REGISTER__INIT;

    body.name = proto_text("n1");
    body.address = proto_text("host:1");
    body.boot_id = body.data_uuid = proto_bytes(bytes_of("0123456789abcdef", 16));
    body.nonce = 1;
    body.weight = 1;
    command.body_case = RH__COMMAND__BODY_REGISTER_;
    command.register_ = &body;
    state_apply(&b->state, &command, &result);
    assert_true(result.accepted);
    state_result_fini(&result);
    node_comes(b, link, "n1", LINK_PROTOCOL_VALUES);
}

static void ask_values(struct bench *b, uint64_t tag, const struct values_ask *ask)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    struct buffer bytes = {0};

    values_ask_put(&bytes, ask);
    actor.id = proto_bytes(bytes_of("ann", 3));
    what.actor = &actor;
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES;
    what.values = proto_bytes(buffer_bytes(&bytes));
    what.by = proto_text("op@desk");
    what.reason = proto_text("a gift");
    admin.tag = tag;
    admin.what_case = RH__ADMIN__WHAT_OPERATOR_REQUEST;
    admin.operator_request = &what;
    ask_leader(b, &admin);
    buffer_fini(&bytes);
}

/* Whether the operator hears what that link answers under the name. */
static bool is_relayed(struct bench *b, uint64_t link, const char *name)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__OperatorRequestAnswer answer = RH__OPERATOR_REQUEST_ANSWER__INIT;

    answer.tag = 9;
    answer.route = CLI_LINK;
    answer.gateway = proto_text(name);
    answer.body = proto_bytes(bytes_of("values", 6));
    control.body_case = RH__CONTROL__BODY_OPERATOR_REQUEST_ANSWER;
    control.operator_request_answer = &answer;
    bench_step(
        b,
        (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = link, .message = &control});
    Rh__Control *said = sent_to(b, CLI_LINK, RH__CONTROL__BODY_ADMIN_REPLY);
    const bool heard = said != NULL;
    control_free(said);
    return heard;
}

static void expect_request(const struct bench *b, uint64_t link)
{
    Rh__Control *said = sent_to(b, link, RH__CONTROL__BODY_OPERATOR_REQUEST);

    assert_non_null(said);
    assert_int_equal(said->operator_request->route, CLI_LINK);
    control_free(said);
}

static void values_are_read_at_their_owner_who_alone_answers(void **state)
{
    const struct values_ask read = {.verb = VALUES_READ};
    struct bench b;
    uint64_t tag = 0;

    (void)state;
    bench_open(&b);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    ask_values(&b, 9, &read);
    expect_error(&b, "the actor has no owner that is linked to the leader (`ringhold where`)");
    node_registers(&b, 5);
    node_comes(&b, 6, "n2", LINK_PROTOCOL_VALUES);
    ask_values(&b, 9, &read);
    assert_null(proposed(&b, &tag)); // who only reads leaves nothing in the history
    expect_request(&b, 5);
    assert_false(is_relayed(&b, 6, "n2"));
    assert_false(is_relayed(&b, GATEWAY_LINK, "g1"));
    assert_true(is_relayed(&b, 5, "n1"));
    bench_close(&b);
}

static void a_change_of_values_stands_in_the_history_before_it_leaves(void **state)
{
    struct values_ask change = {.verb = VALUES_CHANGE, .batch = 1, .page = bytes_of("row", 3)};
    struct state_result result = {0};
    struct bench b;
    uint64_t tag = 0;

    (void)state;
    bench_open(&b);
    bench_step(&b, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    node_registers(&b, 5);
    ask_values(&b, 9, &change); // a page; nothing is changed by it
    assert_null(proposed(&b, &tag));
    expect_request(&b, 5);
    change.last = true;
    change.at = 3;
    ask_values(&b, 10, &change);
    assert_null(sent_to(&b, 5, RH__CONTROL__BODY_OPERATOR_REQUEST));
    Rh__Command *command = proposed(&b, &tag);
    assert_non_null(command);
    assert_string_equal(command->note->action, "values");
    assert_string_equal(command->note->subject, "actor 0/ann");
    assert_string_equal(command->note->what, "told to change its values, 6 bytes");
    assert_string_equal(command->by, "op@desk");
    assert_string_equal(command->reason, "a gift");
    state_apply(&b.state, command, &result);
    bench_step(&b,
               (struct coordinator_event){.type = COORDINATOR_APPLIED,
                                          .tag = tag,
                                          .index = 6,
                                          .command = command,
                                          .result = &result});
    expect_request(&b, 5);
    state_result_fini(&result);
    command_free(command);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_has_who_is_wanted),
        cmocka_unit_test(a_page_costs_the_same_with_a_million),
        cmocka_unit_test(the_leader_has_a_node_tell_who_lives_there),
        cmocka_unit_test(a_ring_that_contradicts_itself_is_told_of),
        cmocka_unit_test(views_and_states_differ_in_any_field),
        cmocka_unit_test(a_gateway_tells_its_ring_and_fetches_when_told),
        cmocka_unit_test(a_node_tells_what_lives_where),
        cmocka_unit_test(a_node_does_as_it_is_told),
        cmocka_unit_test(a_follower_answers_and_passes_on),
        cmocka_unit_test(a_repair_is_recorded_and_then_done),
        cmocka_unit_test(who_only_registers_is_not_ended),
        cmocka_unit_test(no_outcome_is_told_of_a_number_that_is_not_drawn),
        cmocka_unit_test(an_older_gateway_is_not_asked_what_it_does_not_know),
        cmocka_unit_test(a_kick_stands_in_the_history_before_it_leaves),
        cmocka_unit_test(the_reason_of_a_kick_stands_in_place_of_its_text),
        cmocka_unit_test(values_are_read_at_their_owner_who_alone_answers),
        cmocka_unit_test(a_change_of_values_stands_in_the_history_before_it_leaves),
        cmocka_unit_test(the_threads_of_a_gateway_are_one_in_the_overview),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
