/* SPDX-License-Identifier: Apache-2.0
 *
 * The bank's seed, and its customers, who ask by gateways. Some number what they ask themselves and
 * ask again when their gateway died, or when they leave it; what others had asked a gateway that
 * dies, nobody hears of.
 */
#include "base/mem.h"
#include "base/table.h"
#include "sim/bank/bank.h"
#include "wire/cursor.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000)

/* Apart from the ledger's: a request's number, and above it the epoch of its session. */
#define TICKET (UINT64_C(1) << 63)
enum { EPOCH_SHIFT = 40 };

enum { HOT_TENTHS = 4, OWNED_TENTHS = 4, TURN_PM = 10, CLOCK_MOST_US = 3000000 };

/* ---- the seed ---- */

static void draw_account(struct account *a, size_t i)
{
    (void)snprintf(a->id, sizeof a->id, "acct%zu", i);
    a->id_size = strlen(a->id);
    vault_init(&a->vault);
}

static uint64_t maybe(struct sim_bank *b, uint64_t per_mille, uint64_t low, uint64_t high)
{
    const uint64_t value = prng_between(&b->prng, low, high);

    return prng_between(&b->prng, 1, 1000) <= per_mille ? value : 0;
}

void bank_draw(struct fleet *f)
{
    if (f->profile != PROFILE_DURABLE) {
        return;
    }
    struct sim_bank *b = mem_new(1, sizeof *b);

    f->bank = b;
    b->prng.state = table_mix(f->world.seed ^ UINT64_C(0x62616e6b));
    for (size_t i = 0; i < ACCOUNTS; i++) {
        draw_account(&b->account[i], i);
    }
    b->customers = prng_between(&b->prng, 2, CUSTOMERS_MAX);
    for (size_t i = 0; i < b->customers; i++) {
        b->customer[i].owned = prng_between(&b->prng, 1, 10) <= OWNED_TENTHS;
    }
    b->idle_ms = (uint32_t)maybe(b, 800, 50, 1500);
    b->lag_us = prng_between(&b->prng, 1, 30 * MS);
    b->ahead = prng_between(&b->prng, 0, 1) == 0;
    b->clock_us = maybe(b, 300, 1000 * MS, 6000 * MS);
    b->gap_us = prng_between(&b->prng, 20 * MS, 150 * MS);
    b->refuse_pm = maybe(b, 500, 10, 300);
    b->fail_pm = maybe(b, 300, 1, 30);
    b->busy_pm = maybe(b, 300, 50, 500);
}

void bank_fini(struct fleet *f)
{
    struct sim_bank *b = f->bank;

    if (b == NULL) {
        return;
    }
    for (size_t i = 0; i < ACCOUNTS; i++) {
        vault_fini(&b->account[i].vault);
        mem_free(b->account[i].sum);
    }
    for (size_t i = 0; i < CUSTOMERS_MAX; i++) {
        mem_free(b->customer[i].asked);
    }
    mem_free(b->ask);
    mem_free(b->death);
    mem_free(b);
    f->bank = NULL;
}

struct host_kind bank_kind(const struct fleet *f)
{
    return (struct host_kind){.number = FLEET_KIND_ACCOUNT,
                              .idle_ms = f->bank->idle_ms,
                              .ahead = f->bank->ahead,
                              .durable = true,
                              .alarms = true};
}

struct account *bank_account(struct fleet *f, struct bytes id)
{
    for (size_t i = 0; i < ACCOUNTS; i++) {
        struct account *a = &f->bank->account[i];

        if (bytes_equal(id, bytes_of(a->id, a->id_size))) {
            return a;
        }
    }
    return NULL;
}

uint64_t bank_number(struct fleet *f)
{
    struct sim_bank *b = f->bank;

    if (b->ask_count == b->ask_cap) {
        b->ask_cap = b->ask_cap == 0 ? 1024 : 2 * b->ask_cap;
        b->ask = mem_resize(b->ask, b->ask_cap * sizeof *b->ask);
    }
    b->ask[b->ask_count++] = (struct bank_ask){.answered = true};
    return b->ask_count;
}

struct bank_ask *bank_find(struct fleet *f, uint64_t uid)
{
    return uid == 0 || uid > f->bank->ask_count ? NULL : &f->bank->ask[uid - 1];
}

/* ---- asking ---- */

static bool can_ask(const struct sim_gateway *g)
{
    return g->core != NULL && !g->process.gate.shut && !router_full(g->core);
}

static void give(struct fleet *f, struct customer *c, uint64_t uid, bool again)
{
    const struct bank_ask *a = bank_find(f, uid);
    const struct account *to = &f->bank->account[a->account];
    uint8_t body[8];
    struct writer w = {.at = body, .left = sizeof body};
    struct router_event event = {
        .type = ROUTER_REQUEST,
        .session = c->session,
        .ticket = TICKET | (uint64_t)c->epoch << EPOCH_SHIFT | uid,
        .flags = a->flags,
        .kind = FLEET_KIND_ACCOUNT,
        .id = bytes_of(to->id, to->id_size),
        .body = bytes_of(body, sizeof body),
    };

    put_u64(&w, uid);
    if (c->owned) {
        while (c->low < c->asked_count && bank_find(f, c->asked[c->low])->answered) {
            c->low++;
        }
        event.seq = a->number;
        event.base = c->low + 1;
        event.epoch = c->epoch;
        event.first = a->first;
        event.again = again;
    }
    gateway_step(f, c->gateway, event);
}

static void number_it(struct customer *c, struct bank_ask *a, uint64_t uid)
{
    const uint64_t version = router_view(c->gateway->core)->ring.version;

    if (c->asked_count == c->asked_cap) {
        c->asked_cap = c->asked_cap == 0 ? 64 : 2 * c->asked_cap;
        c->asked = mem_resize(c->asked, c->asked_cap * sizeof *c->asked);
    }
    c->asked[c->asked_count++] = uid;
    a->number = c->asked_count;
    c->known = version > c->known ? version : c->known;
    a->first = c->known;
}

static void ask(struct fleet *f, struct customer *c, enum bank_verb verb, size_t account)
{
    struct sim_bank *b = f->bank;
    const uint64_t uid = bank_number(f);
    struct bank_ask *a = &b->ask[uid - 1];

    *a = (struct bank_ask){
        .verb = verb,
        .customer = (size_t)(c - b->customer),
        .life = c->lives,
        .account = account,
        .other = (account + bank_between(f, 1, ACCOUNTS - 1)) % ACCOUNTS,
        .amount = bank_between(f, 1, 40),
        .slot = bank_between(f, 0, ACCOUNT_ALARMS - 1),
        .delay_ms = bank_between(f, 0, 1) == 0 ? bank_between(f, 0, 300) : bank_between(f, 0, 4000),
        .every_ms = bank_between(f, 0, 3) == 0 ? bank_between(f, 200, 1500) : 0,
        .known = b->account[account].heard,
        .doubts = b->account[account].doubts,
        .view = check_view_index(f, c->gateway->seen.version),
        .asked_us = f->world.now_us,
    };
    if (verb == BANK_READ && bank_between(f, 0, 1) == 0) {
        a->flags = REQUEST_IDEMPOTENT;
    }
    if (c->owned) {
        number_it(c, a, uid);
    }
    TRACE(&f->world,
          c->gateway->process.name,
          "customer %zu asks %s: request %llu, verb %d",
          a->customer,
          b->account[account].id,
          (unsigned long long)uid,
          (int)verb);
    give(f, c, uid, false);
}

static enum bank_verb draw_verb(struct fleet *f)
{
    const uint64_t what = bank_between(f, 0, 99);

    return what < 20   ? BANK_READ
           : what < 60 ? BANK_GIVE
           : what < 75 ? BANK_SET
           : what < 83 ? BANK_CANCEL
                       : BANK_CALL;
}

static size_t draw_one(struct fleet *f)
{
    const bool hot = bank_between(f, 1, 10) <= HOT_TENTHS;

    return hot ? 0 : (size_t)bank_between(f, 0, ACCOUNTS - 1);
}

/* ---- sessions ---- */

static void on_resume(void *context, const struct world_event *event);

static void orphan(struct fleet *f, struct customer *c)
{
    c->epoch++;
    c->gateway = NULL;
    world_at(
        &f->world,
        f->world.now_us + bank_between(f, 1 * MS, 300 * MS),
        (struct world_event){
            .run = on_resume, .context = f, .a = (uint64_t)(c - f->bank->customer), .b = c->epoch});
}

static void on_resume(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct customer *c = &f->bank->customer[event->a];
    struct sim_gateway *g = &f->gateway[bank_between(f, 0, f->gateways - 1)];

    if (c->epoch != event->b) {
        return;
    }
    if (!can_ask(g)) {
        orphan(f, c);
        return;
    }
    c->gateway = g;
    for (size_t i = c->low; i < c->asked_count && c->gateway == g; i++) {
        struct bank_ask *a = bank_find(f, c->asked[i]);

        if (a->answered) {
            continue;
        }
        if (f->world.now_us - a->asked_us >= (uint64_t)REQUEST_TTL_MAX_MS * 1000) {
            a->answered = true; // it gave it up, by its own clock
            continue;
        }
        if (!can_ask(g)) {
            orphan(f, c);
            return;
        }
        a->resumed = true;
        give(f, c, c->asked[i], true);
    }
}

/* Nobody waits for what it had asked. */
static void forget(struct fleet *f, const struct customer *c)
{
    const size_t me = (size_t)(c - f->bank->customer);

    for (size_t i = 0; i < f->bank->ask_count; i++) {
        struct bank_ask *a = &f->bank->ask[i];

        a->answered = a->answered || (a->customer == me && a->life == c->lives);
    }
}

void bank_gateway_gone(struct fleet *f, const struct sim_gateway *g)
{
    for (size_t i = 0; f->bank != NULL && i < f->bank->customers; i++) {
        struct customer *c = &f->bank->customer[i];

        if (c->gateway == g && c->owned) {
            orphan(f, c);
        } else if (c->gateway == g) {
            forget(f, c);
            c->gateway = NULL;
            c->session = 0;
        }
    }
}

static bool begins(struct fleet *f, struct customer *c)
{
    struct sim_gateway *g = &f->gateway[bank_between(f, 0, f->gateways - 1)];

    if (c->gateway == NULL && c->session == 0 && can_ask(g)) {
        c->gateway = g;
        c->session = router_session(g->core);
        c->lives++;
        c->epoch = 1;
    }
    return c->gateway != NULL && can_ask(c->gateway) &&
           !(c->owned && router_view(c->gateway->core)->ring.version == 0);
}

static void on_customer(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct customer *c = &f->bank->customer[event->a];

    if (!f->working) {
        return;
    }
    world_at(&f->world, f->world.now_us + bank_between(f, 1, 2 * f->bank->gap_us), *event);
    if (!begins(f, c)) {
        return;
    }
    for (uint64_t more = bank_between(f, 1, 3); more > 0 && begins(f, c); more--) {
        const enum bank_verb verb = draw_verb(f);

        ask(f, c, verb, draw_one(f));
    }
    if (c->gateway != NULL && c->owned && bank_fails(f, TURN_PM)) {
        orphan(f, c);
    }
}

/* ---- wall clocks ---- */

void bank_set_clock(struct fleet *f, struct sim_node *n, uint64_t away_us)
{
    const uint64_t true_us = f->world.now_us - sim_clock_read(&n->process.clock, f->world.now_us);

    n->wall_us = (int64_t)(true_us + bank_between(f, 0, 2 * away_us) - away_us);
    TRACE(&f->world,
          n->process.name,
          "its wall clock is SET, within %llu us",
          (unsigned long long)away_us);
}

/* One is set, forward or back: alarms are by it, and leases are not. */
static void on_clock(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    if (f->healed) {
        return;
    }
    world_at(&f->world, f->world.now_us + bank_between(f, 1, 2 * f->bank->clock_us), *event);
    bank_set_clock(f, &f->node[bank_between(f, 0, f->nodes - 1)], CLOCK_MOST_US);
}

void bank_heal(struct fleet *f)
{
    for (unsigned i = 0; f->bank != NULL && i < f->nodes; i++) {
        bank_set_clock(f, &f->node[i], 0);
    }
}

void bank_start(struct fleet *f)
{
    if (f->bank != NULL && f->bank->clock_us > 0) {
        world_at(&f->world,
                 f->world.now_us + f->bank->clock_us,
                 (struct world_event){.run = on_clock, .context = f});
    }
    for (size_t i = 0; f->bank != NULL && i < f->bank->customers; i++) {
        world_at(&f->world,
                 f->world.now_us + bank_between(f, 1, 1000 * MS),
                 (struct world_event){.run = on_customer, .context = f, .a = i});
    }
}

void bank_probe(struct fleet *f)
{
    for (size_t i = 0; f->bank != NULL && i < f->bank->customers; i++) {
        for (size_t k = 0; k < ACCOUNTS && begins(f, &f->bank->customer[i]); k++) {
            ask(f, &f->bank->customer[i], BANK_READ, k);
        }
    }
}

/* ---- what routers say ---- */

bool bank_reply(struct fleet *f, const struct sim_gateway *g, const struct router_effect *e,
                struct bytes bytes)
{
    const uint64_t uid = e->ticket & ((UINT64_C(1) << EPOCH_SHIFT) - 1);
    const uint64_t epoch = (e->ticket & ~TICKET) >> EPOCH_SHIFT;

    if (f->bank == NULL || (e->ticket & TICKET) == 0) {
        return false;
    }
    struct bank_ask *a = bank_find(f, uid);
    const struct customer *c = &f->bank->customer[a->customer];

    if (c->gateway == g && c->lives == a->life && c->epoch == epoch) {
        check_bank_reply(f, a, e->code, bytes);
    }
    return true;
}

static void on_vouched(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct customer *c = &f->bank->customer[event->a];

    if (c->gateway != NULL && c->epoch == event->b && !c->gateway->process.gate.shut) {
        gateway_step(f,
                     c->gateway,
                     (struct router_event){
                         .type = ROUTER_VOUCHED, .session = c->session, .first = event->c});
    }
}

void bank_vouch(struct fleet *f, const struct sim_gateway *g, const struct router_effect *e)
{
    for (size_t i = 0; f->bank != NULL && i < f->bank->customers; i++) {
        const struct customer *c = &f->bank->customer[i];

        if (c->gateway == g && c->session == e->session) {
            world_at(&f->world,
                     f->world.now_us + bank_between(f, 1, 20 * MS),
                     (struct world_event){
                         .run = on_vouched, .context = f, .a = i, .b = c->epoch, .c = e->version});
        }
    }
}
