/* SPDX-License-Identifier: Apache-2.0
 *
 * state.db: what it shows, and that a snapshot brings back all of the state.
 */
#include "storage/state/state_sqlite.h"

#include "base/mem.h"
#include "base/stamp.h"
#include "txn/state/digest.h"
#include "txn/state/suspect.h"
#include "wire/control.h"

#include "wire/versions.h"

#include "tests/command.h"

#include "tests/test.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/ringhold-state-XXXXXX";
static char path[64];
static struct state s;
static struct state_db *db;
static uint64_t entry;

/* Apply and mirror one command as a Raft entry of its own; returns what was drawn. */
static uint64_t time_us; /* of the next command */

static uint64_t give(Rh__Command__BodyCase body, void *message)
{
    Rh__Command command = RH__COMMAND__INIT;
    struct state_result result;

    command.time_us = time_us;
    command.proposer = 1;
    command.body_case = body;
    command.init = message; // any member of the union
    state_apply(&s, &command, &result);
    state_db_apply(db, &s, &command, &result);
    state_db_commit(db, ++entry);
    return stamp_of(result);
}

static uint64_t move(uint32_t vnode, uint16_t to)
{
    Rh__CommandBegin in = RH__COMMAND_BEGIN__INIT;
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};

    op.kind = RING_MOVE;
    op.vnode = vnode;
    op.from = ring_find(&s.view.ring, vnode)->owner;
    op.to = to;
    in.ops = ops;
    in.n_ops = 1;
    in.base_version = s.view.ring.version;
    in.why = proto_text("test");
    return give(RH__COMMAND__BODY_BEGIN, &in);
}

static void decide(uint64_t txn)
{
    const struct state_txn *t = state_txn(&s, txn);
    Rh__CommandCommit in = RH__COMMAND_COMMIT__INIT;
    uint64_t voted[4];

    for (size_t i = 0; i < t->part_count; i++) {
        voted[i] = t->parts[i].incarnation;
    }
    in.txn = txn;
    in.voted = voted;
    in.n_voted = t->part_count;
    assert_int_not_equal(give(RH__COMMAND__BODY_COMMIT, &in), 0);
}

static int setup(void **state)
{
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;
    Rh__CommandRegister n1 = registration("n1", 11, 0);
    Rh__CommandRegister n2 = registration("n2", 12, 0);
    Rh__CommandVoter voter = RH__COMMAND_VOTER__INIT;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/state.db", folder);
    assert_int_equal(state_db_open(&db, path), ERR_OK);
    state_init(&s);
    entry = 0;
    time_us = 1000;
    in.cluster = proto_text("test");
    in.fleet_high = UINT64_MAX;
    in.fleet_low = UINT64_MAX - 1;
    in.key0 = UINT64_MAX - 1;
    in.key1 = 2;
    in.grid = RING_GRID_MIN;
    in.vnodes_per_weight = TEST_VNODES;
    in.lease_us = 3000000;
    in.era = 3;
    (void)give(RH__COMMAND__BODY_INIT, &in);
    voter.id = 1;
    voter.identity = UINT64_MAX;
    voter.address = proto_text("127.0.0.1:1");
    (void)give(RH__COMMAND__BODY_VOTER, &voter);
    assert_int_not_equal(give(RH__COMMAND__BODY_REGISTER_, &n1), 0);
    assert_int_not_equal(give(RH__COMMAND__BODY_REGISTER_, &n2), 0);
    decide(move(3, 2));
    (void)move(5, 2); // stays pending
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    state_db_close(db);
    state_fini(&s);
    return 0;
}

/* What another process reads while the coordinator runs. */
static int64_t ask(const char *sql)
{
    sqlite3 *other = NULL;
    sqlite3_stmt *stmt = NULL;

    assert_int_equal(sqlite3_open_v2(path, &other, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(other, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t answer = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(other);
    return answer;
}

static void another_process_sees_the_tables_as_of_the_last_entry(void **state)
{
    (void)state;
    assert_int_equal(ask("SELECT applied FROM cluster"), entry);
    assert_int_equal(ask("SELECT number FROM cluster"), s.number);
    assert_int_equal(ask("SELECT count(*) FROM node"), 2);
    assert_int_equal(ask("SELECT count(*) FROM vnode"), TEST_VNODES);
    assert_int_equal(ask("SELECT count(*) FROM vnode WHERE owner=2"), 1);
    assert_int_equal(ask("SELECT count(*) FROM txn WHERE state='pending'"), 1);
    assert_int_equal(ask("SELECT count(*) FROM txn WHERE state='committed'"), 1);
    assert_int_equal(ask("SELECT count(*) FROM txn_vote"), 4);
    assert_int_equal(ask("SELECT count(*) FROM event"), entry);
    assert_int_equal(ask("SELECT generation FROM vnode WHERE id=3"),
                     ring_find(&s.view.ring, 3)->generation);
}

static void a_reader_that_stays_does_not_stop_the_writer(void **state)
{
    sqlite3 *other = NULL;
    sqlite3_stmt *stmt = NULL;

    (void)state;
    assert_int_equal(sqlite3_open_v2(path, &other, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(other, "SELECT id FROM vnode", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    decide(move(6, 2));
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(other);
    assert_int_equal(ask("SELECT owner FROM vnode WHERE id=6"), 2);
}

static void expect_same_state(const struct state *a, const struct state *b)
{
    assert_int_equal(a->number, b->number);
    assert_true(fleet_id_same(a->view.fleet, b->view.fleet));
    assert_string_equal(a->cluster, b->cluster);
    assert_int_equal(a->vnodes_per_weight, b->vnodes_per_weight);
    assert_int_equal(a->lease_us, 3000000);
    assert_int_equal(b->lease_us, 3000000);
    assert_memory_equal(&a->view.key, &b->view.key, sizeof a->view.key);
    assert_int_equal(a->view.ring.version, b->view.ring.version);
    assert_memory_equal(a->view.ring.digest, b->view.ring.digest, sizeof a->view.ring.digest);
    assert_int_equal(a->node_count, b->node_count);
    assert_memory_equal(a->node, b->node, a->node_count * sizeof *a->node);
    assert_int_equal(a->view.member_count, b->view.member_count);
    assert_int_equal(a->txn_count, b->txn_count);
    for (size_t i = 0; i < a->txn_count; i++) {
        assert_int_equal(a->txn[i].number, b->txn[i].number);
        assert_int_equal(a->txn[i].state, b->txn[i].state);
        assert_int_equal(a->txn[i].version, b->txn[i].version);
        assert_int_equal(a->txn[i].base, b->txn[i].base);
        assert_int_equal(a->txn[i].op_count, b->txn[i].op_count);
        assert_int_equal(a->txn[i].part_count, b->txn[i].part_count);
        assert_string_equal(a->txn[i].why, b->txn[i].why);
    }
    assert_int_equal(a->voter_count, b->voter_count);
    assert_int_equal(a->voter[0].identity, b->voter[0].identity);
    assert_int_equal(state_digest(a), state_digest(b));
}

static void a_snapshot_brings_back_the_whole_state(void **state)
{
    struct buffer snapshot = {0};
    struct state_db *other = NULL;
    struct state copy;
    char other_path[80];
    Rh__CommandDesire wish = RH__COMMAND_DESIRE__INIT;

    (void)state;
    wish.name = proto_text("n1");
    wish.wish = UINT64_MAX;
    wish.seen = s.number;
    assert_int_not_equal(give(RH__COMMAND__BODY_DESIRE, &wish), 0);
    (void)snprintf(other_path, sizeof other_path, "%s/other.db", folder);
    state_db_snapshot(db, &s, &snapshot);
    assert_int_equal(state_db_open(&other, other_path), ERR_OK);
    state_init(&copy);
    assert_true(state_db_restore(other, buffer_bytes(&snapshot), &copy));
    state_check(&copy);
    expect_same_state(&copy, &s);
    assert_int_equal(state_db_index(other), entry);
    // And it goes on like the original: the next commands draw the same and do the same.
    const uint64_t pending = s.txn[s.txn_count - 1].number;
    struct state_result a = commit(&copy, pending);
    decide(pending);
    assert_true(a.accepted);
    state_result_fini(&a);
    expect_same_state(&copy, &s);
    state_db_close(other);
    state_fini(&copy);
    buffer_fini(&snapshot);
}

/* n2 comes back: `id` ran when its process died; NULL: nothing did. */
static void strike(uint64_t nonce, const char *id)
{
    const uint64_t died = state_node_named(&s, "n2")->incarnation;
    Rh__CommandRegister in = registration("n2", nonce, died);
    Rh__Actor actor = RH__ACTOR__INIT;
    Rh__Actor *suspects[] = {&actor};

    actor.kind = 3;
    in.died = died;
    in.suspects = suspects;
    if (id != NULL) {
        actor.id = proto_bytes(bytes_of(id, strlen(id)));
        in.n_suspects = 1;
    }
    assert_int_not_equal(give(RH__COMMAND__BODY_REGISTER_, &in), 0);
}

static void a_snapshot_brings_back_strikes_and_quarantine(void **state)
{
    struct buffer snapshot = {0};
    struct state copy;

    (void)state;
    strike(21, "boss 7");
    strike(22, "boss 7");
    strike(23, "ann");
    strike(24, "boss 7");
    assert_int_equal(s.view.quarantine.count, 1);
    assert_int_equal(ask("SELECT count(*) FROM suspect"), 2);
    assert_int_equal(ask("SELECT strikes FROM suspect WHERE quarantined=1"), 3);
    assert_int_equal(ask("SELECT count(*) FROM event WHERE why='its process died while it ran "
                         "3/boss%207'"),
                     3);
    state_db_snapshot(db, &s, &snapshot);
    state_init(&copy);
    assert_true(state_db_restore(db, buffer_bytes(&snapshot), &copy));
    state_check(&copy);
    expect_same_state(&copy, &s);
    state_fini(&copy);
    buffer_fini(&snapshot);
}

static void strikes_that_are_forgotten_leave_the_table_too(void **state)
{
    (void)state;
    strike(21, "boss 7");
    assert_int_equal(ask("SELECT count(*) FROM suspect"), 1);
    time_us += SUSPECT_WINDOW_US + 1;
    strike(22, NULL);
    assert_int_equal(s.suspect_count, 0);
    assert_int_equal(ask("SELECT count(*) FROM suspect"), 0);
}

static void a_snapshot_of_a_newer_format_is_refused(void **state)
{
    Rh__CommandFormat in = RH__COMMAND_FORMAT__INIT;
    struct buffer snapshot = {0};
    struct state before = s;

    (void)state;
    in.format = FLEET_FORMAT + 1;
    (void)give(RH__COMMAND__BODY_FORMAT, &in);
    assert_int_equal(s.format, FLEET_FORMAT + 1);
    state_db_snapshot(db, &s, &snapshot);
    assert_false(state_db_restore(db, buffer_bytes(&snapshot), &s));
    assert_ptr_equal(s.node, before.node); // as it was
    buffer_fini(&snapshot);
}

static void a_damaged_snapshot_changes_nothing(void **state)
{
    struct buffer snapshot = {0};
    const uint64_t number = s.number;

    (void)state;
    state_db_snapshot(db, &s, &snapshot);
    for (size_t size = 0; size < snapshot.size; size += 509) {
        assert_false(state_db_restore(db, bytes_of(snapshot.data, size), &s));
    }
    for (size_t at = 0; at < snapshot.size; at += 251) {
        if (at >= 28 && at < 64) {
            continue; // zeros that mean nothing
        }
        snapshot.data[at] ^= 1;
        assert_false(state_db_restore(db, buffer_bytes(&snapshot), &s));
        snapshot.data[at] ^= 1;
    }
    assert_int_equal(s.number, number);
    assert_true(state_db_restore(db, buffer_bytes(&snapshot), &s));
    assert_int_equal(ask("SELECT count(*) FROM vnode"), TEST_VNODES);
    buffer_fini(&snapshot);
}

static void the_history_says_who_wanted_it_and_why(void **state)
{
    const uint64_t txn = move(1, 2);
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandAbort in = RH__COMMAND_ABORT__INIT;
    Rh__AdminReply *reply = mem_new(1, sizeof *reply);
    struct state_result result;
    char subject[64];

    (void)state;
    *reply = (Rh__AdminReply)RH__ADMIN_REPLY__INIT;
    in.txn = txn;
    in.why = proto_text("aborted by op@desk");
    command.by = proto_text("op@desk");
    command.reason = proto_text("told to");
    command.body_case = RH__COMMAND__BODY_ABORT;
    command.abort = &in;
    for (int i = 0; i < 2; i++) { // once, and once more for nothing
        state_apply(&s, &command, &result);
        state_db_apply(db, &s, &command, &result);
        state_db_commit(db, ++entry);
        state_result_fini(&result);
    }
    state_db_events(db, 3, reply);
    (void)snprintf(subject, sizeof subject, "txn %s", STAMP(txn));
    assert_int_equal(reply->n_events, 3);
    assert_false(reply->events[0]->accepted);
    assert_string_equal(reply->events[0]->why, "the transaction is not pending");
    assert_true(reply->events[1]->accepted);
    assert_string_equal(reply->events[1]->command, "resolve");
    assert_string_equal(reply->events[1]->subject, subject);
    assert_string_equal(reply->events[1]->by, "op@desk");
    assert_string_equal(reply->events[1]->reason, "told to");
    assert_string_equal(reply->events[2]->command, "begin");
    assert_string_equal(reply->events[2]->by, "");
    proto_free(&reply->base);
}

/* The newest event, once the command was applied. */
static void expect_event(Rh__Command *command, const char *word, const char *subject,
                         const char *why)
{
    Rh__AdminReply *reply = mem_new(1, sizeof *reply);
    struct state_result result;

    *reply = (Rh__AdminReply)RH__ADMIN_REPLY__INIT;
    state_apply(&s, command, &result);
    state_db_apply(db, &s, command, &result);
    state_db_commit(db, ++entry);
    state_result_fini(&result);
    state_db_events(db, 1, reply);
    assert_int_equal(reply->n_events, 1);
    assert_string_equal(reply->events[0]->command, word);
    assert_string_equal(reply->events[0]->subject, subject);
    assert_string_equal(reply->events[0]->why, why);
    proto_free(&reply->base);
}

static void the_history_names_what_an_operator_did(void **state)
{
    static const struct {
        uint32_t leaving;
        const char *by;
        const char *successor;
        const char *word;
        const char *why;
    } desires[] = {
        {DESIRE_DRAIN, "op", "", "drain", ""},
        {DESIRE_STAY, "op", "", "cancel", ""},
        {DESIRE_STOP, "op", "", "remove", ""},
        {DESIRE_STOP, "op", "n2", "replace", "by n2"},
        {DESIRE_STOP, "", "", "stop", ""},
        {DESIRE_KEEP, "op", "", "weight", "weight 3"},
    };
    static const char *const actions[] = {"fix", "kick", "trace", "coordinators", ""};

    (void)state;
    for (size_t i = 0; i < sizeof desires / sizeof desires[0]; i++) {
        Rh__CommandDesire in = RH__COMMAND_DESIRE__INIT;
        Rh__Command command = RH__COMMAND__INIT;

        in.name = proto_text("n1");
        in.leaving = desires[i].leaving;
        in.weight = in.leaving == DESIRE_KEEP ? 3 : 0;
        in.successor = proto_text(desires[i].successor);
        command.by = proto_text(desires[i].by);
        command.body_case = RH__COMMAND__BODY_DESIRE;
        command.desire = &in;
        expect_event(&command, desires[i].word, "node n1", desires[i].why);
    }
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        Rh__CommandNote in = RH__COMMAND_NOTE__INIT;
        Rh__Command command = RH__COMMAND__INIT;

        in.subject = proto_text("coordinators");
        in.what = proto_text("wished");
        in.action = proto_text(actions[i]);
        command.body_case = RH__COMMAND__BODY_NOTE;
        command.note = &in;
        expect_event(
            &command, actions[i][0] == '\0' ? "note" : actions[i], "coordinators", "wished");
    }
    assert_true(state_db_has_note(db, "coordinators", "wished"));
    assert_true(state_db_ends_with_note(db, "coordinators", "wished"));
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup_teardown(
            another_process_sees_the_tables_as_of_the_last_entry, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_reader_that_stays_does_not_stop_the_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_snapshot_brings_back_the_whole_state, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_snapshot_brings_back_strikes_and_quarantine, setup, teardown),
        cmocka_unit_test_setup_teardown(
            strikes_that_are_forgotten_leave_the_table_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_snapshot_of_a_newer_format_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_snapshot_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(the_history_says_who_wanted_it_and_why, setup, teardown),
        cmocka_unit_test_setup_teardown(the_history_names_what_an_operator_did, setup, teardown),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(cases, NULL, NULL);
    char command[80];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? failed : 1; // NOLINT(cert-env33-c): a fixed word and our folder
}
