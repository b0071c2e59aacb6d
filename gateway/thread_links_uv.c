/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's links to nodes and coordinators, and what its router wants done.
 */
#include "gateway/thread_uv.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "stream/sendlog.h"
#include "wire/control.h"
#include "wire/record.h"
#include "wire/session.h"

#include <stdio.h>

enum { BUSY_MS = 10, EFFECTS_AT_ONCE = 64 };

static void step(struct thread *t, struct router_event event)
{
    event.now_us = thread_now(t);
    router_step(t->router, &event, &t->effects);
}

/* ---- links ---- */

/* What roles may meet, wire/access.h says. */
static enum refusal on_hello(void *context, const struct link *link, const struct hello *peer,
                             const char **why)
{
    const struct thread *t = context;
    const struct remote *remote = link_user(link);
    const bool coordinator = peer->role == ROLE_COORDINATOR;
    const bool fits = (remote->coordinator >= 0) == coordinator &&
                      (coordinator || router_expects(t->router, remote->slot, peer->name));

    *why = "the process at this address is not the expected one";
    return fits ? REFUSAL_NONE : REFUSAL_IDENTITY;
}

static void on_up(void *context, struct link *link)
{
    struct thread *t = context;
    const struct remote *remote = link_user(link);
    const struct hello *peer = link_peer(link);

    if (remote->coordinator >= 0) {
        step(t,
             (struct router_event){.type = ROUTER_COORDINATOR_UP,
                                   .coordinator = remote->coordinator});
    } else {
        step(t,
             (struct router_event){.type = ROUTER_NODE_UP,
                                   .slot = remote->slot,
                                   .name = peer->name,
                                   .incarnation = peer->incarnation,
                                   .speaks_streams = link_protocol(link) >= LINK_PROTOCOL_STREAMS});
        clients_on_node_up(t->clients, remote->slot, t->listener.now_us);
    }
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct thread *t = context;
    const struct remote *remote = link_user(link);

    (void)reason; // the link has logged it
    if (remote->coordinator >= 0) {
        step(t,
             (struct router_event){.type = ROUTER_COORDINATOR_DOWN,
                                   .coordinator = remote->coordinator});
    } else {
        step(t, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = remote->slot});
        clients_on_node_down(t->clients, remote->slot, t->listener.now_us);
    }
}

static void dial_coordinator(struct thread *t, size_t at, const char *address)
{
    struct remote *remote = &t->coordinator[at];

    remote->coordinator = (int)at;
    remote->link = links_dial(t->links, address);
    if (remote->link != NULL) {
        link_set_user(remote->link, remote);
    }
}

static size_t place_of(const struct thread *t, const char *address, const Rh__Leader *leader)
{
    struct finder_known known[FINDER_MAX] = {0};

    for (size_t i = 0; i < FINDER_MAX; i++) {
        const struct link *link = t->coordinator[i].link;

        known[i].address = link == NULL ? NULL : link_address(link);
        known[i].linked = link != NULL && link_is_up(link);
    }
    return finder_place(known, FINDER_MAX, address, leader->coordinators, leader->n_coordinators);
}

/* Others may lead from now on: a link to each is wanted. Old ones stay while there is room: they
 * know who came after them. */
static void learn_coordinators(struct thread *t, const Rh__Leader *leader)
{
    for (size_t i = 0; i < leader->n_coordinators; i++) {
        const char *address = leader->coordinators[i];
        const size_t at = place_of(t, address, leader);
        struct link *old = at < FINDER_MAX ? t->coordinator[at].link : NULL;

        if (at == FINDER_MAX || (old != NULL && strcmp(link_address(old), address) == 0)) {
            continue;
        }
        log_info("gateway", "coordinator_learnt", "address=%s", address);
        if (old != NULL) {
            links_forget(t->links, old);
            step(t, (struct router_event){.type = ROUTER_COORDINATOR_DOWN, .coordinator = (int)at});
        }
        dial_coordinator(t, at, address);
    }
}

static void on_control_frame(struct thread *t, struct link *link, const struct frame *frame)
{
    const struct remote *remote = link_user(link);
    Rh__Control *control = control_get(frame->body);

    if (control == NULL) {
        link_garbage(link, "a control message can't be decoded");
        return;
    }
    if (control->body_case == RH__CONTROL__BODY_LEADER) {
        learn_coordinators(t, control->leader);
    }
    step(t,
         (struct router_event){
             .type = ROUTER_CONTROL, .coordinator = remote->coordinator, .message = control});
    control_free(control);
    // With its first configuration this thread is of that fleet alone, for as long as it runs.
    links_set_fleet(t->links, router_view(t->router)->fleet);
}

/* The next ones of a frame, `count` at most. False: one does not decode; those before it do. */
static bool get_answers(struct reader *in, struct answer_record *answer, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (answer_get(in, &answer[i]) != ERR_OK) {
            *count = i;
            return false;
        }
    }
    return true;
}

static void on_answer_frame(struct thread *t, struct link *link, const struct frame *frame)
{
    const struct remote *remote = link_user(link);
    struct reader in = {.at = frame->body.data, .left = frame->body.size};
    struct answer_record answer[ROUTER_PREFETCH_MAX];
    struct router_answers answers = {
        .now_us = thread_now(t), .answer = answer, .slot = remote->slot};
    bool whole = true;

    for (size_t left = frame->count, count = 0; left > 0 && whole; left -= count) {
        count = left < ROUTER_PREFETCH_MAX ? left : ROUTER_PREFETCH_MAX;
        whole = get_answers(&in, answer, &count);
        answers.count = count;
        router_answer(t->router, &answers, &t->effects);
        if (t->effects.count - t->done >= EFFECTS_AT_ONCE) {
            thread_do_requests(t);
        }
    }
    thread_do_requests(t);
    router_effects_keep(&t->effects, t->done); // what waits for the end of the turn
    if (!whole) {
        link_garbage(link, "an answer record can't be decoded");
    }
}

static void on_stream_frame(struct thread *t, struct link *link, const struct frame *frame)
{
    const struct remote *remote = link_user(link);
    struct router_frame f = {.now_us = thread_now(t), .frame = frame, .slot = remote->slot};
    enum err e = ERR_OK;

    do {
        e = router_frame(t->router, &f, &t->effects);
        if (t->effects.count - t->done >= EFFECTS_AT_ONCE) {
            thread_do_requests(t);
        }
    } while (e == ERR_OK && f.left > 0);
    thread_do_requests(t);
    router_effects_keep(&t->effects, t->done); // what waits for the end of the turn
    if (e != ERR_OK) {
        link_garbage(link, "an invalid frame of a stream");
    }
}

static void on_push_frame(struct thread *t, struct link *link, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};

    (void)thread_now(t);
    for (uint16_t i = 0; i < frame->count; i++) {
        struct push_record push;

        if (push_get(&in, &push) != ERR_OK) {
            link_garbage(link, "a push record can't be decoded");
            return;
        }
        listener_push(&t->listener, &push);
    }
    if (in.left != 0) {
        link_garbage(link, "bytes after the last push record");
    }
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    if (frame->type == FRAME_CONTROL) {
        on_control_frame(context, link, frame);
    } else if (frame->type == FRAME_ANSWER) {
        on_answer_frame(context, link, frame);
    } else if (frame_type_is_stream((uint8_t)frame->type)) {
        on_stream_frame(context, link, frame);
    } else {
        on_push_frame(context, link, frame);
    }
}

static void on_wake(void *context)
{
    struct thread *t = context;

    links_poll(t->links, thread_now(t));
}

/* ---- effects ---- */

static struct bytes effect_bytes(const struct thread *t, const struct router_effect *e)
{
    return router_effect_bytes(&t->effects, e);
}

/* The link took it not: it surely did not run, so the router gets it back. */
static void give_back(struct thread *t, uint16_t slot, struct bytes record)
{
    struct reader in = {.at = record.data, .left = record.size};
    struct request_record request;

    if (request_get(&in, &request) != ERR_OK) {
        UNREACHABLE();
    }
    const struct answer_record busy = {.gateway = request.gateway,
                                       .session = request.session,
                                       .seq = request.seq,
                                       .copy = request.copy,
                                       .code = ANSWER_BUSY,
                                       .aux = BUSY_MS};
    step(t, (struct router_event){.type = ROUTER_ANSWER, .slot = slot, .answer = &busy});
}

static void send_request(struct thread *t, const struct router_effect *e)
{
    const struct remote *node = t->node[e->slot];

    if (node == NULL || link_send_record(node->link, FRAME_REQUEST, effect_bytes(t, e)) != ERR_OK) {
        give_back(t, e->slot, effect_bytes(t, e));
    }
}

/* By index: what is given back appends to the list, and may move it. Returns how many it did. */
static size_t send_requests(struct thread *t, size_t from)
{
    const struct router_effect *first = &t->effects.item[from];
    const struct remote *node = t->node[first->slot];
    const size_t count = router_effects_run(&t->effects, from, LINK_RUN_SIZE_MAX);
    const struct router_effect *last = first + count - 1;
    const struct bytes records =
        bytes_of(t->effects.bytes.data + first->at, last->at + last->size - first->at);

    if (count > 1 && node != NULL &&
        link_send_records(node->link, FRAME_REQUEST, records, count) == ERR_OK) {
        return count;
    }
    for (size_t i = 0; i < count; i++) {
        const struct router_effect e = t->effects.item[from + i];

        send_request(t, &e);
    }
    return count;
}

/* Control messages are repeated by their own timers: one that is not taken is not missed. */
static void send_control(struct thread *t, const struct remote *to, const struct router_effect *e)
{
    if (to != NULL && to->link != NULL &&
        link_send(to->link, FRAME_CONTROL, effect_bytes(t, e)) != ERR_OK) {
        log_debug("gateway", "control_not_sent", "slot=%u", e->slot);
    }
}

/* A stream begins, or goes on, by this connection. A link that has no room for so little answers
 * nothing either: without the stream its silence is noticed. */
static void send_stream(struct thread *t, const struct router_effect *e)
{
    const struct remote *node = t->node[e->slot];

    if (node != NULL &&
        link_send(node->link, (enum frame_type)e->frame, effect_bytes(t, e)) != ERR_OK) {
        link_drop(node->link, "no room for the first frame of a stream");
    }
}

static struct bytes take(void *context)
{
    const struct remote *node = context;
    struct sendlog *log = router_log(node->thread->router, node->slot);

    return log == NULL ? bytes_of(NULL, 0) : sendlog_unsent(log);
}

static void sent(void *context, size_t size)
{
    const struct remote *node = context;

    sendlog_sent(router_log(node->thread->router, node->slot), size);
}

static void connect_node(struct thread *t, const struct router_effect *e)
{
    ASSERT(t->node[e->slot] == NULL);
    struct remote *node = mem_new(1, sizeof *node);

    node->coordinator = -1;
    node->slot = e->slot;
    node->thread = t;
    node->link = links_dial(t->links, (const char *)effect_bytes(t, e).data);
    link_set_user(node->link, node);
    link_set_source(node->link, &(struct link_source){.context = node, .take = take, .sent = sent});
    t->node[e->slot] = node;
}

static void disconnect_node(struct thread *t, uint16_t slot)
{
    links_forget(t->links, t->node[slot]->link);
    mem_free(t->node[slot]);
    t->node[slot] = NULL;
    clients_on_node_down(t->clients, slot, t->listener.now_us); // no other word of it comes
}

static void do_effect(struct thread *t, const struct router_effect *e)
{
    switch (e->type) {
    case ROUTER_SEND_NODE:
        send_request(t, e);
        break;
    case ROUTER_SEND_STREAM:
        send_stream(t, e);
        break;
    case ROUTER_TELL_NODE:
        send_control(t, t->node[e->slot], e);
        break;
    case ROUTER_SEND_COORDINATOR:
        send_control(t, &t->coordinator[e->coordinator], e);
        break;
    case ROUTER_REPLY:
        listener_reply(&t->listener, e, effect_bytes(t, e));
        break;
    case ROUTER_VOUCH:
        listener_vouch(&t->listener, e);
        break;
    case ROUTER_CONNECT:
        connect_node(t, e);
        break;
    case ROUTER_DISCONNECT:
        disconnect_node(t, e->slot);
        break;
    }
}

void thread_do_effects(struct thread *t)
{
    for (; t->done < t->effects.count; t->done++) {
        const struct router_effect e = t->effects.item[t->done];

        do_effect(t, &e);
    }
    t->done = 0;
    router_effects_clear(&t->effects);
}

void thread_feed_links(struct thread *t)
{
    uint16_t slot = 0;

    while (router_unsent(t->router, &slot) != NULL) {
        if (t->node[slot] != NULL && link_is_up(t->node[slot]->link)) {
            link_feed(t->node[slot]->link);
        }
    }
}

void thread_do_requests(struct thread *t)
{
    while (t->done < t->effects.count) {
        const struct router_effect *e = &t->effects.item[t->done];

        if (e->type == ROUTER_SEND_NODE) {
            t->done += send_requests(t, t->done);
        } else if (e->type == ROUTER_REPLY) {
            t->done += listener_replies(&t->listener, &t->effects, t->done);
        } else {
            return;
        }
    }
    t->done = 0;
    router_effects_clear(&t->effects);
}

enum err thread_links_open(struct thread *t)
{
    const struct gateway_options *options = t->config.options;
    struct links_config config = links_config_default();
    const struct link_events events = {.context = t,
                                       .hello = on_hello,
                                       .up = on_up,
                                       .down = on_down,
                                       .frame = on_frame,
                                       .wake = on_wake};

    config.loop = &t->loop;
    config.tls = options->links;
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", options->cluster);
    config.self.role = ROLE_GATEWAY;
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", options->name);
    config.self.incarnation = thread_id(t);
    const enum err failed = links_open(&t->links, &config, &events);
    if (failed != ERR_OK) {
        return failed;
    }
    for (size_t i = 0; i < options->coordinator_count; i++) {
        dial_coordinator(t, i, options->coordinators[i]);
    }
    return ERR_OK;
}
