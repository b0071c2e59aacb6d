/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a coordinator's figures for /metrics.
 */
#include "txn/admin/metrics.h"

#include "txn/admin/inside.h"

#include <string.h>

/* Numbers of one instant. */
struct fleet_counts {
    uint64_t leading;
    uint64_t leader;
    uint64_t term;
    uint64_t applied_index;
    uint64_t version;
    uint64_t number;
    uint64_t era;
    uint64_t format;
    uint64_t pending;
    uint64_t oldest_us;
    uint64_t plans;
    uint64_t committed;
    uint64_t aborted;
    uint64_t reassigned;
    uint64_t refused;
    uint64_t other_maps;
    uint64_t vnodes;
    uint64_t quarantined;
    uint64_t remembered;
    /* Of a leader. */
    uint64_t remembered_full;
    uint64_t remembered_stale;
    uint64_t planned;
    uint64_t gateways;
    uint64_t gateways_behind;
    uint64_t nodes_behind;
    uint64_t clocks_away;
    uint64_t version_lag;
    uint64_t lease_left_us;
    uint64_t load_permille;
    uint64_t load_vnode_permille;
    uint64_t lease_longest_us;
};

#define ROW(field, type, name, help)                                                               \
    {                                                                                              \
        {"ringhold_coordinator_" name, help, METRIC_##type}, offsetof(struct fleet_counts, field), \
            false                                                                                  \
    }
#define ROW_US(field, type, name, help)                                                            \
    {                                                                                              \
        {"ringhold_coordinator_" name, help, METRIC_##type}, offsetof(struct fleet_counts, field), \
            true                                                                                   \
    }

static const struct metrics_row of_all[] = {
    ROW(leading, GAUGE, "leading", "1: it leads."),
    ROW(leader, GAUGE, "leader", "Id of the coordinator that leads; 0: none is known."),
    ROW(term, GAUGE, "term", "Raft's term."),
    ROW(applied_index, GAUGE, "applied_index", "Index of the last log entry that was applied."),
    ROW(version, GAUGE, "ring_version", "Version of the ring."),
    ROW(number, GAUGE, "number", "Last transaction number or version that was drawn."),
    ROW(era, GAUGE, "era", "Era; each restore of a backup raises it."),
    ROW(format, GAUGE, "fleet_format", "Format of the replicated state that is in force."),
    ROW(vnodes, GAUGE, "vnodes", "Vnodes of the ring."),
    ROW(quarantined, GAUGE, "quarantined_actors", "Actors in quarantine."),
    ROW(remembered, GAUGE, "remembered_ids", "Ids that the fleet remembers."),
    ROW(pending, GAUGE, "transactions_pending", "Transactions without an outcome."),
    ROW_US(oldest_us, GAUGE, "oldest_transaction_seconds",
           "Age of the oldest pending transaction."),
    ROW(committed, COUNTER, "transactions_committed_total",
        "Transactions committed since its start."),
    ROW(aborted, COUNTER, "transactions_aborted_total", "Transactions aborted since its start."),
    ROW(reassigned, COUNTER, "cold_changes_total",
        "Take-overs of a dead node's vnodes since its start."),
    ROW(refused, COUNTER, "refused_messages_total",
        "Messages refused because the linked process may not send them; the log names it."),
    ROW(other_maps, COUNTER, "other_maps_total",
        "Renewals refused because the node has another ring at the same version."),
};

static const struct metrics_row of_leader[] = {
    ROW(remembered_full, COUNTER, "remembered_full_total",
        "Ids that were not remembered, as the fleet remembers so many already."),
    ROW(remembered_stale, COUNTER, "remembered_stale_total",
        "Ids that were not remembered, as the node that told them does not own them."),
    ROW(planned, GAUGE, "transactions_planned", "Planned transactions that have not begun."),
    ROW(plans, COUNTER, "plans_total", "Plans that contained at least one move."),
    ROW(gateways, GAUGE, "gateways", "Gateways linked to the coordinator."),
    ROW(gateways_behind, GAUGE, "gateways_behind",
        "Linked gateways with an older ring than the leader's."),
    ROW(nodes_behind, GAUGE, "nodes_behind", "Live nodes with an older ring than the leader's."),
    ROW(clocks_away, GAUGE, "clocks_away",
        "Nodes whose clock differs from the leader's by more than is promised."),
    ROW(version_lag, GAUGE, "ring_version_lag",
        "How far the oldest ring of a live node or a gateway is behind, in drawn numbers."),
    ROW(load_permille, GAUGE, "load_max_permille",
        "What the fullest node has of its share of the load, in thousandths; 0: it is not known."),
    ROW(load_vnode_permille, GAUGE, "load_vnode_max_permille",
        "What the vnode that costs most has of its node's share, in thousandths."),
    ROW_US(lease_left_us, GAUGE, "lease_left_least_seconds",
           "Shortest remaining lease of a live node; 0: there is no live node."),
    ROW_US(lease_longest_us, GAUGE, "lease_longest_seconds",
           "Longest lease that may have been granted: take-overs wait for it."),
};

/* Somebody has that version of the ring; true: an older one. 0 = he did not say. */
static bool count_version(struct fleet_counts *f, uint64_t version)
{
    const uint64_t lag = version < f->version && version != 0 ? f->version - version : 0;

    f->version_lag = lag > f->version_lag ? lag : f->version_lag;
    return version < f->version;
}

/* ---- nodes ---- */

static const char *const states[] = {"live", "leaving", "suspect", "fenced", "dead"};
enum { STATES = sizeof states / sizeof states[0] };

struct census {
    uint64_t count[STATES];
};

static void count_node(struct coordinator *c, const struct state_node *node, struct census *census,
                       struct fleet_counts *f)
{
    const char *state = fence_state(c, node);
    const struct seen *seen = peers_seen(c, node);
    const uint64_t left_us = fence_lease_left_us(c, node);

    f->clocks_away += seen != NULL && !node->barred && seen->clock.parts != 0;
    for (size_t i = 0; i < STATES; i++) {
        census->count[i] += strcmp(state, states[i]) == 0;
    }
    if (strcmp(state, "live") == 0) {
        f->nodes_behind += seen != NULL && count_version(f, seen->renew.version);
        f->lease_left_us =
            f->lease_left_us == 0 || left_us < f->lease_left_us ? left_us : f->lease_left_us;
    }
}

static void count_gateways(struct coordinator *c, struct fleet_counts *f)
{
    Rh__AdminReply *reply = admin_reply_new(c, 0);

    admin_gateways(c, reply);
    f->gateways = reply->n_gateways;
    for (size_t i = 0; i < reply->n_gateways; i++) {
        f->gateways_behind += count_version(f, reply->gateways[i]->version);
    }
    proto_free(&reply->base);
}

/* ---- zones ---- */

static uint64_t sum_of_zone(struct coordinator *c, const char *zone, bool of_cells)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        if (strcmp(n->zone, zone) == 0) {
            sum += of_cells ? ring_owned_cells(&c->state->view.ring, n->slot) : peers_live(c, n);
        }
    }
    return sum;
}

static bool is_first_of_zone(const struct state *s, size_t node)
{
    for (size_t i = 0; i < node; i++) {
        if (strcmp(s->node[i].zone, s->node[node].zone) == 0) {
            return false;
        }
    }
    return true;
}

/* Of each zone that a node names. */
static void put_zones(struct coordinator *c, struct metrics *m)
{
    static const struct metric of_zone[] = {
        {"ringhold_coordinator_zone_nodes", "Live nodes, by zone.", METRIC_GAUGE},
        {"ringhold_coordinator_zone_cells",
         "Cells of the ring, by their owners' zone.",
         METRIC_GAUGE}};

    for (size_t k = 0; k < sizeof of_zone / sizeof of_zone[0]; k++) {
        for (size_t i = 0; i < c->state->node_count; i++) {
            const char *zone = c->state->node[i].zone;

            if (zone[0] != '\0' && is_first_of_zone(c->state, i)) {
                metrics_put_labelled(m, &of_zone[k], "zone", zone, sum_of_zone(c, zone, k == 1));
            }
        }
    }
}

/* ---- all ---- */

static uint64_t oldest_us(const struct state *s, uint64_t wall_us)
{
    uint64_t age_us = 0;

    for (size_t i = 0; i < s->txn_count; i++) {
        const struct state_txn *t = &s->txn[i];

        if (t->state == TXN_PENDING && wall_us > t->created_us &&
            wall_us - t->created_us > age_us) {
            age_us = wall_us - t->created_us;
        }
    }
    return age_us;
}

static struct fleet_counts fleet_of(const struct coordinator *c, uint64_t wall_us)
{
    return (struct fleet_counts){
        .leading = c->leading,
        .term = c->term,
        .applied_index = c->applied.index,
        .version = c->state->view.ring.version,
        .number = c->state->number,
        .era = c->state->view.era,
        .format = c->state->format,
        .pending = state_pending_count(c->state),
        .oldest_us = oldest_us(c->state, wall_us),
        .plans = c->rebalance.plans_made,
        .committed = c->applied.committed,
        .aborted = c->applied.aborted,
        .reassigned = c->applied.reassigned,
        .refused = c->messages.refused,
        .other_maps = c->registration.other_maps,
        .vnodes = c->state->view.ring.vnode_count,
        .quarantined = c->state->view.quarantine.count,
        .remembered = c->state->remembered_count,
        .remembered_full = c->recall.full,
        .remembered_stale = c->recall.stale,
    };
}

void coordinator_metrics(struct coordinator *c, uint64_t leader, uint64_t wall_us,
                         struct metrics *m)
{
    static const struct metric nodes = {
        "ringhold_coordinator_nodes", "Nodes of the directory, by state.", METRIC_GAUGE};
    static const struct metric newer = {
        "ringhold_coordinator_newer_numbers_total",
        "Numbers told that this coordinator's database never drew, by who told them.",
        METRIC_COUNTER};
    static const char *const tellers[] = {[PAST_NODE] = "node", [PAST_GATEWAY] = "gateway"};
    struct fleet_counts f = fleet_of(c, wall_us);
    struct census census = {{0}};

    f.leader = leader;
    metrics_put_rows(m, of_all, sizeof of_all / sizeof of_all[0], &f);
    for (size_t i = 0; i < PAST_TELLERS; i++) {
        metrics_put_labelled(m, &newer, "role", tellers[i], c->past.word[i].told);
    }
    if (!c->leading) {
        return;
    }
    f.planned = rebalance_planned(c);
    const struct loads_state load = loads_state(c);
    f.load_permille = load.known ? load.permille : 0;
    f.load_vnode_permille = load.known ? load.vnode_permille : 0;
    f.lease_longest_us = lease_longest_us(c);
    count_gateways(c, &f);
    for (size_t i = 0; i < c->state->node_count; i++) {
        count_node(c, &c->state->node[i], &census, &f);
    }
    for (size_t i = 0; i < STATES; i++) {
        metrics_put_labelled(m, &nodes, "state", states[i], census.count[i]);
    }
    put_zones(c, m);
    metrics_put_rows(m, of_leader, sizeof of_leader / sizeof of_leader[0], &f);
}
