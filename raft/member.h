/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a replica, shared by
 *
 *     replica.c   libraft's member: queue, batches, roles, who may vote
 *     reconfiguration.c  from one generation of the group to the next
 */
#ifndef RAFT_MEMBER_H
#define RAFT_MEMBER_H

#include "raft/heap.h"
#include "raft/inside.h"
#include "raft/reconfiguration.h"

#include "base/list.h"

/* A command or a barrier on its way. */
struct item {
    struct list_link link;
    uint64_t tag;
    bool barrier;
    bool seal; /* the last of its entry */
    size_t size;
    uint8_t data[];
};

/* Kind of the one entry in flight. */
enum flight {
    FLIGHT_NONE,
    FLIGHT_ELECTION, /* the barrier that proves leadership before it is reported */
    FLIGHT_BATCH,    /* commands, and barriers that wait with them */
    FLIGHT_ROUND,    /* barriers only: no entry, the voters are asked */
    FLIGHT_BARRIER   /* the same while the fleet's format is before rounds */
};

struct replica {
    struct raft raft;
    struct raft_fsm fsm;
    struct heap heap;
    struct voters voters;
    struct generation generation;
    struct reconfiguration reconfiguration;
    struct replica_config config;
    struct replica_events events;
    void (*broken)(void *context, const char *why);
    unsigned rules_off; /* bits: guard_rule, reconfiguration_rule, REPLICA_IO_ROUNDS */
    size_t entries_size_max;
    bool running;            /* libraft does: this one votes */
    bool rounds;             /* the voters know them: FLEET_FORMAT_ROUNDS */
    struct log_store *store; /* owned */
    struct log_image *image; /* owned until started */
    struct replica_io io;
    uint64_t identity;
    struct log_peer peer[REPLICA_VOTERS_MAX];
    uint64_t refused[REPLICA_VOTERS_MAX]; /* last identity refused of peer[i], so it is said once */
    size_t peer_count;

    struct list waiting;   /* item */
    struct list in_flight; /* item: those of the entry in flight */
    size_t waiting_size;
    size_t waiting_count;
    enum flight flight;
    bool completed; /* the entry in flight has its outcome */
    int completed_status;
    uint64_t flight_index; /* of the batch in flight */
    struct raft_apply apply;
    struct raft_barrier barrier;
    struct raft_transfer transfer;
    bool wants_transfer;

    bool leading;        /* and reported */
    uint64_t lead_term;  /* term whose leadership we saw; 0 = not leader */
    uint64_t done_index; /* last one told by `applied` */
    bool settling;       /* inside settle() or libraft: callbacks only queue */
};

/* End the process, or the simulator's voter: nothing can be done but to start again. */
void member_give_up(struct replica *r, const char *why);
/* The outcome of all items of a list. */
void member_answer(struct replica *r, struct list *items, enum err result);
/* libraft leads no more, or is not asked any more: answer the commands that wait, and report that
 * the leadership has ended. */
void member_resign(struct replica *r);
/* Begin anew, in this process, from an image of what is on the disk, which is taken. */
void member_begin(struct replica *r, struct log_image *image);
/* NULL: it was never met. */
struct log_peer *member_peer(struct replica *r, uint64_t voter);
struct item *member_enqueue(struct replica *r, uint64_t tag, size_t size);

#endif
