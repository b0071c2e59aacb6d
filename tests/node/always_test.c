/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that is given singletons and daemons: they live without being asked,
 * and end when the set is made smaller.
 */
#include "base/mem.h"
#include "node/host/inside.h"
#include "wire/control.h"
#include "wire/frame.h"

#include <ringhold.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

enum { BOSS = 7, MAIL = 9, DAEMONS = 6 };

static const struct host_kind kinds[] = {
    {.number = 0, .name = "kv"},
    {.number = BOSS, .name = "boss", .placement = RH_PLACE_SINGLETON, .always = true},
    {.number = MAIL, .name = "mail", .placement = RH_PLACE_DAEMONS, .daemons = 6, .always = true},
};

static struct host *host;
static struct host_effects effects;
static struct view leader;
static uint64_t now_us;

static void take(const struct host_event *in)
{
    struct host_event event = *in;

    event.now_us = now_us;
    host_effects_clear(&effects);
    host_step(host, &event, &effects);
}

static void hear(Rh__Control__BodyCase body, void *message)
{
    Rh__Control c = RH__CONTROL__INIT;

    c.era = 1;
    c.body_case = body;
    c.reg_ok = message; // any member of the union
    take(&(struct host_event){.type = HOST_CONTROL, .message = &c});
}

/* The owners of the singleton's cell, and of each of the set's. */
static void give(uint16_t boss, const uint16_t mail[DAEMONS])
{
    const struct ring_segment *s = leader.ring.segment;
    struct ring_op moves[1 + DAEMONS];
    size_t count = 0;

    for (size_t i = 0; i <= DAEMONS; i++) {
        const uint32_t cell = i == 0 ? s[0].from : s[1].from + (uint32_t)i - 1;
        const uint16_t to = i == 0 ? boss : mail[i - 1];
        const uint16_t from = ring_hit_node(leader.ring.cell[cell]);

        if (from != to) {
            moves[count++] = (struct ring_op){.kind = RING_MOVE,
                                              .vnode = ring_hit_vnode(leader.ring.cell[cell]),
                                              .from = from,
                                              .to = to};
        }
    }
    ring_reassign(&leader.ring, moves, count, leader.ring.version + 1);
}

static void publish(void)
{
    Rh__Config whole;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;

    view_config(&leader, &whole);
    answer.config = &whole;
    answer.version = whole.version;
    hear(RH__CONTROL__BODY_CONFIG, &answer);
    view_config_fini(&whole);
}

static int setup(void **state)
{
    static const uint16_t nobody[DAEMONS] = {0};
    struct ring_segment boss = {.policy = RING_OLDEST, .kind = {BOSS}, .kind_count = 1};
    struct ring_segment mail = {.policy = RING_SPREAD,
                                .bits = RING_DAEMON_BITS,
                                .open = DAEMONS,
                                .kind = {MAIL},
                                .kind_count = 1};
    struct host_config config = host_config_default();
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config whole;

    (void)state;
    now_us = 1000000;
    view_init(&leader, RING_GRID_MIN);
    leader.key = (struct ring_key){1, 2};
    leader.era = 1;
    ring_create(&leader.ring, 4, 2, 12);
    ring_put_segment(&leader.ring, 0, &boss, 1, 13);
    ring_put_segment(&leader.ring, 1, &mail, 1, 14);
    leader.member = mem_new(2, sizeof *leader.member);
    leader.member[0] = (struct view_member){1, "n1", "h:1", 10, 1, false, "", {0}};
    leader.member[1] = (struct view_member){2, "n2", "h:2", 11, 1, false, "", {0}};
    leader.member_count = 2;
    give(0, nobody);
    (void)snprintf(config.name, sizeof config.name, "n1");
    config.nonce = 99;
    config.kinds = kinds;
    config.kind_count = sizeof kinds / sizeof kinds[0];
    host = host_new(&config);
    take(&(struct host_event){.type = HOST_COORDINATOR_UP});
    view_config(&leader, &whole);
    ok.nonce = 99;
    ok.slot = 1;
    ok.incarnation = 10;
    ok.floor = 14;
    ok.config = &whole;
    hear(RH__CONTROL__BODY_REG_OK, &ok);
    view_config_fini(&whole);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_check(host);
    host_free(host);
    host_effects_fini(&effects);
    memset(&effects, 0, sizeof effects);
    view_fini(&leader);
    return 0;
}

/* Ticks of 20 ms, each effect done at once; what was activated and retired, in order: "boss +". */
static void run(unsigned ticks, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < ticks; i++) {
        struct host_event later[16];
        size_t count = 0;

        now_us += 20000;
        take(&(struct host_event){.type = HOST_TICK});
        for (;;) {
            struct host_effect done[64];
            const size_t effect_count = effects.count < 64 ? effects.count : 64;

            memcpy(done, effects.item, effect_count * sizeof *done);
            for (size_t k = 0; k < effect_count; k++) {
                const struct host_effect *e = &done[k];

                const enum verb verb = e->submission.verb;

                if (verb != VERB_ACTIVATE && verb != VERB_RETIRE) {
                    continue;
                }
                used += (size_t)snprintf(text + used,
                                         size - used,
                                         "%.*s%s ",
                                         (int)actor_id(e->actor).size,
                                         (const char *)actor_id(e->actor).data,
                                         verb == VERB_ACTIVATE ? "+" : "-");
                later[count++] = (struct host_event){
                    .type = HOST_COMPLETED,
                    .actor = e->actor,
                    .completion = {.verb = (uint8_t)verb, .ticket = e->submission.ticket}};
            }
            if (count == 0) {
                break;
            }
            take(&later[--count]);
        }
    }
}

static void what_is_mine_lives_without_a_request(void **state)
{
    static const uint16_t mine[DAEMONS] = {1, 2, 1, 2, 1, 0};
    static const uint16_t more[DAEMONS] = {1, 1, 1, 2, 1, 0};
    char text[256];

    (void)state;
    run(60, text, sizeof text);
    assert_string_equal(text, ""); // nothing is mine
    give(1, mine);
    publish();
    run(10, text, sizeof text);
    assert_string_equal(text, "boss+ mail/0+ mail/2+ mail/4+ ");
    run(120, text, sizeof text);
    assert_string_equal(text, ""); // they live
    give(1, more);
    publish();
    run(10, text, sizeof text);
    assert_string_equal(text, "mail/1+ ");
    host_check(host);
}

static void a_smaller_set_ends_the_last_ones(void **state)
{
    static const uint16_t mine[DAEMONS] = {1, 1, 1, 1, 1, 1};
    struct ring_segment set;
    char text[256];

    (void)state;
    give(2, mine);
    publish();
    run(10, text, sizeof text);
    assert_string_equal(text, "mail/0+ mail/1+ mail/2+ mail/3+ mail/4+ mail/5+ ");
    set = leader.ring.segment[1];
    set.open = 4;
    ring_put_segment(&leader.ring, 1, &set, 0, leader.ring.version + 1);
    publish();
    run(60, text, sizeof text);
    assert_string_equal(text, "mail/4- mail/5- ");
    set.open = 5;
    ring_put_segment(&leader.ring, 1, &set, 0, leader.ring.version + 1);
    publish();
    run(60, text, sizeof text);
    assert_string_equal(text, "mail/4+ ");
}

static struct bytes id_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static void there_are_no_other_ids(void **state)
{
    static const char *const no[] = {"mail/6", "mail/1000", "mail", "post/1", "mail/01", "xmail/1"};

    (void)state;
    assert_true(always_knows(host, BOSS, id_of("boss")));
    assert_false(always_knows(host, BOSS, id_of("boss2")));
    assert_false(always_knows(host, BOSS, id_of("bos")));
    assert_true(always_knows(host, MAIL, id_of("mail/5")));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        assert_false(always_knows(host, MAIL, id_of(no[i])));
    }
    assert_true(always_knows(host, 0, id_of("anything")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_mine_lives_without_a_request, setup, teardown),
        cmocka_unit_test_setup_teardown(a_smaller_set_ends_the_last_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_no_other_ids, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
