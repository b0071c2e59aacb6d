/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins: operators' wishes where an id or a vnode is to live. What is refused says why, and what to
 * do; what is taken is a command of the log, and the planner does it.
 */
#include "txn/admin/inside.h"

#include "base/actor_name.h"
#include "base/mem.h"
#include "txn/state/pins.h"
#include "wire/versions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 1000,
    FAULTS_TOLD = 8,
    WISH_SIZE = 96,  /* of a wish's name */
    PLACE_SIZE = 24, /* of "line 4294967295" */
    FAULT_SIZE = 512,
    SUMMARY_SIZE = 80,
};

/* ---- judging ---- */

/* "0/boss-7", or "cells 5..9". */
static void name_text(const struct state_pin *pin, char text[ACTOR_NAME_SIZE])
{

    if (pin->id_size > 0) {
        (void)actor_name_print(pin->kind, pins_id(pin), text);
    } else {
        (void)snprintf(
            text, ACTOR_NAME_SIZE, "cells %" PRIu32 "..%" PRIu32, pin->from, pin->to - 1);
    }
}

void pin_rival_text(const struct coordinator *c, const struct state_pin *pin,
                    char text[ADMIN_TEXT_SIZE])
{
    const struct state_pin *rival = pins_rival(c->state, pin);
    char name[ACTOR_NAME_SIZE];

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
        (void)snprintf(text, ADMIN_TEXT_SIZE, "no such vnode: `ringhold ring` lists them");
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
                  struct state_pin *pin, char text[ADMIN_TEXT_SIZE])
{
    const char *fault = pins_read(c->state, wish, pin);

    if (fault != NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "%s", fault);
    } else if (in->remove) {
        remove_fault(c, pin, text);
    } else {
        add_fault(c, pin, wish->node, text);
    }
}

/* ---- judging all of a command ---- */

struct judged_pins {
    struct state_pin *pin; /* owned: with nothing wrong by themselves; ids are the wire's */
    size_t *at;            /* owned: which of the wishes each is */
    size_t count;
    size_t refused;
    char text[FAULTS_TOLD * (FAULT_SIZE + 2) + SUMMARY_SIZE]; /* of the first */
};

/* "line 7", or if it is of no file "pin 7". */
static const char *place_text(const Rh__AdminPin *in, size_t at, char text[PLACE_SIZE])
{
    const uint32_t line = in->pins[at]->line;

    (void)snprintf(text,
                   PLACE_SIZE,
                   "%s %" PRIu32,
                   line == 0 ? "pin" : "line",
                   line == 0 ? (uint32_t)at + 1 : line);
    return text;
}

/* "0/boss-7", or "vnode 12". */
static const char *wish_text(const Rh__AdminPin *in, size_t at, char text[WISH_SIZE])
{
    const Rh__PinWish *wish = in->pins[at];
    char name[ACTOR_NAME_SIZE];

    if (wish->actor == NULL) {
        (void)snprintf(text, WISH_SIZE, "vnode %" PRIu32, wish->vnode);
    } else {
        (void)snprintf(text, WISH_SIZE, "%.86s", proto_actor(wish->actor, name));
    }
    return text;
}

static void refuse(struct judged_pins *j, const char *fault)
{
    const size_t used = strlen(j->text);

    if (j->refused++ < FAULTS_TOLD) {
        (void)snprintf(j->text + used, sizeof j->text - used, "%s%s", used == 0 ? "" : "; ", fault);
    }
}

static void refuse_one(struct judged_pins *j, const Rh__AdminPin *in, size_t at, const char *why)
{
    char place[PLACE_SIZE];
    char wish[WISH_SIZE];
    char fault[FAULT_SIZE];

    (void)snprintf(
        fault, sizeof fault, "%s, %s: %s", place_text(in, at, place), wish_text(in, at, wish), why);
    refuse(j, fault);
}

/* They are both in the way of each other: who mends it has to know both. */
static void refuse_two(struct judged_pins *j, const Rh__AdminPin *in,
                       const struct pins_clash *clash)
{
    const size_t first = j->at[clash->first];
    const size_t second = j->at[clash->second];
    char place[2][PLACE_SIZE];
    char wish[2][WISH_SIZE];
    char fault[FAULT_SIZE];

    (void)place_text(in, first, place[0]);
    (void)place_text(in, second, place[1]);
    (void)wish_text(in, first, wish[0]);
    (void)wish_text(in, second, wish[1]);
    if (clash->twice) {
        (void)snprintf(fault,
                       sizeof fault,
                       "%s and %s both name %s: leave one out",
                       place[0],
                       place[1],
                       wish[0]);
    } else {
        (void)snprintf(fault,
                       sizeof fault,
                       "%s and %s have a cell in common: %s at '%.63s', %s at '%.63s': pin both "
                       "alike, or leave one out",
                       place[0],
                       place[1],
                       wish[0],
                       j->pin[clash->first].node,
                       wish[1],
                       j->pin[clash->second].node);
    }
    refuse(j, fault);
}

/* `pins` become what is wished, owned. */
static void judge_all(const struct coordinator *c, const Rh__AdminPin *in, Rh__Pin **pins,
                      struct judged_pins *j)
{
    struct pins_clash clash[FAULTS_TOLD];
    char text[ADMIN_TEXT_SIZE];

    *j = (struct judged_pins){.pin = mem_new(in->n_pins, sizeof *j->pin),
                              .at = mem_new(in->n_pins, sizeof *j->at)};
    for (size_t i = 0; i < in->n_pins; i++) {
        pins[i] = read_wish(c, in, i, text);
        if (text[0] == '\0') {
            judge(c, in, pins[i], &j->pin[j->count], text);
        }
        if (text[0] == '\0') {
            j->at[j->count++] = i;
        } else if (in->n_pins == 1 && in->pins[i]->line == 0) {
            refuse(j, text);
        } else {
            refuse_one(j, in, i, text);
        }
    }
    const size_t clashes = pins_clashes(j->pin, j->count, clash, FAULTS_TOLD);
    for (size_t i = 0; i < clashes && i < FAULTS_TOLD; i++) {
        refuse_two(j, in, &clash[i]);
    }
    j->refused += clashes > FAULTS_TOLD ? clashes - FAULTS_TOLD : 0;
    mem_free(j->pin);
    mem_free(j->at);
}

static void tell_refusals(struct judged_pins *j, Rh__AdminReply *reply, size_t all)
{
    const size_t used = strlen(j->text);

    if (all > 1) {
        (void)snprintf(j->text + used,
                       sizeof j->text - used,
                       "; %zu of %zu pins are refused, so nothing is changed",
                       j->refused,
                       all);
    }
    admin_set_text(&reply->error, j->text);
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
    const struct preview p = preview_of(c, nodes, c->state->node_count, &wishes);

    preview_plan(c, reply, &p);
    mem_free(wishes.wish);
    mem_free(nodes);
}

bool pin_ask(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
             const Rh__AdminPin *in)
{
    Rh__CommandPin body = RH__COMMAND_PIN__INIT;
    struct judged_pins j;
    bool later = false;

    if (in->n_pins == 0 || in->n_pins > PINS_OF_COMMAND_MAX) {
        char text[ADMIN_TEXT_SIZE];

        (void)snprintf(text, sizeof text, "a command has 1 to %d pins", PINS_OF_COMMAND_MAX);
        admin_set_text(&reply->error, text);
        return false;
    }
    Rh__Pin **pins = mem_new(in->n_pins, sizeof(Rh__Pin *));
    judge_all(c, in, pins, &j);
    if (j.refused > 0) {
        tell_refusals(&j, reply, in->n_pins);
    } else if (in->dry_run) {
        rehearse(c, reply, pins, in->n_pins);
    } else if (in->remove) {
        body.remove = pins;
        body.n_remove = in->n_pins;
        later = propose(c, peer, reply, &body, in->by, in->reason);
    } else {
        body.add = pins;
        body.n_add = in->n_pins;
        later = propose(c, peer, reply, &body, in->by, in->reason);
    }
    free_pins(pins, in->n_pins);
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
