/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by sim/raft/group.c and sim/raft/group_changes.c.
 */
#ifndef SIM_RAFT_GROUP_INSIDE_H
#define SIM_RAFT_GROUP_INSIDE_H

#include "raft/inside.h"
#include "raft/voters.h"
#include "sim/raft/disk.h"
#include "sim/raft/group.h"
#include "storage/log/number.h"
#include "storage/log/watermark_record.h"
#include "storage/state/state_sqlite.h"

#define GROUP_WISH UINT64_MAX /* tag of a change of voters */

/* One machine with its folder, and the replica in it. */
struct group_member {
    struct fleet *fleet;
    unsigned at;
    uint64_t id; /* of its folder, 0 = it has none */
    bool founder;
    bool lost;
    struct replica *replica; /* NULL = down */
    struct raft_disk disk;
    struct state state;            /* valid while the replica is there */
    struct state_db *db;           /* likewise; owned: its mirror, of which snapshots are made */
    size_t applied;                /* commands */
    uint64_t index;                /* of the last entry */
    uint32_t format;               /* of the fleet, as the replica knows it; 0 = not yet */
    struct number *watermark;      /* owned; NULL while down, or without shipped folders */
    struct watermark_record found; /* that it began with */
    struct watermark_record noted;
    struct watermark_record writing;
    bool noting;  /* a write is under way, or the pause behind it */
    bool polling; /* a poll is due */
    struct net_end *fellow[FLEET_COORDINATORS_MAX];
};

/* One applied command. */
struct group_entry {
    uint64_t index;
    uint8_t *bytes; /* owned */
    size_t size;
    uint64_t hash; /* of the state behind it */
};

enum { GROUP_TERMS_MAX = 1 << 14, GROUP_ADDRESS_SIZE = 32 };

struct sim_group {
    struct group_member member[FLEET_COORDINATORS_MAX];
    struct voters founders;
    struct group_entry *log; /* owned */
    size_t count;
    size_t cap;
    uint64_t last_id;
    uint64_t identities;
    uint8_t leader_of[GROUP_TERMS_MAX]; /* told to lead in that term: machine + 1 */
    struct generation newest;
    struct generation_wish wish[GENERATION_VOTERS_MAX]; /* of the operator, until it is done */
    size_t wish_count;                                  /* 0 = none */
    unsigned asked;                                     /* … of this machine */
    uint64_t unknown_us; /* when one ended, perhaps done: the next leader knows */
    unsigned target;     /* so many coordinators are wanted, 0 = not yet drawn */
    struct group_counts counts;
};

/* A new folder with an id of its own, that waits to join; the machine is down. */
void group_new_folder(struct fleet *f, unsigned at);
void group_address(const struct fleet *f, unsigned at, char *out, size_t size);
/* A replica may be called, and calls back; `false`: it is not there. */
bool group_enter(struct fleet *f, unsigned at);
void group_leave(struct fleet *f, unsigned at);
/* The machine whose folder has this id; FLEET_COORDINATORS_MAX = none. */
unsigned group_machine(const struct fleet *f, uint64_t id);
void group_wish_done(struct fleet *f, enum err error);

/* ---- sim/raft/group_watermark.c */

/* The replica is there. */
void group_watermark_open(struct group_member *m);
void group_watermark_note(struct group_member *m, uint64_t index);
void group_watermark_lead(const struct group_member *m);
void group_watermark_close(struct group_member *m);

#endif
