/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes requests, answers and hand-over records.
 */
#include "wire/record.h"

#include "base/assert.h"

#include <string.h>

enum {
    REQUEST_HOPS_AT = 66, /* in the header, … */
    REQUEST_FLAGS_AT = 68,
    REQUEST_BODY_SIZE_AT = 71,
    ANSWER_HEADER_SIZE = 54,
    STATE_HEADER_SIZE = 40,
    STATE_ACK_SIZE = 21,
    CALLER_HEADER_SIZE = 3,
    REQUEST_FLAGS = REQUEST_COMMAND | REQUEST_NO_REPLY | REQUEST_IDEMPOTENT | REQUEST_HELD |
                    REQUEST_CALL | REQUEST_SESSION | REQUEST_AWAKE | REQUEST_TRACED,
};

static enum err get_end(struct reader *in, bool fits)
{
    if (!fits) {
        in->bad = true;
    }
    return in->bad ? ERR_CORRUPT : ERR_OK;
}

static struct bytes get_run(struct reader *in, size_t size)
{
    const uint8_t *at = get_bytes(in, size);

    return (struct bytes){at, at == NULL ? 0 : size};
}

size_t caller_size(const struct caller *c)
{
    return CALLER_HEADER_SIZE + c->id.size;
}

void caller_put(struct writer *out, const struct caller *c)
{
    ASSERT(c->id.size >= 1 && c->id.size <= RECORD_ID_MAX);
    put_u16(out, c->kind);
    put_u8(out, (uint8_t)c->id.size);
    put_bytes(out, c->id.data, c->id.size);
}

enum err caller_get(struct bytes *body, struct caller *c)
{
    struct reader in = {.at = body->data, .left = body->size};

    c->kind = get_u16(&in);
    c->id = get_run(&in, get_u8(&in));
    *body = (struct bytes){in.at, in.left};
    return get_end(&in, c->id.size >= 1);
}

/* Take the context off a body. False: it can be none. */
__attribute__((noinline)) static bool trace_is_sound(uint8_t flags, struct bytes *body)
{
    struct trace_context trace;

    if (body->size < TRACE_CONTEXT_SIZE || (flags & REQUEST_SESSION) != 0) {
        return false;
    }
    trace_context_take(body, &trace);
    return trace_context_is_sampled(&trace);
}

bool request_body_is_sound(uint8_t flags, struct bytes body)
{
    struct caller caller;

    if (__builtin_expect((flags & REQUEST_TRACED) != 0, false) && !trace_is_sound(flags, &body)) {
        return false;
    }
    if ((flags & REQUEST_CALL) != 0 && caller_get(&body, &caller) != ERR_OK) {
        return false;
    }
    return body.size <= RECORD_BODY_MAX;
}

void request_put_any(struct buffer *out, const struct request_record *r)
{
    const size_t size = request_size(r);
    uint8_t *head = buffer_reserve(out, size);
    uint8_t *at = request_store(head, r);

    if ((r->flags & REQUEST_TRACED) != 0) {
        head[REQUEST_HOPS_AT] |= RECORD_TRACED;
        head[REQUEST_FLAGS_AT] &= (uint8_t)~REQUEST_TRACED;
    }

    for (size_t i = 0; i < r->chain_count; i++) {
        at = store_u64(at, r->chain[i]);
    }
    bytes_copy(at, r->id.data, r->id.size);
    bytes_copy(at + r->id.size, r->body.data, r->body.size);
    out->size += size;
}

static bool is_sound(const struct request_record *r)
{
    return r->id.size >= 1 && r->id.size <= RECORD_ID_MAX && r->chain_count <= RECORD_CHAIN_MAX &&
           r->seq >= 1 && r->prev < r->seq && r->copy >= 1 && (r->flags & ~REQUEST_FLAGS) == 0;
}

void request_put(struct buffer *out, const struct request_record *r)
{
    ASSERT(request_body_is_sound(r->flags, r->body));
    ASSERT(is_sound(r));
    request_put_any(out, r);
}

void request_put_same(struct buffer *out, const struct request_record *r)
{
    struct request_record same = *r;
    const size_t at = out->size;

    ASSERT(is_sound(r) && (r->flags & REQUEST_TRACED) == 0);
    same.body = (struct bytes){0};
    request_put_any(out, &same);
    out->data[at + REQUEST_FLAGS_AT] |= REQUEST_SAME;
}

void request_put_whole(struct buffer *out, struct bytes same, struct bytes body)
{
    const size_t at = out->size;

    ASSERT(same.size > REQUEST_HEADER_SIZE && body.size <= RECORD_BODY_MAX + RECORD_CALLER_MAX);
    buffer_put(out, same.data, same.size);
    buffer_put(out, body.data, body.size);
    struct writer w = {.at = out->data + at + REQUEST_BODY_SIZE_AT, .left = sizeof(uint32_t)};

    out->data[at + REQUEST_FLAGS_AT] &= (uint8_t)~REQUEST_SAME;
    put_u32(&w, (uint32_t)body.size);
}

/* The body of one with REQUEST_SAME is that of the record before it. */
__attribute__((always_inline)) static inline bool take_body(struct reader *in, struct bytes before,
                                                            bool same, size_t body_size,
                                                            struct request_record *r)
{
    if (!same) {
        r->body = get_run(in, body_size);
        return true;
    }
    r->body = before;
    return before.data != NULL && body_size == 0 && (r->flags & REQUEST_TRACED) == 0;
}

enum err request_get(struct reader *in, struct request_record *r)
{
    return request_get_behind(in, (struct bytes){0}, r);
}

enum err request_get_behind(struct reader *in, struct bytes before, struct request_record *r)
{
    // The header is read with one check: there are many of them.
    const uint8_t *at = get_bytes(in, REQUEST_HEADER_SIZE);

    if (at == NULL) {
        return ERR_CORRUPT;
    }
    r->gateway = load_u64(at);
    r->session = load_u64(at + 8);
    r->session_epoch = load_u32(at + 16);
    r->seq = load_u64(at + 20);
    r->prev = load_u64(at + 28);
    r->base = load_u64(at + 36);
    r->first = load_u64(at + 44);
    r->version = load_u64(at + 52);
    r->ttl_ms = load_u32(at + 60);
    r->kind = load_u16(at + 64);
    r->hops = at[66] & (RECORD_TRACED - 1);
    r->again = (at[66] & RECORD_AGAIN) != 0;
    r->copy = at[67];
    const bool same = (at[REQUEST_FLAGS_AT] & REQUEST_SAME) != 0;
    r->flags = (uint8_t)((at[REQUEST_FLAGS_AT] & ~REQUEST_SAME) |
                         (at[66] & RECORD_TRACED) * (REQUEST_TRACED / RECORD_TRACED));
    r->chain_count = at[69];
    const size_t id_size = at[70];
    const size_t body_size = load_u32(at + REQUEST_BODY_SIZE_AT);
    if (id_size == 0 || body_size > RECORD_BODY_MAX + RECORD_WITH_BODY_MAX ||
        r->chain_count > RECORD_CHAIN_MAX || (r->flags & ~REQUEST_FLAGS) != 0 || r->seq == 0 ||
        r->prev >= r->seq || r->copy == 0) {
        return get_end(in, false);
    }
    memset(r->chain, 0, sizeof r->chain);
    for (size_t i = 0; i < r->chain_count; i++) {
        r->chain[i] = get_u64(in);
    }
    r->id = get_run(in, id_size);
    const bool has_body = take_body(in, before, same, body_size, r);

    return get_end(in, has_body && !in->bad && request_body_is_sound(r->flags, r->body));
}

size_t answer_size(const struct answer_record *a)
{
    return ANSWER_HEADER_SIZE + a->body.size;
}

void answer_put(struct buffer *out, const struct answer_record *a)
{
    const size_t size = answer_size(a);
    uint8_t *at = buffer_reserve(out, size);

    ASSERT(a->body.size <= RECORD_BODY_MAX);
    ASSERT(a->code <= ANSWER_CODE_LAST);
    at = store_u64(at, a->gateway);
    at = store_u64(at, a->session);
    at = store_u64(at, a->seq);
    at = store_u64(at, a->fence);
    at = store_u64(at, a->version);
    at = store_u64(at, a->aux);
    at = store_u8(at, a->code);
    at = store_u8(at, a->copy);
    at = store_u32(at, (uint32_t)a->body.size);
    if (a->body.size > 0) {
        memcpy(at, a->body.data, a->body.size);
    }
    out->size += size;
}

enum err answer_get(struct reader *in, struct answer_record *a)
{
    const uint8_t *at = get_bytes(in, ANSWER_HEADER_SIZE);

    if (at == NULL) {
        return ERR_CORRUPT;
    }
    a->gateway = load_u64(at);
    a->session = load_u64(at + 8);
    a->seq = load_u64(at + 16);
    a->fence = load_u64(at + 24);
    a->version = load_u64(at + 32);
    a->aux = load_u64(at + 40);
    a->code = at[48];
    a->copy = at[49];
    const size_t body_size = load_u32(at + 50);
    if (body_size > RECORD_BODY_MAX || a->code > ANSWER_CODE_LAST) {
        return get_end(in, false);
    }
    a->body = get_run(in, body_size);
    return get_end(in, true);
}

static bool state_is_sound(const struct state_record *s)
{
    if ((s->flags & ~STATE_END) != 0 || s->chunk.size > RECORD_CHUNK_MAX) {
        return false;
    }
    if ((s->flags & STATE_END) != 0) {
        return s->chunk.size == 0 && s->id.size <= RECORD_ID_MAX;
    }
    return s->id.size >= 1 && s->id.size <= RECORD_ID_MAX && s->offset <= s->total &&
           s->chunk.size <= s->total - s->offset;
}

void state_put(struct buffer *out, const struct state_record *s)
{
    const size_t size = STATE_HEADER_SIZE + s->id.size + s->chunk.size;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    ASSERT(state_is_sound(s));
    put_u64(&w, s->txn);
    put_u64(&w, s->source);
    put_u32(&w, s->index);
    put_u8(&w, s->flags);
    put_u16(&w, s->kind);
    put_u32(&w, s->total);
    put_u32(&w, s->offset);
    put_u32(&w, s->crc);
    put_u8(&w, (uint8_t)s->id.size);
    put_u32(&w, (uint32_t)s->chunk.size);
    put_bytes(&w, s->id.data, s->id.size);
    put_bytes(&w, s->chunk.data, s->chunk.size);
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

enum err state_get(struct reader *in, struct state_record *s)
{
    s->txn = get_u64(in);
    s->source = get_u64(in);
    s->index = get_u32(in);
    s->flags = get_u8(in);
    s->kind = get_u16(in);
    s->total = get_u32(in);
    s->offset = get_u32(in);
    s->crc = get_u32(in);
    const size_t id_size = get_u8(in);
    const size_t chunk_size = get_u32(in);
    s->id = get_run(in, id_size);
    s->chunk = get_run(in, chunk_size);
    return get_end(in, state_is_sound(s));
}

void state_ack_put(struct buffer *out, const struct state_ack_record *a)
{
    struct writer w = {.at = buffer_reserve(out, STATE_ACK_SIZE), .left = STATE_ACK_SIZE};

    ASSERT(a->refused <= STATE_UNREAD);
    put_u64(&w, a->txn);
    put_u64(&w, a->source);
    put_u32(&w, a->next);
    put_u8(&w, a->refused);
    ASSERT(!w.bad && w.left == 0);
    out->size += STATE_ACK_SIZE;
}

enum err state_ack_get(struct reader *in, struct state_ack_record *a)
{
    a->txn = get_u64(in);
    a->source = get_u64(in);
    a->next = get_u32(in);
    a->refused = get_u8(in);
    return get_end(in, a->refused <= STATE_UNREAD);
}
