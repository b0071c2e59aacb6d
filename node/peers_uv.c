/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's links: who is at the other end, and where each frame goes.
 */
#include "node/shell_uv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "stream/sendlog.h"
#include "wire/control.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JOIN_SIZE = 1024 };

static enum refusal on_hello(void *context, const struct link *link, const struct hello *peer,
                             const char **why)
{
    const struct shell *s = context;

    (void)link;
    *why = peer->role == ROLE_COORDINATOR
               ? NULL
               : host_refuses(s->host, peer->role, peer->name, peer->incarnation);
    return *why == NULL ? REFUSAL_NONE : REFUSAL_IDENTITY;
}

static int coordinator_index(const struct shell *s, const struct link *link)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        if (s->coordinator[i] == link) {
            return (int)i;
        }
    }
    return -1;
}

static struct bytes take(void *context)
{
    const struct shell_peer *p = context;
    struct sendlog *log = host_log(p->shell->host, p->id);

    return log == NULL ? bytes_of(NULL, 0) : sendlog_unsent(log);
}

static void sent(void *context, size_t size)
{
    const struct shell_peer *p = context;

    sendlog_sent(host_log(p->shell->host, p->id), size);
}

static void on_up(void *context, struct link *link)
{
    struct shell *s = context;
    const struct hello *hello = link_peer(link);
    const int coordinator = coordinator_index(s, link);

    if ((coordinator >= 0) != (hello->role == ROLE_COORDINATOR)) {
        link_drop(link,
                  coordinator >= 0 ? "the peer is not a coordinator"
                                   : "only a coordinator that this process called may do this");
        return;
    }
    struct shell_peer *p = mem_new(1, sizeof *p);
    p->id = ++s->last_peer;
    p->shell = s;
    p->link = link;
    p->coordinator = coordinator;
    backlog_init(&p->backlog);
    table_put(&s->peers, &p->by_id, table_mix(p->id));
    link_set_user(link, p);
    link_set_source(link,
                    &(struct link_source){.context = p, .take = take, .sent = sent, .gated = true});
    struct host_event event = {
        .type = coordinator >= 0 ? HOST_COORDINATOR_UP : HOST_PEER_UP,
        .coordinator = coordinator,
        .peer = coordinator >= 0 ? 0 : p->id,
        .role = (int)hello->role,
        .name = hello->name,
        .incarnation = hello->incarnation,
        .dialled = link_dialled(link),
        .streams = link_protocol(link) >= LINK_PROTOCOL_STREAMS,
    };
    s->coordinators_up += coordinator >= 0 ? 1 : 0;
    const uint64_t id = p->id;
    shell_feed(s, &event);
    p = shell_peer(s, id);
    // One that came at the same time may have taken its id between its hello and now.
    if (p == NULL || p->drop != NULL) {
        return;
    }
    if (hello->role == ROLE_NODE) {
        calls_up(s->calls, id, hello->name, hello->incarnation, event.streams, s->now_us);
        shell_settle(s);
    } else if (hello->role == ROLE_GATEWAY) {
        presence_up(&s->presence, hello->incarnation, id);
    }
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct shell *s = context;
    struct shell_peer *p = link_user(link);

    (void)reason; // The links log it.
    if (p == NULL) {
        return;
    }
    struct host_event event = {
        .type = p->coordinator >= 0 ? HOST_COORDINATOR_DOWN : HOST_PEER_DOWN,
        .coordinator = p->coordinator,
        .peer = p->coordinator >= 0 ? 0 : p->id,
    };
    if (p->coordinator >= 0 && --s->coordinators_up == 0) {
        s->complained_us = s->now_us;
    }
    table_remove(&s->peers, &p->by_id);
    link_set_user(link, NULL);
    link_set_source(link, NULL);
    calls_down(s->calls, p->id, s->now_us);
    presence_down(&s->presence, p->id, s->now_us);
    shell_free_peer(s, p);
    shell_feed(s, &event);
}

/* A peer that sends what does not decode is not listened to any longer. */
static void on_bad_bytes(struct shell *s, struct link *link, const char *why)
{
    s->bad_frames++;
    link_garbage(link, why);
}

static size_t place_of(const struct shell *s, const char *address, const Rh__Leader *leader)
{
    struct finder_known known[FINDER_MAX] = {0};

    for (size_t i = 0; i < s->coordinator_count; i++) {
        known[i].address = link_address(s->coordinator[i]);
        known[i].linked = link_user(s->coordinator[i]) != NULL;
    }
    return finder_place(known, FINDER_MAX, address, leader->coordinators, leader->n_coordinators);
}

/* Others may lead from now on: a link to each is wanted. Old ones stay while there is room: they
 * know who came after them. */
static void learn_coordinators(struct shell *s, const Rh__Leader *leader)
{
    for (size_t i = 0; i < leader->n_coordinators; i++) {
        const char *address = leader->coordinators[i];
        const size_t at = place_of(s, address, leader);
        const bool known =
            at < s->coordinator_count && strcmp(link_address(s->coordinator[at]), address) == 0;
        struct link *link = known || at == FINDER_MAX ? NULL : links_dial(s->links, address);

        if (link == NULL) {
            continue;
        }
        log_info("node", "coordinator_learnt", "address=%s", address);
        if (at < s->coordinator_count) {
            links_forget(s->links, s->coordinator[at]);
        } else {
            s->coordinator_count++;
        }
        s->coordinator[at] = link;
    }
}

/* From its first registration on this node is of that fleet alone, and so is its folder. */
static void heed_fleet(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;
    const struct fleet_id fleet = host_view(s->host)->fleet;
    char text[FLEET_ID_TEXT_SIZE];

    if (fleet_id_same(fleet, s->folder.fleet)) {
        return;
    }
    fleet_id_print(fleet, text);
    log_info("node", "fleet_joined", "id=%s", text);
    if (folder_join(&s->folder, o->data, shell_cluster(o), o->name, fleet) != ERR_OK) {
        // It said why; the next start could join another, this process won't.
        log_warn("node", "fleet_not_noted", "id=%s folder=%s", text, o->data);
    }
    links_set_fleet(s->links, fleet);
}

static void on_control(struct shell *s, struct link *link, const struct frame *frame)
{
    const struct shell_peer *p = link_user(link);
    Rh__Control *message = control_get(frame->body);

    if (message == NULL) {
        on_bad_bytes(s, link, "it sent a control message that can't be decoded");
        return;
    }
    struct host_event event = {
        .type = p->coordinator >= 0 ? HOST_CONTROL : HOST_PEER_CONTROL,
        .coordinator = p->coordinator,
        .peer = p->coordinator >= 0 ? 0 : p->id,
        .message = message,
    };
    if (message->body_case == RH__CONTROL__BODY_LEADER) {
        learn_coordinators(s, message->leader);
    }
    calls_control(s->calls, event.peer, message, s->now_us);
    if (message->body_case == RH__CONTROL__BODY_INSPECT) {
        worker_stats_feed(s, &event);
    } else if (message->body_case == RH__CONTROL__BODY_PROBE) {
        shell_on_probe(s, p->id, message->probe);
    } else if (message->body_case == RH__CONTROL__BODY_OPERATOR_REQUEST && p->coordinator >= 0) {
        calls_operate(s->calls, p->coordinator, message, s->now_us);
        shell_settle(s);
    } else {
        shell_feed(s, &event);
    }
    control_free(message);
    heed_fleet(s);
}

/* Feed the next `count` requests, HOST_PREFETCH_MAX at most; `before` is the body of the one before
 * them, and of their last one then. False: the link is let go of. */
static bool on_some_requests(struct shell *s, struct link *link, struct reader *in, size_t count,
                             struct bytes *before)
{
    struct request_record r[HOST_PREFETCH_MAX];
    uint64_t position[HOST_PREFETCH_MAX];
    const uint64_t peer = ((const struct shell_peer *)link_user(link))->id;
    enum { VAIN_MAX = 3 }; // of those that are not steady many come together
    unsigned vain = 0;
    size_t good = 0;

    while (good < count && request_get_behind(in, *before, &r[good]) == ERR_OK) {
        *before = r[good].body;
        good++;
    }
    host_prefetch(s->host, r, good, position);
    for (size_t i = 0; i < good; i++) {
        const size_t served =
            vain < VAIN_MAX ? shell_serve(s, peer, &r[i], &position[i], good - i) : 0;

        vain += served == 0 ? 1 : 0;
        i += served;
        if (i < good && shell_peer(s, peer) != NULL) {
            struct host_event event = {
                .type = HOST_REQUEST, .peer = peer, .position = position[i], .request = &r[i]};

            shell_feed(s, &event);
            dispatcher_do(s); // What comes next may be served again.
        }
        if (shell_peer(s, peer) == NULL) {
            return false; // That record made the host let go of the link.
        }
    }
    dispatcher_do(s);
    if (shell_peer(s, peer) == NULL) {
        return false; // Or what it came to did.
    }
    if (good < count) {
        on_bad_bytes(s, link, "it sent a record that can't be decoded");
    }
    return good == count;
}

static bool on_requests(struct shell *s, struct link *link, struct reader *in, size_t count)
{
    struct bytes before = {0};

    while (count > 0) {
        const size_t some = count < HOST_PREFETCH_MAX ? count : HOST_PREFETCH_MAX;

        if (!on_some_requests(s, link, in, some, &before)) {
            return false;
        }
        count -= some;
    }
    return true;
}

/* Images come by the hundred: some to a step. False: the link is let go of. */
static bool on_states(struct shell *s, struct link *link, struct reader *in, size_t count)
{
    enum { AT_ONCE = 32 };
    const uint64_t peer = ((const struct shell_peer *)link_user(link))->id;
    struct state_record r[AT_ONCE];
    struct host_event event = {.type = HOST_STATE, .peer = peer, .state = r};

    for (size_t left = count; left > 0; left -= event.state_count) {
        const size_t some = left < AT_ONCE ? left : AT_ONCE;

        event.state_count = 0;
        while (event.state_count < some && state_get(in, &r[event.state_count]) == ERR_OK) {
            event.state_count++;
        }
        const bool good = event.state_count == some;
        if (event.state_count > 0) {
            shell_feed(s, &event);
        }
        if (shell_peer(s, peer) == NULL) {
            return false;
        }
        if (!good) {
            on_bad_bytes(s, link, "it sent a record that can't be decoded");
            return false;
        }
    }
    return true;
}

/* Those that answer calls of this node together, the others to the host. False: the link is let go
 * of. */
static bool on_answers(struct shell *s, struct link *link, struct reader *in, size_t count)
{
    const uint64_t peer = ((const struct shell_peer *)link_user(link))->id;
    struct answer_record a[CALLS_ANSWERS_MAX];

    for (size_t left = count; left > 0;) {
        const size_t some = left < CALLS_ANSWERS_MAX ? left : CALLS_ANSWERS_MAX;
        size_t good = 0;

        while (good < some && answer_get(in, &a[good]) == ERR_OK) {
            good++;
        }
        for (size_t i = 0; i < good; i++) {
            i += calls_answers(s->calls, peer, &a[i], good - i, s->now_us);
            if (i < good) {
                struct host_event event = {.type = HOST_ANSWER, .peer = peer, .answer = &a[i]};

                shell_feed(s, &event);
            }
            if (shell_peer(s, peer) == NULL) {
                return false;
            }
        }
        if (good < some) {
            on_bad_bytes(s, link, "it sent a record that can't be decoded");
            return false;
        }
        left -= some;
    }
    shell_settle(s); // all of them, together
    return shell_peer(s, peer) != NULL;
}

static bool on_state_acks(struct shell *s, struct link *link, struct reader *in, size_t count)
{
    const uint64_t peer = ((const struct shell_peer *)link_user(link))->id;

    for (size_t i = 0; i < count; i++) {
        struct state_ack_record ack;
        struct host_event event = {.type = HOST_STATE_ACK, .peer = peer, .state_ack = &ack};

        if (state_ack_get(in, &ack) != ERR_OK) {
            on_bad_bytes(s, link, "it sent a record that can't be decoded");
            return false;
        }
        shell_feed(s, &event);
        if (shell_peer(s, peer) == NULL) {
            return false;
        }
    }
    return true;
}

static void on_records(struct shell *s, struct link *link, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};
    const bool all = frame->type == FRAME_REQUEST  ? on_requests(s, link, &in, frame->count)
                     : frame->type == FRAME_STATE  ? on_states(s, link, &in, frame->count)
                     : frame->type == FRAME_ANSWER ? on_answers(s, link, &in, frame->count)
                                                   : on_state_acks(s, link, &in, frame->count);

    if (all && in.left != 0) {
        on_bad_bytes(s, link, "it sent bytes after the last record");
    }
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct shell *s = context;
    const struct shell_peer *p = link_user(link);

    if (p == NULL) {
        return; // It is on its way out.
    }
    if (frame->type == FRAME_CONTROL) {
        on_control(s, link, frame);
    } else if (frame_type_is_stream((uint8_t)frame->type)) {
        shell_take_frame(s, p->id, frame);
    } else {
        on_records(s, link, frame);
    }
}

static void on_links_wake(void *context)
{
    shell_poll(context);
}

/* ---- opening ---- */

static bool listen_on(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;
    const char *address = o->listen == NULL ? "127.0.0.1:0" : o->listen;
    const enum err error = links_listen(s->links, address, s->address, sizeof s->address);

    if (error == ERR_OK && o->advertise != NULL) {
        (void)snprintf(s->address, sizeof s->address, "%s", o->advertise);
    }
    if (error == ERR_OK) {
        return true;
    }
    (void)fprintf(stderr,
                  "ringhold node: can't listen on %s: %s\n",
                  address,
                  error == ERR_CONFLICT  ? "the port is in use"
                  : error == ERR_INVALID ? "the address is not HOST:PORT of this machine"
                                         : err_text(error));
    return false;
}

/* SIGHUP, and the options are good. */
static void on_reload(void *owner)
{
    struct shell *s = owner;

    host_configure(s->host, &s->options->limits);
    links_reload(s->links);
}

bool peers_open(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;
    struct links_config config = links_config_default();
    const struct link_events events = {
        .context = s,
        .hello = on_hello,
        .up = on_up,
        .down = on_down,
        .frame = on_frame,
        .wake = on_links_wake,
    };

    config.loop = &s->loop;
    config.tls = (struct link_files){
        .ca = o->link_ca, .certificate = o->link_certificate, .key = o->link_key};
    config.self.role = ROLE_NODE;
    config.self.fleet = s->folder.fleet;
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", shell_cluster(o));
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", o->name);
    if (links_open(&s->links, &config, &events) != ERR_OK) {
        return shell_complain("can't open links as ", o->name);
    }
    if (o->keep_signals == 0) {
        reload_start(&s->reload, &s->loop, s->options->source, on_reload, s);
    }
    return listen_on(s);
}

bool peers_dial_coordinators(struct shell *s)
{
    char join[JOIN_SIZE];
    char *rest = NULL;

    if (strlen(s->options->node.join) >= sizeof join) {
        return shell_complain("the list of coordinators is too long", "");
    }
    (void)snprintf(join, sizeof join, "%s", s->options->node.join);
    for (const char *at = strtok_r(join, ", ", &rest); at != NULL;
         at = strtok_r(NULL, ", ", &rest)) {
        if (s->coordinator_count == FINDER_MAX) {
            return shell_complain("too many coordinators to join", "");
        }
        struct link *link = links_dial(s->links, at);
        if (link == NULL) {
            return shell_complain("a coordinator to join must be HOST:PORT, not ", at);
        }
        s->coordinator[s->coordinator_count++] = link;
    }
    return s->coordinator_count > 0 || shell_complain("no coordinator to join is given", "");
}
