/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes a node's number record.
 */
#include "node/disk.h"

#include "base/assert.h"
#include "wire/cursor.h"

enum { VERSION = 1, FIXED_SIZE = 1 + 3 * 8 + 4 };

void disk_put(struct buffer *out, const struct host_disk *disk)
{
    const size_t size = FIXED_SIZE + disk->active_count * sizeof disk->active[0];

    ASSERT(disk->active_count <= HOST_ACTIVE_MAX);
    struct writer w = {.at = buffer_reserve(out, size), .left = size};
    put_u8(&w, VERSION);
    put_u64(&w, disk->era);
    put_u64(&w, disk->floor);
    put_u64(&w, disk->seen);
    put_u32(&w, (uint32_t)disk->active_count);
    for (size_t i = 0; i < disk->active_count; i++) {
        put_u64(&w, disk->active[i]);
    }
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

enum err disk_get(struct bytes in, struct host_disk *disk)
{
    struct reader r = {.at = in.data, .left = in.size};

    *disk = (struct host_disk){0};
    if (in.size == 0) {
        return ERR_OK;
    }
    if (get_u8(&r) != VERSION) {
        return ERR_FOREIGN;
    }
    disk->era = get_u64(&r);
    disk->floor = get_u64(&r);
    disk->seen = get_u64(&r);
    disk->active_count = get_u32(&r);
    if (disk->active_count > HOST_ACTIVE_MAX) {
        disk->active_count = 0;
        return ERR_CORRUPT;
    }
    for (size_t i = 0; i < disk->active_count; i++) {
        disk->active[i] = get_u64(&r);
    }
    return r.bad || r.left != 0 ? ERR_CORRUPT : ERR_OK;
}
