/* SPDX-License-Identifier: Apache-2.0
 *
 * Admission of requests: specification §5.3, in that order; and the way of answers.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "node/host/traced.h"
#include "wire/frame.h"
#include "wire/trace.h"

enum { MS = 1000 };

struct admission admission_of(struct waiting *w)
{
    return (struct admission){.r = &w->record,
                              .peer = w->peer,
                              .deadline_us = w->deadline_us,
                              .w = w,
                              .mark = w->mark,
                              .late = w->late};
}

void requests_init(struct requests *r)
{
    room_init(&r->room, 0);
    queue_init(&r->waitver);
}

void requests_drop_all(struct requests *r, size_t running, uint64_t now_us)
{
    r->finished += r->room.count + running;
    room_fini(&r->room);
    room_init(&r->room, now_us);
}

/* ---- answers ---- */

void admit_send_answer(struct host *h, uint64_t peer, const struct answer_record *a)
{
    const struct neighbour *gateway = neighbour_asking(&h->links.neighbours, a->gateway);

    // Straight to who asked; without a link there, back along the hop, which passes it on.
    if (gateway == NULL) {
        gateway = neighbour_by_link(&h->links.neighbours, peer);
    }
    if (gateway == NULL || gateway->standing != STANDING_KNOWN) {
        requests_drop(&h->requests, DROPPED_FOREIGN);
        return;
    }
    answer_put(host_record(h), a);
    host_send_record(h, gateway->link, FRAME_ANSWER);
}

void admit_relay_answer(struct host *h, const struct answer_record *a)
{
    admit_send_answer(h, 0, a);
}

void admit_done(struct host *h, struct admission *in)
{
    requests_finish(&h->requests);
    if (in->w != NULL) {
        waiting_free(&h->requests.room, in->w);
        in->w = NULL;
    }
}

void admit_refuse(struct host *h, struct admission *in, enum answer_code code, uint64_t aux)
{
    const bool lost = in->late && !mutant(M_LATEREFUSED);
    const struct answer_record answer = {
        .gateway = in->r->gateway,
        .session = in->r->session,
        .seq = in->r->seq,
        .version = h->topology.view.ring.version,
        .aux = lost ? 0 : aux,
        .code = (uint8_t)(lost ? ANSWER_LOST : code),
        .copy = in->r->copy,
    };

    requests_lose(&h->requests, lost);
    times_answered(h, in->r->kind, admission_came_us(in, h->now_us), (enum answer_code)answer.code);
    if (in->mark.by != NULL) {
        streams_refuse(h, &in->mark, host_position(h, in->r->kind, in->r->id), code, aux);
    } else {
        admit_send_answer(h, in->peer, &answer);
    }
    admit_done(h, in);
}

/* It may have run at a node that is dead. Whether it did is known where answers are saved. */
static bool may_be_told(const struct host *h, const struct request_record *r)
{
    return (r->flags & REQUEST_IDEMPOTENT) != 0 || copy_may_be_saved(h, r);
}

/* Nobody ever will know. */
static void answer_lost(struct host *h, struct admission *in)
{
    const struct answer_record answer = {
        .gateway = in->r->gateway,
        .session = in->r->session,
        .seq = in->r->seq,
        .version = h->topology.view.ring.version,
        .code = ANSWER_LOST,
        .copy = in->r->copy,
    };

    requests_lose(&h->requests, true);
    times_answered(h, in->r->kind, admission_came_us(in, h->now_us), ANSWER_LOST);
    if (in->mark.by != NULL) {
        streams_end(h, &in->mark, &answer);
    } else {
        admit_send_answer(h, in->peer, &answer);
    }
    admit_done(h, in);
}

/* ---- queues ---- */

/* The newest is refused: what waits already keeps its place. Order is safe (holes 36, 41, 42). */
static bool has_room(const struct host *h, size_t size, uint32_t vnode)
{
    return h->requests.room.size + size <= h->config.held_size_max &&
           room_size_of(&h->requests.room, vnode) + size <= h->config.held_vnode_max;
}

bool admit_park(struct host *h, struct queue *q, struct admission *in)
{
    if (in->w == NULL) {
        const size_t size = sizeof(struct waiting) + in->r->id.size + in->r->body.size;
        const uint64_t position = host_position(h, in->r->kind, in->r->id);
        const uint32_t vnode =
            ring_hit_vnode(h->topology.view.ring.cell[ring_point_cell(position)]);

        if (!has_room(h, size, vnode)) {
            requests_drop(&h->requests, DROPPED_OVERFLOW);
            admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
            return false;
        }
        in->w = waiting_new(&h->requests.room, in->r, in->peer, in->deadline_us);
        waiting_charge(&h->requests.room, in->w, vnode);
        in->w->mark = in->mark;
        in->w->late = in->late;
        in->w->came_us = h->now_us;
        in->r = &in->w->record;
    }
    queue_push(q, in->w);
    return true;
}

void admit_all(struct host *h, struct queue *q)
{
    struct queue now;
    struct waiting *w = NULL;

    queue_init(&now);
    queue_append(&now, q);
    while ((w = queue_pop(&now)) != NULL) {
        struct admission in = admission_of(w);

        admit_again(h, &in);
    }
}

void admit_tick(struct host *h)
{
    struct waiting *w = NULL;

    while ((w = room_expired(&h->requests.room, h->now_us)) != NULL) {
        struct admission in = admission_of(w);

        queue_remove(w);
        requests_drop(&h->requests, DROPPED_EXPIRED);
        admit_refuse(h, &in, ANSWER_EXPIRED, 0);
    }
}

/* ---- admission ---- */

static void forward(struct host *h, struct admission *in, const struct view_member *owner)
{
    const uint64_t link = host_link_to(h, owner->slot, owner->incarnation);

    if (link == 0) {
        (void)admit_park(h, &h->links.lonely, in);
        return;
    }
    if (in->r->again && !neighbour_by_link(&h->links.neighbours, link)->streams) {
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS); // an older one would run it
        return;
    }
    if (!backpressure_may_pass_on(h, link)) {
        backpressure_pass_on_later(h, in);
        return;
    }
    struct request_record r = *in->r;
    const uint64_t left_ms = (in->deadline_us - h->now_us) / MS;
    // I6: it strictly climbs, so no request goes in circles (hole 35).
    if (!mutant(M_NOTAG)) {
        ASSERT(h->topology.view.ring.version > r.version);
        r.version = h->topology.view.ring.version;
    }
    r.hops++;
    r.ttl_ms = mutant(M_PASSEDLATE) ? r.ttl_ms : left_ms == 0 ? 1 : (uint32_t)left_ms;
    r.body = trace_is(&r) ? trace_stamp(h, in, TRACE_FORWARD) : r.body;
    if (traced_is(&r)) {
        traced_forward(h, in);
        if (!neighbour_by_link(&h->links.neighbours, link)->streams) {
            traced_strip(&r);
        }
    }
    request_put(host_record(h), &r);
    host_send_record(h, link, FRAME_REQUEST);
    backpressure_passed_on(&h->backpressure, request_size(&r));
    h->requests.forwarded++;
    admit_done(h, in);
}

/* Somebody else owns it. */
static void admit_elsewhere(struct host *h, struct admission *in, uint64_t position)
{
    const uint32_t cell = ring_point_cell(position);
    const struct view *v = &h->topology.view;
    const struct cell_state *state = &h->cells.state[cell];
    const struct view_member *owner = view_member(v, ring_hit_node(v->ring.cell[cell]));
    const bool had_it =
        state->since_us != 0 && h->now_us - state->since_us <= (uint64_t)h->config.linger_ms * MS;

    if (in->r->hops >= RECORD_HOPS_MAX || owner == NULL || owner->slot == h->membership.slot) {
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS);
    } else if (in->r->version == v->ring.version && !mutant(M_NOTAG)) {
        // The sender knows the same version and still thinks that it is mine (hole 58).
        log_debug("node", "maps_differ", "version=%llu", (unsigned long long)v->ring.version);
        config_distrust(&h->topology);
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS);
    } else if (in->mark.by == NULL && (had_it || (in->r->flags & REQUEST_HELD) != 0)) {
        forward(h, in, owner);
    } else if (in->mark.by != NULL && forwards_pass(h, in, position, owner)) {
        h->requests.forwarded++;
        if (traced_is(in->r)) {
            traced_forward(h, in);
        }
        admit_done(h, in);
    } else {
        admit_refuse(h, in, ANSWER_MOVED, v->ring.version);
    }
}

static void admit_held(struct host *h, struct admission *in, struct hold *hold)
{
    if (admit_park(h, &hold->held, in)) {
        in->w->record.flags |= REQUEST_HELD;
        in->w->boxed_us = h->now_us;
        hold_count(&h->txns, 1);
    }
}

bool admit_drops_orphan(struct host *h, struct admission *in)
{
    const bool orphan = identity_is_orphan(h, in->r);

    if (orphan) {
        requests_drop(&h->requests, DROPPED_ABANDONED);
        admit_done(h, in); // nobody is there to hear of it
    }
    return orphan;
}

void admit_again(struct host *h, struct admission *in)
{
    const struct request_record *r = in->r;

    if (h->membership.life == LIFE_JOINING) {
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS);
        return;
    }
    if (h->now_us >= in->deadline_us) {
        requests_drop(&h->requests, DROPPED_EXPIRED);
        admit_refuse(h, in, ANSWER_EXPIRED, 0);
        return;
    }
    if (r->version > h->topology.view.ring.version && !mutant(M_NOTAG)) {
        const uint64_t version = r->version;

        if (admit_park(h, &h->requests.waitver, in)) {
            host_want_version(h, version);
        }
        return;
    }
    if (admit_drops_orphan(h, in)) {
        return;
    }
    const bool known = in->position != 0 && (in->mark.by != NULL ||
                                             h->prefetch.version == h->topology.view.ring.version);
    const uint64_t position = known ? in->position : host_position(h, r->kind, r->id);
    const uint32_t cell = ring_point_cell(position);
    const bool mine = host_owns(h, cell) || h->txns.local;
    // One that was taken just now was judged then, but not whether it follows a forward.
    if (in->mark.by != NULL && (in->w != NULL || in->mark.by->stream.passed_count > 0) &&
        !streams_may_go_on(h, in, position, mine)) {
        return;
    }
    if (!mine) {
        admit_elsewhere(h, in, position);
        return;
    }
    if (!lease_policy_may_start(h)) { // §5.3 step 4
        lease_policy_put_off(h, in);
        return;
    }
    if (!backpressure_may_start(h, in)) {
        backpressure_put_off(h, in);
        return;
    }
    if (!host_has_kind(h, r->kind) || !always_knows(h, r->kind, r->id)) {
        admit_refuse(h, in, ANSWER_NO_KIND, NO_KIND_UNKNOWN);
        return;
    }
    if (r->again && !may_be_told(h, r)) {
        answer_lost(h, in);
        return;
    }
    if (h->topology.view.quarantine.count > 0 && quarantine_names(h, r->kind, r->id)) {
        quarantine_refuse(h, in);
        return;
    }
    const struct image_name name = {.position = position, .kind = r->kind, .id = r->id};
    struct hold *hold = h->cells.state[cell].hold;
    if (hold != NULL && !in->passes && !chain_passes(h, r, hold)) {
        admit_held(h, in, hold);
        return;
    }
    actor_offer(h, actor_find(&h->actors, name), name, in);
}

void admit_new(struct host *h, const struct host_event *event)
{
    const struct request_record *r = event->request;
    const uint64_t from_us = event->made_us == 0 ? h->now_us : event->made_us;
    const uint32_t ttl_ms = r->ttl_ms < ROOM_TTL_MAX_MS ? r->ttl_ms : ROOM_TTL_MAX_MS;
    struct admission in = {.r = r,
                           .peer = event->peer,
                           .deadline_us = from_us + (uint64_t)ttl_ms * MS,
                           .position = event->position};

    requests_accept(&h->requests);
    admit_again(h, &in);
}
