/* SPDX-License-Identifier: Apache-2.0
 *
 * The source: one transaction after the other its actors are frozen, and their images leave.
 */
#include "node/host/hold.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "node/host/inside.h"
#include "wire/frame.h"

#include <inttypes.h>
#include <stdio.h>

enum { SOME_SIZE = 16 * 1024 };

bool hold_has_some(const struct handover_stream *s)
{
    return s->unsent >= SOME_SIZE;
}

void hold_pump(struct host *h, struct handover_stream *s)
{
    const bool idle = s->sent == s->acked;
    struct state_record r = {0};
    const uint64_t link = host_link_to(h, s->slot, s->target);

    if (link == 0) {
        return; // goes on when it comes up
    }
    if (idle) {
        s->progress_us = h->now_us;
    }
    while (stream_next(s, h->config.state_window, &r)) {

        state_put(host_record(h), &r);
        host_send_record(h, link, FRAME_STATE);
    }
}

void hold_progress(struct host *h, struct hold *hold)
{
    bool done = true;

    if (hold->part->state != PART_DRAINING) {
        return;
    }
    if (hold->part->refused) {
        if (!hold->told_refused) {
            txn_vote(h, hold, leader_of(&h->membership));
        }
        hold->told_refused = true;
        return;
    }
    for (struct handover_stream *s = hold_first_stream(hold); s != NULL;
         s = hold_next_stream(hold, s)) {
        if ((hold->busy == 0 || mutant(M_NODRAIN)) && !s->ended) {
            stream_end(s);
        }
        hold_pump(h, s);
        done = done && stream_is_done(s);
    }
    if (done) {
        ASSERT(hold->busy == 0 || mutant(M_NODRAIN));
        hold->part->state = machine_enter(&part_machine, hold->part->state, PART_PREPARED);
        log_info("node",
                 "prepared",
                 "txn=%s actors=%" PRIu64 " bytes=%" PRIu64 " ahead=%" PRIu64
                 " ahead_bytes=%zu held=%zu drain_us=%" PRIu64,
                 STAMP(hold->part->prepare.txn),
                 hold->actors,
                 hold->bytes,
                 hold->ahead.kept,
                 hold->ahead.size,
                 hold->held.count,
                 h->now_us - hold->since_us);
        txn_vote(h, hold, leader_of(&h->membership));
    }
}

void hold_on_frozen(struct host *h, struct actor *a)
{
    struct hold *hold = actor_held(a);
    struct image *image = actor_image(a);
    const struct part_arc *arc = hold_arc(hold, ring_point_cell(actor_position(a)), true);
    bool some = false;

    ASSERT(a->state == ACTOR_FROZEN && arc != NULL);
    if (hold->part->state == PART_PERSIST) {
        return; // counted when draining begins
    }
    ASSERT(hold->busy > 0 || hold->part->state == PART_PREPARED);
    hold->busy -= hold->busy > 0 ? 1 : 0;
    if (a->copied) {
        hold->actors++;
        hold->ahead.kept++;
        h->txns.ahead.stood++;
    } else if (image != NULL) {
        struct handover_stream *s = hold_stream(hold, arc, h->membership.incarnation);

        if (!s->ended) {
            stream_add(s, image);
            hold->actors++;
            hold->bytes += image->data.size;
            some = hold_has_some(s);
        }
    }
    if (!hold->filling && (some || hold->busy == 0 || hold->part->refused)) {
        hold_progress(h, hold);
    }
}

/* Put `hold` on every cell of its OUT arcs that `from` holds now (NULL = nobody). */
static void hold_cells(struct host *h, struct hold *hold, const struct hold *from)
{
    const struct prepare *p = &hold->part->prepare;

    for (size_t i = 0; i < p->arc_count; i++) {
        for (uint32_t c = p->arc[i].from; p->arc[i].out && c < p->arc[i].to; c++) {
            if (h->cells.state[c].hold == from) {
                cells_hold(h, c, hold);
            }
        }
    }
}

static void begin_drain(struct host *h, struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;
    const size_t held = hold->held.count;
    struct hold_cursor at = {.hold = hold};
    struct actor *some[HOLD_SOME];
    size_t count = 0;

    ASSERT(hold->part->state == PART_PERSIST);
    hold->part->state = machine_enter(&part_machine, hold->part->state, PART_DRAINING);
    hold->since_us = hold->since_us == 0 ? h->now_us : hold->since_us;
    hold_cells(h, hold, NULL);
    for (size_t i = 0; i < p->arc_count; i++) {
        if (p->arc[i].out) {
            (void)hold_stream(hold, &p->arc[i], h->membership.incarnation);
        }
    }
    hold->filling = true;
    while ((count = hold_some_actors(h, &at, some)) > 0) {
        for (size_t i = 0; i < count; i++) {
            actor_empty(h, some[i], &hold->held); // ahead of what comes from now on
            actor_hold(h, some[i], hold);
        }
    }
    hold->filling = false;
    hold_count(&h->txns, hold->held.count - held);
    for (struct waiting *w = queue_front(&hold->held); w; w = queue_next(&hold->held, w)) {
        w->record.flags |= REQUEST_HELD;
    }
    chain_begin(h, hold);
    hold_progress(h, hold);
}

/* ---- turns ---- */

static bool gives(const struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;
    size_t i = 0;

    while (i < p->arc_count && !p->arc[i].out) {
        i++;
    }
    return i < p->arc_count;
}

/* Is it on its way to its vote? Not, if it waits for something that lasts. */
static bool is_draining(const struct host *h, const struct hold *hold)
{
    const uint64_t turn_us = (uint64_t)h->config.drain_turn_ms * 1000;

    return hold->part->state == PART_DRAINING && !hold->part->refused && gives(hold) &&
           h->now_us - hold->since_us < turn_us;
}

const struct part_arc *hold_unreached(const struct host *h, const struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;

    for (size_t i = 0; i < p->arc_count && hold->durable && hold->since_us == 0; i++) {
        if (p->arc[i].out &&
            neighbour_by_process(&h->links.neighbours, ROLE_NODE, p->arc[i].peer_incarnation) ==
                NULL) {
            return &p->arc[i];
        }
    }
    return NULL;
}

uint16_t hold_awaits_link(const struct host *h, const struct hold *hold)
{
    const struct part_arc *arc = hold_unreached(h, hold);

    return arc == NULL ? 0 : arc->peer;
}

/* Two that drain side by side hold their ids for the sum of both: so one after the other, and who
 * waits for its turn holds nothing yet. What a superseded one held is held already. */
static bool may_drain(const struct host *h, const struct hold *hold)
{
    if (!hold->durable || hold->since_us != 0 || !gives(hold)) {
        return hold->durable;
    }
    if (!ahead_is_over(hold) || hold_unreached(h, hold) != NULL) {
        return false;
    }
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        if (is_draining(h, hold_of(h->txns.participant.part[i]))) {
            return false;
        }
    }
    return true;
}

void hold_next_turn(struct host *h)
{
    // A vote may end in settling nothing, so the book does not change under this loop.
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        struct hold *hold = hold_of(h->txns.participant.part[i]);

        if (hold->part->state == PART_PERSIST && may_drain(h, hold)) {
            begin_drain(h, hold);
        }
    }
}

void hold_take_over(struct host *h, struct hold *hold, struct hold *from)
{
    struct hold_cursor at = {.hold = hold};
    struct actor *a = NULL;
    struct queue held;
    struct waiting *w = NULL;

    if (from->since_us == 0) {
        return; // it holds nothing yet
    }
    hold->since_us = from->since_us;
    hold_cells(h, hold, from);
    while ((a = hold_next_actor(h, &at)) != NULL) {
        if (actor_held(a) == from) {
            a->work->hold = hold;
        }
    }
    queue_init(&held);
    queue_append(&held, &from->held);
    while ((w = queue_pop(&held)) != NULL) {
        const uint64_t position = host_position(h, w->record.kind, w->record.id);
        const bool mine = h->cells.state[ring_point_cell(position)].hold == hold;

        queue_push(mine ? &hold->held : &from->held, w);
    }
}

void hold_on_state_ack(struct host *h, uint64_t peer, const struct state_ack_record *ack)
{
    struct part *part = participant_find(&h->txns.participant, ack->txn);
    struct hold *hold = part == NULL ? NULL : hold_of(part);

    if (hold == NULL || ack->source != h->membership.incarnation) {
        return;
    }
    struct handover_stream *s = hold_first_stream(hold);
    while (s != NULL && s->target != identity_of_node(h, peer)) {
        s = hold_next_stream(hold, s);
    }
    if (s == NULL) {
        identity_misused(
            h, peer, HOST_MISUSE_STATE_ACK, "the sender is not the node that takes these vnodes");
        return;
    }
    if (stream_on_ack(s, ack, h->now_us)) {
        part->refused = part->refused || s->refused != STATE_TAKEN;
        if (s->refused == STATE_UNREAD && hold->why[0] == '\0') {
            (void)snprintf(hold->why, sizeof hold->why, "its state is not read there");
        }
    }
    hold_progress(h, hold);
}

void hold_on_peer_up(struct host *h, uint64_t incarnation)
{
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        struct hold *hold = hold_of(h->txns.participant.part[i]);

        for (struct handover_stream *s = hold_first_stream(hold); s != NULL;
             s = hold_next_stream(hold, s)) {
            if (s->target == incarnation) {
                stream_rewind(s);
            }
        }
        hold_progress(h, hold);
    }
}
