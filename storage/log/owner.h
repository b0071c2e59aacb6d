/* SPDX-License-Identifier: Apache-2.0
 *
 * Who repairs a daemon's folder is root, and the daemon is not: what root has left in there must be
 * the daemon's, or it can't start.
 */
#ifndef STORAGE_LOG_OWNER_H
#define STORAGE_LOG_OWNER_H

#include "base/err.h"

/* Give what is root's in `folder`, and in the folder `within` it, to whom `folder` belongs. Done by
 * root alone; nobody else has made anything that is root's. Links are left alone, as is a file with
 * a second name: it may be somebody else's file. ERR_IO: `folder` is as it was in part. */
MUST_CHECK enum err owner_keep(const char *folder, const char *within);

#endif
