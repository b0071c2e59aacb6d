/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads pages of values, gathers pages of a batch, and does it.
 */
#include "node/durable/operate.h"

#include "base/mutant.h"

/* ---- reading ---- */

enum { PIECE_LEAST = 14 + 255 /* of a page: that a value may begin in it */ };

/* Where a page has come to. */
struct place {
    struct bytes key;
    struct bytes value;
    size_t offset; /* in the value */
    bool there;
};

static void go_behind(const struct named_values *v, struct place *p)
{
    p->there = named_values_next(v, p->key, &p->key, &p->value);
    p->offset = 0;
}

static struct place place_of(const struct named_values *v, const struct values_ask *ask)
{
    struct place p = {.key = ask->key, .offset = ask->offset};

    if (ask->one || ask->offset > 0) {
        p.there = named_values_get(v, p.key, &p.value) && p.offset <= p.value.size;
    } else {
        go_behind(v, &p);
    }
    return p;
}

static void put_piece(struct buffer *out, const struct place *p, size_t size)
{
    values_piece_put(out,
                     &(struct values_piece){.key = p->key,
                                            .whole = (uint32_t)p->value.size,
                                            .at = (uint32_t)p->offset,
                                            .bytes = bytes_of(p->value.data + p->offset, size)});
}

static void read_page(const struct named_values *v, const struct values_ask *ask,
                      struct values_answer *a, struct buffer *pieces)
{
    struct place p = place_of(v, ask);

    while (p.there && !a->more && pieces->size + PIECE_LEAST < VALUES_PAGE_SIZE) {
        const size_t room = VALUES_PAGE_SIZE - pieces->size - PIECE_LEAST;
        const size_t left = p.value.size - p.offset;

        put_piece(pieces, &p, left < room ? left : room);
        a->more = left > room;
        if (ask->one) {
            return;
        }
        if (!a->more) {
            go_behind(v, &p);
        }
    }
    a->more = a->more || p.there;
}

/* ---- changing ---- */

void values_batch_fini(struct values_batch *b)
{
    buffer_fini(&b->bytes);
    b->batch = 0;
}

static void delete_all(struct named_values *v)
{
    struct bytes key = {0};
    struct bytes value;

    while (named_values_next(v, key, &key, &value)) {
        (void)named_values_delete(v, key);
    }
}

static enum values_status do_rows(struct named_values *v, struct bytes all, uint32_t *count)
{
    struct reader in = {.at = all.data, .left = all.size};
    struct values_row row;

    while (values_row_next(&in, &row)) {
        if (row.gone) {
            *count += named_values_delete(v, row.key) ? 1 : 0;
        } else if (named_values_put(v, row.key, row.value) == NAMED_PUT_DONE) {
            ++*count;
        } else {
            return VALUES_FULL;
        }
    }
    return in.bad ? VALUES_MALFORMED : VALUES_DONE;
}

static enum values_status do_batch(struct named_values *v, struct values_batch *b, bool replace)
{
    uint32_t count = 0;

    if (replace) {
        delete_all(v);
    }
    const enum values_status status = do_rows(v, buffer_bytes(&b->bytes), &count);
    if (status == VALUES_DONE) {
        b->done = b->batch;
        b->done_count = count;
    } else if (!mutant(M_HALFBATCH)) {
        named_values_undo(v);
    }
    return status;
}

/* True: it follows what was gathered, or begins. */
static bool follows(struct values_batch *b, const struct values_ask *ask)
{
    if (ask->at == 0) {
        values_batch_fini(b);
        b->batch = ask->batch;
    }
    return b->batch == ask->batch && ask->batch != 0 && b->bytes.size == ask->at;
}

/* It came before: its answer got lost. */
static bool is_gathered(const struct values_batch *b, const struct values_ask *ask)
{
    return b->batch == ask->batch && !ask->last && b->bytes.size == ask->at + ask->page.size;
}

static enum values_status take_page(struct named_values *v, struct values_batch *b,
                                    const struct values_ask *ask)
{
    enum values_status status = VALUES_DONE;

    if ((b->done == ask->batch && ask->last && b->done != 0) || is_gathered(b, ask)) {
        return VALUES_DONE;
    }
    if (!follows(b, ask)) {
        return VALUES_INTERRUPTED;
    }
    if (b->bytes.size + ask->page.size > VALUES_BATCH_MAX) {
        values_batch_fini(b);
        return VALUES_FULL;
    }
    buffer_put(&b->bytes, ask->page.data, ask->page.size);
    if (ask->last) {
        status = do_batch(v, b, ask->replace);
        values_batch_fini(b);
    }
    return status;
}

void values_operate(struct named_values *v, struct values_batch *b, const struct values_ask *ask,
                    uint64_t number, struct buffer *out)
{
    struct values_answer a = {.number = number};
    struct buffer pieces = {0};

    if (ask->verb == VALUES_READ) {
        read_page(v, ask, &a, &pieces);
    } else {
        a.status = (uint8_t)take_page(v, b, ask);
        a.count = ask->last && a.status == VALUES_DONE ? b->done_count : 0;
    }
    values_answer_put(out, &a);
    buffer_put(out, pieces.data, pieces.size);
    buffer_fini(&pieces);
}
