/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that go to entities. One entity a key; a command of several keys
 * asks each owner and puts the answers together, so it is not atomic.
 */
#include "gateway/client/keys.h"

#include "base/assert.h"

#include <string.h>

static struct bytes name_bytes(const char *name)
{
    return bytes_of(name, strlen(name));
}

bool keys_take_trace(struct client *c, const struct resp_command *line, const uint8_t **trace)
{
    enum { WORD_AT = 3, TRACED = 5 };
    struct trace_context context;

    if (line->count != TRACED || !word_is(line->arg[WORD_AT], "TRACE")) {
        client_reply_error(c, "ERR behind the text may stand: TRACE <traceparent>");
        return false;
    }
    if (!traceparent_parse(line->arg[WORD_AT + 1], &context)) {
        client_reply_error(c,
                           "ERR TRACE needs a traceparent of W3C trace context, such as "
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        return false;
    }
    trace_context_store(c->all->brought, &context);
    *trace = c->all->brought;
    return true;
}

void run_call(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    struct target to;
    uint64_t number = 0;
    const uint8_t *trace = NULL;

    (void)command;
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

void run_tell(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    struct target to;
    const uint8_t *trace = NULL;

    (void)command;
    if (!client_finds(c, line->arg[1], &to) || !keys_check_body_size(c, line->arg[2].size) ||
        !keys_takes_trace(c, line, &trace)) {
        return;
    }
    // Answered before it is sent: what becomes of it is not told.
    resp_put_simple(client_reply(c), "OK");
    client_ask(c,
               &(struct ask){.flags = REQUEST_NO_REPLY,
                             .kind = to.kind,
                             .id = to.id,
                             .body = line->arg[2],
                             .trace = trace});
}

void run_key(struct client *c, const struct client_command *command,
             const struct resp_command *line)
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

static bool check_keys(struct client *c, const struct resp_command *line, size_t step)
{
    struct target to;

    for (size_t i = 1; i < line->count; i += step) {
        if (!client_finds(c, line->arg[i], &to)) {
            return false;
        }
    }
    return true;
}

/* Ask each key's owner by the command's `each`. */
static void ask_each(struct client *c, const struct client_command *command,
                     const struct resp_command *line, enum slot_shape shape)
{
    const size_t step = (size_t)command->step;
    const size_t parts = (line->count - 1) / step;
    struct ask ask = {.flags = keys_flags(command)};
    uint64_t number = 0;

    client_add_slot(c, shape, parts, &number);
    for (size_t i = 0; i < parts; i++) {
        const struct bytes *arg = &line->arg[1 + i * step];
        struct target to;
        const bool found = client_finds(c, arg[0], &to);

        ASSERT(found); // check_keys() found it, by the same view
        ask.ticket = ticket_of(number, (uint16_t)i);
        ask.kind = to.kind;
        ask.id = to.id;
        const struct args_command body = keys_command(name_bytes(command->each), to.id, arg, step);

        ask.command = &body;
        client_ask(c, &ask);
    }
}

void run_sum(struct client *c, const struct client_command *command,
             const struct resp_command *line)
{
    if (check_keys(c, line, 1)) {
        ask_each(c, command, line, SLOT_SUM);
    }
}

void run_mget(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    if (check_keys(c, line, 1)) {
        ask_each(c, command, line, SLOT_ARRAY);
    }
}

void run_mset(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    if (line->count % 2 == 0) {
        client_reply_error(c, "ERR wrong number of arguments for 'mset' command");
        return;
    }
    for (size_t i = 1; i < line->count; i += 2) {
        struct target to;

        if (!client_finds(c, line->arg[i], &to)) {
            return;
        }
        const struct args_command body =
            keys_command(name_bytes(command->each), to.id, &line->arg[i], 2);

        if (!keys_check_body_size(c, body.size)) {
            return;
        }
    }
    ask_each(c, command, line, SLOT_ALL_OK);
}
