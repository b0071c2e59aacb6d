/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes requests of streams, and decodes all that streams say.
 */
#include "wire/stream.h"

enum { CHAIN_ITEM = 8, CHAIN_AT = 29, FLAGS = STREAM_REQUEST_FLAGS };

static enum err get_end(struct reader *in, bool fits)
{
    in->bad = in->bad || !fits;
    return in->bad ? ERR_CORRUPT : ERR_OK;
}

enum err stream_head_get(const struct frame *f, struct stream_head *h, struct reader *records)
{
    enum { HEAD = STREAM_HEADER_SIZE - FRAME_HEADER_SIZE };
    const bool has_records = (uint8_t)f->type <= STREAM_ANSWER;
    const bool begins = (uint8_t)f->type == STREAM_BEGIN || (uint8_t)f->type == STREAM_GONE;
    const uint8_t *at = f->body.data;

    if (f->body.size < HEAD) {
        *h = (struct stream_head){0};
        *records = (struct reader){.at = at, .left = f->body.size, .bad = true};
        return ERR_CORRUPT;
    }
    h->from = load_u64(at);
    h->to = load_u64(at + 8);
    h->first = load_u64(at + 16);
    h->ack = load_u64(at + 24);
    h->version = load_u64(at + 32);
    *records = (struct reader){.at = at + HEAD, .left = f->body.size - HEAD};
    return get_end(records,
                   frame_type_is_stream((uint8_t)f->type) && h->from != 0 && h->to != 0 &&
                       (h->first == 0) == ((uint8_t)f->type == STREAM_ACK) &&
                       h->first <= UINT64_MAX - FRAME_RECORDS_MAX && (!begins || h->ack == 0) &&
                       (has_records ? f->count > 0 : f->count == 1 && records->left == 0));
}

static inline uint8_t bits_of(const struct stream_request *r)
{
    return __builtin_expect((r->owned.seq | r->name.asker | r->again) == 0, true)
               ? 0
               : (uint8_t)((r->owned.seq != 0 ? STREAM_OWNED : 0) |
                           (r->name.asker != 0 ? STREAM_NAMED : 0) | (r->again ? STREAM_AGAIN : 0));
}

/* What the bits say that it has. */
static uint8_t *store_rare(uint8_t *at, const struct stream_request *r)
{
    if (r->owned.seq != 0) {
        at = store_u64(at, r->owned.seq);
        at = store_u64(at, r->owned.base);
        at = store_u64(at, r->owned.first);
        at = store_u32(at, r->owned.epoch);
    }
    if (r->name.asker != 0) {
        at = store_u64(at, r->name.asker);
        at = store_u64(at, r->name.number);
    }
    return at;
}

void stream_request_store(uint8_t *at, const struct stream_request *r)
{
    const uint8_t bits = bits_of(r);

    ASSERT(r->rid != 0 && r->id.size >= 1 && r->id.size <= RECORD_ID_MAX);
    ASSERT((r->flags & ~FLAGS) == 0 && r->hops <= STREAM_HOPS_MAX);
    ASSERT(r->body.size <= RECORD_BODY_MAX + RECORD_WITH_BODY_MAX);
    ASSERT(r->chain.size % CHAIN_ITEM == 0 && r->chain.size / CHAIN_ITEM <= RECORD_CHAIN_MAX);
    at = store_u64(at, r->rid);
    at = store_u64(at, r->session);
    at = store_u32(at, r->ttl_ms);
    at = store_u32(at, (uint32_t)r->body.size);
    at = store_u16(at, r->kind);
    at = store_u8(at, r->flags);
    at = store_u8(at, bits);
    at = store_u8(at, r->hops);
    at = store_u8(at, (uint8_t)(r->chain.size / CHAIN_ITEM));
    at = store_u8(at, (uint8_t)r->id.size);
    at = store_u64(at, r->hash);
    if (__builtin_expect(bits != 0, false)) {
        at = store_rare(at, r);
    }
    bytes_copy(at, r->chain.data, r->chain.size);
    at += r->chain.size;
    bytes_copy(at, r->id.data, r->id.size);
    if (r->command != NULL) {
        args_command_store(at + r->id.size, r->command);
    } else {
        bytes_copy(at + r->id.size, r->body.data, r->body.size);
    }
}

/* What the bits say. False: it cannot be. */
static bool get_bits(struct reader *in, uint8_t bits, struct stream_request *r)
{
    const bool owned = (bits & STREAM_OWNED) != 0;
    const bool named = (bits & STREAM_NAMED) != 0;

    r->again = (bits & STREAM_AGAIN) != 0;
    r->owned = (struct stream_owned){0};
    r->name = (struct request_name){0};
    if (owned) {
        r->owned.seq = get_u64(in);
        r->owned.base = get_u64(in);
        r->owned.first = get_u64(in);
        r->owned.epoch = get_u32(in);
    }
    if (named) {
        r->name.asker = get_u64(in);
        r->name.number = get_u64(in);
    }
    return bits <= (STREAM_OWNED | STREAM_NAMED | STREAM_AGAIN) && owned == (r->owned.seq != 0) &&
           named == (r->name.asker != 0);
}

enum err stream_request_get_other(struct reader *in, struct stream_request *r)
{
    const uint8_t *at = get_bytes(in, STREAM_REQUEST_SIZE);
    const size_t body_size = load_u32(at + STREAM_BODY_AT);
    const size_t chain_count = at[CHAIN_AT];
    const size_t id_size = at[STREAM_ID_AT];

    if (r->rid == 0 || id_size == 0 || (r->flags & ~FLAGS) != 0 || r->hops > STREAM_HOPS_MAX ||
        chain_count > RECORD_CHAIN_MAX || body_size > RECORD_BODY_MAX + RECORD_WITH_BODY_MAX ||
        !get_bits(in, at[STREAM_BITS_AT], r)) {
        return get_end(in, false);
    }
    const size_t chain_size = chain_count * CHAIN_ITEM;
    const uint8_t *rest = get_bytes(in, chain_size + id_size + body_size);
    if (rest == NULL) {
        return ERR_CORRUPT;
    }
    r->chain = bytes_of(rest, chain_size);
    r->id = bytes_of(rest + chain_size, id_size);
    r->body = bytes_of(rest + chain_size + id_size, body_size);
    r->command = NULL;
    return get_end(in, request_body_is_sound(r->flags, r->body));
}

enum err stream_answer_get(struct reader *in, struct stream_answer *a)
{
    const uint8_t *at = get_bytes(in, STREAM_ANSWER_SIZE);

    if (at == NULL) {
        return ERR_CORRUPT;
    }
    a->rid = load_u64(at);
    a->token = load_u64(at + 8);
    a->aux = load_u64(at + 16);
    a->code = at[24];
    const size_t body_size = load_u32(at + 25);
    if (a->code > STREAM_CODE_LAST || body_size > RECORD_BODY_MAX ||
        (a->rid == 0) != (a->code == STREAM_CODE_LEFT)) {
        return get_end(in, false);
    }
    const uint8_t *body = get_bytes(in, body_size);
    a->body = bytes_of(body, body_size);
    return body == NULL ? ERR_CORRUPT : ERR_OK;
}
