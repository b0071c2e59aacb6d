/* SPDX-License-Identifier: Apache-2.0
 *
 * Membership: what comes from coordinators, renewal, leaving. Specification §4.1, hole 6.
 */
#include "node/host/inside.h"

#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "wire/control.h"

enum { MS = 1000, BYE_WAIT_MS = 1000 };

static const struct machine_state lives[] = {
    [LIFE_JOINING] = {"joining", TO(LIFE_SERVING) | TO(LIFE_OVER)},
    [LIFE_SERVING] = {"serving", TO(LIFE_PARTING) | TO(LIFE_JOINING) | TO(LIFE_OVER)},
    [LIFE_PARTING] = {"parting", TO(LIFE_SERVING) | TO(LIFE_JOINING) | TO(LIFE_OVER)},
    [LIFE_OVER] = {"over", 0},
};
const struct machine life_machine = {"a node", lives};

void membership_init(struct membership *m, uint64_t nonce)
{
    finder_init(&m->finder, FINDER_MAX);
    m->nonce = nonce;
}

void host_tell(struct host *h, int coordinator, Rh__Control *c)
{
    struct buffer *bytes = &h->out->bytes;
    const size_t at = bytes->size;

    if (coordinator < 0) {
        return;
    }
    c->era = h->membership.era;
    c->source_incarnation = h->membership.incarnation;
    c->version = h->topology.view.ring.version;
    control_put(bytes, c);
    struct host_effect *e = host_emit(h, HOST_SEND_COORDINATOR);
    e->coordinator = coordinator;
    e->at = at;
    e->size = bytes->size - at;
}

/* ---- renewal and leaving ---- */

static void tell_lease(Rh__Renew *r, const struct host_stats *f)
{
    r->lease_us = f->lease_margin_us;
    r->lease_length_us = f->lease_us;
    r->lease_least_us = f->lease_margin_min_us;
    r->lease_gated = f->lease_gated;
    r->leaseless_total = f->leaseless_total;
    for (size_t i = 0; i < HOST_DROP_COUNT; i++) {
        r->gate_dropped += f->gate_dropped[i];
    }
}

/* With each renewal, for a new leader knows nothing of it. Kinds whose states have no version are
 * left out: nothing is said of one that reads none. */
static void tell_versions(const struct host_config *config, Rh__Renew *r,
                          Rh__StateVersions row[RING_SEGMENT_KINDS_MAX])
{
    for (size_t i = 0; i < config->kind_count && r->n_states < RING_SEGMENT_KINDS_MAX; i++) {
        const struct host_kind *k = &config->kinds[i];

        if (k->state_most > 0) {
            Rh__StateVersions *v = &row[r->n_states];

            *v = (Rh__StateVersions)RH__STATE_VERSIONS__INIT;
            v->kind = k->number;
            v->version = k->state_version;
            v->least = k->state_least;
            v->most = k->state_most;
            r->states[r->n_states++] = v;
        }
    }
}

/* Likewise: of what the node takes by its whole weight nothing is said. */
static void tell_parts(const struct host_config *config, Rh__Renew *r,
                       Rh__KindPart row[RING_SEGMENT_KINDS_MAX])
{
    for (size_t i = 0; i < config->kind_count && r->n_parts < RING_SEGMENT_KINDS_MAX; i++) {
        if (config->kinds[i].withheld > 0) {
            Rh__KindPart *part = &row[r->n_parts];

            *part = (Rh__KindPart)RH__KIND_PART__INIT;
            part->kind = config->kinds[i].number;
            part->permille = RING_PART_WHOLE - config->kinds[i].withheld;
            r->parts[r->n_parts++] = part;
        }
    }
}

static void send_renew(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Renew r = RH__RENEW__INIT;
    Rh__StateVersions row[RING_SEGMENT_KINDS_MAX];
    Rh__StateVersions *rows[RING_SEGMENT_KINDS_MAX];
    Rh__KindPart part[RING_SEGMENT_KINDS_MAX];
    Rh__KindPart *parts[RING_SEGMENT_KINDS_MAX];
    struct host_stats f;

    host_stats(h, &f);
    r.seq = ++h->membership.renew_seq;
    r.actors = f.live;
    r.held = f.held;
    r.version = f.version;
    r.seen =
        h->txns.participant.top > f.version && !mutant(M_SEENUNTOLD) ? h->txns.participant.top : 0;
    r.digest0 = f.digest[0];
    r.digest1 = f.digest[1];
    r.held_total = f.held_total;
    r.hold_us_max = f.hold_us_max;
    r.executed = f.executed;
    r.waiting = f.waiting;
    r.forwarded = f.forwarded;
    r.refused_quarantine = f.refused_quarantine;
    r.stopping = h->membership.stopping;
    r.clock_us = h->now_us;
    r.lease_term = h->lease_policy.lease_term;
    r.lease_seq = h->lease_policy.lease.base.seq;
    tell_lease(&r, &f);
    r.states = rows;
    tell_versions(&h->config, &r, row);
    r.parts = parts;
    tell_parts(&h->config, &r, part);
    r.costs = costs_take(h);
    c.body_case = RH__CONTROL__BODY_RENEW;
    c.renew = &r;
    lease_sent(&h->lease_policy.lease, r.seq, h->now_us, h->wall_us);
    host_tell(h, leader_of(&h->membership), &c);
    proto_free(r.costs == NULL ? NULL : &r.costs->base);
    h->membership.renew_us = h->now_us + lease_policy_renew_every_us(h);
}

void member_leave(struct host *h)
{
    h->membership.stopping = true;
    if (h->membership.life == LIFE_SERVING) {
        send_renew(h);
    } else if (h->membership.life == LIFE_JOINING && h->membership.incarnation == 0) {
        host_stop(h, HOST_EXIT_UNREGISTERED);
    }
}

void member_renew_soon(struct host *h)
{
    h->membership.renew_us = h->now_us;
}

void member_stay_if_it_owns(struct host *h)
{
    if (h->membership.life == LIFE_PARTING &&
        ring_owned_count(&h->topology.view.ring, h->membership.slot) > 0) {
        log_info("node", "stays", "why=\"the node was given vnodes while it was leaving\"");
        membership_enter(&h->membership, LIFE_SERVING);
        h->membership.may_leave = false;
    }
}

static bool gateways_know(const struct host *h)
{
    const uint64_t linger_us = (uint64_t)h->config.linger_ms * MS;

    if (h->topology.lost_version == 0 || h->now_us - h->topology.lost_us >= linger_us) {
        return true;
    }
    for (struct list_link *l = list_front(&h->links.neighbours.all); l;
         l = list_next(&h->links.neighbours.all, l)) {
        const struct neighbour *p = CONTAINER_OF(l, struct neighbour, all);

        // What I passed on may be answered by way of me. A node that tells what it adopted asks
        // for its actors, as a gateway for its clients.
        if (p->standing == STANDING_KNOWN && (p->role == ROLE_GATEWAY || p->adopted > 0) &&
            (p->adopted < h->topology.lost_version || p->awaits)) {
            return false;
        }
    }
    return streams_rest(h);
}

static void leave_when_ready(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Bye bye = RH__BYE__INIT;

    if (h->membership.life == LIFE_SERVING && h->membership.stopping && lease_policy_is_alone(h)) {
        host_stop(h, HOST_EXIT_ALONE);
        return;
    }
    if (h->membership.life == LIFE_SERVING && h->membership.may_leave &&
        h->txns.participant.part_count == 0 && h->txns.parked_count == 0 &&
        h->requests.room.count == 0 && h->work.running == 0 &&
        ring_owned_count(&h->topology.view.ring, h->membership.slot) == 0 && gateways_know(h)) {
        log_info("node", "leaving", "version=%s", STAMP(h->topology.view.ring.version));
        membership_enter(&h->membership, LIFE_PARTING);
        h->membership.bye_us = h->now_us;
        h->membership.bye_end_us = h->now_us + (uint64_t)BYE_WAIT_MS * MS;
    }
    if (h->membership.life == LIFE_PARTING && h->now_us >= h->membership.bye_end_us) {
        host_stop(h, HOST_EXIT_LEFT);
    } else if (h->membership.life == LIFE_PARTING && h->now_us >= h->membership.bye_us) {
        c.body_case = RH__CONTROL__BODY_BYE;
        c.bye = &bye;
        host_tell(h, leader_of(&h->membership), &c);
        h->membership.bye_us = h->now_us + (uint64_t)h->config.resend_ms * MS;
    }
}

/* With other nodes, as the leader wishes, but at most an eighth later than by myself. */
static void renew_together(struct host *h, const Rh__Grant *grant)
{
    const uint64_t wished_us = h->now_us + grant->renew_us;
    const uint64_t latest_us = h->membership.renew_us + lease_policy_renew_every_us(h) / 8;

    if (grant->renew_us != 0 && grant->seq == h->membership.renew_seq &&
        h->lease_policy.lease.state == LEASE_ACTIVE) {
        h->membership.renew_us = wished_us < latest_us ? wished_us : latest_us;
    }
}

static void on_grant(struct host *h, const Rh__Grant *grant)
{
    if (h->membership.life == LIFE_SERVING) {
        lease_policy_granted(h, grant);
        renew_together(h, grant);
        if (grant->last && !h->membership.told_last) {
            // It serves on until another node comes, or until it is killed with its actors.
            log_warn(
                "node", "last_node", "nobody takes over its actors: they end with the process");
        }
        h->membership.told_last = grant->last != 0;
        h->membership.may_leave = grant->leave;
        host_want_version(h, grant->version);
        leave_when_ready(h);
    }
}

static void on_barred(struct host *h, const Rh__Barred *barred)
{
    if (h->membership.life == LIFE_PARTING) {
        host_stop(h, HOST_EXIT_LEFT);
    } else if (h->membership.life == LIFE_SERVING) {
        log_error("node", "barred", "why=\"%s\"", barred->why);
        lease_policy_end(h, HOST_DROP_BARRED);
        host_stop(h, HOST_EXIT_BARRED);
    }
}

/* ---- messages ---- */

static void on_leader(struct host *h, int coordinator, const Rh__Leader *leader)
{
    const int before = leader_of(&h->membership);

    finder_on_leader(
        &h->membership.finder, (size_t)coordinator, leader->leading != 0, leader->term);
    if (leader_of(&h->membership) == before || leader_of(&h->membership) < 0) {
        return;
    }
    if (h->membership.life == LIFE_JOINING) {
        register_soon(h);
    } else {
        member_renew_soon(h);
        txn_poll_soon(h);
        remember_soon(&h->remember);
    }
}

void member_on_coordinator(struct host *h, int coordinator, bool up)
{
    if (coordinator < 0 || coordinator >= FINDER_MAX) {
        return;
    }
    h->membership.coordinator_up[coordinator] = up;
    if (!up) {
        finder_on_down(&h->membership.finder, (size_t)coordinator);
    }
}

/* False: it is not for me. */
static bool is_for_me(struct host *h, const Rh__Control *c)
{
    if (c->target_incarnation != 0 && c->target_incarnation != h->membership.incarnation) {
        return false; // hole 34
    }
    if (c->era != 0 && h->membership.life != LIFE_JOINING && c->era > h->membership.era) {
        if (mutant(M_ERAMSG)) {
            h->membership.era = c->era; // follow it in place
            return true;
        }
        register_anew(h);
        if (h->membership.life == LIFE_OVER) {
            return false; // it was leaving, and is out: of what follows nothing is its own
        }
    }
    const uint64_t era =
        h->membership.era > h->txns.disk.era ? h->membership.era : h->txns.disk.era;
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
        finder_on_not_leader(&h->membership.finder, (size_t)coordinator, c->not_leader->term);
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
    if (c->body_case == RH__CONTROL__BODY_ACTORS) {
        host_list_residents(h, coordinator, c->actors); // likewise
        return;
    }
    if (!is_for_me(h, c)) {
        return;
    }
    if (h->membership.life == LIFE_JOINING) {
        on_joining(h, coordinator, c);
        return;
    }
    // A message of any other kind is not for a node: an old or a foreign peer.
    if (c->body_case == RH__CONTROL__BODY_LEADER) {
        on_leader(h, coordinator, c->leader);
    } else if (c->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        finder_on_not_leader(&h->membership.finder, (size_t)coordinator, c->not_leader->term);
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
    } else if (c->body_case == RH__CONTROL__BODY_REPAIR) {
        host_repair(h, c->repair);
    } else if (c->body_case == RH__CONTROL__BODY_REMEMBERED) {
        remember_on_remembered(h, c->remembered);
    } else if (c->body_case == RH__CONTROL__BODY_RECALLED) {
        remember_on_recalled(h, c->recalled);
    } else if (c->body_case == RH__CONTROL__BODY_FORGOTTEN) {
        remember_on_forgotten(h, c->forgotten);
    }
}

void member_tick(struct host *h)
{
    if (h->membership.life == LIFE_JOINING) {
        if (h->now_us >= h->membership.register_us && leader_of(&h->membership) >= 0) {
            register_send(h);
        }
        if (mutant(M_RESTART)) {
            host_want_version(h, 1);
        }
        return;
    }
    if (h->membership.life == LIFE_SERVING && h->now_us >= h->membership.renew_us &&
        leader_of(&h->membership) >= 0) {
        send_renew(h);
    }
    config_fetch(h);
    leave_when_ready(h);
}
