/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node's number record holds (struct host_disk), as bytes.
 *
 *     u8 version (1), u64 era, u64 floor, u64 seen, u32 count, count × u64 active
 *
 * Pure.
 */
#ifndef NODE_DISK_H
#define NODE_DISK_H

#include "base/bytes.h"
#include "node/host/host.h"

/* Append it. */
void disk_put(struct buffer *out, const struct host_disk *disk);
/* Decode all of `in`; no bytes are a new folder's: all zero. ERR_CORRUPT; ERR_FOREIGN: of a later
 * version. */
MUST_CHECK enum err disk_get(struct bytes in, struct host_disk *disk);

#endif
