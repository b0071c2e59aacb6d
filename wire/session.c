/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/session.h"

#include "base/assert.h"

enum { KICKED = 1, BOUND_SIZE = 21, NOTE_SIZE_MAX = 37 };

/* What is left is not looked at by who is done. */
static enum err ended(const struct reader *in, bool fits)
{
    return !in->bad && in->left == 0 && fits ? ERR_OK : ERR_CORRUPT;
}

/* ---- bonds ---- */

void bond_put(struct writer *out, const struct bond *b)
{
    put_u64(out, b->gateway);
    put_u64(out, b->connection);
    put_u32(out, b->round);
    put_u32(out, b->kicked ? KICKED : 0);
    put_u64(out, b->number);
    put_u64(out, b->stamp.fence);
    put_u64(out, b->stamp.count);
}

enum err bond_get(struct bytes in, struct bond *b)
{
    struct reader r = {.at = in.data, .left = in.size};

    b->gateway = get_u64(&r);
    b->connection = get_u64(&r);
    b->round = get_u32(&r);
    const uint32_t flags = get_u32(&r);
    b->kicked = flags == KICKED;
    b->number = get_u64(&r);
    b->stamp.fence = get_u64(&r);
    b->stamp.count = get_u64(&r);
    return ended(&r, flags <= KICKED);
}

/* ---- notes ---- */

void note_put(struct buffer *out, const struct note *n)
{
    uint8_t head[NOTE_SIZE_MAX] = {0};
    struct writer w = {.at = head, .left = sizeof head};

    put_u8(&w, n->type);
    if (n->type != NOTE_PUSH) {
        put_u64(&w, n->gateway);
        put_u64(&w, n->connection);
    }
    if (n->type == NOTE_BIND || n->type == NOTE_RESUME) {
        put_u32(&w, n->round);
    }
    if (n->type == NOTE_RESUME) {
        put_u64(&w, n->stamp.fence);
        put_u64(&w, n->stamp.count);
    } else if (n->type == NOTE_LOST) {
        put_u8(&w, n->why);
    }
    ASSERT(!w.bad);
    buffer_put(out, head, sizeof head - w.left);
    if (n->type == NOTE_PUSH) {
        ASSERT(n->payload.size <= PUSH_SIZE_MAX);
        buffer_put(out, n->payload.data, n->payload.size);
    }
}

enum err note_get(struct bytes in, struct note *n)
{
    struct reader r = {.at = in.data, .left = in.size};
    bool fits = true;

    *n = (struct note){.type = get_u8(&r)};
    if (n->type == NOTE_PUSH) {
        n->payload = bytes_of(r.at, r.left);
        return !r.bad && r.left <= PUSH_SIZE_MAX ? ERR_OK : ERR_CORRUPT;
    }
    n->gateway = get_u64(&r);
    n->connection = get_u64(&r);
    if (n->type == NOTE_BIND || n->type == NOTE_RESUME) {
        n->round = get_u32(&r);
    }
    if (n->type == NOTE_RESUME) {
        n->stamp.fence = get_u64(&r);
        n->stamp.count = get_u64(&r);
    } else if (n->type == NOTE_LOST) {
        n->why = get_u8(&r);
        fits = n->why >= NOTE_LOST_CLOSED && n->why <= NOTE_LOST_SLOW;
    } else {
        fits = n->type == NOTE_BIND;
    }
    return ended(&r, fits);
}

void bound_put(struct buffer *out, const struct bound *b)
{
    struct writer w = {.at = buffer_reserve(out, BOUND_SIZE), .left = BOUND_SIZE};

    put_u8(&w, b->result);
    put_u32(&w, b->round);
    put_u64(&w, b->stamp.fence);
    put_u64(&w, b->stamp.count);
    ASSERT(!w.bad && w.left == 0);
    out->size += BOUND_SIZE;
}

enum err bound_get(struct bytes in, struct bound *b)
{
    struct reader r = {.at = in.data, .left = in.size};

    b->result = get_u8(&r);
    b->round = get_u32(&r);
    b->stamp.fence = get_u64(&r);
    b->stamp.count = get_u64(&r);
    return ended(&r, b->result <= BOUND_RESULT_LAST);
}

/* ---- pushes ---- */

void push_put(struct buffer *out, const struct push_record *p)
{
    const size_t size = PUSH_HEADER_SIZE + p->payload.size;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    ASSERT(p->payload.size <= PUSH_SIZE_MAX && p->type <= PUSH_TYPE_LAST);
    put_u64(&w, p->gateway);
    put_u64(&w, p->connection);
    put_u64(&w, p->number);
    put_u32(&w, p->round);
    put_u32(&w, p->code);
    put_u8(&w, p->type);
    put_u32(&w, (uint32_t)p->payload.size);
    put_bytes(&w, p->payload.data, p->payload.size);
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

enum err push_get(struct reader *in, struct push_record *p)
{
    p->gateway = get_u64(in);
    p->connection = get_u64(in);
    p->number = get_u64(in);
    p->round = get_u32(in);
    p->code = get_u32(in);
    p->type = get_u8(in);
    const size_t size = get_u32(in);
    if (p->type > PUSH_TYPE_LAST || size > PUSH_SIZE_MAX ||
        (p->number == 0) != (p->type == PUSH_AGAIN)) {
        in->bad = true;
    }
    const uint8_t *at = get_bytes(in, size);
    p->payload = bytes_of(at, at == NULL ? 0 : size);
    return in->bad ? ERR_CORRUPT : ERR_OK;
}
