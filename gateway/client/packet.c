/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that speak packets (packet.h): each request has the client's own name,
 * and is answered as soon as it is; none waits for another.
 *
 *     NEW     -hello-> GREETED, hello-ack    -anything else, hello_ms-> kicked
 *     GREETED -request, notify, bind, unbind, ping-> (same)    -bad bytes-> kicked
 *             -nothing for heartbeat_ms-> (same), pinged   -for twice that-> kicked
 *             -the gateway drains-> LEAVING, goaway
 *     LEAVING as GREETED, but requests that are new are MOVING; it goes when nothing is owed, or
 *             one behind such a request is sent again
 *
 * Where the gateway has keys, GREETED begins with an auth: auth.c.
 * A kick is the last that is written; what is answered later is dropped.
 */
#include "gateway/protocol/packet.h"
#include "gateway/client/ask.h"

#include "base/assert.h"
#include "base/big.h"
#include "base/log.h"

#include <string.h>

enum {
    RETRY_OVERLOADED_MS = 100,
    RETRY_MOVING_MS = 1000,
    RETRY_DRAINED_MS = 100,
    STRANGER_BODY_MAX = 1024,
    STRANGER_UNSENT_MAX = 4096,
    SPENT_MAX = 16,
    SPENT_REST_US = 100 * 1000,
    SPENT_APART_US = 2 * 1000,
    SPENT_REST_MAX_US = 2 * 1000 * 1000,
    VOUCH_SIZE = 8,
};

/* ---- tickets: the client's name of the request, and above it what was asked */

enum ticket_what { TICKET_REQUEST = 0, TICKET_BIND = 1 };
enum { TICKET_WHAT_AT = 32 };

static uint64_t make_ticket(uint32_t request, enum ticket_what what)
{
    return (uint64_t)what << TICKET_WHAT_AT | request;
}

static enum ticket_what ticket_what(uint64_t ticket)
{
    return (enum ticket_what)(ticket >> TICKET_WHAT_AT);
}

/* ---- output ---- */

static void put_response(struct client *c, const struct response_packet *response)
{
    // What did not go well is told with its reason: the status alone says only what to do.
    ASSERT(response->status == STATUS_OK || response->payload.size > 0);
    if (!c->closing) { // not behind a kick
        c->all->stats.errors += response->status != STATUS_OK;
        packet_put_response(&c->out, response);
    }
}

static void respond(struct client *c, uint32_t request, enum packet_status status,
                    struct bytes payload)
{
    uint32_t retry_ms = 0;

    if (status == STATUS_OVERLOADED) {
        retry_ms = RETRY_OVERLOADED_MS;
    } else if (status == STATUS_MOVING) {
        retry_ms = c->packets.leaving ? RETRY_DRAINED_MS : RETRY_MOVING_MS;
    }
    put_response(c,
                 &(struct response_packet){.request = request,
                                           .status = (uint8_t)status,
                                           .retry_ms = retry_ms,
                                           .payload = payload});
}

static void refuse(struct client *c, uint32_t request, enum packet_status status, const char *why)
{
    respond(c, request, status, bytes_of(why, strlen(why)));
}

static void refuse_fast(struct client *c, uint32_t request, uint32_t retry_ms)
{
    static const char why[] = "more requests per second than a connection may send";

    put_response(c,
                 &(struct response_packet){.request = request,
                                           .status = STATUS_RATE_LIMITED,
                                           .retry_ms = retry_ms,
                                           .payload = bytes_of(why, sizeof why - 1)});
}

static void put_begun(struct client *c)
{
    struct session_packet session;

    if (binding_name(c, &session) && !c->closing) {
        packet_put_begun(&c->out, &session);
    }
}

static void put_push(struct client *c, struct bytes key, const struct push_record *push)
{
    (void)key; // a connection is bound to one actor at a time
    packet_put_push(&c->out,
                    &(struct push_packet){.sequence = push->number, .payload = push->payload});
}

static void put_rebound(struct client *c, const struct rebind *to)
{
    struct buffer token = {0};
    struct auth_ok_packet who;

    auth_become(c, to, &who, &token);
    packet_put_rebound(&c->out, &who);
    buffer_fini(&token);
}

/* ---- answers ---- */

static const struct {
    enum packet_status status;
    const char *why;
} outcomes[] = {
    [REPLY_OK] = {STATUS_OK, NULL},
    [REPLY_APP_ERROR] = {STATUS_ACTOR_FAILED, "the actor gave no reason"},
    [REPLY_UNKNOWN] =
        {STATUS_UNKNOWN,
         "the node that had the request was lost: the request may have run, at most once"},
    [REPLY_TIMEOUT] =
        {STATUS_TIMEOUT,
         "no answer in time: the request may have run or may still run, at most once"},
    [REPLY_REJECTED] = {STATUS_MOVING, "no node could run the request in time: it did not run"},
    [REPLY_NO_KIND] = {STATUS_NO_OWNER, "no node hosts an actor of this kind and id"},
    [REPLY_OVERLOADED] =
        {STATUS_OVERLOADED,
         "its node or the gateway has no room for more requests: this one did not run"},
    [REPLY_QUARANTINED] = {STATUS_QUARANTINED,
                           "the actor is in quarantine because it killed its node's process "
                           "repeatedly: the request did not run"},
    // Of calls alone: no client asks in the midst of a message.
    [REPLY_DEADLOCK] = {STATUS_OVERLOADED,
                        "the actor waits for the sender of this request: it did not run"},
};

static void put_answer(struct client *c, const struct router_effect *reply, struct bytes body)
{
    const enum packet_status status = outcomes[reply->code].status;

    if (status == STATUS_OK || body.size > 0) {
        respond(c, (uint32_t)reply->ticket, status, body);
    } else {
        refuse(c, (uint32_t)reply->ticket, status, outcomes[reply->code].why);
    }
}

static void answer(struct client *c, const struct router_effect *reply, struct bytes body)
{
    if (ticket_what(reply->ticket) == TICKET_BIND) {
        binding_answered(c, reply, body);
    } else {
        put_answer(c, reply, body);
    }
}

static size_t answers(struct client *c, const struct router_effects *effects, size_t from)
{
    size_t i = from;

    for (; i < effects->count && client_takes_reply(c, &effects->item[i]); i++) {
        const struct router_effect *reply = &effects->item[i];
        const struct bytes body = router_effect_bytes(effects, reply);

        client_learn_size(c, body.size);
        if (reply->code == REPLY_OK && ticket_what(reply->ticket) == TICKET_REQUEST &&
            !c->closing) {
            packet_put_ok(&c->out, (uint32_t)reply->ticket, body);
        } else {
            answer(c, reply, body);
        }
    }
    return i;
}

static void bind_over(struct client *c, uint64_t ticket, enum bound_result result, const char *why)
{
    (void)result; // all refusals are one status; the text says which
    uint8_t payload[PACKET_SESSION_SIZE];
    struct session_packet session;

    if (why == NULL && binding_name(c, &session)) {
        packet_put_session(payload, &session);
        respond(c, (uint32_t)ticket, STATUS_OK, bytes_of(payload, sizeof payload));
    } else if (why == NULL) {
        respond(c, (uint32_t)ticket, STATUS_OK, (struct bytes){NULL, 0});
    } else {
        refuse(c, (uint32_t)ticket, STATUS_REJECTED, why);
    }
}

/* A bond begins behind its answer, which goes out at once. */
static bool is_answered(const struct client *c, uint64_t ticket)
{
    (void)c;
    (void)ticket;
    return true;
}

static bool owes(const struct client *c)
{
    return c->in_flight > 0 && !c->closing;
}

/* ---- requests ---- */

/* Deadlines are rounded up, for the router keeps a list for each that is in use
 * (route/deadlines.h): 16, 32, 64 … ms, at most the gateway's. 0 = the gateway's. */
static uint32_t timeout_of(const struct client *c, const struct request_packet *r)
{
    const uint32_t most = c->all->config.deadline_ms;
    uint32_t timeout_ms = 16;

    if (r->deadline_ms == 0 || r->deadline_ms >= most) {
        return 0;
    }
    while (timeout_ms < r->deadline_ms) {
        timeout_ms *= 2;
    }
    return timeout_ms < most ? timeout_ms : 0;
}

uint32_t client_timeout(const struct client *c, uint32_t deadline_ms)
{
    return timeout_of(c, &(struct request_packet){.deadline_ms = deadline_ms});
}

static void on_request(struct client *c, const struct request_packet *r, bool told)
{
    const uint32_t timeout_ms = timeout_of(c, r);
    const uint64_t ticket = make_ticket(r->request, TICKET_REQUEST);

    client_ask_now(
        c,
        &(struct ask){.ticket = ticket,
                      .timeout_ms = timeout_ms,
                      .name = c->client_session != NULL ? r->request : 0,
                      .trace = r->trace,
                      .again = (r->flags & PACKET_AGAIN) != 0,
                      .flags =
                          (uint8_t)(((r->flags & PACKET_IDEMPOTENT) != 0 ? REQUEST_IDEMPOTENT : 0) |
                                    (told ? REQUEST_NO_REPLY : 0)),
                      .kind = r->kind,
                      .id = r->id,
                      .body = r->payload});
}

/* A client's number of it may tell it from its copies. */
static const char *misnamed(const struct client *c, const struct request_packet *r)
{
    if (c->client_session != NULL && r->request == 0) {
        return "in a kept session, request names begin with 1";
    }
    if (c->client_session == NULL && (r->flags & PACKET_AGAIN) != 0) {
        return "there is no session in which this request was sent before";
    }
    return NULL;
}

static void on_bind(struct client *c, const struct request_packet *r, struct bind_wish wish)
{
    const struct target to = {.kind = r->kind, .id = r->id};
    const bool keeps = wish.type != NOTE_BIND;

    if (keeps && c->in_flight > 0) {
        refuse(c,
               r->request,
               STATUS_BAD_REQUEST,
               "requests are in progress: bind before the first request");
        return;
    }
    if (!binding_ask(c, r->id, &to, &wish, make_ticket(r->request, TICKET_BIND))) {
        refuse(c, r->request, STATUS_BAD_REQUEST, "this connection is already bound: unbind first");
    }
}

static void on_unbind(struct client *c, struct bytes body)
{
    uint32_t request = 0;

    if (packet_get_unbind(body, &request) != ERR_OK) {
        packet_kick(c, PACKET_KICK_BAD_PACKET, "an unbind packet is too short");
    } else if (!binding_leave(c, make_ticket(request, TICKET_BIND))) {
        refuse(c, request, STATUS_BAD_REQUEST, "this connection is not bound: bind first");
    }
}

static void on_resume(struct client *c, const struct request_packet *r)
{
    struct bind_wish wish = {.type = NOTE_RETURN};

    if (packet_get_return(r->payload, &wish.back) != ERR_OK || wish.back.name.key == 0 ||
        wish.back.name.session == 0) {
        c->all->stats.bad_requests++;
        refuse(c, r->request, STATUS_BAD_REQUEST, "a resume packet names no session");
    } else {
        on_bind(c, r, wish);
    }
}

static void on_ack(struct client *c, struct bytes body)
{
    struct ack_packet ack;

    if (packet_get_ack(body, &ack) != ERR_OK) {
        packet_kick(c, PACKET_KICK_BAD_PACKET, "an ack packet is too short");
        return;
    }
    client_session_ack(c, ack.answers);
    binding_ack(c, ack.pushes);
}

/* It makes sense, and is allowed. */
static void take_asking(struct client *c, uint8_t type, const struct request_packet *r)
{
    const bool told = type == PACKET_NOTIFY;
    const bool keeps = (r->flags & PACKET_KEEP) != 0;
    const char *wrong = NULL;

    if (type == PACKET_BIND) {
        on_bind(c, r, (struct bind_wish){.type = keeps ? NOTE_KEEP : NOTE_BIND});
    } else if (type == PACKET_RESUME) {
        on_resume(c, r);
    } else if ((wrong = misnamed(c, r)) == NULL) {
        on_request(c, r, told);
    } else {
        c->all->stats.bad_requests++;
        if (!told) {
            refuse(c, r->request, STATUS_BAD_REQUEST, wrong);
        }
    }
}

/* It may have run: to say that it did not would have it asked for anew. */
static bool is_again(const struct request_packet *r)
{
    return (r->flags & PACKET_AGAIN) != 0;
}

/* When a connection goes on that has spent its share: not before 100 ms, and each at a time of its
 * own. Else a hundred connections that began together would wake together, and what they ask next
 * would keep all others waiting. */
static uint64_t rest_end(struct clients *all, uint64_t now_us)
{
    const uint64_t latest = now_us + SPENT_REST_MAX_US;
    const uint64_t soonest = now_us + SPENT_REST_US;
    const uint64_t next = all->spent_until_us + SPENT_APART_US;

    all->spent_until_us = next < soonest ? soonest : next > latest ? latest : next;
    return all->spent_until_us;
}

/* What is answered here, or not at all, holds nothing that could be counted, but takes the time of
 * all: after so many of these it waits. */
static void spend(struct client *c)
{
    if (++c->packets.spent == SPENT_MAX) {
        c->packets.spent = 0;
        c->all->stats.rests_spent++;
        client_rest_until(c, rest_end(c->all, c->now_us));
    }
}

void client_spend(struct client *c)
{
    spend(c);
}

/* What names an entity. */
static void on_asking(struct client *c, const struct packet *p)
{
    const bool told = p->type == PACKET_NOTIFY;
    struct request_packet r;
    const enum err bad = packet_get_request(p->body, &r);
    const uint32_t early_ms = client_overspeed(c);

    if (bad == ERR_CORRUPT) {
        packet_kick(c, PACKET_KICK_BAD_PACKET, "a request packet is too short");
    } else if (early_ms > 0) {
        c->all->stats.rate_limited++;
        if (is_again(&r)) {
            refuse(c,
                   r.request,
                   STATUS_UNKNOWN,
                   "the resent request came too fast; it may have run before");
        } else if (!told) {
            refuse_fast(c, r.request, early_ms);
        }
    } else if (bad != ERR_OK) {
        c->all->stats.bad_requests++;
        spend(c);
        if (!told) {
            refuse(c, r.request, STATUS_BAD_REQUEST, "the request's flags or id are not valid");
        }
    } else if (!auth_allows(c, r.kind, r.id)) {
        c->all->stats.unauthorized++;
        spend(c);
        if (!told) {
            refuse(c, r.request, STATUS_UNAUTHORIZED, "the token is for another entity");
        }
    } else if (c->packets.leaving && !is_again(&r)) {
        if (!told) {
            c->packets.refused = true;
            refuse(c, r.request, STATUS_MOVING, "this gateway is stopping: connect to another one");
        }
    } else if (c->packets.refused) {
        // It would run before the one that was refused. Whether it ran is not known here, so that
        // it can't be MOVING: the client is to send both again, to another gateway.
        client_close(c);
    } else {
        take_asking(c, p->type, &r);
    }
}

/* ---- the connection ---- */

static void on_ping(struct client *c, struct bytes body)
{
    if (body.size > PACKET_PING_MAX) {
        packet_kick(c, PACKET_KICK_BAD_PACKET, "a ping packet is too long");
    } else if (c->unauthenticated_address != NULL && client_unsent(c) > STRANGER_UNSENT_MAX) {
        packet_kick(c,
                    PACKET_KICK_NO_AUTH,
                    "the client sent pings before it logged in and does not read the answers");
    } else {
        packet_put_ping(&c->out, PACKET_PONG, body);
        spend(c);
    }
}

/* Its bytes come back: who answers has not left, whatever it sent before. */
static void vouch(struct client *c, uint64_t version)
{
    uint8_t body[VOUCH_SIZE];

    big_put64(body, version);
    packet_put_ping(&c->out, PACKET_PING, bytes_of(body, sizeof body));
}

/* That it came is what a heartbeat asked for. */
static void on_pong(struct client *c, struct bytes body)
{
    if (body.size == VOUCH_SIZE) {
        client_session_vouch(c, big_get64(body.data));
    }
}

static void run(struct client *c, const struct packet *p)
{
    c->all->stats.packets++;
    if (!c->packets.greeted) {
        if (p->type == PACKET_HELLO) {
            packet_on_hello(c, p->body);
        } else {
            packet_kick(c, PACKET_KICK_NO_HELLO, "the first packet is not a hello");
        }
        return;
    }
    if (c->unauthenticated_address != NULL && !auth_admits(p->type)) {
        packet_kick(c, PACKET_KICK_NO_AUTH, "the first packet after hello is not an auth");
        return;
    }
    switch (p->type) {
    case PACKET_REQUEST:
    case PACKET_NOTIFY:
    case PACKET_BIND:
    case PACKET_RESUME:
        c->all->stats.commands++;
        on_asking(c, p);
        break;
    case PACKET_UNBIND:
        c->all->stats.commands++;
        on_unbind(c, p->body);
        break;
    case PACKET_AUTH:
        auth_take(c, p->body);
        break;
    case PACKET_ACK:
        on_ack(c, p->body);
        break;
    case PACKET_PING:
        on_ping(c, p->body);
        break;
    case PACKET_PONG:
        on_pong(c, p->body);
        break;
    default:
        if ((p->type & PACKET_OPTIONAL) == 0) {
            packet_kick(c, PACKET_KICK_BAD_PACKET, "a packet type that clients may not send");
        }
    }
}

/* An unauthenticated client says hello, its token and pings, for which little is enough. */
static size_t size_max_of(const struct client *c)
{
    const size_t most = c->all->config.packet_size_max;

    return c->unauthenticated_address != NULL && most > STRANGER_BODY_MAX ? STRANGER_BODY_MAX
                                                                          : most;
}

static size_t take(struct client *c, struct bytes in)
{
    size_t at = 0;
    size_t room = 0; // for so many requests, before that is looked at again

    client_note_half(c, false);
    c->packets.pinged = false;
    c->packets.heard_us = c->now_us;
    while (at < in.size) {
        const struct bytes rest = bytes_of(in.data + at, in.size - at);
        const uint32_t asked = c->in_flight;
        struct packet p;

        room = room > 0 ? room : client_room(c, rest.size);
        if (room == 0) {
            break;
        }
        const enum packet_result result = packet_next(rest, size_max_of(c), &p);

        if (result == PACKET_MORE) {
            client_note_half(c, true);
            break;
        }
        if (result == PACKET_LARGE) {
            packet_kick(c, PACKET_KICK_TOO_LARGE, "a packet is over the size limit");
            break;
        }
        at += PACKET_HEADER + p.body.size;
        run(c, &p);
        room = p.type == PACKET_REQUEST && c->in_flight == asked + 1 && !c->rests ? room - 1 : 0;
    }
    return c->closing || c->dropped ? in.size : at;
}

static void refuse_half(struct client *c)
{
    packet_kick(c, PACKET_KICK_NO_MEMORY, "no memory for a packet of this size now");
}

static void drain(struct client *c)
{
    static const char why[] = "this gateway is stopping";

    c->packets.leaving = true;
    packet_put_notice(
        &c->out,
        PACKET_GOAWAY,
        &(struct notice_packet){.number = RETRY_DRAINED_MS, .text = bytes_of(why, sizeof why - 1)});
}

const struct dialect dialect_packets = {
    .take = take,
    .answer = answer,
    .answers = answers,
    .owes = owes,
    .refuse_half = refuse_half,
    .tick = packet_tick,
    .drain = drain,
    .bind_over = bind_over,
    .bind_failed = put_answer,
    .is_answered = is_answered,
    .push = put_push,
    .kick = packet_put_kick,
    .rebound = put_rebound,
    .begun = put_begun,
    .vouch = vouch,
};
