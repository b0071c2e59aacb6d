/* SPDX-License-Identifier: Apache-2.0
 *
 * History: which were the last changes of the ring, for whoever is a little behind?
 */
#ifndef TXN_LEADER_HISTORY_H
#define TXN_LEADER_HISTORY_H

#include "txn/leader/coordinator.h"

enum { HISTORY_MAX = 256 }; /* deltas kept in memory */

struct delta_history {
    Rh__Delta *delta[HISTORY_MAX]; /* owned; a ring buffer */
    size_t at;                     /* where the next goes */
    size_t count;
};

void history_put(struct coordinator *c, const Rh__Delta *delta);
void history_fini(struct coordinator *c);
/* True: that version, older than the ring's, was surely never so in this state's past. False also
 * where the kept changes don't reach that far. */
bool history_lacks(const struct coordinator *c, uint64_t version, const uint64_t digest[2]);
/* Answer a GetConfig. */
void history_answer(struct coordinator *c, uint64_t peer, const Rh__GetConfig *asked);

#endif
