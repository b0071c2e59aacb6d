/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is at the other end of a link, and which records are its own to send
 * (docs/decisions/045-names-and-incarnations.md).
 *
 * A certificate proves a name. That a node of this name is this incarnation only the configuration
 * says; and a gateway's id is its own as long as its link is up. What a link may send hangs on it:
 *
 *     record      from a gateway                   from a node that the configuration names so
 *     REQUEST     asked under its own id           asked under its incarnation, or forwarded
 *     ANSWER      -                                any: it may have been forwarded to that node
 *     STATE, ACK  -                                of the transaction that names its incarnation
 *     streams     of its own id, and names         of its incarnation
 *
 * A node that the configuration does not name may be one that joined a moment ago: it is told to
 * ask again. Nothing else of it is taken until the configuration has it.
 */
#include "node/host/inside.h"

#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MISUSE_TOLD_US = 60 * 1000 * 1000 };

static const char *const taken_node = "the configuration gives its incarnation to another node";
static const char *const taken_gateway = "its id belongs to another gateway";
static const char *const taken_number = "its id is a node's incarnation";

static const struct view_member *member_of(const struct host *h, uint64_t incarnation)
{
    for (size_t i = 0; i < h->topology.view.member_count; i++) {
        if (h->topology.view.member[i].incarnation == incarnation) {
            return &h->topology.view.member[i];
        }
    }
    return NULL;
}

static bool has_other_name(const struct host *h, uint64_t id, const char *name)
{
    for (const struct neighbour *n = neighbour_first(&h->links.neighbours, id); n != NULL;
         n = neighbour_next(n)) {
        if (n->role == ROLE_GATEWAY && n->standing == STANDING_KNOWN &&
            strcmp(n->name, name) != 0) {
            return true;
        }
    }
    return false;
}

const char *host_refuses(const struct host *h, enum link_role role, const char *name,
                         uint64_t incarnation)
{
    const struct view_member *m = member_of(h, incarnation);

    if (role == ROLE_NODE) {
        return m != NULL && strcmp(m->name, name) != 0 ? taken_node : NULL;
    }
    if (m != NULL || (h->membership.incarnation != 0 && incarnation == h->membership.incarnation)) {
        return taken_number;
    }
    return has_other_name(h, incarnation, name) ? taken_gateway : NULL;
}

static void set_false(struct host *h, struct neighbour *n, const char *why)
{
    struct host_effect *e = host_emit(h, HOST_DROP_PEER);

    n->standing = STANDING_FALSE;
    e->peer = n->link;
    e->why = why;
}

void identity_judge(struct host *h, struct neighbour *n)
{
    const bool own = n->link == CALLS_LINK; // my own actors ask by it, under my incarnation
    const char *why =
        own || mutant(M_NAME) ? NULL : host_refuses(h, n->role, n->name, n->incarnation);

    if (why != NULL) {
        set_false(h, n, why);
    } else if (n->role == ROLE_GATEWAY || mutant(M_NAME) || member_of(h, n->incarnation) != NULL) {
        n->standing = STANDING_KNOWN;
    }
}

/* All that say they were this member. */
static void meet_member(struct host *h, const struct view_member *m)
{
    for (struct neighbour *n = neighbour_first(&h->links.neighbours, m->incarnation); n != NULL;
         n = neighbour_next(n)) {
        const bool open = n->standing == STANDING_OPEN;

        if (n->standing != STANDING_FALSE) {
            identity_judge(h, n);
        }
        if (open && n->standing == STANDING_KNOWN) {
            hold_on_peer_up(h, n->incarnation);
        }
    }
}

void identity_adopt(struct host *h)
{
    for (size_t i = 0; i < h->topology.view.member_count; i++) {
        meet_member(h, &h->topology.view.member[i]);
    }
}

void identity_forget(struct host *h)
{
    for (struct list_link *l = list_front(&h->links.neighbours.all); l != NULL;
         l = list_next(&h->links.neighbours.all, l)) {
        struct neighbour *n = CONTAINER_OF(l, struct neighbour, all);

        if (n->role == ROLE_NODE && n->standing == STANDING_KNOWN) {
            n->standing = STANDING_OPEN;
        }
    }
}

/* ---- records ---- */

const char *host_misuse_word(enum host_misuse what)
{
    static const char *const word[HOST_MISUSE_COUNT] = {[HOST_MISUSE_REQUEST] = "request",
                                                        [HOST_MISUSE_NOTE] = "note",
                                                        [HOST_MISUSE_ANSWER] = "answer",
                                                        [HOST_MISUSE_STATE] = "state",
                                                        [HOST_MISUSE_STATE_ACK] = "state_ack",
                                                        [HOST_MISUSE_STREAM] = "stream"};

    return word[what];
}

/* Of a kind it is logged once a minute: whoever means harm sends many. */
void identity_misused(struct host *h, uint64_t peer, enum host_misuse what, const char *why)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, peer);
    uint64_t *told_us = &h->links.misuse_told_us[what];

    h->links.misuses[what]++;
    if (n == NULL || (*told_us != 0 && h->now_us - *told_us < MISUSE_TOLD_US)) {
        return;
    }
    *told_us = h->now_us;
    log_warn("node",
             "not_its_own",
             "peer=%s role=%s incarnation=%s record=%s why=\"%s\" so_far=%" PRIu64,
             n->name,
             link_role_name(n->role),
             STAMP(n->incarnation),
             host_misuse_word(what),
             why,
             h->links.misuses[what]);
}

/* It may have joined a moment ago: it asks again, when my configuration has it. To this very link,
 * not to the id that it gives. */
static void ask_again(struct host *h, const struct neighbour *n, const struct request_record *r)
{
    const struct answer_record answer = {.gateway = r->gateway,
                                         .session = r->session,
                                         .seq = r->seq,
                                         .version = h->topology.view.ring.version,
                                         .aux = BUSY_RETRY_MS,
                                         .code = ANSWER_BUSY,
                                         .copy = r->copy};

    host_want_version(h, r->version);
    answer_put(host_record(h), &answer);
    host_send_record(h, n->link, FRAME_ANSWER);
}

bool identity_is_orphan(const struct host *h, const struct request_record *r)
{
    // By a version that has the members of mine its caller asked as one of them.
    return (r->flags & REQUEST_CALL) != 0 && r->version < h->topology.members_version &&
           member_of(h, r->gateway) == NULL && !mutant(M_ORPHANRUNS);
}

/* A gateway's notes speak of its own clients, or of nobody's. */
static bool note_is_its_own(const struct neighbour *n, const struct request_record *r)
{
    struct note note;

    if (n->role != ROLE_GATEWAY || n->link == CALLS_LINK || (r->flags & REQUEST_SESSION) == 0 ||
        note_get(r->body, &note) != ERR_OK) {
        return true; // what does not decode is refused where it would be run
    }
    return note.gateway == 0 || note.gateway == r->gateway;
}

bool identity_takes_note(struct host *h, const struct neighbour *n, const struct request_record *r)
{
    const bool own = note_is_its_own(n, r);

    if (!own) {
        identity_misused(h, n->link, HOST_MISUSE_NOTE, "the session is not one of its clients'");
    }
    return own;
}

bool identity_takes_name(struct host *h, const struct neighbour *n, const struct stream_request *r)
{
    const bool own = r->name.asker == 0 || n->role == ROLE_NODE;

    if (!own) {
        identity_misused(h, n->link, HOST_MISUSE_REQUEST, "it asks under another's name");
    }
    return own;
}

const struct neighbour *identity_of_stream(struct host *h, uint64_t peer, uint64_t asker)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, peer);

    if (n == NULL || n->standing == STANDING_FALSE) {
        return NULL; // its link has just ended, or is about to
    }
    if (n->incarnation != asker) {
        identity_drop(h, peer, "it asks in another process's name");
        return NULL;
    }
    return n;
}

void identity_drop(struct host *h, uint64_t peer, const char *why)
{
    struct host_effect *e = host_emit(h, HOST_DROP_PEER);

    identity_misused(h, peer, HOST_MISUSE_STREAM, why);
    e->peer = peer;
    e->why = why;
}

bool identity_takes_request(struct host *h, uint64_t peer, const struct request_record *r)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, peer);
    const bool fresh = r->hops == 0;

    if (n == NULL || n->standing == STANDING_FALSE) {
        return false; // its link has just ended, or is about to
    }
    if (n->standing == STANDING_OPEN) {
        ask_again(h, n, r);
        return false;
    }
    if (fresh ? r->gateway != n->incarnation : n->role != ROLE_NODE) {
        identity_misused(h,
                         peer,
                         HOST_MISUSE_REQUEST,
                         fresh ? "it asks in another process's name" : "it forwards");
        return false;
    }
    return identity_takes_note(h, n, r);
}

uint64_t identity_of_node(const struct host *h, uint64_t peer)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, peer);
    const bool known = n != NULL && n->role == ROLE_NODE && n->standing == STANDING_KNOWN;

    return known || (n != NULL && mutant(M_ANYSOURCE)) ? n->incarnation : 0;
}

bool identity_takes_answer(struct host *h, uint64_t peer)
{
    const bool takes = identity_of_node(h, peer) != 0;

    if (!takes) {
        identity_misused(h, peer, HOST_MISUSE_ANSWER, "nobody asked it");
    }
    return takes;
}
