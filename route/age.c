/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds expired requests: a list for each time-out, in order of deadline.
 */
#include "route/age.h"

#include "base/assert.h"

enum { OTHERS = AGES - 1 };

void ages_init(struct ages *a)
{
    *a = (struct ages){0};
    for (size_t i = 0; i < AGES; i++) {
        list_init(&a->list[i]);
    }
}

static size_t list_for(struct ages *a, uint32_t timeout_ms)
{
    size_t empty = OTHERS;

    for (size_t i = 0; i < a->top && i < OTHERS; i++) {
        if (a->timeout_ms[i] == timeout_ms) {
            return i;
        }
        if (empty == OTHERS && list_empty(&a->list[i])) {
            empty = i;
        }
    }
    if (empty == OTHERS && a->top < OTHERS) {
        empty = a->top;
    }
    a->timeout_ms[empty] = timeout_ms;
    a->top = empty >= a->top ? empty + 1 : a->top;
    return empty;
}

/* Most come last: from the end. */
static void put_sorted(struct list *list, struct pending *p)
{
    struct list_link *at = list->head.prev;

    while (at != &list->head &&
           CONTAINER_OF(at, struct pending, in_age)->deadline_us > p->deadline_us) {
        at = at->prev;
    }
    p->in_age.prev = at;
    p->in_age.next = at->next;
    at->next->prev = &p->in_age;
    at->next = &p->in_age;
}

void ages_put(struct ages *a, struct pending *p, uint32_t timeout_ms)
{
    put_sorted(&a->list[list_for(a, timeout_ms)], p);
}

struct pending *ages_expired(const struct ages *a, uint64_t now_us)
{
    for (size_t i = 0; i < a->top; i++) {
        struct list_link *l = list_front(&a->list[i]);

        if (l != NULL && CONTAINER_OF(l, struct pending, in_age)->deadline_us <= now_us) {
            return CONTAINER_OF(l, struct pending, in_age);
        }
    }
    return NULL;
}

size_t ages_check(const struct ages *a)
{
    size_t count = 0;

    for (size_t i = 0; i < AGES; i++) {
        uint64_t before_us = 0;

        for (struct list_link *l = list_front(&a->list[i]); l != NULL;
             l = list_next(&a->list[i], l)) {
            const struct pending *p = CONTAINER_OF(l, struct pending, in_age);

            ASSERT(p->deadline_us >= before_us && i < a->top);
            before_us = p->deadline_us;
            count++;
        }
    }
    return count;
}
