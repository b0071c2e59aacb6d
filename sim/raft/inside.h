/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the Raft world share: the world itself, its voters, what
 * is due, and what each file does for the others.
 */
#ifndef SIM_RAFT_INSIDE_H
#define SIM_RAFT_INSIDE_H

#include "sim/raft/disk.h"
#include "sim/raft/world.h"

#include "base/prng.h"
#include "raft/voters.h"

#include <setjmp.h>

enum { NODES_MAX = 40, TERMS_MAX = 1 << 16 };

enum raft_event_kind {
    ON_TICK,
    ON_DISK,
    ON_POLL,
    ON_LOST,
    ON_MESSAGE,
    ON_CLIENT,
    ON_NEMESIS,
    ON_OPERATOR,
    ON_CRASH,
    ON_RESTART,
    ON_HEAL
};

#define COMMAND_REFUSED UINT64_MAX

struct raft_event {
    uint64_t at_us;
    uint64_t number; /* of two at one time, the older goes first */
    enum raft_event_kind kind;
    unsigned node;
    unsigned life;  /* of the node; an event of an earlier life is void */
    unsigned about; /* ON_LOST: whose links ended */
    struct raft_packet *packet;
};

struct raft_packet {
    unsigned from;
    bool lost; /* its sender died with it in its buffers */
    size_t size;
    uint8_t data[];
};

struct sim_voter {
    struct raft_world *world;
    unsigned place;
    unsigned life;
    bool dead;               /* its machine is lost, for all that the operator knows */
    struct replica *replica; /* NULL = down */
    struct raft_disk disk;
    unsigned snapshot_entries;
    unsigned trailing_entries;
    bool polling;     /* an ON_POLL is due */
    uint64_t hash;    /* of the commands of the entry being applied; 0 = none yet */
    uint64_t chain;   /* of everything applied */
    uint64_t applied; /* index */
    uint64_t led_term;
    uint64_t led_since_us;
    uint64_t commit; /* index, when it was last looked at */
};

struct raft_world {
    struct raft_world_options options;
    struct raft_world_result *result;
    struct prng prng;
    struct voters voters; /* that found the group */
    unsigned count;       /* of all that there are: voters, former ones, those that wait */
    uint64_t now_us;
    struct sim_voter node[NODES_MAX];
    bool cut[NODES_MAX][NODES_MAX]; /* [from][to] */
    uint64_t link_us[NODES_MAX][NODES_MAX];
    bool ordered;         /* links keep their order */
    bool mute[NODES_MAX]; /* figure 8: its entries reach nobody */
    uint64_t delay_percent;
    struct prng
        links; /* when links end: draws of their own, so that the other seeds stay as they are */
    struct prng changes; /* of voters: likewise */
    struct prng reads;   /* barriers: likewise */
    unsigned reader;     /* asked for nothing but barriers; no voter's place: nobody is */
    uint64_t reader_until_us;
    bool links_end;        /* voters are told when another's links end */
    uint64_t shot_percent; /* a young leader crashes when its commit index moves */
    bool healing;
    bool quiet;              /* no more commands */
    size_t entries_size_max; /* of one message */
    unsigned election_ms;
    uint64_t fault_max_us; /* how long a voter is down or cut off */

    struct raft_event *heap; /* owned */
    size_t heap_count;
    size_t heap_max;
    uint64_t event_number;

    uint64_t *chain_at; /* owned; by index; 0 = not applied by anybody */
    size_t chain_max;
    uint64_t *index_of; /* owned; by command; 0 = not applied, COMMAND_REFUSED = never will be */
    size_t command_max;
    uint64_t command_count;
    uint64_t acked_index;          /* highest */
    uint64_t leader_of[TERMS_MAX]; /* elected: place + 1, and generation << 8 */
    unsigned role_of[TERMS_MAX];   /* told to lead: place + 1 */
    jmp_buf stop;                  /* out of a replica that is broken */
    struct sim_voter *broken;
};

/* ---- events.c: what is due, and what is told */

/* Into the hash of all that happened. */
void raft_world_trace(struct raft_world *w, uint64_t value);
void raft_world_violation(struct raft_world *w, const struct sim_voter *n, const char *what);
/* A line of the trace on stdout, if one is wanted. */
void raft_world_say(const struct raft_world *w, const struct sim_voter *n, const char *what);
void raft_world_push(struct raft_world *w, struct raft_event event);
void raft_world_push_for(struct raft_world *w, enum raft_event_kind kind, const struct sim_voter *n,
                         uint64_t at_us);
/* The next one; there is one. */
struct raft_event raft_world_pop(struct raft_world *w);

/* ---- voter.c: a voter and its lives */

/* Make the voter's disk live by the world's time. */
void sim_voter_plug(struct sim_voter *n);
/* In some seeds it has a shipped folder, too. */
void sim_voter_ship(struct sim_voter *n);
/* Both limits of the time that a write takes. */
void sim_voter_set_disk(struct sim_voter *n, uint64_t write_us);
void sim_voter_start(struct sim_voter *n);
/* Nothing, if it is down. */
void sim_voter_crash(struct sim_voter *n);
bool sim_voter_leads(const struct sim_voter *n);
/* After each event: was it elected? */
void sim_voter_watch(struct sim_voter *n);
/* A new command, to a leader. */
void sim_voter_propose(struct sim_voter *n);
/* A barrier, if it leads: once it is done, all that was acknowledged before is applied there. */
void sim_voter_read(struct sim_voter *n);
/* Add what its guard refused to the result. */
void sim_voter_count_cuts(struct sim_voter *n);
/* Between two ticks. */
uint64_t raft_world_tick_us(const struct raft_world *w);

/* ---- changes.c: other voters, and hellos */

/* The operator wishes for other voters, and comes again. */
void raft_changes_operator(struct raft_world *w);
/* The voter starts: draw which voters it meets. */
void raft_changes_hello(struct sim_voter *n);
/* The voter begins a generation: it may crash soon. */
void raft_changes_begun(struct sim_voter *n);
/* True if it is a voter of the newest generation. */
bool raft_changes_in(const struct raft_world *w, const struct sim_voter *n);
/* One that votes, or did, and knows an older generation; NULL: there is none. */
const struct sim_voter *raft_changes_behind(const struct raft_world *w);

/* ---- world.c */

/* One more, with no folder yet. */
struct sim_voter *raft_world_add(struct raft_world *w);

/* The links to `gone` end, or those who are linked believe so. */
void raft_world_end_links(struct raft_world *w, const struct sim_voter *gone);

void raft_world_run_until(struct raft_world *w, uint64_t at_us);

/* ---- plays.c: histories that are written by hand, as enum raft_scenario tells */

void raft_play_figure_8(struct raft_world *w);
void raft_play_foreign_tail(struct raft_world *w);
void raft_play_whole_log(struct raft_world *w);
void raft_play_old_answers(struct raft_world *w);

#endif
