/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's worker of session actors. Their pushes go to gateways by the links that there are
 * (node/pushes_uv.c).
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/players/players.h"
#include "sim/players/session_probe.h"
#include "sim/worker.h"

#include <string.h>

struct sim_runtime {
    struct sim_worker worker;
    struct presence presence;
    struct sim_completed *gated; /* owned: pushes that wait in their link, for the lease */
    uint64_t idle_us;            /* when its node was last found without an active lease */
    bool unheard_client;         /* who is made comes cold, with a client */
};

/* ---- pushes ---- */

static void send_push(struct sim_runtime *s, const struct sim_completed *t)
{
    struct net_end *end =
        network_end(&s->worker.fleet->network, presence_link(&s->presence, t->completion.number));
    struct reader in = {.at = t->completion.bytes.data, .left = t->completion.bytes.size};
    struct push_record push;
    const enum err error = push_get(&in, &push);

    ASSERT(error == ERR_OK);
    TRACE(&s->worker.fleet->world,
          s->worker.node->process.name,
          "push %llu of round %u to connection %llx %s",
          (unsigned long long)push.number,
          push.round,
          (unsigned long long)push.connection,
          end == NULL ? "has no link" : "leaves");
    if (end != NULL) {
        check_output(s->worker.fleet, s->worker.node);
        network_send(&s->worker.fleet->network, end, FRAME_PUSH, t->completion.bytes);
    }
}

static void open_gate(struct sim_runtime *s)
{
    while (s->gated != NULL && !node_is_gated(s->worker.fleet, s->worker.node)) {
        struct sim_completed *t = s->gated;

        s->gated = t->next;
        send_push(s, t);
        mem_free(t);
    }
}

/* It stays the caller's. The gate of the links holds it back past the end of the lease. */
static void on_push(struct sim_runtime *s, const struct sim_completed *t)
{
    struct sim_completed **at = &s->gated;

    open_gate(s);
    if (!node_is_gated(s->worker.fleet, s->worker.node)) {
        send_push(s, t);
        return;
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = sim_completed_new(&t->completion, t->life);
}

/* ---- what the runtime completes ---- */

static bool on_arrived(struct sim_worker *w, const struct sim_completed *t)
{
    struct sim_runtime *s = CONTAINER_OF(w, struct sim_runtime, worker);

    switch ((int)t->completion.verb) {
    case VERB_PUSH:
        on_push(s, t);
        return true;
    case VERB_BIND:
        presence_bound(&s->presence, t->completion.number, sim_worker_clock(w));
        return true;
    default:
        return false;
    }
}

static void on_completion(void *context, const struct completion *c)
{
    struct sim_runtime *s = context;
    struct completion whole = *c;
    struct buffer record = {0};

    ASSERT(c->verb != VERB_DEFER);
    if (c->verb == VERB_PUSH) {
        push_put(&record, c->push);
        whole.bytes = buffer_bytes(&record);
        whole.number = c->push->gateway;
    }
    sim_worker_tell(&s->worker, &whole);
    buffer_fini(&record);
}

/* ---- life ---- */

void sim_runtime_open(struct fleet *f, struct sim_node *n)
{
    if (f->players == NULL) {
        return;
    }
    struct sim_runtime *s = mem_new(1, sizeof *s);
    const struct runtime_config config = {.on_completion = on_completion, .context = s};

    sim_worker_open(&s->worker, f, n, &config);
    s->worker.arrived = on_arrived;
    n->runtime = s;
}

void sim_runtime_close(struct sim_node *n)
{
    struct sim_runtime *s = n->runtime;

    if (s == NULL) {
        return;
    }
    n->runtime = NULL;
    sim_worker_close(&s->worker);
    sim_completed_free_all(&s->gated);
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
    s->worker.takes_us = 0;
    sim_worker_tick(&s->worker);
    while (presence_gone(&s->presence, sim_worker_clock(&s->worker), &gateway)) {
        runtime_gateway_gone(s->worker.runtime, gateway);
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
        presence_down(&n->runtime->presence, end->id, sim_worker_clock(&n->runtime->worker));
    }
}

void sim_runtime_renew(struct sim_node *n)
{
    if (n->runtime != NULL) {
        sim_completed_free_all(&n->runtime->gated);
    }
}

/* ---- what the host submits ---- */

/* A note to the actor is looked at on its way. */
static void look_at_note(struct sim_runtime *s, const struct submission *what, struct bytes body)
{
    struct caller from;
    struct note note;

    if (((what->flags & REQUEST_CALL) != 0 && caller_get(&body, &from) != ERR_OK) ||
        note_get(body, &note) != ERR_OK) {
        world_violate(&s->worker.fleet->world, "codec", "a note does not decode");
    } else if (note.type == NOTE_PUSH) {
        check_broadcast_runs(
            s->worker.fleet,
            session_actor_named(s->worker.fleet, activation_name(what->activation).id),
            note.payload);
    } else {
        TRACE(&s->worker.fleet->world,
              s->worker.node->process.name,
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
        check_bond(s->worker.fleet,
                   session_actor_named(s->worker.fleet, activation_name(what->activation).id),
                   s->worker.node,
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
        s->unheard_client = !what->has_state && what->head_size > 0;
    }
    if (what->verb == VERB_RUN || what->verb == VERB_TURN) { // it was copied, and goes on
        session_actor_named(s->worker.fleet, activation_name(what->activation).id)->moving_us = 0;
    }
    if (what->verb == VERB_RETIRE) { // its turn comes behind that, if it goes on
        session_actor_named(s->worker.fleet, activation_name(what->activation).id)->thawed_us = 0;
    }
    if (note) {
        before = session_probe_pushes(what->activation);
        stamp = stamp_of(what, body);
        look_at_note(s, what, body);
    }
    sim_worker_perform(&s->worker, what, bytes);
    if (note) {
        look_at_broadcast(s->worker.fleet, what, body, before);
        look_at_bond(s, what, body, stamp);
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
    runtime_set_now(s->worker.runtime, sim_worker_clock(&s->worker));
    s->worker.takes_us =
        sim_players_between(f, 0, sim_players_chance(f, 30) ? 300000 : f->faults.run_max_us);
    if (bridge_submit(s->worker.runtime, ops, s, e, &what)) {
        perform(s, &what, bytes);
    }
    return true;
}

/* ---- for session actors */

struct fleet *sim_runtime_fleet(const struct sim_runtime *s)
{
    return s->worker.fleet;
}

const struct sim_node *sim_runtime_node(const struct sim_runtime *s)
{
    return s->worker.node;
}

size_t sim_runtime_retiring(const struct sim_node *n)
{
    size_t count = 0;

    for (const struct sim_completed *t = n->runtime == NULL ? NULL : n->runtime->worker.first;
         t != NULL;
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
