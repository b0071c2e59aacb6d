/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue of frames for a link that is full.
 */
#include "node/books/backlog.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

struct kept_frame {
    struct list_link in_backlog;
    enum frame_type type;
    size_t size;
    uint8_t bytes[]; /* flexible */
};

static struct kept_frame *front(const struct backlog *b)
{
    ASSERT(!list_empty(&b->frames));
    return CONTAINER_OF(list_front(&b->frames), struct kept_frame, in_backlog);
}

void backlog_init(struct backlog *b)
{
    list_init(&b->frames);
    b->size = 0;
}

void backlog_fini(struct backlog *b)
{
    while (!backlog_is_empty(b)) {
        backlog_pop(b);
    }
}

bool backlog_is_empty(const struct backlog *b)
{
    return list_empty(&b->frames);
}

void backlog_put(struct backlog *b, enum frame_type type, struct bytes bytes)
{
    struct kept_frame *k = mem_new(1, sizeof *k + bytes.size);

    k->type = type;
    k->size = bytes.size;
    if (bytes.size > 0) {
        memcpy(k->bytes, bytes.data, bytes.size);
    }
    list_push_back(&b->frames, &k->in_backlog);
    b->size += bytes.size;
}

struct bytes backlog_front(const struct backlog *b, enum frame_type *type)
{
    const struct kept_frame *k = front(b);

    *type = k->type;
    return bytes_of(k->bytes, k->size);
}

void backlog_pop(struct backlog *b)
{
    struct kept_frame *k = front(b);

    b->size -= k->size;
    list_remove(&k->in_backlog);
    mem_free(k);
}
