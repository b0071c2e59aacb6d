/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator asks of the values of one durable actor (`ringhold actor`), and what it answers.
 *
 * The question is the payload of a session note (NOTE_VALUES, wire/session.h), so it comes to the
 * actor as a request does, in the order of its mailbox. It travels from the coordinator that was
 * asked to the owner's node as bytes, and the answer back likewise (docs/protocol.md).
 *
 * Questions and answers are pages: no process between the operator and the actor ever holds more
 * than one. A change is a batch of rows, of which each page is a part, cut anywhere: the actor
 * gathers them, and the last one makes one commit of all.
 *
 * Little endian. Golden vectors in tests/wire/values_ask_test.c.
 */
#ifndef WIRE_VALUES_ASK_H
#define WIRE_VALUES_ASK_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/cursor.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    VALUES_PAGE_SIZE = 256 * 1024,       /* bytes of rows in one page, at most */
    VALUES_BATCH_MAX = 65 * 1024 * 1024, /* bytes of a batch: all that an actor may have */
    VALUES_ASK_MAX = VALUES_PAGE_SIZE + 64,
};

enum values_verb {
    VALUES_READ = 1,   /* some values, from a place on */
    VALUES_CHANGE = 2, /* a page of a batch */
};

struct values_ask {
    uint8_t verb; /* enum values_verb */
    /* READ */
    bool one;        /* this value alone; else those behind it, too */
    uint32_t offset; /* so much of the value of `key` is known; 0 and not `one`: begin behind it */
    struct bytes key;
    /* CHANGE */
    bool last;         /* the batch is whole: do it */
    bool replace;      /* LAST: values that it does not name are deleted */
    uint64_t batch;    /* random: whose page it is */
    uint32_t at;       /* bytes of the batch before this page; 0 = it begins */
    struct bytes page; /* rows */
};

/* Append it. READ: u8 verb, u8 flags (1 = one), u32 offset, the key. CHANGE: u8 verb, u8 flags (1 =
 * last, 2 = replace), u64 batch, u32 at, the page. */
void values_ask_put(struct buffer *out, const struct values_ask *a);
/* ERR_CORRUPT: it is none. */
MUST_CHECK enum err values_ask_get(struct bytes in, struct values_ask *a);

/* True once of each question that has several pages, and when something is changed: for whoever
 * notes who asked. */
bool values_ask_is_noted(const struct values_ask *a);

/* A row of a batch. */
struct values_row {
    bool gone;        /* delete it; `value` is empty */
    struct bytes key; /* 1..255 bytes */
    struct bytes value;
};
/* Append it: u8 gone, u8 size of the key, u32 size of the value, key, value. */
void values_row_put(struct buffer *out, const struct values_row *row);
/* Take the next off; it is borrowed. False: that was all, or `in->bad`. */
bool values_row_next(struct reader *in, struct values_row *row);

enum values_status {
    VALUES_DONE = 0,
    VALUES_VOLATILE = 1,    /* its kind is not durable */
    VALUES_FULL = 2,        /* there would be more than an actor may have: nothing was changed */
    VALUES_INTERRUPTED = 3, /* the pages before this one are not here: begin again */
    VALUES_MALFORMED = 4,   /* the batch makes no sense: nothing was changed */
    VALUES_STATUS_LAST = VALUES_MALFORMED,
};

/* The answer. One that is empty says that the change could not be saved. */
struct values_answer {
    uint8_t status;      /* enum values_status */
    bool more;           /* READ: there is more behind these */
    uint32_t count;      /* CHANGE, the last page: of its rows, those that changed something */
    uint64_t number;     /* of the actor's last commit: another one = its values may be others */
    struct bytes pieces; /* READ */
};
/* Append its head, 14 bytes: u8 status, u8 more, u32 count, u64 number. Pieces follow. */
void values_answer_put(struct buffer *out, const struct values_answer *a);
MUST_CHECK enum err values_answer_get(struct bytes in, struct values_answer *a);

/* A value, or a part of it. */
struct values_piece {
    struct bytes key;
    uint32_t whole;     /* bytes of the value */
    uint32_t at;        /* of these, before this part */
    struct bytes bytes; /* the part */
};
/* Append it: u8 size of the key, u32 whole, u32 at, u32 size of the part, key, part. */
void values_piece_put(struct buffer *out, const struct values_piece *p);
/* Take the next off; it is borrowed. False: that was all, or `in->bad`. */
bool values_piece_next(struct reader *in, struct values_piece *p);

#endif
