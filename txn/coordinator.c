/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/coordinator.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "txn/inside.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct coordinator_config coordinator_config_default(void)
{
    return (struct coordinator_config){
        .formats = {FLEET_FORMAT_OLDEST, FLEET_FORMAT},
        .grid = 14,
        .vnodes_per_weight = 64,
        .moves_per_txn = 8,
        .actors_per_txn = 512,
        .txns_max = 8,
        .txns_per_node = 4,
        .prepare_ms = 8000,
        .resend_ms = 300,
        .retry_ms = 1000,
        .settle_ms = 200,
        .suspect_ms = 1500,
        .lease_margin_us = 300000,
        .eligible_ms = 10000,
        .slow_ms = 100,
        .yield_ms = 300,
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

/* ---- life ---- */

struct coordinator *coordinator_new(const struct coordinator_config *config,
                                    const struct state *state)
{
    struct coordinator *c = mem_new(1, sizeof *c);

    c->config = *config;
    c->state = state;
    return c;
}

static void drop_proposal(struct coordinator *c, size_t at)
{
    mem_free(c->proposal[at].ops);
    c->proposal_count--;
    memmove(&c->proposal[at], &c->proposal[at + 1], (c->proposal_count - at) * sizeof *c->proposal);
}

static void drop_waiting(struct coordinator *c, size_t count)
{
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        control_free(c->waiting[i].message);
    }
    c->waiting_count -= count;
    memmove(c->waiting, c->waiting + count, c->waiting_count * sizeof *c->waiting);
    c->riding = c->riding > count ? c->riding - count : 0;
}

/* All that only a leader knows. */
static void forget(struct coordinator *c)
{
    while (c->proposal_count > 0) {
        drop_proposal(c, c->proposal_count - 1);
    }
    drop_waiting(c, c->waiting_count);
    c->barrier = 0;
    drive_forget_all(c);
    rebalance_reset(c);
    peers_forget(c);
    c->applied++;
    c->owned_version = 0;
    c->quiet_us = 0;
    c->deaf_us = 0;
}

void coordinator_free(struct coordinator *c)
{
    if (c == NULL) {
        return;
    }
    forget(c);
    history_fini(c);
    peers_free(c);
    buffer_fini(&c->read);
    mem_free(c->proposal);
    mem_free(c->drive);
    mem_free(c->waiting);
    pace_fini(c);
    phases_fini(c);
    mem_free(c);
}

/* ---- proposals ---- */

static void put_effect(struct coordinator *c, enum coordinator_effect_type type, uint64_t tag,
                       size_t at)
{
    struct coordinator_effects *out = c->out;

    if (out->count == out->cap) {
        out->cap = out->cap == 0 ? 16 : 2 * out->cap;
        out->item = mem_resize(out->item, out->cap * sizeof *out->item);
    }
    out->item[out->count++] = (struct coordinator_effect){
        .type = type,
        .tag = type == COORDINATOR_SEND ? 0 : tag,
        .peer = type == COORDINATOR_SEND ? tag : 0,
        .at = at,
        .size = out->bytes.size - at,
    };
}

void coordinator_put_send(struct coordinator *c, uint64_t peer, const Rh__Control *message)
{
    const size_t at = c->out->bytes.size;

    control_put(&c->out->bytes, message);
    put_effect(c, COORDINATOR_SEND, peer, at);
}

void coordinator_put_again(struct coordinator *c, uint64_t peer)
{
    const struct coordinator_effect *last = &c->out->item[c->out->count - 1];
    const size_t at = last->at;

    ASSERT(last->type == COORDINATOR_SEND && at + last->size == c->out->bytes.size);
    put_effect(c, COORDINATOR_SEND, peer, at);
}

struct proposal *coordinator_propose(struct coordinator *c, enum proposal_kind kind,
                                     Rh__Command *command)
{
    size_t at;

    if (!c->leading || c->now_us < c->quiet_us) {
        return NULL;
    }
    // Whoever reads only older formats must never find it in the log.
    ASSERT(IMPLIES(command->body_case == RH__COMMAND__BODY_AHEAD,
                   c->state->format >= FLEET_FORMAT_AHEAD));
    command->time_us = c->wall_us;
    command->proposer = c->config.id;
    if (mutant(M_LOCALNUM) && command->body_case == RH__COMMAND__BODY_BEGIN) {
        planted_localnum(c, command->begin);
    }
    at = c->out->bytes.size;
    command_put(&c->out->bytes, command);
    put_effect(c, COORDINATOR_PROPOSE, ++c->last_tag, at);
    c->proposal = mem_resize(c->proposal, (c->proposal_count + 1) * sizeof *c->proposal);
    c->proposal[c->proposal_count] = (struct proposal){.kind = kind, .tag = c->last_tag};
    return &c->proposal[c->proposal_count++];
}

static bool is_about(const struct proposal *p, uint64_t about)
{
    switch (p->kind) {
    case PROPOSAL_INIT:
    case PROPOSAL_LEASE:
    case PROPOSAL_SETTLE:
    case PROPOSAL_MEND:
    case PROPOSAL_DAEMONS:
    case PROPOSAL_QUARANTINE:
    case PROPOSAL_FORMAT:
    case PROPOSAL_AHEAD:
        return true;
    case PROPOSAL_REGISTER:
        return p->nonce == about;
    case PROPOSAL_BEGIN:
    case PROPOSAL_DECIDE:
        return p->txn == about;
    case PROPOSAL_DESIRE:
    case PROPOSAL_FENCE:
    case PROPOSAL_REASSIGN:
    case PROPOSAL_DEREGISTER:
    case PROPOSAL_VOTER:
        return p->slot == about;
    }
    UNREACHABLE();
}

const struct proposal *coordinator_proposal(const struct coordinator *c, enum proposal_kind kind,
                                            uint64_t about)
{
    for (size_t i = 0; i < c->proposal_count; i++) {
        if (c->proposal[i].kind == kind && is_about(&c->proposal[i], about)) {
            return &c->proposal[i];
        }
    }
    return NULL;
}

static size_t proposal_index(const struct coordinator *c, uint64_t tag)
{
    size_t at = 0;

    while (at < c->proposal_count && c->proposal[at].tag != tag) {
        at++;
    }
    return at;
}

/* ---- barriers ---- */

/* One at a time; what comes while it is under way waits for the next (PROTOCOL §3.5). */
static void start_barrier(struct coordinator *c)
{
    if (!c->leading || c->barrier != 0 || c->waiting_count == 0 || c->now_us < c->quiet_us) {
        return;
    }
    c->barrier = ++c->last_tag;
    c->riding = c->waiting_count;
    put_effect(c, COORDINATOR_BARRIER, c->barrier, c->out->bytes.size);
}

static void wait_for_barrier(struct coordinator *c, uint64_t peer, const Rh__Control *message)
{
    struct buffer bytes = {0};

    if (c->waiting_count >= WAITING_MAX) {
        return; // whoever asked asks again
    }
    c->waiting = mem_resize(c->waiting, (c->waiting_count + 1) * sizeof *c->waiting);
    control_put(&bytes, message);
    c->waiting[c->waiting_count].peer = peer;
    c->waiting[c->waiting_count].message = control_get(buffer_bytes(&bytes));
    buffer_fini(&bytes);
    if (c->waiting[c->waiting_count].message != NULL) {
        c->waiting_count++;
    }
}

/* A message that came before the barrier which is now done. */
static void decide(struct coordinator *c, struct peer *peer, const Rh__Control *message)
{
    if (message->body_case == RH__CONTROL__BODY_REGISTER_) {
        register_on_register(c, peer, message->register_);
    } else if (message->body_case == RH__CONTROL__BODY_RENEW) {
        register_on_renew(c, peer, message);
    } else if (message->body_case == RH__CONTROL__BODY_POLL) {
        register_on_poll(c, peer, message->poll);
    } else if (message->body_case == RH__CONTROL__BODY_ADMIN) {
        admin_on_question(c, peer, message->admin);
    }
}

static void on_barrier(struct coordinator *c, enum err error)
{
    const size_t count = c->riding;

    c->barrier = 0;
    c->riding = 0;
    if (error != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct peer *peer = peers_find(c, c->waiting[i].peer);

        if (peer != NULL) {
            decide(c, peer, c->waiting[i].message);
        }
    }
    drop_waiting(c, count);
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
    log_info("txn",
             "leading",
             "term=%" PRIu64 " pending=%zu version=%" PRIu64,
             c->term,
             state_pending_count(c->state),
             c->state->view.ring.version);
    peers_tell_leader(c, NULL);
    rebalance_touch(c);
}

static void refuse_not_leading(struct coordinator *c, uint64_t peer)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__NotLeader body = RH__NOT_LEADER__INIT;

    out.body_case = RH__CONTROL__BODY_NOT_LEADER;
    out.not_leader = &body;
    peers_send(c, peer, &out);
}

static void on_follow(struct coordinator *c, const struct coordinator_event *event)
{
    if (c->leading) {
        log_info("txn", "following", "leader=%" PRIu64, event->leader);
    }
    c->leading = false;
    c->leader = event->leader;
    c->term = event->term > c->term ? event->term : c->term;
    for (size_t i = 0; i < c->waiting_count; i++) {
        refuse_not_leading(c, c->waiting[i].peer);
    }
    forget(c);
    peers_tell_leader(c, NULL);
}

static void announce(struct coordinator *c, const struct state_result *result)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Commit body = RH__COMMIT__INIT;

    body.txn = result->delta->txn;
    body.delta = result->delta;
    out.body_case = RH__CONTROL__BODY_COMMIT;
    out.commit = &body;
    peers_broadcast(c, &out);
}

/* A proposal of mine came out of the log. */
static void on_mine(struct coordinator *c, const struct proposal *p,
                    const struct coordinator_event *event)
{
    const struct state_result *result = event->result;

    if (!result->accepted) {
        log_info("txn", "refused", "why=\"%s\"", result->why);
    }
    switch (p->kind) {
    case PROPOSAL_INIT:
        return;
    case PROPOSAL_REGISTER:
        register_applied(c, p, result);
        return;
    case PROPOSAL_BEGIN:
        if (result->accepted) {
            drive_begin(c, p, result->stamp);
        } else if (!p->asked) {
            drive_refused(c, p, result->why);
            rebalance_failed(c, p);
        }
        resolve_applied(c, p, result);
        return;
    case PROPOSAL_DECIDE:
        if (!result->accepted) {
            drive_undecided(c, p->txn, p->asked ? NULL : result->why);
        }
        resolve_applied(c, p, result);
        return;
    case PROPOSAL_DESIRE:
    case PROPOSAL_DEREGISTER:
    case PROPOSAL_DAEMONS:
    case PROPOSAL_QUARANTINE:
    case PROPOSAL_FORMAT:
        admin_applied(c, p, result);
        return;
    case PROPOSAL_FENCE:
        fence_applied(c, p, result);
        return;
    case PROPOSAL_MEND:
        inspect_mend_applied(c, p, result);
        return;
    case PROPOSAL_VOTER:
    case PROPOSAL_LEASE:
    case PROPOSAL_REASSIGN:
    case PROPOSAL_SETTLE:
    case PROPOSAL_AHEAD:
        return;
    }
    UNREACHABLE();
}

static void log_outcome(const struct state_txn *t)
{
    log_info("txn",
             txn_state_name(t->state),
             "txn=%" PRIu64 " version=%" PRIu64 " why=\"%s\" outcome=\"%s\"",
             t->number,
             t->version,
             t->why,
             t->outcome_why);
}

static void count_outcomes(struct coordinator *c, const struct state_result *result)
{
    c->outcomes.committed += result->delta != NULL && result->delta->txn != 0;
    c->outcomes.reassigned += result->delta != NULL && result->delta->cold;
    c->outcomes.aborted += result->aborted_count;
}

static void on_applied(struct coordinator *c, const struct coordinator_event *event)
{
    const struct state_result *result = event->result;
    const struct state_txn *t;
    size_t at;

    c->applied++;
    // A directory that changed has other incarnations.
    c->links_changed = c->links_changed || (result->delta != NULL && result->delta->txn == 0);
    c->applied_index = event->index > c->applied_index ? event->index : c->applied_index;
    if (result->delta != NULL) {
        history_put(c, result->delta);
    }
    count_outcomes(c, result);
    pace_registered(c, event->command, result);
    if (!c->leading) {
        return;
    }
    if (result->delta != NULL) {
        announce(c, result);
    }
    if (result->delta != NULL && result->delta->txn != 0) {
        t = state_txn(c->state, result->delta->txn);
        if (t != NULL) {
            log_outcome(t);
            phases_outcome(c, t);
            rebalance_outcome(c, t, true);
        }
    } else if (result->delta != NULL) {
        rebalance_touch(c); // the directory changed
        admin_log_quarantine(c, result);
    }
    for (size_t i = 0; i < result->aborted_count; i++) {
        t = state_txn(c->state, result->aborted[i]);
        drive_cancel(c, result->aborted[i]);
        if (t != NULL) {
            log_outcome(t);
            phases_outcome(c, t);
            rebalance_outcome(c, t, false);
        }
    }
    drive_prune(c);
    at = event->tag == 0 ? c->proposal_count : proposal_index(c, event->tag);
    if (at < c->proposal_count) {
        struct proposal p = c->proposal[at];

        c->proposal[at].ops = NULL;
        drop_proposal(c, at);
        on_mine(c, &p, event);
        mem_free(p.ops);
    }
}

/* An unknown outcome is not lost: what is still to be done is seen in the state. */
static void on_done(struct coordinator *c, const struct coordinator_event *event)
{
    const size_t at = proposal_index(c, event->tag);

    if (event->error != ERR_OK) {
        c->quiet_us = c->now_us + (uint64_t)QUIET_MS * 1000;
    }
    if (c->barrier != 0 && event->tag == c->barrier) {
        on_barrier(c, event->error);
        return;
    }
    if (at < c->proposal_count) {
        if (c->proposal[at].kind == PROPOSAL_DECIDE) {
            drive_undecided(c, c->proposal[at].txn, NULL);
        } else if (c->proposal[at].kind == PROPOSAL_BEGIN) {
            rebalance_failed(c, &c->proposal[at]);
        }
        drop_proposal(c, at);
    }
}

static void on_vote(struct coordinator *c, struct peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);

    if (node != NULL) {
        (void)peers_heard(c, node);
    }
    votes_on_vote(c, peer, message);
}

/* What only a leader may answer. */
static void on_leaders_message(struct coordinator *c, struct peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);

    if (fence_settling(c) && message->body_case != RH__CONTROL__BODY_REGISTER_ &&
        message->body_case != RH__CONTROL__BODY_ADMIN) {
        return; // of the old era, or too early (hole 52)
    }
    if (node != NULL) {
        phases_heard(c, node, message->version);
    }
    if (message->body_case == RH__CONTROL__BODY_PREPARED ||
        message->body_case == RH__CONTROL__BODY_REFUSED ||
        message->body_case == RH__CONTROL__BODY_STALE) {
        on_vote(c, peer, message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_DRAINING) {
        votes_on_draining(c, peer, message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_BYE) {
        register_on_bye(c, peer, message->source_incarnation);
        return;
    }
    if (node != NULL) {
        (void)peers_heard(c, node);
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN && !admin_waits(message->admin)) {
        admin_on_question(c, peer, message->admin);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_RENEW && mutant(M_NOCONF)) {
        register_on_renew(c, peer, message);
        return;
    }
    wait_for_barrier(c, peer->id, message);
}

static bool is_for_leader(const Rh__Control *message)
{
    const Rh__Control__BodyCase body = message->body_case;

    return body == RH__CONTROL__BODY_REGISTER_ || body == RH__CONTROL__BODY_BYE ||
           body == RH__CONTROL__BODY_RENEW || body == RH__CONTROL__BODY_POLL ||
           body == RH__CONTROL__BODY_PREPARED || body == RH__CONTROL__BODY_REFUSED ||
           body == RH__CONTROL__BODY_STALE || body == RH__CONTROL__BODY_ADMIN ||
           body == RH__CONTROL__BODY_DRAINING;
}

static void on_message(struct coordinator *c, const struct coordinator_event *event)
{
    const Rh__Control *message = event->message;
    struct peer *peer = peers_find(c, event->peer);

    if (peer == NULL) {
        return;
    }
    peer->heard_us = c->now_us;
    if (peer->role == ROLE_NODE && message->source_incarnation != 0) {
        peers_reincarnate(c, peer, message->source_incarnation);
    }
    if (message->body_case == RH__CONTROL__BODY_GET_CONFIG) {
        peer->told = *message->get_config;
        peer->told.base = (ProtobufCMessage){0};
        history_answer(c, peer->id, message->get_config);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ERRAND_ANSWER) {
        errand_relay(c, message->errand_answer);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_INSPECT_ANSWER) {
        inspect_relay(c, message->inspect_answer);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN && peer->role != ROLE_CLI) {
        log_warn("coordinator",
                 "no_operator",
                 "peer=%s role=%s: a command that only operators give",
                 peer->name,
                 link_role_name(peer->role));
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN &&
        message->admin->what_case == RH__ADMIN__WHAT_INSPECT) {
        inspect_ask(c, peer, message->admin);
        return;
    }
    if (!is_for_leader(message)) {
        return; // Adopted, or nothing that is sent to a coordinator
    }
    if (!c->leading) {
        refuse_not_leading(c, peer->id);
        return;
    }
    on_leaders_message(c, peer, message);
}

static void on_peer_up(struct coordinator *c, const struct coordinator_event *event)
{
    peers_up(c, event);
    peers_tell_leader(c, peers_find(c, event->peer));
}

/* A link that could not take the message, or took an older one after it, must not leave a node
 * without a leader: nobody would ask it anything. */
static void on_tick(struct coordinator *c)
{
    if (mutant(M_READFIRST)) {
        proto_free(planted_readfirst(c)); // reads it anew, when it is time
    }
    if (c->leading && c->now_us - c->claim_us >= (uint64_t)CLAIM_MS * 1000) {
        c->claim_us = c->now_us;
        peers_tell_leader(c, NULL);
    }
}

/* ---- step ---- */

enum { CHECKED_MAX = 64 }; /* nodes that a step's check looks at */

static void found_cluster(struct coordinator *c)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;

    if (coordinator_proposal(c, PROPOSAL_INIT, 0) != NULL) {
        return;
    }
    in.cluster = c->config.cluster;
    in.cluster_id = c->config.cluster_id;
    in.key0 = c->config.key.k0;
    in.key1 = c->config.key.k1;
    in.grid = c->config.grid;
    in.vnodes_per_weight = c->config.vnodes_per_weight;
    in.era = 1;
    in.lease_us = c->config.lease_us;
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
static void go_on(struct coordinator *c)
{
    if (!c->leading) {
        return;
    }
    if (c->state->begun) {
        lease_agree(c);
        fence_settle(c);
    }
    if (c->state->begun && fence_settling(c)) {
        c->deaf_us = c->now_us; // they'll need a moment to register
        register_voters(c);
    } else if (c->state->begun) {
        drive_prune(c);
        fence_run(c);
        drive_advance(c);
        register_tidy(c);
        register_voters(c);
        rebalance_run(c);
        upgrade_run(c);
    } else {
        found_cluster(c);
    }
    start_barrier(c);
}

void coordinator_step(struct coordinator *c, const struct coordinator_event *event,
                      struct coordinator_effects *out)
{
    c->out = out;
    c->now_us = event->now_us;
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
        on_applied(c, event);
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
        on_message(c, event);
        break;
    case COORDINATOR_VOTERS:
        on_voters(c, event);
        break;
    case COORDINATOR_TICK:
        on_tick(c);
        break;
    }
    go_on(c);
    c->out = NULL;
    c->steps++;
    coordinator_check(c);
}

uint64_t coordinator_leader(const struct coordinator *c)
{
    return c->leader;
}

uint64_t coordinator_plans_made(const struct coordinator *c)
{
    return c->plans_made;
}

void coordinator_check(const struct coordinator *c)
{
    ASSERT(c->riding <= c->waiting_count);
    ASSERT(IMPLIES(c->riding > 0, c->barrier != 0));
    ASSERT(IMPLIES(!c->leading, c->drive_count == 0 && c->proposal_count == 0));
    ASSERT(IMPLIES(!c->leading, c->waiting_count == 0 && !c->has_plan));
    for (size_t i = 0; i < c->drive_count; i++) {
        const struct state_txn *t = state_txn(c->state, c->drive[i].txn);

        ASSERT(t != NULL && t->state == TXN_PENDING);
        ASSERT(t->part_count == c->drive[i].part_count);
        ASSERT(i == 0 || c->drive[i - 1].txn < c->drive[i].txn);
    }
    for (size_t i = 0; i < c->proposal_count; i++) {
        ASSERT(c->proposal[i].tag <= c->last_tag);
        ASSERT(i == 0 || c->proposal[i - 1].tag < c->proposal[i].tag);
    }
    for (size_t i = 0; i < c->seen_count && i < CHECKED_MAX; i++) {
        // In a large fleet some at a time.
        const uint64_t granted_us = c->seen[(c->steps + i) % c->seen_count].granted_us;

        // What I granted I granted as leader: else the wait after my election would not cover it.
        ASSERT(granted_us == 0 || (c->leading && granted_us >= c->lead_us));
    }
    if (c->steps % 1024 == 0) {
        state_check(c->state); // O(ring): sampled
    }
}
