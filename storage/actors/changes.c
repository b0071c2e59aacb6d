/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes changes one behind the other, and reads them.
 */
#include "storage/actors/changes.h"

#include "base/assert.h"

struct head {
    uint64_t due_ms;
    uint64_t every_ms;
    uint32_t size; /* of the bytes */
    uint8_t of;    /* enum change_of */
    uint8_t key_size;
    uint8_t gone;
};

bool change_is_good(const struct store_change *c)
{
    return c->key.size > 0 && c->key.size <= CHANGES_KEY_MAX &&
           c->bytes.size <= CHANGES_VALUE_MAX && (!c->gone || c->bytes.size == 0) &&
           c->due_ms <= CHANGES_MS_MAX && c->every_ms <= CHANGES_MS_MAX;
}

void changes_put(struct buffer *out, const struct store_change *c)
{
    struct head head = {
        .due_ms = c->due_ms,
        .every_ms = c->every_ms,
        .size = (uint32_t)c->bytes.size,
        .of = (uint8_t)c->of,
        .key_size = (uint8_t)c->key.size,
        .gone = c->gone ? 1 : 0,
    };

    ASSERT(change_is_good(c));
    buffer_put(out, &head, sizeof head);
    buffer_put(out, c->key.data, c->key.size);
    buffer_put(out, c->bytes.data, c->bytes.size);
}

bool changes_next(struct bytes *all, struct store_change *c)
{
    struct head head;

    if (all->size == 0) {
        return false;
    }
    ASSERT(all->size >= sizeof head);
    memcpy(&head, all->data, sizeof head);
    const size_t size = sizeof head + head.key_size + head.size;
    ASSERT(all->size >= size && head.of < CHANGE_COUNT);
    *c = (struct store_change){
        .of = (enum change_of)head.of,
        .key = bytes_of(all->data + sizeof head, head.key_size),
        .gone = head.gone != 0,
        .bytes = bytes_of(all->data + sizeof head + head.key_size, head.size),
        .due_ms = head.due_ms,
        .every_ms = head.every_ms,
    };
    *all = bytes_of(all->data + size, all->size - size);
    return true;
}
