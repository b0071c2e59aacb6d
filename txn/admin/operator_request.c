/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator has sent to one actor goes by a gateway, as what players send
 * does, once it stands in the history. The request carries the link it came from.
 */
#include "txn/admin/inside.h"

#include "base/history.h"
#include "base/mem.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

enum { FAULT_TEXT_SIZE = 160 };

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

/* Why it can't be sent there; NULL: it can. May use `text`. */
static const char *fault_of(const struct leader_peer *gateway, const char *name,
                            char text[FAULT_TEXT_SIZE])
{
    if (gateway == NULL && name[0] == '\0') {
        return "no gateway is linked to the leader";
    }
    if (gateway == NULL) {
        (void)snprintf(text, FAULT_TEXT_SIZE, "gateway '%.63s' is not linked to the leader", name);
        return text;
    }
    if (gateway->protocol < LINK_PROTOCOL_OPERATOR_REQUESTS) {
        (void)snprintf(
            text,
            FAULT_TEXT_SIZE,
            "gateway %.63s speaks protocol %u, and this command needs %u: upgrade the gateway",
            gateway->name,
            (unsigned)gateway->protocol,
            (unsigned)LINK_PROTOCOL_OPERATOR_REQUESTS);
        return text;
    }
    return NULL;
}

/* The question may come again: its answer takes a while. */
static bool is_under_way(const struct coordinator *c, uint64_t peer, uint64_t question)
{
    for (size_t i = 0; i < c->proposals.count; i++) {
        const struct proposal *p = &c->proposals.item[i];

        if (p->kind == PROPOSAL_OPERATOR_REQUEST && p->peer == peer && p->question == question) {
            return true;
        }
    }
    return false;
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

static struct proposal *propose_note(struct coordinator *c, const Rh__AdminOperatorRequest *in)
{
    const bool kicks = in->what == RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK;
    char id[HISTORY_WORD_SIZE];
    char subject[HISTORY_WORD_SIZE + 32];
    char what[64] = "traced";

    (void)snprintf(
        subject,
        sizeof subject,
        "actor %u/%s",
        in->actor == NULL ? 0 : (unsigned)in->actor->kind,
        in->actor == NULL ? "" : history_word(bytes_of(in->actor->id.data, in->actor->id.len), id));
    if (kicks) {
        (void)snprintf(
            what, sizeof what, "its session was told to end, code %u", (unsigned)in->code);
    }
    const struct history_note note = {.action = kicks ? "kick" : "trace",
                                      .subject = subject,
                                      .what = what,
                                      .by = in->by,
                                      .reason =
                                          !kicks || in->reason[0] != '\0' ? in->reason : in->text};
    return coordinator_propose_note(c, PROPOSAL_OPERATOR_REQUEST, &note);
}

bool operator_request_ask(struct coordinator *c, const struct leader_peer *peer,
                          Rh__AdminReply *reply, const Rh__AdminOperatorRequest *in)
{
    const struct leader_peer *gateway = find_gateway(c, in->gateway);
    char text[FAULT_TEXT_SIZE];
    const char *fault = fault_of(gateway, in->gateway, text);
    Rh__Control *operator_request = NULL;
    struct proposal *p = NULL;

    if (is_under_way(c, peer->id, reply->tag)) {
        return true;
    }
    operator_request = fault == NULL ? operator_request_new(peer->id, reply->tag, in) : NULL;
    if (operator_request != NULL && peer->operator_request == reply->tag) {
        peers_send(
            c, gateway->id, operator_request); // it stands there already; a gateway does it once
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
    p->peer = peer->id;
    p->asked = true;
    p->question = reply->tag;
    p->operator_request = operator_request;
    return true;
}

void operator_request_applied(struct coordinator *c, const struct proposal *p,
                              const struct state_result *result)
{
    const struct leader_peer *gateway =
        find_gateway(c, p->operator_request->operator_request->what->gateway);
    struct leader_peer *asker = peers_find(c, p->peer);

    if (asker != NULL) {
        asker->operator_request = p->question;
    }
    // One that has gone since: the operator asks again.
    if (result->accepted && gateway != NULL) {
        peers_send(c, gateway->id, p->operator_request);
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

void operator_request_relay(struct coordinator *c, const Rh__OperatorRequestAnswer *answer)
{
    const struct leader_peer *asker = peers_find(c, answer->route);

    if (asker == NULL || asker->role != ROLE_CLI) {
        return; // the operator has gone
    }
    Rh__AdminReply *reply = admin_reply_new(c, answer->tag);

    reply->operator_request = copy_of(answer);
    admin_send_reply(c, asker->id, reply);
}
