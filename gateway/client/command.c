/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a command by its name and checks how many arguments it takes.
 */
#include "gateway/client/command.h"

#include <string.h>

#define TEXT(text) text, sizeof(text) - 1

// clang-format off
static const struct client_command table[] = { // sorted by name
    /* name      arity writes first last step  in_multi run          each */
    {TEXT("APPEND"),    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("AUTH"),     -2,   false,  0,   0,   0,    false,    run_auth,    NULL},
    {TEXT("BIND"),      2,   true,   1,   1,   1,    false,    run_bind,    NULL},
    {TEXT("CALL"),     -3,   true,   1,   1,   1,    false,    run_call,    NULL},
    {TEXT("CLIENT"),   -2,   false,  0,   0,   0,    false,    run_client,  NULL},
    {TEXT("COMMAND"),  -1,   false,  0,   0,   0,    false,    run_command, NULL},
    {TEXT("CONFIG"),   -2,   false,  0,   0,   0,    false,    run_config,  NULL},
    {TEXT("DECR"),      2,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("DECRBY"),    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("DEL"),      -2,   true,   1,  -1,   1,    false,    run_sum,     "DEL"},
    {TEXT("DISCARD"),   1,   false,  0,   0,   0,    true,     run_discard, NULL},
    {TEXT("ECHO"),      2,   false,  0,   0,   0,    false,    run_echo,    NULL},
    {TEXT("EXEC"),      1,   false,  0,   0,   0,    true,     run_exec,    NULL},
    {TEXT("EXISTS"),   -2,   false,  1,  -1,   1,    false,    run_sum,     "EXISTS"},
    {TEXT("GET"),       2,   false,  1,   1,   1,    false,    run_key,     NULL},
    {TEXT("GETSET"),    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("HELLO"),    -1,   false,  0,   0,   0,    false,    run_hello,   NULL},
    {TEXT("INCR"),      2,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("INCRBY"),    3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("INFO"),     -1,   false,  0,   0,   0,    false,    run_info,    NULL},
    {TEXT("MGET"),     -2,   false,  1,  -1,   1,    false,    run_mget,    "GET"},
    {TEXT("MSET"),     -3,   true,   1,  -1,   2,    false,    run_mset,    "SET"},
    {TEXT("MULTI"),     1,   false,  0,   0,   0,    true,     run_multi,   NULL},
    {TEXT("PING"),     -1,   false,  0,   0,   0,    false,    run_ping,    NULL},
    {TEXT("QUIT"),     -1,   false,  0,   0,   0,    true,     run_quit,    NULL},
    {TEXT("RESET"),     1,   false,  0,   0,   0,    true,     run_reset,   NULL},
    {TEXT("SELECT"),    2,   false,  0,   0,   0,    false,    run_select,  NULL},
    {TEXT("SET"),      -3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("SETNX"),     3,   true,   1,   1,   1,    false,    run_key,     NULL},
    {TEXT("STRLEN"),    2,   false,  1,   1,   1,    false,    run_key,     NULL},
    {TEXT("TELL"),     -3,   true,   1,   1,   1,    false,    run_tell,    NULL},
    {TEXT("UNBIND"),    1,   true,   0,   0,   0,    false,    run_unbind,  NULL},
    {TEXT("UNLINK"),   -2,   true,   1,  -1,   1,    false,    run_sum,     "DEL"},
    {TEXT("UNWATCH"),   1,   false,  0,   0,   0,    false,    run_unwatch, NULL},
    {TEXT("WATCH"),    -2,   false,  0,   0,   0,    true,     run_watch,   NULL},
    {TEXT("WHERE"),     2,   false,  1,   1,   1,    false,    run_where,   NULL},
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

/* Its bytes, of which there are up to 8. With their count it is no other's. */
static uint64_t word_of(struct bytes name)
{
    if (name.size >= 4) {
        uint32_t first;
        uint32_t last;

        memcpy(&first, name.data, sizeof first);
        memcpy(&last, name.data + name.size - sizeof last, sizeof last);
        return (uint64_t)last << 32 | first;
    }
    return name.size == 0 ? 0
                          : (uint64_t)name.data[0] | (uint64_t)name.data[name.size / 2] << 8 |
                                (uint64_t)name.data[name.size - 1] << 16;
}

const struct client_command *command_recall(struct command_memo *memo, struct bytes name)
{
    if (name.size > sizeof(uint64_t)) {
        return command_find(name);
    }
    const uint64_t word = word_of(name);
    const size_t at = (size_t)((word * 0x9e3779b97f4a7c15u) >> 60) % COMMAND_MEMO;

    if (memo->of[at].name != word || memo->of[at].size != name.size) {
        memo->of[at].found = command_find(name);
        memo->of[at].name = word;
        memo->of[at].size = name.size;
    }
    return memo->of[at].found;
}

static enum command_asks what_asks(const struct client_command *found, size_t count)
{
    if (found->run == run_key && (count == 2 || count == 3)) {
        return count == 2 ? COMMAND_ASKS_KEY : COMMAND_ASKS_VALUE;
    }
    return found->run == run_call && count == 3 ? COMMAND_ASKS_CALL : COMMAND_ASKS_OTHER;
}

void command_note(struct command_heads *heads, struct bytes in, const struct resp_command *line,
                  const struct client_command *found)
{
    struct resp_head head;

    if (resp_head_of(in, line, &head)) {
        *command_noted(heads, in) =
            (struct command_head){head, found, (uint8_t)what_asks(found, line->count)};
    }
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
