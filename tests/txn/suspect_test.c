/* SPDX-License-Identifier: Apache-2.0
 *
 * Strikes and quarantine in the replicated state: what a registration's
 * suspects do, when they are forgotten, what an operator may do, and that the
 * view of everybody else follows.
 */
#include "txn/state/suspect.h"

#include "base/mem.h"
#include "base/prng.h"
#include "tests/command.h"
#include "tests/planted.h"
#include "tests/test.h"
#include "wire/versions.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000)

enum { ACTORS_MAX = 8 };

static struct state s;
static struct view far; /* somebody else's, by deltas alone */
static uint64_t now_us;
static uint64_t nonce;

static void follow(const Rh__Delta *delta)
{
    if (delta != NULL) {
        assert_int_equal(view_apply(&far, delta), VIEW_APPLIED);
    }
}

static struct state_result give(Rh__Command__BodyCase body, void *message)
{
    Rh__Command command = RH__COMMAND__INIT;
    struct state_result result;

    command.time_us = now_us;
    command.proposer = 1;
    command.body_case = body;
    command.init = message; // any member of the union
    state_apply(&s, &command, &result);
    state_check(&s);
    follow(result.delta);
    return result;
}

static int setup(void **state)
{
    Rh__CommandRegister in = registration("n1", ++nonce, 0);
    Rh__Config config;

    (void)state;
    now_us = 1000 * SECOND;
    init(&s);
    s.format = FLEET_FORMAT_STRIKES;
    view_config(&s.view, &config);
    view_init(&far, RING_GRID_MIN);
    assert_int_equal(view_load(&far, &config, true), VIEW_APPLIED);
    view_config_fini(&config);
    assert_int_not_equal(stamp_of(give(RH__COMMAND__BODY_REGISTER_, &in)), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    view_fini(&far);
    state_fini(&s);
    return 0;
}

static struct quarantined name_of(uint16_t kind, const char *id)
{
    struct quarantined e;

    assert_true(quarantined_of(&e, kind, bytes_of(id, strlen(id))));
    return e;
}

/* The actors of kind 0 in `ids`, "a b c". */
static size_t name_all(Rh__Actor actor[ACTORS_MAX], Rh__Actor *list[ACTORS_MAX], const char *ids)
{
    size_t count = 0;

    for (const char *at = ids; *at != '\0'; at += *at == ' ') {
        const size_t size = strcspn(at, " ");

        assert_true(count < ACTORS_MAX);
        actor[count] = (Rh__Actor)RH__ACTOR__INIT;
        actor[count].id = proto_bytes(bytes_of(at, size));
        list[count] = &actor[count];
        count++;
        at += size;
    }
    return count;
}

/* n1 comes back: the process of `died` had run the actors in `ids`. */
static struct state_result comes_back(uint64_t died, const char *ids)
{
    Rh__CommandRegister in = registration("n1", ++nonce, state_node_named(&s, "n1")->incarnation);
    Rh__Actor actor[ACTORS_MAX];
    Rh__Actor *list[ACTORS_MAX];

    in.died = died;
    in.suspects = list;
    in.n_suspects = name_all(actor, list, ids);
    return give(RH__COMMAND__BODY_REGISTER_, &in);
}

/* Its process died while they ran. */
static void dies(const char *ids)
{
    assert_int_not_equal(stamp_of(comes_back(state_node_named(&s, "n1")->incarnation, ids)), 0);
}

static uint32_t strikes(const char *id)
{
    const struct quarantined e = name_of(0, id);
    const struct state_suspect *found = suspect_find(&s, &e);

    return found == NULL ? 0 : found->strikes;
}

static bool is_in(const char *id)
{
    const struct bytes bytes = bytes_of(id, strlen(id));

    assert_int_equal(quarantine_has(&far.quarantine, 0, bytes),
                     quarantine_has(&s.view.quarantine, 0, bytes));
    return quarantine_has(&far.quarantine, 0, bytes);
}

static struct state_result wish(const char *id, bool add)
{
    Rh__CommandQuarantine in = RH__COMMAND_QUARANTINE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;

    actor.id = proto_bytes(bytes_of(id, strlen(id)));
    in.actor = &actor;
    in.add = add;
    return give(RH__COMMAND__BODY_QUARANTINE, &in);
}

static void the_third_strike_is_quarantine_for_every_view(void **state)
{
    (void)state;
    dies("boss-7 ann");
    dies("boss-7");
    assert_false(is_in("boss-7"));
    dies("boss-7 bob");
    assert_true(is_in("boss-7"));
    assert_false(is_in("ann"));
    assert_false(is_in("bob"));
    assert_int_equal(strikes("boss-7"), 3);
    assert_int_equal(strikes("ann"), 1);
    const struct quarantined e = name_of(0, "boss-7");
    assert_string_equal(suspect_find(&s, &e)->node, "n1");
    assert_int_equal(suspect_find(&s, &e)->since_us, now_us);
}

static void a_death_counts_once(void **state)
{
    const uint64_t first = state_node_named(&s, "n1")->incarnation;

    (void)state;
    dies("ann ann");
    assert_int_equal(strikes("ann"), 1);
    // The next process found the same file again, and the one after it.
    assert_int_not_equal(stamp_of(comes_back(first, "ann")), 0);
    assert_int_not_equal(stamp_of(comes_back(first, "ann")), 0);
    assert_int_not_equal(stamp_of(comes_back(0, "ann")), 0);
    assert_int_equal(strikes("ann"), 1);
}

static void a_repeated_registration_strikes_nobody_again(void **state)
{
    (void)state;
    dies("ann");
    nonce--;
    struct state_result r = comes_back(state_node_named(&s, "n1")->incarnation, "ann");
    assert_true(r.accepted);
    assert_null(r.delta);
    assert_int_equal(strikes("ann"), 1);
    state_result_fini(&r);
}

static void strikes_are_forgotten_ten_minutes_after_the_last(void **state)
{
    (void)state;
    dies("ann");
    now_us += 600 * SECOND;
    dies("ann"); // just in time
    assert_int_equal(strikes("ann"), 2);
    now_us += 601 * SECOND;
    dies("ann");
    assert_int_equal(strikes("ann"), 1);
    now_us += 601 * SECOND;
    dies("bob");
    assert_int_equal(strikes("ann"), 0);
    assert_int_equal(s.suspect_count, 1);
}

/* The ten minutes count from the strike before, not from the first one. */
static void three_strikes_nine_minutes_apart_are_quarantine(void **state)
{
    (void)state;
    dies("ann");
    now_us += 540 * SECOND;
    dies("ann");
    now_us += 540 * SECOND;
    dies("ann");
    assert_true(is_in("ann"));
}

static void a_leader_whose_clock_is_behind_forgets_nothing(void **state)
{
    (void)state;
    dies("ann");
    now_us -= 900 * SECOND;
    dies("ann");
    dies("ann");
    assert_true(is_in("ann"));
}

static void quarantine_is_for_good_until_it_is_cleared(void **state)
{
    (void)state;
    dies("ann");
    dies("ann");
    dies("ann");
    now_us += 100000 * SECOND;
    dies("bob");
    assert_true(is_in("ann"));
    assert_int_not_equal(stamp_of(wish("ann", false)), 0);
    assert_false(is_in("ann"));
    assert_int_equal(strikes("ann"), 0);
    dies("ann"); // from the beginning
    assert_false(is_in("ann"));
}

static void an_operator_may_put_any_actor_in_and_clears_only_who_is_known(void **state)
{
    struct state_result r = wish("ann", false);

    (void)state;
    assert_false(r.accepted);
    assert_string_equal(r.why, "that actor is not in quarantine, and has no strikes");
    state_result_fini(&r);
    assert_int_not_equal(stamp_of(wish("ann", true)), 0);
    assert_true(is_in("ann"));
    r = wish("ann", true);
    assert_true(r.accepted);
    assert_null(r.delta);
    state_result_fini(&r);
    r = wish("", true);
    assert_false(r.accepted);
    state_result_fini(&r);
    dies("bob");
    assert_int_not_equal(stamp_of(wish("bob", false)), 0); // strikes alone go as well
    assert_int_equal(strikes("bob"), 0);
}

static void who_came_first_makes_room(void **state)
{
    char id[16];

    (void)state;
    for (unsigned i = 0; i <= QUARANTINE_MAX; i++) {
        now_us++;
        (void)snprintf(id, sizeof id, "b%u", i);
        assert_int_not_equal(stamp_of(wish(id, true)), 0);
    }
    assert_false(is_in("b0"));
    assert_true(is_in("b1"));
    assert_true(is_in("b1024"));
    assert_int_equal(far.quarantine.count, QUARANTINE_MAX);
    for (unsigned i = 0; i <= SUSPECTS_MAX; i++) {
        now_us++;
        (void)snprintf(id, sizeof id, "s%u", i);
        dies(id);
    }
    assert_int_equal(strikes("s0"), 0);
    assert_int_equal(strikes("s1"), 1);
    assert_int_equal(s.suspect_count, QUARANTINE_MAX + SUSPECTS_MAX);
}

static void a_whole_configuration_brings_the_quarantine(void **state)
{
    Rh__Config config;
    struct view fresh;

    (void)state;
    assert_int_not_equal(stamp_of(wish("ann", true)), 0);
    view_init(&fresh, RING_GRID_MIN);
    view_config(&s.view, &config);
    assert_int_equal(view_load(&fresh, &config, true), VIEW_APPLIED);
    assert_true(quarantine_has(&fresh.quarantine, 0, bytes_of("ann", 3)));
    assert_false(quarantine_has(&fresh.quarantine, 1, bytes_of("ann", 3)));
    view_config_fini(&config);
    view_fini(&fresh);
}

static void a_release_of_nobody_is_no_delta_of_ours(void **state)
{
    const struct quarantined ann = name_of(0, "ann");
    struct view copy;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__Actor *released[] = {quarantined_wire(&ann)};

    (void)state;
    view_copy(&copy, &far);
    delta.version = far.ring.version + 1;
    assert_true(view_seal(&copy, &delta));
    delta.released = released;
    delta.n_released = 1;
    assert_int_equal(view_apply(&copy, &delta), VIEW_DIFFERS);
    assert_int_equal(copy.ring.version, far.ring.version);
    mem_free(released[0]->id.data);
    mem_free(released[0]);
    view_fini(&copy);
}

/* Against a list that is searched from its beginning. */
static void a_sorted_list_finds_what_was_put_into_it(void **state)
{
    struct quarantine q = {0};
    struct prng prng = {11};
    bool in[64] = {false};

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        const size_t at = prng_between(&prng, 0, 63);
        // Ids that begin alike, of two kinds.
        const struct quarantined e =
            name_of((uint16_t)(at % 2), &"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[at / 2]);

        if (prng_chance(&prng, 50)) {
            assert_true(quarantine_put(&q, &e));
            in[at] = true;
        } else {
            assert_int_equal(quarantine_remove(&q, &e), in[at]);
            in[at] = false;
        }
        assert_int_equal(quarantine_has(&q, e.kind, quarantined_id(&e)), in[at]);
    }
    for (size_t i = 1; i < q.count; i++) {
        assert_true(quarantine_compare(&q.entry[i - 1], &q.entry[i]) < 0);
    }
    quarantine_fini(&q);
}

/* `to` is there; what `from` has, or so many of its vnodes, is given to it, for `from` is dead.
 * Others tell that it had not answered the actors in `ids`, nor had `before`. Returns the dead
 * incarnation. */
static uint64_t is_taken_in_part(const char *from, const char *to, size_t count, const char *ids,
                                 uint64_t before)
{
    const struct state_node *dead = state_node_named(&s, from);
    const struct state_node *heir = state_node_named(&s, to);
    Rh__CommandRegister in = registration(to, ++nonce, heir == NULL ? 0 : heir->incarnation);
    Rh__CommandFence barred = RH__COMMAND_FENCE__INIT;
    Rh__CommandReassign moves = RH__COMMAND_REASSIGN__INIT;
    const uint64_t incarnation = dead->incarnation;
    struct ring_op op[TEST_VNODES];
    Rh__Suspect suspect[ACTORS_MAX];
    Rh__Suspect *suspects[ACTORS_MAX];
    Rh__Actor actor[ACTORS_MAX];
    Rh__Actor *list[ACTORS_MAX];

    barred.slot = moves.slot = dead->slot;
    barred.incarnation = moves.incarnation = incarnation;
    moves.suspects = suspects;
    moves.n_suspects = name_all(actor, list, ids);
    for (size_t i = 0; i < moves.n_suspects; i++) {
        suspect[i] = (Rh__Suspect)RH__SUSPECT__INIT;
        suspect[i].actor = list[i];
        suspect[i].before = before;
        suspects[i] = &suspect[i];
    }
    assert_int_not_equal(stamp_of(give(RH__COMMAND__BODY_REGISTER_, &in)), 0);
    assert_int_equal(stamp_of(give(RH__COMMAND__BODY_FENCE, &barred)), 0);
    for (size_t i = 0; i < s.view.ring.vnode_count && moves.n_moves < count; i++) {
        if (s.view.ring.vnode[i].owner == moves.slot) {
            op[moves.n_moves++] = (struct ring_op){.kind = RING_MOVE,
                                                   .vnode = s.view.ring.vnode[i].id,
                                                   .from = (uint16_t)moves.slot,
                                                   .to = state_node_named(&s, to)->slot};
        }
    }
    moves.moves = view_wire_ops(op, moves.n_moves);
    assert_int_not_equal(stamp_of(give(RH__COMMAND__BODY_REASSIGN, &moves)), 0);
    for (size_t i = 0; i < moves.n_moves; i++) {
        mem_free(moves.moves[i]);
    }
    mem_free(moves.moves);
    return incarnation;
}

static uint64_t is_taken_over(const char *from, const char *to, const char *ids, uint64_t before)
{
    return is_taken_in_part(from, to, TEST_VNODES, ids, before);
}

static void a_node_strikes_only_what_its_former_process_had(void **state)
{
    (void)state;
    (void)is_taken_over("n1", "n2", "", 0);
    assert_int_equal(s.lost_count, TEST_VNODES);
    dies("boss"); // it had it when it died, and somebody else has it by now
    assert_int_equal(strikes("boss"), 1);
    assert_int_equal(s.lost_count, 0);
    for (unsigned i = 0; i < SUSPECT_STRIKES; i++) {
        dies("boss other"); // it has nothing
    }
    assert_int_equal(strikes("boss"), 1);
    assert_int_equal(strikes("other"), 0);
    s.format = FLEET_FORMAT_OLDEST; // a rule that older coordinators do not know
    dies("other");
    assert_int_equal(strikes("other"), 1);
}

/* A request to "boss" kills n1 and n2, the next one n3; none comes back. */
static void three_deaths_that_others_tell_of_are_quarantine(void **state)
{
    uint64_t died = 0;

    (void)state;
    died = is_taken_over("n1", "n2", "boss ann", 0);
    assert_int_equal(strikes("boss"), 0); // whoever is busy is asked when its owner dies
    (void)is_taken_over("n2", "n3", "boss", died);
    assert_int_equal(strikes("boss"), 2);
    assert_false(is_in("boss"));
    (void)is_taken_over("n3", "n4", "bob boss boss", 0);
    assert_true(is_in("boss"));
    assert_int_equal(strikes("boss"), 3);
    assert_int_equal(strikes("ann") + strikes("bob"), 0);
    const struct quarantined e = name_of(0, "boss");
    assert_string_equal(suspect_find(&s, &e)->node, "n3");
}

/* One death is one strike, whoever tells of it, and the dead node's own word is the right one. */
static void the_returning_node_strikes_once_and_acquits(void **state)
{
    uint64_t died = 0;

    (void)state;
    died = is_taken_over("n1", "n2", "", 0);
    (void)is_taken_over("n2", "n3", "boss boss ann", died);
    assert_int_equal(strikes("boss"), 2);
    assert_int_equal(strikes("ann"), 2);
    assert_int_equal(s.struck_count, 4);
    assert_int_not_equal(stamp_of(comes_back(died, "boss carl")), 0);
    assert_int_equal(strikes("boss"), 2);
    assert_int_equal(strikes("carl"), 1); // nobody had told of it
    assert_int_equal(strikes("ann"), 1);
    assert_int_equal(s.struck_count, 2);
    // The folder of n2 is another: it has no word to say.
    Rh__CommandRegister in = registration("n2", ++nonce, state_node_named(&s, "n2")->incarnation);
    assert_int_not_equal(stamp_of(give(RH__COMMAND__BODY_REGISTER_, &in)), 0);
    assert_int_equal(strikes("boss"), 2);
    assert_int_equal(strikes("ann"), 1);
    assert_int_equal(s.struck_count, 0);
    // A death that was told by the node itself is not one that others may tell of.
    (void)is_taken_over("n3", "n4", "dan", died);
    assert_int_equal(strikes("dan"), 1);
}

/* A stolen gateway tells of a death what it likes. */
static void others_strike_only_what_the_dead_node_had(void **state)
{
    char names[2][8] = {""};
    uint16_t owner[2] = {0};
    char both[20];
    uint64_t died = 0;

    (void)state;
    // One of n1's vnodes goes to n2, which dies then: an id of each.
    died = is_taken_in_part("n1", "n2", 1, "", 0);
    for (unsigned i = 0; owner[0] == 0 || owner[1] == 0; i++) {
        char id[8];
        const int size = snprintf(id, sizeof id, "e%u", i);
        const uint16_t at = ring_hit_node(view_lookup(&s.view, 0, bytes_of(id, (size_t)size)));
        const bool of_n2 = at == state_node_named(&s, "n2")->slot;

        owner[of_n2] = at;
        (void)snprintf(names[of_n2], sizeof names[of_n2], "%s", id);
    }
    (void)snprintf(both, sizeof both, "%s %s", names[0], names[1]);
    (void)is_taken_over("n2", "n3", both, died + 1000); // an incarnation that there never was
    assert_int_equal(strikes(names[0]), 0);
    assert_int_equal(strikes(names[1]), 1);
    s.format = FLEET_FORMAT_KINDS; // a rule that older coordinators do not know
    (void)is_taken_over("n3", "n4", names[1], died);
    assert_int_equal(strikes(names[1]), 1);
    assert_int_equal(s.struck_count, 1);
}

/* Its third strike was a guess, but it is in: an operator lets it out. */
static void who_is_in_quarantine_is_not_acquitted(void **state)
{
    uint64_t died = 0;

    (void)state;
    dies("boss");
    dies("boss");
    died = is_taken_over("n1", "n2", "boss", 0);
    assert_true(is_in("boss"));
    assert_int_not_equal(stamp_of(comes_back(died, "ann")), 0);
    assert_true(is_in("boss"));
    assert_int_equal(strikes("boss"), 3);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(the_third_strike_is_quarantine_for_every_view),
        CASE(a_death_counts_once),
        CASE(a_repeated_registration_strikes_nobody_again),
        CASE(strikes_are_forgotten_ten_minutes_after_the_last),
        CASE(three_strikes_nine_minutes_apart_are_quarantine),
        CASE(a_leader_whose_clock_is_behind_forgets_nothing),
        CASE(quarantine_is_for_good_until_it_is_cleared),
        CASE(an_operator_may_put_any_actor_in_and_clears_only_who_is_known),
        CASE(who_came_first_makes_room),
        CASE(a_whole_configuration_brings_the_quarantine),
        CASE(a_release_of_nobody_is_no_delta_of_ours),
        CASE(a_node_strikes_only_what_its_former_process_had),
        CASE(three_deaths_that_others_tell_of_are_quarantine),
        CASE(the_returning_node_strikes_once_and_acquits),
        CASE(others_strike_only_what_the_dead_node_had),
        CASE(who_is_in_quarantine_is_not_acquitted),
        CASE(a_sorted_list_finds_what_was_put_into_it),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_ANYSTRIKE, M_STRIKETWICE};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
