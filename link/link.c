/* SPDX-License-Identifier: Apache-2.0
 *
 * A link to one peer: dials again after a loss, sends records, and reports when
 * the peer comes and goes.
 */
#include "link/links.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "link/inject.h"
#include "wire/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { US_PER_MS = 1000 };

struct link *link_new(struct links *links, const char *address, bool dialled)
{
    struct link *link = mem_new(1, sizeof *link);

    link->links = links;
    link->dialled = dialled;
    link->backoff_ms = links->config.retry_min_ms;
    (void)snprintf(link->address, sizeof link->address, "%s", address);
    list_push_back(&links->links, &link->in_links);
    return link;
}

void link_free(struct link *link)
{
    if (link->dialled) {
        link->links->transport->ops->dialler_free(link->dialler);
    }
    if (list_linked(&link->lost)) {
        list_remove(&link->lost);
    }
    list_remove(&link->in_links);
    mem_free(link);
}

bool link_may_log(struct link *link, const char *text)
{
    if (strcmp(link->logged, text) == 0) {
        return false;
    }
    (void)snprintf(link->logged, sizeof link->logged, "%s", text);
    return true;
}

void link_lost(struct link *link, const char *reason)
{
    (void)snprintf(link->reason, sizeof link->reason, "%s", reason);
    link->down_due = link->down_due || link->up;
    link->up = false;
    if (!list_linked(&link->lost)) {
        list_push_back(&link->links->lost, &link->lost);
    }
}

// Half of each wait is chance, so that a fleet does not knock in step.
static void retry_later(struct link *link)
{
    struct links *links = link->links;
    const struct links_config *config = &links->config;

    if (link->refused) {
        link->backoff_ms = config->retry_max_ms;
    }
    const uint64_t most_us = (uint64_t)link->backoff_ms * US_PER_MS;
    link->retry_at_us = links->now_us + prng_between(&links->prng, most_us / 2, most_us);
    link->backoff_ms =
        link->backoff_ms >= config->retry_max_ms / 2 ? config->retry_max_ms : link->backoff_ms * 2;
}

bool link_settle(struct link *link)
{
    struct links *links = link->links;
    const bool was_up = link->down_due;

    if (was_up && !link->forgotten) {
        link->down_due = false;
        links->counts.downs++;
        log_debug("link",
                  "down",
                  "peer=%s address=%s reason=\"%s\"",
                  link->peer.name,
                  link->address,
                  link->reason);
        if (links->now_us - link->up_us >= (uint64_t)LINK_STEADY_MS * US_PER_MS) {
            link->backoff_ms = links->config.retry_min_ms;
        }
        links->events.down(links->events.context, link, link->reason);
    }
    if (!link->dialled || link->forgotten) {
        if (link->dialling) {
            return false;
        }
        link_free(link);
        return true;
    }
    if (!was_up && !link->refused && link_may_log(link, link->reason)) {
        log_info("link", "unreachable", "address=%s reason=\"%s\"", link->address, link->reason);
    }
    retry_later(link);
    return true;
}

static void dial_start(struct link *link)
{
    link->refused = false;
    link->dialling = true;
    link->dial_us = link->links->now_us;
    link->links->transport->ops->dial(link->dialler);
}

void link_on_dial(struct link *link, struct stream *stream, int error)
{
    const struct transport_ops *ops = link->links->transport->ops;

    link->dialling = false;
    if (link->forgotten) {
        if (stream != NULL) {
            ops->close(stream);
            (void)ops->stream_free(stream, true);
        }
        return;
    }
    if (error == 0) {
        conn_new(link->links, link, stream);
        return;
    }
    const char *reason = ops->error_text(error);
    link->refused = false;
    if (link_may_log(link, reason)) {
        log_info("link", "unreachable", "address=%s reason=\"%s\"", link->address, reason);
    }
    link_lost(link, reason);
}

void link_on_timer(struct link *link)
{
    const uint64_t now_us = link->links->now_us;

    if (!link->dialled) {
        return;
    }
    if (link->dialling) {
        if (now_us - link->dial_us >= (uint64_t)LINK_DIAL_MS * US_PER_MS) {
            link->links->transport->ops->dial_stop(link->dialler);
        }
        return;
    }
    if (link->conn == NULL && !list_linked(&link->lost) && now_us >= link->retry_at_us) {
        dial_start(link);
    }
}

struct link *links_dial(struct links *links, const char *address)
{
    struct address parsed;

    if (address_parse(address, &parsed) != ERR_OK || parsed.port == 0) {
        return NULL;
    }
    struct link *link = link_new(links, address, true);
    link->dialler = links->transport->ops->dialler_new(links->transport, address, link);
    if (link->dialler == NULL) {
        list_remove(&link->in_links);
        mem_free(link);
        return NULL;
    }
    dial_start(link);
    return link;
}

void links_forget(struct links *links, struct link *link)
{
    ASSERT(link->links == links);
    link->forgotten = true;
    if (link->dialling) {
        links->transport->ops->dial_stop(link->dialler);
    }
    if (link->conn != NULL) {
        conn_close(link->conn, "forgotten");
    } else {
        link_lost(link, "forgotten");
    }
}

void link_drop(struct link *link, const char *reason)
{
    if (link->conn != NULL) {
        conn_close(link->conn, reason);
    }
}

void link_garbage(struct link *link, const char *what)
{
    if (link->conn != NULL) {
        conn_garbage(link->conn, what, (struct bytes){0});
    }
}

static enum err room_for(struct link *link, size_t size)
{
    struct links *links = link->links;
    const size_t frame_max =
        links->config.self.role == ROLE_COORDINATOR ? FRAME_SIZE_MAX : LINK_FRAME_MAX;

    if (!link->up) {
        return ERR_STOPPED;
    }
    if (size > frame_max) {
        return ERR_TOO_BIG;
    }
    const size_t queued = conn_queued(link->conn);
    if (queued > 0 && queued + size > links->config.queue_size_max) {
        links->counts.busy++;
        return ERR_BUSY;
    }
    return ERR_OK;
}

enum err link_send(struct link *link, enum frame_type type, struct bytes body)
{
    const enum err e = room_for(link, FRAME_HEADER_SIZE + body.size);

    if (e == ERR_OK && !inject_frame(true, (uint8_t)type, body)) {
        conn_put(link->conn, type, body);
    }
    return e;
}

/* The frame that is being made takes `count` records more, of so many bytes. */
static bool gathers(const struct conn *conn, enum frame_type type, size_t size, size_t count)
{
    return conn->gathering && conn->gather_type == type &&
           conn->gather_count + count <= FRAME_RECORDS_MAX &&
           conn->out.size - conn->gather_at + size <= LINK_RECORDS_SIZE_MAX;
}

static void put_records(struct conn *conn, enum frame_type type, struct bytes records, size_t count)
{
    if (!gathers(conn, type, records.size, count)) {
        conn->gathering = true;
        conn->gather_type = type;
        conn->gather_count = 0;
        conn->gather_at = frame_begin(&conn->out, type, conn_record_flags(conn));
    }
    buffer_put(&conn->out, records.data, records.size);
    conn->gather_count = (uint16_t)(conn->gather_count + count);
    frame_end(&conn->out, conn->gather_at, conn->gather_count);
    conn->gather_number = 0;
    conn->out_gated = true;
    conn_mark_dirty(conn);
}

static enum err send_record(struct link *link, enum frame_type type, struct bytes record,
                            uint64_t number)
{
    const enum err e = room_for(link, FRAME_HEADER_SIZE + record.size);

    ASSERT(frame_type_has_records((uint8_t)type));
    if (e == ERR_OK && !inject_frame(true, (uint8_t)type, record)) {
        put_records(link->conn, type, record, 1);
        link->conn->gather_number = number;
    }
    return e;
}

enum err link_send_records(struct link *link, enum frame_type type, struct bytes records,
                           size_t count)
{
    const enum err e = room_for(link, FRAME_HEADER_SIZE + records.size);

    ASSERT(frame_type_has_records((uint8_t)type));
    ASSERT(records.size <= LINK_RUN_SIZE_MAX && count <= FRAME_RECORDS_MAX);
    if (e == ERR_OK) {
        put_records(link->conn, type, records, count);
    }
    return e;
}

enum err link_send_record(struct link *link, enum frame_type type, struct bytes record)
{
    return send_record(link, type, record, 0);
}

enum err link_send_common(struct link *link, struct bytes same, struct bytes body, uint64_t number)
{
    const struct conn *conn = link->conn;
    struct links *links = link->links;

    ASSERT(number != 0);
    if (link->up && conn->gather_number == number && gathers(conn, FRAME_REQUEST, same.size, 1)) {
        links->counts.same++;
        return send_record(link, FRAME_REQUEST, same, number);
    }
    buffer_clear(&links->whole);
    request_put_whole(&links->whole, same, body);
    return send_record(link, FRAME_REQUEST, buffer_bytes(&links->whole), number);
}

void link_set_source(struct link *link, const struct link_source *source)
{
    static const struct link_source none;

    link->source = source == NULL ? none : *source;
    if (link->conn == NULL) {
        return;
    }
    if (link->conn->half_left > 0) {
        conn_close(link->conn, "a stream ended in the middle of a frame");
    } else if (source != NULL) {
        link_feed(link);
    }
}

void link_feed(struct link *link)
{
    if (link->conn != NULL && link->up) {
        link->conn->feeding = true;
        conn_mark_dirty(link->conn);
    }
}

bool link_is_up(const struct link *link)
{
    return link->up;
}

bool link_dialled(const struct link *link)
{
    return link->dialled;
}

const struct hello *link_peer(const struct link *link)
{
    return &link->peer;
}

uint32_t link_protocol(const struct link *link)
{
    return link->protocol;
}

const char *link_address(const struct link *link)
{
    return link->address;
}

size_t link_queued(const struct link *link)
{
    return link->conn == NULL ? 0 : conn_queued(link->conn);
}

void link_set_user(struct link *link, void *user)
{
    link->user = user;
}

void *link_user(const struct link *link)
{
    return link->user;
}
