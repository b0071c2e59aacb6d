/* SPDX-License-Identifier: Apache-2.0
 *
 * A node with more actors than it may have, each of which a client is bound to: what it costs to
 * ask them in vain.
 */
#include "tests/test.h"

#include "bench/node_mill.h"
#include "node/host/inside.h"

enum { FRAME = 600, TICK_US = 10000, ASKED_MAX = 16 };

/* How many are asked to retire in one tick, none of whom was since `begin_ms`. They answer that
 * they are in use. */
static size_t asked(struct mill *m, uint32_t begin_ms)
{
    struct host_event tick = {.type = HOST_TICK, .now_us = m->node.now_us += TICK_US};
    struct host_effects *out = &m->node.effects;
    struct actor *who[ASKED_MAX];
    size_t count = 0;

    host_step(m->node.host, &tick, out);
    for (size_t i = 0; i < out->count; i++) {
        const struct host_effect *e = &out->item[i];

        if (e->type == HOST_SUBMIT && e->submission.verb == VERB_RETIRE) {
            assert_true(count < ASKED_MAX);
            assert_true(e->actor->used_ms < begin_ms);
            who[count++] = e->actor;
        }
    }
    host_effects_clear(out);
    for (size_t i = 0; i < count; i++) {
        struct host_event busy = {.type = HOST_COMPLETED,
                                  .now_us = m->node.now_us,
                                  .actor = who[i],
                                  .completion = {.verb = VERB_RETIRE, .error = ERR_BUSY}};

        host_step(m->node.host, &busy, out);
        assert_int_equal(out->count, 0);
    }
    return count;
}

/* However many there are, a tick asks so many, and nobody twice before it asked all. */
static void those_with_a_client_are_asked_in_turn(size_t actors)
{
    struct mill m;

    mill_open(&m, actors, 1);
    mill_warm(&m, MILL_KV, FRAME);
    m.node.host->config.actors_max = 1;
    m.node.now_us += TICK_US;
    const uint32_t begin_ms = (uint32_t)(m.node.now_us / 1000);
    for (size_t left = actors; left > ASKED_MAX; left -= ASKED_MAX) {
        assert_int_equal(asked(&m, begin_ms), ASKED_MAX);
    }
    mill_close(&m);
}

static void however_many_have_a_client_a_tick_asks_a_few(void **state)
{
    (void)state;
    // Odd, so that each gets a SET, which it keeps.
    those_with_a_client_are_asked_in_turn(601);
    those_with_a_client_are_asked_in_turn(60001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_many_have_a_client_a_tick_asks_a_few),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
