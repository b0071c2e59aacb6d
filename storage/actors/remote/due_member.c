/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads members of a sorted set of alarms.
 */
#include "storage/actors/remote/due_member.h"

#include "storage/actors/changes.h"
#include "storage/actors/store.h"

void due_member_put(struct buffer *out, struct bytes id)
{
    static const uint8_t end[2] = {0, 0};
    static const uint8_t zero[2] = {0, 1};

    for (size_t i = 0; i < id.size; i++) {
        buffer_put(out, id.data[i] == 0 ? zero : &id.data[i], id.data[i] == 0 ? 2 : 1);
    }
    buffer_put(out, end, sizeof end);
}

bool due_member_split(struct bytes member, struct buffer *id, struct bytes *name)
{
    size_t at = 0;

    buffer_clear(id);
    while (at + 1 < member.size && (member.data[at] != 0 || member.data[at + 1] != 0)) {
        buffer_put(id, &member.data[at], 1);
        at += member.data[at] == 0 ? 2 : 1;
    }
    *name = bytes_of(member.data + at + 2, at + 2 < member.size ? member.size - at - 2 : 0);
    return id->size > 0 && id->size <= STORE_ID_MAX && name->size > 0 &&
           name->size <= CHANGES_KEY_MAX;
}
