/* SPDX-License-Identifier: Apache-2.0
 *
 * The saved answers of one durable actor: a request's name -> what it was answered (decision 090).
 * An answer is saved by the commit of what its request changed, so a request that is asked again,
 * since its node died, is answered, or it has not run.
 *
 *     (none) --answers_begin()--> BEGUN --answers_save()--> KEPT --too many, or old--> forgotten
 *
 * The oldest are forgotten first. An asker's numbers grow, so one mark for each asker, its greatest
 * number that was forgotten, tells what may have been.
 *
 * Pure: each change is appended to a commit as bytes of storage/actors/changes.h.
 */
#ifndef NODE_DURABLE_ANSWERS_H
#define NODE_DURABLE_ANSWERS_H

#include "base/bytes.h"
#include "base/list.h"
#include "base/table.h"
#include "wire/record.h"

#include <stdbool.h>

enum {
    ANSWERS_MAX = 4096,             /* of one actor */
    ANSWERS_SIZE_MAX = 1024 * 1024, /* bytes of their bodies */
    ANSWERS_BODY_MAX = 64 * 1024,   /* of one; what is longer is not kept, its name is */
    ANSWERS_MARKS_MAX = 64,
    ANSWERS_AGE_MS = 600000, /* nobody asks again after that: ten times the longest deadline */
};

/* What is known of a request. */
enum answer_known {
    ANSWER_NONE,  /* it did not run, or changed nothing */
    ANSWER_KEPT,  /* it ran */
    ANSWER_BEGUN, /* a part of it was saved, and it never ended */
    ANSWER_GONE,  /* it ran, or may have; what it was answered is not kept */
};

/* So far was forgotten what an asker asked. */
struct answer_mark {
    uint64_t asker;
    uint64_t number;
    uint64_t at_us;
};

struct answers {
    struct table by_name; /* struct saved_answer; owned */
    struct list all;      /* the oldest first */
    size_t count;
    size_t size;              /* of their bodies */
    uint64_t order;           /* of the newest */
    struct answer_mark *mark; /* owned; NULL = none yet; the one that grew last is the last */
    size_t mark_count;
    bool others;        /* askers that have no mark any more had one … */
    uint64_t others_us; /* … until then */
};

void answers_init(struct answers *a);
void answers_fini(struct answers *a);

/* Look a request up that is asked again. KEPT: its answer is in `code` and `body`, which is
 * borrowed until the next change. */
enum answer_known answers_find(const struct answers *a, struct request_name name, uint64_t now_us,
                               uint8_t *code, struct bytes *body);
/* A part of a request is saved by the commit `out`, and it goes on. */
void answers_begin(struct answers *a, struct request_name name, uint64_t now_us,
                   struct buffer *out);
/* The request has ended, and what it is answered is saved by the commit `out`; what is too much is
 * forgotten by the same. */
void answers_save(struct answers *a, struct request_name name, uint8_t code, struct bytes body,
                  uint64_t now_us, struct buffer *out);

/* Fill an empty table with the answers among what changes_put() wrote. Their age begins now. False:
 * one is none. */
bool answers_load(struct answers *a, struct bytes all, uint64_t now_us);

#endif
