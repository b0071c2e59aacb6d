/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the leader's machine share and nobody else includes.
 *
 *     coordinator.c  life, leadership, the step
 *     message.c      what comes over links, to whom it goes
 *     barrier.c      what waits for a barrier
 *     proposal.c     effects, commands for the log
 *     applied.c      what came out of the log
 *     peers.c        links, who is live, sending
 *     history.c      the last deltas; GetConfig
 *     register.c     Register, Renew, Bye, Poll
 *     lease.c        how long a lease is, when it surely ended
 *     planted.c      what only planted bugs do
 *     unanswered.c   whom dead nodes were asked for, as others tell
 *     fence.c        silent nodes: FENCE, REASSIGN; settling after a restore
 *     drive.c        transactions from BEGIN to the outcome
 *     votes.c        what participants say
 *     waits.c        what a transaction waits for, in words
 *     phases.c       when each of its steps came
 *     eligibility.c    who may take part now: back-off, slow and restarted nodes
 *     rebalance.c    which transactions to begin
 *     admin.c        operators' questions
 *     admin_rows.c   what they are told: a row for each node, voter, vnode, transaction
 *     admin_wish.c   what they want of nodes
 *     admin_roles.c  roles, singletons and sets of daemons
 *     admin_quarantine.c  actors that killed their process
 *     operator_request.c   what an operator has a gateway send to one actor
 *     admin_preview.c  what would move if a node came or went
 *     upgrade.c      which versions run; the fleet's format
 *     resolve.c      an operator decides a pending transaction
 *     inspect.c      `ringhold check` and `ringhold fix`
 */
#ifndef TXN_LEADER_INSIDE_H
#define TXN_LEADER_INSIDE_H

#include "base/table.h"
#include "ring/plan.h"
#include "ring/unanswered.h"
#include "txn/leader/coordinator.h"
#include "txn/leader/drift.h"
#include "txn/leader/phases.h"
#include "wire/control.h"
#include "wire/hello.h"

enum {
    HISTORY_MAX = 256,  /* deltas kept in memory */
    CHAIN_MAX = 64,     /* deltas in one answer */
    WAITING_MAX = 4096, /* messages that wait for a barrier */
    QUIET_MS = 50,      /* no proposal so long after one failed */
    BACKOFF_MS_MAX = 60000,
    CLAIM_MS = 1000,   /* the leader says so again */
    SLEPT_PART = 4,    /* of suspect_ms without a step: I slept */
    RENEWED_MS = 2000, /* COMMIT only if each participant renewed since */
    WAITS_ACTOR_MAX = 40,
    ADMIN_TEXT_SIZE = 256, /* of what an operator is told in words */
    FENCE_PERIOD_MS = 10,
};

/* A link. */
struct leader_peer {
    struct table_link by_id;
    uint64_t id;
    uint16_t
        slot; /* of the node with its name, when that was looked for last; 0 = there was none */
    enum link_role role;
    char name[VIEW_NAME_MAX + 1];
    uint64_t incarnation;               /* of the hello, then of the last message */
    uint64_t identity;                  /* of a coordinator's folder, 0 = unknown */
    char address[VIEW_ADDRESS_MAX + 1]; /* a coordinator's, "" = unknown */
    char product[32];
    uint32_t protocol;      /* of the link */
    struct fleet_id fleet;  /* that it belongs to */
    struct versions format; /* of the fleet, that it reads */
    uint64_t heard_us;
    uint64_t
        operator_request; /* an operator's question: its request stands in the history; 0 = none */
    Rh__GetConfig told;   /* a gateway's figures; no pointers in it */
    struct unanswered unanswered; /* what nodes owe it, and … */
    uint64_t unanswered_us;       /* … when it told so last */
};

/* Volatile state that the leader keeps of a registered node; never replicated. */
struct seen {
    uint16_t slot;
    uint64_t incarnation;
    uint64_t heard_us;   /* last message of this incarnation; 0 = none since I lead */
    uint64_t granted_us; /* when my last lease for it left, or a little earlier; 0 = none did */
    bool other_map;      /* at the version that I have: it gets none */
    Rh__Renew renew;     /* the last; no pointers in it */
    struct drift clock;  /* the node's, against mine */
};

enum proposal_kind {
    PROPOSAL_INIT,
    PROPOSAL_REGISTER,
    PROPOSAL_BEGIN,
    PROPOSAL_DECIDE, /* COMMIT or ABORT of `txn` */
    PROPOSAL_DESIRE,
    PROPOSAL_FENCE,
    PROPOSAL_DEREGISTER,
    PROPOSAL_VOTER,
    PROPOSAL_LEASE,
    PROPOSAL_REASSIGN,
    PROPOSAL_SETTLE,
    PROPOSAL_DAEMONS,
    PROPOSAL_QUARANTINE,
    PROPOSAL_FORMAT,
    PROPOSAL_AHEAD,
    PROPOSAL_NOTE,             /* only for the history */
    PROPOSAL_OPERATOR_REQUEST, /* a NOTE; the request leaves when it is applied */
    PROPOSAL_REPAIR,           /* a NOTE; what it tells of is done when it is applied */
};

/* A command on its way through the log. */
struct proposal {
    enum proposal_kind kind;
    uint64_t tag;
    uint64_t peer;       /* whom to answer; 0 = nobody */
    bool asked;          /* by an operator, who waits at `peer` */
    uint64_t question;   /* tag of the Admin, if it was one */
    uint64_t nonce;      /* REGISTER */
    uint64_t txn;        /* DECIDE, REPAIR: which; BEGIN: which it supersedes */
    uint64_t slot;       /* DESIRE, FENCE, REASSIGN, DEREGISTER; VOTER: its id */
    uint64_t base;       /* BEGIN: version it was computed from */
    struct ring_op *ops; /* BEGIN: owned */
    size_t op_count;
    uint64_t plan_id; /* BEGIN: of the plan it came from, and where it stands there */
    size_t planned_at;
    uint16_t source;               /* BEGIN: 0 = none */
    uint16_t target;               /* BEGIN */
    uint64_t patient;              /* REPAIR: link to the process */
    uint32_t repair;               /* REPAIR: enum repair_task */
    Rh__Control *operator_request; /* OPERATOR_REQUEST: owned */
};

enum drive_state { DRIVE_PREP_IN, DRIVE_PREP_OUT, DRIVE_DECIDING };

/* A participant's vote, or what is known of why it has not come. */
struct ballot {
    bool voted;
    uint64_t asked_us;  /* first PREPARE; 0 = not asked yet */
    uint64_t report_us; /* when Draining came last; 0 = never. The rest is what it said: */
    uint32_t busy;      /* actors that have not stopped */
    uint32_t kind;      /* the one that is at it longest */
    uint32_t running_ms;
    uint16_t peer; /* busy = 0: a target that has not got all state; 0 = none */
    char actor[WAITS_ACTOR_MAX + 1];
};

/* A pending transaction on its way to an outcome. */
struct drive {
    uint64_t txn;
    uint8_t state; /* enum drive_state */
    uint64_t supersedes;
    uint64_t started_us;
    uint64_t resend_us;    /* when PREPARE is sent again */
    uint64_t decided_us;   /* when an outcome was proposed last */
    struct ballot *ballot; /* owned; by index of state_txn.parts */
    size_t part_count;
    uint64_t plan_id; /* of the plan it came from, and where it stands there; 0 = of none */
    size_t planned_at;
    bool yields;                   /* it ends because others need its place */
    char fault[STATE_WHY_MAX + 1]; /* not empty: it must be aborted, and why */
};

/* One transaction of the plan. */
enum planned_reason { REASON_REBALANCE, REASON_JOIN, REASON_DRAIN, REASON_SPLIT, REASON_MERGE };
struct planned {
    bool begun;
    enum planned_reason reason;
};

struct backoff {
    uint16_t source;
    uint16_t target;
    uint32_t failures;
    uint64_t until_us;
};

/* How a node behaved lately; never replicated. */
struct eligibility {
    uint16_t slot;
    uint64_t incarnation;
    uint64_t answer_us;   /* its last vote came so long after the PREPARE; 0 = none yet */
    uint64_t unbroken_us; /* it came back then, or was missed then last; 0 = it never left */
};

struct waiting_message {
    uint64_t peer;
    Rh__Control *message; /* owned */
};

/* Counters of applied outcomes since the process began, for metrics. */
struct outcomes {
    uint64_t committed;
    uint64_t aborted;
    uint64_t reassigned;
};

struct coordinator {
    struct coordinator_config config;
    const struct state *state;       /* borrowed */
    struct coordinator_effects *out; /* borrowed, during a step */
    uint64_t now_us;
    uint64_t wall_us;

    bool leading;
    uint64_t term;
    uint64_t ahead_term; /* in which I proposed AHEAD */
    uint64_t leader;     /* voter id, 0 = unknown */
    uint64_t lead_us;    /* when my leadership began */
    uint64_t step_us;    /* of the last step */
    uint64_t awake_us;   /* I slept until then: what is silent was perhaps not heard */
    uint64_t deaf_us;    /* no node at all was heard until then, or might be */
    uint64_t fence_us;   /* when I looked last for silent nodes */
    struct buffer read;  /* only when planted: a packed Config */
    uint64_t read_us;
    uint64_t newer;    /* number that a node knows and that was never drawn here; 0 = none */
    uint64_t quiet_us; /* no proposal before */
    uint64_t claim_us; /* when I told last that I lead */
    uint64_t applied_index;
    uint64_t last_tag;
    uint64_t steps;

    struct leader_peer **peer; /* owned, and what they point to; in order of their coming */
    size_t peer_count;
    struct table peers;                              /* the same by id */
    size_t fellow_count;                             /* of them, coordinators */
    struct leader_peer *of_slot[RING_NODES_MAX + 1]; /* newest link of each node's incarnation … */
    bool links_changed;                              /* … if this is false */
    struct seen *seen;                               /* owned */
    size_t seen_count;
    uint16_t seen_at[RING_NODES_MAX + 1]; /* by slot: index in seen + 1 */
    struct outcomes outcomes;
    uint64_t applied;          /* commands, and leaderships: the state may have changed since */
    uint64_t surveyed;         /* of these, when drive_advance() found all that pends driven */
    uint64_t tidied;           /* of these, when register_tidy() had nothing to do */
    uint64_t owned_version;    /* of the ring in which everything is somebody's; 0 = not known */
    struct proposal *proposal; /* owned */
    size_t proposal_count;
    struct drive *drive; /* owned */
    size_t drive_count;
    struct phases phases; /* also of earlier leaderships of mine */

    struct waiting_message *waiting; /* owned; the first `riding` wait for the barrier in flight */
    size_t waiting_count;
    size_t riding;
    uint64_t barrier; /* tag, 0 = none in flight */

    Rh__Delta *history[HISTORY_MAX]; /* owned; a ring buffer */
    size_t history_at;               /* where the next goes */
    size_t history_count;

    struct plan plan;
    struct planned *planned; /* owned; one for each of plan.txn */
    bool has_plan;
    uint64_t plan_id;        /* of the last plan made */
    uint64_t plans_made;     /* that had something to do */
    uint64_t refused;        /* messages that their sender may not send */
    uint64_t other_maps;     /* renewals of who has another ring at the same version */
    bool dirty;              /* the plan must be made anew */
    uint64_t dirty_us;       /* since when */
    uint64_t touched_us;     /* when something changed last */
    uint64_t lives;          /* fingerprint of who was live when last looked at */
    uint64_t lives_us;       /* when that was */
    struct backoff *backoff; /* owned */
    size_t backoff_count;
    struct eligibility *eligibility; /* owned */
    size_t eligibility_count;
    uint16_t eligibility_at[RING_NODES_MAX + 1]; /* by slot: index in eligibility + 1 */
    uint64_t typical_us;                         /* how long a vote takes: their running median */
};

/* ---- proposal.c ---- */

/* Queue a command; returns its record, to be filled in at once. NULL: not now (not leading, or one
 * failed just before). */
struct proposal *coordinator_propose(struct coordinator *c, enum proposal_kind kind,
                                     Rh__Command *command);
/* One in flight of that kind about that transaction, slot or nonce, or NULL. */
const struct proposal *coordinator_proposal(const struct coordinator *c, enum proposal_kind kind,
                                            uint64_t about);

/* For the history: who did what, with what. NULL: not now. */
struct proposal *coordinator_propose_note(struct coordinator *c, enum proposal_kind kind,
                                          const struct history_note *note);

/* Index of the proposal with this tag, or the number of proposals if there is none. */
size_t coordinator_proposal_at(const struct coordinator *c, uint64_t tag);
void coordinator_drop_proposal(struct coordinator *c, size_t at);

/* Queue an effect whose bytes are those behind `at`. */
void coordinator_put(struct coordinator *c, enum coordinator_effect_type type, uint64_t tag,
                     size_t at);
/* Queue a message whose header is filled in. */
void coordinator_put_send(struct coordinator *c, uint64_t peer, const Rh__Control *message);
/* The message that was queued last, to another one too. */
void coordinator_put_again(struct coordinator *c, uint64_t peer);

/* ---- message.c ---- */

void message_on(struct coordinator *c, const struct coordinator_event *event);
/* Answer that another one leads. */
void message_not_leading(struct coordinator *c, uint64_t peer);

/* ---- barrier.c ---- */

/* One at a time; what comes while it is under way waits for the next (specification §3.5). */
void barrier_start(struct coordinator *c);
void barrier_wait(struct coordinator *c, uint64_t peer, const Rh__Control *message);
void barrier_done(struct coordinator *c, enum err error);
/* Forget the first of those that wait. */
void barrier_drop(struct coordinator *c, size_t count);

/* ---- applied.c ---- */

void applied_on_entry(struct coordinator *c, const struct coordinator_event *event);
/* A proposal or barrier is over. An unknown outcome is not lost: what is still to be done is seen
 * in the state. */
void applied_on_done(struct coordinator *c, const struct coordinator_event *event);

/* ---- peers.c ---- */

struct leader_peer *peers_find(struct coordinator *c, uint64_t id);
void peers_up(struct coordinator *c, const struct coordinator_event *event);
void peers_down(struct coordinator *c, uint64_t id);
/* The fleet is founded: who belongs to another is heard no more. His link is about to go. */
void peers_part(struct coordinator *c);
/* The newest link of that incarnation of the node, or NULL. */
struct leader_peer *peers_of_node(struct coordinator *c, const struct state_node *node);
/* The node that this link's `incarnation` is current for, or NULL. */
const struct state_node *peers_node(const struct coordinator *c, struct leader_peer *peer,
                                    uint64_t incarnation);
/* The link is another incarnation's now. */
void peers_reincarnate(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation);
/* I lead, or do not any more: what I heard of nodes counts for nothing. */
void peers_forget(struct coordinator *c);
void peers_free(struct coordinator *c);
/* Something came from the node's present incarnation. */
struct seen *peers_heard(struct coordinator *c, const struct state_node *node);
const struct seen *peers_seen(const struct coordinator *c, const struct state_node *node);
/* A link is up and it was heard of within suspect_ms: it may take part in something new. */
bool peers_live(struct coordinator *c, const struct state_node *node);
/* Microseconds for which I could have heard of the node, and did not. */
uint64_t peers_silent_us(const struct coordinator *c, const struct state_node *node);
/* Neither linked nor heard of for suspect_ms, nor have I led for less: do not count on it. */
bool peers_gone(struct coordinator *c, const struct state_node *node);
/* Send `message` (its header is filled in here) to one link. */
void peers_send(struct coordinator *c, uint64_t peer, Rh__Control *message);
/* Like peers_send(), to every gateway and every registered node. */
void peers_broadcast(struct coordinator *c, Rh__Control *message);
/* Tell one link, or (NULL) all of them, who leads. */
void peers_tell_leader(struct coordinator *c, const struct leader_peer *only);

/* ---- history.c ---- */

void history_put(struct coordinator *c, const Rh__Delta *delta);
void history_fini(struct coordinator *c);
/* Answer a GetConfig. */
void history_answer(struct coordinator *c, uint64_t peer, const Rh__GetConfig *asked);

/* ---- past.c: after a barrier ---- */

/* The message tells that this database is an older copy: nothing is promised on it. */
bool past_shows(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* One did since I lead: no number is drawn, for it may have been before. */
bool past_found(const struct coordinator *c);

/* ---- register.c: after a barrier ---- */

void register_on_register(struct coordinator *c, struct leader_peer *peer, const Rh__Register *in);
void register_on_renew(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* Keep what a node tells of itself, for status. */
void register_note(struct seen *seen, const Rh__Renew *in);
void register_on_bye(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation);
void register_on_poll(struct coordinator *c, struct leader_peer *peer, const Rh__Poll *in);
void register_applied(struct coordinator *c, const struct proposal *p,
                      const struct state_result *result);
/* One that waits to join, or votes no more, may be linked as well. Nobody told me of the voters:
 * all are. */
bool coordinator_is_voter(const struct coordinator *c, uint64_t id);
/* Record the voters that are linked: for people, and to see that a folder was replaced. */
void register_voters(struct coordinator *c);
/* Tell a link that its incarnation is over; `node` is that which has its name, or NULL. */
void register_bar(struct coordinator *c, uint64_t peer, const struct state_node *node);
/* Remove nodes that said BYE and are empty. */
void register_tidy(struct coordinator *c);

/* ---- lease.c ---- */

/* The longest lease that I or a leader before me may have granted. */
uint64_t lease_longest_us(const struct coordinator *c);
/* From a grant, on our clock, until the lease is over on any clock whose rate is within the bound
 * (hole 27), whoever granted it. */
uint64_t lease_wait_us(const struct coordinator *c);
/* When the last lease of the node's incarnation has surely ended; I11. */
uint64_t lease_over_us(const struct coordinator *c, const struct state_node *node);
/* When all leases that earlier leaders granted have surely ended. */
uint64_t lease_elders_over_us(const struct coordinator *c);
/* The state knows the length of my leases: they may leave. */
bool lease_ready(const struct coordinator *c);
/* Make it know. */
void lease_agree(struct coordinator *c);

/* ---- fence.c ---- */

/* Propose to fence the node's incarnation: it never gets a lease again. `clean`: the node said BYE.
 */
void fence_propose(struct coordinator *c, const struct state_node *node, bool clean);
void fence_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result);
/* True if the node is silent, others are not, and one of the others could have what it owns. */
bool fence_suspects(struct coordinator *c, const struct state_node *node);
/* Fence who is silent; reassign what fenced nodes own once their leases surely ended. */
void fence_run(struct coordinator *c);
/* Restored from a backup: nothing begins yet (hole 52). */
bool fence_settling(const struct coordinator *c);
/* End that once every lease of the old era surely ended. */
void fence_settle(struct coordinator *c);
/* True if with `more` who are to come the role has fewer members that could take something than it
 * should have before its first allocation. */
bool fence_role_is_short(struct coordinator *c, const char *role, uint32_t more);
/* ---- unanswered.c ---- */

/* The peer says so now; what it said before is over. */
void unanswered_told(struct coordinator *c, struct leader_peer *peer, Rh__Unanswered *const *told,
                     size_t count);
/* Actors that the dead node was asked for, by the reports of peers that spoke of it after its last
 * message. The caller owns the list and each element. */
Rh__Suspect **unanswered_suspects(struct coordinator *c, const struct state_node *node,
                                  size_t *count);

/* "live", "suspect", "fenced", "dead", "leaving". */
const char *fence_state(struct coordinator *c, const struct state_node *node);
uint64_t fence_lease_left_us(const struct coordinator *c, const struct state_node *node);

/* ---- planted.c ---- */

/* M_LOCALNUM: PREPARE leaves under a number that is only guessed, before the log has it. */
void planted_localnum(struct coordinator *c, const Rh__CommandBegin *begin);
/* M_READFIRST: a configuration that was read up to a second ago; to be proto_free()d. */
ProtobufCMessage *planted_readfirst(struct coordinator *c);

/* ---- drive.c ---- */

struct drive *drive_find(const struct coordinator *c, uint64_t txn);
/* A BEGIN of mine was applied. */
void drive_begin(struct coordinator *c, const struct proposal *p, uint64_t txn);
/* One that was to supersede was refused. */
void drive_refused(struct coordinator *c, const struct proposal *p, const char *why);
/* Forget one, or those whose transaction is over. */
void drive_prune(struct coordinator *c);
void drive_forget_all(struct coordinator *c);
/* Take every transaction as far as it can go now; take up what another leader left. */
void drive_advance(struct coordinator *c);
/* A DECIDE was refused, or lost. */
void drive_undecided(struct coordinator *c, uint64_t txn, const char *why);
/* Tell the participants of an aborted transaction. */
void drive_cancel(struct coordinator *c, uint64_t txn);
/* Note that the transaction must be aborted, and why. The first reason counts. */
void drive_fault(struct drive *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Is this participant's vote what it waits for now? */
bool drive_waits_for(const struct drive *d, const struct state_txn *t, size_t part);
/* True if the node renewed its lease lately, or leases are not in force. */
bool drive_renewed(struct coordinator *c, const struct state_node *node);
/* Each participant lives, and where leases are in force renewed its own within RENEWED_MS: what
 * COMMIT gives away goes to nobody who is just being lost (specification §3.3). */
bool drive_all_live(struct coordinator *c, const struct state_txn *t);
/* Propose an outcome; an operator's comes with his name and reason. NULL: not now. */
struct proposal *drive_commit(struct coordinator *c, struct drive *d, const struct state_txn *t,
                              const Rh__AdminResolve *wish);
struct proposal *drive_abort(struct coordinator *c, struct drive *d, uint64_t txn,
                             const Rh__AdminResolve *wish);
/* Abort it and begin it anew under another number, in one entry. */
struct proposal *drive_supersede(struct coordinator *c, const struct state_txn *t,
                                 const Rh__AdminResolve *wish);

/* ---- votes.c ---- */

void votes_on_vote(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* A node tells why its vote has not come yet. */
void votes_on_draining(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);

/* ---- waits.c ---- */

/* "n2: actor 'boss-7' has run for 8.2 s (deadline in 1.8 s); vnodes 3, 9" into `text`. */
void waits_now(struct coordinator *c, const struct drive *d, char *text, size_t size);
/* "n2: actor 'boss-7' did not stop in 10 s" into `text`: as an outcome's reason. */
void waits_over(struct coordinator *c, const struct drive *d, char *text, size_t size);
/* An actor's id as printable text. */
void waits_actor(struct bytes id, char text[WAITS_ACTOR_MAX + 1]);

/* ---- eligibility.c ---- */

/* This command made a new incarnation of a node. */
void eligibility_registered(struct coordinator *c, const Rh__Command *command,
                            const struct state_result *result);
/* A participant's vote came. */
void eligibility_voted(struct coordinator *c, const struct drive *d, const struct state_txn *t,
                       size_t part);
/* Nodes that were missed must prove themselves again. */
void eligibility_update(struct coordinator *c);
/* Microseconds until the node may take part in moves: it came back, and could leave again (hole
 * 57). */
uint64_t eligibility_in_us(const struct coordinator *c, const struct state_node *node);
/* True if the node is live and not one that keeps restarting (hole 57). */
bool eligibility_granted(struct coordinator *c, const struct state_node *node);
/* Set `slow[slot]` for each node that lets a transaction wait much longer than others do, or did so
 * the last time. */
void eligibility_mark_slow(const struct coordinator *c, uint8_t slow[RING_NODES_MAX + 1]);
/* The slow node that this transaction has waited for so long that it should make room; 0 = none. */
uint16_t eligibility_culprit(const struct coordinator *c, const struct drive *d);
/* The pair may be asked again. */
bool eligibility_pair_ready(const struct coordinator *c, uint16_t source, uint16_t target);
void eligibility_outcome(struct coordinator *c, const struct state_txn *t, bool committed);
void eligibility_reset(struct coordinator *c); /* all that only a leader remembers */
void eligibility_fini(struct coordinator *c);

/* ---- rebalance.c ---- */

void rebalance_touch(struct coordinator *c); /* something changed: plan anew, soon */
void rebalance_reset(struct coordinator *c);
void rebalance_run(struct coordinator *c);
/* The nodes as the planner takes them, with room for more behind them. mem_free() them. */
struct plan_node *rebalance_nodes(struct coordinator *c, size_t room);
/* The plan for these nodes and the ring once all that pends is committed, which goes to `ring`;
 * both are the caller's, also after an error. Changes nothing. */
MUST_CHECK enum err rebalance_plan(struct coordinator *c, const struct plan_node *nodes,
                                   size_t count, struct plan *plan, struct ring *ring);
/* Transactions of the plan that have not begun, by what the log says: their BEGIN may be on its way
 * through it. */
size_t rebalance_planned(const struct coordinator *c);
/* Something changed, and the plan is not made anew yet: nothing moves, and nothing is planned, but
 * that isn't the end of it. */
bool rebalance_planning(const struct coordinator *c);
/* The node takes part in a transaction that is pending, or whose BEGIN is on its way: who owns
 * nothing may own something after it. */
bool rebalance_moves(const struct coordinator *c, uint16_t slot);
/* A BEGIN didn't come to pass: its place in the plan is open again. */
void rebalance_failed(struct coordinator *c, const struct proposal *p);
/* A transaction is decided. */
void rebalance_outcome(struct coordinator *c, const struct state_txn *t, bool committed);

/* ---- admin.c ---- */

bool admin_waits(const Rh__Admin *in); /* must a barrier come first? */
void admin_on_question(struct coordinator *c, struct leader_peer *peer, const Rh__Admin *in);
/* The answer to question `tag`, with how the fleet stands; owned by the caller. */
Rh__AdminReply *admin_reply_new(const struct coordinator *c, uint64_t tag);
/* Takes `reply`. */
void admin_send_reply(struct coordinator *c, uint64_t peer, Rh__AdminReply *reply);

/* ---- admin_rows.c ---- */

/* The field becomes a copy. */
void admin_set_text(char **field, const char *text);
void admin_add_nodes(struct coordinator *c, Rh__AdminReply *reply);
void admin_add_voters(struct coordinator *c, Rh__AdminReply *reply);
void admin_add_vnodes(const struct coordinator *c, Rh__AdminReply *reply);
void admin_add_txn(struct coordinator *c, Rh__AdminReply *reply, const struct state_txn *t);
/* One row; the reply frees it. */
Rh__NodeRow *admin_node_row(struct coordinator *c, const struct state_node *node);
Rh__VnodeRow *admin_vnode_row(const struct coordinator *c, const struct ring_vnode *v);
/* Nodes, gateways, voters, vnodes, pending transactions. */
void admin_overview(struct coordinator *c, Rh__AdminReply *reply);

/* ---- admin_wish.c: true: the answer comes when the command was applied ---- */

bool wish_drain(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                const Rh__AdminDrain *in);
bool wish_remove(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__AdminRemove *in);
bool wish_weight(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__AdminWeight *in);
bool wish_daemons(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                  const Rh__AdminDaemons *in);
bool wish_quarantine(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                     const Rh__AdminQuarantine *in);
bool wish_upgrade(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                  const Rh__AdminUpgrade *in);
void admin_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result);

/* ---- admin_roles.c ---- */

/* The ring's segments, the default one first. */
void admin_add_roles(struct coordinator *c, Rh__AdminReply *reply);
/* Propose another number of daemons; NULL and an error in `reply`: not now, or never. */
struct proposal *admin_daemons(struct coordinator *c, Rh__AdminReply *reply,
                               const Rh__AdminDaemons *in);
uint32_t fence_least_members(const struct coordinator *c, const char *role);

/* ---- admin_preview.c ---- */

/* Answer what would move. Changes nothing. */
void admin_preview(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminPreview *in);

/* ---- operator_request.c ---- */

/* Pass it on to a gateway, when it stands in the history. True: the answer comes later. */
bool operator_request_ask(struct coordinator *c, const struct leader_peer *peer,
                          Rh__AdminReply *reply, const Rh__AdminOperatorRequest *in);
/* The request stands in the history: send it now. */
void operator_request_applied(struct coordinator *c, const struct proposal *p,
                              const struct state_result *result);
/* A gateway answers. */
void operator_request_relay(struct coordinator *c, const Rh__OperatorRequestAnswer *answer);

/* ---- admin_quarantine.c ---- */

/* Actors in quarantine, and those with strikes. */
void admin_add_quarantine(const struct coordinator *c, Rh__AdminReply *reply);
/* Propose to put one in or take it out; NULL and an error in `reply`: not now, or never. */
struct proposal *admin_quarantine(struct coordinator *c, Rh__AdminReply *reply,
                                  const Rh__AdminQuarantine *in);
/* Something was applied: log who came into the quarantine, and who left it. */
void admin_log_quarantine(const struct coordinator *c, const struct state_result *result);

/* ---- resolve.c ---- */

/* True: the answer comes when the command was applied. */
bool resolve_on_question(struct coordinator *c, const struct leader_peer *peer,
                         Rh__AdminReply *reply, const Rh__AdminResolve *in);
/* An operator's outcome came out of the log, by `p`. */
void resolve_applied(struct coordinator *c, const struct proposal *p,
                     const struct state_result *result);

/* ---- gateways.c ---- */

/* One has come: warn if it has another's name. */
void gateways_look(const struct coordinator *c, const struct leader_peer *peer);
/* The gateways that are linked: a row for each process. */
void admin_gateways(struct coordinator *c, Rh__AdminReply *reply);

/* ---- upgrade.c ---- */

/* Tell which version each process has, the fleet's format, and to which format it may rise or why
 * to none. */
void upgrade_tell(struct coordinator *c, Rh__AdminReply *reply);
/* Like upgrade_tell(); if the operator wishes it, also propose that the format rises. NULL: the
 * answer is complete. */
struct proposal *upgrade_on_question(struct coordinator *c, Rh__AdminReply *reply,
                                     const Rh__AdminUpgrade *in);
/* Do what only a newer format has. */
void upgrade_run(struct coordinator *c);

/* ---- inspect.c: whether I lead or not, but for repair ---- */

/* Tell the operator how I am, and ask all that are linked to me the same. */
void inspect_ask(struct coordinator *c, const struct leader_peer *peer, const Rh__Admin *in);
/* A node's or gateway's answer: to the operator it belongs to. */
void inspect_relay(struct coordinator *c, const Rh__InspectAnswer *answer);
/* Tell the peer to repair itself: enum repair_task. */
void inspect_tell_repair(struct coordinator *c, const struct leader_peer *peer, uint32_t what);
/* Have one process repair itself, after a barrier. True: the answer comes when the repair was
 * recorded. */
bool inspect_repair(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                    const Rh__AdminRepair *in);
/* The repair stands in the history: do it now. */
void inspect_repair_applied(struct coordinator *c, const struct proposal *p,
                            const struct state_result *result);

#endif
