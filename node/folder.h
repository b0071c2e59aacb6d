/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's data folder: is it mine, and mine alone?
 *
 *     lock      flocked while the node runs
 *     identity  text: format, cluster, node's name, the folder's id, the fleet's once the node has
 *               joined it, a CRC-32C
 *     number    the transaction numbers seen (storage/log/number.h)
 *     running   whose code runs, for the next process (node/worker/crash_record.h)
 *
 * The folder's id and this machine's boot id let a restarted node prove that
 * its last incarnation is dead: who holds the lock of the same folder in the
 * same boot can't be running twice.
 */
#ifndef NODE_FOLDER_H
#define NODE_FOLDER_H

#include "base/err.h"
#include "base/fleet_id.h"

#include <stdbool.h>
#include <stdint.h>

struct folder {
    int lock;   /* file descriptor; -1 = not open */
    bool fresh; /* folder_open() has just made it: it has no number yet */
    uint8_t data_uuid[16];
    uint8_t boot_id[16];
    struct fleet_id fleet; /* that the node belongs to; not known before it joined one */
};

/* Open the folder at `path` for node `name` of `cluster`, both valid names (wire/hello.h); make it
 * and its parents if they are missing. ERR_LOCKED: a running process has it; ERR_FOREIGN: of
 * another cluster, node or version, or a coordinator's; ERR_CORRUPT: its identity does not read;
 * ERR_IO. It has printed one line on stderr then.
 */
MUST_CHECK enum err folder_open(struct folder *f, const char *path, const char *cluster,
                                const char *name);
/* The node, of the same folder and names as it was opened with, has joined that fleet: from now on
 * its folder is of no other. ERR_IO, after one line on stderr. */
MUST_CHECK enum err folder_join(struct folder *f, const char *path, const char *cluster,
                                const char *name, struct fleet_id fleet);
/* The number could not be made: take back the identity that folder_open() has just made, so that
 * the next start finds a folder in which nothing was promised. Nothing happens to one that was
 * there. */
void folder_unmake(const struct folder *f, const char *path);
void folder_close(struct folder *f);

#endif
