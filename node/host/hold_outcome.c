/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome: what was staged becomes actors, what was frozen thaws or goes.
 */
#include "node/host/hold.h"

#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "node/host/inside.h"
#include "node/host/traced.h"

#include <inttypes.h>

static bool cell_committed(const struct host *h, const struct part *part, uint32_t cell)
{
    const struct ring *ring = &h->topology.view.ring;
    const struct ring_vnode *vnode = ring_find(ring, ring_hit_vnode(ring->cell[cell]));
    const uint64_t txn = part->prepare.txn;

    // It is mine now. By this transaction, if its delta was seen or the vnode names it. A MERGE
    // since may have put another number there; but a reassignment, the only other way to get
    // these cells, would have drawn a cold stamp above the number.
    return ring_hit_node(ring->cell[cell]) == h->membership.slot && vnode != NULL &&
           (part->committed || vnode->txn == txn || vnode->cold < txn);
}

static void promote(struct host *h, struct image *image)
{
    const struct image_name name = {
        .position = image->position, .kind = image->kind, .id = image->id};
    struct actor *a = actor_find(&h->actors, name);

    if (a != NULL && (a->live || a->state != ACTOR_ABSENT)) {
        cells_count_double(&h->cells);
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

        prefetch_images(h, s->image + i, s->image_count - i);
        if (cell_committed(h, part, cell)) {
            promote(h, s->image[i]);
        } else {
            h->txns.images_dropped[part->aborted ? IMAGE_DROP_ABORTED : IMAGE_DROP_LOST]++;
        }
    }
    h->txns.images_dropped[IMAGE_DROP_REPLACED] += s->replaced;
}

static void take_stages(struct host *h, struct part *part)
{
    struct hold *hold = hold_of(part);
    struct list_link *l = NULL;

    while ((l = list_pop_front(&hold->stagings)) != NULL) {
        struct staging *s = CONTAINER_OF(l, struct staging, link);

        take_stage(h, part, s);
        if (mutant(M_STALEWARM) && !part->committed) {
            list_push_back(&h->txns.stale, &s->link);
            continue;
        }
        staging_free(s);
    }
    for (l = list_front(&h->txns.stale); l != NULL && part->committed;
         l = list_next(&h->txns.stale, l)) {
        take_stage(h, part, CONTAINER_OF(l, struct staging, link));
    }
}

/* Mine again is not mine still: its target had the cell, and was fenced. What is frozen here is
 * older than what the target did, and others may have taken its fence (holes 32, 39). Only what
 * voted can have been given away. The vnode names the transaction, or a greater one merged into it;
 * then the reassignment's cold stamp tells. */
static bool went_away(const struct host *h, const struct part *part, uint32_t cell)
{
    const struct ring *ring = &h->topology.view.ring;
    const struct ring_vnode *vnode = ring_find(ring, ring_hit_vnode(ring->cell[cell]));

    if (!host_owns(h, cell)) {
        return true;
    }
    return part->state == PART_PREPARED && !part->aborted &&
           (part->committed || vnode->txn == part->prepare.txn || vnode->cold > part->prepare.txn);
}

static void release_actor(struct host *h, struct hold *hold, struct actor *a)
{
    if (actor_held(a) == NULL || actor_held(a) == hold) {
        a->sent = false; // what went ahead was for this transaction alone
    }
    if (actor_held(a) == NULL) {
        actor_changed(a);
    }
    if (actor_held(a) != hold) {
        return;
    }
    actor_empty(h, a, &hold->held);
    if (!went_away(h, hold->part, ring_point_cell(actor_position(a)))) {
        actor_release(h, a);
    } else if (a->state == ACTOR_FROZEN) {
        actor_remove(h, a, DISCARD_MOVED);
    } else {
        a->work->hold = NULL; // I4: host_adopt() sees it
    }
}

static void release_arcs(struct host *h, struct hold *hold)
{
    const struct prepare *p = &hold->part->prepare;
    struct hold_cursor at = {.hold = hold};
    struct actor *some[HOLD_SOME];
    size_t count = 0;

    for (size_t i = 0; i < p->arc_count; i++) {
        for (uint32_t c = p->arc[i].from; p->arc[i].out && c < p->arc[i].to; c++) {
            if (h->cells.state[c].hold == hold) {
                cells_hold(h, c, NULL);
            }
        }
    }
    while ((count = hold_some_actors(h, &at, some)) > 0) {
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
             "txn=%s version=%s held=%zu held_us=%" PRIu64,
             STAMP(part->prepare.txn),
             STAMP(h->topology.view.ring.version),
             hold->held.count,
             held_us);
    h->txns.hold_us_max = held_us > h->txns.hold_us_max ? held_us : h->txns.hold_us_max;
    if (hold->since_us != 0) {
        metrics_time(&h->txns.holds[part->aborted ? HOLD_ABORTED : HOLD_COMMITTED], held_us);
    }
    take_stages(h, part);
    release_arcs(h, hold);
    queue_init(&held);
    queue_append(&held, &hold->held);
    traced_all_held(h, &held, part->prepare.txn);
    participant_end(&h->txns.participant, part);
    hold_free(hold);
    h->txns.disk_dirty = true;
    h->txns.local = mutant(M_LOCAL);
    admit_all(h, &held);
    h->txns.local = false;
}
