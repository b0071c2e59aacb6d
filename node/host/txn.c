/* SPDX-License-Identifier: Apache-2.0
 *
 * The participant's messages: specification §5.1. What they mean is decided by the
 * book (txn/participant.h), what is then done with actors by hold.c.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <inttypes.h>
#include <string.h>

static void tell_stale(struct host *h, int coordinator, uint64_t txn)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Stale stale = RH__STALE__INIT;

    stale.txn = txn;
    c.body_case = RH__CONTROL__BODY_STALE;
    c.stale = &stale;
    host_tell(h, coordinator, &c);
}

static void tell_refused(struct host *h, int coordinator, uint64_t txn, const char *why)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Refused refused = RH__REFUSED__INIT;

    log_warn("node", "refused", "txn=%" PRIu64 " why=\"%s\"", txn, why);
    refused.txn = txn;
    refused.why = proto_text(why);
    c.body_case = RH__CONTROL__BODY_REFUSED;
    c.refused = &refused;
    host_tell(h, coordinator, &c);
}

void txn_vote(struct host *h, struct hold *hold, int coordinator)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepared prepared = RH__PREPARED__INIT;
    const struct part *part = hold->part;

    if (part->refused) {
        tell_refused(h, coordinator, part->prepare.txn, "state cannot be handed over");
    } else if (part->state == PART_PREPARED) {
        prepared.txn = part->prepare.txn;
        prepared.actors = hold->actors;
        prepared.bytes = hold->bytes;
        c.body_case = RH__CONTROL__BODY_PREPARED;
        c.prepared = &prepared;
        host_tell(h, coordinator, &c);
    }
}

/* ---- PREPARE ---- */

/* The arcs that it would take from me are not mine: it is long over. */
static bool is_past(const struct host *h, const struct prepare *p)
{
    for (size_t i = 0; i < p->arc_count; i++) {
        for (uint32_t c = p->arc[i].from; p->arc[i].out && c < p->arc[i].to; c++) {
            if (!host_owns(h, c)) {
                return true;
            }
        }
    }
    return false;
}

static void begin(struct host *h, struct prepare *prepare)
{
    struct part *old = participant_find(&h->participant, prepare->supersedes);
    struct part *other = NULL;

    log_info("node",
             "prepare",
             "txn=%" PRIu64 " base=%" PRIu64 " supersedes=%" PRIu64 " arcs=%zu",
             prepare->txn,
             prepare->base,
             prepare->supersedes,
             prepare->arc_count);
    // What shares cells with it is over, and this configuration is not older than the outcome:
    // it is at least the base, and the base was current when this one began.
    while ((other = participant_overlapping(&h->participant, prepare, old)) != NULL) {
        hold_settle(h, other);
    }
    struct hold *hold = hold_new(participant_begin(&h->participant, prepare));
    if (old != NULL) {
        old->aborted = true;
        hold_take_over(h, hold, hold_of(old));
        hold_settle(h, old);
    }
    for (size_t i = 0; i < hold->part->prepare.arc_count; i++) {
        const struct part_arc *arc = &hold->part->prepare.arc[i];

        if (arc->out) {
            (void)host_link_to(h, arc->peer, arc->peer_incarnation); // it comes up meanwhile
        }
    }
    hold->begun_us = h->now_us;
    hold->ticket = host_persist(h);
}

static void park_prepare(struct host *h, struct prepare *prepare)
{
    for (size_t i = 0; i < h->parked_count; i++) {
        if (h->parked[i].txn == prepare->txn) {
            prepare_fini(prepare);
            return;
        }
    }
    if (h->parked_count == HOST_ACTIVE_MAX) {
        prepare_fini(prepare); // it is sent again
        return;
    }
    h->parked[h->parked_count++] = *prepare;
}

void txn_forget_parked(struct host *h)
{
    while (h->parked_count > 0) {
        prepare_fini(&h->parked[--h->parked_count]);
    }
}

/* Takes `prepare`. */
static void examine(struct host *h, int coordinator, struct prepare *prepare)
{
    switch (participant_examine(&h->participant, prepare, h->view.ring.version)) {
    case VERDICT_STALE:
        tell_stale(h, coordinator, prepare->txn);
        break;
    case VERDICT_AGAIN:
        txn_vote(h, hold_of(participant_find(&h->participant, prepare->txn)), coordinator);
        break;
    case VERDICT_REFUSE:
        tell_refused(h, coordinator, prepare->txn, "too many transactions or invalid arcs");
        break;
    case VERDICT_FETCH:
        host_want_version(h, prepare->base);
        park_prepare(h, prepare);
        return;
    case VERDICT_BEGIN:
        if (is_past(h, prepare) && !mutant(M_BASE)) {
            tell_stale(h, coordinator, prepare->txn);
        } else {
            begin(h, prepare);
        }
        break;
    }
    prepare_fini(prepare);
}

void txn_on_prepare(struct host *h, int coordinator, const Rh__Prepare *message)
{
    struct prepare prepare;

    if (h->life != LIFE_SERVING) {
        tell_refused(h, coordinator, message->txn, "leaving");
    } else if (!prepare_decode(&prepare, message, h->actors.cell_count)) {
        tell_refused(h, coordinator, message->txn, "impossible arcs");
    } else {
        examine(h, coordinator, &prepare);
    }
}

void txn_on_persisted(struct host *h, uint64_t ticket)
{
    for (size_t i = 0; i < h->participant.part_count; i++) { // several may have waited for it
        struct hold *hold = hold_of(h->participant.part[i]);

        hold->durable = hold->durable || hold->ticket <= ticket;
    }
}

/* ---- outcome ---- */

static void learn_over(struct part *part, uint64_t version)
{
    part->over = true;
    part->over_version = version > part->over_version ? version : part->over_version;
}

/* What does the configuration say of it? */
static bool is_decided(const struct host *h, struct part *part)
{
    const struct prepare *p = &part->prepare;
    const struct ring *ring = &h->view.ring;

    for (size_t i = 0; i < p->arc_count; i++) {
        const struct ring_vnode *vnode =
            ring_find(ring, ring_hit_vnode(ring->cell[p->arc[i].from]));

        const bool mine = host_owns(h, p->arc[i].from);

        // One that I gave may have come back, by a reassignment, which keeps `txn`.
        if ((p->arc[i].out && !mine) || vnode->txn == p->txn) {
            part->committed = true;
        }
    }
    return part->committed ||
           (part->over && (part->over_version <= ring->version || mutant(M_STALE)));
}

static void settle_decided(struct host *h)
{
    size_t i = 0;

    while (i < h->participant.part_count) {
        struct part *part = h->participant.part[i];

        if (is_decided(h, part)) {
            hold_settle(h, part);
            while (mutant(M_ONESLOT) && h->participant.part_count > 0) { // hole 48
                hold_settle(h, h->participant.part[0]);
            }
            i = 0;
        } else {
            i++;
        }
    }
}

void txn_note_committed(struct host *h, const Rh__Delta *delta)
{
    struct part *part = delta->txn == 0 ? NULL : participant_find(&h->participant, delta->txn);

    if (part != NULL) {
        part->committed = true;
    }
}

/* The planted bug of hole 6: a change that is old is made once more. */
static void regress(struct host *h, const Rh__Delta *delta)
{
    struct ring_op *ops = view_ops(delta->ops, delta->n_ops);
    struct ring *ring = &h->view.ring;

    for (size_t i = 0; ops != NULL && i < delta->n_ops; i++) {
        const struct ring_vnode *vnode = ring_find(ring, ops[i].vnode);

        ops[i].from = vnode == NULL ? ops[i].from : vnode->owner;
        if (ops[i].kind == RING_MOVE && ring_check(ring, &ops[i], 1) == ERR_OK) {
            ring_apply(ring, &ops[i], 1, ring->version, delta->txn);
        }
    }
    mem_free(ops);
    host_adopt(h);
}

void txn_on_commit(struct host *h, const Rh__Commit *message)
{
    const Rh__Delta *delta = message->delta;
    struct part *part = participant_find(&h->participant, message->txn);

    if (delta == NULL) {
        return;
    }
    if (part != NULL) {
        learn_over(part, delta->version);
    }
    const uint64_t before = h->view.ring.version;
    if (host_take_delta(h, delta) == VIEW_APPLIED) {
        host_adopt_delta(h, delta, before);
    } else if (mutant(M_REGRESS) && delta->version < h->view.ring.version) {
        regress(h, delta);
    }
    settle_decided(h);
    host_want_version(h, delta->version);
}

void txn_on_cancel(struct host *h, const Rh__Cancel *message, uint64_t version)
{
    struct part *part = participant_find(&h->participant, message->txn);

    if (part != NULL) {
        part->aborted = true;
        learn_over(part, version);
        host_want_version(h, version);
        settle_decided(h);
    }
}

void txn_on_poll_answer(struct host *h, const Rh__PollAnswer *message)
{
    for (size_t i = 0; i < message->n_txns; i++) {
        struct part *part = participant_find(&h->participant, message->txns[i]->txn);

        if (part != NULL && !message->txns[i]->pending) {
            part->aborted = part->aborted || message->txns[i]->aborted;
            learn_over(part, message->version);
        }
    }
    host_want_version(h, message->version);
    settle_decided(h);
}

void txn_adopt(struct host *h)
{
    settle_decided(h);
    for (size_t i = h->parked_count; i > 0; i--) {
        if (h->parked[i - 1].base <= h->view.ring.version) {
            struct prepare prepare = h->parked[i - 1];

            h->parked_count--;
            memmove(h->parked + i - 1, h->parked + i, (h->parked_count - i + 1) * sizeof prepare);
            examine(h, leader_of(h), &prepare);
        }
    }
}

static void poll(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Poll message = RH__POLL__INIT;
    uint64_t txns[PARTICIPANT_PARTS_MAX + 1];

    message.txns = txns;
    for (size_t i = 0; i < h->participant.part_count; i++) {
        txns[message.n_txns++] = h->participant.part[i]->prepare.txn;
    }
    c.body_case = RH__CONTROL__BODY_POLL;
    c.poll = &message;
    host_tell(h, leader_of(h), &c);
}

/* ---- why a vote does not come ---- */

/* The actor of its OUT arcs that is at it longest, or NULL. */
static const struct actor *busiest(const struct host *h, const struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;
    const struct actor *longest = NULL;

    for (size_t i = 0; i < p->arc_count; i++) {
        for (uint32_t cell = p->arc[i].from; p->arc[i].out && cell < p->arc[i].to; cell++) {
            for (struct actor *a = cell_first(&h->actors, cell); a != NULL;
                 a = cell_next(&h->actors, cell, a)) {
                const bool busy = actor_held(a) == hold && a->state != ACTOR_FROZEN;

                if (busy && (longest == NULL || a->busy->since_us < longest->busy->since_us)) {
                    longest = a;
                }
            }
        }
    }
    return longest;
}

/* The taker that has not acknowledged all of its state, or 0. */
static uint16_t slow_taker(const struct hold *hold)
{
    for (struct list_link *l = list_front(&hold->streams); l; l = list_next(&hold->streams, l)) {
        const struct stream *s = CONTAINER_OF(l, struct stream, link);

        if (!stream_is_done(s)) {
            return s->slot;
        }
    }
    return 0;
}

static void tell_draining(struct host *h, struct hold *hold)
{
    const struct actor *a = hold->busy > 0 ? busiest(h, hold) : NULL;
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Draining draining = RH__DRAINING__INIT;

    draining.txn = hold->part->prepare.txn;
    if (a != NULL) {
        draining.busy = (uint32_t)hold->busy;
        draining.kind = a->kind;
        draining.id = proto_bytes(actor_name(a).id);
        draining.running_ms = (uint32_t)((h->now_us - a->busy->since_us) / 1000);
    } else {
        const uint16_t peer = hold_awaits_link(h, hold);

        draining.peer = peer != 0 ? peer : slow_taker(hold);
    }
    c.body_case = RH__CONTROL__BODY_DRAINING;
    c.draining = &draining;
    host_tell(h, leader_of(h), &c);
}

/* The leader names what a transaction waits for, and gives up by its own timer (hole 19). */
static void report_draining(struct host *h, struct hold *hold)
{
    const uint64_t period_us = (uint64_t)h->config.resend_ms * 1000;
    const uint64_t since_us = hold->since_us == 0 ? hold->begun_us : hold->since_us;
    const bool awaited = hold->part->state == PART_DRAINING || hold_awaits_link(h, hold) != 0;

    if (awaited && !hold->part->refused && h->now_us - since_us >= period_us &&
        h->now_us - hold->told_us >= period_us) {
        hold->told_us = h->now_us;
        tell_draining(h, hold);
    }
}

void txn_tick(struct host *h)
{
    for (size_t i = 0; i < h->participant.part_count; i++) {
        struct hold *hold = hold_of(h->participant.part[i]);

        hold_tick(h, hold);
        report_draining(h, hold);
    }
    if (h->participant.part_count == 0) {
        h->poll_us = h->now_us + (uint64_t)h->config.poll_ms * 1000;
    } else if (h->now_us >= h->poll_us && leader_of(h) >= 0 && !mutant(M_NOPOLL)) { // hole 20
        h->poll_us = h->now_us + (uint64_t)h->config.poll_ms * 1000;
        poll(h);
    }
    if (h->disk_dirty) {
        (void)host_persist(h); // lazily: nobody waits for it
    }
}
