/* SPDX-License-Identifier: Apache-2.0
 *
 * Session actors: the code of a game, whose actors have players. It pushes on its own,
 * when it is asked and when it hears of its client; it kicks, fails, ends itself,
 * is busy when it shall move, or moves cold. What it hears must make sense to it.
 *
 *     push:    | spell u64 | number in it u64 | filler |
 *     request: | number u64 | noise |, answered by its number; 0: of another actor (group_actor.c)
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/players/players.h"

#include <string.h>

/* What it knows, and hands over. */
struct memory {
    uint64_t spell;  /* 0 = it knows of no client */
    uint64_t made;   /* pushes of that */
    uint32_t client; /* as of struct session_actor */
    uint32_t kicked; /* by itself; it has not gone yet */
};

struct life {
    struct fleet *fleet;
    struct sim_runtime *runtime;
    struct session_actor *actor;
    uint64_t number;     /* as session_actor.lives */
    uint64_t due_us;     /* its timer, 0 = it was stopped */
    bool unheard_client; /* it came with a client that it knows nothing of yet */
    bool ended;          /* by rh_passivate() or rh_fail() */
    struct memory memory;
    struct group_actor groups;
};

struct session_actor *session_actor_named(struct fleet *f, struct bytes id)
{
    for (size_t i = 0; i < f->players->actors; i++) {
        struct session_actor *h = &f->players->actor[i];

        if (bytes_equal(id, bytes_of(h->who.id, h->who.id_size))) {
            return h;
        }
    }
    UNREACHABLE();
}

uint64_t session_actor_spell(const void *instance)
{
    const struct life *l = instance;

    return l->memory.spell != 0 && !l->unheard_client ? l->memory.spell : l->actor->spell;
}

/* ---- time ---- */

void session_actor_listened(const struct fleet *f, struct session_actor *h)
{
    if (h->listened_us != f->world.now_us) {
        h->rested_us = h->listened_us;
        h->listened_us = f->world.now_us;
    }
}

/* When it could be told of its client before this. That its gateway is missed it is told in a turn,
 * and requests that wait may run ahead of that: its node may have had no lease for long before. */
static uint64_t listened_before(const struct fleet *f, const struct session_actor *h)
{
    return h->listened_us == f->world.now_us ? h->rested_us : h->listened_us;
}

bool session_actor_stood_still(const struct fleet *f, const struct session_actor *h)
{
    return f->world.now_us - listened_before(f, h) >= session_actor_resume_ms(f, h) * 900;
}

/* ---- pushes ---- */

size_t session_actor_filler(struct fleet *f)
{
    const bool bulky = f->world.seed % 4 == 0;

    return sim_players_chance(f, bulky ? 700 : 50) ? sim_players_between(f, 1000, FILLER_MAX)
                                                   : sim_players_between(f, 0, 40);
}

uint64_t session_actor_takes(struct fleet *f, const struct session_actor *h, bool ended,
                             const struct rh_message *message)
{
    uint64_t number = 0;

    ASSERT(message->payload.size >= sizeof number);
    memcpy(&number, message->payload.data, sizeof number);
    if (ended) {
        world_violate(&f->world, "session", "%s runs after its end", h->who.id);
    }
    return number;
}

bool session_actor_may_end(struct rh_actor *actor, struct fleet *f, struct session_actor *h)
{
    bool ended = false;

    if (sim_players_chance(f, f->players->ends_pm) && rh_passivate(actor) == RH_OK) {
        ended = true;
        h->ends++;
        h->losses++;
    }
    if (sim_players_chance(f, f->players->fails_pm) && rh_fail(actor, "ERR broken") == RH_OK) {
        ended = true;
        h->losses++;
        h->colds++;
    }
    return ended;
}

static void push(struct rh_actor *actor, struct life *l)
{
    static const uint8_t filler[FILLER_MAX];
    const size_t more = session_actor_filler(l->fleet);
    const uint64_t head[2] = {l->memory.spell, l->memory.made + 1};
    struct buffer payload = {0};

    if (l->memory.client == CLIENT_NONE) {
        return;
    }
    buffer_put(&payload, head, sizeof head);
    buffer_put(&payload, filler, more);
    const int result = rh_push(actor, (struct rh_bytes){payload.data, payload.size});

    buffer_fini(&payload);
    if (result == RH_OK) {
        l->memory.made++;
        const struct pushed push = {l->memory.spell, l->memory.made, sizeof head + more};

        (void)check_pushed(l->fleet, push);
    } else if (l->memory.client == CLIENT_AWAY && result == RH_NO_SESSION) {
        l->memory.client = CLIENT_NONE; // it did not come back in time
        l->actor->client = CLIENT_NONE;
    } else if (l->memory.kicked == 0) {
        // It was kicked, so it has to hear next that it is gone; see check_heard().
        l->memory.kicked = 1;
        if (result != RH_NO_SESSION ||
            (l->actor->colds == 0 && !session_actor_stood_still(l->fleet, l->actor))) {
            world_violate(&l->fleet->world,
                          "session",
                          "%s may not push (%d), although its client is there",
                          l->actor->who.id,
                          result);
        }
    }
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct life *l = instance;

    (void)argument;
    l->due_us = 0;
    if (l->fleet->working) {
        l->due_us = l->fleet->world.now_us + l->fleet->players->push_ms * 1070;
        push(actor, l);
    } else {
        (void)rh_timer_stop(actor, timer);
    }
    session_actor_listened(l->fleet, l->actor);
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
    *l = (struct life){.fleet = f,
                       .runtime = s,
                       .actor = h,
                       .number = ++h->lives,
                       .unheard_client = sim_runtime_unheard_client(s)};
    *instance = l;
    if (h->missed_us != 0 && h->moving_us != 0) {
        h->missed_us += f->world.now_us - h->moving_us;
    }
    if (state != NULL) {
        ASSERT(state->size >= sizeof l->memory);
        memcpy(&l->memory, state->data, sizeof l->memory);
        group_actor_load(&l->groups,
                         (struct rh_bytes){(const uint8_t *)state->data + sizeof l->memory,
                                           state->size - sizeof l->memory});
        // It may have been taken for lost with the node that it comes from.
        if (h->client != CLIENT_NONE && h->client != l->memory.client) {
            world_violate(&f->world, "session", "%s comes with another client", h->who.id);
        }
        h->client = l->memory.client;
        f->players->total.moved += l->memory.client != CLIENT_NONE;
    } else {
        group_actor_open(&l->groups);
    }
    session_actor_listened(l->fleet, l->actor);
    check_incarnation(f, h, rh_incarnation(actor));
    check_session_actor_begins(
        f, h, sim_runtime_node(s), state != NULL, l->memory.spell, l->memory.made);
    l->due_us = f->world.now_us + f->players->push_ms * 1070; // at the latest
    h->moving_us = 0;
    h->thawed_us = f->world.now_us;
    (void)rh_timer_start(actor,
                         (uint32_t)sim_players_between(f, 1, f->players->push_ms),
                         (uint32_t)f->players->push_ms,
                         NULL);
    // What it told others before it moved may be under way still.
    if (state != NULL && f->players->groups && !f->healed) {
        group_actor_broadcasts(actor, f, h, &l->groups);
    }
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
    l->actor->moving_us = l->fleet->world.now_us;
    rh_out_put(out, &l->memory, sizeof l->memory);
    group_actor_save(&l->groups, out);
    return RH_OK;
}

static void on_resume(struct rh_actor *actor, void *instance)
{
    const struct life *l = instance;

    (void)actor;
    l->actor->thawed_us = l->fleet->world.now_us;
    l->actor->moving_us = 0;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct life *l = instance;

    (void)actor;
    if (why != RH_MOVED && l->number == l->actor->lives) {
        l->actor->client = CLIENT_NONE; // until it is begun afresh
        l->actor->losses++;
    }
    group_actor_close(&l->groups);
    mem_free(instance);
}

/* ---- what it is asked ---- */

static void do_something(struct rh_actor *actor, struct life *l)
{
    struct sim_players *p = l->fleet->players;

    for (uint64_t i = sim_players_between(l->fleet, 0, 3); i > 0; i--) {
        push(actor, l);
    }
    if (l->fleet->healed) {
        if (p->groups && l->fleet->working && sim_players_chance(l->fleet, p->broadcasts_pm)) {
            group_actor_broadcasts(actor, l->fleet, l->actor, &l->groups);
        }
        return;
    }
    if (p->groups) {
        group_actor_acts(actor, l->fleet, l->actor, &l->groups);
    }
    if (sim_players_chance(l->fleet, p->kicks_pm) && rh_kick(actor, RH_KICK_GAME, "out") == RH_OK) {
        l->actor->kicks++;
        l->actor->losses++;
        l->memory.kicked = 1;
        // Of one that is away nothing more is told.
        if (l->memory.client == CLIENT_AWAY) {
            l->memory.client = l->actor->client = CLIENT_NONE;
        }
    }
    l->ended = session_actor_may_end(actor, l->fleet, l->actor);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct life *l = instance;
    const uint64_t number = session_actor_takes(l->fleet, l->actor, l->ended, message);

    if (number == 0) {
        group_actor_hears(l->fleet, l->actor, &l->groups, message->payload);
        return;
    }
    check_timer(l->fleet, l->actor, sim_runtime_node(l->runtime), l->due_us);
    check_player_run(l->fleet, l->actor, number);
    if (number % 2 == 0) { // What it does after its answer counts as well.
        (void)rh_reply(actor, rh_bytes_value(&number, sizeof number));
    }
    do_something(actor, l);
    if (number % 2 != 0) {
        (void)rh_reply(actor, rh_bytes_value(&number, sizeof number));
    }
}

/* ---- what it hears of its client ---- */

static void begin_spell(struct rh_actor *actor, struct life *l, bool goes_on)
{
    l->memory.client = l->actor->client = CLIENT_THERE;
    l->memory.kicked = 0;
    l->actor->away_us = l->actor->missed_us = 0;
    l->memory.spell = check_spell(l->fleet, l->actor, goes_on);
    l->memory.made = 0;
    push(actor, l);
}

static void on_lost(struct rh_actor *actor, struct life *l, uint32_t why)
{
    l->actor->client = l->memory.client = CLIENT_AWAY;
    l->actor->away_us = listened_before(l->fleet, l->actor);
    l->actor->missed_us = l->fleet->world.now_us;
    (void)why;
    l->memory.kicked = 0;
    push(actor, l); // only whether that is taken tells whether it may return
    if (l->memory.client == CLIENT_NONE) {
        l->actor->losses++; // it was kicked, or left
    }
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *e)
{
    struct life *l = instance;
    const bool goes_on = l->unheard_client && e->type == RH_SESSION_RESUMED;

    l->unheard_client = false;
    TRACE(&l->fleet->world,
          sim_runtime_node(l->runtime)->process.name,
          "%s hears %u, why %u",
          l->actor->who.id,
          e->type,
          e->why);
    check_heard(l->fleet, l->actor, e, (int)l->memory.client, goes_on);
    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_BOUND:
    case RH_SESSION_REPLACED:
        begin_spell(actor, l, false);
        break;
    case RH_SESSION_RESUMED:
        if (e->why == RH_RESUMED_AFRESH) {
            begin_spell(actor, l, goes_on);
        } else {
            l->memory.client = l->actor->client = CLIENT_THERE;
            l->actor->away_us = l->actor->missed_us = 0;
            push(actor, l);
        }
        break;
    case RH_SESSION_LOST:
        on_lost(actor, l, e->why);
        break;
    }
    session_actor_listened(l->fleet, l->actor);
    return RH_OK;
}

#define SESSION_ACTOR_OPS(called, does, keeps)                                                     \
    {                                                                                              \
        .abi = RH_ABI, .size = sizeof(struct rh_actor_ops), .name = (called),                      \
        .activate = on_activate, .message = on_message, .handoff = on_handoff,                     \
        .deactivate = on_deactivate, .timer = on_timer, .session = on_session, .sessions = (does), \
        .resume = on_resume, .resume_ms = (keeps), .ahead = 1                                      \
    }

const struct rh_actor_ops session_actor_ops =
    SESSION_ACTOR_OPS("session", RH_SESSIONS_KICK_OLD, SESSION_RESUME_MS);
const struct rh_actor_ops rejecting_ops =
    SESSION_ACTOR_OPS("rejecting", RH_SESSIONS_REJECT_NEW, SESSION_RESUME_MS);
const struct rh_actor_ops brief_ops =
    SESSION_ACTOR_OPS("rejecting", RH_SESSIONS_REJECT_NEW, BRIEF_RESUME_MS);
