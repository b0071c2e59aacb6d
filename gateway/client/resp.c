/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that speak RESP: commands in, replies out in the order of the commands.
 */
#include "gateway/client/keys.h"

#include "base/assert.h"
#include "base/format.h"
#include "wire/args.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_TEXT_MAX = 512 };

/* ---- replies that need no request ---- */

struct buffer *client_reply(struct client *c)
{
    if (slots_count(&c->slots) == 0) {
        return &c->out;
    }
    c->slots.local = true;
    return &slots_add(&c->slots, SLOT_LOCAL, 0, NULL)->text;
}

void client_reply_error(struct client *c, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list); // what a client sent may be cut
    va_end(list);
    resp_put_error(client_reply(c), bytes_of(text, strlen(text)));
    c->all->stats.errors++;
}

bool client_finds_any(struct client *c, struct bytes key, struct target *out)
{
    const char *role = c->all->config.role;

    if (!target_read(key, out) &&
        !target_kind_of_role(router_view(c->all->router), role, &out->kind)) {
        client_reply_error(c, "NOKIND no node of role '%s' is known yet", role);
        return false;
    }
    if (out->id.size < 1 || out->id.size > RECORD_ID_MAX) {
        client_reply_error(
            c, "ERR an id has 1 to %d bytes, not %zu", (int)RECORD_ID_MAX, out->id.size);
        return false;
    }
    return true;
}

/* Why a request was not answered by its actor. The first word is for programs. */
static void put_reply_error(const struct client *c, enum reply_code code, struct bytes body,
                            struct buffer *out)
{
    static const char no_kind[] = "no node hosts this kind, or none may host this id";
    const uint32_t deadline_ms = c->all->config.deadline_ms;

    switch (code) {
    case REPLY_OK:
    case REPLY_APP_ERROR:
        UNREACHABLE();
    case REPLY_UNKNOWN:
        buffer_put_format(
            out,
            "-UNKNOWN outcome: the node that had the request was lost; the request may have "
            "run, at most once\r\n");
        break;
    case REPLY_TIMEOUT:
        buffer_put_format(out,
                          "-TIMEOUT no answer within %" PRIu32
                          " ms: the request may have run or may still run, at most once\r\n",
                          deadline_ms);
        break;
    case REPLY_REJECTED:
        if (router_view(c->all->router)->ring.version == 0) {
            buffer_put_format(out,
                              "-MOVING no node has joined the fleet within %" PRIu32
                              " ms: it did not run, try again; ringhold status lists nodes\r\n",
                              deadline_ms);
            break;
        }
        buffer_put_format(out,
                          "-MOVING no node could run the request within %" PRIu32
                          " ms: it did not run, try again\r\n",
                          deadline_ms);
        break;
    case REPLY_OVERLOADED:
        buffer_put_format(
            out,
            "-OVERLOADED its node or the gateway has no room for more requests: this one "
            "did not run, try again\r\n");
        break;
    case REPLY_NO_KIND:
        buffer_put_format(out,
                          "-NOKIND %.*s\r\n",
                          body.size > 0 ? (int)body.size : (int)sizeof no_kind - 1,
                          body.size > 0 ? (const char *)body.data : no_kind);
        break;
    case REPLY_QUARANTINED:
        buffer_put_format(
            out,
            "-QUARANTINED the actor is in quarantine because it killed its node's process "
            "repeatedly: the request did not run\r\n");
        break;
    case REPLY_DEADLOCK:
        buffer_put_format(
            out, "-DEADLOCK the actor waits for the sender of this request: it did not run\r\n");
        break;
    }
}

/* ---- answers ---- */

static void put_app_error(struct buffer *out, struct bytes text)
{
    static const char none[] = "ERR the actor gave no reason";
    const struct value value = {.type = VALUE_ERROR,
                                .text = text.size > 0 ? text : bytes_of(none, sizeof none - 1)};

    resp_put_value(out, 2, &value);
}

static bool is_good(const struct router_effect *reply)
{
    return reply->code == REPLY_OK;
}

static void fail_slot(struct client *c, struct slot *slot, const struct router_effect *reply,
                      struct bytes body)
{
    if (slot->failed) {
        return; // the first error is the reply
    }
    slot->failed = true;
    c->all->stats.errors++;
    if (reply->code == REPLY_APP_ERROR) {
        put_app_error(&slot->text, body);
    } else {
        put_reply_error(c, reply->code, body, &slot->text);
    }
}

/* The actor's value, or a value that says that it sent none. */
static struct value value_of(struct bytes body)
{
    static const char bad[] = "ERR the actor's answer is not a value";
    struct value value;

    if (value_get(body, &value) != ERR_OK) {
        value = (struct value){.type = VALUE_ERROR, .text = bytes_of(bad, sizeof bad - 1)};
    }
    return value;
}

static void take_value(struct client *c, struct slot *slot, size_t part, struct bytes body)
{
    const struct value value = value_of(body);

    if (slot->shape == SLOT_ARRAY) {
        resp_put_value(&slot->part[part], slot->protocol, &value);
        return;
    }
    if (value.type == VALUE_ERROR && slot->shape != SLOT_VALUE && slot->failed) {
        return;
    }
    if (value.type == VALUE_ERROR) {
        slot->failed = true;
        c->all->stats.errors++;
    }
    if (value.type == VALUE_ERROR || slot->shape == SLOT_VALUE) {
        resp_put_value(&slot->text, slot->protocol, &value);
    } else if (slot->shape == SLOT_SUM && value.type == VALUE_INTEGER) {
        slot->sum += value.integer;
    }
}

static size_t text_size(const struct slot *slot, size_t part)
{
    return slot->text.size + (slot->part == NULL ? 0 : slot->part[part].size);
}

__attribute__((noinline)) static void
take_answer(struct client *c, const struct router_effect *reply, struct bytes body)
{
    struct slot *slot = slots_at(&c->slots, ticket_slot(reply->ticket));

    ASSERT(slot != NULL && slot->left > 0);
    const size_t part = reply->ticket & ((1u << TICKET_PART_BITS) - 1);
    const size_t before = text_size(slot, part);

    if (slot->shape == SLOT_BIND) {
        binding_answered(c, reply, body);
    } else if (!is_good(reply)) {
        fail_slot(c, slot, reply, body);
    } else if (slot->shape == SLOT_OPAQUE) {
        resp_put_bulk(&slot->text, body);
    } else {
        take_value(c, slot, part, body);
    }
    slot->left--;
    c->slots.size += text_size(slot, part) - before;
}

__attribute__((noinline)) static void put_any_value(struct client *c, int protocol,
                                                    struct bytes body)
{
    const struct value value = value_of(body);

    c->all->stats.errors += value.type == VALUE_ERROR;
    resp_put_value(&c->out, protocol, &value);
}

/* A value as its reply; most are a bulk, or OK. */
__attribute__((always_inline)) static inline void put_value(struct client *c, int protocol,
                                                            struct bytes body)
{
    if (body.size > 0 && body.data[0] == VALUE_BULK) {
        resp_put_bulk_now(&c->out, bytes_of(body.data + 1, body.size - 1));
    } else if (body.size == 3 && load_u16(body.data) == ('s' | 'O' << 8) && body.data[2] == 'K') {
        resp_put_ok(&c->out);
    } else {
        put_any_value(c, protocol, body);
    }
}

/* The usual case: one part, first in line. Its reply goes out without a stop in the slot. */
__attribute__((always_inline)) static inline bool answer_directly(struct client *c,
                                                                  const struct slot *first,
                                                                  const struct router_effect *reply,
                                                                  struct bytes body)
{
    if (ticket_slot(reply->ticket) != c->slots.head || first == NULL || !is_good(reply)) {
        return false;
    }
    if (first->shape == SLOT_VALUE) {
        put_value(c, first->protocol, body);
    } else if (first->shape == SLOT_OPAQUE) {
        resp_put_bulk_now(&c->out, body);
    } else {
        return false;
    }
    slots_skip(&c->slots);
    return true;
}

/* What became the first while it was answered already goes out. Returns the first then. */
__attribute__((noinline)) static struct slot *put_ready(struct client *c)
{
    while (slots_ready(&c->slots)) {
        (void)slots_pop(&c->slots, &c->out);
    }
    return slots_front(&c->slots);
}

/* `first` is slots_front(). Returns what is that then. */
__attribute__((always_inline)) static inline struct slot *
take(struct client *c, struct slot *first, const struct router_effect *reply, struct bytes body)
{
    if (!answer_directly(c, first, reply, body)) {
        take_answer(c, reply, body);
    }
    first = slots_front(&c->slots);
    return first != NULL && first->left == 0 ? put_ready(c) : first;
}

static void answer(struct client *c, const struct router_effect *reply, struct bytes body)
{
    (void)take(c, slots_front(&c->slots), reply, body);
}

static size_t answers(struct client *c, const struct router_effects *effects, size_t from)
{
    struct slot *first = slots_front(&c->slots);
    size_t i = from;

    for (; i < effects->count && client_takes_reply(c, &effects->item[i]); i++) {
        const struct router_effect *reply = &effects->item[i];
        const struct bytes body = router_effect_bytes(effects, reply);

        client_learn_size(c, body.size);
        first = take(c, first, reply, body);
    }
    return i;
}

/* ---- commands ---- */

/* An HTTP request sent to this port, maybe by a browser that was tricked into it: its lines must
 * not be run as commands. */
static bool is_http(struct bytes name)
{
    return word_is(name, "POST") || word_is(name, "HOST:");
}

static void reply_unknown_command(struct client *c, const struct resp_command *line)
{
    enum { SHOWN = 64 };
    char args[SHOWN * 4] = "";
    size_t used = 0;

    for (size_t i = 1; i < line->count && used + 5 < sizeof args; i++) {
        const struct bytes arg = line->arg[i];
        const size_t room = sizeof args - used - 5;
        const size_t most = room < SHOWN ? room : SHOWN;
        const int size = (int)(arg.size < most ? arg.size : most);

        used += (size_t)snprintf(
            args + used, sizeof args - used, "'%.*s' ", size, (const char *)arg.data);
    }
    client_reply_error(c,
                       "ERR unknown command '%.*s', with args beginning with: %s",
                       (int)(line->arg[0].size < SHOWN ? line->arg[0].size : SHOWN),
                       (const char *)line->arg[0].data,
                       args);
}

static void reply_wrong_count(struct client *c, const struct client_command *command)
{
    char name[COMMAND_NAME_MAX + 1] = "";

    for (size_t i = 0; command->name[i] != '\0'; i++) {
        name[i] = (char)(command->name[i] - 'A' + 'a');
    }
    client_reply_error(c, "ERR wrong number of arguments for '%s' command", name);
}

/* If slot `number` was made for a reply of our own, it is written by now. */
static inline void count_local_reply(struct client *c, uint64_t number)
{
    if (__builtin_expect(!c->slots.local, true)) {
        return;
    }
    const struct slot *slot = slots_at(&c->slots, number);

    c->slots.local = false;
    if (slot != NULL && slot->shape == SLOT_LOCAL) {
        c->slots.size += slot->text.size;
    }
}

/* It was found, and takes so many arguments. */
static void run_known(struct client *c, const struct client_command *command,
                      const struct resp_command *line)
{
    const uint64_t number = c->slots.tail;

    c->all->stats.commands++;
    if (__builtin_expect(c->in_multi, false) && !command->in_multi) {
        client_reply_error(
            c, "ERR transactions are not supported: this did not run, and EXEC runs nothing");
    } else {
        command->run(c, command, line);
    }
    count_local_reply(c, number);
}

/* It is no command, or not like that. */
static void run_unknown(struct client *c, const struct client_command *command,
                        const struct resp_command *line)
{
    const uint64_t number = c->slots.tail;

    c->all->stats.commands++;
    if (command != NULL) {
        reply_wrong_count(c, command);
    } else if (is_http(line->arg[0])) {
        c->all->stats.bad_input++;
        client_drop(c);
    } else {
        reply_unknown_command(c, line);
    }
    count_local_reply(c, number);
}

/* `in` begins with it. */
static void run(struct client *c, const struct resp_command *line, struct bytes in)
{
    const struct client_command *command = command_recall(&c->all->memo, line->arg[0]);

    if (command != NULL && command_takes(command, line->count)) {
        command_note(&c->all->heads, in, line, command);
        run_known(c, command, line);
    } else {
        run_unknown(c, command, line);
    }
}

/* ---- input ---- */

static void reply_refused(struct client *c, const char *error)
{
    const uint64_t number = c->slots.tail;

    client_reply_error(c, "%s", error);
    count_local_reply(c, number);
}

static void refuse_input(struct client *c, const char *error)
{
    c->all->stats.bad_input++;
    reply_refused(c, error);
    client_close(c);
}

/* It is not RESP. */
static void refuse_unparsed(struct client *c, const char *why)
{
    char error[ERROR_TEXT_MAX];

    (void)snprintf(error, sizeof error, "ERR %s", why);
    refuse_input(c, error);
}

/* Run the command at the front of `in`, in any case. Returns false if there is none to run, nor
 * behind it; `taken`: bytes that it took. */
__attribute__((noinline)) static bool run_any(struct client *c, struct bytes in,
                                              struct resp_output *parsed)
{
    switch (resp_parse(&c->parser, in, &c->all->words, parsed)) {
    case RESP_COMMAND:
        if (parsed->command.count > 0) {
            run(c, &parsed->command, in);
        }
        return true;
    case RESP_REFUSED:
        reply_refused(c, parsed->error);
        return true;
    case RESP_MORE:
        client_note_half(c, true);
        return false;
    case RESP_ERROR:
        refuse_unparsed(c, parsed->error);
        parsed->taken = 0;
        return false;
    }
    UNREACHABLE();
}

/* Run the command at the front of `in`. Most begin as one did before. As run_any(); `asks`: it may
 * have asked one entity once, and has done nothing else. */
static bool run_one(struct client *c, struct bytes in, struct resp_output *parsed, bool *asks)
{
    const struct command_head *noted =
        in.size < RESP_HEAD_MAX ? NULL : command_noted(&c->all->heads, in);

    if (noted != NULL && noted->found != NULL && resp_begins(in, &noted->head) &&
        resp_parse_behind(&c->parser, in, &noted->head, parsed)) {
        *asks = noted->asks != COMMAND_ASKS_OTHER;
        run_known(c, noted->found, &parsed->command);
        return true;
    }
    *asks = false;
    return run_any(c, in, parsed);
}

/* Run the commands at the front of `in`; returns how many bytes they took. */
static size_t run_commands(struct client *c, struct bytes in)
{
    struct resp_output parsed;
    size_t at = 0;
    size_t room = 0; // for so many commands, before that is looked at again
    bool more = true;

    client_note_half(c, false);
    while (more && at < in.size) {
        const struct bytes rest = bytes_of(in.data + at, in.size - at);
        const uint64_t tail = c->slots.tail;

        room = room > 0 ? room : client_room(c, rest.size);
        if (room == 0) {
            break;
        }
        const size_t taken = keys_run(c, rest, room);
        bool asks = taken > 0;

        if (taken == 0) {
            more = run_one(c, rest, &parsed, &asks);
        }
        at += taken > 0 ? taken : parsed.taken;
        const size_t asked = (size_t)(c->slots.tail - tail);
        room = asks && asked > 0 && !c->rests ? room - asked : 0;
    }
    return c->closing || c->dropped ? in.size : at;
}

static bool owes(const struct client *c)
{
    return slots_count(&c->slots) > 0;
}

static void refuse_half(struct client *c)
{
    refuse_input(c, "OVERLOADED the gateway has no memory for a command of this size now");
}

/* ---- sessions ---- */

void run_bind(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    const uint64_t number = c->slots.tail;
    struct target to;

    (void)command;
    if (!client_finds(c, line->arg[1], &to)) {
        return;
    }
    if (binding_ask(
            c, line->arg[1], &to, &(struct bind_wish){.type = NOTE_BIND}, ticket_of(number, 0))) {
        client_add_slot(c, SLOT_BIND, 1, NULL);
    } else {
        client_reply_error(c, "ERR this connection is already bound: UNBIND first");
    }
}

void run_unbind(struct client *c, const struct client_command *command,
                const struct resp_command *line)
{
    const uint64_t number = c->slots.tail;

    (void)command;
    (void)line;
    if (binding_leave(c, ticket_of(number, 0))) {
        client_add_slot(c, SLOT_BIND, 1, NULL);
    } else {
        client_reply_error(c, "ERR this connection is not bound: BIND first");
    }
}

static void bind_over(struct client *c, uint64_t ticket, enum bound_result result, const char *why)
{
    struct slot *slot = slots_at(&c->slots, ticket_slot(ticket));

    (void)result; // the text says it
    if (why == NULL) {
        resp_put_simple(&slot->text, "OK");
    } else {
        slot->failed = true;
        resp_put_error(&slot->text, bytes_of(why, strlen(why)));
    }
}

static void bind_failed(struct client *c, const struct router_effect *reply, struct bytes body)
{
    fail_slot(c, slots_at(&c->slots, ticket_slot(reply->ticket)), reply, body);
}

static bool is_answered(const struct client *c, uint64_t ticket)
{
    return c->slots.head > ticket_slot(ticket);
}

static void put_head(struct client *c, const char *what)
{
    resp_put_push(&c->out, c->protocol, 3);
    resp_put_text(&c->out, what);
}

static void put_push(struct client *c, struct bytes key, const struct push_record *push)
{
    put_head(c, "message");
    resp_put_bulk(&c->out, key);
    resp_put_bulk(&c->out, push->payload);
}

static void put_kick(struct client *c, uint32_t code, struct bytes text)
{
    put_head(c, "kick");
    resp_put_integer(&c->out, code);
    resp_put_bulk(&c->out, text);
}

static void put_rebound(struct client *c, const struct rebind *to)
{
    char key[REBIND_ID_MAX + 8];
    const int head = snprintf(key, 8, "@%u/", to->kind);

    memcpy(key + head, to->id, to->id_size);
    resp_put_push(&c->out, c->protocol, 2);
    resp_put_text(&c->out, "rebound");
    resp_put_bulk(&c->out, bytes_of(key, (size_t)head + to->id_size));
}

const struct dialect dialect_resp = {
    .take = run_commands,
    .answer = answer,
    .answers = answers,
    .owes = owes,
    .refuse_half = refuse_half,
    .bind_over = bind_over,
    .bind_failed = bind_failed,
    .is_answered = is_answered,
    .push = put_push,
    .kick = put_kick,
    .rebound = put_rebound,
};
