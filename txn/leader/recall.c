/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes tell about remembered ids, and their questions for them.
 */
#include "txn/leader/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "txn/state/remembered.h"

#include <inttypes.h>

enum {
    PAGE = 1000, /* ids of an answer */
    /* Rows that are looked at for it: of others' ids there may be many. Each takes a look-up, and
     * any node may ask at any rate. */
    LOOKED = 2000,
};

/* ---- Remember ---- */

/* Those for which the leader's option has no room become rows that change nothing, so that each
 * keeps its place. */
static void leave_out(struct coordinator *c, const Rh__Remember *in, Rh__RememberRow **rows,
                      Rh__RememberRow *nothing)
{
    const struct state *s = c->state;
    const size_t most = c->config.remember_max;
    size_t room = s->remembered_count < most ? most - s->remembered_count : 0;

    for (size_t i = 0; i < in->n_rows; i++) {
        const Rh__Actor *actor = in->rows[i]->actor;
        const bool adds =
            !in->rows[i]->forget && remembered_is_name(actor) &&
            !remembered_has(s, (uint16_t)actor->kind, bytes_of(actor->id.data, actor->id.len));

        rows[i] = adds && room == 0 ? nothing : in->rows[i];
        room -= adds && room > 0 ? 1 : 0;
    }
}

static void answer(struct coordinator *c, uint64_t peer, uint64_t number, Rh__Remembered *body)
{
    Rh__Control out = RH__CONTROL__INIT;

    body->number = number;
    out.body_case = RH__CONTROL__BODY_REMEMBERED;
    out.remembered = body;
    peers_send(c, peer, &out);
}

void recall_on_remember(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    const Rh__Remember *in = message->remember;
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandRemember body = RH__COMMAND_REMEMBER__INIT;
    Rh__RememberRow nothing = RH__REMEMBER_ROW__INIT;
    struct recall_told *told;
    struct proposal *p;

    if (node == NULL || coordinator_proposal(c, PROPOSAL_REMEMBER, node->slot) != NULL) {
        return; // it is no member's; or the node asks again for what is on its way
    }
    told = &c->recall.of_slot[node->slot];
    if (told->incarnation == node->incarnation && in->number < told->number) {
        return; // it was late: what it told since may say something else of the same id
    }
    if (c->state->format < FLEET_FORMAT_PLACEMENT) {
        Rh__Remembered none = RH__REMEMBERED__INIT;

        none.full = (uint32_t)in->n_rows;
        answer(c, peer->id, in->number, &none);
        return;
    }
    body.slot = node->slot;
    body.incarnation = node->incarnation;
    body.rows = mem_new(in->n_rows + 1, sizeof(Rh__RememberRow *));
    body.n_rows = in->n_rows;
    leave_out(c, in, body.rows, &nothing);
    command.body_case = RH__COMMAND__BODY_REMEMBER;
    command.remember = &body;
    p = coordinator_propose(c, PROPOSAL_REMEMBER, &command);
    if (p != NULL) {
        *told = (struct recall_told){node->incarnation, in->number};
        p->peer = peer->id;
        p->slot = node->slot;
        p->number = in->number;
    }
    mem_free(body.rows);
}

/* Whoever has it is to end it. */
static void tell_owner(struct coordinator *c, Rh__Actor *actor)
{
    const struct view *view = &c->state->view;
    const struct state_node *node;
    const struct leader_peer *peer;
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Forgotten body = RH__FORGOTTEN__INIT;

    if (view->ring.vnode_count == 0) {
        return;
    }
    node = state_node(c->state,
                      ring_hit_node(view_lookup(
                          view, (uint16_t)actor->kind, bytes_of(actor->id.data, actor->id.len))));
    peer = node == NULL ? NULL : peers_of_node(c, node);
    if (peer != NULL) {
        body.actor = actor;
        out.body_case = RH__CONTROL__BODY_FORGOTTEN;
        out.forgotten = &body;
        peers_send(c, peer->id, &out);
    }
}

/* What became of the rows of a node. */
static void judge(struct coordinator *c, const struct proposal *p, const Rh__CommandRemember *in,
                  Rh__Remembered *out)
{
    const struct state_node *node = state_node(c->state, (uint16_t)p->slot);

    for (size_t i = 0; i < in->n_rows; i++) {
        const Rh__Actor *actor = in->rows[i]->actor;
        const bool known =
            remembered_is_name(actor) && remembered_has(c->state,
                                                        (uint16_t)actor->kind,
                                                        bytes_of(actor->id.data, actor->id.len));

        if (remembered_is_name(actor) &&
            (node == NULL || !remembered_owns(c->state, node, actor))) {
            out->stale[out->n_stale++] = (uint32_t)i;
        } else if (!known && !in->rows[i]->forget) {
            out->full++;
        }
    }
    c->recall.stale += out->n_stale;
    c->recall.full += out->full;
}

void recall_applied(struct coordinator *c, const struct proposal *p,
                    const struct coordinator_event *event)
{
    const Rh__CommandRemember *in = event->command->remember;
    Rh__Remembered body = RH__REMEMBERED__INIT;

    if (!event->result->accepted) {
        return; // of a node that is over: nobody waits
    }
    if (p->slot == 0) {
        for (size_t i = 0; i < in->n_rows; i++) {
            tell_owner(c, in->rows[i]->actor);
        }
        return;
    }
    body.stale = mem_new(in->n_rows + 1, sizeof *body.stale);
    judge(c, p, in, &body);
    if (body.full > 0) {
        log_warn("txn",
                 "not_remembered",
                 "slot=%" PRIu64 " ids=%" PRIu32 " remembered=%zu"
                 " remedy=\"ringhold remembered list: forget some, or raise remember_max of all "
                 "coordinators\"",
                 p->slot,
                 body.full,
                 c->state->remembered_count);
    }
    answer(c, p->peer, p->number, &body);
    mem_free(body.stale);
}

/* ---- Recall ---- */

void recall_on_recall(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    const Rh__Recall *in = message->recall;
    const struct state *s = c->state;
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Recalled body = RH__RECALLED__INIT;
    const struct state_remembered *last = NULL;
    size_t at;

    if (node == NULL || in->kind > UINT16_MAX || in->after.len > UINT8_MAX) {
        return;
    }
    body.kind = in->kind;
    body.after = in->after;
    body.ids = mem_new(PAGE, sizeof *body.ids);
    at = remembered_from(s, (uint16_t)in->kind, bytes_of(in->after.data, in->after.len));
    for (size_t looked = 0; looked < LOOKED && body.n_ids < PAGE && at < s->remembered_count &&
                            s->remembered[at].kind == in->kind;
         looked++) {
        last = &s->remembered[at++];
        if (ring_hit_node(view_lookup(&s->view, last->kind, remembered_id(last))) == node->slot &&
            !bytes_equal(remembered_id(last), bytes_of(in->after.data, in->after.len))) {
            body.ids[body.n_ids++] = proto_bytes(remembered_id(last));
        }
    }
    if (last != NULL && at < s->remembered_count && s->remembered[at].kind == in->kind) {
        body.next = proto_bytes(remembered_id(last));
    }
    out.body_case = RH__CONTROL__BODY_RECALLED;
    out.recalled = &body;
    peers_send(c, peer->id, &out);
    mem_free(body.ids);
}
