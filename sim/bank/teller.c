/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's runtime of accounts: what the host submits is done there, as a worker does it, and what
 * the runtime completes comes back a while later, in order. Their calls are the node's own, and
 * tasks for the store go there.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "node/bridge/bridge.h"
#include "sim/bank/bank.h"
#include "sim/store.h"
#include "wire/cursor.h"

enum { AWAY_US = 50000 }; /* that a wall clock is wrong */

/* One incarnation of an account in this process. */
struct sim_life {
    struct sim_life *next;
    uint64_t id; /* in its fleet */
    struct rh_actor *activation;
};

struct completed {
    struct completed *next;
    uint64_t life;
    struct completion completion; /* its activation; NULL = was discarded, it is dropped */
    uint64_t data[];              /* what the completion borrows */
};

struct sim_teller {
    struct fleet *fleet;
    struct sim_node *node;
    struct runtime *runtime;
    struct sim_life *life;   /* owned */
    struct completed *first; /* owned: on its way to the host */
    struct completed *last;
    uint64_t told_us;  /* when the newest arrives there */
    uint64_t takes_us; /* what is done now takes so long */
    bool closing;
};

static uint64_t clock_of(const struct sim_teller *s)
{
    return sim_clock_read(&s->node->process.clock, s->fleet->world.now_us);
}

static uint64_t wall_us(const struct sim_teller *s)
{
    return FLEET_WALL_US + clock_of(s) + (uint64_t)s->node->wall_us;
}

struct fleet *teller_fleet(const struct sim_teller *s)
{
    return s->fleet;
}

size_t teller_view(const struct sim_teller *s)
{
    return check_view_index(s->fleet, s->node->seen.version);
}

uint64_t teller_wall_ms(const struct sim_teller *s)
{
    return wall_us(s) / 1000;
}

static struct sim_life **life_of(struct sim_teller *s, const struct rh_actor *r)
{
    struct sim_life **at = &s->life;

    while ((*at)->activation != r) {
        at = &(*at)->next;
    }
    return at;
}

/* Nothing of it is left; what it completed and is on its way is dropped. */
static void life_end(struct sim_teller *s, struct rh_actor *r)
{
    struct sim_life **at = life_of(s, r);
    struct sim_life *l = *at;

    for (struct completed *t = s->first; t != NULL; t = t->next) {
        t->completion.actor = t->completion.actor == r ? NULL : t->completion.actor;
    }
    *at = l->next;
    activation_free(r);
    mem_free(l);
}

/* ---- what the runtime completes ---- */

static void tell_host(struct sim_teller *s, const struct completed *t)
{
    const struct completion *c = &t->completion;
    struct host_event event;

    if (c->actor == NULL || !bridge_complete(c, &event)) {
        return; // it was discarded meanwhile
    }
    if (c->verb == VERB_EXPORT || c->verb == VERB_COPY) {
        event.completion.number = calls_under_way(s->node->calls, t->life);
    }
    if (completion_ends(c)) {
        life_end(s, c->actor);
    }
    node_step(s->fleet, s->node, event);
}

/* Its session is an incarnation's number, as that of the node's other actors. */
static void tell_calls(const struct sim_teller *s, const struct completed *t)
{
    struct call call = *t->completion.call;

    call.session = t->life;
    node_calls_ask(s->fleet, s->node, &call);
}

static void on_completed(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];
    struct sim_teller *s = n->teller;

    if (!n->process.up || n->process.life != event->b) {
        return;
    }
    struct completed *t = s->first;
    s->first = t->next;
    s->last = s->first == NULL ? NULL : s->last;
    switch ((int)t->completion.verb) {
    case VERB_CALL:
        tell_calls(s, t);
        break;
    case VERB_END_CALLS:
        node_calls_close(f, n, t->life);
        break;
    default:
        tell_host(s, t);
        break;
    }
    mem_free(t);
}

static void queue(struct sim_teller *s, struct completed *t)
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
    struct sim_teller *s = context;

    if (s->closing || c->verb == VERB_DISCARD || c->verb == VERB_DEFER || c->verb == VERB_FINISH) {
        return;
    }
    const size_t size = completion_size(c);
    struct completed *t = mem_new(1, sizeof *t + size);

    *t = (struct completed){.life = (*life_of(s, c->actor))->id};
    completion_copy(c, &t->completion, (uint8_t *)t->data);
    queue(s, t);
}

static void on_store(void *store, struct store_task *task)
{
    const struct sim_teller *s = store;

    store_ask(s->fleet, s->node, task);
}

/* ---- life ---- */

void sim_teller_open(struct fleet *f, struct sim_node *n)
{
    if (f->bank == NULL) {
        return;
    }
    struct sim_teller *s = mem_new(1, sizeof *s);
    const struct runtime_config config = {.on_completion = on_completion,
                                          .context = s,
                                          .worker = BANK_WORKER,
                                          .on_store = on_store,
                                          .store = s};

    s->fleet = f;
    s->node = n;
    s->runtime = runtime_new(&config);
    n->teller = s;
    bank_set_clock(f, n, AWAY_US); // its machine may have booted
}

void sim_teller_close(struct sim_node *n)
{
    struct sim_teller *s = n->teller;

    if (s == NULL) {
        return;
    }
    n->teller = NULL;
    s->closing = true;
    runtime_close(s->runtime, RH_STOP);
    while (s->first != NULL) {
        struct completed *t = s->first;

        s->first = t->next;
        mem_free(t);
    }
    while (s->life != NULL) {
        struct sim_life *next = s->life->next;

        mem_free(s->life);
        s->life = next;
    }
    mem_free(s);
}

static void tick(struct sim_teller *s)
{
    s->takes_us = bank_between(s->fleet, 0, s->fleet->bank->lag_us);
    runtime_set_wall(s->runtime, clock_of(s), wall_us(s));
    runtime_tick(s->runtime, clock_of(s));
}

void sim_teller_tick(struct sim_node *n)
{
    if (n->teller != NULL) {
        tick(n->teller);
    }
}

void sim_teller_stored(struct sim_node *n, struct store_task *task)
{
    if (task->verb == STORE_DUE) {
        const bool read = task->result == STORE_DONE;

        node_step(n->teller->fleet,
                  n,
                  (struct host_event){.type = HOST_DUE_PAGE,
                                      .kind = task->kind,
                                      .id = read ? buffer_bytes(&task->bytes) : (struct bytes){0}});
        store_task_free(task);
        return;
    }
    runtime_stored(task);
    tick(n->teller);
}

void sim_teller_answer(struct sim_node *n, const struct call_answer *answer)
{
    struct sim_teller *s = n->teller;

    s->takes_us = 0;
    runtime_set_now(s->runtime, clock_of(s));
    runtime_answer(s->runtime, answer);
}

void sim_teller_due(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                    struct bytes after)
{
    struct store_task *t = store_task_new(STORE_DUE);

    t->kind = e->kinds[0];
    t->number = e->count;
    buffer_put(&t->bytes, after.data, after.size);
    store_ask(f, n, t);
}

/* ---- what the host submits ---- */

static const char *wish_name(const struct submission *what)
{
    switch ((int)what->verb) {
    case VERB_ACTIVATE:
        return "begins";
    case VERB_RUN:
        return (what->flags & REQUEST_SESSION) != 0 ? "runs a send"
               : what->again                        ? "runs a request, perhaps again"
                                                    : "runs a request";
    case VERB_TURN:
        return "has a turn";
    case VERB_EXPORT:
        return "freezes";
    case VERB_UNFREEZE:
        return "unfreezes";
    case VERB_DISCARD:
        return "is discarded";
    default:
        return "retires";
    }
}

static void note_again(const struct sim_teller *s, const struct submission *what,
                       struct bytes bytes)
{
    const struct bytes body = submission_rest(what, bytes);
    struct reader in = {.at = body.data, .left = body.size};
    const struct bank_ask *a = bank_find(s->fleet, get_u64(&in));

    s->fleet->bank->total.again++;
    s->fleet->bank->total.saved += a != NULL && a->ran;
}

static void perform(struct sim_teller *s, const struct submission *what, struct bytes bytes)
{
    if (what->verb == VERB_ACTIVATE) {
        struct sim_life *l = mem_new(1, sizeof *l);

        *l = (struct sim_life){
            .next = s->life, .id = ++s->fleet->instance_count, .activation = what->activation};
        s->life = l;
    }
    if (what->verb == VERB_RUN && what->again) {
        note_again(s, what, bytes);
    }
    runtime_perform(s->runtime, what, bytes);
    if (what->verb == VERB_DISCARD) {
        life_end(s, what->activation);
    }
}

bool sim_teller_takes(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                      struct bytes bytes)
{
    struct sim_teller *s = n->teller;
    struct submission what;

    if (s == NULL || actor_kind(e->actor) != FLEET_KIND_ACCOUNT) {
        return false;
    }
    TRACE(&f->world,
          n->process.name,
          "%.*s: %s",
          (int)actor_id(e->actor).size,
          (const char *)actor_id(e->actor).data,
          wish_name(&e->submission));
    runtime_set_wall(s->runtime, clock_of(s), wall_us(s));
    s->takes_us = bank_between(f, 0, f->faults.run_max_us);
    if (bridge_submit(s->runtime, &account_ops, s, e, &what)) {
        perform(s, &what, bytes);
    }
    return true;
}
