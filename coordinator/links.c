/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's links: who is linked, whom to refuse, and where each frame goes.
 */
#include "coordinator/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "link/inject.h"
#include "link/subject.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS_MAX = 1000 };

void daemon_send_raft(void *context, uint64_t voter, struct bytes message)
{
    struct daemon *d = context;
    struct link *link = daemon_voter_link(d, voter);

    if (link != NULL && link_send(link, FRAME_RAFT, message) != ERR_OK) {
        log_debug("coordinator", "raft_dropped", "voter=%" PRIu64, voter);
    }
}

static enum refusal on_hello(void *context, const struct link *link, const struct hello *peer,
                             const char **why)
{
    (void)link;
    *why = peer->role == ROLE_COORDINATOR ? daemon_meet(context, peer) : NULL;
    return *why == NULL ? REFUSAL_NONE : REFUSAL_OWNER;
}

static void on_up(void *context, struct link *link)
{
    struct daemon *d = context;
    const struct hello *hello = link_peer(link);
    struct daemon_peer *p = mem_new(1, sizeof *p);

    p->id = ++d->last_peer;
    p->link = link;
    p->voter = hello->role == ROLE_COORDINATOR ? daemon_voter_id(hello) : 0;
    table_put(&d->peers, &p->by_id, table_mix(p->id));
    link_set_user(link, p);
    struct coordinator_event event = {
        .type = COORDINATOR_PEER_UP,
        .peer = p->id,
        .role = (int)hello->role,
        .name = hello->name,
        .incarnation = hello->incarnation,
        .identity = hello->identity,
        .address = hello->address,
        .product = hello->product,
        .format = hello->format,
        .protocol = link_protocol(link),
        .fleet = hello->fleet,
    };
    daemon_step(d, &event);
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct daemon *d = context;
    struct daemon_peer *p = link_user(link);

    (void)reason;
    if (p == NULL) {
        return;
    }
    struct coordinator_event event = {.type = COORDINATOR_PEER_DOWN, .peer = p->id};
    table_remove(&d->peers, &p->by_id);
    link_set_user(link, NULL);
    daemon_step(d, &event);
    if (p->voter != 0 && daemon_voter_link(d, p->voter) == NULL) {
        replica_lost(d->replica, clock_boottime_us(), p->voter);
    }
    mem_free(p);
}

void daemon_forget(struct daemon *d, struct link *link)
{
    on_down(d, link, "forgotten");
    links_forget(d->links, link);
}

/* The audit history is a table, so the shell answers, not the machine. Whoever leads has applied
 * all that anyone was told of. */
static void answer_events(struct daemon *d, struct link *link, const Rh__Admin *in)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__AdminReply *reply = mem_new(1, sizeof *reply);
    const uint32_t limit = in->events->limit < EVENTS_MAX ? in->events->limit : EVENTS_MAX;
    struct buffer bytes = {0};

    *reply = (Rh__AdminReply)RH__ADMIN_REPLY__INIT;
    reply->tag = in->tag;
    state_db_events(d->db, limit, reply);
    out.body_case = RH__CONTROL__BODY_ADMIN_REPLY;
    out.admin_reply = reply;
    control_put(&bytes, &out);
    if (link_send(link, FRAME_CONTROL, buffer_bytes(&bytes)) != ERR_OK) {
        log_warn("coordinator", "send_failed", "peer=%s", link_peer(link)->name);
    }
    buffer_fini(&bytes);
    proto_free(&reply->base);
}

/* Who wishes it, of what is wished; NULL: it is a question. */
static char **wisher(Rh__Admin *in)
{
    return in->what_case == RH__ADMIN__WHAT_RESOLVE            ? &in->resolve->by
           : in->what_case == RH__ADMIN__WHAT_DRAIN            ? &in->drain->by
           : in->what_case == RH__ADMIN__WHAT_REMOVE           ? &in->remove->by
           : in->what_case == RH__ADMIN__WHAT_WEIGHT           ? &in->weight->by
           : in->what_case == RH__ADMIN__WHAT_OPERATOR_REQUEST ? &in->operator_request->by
           : in->what_case == RH__ADMIN__WHAT_DAEMONS          ? &in->daemons->by
           : in->what_case == RH__ADMIN__WHAT_QUARANTINE       ? &in->quarantine->by
           : in->what_case == RH__ADMIN__WHAT_REPAIR           ? &in->repair->by
           : in->what_case == RH__ADMIN__WHAT_UPGRADE          ? &in->upgrade->by
           : in->what_case == RH__ADMIN__WHAT_PIN              ? &in->pin->by
           : in->what_case == RH__ADMIN__WHAT_MOVE             ? &in->move->by
           : in->what_case == RH__ADMIN__WHAT_COORDINATORS     ? &in->coordinators->by
           : in->what_case == RH__ADMIN__WHAT_MAINTENANCE      ? &in->maintenance->by
           : in->what_case == RH__ADMIN__WHAT_FORGET           ? &in->forget->by
                                                               : NULL;
}

/* Who says he is who: the name is the caller's word, his certificate and address are not. */
static void add_address(Rh__Admin *in, const struct link *link)
{
    char **by = wisher(in);
    struct subject subject;
    char text[256];

    if (by == NULL) {
        return;
    }
    if (link_subject(link, &subject)) {
        (void)snprintf(text,
                       sizeof text,
                       "%.90s as %s %s from %.64s",
                       *by,
                       subject_role_name(subject.role),
                       subject.name,
                       link_address(link));
    } else {
        (void)snprintf(text, sizeof text, "%.120s from %.120s", *by, link_address(link));
    }
    if (*by != protobuf_c_empty_string) {
        mem_free(*by);
    }
    *by = mem_string(text);
}

static void on_control(struct daemon *d, struct link *link, const struct frame *frame)
{
    const struct daemon_peer *p = link_user(link);
    Rh__Control *message = control_get(frame->body);

    if (message == NULL || p == NULL) {
        control_free(message);
        link_garbage(link, "a control message that can't be decoded");
        return;
    }
    if (!control_texts_are_plain(message)) {
        control_free(message);
        link_garbage(link, "a text with control characters");
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_PREPARED && d->leading) {
        inject_point("vote-received");
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN && d->leading &&
        message->admin->what_case == RH__ADMIN__WHAT_EVENTS) {
        answer_events(d, link, message->admin);
        control_free(message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN && d->leading &&
        message->admin->what_case == RH__ADMIN__WHAT_COORDINATORS) {
        add_address(message->admin, link);
        daemon_take_wish(d, link, message->admin);
        control_free(message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN) {
        add_address(message->admin, link);
    }
    struct coordinator_event event = {
        .type = COORDINATOR_MESSAGE, .peer = p->id, .message = message};
    daemon_step(d, &event);
    control_free(message);
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct daemon *d = context;
    const struct daemon_peer *p = link_user(link);

    if (frame->type == FRAME_CONTROL) {
        on_control(d, link, frame);
    } else if (p != NULL) {
        replica_receive(d->replica, clock_boottime_us(), p->voter, frame->body);
    }
}

bool daemon_open_links(struct daemon *d)
{
    const struct coordinator_options *o = d->options;
    struct links_config config = links_config_default();
    const struct link_events events = {
        .context = d,
        .hello = on_hello,
        .up = on_up,
        .down = on_down,
        .frame = on_frame,
        .wake = daemon_wake,
    };
    char bound[VIEW_ADDRESS_MAX + 1];

    config.loop = &d->loop;
    config.tls = o->tls;
    config.self.role = ROLE_COORDINATOR;
    config.self.identity = replica_identity(d->replica);
    config.self.pristine = replica_pristine(d->replica);
    daemon_hello(d, &config.self);
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", o->cluster);
    (void)snprintf(config.self.name, sizeof config.self.name, "%u", o->id);
    (void)snprintf(config.self.address, sizeof config.self.address, "%s", o->listen);
    if (links_open(&d->links, &config, &events) != ERR_OK) {
        (void)fprintf(stderr, "ringhold coordinator: can't open links\n");
        return false;
    }
    const enum err error = links_listen(d->links, o->listen, bound, sizeof bound);
    if (error != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold coordinator: can't listen on %s: %s\n",
                      o->listen,
                      error == ERR_CONFLICT ? "the port is in use" : err_text(error));
        return false;
    }
    daemon_dial_voters(d);
    (void)printf("ready coordinator=%u address=%s\n", o->id, bound);
    (void)fflush(stdout);
    return true;
}
