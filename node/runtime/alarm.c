/* SPDX-License-Identifier: Apache-2.0
 *
 * The heap of a runtime's alarms.
 */
#include "node/runtime/alarm.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdbool.h>

static bool earlier(const struct alarm *a, const struct alarm *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void put_at(struct alarms *s, struct alarm *a, size_t place)
{
    s->heap[place - 1] = a;
    a->place = place;
}

static void rise(struct alarms *s, struct alarm *a)
{
    size_t place = a->place;

    while (place > 1 && earlier(a, s->heap[place / 2 - 1])) {
        put_at(s, s->heap[place / 2 - 1], place);
        place /= 2;
    }
    put_at(s, a, place);
}

static void sink(struct alarms *s, struct alarm *a)
{
    size_t place = a->place;

    for (;;) {
        size_t child = place * 2;

        if (child > s->count) {
            break;
        }
        if (child < s->count && earlier(s->heap[child], s->heap[child - 1])) {
            child++;
        }
        if (!earlier(s->heap[child - 1], a)) {
            break;
        }
        put_at(s, s->heap[child - 1], place);
        place = child;
    }
    put_at(s, a, place);
}

void alarms_set(struct alarms *s, struct alarm *a, uint64_t at_us)
{
    ASSERT(a->place == 0);
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 16 : s->cap * 2;
        s->heap = mem_resize(s->heap, s->cap * sizeof(struct alarm *));
    }
    a->at_us = at_us;
    a->order = ++s->last_order;
    put_at(s, a, ++s->count);
    rise(s, a);
}

void alarms_unset(struct alarms *s, struct alarm *a)
{
    const size_t place = a->place;

    if (place == 0) {
        return;
    }
    struct alarm *last = s->heap[--s->count];
    a->place = 0;
    if (last != a) {
        put_at(s, last, place);
        rise(s, last);
        sink(s, last);
    }
}

struct alarm *alarms_due(struct alarms *s, uint64_t now_us)
{
    struct alarm *first = s->count == 0 ? NULL : s->heap[0];

    if (first == NULL || first->at_us > now_us) {
        return NULL;
    }
    alarms_unset(s, first);
    return first;
}

void alarms_fini(struct alarms *s)
{
    mem_free(s->heap);
    *s = (struct alarms){0};
}
