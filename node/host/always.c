/* SPDX-License-Identifier: Apache-2.0
 *
 * Singletons and daemons: which ones are this node's, and which end.
 */
#include "node/host/inside.h"

#include "base/mutant.h"

#include <ringhold.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_AGAIN_US = 1000000, ID_SIZE_MAX = VIEW_NAME_MAX + 8 };

static const struct host_kind *find_kind(const struct host *h, uint16_t number)
{
    for (size_t i = 0; i < h->config.kind_count; i++) {
        if (h->config.kinds[i].number == number) {
            return &h->config.kinds[i];
        }
    }
    return NULL;
}

/* How many the kind has, by the configuration; 0: its ids hash, or nobody bound it yet. */
static uint32_t count_of(const struct host *h, const struct host_kind *k)
{
    const struct ring_segment *s = ring_segment_of_kind(&h->topology.view.ring, k->number);

    if (s == NULL || k->name == NULL) {
        return 0;
    }
    return k->placement == RH_PLACE_SINGLETON ? 1 : k->placement == RH_PLACE_DAEMONS ? s->open : 0;
}

static struct bytes id_of(const struct host_kind *k, uint32_t number, char text[ID_SIZE_MAX])
{
    if (k->placement == RH_PLACE_SINGLETON) {
        (void)snprintf(text, ID_SIZE_MAX, "%s", k->name);
    } else {
        (void)snprintf(text, ID_SIZE_MAX, "%s/%u", k->name, number);
    }
    return bytes_of(text, strlen(text));
}

bool always_knows(const struct host *h, uint16_t kind, struct bytes id)
{
    const struct host_kind *k = find_kind(h, kind);
    char text[ID_SIZE_MAX];
    uint32_t number = 0;

    if (k == NULL || kind_takes_any(k)) {
        return true;
    }
    if (k->placement == RH_PLACE_DAEMONS && !ring_daemon_number(id, &number)) {
        return false;
    }
    const struct bytes known = id_of(k, number, text);
    return number < count_of(h, k) && known.size == id.size &&
           memcmp(known.data, id.data, id.size) == 0;
}

static void start(struct host *h, const struct host_kind *k)
{
    const struct ring_segment *s = ring_segment_of_kind(&h->topology.view.ring, k->number);
    const uint32_t count = count_of(h, k);
    char text[ID_SIZE_MAX];

    for (uint32_t i = 0; i < count; i++) {
        if (host_owns(h, s->from + i)) {
            wake_on_wake(h, k->number, id_of(k, i, text));
        }
    }
}

void always_stop(struct host *h, struct actor *a)
{
    if (a->state == ACTOR_RETIRING || actor_held(a) != NULL) {
        return; // it ends, or goes away
    }
    if (a->live || a->state == ACTOR_ACTIVATING) {
        retire_on_passivate(h, a);
    } else if (a->wanted) {
        wake_unlist(h, a);
        a->wanted = false;
        actor_proceed(h, a);
    }
}

/* The set was made smaller: what is above ends like one that nobody uses. */
static void end(struct host *h, const struct host_kind *k)
{
    const struct ring_segment *s = ring_segment_of_kind(&h->topology.view.ring, k->number);
    const uint32_t from = s == NULL ? 0 : s->from + count_of(h, k);
    const uint32_t last = s == NULL ? 0 : ring_segment_end(s);

    for (uint32_t c = from; k->placement == RH_PLACE_DAEMONS && c < last; c++) {
        struct actor *next = host_owns(h, c) ? cell_first(&h->actors, c) : NULL;

        while (next != NULL) {
            struct actor *a = next;

            next = cell_next(&h->actors, c, a);
            always_stop(h, a);
        }
    }
}

static void look(struct host *h)
{
    h->autostart.always_us = h->now_us + LOOK_AGAIN_US;
    for (size_t i = 0; i < h->config.kind_count; i++) {
        const struct host_kind *k = &h->config.kinds[i];

        if (!kind_takes_any(k)) {
            start(h, k);
            if (!mutant(M_SETSTAYS)) {
                end(h, k);
            }
        }
    }
}

void always_adopt(struct host *h)
{
    h->autostart.always_us = 0;
}

void always_tick(struct host *h)
{
    if (h->membership.life == LIFE_SERVING && h->now_us >= h->autostart.always_us &&
        !mutant(M_ASLEEP)) {
        look(h);
    }
}
