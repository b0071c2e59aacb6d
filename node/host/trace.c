/* SPDX-License-Identifier: Apache-2.0
 *
 * What this node writes into a request that an operator follows (wire/trace.h).
 * By the clock of its loop: a hop's times are those of its turns.
 */
#include "node/host/inside.h"

#include "wire/session.h"
#include "wire/trace.h"

#include <string.h>

enum { MS = 1000 };

bool trace_is(const struct request_record *r)
{
    return (r->flags & (REQUEST_SESSION | REQUEST_CALL)) == REQUEST_SESSION && r->body.size >= 1 &&
           r->body.data[0] == NOTE_TRACE;
}

static uint32_t us_of(uint64_t us)
{
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* When it came here. */
static uint64_t arrived_us(const struct admission *in)
{
    const uint32_t ttl_ms = in->r->ttl_ms < ROOM_TTL_MAX_MS ? in->r->ttl_ms : ROOM_TTL_MAX_MS;

    return in->deadline_us - (uint64_t)ttl_ms * MS;
}

struct bytes trace_stamp(struct host *h, const struct admission *in, uint8_t did)
{
    const struct bytes hops = bytes_of(in->r->body.data + 1, in->r->body.size - 1);
    // Who held it says so on; the first that did is the one that said it first.
    const bool held = (in->r->flags & REQUEST_HELD) != 0 && !trace_has(hops, TRACE_HELD);
    const struct trace_hop hop = {
        .node = bytes_of(h->config.name, strlen(h->config.name)),
        .version = h->topology.view.ring.version,
        .waited_us = us_of(h->now_us - arrived_us(in)),
        .did = (uint8_t)(did | (held ? TRACE_HELD : 0)),
    };
    struct buffer all = {0};

    buffer_put(&all, hops.data, hops.size);
    trace_put(&all, &hop);
    buffer_clear(&h->inspection.trace);
    note_put(&h->inspection.trace,
             &(struct note){.type = NOTE_TRACE, .payload = buffer_bytes(&all)});
    buffer_fini(&all);
    return buffer_bytes(&h->inspection.trace);
}

struct bytes trace_ran(struct host *h, struct bytes hops, uint64_t began_us)
{
    buffer_clear(&h->inspection.trace);
    buffer_put(&h->inspection.trace, hops.data, hops.size);
    trace_set_ran(&h->inspection.trace, us_of(h->now_us - began_us));
    return buffer_bytes(&h->inspection.trace);
}
