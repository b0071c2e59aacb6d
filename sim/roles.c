/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds with a second role. Every other node has it; of the entities some are
 * ids of a kind of that role, one is its singleton, some are a set of daemons
 * that the operator makes larger and smaller all the time, and five are of two
 * kinds that are placed together, with two tags.
 *
 * What is judged of them beside all that is judged of any entity: once all is
 * quiet each singleton and daemon lives exactly once, unasked, where it should;
 * and at no time do two nodes have actors of one tag. In half of these seeds the
 * role is kept in one of two zones: then all is there, if any of its nodes is.
 *
 * In half of them three entities are of a kind that is placed by its hosts, which
 * are others with each life of a node; some take a part of it only. No node that
 * does not host it is ever given a cell of it. At the heal all host it.
 */
#include "base/assert.h"
#include "base/table.h"
#include "ring/plan.h"
#include "sim/fleet.h"
#include "wire/control.h"

#include <ringhold.h>
#include <stdio.h>
#include <string.h>

enum {
    MATCH_FIRST = 20, /* entities */
    ARENA_FIRST = 22,
    MATCH_LAST = 24,
    TAGGED_FIRST = 25,
    BOSS = 30,
    MAIL_FIRST = 31,
    MAIL_MIN = 3,
    RETRY_US = 700000,
};

static const char role[] = "match";
static const char home[] = "a"; /* its zone */

static const struct host_kind plain[] = {{.number = FLEET_KIND, .name = "plain"},
                                         {.number = FLEET_KIND_DURABLE, .name = "durable"}};

static const struct host_kind match[] = {
    {.number = FLEET_KIND_MATCH, .name = "match"},
    {.number = FLEET_KIND_ROOM, .name = "room", .placement = RH_PLACE_TOGETHER},
    {.number = FLEET_KIND_SEAT, .name = "seat", .placement = RH_PLACE_TOGETHER},
    {.number = FLEET_KIND_BOSS, .name = "boss", .placement = RH_PLACE_SINGLETON, .always = true},
    {.number = FLEET_KIND_MAIL,
     .name = "mail",
     .placement = RH_PLACE_DAEMONS,
     .daemons = MAIL_MIN,
     .always = true},
};

bool roles_drawn(uint64_t seed)
{
    return (seed * UINT64_C(0x9e3779b97f4a7c15)) >> 61 == 0;
}

unsigned roles_of(const struct fleet *f, const struct sim_node *n)
{
    return f->roles && (n - f->node) % 2 == 1;
}

/* Each has nodes of both roles. */
static const char *zone_of(const struct fleet *f, const struct sim_node *n)
{
    return (n - f->node) / 2 % 2 == 0 ? home : "b";
}

/* What a life of a node of the second role hosts of the kind that is placed by its hosts: all by
 * its weight, a part, or nothing; the first one hosts it always. */
static void add_arena(const struct fleet *f, struct sim_node *n, struct host_config *config)
{
    static const uint16_t withheld[] = {0, 0, 500, 900, 1000};
    const uint64_t drawn =
        table_mix(f->world.seed ^ 0x6172656e61u ^ (n->process.life << 8 | n->process.number));
    const size_t count = config->kind_count;

    n->lacks = n != &f->node[1] && !f->apart_rest && drawn % 5 < 2;
    if (n->lacks) {
        return;
    }
    memcpy(n->kinds, config->kinds, count * sizeof *n->kinds);
    n->kinds[count] = (struct host_kind){.number = FLEET_KIND_ARENA,
                                         .name = "arena",
                                         .placement = RH_PLACE_HOSTS,
                                         .withheld = withheld[drawn / 8 % 5]};
    config->kinds = n->kinds;
    config->kind_count = count + 1;
}

struct plan_part roles_part(const struct fleet *f, const struct sim_node *n)
{
    const size_t arena = sizeof match / sizeof match[0];
    const bool takes = f->apart && roles_of(f, n) && !n->lacks;

    return (struct plan_part){
        .kind = FLEET_KIND_ARENA,
        .permille = (uint16_t)(RING_PART_WHOLE - (takes ? n->kinds[arena].withheld : 0)),
    };
}

void roles_end_lacks(struct fleet *f)
{
    f->apart_rest = true;
    for (unsigned i = 0; f->apart && i < f->nodes; i++) {
        if (f->node[i].core != NULL && f->node[i].lacks) {
            node_crash(f, &f->node[i]);
        }
    }
}

void roles_config(const struct fleet *f, struct sim_node *n, struct host_config *config)
{
    n->lacks = false;
    if (!f->roles) {
        return;
    }
    config->kinds = roles_of(f, n) ? match : plain;
    config->kind_count =
        roles_of(f, n) ? sizeof match / sizeof match[0] : sizeof plain / sizeof plain[0];
    if (f->apart && roles_of(f, n)) {
        add_arena(f, n, config);
    }
    (void)snprintf(config->role, sizeof config->role, "%s", roles_of(f, n) ? role : "");
    (void)snprintf(config->zone, sizeof config->zone, "%s", zone_of(f, n));
}

void roles_zones(const struct fleet *f, struct coordinator_config *config)
{
    if (f->zoned) {
        config->zone[0] = (struct coordinator_zone){.role = "match", .zone = "a"};
        config->zone_count = 1;
    }
}

static void take_entity(struct entity *e, uint16_t kind)
{
    e->id_size = strlen(e->id);
    e->kind = kind;
    e->durable = false;
}

/* What lives together, and by which tag. */
static const struct {
    const char *id;
    uint16_t kind;
    uint8_t tag;
} tagged[] = {{"room{red}", FLEET_KIND_ROOM, 1},
              {"{red}", FLEET_KIND_SEAT, 1},
              {"ann{blue}{red}", FLEET_KIND_SEAT, 2},
              {"{blue}7}", FLEET_KIND_ROOM, 2},
              {"blue", FLEET_KIND_SEAT, 2}};

void roles_entities(struct fleet *f)
{
    struct entity *e = f->ledger.entity;

    for (size_t i = MATCH_FIRST; f->roles && i <= MATCH_LAST; i++) {
        take_entity(&e[i], f->apart && i >= ARENA_FIRST ? FLEET_KIND_ARENA : FLEET_KIND_MATCH);
    }
    for (size_t i = 0; f->roles && i < sizeof tagged / sizeof tagged[0]; i++) {
        (void)snprintf(e[TAGGED_FIRST + i].id, sizeof e->id, "%s", tagged[i].id);
        take_entity(&e[TAGGED_FIRST + i], tagged[i].kind);
        e[TAGGED_FIRST + i].tag = tagged[i].tag;
    }
    for (unsigned i = 0; f->roles && i < FLEET_DAEMONS_MAX; i++) {
        (void)snprintf(e[MAIL_FIRST + i].id, sizeof e->id, "mail/%u", i);
        take_entity(&e[MAIL_FIRST + i], FLEET_KIND_MAIL);
    }
    if (f->roles) {
        (void)snprintf(e[BOSS].id, sizeof e->id, "boss");
        take_entity(&e[BOSS], FLEET_KIND_BOSS);
    }
    f->daemons = MAIL_MIN;
}

/* ---- the operator's part ---- */

static void tell(struct fleet *f)
{
    struct net_end *end = f->operator_end[world_between(&f->world, 0, f->coordinators - 1)];
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminDaemons body = RH__ADMIN_DAEMONS__INIT;
    struct buffer out = {0};

    if (end == NULL) {
        return;
    }
    body.name = proto_text("mail");
    body.count = f->daemons;
    admin.tag = operator_tag(f, f->daemons_wish);
    admin.what_case = RH__ADMIN__WHAT_DAEMONS;
    admin.daemons = &body;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &admin;
    control_put(&out, &control);
    network_send(&f->network, end, FRAME_CONTROL, buffer_bytes(&out));
    buffer_fini(&out);
}

static void on_resize(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (!f->healed && f->daemons_wish == 0 && world_chance(&f->world, 300)) {
        f->daemons = (uint32_t)world_between(&f->world, MAIL_MIN, FLEET_DAEMONS_MAX);
        f->daemons_wish = ++f->wishes;
        TRACE(&f->world, "op", "wants %u daemons", f->daemons);
    }
    if (f->daemons_wish != 0) {
        tell(f);
    }
    world_at(&f->world,
             f->world.now_us + RETRY_US,
             (struct world_event){.run = on_resize, .context = f});
}

void roles_start(struct fleet *f)
{
    if (f->roles) {
        on_resize(f, NULL);
    }
}

void roles_told(struct fleet *f, const Rh__AdminReply *reply)
{
    if (f->daemons_wish != 0 && operator_wish(reply->tag) == f->daemons_wish &&
        reply->error[0] == '\0') {
        TRACE(&f->world, "op", "is told of %u daemons", f->daemons);
        f->daemons_wish = 0;
    }
}

/* ---- what is judged ---- */

/* Where the ids of an entity's kind live: 0 = the default segment. */
static size_t segment_of(const struct ring *r, const struct entity *e)
{
    const struct ring_segment *s = ring_segment_of_kind(r, entity_kind(e));

    return s == NULL ? 0 : (size_t)(s - r->segment) + 1;
}

bool roles_came_early(const struct fleet *f, const struct sim_ask *a)
{
    const struct entity *e = &f->ledger.entity[a->entity];
    const size_t home_view = f->home_view[segment_of(&f->raft.truth.view.ring, e)];

    return f->roles && (e->kind != 0 || a->session->owned) &&
           (home_view == 0 || a->view < home_view);
}

bool roles_may_miss(const struct fleet *f, const struct sim_ask *a)
{
    const uint16_t kind = f->ledger.entity[a->entity].kind;
    const struct entity *e = &f->ledger.entity[a->entity];
    const size_t home_view = f->home_view[segment_of(&f->raft.truth.view.ring, e)];

    if (home_view == 0 || a->view < home_view) {
        return true; // no node had its role yet
    }

    return kind == FLEET_KIND_MAIL || kind == FLEET_KIND_ARENA ||
           (kind != 0 && (f->bound == 0 || a->view < f->ledger.bound_view));
}

/* Have all its vnodes an owner? */
static bool has_owners(const struct ring *r, size_t segment)
{
    const struct ring_segment *s = segment == 0 ? NULL : &r->segment[segment - 1];
    size_t owned = 0;

    for (size_t i = 0; i < r->vnode_count; i++) {
        if (ring_segment_at(r, r->vnode[i].from) != s) {
            continue;
        }
        if (r->vnode[i].owner == RING_NODE_NONE) {
            return false;
        }
        owned++;
    }
    return owned > 0;
}

/* Of a node that does not host the kind nothing is asked here: it may have its cells from before.
 */
static bool has_arena(const struct fleet *f, uint16_t slot)
{
    const struct view_member *m = view_member(&f->raft.truth.view, slot);

    return m != NULL && ring_kinds_have(&m->kinds, FLEET_KIND_ARENA);
}

/* Who was given cells by this hosts their kind. */
static void check_hosts(struct fleet *f, const Rh__Delta *delta)
{
    const struct ring *r = &f->raft.truth.view.ring;
    const struct ring_segment *s = ring_segment_of_kind(r, FLEET_KIND_ARENA);

    for (size_t i = 0; f->apart && s != NULL && i < delta->n_ops; i++) {
        const Rh__RingOp *op = delta->ops[i];
        const struct ring_vnode *v = ring_find(r, op->vnode);

        if (op->kind == RING_MOVE && v != NULL && ring_segment_at(r, v->from) == s &&
            !has_arena(f, (uint16_t)op->to)) {
            world_violate(&f->world,
                          "hosts",
                          "slot %u is given cells of a kind that it does not host",
                          op->to);
        }
    }
}

void roles_committed(struct fleet *f, const struct state_result *result)
{
    const struct ring *r = &f->raft.truth.view.ring;

    if (result->delta != NULL) {
        check_hosts(f, result->delta);
    }

    if (result->delta != NULL && result->delta->n_segments > 0 && r->segment_count > f->bound) {
        f->bound = r->segment_count;
        f->ledger.bound_view = f->ledger.view_count;
    }
    for (size_t s = 0; s <= r->segment_count; s++) {
        if (f->home_view[s] == 0 && has_owners(r, s)) {
            f->home_view[s] = f->ledger.view_count;
        }
    }
}

void roles_restored(struct fleet *f)
{
    memset(f->home_view, 0, sizeof f->home_view);
}

static unsigned count_live(const struct fleet *f, const struct entity *e)
{
    unsigned count = 0;

    for (unsigned n = 0; n < f->nodes; n++) {
        for (const struct instance *i = f->node[n].instance; i != NULL; i = i->next) {
            count += i->entity == e && !i->frozen;
        }
    }
    return count;
}

/* It stays, as the coordinators know it. */
static bool stays(const struct fleet *f, const struct sim_node *n)
{
    const struct view_member *m = view_member_named(&f->raft.truth.view, n->process.name);

    return n->core != NULL && m != NULL && !m->leaving;
}

/* It has the second role, is not at home, and somebody else is. */
static bool is_outside(const struct fleet *f, const struct sim_node *n)
{
    bool others = false;

    for (unsigned i = 0; i < f->nodes; i++) {
        others = others || (roles_of(f, &f->node[i]) && stays(f, &f->node[i]) &&
                            strcmp(zone_of(f, &f->node[i]), home) == 0);
    }
    return f->zoned && roles_of(f, n) && strcmp(zone_of(f, n), home) != 0 && others;
}

/* Has it served longest of its role's nodes that stay, as the coordinators know them? A wish to
 * drain that comes late may have followed the one that took it back. */
static bool is_oldest(const struct fleet *f, const struct sim_node *n)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        const struct sim_node *other = &f->node[i];

        if (roles_of(f, other) == roles_of(f, n) && stays(f, other) && !is_outside(f, other) &&
            other->incarnation < n->incarnation) {
            return false;
        }
    }
    return true;
}

const char *roles_wait(const struct fleet *f)
{
    static char text[128];

    for (unsigned i = 0; i < f->nodes; i++) {
        const struct view_member *m =
            view_member_named(&f->raft.truth.view, f->node[i].process.name);

        if (m != NULL && is_outside(f, &f->node[i]) &&
            ring_owned_count(&f->raft.truth.view.ring, m->slot) > 0) {
            (void)snprintf(text, sizeof text, "%s has vnodes, outside of its role's zone", m->name);
            return text;
        }
    }

    const struct ring_segment *s = ring_segment_of_kind(&f->raft.truth.view.ring, FLEET_KIND_ARENA);

    for (uint32_t c = s == NULL ? 0 : s->from; s != NULL && c < ring_segment_end(s); c++) {
        if (!has_arena(f, ring_hit_node(f->raft.truth.view.ring.cell[c]))) {
            (void)snprintf(text, sizeof text, "cell %u is at none that hosts its kind", c);
            return text;
        }
    }
    for (size_t i = BOSS; f->roles && i < MAIL_FIRST + FLEET_DAEMONS_MAX; i++) {
        const struct entity *e = &f->ledger.entity[i];
        const bool wanted = i < MAIL_FIRST + f->daemons;
        const unsigned count = count_live(f, e);

        if (count != wanted || (wanted && (e->live == NULL || !check_owns(f, e->live->node, e)))) {
            (void)snprintf(text, sizeof text, "%s lives %u times, or elsewhere", e->id, count);
            return text;
        }
        if (i == BOSS && !is_oldest(f, e->live->node)) {
            (void)snprintf(text, sizeof text, "%s is not the oldest", e->live->node->process.name);
            return text;
        }
    }
    return NULL;
}
