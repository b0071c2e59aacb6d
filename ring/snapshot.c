/* SPDX-License-Identifier: Apache-2.0
 *
 * Reclamation by quiescent states. `epoch` grows by one with each publish, after
 * the pointer changed. A reader that rests copies it to its `seen`: whatever it
 * loads from then on is at least as new as that epoch. A buffer that was
 * replaced at epoch e is idle when every started reader has seen e.
 */
#include "ring/snapshot.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

enum {
    BUFFERS = 3,
    LOG_SIZE = 4096, /* vnodes noted; a buffer that missed more is copied */
    LINE = 128,      /* bytes that no two readers share: two cache lines, they come in pairs */
};

#define NEVER_REPLACED 0
#define NOT_STARTED    0

struct snapshot_buffer {
    struct ring_snapshot snapshot; /* what readers see; points to the two below */
    uint32_t *cell;                /* owned */
    uint32_t cell_count;
    uint64_t *generation; /* owned; by vnode id */
    size_t generation_cap;
    uint64_t logged;      /* notes that are in it, counted from the first of all */
    uint64_t replaced_at; /* epoch */
};

struct reader {
    _Atomic uint64_t seen; /* epoch, or NOT_STARTED */
    uint8_t pad[LINE - sizeof(uint64_t)];
};

struct publisher {
    _Atomic(const struct ring_snapshot *) current;
    _Atomic uint64_t epoch;
    uint8_t pad[LINE];

    // The writer's.
    struct snapshot_buffer buffer[BUFFERS];
    size_t current_buffer;
    uint32_t log[LOG_SIZE]; /* vnode ids, a ring: note n is at n % LOG_SIZE */
    uint64_t logged;        /* notes ever */
    struct reader *reader;  /* owned */
    size_t reader_count;
};

/* ---- bringing a buffer up to date ---- */

/* Room for the generation of every vnode id of the ring. */
static void make_room(struct snapshot_buffer *b, const struct ring *r)
{
    if (b->generation_cap < r->slot_count) {
        b->generation_cap = r->slot_count + r->slot_count / 4;
        b->generation = mem_resize(b->generation, b->generation_cap * sizeof *b->generation);
        // Ids without vnode are never asked for, but must not be garbage.
        memset(b->generation, 0, b->generation_cap * sizeof *b->generation);
        b->logged = 0;
    }
    if (b->cell == NULL || b->cell_count != r->cell_count) {
        b->cell = mem_resize(b->cell, sizeof *b->cell * r->cell_count);
        b->cell_count = r->cell_count;
        b->logged = 0;
    }
}

static void copy_all(struct snapshot_buffer *b, const struct ring *r)
{
    memcpy(b->cell, r->cell, sizeof *b->cell * r->cell_count);
    for (size_t i = 0; i < r->vnode_count; i++) {
        b->generation[r->vnode[i].id] = r->vnode[i].generation;
    }
}

/* A cell that changed belongs now to a vnode that was noted when it got it. */
static void copy_vnode(struct snapshot_buffer *b, const struct ring *r, uint32_t id)
{
    const struct ring_vnode *v = ring_find(r, id);

    if (v != NULL) {
        memcpy(b->cell + v->from, r->cell + v->from, (ring_end(r, v) - v->from) * sizeof *b->cell);
        b->generation[id] = v->generation;
    }
}

static void update(struct publisher *p, struct snapshot_buffer *b, const struct ring *r)
{
    make_room(b, r);
    if (b->logged == 0 || p->logged - b->logged > LOG_SIZE) {
        copy_all(b, r);
    } else {
        for (uint64_t n = b->logged; n < p->logged; n++) {
            copy_vnode(b, r, p->log[n % LOG_SIZE]);
        }
    }
    b->logged = p->logged;
    b->snapshot = (struct ring_snapshot){
        .version = r->version,
        .digest = {r->digest[0], r->digest[1]},
        .table = {b->cell, r->grid},
        .generation = b->generation,
        .generation_count = r->slot_count,
    };
}

/* ---- writer ---- */

struct publisher *publisher_new(const struct ring *r, size_t readers)
{
    struct publisher *p = mem_new(1, sizeof *p);

    p->reader = mem_new(readers, sizeof *p->reader);
    p->reader_count = readers;
    p->logged = 1; // 0 says that a buffer was never filled
    for (size_t i = 0; i < readers; i++) {
        atomic_init(&p->reader[i].seen, NOT_STARTED);
    }
    update(p, &p->buffer[0], r);
    atomic_init(&p->epoch, 1);
    atomic_init(&p->current, &p->buffer[0].snapshot);
    return p;
}

void publisher_free(struct publisher *p)
{
    for (size_t i = 0; i < p->reader_count; i++) {
        ASSERT(atomic_load(&p->reader[i].seen) == NOT_STARTED);
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        mem_free(p->buffer[i].cell);
        mem_free(p->buffer[i].generation);
    }
    mem_free(p->reader);
    mem_free(p);
}

static void note(struct publisher *p, uint32_t vnode)
{
    p->log[p->logged % LOG_SIZE] = vnode;
    p->logged++;
}

void publisher_note(struct publisher *p, const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        note(p, ops[i].vnode);
        if (ops[i].kind != RING_MOVE) {
            note(p, ops[i].other);
        }
    }
}

void publisher_note_all(struct publisher *p)
{
    p->logged += LOG_SIZE + 1;
}

/* The least epoch that every started reader has seen. */
static uint64_t seen_by_all(struct publisher *p)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < p->reader_count; i++) {
        uint64_t seen = atomic_load(&p->reader[i].seen);

        least = seen != NOT_STARTED && seen < least ? seen : least;
    }
    return least;
}

/* The idle buffer that missed least, or BUFFERS. */
static size_t find_idle(struct publisher *p)
{
    uint64_t seen = seen_by_all(p);
    size_t best = BUFFERS;

    for (size_t i = 0; i < BUFFERS; i++) {
        const struct snapshot_buffer *b = &p->buffer[i];
        bool idle = i != p->current_buffer && b->replaced_at <= seen;

        if (idle && (best == BUFFERS || b->logged > p->buffer[best].logged)) {
            best = i;
        }
    }
    return best;
}

enum err publisher_publish(struct publisher *p, const struct ring *r)
{
    size_t idle = find_idle(p);
    uint64_t epoch = atomic_load_explicit(&p->epoch, memory_order_relaxed);

    if (idle == BUFFERS) {
        return ERR_BUSY;
    }
    update(p, &p->buffer[idle], r);
    atomic_store(&p->current, &p->buffer[idle].snapshot);
    atomic_store(&p->epoch, epoch + 1);
    p->buffer[p->current_buffer].replaced_at = epoch + 1;
    p->buffer[idle].replaced_at = NEVER_REPLACED;
    p->current_buffer = idle;
    return ERR_OK;
}

/* ---- readers ---- */

void publisher_reader_start(struct publisher *p, size_t reader)
{
    uint64_t epoch;

    ASSERT(reader < p->reader_count);
    // The writer may look for started readers between the load and the store and miss this one.
    // Then it had published, and the epoch differs: see the newer one and store again.
    do {
        epoch = atomic_load(&p->epoch);
        atomic_store(&p->reader[reader].seen, epoch);
    } while (atomic_load(&p->epoch) != epoch);
}

void publisher_reader_rest(struct publisher *p, size_t reader)
{
    uint64_t epoch = atomic_load_explicit(&p->epoch, memory_order_acquire);

    atomic_store_explicit(&p->reader[reader].seen, epoch, memory_order_release);
}

void publisher_reader_stop(struct publisher *p, size_t reader)
{
    atomic_store_explicit(&p->reader[reader].seen, NOT_STARTED, memory_order_release);
}

const struct ring_snapshot *publisher_current(struct publisher *p)
{
    return atomic_load_explicit(&p->current, memory_order_acquire);
}
