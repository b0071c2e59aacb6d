/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store in a database elsewhere does when its line breaks: each story is what the line does,
 * in order, and what became of the tasks.
 *
 *     o x   the line can be opened, or not
 *     +     sent, done and answered
 *     L     sent and done; the line breaks before the answer
 *     H     the line breaks, and what was sent is done later, by late()
 *     C R   refused, since one spoils it for all; refused
 *     X     refused, and the line is closed
 *     s b   settled; settled, and the line breaks before the answer
 */
#include "base/log.h"
#include "storage/actors/remote/due_member.h"
#include "storage/actors/remote/remote.h"
#include "tests/planted.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { IDS = 26, LATE_MAX = 8 };

/* A database with a row for each letter, and the line to it. */
struct fixture {
    struct actor_store store;
    struct remote_store r;
    struct store_row row[IDS];
    struct store_task late[LATE_MAX];
    size_t late_count;
    const char *script; /* what is left of it */
    uint64_t now_ms;
    char sent[64]; /* ids of what went out, a space behind each send */
};

static struct fixture *begin(void)
{
    static struct fixture f;

    log_set_level(LOG_ERROR);
    f = (struct fixture){.now_ms = 1000};
    f.r.store = &f.store;
    remote_opened(&f.r, true, f.now_ms);
    return &f;
}

static struct store_row *row_of(struct fixture *f, const uint8_t *id)
{
    return &f->row[id[0] - 'a'];
}

static struct line_answer does(struct fixture *f, const struct store_task *t)
{
    struct store_row *row = row_of(f, t->id);

    if (t->verb == STORE_CLAIM) {
        row->fence = row->fence < t->fence ? t->fence : row->fence;
        return (struct line_answer){row->fence == t->fence ? LINE_DONE : LINE_ROW, *row};
    }
    if (t->verb == STORE_DUE) {
        return (struct line_answer){.said = LINE_DONE};
    }
    if (row->fence != t->fence || row->number + 1 != t->number) {
        return (struct line_answer){LINE_ROW, *row};
    }
    row->number++;
    return (struct line_answer){LINE_DONE, *row};
}

static void late(struct fixture *f)
{
    for (size_t i = 0; i < f->late_count; i++) {
        (void)does(f, &f->late[i]);
    }
    f->late_count = 0;
}

static void note(struct fixture *f, char c)
{
    const size_t size = strlen(f->sent);

    assert_true(size + 1 < sizeof f->sent);
    f->sent[size] = c;
}

static bool on_send(struct fixture *f, char how)
{
    for (size_t i = 0; i < f->r.chosen_count; i++) {
        const struct store_task *t = f->r.todo[i];
        struct line_answer a = {0};

        note(f, (char)t->id[0]);
        if (how == '+' || how == 'L') {
            a = does(f, t);
        } else if (how == 'H') {
            f->late[f->late_count++] = *t;
        } else {
            a.said = how == 'C' ? LINE_CROWDED : LINE_REFUSED;
        }
        if (how != 'L') {
            f->r.answer[i] = a;
        }
    }
    note(f, ' ');
    return how == '+' || how == 'C' || how == 'R';
}

static bool on_settle(struct fixture *f, char how)
{
    note(f, '!');
    for (size_t i = 0; i < f->r.doubt_count; i++) {
        const struct doubt *d = &f->r.doubt[i];
        struct store_row *row = row_of(f, d->id);

        if (how == 's') {
            f->r.answer[i] = (struct line_answer){LINE_ROW, *row};
        }
        if (row->fence == d->commit.fence && row->number + 1 == d->commit.number) {
            row->number = d->raised;
        }
    }
    return how == 's';
}

static void run(struct fixture *f, struct store_task *const *task, size_t count, const char *script)
{
    enum remote_step step;

    f->script = script;
    memset(f->sent, 0, sizeof f->sent);
    remote_begin(&f->r, task, count);
    while ((step = remote_next(&f->r, f->now_ms)) != REMOTE_DONE) {
        if (step == REMOTE_WAIT) {
            f->now_ms += f->r.wait_ms;
            continue;
        }
        const char how = *f->script++;
        if (step == REMOTE_OPEN) {
            assert_true(how == 'o' || how == 'x');
            remote_opened(&f->r, how == 'o', f->now_ms);
        } else if (step == REMOTE_SETTLE) {
            assert_true(how == 's' || how == 'b');
            remote_settled(&f->r, on_settle(f, how), f->now_ms);
        } else {
            assert_non_null(strchr("+LHCRX", how));
            remote_sent(&f->r, on_send(f, how), f->now_ms);
        }
    }
    assert_string_equal(f->script, "");
}

static struct store_task task_of(enum store_verb verb, char id, uint64_t fence, uint64_t number)
{
    return (struct store_task){.verb = (uint8_t)verb,
                               .result = 99,
                               .id_size = 1,
                               .id = {(uint8_t)id},
                               .fence = fence,
                               .number = number};
}

static int runs_one(struct fixture *f, struct store_task t, const char *script)
{
    struct store_task *one = &t;

    run(f, &one, 1, script);
    return t.result;
}

static int commits(struct fixture *f, uint64_t fence, uint64_t number, const char *script)
{
    return runs_one(f, task_of(STORE_COMMIT, 'a', fence, number), script);
}

static int claims(struct fixture *f, uint64_t fence, const char *script)
{
    return runs_one(f, task_of(STORE_CLAIM, 'a', fence, 0), script);
}

static void what_was_done_is_known_after_the_line_broke(void **state)
{
    struct fixture *f = begin();

    (void)state;
    assert_int_equal(claims(f, 5, "+"), STORE_DONE);
    assert_int_equal(commits(f, 5, 1, "+"), STORE_DONE);
    assert_int_equal(commits(f, 5, 2, "Los"), STORE_DONE);
    assert_int_equal(commits(f, 5, 3, "Lxxobos"), STORE_DONE); // nor is it done twice
    assert_int_equal(f->row[0].number, 3);
    assert_int_equal(f->store.counts.reconnects, 3);
}

static void what_was_not_done_can_not_be_done_later(void **state)
{
    struct fixture *f = begin();

    (void)state;
    assert_int_equal(claims(f, 5, "+"), STORE_DONE);
    assert_int_equal(commits(f, 5, 1, "Hos"), STORE_UNAVAILABLE);
    late(f);
    assert_int_equal(f->row[0].number, 2); // passed, by nobody's commit
    assert_int_equal(commits(f, 5, 3, "Hobos"), STORE_UNAVAILABLE);
    late(f);
    assert_int_equal(f->row[0].number, 4);
    assert_int_equal(claims(f, 5, "+"), STORE_DONE); // the actor's next life
    assert_int_equal(commits(f, 5, 5, "+"), STORE_DONE);
}

/* Or else it would be in doubt what the actor has when it is loaded. */
static void nothing_is_sent_before_doubts_are_settled(void **state)
{
    struct fixture *f = begin();
    struct store_task commit = task_of(STORE_COMMIT, 'a', 5, 1);
    struct store_task claim = task_of(STORE_CLAIM, 'a', 6, 0);
    struct store_task *both[] = {&commit, &claim};

    (void)state;
    assert_int_equal(claims(f, 5, "+"), STORE_DONE);
    run(f, both, 2, "Hos+");
    assert_string_equal(f->sent, "aa !a ");
    assert_int_equal(commit.result, STORE_UNAVAILABLE);
    assert_int_equal(claim.result, STORE_DONE);
    assert_int_equal(claim.number, 2);
    late(f);
    assert_int_equal(f->row[0].number, 2);
    // Nobody can be reached for so long that it was told UNKNOWN.
    assert_int_equal(commits(f, 6, 3, "Hxxxxxxxxxx"), STORE_UNKNOWN);
    assert_int_equal(claims(f, 6, ""), STORE_UNAVAILABLE); // it is not time to try again
    f->now_ms += REMOTE_BACKOFF_MAX_MS;
    assert_int_equal(claims(f, 6, "os+"), STORE_DONE);
    assert_string_equal(f->sent, "!a ");
    late(f);
    assert_int_equal(f->row[0].number, 4);
}

static void a_database_that_is_away_is_waited_for_and_then_refused(void **state)
{
    struct fixture *f = begin();
    const uint64_t begin_ms = f->now_ms;

    (void)state;
    assert_int_equal(claims(f, 5, "Hxxxo+"), STORE_DONE); // it restarted
    assert_true(f->now_ms - begin_ms < REMOTE_HOLD_MS);
    const uint64_t lost_ms = f->now_ms;
    assert_int_equal(claims(f, 5, "Hxxxxxx"), STORE_UNAVAILABLE);
    assert_int_equal(f->now_ms - lost_ms, REMOTE_HOLD_MS);
    assert_int_equal(claims(f, 5, ""), STORE_UNAVAILABLE); // at once, from now on
    f->now_ms += REMOTE_BACKOFF_MAX_MS;
    assert_int_equal(claims(f, 5, "x"), STORE_UNAVAILABLE);
    f->now_ms += REMOTE_BACKOFF_MAX_MS;
    assert_int_equal(claims(f, 5, "o+"), STORE_DONE);
    assert_int_equal(f->store.counts.reconnects, 2);
}

/* One that breaks with each send, or has a disk that is full. */
static void a_line_that_is_of_no_use_is_given_up(void **state)
{
    struct fixture *f = begin();

    (void)state;
    assert_int_equal(claims(f, 5, "LoLoLoL"), STORE_UNAVAILABLE);
    f->now_ms += REMOTE_BACKOFF_MAX_MS;
    assert_int_equal(commits(f, 5, 1, "oX"), STORE_UNAVAILABLE);
    assert_int_equal(f->r.doubt_count, 0);
    f->now_ms += REMOTE_BACKOFF_MAX_MS;
    assert_int_equal(commits(f, 5, 1, "oR"), STORE_UNAVAILABLE);
    assert_int_equal(commits(f, 5, 1, "+"), STORE_DONE); // the line is open still
    assert_int_equal(runs_one(f, task_of(STORE_DUE, 'a', 0, 7), "L"), STORE_UNAVAILABLE);
    assert_int_equal(runs_one(f, task_of(STORE_DUE, 'a', 0, 7), "o+"), STORE_DONE);
}

static void one_that_spoils_it_is_refused_alone(void **state)
{
    struct fixture *f = begin();
    struct store_task task[4];
    struct store_task *all[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        task[i] = task_of(STORE_CLAIM, (char)('a' + i), 5, 0);
        all[i] = &task[i];
    }
    run(f, all, 4, "C+RLo++");
    assert_string_equal(f->sent, "abcd a b c c d "); // in order, also when a line breaks
    assert_int_equal(task[0].result, STORE_DONE);
    assert_int_equal(task[1].result, STORE_UNAVAILABLE);
    assert_int_equal(task[2].result, STORE_DONE);
    assert_int_equal(task[3].result, STORE_DONE);
    run(f, all, 4, "+"); // together again
    assert_string_equal(f->sent, "abcd ");
}

static void a_new_owner_is_no_doubt_for_what_came_before(void **state)
{
    struct fixture *f = begin();

    (void)state;
    assert_int_equal(claims(f, 5, "+"), STORE_DONE);
    f->row[0].fence = 9;
    assert_int_equal(commits(f, 5, 1, "+"), STORE_FENCED);
    assert_int_equal(claims(f, 5, "+"), STORE_FENCED);
    assert_int_equal(commits(f, 5, 1, "Hos"), STORE_UNAVAILABLE);
    late(f);
    assert_int_equal(f->row[0].number, 0);
    f->row[0].number = 1; // its own, or the one in doubt
    assert_int_equal(commits(f, 5, 1, "Hos"), STORE_UNKNOWN);
}

static void an_old_copy_stops_the_store(void **state)
{
    struct fixture *f = begin();

    (void)state;
    assert_int_equal(claims(f, 5, "+"), STORE_DONE);
    assert_int_equal(commits(f, 5, 1, "+"), STORE_DONE);
    f->row[0] = (struct store_row){.fence = 5};
    assert_int_equal(commits(f, 5, 2, "+"), STORE_UNAVAILABLE);
    assert_int_equal(f->store.counts.went_back, 1);
    assert_int_equal(claims(f, 6, ""), STORE_UNAVAILABLE); // without a word to the database
    f = begin();
    f->row[0] = (struct store_row){.fence = 4, .number = 7};
    assert_int_equal(commits(f, 5, 3, "Hos"), STORE_UNKNOWN); // it was claimed with 5
    assert_int_equal(f->store.counts.went_back, 1);
}

static void members_are_in_the_order_of_ids_and_names(void **state)
{
    static const char *const ids[] = {"\0", "\0\1", "a", "a\0", "a\0\1", "ab"};
    static const size_t sizes[] = {1, 2, 1, 2, 3, 2};
    struct buffer before = {0};
    struct buffer now = {0};
    struct buffer id = {0};
    struct bytes name;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        buffer_clear(&now);
        due_member_put(&now, bytes_of(ids[i], sizes[i]));
        assert_false(due_member_split(buffer_bytes(&now), &id, &name)); // it has no name
        buffer_put(&now, "\0z", 2);
        const size_t least = before.size < now.size ? before.size : now.size;
        assert_true(least == 0 || memcmp(before.data, now.data, least) < 0);
        assert_true(due_member_split(buffer_bytes(&now), &id, &name));
        assert_true(bytes_equal(buffer_bytes(&id), bytes_of(ids[i], sizes[i])));
        assert_true(bytes_equal(name, bytes_of("\0z", 2)));
        buffer_clear(&before);
        buffer_put(&before, now.data, now.size);
    }
    assert_false(due_member_split(bytes_of("ann", 3), &id, &name));
    assert_false(due_member_split(bytes_of("\0\0z", 3), &id, &name));
    assert_false(due_member_split(bytes_of("", 0), &id, &name));
    buffer_fini(&before);
    buffer_fini(&now);
    buffer_fini(&id);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_done_is_known_after_the_line_broke),
        cmocka_unit_test(what_was_not_done_can_not_be_done_later),
        cmocka_unit_test(nothing_is_sent_before_doubts_are_settled),
        cmocka_unit_test(a_database_that_is_away_is_waited_for_and_then_refused),
        cmocka_unit_test(a_line_that_is_of_no_use_is_given_up),
        cmocka_unit_test(one_that_spoils_it_is_refused_alone),
        cmocka_unit_test(a_new_owner_is_no_doubt_for_what_came_before),
        cmocka_unit_test(an_old_copy_stops_the_store),
        cmocka_unit_test(members_are_in_the_order_of_ids_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_LATECOMMIT, M_OLDSTORE};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
