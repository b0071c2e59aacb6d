/* SPDX-License-Identifier: Apache-2.0
 *
 * The checkers: a ledger of what clients asked and actors did, and the rules it
 * must keep (specification §7.1).
 *
 *     checker      rule                                                            file
 *     overlap      K1: one live instance of an entity in the fleet                 actor.c
 *     together     actors of one tag live on one node                              actor.c
 *     hosts        no cell of a kind is given to a node that does not host it       roles.c
 *     fence        K6: nothing leaves an incarnation whose vnodes others have      fence.c
 *     gate         I8: nothing leaves a node in the end of its lease               fence.c
 *     soft         nothing begins in the last part of a lease                      lease.c
 *     lease        none is longer than it was granted, or than the state knows     lease.c
 *     fence        a FENCE or REASSIGN is wished for when the wait is over         lease.c
 *     needless     nobody is fenced, nor registered twice, without need            lease.c
 *     stamps       fence and cold of each vnode are what the commands make them    stamps.c
 *     incarnation  no two lives of an id have the same; the later has the greater  incarnation.c
 *     owner        K2: only the owner of the newest ring runs an entity            actor.c
 *     ttl          what a request waited at a node is gone when it is passed on    view.c
 *     era          nothing leaves a node that it said in an older era              view.c
 *     gone         a node forgets no stream that has a link, or had one just now   stream.c
 *     twice        K3: no request is executed twice, ever                          actor.c
 *     order        K4: requests of one (session, entity) run in order              actor.c
 *     state        a moved actor has all it did; only a crash may lose it all      actor.c
 *     store        each write the store takes knows all that stand before it, and
 *                  is of who claimed last                                          actor.c
 *     answer       K3: OK = ran once; REJECTED = never ran; one answer each        answer.c
 *     spurious     K11: UNKNOWN, TIMEOUT, REJECTED only for a cause                answer.c
 *     overdue      nothing is run long after its time, or its client gave it up    answer.c
 *     late         hole 63: no answer of an owner that the gateway knows is fenced answer.c
 *     hops         K10: a request is passed on at most once a version              view.c
 *     register     an incarnation is never reused                                  view.c
 *     agreement    K5: views go up, equal version = equal digest, one outcome      view.c
 *     hold         K7: a hold ends soon after its transaction is over              quiescence.c
 *     drain        K7: a transaction is over soon after its deadline               quiescence.c
 *     recovery     K7: who died is back, or its vnodes are others'                 quiescence.c
 *     chain        K7: what a running actor asks beside it passes the hold         answer.c
 *     stuck        singletons and daemons live once, unasked, where they should    roles.c
 *     stuck        who lives unasked does, when all is quiet                       lives.c
 *     remembered   whatever runs is remembered, where it is to be; stuck: and
 *                  lives again                                                     remember.c
 *     stuck        K8: after the heal everything ends and is served                quiescence.c
 *     maintenance  who renews has an extended lease, and needs no coordinator for
 *                  as long as was asked, or till the operator is through           maintenance.c
 *     operator     no repair ends a process that is a member                       hand.c
 *                  a wish is done once, and not behind a later one; some node of
 *                  each role stays; a drain outlives its process                   operator.c
 *     list         who lives when all is quiet is in the list of its node, once           list.c
 *     poison       no request meets the deaths of more than two nodes              poison.c
 *     quarantine   who met so many deaths is in it, nobody else is; none is run    poison.c
 *     session      an actor hears of its client what makes sense, two are not bound player.c
 *     session      a client's pushes come once, in order, of its own session       player.c
 *     session      what is missing is told, in calm seeds only for want of room    player.c
 *     session      a client's request runs once, in order, and is answered truly   player.c
 *     session      a kick, a refusal, the end of a session has a cause             player.c
 *     stuck        each client is bound, and has all, when all is quiet            player.c
 *     bank         a durable actor's store has a history in which each request, send and
 *                  alarm stands once, nothing is lost, and no alarm is early           bank.c
 *     bank         a customer hears what is in the store, UNKNOWN only for a cause     bank.c
 *     stuck        nothing is left to be answered, sent or to go off                   bank.c
 *     raft-state   replicas agree at every index                                model.c, group.c
 *     disk         after a crash a folder has what was confirmed               folder.c, group.c
 *     raft-term    no term has two leaders, in whatever generation                 group.c
 *     raft         libraft never gives up, no sound folder is refused              group.c
 *     stuck        who votes has everything, who ever did knows who votes now      group.c
 */
#ifndef SIM_CHECK_CHECK_H
#define SIM_CHECK_CHECK_H

#include "base/bytes.h"
#include "base/histogram.h"
#include "node/books/probe.h"
#include "route/router.h"
#include "txn/state/state.h"
#include "wire/control.pb-c.h"
#include "wire/record.h"

#include <ringhold.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fleet;
struct instance;
struct sim_node;
struct sim_coordinator;
struct sim_gateway;
struct process;
struct net_end;

enum { LEDGER_NODES = 8, LEDGER_ENTITIES = 60, LEDGER_HOT = 3, POISON_MAX = 8 };

/* Requests by uid, in the order they ran. */
struct ledger_list {
    uint64_t *uid; /* owned */
    size_t count;
    size_t cap;
};
void ledger_list_add(struct ledger_list *l, uint64_t uid);
bool ledger_list_equal(const struct ledger_list *a, const struct ledger_list *b);
void ledger_list_copy(struct ledger_list *to, const struct ledger_list *from);
void ledger_list_fini(struct ledger_list *l);

struct entity {
    char id[16];
    size_t id_size;
    size_t ballast;              /* bytes that its state carries besides the list */
    uint16_t kind;               /* of a second role's; 0 = by `durable` */
    uint8_t tag;                 /* those with one live on one node; 0 = none */
    bool durable;                /* its state is in the store, … */
    struct ledger_list row;      /* … this, … */
    struct ledger_list saved;    /* else: what the last one saved that retired, … */
    uint64_t saved_token;        /* … and the token that may */
    uint64_t token;              /* … with the fence of who claimed last … */
    uint64_t number;             /* … and the number of the last commit */
    bool born;                   /* there was one */
    struct instance *live;       /* the one that may act, NULL = none */
    struct ledger_list history;  /* what its next instance must know */
    const struct sim_node *last; /* where it lived last */
    uint64_t cold_us;            /* given to another without a hand-over then … */
    uint64_t cold_version;       /* … by this version */
    uint64_t forgotten;          /* its vnode's `cold` in a state that was put back; 0 = none */
    uint64_t run_from_us;        /* its handler runs since then, 0 = it doesn't … */
    uint64_t run_us;             /* … and ran so long before, in all */
    uint64_t held_from_us;       /* likewise: a transaction moves it */
    uint64_t held_us;
    bool given_up;             /* the operator had it forgotten, once */
    bool broke;                /* it was broken once, and lost what it had not saved */
    bool lost;                 /* a crash may have lost the history */
    uint64_t died[POISON_MAX]; /* incarnations that died while it ran, or others asked, … */
    unsigned deaths;           /* … as many; more are not kept */
    unsigned strikes;          /* that returning nodes told of */
};

/* One client session: sequence numbers are per entity. */
struct sim_session {
    uint64_t number;
    uint64_t id;                 /* the router's */
    struct sim_gateway *gateway; /* NULL: of a live actor at `node` */
    struct sim_node *node;
    bool closed;
    bool owned;               /* by its client, which numbers it and outlives the gateway … */
    uint32_t epoch;           /* … times it was taken up */
    struct ledger_list asked; /* owned: by number - 1 */
    uint64_t known;           /* owned: newest version of its gateways */
    size_t low;               /* of them, answered from the beginning */
    uint32_t sent[LEDGER_ENTITIES];
    uint32_t ran[LEDGER_ENTITIES];
    uint32_t decided[LEDGER_ENTITIES]; /* by a node, to be run: what comes behind it runs no more */
};

struct sim_ask {
    struct sim_session *session;
    size_t entity;
    uint32_t seq;
    bool answered;
    bool foreign;  /* of a kind that nobody hosts */
    bool in_doubt; /* nobody knows whether the store took it */
    bool probe;
    bool idempotent;
    uint64_t number; /* of an owned session; 0 = its gateway numbers it */
    uint64_t first;  /* its gateway's version when it was first sent; of an owned session */
    uint8_t flags;
    bool resumed;
    bool missed;     /* it was given up, in a reply over a connection that was gone */
    uint64_t parent; /* the request whose handler asked; 0 = a client did */
    enum reply_code code;
    unsigned deaths; /* processes that died while they ran it */
    unsigned runs;
    uint64_t sent_us;
    uint64_t busy_us;               /* entity_busy_us() at the send */
    uint64_t held_us;               /* entity_held_us() likewise … */
    uint64_t put_off_us;            /* … and asker_put_off_us() */
    uint64_t given_us;              /* when a gateway took it last */
    uint64_t ttl_us;                /* its time, by the clock of who sees it through */
    uint64_t nodes;                 /* bits of those that a copy was sent to, or came to … */
    uint64_t streamed;              /* those that it was sent to by a stream */
    uint64_t left_us[LEDGER_NODES]; /* … what it had left there, and 94 % of the time of that … */
    uint64_t late_us[LEDGER_NODES]; /* … and how long links held those copies, uncounted */
    uint64_t answered_us;
    uint64_t ran_us;       /* last */
    bool ran_void;         /* at an owner that was one no more */
    bool ran_late;         /* its last run came after its answer, and was excused */
    bool forgotten;        /* a node to which it was sent by a stream had forgotten that */
    size_t view;           /* index of the gateway's version in ledger.view at the send */
    struct call_name name; /* in its records, once a copy was sent */
    uint64_t circle;       /* of single calls, in which its run was seen last; 0 = in none … */
    uint64_t victim;       /* … and the run that lost its call for that */
};

struct ledger {
    struct entity entity[LEDGER_ENTITIES];
    struct sim_session **session; /* owned */
    size_t session_count;
    size_t session_cap;
    struct sim_ask *ask; /* owned; by uid - 1 */
    size_t ask_count;
    size_t ask_cap;
    size_t open; /* asked, neither answered nor abandoned */
    uint64_t answers[REPLY_DEADLOCK + 1];
    uint64_t circles;   /* of calls, each ended by a refusal */
    uint64_t circle_us; /* when the last one that was there was ended so; 0 = none was */
    bool in_circle[LEDGER_ENTITIES]; /* those that were in one then */
    struct {
        uint64_t version;
        uint64_t digest[2];
    } * view; /* owned; each version ever seen */
    size_t view_count;
    size_t view_cap;
    size_t bound_view;   /* and when a kind was bound to cells of its own last */
    size_t removed_view; /* how many there were when a node was removed last */
    struct {
        uint64_t txn;
        bool committed;
    } * outcome; /* owned */
    size_t outcome_count;
    size_t outcome_cap;
    uint64_t moves; /* vnodes that changed hands by a transaction */
    uint64_t commits;
    uint64_t aborts;
    uint64_t reassigned;       /* vnodes that changed hands after a fence */
    uint64_t fences;           /* of nodes */
    uint64_t nested;           /* requests that actors made */
    uint64_t store_refused;    /* commits that came too late */
    uint64_t store_doubts;     /* commits of which nobody hears whether they were done */
    struct histogram hold;     /* how long actors were frozen */
    struct histogram stall;    /* how long crashed nodes' vnodes had no server */
    struct ring_vnode *former; /* owned; of the last version, for check_stamps() … */
    size_t former_count;
    uint32_t former_cells;
    uint64_t former_version;
    uint64_t former_restores; /* … behind so many restores */
    struct {
        const void *actor;
        uint64_t fence;
        uint64_t start;
    } * life; /* owned; each that began, of actors on the runtime */
    size_t life_count;
    size_t life_cap;
};

void ledger_init(struct fleet *f);
void ledger_fini(struct ledger *l);
struct sim_session *ledger_session(struct fleet *f, struct sim_gateway *g, uint64_t id);
/* The process that serves the session, and the version that it routes by. */
const struct process *session_process(const struct sim_session *s);
uint64_t session_version(const struct sim_session *s);
/* Forget what the session still waits for. */
void ledger_close(struct fleet *f, struct sim_session *s);
/* A fresh request; returns its uid. */
uint64_t ledger_ask(struct fleet *f, struct sim_session *s, size_t entity, bool foreign);
uint16_t entity_kind(const struct entity *e);
/* How long its handlers ran so far, of this world's time; and: the one that runs ends. */
uint64_t entity_busy_us(const struct fleet *f, const struct entity *e);
void entity_rests(const struct fleet *f, struct entity *e);
/* How long it was kept from running by hand-overs. */
uint64_t entity_held_us(const struct fleet *f, const struct entity *e);
/* So long its gateway has spared silent nodes, or lacked a link, in all. */
uint64_t asker_put_off_us(const struct fleet *f, const struct sim_session *s);
struct sim_ask *ledger_find(struct fleet *f, uint64_t uid); /* NULL = no such request */
/* The entity with this id; NULL = there is none. */
struct entity *ledger_entity(struct fleet *f, struct bytes id);

/* ---- told by the shells, as it happens ---- */

void check_activate(struct fleet *f, struct instance *i, bool has_state);
void check_unfreeze(struct fleet *f, struct instance *i);
void check_freeze(struct fleet *f, struct instance *i);
void check_discard(struct fleet *f, struct instance *i);
/* A node decides to run it, which is noted for UNKNOWN to what is behind it, too. */
void check_in_time(struct fleet *f, const struct sim_node *n, uint64_t uid);
void check_run_begin(struct fleet *f, struct instance *i, uint64_t uid);
void check_run_end(struct fleet *f, struct instance *i, uint64_t uid);
/* The store takes `uid`, by the fence of who writes, who knew as many effects before it. */
struct stored {
    size_t place;
    uint64_t fence;
};
void check_stored(struct fleet *f, struct entity *e, uint64_t uid, struct stored by);
/* Is the node the owner in the newest ring? */
bool check_owns(const struct fleet *f, const struct sim_node *n, const struct entity *e);
void check_node_crash(struct fleet *f, struct sim_node *n);
/* Something leaves it for a gateway or another node. */
void check_output(struct fleet *f, const struct sim_node *n);
/* The coordinators know less than they did. */
/* An older state takes the place of this one, and took it. */
void check_restores(struct fleet *f);
void check_restored(struct fleet *f);
/* The node's state is lost, or may be: from now on, and for processes that route by an earlier
 * ring. */
void check_trouble(const struct fleet *f, struct sim_node *n);
/* The node crashed. */
void check_down(struct fleet *f, struct sim_node *n);
/* FENCE was committed. */
void check_fenced(struct fleet *f, const Rh__CommandFence *command);
/* P1: at this moment nothing can run there, nor leave, whatever the node believes. */
void check_over(struct fleet *f, const struct sim_node *n);
/* A command was applied: what became of the vnodes' stamps. */
void check_stamps(struct fleet *f, const Rh__Command *command, const struct state_result *result);
/* An actor on a node's runtime begins a life; `actor` is the same for all its lives. */
void check_incarnation(struct fleet *f, const void *actor, struct rh_incarnation new);
/* A node crashes. The leader cannot know: for it the lease of the node lasts on. */
void check_leaves_lease(struct fleet *f, struct sim_node *n);
/* The lease of a dead incarnation must be over. `what` says what happens to that one now. */
void check_waited(struct fleet *f, uint64_t incarnation, const char *what);
/* How long a node may run something yet, by its own clock. */
uint64_t check_may_run_us(const struct fleet *f, const struct sim_node *n);
/* A mutant fences early, so that the wait that it is about is seen: nobody is to say so. */
bool check_is_early(void);
/* REGISTER was committed. */
void check_deregistered(struct fleet *f, uint64_t incarnation);
void check_register(struct fleet *f, const Rh__CommandRegister *in, uint64_t incarnation);
/* A coordinator hears of a node; and proposes something. */
void check_heard_of(struct fleet *f, const struct sim_coordinator *c, const struct sim_node *n);
void check_fence_wish(struct fleet *f, const struct sim_coordinator *c, struct bytes bytes);
/* A coordinator wants a FENCE or REASSIGN: by its own clock the longest lease, and its margin, are
 * over since it granted that node one, and since it leads. */
void check_wait(struct fleet *f, const struct sim_coordinator *c, struct bytes bytes);
/* A coordinator sends something to that process: of a lease, from when it counts at most. */
void check_grant(struct fleet *f, struct sim_coordinator *c, const struct net_end *end,
                 struct bytes bytes);
/* A node took it: what it makes of a grant is no longer than what was granted. */
void check_lease(struct fleet *f, struct sim_node *n, const Rh__Control *message);
/* LEASE was committed: no node still has a longer one. */
void check_longest(struct fleet *f);
/* A node decides to begin a run or an activation now. */
void check_begins(struct fleet *f, const struct sim_node *n);
/* REASSIGN was committed. */
void check_reassigned(struct fleet *f, const Rh__CommandReassign *command, uint64_t version);
/* The node's vnodes have a server again: the node itself, or others. */
void check_served(struct fleet *f, struct sim_node *n);

/* A ticket: the request's uid, and above it the epoch of its session, so the connection. */
enum { CHECK_TICKET_BITS = 40 };
void check_reply(struct fleet *f, struct sim_gateway *g, uint64_t ticket, enum reply_code code,
                 struct bytes body);

/* Like check_reply(), for the answer to an actor that asked by its node's calls. */
void check_call_reply(struct fleet *f, struct sim_node *n, uint64_t uid, enum reply_code code,
                      struct bytes body);

/* Version and digest of the ring that a process had at the last look. */
struct view_seen {
    uint64_t version;
    uint64_t digest;
};

/* After each step of a process with a view. */
void check_view(struct fleet *f, const char *who, const struct view *view, struct view_seen *seen);
/* The index of a version in ledger.view; 0 if nobody has it. */
size_t check_view_index(const struct fleet *f, uint64_t version);
/* A request's number; 0: what session actors are asked stands in no ledger. */
uint64_t check_uid(const struct request_record *r);
/* A copy of a request leaves for a node. */
void check_copy(struct fleet *f, const struct sim_node *n, const struct request_record *r);
/* Is a copy of it on a link to a node, or such a copy's refusal for a circle on its way back? */
bool check_is_under_way(const struct fleet *f, const struct sim_ask *a);
/* A node refuses the call that the probe came along. */
void check_circle(struct fleet *f, const struct probe *p);
/* The caller hears DEADLOCK. */
void check_victim(struct fleet *f, const struct sim_ask *refused);
/* The caller hears something else, which is no answer of the actor's. */
void check_circle_ends(struct fleet *f, const struct sim_ask *given_up);
/* The copy reached the node, from that process. */
void check_hops(struct fleet *f, const struct sim_node *n, struct process *from,
                const struct request_record *r);
/* A frame of a stream leaves for a node; it reached the node, from that process; it leaves a node.
 */
void check_stream_asked(struct fleet *f, const struct sim_node *n, const struct frame *frame);
void check_stream_came(struct fleet *f, const struct sim_node *n, struct process *from,
                       const struct frame *frame);
void check_stream_said(struct fleet *f, struct sim_node *n, const struct net_end *end,
                       const struct frame *frame);
/* That frame reached the gateway. */
void check_stream_heard(struct fleet *f, const struct sim_gateway *g, const struct sim_node *n,
                        const struct frame *frame);
/* The node lost a link. */
void check_stream_parted(const struct fleet *f, struct sim_node *n, const struct net_end *end);
/* A request leaves for a node by a stream. */
void check_streamed(struct fleet *f, const struct sim_node *n, const struct request_record *r);
/* A request came by a stream: what it waited for room on its link is not counted. */
void check_kept(struct fleet *f, const struct sim_node *n, const struct request_record *r);
/* A copy stays in its own node: what was composed before it stood still is done when it goes on. */
void check_stood(struct fleet *f, const struct sim_node *n, const struct request_record *r);
/* A frame leaves it for another process. */
void check_frame(struct fleet *f, const struct sim_node *n, int type, struct bytes frame);
/* A node was told its incarnation. */
void check_registered(struct fleet *f, struct sim_node *n, uint64_t incarnation);
/* A message of a coordinator arrives: an outcome in it must be the applied one. */
void check_outcome(struct fleet *f, const char *who, const Rh__Control *message);
void check_committed(struct fleet *f, const Rh__Command *command,
                     const struct state_result *result);

/* NULL = nothing is under way: no transaction, no hold, no open request, one ring everywhere. Else
 * what it waits for (static until the next call). */
const char *check_settled(struct fleet *f);
/* Like check_settled(), and also waits for the wanted ring: no node is leaving, nothing is left to
 * plan. */
const char *check_quiescence(struct fleet *f);
/* K7 after the heal, counted from the last election: a hold lasts no longer than a deadline and two
 * polls, … */
void check_holds(struct fleet *f);
/* … a transaction is decided soon after its deadline, whatever its participants do, … */
void check_pending(struct fleet *f);
/* … and the vnodes of who died have a server as soon as its lease is surely over. */
void check_recovery(struct fleet *f);
/* The last word: every list against every answer. */
void check_final(struct fleet *f);
/* All is quiet: whoever lives is in the pages of its node's list exactly once. */
void check_lists(struct fleet *f);

#endif
