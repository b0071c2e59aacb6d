/* SPDX-License-Identifier: Apache-2.0
 *
 * Which role may say which message to which other: the one table of it, for all
 * that a link carries.
 *
 * Pure. The link layer asks access_judge() about each frame that came before it
 * looks at anything else in it; what may not be said reaches nobody.
 * docs/security.md has this table: tests/wire/access_test.c compares them.
 *
 * A role is what the peer's certificate says (link/subject.h); in the clear, its
 * word. Whether a peer is the very process that a message is about, is for the
 * message's receiver to ask.
 */
#ifndef WIRE_ACCESS_H
#define WIRE_ACCESS_H

#include "base/metrics.h"
#include "wire/frame.h"
#include "wire/hello.h"

#include <stdbool.h>
#include <stdint.h>

/* To whom. */
enum { TO_C = 1, TO_N = 2, TO_G = 4, TO_O = 8, TO_ALL = TO_C | TO_N | TO_G | TO_O };

/* Each row: the message's name in the code, and in words; then to which roles it may be said by a
 * stranger (a peer whose link is not up), a coordinator, a node, a gateway, an operator. */
// clang-format off

/* Frames of enum frame_type, but for CONTROL, REQUEST and STREAM_REQUEST. A hello is judged as a stranger's, and once
 * more by the role that it names: may the two be linked? */
#define ACCESS_FRAMES(X)                                       \
    X(HELLO,     "hello",     TO_ALL, TO_ALL, TO_C | TO_N | TO_G, TO_C | TO_N, TO_C) \
    X(WELCOME,   "welcome",   TO_ALL, 0,      0,           0,      0)      \
    X(REFUSED,   "refused",   TO_ALL, 0,      0,           0,      0)      \
    X(PING,      "ping",      0,      TO_ALL, TO_ALL,      TO_ALL, TO_ALL) \
    X(PONG,      "pong",      0,      TO_ALL, TO_ALL,      TO_ALL, TO_ALL) \
    X(RAFT,      "Raft",      0,      TO_C,   0,           0,      0)      \
    X(ANSWER,    "answer",    0,      0,      TO_N | TO_G, 0,      0)      \
    X(STATE,     "state",     0,      0,      TO_N,        0,      0)      \
    X(STATE_ACK, "state ack", 0,      0,      TO_N,        0,      0)      \
    X(PUSH,      "push",      0,      0,      TO_G,        0,      0)      \
    X(STREAM_ANSWER, "stream answer", 0, 0,   TO_N | TO_G, 0,      0)      \
    X(STREAM_BEGIN,  "stream begin",  0, 0,   TO_N,        TO_N,   0)      \
    X(STREAM_JOIN,   "stream join",   0, 0,   TO_N,        TO_N,   0)      \
    X(STREAM_JOINED, "stream joined", 0, 0,   TO_N | TO_G, 0,      0)      \
    X(STREAM_GONE,   "stream gone",   0, 0,   TO_N | TO_G, 0,      0)      \
    X(STREAM_ACK,    "stream ack",    0, 0,   TO_N | TO_G, TO_N,   0)

/* Kinds of a request, of a stream or not; every kind that applies to it must be allowed. */
#define ACCESS_REQUESTS(X)                                                             \
    X(REQUEST,   "request",                              0, 0, TO_N, TO_N, 0) \
    X(CALL,      "request of an actor or a chain",       0, 0, TO_N, 0,    0) \
    X(FORWARDED, "one that was held or forwarded",       0, 0, TO_N, 0,    0)

/* Notes of enum note_type: bodies of requests about sessions. Nodes forward all of them. */
#define ACCESS_NOTES(X)                         \
    X(BIND,   "BIND",   0, 0, TO_N, TO_N, 0) \
    X(RESUME, "RESUME", 0, 0, TO_N, TO_N, 0) \
    X(LOST,   "LOST",   0, 0, TO_N, TO_N, 0) \
    X(PUSH,   "PUSH",   0, 0, TO_N, 0,    0) \
    X(KEEP,   "KEEP",   0, 0, TO_N, TO_N, 0) \
    X(RETURN, "RETURN", 0, 0, TO_N, TO_N, 0) \
    X(RENEW,  "RENEW",  0, 0, TO_N, TO_N, 0) \
    X(ACK,    "ACK",    0, 0, TO_N, TO_N, 0) \
    X(KICK,   "KICK",   0, 0, TO_N, TO_N, 0) \
    X(TRACE,  "TRACE",  0, 0, TO_N, TO_N, 0) \
    X(VALUES, "VALUES", 0, 0, TO_N, 0,    0) \
    X(SEND,   "SEND",   0, 0, TO_N, 0,    0)

/* Bodies of Control; _NOT_SET is one that has none that we know. */
#define ACCESS_BODIES(X)                                                              \
    X(_NOT_SET,       "empty, or of an unknown kind", 0, 0,                  0,    0,    0)    \
    X(MOVES,          "Moves",         0, TO_N | TO_G,        0,    0,    0)    \
    X(REGISTER_,      "Register",      0, 0,                  TO_C, 0,    0)    \
    X(REG_OK,         "RegOk",         0, TO_N,               0,    0,    0)    \
    X(REG_REFUSED,    "RegRefused",    0, TO_N,               0,    0,    0)    \
    X(BYE,            "Bye",           0, 0,                  TO_C, 0,    0)    \
    X(REMEMBER,       "Remember",      0, 0,                  TO_C, 0,    0)    \
    X(REMEMBERED,     "Remembered",    0, TO_N,               0,    0,    0)    \
    X(RECALL,         "Recall",        0, 0,                  TO_C, 0,    0)    \
    X(RECALLED,       "Recalled",      0, TO_N,               0,    0,    0)    \
    X(FORGOTTEN,      "Forgotten",     0, TO_N,               0,    0,    0)    \
    X(RENEW,          "Renew",         0, 0,                  TO_C, 0,    0)    \
    X(GRANT,          "Grant",         0, TO_N,               0,    0,    0)    \
    X(BARRED,         "Barred",        0, TO_N,               0,    0,    0)    \
    X(PREPARE,        "Prepare",       0, TO_N,               0,    0,    0)    \
    X(PREPARED,       "Prepared",      0, 0,                  TO_C, 0,    0)    \
    X(REFUSED,        "Refused",       0, 0,                  TO_C, 0,    0)    \
    X(STALE,          "Stale",         0, 0,                  TO_C, 0,    0)    \
    X(COMMIT,         "Commit",        0, TO_N | TO_G,        0,    0,    0)    \
    X(CANCEL,         "Cancel",        0, TO_N,               0,    0,    0)    \
    X(POLL,           "Poll",          0, 0,                  TO_C, 0,    0)    \
    X(POLL_ANSWER,    "PollAnswer",    0, TO_N,               0,    0,    0)    \
    X(GET_CONFIG,     "GetConfig",     0, 0,                  TO_C, TO_C, 0)    \
    X(CONFIG,         "ConfigAnswer",  0, TO_N | TO_G,        0,    0,    0)    \
    X(LEADER,         "Leader",        0, TO_N | TO_G | TO_O, 0,    0,    0)    \
    X(NOT_LEADER,     "NotLeader",     0, TO_N | TO_G | TO_O, 0,    0,    0)    \
    X(ADOPTED,        "Adopted",       0, 0,                  TO_N, TO_N, 0)    \
    X(ADMIN,          "Admin",         0, 0,                  0,    0,    TO_C) \
    X(ADMIN_REPLY,    "AdminReply",    0, TO_O,               0,    0,    0)    \
    X(DRAINING,       "Draining",      0, 0,                  TO_C, 0,    0)    \
    X(INSPECT,        "Inspect",       0, TO_N | TO_G,        0,    0,    0)    \
    X(INSPECT_ANSWER, "InspectAnswer", 0, TO_O,               TO_C, TO_C, 0)    \
    X(REPAIR,         "Repair",          0, TO_N | TO_G,        0,    0,    0)    \
    X(OPERATOR_REQUEST,         "OperatorRequest",        0, TO_N | TO_G,        0,    0,    0)    \
    X(OPERATOR_REQUEST_ANSWER,  "OperatorRequestAnswer",  0, 0,                  TO_C, TO_C, 0)  \
    X(ACTORS,         "Actors",        0, TO_N,               0,    0,    0)    \
    X(ACTORS_ANSWER,  "ActorsAnswer",  0, 0,                  TO_C, 0,    0)    \
    X(PROBE,          "Probe",         0, 0,                  TO_N, 0,    0)                  \
    X(SETTLE,         "Settle",        0, 0,                  TO_N, 0,    0)                  \
    X(SETTLED,        "Settled",       0, 0,                  TO_N, 0,    0)

/* Questions of an Admin message. */
#define ACCESS_WHATS(X)                                       \
    X(STATUS,       "status",       0, 0, 0, 0, TO_C) \
    X(RING,         "ring",         0, 0, 0, 0, TO_C) \
    X(WHERE,        "where",        0, 0, 0, 0, TO_C) \
    X(NODES,        "nodes",        0, 0, 0, 0, TO_C) \
    X(DRAIN,        "drain",        0, 0, 0, 0, TO_C) \
    X(REMOVE,       "remove",       0, 0, 0, 0, TO_C) \
    X(TXNS,         "txns",         0, 0, 0, 0, TO_C) \
    X(TXN,          "txn",          0, 0, 0, 0, TO_C) \
    X(RESOLVE,      "resolve",      0, 0, 0, 0, TO_C) \
    X(EVENTS,       "events",       0, 0, 0, 0, TO_C) \
    X(DAEMONS,      "daemons",      0, 0, 0, 0, TO_C) \
    X(QUARANTINE,   "quarantine",   0, 0, 0, 0, TO_C) \
    X(INSPECT,      "inspect",      0, 0, 0, 0, TO_C) \
    X(REPAIR,       "repair",       0, 0, 0, 0, TO_C) \
    X(UPGRADE,      "upgrade",      0, 0, 0, 0, TO_C) \
    X(PREVIEW,      "preview",      0, 0, 0, 0, TO_C) \
    X(WEIGHT,       "weight",       0, 0, 0, 0, TO_C) \
    X(MOVE,         "move",         0, 0, 0, 0, TO_C) \
    X(PIN,          "pin",          0, 0, 0, 0, TO_C) \
    X(PINS,         "pins",         0, 0, 0, 0, TO_C) \
    X(REMEMBERED,   "remembered",   0, 0, 0, 0, TO_C) \
    X(FORGET,       "forget",       0, 0, 0, 0, TO_C) \
    X(OPERATOR_REQUEST,       "operator_request",0, 0, 0, 0, TO_C) \
    X(ACTORS,       "actors",       0, 0, 0, 0, TO_C) \
    X(COORDINATORS, "coordinators", 0, 0, 0, 0, TO_C) \
    X(MAINTENANCE,  "maintenance",  0, 0, 0, 0, TO_C)

// clang-format on

enum access_message {
    ACCESS_NONE, /* no message: all of it may be said */
#define X(name, ...) ACCESS_FRAME_##name,
    ACCESS_FRAMES(X)
#undef X
#define X(name, ...) ACCESS_##name,
        ACCESS_REQUESTS(X)
#undef X
#define X(name, ...) ACCESS_NOTE_##name,
            ACCESS_NOTES(X)
#undef X
#define X(name, ...) ACCESS_BODY_##name,
                ACCESS_BODIES(X)
#undef X
#define X(name, ...) ACCESS_WHAT_##name,
                    ACCESS_WHATS(X)
#undef X
                        ACCESS_END
};

/* Of no peer whose link is up. */
enum { ROLE_STRANGER = 0, ACCESS_ROLES = ROLE_CLI + 1 };

/* "Admin coordinators" */
const char *access_text(enum access_message m);

/* The table. `from` may be ROLE_STRANGER. */
bool access_may(enum access_message m, unsigned from, enum link_role to);

/* ACCESS_NONE, or what in the frame may not be said: the first of them. Bytes that decode to
 * nothing at all are allowed: their decoder refuses them. */
enum access_message access_judge(const struct frame *frame, unsigned from, enum link_role to);

/* Count a refused message, by the peer's role; from any thread. */
void access_count(enum link_role from);
void access_put_metrics(struct metrics *m);

#endif
