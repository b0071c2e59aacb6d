/* SPDX-License-Identifier: Apache-2.0
 *
 * Who lives at a node, it tells itself: the leader passes the question on, and
 * the answer back to the link that the question carries. Nothing is remembered.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

const struct leader_peer *residents_find_node(const struct coordinator *c, const char *name)
{
    for (size_t i = c->peers.count; i-- > 0;) {
        if (c->peers.item[i]->role == ROLE_NODE && strcmp(c->peers.item[i]->name, name) == 0) {
            return c->peers.item[i];
        }
    }
    return NULL;
}

/* Why it can't be asked; false: it can. */
static bool put_fault(const struct coordinator *c, const struct leader_peer *node, const char *name,
                      char text[ADMIN_TEXT_SIZE])
{
    if (node == NULL && state_node_named(c->state, name) == NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "unknown node '%.63s'", name);
    } else if (node == NULL) {
        (void)snprintf(text, ADMIN_TEXT_SIZE, "node %.63s is not linked to the leader", name);
    } else if (node->protocol < LINK_PROTOCOL_ACTORS) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "node %.63s speaks protocol %u, and this command needs %u: upgrade the node",
                       name,
                       (unsigned)node->protocol,
                       (unsigned)LINK_PROTOCOL_ACTORS);
    } else {
        return false;
    }
    return true;
}

bool residents_ask(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                   const Rh__AdminActors *in)
{
    const struct leader_peer *node = residents_find_node(c, in->node);
    char text[ADMIN_TEXT_SIZE];
    Rh__AdminActors what = *in;
    Rh__Actors question = RH__ACTORS__INIT;
    Rh__Control out = RH__CONTROL__INIT;

    if (put_fault(c, node, in->node, text)) {
        admin_set_text(&reply->error, text);
        return false;
    }
    question.tag = reply->tag;
    question.route = peer->id;
    question.what = &what;
    out.body_case = RH__CONTROL__BODY_ACTORS;
    out.actors = &question;
    peers_send(c, node->id, &out);
    return true;
}

void residents_relay(struct coordinator *c, const Rh__ActorsAnswer *answer)
{
    const struct leader_peer *asker = peers_find(c, answer->route);
    Rh__ActorsAnswer copy = *answer;
    Rh__Control out = RH__CONTROL__INIT;

    if (asker == NULL || asker->role != ROLE_CLI) {
        return; // the operator has gone
    }
    Rh__AdminReply *reply = admin_reply_new(c, answer->tag);
    reply->actors = &copy;
    out.body_case = RH__CONTROL__BODY_ADMIN_REPLY;
    out.admin_reply = reply;
    peers_send(c, asker->id, &out);
    reply->actors = NULL; // borrowed
    proto_free(&reply->base);
}
