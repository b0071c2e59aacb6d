/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that come, stay and go: specification §4.4 and the answers of §3.5.
 */
#include "base/stamp.h"
#include "txn/leader/inside.h"
#include "txn/state/roles.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/repair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGISTER_RETRY_MS = 1000,
    REGISTER_RETRY_MS_MIN = 50,
    RENEWALS = 6,      /* in a lease, by specification §4.1 */
    RENEW_US = 480000, /* and so often at least: before a calm leader's third beat, raft/io.h */
    URGENT_PART = 3,   /* of a lease without a grant: the renewal doesn't wait */
    EARLY_PART = 8,    /* of the time between two renewals: so soon after one there is none */
    TOGETHER = 32,     /* nodes that renew at one moment */
};

/* ---- Register ---- */

/* `retry_ms` 0: for good. */
static void refuse(struct coordinator *c, uint64_t peer, const char *reason, uint32_t retry_ms)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__RegRefused body = RH__REG_REFUSED__INIT;

    body.reason = proto_text(reason);
    body.fatal = retry_ms == 0;
    body.retry_ms = retry_ms;
    out.body_case = RH__CONTROL__BODY_REG_REFUSED;
    out.reg_refused = &body;
    log_info("txn", "register_refused", "retry_ms=%" PRIu32 " reason=\"%s\"", retry_ms, reason);
    peers_send(c, peer, &out);
}

/* REG_WAIT of specification §4.4: until `until_us`, or a little longer. */
static void refuse_until(struct coordinator *c, uint64_t peer, const char *what, uint64_t until_us)
{
    const uint64_t left_ms = until_us > c->now_us ? (until_us - c->now_us) / 1000 + 1 : 0;
    const uint64_t retry_ms = left_ms < REGISTER_RETRY_MS ? left_ms : REGISTER_RETRY_MS;
    char reason[160];

    (void)snprintf(
        reason, sizeof reason, "waiting for the lease of %s to end, %" PRIu64 " ms", what, left_ms);
    refuse(c,
           peer,
           reason,
           retry_ms < REGISTER_RETRY_MS_MIN ? REGISTER_RETRY_MS_MIN : (uint32_t)retry_ms);
}

/* The configuration goes with it, so that no node reads it first and registers then (hole 2). */
static void welcome(struct coordinator *c, struct leader_peer *peer, const struct state_node *node)
{
    ProtobufCMessage *older = mutant(M_READFIRST) ? planted_readfirst(c) : NULL;
    Rh__Control out = RH__CONTROL__INIT;
    Rh__RegOk body = RH__REG_OK__INIT;
    Rh__Config config;

    view_config(&c->state->view, &config);
    body.nonce = node->nonce;
    body.slot = node->slot;
    body.incarnation = node->incarnation;
    // Whatever has a higher number began after this registration, and may be pending.
    body.floor = node->incarnation;
    body.config = older == NULL ? &config : (Rh__Config *)older;
    body.lease_us = c->config.lease_us;
    out.body_case = RH__CONTROL__BODY_REG_OK;
    out.reg_ok = &body;
    peers_reincarnate(c, peer, node->incarnation);
    (void)peers_heard(c, node);
    peers_send(c, peer->id, &out);
    view_config_fini(&config);
    proto_free(older);
}

static bool same_place(const struct state_node *node, const Rh__Register *in)
{
    return in->boot_id.len == STATE_UUID_SIZE && in->data_uuid.len == STATE_UUID_SIZE &&
           memcmp(in->boot_id.data, node->boot_id, STATE_UUID_SIZE) == 0 &&
           memcmp(in->data_uuid.data, node->data_uuid, STATE_UUID_SIZE) == 0;
}

static void refuse_unproven(struct coordinator *c, uint64_t peer, const struct state_node *node)
{
    char reason[VIEW_NAME_MAX + VIEW_ADDRESS_MAX + 160];

    (void)snprintf(reason,
                   sizeof reason,
                   "node '%s' was last seen at %s; its old process is not proven dead: start it on "
                   "the same machine with the same data folder",
                   node->name,
                   node->address);
    refuse(c, peer, reason, REGISTER_RETRY_MS);
}

/* The folder knows of that incarnation, so it is no copy from before it, started elsewhere. One
 * that had no time to write it down waits for its lease to end; where there are none it is
 * believed. */
static bool same_folder(const struct coordinator *c, const struct state_node *node,
                        const Rh__Register *in)
{
    const uint64_t highest = in->disk_seen > in->disk_floor ? in->disk_seen : in->disk_floor;

    return same_place(node, in) &&
           (highest >= node->incarnation || c->config.lease_us == 0 || mutant(M_OLDFOLDER));
}

/* Is the process that had this name surely dead? Else answer why not. */
static bool old_is_dead(struct coordinator *c, const struct leader_peer *peer,
                        const struct state_node *node, const Rh__Register *in)
{
    char reason[VIEW_NAME_MAX + VIEW_ADDRESS_MAX + 160];
    const bool leases = c->config.lease_us > 0;

    // Same boot of the same machine, and it holds the lock of the same folder.
    if ((node->barred && node->clean) || (in->lock_held && same_folder(c, node, in))) {
        return true;
    }
    if (node->barred && leases && c->now_us >= lease_over_us(c, node)) {
        return true; // §4.4: fenced, and the wait of §4.3 is over
    }
    if (!node->barred && (peers_live(c, node) || (!leases && peers_of_node(c, node) != NULL))) {
        (void)snprintf(reason,
                       sizeof reason,
                       "name '%s' belongs to a live node at %s: choose another name",
                       node->name,
                       node->address);
        refuse(c, peer->id, reason, 0);
        return false;
    }
    if (!leases) {
        refuse_unproven(c, peer->id, node);
        return false;
    }
    // Who has its name may be a twin of it, and it may only have slept: it keeps its memory as long
    // as nobody else may have what it owns (decision 047).
    if (peers_gone(c, node) && c->now_us >= lease_over_us(c, node)) {
        fence_propose(c, node, false);
    }
    refuse_until(c, peer->id, "the old process", lease_over_us(c, node));
    return false;
}

/* A node's disk knows numbers that the database never drew: it is an old copy (hole 54). */
static bool database_went_back(struct coordinator *c, const struct leader_peer *peer,
                               const Rh__Register *in)
{
    char reason[320];
    const uint64_t highest = in->disk_seen > in->disk_floor ? in->disk_seen : in->disk_floor;
    const uint64_t era = in->disk_era << STATE_NUMBER_BITS;

    if (highest <= c->state->number && in->disk_era <= c->state->view.era) {
        return false;
    }
    (void)snprintf(reason,
                   sizeof reason,
                   "the coordinators went back to an older state: number %s of era %" PRIu64
                   ", the node has seen %s of era %" PRIu64
                   "; stop the coordinators and restore again: ringhold recover restore ... "
                   "--era-above %" PRIu64 " (docs/recovery.md#went-back)",
                   STAMP(c->state->number),
                   c->state->view.era,
                   STAMP(highest),
                   in->disk_era,
                   in->disk_era);
    past_note(c, PAST_NODE, in->name, highest > era ? highest : era);
    refuse(c, peer->id, reason, 0);
    return true;
}

/* Nodes of a fleet that is dead, and that nobody lived to fence, host other kinds under the same
 * numbers. True: they are being fenced. Who may still have a lease is not dead. */
static bool fence_rivals(struct coordinator *c, const Rh__CommandRegister *in)
{
    bool any = false;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];

        if (!roles_rivals(c->state, in, node)) {
            continue;
        }
        if (peers_live(c, node)) {
            return false; // it would be refused all the same
        }
        any = true;
        if (peers_gone(c, node) && c->now_us >= lease_over_us(c, node)) {
            fence_propose(c, node, false);
        }
    }
    return any;
}

/* Of the era before a restore. Behind the backup it may have been fenced, and its vnodes may have
 * been others', who wrote to stores with greater fences (hole 53): all leases of then are over, and
 * its process, which asks, serves nothing. */
static bool is_elder(const struct coordinator *c, const struct state_node *node)
{
    return node->incarnation >> STATE_NUMBER_BITS < c->state->view.era && !mutant(M_ELDERAGAIN);
}

void register_on_register(struct coordinator *c, struct leader_peer *peer, const Rh__Register *in)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandRegister body = RH__COMMAND_REGISTER__INIT;
    const struct state_node *node = state_node_named(c->state, in->name);
    char misfit[ROLES_FAULT_SIZE];
    const char *fault;
    struct proposal *p;

    body.name = in->name;
    body.address = in->address;
    body.boot_id = in->boot_id;
    body.data_uuid = in->data_uuid;
    body.nonce = in->nonce;
    body.weight = in->weight == 0 ? 1 : in->weight;
    body.zone = in->zone;
    body.replaces = node == NULL ? 0 : node->incarnation;
    body.role = in->role;
    body.kinds = in->kinds;
    body.n_kinds = in->n_kinds;
    body.died = in->died;
    body.suspects = in->suspects;
    body.n_suspects = in->n_suspects;
    body.alone = fence_role_is_short(c, "", 1);
    fault = strcmp(in->name, peer->name) != 0 ? "the name is not the one that the link belongs to"
                                              : state_registration_fault(&body);
    if (fault != NULL) {
        refuse(c, peer->id, fault, 0);
        return;
    }
    if (fence_settling(c)) {
        refuse_until(c, peer->id, "every node before the restore", lease_elders_over_us(c));
        return;
    }
    if (!c->state->begun || !lease_ready(c) ||
        coordinator_proposal(c, PROPOSAL_REGISTER, in->nonce) != NULL ||
        database_went_back(c, peer, in)) {
        return; // it asks again
    }
    if (past_found(c)) {
        refuse(c,
               peer->id,
               "the coordinators' database went back (docs/recovery.md#went-back)",
               REGISTER_RETRY_MS);
        return;
    }
    if (node != NULL && (node->nonce == in->nonce || (in->lock_held && same_folder(c, node, in)))) {
        past_denied(c, node); // its process is this one, or is dead
    }
    if (node != NULL && node->nonce == in->nonce && !node->barred && !mutant(M_NONCETWICE)) {
        if (is_elder(c, node)) {
            fence_propose(c, node, false);
            refuse(c, peer->id, "its incarnation is of before the restore", REGISTER_RETRY_MS_MIN);
        } else {
            welcome(c, peer, node);
        }
        return;
    }
    if (past_unsure(c)) {
        refuse(c, peer->id, "waiting for every node to be heard of", REGISTER_RETRY_MS_MIN);
        return;
    }
    roles_fault(c->state, &body, misfit);
    if (misfit[0] != '\0') {
        refuse(c, peer->id, misfit, fence_rivals(c, &body) ? REGISTER_RETRY_MS : 0);
        return;
    }
    if (node != NULL && !old_is_dead(c, peer, node, in)) {
        return;
    }
    command.body_case = RH__COMMAND__BODY_REGISTER_;
    command.register_ = &body;
    p = coordinator_propose(c, PROPOSAL_REGISTER, &command);
    if (p != NULL) {
        p->peer = peer->id;
        p->nonce = in->nonce;
    }
}

void register_applied(struct coordinator *c, const struct proposal *p,
                      const struct state_result *result)
{
    struct leader_peer *peer = peers_find(c, p->peer);

    if (result->accepted) {
        for (size_t i = 0; i < c->state->node_count; i++) {
            const struct state_node *node = &c->state->node[i];

            if (node->incarnation == result->stamp) {
                log_info("txn",
                         "registered",
                         "node=%s incarnation=%s address=%s",
                         node->name,
                         STAMP(node->incarnation),
                         node->address);
                if (peer != NULL) {
                    welcome(c, peer, node);
                }
                return;
            }
        }
    }
    if (peer != NULL) {
        refuse(c,
               peer->id,
               result->accepted ? "the process was replaced" : result->why,
               REGISTER_RETRY_MS);
    }
}

/* ---- Renew ---- */

void register_bar(struct coordinator *c, uint64_t peer, const struct state_node *node)
{
    const char *why =
        node != NULL && node->barred
            ? "fenced: the node was silent for too long, or said goodbye"
            : "this incarnation has ended: a newer one was registered, or the node was removed";
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Barred body = RH__BARRED__INIT;

    body.why = proto_text(why);
    out.body_case = RH__CONTROL__BODY_BARRED;
    out.barred = &body;
    peers_send(c, peer, &out);
}

/* A drained node stays, empty, unless it stops or was removed. */
static bool may_leave(const struct coordinator *c, const struct state_node *node,
                      const Rh__Renew *in)
{
    return node->leaving && (node->stopping || in->stopping) &&
           ring_owned_count(&c->state->view.ring, node->slot) == 0 &&
           !state_takes_part(c->state, node->slot);
}

static void ask_to_drain(struct coordinator *c, const struct state_node *node)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDesire body = RH__COMMAND_DESIRE__INIT;
    struct proposal *p;

    if (node->leaving || !state_others_stay(c->state, node->slot) ||
        coordinator_proposal(c, PROPOSAL_DESIRE, node->slot) != NULL) {
        return;
    }
    body.name = proto_text(node->name);
    body.leaving = DESIRE_STOP;
    command.body_case = RH__COMMAND__BODY_DESIRE;
    command.desire = &body;
    p = coordinator_propose(c, PROPOSAL_DESIRE, &command);
    if (p != NULL) {
        p->slot = node->slot;
    }
}

/* A barred incarnation that renews, of a leader that doesn't care (hole 29, planted). */
static const struct state_node *barred_node(const struct coordinator *c,
                                            const struct leader_peer *peer, uint64_t incarnation)
{
    const struct state_node *node =
        mutant(M_NOSTOP) ? state_node_named(c->state, peer->name) : NULL;

    return node != NULL && node->incarnation == incarnation ? node : NULL;
}

/* Only after a barrier of my own term that began after the RENEW came (holes 13, 25), never to a
 * barred incarnation (hole 29): I lead, and nobody has or can have reassigned what it owns. */
static void judge_clock(const struct coordinator *c, const struct state_node *node,
                        struct seen *seen)
{
    if (!drift_take(&seen->clock, c->now_us, seen->renew.clock_us)) {
        return;
    }
    if (seen->clock.parts != 0) {
        log_warn("txn",
                 "clock_runs_away",
                 "node=%s parts_of_1000=%" PRIi32 ", its own or this machine's",
                 node->name,
                 seen->clock.parts);
    } else {
        log_info("txn", "clock_back", "node=%s", node->name);
    }
}

uint32_t register_next_us(const struct coordinator *c, uint64_t number, uint32_t least_us)
{
    const uint64_t part_us = c->config.lease_us / RENEWALS;
    const uint64_t every_us = part_us < RENEW_US ? part_us : RENEW_US;
    const uint64_t groups = c->state->node_count / TOGETHER + 1;
    const uint64_t phase_us = number / TOGETHER % groups * every_us / groups;

    if (every_us == 0) {
        return 0;
    }
    const uint64_t left_us = every_us - (c->now_us + every_us - phase_us) % every_us;
    const uint64_t early_us = every_us / EARLY_PART;
    const uint64_t from_us = least_us > early_us ? least_us : early_us;
    const uint64_t missing_us = left_us < from_us ? from_us - left_us : 0;
    return (uint32_t)(left_us + (missing_us + every_us - 1) / every_us * every_us);
}

static void grant(struct coordinator *c, uint64_t peer, const struct state_node *node,
                  struct seen *seen)
{
    const Rh__Renew *in = &seen->renew;
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Grant body = RH__GRANT__INIT;
    uint64_t pending[STATE_PENDING_MAX];

    body.seq = in->seq;
    body.lease_us = lease_grant_us(c, seen);
    body.term = c->term;
    body.instead = lease_replaces(c, seen);
    if (body.lease_us > c->config.lease_us && in->seq > seen->extended_seq) {
        seen->extended_seq = in->seq;
    }
    body.clock_parts = seen->clock.parts;
    body.version = c->state->view.ring.version;
    body.pending = pending;
    body.renew_us = register_next_us(c, node->slot, 0);
    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        if (t->state == TXN_PENDING && state_txn_part(t, node->slot) != NULL) {
            pending[body.n_pending++] = t->number;
        }
    }
    body.leave = may_leave(c, node, in);
    body.last = in->stopping && !node->leaving && !state_others_stay(c->state, node->slot);
    out.target_incarnation = node->incarnation;
    out.body_case = RH__CONTROL__BODY_GRANT;
    out.grant = &body;
    peers_send(c, peer, &out);
}

/* A version that was never so: it would serve what is not its own (hole 58, rule I2). It may be of
 * what coordinators on old files have forgotten, and went beyond by now (decision 071). */
static bool has_other_map(const struct coordinator *c, const Rh__Renew *in)
{
    const struct ring *ring = &c->state->view.ring;
    const uint64_t digest[] = {in->digest0, in->digest1};
    const bool same = digest[0] == ring->digest[0] && digest[1] == ring->digest[1];

    return ((in->version == ring->version && !same) || history_lacks(c, in->version, digest)) &&
           !mutant(M_OTHERMAP);
}

/* It has no lease of me before it has my map, and is told to fetch it. Said when it begins. */
static void refuse_other_map(struct coordinator *c, const struct leader_peer *peer,
                             const struct state_node *node, struct seen *seen)
{
    if (!seen->other_map) {
        log_error("txn",
                  "maps_differ",
                  "node=%s version=%s: it gets no lease before it has this map",
                  node->name,
                  STAMP(c->state->view.ring.version));
    }
    seen->other_map = true;
    c->registration.other_maps++;
    inspect_tell_repair(c, peer, REPAIR_TASK_FETCH);
}

bool register_is_urgent(struct coordinator *c, const struct state_node *node, const Rh__Renew *in)
{
    const struct seen *seen = peers_seen(c, node);

    return seen == NULL || seen->granted_us == 0 || in->stopping ||
           c->now_us - seen->granted_us > c->config.lease_us / URGENT_PART;
}

void register_note(struct seen *seen, const Rh__Renew *in)
{
    seen->renew = *in;
    seen->renew.base = (ProtobufCMessage){0};
    seen->renew.n_states = 0;
    seen->renew.states = NULL;
    state_versions_note(&seen->states, in);
    seen->renew.n_parts = 0;
    seen->renew.parts = NULL;
    parts_note(&seen->parts, in);
    seen->renew.costs = NULL;
}

void register_on_renew(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const Rh__Renew *in = message->renew;
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    struct seen *seen;

    node = node == NULL ? barred_node(c, peer, message->source_incarnation) : node;
    if (node == NULL) {
        node = peer->role == ROLE_NODE ? state_node_named(c->state, peer->name) : NULL;
        register_bar(c,
                     peer->id,
                     node != NULL && node->incarnation == message->source_incarnation ? node
                                                                                      : NULL);
        return;
    }
    if (!lease_ready(c) || coordinator_proposal(c, PROPOSAL_FENCE, node->slot) != NULL) {
        return; // it asks again, or is barred: a lease from here on would only make others wait
    }
    seen = peers_heard(c, node);
    trend_told(&c->trend, &seen->renew, in);
    register_note(seen, in);
    if (seen->sure_seq == 0 && in->lease_term == c->term) {
        seen->sure_seq = in->seq;
    }
    judge_clock(c, node, seen);
    if (in->costs != NULL) {
        loads_told(c, node, in->costs);
    }
    lease_told(c, node, in);
    if (has_other_map(c, in)) {
        refuse_other_map(c, peer, node, seen);
        return;
    }
    seen->other_map = false;
    seen->granted_us = node->barred ? seen->granted_us : c->now_us; // before it leaves (§4.2)
    if (in->stopping) {
        ask_to_drain(c, node);
    }
    grant(c, peer->id, node, seen);
}

/* ---- Bye ---- */

void register_on_bye(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation)
{
    const struct state_node *node = peers_node(c, peer, incarnation);

    if (node != NULL && ring_owned_count(&c->state->view.ring, node->slot) == 0) {
        fence_propose(c, node, true);
    }
}

/* It said goodbye; or it died, and an operator had wished it removed. */
static bool is_to_go(const struct state_node *node)
{
    return node->barred && (node->clean || node->removed);
}

/* From the state alone, so that a new leader goes on with it. */
void register_tidy(struct coordinator *c)
{
    bool any = false;

    if (c->registration.tidied == c->applied.changes) {
        return;
    }
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *node = &c->state->node[i];
        Rh__Command command = RH__COMMAND__INIT;
        Rh__CommandDeregister body = RH__COMMAND_DEREGISTER__INIT;
        struct proposal *p;

        any = any || is_to_go(node);
        if (!is_to_go(node) || ring_owned_count(&c->state->view.ring, node->slot) > 0 ||
            coordinator_proposal(c, PROPOSAL_DEREGISTER, node->slot) != NULL) {
            continue;
        }
        body.slot = node->slot;
        body.incarnation = node->incarnation;
        command.body_case = RH__COMMAND__BODY_DEREGISTER;
        command.deregister = &body;
        p = coordinator_propose(c, PROPOSAL_DEREGISTER, &command);
        if (p != NULL) {
            p->slot = node->slot;
        }
    }
    c->registration.tidied = any ? c->registration.tidied : c->applied.changes;
}

/* ---- voters ---- */

static const struct state_voter *find_voter(const struct state *s, uint64_t id)
{
    for (size_t i = 0; i < s->voter_count; i++) {
        if (s->voter[i].id == id) {
            return &s->voter[i];
        }
    }
    return NULL;
}

bool coordinator_is_voter(const struct coordinator *c, uint64_t id)
{
    for (size_t i = 0; i < c->config.voter_count; i++) {
        if (c->config.voter[i].id == id) {
            return true;
        }
    }
    return c->config.voter_count == 0;
}

static void record_voter(struct coordinator *c, uint64_t id, uint64_t identity, const char *address)
{
    const struct state_voter *known = find_voter(c->state, id);
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandVoter body = RH__COMMAND_VOTER__INIT;
    uint64_t group[STATE_VOTERS_MAX];
    struct proposal *p;

    if (id == 0 || identity == 0 || !coordinator_is_voter(c, id) ||
        coordinator_proposal(c, PROPOSAL_VOTER, id) != NULL ||
        (known == NULL && c->state->voter_count == STATE_VOTERS_MAX &&
         c->config.voter_count == 0) ||
        (known != NULL && known->identity == identity && strcmp(known->address, address) == 0)) {
        return;
    }
    for (size_t i = 0; i < c->config.voter_count; i++) {
        group[i] = c->config.voter[i].id;
    }
    body.n_group = c->config.voter_count;
    body.group = group;
    body.id = id;
    body.identity = identity;
    body.address = proto_text(address);
    command.body_case = RH__COMMAND__BODY_VOTER;
    command.voter = &body;
    p = coordinator_propose(c, PROPOSAL_VOTER, &command);
    if (p != NULL) {
        p->slot = id;
    }
}

/* Its old link may not have ended yet. */
static bool has_newer_link(const struct coordinator *c, size_t at)
{
    for (size_t i = at + 1; i < c->peers.count; i++) {
        if (c->peers.item[i]->role == ROLE_COORDINATOR &&
            strcmp(c->peers.item[i]->name, c->peers.item[at]->name) == 0) {
            return true;
        }
    }
    return false;
}

void register_voters(struct coordinator *c)
{
    record_voter(c, c->config.id, c->config.identity, "");
    for (size_t i = 0, left = c->peers.fellow_count; left > 0 && i < c->peers.count; i++) {
        const struct leader_peer *peer = c->peers.item[i];

        if (peer->role != ROLE_COORDINATOR) {
            continue;
        }
        left--;
        if (!has_newer_link(c, i)) {
            record_voter(c, strtoull(peer->name, NULL, 10), peer->identity, peer->address);
        }
    }
}

/* ---- Poll ---- */

void register_on_poll(struct coordinator *c, struct leader_peer *peer, const Rh__Poll *in)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__PollAnswer body = RH__POLL_ANSWER__INIT;
    Rh__TxnState *rows = mem_new(in->n_txns, sizeof *rows);

    body.version = c->state->view.ring.version;
    body.txns = mem_new(in->n_txns, sizeof(Rh__TxnState *));
    body.n_txns = in->n_txns;
    for (size_t i = 0; i < in->n_txns; i++) {
        const struct state_txn *t = state_txn(c->state, in->txns[i]);

        rows[i] = (Rh__TxnState)RH__TXN_STATE__INIT;
        rows[i].txn = in->txns[i];
        rows[i].pending = t != NULL && t->state == TXN_PENDING;
        rows[i].aborted = t != NULL && t->state == TXN_ABORTED;
        body.txns[i] = &rows[i];
    }
    out.body_case = RH__CONTROL__BODY_POLL_ANSWER;
    out.poll_answer = &body;
    peers_send(c, peer->id, &out);
    mem_free(body.txns);
    mem_free(rows);
}
