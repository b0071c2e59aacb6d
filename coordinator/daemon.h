/* SPDX-License-Identifier: Apache-2.0
 *
 * What the coordinator daemon's files share: one struct, and one function of
 * each file that another calls.
 *
 *     coordinator_uv.c       the loop: timers, signals, start and stop
 *     links.c                who is linked, what they say
 *     voters.c               which coordinators there are, and the change of them
 *     replica.c              what Raft applied, snapshots, leadership
 *     machine.c              the leader's machine: events in, effects out
 */
#ifndef COORDINATOR_DAEMON_H
#define COORDINATOR_DAEMON_H

#include "base/list.h"
#include "base/pace.h"
#include "base/table.h"
#include "coordinator/coordinator_uv.h"
#include "coordinator/watermark.h"
#include "daemon/reload_uv.h"
#include "link/link.h"
#include "storage/state/state_sqlite.h"
#include "wire/control.h"

#include <pthread.h>
#include <uv.h>

/* One link that said hello. Known to the machine by its id, which is never used again. */
struct daemon_peer {
    struct table_link by_id;
    uint64_t id;
    struct link *link;
    uint64_t voter;    /* 0 = no coordinator */
    uint64_t answered; /* tag of its last question about coordinators that has its answer; or 0 */
};

/* A propose or barrier that was refused at once: told after the step that asked for it. */
struct refused {
    uint64_t tag;
    enum err error;
};

/* A coordinator that is called: a voter, or one that an operator wants as a voter. */
struct dialled {
    uint64_t id;
    char address[GENERATION_ADDRESS_MAX + 1];
    struct link *link;
};

/* Other coordinators, as an operator wants them. One at a time. */
struct voters_wish {
    uint64_t peer; /* who asked; 0 = there is none */
    uint64_t tag;  /* of the question */
    struct generation_wish wish[GENERATION_VOTERS_MAX];
    size_t count;
    char by[256]; /* who wishes it, and why, for the history */
    char reason[ADMIN_REASON_MAX + 1];
    uint64_t until_us; /* new ones have until then to answer */
    bool applied;      /* what was in the log when it came: its own note may be there */
    bool proposed;
};

enum { DIALLED_MAX = 2 * GENERATION_VOTERS_MAX };

struct daemon {
    const struct coordinator_options *options;
    uv_loop_t loop;
    pthread_t thread; /* the loop's */
    bool due;         /* the loop is to poll before it sleeps */
    uv_async_t wake;
    uv_timer_t tick;
    struct pace pace;
    uv_prepare_t before_sleep;
    uv_signal_t on_term;
    uv_signal_t on_int;
    struct reload reload;
    struct links *links;
    struct dialled dialled[DIALLED_MAX];
    size_t dialled_count;
    struct voters_wish wish;
    uint64_t noted;    /* the generation that stands in the history */
    uint64_t noted_us; /* when it was looked for last */
    struct replica *replica;
    struct state state;
    struct state_db *db;
    uint64_t applied_index;   /* of the last entry; state.db may be behind */
    struct {                  /* the last command, until its rows are in state.db's transaction */
        Rh__Command *command; /* owned; NULL = they are */
        struct state_result result;
    } unwritten;
    bool changed;          /* by more than the index: a command was applied */
    uint64_t committed_us; /* when state.db was last brought up to date */
    struct watermark *watermark;
    struct coordinator *machine;
    struct table peers;
    uint64_t last_peer;
    bool leading;
    struct fleet_id fleet;   /* as the links know it */
    uint32_t format;         /* of the fleet, as disk and links know it; 0 = not yet */
    uint64_t stop_us;        /* told to stop while leading: stop at the latest then; 0 = not told */
    struct refused *refused; /* owned */
    size_t refused_count;
    size_t refused_cap;
};

/* Give the machine an event (its times are filled in) and do what it wants. */
void daemon_step(struct daemon *d, struct coordinator_event *event);
/* Tell the machine what was refused since: once a turn of the loop. */
void daemon_tell_refusals(struct daemon *d);
/* Number of the coordinator that leads; 0 = none is known. */
uint64_t daemon_leader(const struct daemon *d);
struct daemon_peer *daemon_peer(const struct daemon *d, uint64_t id); /* NULL = gone */
void daemon_make_machine(struct daemon *d);

/* The folder: raft.db, state.db, witness. False after printing why. */
bool daemon_open_storage(struct daemon *d);
/* The fleet's id is known now, or its format, or that rose: raft.db and the links are told. */
void daemon_heed_state(struct daemon *d);
/* Bring state.db up to date with what was applied. */
void daemon_commit_state(struct daemon *d);
int daemon_adopt(const struct coordinator_options *options);

/* Listen, dial the other coordinators, print "ready". False after printing why. */
bool daemon_open_links(struct daemon *d);
void daemon_send_raft(void *context, uint64_t voter, struct bytes message);
void daemon_wake(void *context); /* from any thread: poll soon */

/* Return a link to that voter: of the two links between a pair of coordinators either will do, and
 * this side's is the first choice. NULL: the voter is not linked. */
struct link *daemon_voter_link(const struct daemon *d, uint64_t voter);
/* Close a link that was dialled, as if it went down. */
void daemon_forget(struct daemon *d, struct link *link);
/* The links to the present voters, and no others. */
void daemon_dial_voters(struct daemon *d);
/* The voter id in a coordinator's hello; 0 = none. */
uint64_t daemon_voter_id(const struct hello *hello);
void daemon_hello(const struct daemon *d, struct hello *self);
/* Reason to refuse it, or NULL. */
const char *daemon_meet(struct daemon *d, const struct hello *peer);
/* Handler of struct replica_events.generation. */
void daemon_on_generation(void *context, const struct generation *generation);
/* The present voters: to the machine, and to the web page, which asks them. */
void daemon_tell_voters(struct daemon *d);
/* Take an operator's question about, or wish for, coordinators; this coordinator leads. */
void daemon_take_wish(struct daemon *d, struct link *link, const Rh__Admin *in);
/* Go on with an operator's wish, and answer it when it is done. */
void daemon_drive_wish(struct daemon *d);
/* The present generation is to stand in the history. */
void daemon_note_generation(struct daemon *d);
/* The change of the voters ended: tell the operator, or after an error have the next leader asked.
 */
void daemon_wish_done(struct daemon *d, enum err error);

/* `tag` of the change of voters at the replica; none of the machine's. */
#define WISH_TAG UINT64_MAX

#endif
