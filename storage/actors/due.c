/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes due alarms one behind the other, and reads them.
 */
#include "storage/actors/due.h"

#include "base/assert.h"

struct due_head {
    uint64_t due_ms;
    uint8_t id_size;
    uint8_t name_size;
};

void due_put(struct buffer *out, const struct due_alarm *d)
{
    struct due_head head = {
        .due_ms = d->due_ms, .id_size = (uint8_t)d->id.size, .name_size = (uint8_t)d->name.size};

    ASSERT(head.id_size == d->id.size && head.name_size == d->name.size);
    buffer_put(out, &head, sizeof head);
    buffer_put(out, d->id.data, d->id.size);
    buffer_put(out, d->name.data, d->name.size);
}

bool due_next(struct bytes *all, struct due_alarm *d)
{
    struct due_head head;

    if (all->size == 0) {
        return false;
    }
    ASSERT(all->size >= sizeof head);
    memcpy(&head, all->data, sizeof head);
    const size_t size = sizeof head + head.id_size + head.name_size;
    ASSERT(all->size >= size);
    *d = (struct due_alarm){
        .due_ms = head.due_ms,
        .id = bytes_of(all->data + sizeof head, head.id_size),
        .name = bytes_of(all->data + sizeof head + head.id_size, head.name_size),
    };
    *all = bytes_of(all->data + size, all->size - size);
    return true;
}
