/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold check` looks at every process through the coordinators, for each
 * node and gateway keeps a link to each of them. Nothing is remembered: the
 * question carries the link it came from, and the answer brings it back.
 */
#include "txn/admin/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "ring/inspect.h"
#include "txn/state/digest.h"
#include "wire/repair.h"

#include <stdio.h>
#include <string.h>

enum { FAULT_TEXT_SIZE = 160 };

static Rh__LinkRow *link_row(const struct leader_peer *peer)
{
    Rh__LinkRow *row = mem_new(1, sizeof *row);

    *row = (Rh__LinkRow)RH__LINK_ROW__INIT;
    row->role = (uint32_t)peer->role;
    row->name = mem_string(peer->name);
    row->incarnation = peer->incarnation;
    return row;
}

static bool is_inspected(const struct leader_peer *peer)
{
    return peer->role == ROLE_NODE || peer->role == ROLE_GATEWAY;
}

static Rh__Inspection *inspection(const struct coordinator *c)
{
    Rh__Inspection *i = mem_new(1, sizeof *i);
    char fault[RING_FAULT_SIZE];
    uint64_t sum[2];

    *i = (Rh__Inspection)RH__INSPECTION__INIT;
    ring_inspect(&c->state->view.ring, sum, fault);
    i->id = (uint32_t)c->config.id;
    i->members = view_digest(&c->state->view);
    i->state = state_digest(c->state);
    i->ring0 = sum[0];
    i->ring1 = sum[1];
    i->ring_fault = mem_string(fault);
    i->wall_us = c->wall_us;
    i->prepare_ms = c->config.prepare_ms;
    i->suspect_ms = c->config.suspect_ms;
    i->settling = c->state->settling;
    i->lease_us = lease_longest_us(c);
    i->barred = mem_new(c->state->node_count, sizeof(char *));
    for (size_t n = 0; n < c->state->node_count; n++) {
        if (c->state->node[n].barred) {
            i->barred[i->n_barred++] = mem_string(c->state->node[n].name);
        }
    }
    i->links = mem_new(c->peers.count, sizeof(Rh__LinkRow *));
    for (size_t p = 0; p < c->peers.count; p++) {
        if (is_inspected(c->peers.item[p])) {
            i->links[i->n_links++] = link_row(c->peers.item[p]);
        }
    }
    return i;
}

void inspect_ask(struct coordinator *c, const struct leader_peer *peer, const Rh__Admin *in)
{
    Rh__AdminReply *reply = admin_reply_new(c, in->tag);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Inspect question = RH__INSPECT__INIT;

    admin_overview(c, reply);
    reply->inspection = inspection(c);
    admin_send_reply(c, peer->id, reply);
    question.tag = in->tag;
    question.route = peer->id;
    question.n_ids_of = in->inspect->n_ids_of;
    question.ids_of = in->inspect->ids_of;
    out.body_case = RH__CONTROL__BODY_INSPECT;
    out.inspect = &question;
    for (size_t i = 0; i < c->peers.count; i++) {
        if (is_inspected(c->peers.item[i])) {
            peers_send(c, c->peers.item[i]->id, &out);
        }
    }
}

void inspect_relay(struct coordinator *c, const Rh__InspectAnswer *answer)
{
    const struct leader_peer *asker = peers_find(c, answer->route);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__InspectAnswer copy = *answer;

    if (asker == NULL || asker->role != ROLE_CLI) {
        return; // the operator has gone
    }
    out.body_case = RH__CONTROL__BODY_INSPECT_ANSWER;
    out.inspect_answer = &copy;
    peers_send(c, asker->id, &out);
}

/* ---- repairs ---- */

static struct leader_peer *find_process(struct coordinator *c, const Rh__AdminRepair *in)
{
    for (size_t i = c->peers.count; i-- > 0;) {
        struct leader_peer *p = c->peers.item[i];

        if ((uint32_t)p->role == in->role && strcmp(p->name, in->name) == 0 &&
            p->incarnation == in->incarnation) {
            return p;
        }
    }
    return NULL;
}

/* Why it must not be done, or NULL. */
static const char *repair_fault(const struct coordinator *c, struct leader_peer *peer,
                                const Rh__AdminRepair *in)
{
    const bool member = peers_node(c, peer, in->incarnation) != NULL && !mutant(M_EXITANY);

    switch (in->what) {
    case REPAIR_TASK_FETCH:
        return NULL;
    case REPAIR_TASK_OUTCOME:
        // What is said of a number that nobody has drawn may arrive behind its PREPARE, and the
        // node would drop what it prepared.
        if (in->txn > c->state->number) {
            return "no transaction has this number yet";
        }
        return peer->role == ROLE_NODE ? NULL : "only a node does this repair";
    case REPAIR_TASK_STRAYS:
        return peer->role == ROLE_NODE ? NULL : "only a node does this repair";
    case REPAIR_TASK_EXIT:
        // What is told to nobody's incarnation is heard by the member that it becomes meanwhile.
        return peer->role != ROLE_NODE ? "only a node does this repair"
               : member                ? "the process is a member: drain it instead"
               : in->incarnation == 0  ? "the process only wants to become a member"
                                       : NULL;
    default:
        return "this coordinator does not know this repair: check whether it is an older version";
    }
}

/* What register_on_poll() would say, had it asked (hole 13: a barrier was done). */
static void tell_outcome(struct coordinator *c, const struct leader_peer *peer, uint64_t number)
{
    Rh__Poll poll = RH__POLL__INIT;

    poll.n_txns = 1;
    poll.txns = &number;
    register_on_poll(c, peers_find(c, peer->id), &poll);
}

void inspect_tell_repair(struct coordinator *c, const struct leader_peer *peer, uint32_t what)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Repair body = RH__REPAIR__INIT;

    body.what = what;
    out.body_case = RH__CONTROL__BODY_REPAIR;
    out.repair = &body;
    out.target_incarnation = peer->role == ROLE_NODE ? peer->incarnation : 0;
    peers_send(c, peer->id, &out);
}

static const char *what_text(uint32_t what)
{
    static const char *const texts[] = {
        [REPAIR_TASK_FETCH] = "told to fetch the whole configuration",
        [REPAIR_TASK_OUTCOME] = "told again the outcome of a transaction",
        [REPAIR_TASK_STRAYS] = "told to stop the actors outside its vnodes",
        [REPAIR_TASK_EXIT] = "told to stop and exit",
    };

    return texts[what];
}

static struct proposal *propose_note(struct coordinator *c, const struct leader_peer *patient,
                                     const Rh__AdminRepair *in)
{
    char subject[VIEW_NAME_MAX + 16];
    const struct history_note note = {.action = "fix",
                                      .subject = subject,
                                      .what = what_text(in->what),
                                      .by = in->by,
                                      .reason = in->why};

    (void)snprintf(subject,
                   sizeof subject,
                   "%s %s",
                   patient->role == ROLE_GATEWAY ? "gateway" : "node",
                   patient->name);
    return coordinator_propose_note(c, PROPOSAL_REPAIR, &note);
}

bool inspect_repair(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                    const Rh__AdminRepair *in)
{
    struct leader_peer *patient = find_process(c, in);
    const char *fault =
        patient == NULL ? "that process is not linked to the leader" : repair_fault(c, patient, in);
    char text[FAULT_TEXT_SIZE];
    struct proposal *p = NULL;

    p = fault == NULL ? propose_note(c, patient, in) : NULL;
    if (p == NULL && fault == NULL) {
        admin_not_ready(c, reply);
        return false;
    }
    if (p == NULL) {
        (void)snprintf(text, sizeof text, "%.63s: %s", in->name, fault);
        admin_set_text(&reply->error, text);
        return false;
    }
    wish_expect(p, peer, reply->tag, 0);
    p->patient = patient->id;
    p->repair = in->what;
    p->txn = in->txn;
    return true;
}

void inspect_repair_applied(struct coordinator *c, const struct proposal *p,
                            const struct state_result *result)
{
    const struct leader_peer *patient = peers_find(c, p->patient);
    Rh__AdminReply *reply = NULL;

    if (patient != NULL && result->accepted) {
        log_info("txn",
                 "repair",
                 "process=%s incarnation=%s what=\"%s\"",
                 patient->name,
                 STAMP(patient->incarnation),
                 what_text(p->repair));
        if (p->repair == REPAIR_TASK_OUTCOME) {
            tell_outcome(c, patient, p->txn);
        } else {
            inspect_tell_repair(c, patient, p->repair);
        }
    }
    if (peers_find(c, p->peer) == NULL) {
        return; // the operator has gone
    }
    reply = admin_reply_new(c, p->question);
    if (patient == NULL) {
        admin_set_text(&reply->error, "the link to the process was just lost: check again");
    } else {
        admin_set_text(&reply->text, "told");
    }
    admin_send_reply(c, p->peer, reply);
}
