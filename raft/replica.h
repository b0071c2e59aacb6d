/* SPDX-License-Identifier: Apache-2.0
 *
 * One member of the coordinators' Raft group: libraft's core behind our own
 * raft_io, with the guard rules that make libraft 0.15.0 safe (docs/raft.md).
 * Named replica_*, because raft_* belongs to libraft.
 *
 * Commands go in by replica_propose() on the leader and come out, in one order,
 * by the `apply` callback on every member. At most one Raft entry is in flight:
 * commands that wait meanwhile travel as a batch in the next entry.
 *
 * Everything here runs on one thread (the loop); only `wake` may come from the
 * storage worker. Callbacks are made from replica_tick/receive/poll only, never
 * from inside propose or barrier, and may call propose and barrier.
 * Any write error to the log ends the process (exit 74): a replica that does
 * not know what is on its disk must not speak.
 */
#ifndef RAFT_REPLICA_H
#define RAFT_REPLICA_H

#include "base/bytes.h"
#include "base/err.h"
#include "raft/generation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REPLICA_VOTERS_MAX = 5,
    REPLICA_COMMAND_SIZE_MAX = 8 << 20, /* one command */
    REPLICA_BATCH_SIZE_MAX = 1 << 20,   /* commands that share an entry, unless one is larger */
    REPLICA_WAITING_SIZE_MAX = 64 << 20 /* commands waiting for their entry */
};

struct replica_config {
    uint64_t id; /* mine, 1.. */
    /* All voters that found the group, mine included; the same on each. A folder that knows of a
     * later generation goes by that. */
    uint64_t voter[REPLICA_VOTERS_MAX];
    const char *address[REPLICA_VOTERS_MAX]; /* where they are; borrowed during open */
    size_t voter_count;                      /* 1, 3 or 5; with `joining` none */
    bool joining;          /* an empty folder waits to be taken into a group: replica_change() */
    const char *directory; /* holds raft.db; made if missing; borrowed during open */
    const char *cluster;   /* cluster name; a folder of another is refused */
    uint64_t seed;         /* randomness of election time-outs; differs by voter */
    uint32_t election_ms;  /* 500 */
    uint32_t heartbeat_ms; /* 50 */
    uint32_t snapshot_entries; /* entries between snapshots; 1024 */
    uint32_t trailing_entries; /* entries kept behind a snapshot; 256 */
    uint64_t readmit;          /* voter id whose recorded identity is to be forgotten, 0 = none */
};

struct replica_events {
    void *context;
    /* One command, in log order. `index` is the Raft entry's; commands of one batch share it. `tag`
     * is what replica_propose() was given if it was proposed here in this term, else 0.
     * What it does to the state must not depend on the tag; must not fail. */
    void (*apply)(void *context, uint64_t index, uint64_t tag, struct bytes command);
    /* Everything up to entry `index` is done: commit the database transaction. After each entry
     * with commands; entries without any (barriers) may be reported several at once. */
    void (*applied)(void *context, uint64_t index);
    /* Append a snapshot of the state as of the last applied index. */
    void (*snapshot)(void *context, struct buffer *out);
    /* Replace the state by a snapshot of `index`. Borrowed bytes. False: corrupt; the process ends
     * (exit 70). */
    bool (*restore)(void *context, uint64_t index, struct bytes snapshot);
    /* Leading: a barrier of my own term is applied, so my state is current. Not leading: stop all.
     */
    void (*role)(void *context, bool leading, uint64_t term);
    /* Outcome of a propose or barrier: ERR_OK = applied (or all before it applied); ERR_NOT_LEADER
     * = not taken; ERR_TIMEOUT = unknown, leadership was lost meanwhile. Exactly once a tag, and
     * when leadership is lost before role(false). */
    void (*done)(void *context, uint64_t tag, enum err result);
    /* Send to a voter over the caller's link; may be lost. Borrowed bytes. Must only queue. */
    void (*send)(void *context, uint64_t voter, struct bytes message);
    /* Other voters from now on; restore() was called before if I am one of them. NULL: not told. */
    void (*generation)(void *context, const struct generation *generation);
    /* From any thread: call replica_poll() on the loop soon. Also from inside propose, barrier
     * and transfer. Must only signal. */
    void (*wake)(void *context);
};

struct replica;

/* Open or create the folder's raft.db, take its lock, verify it. No callback is made yet: the
 * first tick restores the snapshot and starts the voter. On error says why in the log: ERR_LOCKED
 * another process, ERR_FOREIGN other cluster, id, voter set or version, ERR_CORRUPT, ERR_IO,
 * ERR_INVALID the config makes no sense. */
MUST_CHECK enum err replica_open(struct replica **out, const struct replica_config *config,
                                 const struct replica_events *events, uint64_t now_us);
/* Crash-only: stop without flushing what is not acknowledged. No callback is made. Takes NULL. */
void replica_close(struct replica *r);

/* When replica_tick() has something to do at the latest; 0: call it soon, as commands or an
 * election are under way. */
uint64_t replica_due_us(const struct replica *r);
/* Call every heartbeat_ms / 2 or so, or by replica_due_us(). */
void replica_tick(struct replica *r, uint64_t now_us);
/* Call on `wake`, and after a batch of receive() or propose(). Cheap when there is nothing. */
void replica_poll(struct replica *r, uint64_t now_us);
/* Take a message of an authenticated voter that replica_meet() accepted; bounds-checked here, bad
 * bytes and unknown senders are counted and dropped. */
void replica_receive(struct replica *r, uint64_t now_us, uint64_t from, struct bytes message);

/* The links to `voter` ended, as when its process did. If it led, this voter does not wait for an
 * election time-out: it stands a moment later, the first of those who are left before the next, so
 * that they don't split the votes. A false alarm does no harm: nobody votes who hears the leader.
 */
void replica_lost(struct replica *r, uint64_t now_us, uint64_t voter);

/* Queue one command (copied). `tag` comes back in `done`. ERR_NOT_LEADER, ERR_BUSY, ERR_TOO_BIG:
 * nothing queued, `done` is not called. */
MUST_CHECK enum err replica_propose(struct replica *r, uint64_t tag, struct bytes command);
/* `done` when everything proposed before is applied and leadership was confirmed since. */
MUST_CHECK enum err replica_barrier(struct replica *r, uint64_t tag);
/* Hand leadership to another voter, for a planned stop. Commands wait meanwhile; if nobody takes
 * it within an election time-out, all goes on as before. */
void replica_transfer(struct replica *r);

/* The fleet's format is this one from now on: versions that do not read it shall refuse my folder.
 * Durable on return. */
void replica_set_format(struct replica *r, uint32_t fleet_format);

/* ---- other voters (docs/raft.md#other-voters) ---- */

/* End this generation, on the leader, and begin the next with the voters of `wish`: ids, addresses,
 * and whether they are linked (and empty: wait to join); their identities are filled in. `done`
 * with ERR_OK: it is decided; leadership is over then, for all. ERR_REFUSED: `why` says it. */
MUST_CHECK enum err replica_change(struct replica *r, uint64_t tag, struct generation_wish *wish,
                                   size_t count, char *why, size_t why_size);
/* What replica_change() would say now; nothing is changed but `wish`, likewise. */
MUST_CHECK enum err replica_may_change(struct replica *r, struct generation_wish *wish,
                                       size_t count, char *why, size_t why_size);
/* Return the generation as it is now; borrowed until it changes. */
const struct generation *replica_generation(const struct replica *r);

enum replica_part { REPLICA_VOTES, REPLICA_WAITS, REPLICA_RETIRED };
/* Return whether the replica votes, waits to be taken in, or is no voter any more. */
enum replica_part replica_part(const struct replica *r);

/* A coordinator's hello that is of another generation, or waits to join: as replica_meet(), only
 * that it cannot vote here. If it knows of a later generation than I do, it is asked soon. */
MUST_CHECK enum err replica_meet_stranger(struct replica *r, uint64_t id, uint64_t identity,
                                          uint64_t generation);

/* ---- identity of voters: a wiped voter could vote twice (docs/raft.md) ---- */

/* My folder's random identity, drawn when it was created. */
uint64_t replica_identity(const struct replica *r);
/* True until this folder has taken part in a group: no vote, no term but the first, no entry but
 * the first. Changes: a hello must carry the value of its moment. */
bool replica_pristine(const struct replica *r);
/* Judge a peer's hello: record its identity durably the first time; ERR_REFUSED if the same id came
 * with another identity before (its folder was wiped or replaced) or is none of the voters: its
 * messages must be dropped. Until a voter was met, messages from it are dropped here. */
MUST_CHECK enum err replica_meet(struct replica *r, uint64_t voter, uint64_t identity,
                                 bool pristine);

/* The remedy for a wiped voter, offline: turn a copy of another voter's whole folder, taken while
 * all are stopped, into the folder of config->id: new identity, no vote, same log. The others must
 * then start once with config.readmit = that id. Uses directory, cluster, id and voters. Logs and
 * returns as replica_open(), ERR_CONFLICT: it is that voter's own folder, ERR_NOT_FOUND. */
MUST_CHECK enum err replica_adopt(const struct replica_config *config);

struct replica_status {
    bool leading;
    uint64_t term;
    uint64_t leader; /* voter id, 0 = unknown */
    uint64_t applied_index;
    uint64_t last_index;
    uint64_t first_index;    /* of the log kept */
    uint64_t snapshot_index; /* 0 = none */
    uint64_t bad_messages;
    uint64_t waiting; /* commands and barriers not yet in an entry */
    bool admitted;    /* may stand and vote: it has met the others, or caught up */
};
void replica_status(const struct replica *r, struct replica_status *out);

#endif
