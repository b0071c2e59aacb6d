/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's worker of accounts, and the wall clock of its machine. Tasks for the store go there.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/bank/bank.h"
#include "sim/store.h"
#include "wire/cursor.h"

enum { AWAY_US = 50000 }; /* that a wall clock is wrong */

static uint64_t wall_us(const struct sim_worker *w)
{
    return FLEET_WALL_US + sim_worker_clock(w) + (uint64_t)w->node->wall_us;
}

size_t teller_view(const struct sim_worker *w)
{
    return check_view_index(w->fleet, w->node->seen.version);
}

uint64_t teller_wall_ms(const struct sim_worker *w)
{
    return wall_us(w) / 1000;
}

static void on_completion(void *context, const struct completion *c)
{
    struct sim_worker *w = context;

    if (c->verb != VERB_DEFER && c->verb != VERB_FINISH) {
        sim_worker_tell(w, c);
    }
}

static void on_store(void *store, struct store_task *task)
{
    const struct sim_worker *w = store;

    store_ask(w->fleet, w->node, task);
}

/* ---- life ---- */

void sim_teller_open(struct fleet *f, struct sim_node *n)
{
    if (f->bank == NULL) {
        return;
    }
    struct sim_worker *w = mem_new(1, sizeof *w);
    const struct runtime_config config = {.on_completion = on_completion,
                                          .context = w,
                                          .worker = BANK_WORKER,
                                          .on_store = on_store,
                                          .store = w};

    sim_worker_open(w, f, n, &config);
    n->teller = w;
    bank_set_clock(f, n, AWAY_US); // its machine may have booted
}

void sim_teller_close(struct sim_node *n)
{
    struct sim_worker *w = n->teller;

    if (w == NULL) {
        return;
    }
    n->teller = NULL;
    sim_worker_close(w);
    mem_free(w);
}

static void tick(struct sim_worker *w)
{
    w->takes_us = bank_between(w->fleet, 0, w->fleet->bank->lag_us);
    runtime_set_wall(w->runtime, sim_worker_clock(w), wall_us(w));
    sim_worker_tick(w);
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
    if (task->result == STORE_UNKNOWN) { // who reads meanwhile may hear so, too
        bank_account(n->teller->fleet, bytes_of(task->id, task->id_size))->doubts++;
    }
    runtime_stored(task);
    tick(n->teller);
}

void sim_teller_answer(struct sim_node *n, const struct call_answer *answer)
{
    struct sim_worker *w = n->teller;

    w->takes_us = 0;
    sim_worker_answer(w, answer);
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
               : what->asked == ASKED_LATE          ? "is asked what it knows of a request"
               : what->asked == ASKED_AGAIN         ? "runs a request, perhaps again"
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

static void note_again(const struct sim_worker *w, const struct submission *what,
                       struct bytes bytes)
{
    const struct bytes body = submission_rest(what, bytes);
    struct reader in = {.at = body.data, .left = body.size};
    const struct bank_ask *a = bank_find(w->fleet, get_u64(&in));

    w->fleet->bank->total.again++;
    w->fleet->bank->total.saved += a != NULL && a->ran;
}

bool sim_teller_takes(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                      struct bytes bytes)
{
    struct sim_worker *w = n->teller;
    struct submission what;

    if (w == NULL || actor_kind(e->actor) != FLEET_KIND_ACCOUNT) {
        return false;
    }
    TRACE(&f->world,
          n->process.name,
          "%.*s: %s",
          (int)actor_id(e->actor).size,
          (const char *)actor_id(e->actor).data,
          wish_name(&e->submission));
    runtime_set_wall(w->runtime, sim_worker_clock(w), wall_us(w));
    w->takes_us = bank_between(f, 0, f->faults.run_max_us);
    if (bridge_submit(w->runtime, &account_ops, w, e, &what)) {
        if (what.verb == VERB_RUN && what.asked != ASKED_FIRST) {
            note_again(w, &what, bytes);
        }
        sim_worker_perform(w, &what, bytes);
    }
    return true;
}
