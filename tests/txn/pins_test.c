/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins in the replicated state: what is taken and what is refused, and that nothing is taken by
 * half.
 */
#include "txn/state/pins.h"

#include "tests/command.h"
#include "tests/test.h"
#include "txn/state/digest.h"
#include "wire/versions.h"

#include <stdio.h>

enum { LIST_MAX = 4096 };

static struct state s;
static Rh__Pin pin[LIST_MAX];
static Rh__Pin *list[LIST_MAX];
static Rh__Actor actor[LIST_MAX];
static char id[LIST_MAX][16];
static size_t count;

static int setup(void **state)
{
    Rh__CommandRegister in;
    Rh__Kind kind = RH__KIND__INIT;
    Rh__Kind *kinds[] = {&kind};

    (void)state;
    kind.number = 20;
    kind.name = proto_text("room");
    init(&s);
    s.format = FLEET_FORMAT_PLACEMENT;
    for (unsigned i = 1; i <= 3; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "n%u", i);
        in = registration(name, i, 0);
        if (i == 3) {
            in.role = proto_text("match");
            in.kinds = kinds;
            in.n_kinds = 1;
        }
        assert_int_not_equal(stamp_of(apply(&s, RH__COMMAND__BODY_REGISTER_, &in)), 0);
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

static Rh__Pin *next(const char *node)
{
    pin[count] = (Rh__Pin)RH__PIN__INIT;
    pin[count].node = proto_text(node);
    list[count] = &pin[count];
    return &pin[count++];
}

static void name(const char *text, const char *node)
{
    Rh__Pin *p = next(node);
    const size_t at = count - 1;

    (void)snprintf(id[at], sizeof id[at], "%s", text);
    actor[at] = (Rh__Actor)RH__ACTOR__INIT;
    actor[at].id = proto_bytes(bytes_of(id[at], strlen(id[at])));
    p->actor = &actor[at];
}

static void cells(uint32_t from, uint32_t to, const char *node)
{
    Rh__Pin *p = next(node);

    p->from = from;
    p->to = to;
}

/* Give what was named; the reason of a refusal, or "". */
static const char *give(bool remove)
{
    Rh__CommandPin in = RH__COMMAND_PIN__INIT;
    const uint64_t before = state_digest(&s);
    struct state_result r;

    in.add = in.remove = list;
    in.n_add = remove ? 0 : count;
    in.n_remove = remove ? count : 0;
    count = 0;
    r = apply(&s, RH__COMMAND__BODY_PIN, &in);
    const char *why = r.accepted ? "" : r.why;

    assert_true(r.accepted || before == state_digest(&s)); // all of it or nothing
    state_result_fini(&r);
    return why;
}

static uint32_t cell_of(const char *text)
{
    return ring_point_cell(
        ring_point(&s.view.ring, 0, ring_key_of_kind(s.view.key, 0), bytes_of(text, strlen(text))));
}

static void an_id_is_pinned_by_its_cell_and_let_go(void **state)
{
    (void)state;
    name("ann", "n1");
    name("bob", "n2");
    assert_string_equal(give(false), "");
    assert_int_equal(s.pin_count, 2);
    const struct state_pin *p = &s.pin[cell_of("ann") < cell_of("bob") ? 0 : 1];
    assert_int_equal(p->from, cell_of("ann"));
    assert_int_equal(p->to, p->from + 1);
    assert_string_equal(p->node, "n1");
    name("ann", "n2"); // elsewhere, in the place of what was
    assert_string_equal(give(false), "");
    assert_int_equal(s.pin_count, 2);
    name("ann", "");
    assert_string_equal(give(true), "");
    name("ann", ""); // again: an operator's command may come twice
    assert_string_equal(give(true), "");
    assert_int_equal(s.pin_count, 1);
}

static void pins_of_one_cell_say_the_same(void **state)
{
    const uint32_t cell = cell_of("ann");

    (void)state;
    name("ann", "n1");
    assert_string_equal(give(false), "");
    cells(cell - 5, cell + 5, "n2");
    assert_string_equal(give(false), "it has a cell in common with a pin that says something else");
    cells(cell - 5, cell + 5, "n1");
    assert_string_equal(give(false), "");
    name("ann", "n1"); // it is within those cells now
    pin[0].waits = true;
    assert_string_equal(give(false), "it has a cell in common with a pin that says something else");
    name("ann", "");
    assert_string_equal(give(true), "");
    assert_int_equal(s.pin_count, 1);
    cells(cell + 4, cell + 9, ""); // cells let go of all that have some in common with them
    assert_string_equal(give(true), "");
    assert_int_equal(s.pin_count, 0);
}

static void what_is_no_pin_is_refused_with_all_beside_it(void **state)
{
    (void)state;
    name("ann", "n1");
    name("bob", "n9");
    assert_string_equal(give(false), "no such node");
    name("ann", "n3");
    assert_string_equal(give(false),
                        "the node has not the role of these cells, or does not host their kind");
    name("ann", "n1");
    name("ann", "n2");
    assert_string_equal(give(false), "it is named twice");
    cells(5, 5, "n1");
    assert_string_equal(give(false), "its cells are not of one role");
    cells(0, s.view.ring.cell_count + 1, "n1");
    assert_string_equal(give(false), "its cells are not of one role");
    assert_int_equal(s.pin_count, 0);
    s.format = FLEET_FORMAT_PLACEMENT - 1;
    name("ann", "n1");
    assert_string_equal(give(false),
                        "pins belong to a later format than the fleet's: end the upgrade first");
}

/* The clashes of what was named. */
static size_t clashes(struct pins_clash out[4])
{
    static struct state_pin read[LIST_MAX];

    for (size_t i = 0; i < count; i++) {
        assert_null(pins_read(&s, list[i], &read[i]));
    }
    return pins_clashes(read, count, out, 4);
}

/* "x17", which lives in the same cell as `text`. */
static const char *neighbour(const char *text, char out[16])
{
    unsigned i = 0;

    do {
        (void)snprintf(out, 16, "x%u", i++);
    } while (cell_of(out) != cell_of(text));
    return out;
}

static void two_of_a_command_that_exclude_each_other_are_both_named(void **state)
{
    const uint32_t cell = cell_of("ann");
    struct pins_clash out[4];
    char near[16];

    (void)state;
    assert_int_equal(clashes(out), 0);
    name("bob", "n2");
    name("ann", "n1");
    name(neighbour("ann", near), "n1"); // alike
    assert_int_equal(clashes(out), 0);
    name("cid", "n1");
    pin[2].node = proto_text("n2");
    assert_int_equal(clashes(out), 1);
    assert_int_equal(out[0].first, 1);
    assert_int_equal(out[0].second, 2);
    assert_false(out[0].twice);
    assert_string_equal(give(false), "it has a cell in common with a pin that says something else");
    name("ann", "n1");
    cells(cell + 1, cell + 9, "n1");
    cells(cell + 3, cell + 5, "n2");
    name("ann", "n1");
    assert_int_equal(clashes(out), 2);
    assert_int_equal(out[0].first, 0);
    assert_int_equal(out[0].second, 3);
    assert_true(out[0].twice);
    assert_int_equal(out[1].first, 1);
    assert_int_equal(out[1].second, 2);
    assert_false(out[1].twice);
    assert_string_equal(give(false), "it is named twice");
}

static void there_are_at_most_100000(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PINS_MAX;) {
        for (; i < PINS_MAX && count < LIST_MAX; i++) {
            char text[16];

            (void)snprintf(text, sizeof text, "p%u", i);
            name(text, "n1");
        }
        assert_string_equal(give(false), "");
    }
    assert_int_equal(s.pin_count, PINS_MAX);
    name("one-more", "n1");
    assert_string_equal(give(false), "there are 100000 pins already: remove some first");
    name("p4711", "n1"); // that one is there already
    assert_string_equal(give(false), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_id_is_pinned_by_its_cell_and_let_go, setup, teardown),
        cmocka_unit_test_setup_teardown(pins_of_one_cell_say_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(
            what_is_no_pin_is_refused_with_all_beside_it, setup, teardown),
        cmocka_unit_test_setup_teardown(
            two_of_a_command_that_exclude_each_other_are_both_named, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_at_most_100000, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
