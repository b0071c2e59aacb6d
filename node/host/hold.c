/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node does for one transaction: its streams, stagings and actors, and what time brings.
 */
#include "node/host/hold.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/host/inside.h"

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
        stream_free(CONTAINER_OF(link, struct handover_stream, link));
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

struct handover_stream *hold_first_stream(const struct hold *hold)
{
    struct list_link *l = list_front(&hold->streams);

    return l == NULL ? NULL : CONTAINER_OF(l, struct handover_stream, link);
}

struct handover_stream *hold_next_stream(const struct hold *hold, const struct handover_stream *s)
{
    struct list_link *l = list_next(&hold->streams, &s->link);

    return l == NULL ? NULL : CONTAINER_OF(l, struct handover_stream, link);
}

struct handover_stream *hold_stream(struct hold *hold, const struct part_arc *arc, uint64_t source)
{
    for (struct handover_stream *s = hold_first_stream(hold); s != NULL;
         s = hold_next_stream(hold, s)) {
        if (s->slot == arc->peer && s->target == arc->peer_incarnation) {
            return s;
        }
    }
    struct handover_stream *s = stream_new(hold->part->prepare.txn, source);
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

size_t hold_staged_count(const struct hold *hold)
{
    size_t count = 0;

    for (struct list_link *l = list_front(&hold->stagings); l; l = list_next(&hold->stagings, l)) {
        count += CONTAINER_OF(l, struct staging, link)->image_count;
    }
    return count;
}

/* ---- its actors ---- */

struct actor *hold_next_actor(const struct host *h, struct hold_cursor *at)
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

size_t hold_some_actors(const struct host *h, struct hold_cursor *at, struct actor *some[HOLD_SOME])
{
    size_t count = 0;

    while (count < HOLD_SOME && (some[count] = hold_next_actor(h, at)) != NULL) {
        count++;
    }
    prefetch_actors(h, some, count);
    return count;
}

void hold_tick(struct host *h, struct hold *hold)
{
    const uint64_t resend_us = (uint64_t)h->config.resend_ms * 1000;
    const struct part_arc *arc = hold_unreached(h, hold);

    if (arc != NULL) {
        (void)host_link_to(h, arc->peer, arc->peer_incarnation);
    }
    for (struct list_link *l = list_front(&hold->stagings); l; l = list_next(&hold->stagings, l)) {
        struct staging *s = CONTAINER_OF(l, struct staging, link);

        if (s->ack_due) {
            hold_acknowledge(h, s);
        }
    }
    for (struct handover_stream *s = hold_first_stream(hold); s != NULL;
         s = hold_next_stream(hold, s)) {
        if (s->sent > s->acked && h->now_us - s->progress_us >= resend_us) {
            stream_rewind(s);
        }
    }
    chain_tick(h, hold);
    hold_progress(h, hold);
}
