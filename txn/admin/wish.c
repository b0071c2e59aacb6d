/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators want of nodes: answered when it was applied, by admin_applied().
 */
#include "txn/admin/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void wish_expect(struct proposal *p, const struct leader_peer *peer, uint64_t question,
                 uint16_t slot)
{
    if (p != NULL) {
        p->peer = peer->id;
        p->asked = true;
        p->question = question;
        p->slot = slot;
    }
}

/* What an operator wants of a node, and who wants it. */
struct admin_wish {
    enum desire desire;
    uint32_t weight; /* 0 = as it is */
    uint64_t number; /* random; 0 = an older client's */
    uint64_t seen;   /* what he knew of */
    char *by;
    char *reason;
    char *successor; /* STOP: the node that replaces it; "" = none does */
};

static struct proposal *propose_desire(struct coordinator *c, const struct state_node *node,
                                       const struct admin_wish *wish)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDesire body = RH__COMMAND_DESIRE__INIT;

    body.name = proto_text(node->name);
    body.leaving = wish->desire;
    body.weight = wish->weight;
    body.wish = wish->number;
    body.seen = wish->seen;
    body.successor = wish->successor;
    command.body_case = RH__COMMAND__BODY_DESIRE;
    command.desire = &body;
    command.by = wish->by;
    command.reason = wish->reason;
    return coordinator_propose(c, PROPOSAL_DESIRE, &command);
}

static struct proposal *propose_removal(struct coordinator *c, const struct state_node *node,
                                        const Rh__AdminRemove *in)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDeregister body = RH__COMMAND_DEREGISTER__INIT;

    body.slot = node->slot;
    body.incarnation = node->incarnation;
    command.body_case = RH__COMMAND__BODY_DEREGISTER;
    command.deregister = &body;
    command.by = in->by;
    command.reason = in->reason;
    return coordinator_propose(c, PROPOSAL_DEREGISTER, &command);
}

/* Why a node that isn't live can't be removed, into `text`; empty: it can. */
static void removal_fault(struct coordinator *c, const struct state_node *node, char *text,
                          size_t size)
{
    const size_t owned = ring_owned_count(&c->state->view.ring, node->slot);

    text[0] = '\0';
    if (owned > 0 && node->barred && wishes_to_give(c, node) == 0) {
        (void)snprintf(text,
                       size,
                       "node '%s' is dead, and %zu vnodes are pinned to it and wait for it: start "
                       "it again, or unpin them (`ringhold pin list`)",
                       node->name,
                       owned);
    } else if (owned > 0 && node->barred) {
        (void)snprintf(text,
                       size,
                       "node '%s' is fenced and owns %zu vnodes: other nodes get them in %" PRIu64
                       " ms, try again then",
                       node->name,
                       owned,
                       fence_lease_left_us(c, node) / 1000 + 1);
    } else if (owned > 0) {
        (void)snprintf(
            text,
            size,
            "node '%s' is not live and owns %zu vnodes, and no other node could take them yet: "
            "start it again with its data folder, or start another node of its role, and wait",
            node->name,
            owned);
    } else if (!peers_gone(c, node)) {
        (void)snprintf(text,
                       size,
                       "node '%s' was heard less than %" PRIu32 " ms ago: try again then",
                       node->name,
                       c->config.suspect_ms);
    }
}

/* The node by that name, or NULL and an error in `reply`. */
static const struct state_node *wanted_node(const struct coordinator *c, Rh__AdminReply *reply,
                                            const char *name)
{
    const struct state_node *node = state_node_named(c->state, name);
    char text[ADMIN_TEXT_SIZE];

    if (node == NULL) {
        (void)snprintf(
            text, sizeof text, "unknown node '%.64s': `ringhold node list` lists them", name);
        admin_set_text(&reply->error, text);
    }
    return node;
}

/* True: the answer comes when the command was applied. */
static bool ask_desire(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                       const struct state_node *node, const struct admin_wish *wish)
{
    struct proposal *p = propose_desire(c, node, wish);

    wish_expect(p, peer, reply->tag, node->slot);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    return p != NULL;
}

bool wish_drain(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                const Rh__AdminDrain *in)
{
    const struct state_node *node = wanted_node(c, reply, in->name);
    const struct admin_wish wish = {.desire = in->cancel ? DESIRE_STAY : DESIRE_DRAIN,
                                    .number = in->wish,
                                    .seen = in->seen,
                                    .by = in->by,
                                    .reason = in->reason,
                                    .successor = proto_text("")};

    return node != NULL && ask_desire(c, peer, reply, node, &wish);
}

bool wish_remove(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__AdminRemove *in)
{
    const struct state_node *node = wanted_node(c, reply, in->name);
    const bool live = node != NULL && peers_live(c, node);
    const struct admin_wish wish = {.desire = DESIRE_STOP,
                                    .number = in->wish,
                                    .seen = in->seen,
                                    .by = in->by,
                                    .reason = in->reason,
                                    .successor = in->successor};
    char fault[ADMIN_TEXT_SIZE] = "";
    struct proposal *p;

    if (node == NULL) {
        return false;
    }
    if (strlen(in->successor) > VIEW_NAME_MAX) {
        admin_set_text(&reply->error, "the name of the node that replaces it is too long");
        return false;
    }
    if (!live) {
        removal_fault(c, node, fault, sizeof fault);
    }
    if (fault[0] != '\0') {
        admin_set_text(&reply->error, fault);
        return false;
    }
    p = live ? propose_desire(c, node, &wish) : propose_removal(c, node, in);
    wish_expect(p, peer, reply->tag, node->slot);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    return p != NULL;
}

bool wish_weight(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__AdminWeight *in)
{
    const struct state_node *node = wanted_node(c, reply, in->name);
    const struct admin_wish wish = {.desire = DESIRE_KEEP,
                                    .weight = in->weight,
                                    .number = in->wish,
                                    .seen = in->seen,
                                    .by = in->by,
                                    .reason = in->reason,
                                    .successor = proto_text("")};

    if (node == NULL) {
        return false;
    }
    if (in->weight < 1 || in->weight > VIEW_WEIGHT_MAX) {
        admin_set_text(&reply->error, "the weight must be 1 to 1000");
        return false;
    }
    return ask_desire(c, peer, reply, node, &wish);
}

bool wish_daemons(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                  const Rh__AdminDaemons *in)
{
    struct proposal *p = admin_daemons(c, reply, in);

    wish_expect(p, peer, reply->tag, 0);
    return p != NULL;
}

bool wish_quarantine(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                     const Rh__AdminQuarantine *in)
{
    struct proposal *p = admin_quarantine(c, reply, in);

    wish_expect(p, peer, reply->tag, 0);
    return p != NULL;
}

bool wish_upgrade(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                  const Rh__AdminUpgrade *in)
{
    struct proposal *p = upgrade_on_question(c, reply, in);

    wish_expect(p, peer, reply->tag, 0);
    return p != NULL;
}

/* What becomes of the pins of a node that drains, behind `text`. */
static void tell_pins(const struct coordinator *c, const struct state_node *node, char *text,
                      size_t size)
{
    const size_t count = node->leaving ? pin_count_at(c, node->name) : 0;
    const size_t used = strlen(text);

    if (count > 0) {
        (void)snprintf(text + used,
                       size - used,
                       "; its %zu pins let go until a node '%s' is there and stays",
                       count,
                       node->name);
    }
}

void admin_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result)
{
    const struct state_node *node = state_node(c->state, (uint16_t)p->slot);
    Rh__AdminReply *reply;
    char text[ADMIN_TEXT_SIZE] = "removed";

    if (!p->asked || peers_find(c, p->peer) == NULL) {
        return;
    }
    reply = admin_reply_new(c, p->question);
    if (!result->accepted) {
        admin_set_text(&reply->error, result->why);
    } else if (p->kind == PROPOSAL_DAEMONS || p->kind == PROPOSAL_QUARANTINE) {
        (void)snprintf(text, sizeof text, "changed");
    } else if (p->kind == PROPOSAL_LEASE) {
        (void)snprintf(
            text, sizeof text, p->for_ms > 0 ? "leases are extended" : "leases are taken back");
    } else if (p->kind == PROPOSAL_PIN) {
        (void)snprintf(text, sizeof text, "done; there are %zu pins in all", c->state->pin_count);
    } else if (p->kind == PROPOSAL_FORGET) {
        (void)snprintf(
            text, sizeof text, "done; %zu ids are remembered in all", c->state->remembered_count);
    } else if (p->kind == PROPOSAL_FORMAT) {
        (void)snprintf(
            text, sizeof text, "the fleet's format is now %" PRIu32 "", c->state->format);
        upgrade_tell(c, reply);
    } else if (p->kind == PROPOSAL_DESIRE && node != NULL) {
        (void)snprintf(text,
                       sizeof text,
                       node->leaving ? "%s drains: %zu vnodes to move"
                                     : "%s stays, and has %zu vnodes now",
                       node->name,
                       ring_owned_count(&c->state->view.ring, node->slot));
        tell_pins(c, node, text, sizeof text);
    }
    admin_set_text(&reply->text, result->accepted ? text : "");
    admin_send_reply(c, p->peer, reply);
}
