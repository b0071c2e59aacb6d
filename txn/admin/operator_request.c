/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator has sent to one actor goes by a gateway, as what players send does, once it
 * stands in the history; what is asked of its values by its owner's node. The request carries the
 * link it came from.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "txn/state/remembered.h"
#include "wire/values_ask.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

enum { FAULT_TEXT_SIZE = 192, DEED_SIZE = 64 };

static bool asks_values(const Rh__AdminOperatorRequest *in)
{
    return in->what == RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES;
}

/* Linked, and the one that is wished for; the newest link, for a gateway may have come anew. */
static const struct leader_peer *find_gateway(const struct coordinator *c, const char *name)
{
    const struct leader_peer *found = NULL;

    for (size_t i = c->peers.count; i-- > 0;) {
        const struct leader_peer *p = c->peers.item[i];

        if (p->role == ROLE_GATEWAY && (name[0] == '\0' || strcmp(p->name, name) == 0)) {
            if (p->protocol >= LINK_PROTOCOL_OPERATOR_REQUESTS) {
                return p;
            }
            found = found == NULL ? p : found;
        }
    }
    return found;
}

/* That owns the actor now. If it has gone on when the question comes, that node asks the next. */
static const struct leader_peer *find_owner(const struct coordinator *c, const Rh__Actor *actor)
{
    const struct view *view = &c->state->view;

    if (actor == NULL || !remembered_is_name(actor) || view->ring.vnode_count == 0) {
        return NULL;
    }
    const struct bytes id = bytes_of(actor->id.data, actor->id.len);
    const struct state_node *owner =
        state_node(c->state, ring_hit_node(view_lookup(view, (uint16_t)actor->kind, id)));
    return owner == NULL ? NULL : residents_find_node(c, owner->name);
}

static const struct leader_peer *find_target(const struct coordinator *c,
                                             const Rh__AdminOperatorRequest *in)
{
    return asks_values(in) ? find_owner(c, in->actor) : find_gateway(c, in->gateway);
}

static uint32_t protocol_of(const Rh__AdminOperatorRequest *in)
{
    return asks_values(in) ? LINK_PROTOCOL_VALUES : LINK_PROTOCOL_OPERATOR_REQUESTS;
}

/* Why it can't be sent there; NULL: it can. May use `text`. */
static const char *fault_of(const struct leader_peer *target, const Rh__AdminOperatorRequest *in,
                            char text[FAULT_TEXT_SIZE])
{
    struct values_ask ask;

    if (asks_values(in) &&
        values_ask_get(bytes_of(in->values.data, in->values.len), &ask) != ERR_OK) {
        return "the question about values can't be decoded";
    }
    if (target == NULL && asks_values(in)) {
        return "the actor has no owner that is linked to the leader (`ringhold where`)";
    }
    if (target == NULL && in->gateway[0] == '\0') {
        return "no gateway is linked to the leader";
    }
    if (target == NULL) {
        (void)snprintf(
            text, FAULT_TEXT_SIZE, "gateway '%.63s' is not linked to the leader", in->gateway);
        return text;
    }
    if (target->protocol < protocol_of(in)) {
        (void)snprintf(text,
                       FAULT_TEXT_SIZE,
                       "%s %.63s speaks protocol %u, and this command needs %u: upgrade the %s",
                       link_role_name(target->role),
                       target->name,
                       (unsigned)target->protocol,
                       (unsigned)protocol_of(in),
                       link_role_name(target->role));
        return text;
    }
    return NULL;
}

/* A copy, to be control_free()d. */
static Rh__Control *operator_request_new(uint64_t route, uint64_t tag,
                                         const Rh__AdminOperatorRequest *in)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__OperatorRequest body = RH__OPERATOR_REQUEST__INIT;
    Rh__AdminOperatorRequest what = *in;
    struct buffer bytes = {0};

    body.tag = tag;
    body.route = route;
    body.what = &what;
    control.body_case = RH__CONTROL__BODY_OPERATOR_REQUEST;
    control.operator_request = &body;
    control_put(&bytes, &control);
    Rh__Control *copy = control_get(buffer_bytes(&bytes));
    buffer_fini(&bytes);
    return copy;
}

/* What it does to the actor, as the history tells it. */
static void tell_deed(const Rh__AdminOperatorRequest *in, struct history_note *note,
                      char what[DEED_SIZE])
{
    struct values_ask ask;

    note->action = "trace";
    (void)snprintf(what, DEED_SIZE, "traced");
    if (in->what == RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK) {
        note->action = "kick";
        (void)snprintf(what, DEED_SIZE, "its session was told to end, code %u", (unsigned)in->code);
    } else if (asks_values(in) &&
               values_ask_get(bytes_of(in->values.data, in->values.len), &ask) == ERR_OK) {
        note->action = "values";
        (void)snprintf(what,
                       DEED_SIZE,
                       "%s, %zu bytes",
                       ask.replace ? "told to replace all its values" : "told to change its values",
                       ask.at + ask.page.size);
    }
    note->what = what;
}

static struct proposal *propose_note(struct coordinator *c, const Rh__AdminOperatorRequest *in)
{
    char name[ACTOR_NAME_SIZE];
    char subject[ACTOR_NAME_SIZE + 32];
    char what[DEED_SIZE];

    (void)snprintf(subject, sizeof subject, "actor %s", proto_actor(in->actor, name));
    struct history_note note = {.subject = subject, .by = in->by, .reason = in->reason};
    tell_deed(in, &note, what);
    if (in->what == RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK && in->reason[0] == '\0') {
        note.reason = in->text;
    }
    return coordinator_propose_note(c, PROPOSAL_OPERATOR_REQUEST, &note);
}

/* Which changes nothing yet: the history need not tell. */
static bool is_unnoted(const Rh__AdminOperatorRequest *in)
{
    struct values_ask ask;

    return asks_values(in) &&
           values_ask_get(bytes_of(in->values.data, in->values.len), &ask) == ERR_OK &&
           (ask.verb == VALUES_READ || !values_ask_is_noted(&ask));
}

/* Its target does it once, however often it comes. */
static void send_on(struct coordinator *c, struct leader_peer *asker,
                    const struct leader_peer *target, Rh__Control *request)
{
    if (asker != NULL) {
        asker->asked_node = target->role == ROLE_NODE ? target->id : 0;
    }
    peers_send(c, target->id, request);
}

bool operator_request_ask(struct coordinator *c, const struct leader_peer *peer,
                          Rh__AdminReply *reply, const Rh__AdminOperatorRequest *in)
{
    const struct leader_peer *target = find_target(c, in);
    char text[FAULT_TEXT_SIZE];
    const char *fault = fault_of(target, in, text);
    Rh__Control *operator_request = NULL;
    struct proposal *p = NULL;

    operator_request = fault == NULL ? operator_request_new(peer->id, reply->tag, in) : NULL;
    if (operator_request != NULL &&
        (peer->operator_request == reply->tag || is_unnoted(in))) { // it stands there already
        send_on(c, peers_find(c, peer->id), target, operator_request);
        control_free(operator_request);
        return true;
    }
    p = operator_request == NULL ? NULL : propose_note(c, in);
    if (p == NULL) {
        control_free(operator_request);
        if (fault == NULL) {
            admin_not_ready(c, reply);
        } else {
            admin_set_text(&reply->error, fault);
        }
        return false;
    }
    wish_expect(p, peer, reply->tag, 0);
    p->operator_request = operator_request;
    return true;
}

void operator_request_applied(struct coordinator *c, const struct proposal *p,
                              const struct state_result *result)
{
    const struct leader_peer *target = find_target(c, p->operator_request->operator_request->what);
    struct leader_peer *asker = peers_find(c, p->peer);

    if (asker != NULL) {
        asker->operator_request = p->question;
    }
    // One that has gone since: the operator asks again.
    if (result->accepted && target != NULL) {
        send_on(c, asker, target, p->operator_request);
    }
}

/* Owned by the reply. */
static Rh__OperatorRequestAnswer *copy_of(const Rh__OperatorRequestAnswer *answer)
{
    Rh__OperatorRequestAnswer *copy = mem_new(1, sizeof *copy);

    *copy = *answer;
    copy->gateway = mem_string(answer->gateway);
    copy->outcome = mem_string(answer->outcome);
    copy->node = mem_string(answer->node);
    copy->body.data = mem_copy(answer->body.data, answer->body.len);
    return copy;
}

/* The operator waits for that answer. A node has none to give but for the values it was asked for,
 * and nobody gives another's. */
static bool is_awaited(const struct leader_peer *asker, const struct leader_peer *from)
{
    return asker != NULL && asker->role == ROLE_CLI &&
           asker->asked_node == (from->role == ROLE_NODE ? from->id : 0);
}

void operator_request_relay(struct coordinator *c, const struct leader_peer *from,
                            const Rh__OperatorRequestAnswer *answer)
{
    const struct leader_peer *asker = peers_find(c, answer->route);

    if (!is_awaited(asker, from)) {
        return; // the operator has gone, or it is forged
    }
    Rh__AdminReply *reply = admin_reply_new(c, answer->tag);

    reply->operator_request = copy_of(answer);
    admin_send_reply(c, asker->id, reply);
}
