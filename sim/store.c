/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated external store, which compares fences.
 */
#include "sim/store.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "sim/fleet.h"

#include <string.h>

/* A request to the store, or its answer. */
struct parcel {
    uint64_t instance;
    struct entity *entity;
    struct sim_node *node;
    uint64_t token;
    uint64_t uid;
    bool ok;
    size_t count;
    uint64_t list[];
};

static struct parcel *parcel_new(const struct instance *i, const struct ledger_list *l)
{
    struct parcel *p = mem_new(1, sizeof *p + l->count * sizeof *l->uid);

    p->instance = i->id;
    p->entity = i->entity;
    p->node = i->node;
    p->token = i->token;
    p->count = l->count;
    if (l->count > 0) {
        memcpy(p->list, l->uid, l->count * sizeof *l->uid);
    }
    return p;
}

static struct parcel *parcel_copy(const struct parcel *p)
{
    return mem_copy(p, sizeof *p + p->count * sizeof *p->list);
}

/* Mostly quick; now and then as long as a lease. */
static void send(struct fleet *f, struct parcel *p, world_run run, struct world_gate *gate)
{
    const uint64_t max_us =
        world_chance(&f->world, f->faults.store_slow_pm) ? 3000000 : f->faults.store_max_us;

    world_at(&f->world,
             f->world.now_us + world_between(&f->world, 20, max_us + 20),
             (struct world_event){.run = run, .context = f, .data = p, .gate = gate});
}

/* ---- claim ---- */

static void on_claimed(void *context, const struct world_event *event)
{
    struct parcel *p = event->data;

    actors_claimed(
        context, p->node, p->instance, p->ok, (struct ledger_list){p->list, p->count, 0});
}

static void answer_claim(struct fleet *f, const struct parcel *p)
{
    send(f, parcel_copy(p), on_claimed, &p->node->process.gate);
}

static struct parcel *read_row(const struct parcel *p)
{
    const struct ledger_list *row = &p->entity->row;
    struct parcel *out = mem_new(1, sizeof *out + row->count * sizeof *row->uid);

    *out = *p;
    out->count = row->count;
    if (row->count > 0) {
        memcpy(out->list, row->uid, row->count * sizeof *row->uid);
    }
    return out;
}

/* M_READ1ST: raising the token is a step of its own, after the read. */
static void on_raise(void *context, const struct world_event *event)
{
    struct parcel *p = event->data;

    p->ok = p->token >= p->entity->token;
    if (p->ok) {
        p->entity->token = p->token;
    }
    answer_claim(context, p);
}

static void on_claim(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct parcel *p = event->data;
    struct entity *e = p->entity;
    struct parcel *row = read_row(p);

    if (mutant(M_READ1ST)) {
        send(f, row, on_raise, NULL);
        return;
    }
    row->ok = p->token >= e->token;
    if (row->ok) {
        e->token = p->token;
    }
    answer_claim(f, row);
    mem_free(row);
}

void store_claim(struct fleet *f, const struct instance *i)
{
    const struct ledger_list none = {0};

    send(f, parcel_new(i, &none), on_claim, NULL);
}

/* ---- write ---- */

static void on_wrote(void *context, const struct world_event *event)
{
    const struct parcel *p = event->data;

    actors_wrote(context, p->node, p->instance, p->uid, p->ok);
}

static void on_write(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct parcel *p = event->data;
    struct entity *e = p->entity;
    struct parcel *answer;

    p->ok = p->token == e->token || mutant(M_NOTOKEN);
    TRACE(&f->world,
          p->node->process.name,
          "the store %s request %llu of %s",
          p->ok ? "takes" : "refuses",
          (unsigned long long)p->uid,
          e->id);
    if (p->ok) {
        check_stored(f, e, p->uid, (struct ledger_list){p->list, p->count, 0});
        e->row.count = 0;
        for (size_t i = 0; i < p->count; i++) {
            ledger_list_add(&e->row, p->list[i]);
        }
        ledger_list_add(&e->row, p->uid);
    } else {
        f->ledger.store_refused++;
    }
    answer = parcel_copy(p);
    send(f, answer, on_wrote, &p->node->process.gate);
}

void store_write(struct fleet *f, const struct instance *i, uint64_t uid)
{
    struct parcel *p = parcel_new(i, &i->list);

    p->uid = uid;
    send(f, p, on_write, NULL);
}
