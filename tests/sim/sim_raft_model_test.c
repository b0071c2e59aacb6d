/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/raft/model.h.
 */
#include "sim/raft/model.h"
#include "tests/test.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { MEMBERS = 3, TAGS = 2000 };

struct bench {
    struct world world;
    struct raft_model raft;
    struct process process[MEMBERS];
    bool leading[MEMBERS];
    unsigned done[TAGS];
    bool ok[TAGS];
    uint64_t told[TAGS]; /* applied at its proposer with the tag */
    uint64_t next_tag;
};

static void on_applied(void *context, unsigned replica, uint64_t tag, const Rh__Command *command,
                       const struct state_result *result)
{
    struct bench *b = context;

    (void)replica;
    (void)command;
    (void)result;
    b->told[tag]++;
}

static void on_role(void *context, unsigned replica, bool leading, uint64_t term, uint64_t leader)
{
    struct bench *b = context;

    (void)term;
    (void)leader;
    b->leading[replica] = leading;
    if (leading) {
        // The barrier of its term: it knows all that was committed before.
        assert_int_equal(b->raft.member[replica].state.number, b->raft.truth.number);
    }
}

static void on_done(void *context, unsigned replica, uint64_t tag, enum err error)
{
    struct bench *b = context;

    (void)replica;
    b->done[tag]++;
    b->ok[tag] = error == ERR_OK;
}

static void on_committed(void *context, const Rh__Command *command,
                         const struct state_result *result)
{
    (void)context;
    (void)command;
    (void)result;
}

static void start(struct bench *b, uint64_t seed)
{
    const struct raft_model_events events = {b, on_applied, on_role, on_done, on_committed};

    memset(b, 0, sizeof *b);
    world_init(&b->world, seed);
    raft_model_init(&b->raft, &b->world, &events);
    b->raft.faults = (struct raft_model_faults){
        .commit_max_us = 20000, .lag_max_us = 100000, .stale_max_us = 1000000};
    for (unsigned i = 0; i < MEMBERS; i++) {
        b->process[i] = (struct process){.role = ROLE_COORDINATOR, .number = i, .up = true};
        (void)snprintf(b->process[i].name, sizeof b->process[i].name, "c%u", i + 1);
        raft_model_add(&b->raft, &b->process[i]);
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        raft_model_start(&b->raft, i);
    }
}

static void stop(struct bench *b)
{
    raft_model_fini(&b->raft);
    world_fini(&b->world);
}

static void propose(struct bench *b, unsigned replica)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandInit init = RH__COMMAND_INIT__INIT;
    Rh__CommandVoter voter = RH__COMMAND_VOTER__INIT;
    struct buffer bytes = {0};

    init.cluster = proto_text("sim");
    init.grid = RING_GRID_MIN;
    init.vnodes_per_weight = 4;
    init.fleet_low = 1;
    init.key0 = b->next_tag + 1;
    init.key1 = 2;
    voter.id = 1;
    voter.identity = b->next_tag + 1;
    if (b->next_tag % 2 == 0) {
        command.body_case = RH__COMMAND__BODY_INIT;
        command.init = &init;
    } else {
        command.body_case = RH__COMMAND__BODY_VOTER;
        command.voter = &voter;
    }
    command_put(&bytes, &command);
    raft_model_propose(&b->raft, replica, ++b->next_tag, buffer_bytes(&bytes));
    buffer_fini(&bytes);
}

static void every_proposal_ends_once_whatever_falls(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bench b;
        unsigned ok = 0;

        start(&b, seed);
        for (unsigned i = 0; i < 1500; i++) {
            world_run_until(&b.world, b.world.now_us + 20000);
            propose(&b, i % MEMBERS);
            if (i % 40 == 39) {
                raft_model_fall(&b.raft);
            }
        }
        world_run_until(&b.world, b.world.now_us + 20000000);
        assert_null(b.world.checker);
        for (uint64_t tag = 1; tag <= b.next_tag; tag++) {
            assert_int_equal(b.done[tag], 1);
            // What was called done was applied where it was proposed, and only then.
            assert_int_equal(b.told[tag], b.ok[tag] ? 1 : 0);
            ok += b.ok[tag];
        }
        assert_true(ok > 100 && ok < 1500);
        for (unsigned i = 1; i < MEMBERS; i++) {
            assert_int_equal(b.raft.member[i].applied, b.raft.member[0].applied);
            assert_int_equal(b.raft.member[i].state.voter[0].identity,
                             b.raft.truth.voter[0].identity);
        }
        stop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_proposal_ends_once_whatever_falls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
