/* SPDX-License-Identifier: Apache-2.0
 *
 * The players of a walk: what they ask, hear, and hold against it.
 */
#ifndef TESTS_NODE_SESSION_WALK_PLAYERS_H
#define TESTS_NODE_SESSION_WALK_PLAYERS_H

#include "tests/node/session_walk_actor.h"

static inline void say(struct walk_player *p, struct buffer *said)
{
    struct walk_gateway *g = &w->gateway[p->gateway];

    client_on_bytes(p->client, buffer_bytes(said), w->now_us, &g->r.effects);
    own_effects(g);
    buffer_fini(said);
}

static inline void ask(struct walk_player *p, enum packet_type type, const struct request_packet *r)
{
    struct buffer said = {0};

    packet_put_request(&said, type, r);
    say(p, &said);
}

static inline uint32_t lowest_open(const struct walk_player *p)
{
    for (uint32_t i = 1; i <= p->named; i++) {
        if (p->open[i]) {
            return i;
        }
    }
    return p->named + 1;
}

static inline void hang_up(struct walk_player *p)
{
    struct walk_gateway *g = &w->gateway[p->gateway];

    client_free(p->client, w->now_us, &g->r.effects);
    own_effects(g);
    w->late = w->late || (p->asked && !p->resumes);
    p->client = NULL;
    buffer_clear(&p->heard);
    p->seated = false;
    p->asked = false;
    p->lost_us = w->now_us;
}

static inline void dial(struct walk_player *p)
{
    struct walk_gateway *g = NULL;
    struct buffer said = {0};

    p->gateway = prng_between(&w->prng, 0, GATEWAYS - 1);
    g = &w->gateway[p->gateway];
    p->client = client_new(g->r.all, CLIENT_PACKETS, "x", w->now_us);
    packet_put_hello(&said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    say(p, &said);
    p->asked = true;
}

static inline void forget(struct walk_player *p)
{
    p->keeps = false;
    memset(p->open, 0, sizeof p->open);
}

/* A bind may run behind that of `p`. */
static inline bool another_binds(const struct walk_player *p)
{
    bool binds = w->late;

    for (size_t i = 0; i < PLAYERS; i++) {
        const struct walk_player *other = &w->player[i];

        binds = binds || (other != p && other->asked && !other->resumes);
    }
    return binds;
}

/* As a new client would. */
static inline void log_in(struct walk_player *p)
{
    forget(p);
    dial(p);
    p->resumes = false;
    p->fair = is_roomy() || !another_binds(p); // until another one logs in, or the actor breaks
    p->life++;
    CHECK(p->life < LIVES, "too many lives for this test");
    p->named = 0;
    ask(p,
        PACKET_BIND,
        &(struct request_packet){.request = 1, .flags = PACKET_KEEP, .id = bytes_of("a", 1)});
}

static inline void come_back(struct walk_player *p)
{
    uint8_t payload[PACKET_RETURN_SIZE];

    dial(p);
    p->resumes = true;
    packet_put_return(payload,
                      &(struct return_packet){.name = p->session.name,
                                              .has = {p->seen, lowest_open(p)},
                                              .attempt = ++p->attempt});
    ask(p,
        PACKET_RESUME,
        &(struct request_packet){
            .request = 1, .id = bytes_of("a", 1), .payload = bytes_of(payload, sizeof payload)});
}

static inline void request(struct walk_player *p, uint32_t name, uint8_t flags)
{
    const uint32_t word[3] = {p->number, p->life, name};

    ask(p,
        PACKET_REQUEST,
        &(struct request_packet){.request = name,
                                 .flags = flags,
                                 .id = bytes_of("a", 1),
                                 .payload = bytes_of((const uint8_t *)word, sizeof word)});
}

/* Send requests again. Requests of before `begun` are UNKNOWN to the player; all are when the
 * session is over. */
static inline void send_again(struct walk_player *p)
{
    for (uint32_t i = 1; i <= p->named && p->client != NULL; i++) {
        if (i <= p->before && p->open[i]) {
            p->open[i] = false;
        } else if (p->open[i]) {
            request(p, i, PACKET_AGAIN);
        }
    }
}

static inline void is_seated(struct walk_player *p, struct bytes payload)
{
    struct session_packet session;

    CHECK(packet_get_session(payload, &session) == ERR_OK, "the answer names no session");
    CHECK(!p->resumes || session.next == p->seen + 1, "pushes are missing for a resume");
    p->session = session;
    p->asked = false;
    p->seated = true;
    if (p->resumes) {
        p->again = true;
        return;
    }
    p->seen = 0;
    p->tag = 0;
    p->before = 0;
    p->keeps = true;
}

/* A bind or a resume was not taken. */
static inline void is_refused(struct walk_player *p, uint8_t status)
{
    p->asked = false;
    p->over = true;
    if (status == STATUS_REJECTED && p->resumes) {
        CHECK(!p->fair || w->now_us - p->lost_us > (uint64_t)(KEEP_MS - 100) * 1000,
              "a session is gone that was to be kept");
        p->keeps = false;
    }
}

static inline void on_response(struct walk_player *p, struct bytes body)
{
    struct response_packet r;
    uint32_t name = 0;

    CHECK(packet_get_response(body, &r) == ERR_OK, "no response");
    if (p->asked) {
        if (r.status == STATUS_OK) {
            is_seated(p, r.payload);
        } else {
            is_refused(p, r.status);
        }
        return;
    }
    CHECK(r.request <= p->named && p->open[r.request], "an answer that nobody waits for");
    p->open[r.request] = false;
    if (r.status == STATUS_OK) {
        memcpy(&name, r.payload.data, sizeof name);
        CHECK(r.payload.size == sizeof name && name == r.request, "the answer of another request");
        CHECK(w->ran[p->number][p->life][name] == 1, "answered, and did not run");
    } else {
        CHECK(r.status != STATUS_BAD_REQUEST, "a good request is refused");
    }
}

static inline void on_push(struct walk_player *p, struct bytes body)
{
    struct push_packet push;
    uint64_t number = 0;

    CHECK(packet_get_push(body, &push) == ERR_OK && push.payload.size == 8, "no push");
    memcpy(&number, push.payload.data, sizeof number);
    CHECK(push.sequence == p->seen + 1, "a push is lost, doubled or out of order");
    p->seen = push.sequence;
    if ((number & ROOM_MARK) == 0) {
        p->tag = p->tag == 0 ? number >> TAG_AT : p->tag;
        CHECK(number == (p->seen | p->tag << TAG_AT), "a push of another session");
    }
}

static inline void on_begun(struct walk_player *p, struct bytes body)
{
    CHECK(packet_get_session(body, &p->session) == ERR_OK && p->session.next == 1, "no begun");
    p->seen = 0;
    p->tag = 0;
    p->before = p->named;
    w->begun++;
}

/* Another one took its place. A line of its own of before, whose resume comes late, does not. */
static inline void on_kick(struct walk_player *p, struct bytes body)
{
    struct notice_packet n;

    CHECK(packet_get_notice(body, &n) == ERR_OK, "no kick");
    CHECK(n.number == KICK_REPLACED, "a kick for no reason");
    CHECK(!p->fair || (w->late && !is_roomy()), "a kick, and nobody else came");
    forget(p);
    p->over = true;
}

static inline void hear(struct walk_player *p, const struct packet *packet)
{
    switch (packet->type) {
    case PACKET_RESPONSE:
        on_response(p, packet->body);
        break;
    case PACKET_PUSH:
        on_push(p, packet->body);
        break;
    case PACKET_BEGUN:
        on_begun(p, packet->body);
        break;
    case PACKET_KICK:
        on_kick(p, packet->body);
        break;
    default:
        CHECK(packet->type == PACKET_HELLO_ACK || packet->type == PACKET_PING, "what is that?");
    }
}

static inline void listen(struct walk_player *p)
{
    const struct bytes out = client_output(p->client);
    struct packet packet;
    size_t at = 0;

    buffer_put(&p->heard, out.data, out.size);
    client_sent(p->client, out.size, w->now_us);
    while (packet_next(bytes_of(p->heard.data + at, p->heard.size - at),
                       PACKET_BODY_MAX,
                       &packet) == PACKET_WHOLE) {
        at += PACKET_HEADER + packet.body.size;
        hear(p, &packet);
    }
    buffer_consume(&p->heard, at);
    if (p->over || client_is_done(p->client)) {
        p->over = false;
        hang_up(p);
    } else if (p->again) {
        p->again = false;
        send_again(p);
    }
}

static inline void acknowledge(struct walk_player *p)
{
    struct buffer said = {0};

    packet_put_ack(&said, &(struct ack_packet){p->seen, lowest_open(p)});
    say(p, &said);
}

/* One that logs in takes the place of who is there, or of who is away, unless there is room. */
static inline void others_are_not_safe(const struct walk_player *p)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        if (&w->player[i] != p && !is_roomy()) {
            w->player[i].fair = false;
        }
    }
}

static inline void act(struct walk_player *p)
{
    if (p->client == NULL && p->keeps && chance(100)) {
        come_back(p);
    } else if (p->client == NULL && !p->keeps && chance(w->quiet ? 0 : 10) && p->life + 1 < LIVES) {
        others_are_not_safe(p);
        log_in(p);
    } else if (p->client != NULL && p->seated && !w->quiet && p->named + 1 < REQUESTS &&
               chance(300)) {
        p->open[++p->named] = true;
        request(p, p->named, 0);
    }
    if (p->client != NULL && p->seated && chance(100)) {
        acknowledge(p);
    }
    if (p->client != NULL && !w->quiet && chance(15)) {
        hang_up(p);
    }
}

#endif
