/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprint of the replicated state: two coordinators that applied the same
 * entries have the same one, or one of them is wrong.
 *
 * Pure.
 */
#ifndef TXN_STATE_DIGEST_H
#define TXN_STATE_DIGEST_H

#include "txn/state/state.h"

/* Return the digest of everything in `s` that commands change, including the cluster's key, which
 * it does not give away. It is for comparing processes of one version, not for keeping. */
uint64_t state_digest(const struct state *s);

#endif
