/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a command by its name and checks how many arguments it takes.
 */
#include "gateway/client/command.h"

#include <string.h>

// clang-format off
static const struct client_command table[] = { // sorted by name
    /* name      arity writes first last step  in_multi run          each */
    {"APPEND",    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"AUTH",     -2,   false,  0,   0,   0,    false,    run_auth,    NULL},
    {"BIND",      2,   true,   1,   1,   1,    false,    run_bind,    NULL},
    {"CALL",      3,   true,   1,   1,   1,    false,    run_call,    NULL},
    {"CLIENT",   -2,   false,  0,   0,   0,    false,    run_client,  NULL},
    {"COMMAND",  -1,   false,  0,   0,   0,    false,    run_command, NULL},
    {"CONFIG",   -2,   false,  0,   0,   0,    false,    run_config,  NULL},
    {"DECR",      2,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"DECRBY",    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"DEL",      -2,   true,   1,  -1,   1,    false,    run_sum,     "DEL"},
    {"DISCARD",   1,   false,  0,   0,   0,    true,     run_discard, NULL},
    {"ECHO",      2,   false,  0,   0,   0,    false,    run_echo,    NULL},
    {"EXEC",      1,   false,  0,   0,   0,    true,     run_exec,    NULL},
    {"EXISTS",   -2,   false,  1,  -1,   1,    false,    run_sum,     "EXISTS"},
    {"GET",       2,   false,  1,   1,   1,    false,    run_key,     NULL},
    {"GETSET",    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"HELLO",    -1,   false,  0,   0,   0,    false,    run_hello,   NULL},
    {"INCR",      2,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"INCRBY",    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"INFO",     -1,   false,  0,   0,   0,    false,    run_info,    NULL},
    {"MGET",     -2,   false,  1,  -1,   1,    false,    run_mget,    "GET"},
    {"MSET",     -3,   true,   1,  -1,   2,    false,    run_mset,    "SET"},
    {"MULTI",     1,   false,  0,   0,   0,    true,     run_multi,   NULL},
    {"PING",     -1,   false,  0,   0,   0,    false,    run_ping,    NULL},
    {"QUIT",     -1,   false,  0,   0,   0,    true,     run_quit,    NULL},
    {"RESET",     1,   false,  0,   0,   0,    true,     run_reset,   NULL},
    {"SELECT",    2,   false,  0,   0,   0,    false,    run_select,  NULL},
    {"SET",      -3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"SETNX",     3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {"STRLEN",    2,   false,  1,   1,   1,    false,    run_key,     NULL},
    {"TELL",      3,   true,   1,   1,   1,    false,    run_tell,    NULL},
    {"UNBIND",    1,   true,   0,   0,   0,    false,    run_unbind,  NULL},
    {"UNLINK",   -2,   true,   1,  -1,   1,    false,    run_sum,     "DEL"},
    {"UNWATCH",   1,   false,  0,   0,   0,    false,    run_unwatch, NULL},
    {"WATCH",    -2,   false,  0,   0,   0,    true,     run_watch,   NULL},
    {"WHERE",     2,   false,  1,   1,   1,    false,    run_where,   NULL},
};
// clang-format on

enum { COUNT = sizeof table / sizeof table[0] };

static char upper(uint8_t c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

bool word_is(struct bytes text, const char *word)
{
    size_t i = 0;

    while (i < text.size && word[i] != '\0' && upper(text.data[i]) == word[i]) {
        i++;
    }
    return i == text.size && word[i] == '\0';
}

const struct client_command *command_find(struct bytes name)
{
    char key[COMMAND_NAME_MAX + 1] = "";
    size_t low = 0;
    size_t high = COUNT;

    if (name.size > COMMAND_NAME_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < name.size; i++) {
        key[i] = upper(name.data[i]);
        if (key[i] == '\0') {
            return NULL;
        }
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(key, table[middle].name);

        if (order == 0) {
            return &table[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const struct client_command *command_recall(struct command_memo *memo, struct bytes name)
{
    uint64_t word = 0;

    if (name.size > sizeof word) {
        return command_find(name);
    }
    for (size_t i = 0; i < name.size; i++) {
        word = word << 8 | name.data[i];
    }
    const size_t at = (size_t)((word * 0x9e3779b97f4a7c15u) >> 60) % COMMAND_MEMO;

    if (memo->of[at].name != word || memo->of[at].size != name.size) {
        memo->of[at].found = command_find(name);
        memo->of[at].name = word;
        memo->of[at].size = name.size;
    }
    return memo->of[at].found;
}

bool command_takes(const struct client_command *command, size_t count)
{
    return command->arity >= 0 ? count == (size_t)command->arity : count >= (size_t)-command->arity;
}

size_t command_count(void)
{
    return COUNT;
}

const struct client_command *command_at(size_t i)
{
    return &table[i];
}
