/* SPDX-License-Identifier: Apache-2.0
 *
 * What a transaction waits for, in words: node, actor, vnodes and age; and what one that is planned
 * waits for, before it begins.
 */
#include "txn/admin/inside.h"

#include "base/actor_name.h"
#include "base/mem.h"
#include "txn/state/roles.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { VNODES_NAMED = 3 };

/* Text that grows until it is full. */
struct waits_words {
    char *text;
    size_t size;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct waits_words *w, const char *format,
                                                      ...)
{
    va_list list;
    int more;

    va_start(list, format);
    more = vsnprintf(w->text + w->used, w->size - w->used, format, list);
    va_end(list);
    w->used += more > 0 ? (size_t)more : 0;
    w->used = w->used < w->size ? w->used : w->size - 1;
}

static void put_seconds(struct waits_words *w, uint64_t ms)
{
    put(w, "%" PRIu64 ".%" PRIu64 " s", ms / 1000, ms % 1000 / 100);
}

void waits_actor(uint32_t kind, struct bytes id, char text[WAITS_ACTOR_MAX + 1])
{
    char name[ACTOR_NAME_SIZE];

    (void)actor_name_print(kind, id, name);
    const bool fits = strlen(name) <= WAITS_ACTOR_MAX;
    (void)snprintf(text,
                   WAITS_ACTOR_MAX + 1,
                   "%.*s%s",
                   fits ? WAITS_ACTOR_MAX : WAITS_ACTOR_MAX - 3,
                   name,
                   fits ? "" : "...");
}

static const char *node_name(const struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node == NULL ? "?" : node->name;
}

static bool is_linked(struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node != NULL && peers_of_node(c, node) != NULL;
}

static uint64_t waited_ms(const struct coordinator *c, const struct ballot *b)
{
    return b->asked_us == 0 ? 0 : (c->now_us - b->asked_us) / 1000;
}

/* What the vote of one participant hangs on. */
static void put_vote(struct waits_words *w, struct coordinator *c, const struct state_part *part,
                     const struct ballot *b)
{
    put(w, "%s: ", node_name(c, part->slot));
    if (!is_linked(c, part->slot)) {
        put(w, "no link for ");
        put_seconds(w, waited_ms(c, b));
    } else if (b->report_us != 0 && b->busy > 0) {
        put(w, "actor %s has run for ", b->actor);
        put_seconds(w, b->running_ms + (c->now_us - b->report_us) / 1000);
        if (b->busy > 1) {
            put(w, ", %" PRIu32 " more still run", b->busy - 1);
        }
    } else if (b->report_us != 0 && b->peer != 0) {
        put(w, "hands over state, %s has not taken all of it after ", node_name(c, b->peer));
        put_seconds(w, waited_ms(c, b));
    } else {
        put(w, "no answer for ");
        put_seconds(w, waited_ms(c, b));
    }
}

static void put_vnodes(struct waits_words *w, const struct state_txn *t, uint16_t slot)
{
    size_t count = 0;

    for (size_t i = 0; i < t->op_count; i++) {
        const struct ring_op *op = &t->ops[i];

        if (op->kind == RING_MOVE && (op->from == slot || op->to == slot)) {
            if (count < VNODES_NAMED) {
                put(w, count == 0 ? "; vnodes %" PRIu32 : ", %" PRIu32, op->vnode);
            }
            count++;
        }
    }
    if (count > VNODES_NAMED) {
        put(w, " and %zu more", count - VNODES_NAMED);
    }
}

static uint64_t left_ms(const struct coordinator *c, const struct drive *d)
{
    const uint64_t end_us = d->started_us + (uint64_t)c->config.prepare_ms * 1000;

    return end_us > c->now_us ? (end_us - c->now_us) / 1000 : 0;
}

/* All voted, and one of them is not there for the COMMIT. */
static void put_renewal(struct waits_words *w, struct coordinator *c, const struct state_txn *t)
{
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(c->state, t->parts[i].slot);

        if (node != NULL && (!peers_live(c, node) || !drive_renewed(c, node))) {
            put(w,
                "%s: voted, but %s",
                node->name,
                peers_live(c, node) ? "has not renewed its lease since" : "has been silent since");
            return;
        }
    }
    put(w, "the log");
}

void waits_now(struct coordinator *c, const struct drive *d, char *text, size_t size)
{
    const struct state_txn *t = state_txn(c->state, d->txn);
    struct waits_words w = {.text = text, .size = size};

    text[0] = '\0';
    if (t == NULL || d->state == DRIVE_DECIDING) {
        put(&w, "the log");
        return;
    }
    for (size_t i = 0; i < t->part_count; i++) {
        if (!drive_waits_for(d, t, i)) {
            continue;
        }
        put(&w, "%s", w.used > 0 ? "; " : "");
        put_vote(&w, c, &t->parts[i], &d->ballot[i]);
        put(&w, " (deadline in ");
        put_seconds(&w, left_ms(c, d));
        put(&w, ")");
        put_vnodes(&w, t, t->parts[i].slot);
    }
    if (w.used == 0) {
        put_renewal(&w, c, t);
    }
}

void waits_over(struct coordinator *c, const struct drive *d, char *text, size_t size)
{
    const struct state_txn *t = state_txn(c->state, d->txn);
    struct waits_words w = {.text = text, .size = size};

    text[0] = '\0';
    for (size_t i = 0; t != NULL && i < t->part_count; i++) {
        const struct ballot *b = &d->ballot[i];
        const uint16_t slot = t->parts[i].slot;

        if (!drive_waits_for(d, t, i)) {
            continue;
        }
        put(&w, "%s%s: ", w.used > 0 ? "; " : "", node_name(c, slot));
        if (is_linked(c, slot) && b->report_us != 0 && b->busy > 0) {
            put(&w, "actor %s did not stop in ", b->actor);
        } else if (is_linked(c, slot) && b->report_us != 0 && b->peer != 0) {
            put(&w, "%s did not take its state in ", node_name(c, b->peer));
        } else {
            put(&w, is_linked(c, slot) ? "did not answer in " : "had no link for ");
        }
        put_seconds(&w, waited_ms(c, b));
    }
    if (w.used == 0 && t != NULL) {
        put_renewal(&w, c, t);
    }
}

/* ---- before it begins ---- */

/* Rounded up: 0.0 s would be over. */
static void put_left(struct waits_words *w, const char *before, uint64_t left_us)
{
    if (left_us > 0) {
        put(w, "%s", before);
        put_seconds(w, (left_us + 99999) / 100000 * 100);
    }
}

/* "n3 hands over version 3 of the states of kind 7 'hero', and n1 reads 1 to 2". */
static void put_unread(struct waits_words *w, const struct coordinator *c, const struct obstacle *o)
{
    struct unread_state u = {0};
    const struct state_kind *kind;

    if (!state_versions_unread_any(c, o->other, o->slot, &u)) {
        return;
    }
    kind = roles_kind(c->state, u.kind);
    put(w,
        "%s hands over version %" PRIu32 " of the states of kind %u",
        node_name(c, o->other),
        u.version,
        u.kind);
    if (kind != NULL) {
        put(w, " '%s'", kind->name);
    }
    put(w, ", and %s reads ", node_name(c, o->slot));
    put(w, u.least == u.most ? "only %" PRIu32 : "%" PRIu32 " to %" PRIu32, u.least, u.most);
}

static void put_obstacle(struct waits_words *w, const struct coordinator *c,
                         const struct obstacle *o)
{
    const char *node = node_name(c, o->slot);

    switch (o->reason) {
    case OBSTACLE_NONE:
        return;
    case OBSTACLE_PLANNING:
        put(w, "something just changed: it is planned anew");
        put_left(w, " in ", o->left_us);
        return;
    case OBSTACLE_LOG:
        put(w, "a command of the leader failed: it goes on");
        put_left(w, " in ", o->left_us);
        return;
    case OBSTACLE_SILENT:
        put(w, "%s is not live", node);
        put_left(w, "; its lease ends in ", o->left_us);
        return;
    case OBSTACLE_RETURNED:
        put(w, "%s was lost and is back, and must stay for a while first", node);
        put_left(w, ": for ", o->left_us);
        return;
    case OBSTACLE_BACKOFF:
        put(w, "the last try from %s to %s was aborted", node, node_name(c, o->other));
        put_left(w, ": again in ", o->left_us);
        return;
    case OBSTACLE_FLEET_CAP:
        put(w, "%" PRIu32 " transactions at a time are the most", c->config.txns_max);
        return;
    case OBSTACLE_NODE_CAP:
        put(w,
            "%s takes part in %" PRIu32 " transactions at a time, the most",
            node,
            c->config.txns_per_node);
        return;
    case OBSTACLE_SLOW:
        put(w, "%s answers slowly: one transaction at a time", node);
        return;
    case OBSTACLE_ORDER:
        put(w, "another transaction changes these vnodes before");
        return;
    case OBSTACLE_RESTORED:
        put(w, "restored from a backup: leases of before may be in force still");
        put_left(w, ": for ", o->left_us);
        return;
    case OBSTACLE_ALONE:
        put(w, "no other node of its role could take what %s has", node);
        return;
    case OBSTACLE_UNREAD:
        put_unread(w, c, o);
        return;
    }
}

static Rh__ObstacleRow *obstacle_row(const struct coordinator *c, const struct obstructed *o)
{
    Rh__ObstacleRow *row = mem_new(1, sizeof *row);
    char text[ADMIN_TEXT_SIZE] = "";
    struct waits_words w = {.text = text, .size = sizeof text};

    put_obstacle(&w, c, &o->by);
    *row = (Rh__ObstacleRow)RH__OBSTACLE_ROW__INIT;
    row->reason = mem_string(obstacle_word(o->by.reason));
    row->node = mem_string(o->by.slot == 0 ? "" : node_name(c, o->by.slot));
    row->other = mem_string(o->by.other == 0 ? "" : node_name(c, o->by.other));
    row->drains = mem_string(o->drains == 0 ? "" : node_name(c, o->drains));
    row->transactions = o->txns;
    row->vnodes = o->vnodes;
    row->left_us = o->by.left_us;
    row->text = mem_string(text);
    return row;
}

void admin_add_obstacles(struct coordinator *c, Rh__AdminReply *reply)
{
    struct obstacles all;

    rebalance_obstacles(c, &all);
    reply->obstacles = mem_new(all.count + 1, sizeof(Rh__ObstacleRow *));
    for (size_t i = 0; i < all.count; i++) {
        reply->obstacles[reply->n_obstacles++] = obstacle_row(c, &all.item[i]);
    }
}
