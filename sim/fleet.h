/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole fleet in one process: coordinators, nodes, gateways, clients and an
 * operator, each a shipped core in a simulated shell, over sim/network.h and
 * sim/raft_model.h, watched by the checkers of sim/check.h.
 *
 *     0        start       heal            work ends         quiet
 *     |--------|-----------|---------------|-----------------|---> verdict
 *      processes  faults and  no faults,      every request answered,
 *      start      changes     all restarted   nothing pending, views equal
 */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "gateway/router.h"
#include "node/host.h"
#include "sim/check.h"
#include "sim/network.h"
#include "sim/raft_model.h"
#include "txn/coordinator.h"

enum {
    FLEET_COORDINATORS_MAX = RAFT_MODEL_MAX,
    FLEET_NODES_MAX = 8,
    FLEET_GATEWAYS_MAX = 3,
    FLEET_CLIENTS_MAX = 8,
    FLEET_KIND = 7,         /* hosted by every node */
    FLEET_KIND_FOREIGN = 8, /* hosted by none */
    FLEET_LOOK_US = 500000, /* between two looks whether the fleet is quiet */
};

/* What goes wrong in a seed and how often; 0 = never. Means are of times between. */
struct fleet_faults {
    uint64_t node_crash_us;
    uint64_t coordinator_crash_us;
    uint64_t gateway_crash_us;
    uint64_t leader_fall_us;
    uint64_t reset_us;
    uint64_t cut_us;
    uint64_t change_us;      /* joins, drains, leaves, weights */
    uint64_t node_torn_pm;   /* of a thousand steps with effects: crash between two of them */
    uint64_t leader_torn_pm; /* likewise: the leader falls or dies between two effects */
    uint64_t persist_max_us;
    uint64_t run_max_us;
    uint64_t run_long_pm;      /* so many of a thousand runs take up to 3 s */
    uint64_t activate_fail_pm; /* so many of a thousand activations fail */
    uint64_t export_fail_pm;   /* and exports */
    uint64_t refuse_pm;        /* so many of a thousand requests find the link's queue full */
    struct net_faults net;
    struct raft_model_faults raft;
};

struct sim_coordinator {
    struct process process;
    struct coordinator *core; /* NULL while down */
    struct coordinator_effects out;
    uint64_t clock_us; /* its boot time is so much ahead of virtual time */
};

/* One incarnation of one actor in one node process. */
struct instance {
    struct instance *next; /* of the node */
    uint64_t id;           /* never reused */
    struct actor *actor;
    struct entity *entity;
    struct sim_node *node;
    struct ledger_list list; /* what it did, in order */
    bool frozen;
    uint64_t frozen_us; /* since */
    bool running;
    uint64_t uid; /* running: the request */
    uint64_t ticket;
};

struct sim_node {
    struct process process;
    struct host *core; /* NULL while down */
    struct host_effects out;
    struct host_disk disk; /* what its folder holds */
    uint64_t disk_us;      /* when the newest write hits it */
    uint64_t persisted_us; /* when that is told */
    uint64_t clock_us;
    uint64_t incarnation; /* 0 = not registered */
    uint32_t weight;
    bool wanted;   /* it shall run: restart it after a crash */
    bool leaving;  /* asked to leave or drained by the operator */
    uint64_t wish; /* of the operator, not yet taken; 0 = none */
    bool stopping; /* told to by its supervisor: it does not take that back */
    bool exits;    /* with exit_code, after the effects at hand */
    int exit_code;
    struct net_end *coordinator[FLEET_COORDINATORS_MAX];
    struct instance *instance; /* owned */
    struct view_seen seen;
    uint64_t last_incarnation; /* of all its lives */
};

struct sim_gateway {
    struct process process;
    struct router *core; /* NULL while down */
    struct router_effects out;
    uint64_t clock_us;
    uint64_t id;
    struct net_end *coordinator[FLEET_COORDINATORS_MAX];
    struct net_end **node; /* owned; by slot */
    struct view_seen seen;
    uint64_t downs; /* links to nodes lost so far */
};

struct sim_client {
    unsigned number;
    struct sim_gateway *gateway;
    uint64_t life; /* of the gateway when the session began */
    struct session *session;
};

struct fleet_options {
    uint64_t seconds; /* of faults */
    unsigned nodes;   /* at most; 0 = drawn */
    bool calm;        /* no faults at all, only planned changes */
};

struct fleet {
    struct world world;
    struct network network;
    struct raft_model raft;
    struct ledger ledger;
    struct fleet_faults faults;
    struct fleet_options options;
    struct sim_coordinator coordinator[FLEET_COORDINATORS_MAX];
    unsigned coordinators;
    struct sim_node node[FLEET_NODES_MAX];
    unsigned nodes;
    struct sim_gateway gateway[FLEET_GATEWAYS_MAX];
    unsigned gateways;
    struct sim_client client[FLEET_CLIENTS_MAX];
    unsigned clients;
    uint64_t client_gap_us;
    struct process operator_process;
    struct net_end *operator_end[FLEET_COORDINATORS_MAX];
    uint64_t instance_count;
    uint64_t wishes;
    uint32_t vnodes_per_weight;
    uint32_t moves_per_txn;
    uint32_t prepare_ms;
    uint32_t poll_ms;
    uint32_t deadline_ms; /* of a request */
    bool working;         /* clients send */
    bool healed;
    uint64_t heal_us;
    uint64_t crashes;
    uint64_t changes;
};

void sim_fleet_init(struct fleet *f, uint64_t seed, const struct fleet_options *options);
void sim_fleet_fini(struct fleet *f);
/* The whole history, up to the verdict in f->world.checker. */
void sim_fleet_run(struct fleet *f);

/* Draw the seed's faults (sim/nemesis.c) and start them; stop them and repair everything. */
void nemesis_draw(struct fleet *f);
void nemesis_start(struct fleet *f);
void nemesis_heal(struct fleet *f);

/* ---- processes: sim/coordinators.c, sim/nodes.c, sim/gateways.c ---- */

void coordinators_init(struct fleet *f);
void coordinator_start(struct fleet *f, struct sim_coordinator *c);
void coordinator_crash(struct fleet *f, struct sim_coordinator *c);
void coordinator_up(struct fleet *f, struct sim_coordinator *c, const struct net_end *end);
void coordinator_down(struct fleet *f, struct sim_coordinator *c, const struct net_end *end);
void coordinator_message(struct fleet *f, struct sim_coordinator *c, const struct net_end *end,
                         const Rh__Control *message);

void node_init(struct fleet *f, struct sim_node *n, unsigned number);
void node_start(struct fleet *f, struct sim_node *n);
void node_crash(struct fleet *f, struct sim_node *n);
void node_leave(struct fleet *f, struct sim_node *n);
void node_up(struct fleet *f, struct sim_node *n, struct net_end *end);
void node_down(struct fleet *f, struct sim_node *n, const struct net_end *end);
void node_control(struct fleet *f, struct sim_node *n, const struct net_end *end,
                  const Rh__Control *message);
void node_record(struct fleet *f, struct sim_node *n, const struct net_end *end, int type,
                 struct bytes bytes);
/* Feed one event; its time is set here. */
void node_step(struct fleet *f, struct sim_node *n, struct host_event event);

void gateway_init(struct fleet *f, struct sim_gateway *g, unsigned number);
void gateway_start(struct fleet *f, struct sim_gateway *g);
void gateway_crash(struct fleet *f, struct sim_gateway *g);
void gateway_up(struct fleet *f, struct sim_gateway *g, struct net_end *end);
void gateway_down(struct fleet *f, struct sim_gateway *g, const struct net_end *end);
void gateway_control(struct fleet *f, struct sim_gateway *g, const struct net_end *end,
                     const Rh__Control *message);
void gateway_record(struct fleet *f, struct sim_gateway *g, const struct net_end *end, int type,
                    struct bytes bytes);
void gateway_step(struct fleet *f, struct sim_gateway *g, struct router_event event);

/* ---- actors: sim/actors.c ---- */

void actors_activate(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                     struct bytes state);
void actors_run(struct fleet *f, const struct host_effect *e, struct bytes body);
void actors_export(struct fleet *f, const struct host_effect *e);
void actors_unfreeze(struct fleet *f, const struct host_effect *e);
void actors_discard(struct fleet *f, struct sim_node *n, const struct host_effect *e);
/* The node died: all its actors are gone. */
void actors_crash(struct fleet *f, struct sim_node *n);

/* ---- clients and the operator: sim/clients.c, sim/operator.c ---- */

void clients_start(struct fleet *f);
/* One request to each entity through each gateway. */
void clients_probe(struct fleet *f);

void operator_start(struct fleet *f);
void operator_drain(struct fleet *f, struct sim_node *n, bool cancel);
void operator_message(struct fleet *f, const Rh__Control *message);

#endif
