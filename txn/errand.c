/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator has sent to one actor goes by a gateway, as what players send
 * does. Nothing is remembered here: the errand carries the link it came from.
 */
#include "txn/inside.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { FAULT_TEXT_SIZE = 160 };

/* Linked, and the one that is wished for; the newest link, for a gateway may have come anew. */
static const struct peer *find_gateway(const struct coordinator *c, const char *name)
{
    for (size_t i = c->peer_count; i-- > 0;) {
        const struct peer *p = c->peer[i];

        if (p->role == ROLE_GATEWAY && (name[0] == '\0' || strcmp(p->name, name) == 0)) {
            return p;
        }
    }
    return NULL;
}

bool errand_ask(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                const Rh__AdminErrand *in)
{
    const struct peer *gateway = find_gateway(c, in->gateway);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Errand body = RH__ERRAND__INIT;
    Rh__AdminErrand what = *in;
    char text[FAULT_TEXT_SIZE];

    if (gateway == NULL) {
        (void)snprintf(text,
                       sizeof text,
                       in->gateway[0] == '\0' ? "no gateway is linked to the leader"
                                              : "gateway '%.63s' is not linked to the leader",
                       in->gateway);
        admin_set_text(&reply->error, text);
        return false;
    }
    body.tag = reply->tag;
    body.route = peer->id;
    body.what = &what;
    out.body_case = RH__CONTROL__BODY_ERRAND;
    out.errand = &body;
    peers_send(c, gateway->id, &out);
    return true;
}

/* Owned by the reply. */
static Rh__ErrandAnswer *copy_of(const Rh__ErrandAnswer *answer)
{
    Rh__ErrandAnswer *copy = mem_new(1, sizeof *copy);

    *copy = *answer;
    copy->gateway = mem_string(answer->gateway);
    copy->outcome = mem_string(answer->outcome);
    copy->node = mem_string(answer->node);
    copy->body.data = mem_copy(answer->body.data, answer->body.len);
    return copy;
}

void errand_relay(struct coordinator *c, const Rh__ErrandAnswer *answer)
{
    const struct peer *asker = peers_find(c, answer->route);

    if (asker == NULL || asker->role != ROLE_CLI) {
        return; // the operator has gone
    }
    Rh__AdminReply *reply = admin_reply_new(c, answer->tag);

    reply->errand = copy_of(answer);
    admin_send_reply(c, asker->id, reply);
}
