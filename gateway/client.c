/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/client.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/client_inside.h"
#include "wire/args.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    IDLE_BUFFER_MAX = 4096,       /* an idle connection keeps no more of each buffer */
    HALF_COMMAND_MAX = 64 * 1024, /* what may grow still while all buffers together are full */
    ERROR_TEXT_MAX = 512,
    REPLY_SIZE_GUESS = 4096, /* of a connection's first replies */
    REPLY_SIZE_DECAY = 16,
};

struct clients_config clients_config_default(void)
{
    return (struct clients_config){
        .version = "",
        .in_flight_max = 1024,
        .connections_max = 10000,
        .stall_ms = 60000,
        .deadline_ms = 10000,
        .unsent_max = (size_t)1024 * 1024,
        .output_max = (size_t)64 * 1024 * 1024,
        .buffers_max = (size_t)256 * 1024 * 1024,
        .push_unread_max = (size_t)1024 * 1024,
    };
}

/* ---- all of them ---- */

struct clients *clients_new(const struct clients_config *config, struct router *router,
                            uint64_t now_us)
{
    struct clients *all = mem_new(1, sizeof *all);

    all->config = *config;
    all->router = router;
    all->since_us = now_us;
    list_init(&all->order);
    list_init(&all->bound);
    list_init(&all->due);
    list_init(&all->turn);
    return all;
}

void clients_free(struct clients *all)
{
    if (all == NULL) {
        return;
    }
    ASSERT(all->table.count == 0);
    table_fini(&all->table);
    buffer_fini(&all->words);
    buffer_fini(&all->body);
    mem_free(all);
}

bool clients_full(const struct clients *all)
{
    return all->table.count >= all->config.connections_max;
}

struct bytes clients_refusal(struct clients *all)
{
    static const char text[] = "-ERR max number of clients reached\r\n";

    all->figures.refused++;
    return bytes_of(text, sizeof text - 1);
}

struct client *clients_find(const struct clients *all, uint64_t session)
{
    struct table_link *l = table_first(&all->table, table_mix(session));

    // table_mix() is a bijection: equal hashes are equal sessions.
    return l == NULL ? NULL : CONTAINER_OF(l, struct client, link);
}

void clients_figures(const struct clients *all, struct clients_figures *out)
{
    *out = all->figures;
    out->pushes = all->pushes;
}

/* ---- life ---- */

void client_account(struct client *c)
{
    const size_t now = c->in.cap + c->out.cap + c->writing + c->slots.size;

    c->all->figures.buffered += now;
    c->all->figures.buffered -= c->held;
    c->held = now;
}

struct client *client_new(struct clients *all, const char *address, uint64_t now_us)
{
    struct client *c = mem_new(1, sizeof *c);

    c->all = all;
    c->session = router_session(all->router);
    c->id = ++all->drawn;
    c->since_us = now_us;
    c->progress_us = now_us;
    c->protocol = 2;
    c->lost_why = NOTE_LOST_CLOSED;
    c->reply_size = REPLY_SIZE_GUESS;
    (void)snprintf(c->address, sizeof c->address, "%s", address);
    table_put(&all->table, &c->link, table_mix(c->session));
    list_push_back(&all->order, &c->order);
    all->figures.accepted++;
    all->figures.connected++;
    return c;
}

void client_free(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct clients *all = c->all;
    const struct router_event event = {
        .type = ROUTER_SESSION_CLOSED, .now_us = now_us, .session = c->session};

    binding_end(c, now_us, effects);
    router_step(all->router, &event, effects);
    table_remove(&all->table, &c->link);
    list_remove(&c->order);
    all->figures.connected--;
    all->figures.buffered -= c->held;
    buffer_fini(&c->in);
    buffer_fini(&c->out);
    slots_fini(&c->slots);
    mem_free(c);
}

void *client_user(const struct client *c)
{
    return c->user;
}

void client_set_user(struct client *c, void *user)
{
    c->user = user;
}

/* ---- replies that need no request ---- */

void put_format(struct buffer *out, const char *format, ...)
{
    char text[ERROR_TEXT_MAX * 2];
    va_list list;

    va_start(list, format);
    const int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    ASSERT(size >= 0 && (size_t)size < sizeof text);
    buffer_put(out, text, (size_t)size);
}

struct buffer *client_reply(struct client *c)
{
    if (slots_count(&c->slots) == 0) {
        return &c->out;
    }
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
    c->all->figures.errors++;
}

bool client_finds(struct client *c, struct bytes key, struct target *out)
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

/* ---- requests ---- */

void client_ask(struct client *c, const struct ask *ask)
{
    const bool told = (ask->flags & REQUEST_NO_REPLY) != 0;
    const struct router_event event = {
        .type = ROUTER_REQUEST,
        .now_us = c->now_us,
        .session = c->session,
        .ticket = told ? TICKET_NONE : ask->number << TICKET_PART_BITS | ask->part,
        .flags = ask->flags,
        .kind = ask->kind,
        .id = ask->id,
        .body = ask->body,
    };

    c->in_flight += told ? 0 : 1;
    router_step(c->all->router, &event, c->effects);
}

/* Why a request was not answered by its actor. The first word is for programs. */
static void put_reply_error(struct client *c, const struct slot *slot, enum reply_code code,
                            struct buffer *out)
{
    const uint32_t deadline_ms = c->all->config.deadline_ms;

    switch (code) {
    case REPLY_OK:
    case REPLY_APP_ERROR:
        UNREACHABLE();
    case REPLY_UNKNOWN:
        put_format(out,
                   "-UNKNOWN outcome: a node was lost that had the request, which may have run, at "
                   "most once\r\n");
        break;
    case REPLY_TIMEOUT:
        put_format(out,
                   "-TIMEOUT no answer within %" PRIu32
                   " ms: the request may have run or may run still, at most once\r\n",
                   deadline_ms);
        break;
    case REPLY_REJECTED:
        if (c->now_us - slot->asked_us < (uint64_t)deadline_ms * 1000) {
            put_format(out, "-OVERLOADED too many requests: this one did not run, try again\r\n");
        } else {
            put_format(out,
                       "-MOVING nobody could run the request within %" PRIu32
                       " ms: it did not run, try again\r\n",
                       deadline_ms);
        }
        break;
    case REPLY_OVERLOADED:
        put_format(out, "-OVERLOADED its node has no room: this one did not run, try again\r\n");
        break;
    case REPLY_NO_KIND:
        put_format(out, "-NOKIND no node hosts an actor of this kind and id\r\n");
        break;
    case REPLY_QUARANTINED:
        put_format(
            out,
            "-QUARANTINED the actor is in quarantine, for it killed its node's process again "
            "and again: this one did not run\r\n");
        break;
    }
}

/* ---- answers ---- */

static void put_app_error(struct buffer *out, struct bytes text)
{
    const struct value value = {.type = VALUE_ERROR, .text = text};

    resp_put_value(out, 2, &value);
}

static bool is_good(const struct router_effect *reply)
{
    return reply->code == REPLY_OK;
}

void client_fail_slot(struct client *c, struct slot *slot, const struct router_effect *reply,
                      struct bytes body)
{
    if (slot->failed) {
        return; // the first error is the reply
    }
    slot->failed = true;
    c->all->figures.errors++;
    if (reply->code == REPLY_APP_ERROR) {
        put_app_error(&slot->text, body);
    } else {
        put_reply_error(c, slot, reply->code, &slot->text);
    }
}

/* The actor's value, or a value that says that it sent none. */
static struct value value_of(struct bytes body)
{
    static const char bad[] = "ERR the actor answered something that is not a value";
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
        c->all->figures.errors++;
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

static void take_answer(struct client *c, struct slot *slot, const struct router_effect *reply,
                        struct bytes body)
{
    const size_t part = reply->ticket & ((1u << TICKET_PART_BITS) - 1);
    const size_t before = text_size(slot, part);

    if (slot->shape == SLOT_BIND) {
        binding_answered(c, slot, reply, body);
    } else if (!is_good(reply)) {
        client_fail_slot(c, slot, reply, body);
    } else if (slot->shape == SLOT_OPAQUE) {
        resp_put_bulk(&slot->text, body);
    } else {
        take_value(c, slot, part, body);
    }
    slot->left--;
    c->slots.size += text_size(slot, part) - before;
}

/* The usual case: one part, first in line. Its reply goes out without a stop in the slot. */
static bool answer_directly(struct client *c, struct slot *slot, const struct router_effect *reply,
                            struct bytes body)
{
    if (slot != slots_front(&c->slots) || !is_good(reply)) {
        return false;
    }
    if (slot->shape == SLOT_OPAQUE) {
        resp_put_bulk(&c->out, body);
    } else if (slot->shape == SLOT_VALUE) {
        const struct value value = value_of(body);

        c->all->figures.errors += value.type == VALUE_ERROR;
        resp_put_value(&c->out, slot->protocol, &value);
    } else {
        return false;
    }
    slot->left = 0;
    return true;
}

/* How large is the next reply going to be? As large as the last, or a little less than thought
 * before: what is asked for must not overrun the buffers when it comes. */
static void learn_reply_size(struct client *c, size_t size)
{
    if (size >= c->reply_size) {
        c->reply_size = size;
    } else {
        c->reply_size -= (c->reply_size - size + REPLY_SIZE_DECAY - 1) / REPLY_SIZE_DECAY;
    }
}

void client_on_reply(struct client *c, const struct router_effect *reply, struct bytes body,
                     uint64_t now_us)
{
    if (reply->ticket == TICKET_NONE) {
        return;
    }
    if (reply->ticket == TICKET_RESUME) {
        binding_resumed(c, reply, body, now_us);
        client_account(c);
        return;
    }
    struct slot *slot = slots_at(&c->slots, client_ticket_slot(reply));
    ASSERT(slot != NULL && slot->left > 0 && c->in_flight > 0);
    c->now_us = now_us;
    c->in_flight--;
    learn_reply_size(c, body.size);
    client_owes(c, now_us);
    if (!answer_directly(c, slot, reply, body)) {
        take_answer(c, slot, reply, body);
    }
    while (slots_pop(&c->slots, &c->out)) {
    }
    binding_pump(c, now_us);
    client_account(c);
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

static void reply_wrong_count(struct client *c, const struct command *command)
{
    char name[COMMAND_NAME_MAX + 1] = "";

    for (size_t i = 0; command->name[i] != '\0'; i++) {
        name[i] = (char)(command->name[i] - 'A' + 'a');
    }
    client_reply_error(c, "ERR wrong number of arguments for '%s' command", name);
}

/* If slot `number` was made for a reply of our own, it is written by now. */
static void count_local_reply(struct client *c, uint64_t number)
{
    const struct slot *slot = slots_at(&c->slots, number);

    if (slot != NULL && slot->shape == SLOT_LOCAL) {
        c->slots.size += slot->text.size;
    }
}

static void run(struct client *c, const struct resp_command *line)
{
    const struct command *command = command_find(line->arg[0]);
    const uint64_t number = c->slots.tail;

    c->all->figures.commands++;
    if (command != NULL && command_takes(command, line->count)) {
        command->run(c, command, line);
    } else if (command != NULL) {
        reply_wrong_count(c, command);
    } else if (is_http(line->arg[0])) {
        c->all->figures.bad_input++;
        c->dropped = true;
    } else {
        reply_unknown_command(c, line);
    }
    count_local_reply(c, number);
}

/* ---- input ---- */

void client_owes(struct client *c, uint64_t now_us)
{
    if (client_unsent(c) == 0) {
        c->progress_us = now_us;
    }
}

size_t client_unsent(const struct client *c)
{
    return c->out.size + c->writing;
}

/* May one more command be taken? */
static bool has_room(const struct client *c)
{
    const struct clients_config *config = &c->all->config;
    const bool all_full = c->all->figures.buffered > config->buffers_max;
    const size_t expected = client_unsent(c) + c->in_flight * c->reply_size;
    const bool fits = expected < config->unsent_max || (c->in_flight == 0 && client_unsent(c) == 0);

    return !c->closing && !c->dropped && slots_count(&c->slots) < config->in_flight_max &&
           c->in_flight < config->in_flight_max && fits && !(all_full && client_unsent(c) > 0) &&
           !router_full(c->all->router);
}

bool client_wants_input(const struct client *c)
{
    // Not while whole commands wait: room comes and goes for all at once, and each time every
    // connection would be read from.
    const bool used_up = c->in.size == c->in_at || c->half;

    return used_up && has_room(c) && !c->ended;
}

static void refuse_input(struct client *c, const char *error)
{
    const uint64_t number = c->slots.tail;

    c->all->figures.bad_input++;
    client_reply_error(c, "%s", error);
    count_local_reply(c, number);
    c->closing = true;
}

/* Run the commands at the front of `in`; returns how many bytes they took. */
static size_t run_commands(struct client *c, struct bytes in)
{
    struct resp_output parsed;
    size_t at = 0;

    c->half = false;
    while (at < in.size && has_room(c)) {
        const enum resp_result result =
            resp_parse(&c->parser, bytes_of(in.data + at, in.size - at), &c->all->words, &parsed);

        if (result == RESP_MORE) {
            c->half = true;
            break;
        }
        if (result == RESP_ERROR) {
            char error[ERROR_TEXT_MAX];

            (void)snprintf(error, sizeof error, "ERR %s", parsed.error);
            refuse_input(c, error);
            break;
        }
        at += parsed.taken;
        if (parsed.command.count > 0) {
            run(c, &parsed.command);
        }
    }
    return c->closing || c->dropped ? in.size : at;
}

/* The input that is used is dropped, at last in one piece: moving it for each command would cost
 * more than the commands. */
static void drop_used_input(struct client *c, size_t used)
{
    c->in_at += used;
    if (c->in_at == c->in.size) {
        buffer_clear(&c->in);
        c->in_at = 0;
        if (c->in.cap > IDLE_BUFFER_MAX) {
            buffer_fini(&c->in);
        }
    } else if (c->in_at > c->in.size / 2) {
        buffer_consume(&c->in, c->in_at);
        c->in_at = 0;
    }
}

static void run_input(struct client *c)
{
    const struct bytes rest = {c->in.data + c->in_at, c->in.size - c->in_at};

    drop_used_input(c, run_commands(c, rest));
}

/* While all buffers together are full, a command that is still coming may not grow. */
static void limit_half_command(struct client *c)
{
    const bool all_full = c->all->figures.buffered > c->all->config.buffers_max;

    if (all_full && has_room(c) && c->in.size - c->in_at > HALF_COMMAND_MAX) {
        refuse_input(c, "OVERLOADED the gateway has no memory for a command of this size now");
        buffer_fini(&c->in);
        c->in_at = 0;
    }
}

static void begin(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    c->now_us = now_us;
    c->effects = effects;
    client_owes(c, now_us);
}

static void end(struct client *c)
{
    c->effects = NULL;
    client_account(c);
}

void client_on_bytes(struct client *c, struct bytes in, uint64_t now_us,
                     struct router_effects *effects)
{
    begin(c, now_us, effects);
    if (c->closing || c->dropped) {
        end(c);
        return;
    }
    if (c->in.size == 0) {
        // Whole commands run where they were read to; only a rest is copied.
        const size_t used = run_commands(c, in);

        buffer_put(&c->in, in.data + used, in.size - used);
    } else {
        buffer_put(&c->in, in.data, in.size);
        run_input(c);
    }
    limit_half_command(c);
    end(c);
}

void client_on_end(struct client *c)
{
    c->ended = true;
}

void client_resume(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    begin(c, now_us, effects);
    run_input(c);
    end(c);
}

bool client_has_input(const struct client *c)
{
    return c->in.size > c->in_at && !c->half && has_room(c);
}

/* ---- output ---- */

struct bytes client_output(const struct client *c)
{
    return c->writing > 0 ? (struct bytes){NULL, 0} : buffer_bytes(&c->out);
}

static void trim_output(struct client *c)
{
    if (c->out.size == 0 && c->out.cap > IDLE_BUFFER_MAX) {
        buffer_fini(&c->out);
    }
}

void client_sent(struct client *c, size_t count, uint64_t now_us)
{
    ASSERT(c->writing == 0);
    if (count > 0) {
        c->progress_us = now_us;
    }
    buffer_consume(&c->out, count);
    trim_output(c);
    client_account(c);
}

void client_take_output(struct client *c, struct buffer *to)
{
    ASSERT(c->writing == 0);
    *to = c->out;
    c->writing = c->out.size;
    c->out = (struct buffer){0};
    client_account(c);
}

void client_wrote(struct client *c, uint64_t now_us)
{
    c->writing = 0;
    c->progress_us = now_us;
    client_account(c);
}

bool client_is_done(const struct client *c)
{
    const bool used_up = c->in.size == c->in_at || c->half;

    return c->dropped || ((c->closing || (c->ended && used_up)) && slots_count(&c->slots) == 0 &&
                          client_unsent(c) == 0);
}

bool client_is_stuck(struct client *c, uint64_t now_us)
{
    const struct clients_config *config = &c->all->config;
    const uint64_t stall_us = (uint64_t)config->stall_ms * 1000;
    const size_t owed = client_unsent(c) + c->slots.size;
    const bool all_over = c->all->figures.buffered / 2 > config->buffers_max;

    if (owed > config->output_max || (all_over && owed > config->unsent_max)) {
        c->all->figures.overrun++;
        return true;
    }
    if (client_unsent(c) > 0 && now_us - c->progress_us > stall_us) {
        c->all->figures.stalled++;
        return true;
    }
    return false;
}
