/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prng.h"
#include "ring/snapshot.h"

#include "tests/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static void assert_shows(const struct ring_snapshot *s, const struct ring *r)
{
    assert_int_equal(s->version, r->version);
    assert_memory_equal(s->digest, r->digest, sizeof r->digest);
    assert_int_equal(s->table.grid, r->grid);
    assert_memory_equal(s->table.cell, r->cell, sizeof *r->cell << r->grid);
    for (size_t i = 0; i < r->vnode_count; i++) {
        assert_true(r->vnode[i].id < s->generation_count);
        assert_int_equal(s->generation[r->vnode[i].id], r->vnode[i].generation);
    }
}

/* A legal op, most of them MOVEs; false if the dice gave none. */
static bool random_op(struct prng *p, const struct ring *r, struct ring_op *op)
{
    const struct ring_vnode *v = &r->vnode[prng_u64(p) % r->vnode_count];

    *op = (struct ring_op){.kind = RING_MOVE, .vnode = v->id, .from = v->owner};
    op->to = (uint16_t)prng_between(p, 1, 3);
    if (prng_chance(p, 20)) {
        op->kind = RING_SPLIT;
        op->other = (uint32_t)prng_between(p, 0, 2000);
        op->at = (v->from + ring_end(r, v)) / 2;
    } else if (prng_chance(p, 20) && v + 1 < r->vnode + r->vnode_count) {
        op->kind = RING_MERGE;
        op->other = v[1].id;
    }
    return ring_check(r, op, 1) == ERR_OK;
}

static void each_snapshot_shows_the_ring_as_published(void **state)
{
    struct prng p = {9};
    struct publisher *publisher;
    struct ring r;

    (void)state;
    ring_init(&r, 12);
    ring_create(&r, 100, 1, 1);
    publisher = publisher_new(&r, 1);
    assert_shows(publisher_current(publisher), &r);
    for (unsigned round = 0; round < 2000; round++) {
        // Now and then so many changes that the log is too short, or one that is not an op.
        uint64_t changes = round % 500 == 499 ? 6000 : prng_between(&p, 0, 5);

        for (uint64_t i = 0; i < changes; i++) {
            struct ring_op op;

            if (random_op(&p, &r, &op)) {
                ring_apply(&r, &op, 1, r.version + 1, 1);
                publisher_note(publisher, &op, 1);
            }
        }
        if (prng_chance(&p, 2)) {
            ring_renew_owner(&r, 2, r.version + 1);
            publisher_note_all(publisher);
        }
        assert_int_equal(publisher_publish(publisher, &r), ERR_OK);
        assert_shows(publisher_current(publisher), &r);
    }
    publisher_free(publisher);
    ring_fini(&r);
}

static void another_grid_is_published_too(void **state)
{
    struct publisher *publisher;
    struct ring small;
    struct ring large;

    (void)state;
    ring_init(&small, 4);
    ring_create(&small, 3, 1, 1);
    ring_init(&large, 14);
    ring_create(&large, 5000, 2, 2);
    publisher = publisher_new(&small, 0);
    for (unsigned round = 0; round < 12; round++) {
        const struct ring *r = round / 2 % 2 == 0 ? &large : &small;

        publisher_note_all(publisher);
        assert_int_equal(publisher_publish(publisher, r), ERR_OK);
        assert_shows(publisher_current(publisher), r);
    }
    publisher_free(publisher);
    ring_fini(&small);
    ring_fini(&large);
}

static void move_all(struct ring *r, struct publisher *p)
{
    for (uint32_t v = 0; v < r->vnode_count; v++) {
        const uint16_t owner = ring_find(r, v)->owner;
        const struct ring_op op = {
            .kind = RING_MOVE, .vnode = v, .from = owner, .to = owner % 4095 + 1};

        ring_apply(r, &op, 1, r->version + (v == 0), 1);
        publisher_note(p, &op, 1);
    }
}

static void a_snapshot_in_use_is_never_written(void **state)
{
    const struct ring_snapshot *held;
    struct publisher *p;
    struct ring was;
    struct ring r;

    (void)state;
    ring_init(&r, 6);
    ring_create(&r, 8, 1, 1);
    ring_copy(&was, &r);
    p = publisher_new(&r, 2);
    publisher_reader_start(p, 0);
    publisher_reader_start(p, 1);
    held = publisher_current(p);

    move_all(&r, p);
    assert_int_equal(publisher_publish(p, &r), ERR_OK);
    publisher_reader_rest(p, 1);
    move_all(&r, p);
    assert_int_equal(publisher_publish(p, &r), ERR_OK);
    publisher_reader_rest(p, 1);
    move_all(&r, p);
    assert_int_equal(publisher_publish(p, &r), ERR_BUSY);
    assert_shows(held, &was);
    assert_int_equal(publisher_current(p)->version, r.version - 1);

    // The reader rests; what was noted before is not lost.
    publisher_reader_rest(p, 0);
    assert_int_equal(publisher_publish(p, &r), ERR_OK);
    assert_shows(publisher_current(p), &r);

    // One that stopped holds nothing up; the other starts again at the newest.
    publisher_reader_stop(p, 0);
    for (unsigned i = 0; i < 5; i++) {
        publisher_reader_rest(p, 1);
        move_all(&r, p);
        assert_int_equal(publisher_publish(p, &r), ERR_OK);
    }
    publisher_reader_start(p, 0);
    assert_shows(publisher_current(p), &r);
    publisher_reader_stop(p, 0);
    publisher_reader_stop(p, 1);
    publisher_free(p);
    ring_fini(&was);
    ring_fini(&r);
}

/* ---- threads: a batch sees one version, whole ---- */

enum { READERS = 3 };

struct world {
    struct publisher *publisher;
    _Atomic bool done;
    _Atomic unsigned torn;     /* snapshots that were not of one version */
    _Atomic unsigned backward; /* versions that went down */
    _Atomic unsigned ready;    /* readers that have read once */
    _Atomic size_t next;       /* reader number */
};

/* Every vnode has one owner at each version, and all have the version as generation. */
static bool whole(const struct ring_snapshot *s)
{
    uint16_t owner = ring_hit_node(s->table.cell[0]);

    for (size_t c = 0; c < (size_t)1 << s->table.grid; c++) {
        ring_hit hit = s->table.cell[c];

        if (ring_hit_node(hit) != owner || s->generation[ring_hit_vnode(hit)] != s->version) {
            return false;
        }
    }
    return true;
}

static void *read_on(void *argument)
{
    struct world *w = argument;
    size_t me = atomic_fetch_add(&w->next, 1);
    uint64_t version = 0;

    for (unsigned turn = 0; !atomic_load(&w->done); turn++) {
        const struct ring_snapshot *s;

        if (turn % 100 == 0) {
            publisher_reader_start(w->publisher, me);
        }
        s = publisher_current(w->publisher);
        atomic_fetch_add(&w->torn, !whole(s));
        atomic_fetch_add(&w->backward, s->version < version);
        version = s->version;
        if (turn == 0) {
            atomic_fetch_add(&w->ready, 1);
        }
        if (turn % 100 == 99) {
            publisher_reader_stop(w->publisher, me);
        } else {
            publisher_reader_rest(w->publisher, me);
        }
    }
    publisher_reader_stop(w->publisher, me);
    return NULL;
}

static void readers_on_other_threads_see_whole_versions(void **state)
{
    pthread_t thread[READERS];
    struct world w = {0};
    unsigned published = 0;
    struct ring r;

    (void)state;
    ring_init(&r, 6);
    ring_create(&r, 16, 1, 1);
    w.publisher = publisher_new(&r, READERS);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, read_on, &w), 0);
    }
    while (published < 500 || atomic_load(&w.ready) < READERS) {
        move_all(&r, w.publisher);
        if (publisher_publish(w.publisher, &r) == ERR_OK) {
            published++;
        } else {
            (void)sched_yield(); // a reader that does not run can't rest
        }
    }
    atomic_store(&w.done, true);
    for (unsigned i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(w.torn, 0);
    assert_int_equal(w.backward, 0);
    publisher_free(w.publisher);
    ring_fini(&r);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(each_snapshot_shows_the_ring_as_published),
        cmocka_unit_test(another_grid_is_published_too),
        cmocka_unit_test(a_snapshot_in_use_is_never_written),
        cmocka_unit_test(readers_on_other_threads_see_whole_versions),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
