/* SPDX-License-Identifier: Apache-2.0
 *
 * A line to a database elsewhere: what PostgreSQL and Redis do each in its own way. A line decides
 * nothing (remote.h does): it says what it was told. It may block, but for no longer than its
 * timeouts.
 */
#ifndef STORAGE_ACTORS_REMOTE_LINE_H
#define STORAGE_ACTORS_REMOTE_LINE_H

#include "storage/actors/verdict.h"

enum {
    LINE_WHY_SIZE = 300,
    LINE_CONNECT_MS = 3000,
    LINE_SILENCE_MS = 10000, /* no byte came for so long: it is broken */
};

/* For whom a line is opened. */
enum line_use {
    LINE_NODE,   /* a node: waits while an operator is alone. What is missing is made */
    LINE_BESIDE, /* an operator, whoever else is there: send() and settle() are not for it */
    LINE_ALONE,  /* an operator, as long as there is no node; none comes before it is closed */
    LINE_TARGET, /* likewise. What is missing is made, and a copy may be unfinished */
};

/* What the database said of a task. */
enum line_said {
    LINE_NOTHING, /* the line broke: it is done, or not, or will be */
    LINE_DONE,    /* and the actor's row is as in `row` */
    LINE_ROW,     /* it was not done: the row is another than the task is for, see `row` */
    LINE_REFUSED, /* it was not done, and can't be */
    LINE_CROWDED, /* it was not done, for another of the call spoilt it: alone it may be */
};

struct line_answer {
    uint8_t said; /* enum line_said */
    struct store_row row;
};

/* A commit that may be done, or yet to be. */
struct doubt {
    struct store_task *task; /* whose result it becomes; NULL = that was told already */
    struct store_row commit; /* what it would make of its actor's row */
    uint64_t raised;         /* the number that its row shall have if it is the one before */
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[STORE_ID_MAX];
};

struct store_line {
    /* Connect anew, and make sure that the database is fit: it can be written, what it has said is
     * on its disk, its schema is this version's and is made if there is none. False: `why`. */
    bool (*open)(struct store_line *l);
    /* Do the tasks in one round trip, and write what came of each to `answer`, which are all
     * LINE_NOTHING before. CLAIM: LINE_DONE if the row has the task's fence now, and all that the
     * actor keeps is in the task's bytes. False: the line is closed, `why`. */
    bool (*send)(struct store_line *l, struct store_task *const *task, size_t count,
                 struct line_answer *answer);
    /* Have each commit be done or never: raise the number of its row past it if that is the one
     * before, under the same fence. Writes LINE_ROW and the row as it was found. As send() else. */
    bool (*settle)(struct store_line *l, const struct doubt *doubt, size_t count,
                   struct line_answer *answer);
    /* Close the line and free it. */
    void (*free)(struct store_line *l);
    char why[LINE_WHY_SIZE]; /* it is not open, in one line without quotes */
    enum line_use use;       /* set before open() */
    uint64_t version;        /* of the schema that open() found */
};

/* What is said when it is closed for the other ones. */
#define LINE_IN_USE   "somebody else has it open: stop the nodes"
#define LINE_OCCUPIED "an operator's command has it alone; wait for its end"

/* Note the version of its schema. NULL, or why it is not to be used. */
const char *line_take_version(struct store_line *l, uint64_t version);
/* Log that a row of the task's actor is over the limits (changes.h). */
void line_complain_of(const struct store_task *t);
/* Write `text` as `why`: it may have several lines. */
void line_explain(struct store_line *l, const char *text);

#endif
