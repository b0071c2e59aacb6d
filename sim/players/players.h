/* SPDX-License-Identifier: Apache-2.0
 *
 * Players: clients with sessions. In seeds of the profile `sessions` there are four *session
 * actors*, of kinds with sessions, and the devices of those who play them. All that stands between
 * the two is the shipped code:
 *
 *     device (client/) <-line-> clients at a gateway (gateway/client/client.h), its router
 *         <-data link-> node's host -> its runtime (node/runtime/runtime.h) -> actor:
 *         a game's callbacks
 *
 * What is played here: lines, which break, hang and are noticed late; devices, which
 * ask, come again and log in over one another; session actors, which push, kick, fail and retire.
 *
 * What happens here draws from a random stream of its own.
 */
#ifndef SIM_PLAYERS_PLAYERS_H
#define SIM_PLAYERS_PLAYERS_H

#include "base/prng.h"
#include "node/books/presence.h"
#include "node/runtime/runtime.h"
#include "sim/fleet.h"

#include <ringhold_client.h>

enum {
    SESSION_ACTORS = 4,
    DEVICES = 6,        /* the last two play the first two actors, too */
    SEVERAL_ACTORS = 2, /* session actors as well, behind the others: several play one at a time,
                           see several_sessions.c */
    SEVERAL_MAX = 2,    /* so many */
    SEVERAL_DEVICES = 5,
    KNOWN_MAX = 16, /* with those who are away, of whose end nothing tells */
    FILLER_MAX = 12000,
    SESSION_RESUME_MS = 8000,
    BRIEF_RESUME_MS = 2000,
    ACTOR_GROUPS = 2, /* one of each kind of them, who take turns with the kinds */
};

/* First word of a push to a group, where other pushes have their spell. */
static const uint64_t BROADCAST_MARK = UINT64_MAX;
/* First word of a push to all clients of an actor that has several; in struct push_made's number,
 * too. */
static const uint64_t TO_ALL_MARK = UINT64_C(1) << 62;

/* A session actor as the owner of groups: they, and who is in them as it knows, by their bits. */
struct group_actor {
    struct rh_group *group[ACTOR_GROUPS]; /* owned */
    uint64_t members;
};

/* Where a push stands: as number `at` of a bond; 0 = in none. */
struct place {
    uint64_t bond;
    uint64_t spell;
    uint64_t at;
};

/* A broadcast to one group. */
struct broadcast_made {
    size_t sender;
    uint64_t life;    /* of the sender: it keeps its order through one */
    uint64_t members; /* by their bits … */
    uint64_t ran;     /* … those whose actors it reached … */
    uint64_t got;     /* … and one of whose devices */
    bool reaches_all; /* nothing fails from then on, but what the losses tell */
    uint64_t losses;  /* of the sender then … */
    uint64_t
        lost[SESSION_ACTORS]; /* … and of each member that had a client; UINT64_MAX = had none */
    struct place place[SESSION_ACTORS]; /* in the bond of each of those */
};

/* A push of a bond. */
struct push_made {
    uint64_t spell;
    uint64_t own;  /* its number in that; 0 = a broadcast */
    uint64_t upto; /* bytes of it and all before */
    uint64_t made_us;
};

/* All that was pushed to one client, by number - 1, from when its actor heard of it until that
 * heard of another, or the bond was lost. */
struct push_bond {
    struct push_made *push; /* owned */
    uint64_t count;
    uint64_t cap;
    const struct device *device; /* of such an actor: who got one of them; NULL = nobody yet */
    bool sent_away;              /* likewise: it was kicked, or passed on */
};

/* State that a session actor knows about a client's spell: a new one begins when the actor came
 * cold, with the bond; by number - 1. */
struct spell {
    size_t actor;
    uint64_t bond;
    uint64_t session; /* of such an actor: rh_session.session */
    uint64_t losses;  /* of its actor, then */
    uint64_t made;    /* of its own */
};

/* One session of an actor with several, as that knows it. */
struct known_session {
    uint64_t session; /* rh_session.session */
    uint64_t spell;
    uint64_t made;      /* pushes of that spell to it alone */
    uint64_t missed_us; /* it is away since then; 0 = it is there */
    enum {
        KNOWN_STAYS,
        KNOWN_KICKED,
        KNOWN_REBOUND,
        KNOWN_ENDS
    } leaves; /* by the will of its actor */
};

/* The truth of it, whatever incarnation is asked. */
struct session_actor {
    struct entity who; /* its name, for check_owns() */
    bool rejects;      /* its kind does: who comes second is refused */
    bool several;      /* its kind allows several; then it has no `client`, but these */
    struct known_session known[KNOWN_MAX];
    size_t known_count;
    uint64_t broadcasts; /* pushes to all of them */
    uint64_t rebinds;    /* times that it passed one on */
    uint64_t spell;      /* that goes on; 0 = none was */
    enum { CLIENT_NONE, CLIENT_THERE, CLIENT_AWAY } client;
    bool fresh;         /* it was begun cold, and has no spell yet */
    uint64_t away_us;   /* since then … */
    uint64_t missed_us; /* … and it was told then; what its moves took since … */
    uint64_t moving_us; /* … is not counted; one began then, 0 = none goes on */
    uint64_t thawed_us;
    uint64_t listened_us;    /* when it had a turn last, or was told of its client … */
    uint64_t rested_us;      /* … and before that */
    struct bond_stamp stamp; /* of the bond that was made last */
    uint64_t losses; /* times that a session may have ended: a cold start, a failure, a kick … */
    uint64_t colds;  /* of them: of its memory. Who was bound then may be replaced */
    uint64_t binds;  /* times that a client was bound anew, or again after it was lost … */
    uint64_t displaced; /* … of them: times that a client took another's place */
    uint64_t ends;      /* times that it ended itself */
    uint64_t kicks;     /* of its own */
    uint64_t lives;     /* incarnations */
    uint64_t broadcast_ran[SESSION_ACTORS]; /* the last broadcast of that actor that reached it … */
    uint64_t broadcast_told[SESSION_ACTORS]; /* … and the last that a message came behind */
};

struct player_ask {
    size_t device;
    const struct session_actor *actor;
    uint64_t asked_us;
    bool answered;
    bool never; /* it was answered that it did not run */
    unsigned runs;
};

/* A connection. */
struct wire {
    uint64_t number;
    struct device *device; /* NULL: it has let go of it */
    struct sim_gateway *at;
    uint64_t life;         /* of the gateway */
    struct client *client; /* NULL: not yet, or no more */
    struct buffer in;      /* has arrived, and is not taken yet */
    uint64_t up_us;        /* when the newest bytes arrive */
    uint64_t down_us;
    uint64_t stalls_us; /* the device reads nothing until then */
    bool dead;          /* nothing passes any more */
    bool closed;        /* by the gateway, or it died: what was sent before still arrives */
    bool over;          /* for the gateway */
};

struct device {
    size_t number;
    struct session_actor *actor;
    struct rhc *rhc; /* owned */
    struct wire *wire;
    bool refused;     /* another one is bound, and stays */
    uint64_t asks_us; /* it began to ask for its actor then */
    bool bound;       /* told so, and not yet that it is over */
    bool keeps;       /* it has a session to come back to */
    uint64_t losses;  /* of the actor, when that began */
    uint64_t rivals;  /* times that the other device of this actor had dialled then */
    uint64_t dials;   /* of this one */
    uint64_t turns;   /* session_actor_turns() then */
    uint64_t spell;   /* of the last push; 0 = none since it was bound */
    uint64_t old;     /* spells to this one are over for it … */
    struct {
        uint64_t spell; /* … and those to this one, if it is bound afresh now */
        uint64_t losses;
        uint64_t rivals;
        uint64_t turns;
    } stood;       /* how things stood when it last began to be */
    uint64_t bond; /* of such an actor: in which it got a push; 0 = in none yet */
    uint64_t seen; /* sequence of the last push */
    uint64_t broadcast_seen[SESSION_ACTORS]; /* the last broadcast of that actor */
    uint64_t ran;                            /* newest of its requests that ran */
    bool leaves;                             /* its gateway stops */
    uint64_t unordered;                      /* those to this one may run in any order */
    uint64_t open;                           /* without an answer */
    uint64_t blamed;     /* a request that got none, for no reason unless its session is over now */
    uint64_t offline_us; /* nobody answers its calls until then */
    uint64_t wake_us;    /* when it is looked at next */
    uint64_t begin_us;   /* it logs in again then; 0 = it need not */
};

struct sim_players {
    struct prng prng;
    struct session_actor actor[SESSION_ACTORS + SEVERAL_ACTORS];
    size_t actors;
    struct device device[DEVICES + SEVERAL_DEVICES];
    size_t devices;
    struct spell *spell; /* owned; by number - 1 */
    size_t spell_count;
    size_t spell_cap;
    struct push_bond *bond; /* owned; by number - 1 */
    size_t bond_count;
    size_t bond_cap;
    struct player_ask *ask; /* owned; by number - 1 */
    size_t ask_count;
    size_t ask_cap;
    struct broadcast_made *broadcast; /* owned; by number - 1 */
    size_t broadcast_count;
    size_t broadcast_cap;
    struct wire **wire; /* owned; by number - 1 */
    size_t wire_count;
    size_t wire_cap;
    uint64_t ask_gap_us;
    uint64_t push_ms;
    uint64_t mischief_us;
    uint64_t lag_us; /* of lines, at most */
    uint64_t fails_pm;
    uint64_t kicks_pm;
    uint64_t ends_pm;
    uint64_t cold_pm;
    uint64_t busy_pm;
    bool groups; /* where a node's actors ask others, session actors do */
    bool tight;  /* nodes have little room, from the beginning to the end */
    uint64_t joins_pm;
    uint64_t broadcasts_pm;
    struct {
        uint64_t begun; /* sessions */
        uint64_t afresh;
        uint64_t resumed;
        uint64_t replaced;
        uint64_t refused;
        uint64_t pushes; /* that came */
        uint64_t lost;
        uint64_t moved; /* with a client */
        uint64_t asked;
        uint64_t broadcasts;
        uint64_t broadcast_pushes; /* of them that came */
    } total;
};

static inline uint64_t sim_players_between(struct fleet *f, uint64_t low, uint64_t high)
{
    return prng_between(&f->players->prng, low, high);
}
/* So long it may be away. */
static inline uint64_t session_actor_resume_ms(const struct fleet *f, const struct session_actor *h)
{
    return h->rejects && f->profile != PROFILE_CALM ? BRIEF_RESUME_MS : SESSION_RESUME_MS;
}
static inline bool sim_players_chance(struct fleet *f, uint64_t per_mille)
{
    return sim_players_between(f, 1, 1000) <= per_mille;
}

/* Kinds of session actors. */
static inline bool sim_players_has(uint16_t kind)
{
    return kind == FLEET_KIND_SESSION || kind == FLEET_KIND_REJECTING || kind == FLEET_KIND_SEVERAL;
}

/* ---- devices and their lines: players.c */

/* Bytes of a line, for a device; it was closed by the gateway. */
void sim_players_hear(struct fleet *f, struct wire *w, struct bytes bytes);
void sim_players_hung_up(struct fleet *f, struct wire *w);

/* ---- at gateways: session_clients.c */

/* A packet arrived on `w`, or `w` has gone. */
void session_clients_accept(struct fleet *f, struct wire *w);
void session_clients_take(struct fleet *f, struct wire *w);
void session_clients_leave(struct fleet *f, struct wire *w);
/* All are told to go elsewhere. */
void session_clients_drain(struct fleet *f, struct sim_gateway *g);

/* ---- at nodes: runtime.c */

/* The fleet in which the session actors' runtime lives. */
struct fleet *sim_runtime_fleet(const struct sim_runtime *s);
const struct sim_node *sim_runtime_node(const struct sim_runtime *s);
/* When the node was last without a lease that lets something begin. */
uint64_t sim_runtime_idle_us(const struct sim_node *n);
/* True if actors that are activated come cold, with a client. */
bool sim_runtime_unheard_client(const struct sim_runtime *s);

/* ---- session actors: session_actor.c */

extern const struct rh_actor_ops session_actor_ops;
extern const struct rh_actor_ops rejecting_ops;
/* A rejecting one, of seeds in which something fails: it waits for its client for a shorter time.
 */
extern const struct rh_actor_ops brief_ops;
/* Of several clients: several_sessions.c. */
extern const struct rh_actor_ops several_ops;
/* The actor with this id. */
struct session_actor *session_actor_named(struct fleet *f, struct bytes id);
/* The actor has a turn, or is told of its client. */
void session_actor_listened(const struct fleet *f, struct session_actor *h);
/* The number in a message to the actor; `ended`: it has ended itself, so that none may come. */
uint64_t session_actor_takes(struct fleet *f, const struct session_actor *h, bool ended,
                             const struct rh_message *message);
/* End the actor, or let it fail, by chance. True: its life is over. */
bool session_actor_may_end(struct rh_actor *actor, struct fleet *f, struct session_actor *h);
/* The actor could not be told for so long that a client that was missed can't come back. */
bool session_actor_stood_still(const struct fleet *f, const struct session_actor *h);
/* Bytes behind the head of a push: as many as fit into what is kept, now and then, so that some are
 * let go; mostly in a quarter of the seeds. */
size_t session_actor_filler(struct fleet *f);
/* The spell in which an incarnation (by rh_actor_ops' instance) pushes: its own; or the spell
 * before, if it came with a client of which it has not heard yet. */
uint64_t session_actor_spell(const void *instance);

/* ---- with groups: group_actor.c */

void group_actor_open(struct group_actor *r);
void group_actor_close(struct group_actor *r);
void group_actor_save(const struct group_actor *r, struct rh_out *out);
/* Instead of opening it. */
void group_actor_load(struct group_actor *r, struct rh_bytes state);
/* A message of another session actor. */
void group_actor_hears(struct fleet *f, struct session_actor *h, struct group_actor *r,
                       struct rh_bytes payload);
/* Push to its members. */
void group_actor_broadcasts(struct rh_actor *actor, struct fleet *f, const struct session_actor *h,
                            const struct group_actor *r);
/* Join, leave and push, or not. */
void group_actor_acts(struct rh_actor *actor, struct fleet *f, const struct session_actor *h,
                      const struct group_actor *r);

/* ---- what is judged of several sessions: check/several_sessions.c */

/* Such an actor hears of a client; `had` is what it knew of that one, or of `former`; NULL =
 * nothing. */
void check_known_heard(struct fleet *f, struct session_actor *h, const struct rh_session *e,
                       const struct known_session *had);
/* One that was handed over knows what it knew, and one that is begun afresh nothing. */
void check_several_begins(struct fleet *f, struct session_actor *h,
                          const struct known_session *known, size_t known_count, bool has_state);
/* A spell for a session; `goes_on`: in the bond that the session had. Its number. */
uint64_t check_known_spell(struct fleet *f, struct session_actor *h, uint64_t session,
                           bool goes_on);
/* The client is told by its actor to go. */
void check_known_leaves(struct fleet *f, const struct known_session *g);
/* A device got a push: it has to be the one with that number in its session's bond. */
void check_known_push(struct fleet *f, struct device *d, const struct rhc_event *e);
/* A device waits for something of such an actor; NULL = it does not. */
const char *check_known_waits(const struct fleet *f, const struct device *d);
/* Clients that it has, and that are to stay. */
size_t check_known_count(const struct session_actor *h);

/* ---- what is judged of groups: check/broadcast.c */

/* A session actor pushes to its group number `i`; the number of that. */
uint64_t check_broadcast(struct fleet *f, const struct session_actor *sender, uint64_t members,
                         size_t i);
/* The push is with a member's actor; a message sent behind it has come; a device has it. */
void check_broadcast_runs(struct fleet *f, struct session_actor *h, struct bytes payload);
void check_broadcast_pushed(struct fleet *f, const struct session_actor *h, struct bytes payload,
                            struct place place);
void check_behind(struct fleet *f, struct session_actor *h, uint64_t number);
struct place check_broadcast_push(struct fleet *f, struct device *d, uint64_t number);
/* The first that has not reached a member that it has to; 0 = none. */
uint64_t check_broadcast_missed(const struct fleet *f);

/* ---- what is judged: sim/check/player.c */

/* An incarnation begins; `has_state`: it was handed over, and knows that. */
void check_session_actor_begins(struct fleet *f, struct session_actor *h, const struct sim_node *n,
                                bool has_state, uint64_t spell, uint64_t made);
/* The actor hears of its client, who is `client` as it knows; `again`: the client came with the
 * state. */
void check_heard(struct fleet *f, struct session_actor *h, const struct rh_session *e, int client,
                 bool again);
/* A client was bound by that node, not again by a stamp that it brought. */
void check_bond(struct fleet *f, struct session_actor *h, const struct sim_node *n,
                struct bond_stamp stamp);
/* A client took the place of another one. */
static inline void check_replaced(struct fleet *f, struct session_actor *h)
{
    f->players->total.begun++;
    f->players->total.replaced++;
    h->displaced++;
    h->binds++;
}
/* A session actor begins a spell; `goes_on`: in the bond of the spell before. Its number. */
uint64_t check_spell(struct fleet *f, struct session_actor *h, bool goes_on);
/* A push with so many bytes: number `own` of its actor's, 0 = a broadcast. Returns where it stands.
 */
struct pushed {
    uint64_t spell;
    uint64_t own;
    size_t size;
};
struct place check_pushed(struct fleet *f, struct pushed push);
/* The actor runs a request of a device. */
void check_player_run(struct fleet *f, const struct session_actor *h, uint64_t number);
/* The code of a session actor runs. A timer that was due before the actor was thawed had its turn
 * first. */
void check_timer(struct fleet *f, const struct session_actor *h, const struct sim_node *n,
                 uint64_t due_us);
/* Times that it was bound, or forgot to whom: its client may be another since. */
static inline uint64_t session_actor_turns(const struct session_actor *h)
{
    return h->binds + h->colds;
}
/* How often others dialled to play its actor. */
uint64_t check_rivals(const struct fleet *f, const struct device *d);
/* A device hears an event. */
void check_player_event(struct fleet *f, struct device *d, const struct rhc_event *e);

#endif
