/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of txn/participant.h: each verdict on a PREPARE.
 */
#include "txn/participant.h"

#include "tests/test.h"

static struct participant book;

static int start(void **state)
{
    (void)state;
    participant_init(&book);
    participant_reset(&book, 10);
    return 0;
}

static int end(void **state)
{
    (void)state;
    participant_check(&book);
    participant_fini(&book);
    return 0;
}

struct cells {
    uint32_t from;
    uint32_t to;
};

/* A PREPARE of `txn` on base 5 for these cells, given away. */
static struct prepare asked(uint64_t txn, struct cells cells)
{
    Rh__Prepare message = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *arcs[] = {&arc};
    struct prepare p;

    message.txn = txn;
    message.base_version = 5;
    message.n_arcs = 1;
    message.arcs = arcs;
    arc.from = cells.from;
    arc.to = cells.to;
    arc.out = true;
    arc.peer = 2;
    assert_true(prepare_decode(&p, &message, 1000));
    return p;
}

static enum part_verdict verdict(uint64_t txn, struct cells cells, uint64_t version)
{
    struct prepare p = asked(txn, cells);
    const enum part_verdict v = participant_examine(&book, &p, version);

    prepare_fini(&p);
    return v;
}

static struct part *begin(uint64_t txn, struct cells cells)
{
    struct prepare p = asked(txn, cells);

    assert_int_equal(participant_examine(&book, &p, 5), VERDICT_BEGIN);
    return participant_begin(&book, &p);
}

static void a_number_is_taken_once(void **state)
{
    (void)state;
    struct part *part = begin(20, (struct cells){0, 10});
    assert_int_equal(part->state, PART_PERSIST);
    assert_int_equal(verdict(20, (struct cells){0, 10}, 5), VERDICT_AGAIN);
    participant_end(&book, part);
    assert_int_equal(verdict(20, (struct cells){0, 10}, 5), VERDICT_STALE);
    assert_int_equal(verdict(10, (struct cells){0, 10}, 5), VERDICT_STALE);
    assert_int_equal(verdict(19, (struct cells){0, 10}, 5), VERDICT_BEGIN);
}

static void a_base_that_is_not_known_yet_is_fetched(void **state)
{
    (void)state;
    assert_int_equal(verdict(20, (struct cells){0, 10}, 4), VERDICT_FETCH);
    assert_int_equal(verdict(20, (struct cells){0, 10}, 5), VERDICT_BEGIN);
}

static void transactions_of_other_cells_run_side_by_side(void **state)
{
    (void)state;
    struct part *a = begin(20, (struct cells){0, 10});
    struct part *b = begin(21, (struct cells){10, 20});
    struct prepare c = asked(22, (struct cells){9, 11});

    assert_ptr_equal(participant_overlapping(&book, &c, NULL), a);
    assert_ptr_equal(participant_overlapping(&book, &c, a), b);
    prepare_fini(&c);
    assert_ptr_equal(participant_find(&book, 21), b);
}

static void older_than_what_has_its_cells_is_over(void **state)
{
    (void)state;
    (void)begin(30, (struct cells){0, 10});
    assert_int_equal(verdict(29, (struct cells){9, 12}, 5), VERDICT_STALE);
    assert_int_equal(verdict(29, (struct cells){10, 12}, 5), VERDICT_BEGIN);
    assert_int_equal(verdict(31, (struct cells){9, 12}, 5), VERDICT_BEGIN);
}

static void a_full_book_refuses(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PARTICIPANT_PARTS_MAX; i++) {
        (void)begin(20 + i, (struct cells){i, i + 1});
    }
    assert_int_equal(verdict(500, (struct cells){500, 501}, 5), VERDICT_REFUSE);
    struct prepare p = asked(500, (struct cells){0, 1});
    p.supersedes = 20;
    assert_int_equal(participant_examine(&book, &p, 5), VERDICT_BEGIN);
    prepare_fini(&p);
}

static void forgotten_numbers_stay_taken(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * PARTICIPANT_SEEN_MAX; i++) {
        participant_end(&book, begin(20 + i, (struct cells){0, 1}));
        participant_check(&book);
    }
    for (uint32_t i = 0; i < 3 * PARTICIPANT_SEEN_MAX; i++) {
        assert_int_equal(verdict(20 + i, (struct cells){0, 1}, 5), VERDICT_STALE);
    }
}

static void senseless_arcs_are_refused(void **state)
{
    static const struct {
        uint32_t from, to, peer;
    } arcs[] = {{5, 5, 1}, {6, 5, 1}, {0, 1001, 1}, {0, 1, 70000}};
    Rh__Prepare message = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *two[] = {&arc, &arc};
    struct prepare p;

    (void)state;
    assert_false(prepare_decode(&p, &message, 1000));
    message.n_arcs = 1;
    message.arcs = two;
    for (size_t i = 0; i < sizeof arcs / sizeof arcs[0]; i++) {
        arc.from = arcs[i].from;
        arc.to = arcs[i].to;
        arc.peer = arcs[i].peer;
        assert_false(prepare_decode(&p, &message, 1000));
    }
    arc = (Rh__Arc)RH__ARC__INIT;
    arc.to = 1;
    message.n_arcs = 2; // the same cells twice
    message.txn = 40;
    assert_true(prepare_decode(&p, &message, 1000));
    assert_int_equal(participant_examine(&book, &p, 5), VERDICT_REFUSE);
    prepare_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_number_is_taken_once, start, end),
        cmocka_unit_test_setup_teardown(a_base_that_is_not_known_yet_is_fetched, start, end),
        cmocka_unit_test_setup_teardown(transactions_of_other_cells_run_side_by_side, start, end),
        cmocka_unit_test_setup_teardown(older_than_what_has_its_cells_is_over, start, end),
        cmocka_unit_test_setup_teardown(a_full_book_refuses, start, end),
        cmocka_unit_test_setup_teardown(forgotten_numbers_stay_taken, start, end),
        cmocka_unit_test_setup_teardown(senseless_arcs_are_refused, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
