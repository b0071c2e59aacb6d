/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated network: links between processes, and what goes wrong on them.
 *
 *                dial, both up, no cut
 *     (dialled) ------------------------> up at each end, not at the same time
 *         ^                                   |
 *         +------- back-off ------ down <-----+ reset, crash of a side, silence in a cut
 *
 * Two kinds. A *control* link (a coordinator at one end) loses, duplicates,
 * delays and reorders single messages: worse than TCP, on purpose, for the
 * control plane has to stand that. A *data* link behaves as TCP: in order, each
 * direction with delays of its own, and a reset loses what is on its way.
 * A cut stops one direction between two processes: data waits for the heal,
 * control messages are lost, and after the silence limit links break.
 *
 * Between two processes that speak it a data link carries the frames of streams
 * (wire/stream.h), too. Their logs stay with who has them: network_pour() takes
 * frames from there as long as the link has room, and `room` asks for more.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "link/link.h"
#include "sim/clock.h"
#include "sim/world.h"
#include "stream/sendlog.h"

enum { NETWORK_PROCESSES_MAX = 24 };

struct process {
    enum link_role role;
    unsigned number; /* its row in the tables of cuts */
    char name[16];
    char says[16]; /* what it says that it is; "" = its name */
    bool up;
    bool streams;  /* it speaks a protocol that has them */
    uint64_t life; /* grows with each start */
    struct sim_clock clock;
    struct world_gate gate;  /* shut while it stands still (sim/pause.c) … */
    uint64_t stood_us;       /* … since then … */
    uint64_t stood_until_us; /* … at least so long … */
    int stood_kind;          /* … as enum pause_kind */
    uint64_t awake_us;       /* it went on then */
    uint64_t step_us;        /* its last step, whose effects are done since */
};

static inline const char *process_says(const struct process *p)
{
    return p->says[0] != '\0' ? p->says : p->name;
}

struct net_link;

/* One side of a link. */
struct net_end {
    uint64_t id; /* never reused: what the cores call a peer */
    struct process *me;
    struct process *other;
    struct net_link *link;
    uint64_t my_life;
    uint64_t other_life;
    uint64_t other_incarnation; /* as its hello told */
    unsigned key;               /* dialling side: what it was dialled for */
    bool dialled;
    bool up;
    bool deaf; /* what still arrives is lost */
    bool control;
    uint64_t up_at_us; /* nothing is delivered before */
};

struct net_events {
    void *context;
    /* The incarnation in the hello of `who` to `other`; false: it takes no such link now. */
    bool (*hello)(void *context, struct process *who, struct process *other, uint64_t *incarnation);
    void (*up)(void *context, struct net_end *end);
    void (*down)(void *context, struct net_end *end);
    void (*message)(void *context, struct net_end *end, int type, struct bytes bytes);
    /* A frame of a stream. */
    void (*frame)(void *context, struct net_end *end, const struct frame *frame);
    /* A frame of a stream leaves by that end; NULL = nobody wants to know. */
    void (*poured)(void *context, struct net_end *end, const struct frame *frame);
    /* network_pour() had more for this end than there was room for, and there is some now. */
    void (*room)(void *context, struct net_end *end);
    /* As net_aim.kind; asked while one is aimed at. */
    int (*kind)(int type, struct bytes bytes);
};

struct net_faults {
    uint64_t delay_max_us; /* of an ordinary message */
    uint64_t slow_pm;      /* so many of a thousand messages take up to slow_max_us */
    uint64_t slow_max_us;
    uint64_t loss_pm;      /* control messages only */
    uint64_t duplicate_pm; /* likewise */
    bool ghosts;           /* control messages may outlive their link */
};

/* What becomes of frames of a kind. Of data links a frame is never lost alone, nor overtaken. */
enum net_aim_what {
    NET_AIM_BREAK,  /* the link of the next one breaks, and it is lost with it … */
    NET_AIM_BEHIND, /* … or breaks behind it */
    NET_AIM_HOLD,   /* all come when it is over; on data links with what is behind them */
    NET_AIM_LOSE,
    NET_AIM_TWICE, /* and once more when it is over */
    NET_AIM_WHATS
};

struct net_aim {
    enum net_aim_what what;
    int kind;
    bool only; /* only those to this process */
    unsigned to;
    uint64_t until_us;
};

struct net_dial;

struct network {
    struct world *world;
    struct net_events events;
    struct net_faults faults;
    struct net_aim aim;
    uint64_t hits;        /* frames that it met */
    struct net_end **end; /* owned; by id - 1 */
    size_t end_count;
    size_t end_cap;
    struct net_dial **dial; /* owned */
    size_t dial_count;
    size_t dial_cap;
    bool cut[NETWORK_PROCESSES_MAX][NETWORK_PROCESSES_MAX];
    uint64_t cut_order[NETWORK_PROCESSES_MAX][NETWORK_PROCESSES_MAX];
    bool fellows;     /* links between coordinators are data links, for Raft */
    uint64_t late_us; /* the message that is handed over is so much older than its sender's step */
    uint64_t stalls[NETWORK_PROCESSES_MAX]; /* times that each stood still */
    uint64_t sent;
    uint64_t lost;
    uint64_t resets;
    uint64_t stale; /* ends that were dropped with what lay there, as their process stood still */
};

void network_init(struct network *n, struct world *world, const struct net_events *events);
void network_fini(struct network *n);

/* Keep a link from `from` to `to` until network_forget() or the death of `from`. */
void network_dial(struct network *n, struct process *from, struct process *to, unsigned key);
/* Drop what `from` dialled to a process of `role` for `key`. */
void network_forget(struct network *n, struct process *from, enum link_role role, unsigned key);
/* NULL: no such end, or it is not up. */
struct net_end *network_end(const struct network *n, uint64_t id);
void network_send(struct network *n, struct net_end *from, int type, struct bytes bytes);

/* Does that link carry streams? */
static inline bool network_has_streams(const struct net_end *end)
{
    return end->me->streams && end->other->streams && !end->control;
}
/* Send a frame of a stream that has no records; `body` is what wire/stream.h calls its head. */
void network_say(struct network *n, struct net_end *from, enum stream_frame type,
                 struct bytes body);
/* Send what a stream has to say, frame by frame, as long as there is room; then, if it owes one, an
 * ACK. */
void network_pour(struct network *n, struct net_end *from, struct sendlog *log);
/* The process lets go of a link. */
void network_break(struct network *n, struct net_end *end);

/* `p` died (its `up` is false already): its ends vanish, the others notice soon. `clean`: it ended
 * by itself, so what it sent before still arrives. */
void network_crash(struct network *n, struct process *p, bool clean);
/* `p` stands still: others give up their links to it when it is silent for too long. */
void network_stall(struct network *n, struct process *p);
/* `p` goes on, after so long by its own clock: what lies in its sockets is read behind its timers,
 * or goes with its links (link/stall.h). */
void network_resume(struct network *n, struct process *p, uint64_t gap_us);
/* Break all data links of `p`: they are to say hello again. */
void network_renew(struct network *n, const struct process *p);
/* Is there a link that is dead, and an end that has not noticed? */
bool network_has_dead(const struct network *n);
/* Does a frame that `is` says yes to lie on a data link to a process of `role`? */
bool network_carries(const struct network *n, enum link_role role,
                     bool (*is)(const void *context, int type, struct bytes bytes),
                     const void *context);
/* Break one link that is up, drawn at random; `control`: it may be one of a coordinator. */
void network_reset_any(struct network *n, bool control);
/* Block or unblock what goes from `from` to `to`. */
void network_cut(struct network *n, const struct process *from, const struct process *to, bool cut);
/* No cuts, no faults from now on. */
void network_heal(struct network *n);

#endif
