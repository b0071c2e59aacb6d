/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose code runs: a file in the node's folder that tells the next process which
 * actors this one ran when it died. It is mapped into memory, so what is written
 * there survives any death of the process, by a signal it cannot catch too, and
 * costs no call of the system.
 *
 *     header   magic, boot of the machine, incarnation, check
 *     slot     one for each worker: mark, kind, id; mark 0 = it runs nothing
 *
 * A worker writes mark 0, the name, then the mark, which is a hash of the name.
 * A death in between leaves mark 0.
 * What does not fit its mark, or was written before the machine's last start, is
 * not believed: a machine that stops writes back what it likes.
 */
#ifndef NODE_WORKER_CRASH_RECORD_H
#define NODE_WORKER_CRASH_RECORD_H

#include "base/assert.h"
#include "ring/hash.h"
#include "ring/quarantine.h"

#include <stdatomic.h>
#include <string.h>

enum { CRASH_RECORD_SLOTS = 64 };

struct crash_record_slot {
    _Atomic uint64_t mark; /* of what runs; 0 = nothing */
    uint64_t unused[2];
    struct quarantined name;
    uint8_t apart[38]; /* on lines of the cache of its own */
};
_Static_assert(sizeof(struct crash_record_slot) == 320, "whole lines");

struct crash_record_file; /* as it is mapped */

struct crash_record {
    struct crash_record_file *file; /* NULL = not open */
    uint8_t boot_id[16];
    bool mapped; /* else there is no file: plain memory, which tells nobody */
    bool begun;
};

/* Record that the process before this one left. */
struct crash_record_left {
    uint64_t incarnation; /* it had this one; 0 = there is nothing to tell */
    struct quarantined actor[CRASH_RECORD_SLOTS];
    size_t count; /* 0: nothing ran, or it stopped cleanly, or its machine did */
};

/* Open or make the file in `folder`, whose lock is held, and read what was left, which stays there
 * until crash_record_begin(). Where there can be no file a log line says so. */
void crash_record_open(struct crash_record *r, const char *folder, const uint8_t boot_id[16],
                       struct crash_record_left *left);
/* I am registered: from here on it tells of me. */
void crash_record_begin(struct crash_record *r, uint64_t incarnation);
/* Close the record: all actors are gone, and none is to be blamed. */
void crash_record_close(struct crash_record *r);

/* Return the slot of worker `index`, below CRASH_RECORD_SLOTS. Valid until crash_record_close(). */
struct crash_record_slot *crash_record_slot(const struct crash_record *r, size_t index);

/* The mark of a name. It is to find damage: whoever can write here needs no forgery. */
__attribute__((always_inline)) static inline uint64_t crash_record_mark(uint16_t kind,
                                                                        struct bytes id)
{
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    const uint8_t *at = id.data;
    size_t left = id.size;
    uint64_t h = ((uint64_t)kind << 8 | id.size) * odd;

    for (; left >= sizeof h; at += sizeof h, left -= sizeof h) {
        h = (h ^ siphash_load(at)) * odd;
    }
    if (left > 0) {
        h = (h ^ siphash_last((struct bytes){at, left})) * odd;
    }
    return h | 1; // 0 says that nothing runs
}

/* Note that the worker leaves an actor's code, and that it enters that of another; on the worker's
 * thread. */
static inline void crash_record_leave(struct crash_record_slot *s)
{
    atomic_store_explicit(&s->mark, 0, memory_order_release);
}
__attribute__((always_inline)) static inline void crash_record_enter(struct crash_record_slot *s,
                                                                     uint16_t kind, struct bytes id)
{
    ASSERT(id.size > 0 && id.size <= QUARANTINE_ID_MAX);
    crash_record_leave(s);
    s->name.kind = kind;
    s->name.id_size = (uint8_t)id.size;
    bytes_copy(s->name.id, id.data, id.size);
    atomic_store_explicit(&s->mark, crash_record_mark(kind, id), memory_order_release);
}

#endif
