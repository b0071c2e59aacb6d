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
 * A worker writes the name only when it is another actor's than the last time,
 * then the mark, which is a hash of the name: one store for the same actor. A
 * death in between leaves mark 0.
 * What does not fit its mark, or was written before the machine's last start, is
 * not believed: a machine that stops writes back what it likes.
 */
#ifndef NODE_WORKER_BLAME_H
#define NODE_WORKER_BLAME_H

#include "ring/quarantine.h"

#include <stdatomic.h>
#include <string.h>

enum { BLAME_SLOTS = 64 };

struct blame_slot {
    _Atomic uint64_t mark; /* of what runs; 0 = nothing */
    uint64_t name_mark;    /* of the name below; 0 = it is no name */
    uint64_t unused;
    struct quarantined name;
    uint8_t apart[38]; /* on lines of the cache of its own */
};
_Static_assert(sizeof(struct blame_slot) == 320, "whole lines");

struct blame_file; /* as it is mapped */

struct blame {
    struct blame_file *file; /* NULL = not open */
    uint8_t boot_id[16];
    bool mapped; /* else there is no file: plain memory, which tells nobody */
    bool begun;
};

/* What the process before me left. */
struct blame_left {
    uint64_t incarnation; /* it had this one; 0 = there is nothing to tell */
    struct quarantined actor[BLAME_SLOTS];
    size_t count; /* 0: nothing ran, or it stopped cleanly, or its machine did */
};

/* Open or make the file in `folder`, whose lock is held, and read what was left, which stays there
 * until blame_begin(). Where there can be no file a log line says so. */
void blame_open(struct blame *r, const char *folder, const uint8_t boot_id[16],
                struct blame_left *left);
/* I am registered: from here on it tells of me. */
void blame_begin(struct blame *r, uint64_t incarnation);
/* All actors are gone, nobody is to be blamed. */
void blame_close(struct blame *r);

/* Of worker `index`, below BLAME_SLOTS. Good until blame_close(). */
struct blame_slot *blame_slot(const struct blame *r, size_t index);

/* Write another name; nothing runs there then. */
void blame_name(struct blame_slot *s, uint16_t kind, struct bytes id);

/* On the worker's thread: it leaves an actor's code; and enters it. */
static inline void blame_leave(struct blame_slot *s)
{
    atomic_store_explicit(&s->mark, 0, memory_order_release);
}
static inline void blame_enter(struct blame_slot *s, uint16_t kind, struct bytes id)
{
    if (s->name_mark == 0 || s->name.kind != kind || s->name.id_size != id.size ||
        memcmp(s->name.id, id.data, id.size) != 0) {
        blame_name(s, kind, id);
    }
    atomic_store_explicit(&s->mark, s->name_mark, memory_order_release);
}

#endif
