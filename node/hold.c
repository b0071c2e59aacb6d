/* SPDX-License-Identifier: Apache-2.0
 *
 * One transaction's drain, its images, its outcome.
 */
#include "node/hold.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "node/inside.h"
#include "wire/frame.h"

#include <inttypes.h>

struct hold *hold_new(struct part *part)
{
    struct hold *hold = mem_new(1, sizeof *hold);

    hold->part = part;
    part->user = hold;
    queue_init(&hold->held);
    list_init(&hold->streams);
    list_init(&hold->stagings);
    return hold;
}

void hold_free(struct hold *hold)
{
    struct list_link *link = NULL;

    ASSERT(hold->held.count == 0);
    while ((link = list_pop_front(&hold->streams)) != NULL) {
        stream_free(CONTAINER_OF(link, struct stream, link));
    }
    while ((link = list_pop_front(&hold->stagings)) != NULL) {
        staging_free(CONTAINER_OF(link, struct staging, link));
    }
    mem_free(hold);
}

const struct part_arc *hold_arc(const struct hold *hold, uint32_t cell, bool out)
{
    const struct prepare *p = &hold->part->prepare;

    for (size_t i = 0; i < p->arc_count; i++) {
        if (p->arc[i].out == out && p->arc[i].from <= cell && cell < p->arc[i].to) {
            return &p->arc[i];
        }
    }
    return NULL;
}

static struct stream *first_stream(const struct hold *hold)
{
    struct list_link *l = list_front(&hold->streams);

    return l == NULL ? NULL : CONTAINER_OF(l, struct stream, link);
}

static struct stream *next_stream(const struct hold *hold, const struct stream *s)
{
    struct list_link *l = list_next(&hold->streams, &s->link);

    return l == NULL ? NULL : CONTAINER_OF(l, struct stream, link);
}

struct stream *hold_stream(struct hold *hold, const struct part_arc *arc, uint64_t source)
{
    for (struct stream *s = first_stream(hold); s != NULL; s = next_stream(hold, s)) {
        if (s->slot == arc->peer && s->target == arc->peer_incarnation) {
            return s;
        }
    }
    struct stream *s = stream_new(hold->part->prepare.txn, source);
    s->slot = arc->peer;
    s->target = arc->peer_incarnation;
    list_push_back(&hold->streams, &s->link);
    return s;
}

struct staging *hold_staging(const struct hold *hold, uint64_t source)
{
    for (struct list_link *l = list_front(&hold->stagings); l; l = list_next(&hold->stagings, l)) {
        struct staging *s = CONTAINER_OF(l, struct staging, link);

        if (s->source == source) {
            return s;
        }
    }
    return NULL;
}

/* ---- giver ---- */

static void pump(struct host *h, struct stream *s)
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
            txn_vote(h, hold, leader_of(h));
        }
        hold->told_refused = true;
        return;
    }
    for (struct stream *s = first_stream(hold); s != NULL; s = next_stream(hold, s)) {
        if ((hold->busy == 0 || mutant(M_NODRAIN)) && !s->ended) {
            stream_end(s);
        }
        pump(h, s);
        done = done && stream_is_done(s);
    }
    if (done) {
        ASSERT(hold->busy == 0 || mutant(M_NODRAIN));
        hold->part->state = PART_PREPARED;
        log_info("node",
                 "prepared",
                 "txn=%" PRIu64 " actors=%" PRIu64 " bytes=%" PRIu64 " held=%zu drain_us=%" PRIu64,
                 hold->part->prepare.txn,
                 hold->actors,
                 hold->bytes,
                 hold->held.count,
                 h->now_us - hold->since_us);
        txn_vote(h, hold, leader_of(h));
    }
}

void hold_on_frozen(struct host *h, struct actor *a)
{
    struct hold *hold = actor_held(a);
    struct image *image = actor_image(a);
    const struct part_arc *arc = hold_arc(hold, ring_point_cell(actor_position(a)), true);

    ASSERT(a->state == ACTOR_FROZEN && arc != NULL);
    if (hold->part->state == PART_PERSIST) {
        return; // counted when draining begins
    }
    ASSERT(hold->busy > 0 || hold->part->state == PART_PREPARED);
    hold->busy -= hold->busy > 0 ? 1 : 0;
    if (image != NULL) {
        struct stream *s = hold_stream(hold, arc, h->incarnation);

        if (!s->ended) {
            stream_add(s, image);
            hold->actors++;
            hold->bytes += image->data.size;
        }
    }
    if (!hold->filling) {
        hold_progress(h, hold);
    }
}

/* All actors of its OUT arcs, one after the other. `a` NULL: the first. */
struct cursor {
    const struct hold *hold;
    size_t arc;
    uint32_t cell;
    struct actor *next;
    bool begun;
};

static struct actor *cursor_next(const struct host *h, struct cursor *at)
{
    const struct prepare *p = &at->hold->part->prepare;

    while (at->next == NULL) {
        if (at->begun) {
            at->cell++;
        }
        while (at->arc < p->arc_count && (!p->arc[at->arc].out || at->cell >= p->arc[at->arc].to)) {
            at->arc++;
            at->cell = 0;
        }
        if (at->arc == p->arc_count) {
            return NULL;
        }
        at->cell = at->cell < p->arc[at->arc].from ? p->arc[at->arc].from : at->cell;
        at->begun = true;
        at->next = cell_first(&h->actors, at->cell);
    }
    struct actor *a = at->next;
    at->next = cell_next(&h->actors, at->cell, a);
    return a;
}

enum { SOME = 16 };

/* The next few, with what they need: hardly anything of a thousand actors is in the cache. What is
 * done to one of them ends no other. 0 = no more. */
static size_t cursor_some(const struct host *h, struct cursor *at, struct actor *some[SOME])
{
    size_t count = 0;

    while (count < SOME && (some[count] = cursor_next(h, at)) != NULL) {
        count++;
    }
    ahead_actors(h, some, count);
    return count;
}

/* Put `hold` on every cell of its OUT arcs that `from` holds now (NULL = nobody). */
static void place_hold(struct host *h, struct hold *hold, const struct hold *from)
{
    const struct prepare *p = &hold->part->prepare;

    for (size_t i = 0; i < p->arc_count; i++) {
        for (uint32_t c = p->arc[i].from; p->arc[i].out && c < p->arc[i].to; c++) {
            if (h->place[c].hold == from) {
                h->place[c].hold = hold;
            }
        }
    }
}

static void begin_drain(struct host *h, struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;
    const size_t held = hold->held.count;
    struct cursor at = {.hold = hold};
    struct actor *some[SOME];
    size_t count = 0;

    ASSERT(hold->part->state == PART_PERSIST);
    hold->part->state = PART_DRAINING;
    hold->since_us = hold->since_us == 0 ? h->now_us : hold->since_us;
    place_hold(h, hold, NULL);
    for (size_t i = 0; i < p->arc_count; i++) {
        if (p->arc[i].out) {
            (void)hold_stream(hold, &p->arc[i], h->incarnation);
        }
    }
    hold->filling = true;
    while ((count = cursor_some(h, &at, some)) > 0) {
        for (size_t i = 0; i < count; i++) {
            actor_empty(h, some[i], &hold->held); // ahead of what comes from now on
            actor_hold(h, some[i], hold);
        }
    }
    hold->filling = false;
    h->held_total += hold->held.count - held;
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

/* The arc to a taker whose link is not up: it can't vote, so it doesn't drain yet. Or NULL. */
static const struct part_arc *unreached(const struct host *h, const struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;

    for (size_t i = 0; i < p->arc_count && hold->durable && hold->since_us == 0; i++) {
        if (p->arc[i].out &&
            neighbour_by_process(&h->neighbours, ROLE_NODE, p->arc[i].peer_incarnation) == NULL) {
            return &p->arc[i];
        }
    }
    return NULL;
}

uint16_t hold_awaits_link(const struct host *h, const struct hold *hold)
{
    const struct part_arc *arc = unreached(h, hold);

    return arc == NULL ? 0 : arc->peer;
}

/* Two that drain side by side hold their ids for the sum of both: so one after the other, and who
 * waits for its turn holds nothing yet. What a superseded one held is held already. */
static bool may_drain(const struct host *h, const struct hold *hold)
{
    if (!hold->durable || hold->since_us != 0 || !gives(hold)) {
        return hold->durable;
    }
    if (unreached(h, hold) != NULL) {
        return false;
    }
    for (size_t i = 0; i < h->participant.part_count; i++) {
        if (is_draining(h, hold_of(h->participant.part[i]))) {
            return false;
        }
    }
    return true;
}

void hold_next_turn(struct host *h)
{
    // A vote may end in settling nothing, so the book does not change under this loop.
    for (size_t i = 0; i < h->participant.part_count; i++) {
        struct hold *hold = hold_of(h->participant.part[i]);

        if (hold->part->state == PART_PERSIST && may_drain(h, hold)) {
            begin_drain(h, hold);
        }
    }
}

void hold_take_over(struct host *h, struct hold *hold, struct hold *from)
{
    struct cursor at = {.hold = hold};
    struct actor *a = NULL;
    struct queue held;
    struct waiting *w = NULL;

    if (from->since_us == 0) {
        return; // it holds nothing yet
    }
    hold->since_us = from->since_us;
    place_hold(h, hold, from);
    while ((a = cursor_next(h, &at)) != NULL) {
        if (actor_held(a) == from) {
            a->busy->hold = hold;
        }
    }
    queue_init(&held);
    queue_append(&held, &from->held);
    while ((w = queue_pop(&held)) != NULL) {
        const uint64_t position = host_position(h, w->record.kind, w->record.id);
        const bool mine = h->place[ring_point_cell(position)].hold == hold;

        queue_push(mine ? &hold->held : &from->held, w);
    }
}

/* ---- taker ---- */

static void send_ack(struct host *h, struct staging *s)
{
    const struct state_ack_record ack = {
        .txn = s->txn, .source = s->source, .next = s->next, .refused = s->refused};

    s->ack_due = false;
    s->since_ack = 0;
    if (neighbour_by_link(&h->neighbours, s->peer) != NULL) {
        state_ack_put(host_record(h), &ack);
        host_send_record(h, s->peer, FRAME_STATE_ACK);
    }
}

static bool comes_from_arc(const struct hold *hold, uint32_t cell, uint64_t source)
{
    const struct part_arc *arc = hold_arc(hold, cell, false);

    return arc != NULL && arc->peer_incarnation == source;
}

static bool is_giver(const struct hold *hold, uint64_t source)
{
    const struct prepare *p = &hold->part->prepare;

    for (size_t i = 0; i < p->arc_count; i++) {
        if (!p->arc[i].out && p->arc[i].peer_incarnation == source) {
            return true;
        }
    }
    return false;
}

static size_t staged_size(const struct hold *hold)
{
    size_t size = 0;

    for (struct list_link *l = list_front(&hold->stagings); l; l = list_next(&hold->stagings, l)) {
        size += CONTAINER_OF(l, struct staging, link)->size;
    }
    return size;
}

void hold_on_state(struct host *h, uint64_t peer, const struct state_record *r)
{
    struct part *part = participant_find(&h->participant, r->txn);
    struct hold *hold = part == NULL ? NULL : hold_of(part);

    if (hold == NULL || !is_giver(hold, r->source)) {
        return; // not prepared (yet), or over: it will be sent again, or was for nothing
    }
    struct staging *s = hold_staging(hold, r->source);
    if (s == NULL) {
        s = staging_new(r->txn, r->source);
        list_push_back(&hold->stagings, &s->link);
    }
    const bool end = (r->flags & STATE_END) != 0;
    const uint64_t position = end ? 0 : host_position(h, r->kind, r->id);
    const size_t others = staged_size(hold) - s->size;
    const size_t room = h->config.staged_size_max - others;
    s->peer = peer;
    if (!end && (!host_has_kind(h, r->kind) ||
                 !comes_from_arc(hold, ring_point_cell(position), r->source))) {
        s->refused = true; // nobody asked for this actor
    }
    const enum staging_verdict verdict = staging_take(s, r, position, room);
    if (verdict == STAGING_FULL && !part->refused) {
        log_warn("node", "staging_refused", "txn=%" PRIu64 " bytes=%zu", r->txn, s->size);
        part->refused = true; // a vote for it may have left; the giver's cannot
        txn_vote(h, hold, leader_of(h));
        hold->told_refused = true;
    }
    if (end || verdict == STAGING_FULL || s->since_ack >= h->config.state_window / 4) {
        send_ack(h, s);
    }
}

void hold_on_state_ack(struct host *h, uint64_t peer, const struct state_ack_record *ack)
{
    const struct neighbour *from = neighbour_by_link(&h->neighbours, peer);
    struct part *part = participant_find(&h->participant, ack->txn);
    struct hold *hold = part == NULL ? NULL : hold_of(part);

    if (hold == NULL || from == NULL || ack->source != h->incarnation) {
        return;
    }
    for (struct stream *s = first_stream(hold); s != NULL; s = next_stream(hold, s)) {
        if (s->target == from->incarnation && stream_on_ack(s, ack, h->now_us)) {
            part->refused = part->refused || s->refused;
        }
    }
    hold_progress(h, hold);
}

void hold_on_peer_up(struct host *h, uint64_t incarnation)
{
    for (size_t i = 0; i < h->participant.part_count; i++) {
        struct hold *hold = hold_of(h->participant.part[i]);

        for (struct stream *s = first_stream(hold); s != NULL; s = next_stream(hold, s)) {
            if (s->target == incarnation) {
                stream_rewind(s);
            }
        }
        hold_progress(h, hold);
    }
}

void hold_tick(struct host *h, struct hold *hold)
{
    const uint64_t resend_us = (uint64_t)h->config.resend_ms * 1000;
    const struct part_arc *arc = unreached(h, hold);

    if (arc != NULL) {
        (void)host_link_to(h, arc->peer, arc->peer_incarnation);
    }
    for (struct list_link *l = list_front(&hold->stagings); l; l = list_next(&hold->stagings, l)) {
        struct staging *s = CONTAINER_OF(l, struct staging, link);

        if (s->ack_due) {
            send_ack(h, s);
        }
    }
    for (struct stream *s = first_stream(hold); s != NULL; s = next_stream(hold, s)) {
        if (s->sent > s->acked && h->now_us - s->progress_us >= resend_us) {
            stream_rewind(s);
        }
    }
    chain_tick(h, hold);
    hold_progress(h, hold);
}

/* ---- outcome ---- */

static bool cell_committed(const struct host *h, const struct part *part, uint32_t cell)
{
    const struct ring *ring = &h->view.ring;
    const struct ring_vnode *vnode = ring_find(ring, ring_hit_vnode(ring->cell[cell]));
    const uint64_t txn = part->prepare.txn;

    // It is mine now. By this transaction, if its delta was seen or the vnode names it. A MERGE
    // since may have put another number there; but a reassignment, the only other way to get
    // these cells, would have drawn a cold stamp above the number.
    return ring_hit_node(ring->cell[cell]) == h->slot && vnode != NULL &&
           (part->committed || vnode->txn == txn || vnode->cold < txn);
}

static void promote(struct host *h, struct image *image)
{
    const struct image_name name = {
        .position = image->position, .kind = image->kind, .id = image->id};
    struct actor *a = actor_find(&h->actors, name);

    if (a != NULL && (a->live || a->state != ACTOR_ABSENT)) {
        h->doubles_total++;
        log_error("node", "handed_over_actor_lives", "kind=%u", image->kind); // I1
        return;
    }
    if (a != NULL) {
        actor_remove(h, a, DISCARD_MOVED); // an earlier image of the same stream
    }
    a = actor_from_image(h, image);
    wake_arrived(h, a);
    actor_rest(h, a);
}

static void take_stage(struct host *h, struct part *part, const struct staging *s)
{
    for (size_t i = 0; i < s->image_count; i++) {
        const uint32_t cell = ring_point_cell(s->image[i]->position);

        ahead_images(h, s->image + i, s->image_count - i);
        if (cell_committed(h, part, cell)) {
            promote(h, s->image[i]);
        }
    }
}

static void take_stages(struct host *h, struct part *part)
{
    struct hold *hold = hold_of(part);
    struct list_link *l = NULL;

    while ((l = list_pop_front(&hold->stagings)) != NULL) {
        struct staging *s = CONTAINER_OF(l, struct staging, link);

        take_stage(h, part, s);
        if (mutant(M_STALEWARM) && !part->committed) {
            list_push_back(&h->stale, &s->link);
            continue;
        }
        staging_free(s);
    }
    for (l = list_front(&h->stale); l != NULL && part->committed; l = list_next(&h->stale, l)) {
        take_stage(h, part, CONTAINER_OF(l, struct staging, link));
    }
}

/* Mine again is not mine still: its taker had the cell, and was fenced. What is frozen here is
 * older than what the taker did, and others may have taken its token (holes 32, 39). Only what
 * voted can have been given away. The vnode names the transaction, or a greater one merged into it;
 * then the reassignment's cold stamp tells. */
static bool went_away(const struct host *h, const struct part *part, uint32_t cell)
{
    const struct ring *ring = &h->view.ring;
    const struct ring_vnode *vnode = ring_find(ring, ring_hit_vnode(ring->cell[cell]));

    if (!host_owns(h, cell)) {
        return true;
    }
    return part->state == PART_PREPARED && !part->aborted &&
           (part->committed || vnode->txn == part->prepare.txn || vnode->cold > part->prepare.txn);
}

static void release_actor(struct host *h, struct hold *hold, struct actor *a)
{
    if (actor_held(a) != hold) {
        return;
    }
    actor_empty(h, a, &hold->held);
    if (!went_away(h, hold->part, ring_point_cell(actor_position(a)))) {
        actor_release(h, a);
    } else if (a->state == ACTOR_FROZEN) {
        actor_remove(h, a, DISCARD_MOVED);
    } else {
        a->busy->hold = NULL; // I4: host_adopt() sees it
    }
}

static void release_arcs(struct host *h, struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;
    struct cursor at = {.hold = hold};
    struct actor *some[SOME];
    size_t count = 0;

    for (size_t i = 0; i < p->arc_count; i++) {
        for (uint32_t c = p->arc[i].from; p->arc[i].out && c < p->arc[i].to; c++) {
            if (h->place[c].hold == hold) {
                h->place[c].hold = NULL;
            }
        }
    }
    while ((count = cursor_some(h, &at, some)) > 0) {
        for (size_t i = 0; i < count; i++) {
            release_actor(h, hold, some[i]);
        }
    }
}

void hold_settle(struct host *h, struct part *part)
{
    struct hold *hold = hold_of(part);
    struct queue held;
    const uint64_t held_us = hold->since_us == 0 ? 0 : h->now_us - hold->since_us;

    log_info("node",
             "settled",
             "txn=%" PRIu64 " version=%" PRIu64 " held=%zu held_us=%" PRIu64,
             part->prepare.txn,
             h->view.ring.version,
             hold->held.count,
             held_us);
    h->hold_us_max = held_us > h->hold_us_max ? held_us : h->hold_us_max;
    if (hold->since_us != 0) {
        metrics_time(&h->holds[part->aborted ? HOLD_ABORTED : HOLD_COMMITTED], held_us);
    }
    take_stages(h, part);
    release_arcs(h, hold);
    queue_init(&held);
    queue_append(&held, &hold->held);
    participant_end(&h->participant, part);
    hold_free(hold);
    h->disk_dirty = true;
    h->local = mutant(M_LOCAL);
    admit_all(h, &held);
    h->local = false;
}
