/* SPDX-License-Identifier: Apache-2.0
 *
 * The sorted list of actors in quarantine.
 */
#include "ring/quarantine.h"

#include "base/mem.h"

#include <string.h>

void quarantine_fini(struct quarantine *q)
{
    mem_free(q->entry);
    *q = (struct quarantine){0};
}

void quarantine_copy(struct quarantine *to, const struct quarantine *from)
{
    *to = (struct quarantine){.count = from->count};
    if (from->count > 0) {
        to->entry = mem_copy(from->entry, from->count * sizeof *from->entry);
    }
}

bool quarantined_of(struct quarantined *e, uint32_t kind, struct bytes id)
{
    if (kind > UINT16_MAX || id.size < 1 || id.size > QUARANTINE_ID_MAX) {
        return false;
    }
    *e = (struct quarantined){.kind = (uint16_t)kind, .id_size = (uint8_t)id.size};
    memcpy(e->id, id.data, id.size);
    return true;
}

int quarantine_compare(const struct quarantined *a, const struct quarantined *b)
{
    const size_t shorter = a->id_size < b->id_size ? a->id_size : b->id_size;
    const int by_id = memcmp(a->id, b->id, shorter);

    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return by_id != 0 ? by_id : (int)a->id_size - (int)b->id_size;
}

size_t quarantine_place(const void *entries, size_t count, size_t stride,
                        const struct quarantined *e)
{
    const uint8_t *first = entries;
    size_t low = 0;

    while (low < count) {
        const size_t middle = low + (count - low) / 2;
        const void *at = first + middle * stride;

        if (quarantine_compare(at, e) < 0) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* Its place; true if it stands there. */
static bool find(const struct quarantine *q, const struct quarantined *e, size_t *at)
{
    *at = quarantine_place(q->entry, q->count, sizeof *q->entry, e);
    return *at < q->count && quarantine_compare(&q->entry[*at], e) == 0;
}

bool quarantine_has(const struct quarantine *q, uint16_t kind, struct bytes id)
{
    struct quarantined e;
    size_t at;

    return q->count > 0 && quarantined_of(&e, kind, id) && find(q, &e, &at);
}

bool quarantine_put(struct quarantine *q, const struct quarantined *e)
{
    size_t at;

    if (find(q, e, &at)) {
        return true;
    }
    if (q->count == QUARANTINE_MAX) {
        return false;
    }
    q->entry = mem_resize(q->entry, (q->count + 1) * sizeof *q->entry);
    memmove(&q->entry[at + 1], &q->entry[at], (q->count - at) * sizeof *q->entry);
    q->entry[at] = *e;
    q->count++;
    return true;
}

bool quarantine_remove(struct quarantine *q, const struct quarantined *e)
{
    size_t at;

    if (!find(q, e, &at)) {
        return false;
    }
    q->count--;
    memmove(&q->entry[at], &q->entry[at + 1], (q->count - at) * sizeof *q->entry);
    return true;
}

Rh__Actor *quarantined_wire(const struct quarantined *e)
{
    Rh__Actor *out = mem_new(1, sizeof *out);

    *out = (Rh__Actor)RH__ACTOR__INIT;
    out->kind = e->kind;
    out->id.data = mem_copy(e->id, e->id_size);
    out->id.len = e->id_size;
    return out;
}

bool quarantined_read(struct quarantined *e, const Rh__Actor *in)
{
    return quarantined_of(e, in->kind, bytes_of(in->id.data, in->id.len));
}
