/* SPDX-License-Identifier: Apache-2.0
 *
 * Does the host's effects: frames to peers, links, disk, actors.
 */
#include "node/shell_uv.h"

#include "base/actor_name.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LINK_FULL = 8 * 1024 * 1024, /* bytes queued on a link: the host makes no more for it */
    LINK_ROOM = 2 * 1024 * 1024, /* it goes on */
    /* What was begun before that and is answered later waits here, for all links. */
    BACKLOG_MAX = 256 * 1024 * 1024,
};

enum { EXIT_ALONE = 69, EXIT_FENCED = 75 }; /* EX_UNAVAILABLE, EX_TEMPFAIL of <sysexits.h> */

/* ---- queued events ---- */

void shell_queue(struct shell *s, const struct host_event *event)
{
    struct queued_events *q = &s->queued;

    if (q->count == q->cap) {
        q->cap = q->cap == 0 ? 64 : q->cap * 2;
        q->event = mem_resize(q->event, q->cap * sizeof *q->event);
    }
    q->event[q->count++] = *event;
}

/* ---- sending ---- */

struct shell_peer *shell_peer(const struct shell *s, uint64_t id)
{
    // The mix is one to one: equal hashes are equal ids.
    struct table_link *found = table_first(&s->peers, table_mix(id));

    return found == NULL ? NULL : CONTAINER_OF(found, struct shell_peer, by_id);
}

static void drop_later(struct shell *s, struct link *link, const char *why)
{
    struct shell_peer *p = link_user(link);

    if (p != NULL && p->drop == NULL) {
        p->drop = why;
        s->drops_due = true;
    }
}

void shell_drop_peers(struct shell *s)
{
    struct table_walk at = {0};

    if (!s->drops_due) {
        return;
    }
    s->drops_due = false;
    for (struct table_link *l = table_walk(&s->peers, &at); l != NULL;
         l = table_walk(&s->peers, &at)) {
        const struct shell_peer *p = CONTAINER_OF(l, struct shell_peer, by_id);

        if (p->drop != NULL) {
            link_drop(p->link, p->drop);
        }
    }
}

static void fails(struct shell *s, struct link *link, enum err error, enum frame_type type,
                  size_t size)
{
    // Any other error: the link has just gone, which is an event of its own.
    if (error == ERR_BUSY) {
        // Without its link what is unanswered gets asked for again.
        drop_later(s, link, "the peer does not read what it is sent");
    } else if (error == ERR_TOO_BIG) {
        log_error("node", "too_big", "type=%d bytes=%zu", (int)type, size);
    }
}

static enum err send_to(struct shell *s, struct link *link, enum frame_type type,
                        struct bytes bytes)
{
    const enum err error = frame_type_has_records((uint8_t)type)
                               ? link_send_record(link, type, bytes)
                               : link_send(link, type, bytes);

    fails(s, link, error, type, bytes.size);
    return error;
}

void shell_send_coordinator(struct shell *s, size_t index, struct bytes bytes)
{
    ASSERT(index < s->coordinator_count);
    (void)send_to(s, s->coordinator[index], FRAME_CONTROL, bytes);
}

/* The host must know in time: what it has started still answers, and a link takes no more than
 * links_config.queue_size_max. */
static void note_full(struct shell *s, struct shell_peer *p)
{
    if (p->full || link_queued(p->link) < LINK_FULL) {
        return;
    }
    p->full = true;
    s->full_count++;
    shell_queue(s, &(struct host_event){.type = HOST_PEER_FULL, .peer = p->id});
}

/* What waits goes before anything new. */
static void send_backlog(struct shell *s, struct shell_peer *p)
{
    while (!backlog_is_empty(&p->backlog) && p->drop == NULL && link_queued(p->link) < LINK_FULL) {
        enum frame_type type = FRAME_CONTROL;
        const struct bytes bytes = backlog_front(&p->backlog, &type);

        (void)send_to(s, p->link, type, bytes);
        s->backlog_size -= bytes.size;
        backlog_pop(&p->backlog);
    }
}

void shell_free_peer(struct shell *s, struct shell_peer *p)
{
    s->full_count -= p->full ? 1 : 0;
    s->backlog_size -= p->backlog.size;
    backlog_fini(&p->backlog);
    mem_free(p);
}

void shell_look_for_room(struct shell *s)
{
    struct table_walk at = {0};

    if (s->full_count == 0) {
        return;
    }
    for (struct table_link *l = table_walk(&s->peers, &at); l != NULL;
         l = table_walk(&s->peers, &at)) {
        struct shell_peer *p = CONTAINER_OF(l, struct shell_peer, by_id);

        if (p->full) {
            send_backlog(s, p);
        }
        if (p->full && backlog_is_empty(&p->backlog) && link_queued(p->link) <= LINK_ROOM) {
            const struct host_event event = {.type = HOST_PEER_ROOM, .peer = p->id};

            p->full = false;
            s->full_count--;
            shell_queue(s, &event);
        }
    }
    shell_settle(s);
}

enum err shell_send_peer(struct shell *s, uint64_t peer, enum frame_type type, struct bytes bytes)
{
    struct shell_peer *p = shell_peer(s, peer);

    if (p == NULL) {
        return ERR_NOT_FOUND;
    }
    // A stream's log does not wait in the backlog, so what joins the stream must not, either.
    if (!p->full || frame_type_is_stream((uint8_t)type)) {
        const enum err error = send_to(s, p->link, type, bytes);

        note_full(s, p);
        return error;
    }
    if (s->backlog_size + bytes.size > BACKLOG_MAX) {
        drop_later(s, p->link, "the peer does not read what it is sent");
        return ERR_BUSY;
    }
    s->backlog_size += bytes.size;
    backlog_put(&p->backlog, type, bytes);
    return ERR_OK;
}

enum err shell_send_common(struct shell *s, uint64_t peer, const struct calls_effect *e)
{
    struct shell_peer *p = shell_peer(s, peer);

    if (p == NULL || p->full) {
        struct buffer whole = {0};

        request_put_whole(&whole, e->bytes, e->common);
        const enum err queued = shell_send_peer(s, peer, FRAME_REQUEST, buffer_bytes(&whole));
        buffer_fini(&whole);
        return queued;
    }
    const enum err error = link_send_common(p->link, e->bytes, e->common, e->common_number);

    fails(s, p->link, error, FRAME_REQUEST, e->bytes.size);
    note_full(s, p);
    return error;
}

static void on_send_peer(struct shell *s, const struct host_effect *e, struct bytes bytes)
{
    if (e->peer == CALLS_LINK) {
        shell_on_call_record(s, bytes);
    } else {
        (void)shell_send_peer(s, e->peer, (enum frame_type)e->frame_type, bytes);
    }
}

/* ---- actors ---- */

/* Its name is dead after its discard: what was queued must not reach the host any more. */
static void unqueue(struct queued_events *q, const struct actor *actor)
{
    for (size_t i = q->head; i < q->count; i++) {
        if (q->event[i].actor == actor) {
            q->event[i].type = HOST_TICK;
            q->event[i].actor = NULL;
        }
    }
}

void shell_log_actor(enum log_level level, const char *event, struct named actor, const char *what)
{
    char name[ACTOR_NAME_SIZE];

    log_write(level,
              "node",
              event,
              "actor=%s what=\"%s\"",
              actor_name_print(actor.kind, actor.id, name),
              what);
}

static void on_mailbox_full(const struct host_effect *e)
{
    char name[ACTOR_NAME_SIZE];

    log_warn("node",
             "mailbox_full",
             "actor=%s refused=%" PRIu64,
             actor_name_print(actor_kind(e->actor), actor_id(e->actor), name),
             e->count);
}

/* Its link was up before that was known; from now on its hello is refused. */
static void on_drop_peer(struct shell *s, const struct host_effect *e)
{
    struct shell_peer *p = shell_peer(s, e->peer);

    if (p != NULL) {
        refusals_count(REFUSAL_IDENTITY);
        log_warn("node",
                 "peer_dropped",
                 "peer=%s incarnation=%s reason=\"%s\"",
                 link_peer(p->link)->name,
                 STAMP(link_peer(p->link)->incarnation),
                 e->why);
        drop_later(s, p->link, e->why);
    }
}

/* ---- the node itself ---- */

static void on_registered(struct shell *s, const struct host_effect *e)
{
    const struct rh_node_options *o = &s->options->node;
    struct table_walk at = {0};

    crash_record_begin(&s->crash_record, e->incarnation);
    links_set_incarnation(s->links, e->incarnation);
    // Who met me before knows me by an older incarnation, or none: let them say hello again.
    for (struct table_link *l = table_walk(&s->peers, &at); l != NULL;
         l = table_walk(&s->peers, &at)) {
        const struct shell_peer *p = CONTAINER_OF(l, struct shell_peer, by_id);

        if (p->coordinator < 0) {
            drop_later(s, p->link, "this process's incarnation changed");
        }
    }
    log_info("node",
             "serving",
             "node=%s incarnation=%s address=%s",
             o->name,
             STAMP(e->incarnation),
             s->address);
    if (s->ready) {
        return;
    }
    s->ready = true;
    if (s->options->announce) {
        (void)printf("ready node=%s incarnation=%s address=%s\n",
                     o->name,
                     STAMP(e->incarnation),
                     s->address);
        (void)fflush(stdout);
    }
    if (o->ready != NULL) {
        o->ready(o->context, e->incarnation, s->address);
    }
}

static void on_exit(struct shell *s, const struct host_effect *e)
{
    s->exiting = true;
    s->exit_code = e->code;
    s->exit_by_us = s->now_us + 1000000;
    if (e->code == 0) {
        log_info("node", "left", "why=\"%s\"", e->why);
    } else {
        (void)fprintf(stderr,
                      "ringhold node: %s%s\n",
                      e->why,
                      e->code == EXIT_FENCED ? ": exit code 75, start the node again to join anew"
                      : e->code == EXIT_ALONE
                          ? ": exit code 69, the node's actors are flushed and end"
                          : "");
    }
}

/* ---- steps ---- */

static void perform(struct shell *s, const struct host_effect *e)
{
    const struct bytes bytes = {s->effects.bytes.data + e->at, e->size};

    switch (e->type) {
    case HOST_SEND_COORDINATOR:
        shell_send_coordinator(s, (size_t)e->coordinator, bytes);
        return;
    case HOST_SEND_PEER:
        on_send_peer(s, e, bytes);
        return;
    case HOST_CONNECT:
        shell_dial(s, e->slot, (const char *)bytes.data, WANTS_HOST);
        return;
    case HOST_DISCONNECT:
        shell_hang_up(s, e->slot, WANTS_HOST);
        return;
    case HOST_DROP_PEER:
        on_drop_peer(s, e);
        return;
    case HOST_PERSIST:
        persist_put(s, e->disk, e->ticket);
        return;
    case HOST_SUBMIT:
        if (e->submission.verb == VERB_DISCARD) {
            unqueue(&s->queued, e->actor);
        }
        dispatcher_submit(s, e, bytes);
        return;
    case HOST_FORMER:
        calls_former(s->calls,
                     &(struct call_former){.kind = actor_kind(e->actor),
                                           .id = actor_id(e->actor),
                                           .incarnation = e->incarnation,
                                           .session = e->ticket},
                     s->now_us);
        return;
    case HOST_LIST:
        for (size_t i = 0; i < e->kind_count; i++) {
            lister_ask(s->lister, e->kinds[i], s->now_us);
        }
        return;
    case HOST_DUE:
        dispatcher_ask_due(s, e, bytes);
        return;
    case HOST_MAILBOX_FULL:
        on_mailbox_full(e);
        return;
    case HOST_REGISTERED:
        on_registered(s, e);
        return;
    case HOST_EXIT:
        on_exit(s, e);
        return;
    }
    UNREACHABLE();
}

/* What is surely too late stays with the host. What enters an actor waits for its worker first,
 * which looks at the clock itself, and what leaves waits in its link, which does so after it was
 * built and before it is handed to the socket (hole 30, specification §4.1): here it is enough to
 * go by the time of some steps ago. */
static void perform_in_time(struct shell *s, size_t at)
{
    const struct host_effect *e = &s->effects.item[at];
    const uint64_t limit_us = e->type == HOST_SUBMIT ? UINT64_MAX : host_limit_us(s->host, e);

    if (s->now_us >= limit_us) {
        host_keep(s->host, &s->effects, at);
    } else {
        perform(s, e);
    }
}

/* They come by the thousand and take next to nothing each. */
static bool is_short(const struct host_event *event)
{
    const enum verb verb = event->completion.verb;

    return event->type == HOST_REQUEST || event->type == HOST_STATE ||
           (event->type == HOST_COMPLETED && !event->completion.returned &&
            (verb == VERB_RUN || verb == VERB_TURN || verb == VERB_EXPORT || verb == VERB_COPY));
}

/* Some of these go by one look at the clocks. True: it was looked at. */
static bool look_at_clocks(struct shell *s, const struct host_event *event)
{
    enum { STEPS_A_LOOK = 32 };

    if (s->fresh > 0 && is_short(event)) {
        s->fresh--;
        return false;
    }
    s->now_us = clock_boottime_us();
    s->wall_us = clock_wall_us();
    s->fresh = is_short(event) ? STEPS_A_LOOK - 1 : 0;
    return true;
}

static bool begin_step(struct shell *s, struct host_event *event)
{
    ASSERT(!s->stepping);
    s->stepping = true;
    const bool looked = look_at_clocks(s, event);
    event->now_us = s->now_us;
    event->wall_us = s->wall_us;
    return looked;
}

static void end_step(struct shell *s, bool looked)
{
    if (looked) { // else neither the lease nor the ring can be another than before
        calls_look(s->calls, host_view(s->host), host_incarnation(s->host), s->now_us);
        links_set_gate(s->links, host_gate_us(s->host));
        dispatcher_set_limits(s);
    }
    for (size_t i = 0; i < s->effects.count; i++) {
        perform_in_time(s, i);
    }
    host_effects_clear(&s->effects);
    s->stepping = false;
}

void shell_step(struct shell *s, struct host_event *event)
{
    const bool looked = begin_step(s, event);

    host_step(s->host, event, &s->effects);
    end_step(s, looked);
}

/* A record of its answer goes straight to its link. */
static bool answer_link(void *context, const struct answer_record *answer)
{
    struct serving *v = context;
    struct shell_peer *p = v->peer;
    struct buffer *record = &v->shell->answer; // those of effects may be in use

    buffer_clear(record);
    answer_put(record, answer);
    (void)send_to(v->shell, p->link, FRAME_ANSWER, buffer_bytes(record));
    note_full(v->shell, p);
    return !p->full && p->drop == NULL;
}

/* Answers to actors of this node, whose bodies are in the shell's buffer. */
struct told_calls {
    struct answer_record answer[CALLS_ANSWERS_MAX];
    size_t at[CALLS_ANSWERS_MAX];
    size_t count;
};

static void tell_heard(struct shell *s, struct told_calls *heard)
{
    for (size_t i = 0; i < heard->count; i++) {
        heard->answer[i].body.data = s->answer.data + heard->at[i];
    }
    (void)calls_answers(s->calls, CALLS_LINK, heard->answer, heard->count, s->now_us);
    heard->count = 0;
    buffer_clear(&s->answer);
}

/* They are told together. */
static bool answer_call(void *context, const struct answer_record *answer)
{
    const struct serving *v = context;
    struct told_calls *heard = v->heard;

    heard->answer[heard->count] = *answer;
    heard->at[heard->count++] = v->shell->answer.size;
    buffer_put(&v->shell->answer, answer->body.data, answer->body.size);
    if (heard->count == CALLS_ANSWERS_MAX) {
        tell_heard(v->shell, heard);
    }
    return true;
}

static size_t serve(struct shell *s, const struct host_server *server, struct host_event *event,
                    const struct request_record *r, const uint64_t *position, size_t count)
{
    s->fresh = 0; // As many go by one look at the clocks as by the steps of one.
    const bool looked = begin_step(s, event);
    const size_t served = host_serve(s->host, event, r, position, count, server);
    end_step(s, looked);
    return served;
}

size_t shell_serve_calls(struct serving *v, const struct calls_effect *e,
                         const struct request_record *r, const uint64_t *position, size_t count)
{
    struct shell *s = v->shell;
    const struct host_server server = {v, dispatcher_run, answer_call, &s->effects, NULL, NULL};
    struct host_event event = {.type = HOST_REQUEST, .peer = CALLS_LINK, .made_us = e->made_us};
    struct told_calls heard;

    heard.count = 0;
    v->heard = &heard;
    buffer_clear(&s->answer);
    const size_t served = serve(s, &server, &event, r, position, count);
    tell_heard(s, &heard);
    v->heard = NULL;
    return served;
}

size_t shell_serve(struct shell *s, uint64_t peer, const struct request_record *r,
                   const uint64_t *position, size_t count)
{
    struct serving serving = {.shell = s, .peer = shell_peer(s, peer)};
    const struct host_server server = {
        &serving, dispatcher_run, answer_link, &s->effects, NULL, NULL};
    struct host_event event = {.type = HOST_REQUEST, .peer = peer};

    if (s->exiting || serving.peer == NULL || serving.peer->full) {
        return 0;
    }
    const size_t served = serve(s, &server, &event, r, position, count);
    dispatcher_end_serving(&serving);
    shell_settle(s);
    return served;
}

static uint64_t time_by_now(void *context)
{
    (void)context;
    return clock_boottime_us();
}

void shell_take_frame(struct shell *s, uint64_t peer, const struct frame *frame)
{
    struct serving serving = {.shell = s, .peer = shell_peer(s, peer)};
    const struct host_server server = {.context = &serving,
                                       .run = dispatcher_run,
                                       .now_us = time_by_now,
                                       .fetch = activation_fetch};
    struct host_event event = {.type = HOST_FRAME, .peer = peer, .frame = frame, .server = &server};

    if (s->exiting || serving.peer == NULL) {
        return;
    }
    shell_step(s, &event);
    dispatcher_end_serving(&serving);
    shell_settle(s);
    dispatcher_do(s);
}

void shell_feed_links(struct shell *s)
{
    uint64_t peer = 0;

    while (clock_boottime_us() < host_gate_us(s->host) && host_unsent(s->host, &peer) != NULL) {
        const struct shell_peer *p = shell_peer(s, peer);

        if (p != NULL && p->drop == NULL) {
            link_feed(p->link);
        }
    }
}

static void take_queued(struct shell *s)
{
    struct queued_events *q = &s->queued;

    while (q->head < q->count && !s->exiting) {
        struct host_event next = q->event[q->head++];

        shell_step(s, &next);
    }
    q->head = q->count = 0;
}

void shell_settle(struct shell *s)
{
    enum { AT_ONCE = 10000 }; // then the links get their turn

    do {
        take_queued(s);
    } while (shell_settle_calls(s));
    for (int i = 0; i < AT_ONCE && !s->exiting && host_has_more(s->host); i++) {
        struct host_event go_on = {.type = HOST_GO_ON};

        shell_step(s, &go_on);
        take_queued(s);
    }
}

void shell_feed(struct shell *s, struct host_event *event)
{
    if (s->exiting) {
        return;
    }
    shell_step(s, event);
    shell_settle(s);
}
