/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes notes about sessions and pushes.
 */
#include "wire/session.h"

#include "base/assert.h"
#include "wire/trace.h"
#include "wire/values_ask.h"

#include <string.h>

enum {
    KICKED = 1,
    KEPT = 2,
    REBOUND = 4,
    FOLLOWED = 8,
    BOUND_SIZE = 21,
    BOUND_LONG_SIZE = 45,
    UNSEEN_PREFIX = 4,
    NOTE_SIZE_MAX = 69
};

/* Refuse trailing bytes: a note must fill its bytes exactly. */
static enum err ended(const struct reader *in, bool fits)
{
    return !in->bad && in->left == 0 && fits ? ERR_OK : ERR_CORRUPT;
}

/* ---- rebinds ---- */

void rebind_put(struct buffer *out, const struct rebind *r)
{
    const size_t size = 2 + (size_t)r->id_size;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    ASSERT(r->id_size > 0);
    put_u16(&w, r->kind);
    put_bytes(&w, r->id, r->id_size);
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

enum err rebind_get(struct bytes in, struct rebind *r)
{
    struct reader in_r = {.at = in.data, .left = in.size};

    *r = (struct rebind){.kind = get_u16(&in_r)};
    if (in_r.bad || in_r.left < 1 || in_r.left > REBIND_ID_MAX) {
        return ERR_CORRUPT;
    }
    r->id_size = (uint8_t)in_r.left;
    memcpy(r->id, in_r.at, in_r.left);
    return ERR_OK;
}

/* ---- bonds ---- */

void bond_put(struct buffer *out, const struct bond *b)
{
    const bool kept = b->session != 0;
    const size_t size = kept ? BOND_KEPT_SIZE : BOND_SIZE;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    put_u64(&w, b->gateway);
    put_u64(&w, b->connection);
    put_u32(&w, b->round);
    const bool rebound = b->rebind.id_size > 0;
    put_u32(&w,
            (b->kicked ? KICKED : 0u) | (kept ? KEPT : 0u) | (rebound ? REBOUND : 0u) |
                (b->followed ? FOLLOWED : 0u));
    put_u64(&w, b->number);
    put_u64(&w, b->stamp.fence);
    put_u64(&w, b->stamp.count);
    if (kept) {
        put_u64(&w, b->key);
        put_u64(&w, b->session);
        put_u32(&w, b->epoch);
        put_u32(&w, b->left_ms);
    }
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
    if (rebound) {
        buffer_put(out, &b->rebind.id_size, 1);
        rebind_put(out, &b->rebind);
    }
    if (kept && b->followed) {
        struct writer before = {.at = buffer_reserve(out, UNSEEN_PREFIX), .left = UNSEEN_PREFIX};

        put_u32(&before, (uint32_t)b->unacked_pushes.size);
        out->size += UNSEEN_PREFIX;
    }
    buffer_put(out, b->unacked_pushes.data, kept ? b->unacked_pushes.size : 0);
}

bool unacked_pushes_next(struct reader *in, struct bytes *payload)
{
    if (in->left == 0) {
        return false;
    }
    const size_t size = get_u32(in);
    const uint8_t *at = get_bytes(in, size);

    *payload = bytes_of(at, at == NULL ? 0 : size);
    return !in->bad;
}

/* Whole pushes, and no more than were ever numbered. */
static bool are_unacked(struct bytes unacked_pushes, uint64_t number)
{
    struct reader r = {.at = unacked_pushes.data, .left = unacked_pushes.size};
    struct bytes payload;
    uint64_t count = 0;

    while (unacked_pushes_next(&r, &payload)) {
        count++;
    }
    return !r.bad && unacked_pushes.size <= BOND_UNACKED_MAX && count <= number;
}

/* True: nothing is wrong with it. */
static bool get_rebound(struct reader *in, uint32_t flags, struct rebind *out)
{
    if ((flags & REBOUND) == 0) {
        return true;
    }
    const size_t size = (size_t)get_u8(in) + 2; // the id's, and the kind
    const uint8_t *at = get_bytes(in, size);

    return at != NULL && rebind_get(bytes_of(at, size), out) == ERR_OK;
}

enum err bond_take(struct reader *in, struct bond *b)
{
    *b = (struct bond){0};
    b->gateway = get_u64(in);
    b->connection = get_u64(in);
    b->round = get_u32(in);
    const uint32_t flags = get_u32(in);
    b->kicked = (flags & KICKED) != 0;
    b->followed = (flags & FOLLOWED) != 0;
    b->number = get_u64(in);
    b->stamp.fence = get_u64(in);
    b->stamp.count = get_u64(in);
    const bool kept = (flags & KEPT) != 0;
    if (kept) {
        b->key = get_u64(in);
        b->session = get_u64(in);
        b->epoch = get_u32(in);
        b->left_ms = get_u32(in);
    }
    const bool fits =
        flags <= (KICKED | KEPT | REBOUND | FOLLOWED) && get_rebound(in, flags, &b->rebind);
    if (kept) {
        const size_t size = b->followed ? get_u32(in) : in->left;
        const uint8_t *at = get_bytes(in, size);

        b->unacked_pushes = bytes_of(at, at == NULL ? 0 : size);
    }
    const bool sound = !kept || (b->session != 0 && are_unacked(b->unacked_pushes, b->number));
    return !in->bad && fits && sound ? ERR_OK : ERR_CORRUPT;
}

enum err bond_get(struct bytes in, struct bond *b)
{
    struct reader r = {.at = in.data, .left = in.size};
    const enum err error = bond_take(&r, b);

    return error != ERR_OK ? error : ended(&r, !b->followed);
}

/* ---- notes ---- */

/* Not of one client: there is nothing but, of a KICK, the code, and a payload to the end. */
static bool is_for_anyone(const struct note *n)
{
    return n->type == NOTE_PUSH || n->type == NOTE_KICK || n->type == NOTE_TRACE ||
           n->type == NOTE_SEND || n->type == NOTE_VALUES;
}

static size_t payload_max(const struct note *n)
{
    return n->type == NOTE_PUSH     ? PUSH_SIZE_MAX
           : n->type == NOTE_KICK   ? PUSH_TEXT_MAX
           : n->type == NOTE_SEND   ? NOTE_SEND_MAX
           : n->type == NOTE_VALUES ? VALUES_ASK_MAX
                                    : TRACE_SIZE_MAX;
}

static bool has_round(const struct note *n)
{
    return !is_for_anyone(n) && n->type != NOTE_LOST;
}

static bool has_stamp(const struct note *n)
{
    return n->type == NOTE_RESUME || n->type == NOTE_RENEW;
}

static bool has_key(const struct note *n)
{
    return n->type == NOTE_KEEP || n->type == NOTE_RETURN || n->type == NOTE_RENEW;
}

static bool has_got(const struct note *n)
{
    return n->type == NOTE_RETURN || n->type == NOTE_RENEW || n->type == NOTE_ACK;
}

void note_put(struct buffer *out, const struct note *n)
{
    uint8_t head[NOTE_SIZE_MAX] = {0};
    struct writer w = {.at = head, .left = sizeof head};

    put_u8(&w, n->type);
    if (!is_for_anyone(n)) {
        put_u64(&w, n->gateway);
        put_u64(&w, n->connection);
    }
    if (n->type == NOTE_KICK) {
        put_u32(&w, n->code);
    } else if (n->type == NOTE_SEND) {
        put_u64(&w, n->number);
    }
    if (has_round(n)) {
        put_u32(&w, n->round);
    }
    if (has_stamp(n)) {
        put_u64(&w, n->stamp.fence);
        put_u64(&w, n->stamp.count);
    } else if (n->type == NOTE_LOST) {
        put_u8(&w, n->why);
    }
    if (has_key(n)) {
        put_u64(&w, n->key);
        put_u64(&w, n->session);
    }
    if (n->type == NOTE_RENEW) {
        put_u32(&w, n->epoch);
        put_u32(&w, n->got_round);
    }
    if (has_got(n)) {
        put_u64(&w, n->got);
    }
    ASSERT(!w.bad);
    buffer_put(out, head, sizeof head - w.left);
    if (is_for_anyone(n)) {
        ASSERT(n->payload.size <= payload_max(n));
        buffer_put(out, n->payload.data, n->payload.size);
    }
}

enum err note_get(struct bytes in, struct note *n)
{
    struct reader r = {.at = in.data, .left = in.size};
    bool fits = true;

    *n = (struct note){.type = get_u8(&r)};
    if (is_for_anyone(n)) {
        n->code = n->type == NOTE_KICK ? get_u32(&r) : 0;
        n->number = n->type == NOTE_SEND ? get_u64(&r) : 0;
        r.bad = r.bad || (n->type == NOTE_SEND && n->number == 0);
        n->payload = bytes_of(r.at, r.left);
        return !r.bad && r.left <= payload_max(n) ? ERR_OK : ERR_CORRUPT;
    }
    n->gateway = get_u64(&r);
    n->connection = get_u64(&r);
    if (has_round(n)) {
        n->round = get_u32(&r);
    }
    if (has_stamp(n)) {
        n->stamp.fence = get_u64(&r);
        n->stamp.count = get_u64(&r);
    } else if (n->type == NOTE_LOST) {
        n->why = get_u8(&r);
        fits = n->why >= NOTE_LOST_CLOSED && n->why <= NOTE_LOST_REBOUND;
    }
    if (has_key(n)) {
        n->key = get_u64(&r);
        n->session = get_u64(&r);
        fits = n->key != 0 && n->session != 0;
    }
    if (n->type == NOTE_RENEW) {
        n->epoch = get_u32(&r);
        n->got_round = get_u32(&r);
    }
    n->got = has_got(n) ? get_u64(&r) : 0;
    return ended(&r, fits && n->type >= NOTE_BIND && n->type <= NOTE_TYPE_LAST);
}

void bound_put(struct buffer *out, const struct bound *b)
{
    const size_t size = b->key == 0 ? BOUND_SIZE : BOUND_LONG_SIZE;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    put_u8(&w, b->result);
    put_u32(&w, b->round);
    put_u64(&w, b->stamp.fence);
    put_u64(&w, b->stamp.count);
    if (b->key != 0) {
        put_u64(&w, b->key);
        put_u64(&w, b->next);
        put_u32(&w, b->epoch);
        put_u32(&w, b->keep_ms);
    }
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

enum err bound_get(struct bytes in, struct bound *b)
{
    struct reader r = {.at = in.data, .left = in.size};

    *b = (struct bound){0};
    b->result = get_u8(&r);
    b->round = get_u32(&r);
    b->stamp.fence = get_u64(&r);
    b->stamp.count = get_u64(&r);
    if (in.size == BOUND_SIZE) {
        return ended(&r, b->result <= BOUND_RESULT_LAST);
    }
    b->key = get_u64(&r);
    b->next = get_u64(&r);
    b->epoch = get_u32(&r);
    b->keep_ms = get_u32(&r);
    return ended(&r, b->result <= BOUND_RESULT_LAST && b->key != 0 && b->next != 0);
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
