/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a lease is, and when one has surely ended: specification §4.2, §4.3.
 *
 * What the nodes hold was granted by leaders that may have had another setting
 * than this one. So the state remembers the longest lease that anyone may have
 * granted: it is raised before the first longer grant leaves, and lowered by a
 * leader that has led for as long as the longest takes to end. All waits go by
 * it (docs/decisions/008).
 */
#include "txn/leader/inside.h"

#include "base/log.h"
#include "base/mutant.h"

#include <inttypes.h>

enum {
    MARGIN_PART = 10,  /* δL of D */
    SUSPECT_PART = 2,  /* T_suspect of D */
    KILL_OF_1000 = 27, /* δK of D, as every node has it */
    RATE_OF_1000 = 50, /* clock rate error that must be covered */
    ELECTIONS_MIN = 3, /* election time-outs in a lease: one lasts up to two of them */
};

void coordinator_config_lease(struct coordinator_config *config, uint32_t lease_ms)
{
    config->lease_us = (uint64_t)lease_ms * 1000;
    config->lease_margin_us = config->lease_us / MARGIN_PART;
    config->suspect_ms = lease_ms / SUSPECT_PART;
}

const char *coordinator_config_fault(const struct coordinator_config *config, uint32_t election_ms)
{
    const uint64_t lease_us = config->lease_us;
    const uint64_t longest_us =
        lease_us / 1000 * (1000 - KILL_OF_1000) / 1000 * (1000 + RATE_OF_1000);

    if (lease_us == 0) {
        return NULL;
    }
    if (lease_us < (uint64_t)ELECTIONS_MIN * election_ms * 1000) {
        return "the lease is shorter than three election time-outs: every election would end it";
    }
    if (longest_us >= lease_us + config->lease_margin_us) {
        return "the margin is too small: a clock that is 5 % slow would outlive the wait";
    }
    if ((uint64_t)config->suspect_ms * 1000 >= lease_us) {
        return "a node must be suspected before its lease ends";
    }
    if ((uint64_t)config->suspect_ms * 1000 < lease_us / 4) {
        return "a node is suspected before it missed two renewals";
    }
    return NULL;
}

uint64_t lease_longest_us(const struct coordinator *c)
{
    return c->state->lease_us > c->config.lease_us ? c->state->lease_us : c->config.lease_us;
}

/* My margin is of my leases: clocks go apart by as much more in a longer one of somebody else. */
static uint64_t margin_us(const struct coordinator *c)
{
    const uint64_t mine_us = c->config.lease_us;
    const uint64_t beyond_us = mutant(M_SHORTMARGIN) ? 0 : lease_longest_us(c) - mine_us;

    if (mine_us == 0) {
        return lease_longest_us(c) / MARGIN_PART;
    }
    // In parts of 1000 rounded up: the product of the two lengths themselves may not fit.
    return c->config.lease_margin_us +
           beyond_us * ((c->config.lease_margin_us * 1000 + mine_us - 1) / mine_us) / 1000;
}

uint64_t lease_wait_us(const struct coordinator *c)
{
    return lease_longest_us(c) + (mutant(M_DRIFT) ? 0 : margin_us(c));
}

/* What earlier leaders granted ends so long after my election (hole 24). */
uint64_t lease_elders_over_us(const struct coordinator *c)
{
    return lease_longest_us(c) == 0 ? 0 : c->lead_us + lease_wait_us(c);
}

uint64_t lease_over_us(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    const uint64_t elders_us = mutant(M_NEWLEAD) ? 0 : lease_elders_over_us(c);
    const uint64_t mine_us =
        seen == NULL || seen->granted_us == 0 ? 0 : seen->granted_us + lease_wait_us(c);

    if (lease_longest_us(c) == 0 || mutant(M_NOWAIT)) {
        return 0;
    }
    const uint64_t over_us = mine_us > elders_us ? mine_us : elders_us;

    return over_us + (mutant(M_WAITLONG) ? UINT64_C(15000000) : 0);
}

bool lease_ready(const struct coordinator *c)
{
    return c->state->lease_us >= c->config.lease_us;
}

static void propose(struct coordinator *c)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandLease body = RH__COMMAND_LEASE__INIT;

    if (coordinator_proposal(c, PROPOSAL_LEASE, 0) != NULL) {
        return;
    }
    body.lease_us = c->config.lease_us;
    command.body_case = RH__COMMAND__BODY_LEASE;
    command.lease = &body;
    if (coordinator_propose(c, PROPOSAL_LEASE, &command) != NULL) {
        log_info("txn",
                 "lease",
                 "us=%" PRIu64 " before=%" PRIu64,
                 c->config.lease_us,
                 c->state->lease_us);
    }
}

void lease_agree(struct coordinator *c)
{
    if (c->config.lease_us == 0 || c->state->lease_us == c->config.lease_us) {
        return;
    }
    // All that I granted is mine; what is longer is of earlier leaders.
    if (c->state->lease_us < c->config.lease_us || c->now_us >= lease_elders_over_us(c) ||
        mutant(M_LOWERED)) {
        propose(c);
    }
}
