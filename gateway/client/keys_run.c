/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that ask one entity once, one behind the other, of one client: nearly all that come.
 * What is the same for all of them is looked at once, and counted once (route/steady.h).
 */
#include "gateway/client/keys.h"

#include "wire/args.h"

/* What one says. */
struct run_line {
    struct bytes id;
    struct bytes value; /* unless it has a key alone */
    const uint8_t *end; /* what is behind it */
    uint16_t kind;
};

/* Take apart what begins as noted. False: it is unusual. */
__attribute__((always_inline)) static inline bool take_apart(const struct command_head *noted,
                                                             const uint8_t *at, const uint8_t *end,
                                                             struct run_line *line)
{
    line->kind = 0;
    line->end = resp_take_bulk(at + noted->head.size, end, &line->id);
    if (__builtin_expect(line->end == NULL || line->id.size == 0, false)) {
        return false;
    }
    if (noted->asks != COMMAND_ASKS_KEY) {
        line->end = resp_take_bulk(line->end, end, &line->value);
    }
    if (__builtin_expect(line->id.data[0] == '@', false)) {
        struct target to = {0};

        (void)target_read(line->id, &to); // or it is an id
        line->kind = to.kind;
        line->id = to.id;
    }
    return line->end != NULL && line->id.size - 1 < RECORD_ID_MAX;
}

/* What all ask have in common. */
__attribute__((always_inline)) static inline struct router_plain
plain_of(const struct client *c, const struct run_line line, struct bytes body)
{
    return (struct router_plain){.session = c->session,
                                 .origin = c->origin,
                                 .ticket = ticket_of(c->slots.tail, 0),
                                 .kind = line.kind,
                                 .id = line.id,
                                 .body = body};
}

/* A call of an actor. False: nothing was changed. */
__attribute__((always_inline)) static inline bool
call(struct client *c, struct router *r, const struct run_line line, struct steady_sum *sum)
{
    return line.value.size <= RECORD_BODY_MAX && steady_take(r, plain_of(c, line, line.value), sum);
}

/* A command to a key's actor, with so many words behind the key: 0 or 1. Likewise. */
__attribute__((always_inline)) static inline bool ask(struct client *c, struct router *r,
                                                      const struct client_command *command,
                                                      const struct run_line line, size_t words,
                                                      struct steady_sum *sum)
{
    struct args_command body = {.name = bytes_of(command->name, command->name_size),
                                .id = line.id,
                                .rest = &line.value,
                                .rest_count = words};

    body.size = args_command_size(&body);
    struct router_plain plain = plain_of(c, line, (struct bytes){NULL, body.size});

    plain.flags = keys_flags(command);
    plain.command = &body;
    return body.size <= RECORD_BODY_MAX && steady_take(r, plain, sum);
}

__attribute__((always_inline)) static inline bool take(struct client *c, struct router *r,
                                                       const struct command_head *noted,
                                                       const struct run_line line,
                                                       struct steady_sum *sum)
{
    switch ((enum command_asks)noted->asks) {
    case COMMAND_ASKS_KEY:
        return ask(c, r, noted->found, line, 0, sum);
    case COMMAND_ASKS_VALUE:
        return ask(c, r, noted->found, line, 1, sum);
    case COMMAND_ASKS_CALL:
        return call(c, r, line, sum);
    case COMMAND_ASKS_OTHER:
        break;
    }
    UNREACHABLE();
}

/* How many may be taken. */
static size_t most_of(const struct client *c, size_t most)
{
    const struct steady_run *begun = &c->all->router->by_stream.run;
    const size_t slots = c->slots.cap - slots_count(&c->slots);
    const size_t least = slots < most ? slots : most;
    const bool plain = c->all->config.role[0] == '\0' && c->all->spans.tracing == NULL;

    if (!steady_goes_on(begun, c->session, c->now_us, c->identity != NULL) || !plain ||
        c->in_multi || !resp_parser_is_fresh(&c->parser)) {
        return 0;
    }
    return begun->left < least ? begun->left : least;
}

/* They were taken. */
static void count(struct client *c, const struct steady_sum *sum)
{
    const struct router_plain plain = {.origin = c->origin};

    c->all->stats.commands += sum->count;
    client_has_asked(c, sum->count, sum->asked);
    if (!steady_end(c->all->router, plain, *sum)) {
        client_rest_if_over(c);
    }
}

/* As keys_run(), of `left` at most. */
__attribute__((noinline)) static size_t run(struct client *c, struct bytes in, size_t left)
{
    struct router *r = c->all->router;
    const uint64_t size_left = r->by_stream.run.size_max - r->size;
    const uint8_t *at = in.data;
    const uint8_t *end = in.data + in.size;
    const struct command_head *noted = NULL;
    struct steady_sum sum = {0};

    while (sum.count < left && sum.size <= size_left && end - at >= RESP_HEAD_MAX) {
        const struct bytes rest = bytes_of(at, (size_t)(end - at));
        struct run_line line = {0};

        if (noted == NULL || !resp_begins(rest, &noted->head)) {
            noted = command_noted(&c->all->heads, rest);
            if (noted->asks == COMMAND_ASKS_OTHER || !resp_begins(rest, &noted->head)) {
                break;
            }
        }
        if (!take_apart(noted, at, end, &line) || line.kind != r->by_stream.run.kind ||
            !take(c, r, noted, line, &sum)) {
            break;
        }
        client_put_slot(c, noted->asks == COMMAND_ASKS_CALL ? SLOT_OPAQUE : SLOT_VALUE);
        at = line.end;
    }
    if (sum.count > 0) {
        count(c, &sum);
    }
    return (size_t)(at - in.data);
}

size_t keys_run_on(struct client *c, struct bytes in, size_t most)
{
    const size_t left = most_of(c, most);

    return left == 0 ? 0 : run(c, in, left);
}
