/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's step: an event to the file that handles it, then what is due by
 * time.
 */
#include "txn/leader/coordinator.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "txn/leader/inside.h"
#include "wire/versions.h"

#include <inttypes.h>
#include <string.h>

enum {
    CLAIM_MS = 1000,  /* the leader says so again, */
    ALONG_MS = 900,   /* … and so soon with what it says anyway */
    SLEPT_PART = 4,   /* of suspect_ms without a step: I slept */
    RESTS_MS = 170,   /* between two ticks, when nothing goes on: as its beats come, raft/io.h */
    FOLLOWS_MS = 200, /* more than between two beats of a leader, with which it ticks along */
};

struct coordinator_config coordinator_config_default(void)
{
    return (struct coordinator_config){
        .formats = {FLEET_FORMAT_OLDEST, FLEET_FORMAT},
        .grid = 14,
        .vnodes_per_weight = 64,
        .moves_per_txn = 8,
        .actors_per_txn = 112,
        .txns_max = 8,
        .remember_max = 100000,
        .txns_per_node = 2,
        .prepare_ms = 8000,
        .resend_ms = 300,
        .retry_ms = 1000,
        .settle_ms = 200,
        .suspect_ms = 1500,
        .lease_margin_us = 300000,
        .eligible_ms = 10000,
        .slow_ms = 100,
        .yield_ms = 300,
        .balance_moves = 6,
        .balance_warm_ms = 20000,
        .balance_period_ms = 10000,
        .balance_rest_ms = 600000,
    };
}

void coordinator_effects_clear(struct coordinator_effects *e)
{
    e->count = 0;
    buffer_clear(&e->bytes);
}

void coordinator_effects_fini(struct coordinator_effects *e)
{
    mem_free(e->item);
    buffer_fini(&e->bytes);
    *e = (struct coordinator_effects){0};
}

const char *balance_by_name(enum balance_by by)
{
    static const char *const names[] = {"hash", "load", "memory"};

    return names[by];
}

/* ---- life ---- */

struct coordinator *coordinator_new(const struct coordinator_config *config,
                                    const struct state *state)
{
    struct coordinator *c = mem_new(1, sizeof *c);

    c->config = *config;
    c->state = state;
    return c;
}

void coordinator_configure(struct coordinator *c, const struct coordinator_config *config)
{
    c->config.prepare_ms = config->prepare_ms;
    c->config.suspect_ms = config->suspect_ms;
    c->config.txns_max = config->txns_max;
    c->config.remember_max = config->remember_max;
    c->config.txns_per_node = config->txns_per_node;
    memcpy(c->config.least, config->least, sizeof c->config.least);
    c->config.least_count = config->least_count;
    memcpy(c->config.zone, config->zone, sizeof c->config.zone);
    c->config.zone_count = config->zone_count;
    if (config->balance_by != c->config.balance_by) {
        loads_reset(c); // what is known is in the other's unit
    }
    c->config.balance_by = config->balance_by;
    c->config.balance_moves = config->balance_moves;
    rebalance_touch(c);
}

/* All that only a leader knows. */
static void forget(struct coordinator *c)
{
    past_forget(c);
    proposals_forget(c);
    barrier_forget(c);
    drive_forget_all(c);
    rebalance_reset(c);
    loads_reset(c);
    peers_forget(c);
    applied_look_again(c);
    fence_forget(c);
}

void coordinator_free(struct coordinator *c)
{
    if (c == NULL) {
        return;
    }
    forget(c);
    history_fini(c);
    peers_free(c);
    planted_fini(c);
    proposals_fini(c);
    drive_fini(c);
    barrier_fini(c);
    eligibility_fini(c);
    phases_fini(c);
    mem_free(c);
}

/* ---- events ---- */

static void on_lead(struct coordinator *c, const struct coordinator_event *event)
{
    forget(c);
    c->leading = true;
    c->term = event->term;
    c->leader = c->config.id;
    c->lead_us = c->now_us;
    c->claim_us = c->now_us;
    trend_begin(&c->trend, c->now_us);
    log_info("txn",
             "leading",
             "term=%" PRIu64 " pending=%zu version=%s",
             c->term,
             state_pending_count(c->state),
             STAMP(c->state->view.ring.version));
    peers_tell_leader(c, NULL);
    rebalance_touch(c);
}

static void on_follow(struct coordinator *c, const struct coordinator_event *event)
{
    if (c->leading) {
        log_info("txn", "following", "leader=%" PRIu64, event->leader);
    }
    c->leading = false;
    c->leader = event->leader;
    c->term = event->term > c->term ? event->term : c->term;
    for (size_t i = 0; i < c->barrier.count; i++) {
        message_not_leading(c, c->barrier.waiting[i].peer);
    }
    forget(c);
    peers_tell_leader(c, NULL);
}

static void on_peer_up(struct coordinator *c, const struct coordinator_event *event)
{
    peers_up(c, event);
    peers_tell_leader(c, peers_find(c, event->peer));
}

/* A link that could not take the message, or took an older one after it, must not leave a node
 * without a leader: nobody would ask it anything. */
/* Say again that I lead, if I did not for so long. */
static void claim(struct coordinator *c, uint32_t after_ms)
{
    if (c->leading && c->now_us - c->claim_us >= (uint64_t)after_ms * 1000) {
        c->claim_us = c->now_us;
        peers_tell_leader(c, NULL);
    }
}

static void on_tick(struct coordinator *c)
{
    if (mutant(M_READFIRST)) {
        proto_free(planted_readfirst(c)); // reads it anew, when it is time
    }
    claim(c, CLAIM_MS);
}

static void on_done(struct coordinator *c, const struct coordinator_event *event)
{
    const bool asked = c->barrier.tag != 0;

    applied_on_done(c, event);
    if (asked && c->barrier.tag == 0) {
        claim(c, ALONG_MS); // nodes hear it with their grants
    }
}

/* ---- step ---- */

enum { CHECKED_MAX = 64 }; /* nodes that a step's check looks at */

/* All coordinators here read it; who is not here, and older, is told so when he comes. */
static uint32_t founding_format(const struct coordinator *c)
{
    uint32_t format = c->config.formats.newest;

    for (size_t i = 0; i < c->peers.count; i++) {
        const struct leader_peer *p = c->peers.item[i];

        format =
            p->role == ROLE_COORDINATOR && p->format.newest < format ? p->format.newest : format;
    }
    return format;
}

static void found_cluster(struct coordinator *c)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;

    if (coordinator_proposal(c, PROPOSAL_INIT, 0) != NULL) {
        return;
    }
    in.cluster = c->config.cluster;
    in.fleet_high = c->config.fleet.high;
    in.fleet_low = c->config.fleet.low;
    in.key0 = c->config.key.k0;
    in.key1 = c->config.key.k1;
    in.grid = c->config.grid;
    in.vnodes_per_weight = c->config.vnodes_per_weight;
    in.era = 1;
    in.lease_us = c->config.lease_us;
    in.format = founding_format(c) > FLEET_FORMAT_OLDEST ? founding_format(c) : 0;
    command.body_case = RH__COMMAND__BODY_INIT;
    command.init = &in;
    (void)coordinator_propose(c, PROPOSAL_INIT, &command);
}

/* Nodes and gateways link to all of them, and so find whoever leads next. */
static void on_voters(struct coordinator *c, const struct coordinator_event *event)
{
    ASSERT(event->voter_count <= STATE_VOTERS_MAX);
    memcpy(c->config.voter, event->voter, event->voter_count * sizeof *event->voter);
    c->config.voter_count = event->voter_count;
    peers_tell_leader(c, NULL);
}

/* Whatever the state shows as unfinished goes on: after any event, and after any loss. */
static void go_on(struct coordinator *c, bool tick)
{
    if (!c->leading) {
        return;
    }
    if (past_found(c)) {
        barrier_start(c, tick);
        return;
    }
    if (c->state->begun) {
        lease_agree(c);
        fence_settle(c);
    }
    if (c->state->begun && fence_settling(c)) {
        register_voters(c);
    } else if (c->state->begun) {
        drive_prune(c);
        fence_run(c);
        drive_advance(c);
        register_tidy(c);
        register_voters(c);
        loads_run(c);
        trend_run(&c->trend, c->now_us, c->wall_us);
        rebalance_run(c);
        upgrade_run(c);
    } else {
        found_cluster(c);
    }
    barrier_start(c, tick);
}

void coordinator_step(struct coordinator *c, const struct coordinator_event *event,
                      struct coordinator_effects *out)
{
    c->out = out;
    c->now_us = event->now_us;
    if (c->steps == 0) {
        past_born(c);
    }
    c->wall_us = event->wall_us;
    if (c->now_us - c->step_us > (uint64_t)c->config.suspect_ms * 1000 / SLEPT_PART) {
        c->awake_us = c->now_us; // it was I who was silent
    }
    c->step_us = c->now_us;
    switch (event->type) {
    case COORDINATOR_LEAD:
        on_lead(c, event);
        break;
    case COORDINATOR_FOLLOW:
        on_follow(c, event);
        break;
    case COORDINATOR_APPLIED:
        applied_on_entry(c, event);
        break;
    case COORDINATOR_DONE:
        on_done(c, event);
        break;
    case COORDINATOR_PEER_UP:
        on_peer_up(c, event);
        break;
    case COORDINATOR_PEER_DOWN:
        peers_down(c, event->peer);
        break;
    case COORDINATOR_MESSAGE:
        message_on(c, event);
        break;
    case COORDINATOR_VOTERS:
        on_voters(c, event);
        break;
    case COORDINATOR_NOTE:
        (void)coordinator_propose_note(c, PROPOSAL_NOTE, event->note);
        break;
    case COORDINATOR_TICK:
        on_tick(c);
        break;
    }
    go_on(c, event->type == COORDINATOR_TICK);
    c->out = NULL;
    c->steps++;
    coordinator_check(c);
}

uint32_t coordinator_rests_ms(const struct coordinator *c)
{
    const uint32_t notice_ms = c->config.suspect_ms / (2 * SLEPT_PART); // else I slept

    if (!c->leading) {
        return FOLLOWS_MS;
    }
    if (!c->state->begun || c->proposals.count > 0 || c->barrier.count > c->barrier.riding ||
        state_pending_count(c->state) > 0 || rebalance_planned(c) > 0 || rebalance_planning(c) ||
        past_found(c) || !fence_rests(c)) {
        return 0;
    }
    return notice_ms < RESTS_MS ? notice_ms : RESTS_MS;
}

uint64_t coordinator_plans_made(const struct coordinator *c)
{
    return c->rebalance.plans_made;
}

void coordinator_check(const struct coordinator *c)
{
    ASSERT(c->barrier.riding <= c->barrier.count);
    ASSERT(IMPLIES(c->barrier.riding > 0, c->barrier.tag != 0));
    ASSERT(IMPLIES(!c->leading, c->drives.count == 0 && c->proposals.count == 0));
    ASSERT(IMPLIES(!c->leading, c->barrier.count == 0 && !c->rebalance.has_plan));
    for (size_t i = 0; i < c->drives.count; i++) {
        const struct state_txn *t = state_txn(c->state, c->drives.item[i].txn);

        ASSERT(t != NULL && t->state == TXN_PENDING);
        ASSERT(t->part_count == c->drives.item[i].part_count);
        ASSERT(i == 0 || c->drives.item[i - 1].txn < c->drives.item[i].txn);
    }
    for (size_t i = 0; i < c->proposals.count; i++) {
        ASSERT(c->proposals.item[i].tag <= c->proposals.last_tag);
        ASSERT(i == 0 || c->proposals.item[i - 1].tag < c->proposals.item[i].tag);
    }
    for (size_t i = 0; i < c->peers.seen_count && i < CHECKED_MAX; i++) {
        // In a large fleet some at a time.
        const uint64_t granted_us = c->peers.seen[(c->steps + i) % c->peers.seen_count].granted_us;

        // What I granted I granted as leader: else the wait after my election would not cover it.
        ASSERT(granted_us == 0 || (c->leading && granted_us >= c->lead_us));
    }
    if (c->steps % 1024 == 0) {
        state_check(c->state); // O(ring): sampled
    }
}
