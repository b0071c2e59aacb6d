/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that go to entities: what keys.c and keys_run.c share.
 */
#ifndef GATEWAY_CLIENT_KEYS_H
#define GATEWAY_CLIENT_KEYS_H

#include "gateway/client/ask.h"
#include "wire/args.h"
#include "wire/record.h"

/* False: it is too large, and an error was replied. */
static inline bool keys_check_body_size(struct client *c, size_t size)
{
    if (size <= RECORD_BODY_MAX) {
        return true;
    }
    client_reply_error(c, "ERR the command is over the limit of %d bytes", (int)RECORD_BODY_MAX);
    return false;
}

/* Commands that only read may run again where a write is answered UNKNOWN: after a take-over that
 * lost what their owner had in memory (specification §6). Any actor that takes them must keep to
 * it. */
static inline uint8_t keys_flags(const struct client_command *command)
{
    return (uint8_t)(REQUEST_COMMAND | (command->writes ? 0 : REQUEST_IDEMPOTENT));
}

/* A command and its arguments. The actor is told its id where the command has its key, `arg`'s
 * first. */
__attribute__((always_inline)) static inline struct args_command
keys_command(struct bytes name, struct bytes id, const struct bytes *arg, size_t count)
{
    struct args_command command = {name, id, arg + 1, count - 1, 0};

    command.size = args_command_size(&command);
    return command;
}

/* Read what is behind the text of a call, `CALL KEY TEXT TRACE 00-…`, into `trace`. False: it is
 * something else, and an error was replied. */
bool keys_take_trace(struct client *c, const struct resp_command *line, const uint8_t **trace);

/* keys_take_trace(), inline for a command that has none, as most do. */
static inline bool keys_takes_trace(struct client *c, const struct resp_command *line,
                                    const uint8_t **trace)
{
    enum { PLAIN = 3 };

    return line->count == PLAIN || keys_take_trace(c, line, trace);
}

/* keys_run(), where the router is in a run. (keys_run.c) */
size_t keys_run_on(struct client *c, struct bytes in, size_t most);
/* Run those at the front of `in` that ask one entity once, `most` of them, in the router's run
 * (struct steady_run). Returns how many bytes they took: one that is unusual, and those behind it,
 * are left. */
static inline size_t keys_run(struct client *c, struct bytes in, size_t most)
{
    return c->all->router->by_stream.run.left == 0 ? 0 : keys_run_on(c, in, most);
}

#endif
