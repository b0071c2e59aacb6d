/* SPDX-License-Identifier: Apache-2.0
 *
 * A wheel of actors by the time they were last used, so that idle ones are found
 * without a timer for each.
 */
#include "node/books/idle.h"

enum { MS = 1000, PARTS = 16 };

void idle_init(struct idle *i, struct actors *actors, uint32_t idle_ms, uint64_t now_us)
{
    const bool never = idle_ms == 0 || idle_ms == UINT32_MAX;

    i->actors = actors;
    i->idle_ms = never ? IDLE_NEVER_MS : idle_ms;
    i->never = never;
    i->grain_us = (uint64_t)i->idle_ms * MS / PARTS;
    i->grain_us = i->grain_us < MS ? MS : i->grain_us;
    i->swept = now_us / i->grain_us;
    for (unsigned s = 0; s < IDLE_SLOTS; s++) {
        actor_list_begin(actors, &i->slot[s]);
    }
}

/* The wheel may have stood still for a while; then it is put where it is soon found. */
static uint64_t within(const struct idle *i, uint64_t slot)
{
    return slot > i->swept + IDLE_SLOTS - 1 ? i->swept + IDLE_SLOTS - 1 : slot;
}

/* The slot, counted from time 0, after which it was unused for the idle time. */
static uint64_t slot_of(const struct idle *i, const struct actor *a, uint64_t now_us)
{
    const uint32_t age_ms = idle_age_ms(a, now_us);
    const uint32_t left_ms = age_ms < i->idle_ms ? i->idle_ms - age_ms : 0;

    return within(i, (now_us + (uint64_t)left_ms * MS) / i->grain_us + 1);
}

void idle_put(struct idle *i, struct actor *a, uint64_t now_us)
{
    actor_list_add(i->actors, &i->slot[slot_of(i, a, now_us) % IDLE_SLOTS], a);
}

struct actor *idle_take(struct idle *i, uint64_t now_us, size_t *steps)
{
    const uint64_t now = now_us / i->grain_us;

    i->swept = now > i->swept + IDLE_SLOTS ? now - IDLE_SLOTS : i->swept;
    while (i->swept < now) {
        struct actor_list *slot = &i->slot[(i->swept + 1) % IDLE_SLOTS];
        struct actor *a = NULL;

        while ((a = actor_list_front(i->actors, slot)) != NULL && *steps > 0) {
            actor_unlist(i->actors, a);
            --*steps;
            if (!i->never && idle_age_ms(a, now_us) >= i->idle_ms) {
                return a;
            }
            if (i->never && idle_age_ms(a, now_us) >= i->idle_ms) {
                actor_list_add(i->actors, &i->slot[within(i, now + 1) % IDLE_SLOTS], a);
            } else {
                idle_put(i, a, now_us);
            }
        }
        if (a != NULL) {
            return NULL;
        }
        i->swept++;
    }
    return NULL;
}

struct actor *idle_oldest(struct idle *i, uint64_t now_us, size_t *steps)
{
    for (uint64_t s = i->swept + 1; s < i->swept + IDLE_SLOTS; s++) {
        const struct actor_list *slot = &i->slot[s % IDLE_SLOTS];
        struct actor *a = NULL;

        while ((a = actor_list_front(i->actors, slot)) != NULL) {
            const bool later = slot_of(i, a, now_us) > s + 1;

            if (!later) {
                return a;
            }
            if (*steps == 0) {
                return NULL;
            }
            --*steps;
            actor_unlist(i->actors, a); // it was used since it was put here
            idle_put(i, a, now_us);
        }
    }
    return NULL;
}
