/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/coordinator_daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ring/hash.h"
#include "wire/control.h"
#include "wire/inject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS_MAX = 1000 };

/* Of the two links of a pair of coordinators either will do; mine is the first choice. */
static struct link *link_to_voter(const struct daemon *d, uint64_t voter)
{
    for (size_t i = 0; i < d->options->voter_count; i++) {
        if (d->options->voter[i] == voter && d->dialled[i] != NULL && link_is_up(d->dialled[i])) {
            return d->dialled[i];
        }
    }
    struct table_walk at = {0};
    for (struct table_link *l = table_walk(&d->peers, &at); l != NULL;
         l = table_walk(&d->peers, &at)) {
        const struct peer *p = CONTAINER_OF(l, struct peer, by_id);

        if (p->voter == voter) {
            return p->link;
        }
    }
    return NULL;
}

void daemon_send_raft(void *context, uint64_t voter, struct bytes message)
{
    struct daemon *d = context;
    struct link *link = link_to_voter(d, voter);

    if (link != NULL && link_send(link, FRAME_RAFT, message) != ERR_OK) {
        log_debug("coordinator", "raft_dropped", "voter=%" PRIu64, voter);
    }
}

/* Coordinators must be told the same list: one that counts other voters could elect on its own. */
static uint64_t voters_digest(const struct coordinator_options *o)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < o->voter_count; i++) {
        const struct ring_key key = {o->voter[i], o->voter_count};

        sum += ring_position(key, bytes_of(o->address[i], strlen(o->address[i])));
    }
    return o->voter_count == 1 ? 0 : sum;
}

static uint64_t voter_named(const struct daemon *d, const char *name)
{
    for (size_t i = 0; i < d->options->voter_count; i++) {
        char text[24];

        (void)snprintf(text, sizeof text, "%" PRIu64, d->options->voter[i]);
        if (strcmp(text, name) == 0) {
            return d->options->voter[i];
        }
    }
    return 0;
}

static const char *on_hello(void *context, const struct hello *peer)
{
    struct daemon *d = context;

    if (peer->role != ROLE_COORDINATOR) {
        return NULL;
    }
    const uint64_t voter = voter_named(d, peer->name);
    if (voter == 0 || peer->voters != voters_digest(d->options)) {
        return "the coordinators' --peers lists disagree";
    }
    if (voter == d->options->id) {
        return peer->identity == replica_identity(d->replica) ? "this is me"
                                                              : "another coordinator has my --id";
    }
    if (replica_meet(d->replica, voter, peer->identity, peer->pristine) != ERR_OK) {
        return "this voter's data folder was wiped or replaced: it could vote twice; see "
               "docs/raft.md, 'A voter that lost its folder'";
    }
    return NULL;
}

static void on_up(void *context, struct link *link)
{
    struct daemon *d = context;
    const struct hello *hello = link_peer(link);
    struct peer *p = mem_new(1, sizeof *p);

    p->id = ++d->last_peer;
    p->link = link;
    p->voter = hello->role == ROLE_COORDINATOR ? voter_named(d, hello->name) : 0;
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
    };
    daemon_step(d, &event);
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct daemon *d = context;
    struct peer *p = link_user(link);

    (void)reason;
    if (p == NULL) {
        return;
    }
    struct coordinator_event event = {.type = COORDINATOR_PEER_DOWN, .peer = p->id};
    table_remove(&d->peers, &p->by_id);
    link_set_user(link, NULL);
    daemon_step(d, &event);
    if (p->voter != 0 && link_to_voter(d, p->voter) == NULL) {
        replica_lost(d->replica, clock_boottime_us(), p->voter);
    }
    mem_free(p);
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
    return in->what_case == RH__ADMIN__WHAT_RESOLVE      ? &in->resolve->by
           : in->what_case == RH__ADMIN__WHAT_DRAIN      ? &in->drain->by
           : in->what_case == RH__ADMIN__WHAT_REMOVE     ? &in->remove->by
           : in->what_case == RH__ADMIN__WHAT_DAEMONS    ? &in->daemons->by
           : in->what_case == RH__ADMIN__WHAT_QUARANTINE ? &in->quarantine->by
           : in->what_case == RH__ADMIN__WHAT_MEND       ? &in->mend->by
           : in->what_case == RH__ADMIN__WHAT_UPGRADE    ? &in->upgrade->by
                                                         : NULL;
}

/* Who says he is who: the name is the caller's word, the address is not. */
static void add_address(Rh__Admin *in, const struct link *link)
{
    char **by = wisher(in);
    char text[256];

    if (by == NULL) {
        return;
    }
    (void)snprintf(text, sizeof text, "%.120s from %.120s", *by, link_address(link));
    if (*by != protobuf_c_empty_string) {
        mem_free(*by);
    }
    *by = mem_string(text);
}

static void on_control(struct daemon *d, struct link *link, const struct frame *frame)
{
    const struct peer *p = link_user(link);
    Rh__Control *message = control_get(frame->body);

    if (message == NULL || p == NULL) {
        log_warn("coordinator", "bad_message", "peer=%s", link_peer(link)->name);
        control_free(message);
        link_drop(link, "it sent a control message that does not decode");
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
    const struct peer *p = link_user(link);

    if (frame->type == FRAME_CONTROL) {
        on_control(d, link, frame);
    } else if (frame->type == FRAME_RAFT && p != NULL && p->voter != 0) {
        replica_receive(d->replica, clock_boottime_us(), p->voter, frame->body);
    } else {
        link_drop(link, "it sent a frame that a coordinator does not take");
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

    config.tls = o->tls;
    config.self.role = ROLE_COORDINATOR;
    config.self.identity = replica_identity(d->replica);
    config.self.pristine = replica_pristine(d->replica);
    config.self.voters = voters_digest(o);
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
    for (size_t i = 0; i < o->voter_count; i++) {
        if (o->voter[i] != o->id) {
            d->dialled[i] = links_dial(d->links, o->address[i]);
        }
    }
    (void)printf("ready coordinator=%u address=%s\n", o->id, bound);
    (void)fflush(stdout);
    return true;
}
