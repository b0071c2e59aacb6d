/* SPDX-License-Identifier: Apache-2.0
 *
 * What can go wrong outside our code. One list; the enum, the names and the
 * messages are made from it, so they cannot drift apart.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_LIST(X)                                             \
    X(ERR_OK, "ok")                                             \
    X(ERR_IO, "disk or network failed")                         \
    X(ERR_CORRUPT, "stored or received bytes can't be decoded") \
    X(ERR_TOO_BIG, "value is over its limit")                   \
    X(ERR_NOT_FOUND, "not found")                               \
    X(ERR_NOT_LEADER, "this coordinator does not lead")         \
    X(ERR_BUSY, "the queue is full, try again")                 \
    X(ERR_CONFLICT, "conflicts with existing data")             \
    X(ERR_REFUSED, "the other side refused")                    \
    X(ERR_LOCKED, "another process uses it")                    \
    X(ERR_FOREIGN, "belongs to another cluster or version")     \
    X(ERR_TIMEOUT, "it took too long")                          \
    X(ERR_INVALID, "the request is not valid")                  \
    X(ERR_STOPPED, "shutting down")

enum err {
#define X(name, text) name,
    ERR_LIST(X)
#undef X
};

/* Put on every function that returns an `enum err`. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* "ERR_IO", for logs. */
const char *err_name(enum err e);

/* "disk or network failed", for people. */
const char *err_text(enum err e);

#endif
