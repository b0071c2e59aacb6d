/* SPDX-License-Identifier: Apache-2.0
 *
 * Each guard rule on one message. That libraft behaves behind them is shown by
 * sim/raft_sim.c.
 */
#include "raft/guard.h"
#include "raft/heap.h"

#include <string.h>

#include "tests/test.h"

enum { TERM = 7 };

static struct guard guard;
static struct raft raft;

static int prepare(void **state)
{
    static struct heap heap;

    (void)state;
    heap_init(&heap);
    guard = (struct guard){0};
    memset(&raft, 0, sizeof raft);
    raft.current_term = TERM;
    raft.state = RAFT_FOLLOWER;
    return 0;
}

static struct raft_message result_of(raft_term term, raft_index rejected, raft_index last)
{
    struct raft_message m = {.type = RAFT_IO_APPEND_ENTRIES_RESULT, .server_id = 2};

    m.append_entries_result = (struct raft_append_entries_result){
        .term = term, .rejected = rejected, .last_log_index = last};
    return m;
}

/* From a leader of TERM: entries of 8 bytes, at prev + 1 and on. */
static struct raft_message append_of(raft_index prev, unsigned count)
{
    struct raft_message m = {.type = RAFT_IO_APPEND_ENTRIES, .server_id = 2};
    struct raft_append_entries *a = &m.append_entries;

    a->term = TERM;
    a->prev_log_index = prev;
    a->prev_log_term = 1;
    a->leader_commit = 1000;
    a->n_entries = count;
    if (count > 0) {
        uint8_t *batch = raft_malloc(8 * (size_t)count);
        a->entries = raft_calloc(count, sizeof *a->entries);
        for (unsigned i = 0; i < count; i++) {
            a->entries[i].term = prev + 1 + i; // tells them apart
            a->entries[i].buf = (struct raft_buffer){.base = batch + 8 * (size_t)i, .len = 8};
            a->entries[i].batch = batch;
        }
    }
    return m;
}

static void free_entries(struct raft_message *m)
{
    if (m->append_entries.n_entries > 0) {
        raft_free(m->append_entries.entries[0].batch);
        raft_free(m->append_entries.entries);
    }
}

static void g1_a_leader_hears_no_success_before_its_own_entry_is_stored(void **state)
{
    struct raft_message m = result_of(TERM, 0, 5);

    (void)state;
    raft.state = RAFT_LEADER;
    guard_stored(&guard, TERM - 1);
    assert_true(guard_before(&guard, &raft, &m));
    assert_int_equal(m.append_entries_result.last_log_index, 0);
    guard_stored(&guard, TERM);
    m = result_of(TERM, 0, 5);
    assert_true(guard_before(&guard, &raft, &m));
    assert_int_equal(m.append_entries_result.last_log_index, 5);
}

static void g1_a_rejection_passes(void **state)
{
    struct raft_message m = result_of(TERM, 4, 3);

    (void)state;
    raft.state = RAFT_LEADER;
    assert_true(guard_before(&guard, &raft, &m));
    assert_int_equal(m.append_entries_result.last_log_index, 3);
}

static void g2_no_more_is_confirmed_or_committed_than_was_shown(void **state)
{
    struct raft_message in = append_of(10, 0);
    struct raft_message out = result_of(TERM, 0, 15);

    (void)state;
    assert_true(guard_before(&guard, &raft, &in));
    assert_int_equal(in.append_entries.leader_commit, 10);
    guard_send(&guard, &out);
    assert_int_equal(out.append_entries_result.last_log_index, 10);
    guard_after(&guard, &raft);
    // Later too, when the disk is done; and not for a leader of another term.
    out = result_of(TERM, 0, 15);
    guard_send(&guard, &out);
    assert_int_equal(out.append_entries_result.last_log_index, 10);
    out = result_of(TERM + 1, 0, 15);
    guard_send(&guard, &out);
    assert_int_equal(out.append_entries_result.last_log_index, 0);
}

static void g2_what_was_refused_was_not_shown(void **state)
{
    struct raft_message in = append_of(10, 0);
    struct raft_message refusal = result_of(TERM, 10, 8);
    struct raft_message out = result_of(TERM, 0, 15);

    (void)state;
    assert_true(guard_before(&guard, &raft, &in));
    guard_send(&guard, &refusal);
    guard_after(&guard, &raft);
    guard_send(&guard, &out);
    assert_int_equal(out.append_entries_result.last_log_index, 0);
}

static void g3_entries_below_the_snapshot_are_cut_off(void **state)
{
    struct raft_message m = append_of(10, 5);

    (void)state;
    raft.log.snapshot.last_index = 13;
    raft.log.snapshot.last_term = 6;
    assert_true(guard_before(&guard, &raft, &m));
    assert_int_equal(m.append_entries.prev_log_index, 13);
    assert_int_equal(m.append_entries.prev_log_term, 6);
    assert_int_equal(m.append_entries.n_entries, 2);
    assert_int_equal(m.append_entries.entries[0].term, 14);
    free_entries(&m);
}

static void g3_what_is_all_below_becomes_a_heartbeat(void **state)
{
    struct raft_message m = append_of(10, 3);

    (void)state;
    raft.log.snapshot.last_index = 20;
    raft.log.snapshot.last_term = 6;
    assert_true(guard_before(&guard, &raft, &m));
    assert_int_equal(m.append_entries.prev_log_index, 20);
    assert_int_equal(m.append_entries.n_entries, 0);
    assert_null(m.append_entries.entries);
    assert_int_equal(m.append_entries.leader_commit, 20);
}

static void g3_an_old_leaders_message_is_left_to_libraft(void **state)
{
    struct raft_message m = append_of(10, 0);

    (void)state;
    m.append_entries.term = TERM - 1;
    raft.log.snapshot.last_index = 20;
    assert_true(guard_before(&guard, &raft, &m));
    assert_int_equal(m.append_entries.prev_log_index, 10);
}

static void g6_a_second_vote_in_a_term_is_refused(void **state)
{
    struct raft_message m = {.type = RAFT_IO_REQUEST_VOTE, .server_id = 3};

    (void)state;
    raft.voted_for = 2;
    m.request_vote = (struct raft_request_vote){.term = TERM, .candidate_id = 3};
    assert_false(guard_before(&guard, &raft, &m));
    m.request_vote.candidate_id = 2; // the same again is no second one
    assert_true(guard_before(&guard, &raft, &m));
    m.request_vote = (struct raft_request_vote){.term = TERM + 1, .candidate_id = 3};
    assert_true(guard_before(&guard, &raft, &m));
    m.request_vote = (struct raft_request_vote){.term = TERM, .candidate_id = 3, .pre_vote = true};
    assert_true(guard_before(&guard, &raft, &m));
}

static void g7_a_second_leader_of_my_term_is_not_heard(void **state)
{
    struct raft_message m = append_of(10, 2);

    (void)state;
    raft.state = RAFT_LEADER;
    assert_false(guard_before(&guard, &raft, &m)); // freed with its entries
    m = append_of(10, 0);
    m.append_entries.term = TERM + 1;
    assert_true(guard_before(&guard, &raft, &m));
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(g1_a_leader_hears_no_success_before_its_own_entry_is_stored,
                               prepare),
        cmocka_unit_test_setup(g1_a_rejection_passes, prepare),
        cmocka_unit_test_setup(g2_no_more_is_confirmed_or_committed_than_was_shown, prepare),
        cmocka_unit_test_setup(g2_what_was_refused_was_not_shown, prepare),
        cmocka_unit_test_setup(g3_entries_below_the_snapshot_are_cut_off, prepare),
        cmocka_unit_test_setup(g3_what_is_all_below_becomes_a_heartbeat, prepare),
        cmocka_unit_test_setup(g3_an_old_leaders_message_is_left_to_libraft, prepare),
        cmocka_unit_test_setup(g6_a_second_vote_in_a_term_is_refused, prepare),
        cmocka_unit_test_setup(g7_a_second_leader_of_my_term_is_not_heard, prepare),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
