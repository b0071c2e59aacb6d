/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator will stop the coordinators: nodes get leases by which they serve
 * meanwhile. The log has the length before any of them does. When he is through
 * he may have these leases taken back; docs/decisions/078.
 */
#include "txn/admin/inside.h"

#include "base/log.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdio.h>

/* Why it can't be, into `text`; empty: it can. */
static void fault_of(const struct coordinator *c, uint32_t for_ms, char text[ADMIN_TEXT_SIZE])
{
    const uint64_t longest_us = (uint64_t)LEASE_EXTENDED_MS_MAX * 1000;

    text[0] = '\0';
    if (c->config.lease_us == 0) {
        (void)snprintf(
            text, ADMIN_TEXT_SIZE, "the leader grants no leases: nodes serve without coordinators");
    } else if (for_ms == 0) {
        return; // he is through
    } else if (for_ms > LEASE_FOR_MS_MAX) {
        (void)snprintf(
            text, ADMIN_TEXT_SIZE, "a maintenance lasts 1 to %d s", LEASE_FOR_MS_MAX / 1000);
    } else if (lease_extended_us(c, for_ms) > longest_us) {
        (void)snprintf(text,
                       ADMIN_TEXT_SIZE,
                       "with leases of %" PRIu64
                       " s extended ones would be longer than %d s: leases "
                       "cover a maintenance as they are, or ask for a shorter one",
                       c->config.lease_us / 1000000,
                       LEASE_EXTENDED_MS_MAX / 1000);
    }
}

bool maintenance_on_question(struct coordinator *c, const struct leader_peer *peer,
                             Rh__AdminReply *reply, const Rh__AdminMaintenance *in)
{
    const uint64_t wanted_us = in->for_ms == 0 ? 0 : lease_extended_us(c, in->for_ms);
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandLease body = RH__COMMAND_LEASE__INIT;
    char text[ADMIN_TEXT_SIZE];
    struct proposal *p = NULL;

    fault_of(c, in->for_ms, text);
    if (text[0] != '\0') {
        admin_set_text(&reply->error, text);
        return false;
    }
    // One at a time: what lowers the length must not come out behind what raises it. The end of a
    // maintenance changes no length yet, and stands in the history.
    if (c->state->begun && !fence_settling(c) && lease_ready(c) &&
        coordinator_proposal(c, PROPOSAL_LEASE, 0) == NULL) {
        body.lease_us = wanted_us > c->state->lease_us ? wanted_us : c->state->lease_us;
        command.body_case = RH__COMMAND__BODY_LEASE;
        command.lease = &body;
        command.by = in->by;
        command.reason = in->reason;
        p = coordinator_propose(c, PROPOSAL_LEASE, &command);
    }
    if (p == NULL) {
        admin_not_ready(c, reply);
        return false;
    }
    wish_expect(p, peer, reply->tag, 0);
    p->for_ms = in->for_ms;
    if (mutant(M_EXTENDEARLY) && in->for_ms > 0) {
        lease_extend(c, in->for_ms);
    }
    return true;
}

void maintenance_applied(struct coordinator *c, const struct proposal *p,
                         const struct state_result *result)
{
    if (p->asked && result->accepted) {
        if (p->for_ms > 0) {
            lease_extend(c, p->for_ms);
        } else {
            lease_take_back(c);
        }
        log_info("txn",
                 "maintenance",
                 "for_ms=%" PRIu32 " lease_us=%" PRIu64,
                 p->for_ms,
                 c->state->lease_us);
    }
    admin_applied(c, p, result);
}
