/* SPDX-License-Identifier: Apache-2.0
 *
 * The short way of a client's request through the router, inline: one of a run (struct steady_run
 * of by_stream.h). Nearly all are, so what is told apart for the others is not looked at for them.
 * Beside by_stream.c only gateway/client may include this, and call steady_ask().
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

/* Note what has got a slot. */
__attribute__((always_inline)) static inline void steady_note(struct router *r,
                                                              const struct router_plain p,
                                                              const struct steady_asked in,
                                                              uint32_t slot)
{
    struct by_stream *b = &r->by_stream;
    const size_t size = INQUIRY_MEMORY + STREAM_REQUEST_SIZE + p.id.size + p.body.size;

    if (__builtin_expect(slot >= b->cap, false)) {
        by_stream_grow(b);
    }
    b->due_ms[slot] = in.due_ms;
    struct inquiry *q = &b->inquiry[slot];
    q->session = in.session;
    q->origin = p.origin;
    q->stamp = in.stamp;
    q->size = (uint32_t)size;
    q->flags = p.flags;
    q->must = p.must;
    q->lost = q->overloaded = false;
    r->size += size;
    r->must += p.must ? 1 : 0;
    r->stats.in_flight++;
    b->count++;
    in.session->unfinished++;
    if ((p.flags & REQUEST_NO_REPLY) != 0) {
        in.session->told++;
    }
    if (p.origin != 0) {
        share_add(&r->by_entity, in.position, size);
        share_add(&r->by_origin, p.origin, size);
    }
}

/* The owner's stream; NULL = none is known. */
__attribute__((always_inline)) static inline struct stream_client *
steady_stream(const struct router *r, uint64_t position, uint16_t kind, struct bytes id)
{
    const struct peer *peer = route_peer_of(r, position, kind, id);

    return peer == NULL || peer_lacks(peer, kind) ? NULL : peer->stream;
}

__attribute__((always_inline)) static inline bool steady_is_of_run(const struct steady_run *run,
                                                                   const struct router_plain q)
{
    return run->left > 0 && run->session_id == q.session && run->now_us == q.now_us &&
           run->kind == q.kind && run->known == q.known && q.timeout_ms == 0;
}

/* The short way of a client's request. False: nothing was changed. */
__attribute__((always_inline)) static inline bool steady_ask_in_run(struct router *r,
                                                                    const struct router_plain q)
{
    struct steady_run *run = &r->by_stream.run;
    struct stream_asker *a = &r->by_stream.asker;

    if (__builtin_expect(!steady_is_of_run(run, q), false)) {
        return false;
    }
    const struct steady_asked in = {.session = run->session,
                                    .position = siphash_inline(run->key, q.id),
                                    .due_ms = run->due_ms,
                                    .stamp = run->stamp};
    struct stream_client *to = steady_stream(r, in.position, q.kind, q.id);
    const size_t size = STREAM_REQUEST_SIZE + q.id.size + q.body.size;

    if (to == NULL || !client_takes(a, to, size)) {
        return false;
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

    steady_note(r, q, in, slot);
    r->stats.requests++;
    r->asked = in.position;
    return true;
}

/* One that is of no run. (by_stream.c) */
bool steady_ask_alone(struct router *r, const struct router_plain *q, struct router_effects *out);
/* router_ask_plain(), inline. What it is asked is no struct in memory, as long as all goes well. */
__attribute__((always_inline)) static inline bool
steady_ask(struct router *r, const struct router_plain q, struct router_effects *out)
{
    struct steady_run *run = &r->by_stream.run;

    if (__builtin_expect(steady_ask_in_run(r, q), true)) {
        run->left--;
        if (__builtin_expect(r->size <= run->size_max, true)) {
            return true;
        }
        run->left = 0;
        return r->size <= SHARE_SIZE;
    }
    const struct router_plain alone = q;

    return steady_ask_alone(r, &alone, out);
}

#endif
