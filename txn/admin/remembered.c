/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators' questions about remembered ids, and their wish to have some forgotten.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "txn/state/remembered.h"

enum { PAGE = 1000, FORGET_MAX = 1000 };

void remembered_count(const struct coordinator *c, Rh__AdminReply *reply)
{
    reply->remembered_count = (uint32_t)c->state->remembered_count;
    reply->remembered_max = c->config.remember_max;
    reply->remembered_full = c->recall.full;
    reply->remembered_stale = c->recall.stale;
}

static Rh__Actor *actor_of(const struct state_remembered *r)
{
    Rh__Actor *actor = mem_new(1, sizeof *actor);

    *actor = (Rh__Actor)RH__ACTOR__INIT;
    actor->kind = r->kind;
    actor->id.data = mem_copy(r->id, r->id_size);
    actor->id.len = r->id_size;
    return actor;
}

static bool is_asked(const Rh__AdminRemembered *in, const struct state_remembered *r)
{
    return (in->any_kind || r->kind == in->kind) && r->id_size >= in->prefix.len &&
           (in->prefix.len == 0 || memcmp(r->id, in->prefix.data, in->prefix.len) == 0);
}

void remembered_list(const struct coordinator *c, Rh__AdminReply *reply,
                     const Rh__AdminRemembered *in)
{
    const struct state *s = c->state;
    const Rh__Actor *after = in->after;
    size_t at = 0;

    remembered_count(c, reply);
    if (after != NULL && remembered_is_name(after)) {
        const struct bytes id = bytes_of(after->id.data, after->id.len);

        at = remembered_from(s, (uint16_t)after->kind, id);
        at += remembered_has(s, (uint16_t)after->kind, id) ? 1 : 0;
    }
    reply->remembered = mem_new(PAGE, sizeof(Rh__Actor *));
    for (; at < s->remembered_count && reply->n_remembered < PAGE; at++) {
        if (is_asked(in, &s->remembered[at])) {
            reply->remembered[reply->n_remembered++] = actor_of(&s->remembered[at]);
        }
    }
    if (at > 0 && at < s->remembered_count) {
        reply->remembered_next = actor_of(&s->remembered[at - 1]);
    }
}

/* What is wrong with one of them, or NULL. */
static const char *fault_of(const struct coordinator *c, const Rh__AdminForget *in)
{
    if (in->n_actors < 1 || in->n_actors > FORGET_MAX) {
        return "1 to 1000 ids can be forgotten at a time";
    }
    for (size_t i = 0; i < in->n_actors; i++) {
        const Rh__Actor *a = in->actors[i];

        if (!remembered_is_name(a)) {
            return "an id has 1 to 255 bytes, a kind is at most 65535";
        }
        if (!remembered_has(c->state, (uint16_t)a->kind, bytes_of(a->id.data, a->id.len))) {
            return "one of them is not remembered: look at `ringhold remembered list`";
        }
    }
    return NULL;
}

bool remembered_forget(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                       const Rh__AdminForget *in)
{
    const char *fault = fault_of(c, in);
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandRemember body = RH__COMMAND_REMEMBER__INIT;
    Rh__RememberRow *row;
    struct proposal *p;

    if (fault != NULL) {
        admin_set_text(&reply->error, fault);
        return false;
    }
    row = mem_new(in->n_actors, sizeof *row);
    body.rows = mem_new(in->n_actors, sizeof(Rh__RememberRow *));
    for (size_t i = 0; i < in->n_actors; i++) {
        row[i] = (Rh__RememberRow)RH__REMEMBER_ROW__INIT;
        row[i].actor = in->actors[i];
        row[i].forget = true;
        body.rows[body.n_rows++] = &row[i];
    }
    command.body_case = RH__COMMAND__BODY_REMEMBER;
    command.remember = &body;
    command.by = in->by;
    command.reason = in->reason;
    p = coordinator_propose(c, PROPOSAL_FORGET, &command);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    wish_expect(p, peer, reply->tag, 0);
    mem_free(row);
    mem_free(body.rows);
    return p != NULL;
}
