/* SPDX-License-Identifier: Apache-2.0
 *
 * Session actors whose kind allows several clients at a time. Such an actor pushes to one and to
 * all, kicks them, passes them on to the other such actor, fails, ends itself, is busy when it
 * shall move, or moves cold. What it hears must make sense to it.
 *
 *     push to one:  | spell u64 | number in it u64 | filler |
 *     push to all:  | TO_ALL_MARK u64 | number u64 | filler |
 *     request:      | number u64 | noise |, answered by its number
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/players/players.h"
#include "sim/players/session_probe.h"

#include <string.h>

struct memory {
    uint64_t count;
    struct known_session known[KNOWN_MAX];
};

struct life {
    struct fleet *fleet;
    struct sim_runtime *runtime;
    struct session_actor *actor;
    uint64_t number; /* as session_actor.lives */
    bool ended;      /* by rh_passivate() or rh_fail() */
    struct memory knows;
};

static struct known_session *known_of(struct life *l, uint64_t session)
{
    for (size_t i = 0; i < l->knows.count; i++) {
        if (l->knows.known[i].session == session) {
            return &l->knows.known[i];
        }
    }
    return NULL;
}

static void forget(struct life *l, struct known_session *g)
{
    *g = l->knows.known[--l->knows.count];
}

/* A new one; in the place of the one that is away for longest if there is no room, for that can't
 * be there any more. */
static struct known_session *known_new(struct life *l, uint64_t session)
{
    if (l->knows.count == KNOWN_MAX) {
        struct known_session *oldest = l->knows.known;

        for (size_t i = 1; i < KNOWN_MAX; i++) {
            struct known_session *g = &l->knows.known[i];

            // One that is there has missed_us 0: it counts as the newest.
            if (g->missed_us - 1 < oldest->missed_us - 1) {
                oldest = g;
            }
        }
        forget(l, oldest);
    }
    struct known_session *g = &l->knows.known[l->knows.count++];

    *g = (struct known_session){.session = session};
    return g;
}

/* What the newest incarnation knows is the truth. */
static void returns(const struct life *l)
{
    struct session_actor *h = l->actor;

    if (l->number == h->lives) {
        h->known_count = l->knows.count;
        memcpy(h->known, l->knows.known, sizeof h->known);
    }
}

/* ---- pushes ---- */

static int push_bytes(struct rh_actor *actor, const struct known_session *g, const uint64_t head[2],
                      size_t more)
{
    static const uint8_t filler[FILLER_MAX];
    struct buffer payload = {0};
    int result = RH_OK;

    buffer_put(&payload, head, 2 * sizeof *head);
    buffer_put(&payload, filler, more);
    const struct rh_bytes bytes = {payload.data, payload.size};

    result = g == NULL ? rh_push(actor, bytes) : rh_push_one(actor, g->session, bytes);
    buffer_fini(&payload);
    return result;
}

/* False: it is over, and forgotten if nothing more can be heard of it. */
static bool push_one(struct rh_actor *actor, struct life *l, struct known_session *g)
{
    const size_t more = session_actor_filler(l->fleet);
    const uint64_t head[2] = {g->spell, g->made + 1};
    const int result = push_bytes(actor, g, head, more);

    if (result == RH_OK) {
        if (g->leaves != KNOWN_STAYS) {
            world_violate(&l->fleet->world,
                          "session",
                          "%s pushes to a client that it has sent away",
                          l->actor->who.id);
        }
        g->made++;
        (void)check_pushed(l->fleet, (struct pushed){g->spell, g->made, sizeof head + more});
        return true;
    }
    if (result == RH_NO_SESSION && g->missed_us != 0) {
        if (g->leaves != KNOWN_REBOUND && g->leaves != KNOWN_ENDS) {
            // It did not come back in time, by a clock that is up to 6 % fast; or was kicked.
            l->actor->losses += l->fleet->world.now_us - g->missed_us >
                                session_actor_resume_ms(l->fleet, l->actor) * 900;
            forget(l, g);
        }
    } else if (g->leaves == KNOWN_STAYS) {
        g->leaves = KNOWN_ENDS;
        if (result != RH_NO_SESSION ||
            (l->actor->colds == 0 && !session_actor_stood_still(l->fleet, l->actor))) {
            world_violate(&l->fleet->world,
                          "session",
                          "%s may not push (%d), although its client is there",
                          l->actor->who.id,
                          result);
        }
    }
    return false;
}

/* One push to each shows who is there; then one to all reaches just those. */
static void push_all(struct rh_actor *actor, struct life *l)
{
    for (size_t i = l->knows.count; i > 0; i--) {
        (void)push_one(actor, l, &l->knows.known[i - 1]);
    }
    const size_t more = session_actor_filler(l->fleet);
    const uint64_t head[2] = {TO_ALL_MARK, ++l->actor->broadcasts};
    size_t reached = 0;

    const bool made = push_bytes(actor, NULL, head, more) == RH_OK;
    for (size_t i = 0; made && i < l->knows.count; i++) {
        const struct known_session *g = &l->knows.known[i];

        if (g->leaves == KNOWN_STAYS) {
            (void)check_pushed(
                l->fleet, (struct pushed){g->spell, TO_ALL_MARK | head[1], sizeof head + more});
            reached++;
        }
    }
    if (made != (reached > 0)) {
        world_violate(
            &l->fleet->world, "session", "%s pushes to none of its clients", l->actor->who.id);
    }
}

/* ---- its life ---- */

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct sim_runtime *s = rh_shared(actor);
    struct fleet *f = sim_runtime_fleet(s);
    struct session_actor *h =
        session_actor_named(f, bytes_of(rh_id(actor).data, rh_id(actor).size));

    (void)fence;
    if (sim_players_chance(f, f->faults.activate_fail_pm)) {
        return RH_FAILED;
    }
    struct life *l = mem_new(1, sizeof *l);
    *l = (struct life){.fleet = f, .runtime = s, .actor = h, .number = ++h->lives};
    *instance = l;
    if (state != NULL) {
        ASSERT(state->size == sizeof l->knows);
        memcpy(&l->knows, state->data, sizeof l->knows);
        f->players->total.moved += l->knows.count > 0;
    }
    check_several_begins(f, h, l->knows.known, l->knows.count, state != NULL);
    returns(l);
    session_actor_listened(l->fleet, l->actor);
    return RH_OK;
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct life *l = instance;

    (void)actor;
    if (!l->fleet->healed && sim_players_chance(l->fleet, l->fleet->players->busy_pm)) {
        return RH_BUSY;
    }
    if (!l->fleet->healed && sim_players_chance(l->fleet, l->fleet->players->cold_pm)) {
        return RH_COLD;
    }
    rh_out_put(out, &l->knows, sizeof l->knows);
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct life *l = instance;

    (void)actor;
    if (why != RH_MOVED && l->number == l->actor->lives) {
        l->actor->known_count = 0;
        l->actor->losses++;
    }
    mem_free(instance);
}

/* ---- what it is asked ---- */

static void sends_away(struct rh_actor *actor, struct life *l, struct known_session *g, bool kicks)
{
    struct session_actor *h = l->actor;
    struct session_actor *other =
        h + 1 < l->fleet->players->actor + l->fleet->players->actors ? h + 1 : h - 1;
    const int result = kicks ? rh_kick_one(actor, g->session, RH_KICK_GAME, "out")
                             : rh_rebind_one(actor,
                                             g->session,
                                             other->who.kind,
                                             (struct rh_bytes){other->who.id, other->who.id_size});

    if (result != RH_OK) {
        return;
    }
    h->losses++;
    h->kicks += kicks;
    h->rebinds += !kicks;
    g->leaves = kicks ? KNOWN_KICKED : KNOWN_REBOUND;
    check_known_leaves(l->fleet, g);
    if (kicks && g->missed_us != 0) { // of one that is away nothing more is told
        forget(l, g);
    }
}

static void do_something(struct rh_actor *actor, struct life *l)
{
    struct fleet *f = l->fleet;
    struct sim_players *p = f->players;

    for (uint64_t i = sim_players_between(f, 0, 2); i > 0 && l->knows.count > 0; i--) {
        (void)push_one(actor, l, &l->knows.known[sim_players_between(f, 0, l->knows.count - 1)]);
    }
    if (sim_players_chance(f, 400) && !session_probe_untold(actor)) {
        push_all(actor, l);
    }
    if (f->healed) {
        return;
    }
    if (l->knows.count > 0 && sim_players_chance(f, p->kicks_pm + 20)) {
        sends_away(actor,
                   l,
                   &l->knows.known[sim_players_between(f, 0, l->knows.count - 1)],
                   sim_players_chance(f, 400));
    }
    l->ended = session_actor_may_end(actor, f, l->actor);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct life *l = instance;
    const uint64_t number = session_actor_takes(l->fleet, l->actor, l->ended, message);

    check_player_run(l->fleet, l->actor, number);
    do_something(actor, l);
    returns(l);
    (void)rh_reply(actor, rh_bytes_value(&number, sizeof number));
}

/* ---- what it hears of its clients ---- */

static void begin_spell(struct rh_actor *actor, struct life *l, uint64_t session, bool goes_on)
{
    struct known_session *g = known_of(l, session);

    g = g == NULL ? known_new(l, session) : g;
    *g = (struct known_session){.session = session};
    g->spell = check_known_spell(l->fleet, l->actor, session, goes_on);
    (void)push_one(actor, l, g);
}

static void on_lost(struct rh_actor *actor, struct life *l, struct known_session *g, uint32_t why)
{
    const uint64_t session = g->session;

    g->missed_us = l->fleet->world.now_us;
    if ((g->leaves == KNOWN_REBOUND || g->leaves == KNOWN_ENDS) && why != RH_LOST_REBOUND) {
        return; // it has not heard that it was passed on, and is told when it comes back
    }
    if (g->leaves != KNOWN_STAYS || !push_one(actor, l, g)) {
        l->actor->losses++;       // it was sent away, or left
        g = known_of(l, session); // the push may have forgotten it
        if (g != NULL) {
            forget(l, g);
        }
    }
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *e)
{
    struct life *l = instance;
    const uint64_t pushes = session_probe_pushes_of(actor, e->session);
    struct known_session *g = known_of(l, e->type == RH_SESSION_REPLACED ? e->former : e->session);

    TRACE(&l->fleet->world,
          sim_runtime_node(l->runtime)->process.name,
          "%s hears %u of %llx, why %u",
          l->actor->who.id,
          e->type,
          (unsigned long long)e->session,
          e->why);
    check_known_heard(l->fleet, l->actor, e, g);
    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_REPLACED:
        if (g != NULL) {
            forget(l, g);
        }
        begin_spell(actor, l, e->session, false);
        break;
    case RH_SESSION_BOUND:
        begin_spell(actor, l, e->session, false);
        break;
    case RH_SESSION_RESUMED:
        if (e->why == RH_RESUMED_AFRESH) {
            begin_spell(actor, l, e->session, pushes > 0 && pushes != UINT64_MAX);
        } else if (g != NULL) {
            g->missed_us = 0;
            (void)push_one(actor, l, g);
        }
        break;
    case RH_SESSION_LOST:
        if (g != NULL) {
            on_lost(actor, l, g, e->why);
        }
        break;
    }
    returns(l);
    session_actor_listened(l->fleet, l->actor);
    return RH_OK;
}

const struct rh_actor_ops several_ops = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "several",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .session = on_session,
    .sessions = RH_SESSIONS_ALLOW,
    .sessions_max = SEVERAL_MAX,
    .resume_ms = SESSION_RESUME_MS,
    .ahead = 1,
};
