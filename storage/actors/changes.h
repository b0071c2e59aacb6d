/* SPDX-License-Identifier: Apache-2.0
 *
 * What a durable actor keeps, as bytes: the changes that a commit brings to its store, and all that
 * the store gives back when it loads the actor. There are five things: named values, saved answers,
 * alarms, sends that are not taken yet, and what was taken of others' sends. Each has a table of
 * its own in the store; a row is found by kind, id and key.
 *
 * Pure. The bytes stay in one process, between its workers and its store; they are in no file and
 * on no wire.
 */
#ifndef STORAGE_ACTORS_CHANGES_H
#define STORAGE_ACTORS_CHANGES_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHANGES_KEY_MAX = 255,           /* bytes of a key, 1 or more */
    CHANGES_VALUE_MAX = 1024 * 1024, /* bytes of a value */
};

/* Greatest time of an alarm, in ms since 1970, and between two of a periodic one: year 9999. Any
 * two of them can be added. */
static const uint64_t CHANGES_MS_MAX = 253402300799999;

/* The table that a change is for. */
enum change_of {
    CHANGE_VALUE,  /* key: its name. bytes: the value */
    CHANGE_ANSWER, /* key: the request's name. bytes: its answer (node/durable/answers.h) */
    CHANGE_ALARM,  /* key: its name. bytes: what it brings */
    CHANGE_SEND,   /* key: its number, the greatest byte first. bytes: the kind of its receiver (2
                      bytes, the least first), the size of the id, the id, the payload */
    CHANGE_TAKEN,  /* key: a sender (node/durable/inbox.h). bytes: the number of its last send */
};
enum { CHANGE_COUNT = CHANGE_TAKEN + 1 };

/* A row, as it is from now on. Borrowed. */
struct store_change {
    enum change_of of;
    struct bytes key;
    bool gone; /* there is no such row any more; `bytes` is empty */
    struct bytes bytes;
    uint64_t due_ms;   /* ALARM: when, in ms since 1970 */
    uint64_t every_ms; /* ALARM: 0 = once */
};

/* Append the change to `out`. */
void changes_put(struct buffer *out, const struct store_change *c);
/* Take the next change off the front of `all`, bytes of changes_put(); it borrows them. False: that
 * was all. */
bool changes_next(struct bytes *all, struct store_change *c);
/* True if the row is within the limits above, as what somebody else wrote into a store may not be.
 */
bool change_is_good(const struct store_change *c);

#endif
