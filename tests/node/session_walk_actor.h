/* SPDX-License-Identifier: Apache-2.0
 *
 * The actor of a walk, and what its node does for order.
 */
#ifndef TESTS_NODE_SESSION_WALK_ACTOR_H
#define TESTS_NODE_SESSION_WALK_ACTOR_H

#include "tests/node/session_walk.h"

static inline int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                              void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = w;
    return RH_OK;
}

static inline void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static inline size_t count_seats(bool away)
{
    size_t count = 0;

    for (size_t i = 0; i < SEATS; i++) {
        count += w->seat[i].client == THERE || (away && w->seat[i].client == AWAY);
    }
    return count;
}

/* There is room for all: nobody has to give way. */
static inline bool is_roomy(void)
{
    return w->seats_max == RH_SESSIONS_MAX;
}

static inline struct seat *seat_of(uint64_t session)
{
    for (size_t i = 0; i < SEATS; i++) {
        if (w->seat[i].client != NOBODY && w->seat[i].session == session) {
            return &w->seat[i];
        }
    }
    return NULL;
}

static inline struct seat *seat_take(uint64_t session)
{
    struct seat *s = &w->seat[0];

    while (s->client != NOBODY) {
        s++;
        CHECK(s < w->seat + SEATS, "too many seats for this test");
    }
    *s = (struct seat){.session = session};
    return s;
}

/* The actor isn't told when the time of one that is away is over, nor when it gave its place. */
static inline bool may_be_over(const struct seat *s)
{
    return s->client == AWAY && (w->now_us - s->lost_us >= (uint64_t)KEEP_MS * 1000 ||
                                 (w->seats_max > 1 && !is_roomy()));
}

/* The sequence that the client is to see goes along as the push's count. */
static inline void push_to(struct rh_actor *actor, struct seat *s)
{
    const uint64_t number = (s->counted + 1) | (s->session & TAG_MASK) << TAG_AT;
    const int result = rh_push_one(actor, s->session, (struct rh_bytes){&number, sizeof number});

    CHECK(result == RH_OK || may_be_over(s), "it may push to a client that is bound");
    s->counted++;
    s->client = result == RH_OK ? s->client : NOBODY;
}

static inline void push_each(struct rh_actor *actor)
{
    CHECK(rh_push_one(actor, 1, (struct rh_bytes){"", 0}) == RH_NO_SESSION, "nobody's session");
    for (size_t i = 0; i < SEATS; i++) {
        if (w->seat[i].client != NOBODY) {
            push_to(actor, &w->seat[i]);
        }
    }
}

/* Of the room: each once, in order, and none is lost. */
static inline void room_is_heard(uint64_t number)
{
    CHECK(number == (ROOM_MARK | (w->room.heard + 1)),
          "what the room says is lost, doubled or out of order");
    w->room.heard++;
    for (size_t i = 0; i < SEATS; i++) {
        w->seat[i].counted++;
    }
}

/* "player life name": each runs once, and in order. A number of the room is pushed on. */
static inline void on_message(struct rh_actor *actor, void *instance,
                              const struct rh_message *message)
{
    uint32_t word[3];

    (void)instance;
    if (message->payload.size == 0) {
        push_each(actor);
        return;
    }
    if (message->payload.size == sizeof(uint64_t)) {
        uint64_t number = 0;

        memcpy(&number, message->payload.data, sizeof number);
        room_is_heard(number);
        const bool pushed = rh_push(actor, message->payload) == RH_OK;

        CHECK(pushed ? count_seats(true) > 0 : count_seats(false) == 0,
              "it may push when a client is bound");
        return;
    }
    memcpy(word, message->payload.data, sizeof word);
    CHECK(++w->ran[word[0]][word[1]][word[2]] == 1, "a request ran twice");
    CHECK(word[2] > w->ran_last[word[0]][word[1]], "a request ran behind a later one");
    w->ran_last[word[0]][word[1]] = word[2];
    if (count_seats(true) > 0 && chance(500)) {
        push_each(actor);
    }
    (void)rh_reply(actor, rh_bytes_value(&word[2], sizeof word[2]));
}

static inline void is_bound(uint64_t session)
{
    CHECK(count_seats(false) < w->seats_max, "more are bound than may be");
    CHECK(seat_of(session) == NULL, "a session is named as another one");
    if (w->seats_max == 1) {
        memset(w->seat, 0, sizeof w->seat); // who was away has lost its place
    }
    seat_take(session)->client = THERE;
}

static inline void is_replaced(uint64_t session, uint64_t former)
{
    struct seat *s = seat_of(former);

    CHECK(s != NULL && s->client == THERE, "nobody was there to be replaced");
    // When it broke, both may come again: then the newer one stays, whoever is first.
    CHECK(w->ops.sessions != RH_SESSIONS_REJECT_NEW || (w->broken > 0 && w->comes_again),
          "the older one was to stay");
    CHECK(!is_roomy() || session == former || w->broken > 0, "there was room for both");
    *s = (struct seat){.client = NOBODY};
    is_bound(session);
    w->replaced++;
}

static inline void is_resumed(uint64_t session, bool back)
{
    struct seat *s = seat_of(session);

    CHECK(!back || s != NULL, "nobody was there to be resumed");
    w->returned += back;
    if (back) {
        s->client = THERE;
        return;
    }
    CHECK(s == NULL || may_be_over(s), "who was there is taken for another");
    if (s != NULL) {
        *s = (struct seat){.client = NOBODY};
    }
    is_bound(session);
}

static inline int on_session(struct rh_actor *actor, void *instance, const struct rh_session *e)
{
    struct seat *s = seat_of(e->session);

    (void)instance;
    CHECK(e->session != 0 && e->session <= INT64_MAX, "a session has no number");
    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_BOUND:
        is_bound(e->session);
        break;
    case RH_SESSION_REPLACED:
        is_replaced(e->session, e->former);
        break;
    case RH_SESSION_RESUMED:
        is_resumed(e->session, e->why == RH_RESUMED_CLIENT);
        break;
    case RH_SESSION_LOST:
        CHECK(s != NULL && s->client == THERE, "nobody was there to be lost");
        // What is told doesn't say whether it may return: whether it can be pushed to does.
        s->client = AWAY;
        s->lost_us = w->now_us - (uint64_t)KEEP_MS * 1000;
        push_to(actor, s);
        s->lost_us = w->now_us;
        return RH_OK;
    }
    push_to(actor, seat_of(e->session));
    return RH_OK;
}

static inline void on_completion(void *context, const struct completion *e)
{
    (void)context;
    if (e->verb == VERB_RUN) {
        buffer_clear(&w->answer);
        buffer_put(&w->answer, e->bytes.data, e->bytes.size);
    } else if (e->verb == VERB_EXPORT) {
        buffer_clear(&w->bond);
        buffer_put(&w->bond, e->head.data, e->head.size);
    } else if (e->verb == VERB_POKE) {
        w->poked = true;
    } else if (e->verb == VERB_PUSH) {
        struct buffer record = {0};

        push_put(&record, e->push);
        for (size_t i = 0; i < GATEWAYS; i++) {
            if (w->gateway[i].id == e->push->gateway) {
                queue_put(&w->gateway[i].down, buffer_bytes(&record), true);
            }
        }
        buffer_fini(&record);
    }
}

static inline void actor_enters(bool moved)
{
    const struct runtime_entry entry = {.ops = &w->ops,
                                        .actor = w,
                                        .id = bytes_of("a", 1),
                                        .bond = moved ? buffer_bytes(&w->bond) : (struct bytes){0},
                                        .has_state = moved,
                                        .kind = 0,
                                        .fence = ++w->fence};

    w->poked = false;
    w->actor = runtime_activate(w->runtime, &entry);
}

static inline void actor_moves(void)
{
    w->moved++;
    runtime_export(w->actor);
    runtime_discard(w->actor, RH_MOVED);
    actor_enters(true);
}

/* The actor loses what it knows of its clients; clients that are away have lost it. */
static inline void actor_breaks(void)
{
    runtime_discard(w->actor, RH_BROKEN);
    memset(w->seat, 0, sizeof w->seat);
    w->broken++;
    for (size_t i = 0; i < PLAYERS; i++) {
        w->player[i].fair = false;
    }
    actor_enters(false);
}

/* ---- the node's order */

static inline struct line_order *order_at(uint64_t session)
{
    for (size_t i = 0; i < w->order_count; i++) {
        if (w->order[i].session == session) {
            return &w->order[i];
        }
    }
    CHECK(w->order_count < ORDERS, "too many sessions for this test");
    struct line_order *o = &w->order[w->order_count++];

    *o = (struct line_order){.session = session};
    return o;
}

static inline void answer(struct walk_queue *down, const struct request_record *q, uint8_t code,
                          struct bytes body)
{
    struct buffer record = {0};

    answer_put(&record,
               &(struct answer_record){.gateway = q->gateway,
                                       .session = q->session,
                                       .seq = q->seq,
                                       .fence = q->version,
                                       .version = q->version,
                                       .copy = q->copy,
                                       .code = code,
                                       .body = body});
    queue_put(down, buffer_bytes(&record), false);
    buffer_fini(&record);
}

static inline void turn(void)
{
    while (w->poked) {
        w->poked = false;
        runtime_turn(w->actor, 1);
    }
}

/* The runtime pushes it by itself. */
static inline void look_for_broadcast(const struct request_record *q)
{
    struct bytes body = q->body;
    struct caller from;
    struct note note;
    uint64_t number = 0;

    if ((q->flags & REQUEST_CALL) == 0 || (q->flags & REQUEST_SESSION) == 0) {
        return;
    }
    CHECK(caller_get(&body, &from) == ERR_OK && note_get(body, &note) == ERR_OK, "no note");
    CHECK(note.type == NOTE_PUSH && note.payload.size == sizeof number, "no push");
    memcpy(&number, note.payload.data, sizeof number);
    room_is_heard(number);
}

/* True if the client was bound before, as its gateway says. */
static inline bool comes_again(const struct request_record *q)
{
    struct note note;

    return (q->flags & REQUEST_SESSION) != 0 && (q->flags & REQUEST_CALL) == 0 &&
           note_get(q->body, &note) == ERR_OK &&
           (note.type == NOTE_RESUME || note.type == NOTE_RENEW);
}

static inline void run(struct walk_queue *down, const struct request_record *q,
                       struct line_order *o)
{
    const struct runtime_message m = {.ticket = 1, .flags = q->flags, .body = q->body};
    struct walk_saved *s = &o->saved[q->seq % KEPT_ANSWERS];

    o->last = q->seq;
    look_for_broadcast(q);
    w->comes_again = comes_again(q);
    runtime_run(w->actor, &m);
    CHECK(w->answer.size <= sizeof s->body, "an answer too large for this test");
    *s = (struct walk_saved){.seq = q->seq, .size = (uint8_t)w->answer.size};
    memcpy(s->body, w->answer.data == NULL ? (const void *)"" : w->answer.data, w->answer.size);
    answer(down, q, ANSWER_OK, bytes_of(s->body, s->size));
    turn();
}

static inline void on_request(struct walk_queue *down, struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct request_record q;

    CHECK(request_get(&in, &q) == ERR_OK, "no request");
    if (!bytes_equal(q.id, bytes_of("a", 1))) {
        answer(down, &q, ANSWER_NO_KIND, (struct bytes){0}); // It sleeps.
        return;
    }
    struct line_order *o = order_at(q.session);
    const struct walk_saved *s = &o->saved[q.seq % KEPT_ANSWERS];

    if (q.session_epoch < o->epoch) {
        return; // fenced
    }
    o->epoch = q.session_epoch;
    o->base = q.base > o->base ? q.base : o->base;
    if (q.seq <= o->last) {
        const bool kept = s->seq == q.seq;

        answer(down, &q, kept ? ANSWER_OK : ANSWER_LOST, bytes_of(s->body, kept ? s->size : 0));
    } else if (q.seq >= o->base && !(q.prev != 0 && q.prev >= o->base && o->last < q.prev)) {
        run(down, &q, o);
    }
}

static inline void on_down(struct walk_gateway *g, struct bytes bytes, bool push)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct answer_record a;
    struct push_record p;

    if (push) {
        CHECK(push_get(&in, &p) == ERR_OK, "no push");
        (void)clients_on_push(g->r.all, &p, w->now_us);
        return;
    }
    CHECK(answer_get(&in, &a) == ERR_OK, "no answer");
    event(g, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &a});
}

#endif
