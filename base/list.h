/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive doubly linked list: the link lives in the item, so an item leaves
 * its list in O(1) and a list never allocates. FIFO by push_back + front.
 *
 *     struct request { struct list_link link; … };
 *     struct list held = LIST_INIT(held);
 *     list_push_back(&held, &request->link);
 *     struct request *r = CONTAINER_OF(list_front(&held), struct request, link);
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

struct list_link {
    struct list_link *prev; /* NULL = in no list */
    struct list_link *next;
};

struct list {
    struct list_link head; /* a ring; head itself carries no item */
};

#define LIST_INIT(name)                        \
    {                                          \
        .head = { &(name).head, &(name).head } \
    }

static inline void list_init(struct list *l)
{
    l->head.prev = l->head.next = &l->head;
}

static inline bool list_empty(const struct list *l)
{
    return l->head.next == &l->head;
}

static inline bool list_linked(const struct list_link *item)
{
    return item->prev != NULL;
}

static inline void list_push_back(struct list *l, struct list_link *item)
{
    item->prev = l->head.prev;
    item->next = &l->head;
    l->head.prev->next = item;
    l->head.prev = item;
}

/* Insert the item behind `before`: a linked item, or a list's head; then the item is the first. */
static inline void list_insert_after(struct list_link *before, struct list_link *item)
{
    item->prev = before;
    item->next = before->next;
    before->next->prev = item;
    before->next = item;
}

static inline void list_remove(struct list_link *item)
{
    ASSERT(list_linked(item));
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->prev = item->next = NULL;
}

/* First item or NULL. */
static inline struct list_link *list_front(const struct list *l)
{
    return list_empty(l) ? NULL : l->head.next;
}

/* The item after `item`, or NULL at the end. */
static inline struct list_link *list_next(const struct list *l, const struct list_link *item)
{
    return item->next == &l->head ? NULL : item->next;
}

/* Remove and return the first item, or NULL. */
static inline struct list_link *list_pop_front(struct list *l)
{
    struct list_link *item = list_front(l);

    if (item != NULL) {
        list_remove(item);
    }
    return item;
}

/* Append all of `from` to `to`, in order; `from` ends empty. */
static inline void list_splice_back(struct list *to, struct list *from)
{
    if (list_empty(from)) {
        return;
    }
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    list_init(from);
}

#endif
