/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's inside, shared by its files:
 *
 *     host.c     life, step, check, figures, effects
 *     member.c   what comes from coordinators; renewal, leaving
 *     register.c registration, and what begins with it
 *     config.c   the configuration: asked for, and taken
 *     adopt.c    the configuration, adopted: what is mine now
 *     dial.c     links to other nodes
 *     identity.c who is at the other end of a link, and what it may send
 *     txn.c      PREPARE, COMMIT, CANCEL, POLL: the participant's messages
 *     hold*.c    one transaction: what it holds; its giver's side, its taker's; its outcome
 *     admit.c    requests and answers
 *     copy.c     copies of requests: what must not run any more
 *     run.c      actors: activate, run requests and turns
 *     life.c     actors: held, frozen, thawed; come and gone
 *     retire.c   actors that nobody uses end
 *     fail.c     actors that fail wait for their next start
 *     wake.c     actors that live without being asked
 *     always.c   which ones those are: singletons, sets of daemons
 *     isolate.c  actors in quarantine
 *     pace.c     how much is started at once, and for whom
 *     tenure.c   the lease: what may be done now, what is put off
 *     inspect.c  `ringhold check` and `ringhold fix`
 *     trace.c    `ringhold trace`
 *
 * Each handler may emit effects; none calls back into host_step().
 */
#ifndef NODE_HOST_INSIDE_H
#define NODE_HOST_INSIDE_H

#include "base/ration.h"
#include "node/host/actor.h"
#include "node/host/gate.h"
#include "node/host/hold.h"
#include "node/host/host.h"
#include "node/host/idle.h"
#include "node/host/neighbour.h"
#include "node/host/order.h"
#include "node/host/waiting.h"
#include "txn/participant.h"
#include "wire/finder.h"

enum {
    BUSY_RETRY_MS = 50,
    REGISTER_FIRST_MS = 200, /* doubled up to */
    REGISTER_LAST_MS = 2000,
    BYE_WAIT_MS = 1000,
};

/* JOINING -RegOk-> SERVING -Bye-> PARTING -confirmed-> OVER
 * any -barred, refused-> OVER      SERVING -greater era-> JOINING
 * Which may follow which: life_machine, in host.c. */
enum life { LIFE_JOINING, LIFE_SERVING, LIFE_PARTING, LIFE_OVER };
extern const struct machine life_machine;

/* What the node knows of one cell beside the ring. */
struct place {
    struct hold *hold; /* it is held: requests wait there; NULL = free */
    uint64_t gave_us;  /* when it was given away last; 0 = never */
    uint64_t token;    /* greatest that an actor here was activated under */
    bool mine;         /* by the configuration adopted last */
};

/* A link this node asked for. */
struct dial {
    uint16_t slot;
    char address[VIEW_ADDRESS_MAX + 1];
    uint64_t used_us;
};

struct kind_state {
    uint16_t kind;
    uint32_t first_cell; /* of its segment, when this incarnation began */
    struct ring_key key;
    const struct host_kind *how; /* the configuration's */
    struct idle idle;
};
static inline bool kind_is_always(const struct kind_state *kind)
{
    return kind->how->remembered || kind->how->always;
}

/* Ids to be started without a request (wake.c). The actors among them are ABSENT, linked by
 * `idle`. */
struct wake {
    struct actor_list wanted;  /* so many a second */
    struct actor_list arrived; /* handed over: at once */
    struct list late;          /* ids of held cells */
    size_t count;              /* in the three */
    uint64_t credit;           /* millionths of a start */
    uint64_t paced_us;         /* when it was reckoned */
    uint64_t list_us;          /* next LIST that nothing asks for */
    uint64_t listed_cold;      /* greatest cold stamp of my vnodes at the last LIST */
    uint64_t aged_us;          /* when the next two are taken anew */
    uint64_t seen_cold;        /* greatest cold stamp of all vnodes then … */
    uint64_t old_cold;         /* … and the time before: who owned them has long listed them */
    bool lost;                 /* there was no room for some: ask again */
};

struct host {
    struct host_config config;
    struct host_effects *out; /* of this step */
    size_t record_at;         /* host_record() */
    uint64_t now_us;
    uint64_t wall_us;           /* of this step; 0 = not known */
    const struct host_hot *hot; /* borrowed; host_set_hot() */
    size_t hot_count;
    const struct router_figures *calls; /* borrowed; host_set_calls() */

    /* Membership (member.c, register.c, config.c, adopt.c). */
    struct finder finder;
    bool coordinator_up[FINDER_MAX];
    uint64_t era; /* 0 = not known yet */
    uint64_t nonce;
    uint64_t incarnation;
    uint16_t slot;
    uint8_t life; /* enum life */
    struct view view;
    uint64_t checked_version; /* I2: it only grows */
    uint64_t marked_version;  /* of the configuration by which `place` says what is mine */
    uint64_t register_us;     /* next Register, and how long to the one after it */
    uint32_t register_ms;
    uint64_t renew_us;
    uint64_t renew_seq;
    uint64_t want_version; /* newest version heard of */
    uint64_t fetch_us;     /* not before */
    uint32_t fetch_turn;   /* unanswered so far: ask the next coordinator */
    uint64_t lost_version; /* at which the last vnode went */
    uint64_t lost_us;
    uint64_t bye_us; /* next Bye */
    uint64_t bye_end_us;

    /* Transactions (txn.c, hold*.c). */
    struct participant participant;
    struct prepare parked[HOST_ACTIVE_MAX]; /* they wait for their base version */
    size_t parked_count;
    struct host_disk disk;
    uint64_t disk_ticket;
    uint64_t poll_us;
    struct list stale; /* struct staging; only under M_STALEWARM */

    /* Actors and requests (admit.c, run.c). */
    struct kind_state *kind; /* owned, as many as config.kind_count */
    uint16_t *remembered;    /* owned; numbers of the remembered kinds */
    size_t remembered_count;
    struct place *place; /* owned, one per cell */
    struct actors actors;
    struct orders orders;
    struct room room;
    struct queue waitver;   /* they carry a version newer than mine */
    struct queue lonely;    /* they go to an owner whose link is not up */
    struct queue stalled;   /* the link that their answers take, or they, is full */
    struct queue later;     /* for another step: this one has started enough */
    struct queue cold;      /* their actors are to be activated, once fewer are */
    size_t activating;      /* actors */
    size_t full_count;      /* links that are full */
    size_t started;         /* RUN effects of this step */
    uint64_t ahead_version; /* host_look_ahead() told positions of this ring; 0 = of none */
    size_t passed_on;       /* bytes forwarded in this step */
    struct queue leaseless; /* they came, or their turn did, without an ACTIVE lease */
    struct neighbours neighbours;
    struct dial *dial; /* owned */
    size_t dial_count;
    uint64_t run_ticket;
    size_t running;               /* requests */
    size_t tasks;                 /* actors with something under way */
    size_t live;                  /* actors with an instance, or one to be */
    size_t retiring;              /* of these */
    struct delays delays;         /* of busy parts */
    struct list to_export;        /* busy parts: EXPORTING, not asked for their state yet */
    uint32_t exports_asked;       /* since the last tick, and not answered */
    struct list leaseless_actors; /* busy parts: they want a turn, or to retire, and may not now */
    struct wake wake;

    /* The lease (tenure.c). */
    struct lease lease;
    int32_t clock_parts; /* what the leader says of the clock that it counts by: Grant */
    struct gate gate;
    uint64_t leaseless_total;
    uint64_t lapses;    /* it ran out, and the node served on */
    uint64_t leased_us; /* so long, at least, there was one, or none was needed */

    /* Sums. */
    uint64_t accepted; /* requests taken in */
    uint64_t finished; /* answered, passed on or dropped */
    uint64_t held_total;
    uint64_t hold_us_max;
    struct metrics_times holds[HOLD_ENDS];
    uint64_t executed;
    uint64_t forwarded;
    uint64_t dropped_expired;
    uint64_t dropped_duplicate;
    uint64_t dropped_abandoned;
    uint64_t dropped_fenced;
    uint64_t dropped_overflow;
    uint64_t dropped_cold;
    uint64_t dropped_asleep;
    uint64_t dropped_foreign;
    uint64_t always_us; /* next look at those that live always */
    uint64_t dropped_mailbox;
    uint64_t turns;
    uint64_t retired_total;
    uint64_t failed_total;
    uint64_t doubles_total;
    struct ration complaints;
    uint64_t woken;
    uint64_t wake_dropped;
    uint64_t attached;
    uint64_t answered_again;
    uint64_t answers_lost;
    uint64_t refused_cold;
    uint64_t refused_quarantine;
    uint64_t refused_deadlock;
    uint64_t isolate_us; /* next look at those in quarantine */
    uint64_t put_off_total;
    uint64_t full_total; /* times a link was full */
    uint64_t misuses[HOST_MISUSE_COUNT];
    uint64_t misuse_told_us[HOST_MISUSE_COUNT]; /* logged last; 0 = never */

    struct buffer trace; /* of the last note that was traced */

    /* Marks of the parts above. */
    bool fetch_all;  /* my configuration is broken: fetch it whole */
    bool stopping;   /* SIGTERM */
    bool to_flush;   /* it is over, and its actors are the shell's to flush and end */
    bool may_leave;  /* the leader says so */
    bool told_last;  /* the leader says that nobody else stays */
    bool disk_dirty; /* `active` shrank */
    bool local;      /* M_LOCAL: run it whoever owns it */
    bool lapsed;     /* serves without a lease */
    bool judged;     /* the lease has not changed since it was judged */
};

/* A request on its way through admission: just come in (`w` NULL, the record borrowed) or out of
 * a queue (`w` owned, the record its own). Whoever takes it calls exactly one of admit_done()
 * and the functions that park, run or forward it. */
struct arrival {
    const struct request_record *r;
    uint64_t peer;
    uint64_t deadline_us;
    struct waiting *w;
    uint64_t position; /* 0 = not known yet */
    bool passes;       /* the hold lets it */
};
struct arrival arrival_of(struct waiting *w); /* w is in no queue */

/* ---- host.c: effects ---- */

static inline void host_enter(struct host *h, enum life life)
{
    h->life = machine_enter(&life_machine, h->life, life);
}

struct host_effect *host_emit(struct host *h, enum host_effect_type type);
/* Attach a copy of the bytes. */
void host_emit_bytes(struct host *h, struct host_effect *e, struct bytes bytes);
/* Where to put one record that host_send_record() then sends. */
struct buffer *host_record(struct host *h);
void host_send_record(struct host *h, uint64_t peer, int frame_type);
/* Ask for `disk` to be made durable; returns the ticket. */
uint64_t host_persist(struct host *h);
/* Stop everything and ask to exit. */
void host_stop(struct host *h, enum host_exit_why why);
/* Stop all actors, drop all that waits and all transactions. */
void host_drop_all(struct host *h, enum discard_why why);

/* ---- member.c ---- */

/* Send to a coordinator; fills in the header. `coordinator` < 0: to nobody. */
void host_tell(struct host *h, int coordinator, Rh__Control *c);
static inline int leader_of(const struct host *h)
{
    return finder_leader(&h->finder);
}
void member_on_control(struct host *h, int coordinator, const Rh__Control *c);
void member_tick(struct host *h);
void member_leave(struct host *h);

/* ---- register.c ---- */

/* REGISTER leaves now; at the next tick, as if it never had. */
void register_send(struct host *h);
void register_soon(struct host *h);
void register_on_ok(struct host *h, const Rh__RegOk *ok);
void register_on_refused(struct host *h, const Rh__RegRefused *refused);
/* Other era: all I know is void (hole 53). */
void register_anew(struct host *h);
/* The coordinators' database is older than what this node saw (hole 54). */
void register_say_went_back(uint64_t era, uint64_t seen);
/* The planted bug of hole 1: it finds itself in the ring and serves. */
void register_omitted(struct host *h, const Rh__ConfigAnswer *answer);

/* ---- config.c ---- */

/* Versions up to this one are known to exist: fetch when mine is older. */
void host_want_version(struct host *h, uint64_t version);
/* My configuration may be broken: replace it by a whole one of the same version or a newer. */
void host_fetch_all(struct host *h);
enum view_result host_take_delta(struct host *h, const Rh__Delta *delta);
/* Ask for what is missing, if it is time to. */
void config_fetch(struct host *h);
void config_on_answer(struct host *h, const Rh__ConfigAnswer *answer);

/* ---- adopt.c ---- */

/* The view changed: follow it. */
void host_adopt(struct host *h);
/* The same, after `delta` was applied to version `before`. */
void host_adopt_delta(struct host *h, const Rh__Delta *delta, uint64_t before);
/* It was registered: note what is mine. */
void adopt_first(struct host *h);
bool host_owns(const struct host *h, uint32_t cell);
/* Of the segment that the kind is bound to. */
uint32_t adopt_first_cell(const struct ring *r, uint16_t kind);

/* ---- dial.c ---- */

/* The link to a node, or 0 and one is asked for. Slot 0: only the incarnation counts. */
uint64_t host_link_to(struct host *h, uint16_t slot, uint64_t incarnation);
/* Let go of links to who is gone, or has another address. */
void host_dials_sync(struct host *h);
void host_dials_tick(struct host *h);

/* ---- identity.c ---- */

/* It came up: is it who it says? */
void identity_judge(struct host *h, struct neighbour *n);
/* Members came or changed: judge again whoever says to be one of them. */
void identity_adopt(struct host *h);
/* Another era: incarnations may have been given to others. */
void identity_forget(struct host *h);
/* May that link send this? If not it is counted and logged, and a request of a node that is not
 * known yet is told to come again. */
bool identity_takes_request(struct host *h, uint64_t peer, const struct request_record *r);
bool identity_takes_answer(struct host *h, uint64_t peer);
/* The incarnation behind that link, of a node that the configuration names so; 0 = it is none. */
uint64_t identity_of_node(const struct host *h, uint64_t peer);
/* That link sent what is not its own to send. */
void identity_misused(struct host *h, uint64_t peer, enum host_misuse what, const char *why);

/* ---- txn.c ---- */

void txn_on_prepare(struct host *h, int coordinator, const Rh__Prepare *message);
void txn_on_commit(struct host *h, const Rh__Commit *message);
void txn_on_cancel(struct host *h, const Rh__Cancel *message, uint64_t version);
void txn_on_poll_answer(struct host *h, const Rh__PollAnswer *message);
void txn_on_persisted(struct host *h, uint64_t ticket);
void txn_note_committed(struct host *h, const Rh__Delta *delta);
/* Settle what the configuration just adopted decides; examine what waited for it. */
void txn_adopt(struct host *h);
void txn_tick(struct host *h);
void txn_forget_parked(struct host *h);
void txn_vote(struct host *h, struct hold *hold, int coordinator);

/* ---- hold*.c ---- */

/* All actors of its OUT arcs, one after the other. `a` NULL: the first. */
struct hold_cursor {
    const struct hold *hold;
    size_t arc;
    uint32_t cell;
    struct actor *next;
    bool begun;
};
struct actor *hold_next_actor(const struct host *h, struct hold_cursor *at);

enum { HOLD_SOME = 16 };

/* The next few, with what they need: hardly anything of a thousand actors is in the cache. What is
 * done to one of them ends no other. 0 = no more. */
size_t hold_some_actors(const struct host *h, struct hold_cursor *at,
                        struct actor *some[HOLD_SOME]);
/* The arc to a taker whose link is not up: it can't vote, so it doesn't drain yet. Or NULL. */
const struct part_arc *hold_unreached(const struct host *h, const struct hold *hold);
/* Tell the giver what came. */
void hold_acknowledge(struct host *h, struct staging *s);
/* Those whose turn it is begin to drain. */
void hold_next_turn(struct host *h);
/* The slot of a taker whose link is not up, so that it can't vote and doesn't drain yet; or 0. */
uint16_t hold_awaits_link(const struct host *h, const struct hold *hold);
/* Take over the held cells of a superseded transaction, without release. */
void hold_take_over(struct host *h, struct hold *hold, struct hold *from);
/* Follow the current configuration; closes the book's entry. */
void hold_settle(struct host *h, struct part *part);
/* The image of a frozen actor goes on its stream. */
void hold_on_frozen(struct host *h, struct actor *a);
/* Send what the windows allow; vote when all is done. */
void hold_progress(struct host *h, struct hold *hold);
void hold_on_state(struct host *h, uint64_t peer, const struct state_record *r);
void hold_on_state_ack(struct host *h, uint64_t peer, const struct state_ack_record *ack);
void hold_on_peer_up(struct host *h, uint64_t incarnation);
void hold_tick(struct host *h, struct hold *hold);
static inline struct hold *hold_of(const struct part *part)
{
    return part->user;
}

/* ---- ahead.c ---- */

/* They are held or let go next: the memory that it needs is fetched. */
void ahead_actors(const struct host *h, struct actor *const *a, size_t count);
/* Actors are made of these, one by one: the same for those that come soon. */
void ahead_images(const struct host *h, struct image *const *image, size_t count);

/* ---- copy.c ---- */

/* Answer, drop or refuse what must not run (any more). True: it may run or has to wait. `order` is
 * its session's record, NULL = none. */
bool copy_is_wanted(struct host *h, struct order *order, struct arrival *in, uint64_t position);
/* Keep it for copies that come yet. */
void copy_save_answer(struct host *h, struct order *order, const struct answer_record *answer,
                      bool read);
/* NULL = there is no ring yet. */
const struct ring_vnode *host_vnode(const struct host *h, uint64_t position);

/* ---- run.c ---- */

/* An actor of the request's name takes it: run now, queue, or refuse. `a` NULL = no record yet. */
void actor_offer(struct host *h, struct actor *a, struct image_name name, struct arrival *in);
/* See that it moves on, whatever its state: what waits runs, or it freezes, retires, rests. Its
 * record may be gone afterwards. */
void actor_proceed(struct host *h, struct actor *a);
/* It is ABSENT and has to start. */
void actor_activate(struct host *h, struct actor *a);
/* Something is given out to it, answered with the ticket in `running`; and that was answered. */
struct busy *actor_begin(struct host *h, struct actor *a, enum actor_state state);
void actor_end(struct host *h, struct actor *a, enum actor_state state);
void run_on_poke(struct host *h, struct actor *a);
void run_on_activated(struct host *h, struct actor *a, enum err error);
void run_on_ran(struct host *h, const struct host_event *event);
/* What it was to run was not begun, and its time is over. */
void run_expire(struct host *h, struct actor *a);

/* ---- life.c ---- */

/* Its arc is held: freeze it now or when it stops. */
void actor_hold(struct host *h, struct actor *a, struct hold *hold);
/* Nothing waits, and its arc is held: make its image, or have it made. */
void actor_freeze(struct host *h, struct actor *a);
/* Ask more of those that are to move for their state. */
void export_go_on(struct host *h);
/* It is EXPORTING no more. */
void export_ends(struct host *h, const struct actor *a);
/* A chain's request reached it when it was frozen already. */
void actor_thaw(struct host *h, struct actor *a);
/* The hold ended and it stays. */
void actor_release(struct host *h, struct actor *a);
void run_on_exported(struct host *h, const struct host_event *event);
/* It goes: DISCARD, forget. All its requests were taken out. */
void actor_remove(struct host *h, struct actor *a, enum discard_why why);
/* Its instance goes, the record stays. */
void actor_dismiss(struct host *h, struct actor *a, enum discard_why why);
/* Nothing goes on: give back what is not needed, at last the record itself. */
void actor_rest(struct host *h, struct actor *a);
/* Move everything that waits for it to the end of `to`. */
void actor_empty(struct host *h, struct actor *a, struct queue *to);
/* An image handed over becomes a record, ABSENT, with its orders. */
struct actor *actor_from_image(struct host *h, struct image *image);

/* ---- retire.c ---- */

void retire(struct host *h, struct actor *a, enum retire_why why);
/* It is IDLE, and retires if it shall and may. */
void retire_wished(struct host *h, struct actor *a);
/* A request came or ended; it is alive: into the wheel of its kind. */
void retire_used(struct host *h, struct actor *a);
void retire_watch(struct host *h, struct actor *a);
/* Over actors_max: the least recently used go. */
void retire_for_room(struct host *h);
void retire_tick(struct host *h);
void retire_on_passivate(struct host *h, struct actor *a);
void retire_on_retired(struct host *h, const struct host_event *event);

/* ---- fail.c ---- */

/* A log line that names it and its kind, unless there are many. */
void fail_complain(struct host *h, const struct actor *a, const char *event, enum err error);
/* ABSENT after a failure: its next start waits. */
void fail_again(struct host *h, struct actor *a);
/* IDLE and broken: its instance ends. */
void fail_broken(struct host *h, struct actor *a);
void fail_on_failed(struct host *h, struct actor *a);
/* What waited for a time: back-offs, hand-overs that were "not now". */
void fail_tick(struct host *h);
/* Actors that wait for their next start. Looks at each that has a back-off. */
size_t fail_waiting(const struct host *h);

/* ---- wake.c ---- */

void wake_init(struct host *h);
/* All actors are gone, and so is what waited. */
void wake_forget(struct wake *w);
void wake_on_wake(struct host *h, uint16_t kind, struct bytes id);
/* ABSENT: it is started later, if it shall live unasked. */
void wake_if_wanted(struct host *h, struct actor *a);
/* Just handed over. */
void wake_arrived(struct host *h, struct actor *a);
/* It waits no longer. */
void wake_unlist(struct host *h, struct actor *a);
bool wake_has_more(const struct host *h);
void wake_go_on(struct host *h);
void wake_tick(struct host *h);
/* The cell was not mine, and is. */
void wake_came(struct host *h, uint32_t cell);
/* The configuration changed: did ids come to me cold? */
void wake_adopt(struct host *h);

/* ---- pace.c ---- */

void pace_begin(struct host *h);
/* May one more request start in this step, and its answer leave? Else it is put off. */
bool pace_may_start(const struct host *h, const struct request_record *r);
void pace_put_off(struct host *h, struct arrival *in);
/* May one more be passed on over this link in this step? */
bool pace_may_pass_on(const struct host *h, uint64_t link);
void pace_pass_on_later(struct host *h, struct arrival *in);
/* May it begin an activation? What other actors ask may always: they may wait for it in one. */
bool pace_may_activate(const struct host *h, const struct request_record *r);
void pace_activate_later(struct host *h, struct arrival *in);
/* Take up what was put off to another step. */
void pace_go_on(struct host *h);
void pace_on_link(struct host *h, uint64_t link, bool full);

/* ---- tenure.c ---- */

/* Judge the lease; let go of what may be done now. */
void tenure_judge(struct host *h);
/* A task or an activation may start. */
bool tenure_may_start(const struct host *h);
void tenure_granted(struct host *h, const Rh__Grant *grant);
/* Registered. */
void tenure_begin(struct host *h, uint64_t lease_us);
/* Barred, or another era. */
void tenure_end(struct host *h, enum host_drop why);
/* Its lease has been over for so long that who leaves waits for coordinators no more. */
bool tenure_is_alone(const struct host *h);
/* They wait until the lease is ACTIVE again, and are admitted anew. */
void tenure_put_off(struct host *h, struct arrival *in);
void tenure_put_off_all(struct host *h, struct queue *q);
/* It wants a turn, or to retire, when the lease is ACTIVE again. */
void tenure_put_off_actor(struct host *h, struct actor *a);
/* The shell could not begin it in time: it is kept at the gate. */
void tenure_on_returned(struct host *h, const struct host_event *event);
uint64_t tenure_renew_every_us(const struct host *h);
void tenure_figures(const struct host *h, struct host_figures *out);

/* ---- admit.c ---- */

/* `position`: as host_look_ahead() told it; 0 = it did not. */
void admit_new(struct host *h, const struct request_record *r, uint64_t peer, uint64_t position);
void admit_again(struct host *h, struct arrival *in);
/* Admit all of a queue again. */
void admit_all(struct host *h, struct queue *q);
/* Put it at the end of a queue; refused with OVERLOAD when the room is full. False then. */
bool admit_park(struct host *h, struct queue *q, struct arrival *in);
void admit_done(struct host *h, struct arrival *in);
/* Answer without having run it. */
void admit_refuse(struct host *h, struct arrival *in, enum answer_code code, uint64_t aux);
void admit_send_answer(struct host *h, uint64_t peer, const struct answer_record *a);
void admit_relay_answer(struct host *h, const struct answer_record *a);
void admit_tick(struct host *h);
uint64_t host_position(const struct host *h, uint16_t kind, struct bytes id);
bool host_has_kind(const struct host *h, uint16_t kind);
/* It is hosted here. */
struct kind_state *host_kind_of(const struct host *h, uint16_t kind);

/* ---- deadlock.c ---- */

/* It waits in the mailbox of an actor that runs `run`, if that is still so: it is refused. */
void deadlock_refuse(struct host *h, const struct probe *p, uint64_t run);

/* ---- chain.c ---- */

/* The drain waits for who waits for this request. */
bool chain_passes(const struct host *h, const struct request_record *r, const struct hold *hold);
/* It begins to drain: look at what waited for its actors before. */
void chain_begin(struct host *h, struct hold *hold);
void chain_tick(struct host *h, struct hold *hold);

/* ---- inspect.c ---- */

/* Tell how I am. Changes nothing. */
void host_inspect(struct host *h, int coordinator, const Rh__Inspect *question);
/* An operator has me set right. */
void host_mend(struct host *h, const Rh__Mend *mend);

/* ---- trace.c ---- */

/* An operator follows it. */
bool trace_is(const struct request_record *r);
/* Its body with what this node did, and for how long it was here. Borrowed until the next call. */
struct bytes trace_stamp(struct host *h, const struct arrival *in, uint8_t did);
/* Its answer with how long its actor took. Borrowed likewise. */
struct bytes trace_ran(struct host *h, struct bytes hops, uint64_t began_us);

#endif
