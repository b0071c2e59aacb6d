/* SPDX-License-Identifier: Apache-2.0
 *
 * The outbox of a durable actor: order for each receiver, tries, numbers, and what is in the store.
 * And the inbox of another one.
 */
#include "node/durable/outbox.h"

#include "base/mem.h"
#include "base/prng.h"
#include "node/durable/inbox.h"
#include "storage/actors/changes.h"
#include "tests/planted.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { KIND = 3 };

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

/* An outbox, and the rows that its commits have made. */
struct desk {
    struct actor_outbox box;
    struct buffer sealed;
    struct buffer row[64]; /* as changes_put() wrote them; empty = none */
    uint64_t number[64];
    size_t rows;
    uint64_t commit;
};

static void open_desk(struct desk *d)
{
    *d = (struct desk){0};
    outbox_init(&d->box);
}

static void close_desk(struct desk *d)
{
    outbox_fini(&d->box);
    buffer_fini(&d->sealed);
    for (size_t i = 0; i < d->rows; i++) {
        buffer_fini(&d->row[i]);
    }
}

static void put(struct desk *d, const char *to, const char *text)
{
    assert_true(outbox_put(&d->box, KIND, of(to), of(text)));
}

static uint64_t number_of(struct bytes key)
{
    uint64_t number = 0;

    for (size_t i = 0; i < key.size; i++) {
        number = number << 8 | key.data[i];
    }
    return number;
}

static void take_row(struct desk *d, const struct store_change *c)
{
    size_t i = 0;

    assert_int_equal(c->of, CHANGE_SEND);
    while (i < d->rows && d->number[i] != number_of(c->key)) {
        i++;
    }
    assert_true(c->gone == (i < d->rows)); // each is put once, and what is deleted is there
    if (c->gone) {
        buffer_clear(&d->row[i]);
        return;
    }
    assert_true(d->rows < 64);
    d->number[d->rows] = number_of(c->key);
    changes_put(&d->row[d->rows++], c);
}

/* Seal what there is, and have the store do it. */
static void commits(struct desk *d)
{
    struct store_change c;

    outbox_seal(&d->box, ++d->commit, &d->sealed);
    outbox_submitted(&d->box);
    struct bytes all = buffer_bytes(&d->sealed);
    while (changes_next(&all, &c)) {
        take_row(d, &c);
    }
    buffer_clear(&d->sealed);
    outbox_committed(&d->box);
}

/* The rows in their order, as a claim reads them. */
static void load(const struct desk *d, struct actor_outbox *into)
{
    struct buffer all = {0};

    for (size_t i = 0; i < d->rows; i++) {
        buffer_put(&all, d->row[i].data, d->row[i].size);
    }
    *into = (struct actor_outbox){0};
    outbox_init(into);
    assert_true(outbox_load(into, buffer_bytes(&all)));
    buffer_fini(&all);
}

/* "receiver:text …", `!` = it may have been taken before; the numbers go to `number`. */
static const char *tries(struct actor_outbox *o, uint64_t now_us, uint64_t *number)
{
    static char text[256];
    struct outbox_send s;
    size_t used = 0;

    text[0] = '\0';
    while (outbox_next(o, now_us, &s)) {
        assert_int_equal(s.kind, KIND);
        *number++ = s.number;
        used += (size_t)snprintf(text + used,
                                 sizeof text - used,
                                 "%s%.*s:%.*s ",
                                 s.again ? "!" : "",
                                 (int)s.id.size,
                                 (const char *)s.id.data,
                                 (int)s.payload.size,
                                 (const char *)s.payload.data);
    }
    return text;
}

static void none_leaves_before_its_commit(void **state)
{
    struct desk d;
    uint64_t n[8] = {0};

    (void)state;
    open_desk(&d);
    put(&d, "bob", "1");
    assert_string_equal(tries(&d.box, 1, n), "");
    outbox_seal(&d.box, 1, &d.sealed);
    assert_string_equal(tries(&d.box, 1, n), "");
    outbox_submitted(&d.box);
    put(&d, "cid", "2"); // for the commit after that
    assert_string_equal(tries(&d.box, 1, n), "");
    outbox_committed(&d.box);
    assert_string_equal(tries(&d.box, 1, n), "bob:1 ");
    outbox_undo(&d.box);
    assert_false(outbox_is_changed(&d.box));
    close_desk(&d);
}

static void one_receiver_gets_them_in_order(void **state)
{
    struct desk d;
    uint64_t n[8] = {0};
    uint64_t more[8] = {0};

    (void)state;
    open_desk(&d);
    put(&d, "bob", "1");
    put(&d, "bob", "2");
    put(&d, "cid", "3");
    commits(&d);
    put(&d, "bob", "4");
    commits(&d);
    assert_string_equal(tries(&d.box, 1, n), "bob:1 cid:3 ");
    assert_int_equal(outbox_ended(&d.box, n[0], false, 1), 1);
    assert_int_equal(outbox_ended(&d.box, n[1], true, 1), 0);
    assert_string_equal(tries(&d.box, 1, more), "");
    assert_int_equal(outbox_wakes_us(&d.box), 1 + OUTBOX_AGAIN_MIN_US);
    assert_string_equal(tries(&d.box, 1 + OUTBOX_AGAIN_MIN_US, more), "!bob:1 ");
    assert_int_equal(more[0], n[0]);
    (void)outbox_ended(&d.box, n[0], true, 2);
    (void)outbox_ended(&d.box, n[0], true, 2); // an answer that comes twice
    assert_string_equal(tries(&d.box, 2, more), "bob:2 ");
    (void)outbox_ended(&d.box, more[0], true, 2);
    assert_string_equal(tries(&d.box, 2, more), "bob:4 ");
    assert_true(more[0] > n[0] && more[0] > n[1]);
    (void)outbox_ended(&d.box, more[0], true, 2);
    commits(&d);
    for (size_t i = 0; i < d.rows; i++) {
        assert_int_equal(d.row[i].size, 0);
    }
    assert_int_equal(d.box.count, 0);
    assert_int_equal(d.box.size, 0);
    close_desk(&d);
}

static void the_next_owner_sends_the_rest(void **state)
{
    struct desk d;
    struct actor_outbox next;
    uint64_t n[8] = {0};
    uint64_t again[8] = {0};

    (void)state;
    open_desk(&d);
    put(&d, "bob", "1");
    put(&d, "cid", "2");
    commits(&d);
    (void)tries(&d.box, 1, n);
    (void)outbox_ended(&d.box, n[1], true, 1); // but no commit deletes its row any more
    load(&d, &next);
    assert_string_equal(tries(&next, 1, again), "!bob:1 !cid:2 ");
    assert_int_equal(again[0], n[0]); // by the same names
    assert_int_equal(again[1], n[1]);
    outbox_fini(&next);
    close_desk(&d);
}

static void limits_refuse_and_change_nothing(void **state)
{
    struct desk d;

    (void)state;
    open_desk(&d);
    for (size_t i = 0; i < OUTBOX_MAX; i++) {
        char to[16];

        (void)snprintf(to, sizeof to, "p%zu", i % 100);
        put(&d, to, "x");
    }
    assert_false(outbox_put(&d.box, KIND, of("bob"), of("x")));
    outbox_undo(&d.box);
    assert_int_equal(d.box.count, 0);
    void *big = mem_new(1, CHANGES_VALUE_MAX - OUTBOX_HEAD_MAX);
    const struct bytes much = bytes_of(big, CHANGES_VALUE_MAX - OUTBOX_HEAD_MAX);
    for (size_t i = 0; i < 16; i++) {
        assert_true(outbox_put(&d.box, KIND, of("bob"), much));
    }
    assert_false(outbox_put(&d.box, KIND, of("bob"), much));
    mem_free(big);
    close_desk(&d);
}

static void a_row_that_somebody_else_wrote_is_refused(void **state)
{
    const struct store_change bad[] = {
        {.of = CHANGE_SEND,
         .key = of("short"),
         .bytes = of("\x03\0\x01"
                     "b")},
        {.of = CHANGE_SEND,
         .key = bytes_of("\0\0\0\0\0\0\0\1", 8),
         .bytes = bytes_of("\3\0\5b", 4)},
        {.of = CHANGE_SEND, .key = bytes_of("\0\0\0\0\0\0\0\1", 8), .bytes = bytes_of("\3\0\0", 3)},
        {.of = CHANGE_SEND,
         .key = bytes_of("\0\0\0\0\0\0\0\0", 8),
         .bytes = bytes_of("\3\0\1b", 4)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct actor_outbox o = {0};
        struct buffer all = {0};

        outbox_init(&o);
        changes_put(&all, &bad[i]);
        assert_false(outbox_load(&o, buffer_bytes(&all)));
        buffer_fini(&all);
        outbox_fini(&o);
    }
}

static uint64_t digits_of(struct bytes text)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.size; i++) {
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return number;
}

/* Any mix of sends, commits, tries and take-overs: each is taken, by each receiver in order. */
static void all_are_taken_in_order(void **state)
{
    struct prng random = {20};

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct desk d;
        uint64_t put_to[3] = {0};
        uint64_t taken_of[3] = {0};
        uint64_t now_us = 1;

        open_desk(&d);
        while (put_to[0] + put_to[1] + put_to[2] < 40 || d.box.count > 0) {
            struct outbox_send s;
            const uint64_t what = prng_between(&random, 0, 9);
            char to[2] = {(char)('a' + prng_between(&random, 0, 2)), '\0'};
            char text[24];

            if (what < 3 && put_to[0] + put_to[1] + put_to[2] < 40) {
                (void)snprintf(text, sizeof text, "%u", (unsigned)++put_to[to[0] - 'a']);
                put(&d, to, text);
            }
            if (what == 4) {
                commits(&d);
            }
            if (what == 5) { // somebody else goes on with what is in the store
                commits(&d);
                outbox_fini(&d.box);
                load(&d, &d.box);
            }
            now_us += 7000;
            while (what > 5 && outbox_next(&d.box, now_us, &s)) {
                const size_t who = (size_t)(s.id.data[0] - 'a');
                const uint64_t n = digits_of(s.payload);

                // Never before the one ahead of it, and never but the next, or one that was taken.
                assert_true(n <= taken_of[who] + 1);
                taken_of[who] = n > taken_of[who] ? n : taken_of[who];
                (void)outbox_ended(&d.box, s.number, prng_between(&random, 0, 2) > 0, now_us);
            }
        }
        assert_memory_equal(put_to, taken_of, sizeof put_to);
        close_desk(&d);
    }
}

static void what_was_taken_is_known_by_its_number(void **state)
{
    struct inbox box = {0};
    struct inbox next = {0};
    struct buffer rows = {0};

    (void)state;
    inbox_init(&box);
    inbox_init(&next);
    assert_false(inbox_has(&box, KIND, of("ann"), 7));
    inbox_take(&box, KIND, of("ann"), 7);
    assert_true(inbox_has(&box, KIND, of("ann"), 7));
    assert_true(inbox_has(&box, KIND, of("ann"), 6));
    assert_false(inbox_has(&box, KIND, of("ann"), 8));
    assert_false(inbox_has(&box, KIND + 1, of("ann"), 7));
    inbox_undo(&box);
    assert_false(inbox_has(&box, KIND, of("ann"), 7));
    inbox_take(&box, KIND, of("ann"), 7);
    inbox_seal(&box, &rows);
    assert_false(inbox_is_changed(&box));
    inbox_take(&box, KIND, of("ann"), 9);
    inbox_undo(&box);
    assert_true(inbox_has(&box, KIND, of("ann"), 7));
    assert_false(inbox_has(&box, KIND, of("ann"), 9));
    assert_true(inbox_load(&next, buffer_bytes(&rows)));
    assert_true(inbox_has(&next, KIND, of("ann"), 7));
    assert_false(inbox_is_changed(&next));
    buffer_fini(&rows);
    inbox_fini(&next);
    inbox_fini(&box);
}

static bool knows(const struct inbox *box, uint32_t sender)
{
    return inbox_has(box, KIND, bytes_of(&sender, sizeof sender), 1);
}

static void who_sent_long_ago_is_forgotten(void **state)
{
    struct inbox box = {0};
    struct buffer rows = {0};
    const uint32_t first = 0;

    (void)state;
    inbox_init(&box);
    for (uint32_t i = 0; i < INBOX_SENDERS_MAX - 1; i++) {
        inbox_take(&box, KIND, bytes_of(&i, sizeof i), 1);
    }
    inbox_seal(&box, &rows);
    inbox_take(&box, KIND, bytes_of(&first, sizeof first), 2);
    const uint32_t last = INBOX_SENDERS_MAX - 1;
    inbox_take(&box, KIND, bytes_of(&last, sizeof last), 1);
    buffer_clear(&rows);
    inbox_seal(&box, &rows);
    assert_true(knows(&box, first) && knows(&box, last) && knows(&box, last - 1));
    assert_false(knows(&box, 1));
    assert_true(box.senders.there < INBOX_SENDERS_MAX);
    assert_true(rows.size > 0);
    buffer_fini(&rows);
    inbox_fini(&box);
}

/* As another program may have filled the table: no room is left for the next that is taken. */
static void more_senders_than_a_seal_leaves_are_refused(void **state)
{
    struct inbox box = {0};
    struct buffer rows = {0};
    const uint8_t row[16] = {0};

    (void)state;
    inbox_init(&box);
    for (uint32_t i = 0; i < INBOX_SENDERS_MAX; i++) {
        const uint8_t key[6] = {
            0, KIND, (uint8_t)(i >> 24), (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};

        changes_put(&rows,
                    &(struct store_change){.of = CHANGE_TAKEN,
                                           .key = bytes_of(key, sizeof key),
                                           .bytes = bytes_of(row, sizeof row)});
    }
    assert_false(inbox_load(&box, buffer_bytes(&rows)));
    buffer_fini(&rows);
    inbox_fini(&box);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_leaves_before_its_commit),
        cmocka_unit_test(one_receiver_gets_them_in_order),
        cmocka_unit_test(the_next_owner_sends_the_rest),
        cmocka_unit_test(limits_refuse_and_change_nothing),
        cmocka_unit_test(a_row_that_somebody_else_wrote_is_refused),
        cmocka_unit_test(all_are_taken_in_order),
        cmocka_unit_test(what_was_taken_is_known_by_its_number),
        cmocka_unit_test(who_sent_long_ago_is_forgotten),
        cmocka_unit_test(more_senders_than_a_seal_leaves_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_OUTBOXLOST, M_SENDTWICE};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
