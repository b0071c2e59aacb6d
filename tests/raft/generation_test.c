/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of raft/generation.h: which changes of voters are allowed, and what
 * stays of each.
 */
#include "raft/generation.h"
#include "storage/log/entry.h"

#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { IDENTITY = 1000 };

/* Voters 1..count of the group as it was founded. */
static struct generation founded(size_t count)
{
    struct generation g = {.voter_count = count};

    for (size_t i = 0; i < count; i++) {
        g.voter[i] = (struct generation_voter){.id = i + 1, .identity = IDENTITY + i + 1};
        (void)snprintf(g.voter[i].address, sizeof g.voter[i].address, "h:%zu", i + 1);
    }
    return g;
}

/* A wish for these ids; those above `old` wait to join. */
static size_t wishes(struct generation_wish *wish, const char *ids, uint64_t old)
{
    size_t count = 0;

    for (const char *c = ids; *c != '\0'; c++) {
        const uint64_t id = (uint64_t)(*c - '0');
        wish[count] = (struct generation_wish){
            .id = id, .identity = IDENTITY + id, .linked = true, .empty = id > old};
        (void)snprintf(wish[count].address, sizeof wish[count].address, "h:%c", *c);
        count++;
    }
    return count;
}

static bool next_of(const struct generation *now, const char *ids, struct generation *out)
{
    struct generation_wish wish[9];
    char why[160];

    return generation_next(now, wish, wishes(wish, ids, now->voter_count), out, why, sizeof why);
}

static void a_group_grows_shrinks_and_replaces(void **state)
{
    const struct generation one = founded(1);
    struct generation three;
    struct generation next;

    (void)state;
    assert_true(next_of(&one, "312", &three));
    assert_int_equal(three.number, 1);
    assert_int_equal(three.voter_count, 3);
    assert_int_equal(three.voter[2].id, 3); // in order
    assert_int_equal(three.former_count, 0);
    assert_true(next_of(&three, "14352", &next));
    assert_int_equal(next.voter_count, 5);
    assert_true(next_of(&three, "134", &next));
    assert_int_equal(next.number, 2);
    assert_int_equal(next.former[0].id, 2);
    assert_int_equal(generation_identity(&next, 2), IDENTITY + 2);
    assert_null(generation_voter(&next, 2));
    assert_true(generation_used(&next, 2));
    assert_true(next_of(&three, "2", &next));
    assert_int_equal(next.former_count, 2);
}

static void what_makes_no_sense_is_refused(void **state)
{
    const struct generation three = founded(3);
    struct generation next;

    (void)state;
    assert_false(next_of(&three, "12", &next));
    assert_false(next_of(&three, "122", &next));
    assert_false(next_of(&three, "123", &next)); // as it is
    assert_false(next_of(&three, "1234567", &next));
    assert_false(next_of(&three, "", &next));
    assert_false(next_of(&three, "012", &next));
}

static void an_id_is_never_used_again(void **state)
{
    const struct generation three = founded(3);
    struct generation four;
    struct generation next;
    struct generation_wish wish[9];
    char why[160];

    (void)state;
    assert_true(next_of(&three, "134", &four));
    assert_false(generation_next(&four, wish, wishes(wish, "123", 3), &next, why, sizeof why));
    assert_non_null(strstr(why, "coordinator 2: this id was used before"));
}

static void what_makes_no_sense_is_refused_whoever_is_there(void **state)
{
    static const struct {
        const char *ids;
        const char *why;
    } rows[] = {
        {"12", "1, 3 or 5"},
        {"124", "coordinator 2: this id was used before"},
        {"155", "twice"},
        {"134", "already"},
        {"015", "coordinator 0: an id must be"},
        {"135", ""},
        {"78956", ""},
    };
    const struct generation three = founded(3);
    struct generation four;
    char why[160];

    (void)state;
    assert_true(next_of(&three, "134", &four));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct generation_wish wish[9] = {0};

        for (size_t n = 0; n < strlen(rows[i].ids); n++) {
            wish[n].id = (uint64_t)(rows[i].ids[n] - '0');
            (void)snprintf(wish[n].address, sizeof wish[n].address, "h:%c", rows[i].ids[n]);
        }
        why[0] = '\0';
        assert_int_equal(generation_judge(&four, wish, strlen(rows[i].ids), why, sizeof why),
                         rows[i].why[0] == '\0');
        assert_non_null(strstr(why, rows[i].why));
    }
}

/* Change one thing of a good wish; what is said then. */
static const char *fault_with(void (*change)(struct generation_wish *wish))
{
    static char why[160];
    const struct generation three = founded(3);
    struct generation next;
    struct generation_wish wish[9];
    const size_t count = wishes(wish, "134", 3);

    change(wish);
    assert_false(generation_next(&three, wish, count, &next, why, sizeof why));
    return why;
}

static void unlink_new(struct generation_wish *wish)
{
    wish[2].linked = false;
}

static void fill_new(struct generation_wish *wish)
{
    wish[2].empty = false;
}

static void unlink_old(struct generation_wish *wish)
{
    wish[0].linked = wish[1].linked = false;
}

static void forget_old(struct generation_wish *wish)
{
    wish[1].identity = 0;
}

static void same_address(struct generation_wish *wish)
{
    memcpy(wish[1].address, wish[0].address, sizeof wish[0].address);
}

static void no_port(struct generation_wish *wish)
{
    memcpy(wish[1].address, "h", 2);
}

static void who_is_not_there_or_not_empty_is_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(fault_with(unlink_new), "no answer: start it there"));
    assert_non_null(strstr(fault_with(fill_new), "waits to join"));
    assert_non_null(strstr(fault_with(unlink_old), "no majority"));
    assert_non_null(strstr(fault_with(forget_old), "never seen"));
    assert_non_null(strstr(fault_with(same_address), "twice"));
    assert_non_null(strstr(fault_with(no_port), "HOST:PORT"));
}

static void bytes_come_back_and_no_prefix_does(void **state)
{
    const struct generation three = founded(3);
    struct generation four;
    struct generation back;
    struct buffer bytes = {0};
    struct buffer seal = {0};

    (void)state;
    assert_true(next_of(&three, "134", &four));
    generation_put(&bytes, &four);
    assert_true(generation_get(buffer_bytes(&bytes), &back));
    assert_memory_equal(&back, &four, sizeof back);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_false(generation_get(bytes_of(bytes.data, size), &back));
    }
    generation_put_seal(&seal, &four);
    assert_true(entry_is_seal(buffer_bytes(&seal)));
    assert_false(entry_is_seal(buffer_bytes(&bytes)));
    assert_true(generation_get_seal(buffer_bytes(&seal), &back));
    assert_memory_equal(&back, &four, sizeof back);
    bytes.data[12 + 16] = '\n'; // in an address, which stands in logs
    assert_false(generation_get(buffer_bytes(&bytes), &back));
    buffer_fini(&bytes);
    buffer_fini(&seal);
}

static void a_list_is_parsed_or_refused_whole(void **state)
{
    static const char *const bad[] = {"",
                                      "1",
                                      "1=",
                                      "=a:1",
                                      "1=a:1,",
                                      "1=a:1,,2=b:2",
                                      ",1=a:1",
                                      "x=a:1",
                                      "-1=a:1",
                                      "1=a:1,2=a:2,3=a:3,4=a:4,5=a:5,6=a:6"};
    struct generation_wish wish[GENERATION_VOTERS_MAX];
    size_t count = 0;

    (void)state;
    assert_true(generation_parse("1=a:1,22=[::1]:2", wish, &count));
    assert_int_equal(count, 2);
    assert_int_equal(wish[1].id, 22);
    assert_string_equal(wish[1].address, "[::1]:2");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(generation_parse(bad[i], wish, &count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_grows_shrinks_and_replaces),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(what_makes_no_sense_is_refused_whoever_is_there),
        cmocka_unit_test(an_id_is_never_used_again),
        cmocka_unit_test(who_is_not_there_or_not_empty_is_refused),
        cmocka_unit_test(bytes_come_back_and_no_prefix_does),
        cmocka_unit_test(a_list_is_parsed_or_refused_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
