/* SPDX-License-Identifier: Apache-2.0
 *
 * Heroes: the code of a game, whose actors have players. It pushes on its own,
 * when it is asked and when it hears of its client; it kicks, fails, ends itself,
 * is busy when it shall move, or moves cold. What it hears must make sense to it.
 *
 *     push:    | spell u64 | number in it u64 | filler |
 *     request: | number u64 | noise |, answered by its number; 0: of another hero (room.c)
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/players/players.h"

#include <string.h>

/* What it knows, and hands over. */
struct memory {
    uint64_t spell;  /* 0 = it knows of no client */
    uint64_t made;   /* pushes of that */
    uint32_t client; /* as of struct hero */
    uint32_t kicked; /* by itself; it has not gone yet */
};

struct life {
    struct fleet *fleet;
    struct sim_runtime *runtime;
    struct hero *hero;
    uint64_t number; /* as hero.lives */
    uint64_t due_us; /* its timer, 0 = it was stopped */
    bool bonded;     /* it came with a client that it knows nothing of yet */
    bool ended;      /* by rh_passivate() or rh_fail() */
    struct memory knows;
    struct room room;
};

struct hero *hero_named(struct fleet *f, struct bytes id)
{
    for (size_t i = 0; i < HEROES; i++) {
        struct hero *h = &f->players->hero[i];

        if (bytes_equal(id, bytes_of(h->who.id, h->who.id_size))) {
            return h;
        }
    }
    UNREACHABLE();
}

uint64_t hero_spell(const void *instance)
{
    const struct life *l = instance;

    return l->knows.spell != 0 && !l->bonded ? l->knows.spell : l->hero->spell;
}

/* ---- time ---- */

static void ran(const struct life *l)
{
    struct hero *h = l->hero;

    if (h->ran_us != l->fleet->world.now_us) {
        h->rested_us = h->ran_us;
        h->ran_us = l->fleet->world.now_us;
    }
}

/* When its code ran before this turn. Its node may have had no lease since then, and have missed
 * its client long before its hero can be told. */
static uint64_t ran_before(const struct life *l)
{
    const struct hero *h = l->hero;

    return h->ran_us == l->fleet->world.now_us ? h->rested_us : h->ran_us;
}

/* For so long that who was missed can't come back. */
static bool stood_still(const struct life *l)
{
    return l->fleet->world.now_us - ran_before(l) >= hero_resume_ms(l->fleet, l->hero) * 900;
}

/* ---- pushes ---- */

/* As many bytes as fit into what is kept, now and then, so that some are let go; mostly in a
 * quarter of the seeds. */
static size_t filler_size(struct fleet *f)
{
    const bool bulky = f->world.seed % 4 == 0;

    return players_chance(f, bulky ? 700 : 50) ? players_between(f, 1000, FILLER_MAX)
                                               : players_between(f, 0, 40);
}

static void push(struct rh_actor *actor, struct life *l)
{
    static const uint8_t filler[FILLER_MAX];
    const size_t more = filler_size(l->fleet);
    const uint64_t head[2] = {l->knows.spell, l->knows.made + 1};
    struct buffer payload = {0};

    if (l->knows.client == CLIENT_NONE) {
        return;
    }
    buffer_put(&payload, head, sizeof head);
    buffer_put(&payload, filler, more);
    const int result = rh_push(actor, (struct rh_bytes){payload.data, payload.size});

    buffer_fini(&payload);
    if (result == RH_OK) {
        l->knows.made++;
        const struct pushed push = {l->knows.spell, l->knows.made, sizeof head + more};

        (void)check_pushed(l->fleet, push);
    } else if (l->knows.client == CLIENT_AWAY && result == RH_NO_SESSION) {
        l->knows.client = CLIENT_NONE; // it did not come back in time
        l->hero->client = CLIENT_NONE;
    } else if (l->knows.kicked == 0) {
        // It was kicked, so it has to hear next that it is gone; see check_heard().
        l->knows.kicked = 1;
        if (result != RH_NO_SESSION || (l->hero->colds == 0 && !stood_still(l))) {
            world_violate(&l->fleet->world,
                          "session",
                          "%s may not push (%d), although its client is there",
                          l->hero->who.id,
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
    ran(l);
}

/* ---- its life ---- */

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct sim_runtime *s = rh_shared(actor);
    struct fleet *f = sim_runtime_fleet(s);
    struct hero *h = hero_named(f, bytes_of(rh_id(actor).data, rh_id(actor).size));

    (void)fence;
    if (players_chance(f, f->faults.activate_fail_pm)) {
        return RH_FAILED;
    }
    struct life *l = mem_new(1, sizeof *l);
    *l = (struct life){
        .fleet = f, .runtime = s, .hero = h, .number = ++h->lives, .bonded = sim_runtime_bonded(s)};
    *instance = l;
    if (h->missed_us != 0 && h->moving_us != 0) {
        h->missed_us += f->world.now_us - h->moving_us;
    }
    if (state != NULL) {
        ASSERT(state->size >= sizeof l->knows);
        memcpy(&l->knows, state->data, sizeof l->knows);
        room_load(&l->room,
                  (struct rh_bytes){(const uint8_t *)state->data + sizeof l->knows,
                                    state->size - sizeof l->knows});
        // It may have been taken for lost with the node that it comes from.
        if (h->client != CLIENT_NONE && h->client != l->knows.client) {
            world_violate(&f->world, "session", "%s comes with another client", h->who.id);
        }
        h->client = l->knows.client;
        f->players->total.moved += l->knows.client != CLIENT_NONE;
    } else {
        room_open(&l->room);
    }
    ran(l);
    check_hero_begins(f, h, sim_runtime_node(s), state != NULL, l->knows.spell, l->knows.made);
    l->due_us = f->world.now_us + f->players->push_ms * 1070; // at the latest
    h->moving_us = 0;
    h->thawed_us = f->world.now_us;
    (void)rh_timer_start(actor,
                         (uint32_t)players_between(f, 1, f->players->push_ms),
                         (uint32_t)f->players->push_ms,
                         NULL);
    // What it told others before it moved may be under way still.
    if (state != NULL && f->players->groups && !f->healed) {
        room_casts(actor, f, h, &l->room);
    }
    return RH_OK;
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct life *l = instance;

    (void)actor;
    if (!l->fleet->healed && players_chance(l->fleet, l->fleet->players->busy_pm)) {
        return RH_BUSY;
    }
    if (!l->fleet->healed && players_chance(l->fleet, l->fleet->players->cold_pm)) {
        return RH_COLD;
    }
    l->hero->moving_us = l->fleet->world.now_us;
    rh_out_put(out, &l->knows, sizeof l->knows);
    room_save(&l->room, out);
    return RH_OK;
}

static void on_resume(struct rh_actor *actor, void *instance)
{
    const struct life *l = instance;

    (void)actor;
    l->hero->thawed_us = l->fleet->world.now_us;
    l->hero->moving_us = 0;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct life *l = instance;

    (void)actor;
    if (why != RH_MOVED && l->number == l->hero->lives) {
        l->hero->client = CLIENT_NONE; // until it is begun afresh
        l->hero->losses++;
    }
    room_close(&l->room);
    mem_free(instance);
}

/* ---- what it is asked ---- */

static void do_something(struct rh_actor *actor, struct life *l)
{
    struct players *p = l->fleet->players;

    for (uint64_t i = players_between(l->fleet, 0, 3); i > 0; i--) {
        push(actor, l);
    }
    if (l->fleet->healed) {
        if (p->groups && l->fleet->working && players_chance(l->fleet, p->casts_pm)) {
            room_casts(actor, l->fleet, l->hero, &l->room);
        }
        return;
    }
    if (p->groups) {
        room_acts(actor, l->fleet, l->hero, &l->room);
    }
    if (players_chance(l->fleet, p->kicks_pm) && rh_kick(actor, RH_KICK_GAME, "out") == RH_OK) {
        l->hero->kicks++;
        l->hero->losses++;
        l->knows.kicked = 1;
        // Of one that is away nothing more is told.
        if (l->knows.client == CLIENT_AWAY) {
            l->knows.client = l->hero->client = CLIENT_NONE;
        }
    }
    if (players_chance(l->fleet, p->ends_pm) && rh_passivate(actor) == RH_OK) {
        l->ended = true;
        l->hero->ends++;
        l->hero->losses++;
    }
    if (players_chance(l->fleet, p->fails_pm) && rh_fail(actor, "ERR broken") == RH_OK) {
        l->ended = true;
        l->hero->losses++;
        l->hero->colds++;
    }
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct life *l = instance;
    uint64_t number = 0;

    ASSERT(message->payload.size >= sizeof number);
    memcpy(&number, message->payload.data, sizeof number);
    if (l->ended) {
        world_violate(&l->fleet->world, "session", "%s runs after its end", l->hero->who.id);
    }
    if (number == 0) {
        room_hears(l->fleet, l->hero, &l->room, message->payload);
        ran(l);
        return;
    }
    check_timer(l->fleet, l->hero, sim_runtime_node(l->runtime), l->due_us);
    check_player_run(l->fleet, l->hero, number);
    if (number % 2 == 0) { // What it does after its answer counts as well.
        (void)rh_reply(actor, rh_bytes_value(&number, sizeof number));
    }
    do_something(actor, l);
    ran(l);
    if (number % 2 != 0) {
        (void)rh_reply(actor, rh_bytes_value(&number, sizeof number));
    }
}

/* ---- what it hears of its client ---- */

static void begin_spell(struct rh_actor *actor, struct life *l, bool goes_on)
{
    l->knows.client = l->hero->client = CLIENT_THERE;
    l->knows.kicked = 0;
    l->hero->away_us = l->hero->missed_us = 0;
    l->knows.spell = check_spell(l->fleet, l->hero, goes_on);
    l->knows.made = 0;
    push(actor, l);
}

static void on_lost(struct rh_actor *actor, struct life *l, uint32_t why)
{
    l->hero->client = l->knows.client = CLIENT_AWAY;
    l->hero->away_us = ran_before(l);
    l->hero->missed_us = l->fleet->world.now_us;
    (void)why;
    l->knows.kicked = 0;
    push(actor, l); // only whether that is taken tells whether it may return
    if (l->knows.client == CLIENT_NONE) {
        l->hero->losses++; // it was kicked, or left
    }
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *e)
{
    struct life *l = instance;
    const bool goes_on = l->bonded && e->type == RH_SESSION_RESUMED;

    l->bonded = false;
    TRACE(&l->fleet->world,
          sim_runtime_node(l->runtime)->process.name,
          "%s hears %u, why %u",
          l->hero->who.id,
          e->type,
          e->why);
    check_heard(l->fleet, l->hero, e, (int)l->knows.client, goes_on);
    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_BOUND:
    case RH_SESSION_REPLACED:
        begin_spell(actor, l, false);
        break;
    case RH_SESSION_RESUMED:
        if (e->why == RH_RESUMED_AFRESH) {
            begin_spell(actor, l, goes_on);
        } else {
            l->knows.client = l->hero->client = CLIENT_THERE;
            l->hero->away_us = l->hero->missed_us = 0;
            push(actor, l);
        }
        break;
    case RH_SESSION_LOST:
        on_lost(actor, l, e->why);
        break;
    }
    ran(l);
    return RH_OK;
}

#define HERO_OPS(called, does, keeps)                                                              \
    {                                                                                              \
        .abi = RH_ABI, .size = sizeof(struct rh_actor_ops), .name = (called),                      \
        .activate = on_activate, .message = on_message, .handoff = on_handoff,                     \
        .deactivate = on_deactivate, .timer = on_timer, .session = on_session, .sessions = (does), \
        .resume = on_resume, .resume_ms = (keeps)                                                  \
    }

const struct rh_actor_ops hero_ops = HERO_OPS("hero", RH_SESSIONS_KICK_OLD, HERO_RESUME_MS);
const struct rh_actor_ops loner_ops = HERO_OPS("loner", RH_SESSIONS_REJECT_NEW, HERO_RESUME_MS);
const struct rh_actor_ops brief_ops = HERO_OPS("loner", RH_SESSIONS_REJECT_NEW, BRIEF_RESUME_MS);
