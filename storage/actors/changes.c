/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes changes of named values one behind the other, and reads them.
 */
#include "storage/actors/changes.h"

#include "base/assert.h"

struct head {
    uint32_t size; /* of the value */
    uint8_t key_size;
    uint8_t gone;
};

void changes_put(struct buffer *out, const struct value_change *c)
{
    struct head head = {
        .size = (uint32_t)c->bytes.size, .key_size = (uint8_t)c->key.size, .gone = c->gone ? 1 : 0};

    ASSERT(c->key.size > 0 && c->key.size <= CHANGES_KEY_MAX);
    ASSERT(c->bytes.size <= CHANGES_VALUE_MAX && (!c->gone || c->bytes.size == 0));
    buffer_put(out, &head, sizeof head);
    buffer_put(out, c->key.data, c->key.size);
    buffer_put(out, c->bytes.data, c->bytes.size);
}

bool changes_next(struct bytes *all, struct value_change *c)
{
    struct head head;

    if (all->size == 0) {
        return false;
    }
    ASSERT(all->size >= sizeof head);
    memcpy(&head, all->data, sizeof head);
    const size_t size = sizeof head + head.key_size + head.size;
    ASSERT(all->size >= size);
    *c = (struct value_change){
        .key = bytes_of(all->data + sizeof head, head.key_size),
        .gone = head.gone != 0,
        .bytes = bytes_of(all->data + sizeof head + head.key_size, head.size),
    };
    *all = bytes_of(all->data + size, all->size - size);
    return true;
}
