/* SPDX-License-Identifier: Apache-2.0
 *
 * The short way of a client's request through the router, inline: one of a run (struct steady_run
 * of by_stream.h). Nearly all are, so what is told apart for the others is not looked at for them.
 * Beside by_stream.c only gateway/client may include this, and call steady_ask(), or, for several
 * at once, steady_goes_on(), steady_take() of each, and steady_end().
 */
#ifndef ROUTE_STEADY_H
#define ROUTE_STEADY_H

#include "route/router_inside.h"
#include "stream/steady.h"

enum { INQUIRY_MEMORY = 192 }; /* of a request, beside its record */

/* What is asked. */
struct steady_asked {
    struct session *session;
    uint64_t position;
    uint32_t due_ms;
    uint32_t stamp;
};

/* Requests of one session and one origin that were taken one behind the other, and are not counted
 * yet: before anything else looks at what is under way, steady_count() or steady_end() is told. All
 * zero: there are none. */
struct steady_sum {
    uint64_t size;   /* bytes that they count with */
    uint64_t shares; /* as share_one() has them */
    uint64_t asked;  /* position of the last */
    uint32_t count;
};

/* Note what has got a slot, for which there is an inquiry. */
__attribute__((always_inline)) static inline void steady_note(struct router *r,
                                                              const struct router_plain p,
                                                              const struct steady_asked in,
                                                              uint32_t slot, struct steady_sum *sum)
{
    struct by_stream *b = &r->by_stream;
    const size_t size = INQUIRY_MEMORY + STREAM_REQUEST_SIZE + p.id.size + p.body.size;

    b->due_ms[slot] = in.due_ms;
    struct inquiry *q = &b->inquiry[slot];
    q->session = in.session;
    q->origin = p.origin;
    q->stamp = in.stamp;
    q->size = (uint32_t)size;
    q->flags = p.flags;
    q->must = p.must;
    q->lost = q->overloaded = false;
    if (p.origin != 0) {
        const uint64_t one = share_one(size);

        share_put(&r->by_entity, in.position, one);
        sum->shares += one;
    }
    sum->size += size;
    sum->asked = in.position;
    sum->count++;
}

/* Count what was noted of such requests. */
__attribute__((always_inline)) static inline void steady_count(struct router *r,
                                                               const struct router_plain p,
                                                               struct session *session,
                                                               const struct steady_sum sum)
{
    r->size += sum.size;
    r->must += p.must ? sum.count : 0;
    r->stats.in_flight += sum.count;
    r->by_stream.count += sum.count;
    session->unfinished += sum.count;
    if ((p.flags & REQUEST_NO_REPLY) != 0) {
        session->told += sum.count;
    }
    if (p.origin != 0) {
        share_put(&r->by_origin, p.origin, sum.shares);
    }
}

__attribute__((always_inline)) static inline struct stream_client *
steady_stream_of(const struct peer *peer, uint16_t kind)
{
    return peer == NULL || peer_lacks(peer, kind) ? NULL : peer->stream;
}

/* The owner's stream; NULL = none is known. */
__attribute__((always_inline)) static inline struct stream_client *
steady_stream(const struct router *r, uint64_t position, uint16_t kind, struct bytes id)
{
    return steady_stream_of(route_peer_of(r, position, kind, id), kind);
}

/* Likewise, in a run: there is a ring. */
__attribute__((always_inline)) static inline struct stream_client *
steady_stream_in_run(const struct router *r, uint64_t position, uint16_t kind, struct bytes id)
{
    const struct steady_run *run = &r->by_stream.run;
    const ring_hit hit = __builtin_expect(run->cell != NULL, true)
                             ? run->cell[position >> run->shift]
                             : view_at(r->view, kind, position, id);

    return steady_stream_of(peer_find(&r->peers, ring_hit_node(hit)), kind);
}

/* True if what that session asks now is of the run, as far as it is of the run's kind and has the
 * usual deadline. `known` as in struct router_plain. */
__attribute__((always_inline)) static inline bool
steady_goes_on(const struct steady_run *run, uint64_t session, uint64_t now_us, bool known)
{
    return run->left > 0 && run->session_id == session && run->now_us == now_us &&
           run->known == known;
}

/* Take a request of the run, which is not over, as `sum` has it besides. False: nothing was
 * changed. */
__attribute__((always_inline)) static inline bool
steady_take(struct router *r, const struct router_plain q, struct steady_sum *sum)
{
    const struct steady_run *run = &r->by_stream.run;
    struct stream_asker *a = &r->by_stream.asker;
    const struct steady_asked in = {.session = run->session,
                                    .position = siphash_from(run->hash, q.id),
                                    .due_ms = run->due_ms,
                                    .stamp = run->stamp};
    struct stream_client *to = steady_stream_in_run(r, in.position, q.kind, q.id);
    const size_t size = STREAM_REQUEST_SIZE + q.id.size + q.body.size;

    if (to == NULL || !client_takes(a, to, size)) {
        return false;
    }
    if (__builtin_expect(a->spare == 0, false)) {
        by_stream_grow(&r->by_stream);
    }
    const struct stream_plain request = {.session = q.session,
                                         .hash = in.position,
                                         .ttl_ms = r->config.deadline_ms,
                                         .kind = q.kind,
                                         .flags = q.flags,
                                         .id = q.id,
                                         .body = q.body,
                                         .command = q.command};
    const uint32_t slot = asker_ask_taken(a, to, request, in.position, q.ticket);

    steady_note(r, q, in, slot, sum);
    return true;
}

/* Count those of the run that were taken. Returns as router_ask_plain() does, of the last. */
__attribute__((always_inline)) static inline bool
steady_end(struct router *r, const struct router_plain q, const struct steady_sum sum)
{
    struct steady_run *run = &r->by_stream.run;

    steady_count(r, q, run->session, sum);
    r->stats.requests += sum.count;
    r->asked = sum.asked;
    run->left -= sum.count;
    if (__builtin_expect(r->size <= run->size_max, true)) {
        return true;
    }
    run->left = 0;
    return r->size <= SHARE_SIZE;
}

/* One that is of no run. (by_stream.c) */
bool steady_ask_alone(struct router *r, const struct router_plain *q, struct router_effects *out);
/* router_ask_plain(), inline. What it is asked is no struct in memory, as long as all goes well. */
__attribute__((always_inline)) static inline bool
steady_ask(struct router *r, const struct router_plain q, struct router_effects *out)
{
    const struct steady_run *run = &r->by_stream.run;
    struct steady_sum sum = {0};

    if (__builtin_expect(steady_goes_on(run, q.session, q.now_us, q.known) && run->kind == q.kind &&
                             q.timeout_ms == 0 && steady_take(r, q, &sum),
                         true)) {
        return steady_end(r, q, sum);
    }
    const struct router_plain alone = q;

    return steady_ask_alone(r, &alone, out);
}

#endif
