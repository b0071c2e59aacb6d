/* SPDX-License-Identifier: Apache-2.0
 *
 * Membership: what comes from coordinators, renewal, leaving. Specification §4.1, hole 6.
 */
#include "node/host/inside.h"

#include "base/log.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <inttypes.h>

enum { MS = 1000 };

void host_tell(struct host *h, int coordinator, Rh__Control *c)
{
    struct buffer *bytes = &h->out->bytes;
    const size_t at = bytes->size;

    if (coordinator < 0) {
        return;
    }
    c->era = h->era;
    c->source_incarnation = h->incarnation;
    c->version = h->view.ring.version;
    control_put(bytes, c);
    struct host_effect *e = host_emit(h, HOST_SEND_COORDINATOR);
    e->coordinator = coordinator;
    e->at = at;
    e->size = bytes->size - at;
}

/* ---- renewal and leaving ---- */

static void tell_lease(Rh__Renew *r, const struct host_figures *f)
{
    r->lease_us = f->lease_margin_us;
    r->lease_least_us = f->lease_margin_min_us;
    r->lease_gated = f->lease_gated;
    r->leaseless_total = f->leaseless_total;
    for (size_t i = 0; i < HOST_DROP_COUNT; i++) {
        r->gate_dropped += f->gate_dropped[i];
    }
}

static void send_renew(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Renew r = RH__RENEW__INIT;
    struct host_figures f;

    host_figures(h, &f);
    r.seq = ++h->renew_seq;
    r.actors = f.live;
    r.held = f.held;
    r.version = f.version;
    r.digest0 = f.digest[0];
    r.digest1 = f.digest[1];
    r.held_total = f.held_total;
    r.hold_us_max = f.hold_us_max;
    r.executed = f.executed;
    r.forwarded = f.forwarded;
    r.refused_quarantine = f.refused_quarantine;
    r.stopping = h->stopping;
    r.clock_us = h->now_us;
    tell_lease(&r, &f);
    c.body_case = RH__CONTROL__BODY_RENEW;
    c.renew = &r;
    lease_sent(&h->lease, r.seq, h->now_us, h->wall_us);
    host_tell(h, leader_of(h), &c);
    h->renew_us = h->now_us + tenure_renew_every_us(h);
}

void member_leave(struct host *h)
{
    h->stopping = true;
    if (h->life == LIFE_SERVING) {
        send_renew(h);
    } else if (h->life == LIFE_JOINING && h->incarnation == 0) {
        host_stop(h, HOST_EXIT_UNREGISTERED);
    }
}

static bool gateways_know(const struct host *h)
{
    const uint64_t linger_us = (uint64_t)h->config.linger_ms * MS;

    if (h->lost_version == 0 || h->now_us - h->lost_us >= linger_us) {
        return true;
    }
    for (struct list_link *l = list_front(&h->neighbours.all); l;
         l = list_next(&h->neighbours.all, l)) {
        const struct neighbour *p = CONTAINER_OF(l, struct neighbour, all);

        // What I passed on may be answered by way of me. A node that tells what it adopted asks
        // for its actors, as a gateway for its clients.
        if (p->standing == STANDING_KNOWN && (p->role == ROLE_GATEWAY || p->adopted > 0) &&
            (p->adopted < h->lost_version || p->awaits)) {
            return false;
        }
    }
    return true;
}

static void leave_when_ready(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Bye bye = RH__BYE__INIT;

    if (h->life == LIFE_SERVING && h->stopping && tenure_is_alone(h)) {
        host_stop(h, HOST_EXIT_ALONE);
        return;
    }
    if (h->life == LIFE_SERVING && h->may_leave && h->participant.part_count == 0 &&
        h->parked_count == 0 && h->room.count == 0 && h->running == 0 &&
        ring_owned_count(&h->view.ring, h->slot) == 0 && gateways_know(h)) {
        log_info("node", "leaving", "version=%" PRIu64, h->view.ring.version);
        host_enter(h, LIFE_PARTING);
        h->bye_us = h->now_us;
        h->bye_end_us = h->now_us + (uint64_t)BYE_WAIT_MS * MS;
    }
    if (h->life == LIFE_PARTING && h->now_us >= h->bye_end_us) {
        host_stop(h, HOST_EXIT_LEFT);
    } else if (h->life == LIFE_PARTING && h->now_us >= h->bye_us) {
        c.body_case = RH__CONTROL__BODY_BYE;
        c.bye = &bye;
        host_tell(h, leader_of(h), &c);
        h->bye_us = h->now_us + (uint64_t)h->config.resend_ms * MS;
    }
}

static void on_grant(struct host *h, const Rh__Grant *grant)
{
    if (h->life == LIFE_SERVING) {
        tenure_granted(h, grant);
        if (grant->last && !h->told_last) {
            // It serves on until another node comes, or until it is killed with its actors.
            log_warn(
                "node", "last_node", "nobody takes over its actors: they end with the process");
        }
        h->told_last = grant->last != 0;
        h->may_leave = grant->leave;
        host_want_version(h, grant->version);
        leave_when_ready(h);
    }
}

static void on_barred(struct host *h, const Rh__Barred *barred)
{
    if (h->life == LIFE_PARTING) {
        host_stop(h, HOST_EXIT_LEFT);
    } else if (h->life == LIFE_SERVING) {
        log_error("node", "barred", "why=\"%s\"", barred->why);
        tenure_end(h, HOST_DROP_BARRED);
        host_stop(h, HOST_EXIT_BARRED);
    }
}

/* ---- messages ---- */

static void on_leader(struct host *h, int coordinator, const Rh__Leader *leader)
{
    const int before = leader_of(h);

    finder_on_leader(&h->finder, (size_t)coordinator, leader->leading != 0, leader->term);
    if (leader_of(h) == before || leader_of(h) < 0) {
        return;
    }
    if (h->life == LIFE_JOINING) {
        register_soon(h);
    } else {
        h->renew_us = h->now_us;
        h->poll_us = h->now_us;
    }
}

/* False: it is not for me. */
static bool is_for_me(struct host *h, const Rh__Control *c)
{
    if (c->target_incarnation != 0 && c->target_incarnation != h->incarnation) {
        return false; // hole 34
    }
    if (c->era != 0 && h->life != LIFE_JOINING && c->era > h->era) {
        if (mutant(M_ERAMSG)) {
            h->era = c->era; // follow it in place
            return true;
        }
        register_anew(h);
        if (h->life == LIFE_OVER) {
            return false; // it was leaving, and is out: of what follows nothing is its own
        }
    }
    const uint64_t era = h->era > h->disk.era ? h->era : h->disk.era;
    if (c->era != 0 && c->era < era && c->body_case == RH__CONTROL__BODY_LEADER &&
        c->leader->leading != 0) {
        register_say_went_back(c->era, era); // hole 54: rather no leader than one of the past
    }
    return c->era == 0 || c->era >= era || c->body_case == RH__CONTROL__BODY_REG_REFUSED ||
           c->body_case == RH__CONTROL__BODY_REG_OK;
}

static void on_joining(struct host *h, int coordinator, const Rh__Control *c)
{
    if (c->body_case == RH__CONTROL__BODY_LEADER) {
        on_leader(h, coordinator, c->leader);
    } else if (c->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        finder_on_not_leader(&h->finder, (size_t)coordinator);
    } else if (c->body_case == RH__CONTROL__BODY_REG_OK) {
        register_on_ok(h, c->reg_ok);
    } else if (c->body_case == RH__CONTROL__BODY_REG_REFUSED) {
        register_on_refused(h, c->reg_refused);
    } else if (c->body_case == RH__CONTROL__BODY_CONFIG && mutant(M_RESTART)) {
        register_omitted(h, c->config);
    }
}

void member_on_control(struct host *h, int coordinator, const Rh__Control *c)
{
    if (coordinator < 0 || coordinator >= FINDER_MAX) {
        return;
    }
    if (c->body_case == RH__CONTROL__BODY_INSPECT) {
        host_inspect(h, coordinator, c->inspect); // whatever the era: it changes nothing
        return;
    }
    if (!is_for_me(h, c)) {
        return;
    }
    if (h->life == LIFE_JOINING) {
        on_joining(h, coordinator, c);
        return;
    }
    // A message of any other kind is not for a node: an old or a foreign peer.
    if (c->body_case == RH__CONTROL__BODY_LEADER) {
        on_leader(h, coordinator, c->leader);
    } else if (c->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        finder_on_not_leader(&h->finder, (size_t)coordinator);
    } else if (c->body_case == RH__CONTROL__BODY_GRANT) {
        on_grant(h, c->grant);
    } else if (c->body_case == RH__CONTROL__BODY_BARRED) {
        on_barred(h, c->barred);
    } else if (c->body_case == RH__CONTROL__BODY_CONFIG) {
        config_on_answer(h, c->config);
    } else if (c->body_case == RH__CONTROL__BODY_PREPARE) {
        txn_on_prepare(h, coordinator, c->prepare);
    } else if (c->body_case == RH__CONTROL__BODY_COMMIT) {
        txn_on_commit(h, c->commit);
    } else if (c->body_case == RH__CONTROL__BODY_CANCEL) {
        txn_on_cancel(h, c->cancel, c->version);
    } else if (c->body_case == RH__CONTROL__BODY_POLL_ANSWER) {
        txn_on_poll_answer(h, c->poll_answer);
    } else if (c->body_case == RH__CONTROL__BODY_MEND) {
        host_mend(h, c->mend);
    }
}

void member_tick(struct host *h)
{
    if (h->life == LIFE_JOINING) {
        if (h->now_us >= h->register_us && leader_of(h) >= 0) {
            register_send(h);
        }
        if (mutant(M_RESTART)) {
            host_want_version(h, 1);
        }
        return;
    }
    if (h->life == LIFE_SERVING && h->now_us >= h->renew_us && leader_of(h) >= 0) {
        send_renew(h);
    }
    config_fetch(h);
    leave_when_ready(h);
}
