/* SPDX-License-Identifier: Apache-2.0
 *
 * From one generation of the group to the next (raft/generation.h).
 *
 *              SEAL applied, or FOUND received         it is on the disk, and I am ...
 *     VOTES ------------------------------> FOUNDS ------------------------------> VOTES
 *     WAITS --------- FOUND received ------>   |                     ... not among them
 *     RETIRED ------- FOUND received ------>   +---------------------------------> RETIRED
 *
 *     VOTES    libraft runs, with this generation's voters
 *     FOUNDS   libraft is gone; state, voters and number are on their way to the disk, in one write
 *     WAITS    a new folder, in no group yet: --join-group
 *     RETIRED  once a voter: it says who are the voters now, and hands the state on
 *
 * Every message tells its sender's generation. One of another generation never reaches libraft:
 * who is behind asks (WANT) and gets the newer generation's voters and a state of it (FOUND), who
 * is ahead says so (NEWS). Only a folder that the generation knows by id and identity is given one,
 * and none takes one that does not know it: no wiped voter gets in, and no two groups mix.
 *
 *     u8 format (1)  u8 type  u16 generation, then by type:
 *     7 NEWS   nothing
 *     8 WANT   nothing
 *     9 FOUND  u32 size, generation; u64 index, term, configuration index;
 *              u32 configuration size, u32 data size; both
 *
 * Why a state given later is as good as the one at the SEAL: it is committed in that generation,
 * and its receiver has neither voted there nor confirmed anything.
 */
#ifndef RAFT_RECONFIGURATION_H
#define RAFT_RECONFIGURATION_H

#include "base/bytes.h"
#include "raft/generation.h"
#include "storage/log/log.h"

enum reconfiguration_stage {
    RECONFIGURATION_VOTES,
    RECONFIGURATION_FOUNDS,
    RECONFIGURATION_WAITS,
    RECONFIGURATION_RETIRED
};

/* Rules to leave out, beside guard_rule: for the simulator. */
enum reconfiguration_rule {
    RECONFIGURATION_STOPS = 8,    /* after the SEAL nothing has any effect */
    RECONFIGURATION_DURABLE = 16, /* a generation begins when it is on the disk */
    RECONFIGURATION_TERMS = 32    /* terms go on from one generation to the next */
};

enum { RECONFIGURATION_STRANGERS_MAX = 16 };

struct reconfiguration {
    uint8_t stage;          /* enum reconfiguration_stage */
    bool sealed;            /* `next` is decided: nothing that comes later counts */
    struct generation next; /* sealed, or being founded */
    uint64_t index;         /* of the SEAL, and its term */
    uint64_t term;
    struct log_request *found; /* owned: what is to go to the disk next; NULL = nothing */
    uint64_t tarries_until_us; /* without RECONFIGURATION_STOPS */
    bool led;                  /* this one led when it ended: it is to stand soon */
    uint64_t last_index;       /* on the disk, when libraft does not run */
    uint64_t ask_next;         /* who said hello with a later generation; 0 = nobody */
    uint64_t asked_us;         /* when it last asked for one */
    size_t ask_turn;           /* RETIRED, WAITS: who is asked next */
    bool reading;              /* a snapshot for those who asked is being read */
    uint64_t asking[RECONFIGURATION_STRANGERS_MAX]; /* who asked */
    size_t asking_count;
    /* Linked, and no voter of this generation as far as known here. */
    struct generation_member stranger[RECONFIGURATION_STRANGERS_MAX];
    size_t stranger_next;
};

struct replica;

/* Take generation and stage from the folder's image. Returns ERR_CORRUPT or ERR_INVALID if they
 * make no sense. */
MUST_CHECK enum err reconfiguration_open(struct replica *r, const struct log_image *image);
void reconfiguration_fini(struct replica *r);

/* Applying `command` at `index`. */
void reconfiguration_seal(struct replica *r, uint64_t index, struct bytes command);
/* True if nothing that libraft says has any effect any more. */
bool reconfiguration_is_sealed(const struct replica *r);
/* When libraft has returned: do what is decided. */
void reconfiguration_settle(struct replica *r);
/* Look at a message before libraft does: true if it is not for libraft. */
bool reconfiguration_receive(struct replica *r, uint64_t from, struct bytes message);
/* A request of the reconfiguration's is done; the caller frees it. */
void reconfiguration_done(struct replica *r, const struct log_request *request);
/* Time has passed. */
void reconfiguration_tick(struct replica *r);
/* Take what the disk has done while libraft does not run. */
void reconfiguration_poll(struct replica *r);
/* A new generation has begun here: tell the others. */
void reconfiguration_begun(struct replica *r);

#endif
