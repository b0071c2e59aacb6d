/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's runtime, on which session actors live: what the host submits is done there, as a
 * worker does it, and what the runtime completes comes back a while later, in order.
 * Pushes go to gateways by the links that there are (node/pushes_uv.c).
 */
#include "base/assert.h"
#include "base/mem.h"
#include "node/bridge/bridge.h"
#include "sim/players/players.h"
#include "sim/players/session_probe.h"

#include <string.h>

/* One incarnation of a session actor in this process. */
struct sim_part {
    struct sim_part *next;
    uint64_t id; /* in its fleet */
    struct rh_actor *activation;
};

struct completed {
    struct completed *next;
    uint64_t part;
    struct completion completion; /* its activation; NULL = was discarded, it is dropped */
    size_t size;
    uint64_t connection; /* of a push, for the trace: also … */
    uint64_t pushed;     /* … its number … */
    uint32_t round;      /* … and this */
    uint64_t data[];     /* what the completion borrows */
};

struct sim_runtime {
    struct fleet *fleet;
    struct sim_node *node;
    struct runtime *runtime;
    struct presence presence;
    struct sim_part *part;   /* owned */
    struct completed *first; /* owned: on its way to the host */
    struct completed *last;
    struct completed *gated; /* owned: pushes that wait in their link, for the lease */
    uint64_t told_us;        /* when the newest arrives there */
    uint64_t takes_us;       /* what is done now takes so long */
    uint64_t idle_us;        /* when its node was last found without an active lease */
    bool unheard_client;     /* who is made comes cold, with a client */
    bool closing;
};

static uint64_t clock_of(const struct sim_runtime *s)
{
    return sim_clock_read(&s->node->process.clock, s->fleet->world.now_us);
}

static struct sim_part **part_of(struct sim_runtime *s, const struct rh_actor *r)
{
    struct sim_part **at = &s->part;

    while ((*at)->activation != r) {
        at = &(*at)->next;
    }
    return at;
}

/* Nothing of it is left; what it completed and is on its way is dropped. */
static void part_end(struct sim_runtime *s, struct rh_actor *r)
{
    struct sim_part **at = part_of(s, r);
    struct sim_part *p = *at;

    for (struct completed *t = s->first; t != NULL; t = t->next) {
        t->completion.actor = t->completion.actor == r ? NULL : t->completion.actor;
    }
    *at = p->next;
    activation_free(r);
    mem_free(p);
}

static void drop_all(struct completed **first)
{
    while (*first != NULL) {
        struct completed *t = *first;

        *first = t->next;
        mem_free(t);
    }
}

/* ---- pushes ---- */

static void send_push(struct sim_runtime *s, const struct completed *t)
{
    struct net_end *end =
        network_end(&s->fleet->network, presence_link(&s->presence, t->completion.number));

    TRACE(&s->fleet->world,
          s->node->process.name,
          "push %llu of round %u to connection %llx %s",
          (unsigned long long)t->pushed,
          t->round,
          (unsigned long long)t->connection,
          end == NULL ? "has no link" : "leaves");
    if (end != NULL) {
        check_output(s->fleet, s->node);
        network_send(&s->fleet->network, end, FRAME_PUSH, t->completion.bytes);
    }
}

static void open_gate(struct sim_runtime *s)
{
    while (s->gated != NULL && !node_is_gated(s->fleet, s->node)) {
        struct completed *t = s->gated;

        s->gated = t->next;
        send_push(s, t);
        mem_free(t);
    }
}

/* It stays the caller's. The gate of the links holds it back past the end of the lease. */
static void on_push(struct sim_runtime *s, const struct completed *t)
{
    struct completed **at = &s->gated;

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
    completion_copy(&t->completion, &(*at)->completion, (uint8_t *)(*at)->data);
}

/* ---- what the runtime completes ---- */

static void tell_host(struct sim_runtime *s, const struct completed *t)
{
    const struct completion *c = &t->completion;
    struct host_event event;

    if (c->actor == NULL || !bridge_complete(c, &event)) {
        return; // it was discarded meanwhile
    }
    if (c->verb == VERB_EXPORT || c->verb == VERB_COPY) {
        event.completion.number =
            s->node->calls == NULL ? 0 : calls_under_way(s->node->calls, t->part);
    }
    if (completion_ends(c)) {
        part_end(s, c->actor);
    }
    node_step(s->fleet, s->node, event);
}

/* What an incarnation asks of others is in its own order; the other actors of the node, which are
 * on no runtime, are named by the same count. */
static void tell_calls(struct sim_runtime *s, const struct completed *t)
{
    struct call call = *t->completion.call;

    call.session = t->part;
    node_calls_ask(s->fleet, s->node, &call);
}

static void on_completed(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];
    struct sim_runtime *s = n->runtime;

    if (!n->process.up || n->process.life != event->b) {
        return;
    }
    struct completed *t = s->first;
    s->first = t->next;
    s->last = s->first == NULL ? NULL : s->last;
    switch ((int)t->completion.verb) {
    case VERB_PUSH:
        on_push(s, t);
        break;
    case VERB_BIND:
        presence_bound(&s->presence, t->completion.number, clock_of(s));
        break;
    case VERB_CALL:
        tell_calls(s, t);
        break;
    case VERB_END_CALLS:
        node_calls_close(s->fleet, s->node, t->part);
        break;
    default:
        tell_host(s, t);
        break;
    }
    mem_free(t);
}

static void queue(struct sim_runtime *s, struct completed *t)
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
             (struct world_event){.run = on_completed,
                                  .context = s->fleet,
                                  .a = (uint64_t)(s->node - s->fleet->node),
                                  .b = s->node->process.life,
                                  .gate = &s->node->process.gate});
}

static void on_completion(void *context, const struct completion *c)
{
    struct sim_runtime *s = context;
    struct completion whole = *c;
    struct buffer record = {0};

    if (s->closing || c->verb == VERB_DISCARD) {
        return;
    }
    ASSERT(c->verb != VERB_DEFER);
    if (c->verb == VERB_PUSH) {
        push_put(&record, c->push);
        whole.bytes = buffer_bytes(&record);
        whole.number = c->push->gateway;
    }
    const size_t size = completion_size(&whole);
    struct completed *t = mem_new(1, sizeof *t + size);

    *t = (struct completed){.part = (*part_of(s, c->actor))->id, .size = size};
    completion_copy(&whole, &t->completion, (uint8_t *)t->data);
    if (c->verb == VERB_PUSH) {
        t->connection = c->push->connection;
        t->pushed = c->push->number;
        t->round = c->push->round;
    }
    buffer_fini(&record);
    queue(s, t);
}

/* ---- life ---- */

void sim_runtime_open(struct fleet *f, struct sim_node *n)
{
    if (f->players == NULL) {
        return;
    }
    struct sim_runtime *s = mem_new(1, sizeof *s);
    const struct runtime_config config = {.on_completion = on_completion, .context = s};

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
        struct sim_part *next = s->part->next;

        mem_free(s->part);
        s->part = next;
    }
    presence_fini(&s->presence);
    mem_free(s);
}

void sim_runtime_tick(struct fleet *f, struct sim_node *n)
{
    struct sim_runtime *s = n->runtime;
    struct host_stats figures;
    uint64_t gateway = 0;

    if (s == NULL) {
        return;
    }
    host_stats(n->core, &figures);
    if (figures.lease_in_force && figures.lease != LEASE_ACTIVE) {
        s->idle_us = f->world.now_us;
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

/* ---- what the host submits ---- */

static void part_begin(struct sim_runtime *s, const struct submission *what)
{
    struct sim_part *p = mem_new(1, sizeof *p);

    *p = (struct sim_part){
        .next = s->part, .id = ++s->fleet->instance_count, .activation = what->activation};
    s->part = p;
    s->unheard_client = !what->has_state && what->head_size > 0;
}

/* A note to the actor is looked at on its way. */
static void look_at_note(struct sim_runtime *s, const struct submission *what, struct bytes body)
{
    struct caller from;
    struct note note;

    if (((what->flags & REQUEST_CALL) != 0 && caller_get(&body, &from) != ERR_OK) ||
        note_get(body, &note) != ERR_OK) {
        world_violate(&s->fleet->world, "codec", "a note does not decode");
    } else if (note.type == NOTE_PUSH) {
        check_broadcast_runs(s->fleet,
                             session_actor_named(s->fleet, activation_name(what->activation).id),
                             note.payload);
    } else {
        TRACE(&s->fleet->world,
              s->node->process.name,
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
static void look_at_broadcast(struct fleet *f, const struct submission *what, struct bytes body,
                              uint64_t before)
{
    struct rh_actor *r = what->activation;
    struct caller from;
    struct note note;

    if (((what->flags & REQUEST_CALL) == 0 || caller_get(&body, &from) == ERR_OK) &&
        note_get(body, &note) == ERR_OK && note.type == NOTE_PUSH &&
        session_probe_pushes(r) != before) {
        check_broadcast_pushed(
            f,
            session_actor_named(f, activation_name(r).id),
            note.payload,
            check_pushed(f,
                         (struct pushed){.spell = session_actor_spell(session_probe_instance(r)),
                                         .size = note.payload.size}));
    }
}

/* The stamp of the bond that the note is about, where the note gives none of its own. */
static struct bond_stamp stamp_of(const struct submission *what, struct bytes body)
{
    const struct bond_stamp none = {0};
    struct caller from;
    struct note note;

    if (((what->flags & REQUEST_CALL) != 0 && caller_get(&body, &from) != ERR_OK) ||
        note_get(body, &note) != ERR_OK || note.type == NOTE_RESUME || note.type == NOTE_RENEW) {
        return none;
    }
    return session_probe_stamp(what->activation, &note);
}

/* Whoever is bound anew, or comes back by a key, gets one of this node. */
static void look_at_bond(struct sim_runtime *s, const struct submission *what, struct bytes body,
                         struct bond_stamp before)
{
    const struct bond_stamp stamp = stamp_of(what, body);

    if (stamp.count != 0 && (stamp.fence != before.fence || stamp.count != before.count)) {
        check_bond(s->fleet,
                   session_actor_named(s->fleet, activation_name(what->activation).id),
                   s->node,
                   stamp);
    }
}

static void perform(struct sim_runtime *s, const struct submission *what, struct bytes bytes)
{
    const bool note = what->verb == VERB_RUN && (what->flags & REQUEST_SESSION) != 0 &&
                      !activation_has_ended(what->activation); // that one is refused
    const struct bytes body = submission_rest(what, bytes);
    struct bond_stamp stamp = {0};
    uint64_t before = 0;

    if (what->verb == VERB_ACTIVATE) {
        part_begin(s, what);
    }
    if (what->verb == VERB_RUN || what->verb == VERB_TURN) { // it was copied, and goes on
        session_actor_named(s->fleet, activation_name(what->activation).id)->moving_us = 0;
    }
    if (what->verb == VERB_RETIRE) { // its turn comes behind that, if it goes on
        session_actor_named(s->fleet, activation_name(what->activation).id)->thawed_us = 0;
    }
    if (note) {
        before = session_probe_pushes(what->activation);
        stamp = stamp_of(what, body);
        look_at_note(s, what, body);
    }
    runtime_perform(s->runtime, what, bytes);
    if (note) {
        look_at_broadcast(s->fleet, what, body, before);
        look_at_bond(s, what, body, stamp);
    }
    if (what->verb == VERB_DISCARD) {
        part_end(s, what->activation);
    }
}

static const char *wish_name(const struct submission *what)
{
    switch ((int)what->verb) {
    case VERB_ACTIVATE:
        return what->head_size > 0 ? "begins, with a client" : "begins";
    case VERB_RUN:
        return (what->flags & REQUEST_SESSION) != 0 ? "runs a note" : "runs a request";
    case VERB_TURN:
        return "has a turn";
    case VERB_EXPORT:
        return "freezes";
    case VERB_COPY:
        return "is copied";
    case VERB_UNFREEZE:
        return "unfreezes";
    case VERB_DISCARD:
        return "is discarded";
    default:
        return "retires";
    }
}

bool sim_runtime_takes(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                       struct bytes bytes)
{
    struct sim_runtime *s = n->runtime;
    const struct rh_actor_ops *ops = actor_kind(e->actor) == FLEET_KIND_SEVERAL ? &several_ops
                                     : actor_kind(e->actor) == FLEET_KIND_SESSION
                                         ? &session_actor_ops
                                     : f->profile == PROFILE_CALM ? &rejecting_ops
                                                                  : &brief_ops;
    struct submission what;

    if (s == NULL || !sim_players_has(actor_kind(e->actor))) {
        return false;
    }
    TRACE(&f->world,
          n->process.name,
          "%.*s: %s",
          (int)actor_id(e->actor).size,
          (const char *)actor_id(e->actor).data,
          wish_name(&e->submission));
    runtime_set_now(s->runtime, clock_of(s));
    s->takes_us =
        sim_players_between(f, 0, sim_players_chance(f, 30) ? 300000 : f->faults.run_max_us);
    if (bridge_submit(s->runtime, ops, s, e, &what)) {
        perform(s, &what, bytes);
    }
    return true;
}

/* ---- for session actors */

struct fleet *sim_runtime_fleet(const struct sim_runtime *s)
{
    return s->fleet;
}

const struct sim_node *sim_runtime_node(const struct sim_runtime *s)
{
    return s->node;
}

size_t sim_runtime_retiring(const struct sim_node *n)
{
    size_t count = 0;

    for (const struct completed *t = n->runtime == NULL ? NULL : n->runtime->first; t != NULL;
         t = t->next) {
        count += t->completion.verb == VERB_RETIRE && t->completion.actor != NULL;
    }
    return count;
}

uint64_t sim_runtime_idle_us(const struct sim_node *n)
{
    return n->runtime->idle_us;
}

bool sim_runtime_unheard_client(const struct sim_runtime *s)
{
    return s->unheard_client;
}
