/* SPDX-License-Identifier: Apache-2.0
 *
 * A test of gifts.c without a fleet: docs/testing.md explains it.
 *
 *     cc -Iinclude examples/gifts_test.c examples/gifts.c $(pkg-config --libs ringhold-test)
 */
#include <ringhold_test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *what, const char *is, const char *wanted)
{
    if (strcmp(is, wanted) != 0) {
        (void)fprintf(stderr, "%s: \"%s\" instead of \"%s\"\n", what, is, wanted);
        exit(1);
    }
}

static void gold(struct rh_test *t, const char *who, const char *wanted)
{
    expect(who, rh_test_call(t, 0, who, "gold"), wanted);
}

/* Whatever becomes of the commits, and however often the node is killed, a gift arrives once. */
static void a_gift_arrives_once(enum rh_test_commits how, uint32_t count)
{
    struct rh_test *t = rh_test_new();

    (void)rh_test_host(t, 0, &ringhold_actor, NULL);
    expect("earn", rh_test_call(t, 0, "ann", "earn 10"), "10");
    rh_test_commits(t, how, count);
    rh_test_send(t, 0, "ann", "give bob 3");
    rh_test_advance(t, 60000);
    gold(t, "ann", "7");
    gold(t, "bob", "3");
    rh_test_free(t);
}

int main(void)
{
    a_gift_arrives_once(RH_TEST_COMMITS_GOOD, 0);
    for (uint32_t count = 1; count <= 5; count++) {
        a_gift_arrives_once(RH_TEST_COMMITS_BEFORE, count);
        a_gift_arrives_once(RH_TEST_COMMITS_BEHIND, count);
    }
    (void)printf("ok\n");
    return 0;
}
