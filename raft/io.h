/* SPDX-License-Identifier: Apache-2.0
 *
 * Our `struct raft_io`: what libraft stands on. Disk, clock and network are
 * abstract (a log_store, now_us, a send callback), so the same code runs over
 * SQLite and links in production and in virtual time in the simulator.
 *
 * libraft's callbacks run from replica_io_tick/poll/receive only, never inside
 * the call that asked for them.
 *
 * A leader's beat is a message to each voter. Beats come every heartbeat while a voter may not know
 * all that is committed, and three in an election time-out while all is calm. Each carries the
 * number of the leader's round; what voters send in the leader's term repeats the last number they
 * heard in it. So an answer with a round's number shows that the voter had no later leader when the
 * round began, and most of them that nobody else led then: without an entry of the log.
 *
 * Of a calm beat half of the voters need not answer, by turns, as long as all have answered what
 * they were asked before: with the leader the others are most, so each beat still shows that most
 * hear it. Such a beat has no number. Who has heard a number in that term knows by this, and only
 * says what it refuses.
 */
#ifndef RAFT_IO_H
#define RAFT_IO_H

#include "raft/guard.h"
#include "raft/message.h"
#include "raft/voters.h"

#include "base/bytes.h"
#include "base/prng.h"
#include "storage/log/log.h"

#include <raft.h>

/* A rule to leave out, beside those of guard.h: for the simulator. */
enum { REPLICA_IO_ROUNDS = 64 /* only an answer to the last round confirms it */ };

/* What is known of one voter, at the place that it has in `voters`. */
struct replica_io_voter {
    raft_index told;    /* commit index that the leader of `told_term` sent it */
    uint64_t confirmed; /* the last round that it answered */
    bool awaited;       /* it was asked something since it answered last */
};

struct replica_io_config {
    const struct voters *voters; /* borrowed for the life of the io */
    struct log_store *store;     /* borrowed for the life of the io */
    struct log_image *image;     /* borrowed until raft_start() has loaded it */
    uint64_t seed;
    unsigned rules_off;      /* bits: guard_rule, REPLICA_IO_ROUNDS */
    size_t entries_size_max; /* of one message */
    void *context;
    /* A request with `own` as its tag is none of libraft's: it is told of, then freed. */
    const void *own;
    void (*done)(void *context, const struct log_request *request);
    void (*send)(void *context, uint64_t voter, struct bytes message);
    /* Reports that what the replica believes of its log is wrong. Must not return. */
    void (*broken)(void *context, const char *why);
};

struct replica_io {
    struct raft_io io; /* give this to raft_init() */
    struct raft *raft;
    struct replica_io_config config;
    struct guard guard;
    struct prng prng;
    uint64_t now_us;
    uint64_t next_tick_us; /* 0 = not started */
    uint64_t tick_us;
    uint64_t beat_us; /* last beat of mine as a leader */
    uint64_t calm_us; /* time between two beats when all is calm */
    uint64_t beats;   /* how many there were */
    bool halves;      /* the beat that goes out asks half of the voters */
    bool unasked;     /* the message that is taken needs no answer */
    struct replica_io_voter voter[LOG_VOTERS_MAX];
    raft_term told_term;
    uint64_t round;       /* last one that began; 0 = none */
    uint64_t heard_round; /* last one heard, in the term ... */
    raft_term heard_term;
    raft_io_tick_cb on_tick;
    raft_io_recv_cb on_message;
    raft_index next_index;      /* where the next append goes, when the queue is done */
    uint64_t stand_us;          /* when to stand without waiting for a time-out; 0 = not */
    raft_term held_term;        /* libraft has it and the disk has not; 0 = none */
    bool admitted;              /* may stand and vote */
    bool touched;               /* has taken part: a vote, a second term, a second entry */
    struct raft_io_send **sent; /* owned array: callbacks owed */
    size_t sent_count;
    size_t sent_max;
    struct buffer out; /* the message being sent */
    uint64_t bad_messages;
};

void replica_io_init(struct replica_io *io, struct raft *raft,
                     const struct replica_io_config *config);
/* Frees what is ours; libraft's memory is the heap's. */
void replica_io_fini(struct replica_io *io);

/* Stand for election `after_us` from now, unless a leader is heard of first. */
void replica_io_stand(struct replica_io *io, uint64_t after_us);
/* Begin a round, as leader: all voters are asked whether they still follow. */
void replica_io_begin_round(struct replica_io *io);
/* True if most of the voters answered the last round that began. */
bool replica_io_is_confirmed(const struct replica_io *io);
/* When libraft's clock has something to do: the next beat of who leads, the end of the patience of
 * who follows a leader; 0: at each tick. */
uint64_t replica_io_due_us(const struct replica_io *io);
/* Run libraft's clock if it is due. */
void replica_io_tick(struct replica_io *io, uint64_t now_us);
/* Hand over what the store has finished. */
void replica_io_poll(struct replica_io *io, uint64_t now_us);
/* Decode, guard, hand over. `from` must be one of the voters. */
void replica_io_receive(struct replica_io *io, uint64_t now_us, uint64_t from, struct bytes in);
/* The voter is not there. If it led, forget it, and stand for election `after_us` from now unless a
 * leader is heard of first. */
void replica_io_lost(struct replica_io *io, uint64_t voter, uint64_t after_us);
/* Put on the disk what libraft believes of its term and vote, before the caller goes on. */
void replica_io_keep_term(struct replica_io *io);
/* Call back the sends; true if there were any. */
bool replica_io_finish_sends(struct replica_io *io);

#endif
