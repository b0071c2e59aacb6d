/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the bundled actor `kv`.
 */
#include "tests/test.h"

#include "base/mem.h"
#include "node/actors/actors.h"
#include "tests/node/runtime_rig.h"

struct step {
    const char *line;
    const char *answer;
};

/* As the host does: one that asked for its end is ended, and the next request begins it anew. */
static void end_if_asked(struct runtime_rig *t)
{
    const struct runtime_entry entry = {.ops = &actor_kv, .kind = 3, .fence = 7};

    if (t->told[VERB_PASSIVATE] > 0) {
        t->told[VERB_PASSIVATE] = 0;
        runtime_retire(t->actor);
        assert_null(t->actor);
        runtime_rig_enter(t, &entry);
    }
}

static const char *run_command(struct runtime_rig *t, const char *line)
{
    end_if_asked(t);
    return runtime_rig_command(t, line);
}

static const char *run_payload(struct runtime_rig *t, const char *payload)
{
    end_if_asked(t);
    return runtime_rig_call(t, payload);
}

static void play(const struct step *steps)
{
    struct runtime_rig t;

    runtime_rig_open(&t, &actor_kv, NULL);
    for (size_t i = 0; steps[i].line != NULL; i++) {
        assert_string_equal(run_command(&t, steps[i].line), steps[i].answer);
        assert_int_equal(t.answers, i + 1);
        assert_int_equal(t.code, ANSWER_OK);
    }
    runtime_rig_close(&t);
}

static void it_keeps_a_value(void **state)
{
    (void)state;
    play((const struct step[]){
        {"GET k", "n:"},     {"EXISTS k", "i:0"},      {"STRLEN k", "i:0"},
        {"DEL k", "i:0"},    {"SET k one", "s:OK"},    {"GET k", "b:one"},
        {"EXISTS k", "i:1"}, {"STRLEN k", "i:3"},      {"APPEND k s", "i:4"},
        {"GET k", "b:ones"}, {"GETSET k x", "b:ones"}, {"GET k", "b:x"},
        {"DEL k", "i:1"},    {"GET k", "n:"},          {"GETSET k y", "n:"},
        {"SET k ", "s:OK"},  {"GET k", "b:"},          {"EXISTS k", "i:1"},
        {"DEL k", "i:1"},    {"APPEND k ab", "i:2"},   {"GET k", "b:ab"},
        {NULL, NULL},
    });
}

static void set_minds_its_conditions(void **state)
{
    (void)state;
    play((const struct step[]){
        {"SET k a XX", "n:"},
        {"GET k", "n:"},
        {"SET k a NX", "s:OK"},
        {"SET k b nx", "n:"},
        {"SET k b xx", "s:OK"},
        {"GET k", "b:b"},
        {"SET k c NX XX", "e:ERR syntax error"},
        {"SET k c EX 10", "e:ERR SET's option EX is not supported: NX and XX are"},
        {"SET k c keepttl", "e:ERR SET's option KEEPTTL is not supported: NX and XX are"},
        {"SET k c FOO", "e:ERR syntax error"},
        {"GET k", "b:b"},
        {"SETNX k d", "i:0"},
        {"DEL k", "i:1"},
        {"SETNX k d", "i:1"},
        {"GET k", "b:d"},
        {NULL, NULL},
    });
}

#define NOT_A_NUMBER "e:ERR value is not an integer or out of range"
#define OVERFLOWS    "e:ERR increment or decrement would overflow"

static void it_counts(void **state)
{
    (void)state;
    play((const struct step[]){
        {"INCR k", "i:1"},
        {"INCRBY k 41", "i:42"},
        {"DECR k", "i:41"},
        {"DECRBY k 50", "i:-9"},
        {"GET k", "b:-9"},
        {"INCRBY k 1.5", NOT_A_NUMBER},
        {"INCRBY k 9223372036854775808", NOT_A_NUMBER},
        {"INCRBY k", "e:ERR wrong number of arguments for 'incrby' command"},
        {"SET k 9223372036854775806", "s:OK"},
        {"INCR k", "i:9223372036854775807"},
        {"INCR k", OVERFLOWS},
        {"GET k", "b:9223372036854775807"},
        {"SET k -9223372036854775808", "s:OK"},
        {"DECR k", OVERFLOWS},
        {"INCR k", "i:-9223372036854775807"},
        {"DECRBY k -9223372036854775808", "e:ERR decrement would overflow"},
        {NULL, NULL},
    });
}

static void only_the_text_of_a_number_is_one(void **state)
{
    static const char *const no[] = {"",
                                     "-",
                                     "-0",
                                     "+1",
                                     "01",
                                     "1x",
                                     "0x1",
                                     "9223372036854775808",
                                     "-9223372036854775809",
                                     "99999999999999999999"};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_kv, NULL);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        char line[64];

        (void)snprintf(line, sizeof line, "SET k %s", no[i]);
        assert_string_equal(run_command(&t, line), "s:OK");
        assert_string_equal(run_command(&t, "INCR k"), NOT_A_NUMBER);
    }
    runtime_rig_close(&t);
}

static void it_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    play((const struct step[]){
        {"FLY k", "e:ERR unknown command 'FLY'"},
        {"GET", "n:"}, // The id is the key: whether it is repeated does not matter.
        {"GET k x", "e:ERR wrong number of arguments for 'get' command"},
        {"SET k", "e:ERR wrong number of arguments for 'set' command"},
        {NULL, NULL},
    });
}

static void a_payload_is_a_command_line(void **state)
{
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_kv, NULL);
    assert_string_equal(run_payload(&t, "set 'two words'\r\n"), "OK");
    assert_string_equal(run_payload(&t, "  GET "), "two words");
    assert_string_equal(run_payload(&t, "SET \"\""), "OK");
    assert_string_equal(run_payload(&t, "STRLEN"), "0");
    assert_string_equal(run_payload(&t, "INCRBY 5"), &NOT_A_NUMBER[2]);
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_string_equal(run_payload(&t, "DEL"), "1");
    assert_string_equal(run_payload(&t, "INCRBY 5"), "5");
    assert_int_equal(t.code, ANSWER_OK);
    assert_string_equal(run_payload(&t, " "), "ERR the payload is not a command line");
    assert_string_equal(run_payload(&t, "SET 'open"), "ERR the payload is not a command line");
    assert_string_equal(run_payload(&t, "SET 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"),
                        "ERR the payload is not a command line");
    runtime_rig_close(&t);
}

static void a_value_has_a_limit(void **state)
{
    const size_t size = RECORD_BODY_MAX - 600;
    char *line = mem_new(1, size + 32);
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_kv, NULL);
    (void)snprintf(line, 32, "SET ");
    memset(line + 4, 'x', size);
    assert_string_equal(run_payload(&t, line), "OK");
    for (size_t i = 0; i < 88; i++) {
        (void)run_payload(&t, "APPEND y");
        assert_int_equal(t.code, ANSWER_OK);
    }
    (void)run_payload(&t, "APPEND y");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    (void)snprintf(line, 32, "%zu", size + 88);
    assert_string_equal(run_payload(&t, "STRLEN"), line);
    runtime_rig_close(&t);
    mem_free(line);
}

static void its_value_moves(void **state)
{
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_kv, NULL);
    runtime_rig_move(&t, &actor_kv, NULL);
    assert_string_equal(run_command(&t, "EXISTS k"), "i:0");
    assert_string_equal(run_command(&t, "SET k "), "s:OK");
    runtime_rig_move(&t, &actor_kv, NULL);
    assert_string_equal(run_command(&t, "EXISTS k"), "i:1");
    assert_string_equal(run_command(&t, "APPEND k ab"), "i:2");
    runtime_rig_move(&t, &actor_kv, NULL);
    assert_string_equal(run_command(&t, "GET k"), "b:ab");
    runtime_rig_close(&t);
}

/* `size` letters from `first` on, behind what `text` holds. */
static void put_letters(char *text, char first, size_t size)
{
    const size_t begin = strlen(text);

    for (size_t i = 0; i < size; i++) {
        text[begin + i] = (char)(first + (char)(i % 13));
    }
    text[begin + size] = '\0';
}

/* A command with so many letters, and what is answered to it and to a GET behind it. */
static void ask_with(struct runtime_rig *t, const char *command, const char *answer, char first,
                     size_t size, const char *held)
{
    char line[256];
    char expected[256];

    (void)snprintf(line, sizeof line, "%s k ", command);
    put_letters(line, first, size);
    assert_string_equal(run_command(t, line), answer);
    (void)snprintf(expected, sizeof expected, "b:%s", held);
    put_letters(expected, first, size);
    assert_string_equal(run_command(t, "GET k"), expected);
}

/* Short values stand elsewhere than long ones: each size after each other one, by each command. */
static void short_and_long_values_follow_one_another(void **state)
{
    static const size_t sizes[] = {1, 16, 40, 70, 71, 72, 96};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_kv, NULL);
    for (size_t at = 0; at < (size_t)SIZES * SIZES; at++) {
        const size_t before = sizes[at / SIZES];
        const size_t after = sizes[at % SIZES];
        char held[256] = "b:";
        char count[32];

        put_letters(held, 'a', before);
        ask_with(&t, "SET", "s:OK", 'a', before, "");
        ask_with(&t, "GETSET", held, 'n', after, "");
        ask_with(&t, "SET", "s:OK", 'a', before, "");
        (void)snprintf(count, sizeof count, "i:%zu", before + after);
        ask_with(&t, "APPEND", count, 'n', after, held + 2);
        runtime_rig_move(&t, &actor_kv, NULL);
        put_letters(held, 'n', after);
        assert_string_equal(run_command(&t, "GET k"), held);
        assert_string_equal(run_command(&t, at % 2 == 0 ? "DEL k" : "EXISTS k"), "i:1");
    }
    runtime_rig_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_a_value),
        cmocka_unit_test(set_minds_its_conditions),
        cmocka_unit_test(it_counts),
        cmocka_unit_test(only_the_text_of_a_number_is_one),
        cmocka_unit_test(it_refuses_what_it_does_not_know),
        cmocka_unit_test(a_payload_is_a_command_line),
        cmocka_unit_test(a_value_has_a_limit),
        cmocka_unit_test(its_value_moves),
        cmocka_unit_test(short_and_long_values_follow_one_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
