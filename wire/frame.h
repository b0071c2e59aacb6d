/* SPDX-License-Identifier: Apache-2.0
 *
 * The one frame of every internal link.
 *
 *     0       4      5       6       8
 *     +-------+------+-------+-------+----------------------+
 *     | size  | type | flags | count | body …               |
 *     +-------+------+-------+-------+----------------------+
 *       u32     u8     u8      u16     size - 8 bytes
 *
 * Little endian. `size` counts the header. `count` is the number of records in
 * the body of a data frame, at least 1; 1 for everything else. `flags` is 0.
 * Unknown types and flags are refused: a later protocol version says so in its
 * hello before it uses them.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_HEADER_SIZE = 8,
    FRAME_SIZE_MAX = 64 * 1024 * 1024, /* Raft snapshots; data frames stay below 2 MiB */
    FRAME_RECORDS_MAX = 65535,
    FRAME_MARK = 1, /* the flag of records on links of the next protocol: wire/versions.h */
};

enum frame_type {
    FRAME_HELLO = 1,    /* protobuf Hello: first frame of each side */
    FRAME_WELCOME = 2,  /* empty: the hello was accepted; u32 protocol on links of the next one */
    FRAME_REFUSED = 3,  /* protobuf HelloRefused, then the link closes */
    FRAME_PING = 4,     /* empty */
    FRAME_PONG = 5,     /* empty */
    FRAME_CONTROL = 8,  /* protobuf Control (wire/control.proto) */
    FRAME_RAFT = 9,     /* raft/message.h, coordinator to coordinator */
    FRAME_REQUEST = 16, /* count request records, wire/record.h */
    FRAME_ANSWER = 17,  /* count answer records */
    FRAME_STATE = 18,   /* count state records: actors handed over */
    FRAME_STATE_ACK = 19,
    FRAME_PUSH = 20, /* count push records, wire/session.h: node to gateway */
    // Of streams, wire/stream.h; on links of LINK_PROTOCOL_STREAMS and later.
    FRAME_STREAM_REQUEST = 24, /* asker to server: count requests */
    FRAME_STREAM_ANSWER = 25,  /* server to asker: count answers */
    FRAME_STREAM_BEGIN = 26,   /* asker: a stream that has no number yet; `first` is the
                                  connection's epoch */
    FRAME_STREAM_JOIN = 27,    /* asker: the same stream by a new connection; likewise */
    FRAME_STREAM_JOINED = 28,  /* server: go on behind `ack`; `first` is the epoch it answers */
    FRAME_STREAM_GONE = 29,    /* server: it has forgotten the stream; likewise */
    FRAME_STREAM_ACK = 30,     /* either: nothing but `ack` */
};

struct frame {
    enum frame_type type;
    uint8_t flags; /* 0; of records it may be FRAME_MARK */
    uint16_t count;
    struct bytes body; /* borrowed */
};

/* Look at the front of `in`. ERR_OK: `frame` borrows from `in` and `size` is how much it took;
 * ERR_BUSY: not whole yet (size = bytes wanted in all, or 0 when even that is unknown);
 * ERR_CORRUPT: no frame of ours (bad type, size below 8 or above `size_max`). */
MUST_CHECK enum err frame_decode(struct bytes in, size_t size_max, struct frame *frame,
                                 size_t *size);

/* True for the types whose body is `count` records of wire/record.h. */
bool frame_type_has_records(uint8_t type);
/* True for those of streams. */
static inline bool frame_type_is_stream(uint8_t type)
{
    return type >= FRAME_STREAM_REQUEST && type <= FRAME_STREAM_ACK;
}

/* Append a frame in two steps: frame_begin() puts a header and returns where, the caller appends
 * the body, frame_end() writes its size and count (1..FRAME_RECORDS_MAX) into that header. It may
 * be called again after more body. The whole is at most FRAME_SIZE_MAX. */
size_t frame_begin(struct buffer *out, enum frame_type type, uint8_t flags);
void frame_end(struct buffer *out, size_t at, uint16_t count);

/* Append a whole frame; `body` is copied. */
void frame_put(struct buffer *out, enum frame_type type, uint16_t count, struct bytes body);

#endif
