/* SPDX-License-Identifier: Apache-2.0
 *
 * Membership: under which incarnation does this node serve, and may it leave? Specification §4.1.
 *
 *     JOINING -RegOk-> SERVING -Bye-> PARTING -confirmed-> OVER
 *     any -barred, refused-> OVER      SERVING -greater era-> JOINING
 *
 * member.c takes what coordinators send, renews and leaves; register.c registers.
 */
#ifndef NODE_HOST_MEMBERSHIP_H
#define NODE_HOST_MEMBERSHIP_H

#include "base/machine.h"
#include "node/host/host.h"
#include "wire/finder.h"

/* States of this node's membership. life_machine in member.c says which may follow which. */
enum life { LIFE_JOINING, LIFE_SERVING, LIFE_PARTING, LIFE_OVER };
extern const struct machine life_machine;

struct membership {
    struct finder finder;
    bool coordinator_up[FINDER_MAX];
    uint64_t era; /* 0 = not known yet */
    uint64_t nonce;
    uint64_t incarnation;
    uint16_t slot;
    uint8_t life;         /* enum life */
    uint64_t register_us; /* next Register, and how long to the one after it */
    uint32_t register_ms;
    uint64_t renew_us;
    uint64_t renew_seq;
    uint64_t bye_us; /* next Bye */
    uint64_t bye_end_us;
    bool stopping;  /* SIGTERM */
    bool may_leave; /* the leader says so */
    bool told_last; /* the leader says that nobody else stays */
};

static inline void membership_enter(struct membership *m, enum life life)
{
    m->life = machine_enter(&life_machine, m->life, life);
}
static inline int leader_of(const struct membership *m)
{
    return finder_leader(&m->finder);
}

/* ---- member.c ---- */

void membership_init(struct membership *m, uint64_t nonce);
void member_on_coordinator(struct host *h, int coordinator, bool up);
void member_on_control(struct host *h, int coordinator, const Rh__Control *c);
void member_tick(struct host *h);
void member_leave(struct host *h);
/* Renew at the next tick, whenever it was due. */
void member_renew_soon(struct host *h);
/* A node that said goodbye and was given vnodes before anybody heard of it serves on: its vnodes
 * are not let go of like that. */
void member_stay_if_it_owns(struct host *h);
/* Send to a coordinator; fills in the header. `coordinator` < 0: to nobody. */
void host_tell(struct host *h, int coordinator, Rh__Control *c);

/* ---- register.c: called by member.c alone ---- */

/* Send REGISTER now; at the next tick, with the shortest back-off. */
void register_send(struct host *h);
void register_soon(struct host *h);
void register_on_ok(struct host *h, const Rh__RegOk *ok);
void register_on_refused(struct host *h, const Rh__RegRefused *refused);
/* Register anew in another era: all that this node knows is void (hole 53). */
void register_anew(struct host *h);
/* The coordinators' database is older than what this node saw (hole 54). */
void register_say_went_back(uint64_t era, uint64_t seen);
/* The planted bug of hole 1: the node finds itself in the ring and serves. */
void register_omitted(struct host *h, const Rh__ConfigAnswer *answer);

#endif
