/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes over links: who may say it, and who decides on it.
 */
#include "txn/leader/inside.h"
#include "txn/participant.h"
#include "txn/state/remembered.h"

#include "base/log.h"
#include "base/mutant.h"
#include "wire/hello.h"

#include <string.h>

void message_not_leading(struct coordinator *c, uint64_t peer)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__NotLeader body = RH__NOT_LEADER__INIT;

    body.term = c->term;
    out.body_case = RH__CONTROL__BODY_NOT_LEADER;
    out.not_leader = &body;
    peers_send(c, peer, &out);
}

static void on_vote(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);

    if (node != NULL) {
        (void)peers_heard(c, node);
    }
    votes_on_vote(c, peer, message);
}

/* What only a leader may answer. */
static void on_leaders_message(struct coordinator *c, struct leader_peer *peer,
                               const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);

    if (fence_settling(c) && message->body_case != RH__CONTROL__BODY_REGISTER_ &&
        message->body_case != RH__CONTROL__BODY_ADMIN) {
        return; // of the old era, or too early (hole 52)
    }
    if (node != NULL) {
        phases_heard(c, node, message->version);
    }
    if (message->body_case == RH__CONTROL__BODY_PREPARED ||
        message->body_case == RH__CONTROL__BODY_REFUSED ||
        message->body_case == RH__CONTROL__BODY_STALE) {
        on_vote(c, peer, message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_DRAINING) {
        votes_on_draining(c, peer, message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_BYE) {
        register_on_bye(c, peer, message->source_incarnation);
        return;
    }
    if (node != NULL) {
        (void)peers_heard(c, node);
    }
    if (message->body_case == RH__CONTROL__BODY_REMEMBER) {
        recall_on_remember(c, peer, message); // its entry is all the barrier it needs
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN && !admin_waits(message->admin)) {
        admin_on_question(c, peer, message->admin);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_RENEW && mutant(M_NOCONF)) {
        register_on_renew(c, peer, message);
        return;
    }
    barrier_wait(c,
                 peer->id,
                 message,
                 message->body_case != RH__CONTROL__BODY_RENEW || node == NULL ||
                     register_is_urgent(c, node, message->renew));
}

static bool is_for_leader(const Rh__Control *message)
{
    const Rh__Control__BodyCase body = message->body_case;

    return body == RH__CONTROL__BODY_REGISTER_ || body == RH__CONTROL__BODY_BYE ||
           body == RH__CONTROL__BODY_RENEW || body == RH__CONTROL__BODY_POLL ||
           body == RH__CONTROL__BODY_PREPARED || body == RH__CONTROL__BODY_REFUSED ||
           body == RH__CONTROL__BODY_STALE || body == RH__CONTROL__BODY_ADMIN ||
           body == RH__CONTROL__BODY_DRAINING || body == RH__CONTROL__BODY_REMEMBER ||
           body == RH__CONTROL__BODY_RECALL;
}

/* Routes and tags of operators' questions are small numbers that others may guess: an answer counts
 * only of whom it says that it is. (Which role may say what, wire/access.h has asked before.) */
static bool is_its_own(const struct leader_peer *peer, const Rh__Control *message)
{
    if (message->body_case == RH__CONTROL__BODY_OPERATOR_REQUEST_ANSWER) {
        return strcmp(peer->name, message->operator_request_answer->gateway) == 0;
    }
    if (message->body_case == RH__CONTROL__BODY_ACTORS_ANSWER) {
        return strcmp(peer->name, message->actors_answer->name) == 0;
    }
    return message->body_case != RH__CONTROL__BODY_INSPECT_ANSWER ||
           ((uint32_t)peer->role == message->inspect_answer->role &&
            strcmp(peer->name, message->inspect_answer->name) == 0);
}

/* There is a row in its answer for each number that is asked for, and a node has not more to ask
 * for than it can take part in. Ids to be remembered are one entry of the log. */
static bool is_in_bounds(const Rh__Control *message)
{
    if (message->body_case == RH__CONTROL__BODY_REMEMBER) {
        return message->remember->n_rows <= REMEMBERED_OF_COMMAND_MAX;
    }
    return message->body_case != RH__CONTROL__BODY_POLL ||
           message->poll->n_txns <= PARTICIPANT_PARTS_MAX + 1;
}

static void refuse(struct coordinator *c, const struct leader_peer *peer, const char *event,
                   const char *why)
{
    c->messages.refused++;
    log_warn(
        "coordinator", event, "peer=%s role=%s: %s", peer->name, link_role_name(peer->role), why);
}

void message_on(struct coordinator *c, const struct coordinator_event *event)
{
    const Rh__Control *message = event->message;
    struct leader_peer *peer = peers_find(c, event->peer);

    if (peer == NULL) {
        return;
    }
    peers_on_message(c, peer, message->source_incarnation);
    if (!is_its_own(peer, message)) {
        refuse(c, peer, "not_its_own", "the message says what only another process may say");
        return;
    }
    if (!is_in_bounds(message)) {
        refuse(c, peer, "too_long", "the message has more rows than a node may tell at a time");
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_GET_CONFIG) {
        peers_told(c, peer, message->get_config);
        history_answer(c, peer->id, message->get_config);
        const struct drawn drawn = past_drawn(c);

        // One gateway's word says what many would, and takes no place of those who want a lease.
        if (c->leading && past_knows_more(&drawn, message) &&
            (peer->role == ROLE_NODE || !barrier_has(c, RH__CONTROL__BODY_GET_CONFIG))) {
            barrier_wait(c, peer->id, message, true);
        }
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_OPERATOR_REQUEST_ANSWER) {
        operator_request_relay(c, peer, message->operator_request_answer);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ACTORS_ANSWER) {
        residents_relay(c, message->actors_answer);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_INSPECT_ANSWER) {
        inspect_relay(c, message->inspect_answer);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN &&
        message->admin->what_case == RH__ADMIN__WHAT_INSPECT) {
        inspect_ask(c, peer, message->admin);
        return;
    }
    if (!is_for_leader(message)) {
        return; // Adopted, or nothing that is sent to a coordinator
    }
    if (!c->leading) {
        message_not_leading(c, peer->id);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN &&
        strlen(control_reason(message->admin)) > ADMIN_REASON_MAX) {
        refuse(c, peer, "reason_too_long", "each coordinator would keep it");
        admin_refuse(c, peer, message->admin, "the reason is longer than 200 bytes");
        return;
    }
    on_leaders_message(c, peer, message);
}
