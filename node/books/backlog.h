/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to go over a link that has enough to do: frames in order, until there
 * is room. Workers answer a while after they were given their tasks, so when a
 * link is found full, what was begun for it before has yet to be answered.
 */
#ifndef NODE_BOOKS_BACKLOG_H
#define NODE_BOOKS_BACKLOG_H

#include "base/bytes.h"
#include "base/list.h"
#include "wire/frame.h"

struct backlog {
    struct list frames;
    size_t size; /* bytes of them */
};

void backlog_init(struct backlog *b);
void backlog_fini(struct backlog *b);
bool backlog_is_empty(const struct backlog *b);
/* Append a copy. */
void backlog_put(struct backlog *b, enum frame_type type, struct bytes bytes);
/* The oldest, borrowed until backlog_pop(). There is one. */
struct bytes backlog_front(const struct backlog *b, enum frame_type *type);
void backlog_pop(struct backlog *b);

#endif
