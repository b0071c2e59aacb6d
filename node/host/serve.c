/* SPDX-License-Identifier: Apache-2.0
 *
 * Steady requests: from the record to the actor, and from there to the answer, by function
 * pointers.
 *
 * Nearly all requests find their arc here and not held, their predecessor's answer sent, and their
 * actor alive with nothing else to do. Then admission (specification §5.3) comes to one outcome,
 * the actor is RUNNING only while its code runs, and nothing of that has to be told or remembered
 * but the order record with its answer. So the effect, the queue, the completion and the event are
 * left out, for what clients ask and what actors ask. What a kind that is not brief is asked takes
 * its time: of that the way to its submission is short, and many go in one step. Each condition is
 * asked of whoever decides it for all other requests, and before anything was changed: what is not
 * steady goes by host_step() as if it had not been looked at.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "ringhold.h"

enum { MS = 1000 };

/* What all requests of a link have in common. */
static const struct neighbour *steady_link(const struct host *h, uint64_t link)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, link);
    const bool known = n != NULL && n->standing == STANDING_KNOWN;

    // The answers go where they came from: by the newest link of who asks.
    return known && neighbour_asking(&h->links.neighbours, n->incarnation) == n ? n : NULL;
}

bool serve_may(const struct host *h)
{
    return h->membership.life == LIFE_SERVING && lease_policy_may_start(h) &&
           h->now_us < host_verb_limit_us(h, VERB_RUN) && h->now_us < host_gate_us(h) &&
           h->lease_policy.gate.count == 0;
}

static bool steady_node(const struct host *h)
{
    return serve_may(h) && h->backpressure.full_count == 0 &&
           h->prefetch.version == h->topology.view.ring.version;
}

enum {
    PLAIN = REQUEST_COMMAND | REQUEST_NO_REPLY | REQUEST_IDEMPOTENT | REQUEST_HELD | REQUEST_AWAKE
};

/* Requests of one link that came together. */
struct steady {
    const struct neighbour *from;
    uint64_t made_us; /* their time counts from then, … */
    uint64_t late_us; /* … which is so long ago */
    const struct host_server *server;
    bool room; /* for more answers */
};

/* Nothing about the request itself needs a closer look. */
static bool steady_record(const struct host *h, const struct steady *s,
                          const struct request_record *r)
{
    return r->gateway == s->from->incarnation && r->hops == 0 &&
           (r->flags & ~(PLAIN | REQUEST_CALL)) == 0 && (uint64_t)r->ttl_ms * MS > s->late_us &&
           !r->again && r->version <= h->topology.view.ring.version &&
           ((r->flags & REQUEST_CALL) == 0 || !identity_is_orphan(h, r));
}

static bool steady_request(const struct stream_request *r)
{
    return r->plain && (r->flags & ~PLAIN) == 0 && r->ttl_ms > 0;
}

static bool steady_cell(const struct host *h, uint64_t position)
{
    const uint32_t cell = ring_point_cell(position);

    // While it serves, `mine` is what host_owns() says, and beside the hold.
    return h->cells.state[cell].mine && h->cells.state[cell].hold == NULL;
}

static inline bool steady_actor(const struct host *h, const struct actor *a)
{
    return a != NULL && a->state == ACTOR_IDLE && a->work == NULL && !a->poked &&
           a->wish != WISH_ASKED &&
           (h->topology.view.quarantine.count == 0 || !quarantine_holds(h, a));
}

/* Every id of it may be asked. */
static bool steady_kind(const struct kind_state *k)
{
    return k != NULL && k->any;
}

static uint64_t deadline_us(const struct steady *s, const struct request_record *r)
{
    const uint32_t ttl_ms = r->ttl_ms < ROOM_TTL_MAX_MS ? r->ttl_ms : ROOM_TTL_MAX_MS;

    return s->made_us + (uint64_t)ttl_ms * MS;
}

static struct admission admission(const struct steady *s, const struct request_record *r)
{
    return (struct admission){.r = r, .peer = s->from->link, .deadline_us = deadline_us(s, r)};
}

/* It is submitted, and nothing is known yet of how it ends. */
static bool submit(struct host *h, const struct steady *s, const struct request_record *r,
                   struct actor *a, struct order *order)
{
    const struct admission in = admission(s, r);

    if (!backpressure_may_start(h, &in)) {
        return false;
    }
    requests_accept(&h->requests);
    run_submit(h, a, order, &in);
    return true;
}

static inline void ran_now(struct host *h, struct actor *a, const struct kind_state *kind,
                           enum answer_code code)
{
    times_at_once(&h->times, kind->row, code);
    a->used_ms = h->now_ms;
    a->wish = WISH_NONE; // it has not asked to end: it is steady
    a->turned = false;
    actor_changed(a);
    cells_count_request(&h->cells, ring_point_cell(actor_position(a)));
    h->work.run_ticket++;
    h->work.executed++;
    requests_finish(&h->requests);
}

static bool serve(struct host *h, struct steady *s, const struct request_record *r,
                  uint64_t position)
{
    const struct host_server *server = s->server;
    const struct image_name name = {.position = position, .kind = r->kind, .id = r->id};

    const struct kind_state *kind = host_kind_find(h, r->kind);

    if (position == 0 || !steady_record(h, s, r) || !steady_kind(kind) ||
        !steady_cell(h, position) || r->first < host_vnode(h, position)->cold) {
        return false;
    }
    const struct way *way = prefetch_take(&h->prefetch, position, r->session);
    const bool found = way != NULL && way->actor != NULL && actor_is(way->actor, &name);
    struct actor *a = found ? way->actor : actor_find(&h->actors, name);
    if (!steady_actor(h, a)) {
        return false;
    }
    struct order *order =
        found && way->order != NULL ? way->order : order_find(&h->orders, a, r->session);
    if (order_judge(order, r) != ORDER_RUN) {
        return false;
    }
    if (!kind->at_once) {
        return submit(h, s, r, a, order);
    }
    struct at_once run = {.instance = a->instance,
                          .kind = r->kind,
                          .id = r->id,
                          .message = {.ticket = h->work.run_ticket + 1,
                                      .body = r->body,
                                      .flags = r->flags,
                                      .chain_count = r->chain_count,
                                      .chain = r->chain}};
    const enum host_ran ran = server->run(server->context, a, &run);
    if (ran == HOST_RAN_NOT || (ran == HOST_RAN_NOW && run.error != ERR_OK)) {
        return false; // The second: the actor has ended itself, and the host will hear of it.
    }
    requests_accept(&h->requests);
    if (ran == HOST_RAN_LATER) {
        const struct admission in = admission(s, r);

        (void)run_begin(h, a, order, &in);
        return true;
    }
    struct answer_record answer = run_answer(h, a, run.code, run.answer);
    answer.gateway = r->gateway;
    answer.session = r->session;
    answer.seq = r->seq;
    answer.copy = r->copy;
    order = order != NULL ? order : order_new(&h->orders, a, r->session);
    ASSERT(run_may(order, r) && !order->running);
    copy_ran(h, order, r, &answer);
    ran_now(h, a, kind, run.code);
    s->room = server->answer(server->context, &answer);
    return true;
}

size_t serve_steady(struct host *h, const struct host_event *event, const struct request_record *r,
                    const uint64_t *position, size_t count, const struct host_server *server)
{
    const uint64_t made_us = event->made_us == 0 ? h->now_us : event->made_us;
    struct steady s = {.from = steady_link(h, event->peer),
                       .made_us = made_us,
                       .late_us = h->now_us - made_us,
                       .server = server,
                       .room = true};
    size_t at = 0;

    if (s.from == NULL || !steady_node(h)) {
        return 0;
    }
    while (at < count && s.room && serve(h, &s, &r[at], position[at])) {
        at++;
    }
    return at;
}

/* It has run. Its stream is to be fed since its frame came. */
__attribute__((noinline)) static void end_taken(struct host *h, const struct some_taken *t,
                                                size_t i, const struct actor *a)
{
    const struct stream_mark mark = {
        .by = t->some->by, .rid = t->some->request[i].rid, .ack = t->some->head->ack};
    const struct answer_record answer = run_answer(h, a, t->run.code, t->run.answer);

    streams_end(h, &mark, &answer);
}

__attribute__((noinline)) static void runs_taken(struct host *h, const struct some_taken *t,
                                                 size_t i, struct actor *a)
{
    const struct stream_taken taken = servers_taken(t->some, i, t->position[i]);
    struct request_record record;
    const struct admission in = streams_admission(h, &taken, &record);

    (void)run_begin(h, a, NULL, &in);
}

static inline struct actor *actor_of(const struct host *h, const struct some_taken *t, size_t i)
{
    const struct stream_request *r = &t->some->request[i];
    const struct image_name name = {.position = t->position[i], .kind = r->kind, .id = r->id};
    struct actor *found = t->found[i];

    return __builtin_expect(found != NULL && actor_is(found, &name), true)
               ? found
               : actor_find(&h->actors, name);
}

bool serve_taken(struct host *h, struct some_taken *t, size_t i, const struct kind_state *kind)
{
    const struct stream_request *r = &t->some->request[i];
    const struct host_server *server = h->streams.server;
    struct stream_server *s = &t->some->by->stream;
    struct at_once *run = &t->run;

    if (!steady_request(r) || !steady_kind(kind) || !kind->at_once ||
        !steady_cell(h, t->position[i]) || servers_is_full(&h->streams.servers, t->some->by) ||
        s->passed_count > 0) {
        return false;
    }
    struct actor *a = actor_of(h, t, i);
    if (!steady_actor(h, a)) {
        return false;
    }
    run->instance = a->instance;
    run->kind = r->kind;
    run->id = r->id;
    run->message.ticket = h->work.run_ticket + 1;
    run->message.body = r->body;
    run->message.flags = r->flags;
    run->error = ERR_OK;
    run->code = ANSWER_OK;
    run->room = server_room(s, &run->room_size);
    const enum host_ran ran = server->run(server->context, a, run);
    if (ran == HOST_RAN_NOT || (ran == HOST_RAN_NOW && run->error != ERR_OK)) {
        return false; // as in serve()
    }
    requests_accept(&h->requests);
    if (ran == HOST_RAN_LATER) {
        runs_taken(h, t, i, a);
        return true;
    }
    if (run->room != NULL && run->answer.data == run->room) {
        server_answer_there(s, r->rid, a->fence, (uint8_t)run->code, run->answer.size);
    } else {
        end_taken(h, t, i, a);
    }
    ran_now(h, a, kind, run->code);
    return true;
}
