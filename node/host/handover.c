/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends actors' images to the target of a move and takes them there:
 * acknowledged, repeated, complete or refused.
 */
#include "node/host/handover.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

struct handover_stream *stream_new(uint64_t txn, uint64_t source)
{
    struct handover_stream *s = mem_new(1, sizeof *s);

    s->txn = txn;
    s->source = source;
    return s;
}

void stream_free(struct handover_stream *s)
{
    for (size_t i = 0; i < s->piece_count; i++) {
        image_free(s->piece[i].image);
    }
    mem_free(s->piece);
    mem_free(s);
}

void stream_add(struct handover_stream *s, struct image *image)
{
    ASSERT(!s->ended && image->data.size > 0);
    for (size_t at = 0; at < image->data.size; at += RECORD_CHUNK_MAX) {
        const size_t left = image->data.size - at;

        if (s->piece_count == s->piece_cap) {
            s->piece_cap = s->piece_cap == 0 ? 16 : s->piece_cap * 2;
            s->piece = mem_resize(s->piece, s->piece_cap * sizeof *s->piece);
        }
        s->piece[s->piece_count++] = (struct handover_piece){
            .image = image_share(image),
            .offset = (uint32_t)at,
            .size = (uint32_t)(left < RECORD_CHUNK_MAX ? left : RECORD_CHUNK_MAX),
        };
        s->unsent += s->piece[s->piece_count - 1].size;
    }
}

void stream_end(struct handover_stream *s)
{
    s->ended = true;
}

/* How many records there are, END included once it is known. */
static size_t record_count(const struct handover_stream *s)
{
    return s->piece_count + (s->ended ? 1 : 0);
}

bool stream_next(struct handover_stream *s, size_t window, struct state_record *r)
{
    if (s->sent >= record_count(s) || s->refused != 0 || s->in_flight >= window) {
        return false;
    }
    *r = (struct state_record){.txn = s->txn, .source = s->source, .index = (uint32_t)s->sent};
    if (s->sent == s->piece_count) {
        r->flags = STATE_END;
    } else {
        const struct handover_piece *p = &s->piece[s->sent];

        r->kind = p->image->kind;
        r->id = p->image->id;
        r->total = (uint32_t)p->image->data.size;
        r->offset = p->offset;
        r->chunk = bytes_of(p->image->data.data + p->offset, p->size);
        s->in_flight += p->size;
        s->unsent -= p->size;
    }
    r->crc = crc32c(r->chunk.data, r->chunk.size);
    s->sent++;
    s->sent_max = s->sent > s->sent_max ? s->sent : s->sent_max;
    return true;
}

bool stream_on_ack(struct handover_stream *s, const struct state_ack_record *ack, uint64_t now_us)
{
    if (ack->refused != 0) {
        s->refused = ack->refused;
    }
    if (ack->next > s->sent_max) {
        return false;
    }
    if (ack->next > s->acked) {
        s->progress_us = now_us;
    }
    while (s->acked < ack->next) {
        if (s->acked < s->piece_count) {
            struct handover_piece *p = &s->piece[s->acked];

            *(s->acked < s->sent ? &s->in_flight : &s->unsent) -= p->size;
            image_free(p->image);
            p->image = NULL;
        }
        s->acked++;
    }
    s->sent = s->sent > s->acked ? s->sent : s->acked;
    return true;
}

void stream_rewind(struct handover_stream *s)
{
    s->sent = s->acked;
    s->unsent += s->in_flight;
    s->in_flight = 0;
}

bool stream_is_done(const struct handover_stream *s)
{
    return s->ended && s->acked == s->piece_count + 1;
}

struct staging *staging_new(uint64_t txn, uint64_t source)
{
    struct staging *s = mem_new(1, sizeof *s);

    s->txn = txn;
    s->source = source;
    s->store.block_size = IMAGE_BLOCK_LONG;
    return s;
}

void staging_free(struct staging *s)
{
    for (size_t i = 0; i < s->image_count; i++) {
        image_free(s->image[i]);
    }
    image_store_fini(&s->store);
    mem_free((void *)s->image);
    table_fini(&s->by_position);
    buffer_fini(&s->partial);
    mem_free(s);
}

static bool name_is(const struct image_name *name, const struct state_record *r)
{
    return name->kind == r->kind && bytes_equal(name->id, r->id);
}

/* Does this chunk go on where the last one ended? */
static bool fits(struct staging *s, const struct state_record *r, uint64_t position)
{
    if (r->offset != 0) {
        return r->offset == s->partial.size && r->total == s->total && name_is(&s->name, r);
    }
    if (s->partial.size != 0 || r->id.size == 0 || r->id.size > sizeof s->id) {
        return false;
    }
    memcpy(s->id, r->id.data, r->id.size);
    s->name = (struct image_name){.position = position, .kind = r->kind, .id = {s->id, r->id.size}};
    s->total = r->total;
    return true;
}

static struct image *staged(const struct staging *s, const struct image *like)
{
    for (struct table_link *l = table_first(&s->by_position, like->position); l != NULL;
         l = table_same(l)) {
        struct image *image = CONTAINER_OF(l, struct image, staged);

        if (image->kind == like->kind && bytes_equal(image->id, like->id)) {
            return image;
        }
    }
    return NULL;
}

/* `image` is of the same actor, and newer: it takes the place of `old`. */
static void replace(struct staging *s, struct image *old, struct image *image)
{
    image->staged_at = old->staged_at;
    s->image[image->staged_at] = image;
    s->size -= old->data.size;
    s->replaced++;
    table_remove(&s->by_position, &old->staged);
    table_put(&s->by_position, &image->staged, image->position);
    image_free(old);
}

static bool is_readable(const struct image *image, const struct state_range *reads)
{
    return reads == NULL || !image->has_state || mutant(M_NEWERSTATE) ||
           (reads->least <= image->state_version && image->state_version <= reads->most);
}

/* `data`: all of it. */
static bool finish_image(struct staging *s, struct bytes data, const struct state_range *reads)
{
    struct image *image = image_parse(s->name, data, &s->store);

    if (image == NULL) {
        return false;
    }
    if (!is_readable(image, reads)) {
        s->unreadable = true;
        s->unread_version = image->state_version;
        image_free(image);
        return false;
    }
    buffer_clear(&s->partial);
    struct image *old = staged(s, image);
    if (old != NULL && mutant(M_FIRSTIMAGE)) {
        image_free(image);
        return true;
    }
    if (old != NULL) {
        replace(s, old, image);
        return true;
    }
    if (s->image_count == s->image_cap) {
        s->image_cap = s->image_cap == 0 ? 16 : s->image_cap * 2;
        s->image = mem_resize((void *)s->image, s->image_cap * sizeof(struct image *));
    }
    image->staged_at = (uint32_t)s->image_count;
    s->image[s->image_count++] = image;
    table_put(&s->by_position, &image->staged, image->position);
    return true;
}

/* False: it was the last one, and they are no image, or none that is read here. */
static bool take_chunk(struct staging *s, struct bytes chunk, const struct state_range *reads)
{
    if (chunk.size == s->total) {
        return finish_image(s, chunk, reads); // most are of one chunk: it is copied once
    }
    buffer_put(&s->partial, chunk.data, chunk.size);
    return s->partial.size != s->total || finish_image(s, buffer_bytes(&s->partial), reads);
}

enum staging_verdict staging_take(struct staging *s, const struct state_record *r,
                                  uint64_t position, const struct state_range *reads,
                                  size_t size_max)
{
    s->ack_due = true;
    if (s->refused) {
        return STAGING_FULL;
    }
    if (r->index != s->next) {
        return r->index < s->next ? STAGING_AGAIN : STAGING_GAP;
    }
    if (crc32c(r->chunk.data, r->chunk.size) != r->crc) {
        return STAGING_GAP;
    }
    if ((r->flags & STATE_END) != 0) {
        s->refused = s->partial.size > 0;
        s->ended = !s->refused;
    } else if (s->ended || r->chunk.size > size_max - s->size || r->chunk.size == 0 ||
               !fits(s, r, position)) {
        s->refused = true;
    } else {
        s->size += r->chunk.size;
        s->since_ack += r->chunk.size;
        s->refused = !take_chunk(s, r->chunk, reads);
    }
    if (s->refused) {
        return STAGING_FULL;
    }
    s->next++;
    return STAGING_TAKEN;
}
