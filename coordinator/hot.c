/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the JSON of /hot: which actors are slow, busy, or have most requests waiting, as
 * `ringhold top` shows them.
 */
#include "coordinator/overview.h"

#include "base/clock.h"
#include "base/history.h"
#include "base/mem.h"
#include "daemon/json.h"
#include "wire/control.h"

#include <string.h>

enum { ASK_MS = 1000, ROWS_MAX = 100, NODES_MAX = 4096 };

/* A row, or a process that has told: each coordinator brings it once. */
struct hot_entry {
    char node[64];
    char what[16];
    uint32_t kind;
    uint64_t us;
    uint64_t count;
    size_t id_size;
    uint8_t id[HISTORY_WORD_MAX];
};

struct hot {
    uint64_t *told; /* owned; the incarnations that have told */
    size_t told_count;
    struct hot_entry row[ROWS_MAX]; /* in order */
    size_t count;
};

static int rank(const char *what)
{
    static const char *const order[] = {"runs", "deferred", "busy", "waiting"};
    int at = 0;

    while (at < 4 && strcmp(what, order[at]) != 0) {
        at++;
    }
    return at;
}

/* By what it is, the greatest first. */
static bool is_before(const struct hot_entry *a, const struct hot_entry *b)
{
    const int by = rank(a->what) - rank(b->what);

    return by < 0 || (by == 0 && (a->us > b->us || (a->us == b->us && a->count > b->count)));
}

static void add_row(struct hot *h, const char *node, const Rh__HotRow *from)
{
    struct hot_entry row = {.kind = from->kind, .us = from->us, .count = from->count};
    size_t at = h->count;

    (void)snprintf(row.node, sizeof row.node, "%s", node);
    (void)snprintf(row.what, sizeof row.what, "%s", from->what);
    row.id_size = from->id.len < sizeof row.id ? from->id.len : sizeof row.id;
    if (row.id_size > 0) {
        memcpy(row.id, from->id.data, row.id_size);
    }
    while (at > 0 && is_before(&row, &h->row[at - 1])) {
        at--;
    }
    if (at == ROWS_MAX) {
        return;
    }
    h->count += h->count < ROWS_MAX;
    memmove(&h->row[at + 1], &h->row[at], (h->count - 1 - at) * sizeof row);
    h->row[at] = row;
}

static void hear(void *context, size_t at, const Rh__Control *message)
{
    struct hot *h = context;
    const Rh__InspectAnswer *p = message->inspect_answer;

    (void)at;
    if (message->body_case != RH__CONTROL__BODY_INSPECT_ANSWER || p->role != ROLE_NODE ||
        h->told_count == NODES_MAX) {
        return;
    }
    for (size_t i = 0; i < h->told_count; i++) {
        if (h->told[i] == p->incarnation) {
            return;
        }
    }
    h->told[h->told_count++] = p->incarnation;
    for (size_t i = 0; i < p->n_hot; i++) {
        add_row(h, p->name, p->hot[i]);
    }
}

static size_t nodes_of(const Rh__AdminReply *reply)
{
    size_t count = 0;

    for (size_t i = 0; i < reply->inspection->n_links; i++) {
        const Rh__LinkRow *link = reply->inspection->links[i];

        count += link->role == ROLE_NODE && link->incarnation != 0;
    }
    return count;
}

static void put_rows(const struct hot *h, size_t nodes, struct buffer *out)
{
    char word[HISTORY_WORD_SIZE];

    json_number(out, "nodes", nodes);
    json_number(out, "told", h->told_count);
    json_begin(out, "actors", '[');
    for (size_t i = 0; i < h->count; i++) {
        const struct hot_entry *row = &h->row[i];

        json_begin(out, NULL, '{');
        json_text(out, "what", row->what);
        json_text(out, "node", row->node);
        json_number(out, "kind", row->kind);
        json_text(out, "id", history_word(bytes_of(row->id, row->id_size), word));
        json_number(out, "us", row->us);
        json_number(out, "count", row->count);
        json_end(out, '}');
    }
    json_end(out, ']');
}

/* Any coordinator answers at once, and hands on what its nodes say then. */
static enum http_told ask(struct admin *a, struct hot *h, struct buffer *out)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)ASK_MS * 1000;
    Rh__AdminInspect what = RH__ADMIN_INSPECT__INIT;

    admin_watch(a, hear, h);
    Rh__AdminReply *reply = admin_try(a, &what.base, ASK_MS);
    if (reply == NULL || reply->inspection == NULL) {
        json_text(out, "error", "no coordinator answers");
        admin_free(reply);
        return HTTP_TOLD_NOT;
    }
    const size_t nodes = nodes_of(reply);
    while (h->told_count < nodes && clock_boottime_us() < end_us) {
        admin_turn(a);
    }
    put_rows(h, nodes, out);
    admin_free(reply);
    return HTTP_TOLD;
}

enum http_told overview_put_hot(void *overview, struct buffer *out)
{
    struct admin *a = overview_ask(overview);
    struct hot *h = mem_new(1, sizeof *h);
    enum http_told told = HTTP_TOLD_NOT;

    h->told = mem_new(NODES_MAX, sizeof *h->told);
    json_begin(out, NULL, '{');
    json_number(out, "schema", 1);
    if (a != NULL) {
        told = ask(a, h, out);
    } else {
        json_text(out, "error", "no coordinator can be asked");
    }
    json_end(out, '}');
    admin_close(a);
    mem_free(h->told);
    mem_free(h);
    return told;
}
