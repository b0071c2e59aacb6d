/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes which actor waits for which call, and follows such chains to find
 * circles.
 */
#include "node/books/waits.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

enum {
    HOPS_MAX = 64,        /* twice round a circle of 32 */
    PROBES_A_TICK = 1000, /* sent on by a node between two ticks */
};

/* Set in the round of a probe that goes on for another call than where it began. */
#define FOR_ANOTHER (UINT32_C(1) << 31)

/* An edge. */
struct wait {
    struct table_link by_number;
    struct table_link by_run;
    struct wait *next; /* a ring of those of the same run, in order: one may have a thousand */
    struct wait *prev;
    bool leads;         /* it is the one in by_run */
    struct delay delay; /* until its next probe */
    unsigned level;
    uint64_t number;
    uint64_t run;
    struct call_name name;
    uint64_t deadline_us;
    uint32_t handle; /* of its memory */
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[]; /* flexible */
};

_Static_assert(sizeof(struct wait) + UINT8_MAX <= POOL_ITEM_MAX, "with the longest id");

void waits_init(struct waits *w)
{
    *w = (struct waits){0};
    delays_init(&w->delays);
    list_init(&w->out);
}

/* The first of a run, or NULL. */
static struct wait *first_of(const struct waits *w, uint64_t run)
{
    struct table_link *l = table_first(&w->by_run, table_mix(run));

    return l == NULL ? NULL : CONTAINER_OF(l, struct wait, by_run);
}

static void join_run(struct waits *w, struct wait *wait)
{
    struct wait *first = first_of(w, wait->run);

    wait->next = wait->prev = wait;
    if (first == NULL) {
        table_put(&w->by_run, &wait->by_run, table_mix(wait->run));
        wait->leads = true;
        return;
    }
    wait->next = first;
    wait->prev = first->prev;
    first->prev = wait->prev->next = wait;
}

static void leave_run(struct waits *w, struct wait *wait)
{
    struct wait *next = wait->next;

    if (wait->leads) {
        const uint64_t hash = wait->by_run.hash;

        table_remove(&w->by_run, &wait->by_run);
        if (next != wait) {
            table_put(&w->by_run, &next->by_run, hash);
            next->leads = true;
        }
    }
    wait->prev->next = next;
    next->prev = wait->prev;
}

static void end(struct waits *w, struct wait *wait)
{
    table_remove(&w->by_number, &wait->by_number);
    leave_run(w, wait);
    delay_stop(&wait->delay);
    pool_give(&w->memory, wait->handle);
}

static struct wait *find(const struct waits *w, uint64_t number)
{
    // The mix is one to one: equal hashes are equal numbers.
    struct table_link *l = table_first(&w->by_number, table_mix(number));

    return l == NULL ? NULL : CONTAINER_OF(l, struct wait, by_number);
}

void waits_clear(struct waits *w)
{
    struct wait_effect *e = NULL;
    struct table_link *l = NULL;
    struct table_walk at = {0};

    while ((l = table_walk(&w->by_number, &at)) != NULL) {
        end(w, CONTAINER_OF(l, struct wait, by_number));
    }
    while ((e = waits_take(w)) != NULL) {
        mem_free(e);
    }
    table_fini(&w->by_number);
    table_fini(&w->by_run);
    pool_fini(&w->memory);
    waits_init(w);
}

void waits_add(struct waits *w, const struct wait_of *of, uint64_t now_us)
{
    uint32_t handle = 0;
    struct wait *wait = pool_take(&w->memory, sizeof *wait + of->id.size, &handle);

    wait->handle = handle;
    wait->number = of->number;
    wait->run = of->run;
    wait->name = of->name;
    wait->deadline_us = of->deadline_us;
    wait->kind = of->kind;
    wait->id_size = (uint8_t)of->id.size;
    memcpy(wait->id, of->id.data, of->id.size);
    table_put(&w->by_number, &wait->by_number, table_mix(wait->number));
    join_run(w, wait);
    delay_start(&w->delays, &wait->delay, 0, now_us);
}

void waits_end(struct waits *w, uint64_t number)
{
    struct wait *wait = find(w, number);

    if (wait != NULL) {
        end(w, wait);
    }
}

struct wait_effect *waits_take(struct waits *w)
{
    struct list_link *l = list_pop_front(&w->out);

    return l == NULL ? NULL : CONTAINER_OF(l, struct wait_effect, link);
}

static struct wait_effect *effect(struct waits *w, enum wait_effect_type type,
                                  const struct probe *p)
{
    struct wait_effect *e = mem_new(1, sizeof *e + p->id.size);

    e->type = type;
    e->probe = *p;
    memcpy(e->id, p->id.data, p->id.size);
    e->probe.id.data = e->id;
    list_push_back(&w->out, &e->link);
    return e;
}

/* Did it go along that call before? From now on it did. One that begins outside of a circle never
 * comes home, and would go round it again and again; as would each copy of one whose actor made
 * several calls. All of them together would leave no room for the circle's own (PROBES_A_TICK). */
static bool goes_again(struct waits *w, const struct wait *wait, const struct probe *p)
{
    const uint64_t of_origin =
        table_mix(p->origin.seq ^ table_mix(p->origin.session ^ table_mix(p->origin.node)));
    const uint64_t hash = table_mix(wait->number ^ table_mix(p->round ^ of_origin));
    uint64_t *at = &w->passed[hash % WAITS_PASSED];
    const bool again = *at == hash;

    *at = hash;
    return again && !mutant(M_PROBESAGAIN);
}

/* A probe goes along that call. */
static void pass(struct waits *w, struct wait *wait, const struct probe *p)
{
    struct probe next = *p;

    if (p->hops >= HOPS_MAX || w->sent >= PROBES_A_TICK || mutant(M_NOCIRCLE) ||
        goes_again(w, wait, p)) {
        return;
    }
    w->sent++;
    next.call = wait->name;
    next.kind = wait->kind;
    next.id = bytes_of(wait->id, wait->id_size);
    next.hops++;
    (void)effect(w, WAIT_PROBE, &next);
}

void waits_tick(struct waits *w, uint64_t now_us)
{
    struct delay *due = NULL;

    w->sent = 0;
    while ((due = delays_due(&w->delays, now_us)) != NULL) {
        struct wait *wait = CONTAINER_OF(due, struct wait, delay);
        const struct probe first = {.origin = wait->name, .round = ++wait->level};

        if (now_us >= wait->deadline_us) {
            end(w, wait); // nobody waits any more, or it is about to hear that
            continue;
        }
        if (!mutant(M_PROBEONCE)) {
            delay_start(&w->delays, &wait->delay, wait->level, now_us);
        }
        pass(w, wait, &first);
    }
}

static const struct call_name *greater(const struct call_name *a, const struct call_name *b)
{
    return call_name_compare(a, b) >= 0 ? a : b;
}

/* It is back at the call where it began. True: what it came along is refused. */
static bool close_circle(struct waits *w, struct wait *wait, const struct probe *p, bool queued)
{
    const struct call_name greatest = *(queued ? greater(&wait->name, &p->greatest) : &p->greatest);

    if (call_name_same(&greatest, &wait->name) || mutant(M_EACHREFUSES)) {
        w->circles++;
        return true;
    }
    if (greatest.seq != 0) { // else no mailbox was on its way, and it is no circle
        struct probe again = *p;

        again.origin = greatest;
        again.greatest = greatest;
        again.round |= FOR_ANOTHER;
        pass(w, wait, &again);
    }
    return false;
}

void waits_chase(struct waits *w, const struct probe *p, struct blocked b)
{
    struct wait *first = b.run == 0 ? NULL : first_of(w, b.run);
    struct wait *wait = first == NULL ? NULL : first->prev; // the newest is the first to know
    bool refuse = false;

    while (wait != NULL) {
        struct probe next = *p;

        if (call_name_same(&wait->name, &p->origin)) {
            refuse = close_circle(w, wait, p, b.queued);
        } else {
            next.greatest = b.queued ? *greater(&wait->name, &p->greatest) : p->greatest;
            pass(w, wait, &next);
        }
        wait = wait == first ? NULL : wait->prev;
    }
    if (refuse) {
        effect(w, WAIT_REFUSE, p)->run = b.run;
    }
}
