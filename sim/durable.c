/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable actors on a shipped runtime of their node: it loads them, holds back what they answer
 * until the store has what led to it, and ends them where the store refuses. All else that actors
 * do here is sim/actors.c's: a request comes to the runtime when its handler is through.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "node/runtime/runtime.h"
#include "sim/fleet.h"
#include "sim/store.h"
#include "wire/cursor.h"

#include <ringhold.h>

struct sim_durables {
    struct fleet *fleet;
    struct sim_node *node;
    struct runtime *runtime;
};

/* What the runtime completes, on its way to the host. */
struct told {
    uint8_t verb;
    enum err error;
    enum answer_code code;
};

static void set_now(const struct sim_durables *s)
{
    runtime_set_now(s->runtime, sim_clock_read(&s->node->process.clock, s->fleet->world.now_us));
}

/* ---- the game ---- */

static void load(const struct rh_actor *actor, struct ledger_list *list)
{
    struct rh_bytes key = {0};
    struct rh_bytes value = {0};

    list->count = 0;
    while (rh_state_next(actor, key, &key, &value) == RH_OK && key.size == STORE_PLACE_SIZE &&
           value.size == 8) {
        struct reader in = {.at = value.data, .left = value.size};

        ledger_list_add(list, get_u64(&in));
    }
}

/* Who was never saved before is saved before it has come to life. */
static int activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    const struct rh_bytes born = {STORE_BORN, 4};
    struct instance *i = activation_owner(actor);
    struct rh_bytes value = {0};

    (void)state;
    (void)fence;
    *instance = i;
    load(actor, &i->list);
    if (rh_state_get(actor, born, &value) != RH_OK) {
        const int put = rh_state_put(actor, born, value);

        ASSERT(put == RH_OK);
    }
    return RH_OK;
}

static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    const struct instance *i = instance;
    uint8_t key[STORE_PLACE_SIZE];

    store_place_put(key, i->list.count);
    const int put = rh_state_put(actor, (struct rh_bytes){key, sizeof key}, m->payload);
    ASSERT(put == RH_OK);
    (void)rh_reply(actor, rh_text("done"));
}

static void deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static const struct rh_actor_ops ops = {
    .abi = RH_ABI,
    .size = sizeof ops,
    .name = "durable",
    .activate = activate,
    .message = message,
    .deactivate = deactivate,
    .durable = 1,
};

/* ---- what the runtime completes ---- */

static void on_told(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);
    const struct told *t = event->data;

    if (i == NULL) {
        return;
    }
    switch ((int)t->verb) {
    case VERB_ACTIVATE:
        actors_claimed(f, i, t->error == ERR_OK);
        return;
    case VERB_RUN:
        actors_wrote(f, i, t->error, t->code);
        return;
    default:
        node_complete(f, i, (struct completion){.verb = VERB_FAIL, .error = t->error});
        return;
    }
}

static void on_completion(void *context, const struct completion *c)
{
    const struct sim_durables *s = context;
    const struct instance *i = activation_owner(c->actor);
    const struct told t = {.verb = c->verb, .error = c->error, .code = c->code};

    if (i == NULL || (c->verb != VERB_ACTIVATE && c->verb != VERB_RUN && c->verb != VERB_FAIL)) {
        return;
    }
    world_at(&s->fleet->world,
             s->fleet->world.now_us,
             (struct world_event){.run = on_told,
                                  .context = s->fleet,
                                  .a = i->id,
                                  .b = (uint64_t)(s->node - s->fleet->node),
                                  .data = mem_copy(&t, sizeof t),
                                  .gate = &s->node->process.gate});
}

static void on_store(void *store, struct store_task *task)
{
    const struct sim_durables *s = store;

    store_ask(s->fleet, s->node, task);
}

void sim_durable_tick(const struct sim_node *n)
{
    const struct sim_durables *s = n->durables;

    if (s != NULL && !node_is_past_the_end(s->fleet, n)) {
        runtime_tick(s->runtime, sim_clock_read(&n->process.clock, s->fleet->world.now_us));
    }
}

void sim_durable_stored(const struct sim_node *n, struct store_task *task)
{
    runtime_stored(task);
    sim_durable_tick(n);
}

/* ---- life ---- */

void sim_durable_open(struct fleet *f, struct sim_node *n)
{
    struct sim_durables *s = mem_new(1, sizeof *s);
    const struct runtime_config config = {
        .on_completion = on_completion, .context = s, .on_store = on_store, .store = s};

    s->fleet = f;
    s->node = n;
    s->runtime = runtime_new(&config);
    n->durables = s;
}

void sim_durable_close(struct sim_node *n)
{
    struct sim_durables *s = n->durables;

    if (s != NULL) {
        n->durables = NULL;
        runtime_close(s->runtime, RH_STOP);
        mem_free(s);
    }
}

void sim_durable_begin(struct instance *i)
{
    const struct sim_durables *s = i->node->durables;
    const struct bytes id = actor_id(i->actor);

    i->durable = activation_new(s->runtime, FLEET_KIND_DURABLE, id, i);
    const struct runtime_entry entry = {
        .ops = &ops, .activation = i->durable, .has_state = i->warm, .fence = i->token};
    set_now(s);
    (void)runtime_activate(s->runtime, &entry);
}

void sim_durable_run(const struct instance *i, uint64_t uid)
{
    uint8_t body[8];
    struct writer w = {.at = body, .left = sizeof body};
    const struct runtime_message m = {.ticket = i->ticket, .body = bytes_of(body, sizeof body)};

    put_u64(&w, uid);
    set_now(i->node->durables);
    runtime_run(i->durable, &m);
}

void sim_durable_end(struct instance *i)
{
    struct rh_actor *a = i->durable;

    if (a == NULL) {
        return;
    }
    i->durable = NULL;
    activation_set_owner(a, NULL);
    if (activation_is_live(a)) {
        runtime_discard(a, RH_STOP);
    }
    activation_free(a);
}
