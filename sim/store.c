/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated store, which compares fences and numbers, is slow, and crashes.
 */
#include "sim/store.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "sim/fleet.h"
#include "storage/actors/changes.h"
#include "wire/cursor.h"

enum {
    TROUBLED = 50,     /* of a hundred fleets: their store crashes … */
    CRASH_PM_MAX = 20, /* … at so many of a thousand tasks, at most, … */
    DOWN_MIN_US = 50000,
    DOWN_MAX_US = 1500000, /* … for so long */
    KEPT = 50,             /* of a hundred tasks that outlive their node, as many arrive */
    DONE = 50,             /* and of a hundred commits in a crash are done … */
    READ_BACK = 50,        /* … and of as many it is known which */
    RAISE_US = 1000000,    /* M_READ1ST */
};

/* A task on its way. */
struct parcel {
    struct list_link link; /* of the fleet's */
    struct fleet *fleet;
    struct sim_node *node;
    struct entity *entity;
    struct store_task *task; /* owned */
    uint64_t life;           /* of the node */
};

void store_draw(struct fleet *f, uint64_t seed)
{
    list_init(&f->store.parcels);
    f->store.prng.state = seed ^ 0x73746f7265u;
    if (f->profile != PROFILE_CALM && prng_chance(&f->store.prng, TROUBLED)) {
        f->store.crash_pm = prng_between(&f->store.prng, 1, CRASH_PM_MAX);
    }
}

static void parcel_free(struct parcel *p)
{
    list_remove(&p->link);
    store_task_free(p->task);
    mem_free(p);
}

void store_fini(struct fleet *f)
{
    struct list_link *l = NULL;

    while ((l = list_front(&f->store.parcels)) != NULL) {
        parcel_free(CONTAINER_OF(l, struct parcel, link));
    }
}

/* Its sender lives. */
static bool is_awaited(const struct parcel *p)
{
    return p->node->process.up && p->node->process.life == p->life;
}

/* Mostly quick; now and then as long as a lease. Not before what was sent last. */
static void send(struct parcel *p, uint64_t *last_us, world_run run, struct world_gate *gate)
{
    struct world *w = &p->fleet->world;
    const uint64_t max_us =
        world_chance(w, p->fleet->faults.store_slow_pm) ? 3000000 : p->fleet->faults.store_max_us;
    const uint64_t at_us = w->now_us + world_between(w, 20, max_us + 20);

    *last_us = at_us > *last_us ? at_us : *last_us;
    world_at(w, *last_us, (struct world_event){.run = run, .context = p, .gate = gate});
}

/* ---- back ---- */

static void on_back(void *context, const struct world_event *event)
{
    struct parcel *p = context;
    struct fleet *f = p->fleet;
    struct sim_node *n = p->node;
    struct store_task *task = p->task;

    (void)event;
    if (!is_awaited(p)) {
        parcel_free(p);
        return;
    }
    p->task = NULL;
    parcel_free(p);
    sim_durable_stored(f, n, task);
}

static void give_back(struct parcel *p)
{
    send(p, &p->node->stored_us, on_back, &p->node->process.gate);
}

/* ---- claim ---- */

/* In the order of their keys. */
static void read_row(const struct entity *e, struct buffer *out)
{
    for (size_t i = 0; i < e->row.count; i++) {
        uint8_t key[STORE_PLACE_SIZE];
        uint8_t value[8];
        struct writer w = {.at = value, .left = sizeof value};

        store_place_put(key, i);
        put_u64(&w, e->row.uid[i]);
        changes_put(out,
                    &(struct store_change){.key = bytes_of(key, sizeof key),
                                           .bytes = bytes_of(value, sizeof value)});
    }
    if (e->born) {
        changes_put(out, &(struct store_change){.key = bytes_of(STORE_BORN, 4)});
    }
}

static void raise(const struct parcel *p)
{
    struct store_task *t = p->task;

    t->result = t->fence >= p->entity->token ? STORE_DONE : STORE_FENCED;
    if (t->result == STORE_DONE) {
        p->entity->token = t->fence;
        t->number = p->entity->number;
    }
}

/* M_READ1ST: raising the fence is a step of its own, after the read. */
static void on_raise(void *context, const struct world_event *event)
{
    struct parcel *p = context;

    (void)event;
    raise(p);
    give_back(p);
}

static void claim(struct parcel *p)
{
    read_row(p->entity, &p->task->bytes);
    raise(p);
}

/* ---- commit ---- */

static void apply(const struct parcel *p)
{
    struct bytes all = buffer_bytes(&p->task->bytes);
    struct entity *e = p->entity;
    struct store_change c;

    while (changes_next(&all, &c)) {
        struct reader value = {.at = c.bytes.data, .left = c.bytes.size};

        if (c.of != CHANGE_VALUE) {
            continue;
        }
        if (bytes_equal(c.key, bytes_of(STORE_BORN, 4))) {
            e->born = true;
        } else {
            const size_t place = store_place(c.key.data);
            const uint64_t uid = get_u64(&value);

            check_stored(
                p->fleet, e, uid, (struct stored){.place = place, .fence = p->task->fence});
            ledger_list_add(&e->row, uid);
        }
    }
    e->number = p->task->number;
}

static void commit(const struct parcel *p)
{
    struct store_task *t = p->task;
    const struct entity *e = p->entity;
    const bool owns = t->fence == e->token || mutant(M_NOFENCESTORE);
    const bool takes = (owns && t->number == e->number + 1) || mutant(M_NOTOKEN);

    t->result = takes ? STORE_DONE : STORE_FENCED;
    TRACE(&p->fleet->world,
          p->node->process.name,
          "the store %s commit %llu of %s",
          takes ? "takes" : "refuses",
          (unsigned long long)t->number,
          e->id);
    if (takes) {
        apply(p);
    } else {
        p->fleet->ledger.store_refused++;
    }
}

/* ---- trouble ---- */

static void doubt(const struct parcel *p)
{
    struct bytes all = buffer_bytes(&p->task->bytes);
    struct store_change c;

    p->task->result = STORE_UNKNOWN;
    p->fleet->ledger.store_doubts++;
    while (changes_next(&all, &c)) {
        struct reader value = {.at = c.bytes.data, .left = c.bytes.size};
        struct sim_ask *a = c.of != CHANGE_VALUE ? NULL : ledger_find(p->fleet, get_u64(&value));

        if (a != NULL && !value.bad) {
            a->in_doubt = true;
        }
    }
}

/* It crashes at this task. */
static void crash(const struct parcel *p)
{
    struct prng *prng = &p->fleet->store.prng;
    const bool done = prng_chance(prng, DONE);
    const bool known = prng_chance(prng, READ_BACK);

    p->fleet->store.down_us = p->fleet->world.now_us + prng_between(prng, DOWN_MIN_US, DOWN_MAX_US);
    TRACE(&p->fleet->world, p->node->process.name, "the store crashes");
    p->task->result = STORE_UNAVAILABLE;
    if (p->task->verb == STORE_CLAIM) {
        return;
    }
    if (done) {
        commit(p);
    }
    if (!known) {
        doubt(p);
    }
}

static void on_arrived(void *context, const struct world_event *event)
{
    struct parcel *p = context;
    struct fleet *f = p->fleet;

    (void)event;
    if (!is_awaited(p) && !prng_chance(&f->store.prng, KEPT)) {
        parcel_free(p);
        return;
    }
    if (!f->healed && f->world.now_us < f->store.down_us) {
        p->task->result = STORE_UNAVAILABLE;
    } else if (!f->healed && f->store.crash_pm > 0 &&
               prng_between(&f->store.prng, 1, 1000) <= f->store.crash_pm) {
        crash(p);
    } else if (p->task->verb == STORE_CLAIM && mutant(M_READ1ST)) {
        read_row(p->entity, &p->task->bytes);
        world_at(&f->world,
                 f->world.now_us + RAISE_US,
                 (struct world_event){.run = on_raise, .context = p});
        return;
    } else if (p->task->verb == STORE_CLAIM) {
        claim(p);
    } else {
        commit(p);
    }
    give_back(p);
}

void store_ask(struct fleet *f, struct sim_node *n, struct store_task *task)
{
    struct parcel *p = mem_new(1, sizeof *p);

    *p = (struct parcel){.fleet = f,
                         .node = n,
                         .entity = ledger_entity(f, bytes_of(task->id, task->id_size)),
                         .task = task,
                         .life = n->process.life};
    ASSERT(p->entity != NULL);
    list_push_back(&f->store.parcels, &p->link);
    send(p, &n->store_us, on_arrived, NULL);
}
