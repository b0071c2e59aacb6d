/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames into chunks, chunks to the network, and away.
 */
#include "stream/sendlog.h"

#include "base/mem.h"
#include "base/mutant.h"

static struct stream_chunk *chunk_take(struct stream_chunks *c, size_t size)
{
    struct stream_chunk *chunk = c->spare;

    c->count++;
    if (size <= STREAM_CHUNK_SIZE && chunk != NULL) {
        c->spare = chunk->next;
        c->spare_count--;
    } else {
        const size_t cap = size > STREAM_CHUNK_SIZE ? size : STREAM_CHUNK_SIZE;

        chunk = mem_lines(sizeof *chunk + cap);
        chunk->cap = (uint32_t)cap;
    }
    *chunk = (struct stream_chunk){.cap = chunk->cap};
    c->size += chunk->cap;
    return chunk;
}

static void chunk_give(struct stream_chunks *c, struct stream_chunk *chunk)
{
    c->count--;
    c->size -= chunk->cap;
    if (chunk->cap != STREAM_CHUNK_SIZE || c->spare_count >= c->spare_max) {
        mem_free(chunk);
        return;
    }
    chunk->next = c->spare;
    c->spare = chunk;
    c->spare_count++;
}

void stream_chunks_fini(struct stream_chunks *c)
{
    ASSERT(c->count == 0);
    c->spare_max = 0;
    while (c->spare != NULL) {
        struct stream_chunk *chunk = c->spare;

        c->spare = chunk->next;
        mem_free(chunk);
    }
    c->spare_count = 0;
}

void sendlog_init(struct sendlog *l, struct stream_chunks *chunks, enum stream_frame type,
                  uint64_t from, uint64_t to)
{
    *l = (struct sendlog){
        .chunks = chunks, .type = type, .said = {.from = from, .to = to}, .next = 1};
}

static void pop(struct sendlog *l)
{
    struct stream_chunk *chunk = l->head;

    l->head = chunk->next;
    l->tail = l->head == NULL ? NULL : l->tail;
    l->send = l->send == chunk ? l->head : l->send;
    l->size -= chunk->cap;
    chunk_give(l->chunks, chunk);
}

void sendlog_drop(struct sendlog *l)
{
    l->frame = NULL;
    l->ack_left = 0;
    while (l->head != NULL) {
        pop(l);
    }
}

void sendlog_close(struct sendlog *l)
{
    if (l->frame == NULL) {
        return;
    }
    if (mutant(M_LATEACK)) {
        stream_head_store(l->frame, l->type, &l->said);
    }
    stream_frame_end(
        l->frame, (size_t)(l->tail->data + l->tail->used - l->frame), l->next - l->said.first);
    l->tail->last = l->next - 1;
    l->frame = NULL;
}

void sendlog_grow(struct sendlog *l, size_t size)
{
    sendlog_close(l);
    if (l->tail == NULL || l->tail->cap - l->tail->used < STREAM_HEADER_SIZE + size) {
        struct stream_chunk *chunk = chunk_take(l->chunks, STREAM_HEADER_SIZE + size);

        if (l->tail == NULL) {
            l->head = l->send = chunk;
        } else {
            l->tail->next = chunk;
        }
        l->tail = chunk;
        l->size += chunk->cap;
    }
    l->frame = l->tail->data + l->tail->used;
    l->tail->used += STREAM_HEADER_SIZE;
    l->said.first = l->next;
    l->told = l->said.ack;
    l->ack_due = false;
    stream_head_store(l->frame, l->type, &l->said);
}

struct bytes sendlog_unsent(struct sendlog *l)
{
    if (l->frame != NULL && l->type == STREAM_ANSWER) {
        l->told = l->said.ack; // Who asked keeps nothing for it: any frame says that a node lives.
    }
    sendlog_close(l);
    while (l->send != NULL && l->send->sent == l->send->used && l->send->next != NULL) {
        l->send = l->send->next;
    }
    if (l->ack_left == 0 && l->send != NULL && l->send->sent < l->send->used) {
        return bytes_of(l->send->data + l->send->sent, l->send->used - l->send->sent);
    }
    if (l->ack_left == 0 && l->ack_due && l->told != l->said.ack) {
        const struct stream_head head = sendlog_say(l, 0);

        stream_head_store(l->ack, STREAM_ACK, &head);
        l->ack_left = sizeof l->ack;
    }
    return bytes_of(l->ack + sizeof l->ack - l->ack_left, l->ack_left);
}

bool sendlog_look(struct sendlog *l)
{
    const bool owes = l->told != l->said.ack;

    l->ack_due = owes && (l->ack_due || l->told == l->looked);
    l->looked = l->told;
    return l->ack_due;
}

void sendlog_sent(struct sendlog *l, size_t size)
{
    if (l->ack_left > 0) {
        ASSERT(size <= l->ack_left);
        l->ack_left -= (uint8_t)size;
        return;
    }
    ASSERT(size <= l->send->used - l->send->sent);
    l->send->sent += (uint32_t)size;
    // Of requests nothing but live ones is needed; of answers all until `ack`.
    if (l->type == STREAM_REQUEST || mutant(M_NOLOG)) {
        sendlog_free(l, UINT64_MAX);
    }
}

struct stream_head sendlog_say(struct sendlog *l, uint64_t first)
{
    struct stream_head head = l->said;

    sendlog_close(l); // it was begun before, and its `ack` is not this one
    head.first = first;
    l->told = head.ack;
    l->ack_due = false;
    return head;
}

void sendlog_free(struct sendlog *l, uint64_t number)
{
    while (l->head != NULL && l->head->live == 0 && l->head->sent == l->head->used &&
           l->head->last <= number) {
        pop(l);
    }
}

bool sendlog_is_cut(const struct sendlog *l)
{
    uint32_t at = 0;

    while (l->send != NULL && at < l->send->sent) {
        at += load_u32(l->send->data + at);
    }
    return (l->ack_left > 0 && l->ack_left < sizeof l->ack) ||
           (l->send != NULL && at > l->send->sent);
}

void sendlog_again(struct sendlog *l, uint64_t number)
{
    bool found = false;

    l->ack_left = 0;
    sendlog_close(l);
    for (struct stream_chunk *c = l->head; c != NULL; c = c->next) {
        c->sent = found ? 0 : c->used;
        for (uint32_t at = 0; !found && at < c->used; at += load_u32(c->data + at)) {
            const uint64_t first = load_u64(c->data + at + FRAME_HEADER_SIZE + 16);

            if (first + load_u16(c->data + at + 6) > number) {
                found = true;
                c->sent = at;
                l->send = c;
            }
        }
    }
    l->send = found ? l->send : l->tail;
}

void sendlog_cut(struct sendlog *l, uint64_t number)
{
    l->ack_left = 0;
    sendlog_close(l);
    for (struct stream_chunk *c = l->head; c != NULL; c = c->next) {
        c->sent = c->used;
    }
    l->send = l->tail;
    l->next = number;
    sendlog_free(l, UINT64_MAX);
}
