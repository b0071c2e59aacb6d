/* SPDX-License-Identifier: Apache-2.0
 *
 * The target: images come in, are staged and acknowledged.
 */
#include "node/host/hold.h"

#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "node/host/inside.h"
#include "wire/frame.h"

#include <inttypes.h>
#include <stdio.h>

void hold_acknowledge(struct host *h, struct staging *s)
{
    const struct state_ack_record ack = {
        .txn = s->txn,
        .source = s->source,
        .next = s->next,
        .refused = s->unreadable ? STATE_UNREAD
                   : s->refused  ? STATE_NO_ROOM
                                 : STATE_TAKEN,
    };

    s->ack_due = false;
    s->since_ack = 0;
    if (neighbour_by_link(&h->links.neighbours, s->peer) != NULL) {
        state_ack_put(host_record(h), &ack);
        host_send_record(h, s->peer, FRAME_STATE_ACK);
    }
}

static bool comes_from_arc(const struct hold *hold, uint32_t cell, uint64_t source)
{
    const struct part_arc *arc = hold_arc(hold, cell, false);

    return arc != NULL && arc->peer_incarnation == source;
}

static bool is_source(const struct hold *hold, uint64_t source)
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

/* It does not go on, and why. A vote for it may have left; the source's cannot. */
static void refuse(struct host *h, struct hold *hold, const struct staging *s,
                   const struct state_range *reads)
{
    if (s->unreadable) {
        (void)snprintf(hold->why,
                       sizeof hold->why,
                       "kind %u: state %" PRIu32 ", it reads %" PRIu32 "..%" PRIu32,
                       s->name.kind,
                       s->unread_version,
                       reads->least,
                       reads->most);
    }
    log_warn("node",
             "staging_refused",
             "txn=%s bytes=%zu why=\"%s\"",
             STAMP(s->txn),
             s->size,
             s->unreadable ? hold->why : "no room, or no image");
    hold->part->refused = true;
    txn_vote(h, hold, leader_of(&h->membership));
    hold->told_refused = true;
}

/* One of the records of a staging, for which there is so much room. */
static void take(struct host *h, struct hold *hold, struct staging *s, const struct state_record *r,
                 size_t room)
{
    const bool end = (r->flags & STATE_END) != 0;
    const uint64_t position = end ? 0 : host_position(h, r->kind, r->id);

    if (!end && !comes_from_arc(hold, ring_point_cell(position), r->source)) {
        s->refused = true; // nobody asked for this actor
    }
    const struct kind_state *kind = end ? NULL : host_kind_find(h, r->kind);
    const struct state_range reads = {.least = kind == NULL ? 0 : kind->how->state_least,
                                      .most = kind == NULL ? 0 : kind->how->state_most};
    const enum staging_verdict verdict =
        staging_take(s, r, position, kind == NULL ? NULL : &reads, room);
    if (verdict == STAGING_FULL && !hold->part->refused) {
        refuse(h, hold, s, &reads);
    }
    if (end || verdict == STAGING_FULL || s->since_ack >= hold_ack_size(&h->config)) {
        hold_acknowledge(h, s);
    }
}

/* Records of one stream, by their number. */
static void take_all(struct host *h, uint64_t peer, const struct state_record *r, size_t count)
{
    struct part *part = participant_find(&h->txns.participant, r->txn);
    struct hold *hold = part == NULL ? NULL : hold_of(part);

    if (identity_of_node(h, peer) != r->source && !mutant(M_ANYSOURCE)) {
        identity_misused(h,
                         peer,
                         HOST_MISUSE_STATE,
                         "the record is from a node that does not hand over these vnodes");
        return;
    }
    if (hold == NULL || !is_source(hold, r->source)) {
        return; // not prepared (yet), or over: it will be sent again, or was for nothing
    }
    struct staging *s = hold_staging(hold, r->source);
    if (s == NULL) {
        s = staging_new(r->txn, r->source);
        list_push_back(&hold->stagings, &s->link);
    }
    const size_t others = staged_size(hold) - s->size;
    s->peer = peer;
    for (size_t i = 0; i < count; i++) {
        take(h, hold, s, &r[i], h->config.staged_size_max - others);
    }
}

void hold_on_state(struct host *h, uint64_t peer, const struct state_record *r, size_t count)
{
    for (size_t begin = 0; begin < count;) {
        size_t end = begin + 1;

        while (end < count && r[end].txn == r[begin].txn && r[end].source == r[begin].source) {
            end++;
        }
        take_all(h, peer, &r[begin], end - begin);
        begin = end;
    }
}
