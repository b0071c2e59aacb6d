/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator says where what is to live: pins of ids and of vnodes, their end, moves that are
 * pins and moves once. He goes by what he saw some time before. Pins that wait for a node that
 * stays down when all is mended are let go: else nobody would ever serve what they pin.
 */
#include "base/mem.h"
#include "sim/fleet.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { LOOKS_US = 500000 };

static char *any_node(struct fleet *f)
{
    return f->node[world_between(&f->world, 0, f->nodes - 1)].process.name;
}

static uint32_t any_vnode(struct fleet *f)
{
    const struct ring *ring = &f->raft.truth.view.ring;

    return ring->vnode_count == 0
               ? 0
               : ring->vnode[world_between(&f->world, 0, ring->vnode_count - 1)].id;
}

static void move(struct fleet *f)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminMove body = RH__ADMIN_MOVE__INIT;
    Rh__VnodeMove moves[] = {RH__VNODE_MOVE__INIT, RH__VNODE_MOVE__INIT, RH__VNODE_MOVE__INIT};
    Rh__VnodeMove *list[] = {&moves[0], &moves[1], &moves[2]};

    body.n_moves = world_between(&f->world, 1, 3);
    body.moves = list;
    for (size_t i = 0; i < body.n_moves; i++) {
        moves[i].vnode = any_vnode(f);
        moves[i].node = any_node(f);
    }
    body.once = world_chance(&f->world, 500);
    body.dry_run = world_chance(&f->world, 100);
    body.by = proto_text("op");
    admin.what_case = RH__ADMIN__WHAT_MOVE;
    admin.move = &body;
    TRACE(&f->world,
          "op",
          "moves vnode %u to %s%s",
          moves[0].vnode,
          moves[0].node,
          body.once ? " once" : "");
    hand_ask(f, &admin);
}

/* An id by itself, cells by the vnode that has them now. */
static void name_pinned(const struct fleet *f, const struct state_pin *pin, Rh__PinWish *wish,
                        Rh__Actor *actor)
{
    actor->kind = pin->kind;
    actor->id = proto_bytes(bytes_of(pin->id, pin->id_size));
    wish->actor = pin->id_size > 0 ? actor : NULL;
    wish->vnode = ring_hit_vnode(f->raft.truth.view.ring.cell[pin->from]);
}

/* What is pinned already, mostly, if it is to be no more. */
static void name_any(struct fleet *f, Rh__PinWish *wish, Rh__Actor *actor, bool remove)
{
    const struct state *truth = &f->raft.truth;
    const struct entity *e = &f->ledger.entity[world_between(&f->world, 0, LEDGER_ENTITIES - 1)];

    actor->kind = e->kind;
    actor->id = proto_bytes(bytes_of(e->id, e->id_size));
    if (remove && truth->pin_count > 0 && world_chance(&f->world, 900)) {
        name_pinned(f, &truth->pin[world_between(&f->world, 0, truth->pin_count - 1)], wish, actor);
    } else if (e->id_size > 0 && world_chance(&f->world, 600)) {
        wish->actor = actor;
    } else {
        wish->vnode = any_vnode(f);
    }
}

static void ask_pin(struct fleet *f, Rh__PinWish *wish, bool remove, bool waits)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminPin body = RH__ADMIN_PIN__INIT;

    body.pins = &wish;
    body.n_pins = 1;
    body.remove = remove;
    body.waits = waits;
    body.by = proto_text("op");
    admin.what_case = RH__ADMIN__WHAT_PIN;
    admin.pin = &body;
    hand_ask(f, &admin);
}

static void pin(struct fleet *f, bool remove)
{
    Rh__PinWish wish = RH__PIN_WISH__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;

    name_any(f, &wish, &actor, remove);
    wish.node = remove ? proto_text("") : any_node(f);
    const bool waits = world_chance(&f->world, 300);
    TRACE(&f->world,
          "op",
          "%s %s%u to %s%s",
          remove ? "unpins" : "pins",
          wish.actor != NULL ? "an id, or vnode " : "vnode ",
          wish.vnode,
          wish.node,
          waits ? ", which waits" : "");
    ask_pin(f, &wish, remove, waits);
}

void placement_wish(struct fleet *f)
{
    if (f->remembers && world_chance(&f->world, 200)) {
        remember_wish(f);
        return;
    }
    const uint64_t what = world_between(&f->world, 0, 9);

    if (what < 3) {
        move(f);
    } else {
        pin(f, what >= 7);
    }
}

/* ---- when all is mended ---- */

static const struct state_pin *waiting(const struct fleet *f)
{
    const struct state *truth = &f->raft.truth;

    for (size_t i = 0; i < truth->pin_count; i++) {
        if (truth->pin[i].waits) {
            return &truth->pin[i];
        }
    }
    return NULL;
}

static void on_look(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct state_pin *p = f->healed ? waiting(f) : NULL;
    Rh__PinWish wish = RH__PIN_WISH__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;

    if (p != NULL) {
        name_pinned(f, p, &wish, &actor);
        ask_pin(f, &wish, true, false);
    }
    if (!f->healed || p != NULL) {
        world_at(&f->world, f->world.now_us + LOOKS_US, *event);
    }
}

void placement_start(struct fleet *f)
{
    if (f->faults.hand_us > 0) {
        world_at(&f->world,
                 f->world.now_us + LOOKS_US,
                 (struct world_event){.run = on_look, .context = f});
    }
}

/* ---- what holds in the end ---- */

size_t placement_wishes(const struct fleet *f, struct plan_wish *wish)
{
    const struct state *truth = &f->raft.truth;
    size_t count = 0;

    for (size_t i = 0; i < truth->pin_count; i++) {
        const struct state_pin *p = &truth->pin[i];
        const struct state_node *n = state_node_named(truth, p->node);
        const bool stays = n != NULL && !n->leaving && !n->barred &&
                           (p->id_size == 0 || ring_kinds_have(&n->kinds, p->kind));

        if (count > 0 && p->from < wish[count - 1].to) {
            wish[count - 1].to = p->to > wish[count - 1].to ? p->to : wish[count - 1].to;
        } else {
            wish[count++] = (struct plan_wish){
                p->from, p->to, stays ? n->slot : 0, stays ? PLAN_AT : PLAN_APART};
        }
    }
    return count;
}
