/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection of a link: frames in and out, limits, pings, and its end.
 */
#include "link/links.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "link/inject.h"
#include "wire/access.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    US_PER_MS = 1000,
    GARBAGE_SHOWN = 16,
    PROGRESS_SIZE = 16 * 1024, /* of a frame that is not whole yet: as good as a sign of life */
};

static bool conn_is_up(const struct conn *conn)
{
    return conn->link != NULL && conn->link->up;
}

static size_t frame_limit(const struct conn *conn)
{
    if (!conn_is_up(conn)) {
        return LINK_GREETING_MAX;
    }
    return conn->peer.role == ROLE_COORDINATOR ? FRAME_SIZE_MAX : LINK_FRAME_MAX;
}

static void buffer_relax(struct buffer *b)
{
    buffer_clear(b);
    if (b->cap > LINK_KEEP_SIZE_MAX) {
        buffer_fini(b);
    }
}

static const struct transport_ops *ops_of(const struct conn *conn)
{
    return conn->links->transport->ops;
}

// The buffer grows with what arrives, never with what a header claims.
static void receive_start(struct conn *conn)
{
    struct buffer *in = conn->tls == NULL ? &conn->in : &conn->raw;
    const size_t least = conn_is_up(conn) ? LINK_RECEIVE_SIZE : LINK_GREETING_RECEIVE_SIZE;

    buffer_consume(&conn->in, conn->in_at);
    conn->in_at = 0;
    if (conn->in.size == 0) {
        buffer_relax(&conn->in);
    }
    if (in->cap < least) {
        (void)buffer_reserve(in, least - in->size);
    } else if (in->size == in->cap) {
        (void)buffer_reserve(in, 1);
    }
    ops_of(conn)->read(conn->stream, in->data + in->size, in->cap - in->size);
}

static bool is_late(const struct conn *conn, bool gated)
{
    return gated && conn->links->gate_us != UINT64_MAX &&
           clock_boottime_us() >= conn->links->gate_us;
}

void conn_new(struct links *links, struct link *link, struct stream *stream)
{
    struct conn *conn = mem_new(1, sizeof *conn);

    ASSERT(link->conn == NULL);
    conn->links = links;
    conn->link = link;
    conn->stream = stream;
    conn->since_us = conn->heard_us = conn->pinged_us = links->now_us;
    stream->conn = conn;
    link->conn = conn;
    list_push_back(&links->conns, &conn->in_links);
    if (!link->dialled) {
        links->accepted_count++;
    }
    secure_start(conn);
    greeting_start(conn);
    receive_start(conn);
}

void conn_close(struct conn *conn, const char *reason)
{
    struct links *links = conn->links;
    struct link *link = conn->link;

    if (conn->closing) {
        return;
    }
    conn->closing = true;
    conn->link = NULL;
    link->conn = NULL;
    if (!link->dialled) {
        links->accepted_count--;
    }
    if (list_linked(&conn->dirty)) {
        list_remove(&conn->dirty);
    }
    list_remove(&conn->in_links);
    list_push_back(&links->closing, &conn->in_links);
    ops_of(conn)->close(conn->stream);
    link_lost(link, reason);
}

bool conn_reap(struct conn *conn, bool force)
{
    if (!ops_of(conn)->stream_free(conn->stream, force)) {
        return false;
    }
    list_remove(&conn->in_links);
    buffer_fini(&conn->in);
    buffer_fini(&conn->out);
    buffer_fini(&conn->sending);
    buffer_fini(&conn->raw);
    buffer_fini(&conn->sealed);
    tls_free(conn->tls);
    mem_free(conn);
    return true;
}

void conn_garbage(struct conn *conn, const char *what, struct bytes seen)
{
    char shown[4 * GARBAGE_SHOWN + 1] = "";
    char reason[LINK_REASON_MAX];
    size_t at = 0;

    for (size_t i = 0; i < seen.size && i < GARBAGE_SHOWN; i++) {
        const uint8_t c = seen.data[i];
        const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';

        at += (size_t)snprintf(shown + at, sizeof shown - at, plain ? "%c" : "\\x%02x", c);
    }
    (void)snprintf(reason,
                   sizeof reason,
                   "%s: %s",
                   conn_is_up(conn) ? "broken frame" : "not a ringhold link",
                   what);
    conn->links->counts.garbage++;
    if (links_may_log(conn->links)) {
        log_warn("link",
                 "garbage",
                 "peer=%s address=%s reason=\"%s\" bytes=\"%s\"",
                 conn->greeted ? conn->peer.name : "?",
                 conn->link->address,
                 reason,
                 shown);
    }
    conn_close(conn, reason);
}

/* May this peer say that to us? What a stranger may not say, or who is none any more, ends the
 * connection, and shows `in`; else it is dropped. */
static bool may_say(struct conn *conn, const struct frame *frame, struct bytes in)
{
    const bool up = conn_is_up(conn);
    const struct hello *peer = &conn->peer;
    const enum access_message m = access_judge(
        frame, up ? (unsigned)peer->role : ROLE_STRANGER, conn->links->config.self.role);
    char text[LINK_REASON_MAX];

    if (m == ACCESS_NONE) {
        return true;
    }
    if (!up || frame->type <= FRAME_REFUSED) {
        conn_garbage(conn,
                     up ? "a second greeting on a link that is up"
                        : "the first message is not a hello",
                     in);
        return false;
    }
    access_count(peer->role);
    (void)snprintf(text, sizeof text, "%s may not say %s", peer->name, access_text(m));
    if (links_may_log_refusal(conn, text)) {
        log_warn("link",
                 "message_refused",
                 "peer=%s role=%s address=%s message=\"%s\" reason=\"its role may not say it\"",
                 peer->name,
                 link_role_name(peer->role),
                 conn->link->address,
                 access_text(m));
    }
    return false;
}

static void on_frame(struct conn *conn, const struct frame *frame)
{
    struct links *links = conn->links;

    switch (frame->type) {
    case FRAME_HELLO:
    case FRAME_WELCOME:
    case FRAME_REFUSED:
        greeting_on_frame(conn, frame);
        return;
    case FRAME_PING:
        // One that sends pings and never reads gets no pongs, not our memory.
        if (conn_queued(conn) < links->config.queue_size_max) {
            conn_put(conn, FRAME_PONG, (struct bytes){0});
        }
        return;
    case FRAME_PONG:
        return;
    case FRAME_CONTROL:
    case FRAME_RAFT:
    case FRAME_REQUEST:
    case FRAME_ANSWER:
    case FRAME_STATE:
    case FRAME_STATE_ACK:
    case FRAME_PUSH:
    case FRAME_STREAM_REQUEST:
    case FRAME_STREAM_ANSWER:
    case FRAME_STREAM_BEGIN:
    case FRAME_STREAM_JOIN:
    case FRAME_STREAM_JOINED:
    case FRAME_STREAM_GONE:
    case FRAME_STREAM_ACK:
        if (!inject_frame(false, (uint8_t)frame->type, frame->body)) {
            links->events.frame(links->events.context, conn->link, frame);
        }
        return;
    }
    UNREACHABLE();
}

/* Most likely what is wrong with bytes that are no frame, on a link without TLS. */
static const char *strange(struct bytes in)
{
    static const uint8_t tls[] = {0x16, 0x03}; // a handshake, version 3.x

    return in.size >= sizeof tls && memcmp(in.data, tls, sizeof tls) == 0
               ? "the peer uses TLS, for which this process has no certificate"
               : "no frame";
}

/* Bytes alone are none: who sends one now and then, and no pong, is no process at work. */
static void is_heard(struct conn *conn)
{
    conn->heard = true;
    conn->unheard = 0;
}

static void deliver(struct conn *conn)
{
    while (!conn->closing && !conn->ending) {
        const struct bytes in = bytes_of(conn->in.data + conn->in_at, conn->in.size - conn->in_at);
        struct frame frame;
        size_t size;
        const enum err e = frame_decode(in, frame_limit(conn), &frame, &size);

        if (e == ERR_BUSY) {
            return;
        }
        if (e != ERR_OK) {
            conn_garbage(conn, strange(in), in);
            return;
        }
        conn->in_at += size;
        is_heard(conn);
        if (!may_say(conn, &frame, in)) {
            continue;
        }
        const bool of_streams = frame_type_is_stream((uint8_t)frame.type);
        if (frame_type_has_records((uint8_t)frame.type) && frame.flags != conn_record_flags(conn)) {
            conn_garbage(conn, "records of another protocol than the link's", in);
        } else if (of_streams && conn->protocol < LINK_PROTOCOL_STREAMS) {
            conn_garbage(conn, "a frame of streams on a link that has none", in);
        } else {
            on_frame(conn, &frame);
        }
    }
}

void conn_on_read(struct conn *conn, size_t count, int error)
{
    if (count == 0) {
        conn_close(conn,
                   error == 0 ? "peer closed the connection" : ops_of(conn)->error_text(error));
        return;
    }
    conn->links->counts.bytes_in += count;
    conn->unheard += count;
    if (conn->unheard >= PROGRESS_SIZE) {
        is_heard(conn);
    }
    if (conn->tls == NULL) {
        conn->in.size += count;
        deliver(conn);
    } else if (secure_take(conn, count)) {
        deliver(conn);
    }
    if (conn->ending) {
        conn->in_at = conn->in.size;
    }
    if (!conn->closing) {
        receive_start(conn);
    }
}

static void on_written(struct conn *conn, size_t count)
{
    conn->sent += count;
    conn->links->counts.bytes_out += count;
    if (conn->sent == conn->sending.size) {
        conn->sent = 0;
        buffer_relax(&conn->sending);
    }
}

static bool has_source(const struct conn *conn)
{
    return conn_is_up(conn) && conn->link->source.take != NULL;
}

/* `sending` is out: what gathered meanwhile is next. */
static void go_on(struct conn *conn)
{
    if (conn->out.size > 0 || conn->sealed.size > 0 || conn->feeding) {
        conn_mark_dirty(conn);
    } else if (conn->ending) {
        conn_close(conn, "refused");
    }
}

static void send_start(struct conn *conn)
{
    const struct bytes rest =
        bytes_of(conn->sending.data + conn->sent, conn->sending.size - conn->sent);
    size_t count = 0;
    const int error = ops_of(conn)->write(conn->stream, rest, &count);
    if (error != 0) {
        conn_close(conn, ops_of(conn)->error_text(error));
        return;
    }
    conn->writing = count < rest.size;
    on_written(conn, count);
    if (!conn->writing) {
        go_on(conn);
    }
}

/* A crash test wants a frame lost: of a stream none is, but with its link. */
static bool is_lost(struct conn *conn, struct bytes span)
{
    const bool lost = conn->half_left == 0 && inject_frame(true, span.data[4], span);

    if (lost) {
        conn_close(conn, "a frame of a stream is to be lost");
    }
    return lost;
}

/* Write what the source has, from where it lies, until the network takes no more, or we have
 * something to say ourselves. */
static void write_source(struct conn *conn)
{
    while (!conn->writing && (conn->half_left > 0 || conn_queued(conn) == 0)) {
        const struct link_source *source = &conn->link->source;
        const struct bytes span = source->take(source->context);
        size_t count = 0;

        if (span.size == 0 && conn->half_left > 0) {
            conn_close(conn, "a stream ended in the middle of a frame");
            return;
        }
        if (span.size == 0) {
            conn->feeding = false;
            break;
        }
        if (is_late(conn, source->gated)) {
            conn_mark_dirty(conn); // the next flush looks again
            return;
        }
        if (is_lost(conn, span)) {
            return;
        }
        const int error = ops_of(conn)->write(conn->stream, span, &count);
        if (error != 0) {
            conn_close(conn, ops_of(conn)->error_text(error));
            return;
        }
        source->sent(source->context, count);
        conn->links->counts.bytes_out += count;
        conn->half_left = span.size - count;
        conn->writing = count < span.size;
    }
    if (!conn->writing) {
        go_on(conn);
    }
}

/* Copy what the source has behind our own frames, where it can't be written from where it lies:
 * TLS seals it, and nng's threads borrow what they write. */
static void copy_source(struct conn *conn)
{
    const struct link_source *source = &conn->link->source;

    while (conn->out.size < LINK_RECORDS_SIZE_MAX) {
        const struct bytes span = source->take(source->context);

        if (span.size == 0) {
            conn->feeding = false;
            return;
        }
        if (is_lost(conn, span)) {
            return;
        }
        conn->gathering = false;
        conn->out_gated = conn->out_gated || source->gated;
        buffer_put(&conn->out, span.data, span.size);
        source->sent(source->context, span.size);
    }
}

void conn_on_write(struct conn *conn, size_t count, int error)
{
    conn->writing = false;
    if (error != 0) {
        conn_close(conn, ops_of(conn)->error_text(error));
        return;
    }
    if (conn->half_left > 0) {
        conn_mark_dirty(conn);
        return;
    }
    on_written(conn, count);
    if (conn->sending.size == 0) {
        go_on(conn);
    } else if (is_late(conn, conn->sending_gated)) {
        conn->halted = true;
        conn_mark_dirty(conn);
    } else {
        send_start(conn);
    }
}

void conn_hear(struct conn *conn)
{
    if (conn->heard) {
        conn->heard = false;
        conn->heard_us = conn->links->now_us;
    }
}

/* When its peer was last heard of or pinged. */
static uint64_t quiet_since_us(const struct conn *conn)
{
    return conn->heard_us > conn->pinged_us ? conn->heard_us : conn->pinged_us;
}

uint64_t conn_ping_us(const struct conn *conn)
{
    return quiet_since_us(conn) + (uint64_t)conn->links->config.ping_ms * US_PER_MS;
}

uint64_t conn_due_us(const struct conn *conn)
{
    const uint64_t silent_us =
        conn->heard_us + (uint64_t)conn->links->config.silence_ms * US_PER_MS;
    const uint64_t ping_us = conn_ping_us(conn);

    return ping_us < silent_us ? ping_us : silent_us;
}

void conn_on_timer(struct conn *conn, uint64_t early_us)
{
    const struct links_config *config = &conn->links->config;
    const uint64_t now_us = conn->links->now_us;

    if (!conn_is_up(conn)) {
        if (now_us - conn->since_us >= (uint64_t)config->hello_ms * US_PER_MS) {
            conn->links->counts.silent++;
            conn_close(conn, "no hello came in time");
        }
        return;
    }
    if (now_us - conn->heard_us >= (uint64_t)config->silence_ms * US_PER_MS) {
        conn->links->counts.silent++;
        conn_close(conn, "the peer sends nothing");
        return;
    }
    if (now_us + early_us >= conn_ping_us(conn)) {
        conn->pinged_us = now_us;
        conn_put(conn, FRAME_PING, (struct bytes){0});
    }
}

void conn_put(struct conn *conn, enum frame_type type, struct bytes body)
{
    conn->gathering = false;
    frame_put(&conn->out, type, 1, body);
    conn_mark_dirty(conn);
}

void conn_mark_dirty(struct conn *conn)
{
    if (!list_linked(&conn->dirty)) {
        list_push_back(&conn->links->dirty, &conn->dirty);
    }
}

/* What this side has to say by itself: all of it, or until the network takes no more. */
static void flush_own(struct conn *conn)
{
    if (conn->out.size == 0 && conn->sealed.size == 0 && !conn->halted) {
        return;
    }
    if (is_late(conn, conn->halted ? conn->sending_gated : conn->out_gated)) {
        conn_mark_dirty(conn); // the next flush looks again
        return;
    }
    if (conn->halted) {
        conn->halted = false;
        send_start(conn);
        return;
    }
    ASSERT(conn->sending.size == 0);
    if (conn->tls != NULL) {
        secure_seal(conn);
        if (conn->sealed.size == 0) {
            return; // the handshake comes first
        }
    }
    struct buffer *ready = conn->tls == NULL ? &conn->out : &conn->sealed;
    const struct buffer empty = conn->sending;
    conn->sending = *ready;
    *ready = empty;
    conn->sending_gated = conn->out_gated;
    conn->out_gated = false;
    conn->gathering = false;
    if (conn->tls != NULL && is_late(conn, conn->sending_gated)) { // To seal much takes a while.
        conn->halted = true;
        conn_mark_dirty(conn);
        return;
    }
    send_start(conn);
}

void conn_flush(struct conn *conn)
{
    const bool in_place = conn->tls == NULL && conn->links->transport->writes_at_once;

    if (conn->writing) {
        return;
    }
    // Nothing of ours may stand in the middle of the source's frame.
    if (conn->half_left == 0) {
        if (!in_place && conn->feeding && !conn->halted && has_source(conn)) {
            copy_source(conn);
        }
        if (conn->closing) {
            return;
        }
        flush_own(conn);
    }
    if (in_place && conn->feeding && !conn->closing && has_source(conn)) {
        write_source(conn);
    }
}

size_t conn_queued(const struct conn *conn)
{
    return conn->out.size + conn->sealed.size + conn->sending.size - conn->sent;
}
