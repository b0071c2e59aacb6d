/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/protocol/resp.h, byte by byte and cut anywhere.
 */
#define _DEFAULT_SOURCE 1 // MAP_ANONYMOUS
#include "gateway/protocol/resp.h"

#include "base/mem.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct buffer scratch;

/* "3|GET|x" for a command, "more", or the error. */
static void show(enum resp_result result, const struct resp_output *out, struct buffer *text)
{
    buffer_clear(text);
    if (result == RESP_MORE) {
        buffer_put(text, "more", 5);
        return;
    }
    if (result == RESP_ERROR || result == RESP_REFUSED) {
        buffer_put(text, out->error, strlen(out->error) + 1);
        return;
    }
    for (size_t i = 0; i < out->command.count; i++) {
        buffer_put(text, "|", 1);
        buffer_put(text, out->command.arg[i].data, out->command.arg[i].size);
    }
    buffer_put(text, "", 1);
}

static const struct {
    const char *in;
    const char *shown;
} table[] = {
    {"PING\r\n", "|PING"},
    {"PING\n", "|PING"},
    {"  SET  a   b \r\n", "|SET|a|b"},
    {"SET a \"b c\"\r\n", "|SET|a|b c"},
    {"SET a \"x\\n\\x41\\\"y\"\r\n", "|SET|a|x\nA\"y"},
    {"SET a 'it\\'s'\r\n", "|SET|a|it's"},
    {"SET a ''\r\n", "|SET|a|"},
    {"\r\n", ""},
    {"\n", ""},
    {"SET a \"b\r\n", "Protocol error: unbalanced quotes in request"},
    {"SET a \"b\"c\r\n", "Protocol error: unbalanced quotes in request"},
    {"SET a 'b\r\n", "Protocol error: unbalanced quotes in request"},
    {"*1\r\n$4\r\nPING\r\n", "|PING"},
    {"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n", "|SET|a|"},
    {"*2\r\n$3\r\nGET\r\n$3\r\n\r\n\r\r\n", "|GET|\r\n\r"},
    {"*0\r\n", ""},
    {"*-1\r\n", ""},
    {"*x\r\n", "Protocol error: invalid multibulk length"},
    {"*\r\n", "Protocol error: invalid multibulk length"},
    {"*1\n$4\r\nPING\r\n", "Protocol error: invalid multibulk length"},
    {"*1048577\r\n", "Protocol error: invalid multibulk length"},
    {"*99999999999999999999\r\n", "Protocol error: invalid multibulk length"},
    {"*01\r\n", "Protocol error: invalid multibulk length"},
    {"*1\r\n*1\r\n", "Protocol error: expected '$', got '*'"},
    {"*1\r\nPING\r\n", "Protocol error: expected '$', got 'P'"},
    {"*1\r\n\r\n", "Protocol error: expected '$', got ' '"},
    {"*1\r\n\x1b[2J\r\n", "Protocol error: expected '$', got '\\x1b'"},
    {"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
    {"*1\r\n$536870912\r\n", "Protocol error: invalid bulk length"},
    {"*1\r\n$9223372036854775807\r\n", "Protocol error: invalid bulk length"},
    {"*1\r\n$4294967300\r\n", "Protocol error: invalid bulk length"},
    {"*1\r\n$\r\n", "Protocol error: invalid bulk length"},
    {"*1\r\n$4 \r\n", "Protocol error: invalid bulk length"},
    {"*1\r\n$4\r\nPINGxx", "Protocol error: a bulk string does not end with CRLF at its length"},
};

/* Memory that ends at a page that may not be touched. */
static uint8_t *at_a_guard(const char *text, size_t size, uint8_t **map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    assert_true(size <= page);
    *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(*map != MAP_FAILED);
    assert_int_equal(mprotect(*map + page, page, PROT_NONE), 0);
    memcpy(*map + page - size, text, size);
    return *map + page - size;
}

static void every_command_is_read_as_redis_reads_it(void **state)
{
    struct buffer text = {0};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const size_t size = strlen(table[i].in);
        uint8_t *map = NULL;
        const uint8_t *in = at_a_guard(table[i].in, size, &map);
        struct resp_parser p = {0};
        struct resp_output out;

        show(resp_parse(&p, bytes_of(in, size), &scratch, &out), &out, &text);
        assert_string_equal((char *)text.data, table[i].shown);
        if (out.error == NULL) {
            assert_int_equal(out.taken, size);
        }
        munmap(map, 2 * (size_t)sysconf(_SC_PAGESIZE));
    }
    buffer_fini(&text);
}

static void a_command_cut_anywhere_is_the_same_command(void **state)
{
    struct buffer text = {0};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const size_t size = strlen(table[i].in);

        for (size_t cut = 0; cut <= size; cut++) {
            struct resp_parser p = {0};
            struct resp_output out;
            enum resp_result result = resp_parse(&p, bytes_of(table[i].in, cut), &scratch, &out);

            // An error may show before the end; a command never does.
            if (result == RESP_MORE) {
                char *moved = mem_copy(table[i].in, size); // the bytes may lie elsewhere by then
                result = resp_parse(&p, bytes_of(moved, size), &scratch, &out);
                show(result, &out, &text);
                mem_free(moved);
            } else {
                assert_true(result == RESP_ERROR || cut == size);
                show(result, &out, &text);
            }
            assert_string_equal((char *)text.data, table[i].shown);
        }
    }
    buffer_fini(&text);
}

static void a_command_in_single_bytes_is_the_same_command(void **state)
{
    const char *in = "*3\r\n$3\r\nSET\r\n$2\r\nab\r\n$5\r\n12\r\n5\r\n";
    struct resp_parser p = {0};
    struct resp_output out;

    (void)state;
    for (size_t have = 0; have < strlen(in); have++) {
        assert_int_equal(resp_parse(&p, bytes_of(in, have), &scratch, &out), RESP_MORE);
    }
    assert_int_equal(resp_parse(&p, bytes_of(in, strlen(in)), &scratch, &out), RESP_COMMAND);
    assert_int_equal(out.command.count, 3);
    assert_true(bytes_equal(out.command.arg[2], bytes_of("12\r\n5", 5)));
}

static void pipelined_commands_come_one_by_one(void **state)
{
    const char *in = "PING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n\r\nQUIT\r\n";
    const char *const names[] = {"PING", "GET", "", "QUIT"};
    struct resp_parser p = {0};
    struct resp_output out;
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(resp_parse(&p, bytes_of(in + at, strlen(in) - at), &scratch, &out),
                         RESP_COMMAND);
        assert_int_equal(out.command.count > 0, names[i][0] != '\0');
        if (out.command.count > 0) {
            assert_true(bytes_equal(out.command.arg[0], bytes_of(names[i], strlen(names[i]))));
        }
        at += out.taken;
    }
    assert_int_equal(at, strlen(in));
}

/* What begins as one did that was parsed is parsed behind that as it is parsed whole, or not at
 * all. */
static void what_begins_like_the_last_one_is_the_same_command(void **state)
{
    static const char *const known = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n";
    static const struct {
        const char *in;
        bool begins;
        bool whole;
    } cases[] = {
        {"*3\r\n$3\r\nSET\r\n$3\r\nxyz\r\n$0\r\n\r\n", true, true},
        {"*3\r\n$3\r\nSET\r\n$12\r\nabcdefghijkl\r\n$1\r\nz\r\n*1\r\n", true, true},
        {"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9\r\nb\r\n", true, false}, // more is to come
        {"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n", false, false},
        {"*2\r\n$3\r\nSET\r\n$1\r\na\r\n", false, false},
        {"*3\r\n$4\r\nSET\r\n\r\n$1\r\na\r\n", false, false},
        {"*3\r\n$3\r\nSET", false, false},
        {"SET a b\r\nSET a b\r\n", false, false},
    };
    struct resp_parser parser = {0};
    struct resp_output first;
    struct resp_output out;
    struct resp_output behind;
    struct resp_head head;

    (void)state;
    assert_int_equal(resp_parse(&parser, bytes_of(known, strlen(known)), &scratch, &first),
                     RESP_COMMAND);
    assert_true(resp_head_of(bytes_of(known, strlen(known)), &first.command, &head));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bytes in = bytes_of(cases[i].in, strlen(cases[i].in));

        assert_int_equal(resp_begins(in, &head), cases[i].begins);
        if (!cases[i].begins) {
            continue;
        }
        assert_int_equal(resp_parse_behind(&parser, in, &head, &behind), cases[i].whole);
        const enum resp_result result = resp_parse(&parser, in, &scratch, &out);

        assert_int_equal(result == RESP_COMMAND, cases[i].whole);
        if (result != RESP_COMMAND) {
            assert_false(
                resp_parse_behind(&parser, in, &head, &behind)); // it has begun the other way
            resp_parser_reset(&parser);
            continue;
        }
        assert_int_equal(behind.taken, out.taken);
        assert_int_equal(behind.command.count, out.command.count);
        for (size_t k = 0; k < out.command.count; k++) {
            assert_ptr_equal(behind.command.arg[k].data, out.command.arg[k].data);
            assert_int_equal(behind.command.arg[k].size, out.command.arg[k].size);
        }
    }
    // What has other words, or too many, or a long name, is noted by nobody.
    static const char *const others[] = {
        "SET a b\r\n123456789", "*1\r\n$7\r\nUNWATCH\r\n12345", "*1\r\n$0\r\n\r\n123456789"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct bytes in = bytes_of(others[i], strlen(others[i]));

        assert_int_equal(resp_parse(&parser, in, &scratch, &out), RESP_COMMAND);
        assert_false(resp_head_of(in, &out.command, &head));
    }
}

static void lines_without_end_are_refused_at_their_limit(void **state)
{
    static const struct {
        const char *start;
        const char *error;
    } endless[] = {
        {"", "Protocol error: too big inline request"},
        {"*", "Protocol error: too big mbulk count string"},
        {"*1\r\n$", "Protocol error: too big bulk count string"},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const size_t head = strlen(endless[i].start);
        const size_t size = head + RESP_LINE_MAX + 1;
        char *in = mem_new(size, 1);
        struct resp_parser p = {0};
        struct resp_output out;

        memset(in, '1', size);
        memcpy(in, endless[i].start, head);
        assert_int_equal(resp_parse(&p, bytes_of(in, RESP_LINE_MAX), &scratch, &out), RESP_MORE);
        assert_int_equal(resp_parse(&p, bytes_of(in, size), &scratch, &out), RESP_ERROR);
        assert_string_equal(out.error, endless[i].error);
        mem_free(in);
    }
}

static void put_text(struct buffer *to, const char *text)
{
    buffer_put(to, text, strlen(text));
}

static void put_bulk_of(struct buffer *to, size_t size)
{
    char head[32];

    (void)snprintf(head, sizeof head, "$%zu\r\n", size);
    put_text(to, head);
    memset(buffer_reserve(to, size), 'x', size);
    to->size += size;
    put_text(to, "\r\n");
}

/* Parse all of `in`, a PING behind it, that comes in steps of `step` bytes, of which what is taken
 * is gone; shows both, and the most bytes that were kept. */
static size_t parse_in_steps(const struct buffer *in, size_t step, struct buffer *text)
{
    struct resp_parser p = {0};
    struct resp_output out;
    struct buffer kept = {0};
    struct buffer one = {0};
    size_t most = 0;

    for (size_t at = 0; at < in->size || kept.size > 0;) {
        const enum resp_result result = resp_parse(&p, buffer_bytes(&kept), &scratch, &out);

        most = kept.size > most ? kept.size : most;
        if (result != RESP_MORE) {
            show(result, &out, &one);
            put_text(text, (const char *)one.data);
        }
        buffer_consume(&kept, out.taken);
        if (result == RESP_MORE) {
            const size_t part = in->size - at < step ? in->size - at : step;

            assert_true(part > 0);
            buffer_put(&kept, in->data + at, part);
            at += part;
        }
    }
    buffer_put(text, "", 1);
    buffer_fini(&kept);
    buffer_fini(&one);
    return most;
}

static void a_command_over_a_limit_is_dropped_and_named_and_the_next_one_runs(void **state)
{
    enum { MANY, LONG, BIG, HUGE_VALUE, KINDS };
    static const char *const said[] = {
        "ERR a command has at most 2048 arguments after its name",
        "ERR an argument has at most 1048576 bytes",
        "ERR a command has at most 2097152 bytes",
        "ERR an argument has at most 1048576 bytes",
    };

    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct buffer in = {0};

        put_text(&in, kind == MANY ? "*2050\r\n" : "*3\r\n");
        for (int i = 0; kind == MANY && i < 2050; i++) {
            put_bulk_of(&in, 1);
        }
        for (int i = 0; kind != MANY && i < 3; i++) {
            put_bulk_of(&in,
                        kind == BIG                   ? RESP_BULK_MAX
                        : kind == LONG                ? (size_t)RESP_BULK_MAX + (i == 1)
                        : kind == HUGE_VALUE && i > 0 ? (size_t)10 * RESP_BULK_MAX
                                                      : 3);
        }
        put_text(&in, "*1\r\n$4\r\nPING\r\n");
        for (size_t step = 1; step <= in.size; step = step * 61 + 7) {
            struct buffer text = {0};
            const size_t most = parse_in_steps(&in, step, &text);
            const size_t size = strlen(said[kind]);

            assert_true(most <= RESP_COMMAND_MAX + step);
            assert_memory_equal(text.data, said[kind], size);
            assert_string_equal((const char *)text.data + size, "|PING");
            buffer_fini(&text);
        }
        buffer_fini(&in);
    }
}

static void as_many_arguments_as_may_be_are_taken(void **state)
{
    struct resp_parser p = {0};
    struct resp_output out;
    struct buffer in = {0};

    (void)state;
    put_text(&in, "*2049\r\n");
    for (int i = 0; i < 2049; i++) {
        put_bulk_of(&in, 2);
    }
    for (size_t have = 0; have < in.size; have += 5) {
        assert_int_equal(resp_parse(&p, bytes_of(in.data, have), &scratch, &out), RESP_MORE);
    }
    assert_int_equal(resp_parse(&p, buffer_bytes(&in), &scratch, &out), RESP_COMMAND);
    assert_int_equal(out.command.count, 2049);
    assert_true(bytes_equal(out.command.arg[2048], bytes_of("xx", 2)));
    buffer_fini(&in);
}

static void what_redis_would_not_take_is_no_command(void **state)
{
    struct resp_parser p = {0};
    struct resp_output out;
    struct buffer in = {0};
    size_t at = 0;

    (void)state;
    put_text(&in, "*3\r\n");
    put_bulk_of(&in, (size_t)2 * RESP_BULK_MAX);
    put_text(&in, "$535000000\r\n");
    assert_int_equal(resp_parse(&p, bytes_of(in.data, 100), &scratch, &out), RESP_MORE);
    at += out.taken;
    assert_int_equal(resp_parse(&p, bytes_of(in.data + at, in.size - at), &scratch, &out),
                     RESP_ERROR);
    assert_string_equal(out.error, "Protocol error: invalid bulk length");
    buffer_fini(&in);
}

static void replies_have_the_bytes_of_both_protocols(void **state)
{
    struct buffer out = {0};
    const char *error = "MOVING a\r\nb";
    const struct value values[] = {
        {.type = VALUE_INTEGER, .integer = INT64_MIN},
        {.type = VALUE_BULK, .text = bytes_of("a\r\nb", 4)},
        {.type = VALUE_SIMPLE, .text = bytes_of("OK", 2)},
        {.type = VALUE_ERROR, .text = bytes_of("no such", 7)},
        {.type = VALUE_ERROR, .text = bytes_of("WRONGTYPE of", 12)},
        {.type = VALUE_NIL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        resp_put_value(&out, 3, &values[i]);
    }
    resp_put_nil(&out, 2);
    resp_put_error(&out, bytes_of(error, strlen(error)));
    resp_put_map(&out, 2, 2);
    resp_put_map(&out, 3, 2);
    resp_put_array(&out, 0);
    resp_put_integer(&out, 0);
    resp_put_simple(&out, "PONG");
    resp_put_text(&out, "");
    buffer_put(&out, "", 1);
    assert_string_equal((char *)out.data,
                        ":-9223372036854775808\r\n$4\r\na\r\nb\r\n+OK\r\n-ERR no such\r\n"
                        "-WRONGTYPE of\r\n_\r\n$-1\r\n-MOVING a  b\r\n*4\r\n%2\r\n*0\r\n:0\r\n"
                        "+PONG\r\n$0\r\n\r\n");
    buffer_fini(&out);
}

static int free_scratch(void **state)
{
    (void)state;
    buffer_fini(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_command_is_read_as_redis_reads_it),
        cmocka_unit_test(a_command_cut_anywhere_is_the_same_command),
        cmocka_unit_test(a_command_in_single_bytes_is_the_same_command),
        cmocka_unit_test(pipelined_commands_come_one_by_one),
        cmocka_unit_test(what_begins_like_the_last_one_is_the_same_command),
        cmocka_unit_test(lines_without_end_are_refused_at_their_limit),
        cmocka_unit_test(a_command_over_a_limit_is_dropped_and_named_and_the_next_one_runs),
        cmocka_unit_test(as_many_arguments_as_may_be_are_taken),
        cmocka_unit_test(what_redis_would_not_take_is_no_command),
        cmocka_unit_test(replies_have_the_bytes_of_both_protocols),
    };

    return cmocka_run_group_tests(cases, NULL, free_scratch);
}
