/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the kind and the id out of a client's key: @KIND/id, or an id of the
 * default kind.
 */
#include "gateway/client/target.h"

#include <string.h>

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

bool target_read(struct bytes key, struct target *out)
{
    uint32_t kind = 0;
    size_t at = 1;

    out->id = key;
    if (key.size < 4 || key.data[0] != '@') {
        return false;
    }
    for (; at < key.size && at <= 5 && is_digit(key.data[at]); at++) {
        kind = kind * 10 + (uint32_t)(key.data[at] - '0');
    }
    if (at == 1 || at + 1 >= key.size || key.data[at] != '/' || kind > UINT16_MAX ||
        (key.data[1] == '0' && at > 2)) {
        return false;
    }
    out->kind = (uint16_t)kind;
    out->id = bytes_of(key.data + at + 1, key.size - at - 1);
    return true;
}

bool target_kind_of_role(const struct view *view, const char *role, uint16_t *kind)
{
    *kind = 0;
    if (role[0] == '\0') {
        return true;
    }
    for (size_t i = 0; i < view->ring.segment_count; i++) {
        const struct ring_segment *s = &view->ring.segment[i];

        if (ring_is_hashed(s) && s->kind_count > 0 && strcmp(s->role, role) == 0) {
            *kind = s->kind[0];
            return true;
        }
    }
    return false;
}
