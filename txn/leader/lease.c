/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a lease is, and when one has surely ended: specification §4.2, §4.3.
 *
 * What the nodes hold was granted by leaders that may have had another setting
 * than this one. So the state remembers the longest lease that anyone may have
 * granted: it is raised before the first longer grant leaves, and lowered by a
 * leader that has led for as long as the longest takes to end. All waits go by
 * it (docs/decisions/008).
 *
 * Leases that an operator has extended, so that nodes serve while no coordinator
 * runs, are such longer ones, and all of them end at one moment. Only who
 * extended them knows when; whoever leads next waits for the longest as for those
 * of any earlier leader (docs/decisions/078).
 */
#include "txn/leader/inside.h"

#include "base/log.h"
#include "base/mutant.h"

#include <inttypes.h>

enum {
    MARGIN_PART = 10,     /* δL of D */
    TOLD_MARGIN_PART = 8, /* likewise, of a lease that others may have had a little before */
    SUSPECT_PART = 2,     /* T_suspect of D */
    KILL_OF_1000 = 27,    /* δK of D, as every node has it */
    RATE_OF_1000 = 50,    /* clock rate error that must be covered */
    ELECTIONS_MIN = 3,    /* election time-outs in a lease: one lasts up to two of them */
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
    if (mutant(M_EXTENDIGNORED)) {
        return c->config.lease_us;
    }
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
    uint64_t over_us = mine_us > elders_us ? mine_us : elders_us;

    over_us = over_us > c->fence.told_us ? over_us : c->fence.told_us;
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

/* I grant extended leases yet. */
static bool extends(const struct coordinator *c)
{
    return c->now_us < c->fence.extended_us && !c->fence.taken_back;
}

static bool extended_are_over(const struct coordinator *c)
{
    return c->fence.extended_us == 0 || c->now_us >= c->fence.extended_us + margin_us(c) ||
           mutant(M_EXTENDDROPPED);
}

/* No lease counts there that an earlier leader granted, or that I extended: what the node sent
 * since it had one of mine nobody before me can grant, and now its lease counts from one of these
 * renewals, which is none that I granted an extended one (specification §4.6). */
static bool has_mine(const struct seen *seen)
{
    if (seen != NULL && mutant(M_EXTENDTRUSTED)) {
        return seen->granted_us != 0;
    }
    return seen != NULL && seen->sure_seq != 0 && seen->renew.lease_seq >= seen->sure_seq &&
           (seen->renew.lease_seq > seen->extended_seq || mutant(M_EXTENDDROPPED));
}

/* Who is fenced and owns nothing has nothing to lose. A restored state that has not settled lacks
 * nodes, whose leases last. */
static bool all_have_mine(const struct coordinator *c)
{
    if (fence_settling(c)) {
        return false;
    }
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (node->barred ? ring_owned_count(&c->state->view.ring, node->slot) > 0
                         : !has_mine(peers_seen(c, node))) {
            return false;
        }
    }
    return true;
}

/* What is longer than mine is of earlier leaders, or I extended it. */
static bool longer_are_over(const struct coordinator *c)
{
    return (c->now_us >= lease_elders_over_us(c) && extended_are_over(c)) ||
           ((!extends(c) || mutant(M_EXTENDDROPPED)) && all_have_mine(c)) || mutant(M_LOWERED);
}

void lease_agree(struct coordinator *c)
{
    if (c->config.lease_us == 0 || c->state->lease_us == c->config.lease_us) {
        return;
    }
    if (c->state->lease_us < c->config.lease_us || longer_are_over(c)) {
        propose(c);
    }
}

void lease_told(struct coordinator *c, const struct state_node *node, const Rh__Renew *in)
{
    const uint64_t most_us = (uint64_t)LEASE_EXTENDED_MS_MAX * 1000; // as far as one is believed
    const uint64_t length_us = in->lease_length_us < most_us ? in->lease_length_us : most_us;
    const uint64_t left_us = in->lease_us < length_us ? in->lease_us : length_us;
    const uint64_t told_us = c->now_us + left_us + length_us / TOLD_MARGIN_PART;
    // Only who led before can have granted it: so none lasts longer, whatever a node goes on to
    // say.
    const uint64_t last_us = c->lead_us + most_us + most_us / TOLD_MARGIN_PART;
    const uint64_t until_us = told_us < last_us ? told_us : last_us;

    if (left_us == 0 || length_us <= lease_longest_us(c) || until_us <= c->fence.told_us) {
        return;
    }
    if (c->now_us >= c->fence.told_us) {
        log_warn("txn",
                 "lease_unknown",
                 "node=%s length_us=%" PRIu64 " longest_us=%" PRIu64
                 ": no node is replaced before such leases are over",
                 node->name,
                 length_us,
                 lease_longest_us(c));
    }
    c->fence.told_us = until_us;
}

/* ---- extended leases ---- */

/* In its last fifth a lease is SOFT, its node's clock may be 5 % fast, and its last renewal was a
 * moment ago. */
uint64_t lease_extended_us(const struct coordinator *c, uint32_t for_ms)
{
    return (uint64_t)for_ms * 1000 * 4 / 3 + c->config.lease_us;
}

void lease_extend(struct coordinator *c, uint32_t for_ms)
{
    const uint64_t end_us = c->now_us + lease_extended_us(c, for_ms);

    c->fence.extended_us = end_us > c->fence.extended_us ? end_us : c->fence.extended_us;
    c->fence.taken_back = false;
}

void lease_take_back(struct coordinator *c)
{
    c->fence.taken_back = true;
}

bool lease_replaces(const struct coordinator *c, const struct seen *seen)
{
    return c->fence.taken_back && c->state->lease_us > c->config.lease_us &&
           seen->renew.lease_length_us != 0;
}

uint64_t lease_grant_us(const struct coordinator *c, const struct seen *seen)
{
    const uint64_t mine_us = drift_lease_us(&seen->clock, c->config.lease_us);
    const uint64_t left_us = extends(c) ? c->fence.extended_us - c->now_us : 0;

    // While a LEASE is on its way, the length that the state has may be about to go.
    if (left_us <= mine_us || seen->renew.lease_length_us == 0 || seen->clock.parts != 0 ||
        ((left_us > c->state->lease_us || coordinator_proposal(c, PROPOSAL_LEASE, 0) != NULL) &&
         !mutant(M_EXTENDEARLY))) {
        return mine_us;
    }
    return left_us;
}
