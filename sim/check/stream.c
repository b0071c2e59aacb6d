/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks frames of streams, by what is checked of records.
 */
#include "wire/stream.h"
#include "sim/fleet.h"
#include "stream/servers.h"
#include "wire/cursor.h"

/* As a record says the same. */
static struct request_record record_of(const struct stream_request *r)
{
    return (struct request_record){.session = r->session,
                                   .ttl_ms = r->ttl_ms,
                                   .kind = r->kind,
                                   .flags = r->flags,
                                   .hops = r->hops,
                                   .id = r->id,
                                   .body = r->body};
}

/* What it has of its requests; false = it has none that can be read. */
static bool open_frame(struct fleet *f, const struct frame *frame, struct reader *records)
{
    struct stream_head head;

    if (stream_head_get(frame, &head, records) != ERR_OK) {
        world_violate(&f->world, "codec", "a frame of a stream does not decode");
        return false;
    }
    return (uint8_t)frame->type == STREAM_REQUEST;
}

static bool next_request(struct fleet *f, struct reader *records, struct request_record *record)
{
    struct stream_request r;

    if (records->left == 0) {
        return false;
    }
    if (stream_request_get(records, &r) != ERR_OK) {
        world_violate(&f->world, "codec", "a request of a stream does not decode");
        return false;
    }
    *record = record_of(&r);
    return true;
}

void check_stream_asked(struct fleet *f, const struct sim_node *n, const struct frame *frame)
{
    struct request_record r;
    struct reader records;

    if (!open_frame(f, frame, &records)) {
        return;
    }
    while (next_request(f, &records, &r)) {
        check_streamed(f, n, &r);
    }
}

void check_stream_came(struct fleet *f, const struct sim_node *n, struct process *from,
                       const struct frame *frame)
{
    struct request_record r;
    struct reader records;

    if (!open_frame(f, frame, &records)) {
        return;
    }
    while (next_request(f, &records, &r)) {
        check_hops(f, n, from, &r);
        check_kept(f, n, &r);
    }
}

/* Who says GONE has had no link of that stream for T_gone (R15), by a clock that is up to 6 % fast.
 * An incarnation that old files drew a second time is not the one that had the stream. */
static void check_gone(struct fleet *f, const struct sim_node *n, size_t gateway)
{
    const uint64_t gone_us = servers_config_default().gone_ms * 930;

    if (past_doubts(f, n->incarnation)) {
        return;
    }
    if (n->joined[gateway] != 0 ||
        (f->profile != PROFILE_CLOCKS && f->world.now_us - n->parted_us[gateway] < gone_us)) {
        world_violate(&f->world,
                      "gone",
                      "%s has forgotten the stream of %s, which was there %llu ms ago",
                      n->process.name,
                      f->gateway[gateway].process.name,
                      (unsigned long long)(f->world.now_us - n->parted_us[gateway]) / 1000);
    }
}

void check_stream_said(struct fleet *f, struct sim_node *n, const struct net_end *end,
                       const struct frame *frame)
{
    struct stream_head head;
    struct reader records;

    check_output(f, n);
    if (end->other->role == ROLE_GATEWAY) {
        const size_t gateway = (size_t)(fleet_gateway(end->other) - f->gateway);

        if ((uint8_t)frame->type == STREAM_GONE) {
            check_gone(f, n, gateway);
        } else if ((uint8_t)frame->type == STREAM_JOINED) {
            n->joined[gateway] = end->id;
        }
    }
    if (stream_head_get(frame, &head, &records) == ERR_OK &&
        head.version >> 40 < n->incarnation >> 40) {
        world_violate(&f->world,
                      "era",
                      "%s says as incarnation %llu by a stream what it said at version %llu",
                      n->process.name,
                      (unsigned long long)n->incarnation,
                      (unsigned long long)head.version);
    }
}

void check_stream_parted(const struct fleet *f, struct sim_node *n, const struct net_end *end)
{
    if (end->other->role == ROLE_GATEWAY) {
        const size_t gateway = (size_t)(fleet_gateway(end->other) - f->gateway);

        if (n->joined[gateway] == end->id) {
            n->joined[gateway] = 0;
            n->parted_us[gateway] = f->world.now_us;
        }
    }
}

/* Nobody knows what became of those that were sent by a stream that its node has forgotten (R14).
 */
void check_stream_heard(struct fleet *f, const struct sim_gateway *g, const struct sim_node *n,
                        const struct frame *frame)
{
    if ((uint8_t)frame->type != STREAM_GONE) {
        return;
    }
    for (size_t i = 0; i < f->ledger.ask_count; i++) {
        struct sim_ask *a = &f->ledger.ask[i];

        a->forgotten = a->forgotten || (!a->answered && a->session->gateway == g &&
                                        (a->streamed >> (n - f->node) & 1) != 0);
    }
}
