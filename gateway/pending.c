/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/pending.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { COPY_MAX = 255 };

struct pending *pending_new(uint16_t kind, struct bytes id, struct bytes body)
{
    ASSERT(id.size >= 1 && id.size <= UINT8_MAX);
    ASSERT(body.size <= UINT32_MAX);
    // Not mem_new(): only the head needs to be zero, and a body may be a megabyte.
    struct pending *p = mem_resize(NULL, sizeof *p + id.size + body.size);

    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->id_size = (uint8_t)id.size;
    p->body_size = (uint32_t)body.size;
    p->state = PENDING_WAITING;
    memcpy(p->data, id.data, id.size);
    if (body.size > 0) {
        memcpy(p->data + id.size, body.data, body.size);
    }
    return p;
}

size_t pending_size(const struct pending *p)
{
    return sizeof *p + p->id_size + p->body_size;
}

struct bytes pending_id(const struct pending *p)
{
    return (struct bytes){p->data, p->id_size};
}

struct bytes pending_body(const struct pending *p)
{
    return (struct bytes){p->data + p->id_size, p->body_size};
}

static uint64_t bit_of(uint8_t copy)
{
    return (uint64_t)1 << (copy & 63u);
}

uint8_t pending_last(const struct pending *p)
{
    return p->attempts == 0 ? 0 : (uint8_t)(1 + (p->attempts - 1) % COPY_MAX);
}

uint8_t pending_attempt(struct pending *p)
{
    p->attempts++;
    const uint8_t copy = pending_last(p);

    if ((p->open & bit_of(copy)) != 0) {
        p->doubtful = true;
    }
    p->open |= bit_of(copy);
    return copy;
}

bool pending_is_open(const struct pending *p, uint8_t copy)
{
    return copy != 0 && (p->open & bit_of(copy)) != 0;
}

bool pending_close(struct pending *p, uint8_t copy)
{
    if (!pending_is_open(p, copy)) {
        return false;
    }
    p->open &= ~bit_of(copy);
    return true;
}

bool pending_never_ran(const struct pending *p)
{
    return p->open == 0 && !p->doubtful;
}
