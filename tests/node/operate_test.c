/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator reads and changes of an actor's values, page by page.
 */
#include "node/durable/operate.h"

#include "base/mem.h"
#include "tests/planted.h"
#include "tests/test.h"

enum { NUMBER = 12 };

struct fixture {
    struct named_values values;
    struct values_batch batch;
    struct buffer out;
    struct values_answer answer; /* the last; borrows `out` */
};

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static void open_values(struct fixture *f)
{
    *f = (struct fixture){0};
    named_values_init(&f->values);
}

static void close_values(struct fixture *f)
{
    named_values_fini(&f->values);
    values_batch_fini(&f->batch);
    buffer_fini(&f->out);
}

static enum values_status ask(struct fixture *f, const struct values_ask *a)
{
    buffer_clear(&f->out);
    values_operate(&f->values, &f->batch, a, NUMBER, &f->out);
    assert_int_equal(values_answer_get(buffer_bytes(&f->out), &f->answer), ERR_OK);
    assert_int_equal(f->answer.number, NUMBER);
    return (enum values_status)f->answer.status;
}

/* As the actor's code would. */
static void put(struct fixture *f, const char *key, struct bytes value)
{
    struct buffer sealed = {0};

    assert_int_equal(named_values_put(&f->values, of(key), value), NAMED_PUT_DONE);
    named_values_seal(&f->values, &sealed);
    buffer_fini(&sealed);
}

static void row(struct buffer *rows, const char *key, const char *value)
{
    values_row_put(rows,
                   &(struct values_row){.gone = value == NULL,
                                        .key = of(key),
                                        .value = of(value == NULL ? "" : value)});
}

/* "a=1 b=2 " */
static const char *all(const struct fixture *f)
{
    static char text[256];
    struct bytes key = {0};
    struct bytes value;
    size_t used = 0;

    text[0] = '\0';
    while (named_values_next(&f->values, key, &key, &value)) {
        used += (size_t)snprintf(text + used,
                                 sizeof text - used,
                                 "%.*s=%.*s ",
                                 (int)key.size,
                                 (const char *)key.data,
                                 (int)value.size,
                                 (const char *)value.data);
    }
    return text;
}

static void values_are_read_in_pages_that_cut_them(void **state)
{
    const size_t size = 600000;
    uint8_t *big = mem_new(size, 1);
    struct values_ask a = {.verb = VALUES_READ};
    struct values_piece p;
    struct buffer value = {0};
    struct fixture f;
    size_t pages = 0;
    size_t whole = 0;
    char key[8] = "";

    (void)state;
    open_values(&f);
    memset(big, 7, size);
    put(&f, "a", of("1"));
    put(&f, "big", bytes_of(big, size));
    put(&f, "z", of(""));
    do {
        assert_int_equal(ask(&f, &a), VALUES_DONE);
        assert_true(f.answer.pieces.size <= VALUES_PAGE_SIZE);
        struct reader in = {.at = f.answer.pieces.data, .left = f.answer.pieces.size};
        while (values_piece_next(&in, &p)) {
            value.size = p.at == 0 ? 0 : value.size;
            assert_int_equal(value.size, p.at);
            buffer_put(&value, p.bytes.data, p.bytes.size);
            whole += value.size == p.whole;
            (void)snprintf(key, sizeof key, "%.*s", (int)p.key.size, (const char *)p.key.data);
            assert_true(p.whole != size || value.size < size || memcmp(value.data, big, size) == 0);
        }
        assert_false(in.bad);
        a.key = of(key);
        a.offset = value.size == p.whole ? 0 : (uint32_t)value.size;
        pages++;
    } while (f.answer.more);
    assert_int_equal(pages, 3);
    assert_int_equal(whole, 3);
    buffer_fini(&value);
    mem_free(big);
    close_values(&f);
}

static void one_value_is_read_alone(void **state)
{
    struct fixture f;
    struct values_piece p;

    (void)state;
    open_values(&f);
    put(&f, "a", of("1"));
    put(&f, "b", of("2"));
    assert_int_equal(
        ask(&f, &(struct values_ask){.verb = VALUES_READ, .one = true, .key = of("a")}),
        VALUES_DONE);
    struct reader in = {.at = f.answer.pieces.data, .left = f.answer.pieces.size};
    assert_true(values_piece_next(&in, &p) && p.bytes.data[0] == '1');
    assert_true(!values_piece_next(&in, &p) && !f.answer.more);
    assert_int_equal(
        ask(&f, &(struct values_ask){.verb = VALUES_READ, .one = true, .key = of("c")}),
        VALUES_DONE);
    assert_true(f.answer.pieces.size == 0 && !f.answer.more);
    // One that has become shorter meanwhile: the number tells.
    assert_int_equal(
        ask(&f, &(struct values_ask){.verb = VALUES_READ, .offset = 9, .key = of("a")}),
        VALUES_DONE);
    assert_true(f.answer.pieces.size == 0 && !f.answer.more);
    close_values(&f);
}

static void a_batch_is_done_when_all_of_it_is_there(void **state)
{
    struct values_ask a = {.verb = VALUES_CHANGE, .batch = 5};
    struct buffer rows = {0};
    struct fixture f;

    (void)state;
    open_values(&f);
    put(&f, "a", of("1"));
    row(&rows, "a", NULL);
    row(&rows, "b", "2");
    row(&rows, "none", NULL);
    a.page = bytes_of(rows.data, 5);
    assert_int_equal(ask(&f, &a), VALUES_DONE);
    assert_int_equal(ask(&f, &a), VALUES_DONE); // once more: it begins again
    a.at = 5;
    a.page = bytes_of(rows.data + 5, 3);
    assert_int_equal(ask(&f, &a), VALUES_DONE);
    assert_int_equal(ask(&f, &a), VALUES_DONE); // the answer had got lost
    assert_string_equal(all(&f), "a=1 ");
    assert_false(named_values_are_changed(&f.values));
    a.at = 8;
    a.page = bytes_of(rows.data + 8, rows.size - 8);
    a.last = true;
    assert_int_equal(ask(&f, &a), VALUES_DONE);
    assert_int_equal(f.answer.count, 2); // of three rows one changed nothing
    assert_string_equal(all(&f), "b=2 ");
    put(&f, "b", of("3"));
    assert_int_equal(ask(&f, &a), VALUES_DONE); // the answer had got lost: not again
    assert_int_equal(f.answer.count, 2);
    assert_string_equal(all(&f), "b=3 ");
    buffer_fini(&rows);
    close_values(&f);
}

static void a_batch_may_replace_all(void **state)
{
    struct values_ask a = {.verb = VALUES_CHANGE, .batch = 5, .last = true, .replace = true};
    struct buffer rows = {0};
    struct fixture f;

    (void)state;
    open_values(&f);
    put(&f, "a", of("1"));
    put(&f, "b", of("2"));
    row(&rows, "b", "3");
    row(&rows, "c", "4");
    a.page = buffer_bytes(&rows);
    assert_int_equal(ask(&f, &a), VALUES_DONE);
    assert_string_equal(all(&f), "b=3 c=4 ");
    a = (struct values_ask){.verb = VALUES_CHANGE, .batch = 6, .last = true, .replace = true};
    assert_int_equal(ask(&f, &a), VALUES_DONE);
    assert_string_equal(all(&f), "");
    buffer_fini(&rows);
    close_values(&f);
}

static void a_batch_that_is_refused_changes_nothing(void **state)
{
    struct values_ask a = {.verb = VALUES_CHANGE, .batch = 5, .last = true, .replace = true};
    struct buffer rows = {0};
    struct fixture f;

    (void)state;
    open_values(&f);
    put(&f, "a", of("1"));
    row(&rows, "b", "3");
    row(&rows, "c", "4");
    a.page = bytes_of(rows.data, rows.size - 1);
    assert_int_equal(ask(&f, &a), VALUES_MALFORMED);
    assert_string_equal(all(&f), "a=1 ");
    assert_false(named_values_are_changed(&f.values));
    a.page = buffer_bytes(&rows);
    assert_int_equal(ask(&f, &a), VALUES_DONE); // it was not done, so it is now
    buffer_fini(&rows);
    close_values(&f);
}

static void pages_of_elsewhere_are_refused(void **state)
{
    struct values_ask a = {.verb = VALUES_CHANGE, .batch = 5, .page = of("12345")};
    static uint8_t page[VALUES_PAGE_SIZE];
    struct fixture f;

    (void)state;
    open_values(&f);
    a.at = 5; // its beginning was told to the actor's life before
    assert_int_equal(ask(&f, &a), VALUES_INTERRUPTED);
    a.at = 0;
    assert_int_equal(ask(&f, &a), VALUES_DONE);
    a.batch = 6; // another operator's
    a.at = 5;
    assert_int_equal(ask(&f, &a), VALUES_INTERRUPTED);
    a.batch = 5;
    a.at = 6;
    assert_int_equal(ask(&f, &a), VALUES_INTERRUPTED);
    a.at = 0;
    a.page = bytes_of(page, sizeof page);
    while (ask(&f, &a) == VALUES_DONE) {
        a.at += VALUES_PAGE_SIZE;
        assert_true(a.at <= VALUES_BATCH_MAX);
    }
    assert_int_equal(f.answer.status, VALUES_FULL);
    assert_int_equal(f.batch.bytes.size, 0); // nothing of it is kept
    close_values(&f);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_in_pages_that_cut_them),
        cmocka_unit_test(one_value_is_read_alone),
        cmocka_unit_test(a_batch_is_done_when_all_of_it_is_there),
        cmocka_unit_test(a_batch_may_replace_all),
        cmocka_unit_test(a_batch_that_is_refused_changes_nothing),
        cmocka_unit_test(pages_of_elsewhere_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant mutants[] = {M_HALFBATCH};

    return planted_main(argc, argv, all_cases, mutants, sizeof mutants / sizeof mutants[0]);
}
