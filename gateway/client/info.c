/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands about the gateway and the fleet behind it.
 */
#include "gateway/client/inside.h"

#include "base/format.h"
#include "gateway/client/stat_rows.h"
#include "gateway/client/stats.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

/* ---- INFO ---- */

void gateway_stats_own(const struct clients *all, struct gateway_stats *out)
{
    clients_stats(all, &out->clients);
    router_stats(all->router, &out->router);
    out->connections_max = all->config.connections_max;
    out->buffers_max = all->config.buffers_max;
    out->threads = 1;
}

void gateway_stats_all(const struct clients *all, struct gateway_stats *out)
{
    struct gateway_stats own;

    gateway_stats_own(all, &own);
    if (all->config.shared_stats != NULL) {
        thread_stats_sum(all->config.shared_stats, all->config.thread, &own, out);
    } else {
        *out = own;
    }
}

/* What the section has in the table of figures. */
static void put_rows(struct buffer *out, const char *section, const struct gateway_stats *t)
{
    for (size_t i = 0; i < stat_row_count; i++) {
        const struct stat_row *f = &stat_rows[i];

        if (f->section != NULL && strcmp(f->section, section) == 0) {
            buffer_put_format(out, "%s:%" PRIu64 "\r\n", f->name, stat_row_value(f, t));
        }
    }
}

static void put_server(struct buffer *out, const struct client *c, const struct gateway_stats *t)
{
    const struct clients *all = c->all;

    (void)t;
    buffer_put_format(out,
                      "redis_version:7.0.0\r\nredis_mode:standalone\r\nringhold_version:%s\r\n"
                      "gateway:%s\r\ntcp_port:%u\r\nuptime_in_seconds:%" PRIu64 "\r\n",
                      all->config.version,
                      all->config.name,
                      all->config.port,
                      (c->now_us - all->since_us) / 1000000);
}

static void put_clients(struct buffer *out, const struct client *c, const struct gateway_stats *t)
{
    const struct admission_state admission =
        admission_state(c->all->config.shared_admission, c->now_us);

    (void)t;
    buffer_put_format(out,
                      "ready:%d\r\nbacklog_ms:%" PRIu64 "\r\naddresses:%" PRIu64 "\r\n",
                      clients_ready(c->all, c->now_us),
                      admission.backlog_ms,
                      admission.addresses);
}

static void put_persistence(struct buffer *out, const struct client *c,
                            const struct gateway_stats *t)
{
    (void)c;
    (void)t;
    buffer_put_format(out, "loading:0\r\n");
}

/* Clients that look for the primary among several addresses take each gateway for one. */
static void put_replication(struct buffer *out, const struct client *c,
                            const struct gateway_stats *t)
{
    (void)c;
    (void)t;
    buffer_put_format(out, "role:master\r\nconnected_slaves:0\r\n");
}

static void put_ringhold(struct buffer *out, const struct client *c, const struct gateway_stats *t)
{
    const struct view *view = router_view(c->all->router);

    buffer_put_format(out,
                      "ring_digest:%016" PRIx64 "%016" PRIx64
                      "\r\nring_vnodes:%zu\r\nnodes:%zu\r\n",
                      t->router.digest[1],
                      t->router.digest[0],
                      view->ring.vnode_count,
                      view->member_count);
}

static void put_packets(struct buffer *out, const struct client *c, const struct gateway_stats *t)
{
    (void)c;
    for (size_t i = 0; i < PACKET_KICK_COUNT; i++) {
        buffer_put_format(out,
                          "kicked_%s:%" PRIu64 "\r\n",
                          packet_kick_name((enum packet_kick)(PACKET_KICK_BAD_PACKET + i)),
                          t->clients.kicks[i]);
    }
}

static void put_http(struct buffer *out, const struct client *c, const struct gateway_stats *t)
{
    (void)c;
    for (size_t i = 0; i < HTTP_REFUSAL_COUNT; i++) {
        buffer_put_format(out,
                          "http_%s:%" PRIu64 "\r\n",
                          http_why((enum http_refusal)i)->word,
                          t->clients.http_refused[i]);
    }
}

static void put_transport(struct buffer *out, const struct client *c, const struct gateway_stats *t)
{
    (void)c;
    for (size_t i = 0; i < TRANSPORT_EVENT_COUNT; i++) {
        buffer_put_format(out,
                          "%s:%" PRIu64 "\r\n",
                          transport_event_name((enum transport_event)i),
                          t->clients.transports.count[i]);
    }
}

static const struct {
    const char *title;
    const char *name; /* upper case */
    /* What is in no table of figures, before those that are; NULL = nothing. */
    void (*put)(struct buffer *out, const struct client *c, const struct gateway_stats *t);
} sections[] = {
    {"Server", "SERVER", put_server},
    {"Clients", "CLIENTS", put_clients},
    {"Persistence", "PERSISTENCE", put_persistence},
    {"Stats", "STATS", NULL},
    {"Replication", "REPLICATION", put_replication},
    {"Ringhold", "RINGHOLD", put_ringhold},
    {"Sessions", "SESSIONS", NULL},
    {"Packets", "PACKETS", put_packets},
    {"Http", "HTTP", put_http},
    {"Transport", "TRANSPORT", put_transport},
};

static bool is_asked(const struct resp_command *line, const char *section)
{
    for (size_t i = 1; i < line->count; i++) {
        const struct bytes word = line->arg[i];

        if (word_is(word, section) || word_is(word, "ALL") || word_is(word, "DEFAULT") ||
            word_is(word, "EVERYTHING")) {
            return true;
        }
    }
    return line->count == 1;
}

static void put_section(struct buffer *out, size_t at, const struct client *c,
                        const struct gateway_stats *t)
{
    buffer_put_format(out, "# %s\r\n", sections[at].title);
    if (sections[at].put != NULL) {
        sections[at].put(out, c, t);
    }
    put_rows(out, sections[at].name, t);
    buffer_put_format(out, "\r\n");
}

void run_info(struct client *c, const struct client_command *command,
              const struct resp_command *line)
{
    struct buffer text = {0};
    struct gateway_stats stats;

    (void)command;
    gateway_stats_all(c->all, &stats);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (is_asked(line, sections[i].name)) {
            put_section(&text, i, c, &stats);
        }
    }
    resp_put_bulk(client_reply(c), buffer_bytes(&text));
    buffer_fini(&text);
}

/* ---- WHERE ---- */

void run_where(struct client *c, const struct client_command *command,
               const struct resp_command *line)
{
    const struct view *view = router_view(c->all->router);

    struct target target;

    (void)command;
    if (!client_finds(c, line->arg[1], &target)) {
        return;
    }
    const ring_hit hit = view_lookup(view, target.kind, target.id);
    const struct view_member *member = view_member(view, ring_hit_node(hit));
    const struct ring_vnode *vnode = ring_find(&view->ring, ring_hit_vnode(hit));
    if (view->ring.version == 0 || member == NULL || vnode == NULL) {
        client_reply_error(c, "ERR the ring has no nodes yet");
        return;
    }
    struct buffer *out = client_reply(c);

    resp_put_map(out, c->protocol, 5);
    resp_put_text(out, "node");
    resp_put_text(out, member->name);
    resp_put_text(out, "vnode");
    resp_put_integer(out, vnode->id);
    resp_put_text(out, "generation");
    resp_put_integer(out, (int64_t)vnode->generation);
    resp_put_text(out, "version");
    resp_put_integer(out, (int64_t)view->ring.version);
    resp_put_text(out, "address");
    resp_put_text(out, member->address);
}

/* ---- COMMAND ---- */

static void put_name(struct buffer *out, const struct client_command *command)
{
    char name[COMMAND_NAME_MAX + 1] = "";

    for (size_t i = 0; command->name[i] != '\0'; i++) {
        name[i] = (char)tolower((unsigned char)command->name[i]);
    }
    resp_put_text(out, name);
}

static void put_entry(struct buffer *out, const struct client_command *command)
{
    resp_put_array(out, 6);
    put_name(out, command);
    resp_put_integer(out, command->arity);
    resp_put_array(out, 1);
    resp_put_simple(out, command->writes ? "write" : "readonly");
    resp_put_integer(out, command->first_key);
    resp_put_integer(out, command->last_key);
    resp_put_integer(out, command->step);
}

static void put_all_entries(struct buffer *out)
{
    resp_put_array(out, command_count());
    for (size_t i = 0; i < command_count(); i++) {
        put_entry(out, command_at(i));
    }
}

static void put_entries(struct buffer *out, const struct client *c, const struct resp_command *line)
{
    resp_put_array(out, line->count - 2);
    for (size_t i = 2; i < line->count; i++) {
        const struct client_command *command = command_find(line->arg[i]);

        if (command != NULL) {
            put_entry(out, command);
        } else {
            resp_put_nil(out, c->protocol);
        }
    }
}

/* COMMAND LIST, of the names like `pattern`; NULL = all. */
static void put_names(struct buffer *out, const char *pattern)
{
    struct buffer names = {0};
    size_t count = 0;

    for (size_t i = 0; i < command_count(); i++) {
        if (pattern == NULL || fnmatch(pattern, command_at(i)->name, 0) == 0) {
            put_name(&names, command_at(i));
            count++;
        }
    }
    resp_put_array(out, count);
    buffer_put(out, names.data, names.size);
    buffer_fini(&names);
}

static void reply_names(struct client *c, const struct resp_command *line)
{
    enum { PATTERN_MAX = 64 };
    char pattern[PATTERN_MAX + 1] = "";

    if (line->count == 2) {
        put_names(client_reply(c), NULL);
        return;
    }
    if (line->count != 5 || !word_is(line->arg[2], "FILTERBY")) {
        client_reply_error(c, "ERR syntax error");
        return;
    }
    const struct bytes what = line->arg[4];

    if (word_is(line->arg[3], "MODULE")) {
        resp_put_array(client_reply(c), 0); // there are none
    } else if (word_is(line->arg[3], "ACLCAT")) {
        client_reply_error(c, "ERR commands have no categories here: FILTERBY MODULE or PATTERN");
    } else if (!word_is(line->arg[3], "PATTERN")) {
        client_reply_error(c, "ERR syntax error");
    } else if (what.size > PATTERN_MAX) {
        client_reply_error(c, "ERR a pattern has at most %d bytes", (int)PATTERN_MAX);
    } else {
        for (size_t i = 0; i < what.size; i++) {
            pattern[i] = (char)toupper(what.data[i]);
        }
        put_names(client_reply(c), pattern);
    }
}

void run_command(struct client *c, const struct client_command *command,
                 const struct resp_command *line)
{
    (void)command;
    if (line->count == 1 || (word_is(line->arg[1], "INFO") && line->count == 2)) {
        put_all_entries(client_reply(c));
    } else if (word_is(line->arg[1], "COUNT")) {
        resp_put_integer(client_reply(c), (int64_t)command_count());
    } else if (word_is(line->arg[1], "DOCS")) {
        resp_put_map(client_reply(c), c->protocol, 0); // redis-cli then uses COMMAND
    } else if (word_is(line->arg[1], "LIST")) {
        reply_names(c, line);
    } else if (word_is(line->arg[1], "INFO")) {
        put_entries(client_reply(c), c, line);
    } else {
        client_reply_error(c, "ERR unknown subcommand. Try COMMAND COUNT, DOCS, INFO, LIST.");
    }
}
