/* SPDX-License-Identifier: Apache-2.0
 *
 * What an answer makes of its request. Specification §6.
 */
#include "route/router_inside.h"

#include "base/assert.h"
#include "base/mutant.h"

enum {
    MOVED_REST_MIN_MS = 2, /* a node says MOVED, the ring says that it is the owner: give it time */
    MOVED_REST_MAX_MS = 64,
    BUSY_REST_MIN_MS = 1,
};

/* Not run: wait, then send it again. `ms` 0 = at once. `news`: a newer ring ends the wait. */
static void again(struct router *r, struct pending *p, uint64_t ms, bool news)
{
    struct lane *lane = p->lane;

    if (p->state == PENDING_SENT) {
        route_to_waiting(r, p);
    }
    if (p->refusals < UINT8_MAX) {
        p->refusals++;
    }
    if (list_linked(&lane->stalled)) {
        list_remove(&lane->stalled); // room at its node is not what it waits for now
    }
    if (news) {
        list_push_back(&r->stalled, &lane->stalled);
    }
    if (ms > 0 && !list_linked(&lane->resting)) {
        timer_wheel_put(&r->timer_wheel, lane, r->now_us, ms);
    }
    route_push(r, lane);
}

static uint64_t backoff_ms(const struct pending *p)
{
    const unsigned doublings = p->refusals < 5 ? p->refusals : 5;
    const uint64_t ms = (uint64_t)MOVED_REST_MIN_MS << doublings;

    return ms < MOVED_REST_MAX_MS ? ms : MOVED_REST_MAX_MS;
}

static void on_moved(struct router *r, struct pending *p, uint16_t slot, uint64_t version)
{
    r->stats.moved++;
    if (version > r->view->ring.version) {
        fetch_want(&r->fetch, version);
        again(r, p, MOVED_REST_MAX_MS, true);
        return;
    }
    const struct peer *owner = route_owner(r, p->lane);
    const bool news = owner != NULL && owner->slot != slot;

    // The view names another owner already: it was learnt while the answer was on its way.
    if (news && p->refusals == 0) {
        again(r, p, 0, false);
    } else {
        again(r, p, backoff_ms(p), true);
    }
}

static void on_busy(struct router *r, struct pending *p, uint64_t ms)
{
    if (mutant(M_GIVEUP) && pending_never_ran(p)) {
        route_finish(r, p, REPLY_REJECTED, route_nothing);
        return;
    }
    again(r, p, ms < BUSY_REST_MIN_MS ? BUSY_REST_MIN_MS : ms, false);
}

/* An owner died that had it, as one before: it may be what killed both. A third is not asked. Who
 * that was is not always known, for a node may have passed it on: take-overs are counted. */
static bool is_poison(struct pending *p, uint64_t cold)
{
    const bool second = p->cold != 0 && cold > p->cold;

    p->died = p->died == 0 ? p->before : p->died;
    p->before = 0;
    p->cold = cold > p->cold ? cold : p->cold;
    return second && !mutant(M_THIRDDEATH);
}

/* Its client may have left, and have had it run by another gateway before that (hole 44): it is
 * asked, once for each take-over. 0 = nothing is known yet. */
static uint64_t vouched_by(struct router *r, struct session *session, uint64_t cold)
{
    if (session->vouched >= cold) {
        return session->vouched;
    }
    if (session->asked < cold && r->view->ring.version >= cold) {
        struct router_effect *e = effects_add(r->out, ROUTER_VOUCH);

        session->asked = r->view->ring.version;
        e->session = session->id;
        e->version = session->asked;
    }
    return mutant(M_UNVOUCHED) ? r->view->ring.version : 0;
}

/* What nobody saved an answer of, its owner answers LOST. Where there is none just now, the next
 * one is waited for. */
static bool can_ask_again(const struct router *r, const struct pending *p)
{
    const struct peer *owner = route_owner(r, p->lane);

    return owner == NULL || owner->knows_again;
}

/* The owner has lost its memory since `first`: an earlier copy may have run before that. */
static void on_cold(struct router *r, struct pending *p, uint64_t cold)
{
    const bool idempotent = (p->flags & REQUEST_IDEMPOTENT) != 0 || mutant(M_RESTAMP);
    struct session *session = p->session;

    r->stats.cold++;
    if (!pending_never_ran(p)) {
        if (is_poison(p, cold) || (!idempotent && !can_ask_again(r, p))) {
            route_finish(r, p, REPLY_UNKNOWN, route_nothing);
            return;
        }
        p->doubtful |= idempotent || mutant(M_NOTAGAIN) ? 0 : RECORD_AGAIN;
    }
    if (idempotent || session->base == 0) {
        p->first = 0;
    } else if (session->closed || p->epoch != session->epoch) {
        route_finish(r, p, REPLY_REJECTED, route_nothing); // nobody listens
        return;
    } else {
        const uint64_t first = vouched_by(r, session, cold);

        p->first = first != 0 ? first : p->first;
    }
    if (cold > r->view->ring.version) {
        fetch_want(&r->fetch, cold);
        again(r, p, MOVED_REST_MAX_MS, true);
    } else {
        // A first stamp that is still below the mark comes back cold: don't spin.
        again(r, p, p->refusals == 0 ? 0 : backoff_ms(p), false);
    }
}

static void on_expired(struct router *r, struct pending *p)
{
    if (pending_never_ran(p)) {
        route_finish(r, p, REPLY_REJECTED, route_nothing);
    }
}

/* An earlier copy, whose answer is still to come, may have met another owner: ask once more. */
static void on_no_kind(struct router *r, struct pending *p)
{
    const struct peer *owner = route_owner(r, p->lane);
    const bool comes = owner != NULL && peer_lacks(owner, p->kind); // it was sent by an older ring
    // Its actor sleeps, so there is nobody to tell.
    const bool asleep = (p->flags & REQUEST_AWAKE) != 0 && !mutant(M_SLEEPERASKED);

    if ((pending_never_ran(p) || asleep) && !comes) {
        route_finish(r, p, REPLY_NO_KIND, route_nothing);
    } else {
        again(r, p, backoff_ms(p), false);
    }
}

/* This copy never runs. What an earlier one did, nobody can tell: of one in quarantine it may be
 * what killed the process. */
static void on_never(struct router *r, struct pending *p, enum reply_code code)
{
    route_finish(r, p, pending_never_ran(p) ? code : REPLY_UNKNOWN, route_nothing);
}

/* No node runs it, and why: enum no_kind. */
static void on_nobody(struct router *r, struct pending *p, uint64_t why)
{
    if (why == NO_KIND_QUARANTINED) {
        on_never(r, p, REPLY_QUARANTINED); // until an operator says so
    } else if (why == NO_KIND_DEADLOCK) {
        on_never(r, p, REPLY_DEADLOCK);
    } else {
        on_no_kind(r, p);
    }
}

/* The node has no room. For a while it is waited for; then the client is told. */
static void on_overload(struct router *r, struct pending *p, uint64_t ms)
{
    p->overload_us = p->overload_us == 0 ? r->now_us : p->overload_us;
    if (pending_never_ran(p) && !p->must &&
        r->now_us - p->overload_us >= (uint64_t)r->config.overload_ms * 1000) {
        route_finish(r, p, REPLY_OVERLOADED, route_nothing);
        return;
    }
    on_busy(r, p, ms);
}

/* Hole 63: it ran at an owner that was fenced meanwhile, or will be by what I know already; what it
 * did there is gone. Nobody can tell if it came before the last state that was saved. An owner that
 * knows of the take-over is no such owner: a MERGE gives an arc the greater `cold` of two, so the
 * fence of an actor that lives on may be below it. A restored ring has forgotten who was taken over
 * after the backup, so the last take-over of the eras before counts for every vnode. */
bool route_is_stale(const struct router *r, const struct ring_vnode *vnode, uint64_t fence,
                    uint64_t version)
{
    const uint64_t told = vnode == NULL ? 0 : vnode->cold;
    const uint64_t cold = told > r->elder_cold || mutant(M_COLDLOST) ? told : r->elder_cold;

    return mutant(M_ANYCOLD) ||
           (vnode != NULL && fence < cold && version < cold && !mutant(M_LATE));
}

static bool is_stale(const struct router *r, const struct pending *p, const struct answer_record *a)
{
    // Else it knows of every take-over that I know of.
    return a->version < r->cold && route_is_stale(r, route_vnode(r, p), a->fence, a->version);
}

static void on_stale(struct router *r, struct pending *p, uint8_t copy)
{
    const bool idempotent = (p->flags & REQUEST_IDEMPOTENT) != 0;

    r->stats.stale_answers++;
    if (!idempotent && (mutant(M_NOTAGAIN) || !can_ask_again(r, p))) {
        route_finish(r, p, REPLY_UNKNOWN, route_nothing);
        return;
    }
    (void)pending_close(p, copy);
    p->doubtful |= idempotent ? 1 : 1 | RECORD_AGAIN; // it did run, it is not REJECTED
    p->first = idempotent || p->session->base == 0 ? 0 : p->first;
    if (copy == pending_last(p) && p->state == PENDING_SENT) {
        again(r, p, 0, false);
    }
}

/* It ran. */
static void on_ran(struct router *r, struct pending *p, const struct answer_record *a)
{
    if (a->code == ANSWER_LOST) {
        route_finish(r, p, REPLY_UNKNOWN, route_nothing);
    } else if (is_stale(r, p, a)) {
        on_stale(r, p, a->copy);
    } else {
        route_finish(r, p, a->code == ANSWER_OK ? REPLY_OK : REPLY_APP_ERROR, a->body);
    }
}

static void on_refused(struct router *r, struct pending *p, uint16_t slot,
                       const struct answer_record *a)
{
    if (a->code != ANSWER_OVERLOAD) {
        p->overload_us = 0;
    }
    switch ((enum answer_code)a->code) {
    case ANSWER_OK:
    case ANSWER_APP_ERROR:
    case ANSWER_LOST:
        break; // not refused
    case ANSWER_MOVED:
        on_moved(r, p, slot, a->aux);
        break;
    case ANSWER_BUSY:
        on_busy(r, p, a->aux);
        break;
    case ANSWER_OVERLOAD:
        on_overload(r, p, a->aux);
        break;
    case ANSWER_COLD:
        on_cold(r, p, a->aux);
        break;
    case ANSWER_EXPIRED:
        on_expired(r, p);
        break;
    case ANSWER_NO_KIND:
        on_nobody(r, p, a->aux);
        break;
    }
}

static bool says_ran(uint8_t code)
{
    return code == ANSWER_OK || code == ANSWER_APP_ERROR || code == ANSWER_LOST;
}

/* The link's other end is an incarnation that the directory has given up. */
static bool is_from_fenced(const struct router *r, uint16_t slot)
{
    const struct peer *peer = peer_find(&r->peers, slot);

    return peer != NULL && (peer->removed || !peer_takes_requests(peer));
}

void route_on_answer(struct router *r, uint16_t slot, const struct answer_record *a,
                     struct pending *p)
{
    struct peer *peer = peer_find(&r->peers, slot);

    if (peer != NULL && a->code != ANSWER_BUSY) { // that may be my own link's
        route_heard(r, peer);
    }
    if (p == NULL || !pending_is_open(p, a->copy) || a->gateway != r->config.gateway) {
        // Answered before, or given up.
        r->stats.late_answers++;
        r->stats.stale_answers += says_ran(a->code) && is_from_fenced(r, slot);
        return;
    }
    const bool last = a->copy == pending_last(p);
    struct peer *asked = p->slot == RING_NODE_NONE ? NULL : peer_find(&r->peers, p->slot);

    if (peer != NULL) {
        peer_learn_reply(peer, a->body.size);
    }
    if (last && asked != NULL) {
        peer_on_answer(asked, p->sent_us, r->now_us);
    }
    if (says_ran(a->code)) {
        on_ran(r, p, a);
        return;
    }
    const bool closed = pending_close(p, a->copy);

    ASSERT(closed);
    if (last && p->state == PENDING_SENT) { // else another copy is on its way or about to be
        on_refused(r, p, slot, a);
    }
}
