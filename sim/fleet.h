/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole fleet in one process: coordinators, nodes, gateways, clients and an
 * operator, each a shipped core in a simulated shell, over sim/network.h and
 * sim/raft/model.h, watched by the checkers of sim/check/check.h.
 *
 *     0        start       heal            work ends         quiet
 *     |--------|-----------|---------------|-----------------|---> verdict
 *      processes  faults and  no faults,      every request answered,
 *      start      changes     all restarted   nothing pending, views equal
 */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "node/calls/calls.h"
#include "node/host/host.h"
#include "ring/plan.h"
#include "route/router.h"
#include "sim/check/check.h"
#include "sim/network.h"
#include "sim/raft/model.h"
#include "sim/recording.h"
#include "txn/leader/coordinator.h"
#include "wire/session.h"

enum {
    FLEET_COORDINATORS_MAX = 8, /* machines for them; RAFT_MODEL_MAX are used without sim_group */
    FLEET_NODES_MAX = 8,
    FLEET_GATEWAYS_MAX = 3,
    FLEET_CLIENTS_MAX = 8,
    FLEET_KIND = 7,         /* hosted by every node */
    FLEET_KIND_FOREIGN = 8, /* hosted by none */
    FLEET_KIND_DURABLE = 9, /* hosted by every node; its state is in the store */
    FLEET_KIND_MATCH = 11,  /* of a second role, see sim/roles.c; like the next two */
    FLEET_KIND_BOSS = 12,
    FLEET_KIND_MAIL = 13,
    FLEET_KIND_SESSION =
        14, /* with sessions, see sim/players/players.h: a newer client takes the place … */
    FLEET_KIND_REJECTING = 15, /* … or is refused … */
    FLEET_KIND_SEVERAL = 16,   /* … or several are bound */
    FLEET_KIND_ROOM = 17,      /* of the second role, placed together */
    FLEET_KIND_SEAT = 18,
    FLEET_KIND_ARENA = 19,   /* of the second role, placed by its hosts */
    FLEET_KIND_ACCOUNT = 20, /* durable, see sim/bank/bank.h */
    FLEET_DAEMONS_MAX = 6,
    FLEET_SUSPECTS_MAX = 64,
    PAST_SPANS_MAX = 32,    /* a history ends after two minutes */
    FLEET_LOOK_US = 500000, /* between two looks whether the fleet is quiet */
};

/* Time that all wall clocks show at the beginning. */
#define FLEET_WALL_US UINT64_C(1700000000000000)

/* Profile of a seed: which kinds of faults it has. */
enum profile {
    PROFILE_DRAWN,        /* one of those below */
    PROFILE_MIXED,        /* any of all faults that clocks within their bound allow */
    PROFILE_CALM,         /* no faults, only planned changes: every answer must be OK */
    PROFILE_LEASE,        /* short leases; nodes stop, crash and are cut off */
    PROFILE_CHANGES,      /* many transactions; what was said comes late, again and in any order */
    PROFILE_COPIES,       /* requests get stuck on their way and are sent again; owners change */
    PROFILE_RESTORE,      /* the coordinators are restored from a backup */
    PROFILE_ROLES,        /* as LEASE, with a second role, a singleton and a set of daemons */
    PROFILE_CLOCKS,       /* clocks beyond their bound: only the store is safe, and judged */
    PROFILE_SESSIONS,     /* as MIXED, with players; they are in some of the others, too */
    PROFILE_COORDINATORS, /* as MIXED, on shipped replicas whose voters change, sim/raft/group.h */
    PROFILE_PAUSES,       /* stops beyond everything that is kept for a time, of one and of all */
    PROFILE_OPERATOR,     /* as MIXED, and an operator resolves, mends, removes and weighs */
    PROFILE_DURABLE,      /* as MIXED, with accounts */
    PROFILES
};
/* The profile of a seed that draws its profile, and how many of a thousand seeds have it. */
enum profile profile_of_seed(uint64_t seed);
uint64_t profile_share(enum profile p);
const char *profile_name(enum profile p);
bool profile_named(const char *name, enum profile *p);

/* Faults of a seed and how often they come; 0 = never. Means are of times between. */
struct fleet_faults {
    uint64_t node_crash_us;
    uint64_t coordinator_crash_us;
    uint64_t gateway_crash_us;
    uint64_t coordinator_down_us; /* at most, after a crash */
    uint64_t leader_fall_us;
    uint64_t restore_us;
    uint64_t old_copy_us; /* older copies of all their files are put back, and no new era */
    uint64_t voters_us;   /* the operator wants other coordinators */
    uint64_t machine_pm;  /* so many of a thousand of their crashes are the end of the machine */
    uint64_t reset_us;
    uint64_t aim_us; /* a link breaks where a rare frame is, or that is lost, late or twice */
    uint64_t cut_us;
    uint64_t island_us;      /* a node and the coordinators do not hear each other; all others do */
    uint64_t stuck_us;       /* what one gateway sends to one node waits for seconds */
    uint64_t change_us;      /* joins, drains, leaves, weights */
    uint64_t hand_us;        /* the operator decides and repairs something */
    uint64_t node_torn_pm;   /* of a thousand steps with effects: crash between two of them */
    uint64_t leader_torn_pm; /* likewise: the leader falls or dies between two effects */
    uint64_t pause_us;       /* a process is stopped */
    uint64_t lull_us;        /* clients ask nothing for nearly as long as records are kept */
    uint64_t stop_us;        /* one is stopped for longer than something is kept */
    uint64_t deaf_us;        /* so long all probes to other nodes are lost, then so long none */
    uint64_t twin_us;        /* a node is started twice, or one of the two ends; the last is it */
    uint64_t stop_all_us;    /* likewise all of them at once */
    uint64_t pause_torn_pm;  /* of ten thousand steps with effects: stopped between two of them */
    uint64_t pause_max_us;
    uint64_t suspend_pm; /* so many of a thousand pauses are of the whole machine */
    uint64_t freeze_pm;  /* and of a guest whose clock stops with it */
    uint64_t drift_ppm;  /* clocks run at most so much fast or slow … */
    bool drift_extreme;  /* … and all of them exactly so much */
    uint64_t persist_max_us;
    uint64_t run_max_us;
    uint64_t poison_pm;        /* so many of ten thousand runs kill their process */
    uint64_t disk_fail_pm;     /* so many of a thousand writes of a node's number fail */
    uint64_t reboot_pm;        /* so many of a thousand restarts are of the machine … */
    uint64_t wipe_pm;          /* … or find an empty disk */
    uint64_t owned_pm;         /* so many of a thousand sessions outlive their gateway */
    uint64_t flood_pm;         /* so many of a thousand bursts are more than one mailbox takes */
    uint64_t turn_pm;          /* after so many of a thousand bursts they turn to another one */
    bool tight;                /* little room for requests that wait */
    uint64_t call_pm;          /* so many of a thousand runs ask another actor, … */
    bool node_calls;           /* … by the node's own calls; else through a gateway, … */
    bool asks_once;            /* … once a run; else up to three times */
    uint64_t run_long_pm;      /* so many of a thousand runs take up to … */
    uint64_t run_long_us;      /* … 3 s, or so long that no transaction waits for it */
    uint64_t activate_fail_pm; /* so many of a thousand activations fail */
    uint64_t export_fail_pm;   /* and exports */
    uint32_t idle_ms;          /* actors that nobody uses retire after it */
    uint64_t actors_max;       /* so many live on one node */
    bool remembered;           /* those in memory live unasked */
    uint64_t poke_pm;          /* after so many of a thousand runs one wants a turn … */
    uint64_t passivate_pm;     /* … or to retire … */
    uint64_t broken_pm;        /* … or is broken */
    uint64_t retire_fail_pm;   /* so many of a thousand times it cannot save when it retires */
    uint64_t busy_pm;          /* so many of a thousand exports are not now … */
    uint64_t cold_pm;          /* … or hand nothing over */
    uint64_t late_pm;          /* so many of a thousand activations take up to 3 s */
    uint64_t worker_us;        /* tasks begin up to so much later */
    uint64_t store_max_us;     /* to the store, and back */
    uint64_t store_slow_pm;    /* so many of a thousand times up to 3 s */
    uint64_t refuse_pm;        /* so many of a thousand requests find the link's queue full */
    struct net_faults net;
    struct raft_model_faults raft;
};

struct sim_coordinator {
    struct process process;
    struct coordinator *core;          /* NULL while down */
    struct coordinator_config config;  /* that it was started with */
    uint64_t lease_us;                 /* its setting, in fleets where these differ */
    uint64_t tick_max_us;              /* from one look at the time to the next */
    uint64_t step_us;                  /* its clock at its last step, … */
    uint64_t lead_us;                  /* … when it was elected last, … */
    uint64_t granted[LEDGER_NODES];    /* … the incarnation that it granted a lease last, … */
    uint64_t granted_us[LEDGER_NODES]; /* … and when */
    uint64_t longest_us;               /* of the state, at its last step */
    uint64_t lease_tag;                /* its LEASE that is under way; 0 = none is */
    uint64_t extended_us;              /* by its clock: leases that it extends end then, … */
    uint64_t promised_us; /* … and with one nodes need no coordinator until then, … */
    bool through;         /* … but the operator told it that he is through */
    struct coordinator_effects out;
    bool inside;     /* its replica has called it */
    bool dies;       /* when that returns */
    size_t out_at;   /* effects done */
    size_t falls_at; /* it loses the lead before this one */
    size_t stops_at; /* it is stopped before this one */
};

enum { FLEET_OWED_MAX = 64 }; /* as many renewals as a node remembers */

/* A lease that left a leader: sim/maintenance.c. */
struct sim_owed {
    uint64_t seq;
    uint64_t term;
    uint64_t lease_us;
    uint64_t until_us; /* no coordinator is needed till then; 0 = it is no extended one */
    uint64_t own_us;   /* the leader's own leases are so long */
    bool through;      /* the operator told it that he needs extended leases no more */
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
    bool still;         /* frozen by its host alone, for its image went ahead */
    uint64_t frozen_us; /* since */
    bool deposed;       /* its node lost the vnode while it could not stop it: nothing may leave */
    bool running;
    bool turns; /* something between requests */
    uint64_t token;
    bool warm;                /* it was handed over */
    size_t loaded;            /* so many of the list were saved by a former life */
    bool refused;             /* another one's token is greater */
    bool broken;              /* what it did since it saved is lost */
    uint64_t uid;             /* running: the request */
    bool handled;             /* running: the handler is through, the store is not */
    struct rh_actor *durable; /* owned; of one whose state is in the store; NULL = it has ended */
    uint64_t asks;            /* running: the request of its own that it waits for, 0 = none */
    uint64_t ticket;
    uint8_t chain_count; /* running: of the request */
    uint64_t chain[RECORD_CHAIN_MAX];
    struct sim_session *session; /* of its own calls, NULL = it made none; the ledger's */
};

/* What the operator wants of a node. */
struct sim_wish {
    unsigned node;
    bool drains; /* else it is to drain no more */
    uint64_t number;
    uint64_t seen; /* the newest number that he knew of */
};

struct sim_node {
    struct process process;
    struct host *core;             /* NULL while down */
    struct calls *calls;           /* NULL while down, or when actors ask through gateways */
    bool settles;                  /* the effects of calls are being done */
    struct sim_runtime *runtime;   /* NULL while down, or there are no players */
    struct sim_durables *durables; /* NULL while down */
    struct sim_worker *teller;     /* likewise, or there are no accounts */
    uint64_t store_us;             /* when the newest of its tasks comes to the store … */
    uint64_t stored_us;            /* … and when the newest result comes from there */
    struct host_effects out;
    struct host_disk disk;           /* what its folder holds */
    struct host_disk told;           /* what it was told to be durable */
    struct memory_disk *memory_disk; /* owned: with its number file, shipped; NULL = not yet made */
    struct number *number;           /* owned; NULL while down */
    uint8_t boots;                   /* of its machine */
    uint8_t wipes;                   /* of its disk */
    uint64_t disk_us;                /* when the newest write hits it */
    uint64_t persisted_us;           /* when that is told */
    uint64_t stepped_us;             /* the core took its last step, whose effects are done since */
    size_t out_at;
    size_t dies_at; /* it crashes before this effect */
    size_t stops_at;
    bool has_more;             /* what it does is half of one thing: it does not stop in between */
    uint64_t incarnation;      /* 0 = not registered */
    uint64_t nonce;            /* of this life */
    struct host_kind kinds[6]; /* its own, where states have versions, or nodes other kinds */
    uint32_t version;          /* of the states of this life; 0 = they have none */
    bool lacks;                /* this life has not all kinds of its role */
    struct sim_node *first;    /* a twin's: whom it says to be */
    uint64_t twinned_us;       /* its last twin became another's then; 0 = it had none */
    bool copied;               /* a twin's: it stands beside that one */
    uint32_t weight;
    bool wanted;              /* it shall run: restart it after a crash */
    bool leaving;             /* asked to leave or drained by the operator */
    uint64_t wish;            /* of the operator, not yet taken; 0 = none */
    struct sim_wish wished;   /* that one, or the one before */
    uint64_t done;            /* the wish that the log had last of it … */
    uint64_t done_stamp;      /* … and when */
    uint64_t row_incarnation; /* as the log had it last … */
    bool row_drains;          /* … and whether it drains, and does not stop */
    bool drains;              /* that wish: it is to drain; else no more */
    bool stopping;            /* told to by its supervisor: it does not take that back */
    bool exits;               /* with exit_code, after the effects at hand */
    int exit_code;
    struct net_end *coordinator[FLEET_COORDINATORS_MAX];
    struct instance *instance; /* owned */
    struct sim_task *task;     /* owned: given to workers, not begun */
    struct view_seen seen;
    uint64_t last_incarnation; /* of all its lives */
    uint64_t reassigned;       /* the newest incarnation whose vnodes were given to others */
    uint64_t parted;           /* the newest incarnation whose BYE the log has */
    uint64_t granted;          /* this incarnation of it was granted leases, … */
    uint64_t lease_end_us;     /* … none of which ends later than that, by its clock */
    uint64_t named_nonce;      /* so it was registered last … */
    uint64_t named;            /* … as this incarnation */
    uint64_t dead_incarnation; /* it crashed as this one, … */
    uint64_t dead_until_us;    /* … whose lease lasts until then */
    uint8_t dead_boots;
    uint8_t dead_wipes;
    struct sim_owed owed[FLEET_OWED_MAX]; /* by the renewal's number */
    uint64_t promised;       /* as this incarnation it needs no coordinator, 0 = as none, … */
    uint64_t promised_us;    /* … until then, … */
    uint64_t promised_jumps; /* … unless its lease was dropped more often than so */
    uint64_t down_us;        /* it crashed as an owner then; 0 = not, or its vnodes are served */
    int64_t wall_us;         /* its wall clock is so much ahead */
    uint64_t watch_us;       /* when its watchdog looks; 0 = it sleeps */
    uint64_t lost_us[FLEET_NODES_MAX];   /* when it lost a link to another one last */
    uint64_t joined[FLEET_GATEWAYS_MAX]; /* the link that a gateway's stream has; 0 = none, … */
    uint64_t parted_us[FLEET_GATEWAYS_MAX]; /* … since then */
    uint64_t trouble_us; /* when what it had was lost, or may have been, last … */
    size_t trouble_view; /* … and how many versions there were then */
    uint64_t died;       /* its folder tells: this incarnation died, … */
    struct quarantined suspect[FLEET_SUSPECTS_MAX]; /* … and ran these */
    size_t suspect_count;
};

struct sim_gateway {
    struct process process;
    struct router *core; /* NULL while down */
    struct router_effects out;
    size_t out_at;
    size_t stops_at;
    uint64_t id;
    struct net_end *coordinator[FLEET_COORDINATORS_MAX];
    struct net_end **node; /* owned; by slot */
    struct view_seen seen;
    uint64_t lost_us[FLEET_NODES_MAX]; /* when it lost a link to one last */
    uint64_t put_off_us;               /* so long it spared a silent node, or lacked a link … */
    uint64_t put_off_from_us;          /* … and since then; 0 = it does not */
    struct clients *clients;           /* NULL while down, or there are no players */
    struct router_effects wanted;      /* of what these do */
    uint64_t looked_us;                /* after them */
};

struct sim_client {
    unsigned number;
    struct sim_gateway *gateway;
    uint64_t life; /* of the gateway when the session began */
    struct sim_session *session;
};

struct sim_group;
struct store_task;

/* Things that are kept for a limited time; totals tell how many stops lasted longer than each. */
enum pause_keep {
    PAUSE_LEASE,
    PAUSE_CONN,    /* what a link may hold back, T_conn */
    PAUSE_LINGER,  /* forwards for what was given away */
    PAUSE_SESSION, /* what guards against copies of requests */
    PAUSE_KEEPS
};

/* Who speaks streams: the others are of an older version. */
enum fleet_streams {
    STREAMS_DRAWN, /* all in three quarters of the seeds, or all but one */
    STREAMS_NEVER,
    STREAMS_ALWAYS, /* all, or all but one */
};

struct fleet_options {
    uint64_t seconds; /* of faults */
    unsigned nodes;   /* at most; 0 = drawn */
    enum profile profile;
    bool node_calls; /* actors ask by their node's calls in every seed */
    bool poisoned;   /* each has a poisonous entity, if its profile may */
    bool played;     /* each has players, whatever its profile */
    int held_back;   /* each has aims, which hold frames of this kind back; 0 = as they are drawn */
    enum fleet_streams streams;
    bool maintained; /* each has maintenances, if leases are in force */
    bool past;       /* each gets old copies of all files, if its profile may */
    bool serves;     /* nodes go on without a lease: only K1 is judged of leases */
};

/* What accounts did: sim/bank/. */
struct bank_counts {
    uint64_t commits;
    uint64_t again;   /* requests that came again, … */
    uint64_t saved;   /* … and were answered from what was saved */
    uint64_t sends;   /* taken */
    uint64_t refused; /* sends, by their receiver */
    uint64_t alarms;  /* that went off */
    uint64_t unknown;
};

struct fleet {
    struct world world;
    struct network network;
    struct raft_model raft;
    struct sim_group *group; /* owned; NULL: the model is their Raft; else of `raft` what the
                                checkers look at is filled in by it */
    struct ledger ledger;
    struct fleet_faults faults;
    struct fleet_options options;
    enum profile profile;
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
    struct host_kind kinds[5];
    uint64_t instance_count;
    uint64_t task_count;
    uint64_t wishes;
    uint64_t tells;       /* how often he said one of them */
    bool faults_of_hand;  /* he errs in what he wishes, too */
    uint64_t hands_asked; /* by sim/hand.c … */
    uint64_t hands_done;  /* … and so many were told to be done */
    uint32_t vnodes_per_weight;
    uint32_t moves_per_txn;
    uint32_t actors_per_txn; /* 0 = the default, which no fleet here reaches */
    uint32_t prepare_ms;
    uint64_t lease_us;           /* D, or the longest; 0 = none are granted */
    bool leases_differ;          /* each start of a coordinator has a length of its own … */
    struct prng leases;          /* … drawn of this */
    struct prng serving;         /* sim/serve.c */
    uint32_t maintenance_ms;     /* nodes are had to serve alone for so long; 0 = never */
    uint64_t maintenances_asked; /* sim/maintenance.c … */
    uint64_t maintenance_tag;    /* … the last question for one … */
    uint64_t maintenance_us;     /* … when that one is over */
    uint64_t maintenances;       /* times all coordinators were stopped for one … */
    uint64_t extended;           /* … and so many nodes were promised to need none */
    uint64_t lease_agreed_us;    /* the log had another longest lease then, the last time */
    struct prng aims;            /* of sim/aim.c */
    uint64_t other_leases;       /* starts with another than the one before */
    uint32_t poll_ms;
    uint32_t activations;        /* at a time at a node; 0 = any number */
    uint32_t deadline_ms;        /* of a request */
    uint32_t retry_ms;           /* of a gateway */
    struct sim_players *players; /* owned; NULL = there are none */
    struct sim_bank *bank;       /* owned; NULL = there are no accounts */
    struct entity *poison;       /* each run of it kills its node; NULL = nodes tell of no deaths */
    bool roles;                  /* there is a second one … */
    bool zoned;                  /* … that is kept in one of two zones */
    bool apart;                  /* … of whose nodes not each life hosts all of its kinds … */
    bool apart_rest;             /* … until all do */
    bool remembers;              /* the fleet remembers the ids of actors in memory, … */
    bool unsure;                 /* … and a node told it late */
    struct {
        struct prng prng;
        struct list parcels;    /* struct parcel */
        uint64_t crash_pm;      /* so many of a thousand tasks meet a crash of it … */
        uint64_t down_us;       /* … behind which it can do nothing until then */
    } store;                    /* sim/store.c */
    enum balance_by balance_by; /* sim/balance.c: what nodes share … */
    struct prng loads;          /* … of what they say, which this draws, … */
    uint64_t *rest_us;          /* … owned; by cell: what moved for that rests until then … */
    uint64_t rest_lead_us;      /* … if its leader was elected then */
    bool *arrives;              /* … owned; by slot: vnodes that rest may move to it */
    uint64_t balanced;          /* moves for that */
    bool versioned;        /* states have versions, and each life of a node one of its own … */
    bool versions_rest;    /* … until all have the newest */
    bool versions_untold;  /* … and their coordinators don't know of it */
    uint32_t daemons;      /* so many are wanted */
    uint64_t daemons_wish; /* which the coordinators were not told yet; 0 = they were */
    size_t bound;          /* segments that the ring ever had */
    size_t home_view[RING_SEGMENTS_MAX + 1]; /* index in ledger.view when all vnodes of a segment
                                                had owners first; 0 = not yet; [0]: the default */
    bool working;                            /* clients send */
    bool healed;
    uint64_t heal_us; /* or when it is to come */
    uint64_t lull_us; /* clients ask nothing until then */
    uint64_t lulls;
    uint64_t asleep_us;      /* all stand still until then, and nothing else goes wrong */
    struct history *history; /* where it is written down, NULL = nowhere; the caller's */
    uint64_t lease_told_us[FLEET_NODES_MAX];
    uint64_t heard_us[FLEET_COORDINATORS_MAX][FLEET_NODES_MAX]; /* when each heard of each last */
    uint64_t deaf_us[FLEET_COORDINATORS_MAX]; /* when it heard of the first, behind a silence */
    uint64_t crashes;                         /* of nodes */
    uint64_t power_losses;                    /* of machines of nodes and coordinators */
    uint64_t coordinator_crashes;
    uint64_t gateway_crashes;
    uint64_t floods;
    uint64_t resumed; /* sessions, through another gateway */
    uint64_t restores;
    uint64_t taken_over; /* the version of the first take-over; 0 = there was none */
    bool past;           /* the coordinators run on old copies of their files … */
    bool past_seen;      /* … and the operator was told */
    uint64_t past_era; /* the last in which they did: its numbers may have two meanings; 0 = none */
    struct {
        uint64_t low;
        uint64_t high;
    } redrawn[PAST_SPANS_MAX]; /* numbers above `low` to `high` were drawn a second time */
    size_t redrawn_count;
    uint64_t old_copies; /* times … */
    uint64_t noticed;    /* … and so many he was told of before all was healed */
    uint64_t pauses;
    uint64_t pauses_beyond[PAUSE_KEEPS];
    uint64_t stops_of_all;
    uint64_t twins; /* times a node was started twice */
    uint64_t cuts;
    uint64_t changes;
};

/* Actors of that kind stand in no ledger: players', and accounts. */
bool fleet_is_apart(uint16_t kind);

/* The coordinator that runs as this process. */
struct sim_coordinator *fleet_coordinator(struct process *p);
struct sim_node *fleet_node(struct process *p);
struct sim_gateway *fleet_gateway(struct process *p);
/* How many processes there are, the operator aside. */
unsigned fleet_size(const struct fleet *f);
/* All of them by one number: coordinators, nodes, gateways. */
struct process *fleet_process(struct fleet *f, unsigned index);
unsigned fleet_process_index(const struct fleet *f, const struct process *p);

void sim_fleet_init(struct fleet *f, uint64_t seed, const struct fleet_options *options);
void sim_fleet_fini(struct fleet *f);
/* The whole history, up to the verdict in f->world.checker. */
void sim_fleet_run(struct fleet *f);

/* Draw the seed's faults (sim/nemesis.c) and start them; stop them and repair everything. */
void nemesis_draw(struct fleet *f);
void nemesis_start(struct fleet *f);
void nemesis_heal(struct fleet *f);
/* A wish without a number may have come late, once more, and who left while its drain was taken
 * back may have been the last that stays: then nobody who leaves ever has a place to go. The
 * operator looks, and takes another drain back. */
void nemesis_let_one_stay(struct fleet *f);
/* Set the clock of a process that is made. */
void nemesis_clock(struct fleet *f, struct process *p);
/* Stop it for a drawn time. */
void nemesis_pause(struct fleet *f, struct process *p);
/* Cut a coordinator off from the others for so long; all else hears it. */
void nemesis_part(struct fleet *f, const struct process *coordinator, uint64_t time_us);
/* All coordinators get a backup with so many entries, in the next era. */
void nemesis_restore(struct fleet *f, size_t keep);
/* Before which of `count` effects a process is stopped; SIZE_MAX = none. */
size_t nemesis_stops_at(struct fleet *f, size_t count);

/* ---- processes that stand still: sim/pause.c ---- */

enum pause_kind {
    PAUSE_STOP,    /* SIGSTOP: the machine goes on */
    PAUSE_SUSPEND, /* the whole machine; CLOCK_BOOTTIME goes on, CLOCK_MONOTONIC does not */
    PAUSE_FREEZE,  /* by a hypervisor: no clock goes on */
};

/* Stop `p` for so long, or longer if it stands still already; what comes for it waits. */
void pause_begin(struct fleet *f, struct process *p, uint64_t time_us, enum pause_kind kind);
/* The process died: nothing waits for it any longer. */
void pause_end(struct fleet *f, struct process *p);
/* All that stand still go on now. */
void pause_end_all(struct fleet *f);

/* ---- frames that are met by a fault: sim/aim.c ---- */

void aim_draw(struct fleet *f, uint64_t seed);
void aim_start(struct fleet *f);
int aim_kind(int type, struct bytes bytes);

/* ---- a node that was started twice: sim/twin.c ---- */

void twin_draw(struct fleet *f, uint64_t seed);
void twin_start(struct fleet *f);
/* The second one ends, and nobody starts it again. */
void twin_end(struct fleet *f);
bool twin_is(const struct fleet *f, const struct sim_node *n);
/* The other one of the two, NULL = there is none. */
const struct sim_node *twin_of(const struct fleet *f, const struct sim_node *n);
/* A REGISTER was committed. */
void twin_registered(struct fleet *f, const Rh__CommandRegister *command);

/* ---- processes: sim/coordinators.c, sim/nodes.c, sim/gateways.c ---- */

void coordinators_init(struct fleet *f);
void coordinator_start(struct fleet *f, struct sim_coordinator *c);
void coordinator_crash(struct fleet *f, struct sim_coordinator *c);
void coordinators_crash_all(struct fleet *f);
/* Planned: all are back after `down_us`, or at the heal; one is. */
void coordinators_stop_all(struct fleet *f, uint64_t down_us);
void coordinators_stop(struct fleet *f, unsigned number, uint64_t down_us);
void coordinators_start_all(struct fleet *f);
/* The leader falls now, and goes on believing for so long; UINT64_MAX: for a drawn time. */
void coordinators_fall(struct fleet *f, uint64_t stale_us);
/* One event of its replica's. */
void coordinator_step_from(struct fleet *f, struct sim_coordinator *c,
                           struct coordinator_event event);
/* A message of another one's replica. */
void coordinator_raft(struct fleet *f, struct sim_coordinator *c, struct bytes bytes);
/* After a pause: the effects that are left. */
void coordinator_go_on(struct fleet *f, struct sim_coordinator *c);
void coordinator_up(struct fleet *f, struct sim_coordinator *c, struct net_end *end);
void coordinator_down(struct fleet *f, struct sim_coordinator *c, const struct net_end *end);
void coordinator_message(struct fleet *f, struct sim_coordinator *c, const struct net_end *end,
                         const Rh__Control *message);

/* The shortest lease that is granted. */
uint64_t coordinators_lease_min_us(const struct fleet *f);

void node_init(struct fleet *f, struct sim_node *n, unsigned number);
void node_start(struct fleet *f, struct sim_node *n);
void node_crash(struct fleet *f, struct sim_node *n);

/* ---- the number file of a node, shipped: sim/folder.c ---- */

/* The node starts: read `disk` from its file. */
void sim_folder_open(struct fleet *f, struct sim_node *n);
/* The present content of `disk` is durable. */
void sim_folder_store(struct sim_node *n);
/* The node died. A write whose end it was not told is done, or not (`begun`). `power`: the power
 * failed, perhaps in the middle of the write. */
void sim_folder_crash(struct fleet *f, struct sim_node *n, bool begun, bool power);
/* Free the node's folder. */
void sim_folder_free(struct sim_node *n);
/* From now on every start brings the newest build, and each node has one. */
void nodes_end_versions(struct fleet *f);
void node_leave(struct fleet *f, struct sim_node *n);
void node_go_on(struct fleet *f, struct sim_node *n);
void node_up(struct fleet *f, struct sim_node *n, struct net_end *end);
void node_down(struct fleet *f, struct sim_node *n, const struct net_end *end);
void node_control(struct fleet *f, struct sim_node *n, const struct net_end *end,
                  const Rh__Control *message);
void node_record(struct fleet *f, struct sim_node *n, const struct net_end *end, int type,
                 struct bytes bytes);
/* Nothing may leave it now: its lease is over, or as good as over. */
bool node_is_gated(const struct fleet *f, const struct sim_node *n);
/* The lease's hard end is over, when nothing of an actor may run. */
bool node_is_past_the_end(const struct fleet *f, const struct sim_node *n);
/* Feed one event; its time is set here. */
void node_step(struct fleet *f, struct sim_node *n, struct host_event event);
/* The two halves of node_step(), around what the host does: read the clocks; do the effects.
 * `torn`: the node may be ended or stopped between two of them. */
void node_begin_step(struct fleet *f, struct sim_node *n, struct host_event *event);
void node_end_step(struct fleet *f, struct sim_node *n, bool torn);
/* Like node_step(), for a completion or an unasked verb of an actor. */
void node_complete(struct fleet *f, const struct instance *i, struct completion c);

void gateway_init(struct fleet *f, struct sim_gateway *g, unsigned number);
void gateway_start(struct fleet *f, struct sim_gateway *g);
void gateway_crash(struct fleet *f, struct sim_gateway *g);
void gateway_go_on(struct fleet *f, struct sim_gateway *g);
void gateway_up(struct fleet *f, struct sim_gateway *g, struct net_end *end);
void gateway_down(struct fleet *f, struct sim_gateway *g, const struct net_end *end);
void gateway_control(struct fleet *f, struct sim_gateway *g, const struct net_end *end,
                     const Rh__Control *message);
void gateway_record(struct fleet *f, struct sim_gateway *g, const struct net_end *end, int type,
                    struct bytes bytes);
/* The entities whose calls led to that request, as a node that asks for its actors tells them. */
size_t gateway_chain(struct fleet *f, const struct sim_gateway *g, const struct sim_ask *a,
                     uint64_t chain[RECORD_CHAIN_MAX]);
/* A frame of a stream came by that end; its link has room for more of them. */
void gateway_frame(struct fleet *f, struct sim_gateway *g, struct net_end *from,
                   const struct frame *frame);
void gateway_room(struct fleet *f, struct sim_gateway *g, struct net_end *to);
void gateway_step(struct fleet *f, struct sim_gateway *g, struct router_event event);
/* So long it has made requests wait because a node answered nothing or a link was broken, in all.
 */
uint64_t gateway_put_off_us(const struct fleet *f, const struct sim_gateway *g);
/* Do what its clients want. */
void gateway_do(struct fleet *f, struct sim_gateway *g, const struct router_effects *wanted);

/* ---- streams: sim/streams.c ---- */

/* Who speaks them, by the options. Drawn aside. */
void streams_draw(struct fleet *f, uint64_t seed);
/* What the node's logs have goes onto the links, as its lease lets it; behind its effects. */
void node_pour(struct fleet *f, struct sim_node *n);
/* A frame of a stream came by that end; its link has room for more of them. */
void node_frame(struct fleet *f, struct sim_node *n, const struct net_end *end,
                const struct frame *frame);
void node_room(struct fleet *f, struct sim_node *n, const struct net_end *end);
/* net_events.poured */
void streams_on_poured(void *context, struct net_end *end, const struct frame *frame);

/* ---- what actors ask, by the node's own calls: sim/calls.c ---- */

void node_calls_start(struct fleet *f, struct sim_node *n);
void node_calls_stop(struct sim_node *n);
/* After each step of the host. */
void node_calls_look(struct fleet *f, struct sim_node *n);
void node_calls_tick(struct fleet *f, struct sim_node *n);
/* A link with another node. */
void node_calls_link(struct fleet *f, struct sim_node *n, const struct net_end *end, bool up);
/* False: it is for the host. */
bool node_calls_answer(struct fleet *f, struct sim_node *n, uint64_t peer,
                       const struct answer_record *a);
/* Another node sent one. */
void node_calls_probe(struct fleet *f, struct sim_node *n, uint64_t peer, const Rh__Probe *message);
/* The host answers on CALLS_LINK. */
void node_calls_output(struct fleet *f, struct sim_node *n, struct bytes record);
/* Do what is to be done. */
void node_calls_settle(struct fleet *f, struct sim_node *n);
/* A runtime of the node asks, or is gone; `call` is borrowed, its session an incarnation's number.
 */
void node_calls_former(struct fleet *f, struct sim_node *n, const struct host_effect *e);
void node_calls_control(struct fleet *f, struct sim_node *n, uint64_t peer,
                        const Rh__Control *message);
void node_calls_ask(struct fleet *f, struct sim_node *n, const struct call *call);
void node_calls_close(struct fleet *f, struct sim_node *n, uint64_t session);
/* A running actor asks another one. Its number. node_calls_settle() is to follow. */
uint64_t node_call(struct fleet *f, struct instance *i, size_t entity);
/* The actor ends: close its session of calls. */
void node_call_close(struct fleet *f, struct instance *i);
/* A request is run: its body without the caller. `all`: what came with it. */
struct bytes node_called(struct fleet *f, const struct submission *s, struct bytes all);

/* ---- actors: sim/actors.c ---- */

void actors_activate(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                     struct bytes state);
void actors_run(struct fleet *f, const struct host_effect *e, struct bytes body);
void actors_export(struct fleet *f, const struct host_effect *e);
void actors_copy(struct fleet *f, const struct host_effect *e);
void actors_look_still(struct fleet *f, struct sim_node *n);
void actors_unfreeze(struct fleet *f, const struct host_effect *e);
void actors_discard(struct fleet *f, struct sim_node *n, const struct host_effect *e);
/* A request that an actor made was answered. */
void actors_answered(struct fleet *f, uint64_t uid);
/* The runtime of a durable one has loaded it, or has not; has answered its request. */
void actors_claimed(struct fleet *f, struct instance *i, bool ok);
void actors_wrote(struct fleet *f, struct instance *i, enum err error, enum answer_code code);
/* The node died: all its actors are gone. */
void actors_crash(struct fleet *f, struct sim_node *n);
/* NULL = gone. */
struct instance *actors_find(const struct sim_node *n, uint64_t id);
/* An event about an instance, later; it finds it by actors_instance(), if it still is there. */
void actors_later(struct fleet *f, const struct instance *i, uint64_t in_us, world_run run);
struct instance *actors_instance(struct fleet *f, const struct world_event *event);
/* End the instance and free it. */
void actors_end(struct fleet *f, struct instance *i);

/* ---- durable actors: sim/durable.c, sim/store.c ---- */

/* Draw whether the fleet's store crashes. */
void store_draw(struct fleet *f, uint64_t seed);
/* Free what is on its way to the store, and back. */
void store_fini(struct fleet *f);
/* A node's process begins, or dies. */
void sim_durable_open(struct fleet *f, struct sim_node *n);
void sim_durable_close(struct sim_node *n);
/* Have the instance loaded; actors_claimed() is told. */
void sim_durable_begin(struct instance *i);
/* Have what the request did saved, for its handler is through; actors_wrote() is told. */
void sim_durable_run(const struct instance *i, uint64_t uid);
void sim_durable_end(struct instance *i);
/* Take a task that the store has done. */
void sim_durable_stored(const struct sim_node *n, struct store_task *task);
/* Do what is due, if the lease lets its actors run. */
void sim_durable_tick(const struct sim_node *n);

/* ---- durable actors that are whole: sim/bank/ ---- */

/* In seeds of PROFILE_DURABLE. */
void bank_draw(struct fleet *f);
void bank_fini(struct fleet *f);
/* How accounts live. */
struct host_kind bank_kind(const struct fleet *f);
void bank_start(struct fleet *f);
/* All wall clocks are right again. */
void bank_heal(struct fleet *f);
/* Customers ask each account once more. */
void bank_probe(struct fleet *f);
/* The gateway died. */
void bank_gateway_gone(struct fleet *f, const struct sim_gateway *g);
/* False: it is for no customer. */
bool bank_reply(struct fleet *f, const struct sim_gateway *g, const struct router_effect *e,
                struct bytes bytes);
void bank_vouch(struct fleet *f, const struct sim_gateway *g, const struct router_effect *e);
/* NULL: nothing is to be answered, sent or to go off; else what is. */
const char *bank_waits(struct fleet *f);
/* The node's last incarnation ended: it crashed, was fenced, its vnodes have others, it is back. */
void check_bank_death(struct fleet *f, const struct sim_node *n);
/* A node's process begins, dies, ticks. */
void sim_teller_open(struct fleet *f, struct sim_node *n);
void sim_teller_close(struct sim_node *n);
void sim_teller_tick(struct sim_node *n);
/* Take a task that the store has done. */
void sim_teller_stored(struct sim_node *n, struct store_task *task);
/* A call of an account has ended. */
void sim_teller_answer(struct sim_node *n, const struct call_answer *answer);
/* Have the store read which alarms are due. */
void sim_teller_due(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                    struct bytes after);
/* Is it of an account? Then do it. */
bool sim_teller_takes(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                      struct bytes bytes);

/* ---- what is served at once: sim/serve.c ---- */

/* Is a seed one in which that is done? Drawn aside, so that all others stay as they are. */
bool serve_drawn(uint64_t seed);
/* A frame of a stream came by that link: the host takes it. */
void serve_frame(struct fleet *f, struct sim_node *n, uint64_t peer, const struct frame *frame);
/* False: it was not, and is the host's as any other. `made_us`: as of HOST_REQUEST. */
bool serve_request(struct fleet *f, struct sim_node *n, uint64_t peer, uint64_t made_us,
                   const struct request_record *r);

/* ---- what else actors do: sim/lives.c ---- */

/* The instance claims its saved state, and takes it if nothing was handed over. False: another
 * incarnation may save. */
bool lives_load(struct instance *i);
/* One that may run again did so in a life that was saved: it has no effect any more. */
bool lives_did(struct fleet *f, const struct instance *i, uint64_t uid);
/* True if the instance hands nothing over because it has saved all. */
bool lives_goes_cold(struct fleet *f, const struct instance *i);
/* The instance ran a request: draw what it wants next. */
void lives_after_run(struct fleet *f, const struct instance *i);
/* The instance may say that it is broken. True: it has gone, or its node has. */
bool lives_breaks(struct fleet *f, const struct instance *i);
void lives_list(struct fleet *f, const struct sim_node *n);
/* An actor that should live unasked and does not; NULL = none. */
const char *lives_waits(const struct fleet *f);
/* Begin what HOST_SUBMIT wants done, at once or when a worker comes to it. */
void lives_submit(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                  struct bytes bytes);
/* Session actors of the node that were asked to retire, and have not told whether they do. */
size_t lives_retiring(const struct sim_node *n);
/* Give back to the node what was not begun in time. */
void lives_recall(struct fleet *f, struct sim_node *n);
/* Forget what was given for this actor; NULL = for all. */
void lives_drop(struct sim_node *n, const struct actor *a);

/* ---- seeds whose nodes share what vnodes cost: sim/balance.c ---- */

/* Draw whether the fleet's nodes share what their vnodes cost, or take. */
void balance_draw(struct fleet *f);
void balance_configure(const struct fleet *f, struct coordinator_config *config);
/* From now on its nodes share the cells again. */
void balance_heal(struct fleet *f);
/* In such a fleet, a coordinator is to hear costs that are made up, with that renewal of the node.
 */
void balance_tell(struct fleet *f, const struct sim_node *n, Rh__Renew *renew);
/* Checker `rest`: a command came out of the log. */
void balance_committed(struct fleet *f, const Rh__Command *command,
                       const struct state_result *result);
void balance_free(struct fleet *f);

/* ---- seeds with a second role: sim/roles.c ---- */

/* Is a seed that draws its profile one of them? Drawn aside, so that all others stay as they are.
 */
bool roles_drawn(uint64_t seed);
/* 0 or 1. */
unsigned roles_of(const struct fleet *f, const struct sim_node *n);
/* Role and kinds of a life of a node, which is about to begin. */
void roles_config(const struct fleet *f, struct sim_node *n, struct host_config *config);
/* Which part of its weight this life of the node takes of the kind that is placed by its hosts. */
struct plan_part roles_part(const struct fleet *f, const struct sim_node *n);
/* From now on each life has all kinds of its role. */
void roles_end_lacks(struct fleet *f);
void roles_entities(struct fleet *f);
/* The zones in which its roles are kept. */
void roles_zones(const struct fleet *f, struct coordinator_config *config);

/* The operator resizes the set. */
void roles_start(struct fleet *f);
void roles_told(struct fleet *f, const Rh__AdminReply *reply);
/* A command was applied. */
void roles_committed(struct fleet *f, const struct state_result *result);
/* The fleet was restored: a role may be without nodes once more. */
void roles_restored(struct fleet *f);
/* True if the request was asked before the vnodes of its role had owners, the first of which comes
 * by a change of hands, and was sent elsewhere before: by the hash of the default role, while its
 * kind had no cells of its own, or by a gateway that its client left. */
bool roles_came_early(const struct fleet *f, const struct sim_ask *a);
/* May this request be answered that there is no such actor? It came early, or it is for one of
 * those that come and go. */
bool roles_may_miss(const struct fleet *f, const struct sim_ask *a);
/* NULL: each singleton and daemon lives once, where it should; else what is not so. */
const char *roles_wait(const struct fleet *f);

/* ---- seeds with remembered ids: sim/remember.c ---- */

/* Draw whether the fleet remembers the ids of actors in memory. */
void remember_draw(struct fleet *f);
/* The operator has an id forgotten. */
void remember_wish(struct fleet *f);
/* The instance is to run: the fleet remembers its id. */
void remember_check_run(struct fleet *f, const struct instance *i);
/* The first that is remembered and does not live, or NULL. */
const char *remember_waits(const struct fleet *f);

/* ---- seeds with a poisonous entity: sim/poison.c ---- */

/* Drawn aside, once the profile is known. */
void poison_draw(struct fleet *f);
/* How many of a thousand requests like this one are idempotent. */
uint64_t poison_idempotent_pm(const struct fleet *f, const struct sim_ask *a);
/* True if this run is the last of its process. */
bool poison_kills(const struct fleet *f, const struct instance *i);
/* Fill in what the node's folder tells of the process before. */
void poison_config(const struct fleet *f, const struct sim_node *n, struct host_config *config);
/* The newest format of the fleet that its coordinators read. */
uint32_t poison_format(const struct fleet *f);
/* The node's process dies now; stopped cleanly; was forgotten with its machine or its disk. */
void poison_died(struct fleet *f, struct sim_node *n);
void poison_stopped(struct sim_node *n);
void poison_forget(struct sim_node *n, bool wiped);
bool poison_is_in(const struct fleet *f, const struct entity *e);
/* A command was applied. */
void poison_committed(struct fleet *f, const Rh__Command *command,
                      const struct state_result *result);
/* A node has stepped. */
void poison_stepped(struct fleet *f, struct sim_node *n);

/* ---- seeds with players: sim/players/players.h ---- */

void sim_players_draw(struct fleet *f);
void sim_players_fini(struct fleet *f);
void sim_players_start(struct fleet *f);
void sim_players_heal(struct fleet *f);
/* NULL: each is bound and has all; else what is not so. */
const char *sim_players_wait(struct fleet *f);
void session_clients_open(struct fleet *f, struct sim_gateway *g);
void session_clients_close(struct fleet *f, struct sim_gateway *g);
void session_clients_tick(struct fleet *f, struct sim_gateway *g);
void session_clients_node_link(struct fleet *f, struct sim_gateway *g, uint16_t slot, bool up);
void session_clients_push(struct fleet *f, struct sim_gateway *g, const struct push_record *push);
/* False: it is not for a player. */
void session_clients_vouch(struct fleet *f, struct sim_gateway *g, const struct router_effect *e);
bool session_clients_reply(struct fleet *f, struct sim_gateway *g, const struct router_effect *e,
                           struct bytes bytes);
/* A node's process begins, dies, ticks; has a link to a gateway, or has it no more. */
void sim_runtime_open(struct fleet *f, struct sim_node *n);
void sim_runtime_close(struct sim_node *n);
void sim_runtime_tick(struct fleet *f, struct sim_node *n);
void sim_runtime_link(struct fleet *f, struct sim_node *n, const struct net_end *end, bool up);
/* Answers of those that were asked to retire, which are on their way to the host. */
size_t sim_runtime_retiring(const struct sim_node *n);
/* The node has a new incarnation: drop what its runtime said and its gate still keeps. */
void sim_runtime_renew(struct sim_node *n);
/* Is it of a session actor? Then do it. */
bool sim_runtime_takes(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                       struct bytes bytes);

/* ---- clients and the operator: sim/clients.c, sim/operator.c ---- */

void clients_start(struct fleet *f);
/* The handler of `parent` asks `entity`, through the node's own gateway. Its number; 0: not now. */
uint64_t clients_call(struct fleet *f, uint64_t parent, size_t entity);
/* The gateway of an owned session died, or its client turns away from it, which it does not hear
 * of: what it replies is lost. The client looks for another. */
void clients_orphaned(struct fleet *f, struct sim_session *s);
/* One request to each entity through each gateway. */
void clients_probe(struct fleet *f);

void operator_start(struct fleet *f);
/* The tag of a question with that wish (below 2^32), another one each time; and whose tag it is. */
uint64_t operator_tag(struct fleet *f, uint64_t wish);
uint64_t operator_wish(uint64_t tag);
void operator_drain(struct fleet *f, struct sim_node *n, bool cancel);
/* The coordinators know less than they did, or did when the node was not there: whether it is
 * drained is said again. */
void operator_looks(struct fleet *f, struct sim_node *n);
void operator_message(struct fleet *f, const Rh__Control *message);
/* He drains the last node of a role, and is told that he can't. */
bool operator_drains_last(struct fleet *f, const struct sim_node *n);
/* All nodes' rows, as they are before the next command. */
void operator_sees(struct fleet *f);
/* A drain outlives its process, a stop does not. Of a new name, what was done before is forgotten.
 */
void operator_registered(struct fleet *f, const Rh__CommandRegister *in);
/* A wish was done: none is done twice, nor after a later one, nor leaves a role without a node. */
void operator_committed(struct fleet *f, const Rh__CommandDesire *in,
                        const struct state_result *result);

/* ---- old copies of the coordinators' files without a new era: sim/past.c ---- */

void past_draw(struct fleet *f, uint64_t seed);
void past_begin(struct fleet *f);
/* A process tells what it knows. */
void past_told(struct fleet *f, const Rh__Control *message);
/* All is restored, if it is still to be; it was. */
void past_end(struct fleet *f);
void past_over(struct fleet *f);
/* May this number, or this version, have two meanings? */
bool past_doubts(const struct fleet *f, uint64_t number);
/* Who asked had a version that was drawn a second time: by it nobody sees that the owner was lost
 * since, and the request may run again. */
bool past_hides(const struct fleet *f, const struct sim_ask *a);

/* ---- all coordinators are stopped as planned: sim/maintenance.c ---- */

void maintenance_draw(struct fleet *f, uint64_t seed);
void maintenance_start(struct fleet *f);
void maintenance_told(struct fleet *f, const Rh__AdminReply *reply);
/* The coordinator leads no more, or anew. */
void maintenance_forget(struct sim_coordinator *c);
/* The coordinator proposes something; that came out of its log, or is over (`command` is NULL). */
void maintenance_wished(struct sim_coordinator *c, uint64_t tag, struct bytes bytes);
void maintenance_done(struct fleet *f, struct sim_coordinator *c, uint64_t tag,
                      const Rh__Command *command);
/* A lease leaves its leader; a node heard of it. */
void maintenance_granted(struct fleet *f, const struct sim_coordinator *c, struct sim_node *n,
                         const Rh__Grant *grant);
void maintenance_took(struct fleet *f, struct sim_node *n, const Rh__Grant *grant);
/* The longest lease that any leader of this fleet may grant. */
uint64_t maintenance_lease_us(const struct fleet *f);

/* ---- what else an operator decides and repairs: sim/hand.c ---- */

void hand_start(struct fleet *f);
/* Ask it of the leader, mostly, soon, and now and then twice. */
void hand_ask(struct fleet *f, Rh__Admin *admin);
void hand_told(struct fleet *f, const Rh__AdminReply *reply);
/* A repair ends its process, which must be no member. */
void hand_ended(struct fleet *f, const struct sim_node *n);

/* ---- where he wants what: sim/placement.c ---- */

void placement_start(struct fleet *f);
/* Pin, unpin or move anything. */
void placement_wish(struct fleet *f);
/* What the pins wish when all is mended, of as many cells at most as there are pins; how many. */
size_t placement_wishes(const struct fleet *f, struct plan_wish *wish);

#endif
