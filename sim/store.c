/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated store, which compares fences and numbers, is slow, and crashes.
 */
#include "sim/store.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "sim/bank/bank.h"
#include "sim/fleet.h"
#include "storage/actors/changes.h"
#include "wire/cursor.h"

#include <string.h>

enum {
    TROUBLED = 50,     /* of a hundred fleets: their store crashes … */
    CRASH_PM_MAX = 20, /* … at so many of a thousand tasks, at most, … */
    DOWN_MIN_US = 50000,
    DOWN_MAX_US = 1500000, /* … for so long */
    KEPT = 50,             /* of a hundred tasks that outlive their node, as many arrive */
    DONE = 50,             /* and of a hundred commits in a crash are done … */
    READ_BACK = 50,        /* … and of as many it is known which */
    RAISE_US = 1000000,    /* M_READ1ST */
    LATE = 50,             /* of a hundred that are not done are still on their way … */
    LATE_MAX_US = 3000000, /* … for so long */
};

/* A task on its way. */
struct parcel {
    struct list_link link; /* of the fleet's */
    struct fleet *fleet;
    struct sim_node *node;
    struct entity *entity;   /* NULL: it is of … */
    struct account *account; /* … this one; both NULL: it asks which alarms are due */
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
    struct sim_node *n = p->node;
    struct store_task *task = p->task;

    (void)event;
    if (!is_awaited(p)) {
        parcel_free(p);
        return;
    }
    const bool of_entity = p->entity != NULL;

    p->task = NULL;
    parcel_free(p);
    if (of_entity) {
        sim_durable_stored(n, task);
    } else {
        sim_teller_stored(n, task);
    }
}

static void give_back(struct parcel *p)
{
    send(p, &p->node->stored_us, on_back, &p->node->process.gate);
}

/* ---- claim ---- */

/* In the order of their keys. */
static void read_row(const struct entity *e, struct buffer *out)
{
    ASSERT(e != NULL);
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

    ASSERT(p->entity != NULL);
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
    if (p->account != NULL) {
        vault_claim(&p->account->vault, p->task);
        return;
    }
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

static bool is_to_take(const struct parcel *p)
{
    const struct store_task *t = p->task;
    const struct entity *e = p->entity;

    if (p->account != NULL) {
        return vault_takes(&p->account->vault, t);
    }
    const bool owns = t->fence == e->token || mutant(M_NOFENCESTORE);

    return (owns && t->number == e->number + 1) || mutant(M_NOTOKEN);
}

static void commit(const struct parcel *p)
{
    struct store_task *t = p->task;
    const bool takes = is_to_take(p);

    t->result = takes ? STORE_DONE : STORE_FENCED;
    TRACE(&p->fleet->world,
          p->node->process.name,
          "the store %s commit %llu of %s",
          takes ? "takes" : "refuses",
          (unsigned long long)t->number,
          p->account != NULL ? p->account->id : p->entity->id);
    if (takes && p->account != NULL) {
        check_bank_commit(p->fleet, p->account, t);
        vault_commit(&p->account->vault, t);
        check_bank_sums(p->fleet);
    } else if (takes) {
        apply(p);
    } else {
        p->fleet->ledger.store_refused++;
    }
}

/* ---- due ---- */

static int compare_bytes(struct bytes a, struct bytes b)
{
    const size_t size = a.size < b.size ? a.size : b.size;
    const int by_content = memcmp(a.data, b.data, size);

    return by_content != 0 ? by_content : (a.size > b.size) - (a.size < b.size);
}

static int due_compare(const struct due_alarm *a, const struct due_alarm *b)
{
    if (a->due_ms != b->due_ms) {
        return a->due_ms < b->due_ms ? -1 : 1;
    }
    const int by_id = compare_bytes(a->id, b->id);

    return by_id != 0 ? by_id : compare_bytes(a->name, b->name);
}

/* The first behind `after`, in their order. */
static bool next_due(const struct fleet *f, uint64_t until_ms, const struct due_alarm *after,
                     struct due_alarm *out)
{
    bool found = false;

    for (size_t i = 0; i < ACCOUNTS; i++) {
        const struct account *a = &f->bank->account[i];
        struct store_change row = {.key = {0}};

        while (vault_next(&a->vault, CHANGE_ALARM, row.key, &row)) {
            const struct due_alarm d = {
                .due_ms = row.due_ms, .id = bytes_of(a->id, a->id_size), .name = row.key};

            if (d.due_ms <= until_ms && (after == NULL || due_compare(after, &d) < 0) &&
                (!found || due_compare(&d, out) < 0)) {
                *out = d;
                found = true;
            }
        }
    }
    return found;
}

static void read_due(const struct parcel *p)
{
    struct store_task *t = p->task;
    struct buffer from = t->bytes;
    struct bytes begin = buffer_bytes(&from);
    struct due_alarm at;
    bool has = due_next(&begin, &at);

    t->bytes = (struct buffer){0};
    t->result = STORE_DONE;
    for (size_t i = 0; i < STORE_DUE_MAX; i++) {
        has = next_due(p->fleet, t->number, has ? &at : NULL, &at);
        if (!has) {
            break;
        }
        due_put(&t->bytes, &at);
    }
    TRACE(&p->fleet->world,
          p->node->process.name,
          "is told of %zu bytes of alarms that are due",
          t->bytes.size);
    buffer_fini(&from);
}

/* ---- trouble ---- */

static void doubt(const struct parcel *p)
{
    struct bytes all = buffer_bytes(&p->task->bytes);
    struct store_change c;

    p->task->result = STORE_UNKNOWN;
    p->fleet->ledger.store_doubts++;
    if (p->account != NULL) {
        check_bank_doubt(p->fleet, p->task);
        return;
    }
    while (changes_next(&all, &c)) {
        struct reader value = {.at = c.bytes.data, .left = c.bytes.size};
        struct sim_ask *a = c.of != CHANGE_VALUE ? NULL : ledger_find(p->fleet, get_u64(&value));

        if (a != NULL && !value.bad) {
            a->in_doubt = true;
        }
    }
}

/* What is still in some buffer comes when its owner was told what became of it. */
static void on_late(void *context, const struct world_event *event)
{
    struct parcel *p = context;

    (void)event;
    commit(p);
    parcel_free(p);
}

/* … a copy of it: it was sent, and its line broke. */
static void late(const struct parcel *p)
{
    struct prng *prng = &p->fleet->store.prng;
    const uint64_t at_us = p->fleet->world.now_us + prng_between(prng, 1, LATE_MAX_US);
    struct store_task *t = store_task_new(STORE_COMMIT);
    struct parcel *copy = mem_new(1, sizeof *copy);

    if (!prng_chance(prng, LATE)) {
        store_task_free(t);
        mem_free(copy);
        return;
    }
    *t = *p->task;
    t->link = (struct list_link){0};
    t->bytes = (struct buffer){0};
    buffer_put(&t->bytes, p->task->bytes.data, p->task->bytes.size);
    *copy = (struct parcel){
        .fleet = p->fleet, .node = p->node, .account = p->account, .task = t, .life = p->life};
    list_push_back(&p->fleet->store.parcels, &copy->link);
    world_at(&p->fleet->world, at_us, (struct world_event){.run = on_late, .context = copy});
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
    if (p->task->verb != STORE_COMMIT) {
        return;
    }
    if (done) {
        commit(p);
    }
    if (!known) {
        doubt(p);
    } else if (p->account != NULL) {
        late(p);
        p->task->result = vault_settle(&p->account->vault, p->task);
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
    } else if (p->task->verb == STORE_DUE) {
        read_due(p);
    } else if (p->task->verb == STORE_CLAIM && p->entity != NULL && mutant(M_READ1ST)) {
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

    *p = (struct parcel){.fleet = f, .node = n, .task = task, .life = n->process.life};
    if (task->kind == FLEET_KIND_DURABLE) {
        p->entity = ledger_entity(f, bytes_of(task->id, task->id_size));
        ASSERT(p->entity != NULL);
    } else if (task->verb != STORE_DUE) {
        p->account = bank_account(f, bytes_of(task->id, task->id_size));
        ASSERT(p->account != NULL);
    }
    list_push_back(&f->store.parcels, &p->link);
    send(p, &n->store_us, on_arrived, NULL);
}
