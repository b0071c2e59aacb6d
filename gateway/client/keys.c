/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that go to entities. One entity a key; a command of several keys
 * asks each owner and puts the answers together, so it is not atomic.
 */
#include "gateway/client/inside.h"

#include "base/assert.h"
#include "wire/args.h"
#include "wire/record.h"

#include <string.h>

static struct bytes name_bytes(const char *name)
{
    return bytes_of(name, strlen(name));
}

struct slot *client_add_slot(struct client *c, enum slot_shape shape, size_t parts,
                             uint64_t *number)
{
    struct slot *slot = slots_add(&c->slots, shape, (uint16_t)parts, number);

    slot->protocol = c->protocol;
    return slot;
}

static bool check_body_size(struct client *c, size_t size)
{
    if (size <= RECORD_BODY_MAX) {
        return true;
    }
    client_reply_error(c, "ERR the command is over the limit of %d bytes", (int)RECORD_BODY_MAX);
    return false;
}

/* Bytes of `count` arguments as the body of a request. */
static size_t args_size(const struct args *args)
{
    size_t size = 1;

    for (size_t i = 0; i < args->count; i++) {
        size += 4 + args->arg[i].size;
    }
    return size;
}

/* Commands that only read may run again where a write is answered UNKNOWN: after a take-over that
 * lost what their owner had in memory (specification §6). Any actor that takes them must keep to
 * it. */
static uint8_t flags_of(const struct client_command *command)
{
    return (uint8_t)(REQUEST_COMMAND | (command->writes ? 0 : REQUEST_IDEMPOTENT));
}

/* `to` names the entity. The actor is told its id where the command has its key. */
static void ask_args(struct client *c, const struct ask *to, struct args *args)
{
    struct buffer *body = &c->all->body;
    struct ask ask = *to;

    args->arg[1] = to->id;

    buffer_clear(body);
    args_put(body, args);
    ask.body = buffer_bytes(body);
    client_ask(c, &ask);
}

void run_call(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    struct target to;
    uint64_t number = 0;

    (void)command;
    if (!client_finds(c, line->arg[1], &to) || !check_body_size(c, line->arg[2].size)) {
        return;
    }
    client_add_slot(c, SLOT_OPAQUE, 1, &number);
    client_ask(
        c,
        &(struct ask){
            .ticket = ticket_of(number, 0), .kind = to.kind, .id = to.id, .body = line->arg[2]});
}

void run_tell(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    struct target to;

    (void)command;
    if (!client_finds(c, line->arg[1], &to) || !check_body_size(c, line->arg[2].size)) {
        return;
    }
    // Answered before it is sent: what becomes of it is not told.
    resp_put_simple(client_reply(c), "OK");
    client_ask(c,
               &(struct ask){
                   .flags = REQUEST_NO_REPLY, .kind = to.kind, .id = to.id, .body = line->arg[2]});
}

void run_key(struct client *c, const struct client_command *command,
             const struct resp_command *line)
{
    struct args args; // not zeroed: it has room for many more than there mostly are
    struct target to;
    uint64_t number = 0;

    if (line->count > ARGS_MAX) {
        client_reply_error(c, "ERR a command to one actor has at most %d words", (int)ARGS_MAX);
        return;
    }
    args.count = (uint8_t)line->count;
    memcpy(args.arg, line->arg, line->count * sizeof args.arg[0]);
    args.arg[0] = name_bytes(command->name);
    if (!client_finds(c, line->arg[1], &to) || !check_body_size(c, args_size(&args))) {
        return;
    }
    client_add_slot(c, SLOT_VALUE, 1, &number);
    ask_args(c,
             &(struct ask){.ticket = ticket_of(number, 0),
                           .flags = flags_of(command),
                           .kind = to.kind,
                           .id = to.id},
             &args);
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
    struct ask ask = {.flags = flags_of(command)};
    uint64_t number = 0;

    client_add_slot(c, shape, parts, &number);
    for (size_t i = 0; i < parts; i++) {
        struct args args;
        struct target to;
        const bool found = client_finds(c, line->arg[1 + i * step], &to);

        ASSERT(found); // check_keys() found it, by the same view
        args.count = (uint8_t)(1 + step);
        args.arg[0] = name_bytes(command->each);
        memcpy(&args.arg[1], &line->arg[1 + i * step], step * sizeof args.arg[0]);
        ask.ticket = ticket_of(number, (uint16_t)i);
        ask.kind = to.kind;
        ask.id = to.id;
        ask_args(c, &ask, &args);
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
        const struct args pair = {.count = 3,
                                  .arg = {name_bytes("SET"), line->arg[i], line->arg[i + 1]}};

        struct target to;

        if (!client_finds(c, line->arg[i], &to) || !check_body_size(c, args_size(&pair))) {
            return;
        }
    }
    ask_each(c, command, line, SLOT_ALL_OK);
}
