/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks frames of streams, by what is checked of records.
 */
#include "wire/stream.h"
#include "sim/fleet.h"
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

void check_stream_said(struct fleet *f, const struct sim_node *n, const struct frame *frame)
{
    struct stream_head head;
    struct reader records;

    check_output(f, n);
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
