/* SPDX-License-Identifier: Apache-2.0
 *
 * examples/store_sqlite.c: two owners of one id on one file. Only the one with
 * the greater token writes, whatever the other does and when.
 */
#include "tests/test.h"

#include "node/worker/kinds.h"
#include "tests/folder.h"
#include "tests/node/runtime_rig.h"

#include <libgen.h>
#include <unistd.h>

/* One node: the kind, and the actor "id" on it. */
struct owner {
    struct kinds kinds;
    struct runtime_rig runtime_rig;
};

static char folder[256];
static struct owner old;
static struct owner next;

static void load(struct owner *o, const char *node)
{
    char here[512];
    char name[1400];
    const ssize_t size = readlink("/proc/self/exe", here, sizeof here - 1);

    assert_true(size > 0);
    here[size] = '\0';
    (void)snprintf(
        name, sizeof name, "%s/../../examples/store_sqlite.so=%s/store.db", dirname(here), folder);
    *o = (struct owner){0};
    assert_int_equal(kinds_add_named(&o->kinds, 0, name), ERR_OK);
    assert_int_equal(kinds_start(&o->kinds, node), ERR_OK);
    runtime_rig_build(&o->runtime_rig);
}

/* Activate the actor under a fence. */
static enum err claim(struct owner *o, uint64_t fence)
{
    const struct kind *kind = kinds_find(&o->kinds, 0);
    const struct runtime_entry entry = {.ops = &kind->ops, .shared = kind->shared, .fence = fence};

    runtime_rig_enter(&o->runtime_rig, &entry);
    return o->runtime_rig.error;
}

static int set_up(void **state)
{
    (void)state;
    folder_make(folder, sizeof folder);
    load(&old, "n1");
    load(&next, "n2");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    runtime_rig_close(&old.runtime_rig);
    runtime_rig_close(&next.runtime_rig);
    kinds_fini(&old.kinds);
    kinds_fini(&next.kinds);
    folder_remove(folder);
    return 0;
}

static void the_next_owner_reads_what_was_written(void **state)
{
    (void)state;
    assert_int_equal(claim(&old, 7), ERR_OK);
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "INCR"), "1");
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "INCR"), "2");
    assert_int_equal(claim(&next, 9), ERR_OK);
    assert_string_equal(runtime_rig_call(&next.runtime_rig, "GET"), "2");
    assert_string_equal(runtime_rig_call(&next.runtime_rig, "INCR"), "3");
}

static void a_late_write_is_refused_and_counted(void **state)
{
    (void)state;
    assert_int_equal(claim(&old, 7), ERR_OK);
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "INCR"), "1");
    assert_int_equal(claim(&next, 9), ERR_OK);
    // Not written by the new owner yet: the claim alone keeps the old one out.
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "SLOW 1"),
                        "FENCED another node has this id now");
    assert_string_equal(runtime_rig_call(&next.runtime_rig, "INCR"), "2");
    assert_string_equal(runtime_rig_call(&next.runtime_rig, "REFUSED"), "1");
    // It does not try again.
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "INCR"),
                        "FENCED another node has this id now");
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "GET"),
                        "FENCED another node has this id now");
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "REFUSED"), "1");
}

static void a_late_claim_is_refused(void **state)
{
    (void)state;
    assert_int_equal(claim(&next, 9), ERR_OK);
    assert_string_equal(runtime_rig_call(&next.runtime_rig, "INCR"), "1");
    assert_int_equal(claim(&old, 7), ERR_REFUSED);
    assert_string_equal(runtime_rig_call(&next.runtime_rig, "INCR"), "2");
    assert_int_equal(claim(&old, 9), ERR_OK); // The same owner, anew.
    assert_string_equal(runtime_rig_call(&old.runtime_rig, "GET"), "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_next_owner_reads_what_was_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_write_is_refused_and_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_claim_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
