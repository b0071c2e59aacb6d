/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams at the simulated nodes: who speaks them, frames to the host, and from its logs to the
 * links.
 */
#include "base/table.h"
#include "sim/fleet.h"
#include "wire/cursor.h"
#include "wire/stream.h"

void streams_draw(struct fleet *f, uint64_t seed)
{
    enum { ONE_OF = 4 };
    struct prng aside = {.state = seed ^ 0x73747265616d73u};
    const bool mixed = prng_between(&aside, 1, ONE_OF) == 1;
    const uint64_t older = prng_between(&aside, 0, f->nodes + f->gateways - 1);
    const bool drawn = prng_between(&aside, 1, ONE_OF) > 1;
    // Who does not speak them does not ask again what may have run.
    const bool all = f->bank != NULL;
    const bool any =
        f->options.streams == STREAMS_DRAWN ? drawn : f->options.streams != STREAMS_NEVER;

    for (unsigned i = 0; i < f->nodes + f->gateways; i++) {
        fleet_process(f, f->coordinators + i)->streams = all || (any && (!mixed || i != older));
    }
}

/* The node's outputs may leave. */
static bool may_hand_out(const struct fleet *f, const struct sim_node *n)
{
    return n->core != NULL && n->out_at == n->out.count && f->world.checker == NULL &&
           !node_is_gated(f, n);
}

void node_pour(struct fleet *f, struct sim_node *n)
{
    struct sendlog *log = NULL;
    uint64_t peer = 0;

    while (may_hand_out(f, n) && (log = host_unsent(n->core, &peer)) != NULL) {
        struct net_end *end = network_end(&f->network, peer);

        if (end != NULL) {
            network_pour(&f->network, end, log);
        }
    }
}

void node_room(struct fleet *f, struct sim_node *n, const struct net_end *end)
{
    if (n->core != NULL) {
        host_feed(n->core, end->id);
        node_pour(f, n);
    }
}

void node_frame(struct fleet *f, struct sim_node *n, const struct net_end *end,
                const struct frame *frame)
{
    if (n->core != NULL) {
        check_stream_came(f, n, end->other, frame);
        serve_frame(f, n, end->id, frame);
    }
}

/* ---- what links carry ---- */

static void trace_request(struct fleet *f, const struct net_end *end,
                          const struct stream_request *r)
{
    const struct request_record record = {.kind = r->kind, .flags = r->flags, .body = r->body};
    struct reader in = {.at = r->body.data, .left = r->body.size};
    const bool of_account = r->kind == FLEET_KIND_ACCOUNT && (r->flags & REQUEST_CALL) == 0;

    TRACE(&f->world,
          end->me->name,
          "   asks %.*s by name %llx, %u ms left: request %llu%s",
          (int)r->id.size,
          (const char *)r->id.data,
          (unsigned long long)r->rid,
          r->ttl_ms,
          (unsigned long long)(of_account ? get_u64(&in) : check_uid(&record)),
          (r->flags & REQUEST_CALL) != 0 ? ", an actor's" : "");
}

/* Which requests a frame has, and which answers. */
static void trace_records(struct fleet *f, const struct net_end *end, int type,
                          struct reader records)
{
    struct stream_request r;
    struct stream_answer a;

    if (!f->world.print && !f->world.keep) {
        return;
    }
    while (type == STREAM_REQUEST && stream_request_get(&records, &r) == ERR_OK) {
        trace_request(f, end, &r);
    }
    while (type == STREAM_ANSWER && stream_answer_get(&records, &a) == ERR_OK) {
        TRACE(&f->world,
              end->me->name,
              "   answers name %llx: code %d, %llu",
              (unsigned long long)a.rid,
              a.code,
              (unsigned long long)a.aux);
    }
}

void streams_on_poured(void *context, struct net_end *end, const struct frame *frame)
{
    struct fleet *f = context;
    struct stream_head head;
    struct reader records;
    const enum err e = stream_head_get(frame, &head, &records);

    if (e == ERR_OK) {
        TRACE(&f->world,
              end->me->name,
              "-> %s by link %llu: frame %d of a stream, first %llu, count %u, ack %llu, version "
              "%llu",
              end->other->name,
              (unsigned long long)end->id,
              (int)frame->type,
              (unsigned long long)head.first,
              frame->count,
              (unsigned long long)head.ack,
              (unsigned long long)head.version);
        trace_records(f, end, (uint8_t)frame->type, records);
    }
    if (end->me->role == ROLE_NODE) {
        check_stream_said(f, fleet_node(end->me), end, frame);
    }
    if (end->other->role == ROLE_NODE) {
        check_stream_asked(f, fleet_node(end->other), frame);
    }
}
