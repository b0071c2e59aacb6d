/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that ask one entity once, inline: nearly all that come. keys.c has the others.
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

/* `CALL id body`. */
__attribute__((always_inline)) static inline void keys_call(struct client *c,
                                                            const struct resp_command *line)
{
    struct target to;
    uint64_t number = 0;
    const uint8_t *trace = NULL;

    if (!client_finds(c, line->arg[1], &to) || !keys_check_body_size(c, line->arg[2].size) ||
        !keys_takes_trace(c, line, &trace)) {
        return;
    }
    client_add_slot(c, SLOT_OPAQUE, 1, &number);
    client_ask_now(c,
                   &(struct ask){.ticket = ticket_of(number, 0),
                                 .kind = to.kind,
                                 .id = to.id,
                                 .body = line->arg[2],
                                 .trace = trace});
}

/* A command to a key's actor. */
__attribute__((always_inline)) static inline void
keys_ask(struct client *c, const struct client_command *command, const struct resp_command *line)
{
    const struct bytes name = bytes_of(command->name, command->name_size);
    struct target to;
    uint64_t number = 0;

    if (line->count > ARGS_MAX) {
        client_reply_error(c, "ERR a command to one actor has at most %d words", (int)ARGS_MAX);
        return;
    }
    if (!client_finds(c, line->arg[1], &to)) {
        return;
    }
    const struct args_command body = keys_command(name, to.id, &line->arg[1], line->count - 1);

    if (keys_check_body_size(c, body.size)) {
        client_add_slot(c, SLOT_VALUE, 1, &number);
        client_ask_now(c,
                       &(struct ask){.ticket = ticket_of(number, 0),
                                     .flags = keys_flags(command),
                                     .kind = to.kind,
                                     .id = to.id,
                                     .command = &body});
    }
}

#endif
