/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes operators' questions about values.
 */
#include "wire/values_ask.h"

#include "base/assert.h"

enum {
    ONE = 1,
    LAST = 1,
    REPLACE = 2,
    KEY_MAX = 255,
    VALUE_MAX = 1024 * 1024,
    READ_HEAD = 6,
    CHANGE_HEAD = 14,
    ROW_HEAD = 6,
    ANSWER_HEAD = 14,
    PIECE_HEAD = 13,
};

static struct writer reserve(struct buffer *out, size_t size)
{
    const struct writer w = {.at = buffer_reserve(out, size), .left = size};

    out->size += size;
    return w;
}

void values_ask_put(struct buffer *out, const struct values_ask *a)
{
    const bool reads = a->verb == VALUES_READ;
    const struct bytes rest = reads ? a->key : a->page;
    struct writer w = reserve(out, (reads ? READ_HEAD : CHANGE_HEAD) + rest.size);

    put_u8(&w, a->verb);
    if (reads) {
        put_u8(&w, a->one ? ONE : 0);
        put_u32(&w, a->offset);
    } else {
        put_u8(&w, (uint8_t)((a->last ? LAST : 0) | (a->replace ? REPLACE : 0)));
        put_u64(&w, a->batch);
        put_u32(&w, a->at);
    }
    put_bytes(&w, rest.data, rest.size);
    ASSERT(!w.bad && w.left == 0);
}

static bool read_get(struct reader *r, uint8_t flags, struct values_ask *a)
{
    a->one = (flags & ONE) != 0;
    a->offset = get_u32(r);
    a->key = bytes_of(r->at, r->left);
    return flags <= ONE && r->left <= KEY_MAX && (r->left > 0 || (!a->one && a->offset == 0));
}

static bool change_get(struct reader *r, uint8_t flags, struct values_ask *a)
{
    a->last = (flags & LAST) != 0;
    a->replace = (flags & REPLACE) != 0;
    a->batch = get_u64(r);
    a->at = get_u32(r);
    a->page = bytes_of(r->at, r->left);
    return flags <= (LAST | REPLACE) && r->left <= VALUES_PAGE_SIZE && a->at <= VALUES_BATCH_MAX;
}

enum err values_ask_get(struct bytes in, struct values_ask *a)
{
    struct reader r = {.at = in.data, .left = in.size};

    *a = (struct values_ask){.verb = get_u8(&r)};
    const uint8_t flags = get_u8(&r);
    const bool fits = a->verb == VALUES_READ     ? read_get(&r, flags, a)
                      : a->verb == VALUES_CHANGE ? change_get(&r, flags, a)
                                                 : false;
    return !r.bad && fits ? ERR_OK : ERR_CORRUPT;
}

bool values_ask_is_noted(const struct values_ask *a)
{
    return a->verb == VALUES_CHANGE ? a->last : a->offset == 0 && (a->one || a->key.size == 0);
}

void values_row_put(struct buffer *out, const struct values_row *row)
{
    struct writer w = reserve(out, ROW_HEAD + row->key.size + row->value.size);

    put_u8(&w, row->gone ? 1 : 0);
    put_u8(&w, (uint8_t)row->key.size);
    put_u32(&w, (uint32_t)row->value.size);
    put_bytes(&w, row->key.data, row->key.size);
    put_bytes(&w, row->value.data, row->value.size);
    ASSERT(!w.bad && w.left == 0);
}

static struct bytes take(struct reader *in, size_t size)
{
    const uint8_t *at = get_bytes(in, size);

    return bytes_of(at, at == NULL ? 0 : size);
}

bool values_row_next(struct reader *in, struct values_row *row)
{
    if (in->left == 0) {
        return false;
    }
    const uint8_t gone = get_u8(in);
    const size_t key_size = get_u8(in);
    const size_t size = get_u32(in);
    *row = (struct values_row){.gone = gone != 0};
    row->key = take(in, key_size);
    row->value = take(in, size);
    in->bad = in->bad || gone > 1 || key_size == 0 || size > VALUE_MAX || (gone != 0 && size > 0);
    return !in->bad;
}

void values_answer_put(struct buffer *out, const struct values_answer *a)
{
    struct writer w = reserve(out, ANSWER_HEAD);

    put_u8(&w, a->status);
    put_u8(&w, a->more ? 1 : 0);
    put_u32(&w, a->count);
    put_u64(&w, a->number);
    ASSERT(!w.bad && w.left == 0);
}

enum err values_answer_get(struct bytes in, struct values_answer *a)
{
    struct reader r = {.at = in.data, .left = in.size};

    *a = (struct values_answer){.status = get_u8(&r)};
    const uint8_t more = get_u8(&r);
    a->more = more != 0;
    a->count = get_u32(&r);
    a->number = get_u64(&r);
    a->pieces = bytes_of(r.at, r.left);
    return !r.bad && a->status <= VALUES_STATUS_LAST && more <= 1 ? ERR_OK : ERR_CORRUPT;
}

void values_piece_put(struct buffer *out, const struct values_piece *p)
{
    struct writer w = reserve(out, PIECE_HEAD + p->key.size + p->bytes.size);

    put_u8(&w, (uint8_t)p->key.size);
    put_u32(&w, p->whole);
    put_u32(&w, p->at);
    put_u32(&w, (uint32_t)p->bytes.size);
    put_bytes(&w, p->key.data, p->key.size);
    put_bytes(&w, p->bytes.data, p->bytes.size);
    ASSERT(!w.bad && w.left == 0);
}

bool values_piece_next(struct reader *in, struct values_piece *p)
{
    if (in->left == 0) {
        return false;
    }
    const size_t key_size = get_u8(in);
    *p = (struct values_piece){.whole = get_u32(in)};
    p->at = get_u32(in);
    const size_t size = get_u32(in);
    p->key = take(in, key_size);
    p->bytes = take(in, size);
    in->bad = in->bad || key_size == 0 || p->whole > VALUE_MAX || p->at > p->whole ||
              p->bytes.size > p->whole - p->at;
    return !in->bad;
}
