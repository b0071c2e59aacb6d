/* SPDX-License-Identifier: Apache-2.0
 *
 * The saved answers of a durable actor: what is known of a request that is asked again, and of one
 * that was forgotten, here and when the rows are loaded elsewhere.
 */
#include "node/durable/answers.h"

#include "base/mem.h"
#include "base/prng.h"
#include "node/durable/values.h"
#include "storage/actors/changes.h"
#include "tests/test.h"

enum { ASKER = 77, OTHER = 78, AGE_US = 600000000 };

struct kept {
    struct answers answers;
    struct named_values rows; /* as the store has them */
    size_t written;           /* rows, and … */
    size_t deleted;           /* … since the last open or load */
};

static struct request_name name_of(uint64_t asker, uint64_t number)
{
    return (struct request_name){asker, number};
}

static void open_kept(struct kept *k)
{
    *k = (struct kept){0};
    answers_init(&k->answers);
    named_values_init(&k->rows);
}

static void close_kept(struct kept *k)
{
    answers_fini(&k->answers);
    named_values_fini(&k->rows);
}

/* The store does what the commit says. */
static void commit(struct kept *k, struct buffer *out)
{
    struct bytes all = buffer_bytes(out);
    struct buffer unused = {0};
    struct store_change c;

    while (changes_next(&all, &c)) {
        assert_int_equal(c.of, CHANGE_ANSWER);
        if (c.gone) {
            assert_true(named_values_delete(&k->rows, c.key));
            k->deleted++;
        } else {
            assert_int_equal(named_values_put(&k->rows, c.key, c.bytes), NAMED_PUT_DONE);
            k->written++;
        }
    }
    named_values_seal(&k->rows, &unused);
    buffer_fini(&unused);
    buffer_fini(out);
}

static void save(struct kept *k, uint64_t asker, uint64_t number, struct bytes body,
                 uint64_t now_us)
{
    struct buffer out = {0};

    answers_save(&k->answers, name_of(asker, number), 0, body, now_us, &out);
    commit(k, &out);
}

static void begin(struct kept *k, uint64_t asker, uint64_t number)
{
    struct buffer out = {0};

    answers_begin(&k->answers, name_of(asker, number), 0, &out);
    commit(k, &out);
}

/* Another node loads it. */
static void load(struct kept *k, uint64_t now_us)
{
    struct buffer all = {0};
    struct bytes key = {0};
    struct bytes bytes = {0};

    while (named_values_next(&k->rows, key, &key, &bytes)) {
        const struct store_change c = {.of = CHANGE_ANSWER, .key = key, .bytes = bytes};

        changes_put(&all, &c);
    }
    answers_fini(&k->answers);
    answers_init(&k->answers);
    assert_true(answers_load(&k->answers, buffer_bytes(&all), now_us));
    buffer_fini(&all);
    k->written = k->deleted = 0;
}

static enum answer_known known(const struct kept *k, uint64_t asker, uint64_t number,
                               uint64_t now_us)
{
    struct bytes body = {0};
    uint8_t code = 0;

    return answers_find(&k->answers, name_of(asker, number), now_us, &code, &body);
}

static void what_was_answered_is_known_by_its_name(void **state)
{
    struct kept k;
    struct buffer out = {0};
    struct bytes body = {0};
    uint8_t code = 0;

    (void)state;
    open_kept(&k);
    answers_save(&k.answers, name_of(ASKER, 5), ANSWER_APP_ERROR, bytes_of("no gold", 7), 0, &out);
    commit(&k, &out);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(answers_find(&k.answers, name_of(ASKER, 5), 0, &code, &body), ANSWER_KEPT);
        assert_int_equal(code, ANSWER_APP_ERROR);
        assert_true(bytes_equal(body, bytes_of("no gold", 7)));
        assert_int_equal(known(&k, ASKER, 4, 0), ANSWER_NONE); // it changed nothing
        assert_int_equal(known(&k, OTHER, 5, 0), ANSWER_NONE);
        load(&k, 0);
    }
    close_kept(&k);
}

static void one_that_began_has_ended_when_it_is_answered(void **state)
{
    struct kept k;

    (void)state;
    open_kept(&k);
    begin(&k, ASKER, 5);
    begin(&k, ASKER, 6);
    save(&k, ASKER, 6, bytes_of("done", 4), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(known(&k, ASKER, 5, 0), ANSWER_BEGUN);
        assert_int_equal(known(&k, ASKER, 6, 0), ANSWER_KEPT);
        assert_int_equal(k.answers.count, 2);
        load(&k, 0);
    }
    close_kept(&k);
}

static void of_a_long_answer_only_the_name_is_kept(void **state)
{
    struct kept k;
    uint8_t *body = mem_new(1, ANSWERS_BODY_MAX + 1);

    (void)state;
    open_kept(&k);
    save(&k, ASKER, 1, bytes_of(body, ANSWERS_BODY_MAX), 0);
    save(&k, ASKER, 2, bytes_of(body, ANSWERS_BODY_MAX + 1), 0);
    load(&k, 0);
    assert_int_equal(known(&k, ASKER, 1, 0), ANSWER_KEPT);
    assert_int_equal(known(&k, ASKER, 2, 0), ANSWER_GONE);
    assert_int_equal(k.answers.size, ANSWERS_BODY_MAX);
    mem_free(body);
    close_kept(&k);
}

/* What an asker asked later than all that was forgotten of it can't have been forgotten. */
static void too_many_are_forgotten_and_that_is_known(void **state)
{
    struct kept k;

    (void)state;
    open_kept(&k);
    save(&k, OTHER, 9, bytes_of("x", 1), 0);
    for (uint64_t i = 1; i <= (uint64_t)ANSWERS_MAX; i++) {
        save(&k, ASKER, 2 * i, bytes_of("y", 1), 0);
        assert_true(k.answers.count <= ANSWERS_MAX);
    }
    assert_int_equal(k.written, ANSWERS_MAX + 2); // with the marks, once
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(known(&k, ASKER, (uint64_t)2 * ANSWERS_MAX, 0), ANSWER_KEPT);
        assert_int_equal(known(&k, ASKER, (uint64_t)2 * ANSWERS_MAX - 1, 0), ANSWER_NONE);
        assert_int_equal(known(&k, ASKER, (uint64_t)2 * ANSWERS_MAX + 1, 0), ANSWER_NONE);
        assert_int_equal(known(&k, ASKER, 2, 0), ANSWER_GONE);
        assert_int_equal(known(&k, ASKER, 1, 0), ANSWER_GONE); // it may be
        assert_int_equal(known(&k, OTHER, 9, 0), ANSWER_GONE);
        assert_int_equal(known(&k, OTHER, 10, 0), ANSWER_NONE);
        assert_int_equal(known(&k, 79, 1, 0), ANSWER_NONE);
        assert_int_equal(known(&k, ASKER, 1, AGE_US), ANSWER_NONE); // nobody asks so late
        load(&k, 0);
    }
    close_kept(&k);
}

static void too_much_is_forgotten(void **state)
{
    struct kept k;
    uint8_t *body = mem_new(1, ANSWERS_BODY_MAX);

    (void)state;
    open_kept(&k);
    for (uint64_t i = 1; i <= 40; i++) {
        save(&k, ASKER, i, bytes_of(body, ANSWERS_BODY_MAX), 0);
        assert_true(k.answers.size <= ANSWERS_SIZE_MAX);
        assert_int_equal(known(&k, ASKER, i, 0), ANSWER_KEPT);
    }
    assert_int_equal(known(&k, ASKER, 1, 0), ANSWER_GONE);
    mem_free(body);
    close_kept(&k);
}

/* Of more askers than there are marks, it is not known whose were forgotten. */
static void of_many_askers_none_is_sure(void **state)
{
    struct kept k;

    (void)state;
    open_kept(&k);
    for (uint64_t i = 1; i <= (uint64_t)ANSWERS_MAX + 1; i++) {
        save(&k, 1000 + i, 1, bytes_of("x", 1), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(k.answers.mark_count, ANSWERS_MARKS_MAX);
        assert_int_equal(known(&k, 1001, 1, 0), ANSWER_GONE);
        assert_int_equal(known(&k, ASKER, 1, 0), ANSWER_GONE); // it may be
        assert_int_equal(known(&k, ASKER, 1, AGE_US), ANSWER_NONE);
        load(&k, 0);
    }
    close_kept(&k);
}

static void old_ones_go_and_leave_no_mark(void **state)
{
    struct kept k;

    (void)state;
    open_kept(&k);
    for (uint64_t i = 1; i <= 100; i++) {
        save(&k, ASKER, i, bytes_of("x", 1), i < 100 ? 0 : 1);
    }
    save(&k, ASKER, 101, bytes_of("y", 1), AGE_US - 1);
    assert_int_equal(k.deleted, 0);
    save(&k, ASKER, 102, bytes_of("y", 1), AGE_US);
    assert_int_equal(k.deleted, 64); // one commit has its bounds
    save(&k, ASKER, 103, bytes_of("y", 1), AGE_US);
    assert_int_equal(k.deleted, 99);
    assert_int_equal(known(&k, ASKER, 100, AGE_US), ANSWER_KEPT);
    assert_int_equal(known(&k, ASKER, 1, AGE_US), ANSWER_NONE);
    load(&k, AGE_US); // their age begins anew
    save(&k, ASKER, 104, bytes_of("y", 1), (uint64_t)2 * AGE_US - 1);
    assert_int_equal(k.deleted, 0);
    close_kept(&k);
}

static void rows_that_are_none_are_not_loaded(void **state)
{
    static const struct store_change bad[] = {
        {.of = CHANGE_ANSWER, .key = {(const uint8_t *)"short", 5}},
        {.of = CHANGE_ANSWER, .key = {(const uint8_t *)"sixteen bytes ..", 16}},
        {.of = CHANGE_ANSWER,
         .key = {(const uint8_t *)"sixteen bytes ..", 16},
         .bytes = {(const uint8_t *)"\1\0\0\0\0\0\0\0\4\0", 10}}, // it is not known how
        {.of = CHANGE_ANSWER,
         .key = {(const uint8_t *)"sixteen bytes ...", 17},
         .bytes = {(const uint8_t *)"\1\0\0\0\0\0\0\0\1\0", 10}},
        {.of = CHANGE_ANSWER,
         .key = {(const uint8_t *)"", 1},
         .bytes = {(const uint8_t *)"half a mark", 11}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct answers a;
        struct buffer all = {0};

        answers_init(&a);
        changes_put(&all, &bad[i]);
        assert_false(answers_load(&a, buffer_bytes(&all), 0));
        buffer_fini(&all);
        answers_fini(&a);
    }
}

/* By chance: an answer that is kept is right, and what is not known to be lost was never saved. */
static void nothing_that_was_saved_is_denied(void **state)
{
    enum { ASKERS = 100, STEPS = 20000 };
    struct kept k;
    struct prng random = {.state = 90};
    uint64_t last[ASKERS] = {0};

    (void)state;
    open_kept(&k);
    for (unsigned step = 0; step < STEPS; step++) {
        const size_t i = prng_between(&random, 0, ASKERS - 1) % (1 + step / 256);
        const uint64_t number = last[i] += 2;

        save(&k, 1 + i, number, bytes_of(&number, sizeof number), 0);
        const size_t who = prng_between(&random, 0, ASKERS - 1);
        const uint64_t asked = last[who] == 0 ? 0 : prng_between(&random, 1, last[who] / 2) * 2;
        struct bytes body = {0};
        uint8_t code = 0;
        const enum answer_known found =
            answers_find(&k.answers, name_of(1 + who, asked), 0, &code, &body);

        assert_true(asked == 0 || found == ANSWER_KEPT || found == ANSWER_GONE);
        assert_true(found != ANSWER_KEPT || memcmp(body.data, &asked, sizeof asked) == 0);
        if (prng_chance(&random, 1)) {
            load(&k, 0);
        }
    }
    close_kept(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_answered_is_known_by_its_name),
        cmocka_unit_test(one_that_began_has_ended_when_it_is_answered),
        cmocka_unit_test(of_a_long_answer_only_the_name_is_kept),
        cmocka_unit_test(too_many_are_forgotten_and_that_is_known),
        cmocka_unit_test(too_much_is_forgotten),
        cmocka_unit_test(of_many_askers_none_is_sure),
        cmocka_unit_test(old_ones_go_and_leave_no_mark),
        cmocka_unit_test(rows_that_are_none_are_not_loaded),
        cmocka_unit_test(nothing_that_was_saved_is_denied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
