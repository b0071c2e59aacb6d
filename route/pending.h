/* SPDX-License-Identifier: Apache-2.0
 *
 * A pending request: taken from a session, not answered yet.
 *
 * Each time it is sent it is a new attempt, a copy with a number of its own,
 * which the answer repeats. An attempt is open until an answer says that it did
 * not run; while none is open the request surely never ran, and there is no
 * copy of it anywhere (hole 40).
 */
#ifndef ROUTE_PENDING_H
#define ROUTE_PENDING_H

#include "base/bytes.h"
#include "base/list.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/shared.h"
#include "base/table.h"
#include "route/deadlines.h"
#include "wire/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lane;
struct session;

enum pending_state {
    PENDING_WAITING, /* at the gateway */
    PENDING_SENT,    /* its last attempt is on its way */
};
extern const struct machine pending_machine;

/* There are thousands, of which an answer finds one: what that needs stands in the first
 * PENDING_HEAD bytes, whole lines of the cache, and what neighbours in its lists need in the first
 * line. */
struct pending {
    struct table_link link; /* by session and seq; of one that is spare: the next */
    struct deadline deadline;
    struct list_link in_flight; /* of the peer that got the last attempt */
    uint64_t seq;

    struct lane *lane;
    struct session *session;
    struct list_link in_lane;  /* in order of seq */
    struct list_link in_retry; /* SENT: in order of retry_us */
    uint64_t ticket;
    struct shared *common; /* its body, held, if others have the same; else NULL */
    uint64_t sent_us;      /* SENT: when */

    uint64_t open;     /* bit = number of an open attempt, modulo 64 */
    uint32_t attempts; /* ever made */
    uint32_t stamp;    /* latency_stamp() of when it came */
    uint32_t size;     /* bytes of memory that it needs, but for `common` */
    uint32_t charged;  /* bytes it counts with at the peer that got the last attempt */
    uint32_t epoch;    /* of a session that its client owns: of the connection that asked last */
    uint16_t slot;     /* node that got the last attempt; 0 = none, or it left for good */
    uint16_t kind;
    uint8_t refusals; /* answers "not run" in a row, for the back-off */
    uint8_t flags;    /* enum request_flags */
    uint8_t state;    /* enum pending_state */
    uint8_t id_size;
    uint8_t chain_count;
    uint8_t retries;   /* sent again for want of an answer, for the back-off */
    uint8_t doubtful;  /* there may be a copy that I know nothing of: of another gateway (hole 44),
                          or  an open attempt's number was used again; with RECORD_AGAIN its owner is
                          told  that it may have run at one that is dead */
    bool must;         /* its node is asked until it answers, however full it is */
    uint64_t retry_us; /* SENT: see then whether to send it again */
    uint64_t first;    /* ring version at the first send; 0 = to be stamped */

    uint64_t prev;        /* as stamped on the last attempt */
    uint64_t overload_us; /* since when its owner has no room for it; 0 = it has, or never said */
    uint64_t asked;       /* incarnation that got the last attempt; 0 = none yet */
    uint64_t before;      /* that got the one before, since the last COLD; 0 = none, or the same */
    uint64_t died;        /* that had it when its memory was lost, a first time; 0 = none */
    uint64_t cold;   /* the last take-over of its vnode in which it may have been lost; 0 = none */
    uint64_t origin; /* of the client that asks; 0 = no client does */
    uint8_t data[];  /* id, then chain, then body */
};

enum { PENDING_LINE = 64, PENDING_HEAD = 192 };
_Static_assert(offsetof(struct pending, lane) == PENDING_LINE, "a line");
_Static_assert(offsetof(struct pending, prev) == PENDING_HEAD, "lines");

/* Make it zero: whole lines at a time, which is no loop. */
static inline void pending_clear(struct pending *p)
{
    memset(p, 0, PENDING_LINE);
    memset((uint8_t *)p + PENDING_LINE, 0, PENDING_LINE);
    memset((uint8_t *)p + 2ul * PENDING_LINE, 0, PENDING_LINE);
    memset((uint8_t *)p + PENDING_HEAD, 0, sizeof *p - PENDING_HEAD);
}

/* Fetch what an answer to it needs. A hint. */
static inline void pending_fetch(const struct pending *p)
{
    for (size_t i = 0; i < PENDING_HEAD; i += PENDING_LINE) {
        __builtin_prefetch((const uint8_t *)p + i, 1);
    }
}

/* A request's content and its destination. */
struct question {
    uint16_t kind;
    struct bytes id;           /* 1..255 bytes */
    const struct caller *from; /* an actor that asks; NULL = a client */
    const uint64_t *chain;     /* of calls that led here */
    size_t chain_count;
    struct bytes body;
    struct shared *common; /* the body, caller and all, of several; or NULL */
};

/* Memory of requests that are over, kept for the next: they come and go by the hundred thousand. By
 * size, PENDING_GRAIN bytes a class; larger ones are freed. All zero is a valid empty one. */
enum { PENDING_GRAIN = 64, PENDING_CLASSES = 17, PENDING_SPARE_MAX = 2 * 1024 * 1024 };

struct pending_spares {
    struct table_link *of[PENDING_CLASSES]; /* struct pending */
    size_t size;                            /* bytes of all, PENDING_SPARE_MAX at most */
};
void pending_spares_fini(struct pending_spares *s);

/* Returns owned; copies all of the question but `common`, which it holds. In no list. Whoever took
 * the request has looked at the sizes. */
struct pending *pending_new(struct pending_spares *s, const struct question *q);
static inline size_t pending_class(size_t size)
{
    return (size + PENDING_GRAIN - 1) / PENDING_GRAIN;
}

/* Free `p`, which must be in no list. */
static inline void pending_free(struct pending_spares *s, struct pending *p)
{
    const size_t class = pending_class(p->size);

    if (p->common != NULL) {
        shared_drop(p->common);
    }
#ifdef MEM_IS_CHECKED
    mem_free(p);
    (void)s;
    (void)class;
#else
    if (class >= PENDING_CLASSES || s->size + class * PENDING_GRAIN > PENDING_SPARE_MAX) {
        mem_free(p);
        return;
    }
    s->size += class * PENDING_GRAIN;
    p->link.next = s->of[class];
    s->of[class] = &p->link;
#endif
}

static inline struct bytes pending_id(const struct pending *p)
{
    return (struct bytes){p->data, p->id_size};
}
/* Return how many bytes of it are the body, the caller included; none of a common one. */
static inline size_t pending_body_size(const struct pending *p)
{
    return p->size - sizeof *p - p->id_size - p->chain_count * sizeof(uint64_t);
}
/* Return the body as it goes into the record: the caller, if there is one, comes first. */
struct bytes pending_body(const struct pending *p);
void pending_chain(const struct pending *p, uint64_t chain[RECORD_CHAIN_MAX]);

static inline uint64_t pending_bit(uint8_t copy)
{
    return (uint64_t)1 << (copy & 63u);
}

/* Number of the last attempt, 1..255; 0 = never sent. */
enum { PENDING_COPY_MAX = 255 };
static inline uint8_t pending_last(const struct pending *p)
{
    return p->attempts == 0 ? 0 : (uint8_t)(1 + (p->attempts - 1) % PENDING_COPY_MAX);
}

/* Open a new attempt; returns its number. */
static inline uint8_t pending_attempt(struct pending *p)
{
    p->attempts++;
    const uint8_t copy = pending_last(p);

    p->doubtful |= (p->open & pending_bit(copy)) != 0;
    p->open |= pending_bit(copy);
    return copy;
}

/* True if attempt `copy` is open. */
static inline bool pending_is_open(const struct pending *p, uint8_t copy)
{
    return copy != 0 && (p->open & pending_bit(copy)) != 0;
}

/* Close attempt `copy`, which surely did not run. False: it was not open (a second answer). */
bool pending_close(struct pending *p, uint8_t copy);

static inline bool pending_is_again(const struct pending *p)
{
    return (p->doubtful & RECORD_AGAIN) != 0;
}

/* True if no attempt can have run, nor ever will. */
bool pending_never_ran(const struct pending *p);

#endif
