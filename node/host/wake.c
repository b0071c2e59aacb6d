/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors that live without being asked. The shell is told to list the ids of
 * remembered kinds when some came to me cold: at the start, and by a crash. It
 * names them one by one; those that are mine and not alive are started, so many
 * a second. What is handed over of such kinds is started at once: it lived a
 * moment ago.
 *
 * An id that waits here is a record: when its arc moves, so does the record, and
 * the new owner starts it.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

enum {
    SECOND_US = 1000000,
    LIST_AGAIN_US = 600 * SECOND_US, /* ids that got lost on the way, or came by another door */
    LIST_SOON_US = 60 * SECOND_US,   /* ids that came warm, perhaps in the midst of a list */
    ARRIVED_AT_ONCE = 64,            /* of those handed over, in one step */
    LATE_AT_ONCE = 1000,
};

/* An id of a held cell: its images may be complete, so it waits for the outcome. */
struct late {
    struct list_link link;
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[];
};

void wake_init(struct host *h)
{
    const struct host_config *config = &h->config;

    h->autostart.remembered = mem_new(config->kind_count, sizeof *h->autostart.remembered);
    for (size_t i = 0; i < config->kind_count; i++) {
        if (config->kinds[i].remembered) {
            h->autostart.remembered[h->autostart.remembered_count++] = config->kinds[i].number;
        }
    }
    actor_list_begin(&h->actors, &h->autostart.wanted);
    actor_list_begin(&h->actors, &h->autostart.arrived);
    list_init(&h->autostart.late);
}

void wake_fini(struct autostart *s)
{
    wake_forget(s);
    mem_free(s->remembered);
}

void wake_forget(struct autostart *s)
{
    struct list_link *link = NULL;

    while ((link = list_pop_front(&s->late)) != NULL) {
        mem_free(CONTAINER_OF(link, struct late, link));
        s->count--;
    }
    s->listed_cold = s->seen_cold = s->old_cold = 0;
    s->lost = false;
}

void wake_list_again(struct autostart *s)
{
    s->lost = true;
}

/* ---- those that wait ---- */

void wake_unlist(struct host *h, struct actor *a)
{
    if (a->wanted && !a->live && actor_listed(a)) {
        actor_unlist(&h->actors, a);
        h->autostart.count--;
    }
}

static void wake_list(struct host *h, struct actor *a, struct actor_list *list)
{
    ASSERT(a->state == ACTOR_ABSENT && actor_held(a) == NULL);
    if (!actor_listed(a)) {
        actor_list_add(&h->actors, list, a);
        h->autostart.count++;
    }
}

void wake_if_wanted(struct host *h, struct actor *a)
{
    a->wanted = a->wanted && !quarantine_holds(h, a);
    if (a->wanted) {
        wake_list(h, a, &h->autostart.wanted);
    }
}

void wake_arrived(struct host *h, struct actor *a)
{
    const struct image *image = actor_image(a);
    const bool lived = remember_arrived(h, a);

    if (!host_has_kind(h, a->kind)) {
        return; // it waits here for the next owner, or for this node's next build
    }
    // Its client is there, and waits for what it is pushed.
    const bool bound = image != NULL && image->bond.size > 0;
    const struct kind_state *kind = host_kind_of(h, a->kind);
    const bool always =
        (kind->how->remembered || kind->how->always || lived) && !mutant(M_NOREMEMBER);

    if ((bound || always) && !quarantine_holds(h, a)) {
        a->wanted = true;
        wake_list(h, a, &h->autostart.arrived);
    }
}

static void start_some(struct host *h, const struct actor_list *list, size_t count)
{
    struct actor *a = NULL;

    for (;
         count > 0 && lease_policy_may_start(h) && (a = actor_list_front(&h->actors, list)) != NULL;
         count--) {
        if (!remember_puts_off(h, a)) {
            actor_activate(h, a);
            h->autostart.woken++;
        }
    }
}

bool wake_has_more(const struct host *h)
{
    return actor_list_front(&h->actors, &h->autostart.arrived) != NULL && lease_policy_may_start(h);
}

void wake_go_on(struct host *h)
{
    start_some(h, &h->autostart.arrived, ARRIVED_AT_ONCE);
}

bool wake_start(struct host *h, uint16_t kind, struct bytes id)
{
    if (!host_has_kind(h, kind) || quarantine_names(h, kind, id) || !always_knows(h, kind, id)) {
        return false;
    }
    const struct image_name name = {.position = host_position(h, kind, id), .kind = kind, .id = id};
    const uint32_t cell = ring_point_cell(name.position);
    struct actor *a = actor_find(&h->actors, name);

    if (!host_owns(h, cell) || h->cells.state[cell].hold != NULL || !lease_policy_may_start(h) ||
        (a != NULL && (a->live || a->state != ACTOR_ABSENT || quarantine_holds(h, a)))) {
        return false;
    }
    a = a == NULL ? actor_new(&h->actors, name) : a;
    if (!remember_puts_off(h, a)) {
        actor_activate(h, a);
        h->autostart.woken++;
    }
    return true;
}

/* ---- HOST_WAKE ---- */

static void keep_late(struct host *h, uint16_t kind, struct bytes id)
{
    struct late *late = mem_new(1, sizeof *late + id.size);

    late->kind = kind;
    late->id_size = (uint8_t)id.size;
    memcpy(late->id, id.data, id.size);
    list_push_back(&h->autostart.late, &late->link);
    h->autostart.count++;
}

void wake_on_wake(struct host *h, uint16_t kind, struct bytes id)
{
    if (h->membership.life != LIFE_SERVING || !host_has_kind(h, kind) || id.size < 1 ||
        id.size > RECORD_ID_MAX || quarantine_names(h, kind, id)) {
        return;
    }
    const struct image_name name = {.position = host_position(h, kind, id), .kind = kind, .id = id};
    const uint32_t cell = ring_point_cell(name.position);
    struct actor *a = actor_find(&h->actors, name);
    if (!host_owns(h, cell) || (a != NULL && (a->live || a->wanted))) {
        return; // another node's to start, or nobody's
    }
    if (a == NULL && h->autostart.count >= h->config.wake_count_max) {
        h->autostart.lost = true;
        h->autostart.wake_dropped++;
    } else if (h->cells.state[cell].hold != NULL) {
        keep_late(h, kind, id);
    } else {
        a = a == NULL ? actor_new(&h->actors, name) : a;
        a->wanted = true;
        actor_proceed(h, a);
    }
}

/* Their cells may be free again. */
static void take_late(struct host *h)
{
    struct list_link *last = h->autostart.late.head.prev;

    for (size_t i = 0; i < LATE_AT_ONCE && !list_empty(&h->autostart.late); i++) {
        struct list_link *link = list_pop_front(&h->autostart.late);
        struct late *late = CONTAINER_OF(link, struct late, link);

        h->autostart.count--;
        wake_on_wake(h, late->kind, bytes_of(late->id, late->id_size));
        mem_free(late);
        if (link == last) {
            return;
        }
    }
}

/* ---- HOST_LIST ---- */

static void ask_list(struct host *h)
{
    struct host_effect *e = NULL;

    h->autostart.list_us = h->now_us + LIST_AGAIN_US;
    h->autostart.lost = false;
    if (h->autostart.remembered_count > 0) {
        e = host_emit(h, HOST_LIST);
        e->kinds = h->autostart.remembered;
        e->kind_count = h->autostart.remembered_count;
    }
    remember_recall(h);
}

/* The greatest cold stamp of a node's vnodes; of all for RING_NODE_NONE. */
static uint64_t greatest_cold(const struct ring *ring, uint16_t slot)
{
    uint64_t cold = 0;

    for (uint32_t i = 0; i < ring->vnode_count; i++) {
        if ((slot == RING_NODE_NONE || ring->vnode[i].owner == slot) &&
            ring->vnode[i].cold > cold) {
            cold = ring->vnode[i].cold;
        }
    }
    return cold;
}

/* It was another's by a crash not long ago: that one may have listed it in part, whatever I have
 * listed since. Soon, not at once: it seldom comes alone. */
void wake_came(struct host *h, uint32_t cell)
{
    struct autostart *w = &h->autostart;
    const struct ring *ring = &h->topology.view.ring;
    const struct ring_vnode *v = ring_find(ring, ring_hit_vnode(ring->cell[cell]));

    // M_NOREMEMBER: this would bring those that it leaves asleep.
    const bool never = mutant(M_LISTEDPART) || mutant(M_NOREMEMBER);

    if (v->cold > w->old_cold && w->list_us > h->now_us + LIST_SOON_US && !never) {
        w->list_us = h->now_us + LIST_SOON_US;
    }
}

void wake_adopt(struct host *h)
{
    const uint64_t cold = greatest_cold(&h->topology.view.ring, h->membership.slot);

    if (cold > h->autostart.listed_cold) {
        h->autostart.listed_cold = cold;
        ask_list(h);
    }
}

void wake_tick(struct host *h)
{
    struct autostart *w = &h->autostart;
    const uint64_t gone_us = h->now_us - w->paced_us;
    const uint64_t most = (uint64_t)h->config.wake_rate * SECOND_US / 4;

    // In millionths of one start; not more is saved up than a quarter of a second's.
    w->credit += (gone_us < SECOND_US ? gone_us : SECOND_US) * h->config.wake_rate;
    w->credit = w->credit < most ? w->credit : most;
    w->paced_us = h->now_us;
    take_late(h);
    const uint64_t before = h->autostart.woken;
    start_some(h, &w->wanted, w->credit / SECOND_US);
    w->credit -= (h->autostart.woken - before) * SECOND_US;
    if (h->now_us >= w->aged_us) {
        w->aged_us = h->now_us + LIST_AGAIN_US;
        w->old_cold = w->seen_cold;
        w->seen_cold = greatest_cold(&h->topology.view.ring, RING_NODE_NONE);
    }
    if (h->membership.life == LIFE_SERVING &&
        ((w->lost && actor_list_front(&h->actors, &w->wanted) == NULL) ||
         h->now_us >= w->list_us)) {
        ask_list(h);
    }
}
