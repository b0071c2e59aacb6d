/* SPDX-License-Identifier: Apache-2.0
 *
 * The participant's messages: specification §5.1. What they mean is decided by the
 * book (txn/participant.h), what is then done with actors by hold.c.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "wire/control.h"

#include <string.h>

void txns_init(struct txns *t, const struct host_disk *disk)
{
    participant_init(&t->participant);
    t->disk = *disk;
    t->images.block_size = IMAGE_BLOCK_BRIEF;
    list_init(&t->stale);
}

void txns_fini(struct txns *t)
{
    struct list_link *link = NULL;

    txns_drop_all(t);
    participant_fini(&t->participant);
    while ((link = list_pop_front(&t->stale)) != NULL) {
        staging_free(CONTAINER_OF(link, struct staging, link));
    }
    image_store_fini(&t->images);
}

void txns_drop_all(struct txns *t)
{
    while (t->participant.part_count > 0) {
        struct part *part = t->participant.part[0];

        t->images_dropped[IMAGE_DROP_ERA] += hold_staged_count(hold_of(part));
        hold_free(hold_of(part));
        participant_end(&t->participant, part);
    }
    while (t->parked_count > 0) {
        prepare_fini(&t->parked[--t->parked_count]);
    }
}

/* Ask for the disk to be made durable; returns the ticket. */
static uint64_t persist(struct host *h)
{
    struct host_effect *e = host_emit(h, HOST_PERSIST);
    const struct participant *p = &h->txns.participant;

    h->txns.disk.active_count = 0;
    for (size_t i = 0; i < p->part_count && i < HOST_ACTIVE_MAX; i++) {
        h->txns.disk.active[h->txns.disk.active_count++] = p->part[i]->prepare.txn;
    }
    h->txns.disk.seen = p->top > h->txns.disk.seen ? p->top : h->txns.disk.seen;
    h->txns.disk.floor = p->floor > h->txns.disk.floor ? p->floor : h->txns.disk.floor;
    h->txns.disk_dirty = false;
    e->disk = &h->txns.disk;
    e->ticket = ++h->txns.disk_ticket;
    return e->ticket;
}

void txn_begin_era(struct host *h, uint64_t floor)
{
    participant_reset(&h->txns.participant, floor);
    h->txns.disk.era = h->membership.era;
    h->txns.disk.floor = floor > h->txns.disk.floor ? floor : h->txns.disk.floor;
    h->txns.disk.active_count = 0;
    (void)persist(h);
}

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

    log_warn("node", "refused", "txn=%s why=\"%s\"", STAMP(txn), why);
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
        tell_refused(h,
                     coordinator,
                     part->prepare.txn,
                     hold->why[0] != '\0' ? hold->why : "state cannot be handed over");
    } else if (part->state == PART_PREPARED) {
        prepared.txn = part->prepare.txn;
        prepared.actors = hold->actors;
        prepared.bytes = hold->bytes + hold->ahead.size;
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
    struct part *old = participant_find(&h->txns.participant, prepare->supersedes);
    struct part *other = NULL;

    log_info("node",
             "prepare",
             "txn=%s base=%s supersedes=%s arcs=%zu",
             STAMP(prepare->txn),
             STAMP(prepare->base),
             STAMP(prepare->supersedes),
             prepare->arc_count);
    // What shares cells with it is over, and this configuration is not older than the outcome:
    // it is at least the base, and the base was current when this one began.
    while ((other = participant_overlapping(&h->txns.participant, prepare, old)) != NULL) {
        hold_settle(h, other);
    }
    struct hold *hold = hold_new(participant_begin(&h->txns.participant, prepare));
    if (old != NULL) {
        old->aborted = true;
        hold_take_over(h, hold, hold_of(old));
        hold_settle(h, old);
    }
    for (size_t i = 0; i < hold->part->prepare.arc_count; i++) {
        const struct part_arc *arc = &hold->part->prepare.arc[i];

        if (arc->out) {
            (void)host_link_to(h, arc->peer, arc->peer_incarnation); // it comes up meanwhile
            forwards_expect(h, arc->peer);
        }
    }
    hold->begun_us = h->now_us;
    hold->ticket = persist(h);
}

static void park_prepare(struct host *h, struct prepare *prepare)
{
    for (size_t i = 0; i < h->txns.parked_count; i++) {
        if (h->txns.parked[i].txn == prepare->txn) {
            prepare_fini(prepare);
            return;
        }
    }
    if (h->txns.parked_count == HOST_ACTIVE_MAX) {
        prepare_fini(prepare); // it is sent again
        return;
    }
    h->txns.parked[h->txns.parked_count++] = *prepare;
}

/* Takes `prepare`. */
static void examine(struct host *h, int coordinator, struct prepare *prepare)
{
    switch (participant_examine(&h->txns.participant, prepare, h->topology.view.ring.version)) {
    case VERDICT_STALE:
        tell_stale(h, coordinator, prepare->txn);
        break;
    case VERDICT_AGAIN:
        txn_vote(h, hold_of(participant_find(&h->txns.participant, prepare->txn)), coordinator);
        break;
    case VERDICT_REFUSE:
        tell_refused(h, coordinator, prepare->txn, "too many transactions or invalid arcs");
        break;
    case VERDICT_OTHER:
        tell_refused(h,
                     coordinator,
                     prepare->txn,
                     "its number was drawn before (docs/recovery.md#went-back)");
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

    if (h->membership.life != LIFE_SERVING) {
        tell_refused(h, coordinator, message->txn, "leaving");
    } else if (!prepare_decode(&prepare, message, h->actors.cell_count)) {
        tell_refused(h, coordinator, message->txn, "impossible arcs");
    } else {
        examine(h, coordinator, &prepare);
    }
}

void txn_on_persisted(struct host *h, uint64_t ticket)
{
    for (size_t i = 0; i < h->txns.participant.part_count; i++) { // several may have waited for it
        struct hold *hold = hold_of(h->txns.participant.part[i]);

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
    const struct ring *ring = &h->topology.view.ring;
    bool over = part->over && (part->over_version <= ring->version || mutant(M_STALE));

    for (size_t i = 0; i < p->arc_count; i++) {
        const struct ring_vnode *vnode =
            ring_find(ring, ring_hit_vnode(ring->cell[p->arc[i].from]));

        const bool mine = host_owns(h, p->arc[i].from);

        // One that I gave may have come back, by a reassignment, which keeps `txn`.
        if ((p->arc[i].out && !mine) || vnode->txn == p->txn) {
            part->committed = true;
        }
        // What I was to get is mine, though a MERGE put another number there: I got it by this one
        // or, cold, behind its end. What lives there is asked for now, so its images can't wait for
        // a word from the leader (fleet_sim --profile operator --seed 80005195).
        over = over || (!p->arc[i].out && mine && !mutant(M_MERGEDIN));
    }
    return part->committed || over;
}

static void settle_decided(struct host *h)
{
    size_t i = 0;

    while (i < h->txns.participant.part_count) {
        struct part *part = h->txns.participant.part[i];

        if (is_decided(h, part)) {
            hold_settle(h, part);
            while (mutant(M_ONESLOT) && h->txns.participant.part_count > 0) { // hole 48
                hold_settle(h, h->txns.participant.part[0]);
            }
            i = 0;
        } else {
            i++;
        }
    }
}

void txn_note_committed(struct host *h, const Rh__Delta *delta)
{
    struct part *part = delta->txn == 0 ? NULL : participant_find(&h->txns.participant, delta->txn);

    if (part != NULL) {
        part->committed = true;
    }
}

void txn_on_commit(struct host *h, const Rh__Commit *message)
{
    const Rh__Delta *delta = message->delta;
    struct part *part = participant_find(&h->txns.participant, message->txn);

    if (delta == NULL) {
        return;
    }
    if (part != NULL) {
        learn_over(part, delta->version);
    }
    const uint64_t before = h->topology.view.ring.version;
    if (host_take_delta(h, delta) == VIEW_APPLIED) {
        host_adopt_delta(h, delta, before);
    } else if (mutant(M_REGRESS) && delta->version < h->topology.view.ring.version) {
        config_regress(h, delta);
    }
    settle_decided(h);
    host_want_version(h, delta->version);
}

void txn_on_cancel(struct host *h, const Rh__Cancel *message, uint64_t version)
{
    struct part *part = participant_find(&h->txns.participant, message->txn);

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
        struct part *part = participant_find(&h->txns.participant, message->txns[i]->txn);

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
    for (size_t i = h->txns.parked_count; i > 0; i--) {
        if (h->txns.parked[i - 1].base <= h->topology.view.ring.version) {
            struct prepare prepare = h->txns.parked[i - 1];

            h->txns.parked_count--;
            memmove(h->txns.parked + i - 1,
                    h->txns.parked + i,
                    (h->txns.parked_count - i + 1) * sizeof prepare);
            examine(h, leader_of(&h->membership), &prepare);
        }
    }
}

static void poll(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Poll message = RH__POLL__INIT;
    uint64_t txns[PARTICIPANT_PARTS_MAX + 1];

    message.txns = txns;
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        txns[message.n_txns++] = h->txns.participant.part[i]->prepare.txn;
    }
    c.body_case = RH__CONTROL__BODY_POLL;
    c.poll = &message;
    host_tell(h, leader_of(&h->membership), &c);
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

                if (busy && (longest == NULL || a->work->since_us < longest->work->since_us)) {
                    longest = a;
                }
            }
        }
    }
    return longest;
}

/* The target that has not acknowledged all of its state, or 0. */
static uint16_t slow_target(const struct hold *hold)
{
    for (struct list_link *l = list_front(&hold->streams); l; l = list_next(&hold->streams, l)) {
        const struct handover_stream *s = CONTAINER_OF(l, struct handover_stream, link);

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
        draining.running_ms = (uint32_t)((h->now_us - a->work->since_us) / 1000);
    } else {
        const uint16_t peer = hold_awaits_link(h, hold);

        draining.peer = peer != 0 ? peer : slow_target(hold);
    }
    c.body_case = RH__CONTROL__BODY_DRAINING;
    c.draining = &draining;
    host_tell(h, leader_of(&h->membership), &c);
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

void txn_poll_soon(struct host *h)
{
    h->txns.poll_us = h->now_us;
}

void txn_tick(struct host *h)
{
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        struct hold *hold = hold_of(h->txns.participant.part[i]);

        hold_tick(h, hold);
        report_draining(h, hold);
    }
    if (h->txns.participant.part_count == 0) {
        h->txns.poll_us = h->now_us + (uint64_t)h->config.poll_ms * 1000;
    } else if (h->now_us >= h->txns.poll_us && leader_of(&h->membership) >= 0 &&
               !mutant(M_NOPOLL)) { // hole 20
        h->txns.poll_us = h->now_us + (uint64_t)h->config.poll_ms * 1000;
        poll(h);
    }
    if (h->txns.disk_dirty) {
        (void)persist(h); // lazily: nobody waits for it
    }
}
