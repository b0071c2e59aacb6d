/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's machine: registration, participant of transactions
 * (txn/participant.h), actors, hold, hand-over, forward. Specification §5.
 *
 * Pure: feed events, do the effects in order. The shell (node/node_uv.c) and
 * the simulator drive the same code.
 *
 * An actor here is a record with a queue; what the game's code does happens in
 * the shell, by submission and completion:
 *
 *     ABSENT -ACTIVATE-> ACTIVATING -completed-> IDLE <-RUN, TURN / completed-> RUNNING
 *                                                IDLE -EXPORT-> EXPORTING -completed-> FROZEN
 *                         FROZEN -cancel-> IDLE          FROZEN -commit-> gone (DISCARD)
 *                         IDLE -RETIRE-> RETIRING -completed-> ABSENT
 *
 * Requests to a held arc wait in one queue per transaction; the outcome sends
 * them on: to the actors again, or to the new owner.
 *
 * What an actor is to do leaves as HOST_SUBMIT, and what comes of it as HOST_COMPLETED, by the
 * verbs of node/bridge/operation.h. Every ACTIVATE, RUN, TURN, EXPORT and RETIRE is completed once,
 * however late, unless the actor was discarded meanwhile: what was still to come is then kept back
 * by the bridge. An actor has at most one of them under way. After an ACTIVATE that failed, a
 * RETIRE that did not and a DISCARD nobody names the actor any more, until another ACTIVATE does.
 * PERSIST effects are done in order; the event of one covers those before it.
 *
 * The lease (node/books/lease.h). host_step() judges it by the event's time before
 * anything else, and submits no ACTIVATE or RUN unless it is ACTIVE. But time
 * passes between a step and its effects, and between one effect and the next:
 * so whoever does them reads the clock again before each one (hole 30),
 *
 *     for (i = 0; i < effects.count; i++) {
 *         if (clock() >= host_limit_us(h, &effects.item[i])) {
 *             host_keep(h, &effects, i);       // too late: the host keeps it
 *         } else {
 *             perform(&effects.item[i]);
 *         }
 *     }
 *
 * and what was kept comes out of a later step again, in order and before all
 * that is new, when a grant reopened the gate; or never, when the incarnation
 * is over. The limits change in host_step() only. A task that still runs
 * (host_running() > 0) at host_hard_end_us() must be stopped with its process.
 *
 * A shell that hands a submission to another thread hands back what was not begun in
 * time as a completion that is `returned`, which keeps it just so.
 */
#ifndef NODE_HOST_HOST_H
#define NODE_HOST_HOST_H

#include "node/books/instance.h"
#include "node/books/lease.h"
#include "node/books/waits.h"
#include "node/bridge/operation.h"
#include "node/host/stats.h"
#include "ring/view.h"
#include "wire/control.pb-c.h"
#include "wire/hello.h"
#include "wire/record.h"

struct frame;
struct host;

enum {
    HOST_ACTIVE_MAX = 64,
    HOST_CONN_MS = 5000,    /* T_conn: a link that is stuck for so long is reset */
    HOST_PREFETCH_MAX = 32, /* requests of one host_prefetch() */
    /* No copy of a request lives longer: its ttl, and what links may hold back on its way. An
     * order record must not be forgotten before (hole 37). */
    HOST_KEEP_MIN_MS = REQUEST_TTL_MAX_MS + 8 * HOST_CONN_MS + 1000,
    /* An actor that goes ahead of a hold takes as long as so many bytes. */
    HOST_AHEAD_COST = 1024,
};

/* Numbers that stand on the node's disk; they are durable before PREPARED leaves (holes 3, 5). */
struct host_disk {
    uint64_t era;
    uint64_t floor; /* numbers up to here are over */
    uint64_t seen;  /* highest transaction number accepted */
    uint64_t active[HOST_ACTIVE_MAX];
    size_t active_count;
};

/* How the actors of one kind live. */
struct host_kind {
    uint16_t number;
    uint32_t idle_ms; /* unused for so long it is retired; 0 or UINT32_MAX = never */
    uint32_t mailbox; /* requests that may wait for one of them; 0 = host_config.queue_count_max */
    uint32_t memory;  /* bytes that one of them takes, about, beside what each takes in the node */
    bool remembered;  /* HOST_LIST asks for its ids, which live without being asked */
    bool always;      /* what is handed over of it is activated at once; so are remembered ones */
    bool remember;    /* the fleet remembers which ids live, and gives them back: remember.h */
    bool brief;       /* what they do takes microseconds and never waits: host_serve() */
    bool durable; /* what they answered is saved with what they did: what is asked again may run;
                     and HOST_DUE asks the store who has to live, for something is to be sent … */
    bool alarms;  /* … or for an alarm of the game's */
    bool ahead;   /* VERB_COPY may ask for their state while they go on */
    uint32_t state_version; /* of the states that are handed over here; 0 = they have none … */
    uint32_t state_least;   /* … and those that it reads, with these two */
    uint32_t state_most;
    const char *name; /* told at registration; NULL: none of the kinds is told. Borrowed for life */
    uint8_t placement; /* enum rh_placement: HASH, TOGETHER, HOSTS, SINGLETON: only the id `name`,
                        * or DAEMONS: only "name/0" and so on */
    uint16_t withheld; /* of HOSTS: so many thousandths of the node's weight don't count, 0..1000 */
    uint32_t daemons;  /* of DAEMONS: how many, if the fleet does not know the set yet */
};

struct host_config {
    const struct tracing *tracing; /* borrowed: where spans go; NULL = nowhere */
    uint64_t span_seed;            /* random: spans' ids are drawn from it */
    char name[VIEW_NAME_MAX + 1];
    char address[VIEW_ADDRESS_MAX + 1]; /* as others reach my links */
    char zone[VIEW_NAME_MAX + 1];
    char role[RING_ROLE_MAX + 1]; /* "" = the default one */
    uint32_t weight;              /* 1 */
    uint8_t boot_id[16];
    uint8_t data_uuid[16];
    uint64_t nonce;        /* random, of this start */
    struct fleet_id fleet; /* that its folder is of; not known: it takes the first */
    struct host_disk disk; /* as loaded */
    uint64_t died; /* incarnation of the process before me, if it did not stop cleanly; or 0 */
    const struct quarantined *suspects; /* what ran in it then; borrowed for life */
    size_t suspect_count;
    const struct host_kind *kinds; /* hosted here; borrowed for life */
    size_t kind_count;
    uint64_t actors_max;      /* live ones; the least recently used is retired; 0 = no limit */
    uint32_t activations_max; /* under way for requests; 1024 */
    uint32_t cold_count_max;  /* actors that stand in line for one; 65536 */
    uint32_t wake_rate;       /* HOST_WAKE: so many activations a second; 1000 */
    uint32_t alarm_rate;      /* actors a second that are started for an alarm; 1000 */
    size_t wake_count_max;    /* HOST_WAKE: so many wait; 1000000 */
    size_t held_size_max;     /* bytes of waiting requests in all; 256 MiB */
    size_t held_vnode_max;    /* bytes of them for one vnode; 64 MiB */
    size_t queue_count_max;   /* requests waiting for one actor, if its kind says nothing; 1024 */
    size_t state_window;      /* unacknowledged bytes of one hand-over; 1 MiB */
    size_t staged_size_max;   /* of one transaction; 64 MiB */
    size_t move_rate;         /* bytes a second that go ahead of a hold, of an actor HOST_AHEAD_COST
                                 more; 0 = none; 64 MiB */
    uint32_t ahead_ms;        /* a hold waits so long for what goes ahead of it, and longer the more
                                 that is; 60 */
    uint32_t renew_ms;        /* 500 */
    uint32_t resend_ms;       /* 300 */
    uint32_t exports_at_once; /* actors asked for their state and not through with it; 128 */
    uint32_t drain_turn_ms;   /* a transaction that drains longer lets others begin to; 20 */
    uint32_t call_hold_ms;    /* a drain that takes longer lets held calls pass; 100 */
    uint32_t poll_ms;         /* T_poll; 1000 */
    uint32_t linger_ms;       /* T_linger: forwards for arcs it gave away; 30000 */
    size_t answers_size_max;  /* bytes of saved answers, small ones not counted; 64 MiB */
    uint32_t
        session_keep_ms;   /* order record of an idle session, at least HOST_KEEP_MIN_MS; 120000 */
    size_t gate_size_max;  /* bytes of outputs kept at the closed gate; 64 MiB */
    size_t stream_log_max; /* bytes of one stream's answers; beyond it is OVERLOAD; 64 MiB */
    size_t streams_size_max; /* bytes of all streams' answers and of frames that wait; beyond it a
                                stream has its share (stream/servers.h); 256 MiB */
    bool serve;              /* lease.on_loss: go on without a lease, and risk two owners */
};
struct host_config host_config_default(void);

enum host_effect_type {
    HOST_SEND_COORDINATOR, /* coordinator; bytes: packed Control */
    HOST_SEND_PEER,        /* peer, frame type, bytes: one record */
    HOST_CONNECT,          /* keep a link to node `slot`; bytes: its address, with a 0 behind */
    HOST_DISCONNECT,       /* slot: no longer needed */
    HOST_DROP_PEER,        /* peer: end its link; why: it is not who it says */
    HOST_PERSIST,          /* disk, ticket */
    HOST_SUBMIT,           /* actor, submission and its bytes: what the actor is to do */
    HOST_REGISTERED,       /* incarnation: tell the links */
    HOST_FORMER,           /* actor, incarnation, ticket: calls_former(), of that session */
    HOST_LIST,             /* kinds, kind_count: ids came to me cold; ask for those to wake */
    HOST_DUE,          /* kinds: one, count: a time in ms since 1970; bytes: the alarm after which
                          the page begins, or none: read which are due, then feed DUE_PAGE */
    HOST_MAILBOX_FULL, /* actor, count: so many were refused; told at 1, 2, 4, 8 … */
    HOST_EXIT,         /* exit_why, code, why */
};

enum host_event_type {
    HOST_TICK,           /* every 10..50 ms; see host_rests_until_us() */
    HOST_COORDINATOR_UP, /* coordinator: index of a coordinator link */
    HOST_COORDINATOR_DOWN,
    HOST_CONTROL, /* coordinator, message */
    HOST_PEER_UP, /* peer: link to or from a node or gateway; role, name, incarnation, dialled,
                     streams */
    HOST_PEER_DOWN,
    HOST_PEER_FULL,    /* peer: its link has much to send: make no more for it */
    HOST_PEER_ROOM,    /* peer: it has room again */
    HOST_GO_ON,        /* nothing new: go on with what one step could not do; host_has_more() */
    HOST_PEER_CONTROL, /* peer, message: Adopted */
    HOST_REQUEST,      /* peer, request */
    HOST_FRAME,        /* peer, frame of a stream; server: see host_unsent() */
    HOST_ANSWER,       /* peer, answer: to be passed on to a gateway */
    HOST_STATE,        /* peer, state, state_count */
    HOST_STATE_ACK,    /* peer, state_ack */
    HOST_PERSISTED,    /* ticket of a PERSIST effect */
    HOST_COMPLETED,    /* actor, completion: of a submission, or what the actor says by itself */
    HOST_DEADLOCK,     /* probe, ticket: the call waits for what runs so, and that for the call */
    HOST_WAKE,         /* kind, id: activate it, if it is mine and not alive; one of many waits */
    HOST_DUE_PAGE,     /* kind, id: bytes of storage/actors/due.h; none = there is none, or the
                          store can't be read */
    HOST_LEAVE,        /* SIGTERM: drain me, then EXIT */
};

struct host_event {
    enum host_event_type type;
    uint64_t now_us;  /* CLOCK_BOOTTIME */
    uint64_t wall_us; /* CLOCK_REALTIME, 0 = not known: only to see that one of the two jumped */
    int coordinator;
    const Rh__Control *message; /* borrowed */
    uint64_t peer;              /* shell's id of the link, never reused; 0 = none */
    int role;                   /* enum link_role */
    const char *name;
    uint64_t incarnation; /* node: its incarnation; gateway: its id */
    bool dialled;         /* PEER_UP: by this process */
    bool streams;         /* PEER_UP: of LINK_PROTOCOL_STREAMS or later */
    uint64_t position;    /* REQUEST: as host_prefetch() told it since the last step of another
                           * type; 0 = not known */
    uint64_t made_us;     /* REQUEST of my own actors: from when its time counts; 0 = now */
    const struct request_record *request; /* borrowed, like all below */
    const struct frame *frame;
    const struct host_server *server;
    const struct answer_record *answer;
    const struct state_record *state; /* STATE: `state_count` of them, in order */
    size_t state_count;
    const struct state_ack_record *state_ack;
    uint64_t ticket;
    struct actor *actor;
    struct completion completion; /* its `actor` is not looked at */
    uint16_t kind;                /* WAKE, DUE_PAGE, with `id` */
    struct bytes id;
    const struct probe *probe;
};

/* The misuse as a word: "request". */
const char *host_misuse_word(enum host_misuse what);

/* Why the process is to end. Each has a code and a text (host.c). */
enum host_exit_why {
    HOST_EXIT_LEFT,      /* it said goodbye, or the fleet knows that it went */
    HOST_EXIT_ALONE,     /* it leaves, and nobody renews its lease: the shell flushes its actors */
    HOST_EXIT_OTHER_ERA, /* another era began while it was leaving: likewise */
    HOST_EXIT_UNREGISTERED, /* told to leave before it was registered */
    HOST_EXIT_REFUSED,      /* the coordinators refuse its registration for good */
    HOST_EXIT_ERA,          /* the coordinators' database went back to an older era */
    HOST_EXIT_NO_MEMBER,    /* a configuration came that does not have it */
    HOST_EXIT_BARRED,       /* it was fenced */
    HOST_EXIT_GRID,         /* the ring has another grid */
    HOST_EXIT_REBOUND,      /* a kind that it hosts was bound to another role */
    HOST_EXIT_OVERLAP,      /* a configuration took cells with live actors from it (I4) */
    HOST_EXIT_OPERATOR,     /* an operator says that it is no member */
};

struct host_effect {
    enum host_effect_type type;
    int coordinator;
    uint64_t peer;
    int frame_type; /* enum frame_type */
    uint16_t slot;
    const struct host_disk *disk; /* PERSIST: valid until the next step */
    uint64_t ticket;
    struct actor *actor; /* valid until its DISCARD effect was done, at the latest the next step */
    struct submission submission;
    uint64_t incarnation;
    const uint16_t *kinds; /* LIST, DUE: valid as long as the host */
    size_t kind_count;
    uint64_t count;
    enum host_exit_why exit_why;
    int code;        /* of that exit, … */
    const char *why; /* … and its static text */
    size_t at;       /* in effects.bytes */
    size_t size;
};

/* Done in order. Grows as needed; the caller clears it between steps. */
struct host_effects {
    struct host_effect *item; /* owned */
    size_t count;
    size_t cap;
    struct buffer bytes;
};
void host_effects_clear(struct host_effects *e);
void host_effects_fini(struct host_effects *e);

struct host *host_new(const struct host_config *config);
/* From now on its activations_max, cold_count_max, held_size_max, held_vnode_max, linger_ms,
 * move_rate, wake_rate and alarm_rate hold; what is held already stays. */
void host_configure(struct host *h, const struct host_config *config);
void host_free(struct host *h);
void host_step(struct host *h, const struct host_event *event, struct host_effects *out);

/* Whoever drives the host has it run what is brief at once: host_serve(). */
enum host_ran {
    HOST_RAN_NOT,   /* it has not begun, and is to be submitted */
    HOST_RAN_LATER, /* it has begun, and its completion comes as that of a submission does */
    HOST_RAN_NOW,   /* it is done, and says what came of it */
};
struct host_server {
    void *context;
    /* Have the actor do that RUN. It may not call the host. */
    enum host_ran (*run)(void *context, const struct actor *a, struct at_once *run);
    /* An output, for the peer of the event; that of CALLS_LINK is this node's own calls. False: its
     * link is full, or goes. */
    bool (*answer)(void *context, const struct answer_record *answer);
    struct host_effects *effects; /* of what the lease lets go on first, and of what is submitted:
                                     to be done as those of host_step() */
    /* Of a HOST_FRAME: the time by now. Asked between some requests, for a frame may have a
     * thousand; what comes behind the lease's limits then goes by effects. */
    uint64_t (*now_us)(void *context);
    /* Likewise, a hint: that instance runs soon. NULL = unheeded. */
    void (*fetch)(const struct rh_actor *instance);
};
/* Take requests of `event.peer` as HOST_REQUEST would, one by one, as long as each is steady: its
 * arc is mine and not held, its turn in its session has come, and its actor has nothing else to do.
 * Such a one goes from its record to its actor and to its answer without an effect. If its kind is
 * not brief, it is submitted by an effect, with others of the same step. How many it took: the next
 * one is to be fed by host_step(), after the effects. `position`: as host_prefetch() told it. Their
 * time counts from event->made_us, or from now if that is 0. */
size_t host_serve(struct host *h, const struct host_event *event, const struct request_record *r,
                  const uint64_t *position, size_t count, const struct host_server *server);
/* Streams (decision 074). What a HOST_FRAME brings is admitted as records are; with a `server` what
 * is steady runs at once, by its `run` and `now_us` alone: the answer goes into the stream's log,
 * as all of a stream do. What is another node's goes into the log of a stream to that node. A
 * HOST_SEND_PEER of such a type is a whole frame without records.
 *
 * The next log that has something for the network since this was asked,
 * and the link that it goes by; NULL = none. It is an output: called when the effects of a step are
 * done, before host_gate_us() only. */
struct sendlog;
struct sendlog *host_unsent(struct host *h, uint64_t *peer);
/* The link had no room for all of a log, and has some now: host_unsent() names it again. */
void host_feed(struct host *h, uint64_t peer);
/* The log of the stream that goes by that link; NULL = there is none. */
struct sendlog *host_log(struct host *h, uint64_t peer);
/* Hint that these requests come next: fetches their memory and tells where each is on the ring.
 * Changes nothing; `count` is HOST_PREFETCH_MAX at most. */
void host_prefetch(struct host *h, const struct request_record *r, size_t count,
                   uint64_t *position);
/* Hint that what this actor runs ends soon: fetches the memory that its end needs. */
void host_prefetch_running(const struct actor *a);
void host_prefetch_order(const struct host *h, const struct actor *a);
/* An effect that leaves this process for a peer: answers, forwards, state. */
bool host_effect_is_output(const struct host_effect *e);
/* An effect that gives an actor something to do, which it answers. */
bool host_effect_is_task(const struct host_effect *e);
/* The time, by the host's clock, before which this effect must be done; UINT64_MAX = whenever (it
 * needs no lease, or leases are not in force), 0 = not at all now. */
uint64_t host_limit_us(const struct host *h, const struct host_effect *e);
/* Like host_limit_us(), for an actor's verb. */
uint64_t host_verb_limit_us(const struct host *h, enum verb verb);
/* The limit for outputs: the lease's end less the gate margin. */
uint64_t host_gate_us(const struct host *h);
/* Keep effect `at`, which came too late. After the step that emitted it, before the next one. */
void host_keep(struct host *h, const struct host_effects *effects, size_t at);
/* Say why a link of that role, name and incarnation (or id) is not to come up, because another
 * process has it; NULL = it may, though the name may not be known yet. HOST_PEER_UP asks the
 * same. */
const char *host_refuses(const struct host *h, enum link_role role, const char *name,
                         uint64_t incarnation);
/* Tasks (ACTIVATE, RUN, TURN, EXPORT, RETIRE) that were given out and neither ended nor came back,
 * deferred ones included. */
size_t host_running(const struct host *h);
/* Return the time from which on no task may run: the lease's end less the kill margin. */
uint64_t host_hard_end_us(const struct host *h);

/* When the next tick is due at the latest, other than by the 50 ms: nothing runs, waits or moves,
 * and the lease is whole. 0: tick every 10 ms, as something does. */
uint64_t host_rests_until_us(const struct host *h);
/* True if the host put work off that was too much for one step: feed HOST_GO_ON when the effects of
 * this step are done. (A HOST_TICK does it too.) */
bool host_has_more(const struct host *h);
/* True while images go ahead of a hold, some at a time, and none is being made: feed HOST_GO_ON
 * within a millisecond or so, unless something else is fed. */
bool host_is_paced(const struct host *h);
/* Abort unless I1-I8 and I12 hold. */
void host_check(const struct host *h);

#ifdef RINGHOLD_INJECT
/* Plant a fault: an actor of kind 0 in cells that are another node's, "k0" or the next that is. */
void host_plant_stray(struct host *h);
#endif

void host_stats(const struct host *h, struct host_stats *out);
/* How long requests, waits and activations took, by kind; the series are enum times_series
 * (node/host/times.h). Borrowed. */
const struct latencies *host_latencies(const struct host *h);
/* What ran by a host_server in the last step was over at `now_us`: it is counted so in
 * host_latencies(). Before the next step. */
void host_served(struct host *h, uint64_t now_us);
/* One row of the workers' profile of actors, for people who ask (RhHotRow of wire/control.proto).
 */
struct host_profile_row {
    const char *what; /* "runs", "deferred", "busy", "waiting": static text */
    uint32_t worker;
    uint16_t kind;
    struct bytes id; /* borrowed */
    uint64_t us;
    uint64_t count;
};
/* Tell the next Inspect these, too. Borrowed until it is set anew. */
void host_set_profile(struct host *h, const struct host_profile_row *profile, size_t count);
/* Counters of the calls that the node's actors made. Borrowed until it is set anew; NULL = not
 * told. */
struct router_stats;
void host_set_calls(struct host *h, const struct router_stats *calls);
/* Since the process began its actors ran for so long, in microseconds; said before a tick, it is
 * told with what the node's vnodes cost. Where a shell never says so, requests alone count. */
void host_set_busy_time(struct host *h, uint64_t us);
/* The actor ran for so long, in microseconds, of the time that host_set_busy_time() tells: so much
 * is its vnode's alone. Between steps; where a shell never says so, requests share it. */
void host_count_time(struct host *h, const struct actor *actor, uint64_t us);
/* Return what a call waits for whose probe came by that link: of another node, or of its own
 * actors. */
struct blocked host_blocked(const struct host *h, uint64_t peer, const struct probe *probe);
const struct view *host_view(const struct host *h);
/* Return the name of the node that owns an id, as far as this one knows; *hosts: it has the kind.
 * NULL = nobody does, or this node is not registered. Borrowed until the host's next step. */
const char *host_owner(const struct host *h, uint16_t kind, struct bytes id, bool *hosts);
/* Return how many vnodes the node owns. O(ring). */
size_t host_vnodes(const struct host *h);
/* 0 = not registered. */
uint64_t host_incarnation(const struct host *h);

#endif
