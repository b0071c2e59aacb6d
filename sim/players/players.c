/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of players, each the shipped client of games (client/), and their lines
 * to gateways, which are slow, break, and hang: then only one side knows, or none.
 */
#include "sim/players/players.h"
#include "base/mem.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000)
#define S  UINT64_C(1000000)

enum { IN_MAX = 64 * 1024, OUT_MAX = 8 * 1024, REQUESTS_MAX = 64 };

static void settle(struct fleet *f, struct device *d);

/* A device has no process: it never stands still. */
static uint64_t ms_now(const struct fleet *f)
{
    return f->world.now_us / MS + 1;
}

static void later(struct fleet *f, uint64_t in_us, struct world_event event)
{
    event.context = f;
    world_at(&f->world, f->world.now_us + in_us, event);
}

/* ---- the seed ---- */

static void draw_session_actor(struct sim_players *p, size_t i)
{
    struct session_actor *h = &p->actor[i];

    h->several = i >= SESSION_ACTORS;
    h->rejects = !h->several && i % 2 == 1;
    h->who.kind = h->several   ? FLEET_KIND_SEVERAL
                  : h->rejects ? FLEET_KIND_REJECTING
                               : FLEET_KIND_SESSION;
    // Another id would be another place in the ring, and each seed another history.
    (void)snprintf(h->who.id, sizeof h->who.id, "hero%zu", i);
    h->who.id_size = strlen(h->who.id);
}

static uint64_t maybe(struct sim_players *p, uint64_t per_mille, uint64_t low, uint64_t high)
{
    const uint64_t value = prng_between(&p->prng, low, high);

    return prng_between(&p->prng, 1, 1000) <= per_mille ? value : 0;
}

/* From the `first` on they play actors with several sessions. */
static void draw_device(struct fleet *f, size_t i, size_t first)
{
    struct device *d = &f->players->device[i];
    const struct rhc_options options = {.abi = RHC_ABI,
                                        .size = sizeof options,
                                        .seed = prng_u64(&f->players->prng),
                                        .requests_max = REQUESTS_MAX,
                                        .in_max = IN_MAX,
                                        .out_max = OUT_MAX,
                                        .back_off_max_ms = 2000};

    d->number = i;
    d->actor =
        &f->players->actor[i < first ? i % SESSION_ACTORS : SESSION_ACTORS + i % SEVERAL_ACTORS];
    d->rhc = rhc_init(mem_new(1, rhc_size(&options)), &options);
    d->begin_us = 1;
}

/* All seeds of their profile, and some of the ordinary ones, drawn aside: those without are as they
 * would be if there were none. */
static bool are_drawn(const struct fleet *f, uint64_t drawn)
{
    const bool ordinary = f->options.profile == PROFILE_DRAWN && f->profile == PROFILE_MIXED &&
                          f->poison == NULL && f->activations == 0;
    const bool some = ordinary || f->profile == PROFILE_CALM;

    return f->profile == PROFILE_SESSIONS || f->options.played || (some && drawn % 4 == 0);
}

static void draw_several(struct fleet *f)
{
    struct sim_players *p = f->players;
    const size_t first = p->devices;

    p->actors += SEVERAL_ACTORS;
    p->devices += SEVERAL_DEVICES;
    for (size_t i = first; i < p->devices; i++) {
        draw_device(f, i, first);
    }
}

void sim_players_draw(struct fleet *f)
{
    const uint64_t drawn = table_mix(f->world.seed ^ UINT64_C(0x706c6179657273));

    if (!are_drawn(f, drawn)) {
        return;
    }
    struct sim_players *p = mem_new(1, sizeof *p);
    const bool calm = f->profile == PROFILE_CALM;

    f->players = p;
    p->prng.state = drawn;
    p->actors = SESSION_ACTORS;
    for (size_t i = 0; i < SESSION_ACTORS + SEVERAL_ACTORS; i++) {
        draw_session_actor(p, i);
    }
    p->devices = prng_between(&p->prng, SESSION_ACTORS, calm ? SESSION_ACTORS : DEVICES);
    p->ask_gap_us = prng_between(&p->prng, 50 * MS, 400 * MS);
    p->push_ms = prng_between(&p->prng, 50, 600);
    p->mischief_us = prng_between(&p->prng, 100 * MS, 2 * S);
    p->lag_us = prng_between(&p->prng, 1 * MS, 100 * MS);
    p->busy_pm = maybe(p, calm ? 0 : 300, 50, 500);
    p->cold_pm = maybe(p, calm ? 0 : 300, 50, 500);
    p->fails_pm = maybe(p, calm ? 0 : 300, 1, 30);
    p->kicks_pm = maybe(p, calm ? 0 : 300, 1, 30);
    p->ends_pm = maybe(p, calm ? 0 : 300, 1, 30);
    for (size_t i = 0; i < p->devices; i++) {
        draw_device(f, i, p->devices);
    }
    p->groups = f->faults.node_calls;
    p->tight = f->faults.tight;
    p->joins_pm = prng_between(&p->prng, 20, 400);
    p->broadcasts_pm = maybe(p, 800, 10, 300);
    if (f->profile == PROFILE_SESSIONS && drawn % 3 == 0) {
        draw_several(f);
    }
    if (f->options.played) { // a busy one: whoever hunts does not wait
        p->mischief_us = 100 * MS;
        p->ask_gap_us = 50 * MS;
        p->push_ms = 50;
    }
}

void sim_players_fini(struct fleet *f)
{
    struct sim_players *p = f->players;

    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->devices; i++) {
        mem_free(p->device[i].rhc);
    }
    for (size_t i = 0; i < p->bond_count; i++) {
        mem_free(p->bond[i].push);
    }
    for (size_t i = 0; i < p->wire_count; i++) {
        buffer_fini(&p->wire[i]->in);
        mem_free(p->wire[i]);
    }
    mem_free(p->spell);
    mem_free(p->bond);
    mem_free(p->ask);
    mem_free(p->broadcast);
    mem_free(p->wire);
    mem_free(p);
    f->players = NULL;
}

/* ---- lines ---- */

static struct wire *wire_of(struct fleet *f, const struct world_event *event)
{
    return f->players->wire[event->a - 1];
}

static uint64_t lag(struct fleet *f)
{
    return sim_players_between(f, 200, f->players->lag_us);
}

static struct wire *wire_new(struct fleet *f, struct device *d)
{
    struct sim_players *p = f->players;
    struct wire *w = mem_new(1, sizeof *w);

    if (p->wire_count == p->wire_cap) {
        p->wire_cap = p->wire_cap == 0 ? 32 : 2 * p->wire_cap;
        p->wire = mem_resize(p->wire, p->wire_cap * sizeof(struct wire *));
    }
    p->wire[p->wire_count++] = w;
    w->number = p->wire_count;
    w->device = d;
    w->at = &f->gateway[rhc_gateway(d->rhc) % f->gateways];
    return w;
}

/* Bytes to the gateway, or `data` NULL: the line's end. */
static void on_arrives(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct wire *w = wire_of(f, event);

    if (w->client == NULL) {
        return;
    }
    if (event->data == NULL) {
        session_clients_leave(f, w);
    } else {
        buffer_put(&w->in, event->data, event->b);
        session_clients_take(f, w);
    }
}

static void send_up(struct fleet *f, struct wire *w, struct bytes bytes, uint64_t in_us)
{
    const uint64_t at_us = f->world.now_us + in_us;

    w->up_us = at_us > w->up_us ? at_us : w->up_us;
    world_at(&f->world,
             w->up_us,
             (struct world_event){.run = on_arrives,
                                  .context = f,
                                  .a = w->number,
                                  .b = bytes.size,
                                  .data = bytes.size == 0 ? NULL : mem_copy(bytes.data, bytes.size),
                                  .gate = &w->at->process.gate});
}

/* Bytes to the device; they fit, for it takes all that it is given at once. */
static void on_heard(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct wire *w = wire_of(f, event);
    size_t room = 0;
    size_t at = 0;

    while (w->device != NULL && w->device->wire == w && at < event->b) {
        void *to = rhc_room(w->device->rhc, &room);
        const size_t size = event->b - at < room ? event->b - at : room;

        if (size == 0) {
            break; // it hangs up
        }
        memcpy(to, (const uint8_t *)event->data + at, size);
        at += size;
        rhc_received(w->device->rhc, size, ms_now(f));
        settle(f, w->device);
    }
}

void sim_players_hear(struct fleet *f, struct wire *w, struct bytes bytes)
{
    const uint64_t at_us = f->world.now_us + lag(f);

    w->down_us = at_us > w->down_us ? at_us : w->down_us;
    world_at(&f->world,
             w->down_us,
             (struct world_event){.run = on_heard,
                                  .context = f,
                                  .a = w->number,
                                  .b = bytes.size,
                                  .data = mem_copy(bytes.data, bytes.size)});
}

/* The device lets go of it. */
static void let_go(struct fleet *f, struct device *d, const char *why)
{
    d->wire->device = NULL;
    d->wire = NULL;
    rhc_disconnected(d->rhc, why, ms_now(f));
}

static void on_hung_up(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct wire *w = wire_of(f, event);

    if (w->device != NULL) {
        struct device *d = w->device;

        let_go(f, d, "closed");
        settle(f, d);
    }
}

void sim_players_hung_up(struct fleet *f, struct wire *w)
{
    const uint64_t at_us = f->world.now_us + lag(f);

    if (!w->dead) {
        w->down_us = at_us > w->down_us ? at_us : w->down_us;
        world_at(&f->world,
                 w->down_us,
                 (struct world_event){.run = on_hung_up, .context = f, .a = w->number});
    }
}

/* The connection is made, or nobody is there. */
static void on_dialled(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct wire *w = wire_of(f, event);
    struct device *d = w->device;

    if (d == NULL) {
        return;
    }
    if (w->at->clients == NULL || d->offline_us > f->world.now_us) {
        let_go(f, d, "refused");
    } else {
        session_clients_accept(f, w);
        rhc_connected(d->rhc, ms_now(f));
    }
    settle(f, d);
}

/* How things stand before it is bound. */
static void look(struct fleet *f, struct device *d)
{
    d->stood.spell = d->actor->spell;
    d->stood.losses = d->actor->losses;
    d->stood.rivals = check_rivals(f, d);
    d->stood.turns = session_actor_turns(d->actor);
}

static void dial(struct fleet *f, struct device *d)
{
    d->wire = wire_new(f, d);
    look(f, d);
    d->dials++;
    later(f,
          lag(f),
          (struct world_event){
              .run = on_dialled, .a = d->wire->number, .gate = &d->wire->at->process.gate});
}

static void hang_up(struct fleet *f, struct device *d)
{
    if (d->wire != NULL) {
        if (!d->wire->dead) {
            send_up(f, d->wire, (struct bytes){NULL, 0}, lag(f));
        }
        let_go(f, d, NULL);
    } else {
        rhc_disconnected(d->rhc, NULL, ms_now(f));
    }
}

/* ---- devices ---- */

static void log_in(struct fleet *f, struct device *d)
{
    const struct session_actor *h = d->actor;

    d->begin_us = 0;
    d->asks_us = f->world.now_us;
    d->refused = false;
    look(f, d);
    // It forgets what it was bound to only when it is refused.
    (void)rhc_bind(d->rhc, h->who.kind, (struct rhc_bytes){h->who.id, h->who.id_size});
    if (rhc_state(d->rhc) == RHC_IDLE || rhc_state(d->rhc) == RHC_ENDED) {
        (void)rhc_start(d->rhc, ms_now(f));
    }
}

/* What it hears is judged; then it comes again, a while later. */
static void take_event(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    TRACE(&f->world,
          d->actor->who.id,
          "device %zu hears %d: status %u, code %u, fresh %d, sequence %llu, lost %llu: %.*s",
          d->number,
          (int)e->type,
          e->status,
          e->code,
          e->fresh,
          (unsigned long long)e->sequence,
          (unsigned long long)e->lost,
          e->type == RHC_EVENT_PUSH ? 0 : (int)e->payload.size,
          (const char *)e->payload.data);
    check_player_event(f, d, e);
    if (e->type == RHC_EVENT_REBOUND) {
        look(f, d);
    }
    if (e->type == RHC_EVENT_REFUSED) {
        d->refused = true;
    }
    if (((e->type == RHC_EVENT_REFUSED || e->type == RHC_EVENT_KICKED) && f->working &&
         !f->healed) ||
        e->type == RHC_EVENT_UNBOUND) {
        d->begin_us = f->world.now_us + sim_players_between(f, 50 * MS, 3 * S);
    }
}

static void on_wake(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct device *d = &f->players->device[event->a];

    if (d->wake_us == f->world.now_us) {
        d->wake_us = 0;
        rhc_tick(d->rhc, ms_now(f));
        settle(f, d);
    }
}

static void wake_at(struct fleet *f, struct device *d)
{
    const uint64_t ms = rhc_wake_ms(d->rhc);
    uint64_t at_us = 0;

    if (ms == UINT64_MAX) {
        return;
    }
    at_us = ms <= ms_now(f) ? f->world.now_us + MS : (ms - 1) * MS;
    if (d->wake_us == 0 || at_us < d->wake_us) {
        d->wake_us = at_us;
        world_at(
            &f->world, at_us, (struct world_event){.run = on_wake, .context = f, .a = d->number});
    }
}

static void say(struct fleet *f, struct device *d)
{
    struct rhc_bytes out;

    while (d->wire != NULL && (out = rhc_output(d->rhc)).size > 0) {
        if (!d->wire->dead) {
            send_up(f, d->wire, bytes_of(out.data, out.size), lag(f));
        }
        rhc_sent(d->rhc, out.size, ms_now(f));
    }
}

/* All that it has to tell and wants done. */
static void settle(struct fleet *f, struct device *d)
{
    for (bool more = true; more && f->world.checker == NULL;) {
        struct rhc_event e;

        more = false;
        while (rhc_next(d->rhc, &e) != 0) {
            take_event(f, d, &e);
        }
        if (rhc_wishes(d->rhc) == RHC_HANG_UP) {
            hang_up(f, d);
            more = true;
        } else if (rhc_wishes(d->rhc) == RHC_DIAL && d->wire == NULL) {
            dial(f, d);
        }
    }
    say(f, d);
    wake_at(f, d);
}

/* ---- what they do ---- */

static void ask(struct fleet *f, struct device *d)
{
    struct sim_players *p = f->players;
    uint8_t body[8 + 40] = {0};
    const uint64_t number = p->ask_count + 1;
    const struct rhc_request r = {
        .kind = d->actor->who.kind,
        .id = {d->actor->who.id, d->actor->who.id_size},
        .payload = {body, 8 + sim_players_between(f, 0, 40)},
        .context = (void *)(uintptr_t)number, // NOLINT(performance-no-int-to-ptr): a number
    };

    memcpy(body, &number, sizeof number);
    if (rhc_ask(d->rhc, &r, ms_now(f), NULL) != RHC_DONE) {
        return;
    }
    if (p->ask_count == p->ask_cap) {
        p->ask_cap = p->ask_cap == 0 ? 256 : 2 * p->ask_cap;
        p->ask = mem_resize(p->ask, p->ask_cap * sizeof *p->ask);
    }
    p->ask[p->ask_count++] =
        (struct player_ask){.device = d->number, .actor = d->actor, .asked_us = f->world.now_us};
    p->total.asked++;
    TRACE(
        &f->world, d->actor->who.id, "device %zu asks %llu", d->number, (unsigned long long)number);
    d->open++;
}

static void on_act(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct device *d = &f->players->device[event->a];

    if (!f->working) {
        return;
    }
    // While something is under way its session would not be kept.
    if (d->begin_us != 0 && f->world.now_us >= d->begin_us && d->open == 0) {
        log_in(f, d);
    }
    if (d->bound || (d->keeps && sim_players_chance(f, 100))) {
        ask(f, d);
    }
    settle(f, d);
    later(f,
          sim_players_between(f, 1, 2 * f->players->ask_gap_us),
          (struct world_event){.run = on_act, .a = d->number});
}

/* Only one side knows. */
static void hangs(struct fleet *f, struct device *d)
{
    struct wire *w = d->wire;

    w->dead = true;
    send_up(f, w, (struct bytes){NULL, 0}, sim_players_between(f, 1 * S, 6 * S));
    if (sim_players_chance(f, 700) || f->profile == PROFILE_CALM) { // else requests may time out
        let_go(f, d, "the network is gone");
    }
}

static void breaks(struct fleet *f, struct device *d)
{
    send_up(f, d->wire, (struct bytes){NULL, 0}, lag(f));
    let_go(f, d, "the line broke");
}

static void on_mischief(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_players *p = f->players;
    struct device *d = &p->device[sim_players_between(f, 0, p->devices - 1)];
    struct sim_gateway *g = &f->gateway[sim_players_between(f, 0, f->gateways - 1)];
    const uint64_t what = sim_players_between(f, 0, 99);
    const bool calm = f->profile == PROFILE_CALM;

    (void)event;
    if (f->healed) {
        return;
    }
    later(
        f, sim_players_between(f, 1, 2 * p->mischief_us), (struct world_event){.run = on_mischief});
    if (what < 5 && g->clients != NULL && !g->process.gate.shut) {
        TRACE(&f->world, g->process.name, "sends its players away");
        session_clients_drain(f, g);
    } else if (d->wire == NULL || d->wire->client == NULL || (calm && what >= 15 && what < 30)) {
        return; // who goes leaves requests behind that nobody answers: never in calm seeds
    } else if (what < 15) {
        d->wire->stalls_us = f->world.now_us + sim_players_between(f, 50 * MS, 3 * S);
    } else if (what < 25) {
        TRACE(&f->world, d->actor->who.id, "device %zu leaves", d->number);
        (void)rhc_unbind(d->rhc); // unless it is being bound just now
    } else if (what < 30) {
        TRACE(&f->world, d->actor->who.id, "device %zu ends, and begins again", d->number);
        rhc_stop(d->rhc);
        d->bound = d->keeps = false;
        d->begin_us = f->world.now_us + sim_players_between(f, 50 * MS, 2 * S);
    } else if (what < 50) {
        TRACE(&f->world, d->actor->who.id, "the line of device %zu hangs", d->number);
        hangs(f, d);
    } else {
        TRACE(&f->world, d->actor->who.id, "the line of device %zu breaks", d->number);
        if (!calm && sim_players_chance(f, 150)) { // it comes back at the last moment, or too late
            d->offline_us = f->world.now_us + sim_players_between(f, 500 * MS, 12 * S);
        }
        breaks(f, d);
    }
    settle(f, d);
}

void sim_players_start(struct fleet *f)
{
    for (size_t i = 0; f->players != NULL && i < f->players->devices; i++) {
        later(f, sim_players_between(f, 1, 1 * S), (struct world_event){.run = on_act, .a = i});
    }
    if (f->players != NULL) {
        later(f, f->players->mischief_us, (struct world_event){.run = on_mischief});
    }
}

void sim_players_heal(struct fleet *f)
{
    for (size_t i = 0; f->players != NULL && i < f->players->devices; i++) {
        f->players->device[i].offline_us = 0;
    }
    for (size_t i = 0; f->players != NULL && i < f->players->wire_count; i++) {
        struct wire *w = f->players->wire[i];

        w->stalls_us = 0;
        if (w->dead && w->device != NULL) {
            struct device *d = w->device;

            let_go(f, d, "healed");
            settle(f, d);
        }
    }
}
