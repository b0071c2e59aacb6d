/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins: operators' wishes where an id or a vnode is to live. What is refused says why, and what to
 * do; what is taken is a command of the log, and the planner does it.
 */
#include "txn/admin/inside.h"

#include "base/history.h"
#include "base/mem.h"
#include "txn/state/pins.h"
#include "wire/versions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 1000 };

/* ---- judging ---- */

/* "0/boss-7", or "cells 5..9". */
static void name_text(const struct state_pin *pin, char text[HISTORY_WORD_SIZE + 16])
{
    char word[HISTORY_WORD_SIZE];

    if (pin->id_size > 0) {
        (void)snprintf(
            text, HISTORY_WORD_SIZE + 16, "%u/%s", pin->kind, history_word(pins_id(pin), word));
    } else {
        (void)snprintf(
            text, HISTORY_WORD_SIZE + 16, "cells %" PRIu32 "..%" PRIu32, pin->from, pin->to - 1);
    }
}

void pin_rival_text(const struct coordinator *c, const struct state_pin *pin,
                    char text[ADMIN_TEXT_SIZE])
{
    const struct state_pin *rival = pins_rival(c->state, pin);
    char name[HISTORY_WORD_SIZE + 16];

    text[0] = '\0';
    if (rival != NULL) {
        name_text(rival, name);
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "it has a cell in common with %.90s, which is pinned to '%.63s'%s: unpin "
                       "that first, or pin both alike",
                       name,
                       rival->node,
                       rival->waits ? " and waits" : "");
    }
}

/* The pin that is wished, owned, and what is wrong with it into `text`. Of a vnode its cells. */
static Rh__Pin *read_wish(const struct coordinator *c, const Rh__AdminPin *in, size_t at,
                          char text[ADMIN_TEXT_SIZE])
{
    const Rh__PinWish *wish = in->pins[at];
    const struct ring *ring = &c->state->view.ring;
    const struct ring_vnode *v = wish->actor == NULL ? ring_find(ring, wish->vnode) : NULL;
    Rh__Pin *pin = mem_new(1, sizeof *pin);

    text[0] = '\0';
    *pin = (Rh__Pin)RH__PIN__INIT;
    pin->node = mem_string(wish->node);
    pin->waits = in->waits;
    if (wish->actor != NULL) {
        pin->actor = mem_new(1, sizeof *pin->actor);
        *pin->actor = (Rh__Actor)RH__ACTOR__INIT;
        pin->actor->kind = wish->actor->kind;
        pin->actor->id.len = wish->actor->id.len;
        pin->actor->id.data = mem_copy(wish->actor->id.data, wish->actor->id.len);
    } else if (v == NULL) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "vnode %" PRIu32 ": no such vnode: `ringhold ring` lists them",
                       wish->vnode);
    } else {
        pin->from = v->from;
        pin->to = ring_end(ring, v);
    }
    return pin;
}

/* Whether it may begin, by what the leader knows: the command judges again what it can. */
static void add_fault(const struct coordinator *c, const struct state_pin *pin, const char *node,
                      char text[ADMIN_TEXT_SIZE])
{
    const struct state_node *n = state_node_named(c->state, node);

    if (n == NULL) {
        (void)snprintf(
            text, ADMIN_TEXT_SIZE, "unknown node '%.64s': `ringhold node list` lists them", node);
    } else if (pin->id_size > 0 && !ring_kinds_have(&n->kinds, pin->kind)) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "node '%s' does not host kind %u: take a node that does",
                       n->name,
                       pin->kind);
    } else {
        pin_rival_text(c, pin, text);
    }
}

static void remove_fault(const struct coordinator *c, const struct state_pin *pin,
                         char text[ADMIN_TEXT_SIZE])
{
    bool found = pins_find(c->state, pin) != NULL;

    for (size_t i = 0; pin->id_size == 0 && !found && i < c->state->pin_count; i++) {
        const struct state_pin *p = &c->state->pin[i];

        found = p->id_size == 0 && p->from < pin->to && p->to > pin->from;
    }
    if (!found) {
        (void)snprintf(
            text, ADMIN_TEXT_SIZE, "it is not pinned: `ringhold pin list` shows what is");
    }
}

static void judge(const struct coordinator *c, const Rh__AdminPin *in, const Rh__Pin *wish,
                  char text[ADMIN_TEXT_SIZE])
{
    struct state_pin pin;
    const char *fault = pins_read(c->state, wish, &pin);

    if (fault != NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "%s", fault);
    } else if (in->remove) {
        remove_fault(c, &pin, text);
    } else {
        add_fault(c, &pin, wish->node, text);
    }
}

/* ---- asking ---- */

static bool propose(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                    Rh__CommandPin *body, char *by, char *reason)
{
    Rh__Command command = RH__COMMAND__INIT;
    struct proposal *p;

    if (c->state->format < FLEET_FORMAT_PLACEMENT) {
        admin_set_text(&reply->error,
                       "pins belong to a later format than the fleet's: end the upgrade first "
                       "(`ringhold upgrade --finish`); `ringhold move --once` works in any");
        return false;
    }
    command.body_case = RH__COMMAND__BODY_PIN;
    command.pin = body;
    command.by = by;
    command.reason = reason;
    p = coordinator_propose(c, PROPOSAL_PIN, &command);
    wish_expect(p, peer, reply->tag, 0);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    return p != NULL;
}

/* Takes the pins. */
static void free_pins(Rh__Pin **pins, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        proto_free(&pins[i]->base);
    }
    mem_free(pins);
}

/* What would move if these were pinned. */
static void rehearse(struct coordinator *c, Rh__AdminReply *reply, Rh__Pin **pins, size_t count)
{
    struct plan_node *nodes = rebalance_nodes(c, 0);
    struct plan_wishes wishes = {.wish = mem_new(count + 1, sizeof(struct plan_wish))};
    struct state_pin pin;

    for (size_t i = 0; i < count; i++) {
        const struct state_node *n = state_node_named(c->state, pins[i]->node);

        if (pins_read(c->state, pins[i], &pin) == NULL && n != NULL) {
            wishes.wish[wishes.count++] = (struct plan_wish){pin.from, pin.to, n->slot, PLAN_AT};
        }
    }
    preview_plan(c, reply, &(struct preview){nodes, c->state->node_count, &wishes, "", 0});
    mem_free(wishes.wish);
    mem_free(nodes);
}

bool pin_ask(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
             const Rh__AdminPin *in)
{
    Rh__CommandPin body = RH__COMMAND_PIN__INIT;
    Rh__Pin **pins = mem_new(in->n_pins + 1, sizeof(Rh__Pin *));
    char text[ADMIN_TEXT_SIZE] = "";
    char error[ADMIN_TEXT_SIZE + 32];
    bool later = false;
    size_t count = 0;

    if (in->n_pins == 0 || in->n_pins > PINS_OF_COMMAND_MAX) {
        (void)snprintf(text, sizeof text, "a command has 1 to %d pins", PINS_OF_COMMAND_MAX);
    }
    while (text[0] == '\0' && count < in->n_pins) {
        pins[count] = read_wish(c, in, count, text);
        if (text[0] == '\0') {
            judge(c, in, pins[count], text);
        }
        count++;
    }
    if (text[0] != '\0') {
        if (in->n_pins > 1) {
            (void)snprintf(error, sizeof error, "pin %zu: %s; nothing is changed", count, text);
        } else {
            (void)snprintf(error, sizeof error, "%s", text);
        }
        admin_set_text(&reply->error, error);
    } else if (in->dry_run) {
        rehearse(c, reply, pins, count);
    } else if (in->remove) {
        body.remove = pins;
        body.n_remove = count;
        later = propose(c, peer, reply, &body, in->by, in->reason);
    } else {
        body.add = pins;
        body.n_add = count;
        later = propose(c, peer, reply, &body, in->by, in->reason);
    }
    free_pins(pins, count);
    return later;
}

bool pin_cells(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
               const struct plan_wishes *cells, const Rh__AdminMove *in)
{
    Rh__CommandPin body = RH__COMMAND_PIN__INIT;
    bool later;

    body.add = mem_new(cells->count + 1, sizeof(Rh__Pin *));
    for (size_t i = 0; i < cells->count; i++) {
        Rh__Pin *pin = mem_new(1, sizeof *pin);

        *pin = (Rh__Pin)RH__PIN__INIT;
        pin->from = cells->wish[i].from;
        pin->to = cells->wish[i].to;
        pin->node = mem_string(state_node(c->state, cells->wish[i].slot)->name);
        pin->waits = in->waits;
        body.add[body.n_add++] = pin;
    }
    later = propose(c, peer, reply, &body, in->by, in->reason);
    free_pins(body.add, body.n_add);
    return later;
}

/* ---- telling ---- */

/* "" = there is one, and it stays. */
static const char *node_state(struct coordinator *c, const struct state_node *n)
{
    if (n == NULL) {
        return "unknown";
    }
    return n->leaving ? "drains" : n->barred || peers_gone(c, n) ? "dead" : "";
}

static Rh__PinRow *row_of(struct coordinator *c, const struct state_pin *pin)
{
    const ring_hit hit = c->state->view.ring.cell[pin->from];
    const struct state_node *owner = state_node(c->state, ring_hit_node(hit));
    const struct state_node *node = state_node_named(c->state, pin->node);
    const char *state = node_state(c, node);
    Rh__PinRow *row = mem_new(1, sizeof *row);

    *row = (Rh__PinRow)RH__PIN_ROW__INIT;
    row->pin = mem_new(1, sizeof *row->pin);
    *row->pin = (Rh__Pin)RH__PIN__INIT;
    if (pin->id_size > 0) {
        row->pin->actor = mem_new(1, sizeof *row->pin->actor);
        *row->pin->actor = (Rh__Actor)RH__ACTOR__INIT;
        row->pin->actor->kind = pin->kind;
        row->pin->actor->id.len = pin->id_size;
        row->pin->actor->id.data = mem_copy(pin->id, pin->id_size);
    }
    row->pin->from = pin->from;
    row->pin->to = pin->to;
    row->pin->node = mem_string(pin->node);
    row->pin->waits = pin->waits;
    row->vnode = ring_hit_vnode(hit);
    row->owner = mem_string(owner == NULL ? "" : owner->name);
    row->state = mem_string(state[0] != '\0' ? state : owner == node ? "there" : "moves");
    return row;
}

void pin_list(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminPins *in)
{
    const struct state *s = c->state;

    reply->pins_count = (uint32_t)s->pin_count;
    reply->pins = mem_new(PAGE, sizeof(Rh__PinRow *));
    for (size_t i = in->from; i < s->pin_count && reply->n_pins < PAGE; i++) {
        reply->pins[reply->n_pins++] = row_of(c, &s->pin[i]);
    }
}

size_t pin_count_at(const struct coordinator *c, const char *node)
{
    size_t count = 0;

    for (size_t i = 0; i < c->state->pin_count; i++) {
        count += strcmp(c->state->pin[i].node, node) == 0;
    }
    return count;
}

void pin_count(struct coordinator *c, Rh__AdminReply *reply)
{
    const struct state *s = c->state;

    reply->pins_count = (uint32_t)s->pin_count;
    for (size_t i = 0; i < s->pin_count; i++) {
        const struct plan_wish *w = wishes_pinned(c, s->pin[i].from);

        reply->pins_away += w == NULL || w->kind != PLAN_AT;
    }
}
