/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/pending.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { COPY_MAX = 255 };

static void put_content(struct pending *p, const struct question *q)
{
    struct writer w = {.at = p->data, .left = pending_size(p) - sizeof *p};

    put_bytes(&w, q->id.data, q->id.size);
    put_bytes(&w, q->chain, q->chain_count * sizeof q->chain[0]);
    if (q->from != NULL) {
        caller_put(&w, q->from);
    }
    put_bytes(&w, q->body.data, q->body.size);
    ASSERT(!w.bad && w.left == 0);
}

struct pending *pending_new(const struct question *q)
{
    const size_t chain_size = q->chain_count * sizeof q->chain[0];
    const size_t body_size = (q->from == NULL ? 0 : caller_size(q->from)) + q->body.size;

    ASSERT(q->id.size >= 1 && q->id.size <= UINT8_MAX);
    ASSERT(q->chain_count <= RECORD_CHAIN_MAX);
    ASSERT(body_size <= UINT32_MAX);
    // Not mem_new(): only the head needs to be zero, and a body may be a megabyte.
    struct pending *p = mem_resize(NULL, sizeof *p + q->id.size + chain_size + body_size);

    memset(p, 0, sizeof *p);
    p->kind = q->kind;
    p->id_size = (uint8_t)q->id.size;
    p->chain_count = (uint8_t)q->chain_count;
    p->body_size = (uint32_t)body_size;
    p->state = PENDING_WAITING;
    put_content(p, q);
    return p;
}

size_t pending_size(const struct pending *p)
{
    return sizeof *p + p->id_size + p->chain_count * sizeof(uint64_t) + p->body_size;
}

struct bytes pending_id(const struct pending *p)
{
    return (struct bytes){p->data, p->id_size};
}

struct bytes pending_body(const struct pending *p)
{
    const size_t at = p->id_size + p->chain_count * sizeof(uint64_t);

    return (struct bytes){p->data + at, p->body_size};
}

void pending_chain(const struct pending *p, uint64_t chain[RECORD_CHAIN_MAX])
{
    if (p->chain_count > 0) {
        memcpy(chain, p->data + p->id_size, p->chain_count * sizeof chain[0]);
    }
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
