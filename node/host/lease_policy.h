/* SPDX-License-Identifier: Apache-2.0
 *
 * Lease policy: what may the host do now under its lease, and what is put off (lease_policy.c)?
 * Specification §4.1, §5.3 step 4; I1, I8; holes 26, 28, 30, 53.
 */
#ifndef NODE_HOST_LEASE_POLICY_H
#define NODE_HOST_LEASE_POLICY_H

#include "node/host/gate.h"
#include "node/host/requests.h"

struct lease_policy {
    struct lease lease;
    struct gate gate;
    uint64_t lease_term;    /* of the leader that granted the lease that counts; 0 = not told */
    int32_t clock_parts;    /* what the leader says of the clock that it counts by: Grant */
    struct queue leaseless; /* they came, or their turn did, without an ACTIVE lease */
    struct list
        leaseless_actors; /* struct actor_work: they want a turn, or to retire, and may not now */
    uint64_t leaseless_total;
    bool wanted;                          /* a request came, or its turn did, meanwhile */
    struct metrics_times leaseless_times; /* how long there was none, and one was wanted */
    uint64_t lapses;                      /* it ran out, and the node served on */
    uint64_t leased_us;                   /* so long, at least, there was one, or none was needed */
    bool lapsed;                          /* serves without a lease */
};

void lease_policy_init(struct lease_policy *t, const struct host_config *config);
/* Judge the lease; let go of what may be done now. */
void lease_policy_judge(struct host *h);
/* A task or an activation may start. */
bool lease_policy_may_start(const struct host *h);
void lease_policy_granted(struct host *h, const Rh__Grant *grant);
/* Registered. */
void lease_policy_begin(struct host *h, uint64_t lease_us);
/* Barred, or another era. */
void lease_policy_end(struct host *h, enum host_drop why);
/* True if the lease has been over for so long that a leaving node waits for coordinators no more.
 */
bool lease_policy_is_alone(const struct host *h);
/* Put the requests off until the lease is ACTIVE again; then they are admitted anew. */
void lease_policy_put_off(struct host *h, struct admission *in);
void lease_policy_put_off_all(struct host *h, struct queue *q);
/* Put the actor's turn or retirement off until the lease is ACTIVE again. */
void lease_policy_put_off_actor(struct host *h, struct actor *a);
/* The shell could not begin it in time: it is kept at the gate. */
void lease_policy_on_returned(struct host *h, struct actor *a, const struct completion *c);
uint64_t lease_policy_renew_every_us(const struct host *h);
void lease_policy_stats(const struct host *h, struct host_stats *out);

#endif
