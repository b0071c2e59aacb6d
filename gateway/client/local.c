/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands about the connection itself.
 */
#include "gateway/client/inside.h"

#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void reply_ok(struct client *c)
{
    resp_put_simple(client_reply(c), "OK");
}

void run_ping(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    (void)command;
    if (line->count == 1) {
        resp_put_simple(client_reply(c), "PONG");
    } else if (line->count == 2) {
        resp_put_bulk(client_reply(c), line->arg[1]);
    } else {
        client_reply_error(c, "ERR wrong number of arguments for 'ping' command");
    }
}

void run_echo(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    (void)command;
    resp_put_bulk(client_reply(c), line->arg[1]);
}

void run_quit(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    (void)command;
    (void)line;
    reply_ok(c);
    client_close(c);
}

void run_reset(struct client *c, const struct client_command *command,
               const struct resp_command *line)
{
    (void)command;
    (void)line;
    binding_end(c, c->now_us, c->effects);
    c->protocol = 2;
    c->in_multi = false;
    c->name[0] = '\0';
    resp_put_simple(client_reply(c), "RESET");
}

void run_select(struct client *c, const struct client_command *command,
                const struct resp_command *line)
{
    (void)command;
    if (word_is(line->arg[1], "0")) {
        reply_ok(c);
    } else {
        client_reply_error(c, "ERR DB index is out of range");
    }
}

/* ---- MULTI ----
 *
 * Each id is an actor of its own, so a gateway has no transactions. What follows MULTI was meant to
 * run as one or not at all: it does not run, whether its client waits for each reply or for none.
 * As at Redis where each command is refused: MULTI is OK, EXEC says that nothing ran.
 */

void run_multi(struct client *c, const struct client_command *command,
               const struct resp_command *line)
{
    (void)command;
    (void)line;
    if (c->in_multi) {
        client_reply_error(c, "ERR MULTI calls can not be nested");
        return;
    }
    c->in_multi = true;
    reply_ok(c); // who is told an error may never say EXEC, nor DISCARD
}

void run_exec(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    (void)command;
    (void)line;
    if (c->in_multi) {
        client_reply_error(c, "EXECABORT Transaction discarded because of previous errors.");
    } else {
        client_reply_error(c, "ERR EXEC without MULTI");
    }
    c->in_multi = false;
}

void run_discard(struct client *c, const struct client_command *command,
                 const struct resp_command *line)
{
    (void)command;
    (void)line;
    if (c->in_multi) {
        reply_ok(c);
    } else {
        client_reply_error(c, "ERR DISCARD without MULTI");
    }
    c->in_multi = false;
}

void run_watch(struct client *c, const struct client_command *command,
               const struct resp_command *line)
{
    (void)command;
    (void)line;
    if (c->in_multi) {
        client_reply_error(c, "ERR WATCH inside MULTI is not allowed");
    } else {
        client_reply_error(c, "ERR transactions are not supported, so WATCH is not either");
    }
}

void run_unwatch(struct client *c, const struct client_command *command,
                 const struct resp_command *line)
{
    (void)command;
    (void)line;
    reply_ok(c); // nothing is
}

/* ---- who is it ---- */

/* Place for passwords: gateways verify their clients' tokens once there are any. */
static void reply_no_password(struct client *c)
{
    client_reply_error(c,
                       "ERR AUTH <password> called without any password configured for the default "
                       "user. Are you sure your configuration is correct?");
}

void run_auth(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    (void)command;
    if (line->count > 3) {
        client_reply_error(c, "ERR syntax error");
    } else {
        reply_no_password(c);
    }
}

/* False: an error was replied, which names `what` it is. */
static bool is_plain(struct client *c, struct bytes text, struct bytes what)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '!' || text.data[i] > '~') {
            client_reply_error(c,
                               "ERR %.*s cannot contain spaces, newlines or special characters.",
                               (int)what.size,
                               (const char *)what.data);
            return false;
        }
    }
    return true;
}

/* False: an error was replied. */
static bool set_name(struct client *c, struct bytes name)
{
    if (name.size > CLIENT_NAME_MAX) {
        client_reply_error(c, "ERR Client names are limited to %d bytes", CLIENT_NAME_MAX);
        return false;
    }
    if (!is_plain(c, name, bytes_of("Client names", 12))) {
        return false;
    }
    memcpy(c->name, name.data, name.size);
    c->name[name.size] = '\0';
    return true;
}

static void put_hello(struct client *c)
{
    struct buffer *out = client_reply(c);

    resp_put_map(out, c->protocol, 7);
    resp_put_text(out, "server");
    resp_put_text(out, "ringhold");
    resp_put_text(out, "version");
    resp_put_text(out, c->all->config.version);
    resp_put_text(out, "proto");
    resp_put_integer(out, c->protocol);
    resp_put_text(out, "id");
    resp_put_integer(out, (int64_t)c->id);
    resp_put_text(out, "mode");
    resp_put_text(out, "standalone");
    resp_put_text(out, "role");
    resp_put_text(out, "master");
    resp_put_text(out, "modules");
    resp_put_array(out, 0);
}

/* Options after HELLO's version; false: an error was replied. */
static bool take_hello_options(struct client *c, const struct resp_command *line)
{
    for (size_t i = 2; i < line->count; i++) {
        if (word_is(line->arg[i], "AUTH") && i + 2 < line->count) {
            reply_no_password(c);
            return false;
        }
        if (!word_is(line->arg[i], "SETNAME") || i + 1 == line->count) {
            client_reply_error(c, "ERR Syntax error in HELLO option");
            return false;
        }
        if (!set_name(c, line->arg[++i])) {
            return false;
        }
    }
    return true;
}

void run_hello(struct client *c, const struct client_command *command,
               const struct resp_command *line)
{
    uint8_t protocol = c->protocol;

    (void)command;
    if (line->count > 1) {
        const bool two = word_is(line->arg[1], "2");

        if (!two && !word_is(line->arg[1], "3")) {
            client_reply_error(c, "NOPROTO unsupported protocol version");
            return;
        }
        protocol = two ? 2 : 3;
        if (!take_hello_options(c, line)) {
            return;
        }
    }
    c->protocol = protocol;
    put_hello(c);
}

/* ---- CLIENT ---- */

static void put_client(struct buffer *out, const struct client *c, uint64_t now_us)
{
    buffer_put_format(out,
                      "id=%" PRIu64 " addr=%s name=%s age=%" PRIu64
                      " db=0 resp=%d in-flight=%" PRIu32 " qbuf=%zu omem=%zu\n",
                      c->id,
                      c->address,
                      c->name,
                      (now_us - c->since_us) / 1000000,
                      c->protocol,
                      c->in_flight,
                      c->in.size - c->in_at,
                      c->out.size + c->writing);
}

/* Is it one of those that CLIENT LIST names from here on? */
static bool is_listed(const struct client *c, const struct resp_command *line, size_t first)
{
    for (size_t i = first; i < line->count; i++) {
        int64_t id = 0;

        if (resp_number(line->arg[i], &id) && (uint64_t)id == c->id) {
            return true;
        }
    }
    return first == line->count;
}

/* All clients; or those whose ids stand from argument `first` on. */
static void put_clients_from(struct client *c, const struct resp_command *line, size_t first)
{
    enum { LIST_MAX = 100 }; // of ten thousand it would be a megabyte
    struct buffer text = {0};
    size_t count = 0;

    for (struct list_link *l = list_front(&c->all->order); l != NULL && count < LIST_MAX;
         l = list_next(&c->all->order, l)) {
        const struct client *other = CONTAINER_OF(l, struct client, order);

        if (is_listed(other, line, first)) {
            put_client(&text, other, c->now_us);
            count++;
        }
    }
    resp_put_bulk(client_reply(c), buffer_bytes(&text));
    buffer_fini(&text);
}

/* CLIENT LIST TYPE: there are but normal ones here. */
static void reply_client_type(struct client *c, const struct resp_command *line)
{
    const struct bytes type = line->arg[3];

    if (word_is(type, "NORMAL")) {
        put_clients_from(c, line, line->count);
    } else if (word_is(type, "MASTER") || word_is(type, "REPLICA") || word_is(type, "SLAVE") ||
               word_is(type, "PUBSUB")) {
        resp_put_text(client_reply(c), "");
    } else {
        client_reply_error(c,
                           "ERR Unknown client type '%.*s'",
                           (int)(type.size < 64 ? type.size : 64),
                           (const char *)type.data);
    }
}

static void reply_client_list(struct client *c, const struct resp_command *line)
{
    int64_t id = 0;

    if (line->count == 2) {
        put_clients_from(c, line, line->count);
    } else if (line->count == 4 && word_is(line->arg[2], "TYPE")) {
        reply_client_type(c, line);
    } else if (line->count > 3 && word_is(line->arg[2], "ID")) {
        for (size_t i = 3; i < line->count; i++) {
            if (!resp_number(line->arg[i], &id)) {
                client_reply_error(c, "ERR Invalid client ID");
                return;
            }
        }
        put_clients_from(c, line, 3);
    } else {
        client_reply_error(c, "ERR syntax error");
    }
}

/* What a library says of itself is looked at, and matters to nobody yet. */
static void take_client_info(struct client *c, const struct resp_command *line)
{
    const struct bytes what = line->arg[2];

    if (!word_is(what, "LIB-NAME") && !word_is(what, "LIB-VER")) {
        client_reply_error(c,
                           "ERR Unrecognized option '%.*s'",
                           (int)(what.size < 64 ? what.size : 64),
                           (const char *)what.data);
    } else if (is_plain(c, line->arg[3], what)) {
        reply_ok(c);
    }
}

static void reply_client_info(struct client *c)
{
    struct buffer text = {0};

    put_client(&text, c, c->now_us);
    resp_put_bulk(client_reply(c), buffer_bytes(&text));
    buffer_fini(&text);
}

/* A client's cache needs news of every change, and nobody has them: an actor's value may be another
 * with each message. But with OPTIN a connection is to have none before CLIENT CACHING YES, which
 * is refused; clients ask for that much when they start. */
static void take_tracking(struct client *c, const struct resp_command *line)
{
    const bool on = line->count == 4 && word_is(line->arg[2], "ON");

    if ((on && word_is(line->arg[3], "OPTIN")) ||
        (line->count == 3 && word_is(line->arg[2], "OFF"))) {
        reply_ok(c);
    } else {
        client_reply_error(c, "ERR there is no client-side caching here: switch it off");
    }
}

void run_client(struct client *c, const struct client_command *command,
                const struct resp_command *line)
{
    const struct bytes what = line->arg[1];

    (void)command;
    if (word_is(what, "SETNAME") && line->count == 3) {
        if (set_name(c, line->arg[2])) {
            reply_ok(c);
        }
    } else if (word_is(what, "GETNAME") && line->count == 2) {
        if (c->name[0] == '\0') {
            resp_put_nil(client_reply(c), c->protocol);
        } else {
            resp_put_text(client_reply(c), c->name);
        }
    } else if (word_is(what, "ID") && line->count == 2) {
        resp_put_integer(client_reply(c), (int64_t)c->id);
    } else if (word_is(what, "INFO") && line->count == 2) {
        reply_client_info(c);
    } else if (word_is(what, "LIST")) {
        reply_client_list(c, line);
    } else if (word_is(what, "SETINFO") && line->count == 4) {
        take_client_info(c, line);
    } else if (word_is(what, "TRACKING") && line->count >= 3) {
        take_tracking(c, line);
    } else if (word_is(what, "CACHING") && line->count == 3) {
        client_reply_error(c, "ERR there is no client-side caching here: switch it off");
    } else if ((word_is(what, "NO-EVICT") || word_is(what, "NO-TOUCH")) && line->count == 3) {
        if (word_is(line->arg[2], "ON") || word_is(line->arg[2], "OFF")) {
            reply_ok(c); // nothing is evicted
        } else {
            client_reply_error(c, "ERR syntax error");
        }
    } else {
        client_reply_error(c,
                           "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
                           "CLIENT SETNAME, GETNAME, ID, INFO, LIST, SETINFO, NO-EVICT.",
                           (int)(what.size < 64 ? what.size : 64),
                           (const char *)what.data);
    }
}

/* ---- CONFIG ---- */

/* What tools made for Redis ask for. */
static const struct {
    const char *pattern; /* upper case */
    const char *name;
    const char *value;
} settings[] = {
    {"SAVE", "save", ""},
    {"APPENDONLY", "appendonly", "no"},
    {"DATABASES", "databases", "1"},
    {"MAXMEMORY", "maxmemory", "0"},
};

void run_config(struct client *c, const struct client_command *command,
                const struct resp_command *line)
{
    enum { SETTINGS = sizeof settings / sizeof settings[0] };
    struct buffer pairs = {0};
    size_t count = 0;

    (void)command;
    if (!word_is(line->arg[1], "GET") || line->count < 3) {
        client_reply_error(
            c, "ERR a gateway is configured by its file and flags: only CONFIG GET is supported");
        return;
    }
    for (size_t s = 0; s < SETTINGS; s++) {
        bool asked = false;

        for (size_t i = 2; i < line->count; i++) {
            asked =
                asked || word_is(line->arg[i], settings[s].pattern) || word_is(line->arg[i], "*");
        }
        if (asked) {
            resp_put_text(&pairs, settings[s].name);
            resp_put_text(&pairs, settings[s].value);
            count++;
        }
    }
    struct buffer *out = client_reply(c);
    resp_put_map(out, c->protocol, count);
    buffer_put(out, pairs.data, pairs.size);
    buffer_fini(&pairs);
}
