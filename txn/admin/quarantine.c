/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators' questions and wishes about actors in quarantine.
 */
#include "txn/admin/inside.h"

#include "base/actor_name.h"
#include "base/log.h"
#include "base/mem.h"
#include "txn/state/roles.h"
#include "txn/state/suspect.h"

#include <inttypes.h>

static Rh__QuarantineRow *row_of(const struct state *s, const struct state_suspect *e)
{
    const struct state_kind *kind = roles_kind(s, e->actor.kind);
    Rh__QuarantineRow *row = mem_new(1, sizeof *row);

    *row = (Rh__QuarantineRow)RH__QUARANTINE_ROW__INIT;
    row->actor = quarantined_wire(&e->actor);
    row->name = mem_string(kind == NULL ? "" : kind->name);
    row->strikes = e->strikes;
    row->struck_us = e->struck_us;
    row->node = mem_string(e->node);
    row->since_us = e->quarantined ? e->since_us : 0;
    return row;
}

void admin_add_quarantine(const struct coordinator *c, Rh__AdminReply *reply)
{
    const struct state *s = c->state;

    reply->quarantine = mem_new(s->suspect_count + 1, sizeof(Rh__QuarantineRow *));
    for (size_t i = 0; i < s->suspect_count; i++) {
        reply->quarantine[reply->n_quarantine++] = row_of(s, &s->suspect[i]);
    }
}

struct proposal *admin_quarantine(struct coordinator *c, Rh__AdminReply *reply,
                                  const Rh__AdminQuarantine *in)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandQuarantine body = RH__COMMAND_QUARANTINE__INIT;
    struct proposal *p;

    body.actor = in->actor;
    body.add = in->add;
    command.body_case = RH__COMMAND__BODY_QUARANTINE;
    command.quarantine = &body;
    command.by = in->by;
    command.reason = in->reason;
    p = coordinator_propose(c, PROPOSAL_QUARANTINE, &command);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    return p;
}

static void log_one(const struct coordinator *c, const Rh__Actor *actor)
{
    struct quarantined name;
    char text[ACTOR_NAME_SIZE];

    if (!quarantined_read(&name, actor)) {
        return;
    }
    const struct state_suspect *e = suspect_find(c->state, &name);
    (void)actor_name_print(name.kind, quarantined_id(&name), text);
    if (e == NULL) {
        log_warn("txn", "quarantine_left", "actor=%s", text);
        return;
    }
    log_warn("txn",
             "quarantined",
             "actor=%s strikes=%" PRIu32
             " node=%s remedy=\"fix the actor, then: ringhold quarantine clear %s\"",
             text,
             e->strikes,
             e->node,
             text);
}

void admin_log_quarantine(const struct coordinator *c, const struct state_result *result)
{
    const Rh__Delta *delta = result->delta;

    for (size_t i = 0; delta != NULL && i < delta->n_released; i++) {
        log_one(c, delta->released[i]);
    }
    for (size_t i = 0; delta != NULL && i < delta->n_quarantined; i++) {
        log_one(c, delta->quarantined[i]);
    }
}
