/* SPDX-License-Identifier: Apache-2.0
 *
 * The actors that are in quarantine: each killed its process again and again,
 * and no node activates it any more. Part of the view, so that it is as new as
 * the ring by which a request came (docs/decisions/011-quarantine.md).
 *
 * Sorted by kind and id, at most QUARANTINE_MAX of them.
 *
 * Pure.
 */
#ifndef RING_QUARANTINE_H
#define RING_QUARANTINE_H

#include "base/bytes.h"
#include "wire/control.pb-c.h"

#include <stdbool.h>

enum { QUARANTINE_MAX = 1024, QUARANTINE_ID_MAX = 255 };

struct quarantined {
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[QUARANTINE_ID_MAX];
};

/* All zero is an empty one. */
struct quarantine {
    struct quarantined *entry; /* owned; sorted */
    size_t count;
};

void quarantine_fini(struct quarantine *q);
void quarantine_copy(struct quarantine *to, const struct quarantine *from); /* `to` is unset */

static inline struct bytes quarantined_id(const struct quarantined *e)
{
    return bytes_of(e->id, e->id_size);
}

/* Return the entry's place among `count` entries that are `stride` bytes apart and start with a
 * struct quarantined: the index of the first that is not less. */
size_t quarantine_place(const void *entries, size_t count, size_t stride,
                        const struct quarantined *e);
/* Order of two actors in the list: < 0, 0, > 0. */
int quarantine_compare(const struct quarantined *a, const struct quarantined *b);

/* False if the kind or the id is out of range. */
bool quarantined_of(struct quarantined *e, uint32_t kind, struct bytes id);

bool quarantine_has(const struct quarantine *q, uint16_t kind, struct bytes id);
/* False: there is no room. One that is there already is taken as well. */
bool quarantine_put(struct quarantine *q, const struct quarantined *e);
/* False: it is not there. */
bool quarantine_remove(struct quarantine *q, const struct quarantined *e);

/* Return the entry as the wire has it; owned, every byte copied: proto_free() of the message that
 * it is put into frees it. */
Rh__Actor *quarantined_wire(const struct quarantined *e);
/* The other way; false: it is none. */
bool quarantined_read(struct quarantined *e, const Rh__Actor *in);

#endif
