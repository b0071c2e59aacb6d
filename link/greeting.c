/* SPDX-License-Identifier: Apache-2.0
 *
 * The greeting: who may talk to whom, before anything else is said.
 *
 *     dialling side                    accepting side
 *         HELLO  ------------------------->
 *                <-------------------------  HELLO, WELCOME    or  HELLO, REFUSED, close
 *         WELCOME  ----------------------->                    up at once when it arrives
 *         up when both are welcome
 *
 * Each side judges the other's hello, so each knows the reason of a refusal in
 * its own words and logs it once.
 */
#include "link/links.h"

#include "base/log.h"
#include "wire/access.h"
#include "wire/cursor.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void log_refusal(struct conn *conn, enum refusal kind, const char *reason)
{
    const char *by = kind == REFUSAL_BY_PEER ? "peer" : "us";
    char text[LINK_REASON_MAX];

    (void)snprintf(text, sizeof text, "%s/%s: %s", conn->peer.name, by, reason);
    conn->links->counts.refused++;
    refusals_count(kind);
    if (links_may_log_refusal(conn, text)) {
        log_warn("link",
                 "refused",
                 "peer=%s role=%s address=%s by=%s reason=\"%s\"",
                 conn->greeted ? conn->peer.name : "?",
                 conn->greeted ? link_role_name(conn->peer.role) : "?",
                 conn->link->address,
                 by,
                 reason);
    }
}

static void tell_owner(struct conn *conn, const char *reason)
{
    const struct link_events *events = &conn->links->events;

    conn->link->refused = true;
    if (conn->link->dialled && events->refused != NULL) {
        events->refused(events->context, conn->link, reason);
    }
}

/* `theirs` is the reason in the peer's words. */
static void refuse(struct conn *conn, enum refusal kind, const char *reason, const char *theirs)
{
    struct buffer body = {0};

    log_refusal(conn, kind, reason);
    refusal_put(&body, theirs);
    conn_put(conn, FRAME_REFUSED, buffer_bytes(&body));
    buffer_fini(&body);
    conn->ending = true;
    tell_owner(conn, reason);
}

static void say_hello(struct conn *conn)
{
    struct buffer body = {0};

    conn->said = conn->links->config.self.incarnation;
    conn->said_fleet = fleet_id_known(conn->links->config.self.fleet);
    hello_put(&body, &conn->links->config.self);
    conn_put(conn, FRAME_HELLO, buffer_bytes(&body));
    buffer_fini(&body);
}

void greeting_start(struct conn *conn)
{
    // The accepting side waits: a port scanner learns nothing from it.
    if (conn->link->dialled) {
        say_hello(conn);
    }
}

/* At info where the two are of different versions: an upgrade is under way, or was forgotten. */
static void log_up(const struct link *link)
{
    const struct hello *self = &link->links->config.self;
    const bool same = link->peer.protocol.newest == self->protocol.newest ||
                      link->peer.role == ROLE_CLI || self->role == ROLE_CLI;

    const enum log_level level = same ? LOG_DEBUG : LOG_INFO;

    if (log_enabled(level)) {
        log_write(level,
                  "link",
                  same ? "up" : "mixed",
                  "peer=%s role=%s address=%s dialled=%d product=\"%s\" protocol=%" PRIu32,
                  link->peer.name,
                  link_role_name(link->peer.role),
                  link->address,
                  link->dialled,
                  link->peer.product,
                  link->protocol);
    }
}

static void up_if_both_welcome(struct conn *conn)
{
    struct links *links = conn->links;
    struct link *link = conn->link;

    if (!conn->accepted || !conn->welcomed) {
        return;
    }
    // A gateway would take me for the one before for as long as the link is up, and send nothing.
    if (conn->said != links->config.self.incarnation) {
        conn_close(conn, "this process's incarnation changed since its hello");
        return;
    }
    // Nor would who belongs to another fleet know of it.
    if (conn->said_fleet != fleet_id_known(links->config.self.fleet)) {
        conn_close(conn, "this process learned its fleet since its hello");
        return;
    }
    link->up = true;
    link->refused = false;
    link->logged[0] = '\0';
    link->peer = conn->peer;
    link->protocol = conn->protocol;
    link->up_us = links->now_us;
    links->counts.ups++;
    log_up(link);
    links->events.up(links->events.context, link);
}

/* What WELCOME says of the choice: nothing, and its number from the next protocol on. */
static struct bytes choice(const struct conn *conn, uint8_t bytes[4])
{
    struct writer w = {.at = bytes, .left = 4};

    put_u32(&w, conn->protocol);
    return bytes_of(bytes, conn->protocol > LINK_PROTOCOL_TODAY ? 4 : 0);
}

static void say_welcome(struct conn *conn)
{
    uint8_t bytes[4];

    conn_put(conn, FRAME_WELCOME, choice(conn, bytes));
}

static void on_welcome(struct conn *conn, const struct frame *frame)
{
    uint8_t bytes[4];
    const struct bytes wanted = choice(conn, bytes);

    if (!conn->accepted || conn->welcomed) {
        conn_garbage(conn, "welcome before hello", frame->body);
    } else if (frame->body.size != wanted.size ||
               memcmp(frame->body.data, wanted.data, wanted.size) != 0) {
        conn_garbage(conn, "a welcome to another protocol than the chosen one", frame->body);
    } else {
        conn->welcomed = true;
        up_if_both_welcome(conn);
    }
}

/* The table of wire/access.h has no link between the two. */
static void refuse_role(struct conn *conn)
{
    char reason[LINK_REASON_MAX];

    (void)snprintf(reason,
                   sizeof reason,
                   "%s and %s have no links with each other%s",
                   link_role_name(conn->peer.role),
                   link_role_name(conn->links->config.self.role),
                   conn->peer.role == ROLE_CLI ? ": ask a coordinator" : "");
    refuse(conn, REFUSAL_LINK, reason, reason);
}

/* Connections that we accepted as those of this one's role and name; each thread of a gateway has
 * one. */
static uint32_t same_count(const struct conn *conn)
{
    const struct list *conns = &conn->links->conns;
    uint32_t count = 0;

    for (struct list_link *at = list_front(conns); at != NULL; at = list_next(conns, at)) {
        const struct conn *other = CONTAINER_OF(at, struct conn, in_links);

        count += !other->link->dialled && other->accepted && other->peer.role == conn->peer.role &&
                 strcmp(other->peer.name, conn->peer.name) == 0;
    }
    return count;
}

static void on_hello(struct conn *conn, const struct frame *frame)
{
    const struct hello *self = &conn->links->config.self;
    const struct link_events *events = &conn->links->events;

    if (conn->greeted || hello_get(frame->body, &conn->peer) != ERR_OK) {
        conn_garbage(conn, conn->greeted ? "a second hello" : "no valid hello", frame->body);
        return;
    }
    conn->greeted = true;
    if (!conn->link->dialled) {
        say_hello(conn);
    }
    char reason_tls[LINK_REASON_MAX];
    const enum refusal refusal =
        conn->tls == NULL ? REFUSAL_NONE : secure_judge(conn, reason_tls, sizeof reason_tls);
    if (refusal != REFUSAL_NONE) {
        refuse(conn, refusal, reason_tls, reason_tls);
        return;
    }
    if (!access_may(ACCESS_FRAME_HELLO, conn->peer.role, self->role)) {
        refuse_role(conn);
        return;
    }
    const struct hello_verdict verdict = hello_judge(self, &conn->peer);
    if (verdict.refusal != REFUSAL_NONE) {
        const struct hello_verdict theirs = hello_judge(&conn->peer, self);

        refuse(conn, verdict.refusal, verdict.reason, theirs.reason);
        return;
    }
    if (!conn->link->dialled && same_count(conn) >= conn->links->config.same_max) {
        static const char many[] = "the peer has as many links here as one process may have";

        refuse(conn, REFUSAL_TOO_MANY, many, many);
        return;
    }
    const char *reason = NULL;
    const enum refusal owners =
        events->hello == NULL ? REFUSAL_NONE
                              : events->hello(events->context, conn->link, &conn->peer, &reason);
    if (owners != REFUSAL_NONE) {
        refuse(conn, owners, reason, reason);
        return;
    }
    conn->accepted = true;
    conn->protocol = verdict.protocol;
    say_welcome(conn);
}

static void on_refused(struct conn *conn, const struct frame *frame)
{
    char reason[LINK_REASON_MAX];

    refusal_get(frame->body, reason, sizeof reason);
    log_refusal(conn, REFUSAL_BY_PEER, reason);
    tell_owner(conn, reason);
    conn_close(conn, "refused by the peer");
}

void greeting_judge_fleet(struct conn *conn)
{
    const struct hello *self = &conn->links->config.self;
    const struct hello_verdict verdict = hello_judge(self, &conn->peer);
    const bool joins = conn->peer.role == ROLE_NODE || conn->peer.role == ROLE_GATEWAY;

    if (verdict.refusal == REFUSAL_FLEET) {
        log_refusal(conn, verdict.refusal, verdict.reason);
        conn_close(conn, "the peer belongs to another fleet");
    } else if (self->role == ROLE_COORDINATOR && joins && !fleet_id_known(conn->peer.fleet)) {
        conn_close(conn, "this process learned its fleet since its hello");
    }
}

void greeting_on_frame(struct conn *conn, const struct frame *frame)
{
    if (frame->type == FRAME_HELLO) {
        on_hello(conn, frame);
    } else if (frame->type == FRAME_REFUSED) {
        on_refused(conn, frame);
    } else {
        on_welcome(conn, frame);
    }
}
