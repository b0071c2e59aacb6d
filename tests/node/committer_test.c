/* SPDX-License-Identifier: Apache-2.0
 *
 * The store's thread: what comes while it does one transaction goes in the next, in order.
 */
#include "base/mem.h"
#include "node/durable/committer_uv.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdbool.h>

enum { TASKS_MAX = 4096 };

/* A store whose transactions take until they are let go. */
struct gate {
    struct actor_store store;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t bell;
    size_t begun;            /* transactions */
    size_t allowed;          /* of these may end */
    size_t sizes[TASKS_MAX]; /* of each */
    size_t done_count;
    uint64_t done[TASKS_MAX]; /* numbers of the tasks, in order */
    bool closed;
};

static struct gate gate;

static void perform(struct actor_store *store, struct store_task *const *task, size_t count)
{
    (void)store;
    (void)pthread_mutex_lock(&gate.lock);
    gate.sizes[gate.begun++] = count;
    (void)pthread_cond_broadcast(&gate.bell);
    while (gate.allowed < gate.begun) {
        (void)pthread_cond_wait(&gate.bell, &gate.lock);
    }
    (void)pthread_mutex_unlock(&gate.lock);
    for (size_t i = 0; i < count; i++) {
        task[i]->result = (uint8_t)(task[i]->number % 4); // one of each kind
    }
}

static void on_close(struct actor_store *store)
{
    (void)store;
    gate.closed = true;
}

static void on_done(struct store_task *task)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.done[gate.done_count++] = task->number;
    (void)pthread_mutex_unlock(&gate.lock);
    store_task_free(task);
}

static struct committer *open_gate(size_t allowed)
{
    gate = (struct gate){.store = {.perform = perform, .close = on_close}, .allowed = allowed};
    (void)pthread_mutex_init(&gate.lock, NULL);
    (void)pthread_cond_init(&gate.bell, NULL);
    struct committer *c = committer_new(&gate.store, on_done);
    assert_non_null(c);
    return c;
}

static void close_gate(struct committer *c)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.allowed = SIZE_MAX;
    (void)pthread_cond_broadcast(&gate.bell);
    (void)pthread_mutex_unlock(&gate.lock);
    committer_free(c);
    assert_true(gate.closed);
    (void)pthread_cond_destroy(&gate.bell);
    (void)pthread_mutex_destroy(&gate.lock);
}

static void await_begun(size_t count)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (gate.begun < count) {
        (void)pthread_cond_wait(&gate.bell, &gate.lock);
    }
    (void)pthread_mutex_unlock(&gate.lock);
}

static void put(struct committer *c, uint64_t number, size_t size)
{
    struct store_task *t = store_task_new(STORE_COMMIT);

    t->number = number;
    (void)buffer_reserve(&t->bytes, size);
    t->bytes.size = size;
    committer_put(c, t);
}

static void what_comes_meanwhile_goes_together(void **state)
{
    struct committer *c = open_gate(0);
    struct committer_stats stats;

    (void)state;
    put(c, 0, 1);
    await_begun(1);
    for (uint64_t i = 1; i <= 7; i++) {
        put(c, i, 1);
    }
    committer_stats(c, &stats);
    assert_int_equal(stats.waiting, 8);
    assert_int_equal(stats.transactions, 0);
    (void)pthread_mutex_lock(&gate.lock);
    gate.allowed = 1;
    (void)pthread_cond_broadcast(&gate.bell);
    (void)pthread_mutex_unlock(&gate.lock);
    await_begun(2);
    committer_stats(c, &stats);
    assert_int_equal(stats.waiting, 7);
    assert_int_equal(stats.commits, 1);
    assert_int_equal(stats.sizes.bucket[0], 1); // one transaction, of one task
    assert_int_equal(stats.sizes.sum_us, 1000);
    close_gate(c);
    assert_int_equal(gate.begun, 2);
    assert_int_equal(gate.sizes[1], 7);
    assert_int_equal(gate.done_count, 8);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(gate.done[i], i);
    }
}

static void a_transaction_has_an_end(void **state)
{
    struct committer *c = open_gate(0);

    (void)state;
    put(c, 0, 1);
    await_begun(1);
    for (uint64_t i = 1; i <= COMMITTER_TASKS_MAX + 1; i++) {
        put(c, i, 1);
    }
    put(c, 0, COMMITTER_SIZE_MAX);
    put(c, 0, 1);
    close_gate(c);
    assert_int_equal(gate.begun, 4);
    assert_int_equal(gate.sizes[1], COMMITTER_TASKS_MAX);
    assert_int_equal(gate.sizes[2], 2); // the last of these, and the large one
    assert_int_equal(gate.sizes[3], 1);
}

static void each_result_is_counted(void **state)
{
    struct committer *c = open_gate(SIZE_MAX);
    struct committer_stats stats;

    (void)state;
    gate.store.counts.reconnects = 7;
    for (uint64_t i = 0; i < 4; i++) {
        put(c, i, 1);
    }
    do { // there is no bell for that, and nothing else to wait for
        committer_stats(c, &stats);
    } while (stats.waiting > 0);
    assert_int_equal(stats.commits, 1);
    assert_int_equal(stats.fenced, 1);
    assert_int_equal(stats.unavailable, 1);
    assert_int_equal(stats.unknown, 1);
    assert_int_equal(stats.claims, 0);
    assert_int_equal(stats.store.reconnects, 7);
    close_gate(c);
}

static void none_is_fine(void **state)
{
    (void)state;
    committer_free(NULL);
    close_gate(open_gate(0));
    assert_int_equal(gate.begun, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_meanwhile_goes_together),
        cmocka_unit_test(a_transaction_has_an_end),
        cmocka_unit_test(each_result_is_counted),
        cmocka_unit_test(none_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
