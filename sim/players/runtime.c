/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's runtime, on which heroes live: what the host wants is done there, as a
 * worker does it, and what the runtime tells comes back a while later, in order.
 * Pushes go to gateways by the links that there are (node/pushes_uv.c).
 */
#include "base/assert.h"
#include "base/mem.h"
#include "node/runtime/told.h"
#include "sim/players/bonded.h"
#include "sim/players/players.h"

#include <string.h>

/* One incarnation of a hero in this process. */
struct part {
    struct part *next;
    uint64_t id;
    struct sim_runtime *runtime;
    struct actor *actor; /* the host's; NULL = discarded, what it tells is dropped */
    struct rh_actor *on; /* NULL = it is off the runtime */
};

struct told {
    struct told *next;
    uint64_t part;
    struct runtime_event event; /* its pointers are void */
    size_t bond_size;
    size_t size;
    uint64_t connection; /* of a push, for the trace: also … */
    uint64_t pushed;     /* … its number … */
    uint32_t round;
    struct call call; /* of a call; its pointers are void: … */
    size_t from_size; /* … data is who calls … */
    size_t id_size;   /* … then whom, then the payload */
    uint8_t data[];   /* bond, then bytes; or a push record */
};

struct sim_runtime {
    struct fleet *fleet;
    struct sim_node *node;
    struct runtime *runtime;
    struct presence presence;
    struct part *part;  /* owned */
    struct told *first; /* owned: on its way to the host */
    struct told *last;
    struct told *gated; /* owned: pushes that wait in their link, for the lease */
    uint64_t told_us;   /* when the newest arrives there */
    uint64_t takes_us;  /* what is done now takes so long */
    bool bonded;        /* who is made comes cold, with a client */
    bool closing;
};

static uint64_t clock_of(const struct sim_runtime *s)
{
    return sim_clock_read(&s->node->process.clock, s->fleet->world.now_us);
}

static struct part *part_of(const struct sim_runtime *s, uint64_t id)
{
    struct part *p = s->part;

    while (p != NULL && p->id != id) {
        p = p->next;
    }
    return p;
}

static void part_free(struct part *p)
{
    struct part **at = &p->runtime->part;

    while (*at != p) {
        at = &(*at)->next;
    }
    *at = p->next;
    mem_free(p);
}

static void drop_all(struct told **first)
{
    while (*first != NULL) {
        struct told *t = *first;

        *first = t->next;
        mem_free(t);
    }
}

/* ---- pushes ---- */

static void send_push(struct sim_runtime *s, const struct told *t)
{
    struct net_end *end =
        network_end(&s->fleet->network, presence_link(&s->presence, t->event.session));

    TRACE(&s->fleet->world,
          s->node->process.name,
          "push %llu of round %u to connection %llx %s",
          (unsigned long long)t->pushed,
          t->round,
          (unsigned long long)t->connection,
          end == NULL ? "has no link" : "leaves");
    if (end != NULL) {
        check_output(s->fleet, s->node);
        network_send(&s->fleet->network, end, FRAME_PUSH, bytes_of(t->data, t->size));
    }
}

static void open_gate(struct sim_runtime *s)
{
    while (s->gated != NULL && !node_is_gated(s->fleet, s->node)) {
        struct told *t = s->gated;

        s->gated = t->next;
        send_push(s, t);
        mem_free(t);
    }
}

/* It stays the caller's. The gate of the links holds it back past the end of the lease. */
static void on_push(struct sim_runtime *s, const struct told *t)
{
    struct told **at = &s->gated;

    open_gate(s);
    if (!node_is_gated(s->fleet, s->node)) {
        send_push(s, t);
        return;
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = mem_copy(t, sizeof *t + t->size);
    (*at)->next = NULL;
}

/* ---- what the runtime tells ---- */

static void tell_host(struct sim_runtime *s, const struct told *t)
{
    struct part *p = part_of(s, t->part);

    if (p == NULL || p->actor == NULL) {
        return; // it was discarded meanwhile
    }
    const struct host_event event = {
        .type = runtime_told_type(t->event.type),
        .actor = p->actor,
        .ticket = t->event.ticket,
        .error = t->event.error,
        .code = t->event.code,
        .has_state = t->event.has_state,
        .under_way = s->node->calls == NULL || t->event.type != RUNTIME_EXPORTED
                         ? 0
                         : calls_under_way(s->node->calls, t->part),
        .bond = bytes_of(t->data, t->bond_size),
        .bytes = bytes_of(t->data + t->bond_size, t->size - t->bond_size)};

    if (runtime_told_ends(t->event.type, t->event.error)) {
        actor_set_instance(p->actor, NULL);
        part_free(p);
    }
    node_step(s->fleet, s->node, event);
}

/* What an incarnation asks of others is in its own order; the runtime's name for that is of all
 * fleets that ever ran here. */
static void tell_calls(struct sim_runtime *s, const struct told *t)
{
    struct call call = t->call;

    call.session = t->part;
    call.from = bytes_of(t->data, t->from_size);
    call.id = bytes_of(t->data + t->from_size, t->id_size);
    call.payload =
        bytes_of(t->data + t->from_size + t->id_size, t->size - t->from_size - t->id_size);
    node_calls_ask(s->fleet, s->node, &call);
}

static void on_told(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];
    struct sim_runtime *s = n->runtime;

    if (!n->process.up || n->process.life != event->b) {
        return;
    }
    struct told *t = s->first;
    s->first = t->next;
    s->last = s->first == NULL ? NULL : s->last;
    if (t->event.type == RUNTIME_PUSH) {
        on_push(s, t);
    } else if (t->event.type == RUNTIME_BOUND) {
        presence_bound(&s->presence, t->event.session, clock_of(s));
    } else if (t->event.type == RUNTIME_CALL) {
        tell_calls(s, t);
    } else if (t->event.type == RUNTIME_GONE) {
        node_calls_close(s->fleet, s->node, t->part);
    } else {
        tell_host(s, t);
    }
    mem_free(t);
}

static void post(struct sim_runtime *s, struct told *t)
{
    const uint64_t at_us = s->fleet->world.now_us + s->takes_us;

    if (s->last == NULL) {
        s->first = t;
    } else {
        s->last->next = t;
    }
    s->last = t;
    s->told_us = at_us > s->told_us ? at_us : s->told_us;
    world_at(&s->fleet->world,
             s->told_us,
             (struct world_event){.run = on_told,
                                  .context = s->fleet,
                                  .a = (uint64_t)(s->node - s->fleet->node),
                                  .b = s->node->process.life,
                                  .gate = &s->node->process.gate});
}

static void on_runtime(void *context, const struct runtime_event *e)
{
    struct sim_runtime *s = context;
    struct part *p = e->actor;
    struct buffer data = {0};

    if (s->closing) {
        return;
    }
    ASSERT(e->type != RUNTIME_DEFERRED);
    if (runtime_told_ends(e->type, e->error)) {
        p->on = NULL;
    }
    buffer_put(&data, e->bond.data, e->bond.size);
    buffer_put(&data, e->bytes.data, e->bytes.size);
    if (e->type == RUNTIME_PUSH) {
        push_put(&data, e->push);
    } else if (e->type == RUNTIME_CALL) {
        buffer_put(&data, e->call->from.data, e->call->from.size);
        buffer_put(&data, e->call->id.data, e->call->id.size);
        buffer_put(&data, e->call->payload.data, e->call->payload.size);
    }
    struct told *t = mem_new(1, sizeof *t + data.size);

    *t = (struct told){.part = p->id, .event = *e, .bond_size = e->bond.size, .size = data.size};
    if (e->type == RUNTIME_CALL) {
        t->call = *e->call;
        t->from_size = e->call->from.size;
        t->id_size = e->call->id.size;
    }
    if (e->type == RUNTIME_PUSH) {
        t->event.session = e->push->gateway;
        t->connection = e->push->connection;
        t->pushed = e->push->number;
        t->round = e->push->round;
    }
    if (data.size > 0) {
        memcpy(t->data, data.data, data.size);
    }
    buffer_fini(&data);
    post(s, t);
}

/* ---- life ---- */

void sim_runtime_open(struct fleet *f, struct sim_node *n)
{
    if (f->players == NULL) {
        return;
    }
    struct sim_runtime *s = mem_new(1, sizeof *s);
    const struct runtime_config config = {.on_event = on_runtime, .context = s};

    s->fleet = f;
    s->node = n;
    s->runtime = runtime_new(&config);
    n->runtime = s;
}

void sim_runtime_close(struct sim_node *n)
{
    struct sim_runtime *s = n->runtime;

    if (s == NULL) {
        return;
    }
    n->runtime = NULL;
    s->closing = true;
    runtime_close(s->runtime, RH_STOP);
    drop_all(&s->first);
    drop_all(&s->gated);
    while (s->part != NULL) {
        part_free(s->part);
    }
    presence_fini(&s->presence);
    mem_free(s);
}

void sim_runtime_tick(struct fleet *f, struct sim_node *n)
{
    struct sim_runtime *s = n->runtime;
    uint64_t gateway = 0;

    (void)f;
    if (s == NULL) {
        return;
    }
    s->takes_us = 0;
    runtime_tick(s->runtime, clock_of(s));
    while (presence_gone(&s->presence, clock_of(s), &gateway)) {
        runtime_gateway_gone(s->runtime, gateway);
    }
    open_gate(s);
}

void sim_runtime_link(struct fleet *f, struct sim_node *n, const struct net_end *end, bool up)
{
    (void)f;
    if (n->runtime == NULL || end->other->role != ROLE_GATEWAY) {
        return;
    }
    if (up) {
        presence_up(&n->runtime->presence, end->other_incarnation, end->id);
    } else {
        presence_down(&n->runtime->presence, end->id, clock_of(n->runtime));
    }
}

void sim_runtime_renew(struct sim_node *n)
{
    if (n->runtime != NULL) {
        drop_all(&n->runtime->gated);
    }
}

/* ---- what the host wants ---- */

static void enter(struct sim_runtime *s, const struct host_effect *e, struct bytes bytes)
{
    struct part *p = mem_new(1, sizeof *p);
    const struct runtime_entry entry = {
        .ops = actor_kind(e->actor) == FLEET_KIND_HERO ? &hero_ops : &loner_ops,
        .shared = s,
        .actor = p,
        .id = actor_id(e->actor),
        .bond = bytes_of(bytes.data, e->bond_size),
        .state = bytes_of(bytes.data + e->bond_size, bytes.size - e->bond_size),
        .has_state = e->has_state,
        .kind = actor_kind(e->actor),
        .fence = e->fence};

    p->id = ++s->fleet->instance_count;
    p->runtime = s;
    p->actor = e->actor;
    p->next = s->part;
    s->part = p;
    actor_set_instance(e->actor, p);
    s->bonded = !e->has_state && e->bond_size > 0;
    struct rh_actor *on = runtime_activate(s->runtime, &entry);
    p->on = on;
}

static void leave(struct part *p, enum discard_why why)
{
    static const enum rh_why whys[] = {[DISCARD_MOVED] = RH_MOVED,
                                       [DISCARD_STOP] = RH_STOP,
                                       [DISCARD_FENCED] = RH_FENCED,
                                       [DISCARD_BROKEN] = RH_BROKEN,
                                       [DISCARD_ERA] = RH_FENCED};

    if (p->on != NULL) {
        runtime_discard(p->on, whys[why]);
    }
    part_free(p);
}

/* A note to the hero is looked at on its way. */
static void look_at_note(const struct part *p, const struct host_effect *e, struct bytes body)
{
    struct fleet *f = p->runtime->fleet;
    struct caller from;
    struct note note;

    if (((e->flags & REQUEST_CALL) != 0 && caller_get(&body, &from) != ERR_OK) ||
        note_get(body, &note) != ERR_OK) {
        world_violate(&f->world, "codec", "a note does not decode");
    } else if (note.type == NOTE_PUSH) {
        check_cast_runs(f, hero_named(f, actor_id(p->actor)), note.payload);
    } else {
        TRACE(&f->world,
              p->runtime->node->process.name,
              "a note: type %u, gateway %llx, connection %llx, round %u, session %llx, key %llx, "
              "why %u",
              note.type,
              (unsigned long long)note.gateway,
              (unsigned long long)note.connection,
              note.round,
              (unsigned long long)note.session,
              (unsigned long long)note.key,
              note.why);
    }
}

/* A broadcast has run: it is a push if somebody is bound. */
static void look_at_cast(const struct part *p, const struct host_effect *e, struct bytes body,
                         uint64_t before)
{
    struct fleet *f = p->runtime->fleet;
    struct caller from;
    struct note note;

    if (((e->flags & REQUEST_CALL) == 0 || caller_get(&body, &from) == ERR_OK) &&
        note_get(body, &note) == ERR_OK && note.type == NOTE_PUSH &&
        bonded_pushes(p->on) != before) {
        check_cast_pushed(f,
                          hero_named(f, actor_id(p->actor)),
                          note.payload,
                          check_pushed(f,
                                       (struct pushed){.spell = hero_spell(bonded_instance(p->on)),
                                                       .size = note.payload.size}));
    }
}

static void run(struct part *p, const struct host_effect *e, struct bytes body)
{
    const uint64_t before = bonded_pushes(p->on);

    if ((e->flags & REQUEST_SESSION) != 0) {
        look_at_note(p, e, body);
    }
    const struct runtime_message m = {.ticket = e->ticket,
                                      .flags = e->flags,
                                      .body = body,
                                      .chain_count = e->chain_count,
                                      .chain = e->chain};

    runtime_run(p->on, &m);
    if ((e->flags & REQUEST_SESSION) != 0) {
        look_at_cast(p, e, body, before);
    }
}

static void perform(struct sim_runtime *s, const struct host_effect *e, struct bytes bytes)
{
    struct part *p = actor_instance(e->actor);

    if (e->type == HOST_ACTIVATE) {
        enter(s, e, bytes);
        return;
    }
    if (p == NULL) {
        ASSERT(e->type == HOST_DISCARD);
        return;
    }
    if (e->type == HOST_DISCARD) {
        actor_set_instance(e->actor, NULL);
        leave(p, e->discard_why);
    } else if (e->type == HOST_RUN) {
        run(p, e, bytes);
    } else if (e->type == HOST_TURN) {
        runtime_turn(p->on, e->ticket);
    } else if (e->type == HOST_EXPORT) {
        runtime_export(p->on);
    } else if (e->type == HOST_UNFREEZE) {
        runtime_unfreeze(p->on);
    } else {
        runtime_retire(p->on);
    }
}

static const char *wish_name(const struct host_effect *e)
{
    switch ((int)e->type) {
    case HOST_ACTIVATE:
        return e->bond_size > 0 ? "begins, with a client" : "begins";
    case HOST_RUN:
        return (e->flags & REQUEST_SESSION) != 0 ? "runs a note" : "runs a request";
    case HOST_TURN:
        return "has a turn";
    case HOST_EXPORT:
        return "freezes";
    case HOST_UNFREEZE:
        return "unfreezes";
    case HOST_DISCARD:
        return "is discarded";
    default:
        return "retires";
    }
}

bool sim_runtime_takes(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                       struct bytes bytes)
{
    struct sim_runtime *s = n->runtime;

    if (s == NULL || !players_has(actor_kind(e->actor))) {
        return false;
    }
    TRACE(&f->world,
          n->process.name,
          "%.*s: %s",
          (int)actor_id(e->actor).size,
          (const char *)actor_id(e->actor).data,
          wish_name(e));
    runtime_set_now(s->runtime, clock_of(s));
    s->takes_us = players_between(f, 0, players_chance(f, 30) ? 300000 : f->faults.run_max_us);
    perform(s, e, bytes);
    return true;
}

/* ---- for heroes */

struct fleet *sim_runtime_fleet(const struct sim_runtime *s)
{
    return s->fleet;
}

const struct sim_node *sim_runtime_node(const struct sim_runtime *s)
{
    return s->node;
}

bool sim_runtime_bonded(const struct sim_runtime *s)
{
    return s->bonded;
}
