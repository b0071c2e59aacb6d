/* SPDX-License-Identifier: Apache-2.0
 *
 * Applied: what came out of the log, and what follows from it?
 */
#ifndef TXN_LEADER_APPLIED_H
#define TXN_LEADER_APPLIED_H

#include "txn/leader/coordinator.h"

struct applied {
    uint64_t changes; /* commands, and leaderships: the state may have changed since */
    uint64_t index;
    /* Outcomes since the process began, for metrics: */
    uint64_t committed;
    uint64_t aborted;
    uint64_t reassigned;
};

void applied_on_entry(struct coordinator *c, const struct coordinator_event *event);
/* A proposal or barrier is over. An unknown outcome is not lost: what is still to be done is seen
 * in the state. */
void applied_on_done(struct coordinator *c, const struct coordinator_event *event);
/* Have whatever was concluded from the state looked at anew. */
void applied_look_again(struct coordinator *c);

#endif
