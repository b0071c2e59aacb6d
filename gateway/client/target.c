/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the kind and the id out of a client's key: @KIND/id, or an id of the
 * default kind.
 */
#include "gateway/client/target.h"

#include "base/actor_name.h"

#include <string.h>

bool target_read(struct bytes key, struct target *out)
{
    const bool at = key.size > 0 && key.data[0] == '@';
    const size_t skip = at ? actor_name_kind(bytes_of(key.data + 1, key.size - 1), &out->kind) : 0;

    out->id = skip == 0 ? key : bytes_of(key.data + 1 + skip, key.size - 1 - skip);
    return skip > 0;
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
