/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers: which messages wait until it is proved that I still lead (specification §3.5)?
 */
#ifndef TXN_LEADER_BARRIER_H
#define TXN_LEADER_BARRIER_H

#include "txn/leader/coordinator.h"
#include "txn/leader/past.h"

struct waiting_message {
    uint64_t peer;
    struct drawn drawn;   /* when it came */
    Rh__Control *message; /* owned */
};

struct barrier {
    struct waiting_message *waiting; /* owned; the first `riding` wait for the barrier in flight */
    size_t count;
    size_t riding;
    uint64_t tag; /* of the barrier in flight, 0 = none is */
    bool urgent;  /* what waits for the next one should not wait for a tick as well */
};

/* Start a barrier, one at a time; what comes while it is under way waits for the next. Each asks
 * all coordinators: where nothing that waits is urgent, one starts only at a `tick`, or when as
 * many wait as there are nodes. */
void barrier_start(struct coordinator *c, bool tick);
void barrier_wait(struct coordinator *c, uint64_t peer, const Rh__Control *message, bool urgent);
/* One of these waits. */
bool barrier_has(const struct coordinator *c, Rh__Control__BodyCase body);
void barrier_done(struct coordinator *c, enum err error);
void barrier_forget(struct coordinator *c);
void barrier_fini(struct coordinator *c);

#endif
