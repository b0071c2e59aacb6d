/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembered ids in the replicated state: whose word counts, and what is bounded. (That a snapshot
 * has them, tests/storage/state_return_test.c shows.)
 */
#include "txn/state/remembered.h"

#include "base/prng.h"
#include "tests/command.h"
#include "tests/test.h"
#include "wire/versions.h"

#include <stdio.h>

enum { ROWS_MAX = REMEMBERED_OF_COMMAND_MAX + 1, IDS = 400 };

static struct state s;
static Rh__Actor actor[ROWS_MAX];
static Rh__RememberRow row[ROWS_MAX];
static Rh__RememberRow *rows[ROWS_MAX];
static char id[ROWS_MAX][16];
static size_t count;
static uint64_t incarnation[3]; /* of n1 and n2, by slot */

static int setup(void **state)
{
    (void)state;
    init(&s);
    s.format = FLEET_FORMAT_PLACEMENT;
    for (unsigned i = 1; i <= 2; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "n%u", i);
        Rh__CommandRegister in = registration(name, i, 0);
        incarnation[i] = stamp_of(apply(&s, RH__COMMAND__BODY_REGISTER_, &in));
    }
    count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    state_fini(&s);
    return 0;
}

static void name(const char *text, bool forget)
{
    const size_t i = count++;

    (void)snprintf(id[i], sizeof id[i], "%s", text);
    actor[i] = (Rh__Actor)RH__ACTOR__INIT;
    actor[i].kind = 7;
    actor[i].id = proto_bytes(bytes_of(id[i], strlen(id[i])));
    row[i] = (Rh__RememberRow)RH__REMEMBER_ROW__INIT;
    row[i].actor = &actor[i];
    row[i].forget = forget;
    rows[i] = &row[i];
}

/* Give what was named as the word of that node; the reason of a refusal, or "". */
static const char *give_as(uint16_t slot, uint64_t of)
{
    Rh__CommandRemember in = RH__COMMAND_REMEMBER__INIT;
    struct state_result r;

    in.slot = slot;
    in.incarnation = of;
    in.rows = rows;
    in.n_rows = count;
    count = 0;
    r = apply(&s, RH__COMMAND__BODY_REMEMBER, &in);
    const char *why = r.accepted ? "" : r.why;

    state_result_fini(&r);
    return why;
}

static const char *give(void)
{
    return give_as(1, incarnation[1]);
}

static bool has(const char *text)
{
    return remembered_has(&s, 7, bytes_of(text, strlen(text)));
}

static void a_node_tells_what_lives_and_what_has_ended(void **state)
{
    (void)state;
    name("bob", false);
    name("ann", false);
    name("bob", false);
    assert_string_equal(give(), "");
    assert_int_equal(s.remembered_count, 2);
    assert_true(has("ann") && has("bob"));
    name("ann", true);
    name("cid", true);
    assert_string_equal(give(), "");
    assert_true(!has("ann") && has("bob") && !has("cid"));
    // Of two rows about one id the later counts.
    name("bob", true);
    name("bob", false);
    name("dan", false);
    name("dan", true);
    assert_string_equal(give(), "");
    assert_true(has("bob") && !has("dan"));
}

/* n1 owns all cells: n2 came later, and nothing has moved. */
static void only_the_word_of_the_owner_counts(void **state)
{
    (void)state;
    name("ann", false);
    assert_string_equal(give_as(2, incarnation[2]), ""); // it changes nothing
    assert_false(has("ann"));
    name("ann", false);
    assert_string_equal(give_as(1, incarnation[1] - 1),
                        "it is the word of a node that owns nothing any more");
    name("ann", false);
    assert_string_equal(give_as(9, incarnation[1]),
                        "it is the word of a node that owns nothing any more");
    name("ann", false);
    assert_string_equal(give(), "");
    name("ann", true);
    assert_string_equal(give_as(2, incarnation[2]), "");
    assert_true(has("ann"));
    // An operator forgets anybody's, and remembers nobody.
    name("bob", false);
    name("ann", true);
    assert_string_equal(give_as(0, 0), "");
    assert_int_equal(s.remembered_count, 0);
    Rh__CommandFence fence = RH__COMMAND_FENCE__INIT;
    fence.slot = 1;
    fence.incarnation = incarnation[1];
    struct state_result r = apply(&s, RH__COMMAND__BODY_FENCE, &fence);
    assert_true(r.accepted);
    state_result_fini(&r);
    name("ann", false);
    assert_string_equal(give(), "it is the word of a node that owns nothing any more");
}

static void what_can_be_no_id_changes_nothing(void **state)
{
    static uint8_t longer[256];

    (void)state;
    name("ann", false);
    actor[0].id = proto_bytes(bytes_of("", 0));
    name("bob", false);
    actor[1].kind = UINT16_MAX + 1;
    name("cid", false);
    actor[2].id = proto_bytes(bytes_of(longer, sizeof longer));
    name("dan", false);
    row[3].actor = NULL;
    name("eve", false);
    assert_string_equal(give(), "");
    assert_int_equal(s.remembered_count, 1);
    assert_true(has("eve"));
}

static void a_command_is_bounded_and_belongs_to_a_format(void **state)
{
    char text[16];

    (void)state;
    for (size_t i = 0; i < ROWS_MAX; i++) {
        (void)snprintf(text, sizeof text, "a%zu", i);
        name(text, false);
    }
    assert_string_equal(give(), "the command has too many rows");
    s.format = FLEET_FORMAT_PLACEMENT - 1;
    name("ann", false);
    assert_string_equal(
        give(), "remembered ids belong to a later format than the fleet's: end the upgrade first");
    assert_int_equal(s.remembered_count, 0);
}

/* Against a plain table of flags. */
static void any_words_leave_what_was_said_last(void **state)
{
    struct prng prng = {.state = 84};
    bool there[IDS] = {false};
    char text[16];

    (void)state;
    for (unsigned round = 1; round <= 200; round++) {
        const size_t some = (size_t)prng_between(&prng, 1, 40);

        for (size_t i = 0; i < some; i++) {
            const size_t k = (size_t)prng_between(&prng, 0, IDS - 1);
            const bool forget = prng_chance(&prng, 45);

            (void)snprintf(text, sizeof text, "id%zu", k);
            name(text, forget);
            there[k] = !forget;
        }
        assert_string_equal(give(), "");
    }
    size_t left = 0;
    for (size_t k = 0; k < IDS; k++) {
        (void)snprintf(text, sizeof text, "id%zu", k);
        assert_true(has(text) == there[k]);
        left += there[k] ? 1 : 0;
    }
    assert_int_equal(s.remembered_count, left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_node_tells_what_lives_and_what_has_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(only_the_word_of_the_owner_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(what_can_be_no_id_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_command_is_bounded_and_belongs_to_a_format, setup, teardown),
        cmocka_unit_test_setup_teardown(any_words_leave_what_was_said_last, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
