/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream at the node that serves it: what was taken, the log of answers, and
 * the fences that refusals leave.
 *
 *     frame -> server_open() -> server_take() of each request -+-> run now, or queue
 *                                                              |      |
 *                                     server_judge() <- comes to run -+
 *     answer -> server_answer(), server_refuse() -> log -> network; kept until `ack`
 *
 * A taken request gets exactly one entry in the log, whoever ends it (R6). The
 * log is what a broken link is joined again from and what says that a request was
 * taken before, so there is no record of a request that is over. Rules Rn are in
 * stream/README.md; a lane is a session and an entity, here by its position on the
 * ring. Pure; no memory but chunks while requests are neither taken nor answered.
 */
#ifndef STREAM_SERVER_H
#define STREAM_SERVER_H

#include "base/mutant.h"
#include "stream/sendlog.h"

enum { STREAM_FENCES = 64 };

/* A forward that is unanswered. */
struct server_passed {
    struct server_passed *next; /* of those whose positions share a place in server.passed */
    uint64_t position;
    uint64_t to; /* the incarnation that it went to */
};

struct stream_server {
    struct sendlog log;  /* of answers; said.ack is the number of the last request taken */
    uint64_t open;       /* taken, and without an entry */
    uint64_t connection; /* the caller's name of it; 0 = none */
    uint64_t epoch;      /* of the newest connection */
    uint64_t fence_max;  /* log number of the last refusal, … */
    uint64_t fence[STREAM_FENCES];               /* … and by position */
    struct server_passed *passed[STREAM_FENCES]; /* forwards that are unanswered, by position */
    size_t passed_count;                         /* in all */
    bool left;                                   /* nothing more is taken */
    bool dead;                                   /* nothing of it is run any more, nor answered */
};

/* A stream that nobody has begun yet. `chunks` is borrowed for life. */
void server_init(struct stream_server *s, struct stream_chunks *chunks, uint64_t asker,
                 uint64_t incarnation);
/* The stream is over: the asker is dead (R14), came anew, or was away for T_gone (R15). What is
 * queued of it is to be dropped by server_judge(), what runs goes on. Gives the chunks back. */
void server_dead(struct stream_server *s);
/* True: it is dead, and nobody has to end anything of it: it may be freed. */
static inline bool server_over(const struct stream_server *s)
{
    return s->dead && s->open == 0;
}
/* True if the stream may be forgotten after T_gone. A forward of it that is under way could still
 * run. */
static inline bool server_may_forget(const struct stream_server *s)
{
    return s->connection == 0 && (s->passed_count == 0 || mutant(M_FORGETFWD));
}

/* ---- connections */

enum server_join {
    SERVER_JOINED,  /* say JOINED, then the log: sendlog_unsent() */
    SERVER_ANEW,    /* the asker has begun a new stream: end this one, join a fresh one */
    SERVER_OLD,     /* a newer connection came before, or this one has a part of a frame, behind
                       which JOINED can't stand: let go of it */
    SERVER_GARBAGE, /* it claims to have what never was */
};
/* BEGIN or JOIN came by a connection (not 0). From here on nothing of another one is taken (R2). */
enum server_join server_join(struct stream_server *s, uint64_t connection, enum stream_frame type,
                             const struct stream_head *head);
/* What JOINED says, behind SERVER_JOINED. */
static inline struct stream_head server_joined(struct stream_server *s)
{
    return sendlog_say(&s->log, s->epoch);
}
/* That connection is gone. */
static inline void server_lost(struct stream_server *s, uint64_t connection)
{
    s->connection = s->connection == connection ? 0 : s->connection;
}

enum server_open {
    SERVER_OPEN,     /* take its requests, in their order */
    SERVER_HEARD,    /* an ACK, or requests behind LEFT: there is nothing to take */
    SERVER_WAIT,     /* it is of a ring that is not known here: keep it, and what comes behind it by
                        this connection, until it is (R5); its `ack` was heard */
    SERVER_NOT_MINE, /* of another connection than the stream's: let go of that */
    SERVER_BAD,      /* numbers that cannot be: let go of the connection */
};
/* REQUEST or ACK came. `version` is of the ring that is adopted here. */
enum server_open server_open(struct stream_server *s, uint64_t connection,
                             const struct stream_head *head, uint64_t version);

/* ---- requests */

enum server_verdict {
    SERVER_RUN,     /* it is to be run, or queued */
    SERVER_FOLLOWS, /* likewise, but one of its position was forwarded and is unanswered: forward it
                       there if that is the owner, else refuse it (beside) */
    SERVER_AGAIN,   /* it was taken before: pass over it (R1) */
    SERVER_BEHIND,  /* one before it was refused: it has been refused, too (R7) */
    SERVER_DROP,    /* the stream is dead: end it by server_answer(), which says nothing */
};

/* The newest forward of that position that is unanswered; NULL = there is none. */
struct server_passed *server_passed_at(const struct stream_server *s, uint64_t position);

/* The entry of one that does not run, with the fence that keeps back what its asker sent behind it
 * before it heard of this (R7). */
void server_refuse(struct stream_server *s, uint64_t rid, uint64_t position, uint8_t code,
                   uint64_t aux);

/* The entry of one of which nobody here knows whether it ran. It may be asked again, so it has a
 * fence, too (R19). */
void server_unknown(struct stream_server *s, uint64_t rid, uint64_t position);

/* True if a refusal keeps the request back: then its entry is made, as behind SERVER_BEHIND. */
static inline bool server_is_behind(struct stream_server *s, uint64_t rid, uint64_t position,
                                    uint64_t ack)
{
    if (__builtin_expect(ack >= s->fence_max, true) || ack >= s->fence[position % STREAM_FENCES]) {
        return false;
    }
    server_refuse(s, rid, position, STREAM_CODE_BEHIND, 0);
    return true;
}
/* The name of a request that came by the stream. */
static inline struct request_name server_name(const struct stream_server *s,
                                              const struct stream_request *r)
{
    const bool anew = r->again && mutant(M_NAMEDANEW);

    return r->name.asker != 0 && !anew
               ? r->name
               : (struct request_name){s->log.said.to, anew ? ~r->rid : r->rid};
}

/* True: it has taken nothing, and nothing was ever in its log. */
static inline bool server_is_new(const struct stream_server *s)
{
    return s->log.said.ack == 0 && s->log.next == 1;
}
/* Judge whether a request may run now whose frame had that `ack`; ask again when one that was
 * queued comes to run (R7). */
static inline enum server_verdict server_judge(struct stream_server *s, uint64_t rid,
                                               uint64_t position, uint64_t ack)
{
    if (!mutant(M_REFUSERUN) && server_is_behind(s, rid, position, ack)) {
        return SERVER_BEHIND;
    }
    if (__builtin_expect(s->dead, false)) {
        return SERVER_DROP;
    }
    return __builtin_expect(s->passed_count > 0, false) && server_passed_at(s, position) != NULL &&
                   !mutant(M_BESIDE)
               ? SERVER_FOLLOWS
               : SERVER_RUN;
}
/* Take the request with that number of an open frame with that `ack`: RUN is server_judge()'s to
 * say. */
static inline enum server_verdict server_take(struct stream_server *s, uint64_t number,
                                              uint64_t ack, uint64_t rid, uint64_t position)
{
    if (__builtin_expect(number <= s->log.said.ack, false)) {
        return SERVER_AGAIN;
    }
    s->log.said.ack = number;
    s->open++;
    return server_is_behind(s, rid, position, ack) ? SERVER_BEHIND : SERVER_RUN;
}

_Static_assert((int)STREAM_CHUNK_SIZE <= (int)RECORD_BODY_MAX, "what fits there may be answered");
/* Where the body of the next answer may be written, for server_answer_there(): so many bytes, 0 =
 * nowhere, and NULL. Good until the next call with this stream. */
static inline uint8_t *server_room(const struct stream_server *s, size_t *size)
{
    const size_t left = sendlog_left(&s->log);

    *size = left > STREAM_ANSWER_SIZE ? left - STREAM_ANSWER_SIZE : 0;
    return *size == 0 ? NULL : s->log.tail->data + s->log.tail->used + STREAM_ANSWER_SIZE;
}

/* The entry of one that ran, whose answer of that size is in server_room(). */
static inline void server_answer_there(struct stream_server *s, uint64_t rid, uint64_t token,
                                       uint8_t code, size_t size)
{
    const struct sendlog *l = &s->log;
    uint8_t *at = l->tail->data + l->tail->used;

    ASSERT(s->open > 0);
    s->open--;
    stream_answer_head_store(
        at, &(struct stream_answer){.rid = rid, .token = token, .code = code, .body.size = size});
    sendlog_put(&s->log, STREAM_ANSWER_SIZE + size);
}

/* The entry of one that ran, or of which nobody ever will know (LOST); the body is copied. */
static inline void server_answer(struct stream_server *s, const struct stream_answer *a)
{
    ASSERT(s->open > 0);
    s->open--;
    if (__builtin_expect(!s->dead, true)) {
        const size_t size = stream_answer_size(a);

        stream_answer_store(sendlog_room(&s->log, size), a);
        sendlog_put(&s->log, size);
    }
}

/* ---- forwards, by forward.c */

/* A request went on, and will come back. `p` is the caller's, and stays until server_relay(). */
void server_passed(struct stream_server *s, struct server_passed *p);
/* One came back: the entry is what the next hop says, with a fence if that refuses (relay). */
void server_relay(struct stream_server *s, struct server_passed *p, const struct stream_answer *a);

/* ---- leaving (R16) */

/* Nothing of it is to be done here, and its asker has every answer. */
static inline bool server_idle(const struct stream_server *s)
{
    return s->open == 0 && s->log.head == NULL;
}
/* Make the last entry: nothing is taken from now on. */
void server_leave(struct stream_server *s);

/* Abort unless what was taken has an entry or is open, and the counts are right. */
void server_check(const struct stream_server *s);

#endif
