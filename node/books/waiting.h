/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that wait: copied once, in one queue at a time, under one budget,
 * and found when their time is up.
 *
 * Pure. A request that runs at once never gets here.
 */
#ifndef NODE_BOOKS_WAITING_H
#define NODE_BOOKS_WAITING_H

#include "base/list.h"
#include "wire/record.h"

/* FIFO of struct waiting. */
struct queue {
    struct list list;
    size_t count;
    size_t *total; /* counts along for several queues; NULL = nobody does */
};

struct stream_served;
/* Which request of a stream it is: what stream/server.h wants to know of it. */
struct stream_mark {
    struct stream_served *by; /* stays until the request is ended; NULL = it came as a record */
    uint64_t rid;
    uint64_t ack; /* of its frame */
};

struct waiting {
    struct list_link link; /* in `queue` */
    struct list_link due;  /* in a slot of the room's wheel */
    struct queue *queue;   /* NULL = in none */
    uint64_t peer;         /* link it came by; answers may go back there */
    uint64_t deadline_us;
    uint64_t came_us;  /* to this node … */
    uint64_t boxed_us; /* … and into its actor's queue, at last, or a transaction's */
    struct stream_mark mark;
    size_t size;                  /* bytes it takes of the room */
    uint32_t vnode;               /* that it is counted with, and one; 0 = none */
    bool late;                    /* it is ASKED_LATE: it ran, or never will */
    struct request_record record; /* id and body point into `data` */
    uint8_t data[];
};

enum {
    ROOM_GRAIN_US = 262144, /* one slot of the wheel */
    ROOM_SLOTS = 512,       /* together 134 s */
    ROOM_TTL_MAX_MS = REQUEST_TTL_MAX_MS,
};

/* All that waits at this node. */
struct room {
    struct list wheel[ROOM_SLOTS];
    uint64_t swept; /* slots up to here, counted from time 0, are empty */
    size_t count;
    size_t size;
    size_t *of_vnode; /* owned; bytes, by the vnode's id */
    size_t vnode_cap;
};

void room_init(struct room *room, uint64_t now_us);
/* Everything in the room is freed with it, whatever queue it is in. */
void room_fini(struct room *room);

/* Returns an owned copy of the request, in no queue. */
struct waiting *waiting_new(struct room *room, const struct request_record *r, uint64_t peer,
                            uint64_t deadline_us);
/* Count it with a vnode, too: once. */
void waiting_charge(struct room *room, struct waiting *w, uint32_t vnode);
size_t room_size_of(const struct room *room, uint32_t vnode);
/* Takes it out of its queue, if any. */
void waiting_free(struct room *room, struct waiting *w);

/* Next request whose deadline passed, at most ROOM_GRAIN_US late; NULL = none. It stays in its
 * queue. */
struct waiting *room_expired(struct room *room, uint64_t now_us);

void queue_init(struct queue *q);
void queue_push(struct queue *q, struct waiting *w);           /* w is in no queue */
void queue_push_before(struct waiting *at, struct waiting *w); /* into the queue `at` is in */
void queue_remove(struct waiting *w);
struct waiting *queue_pop(struct queue *q); /* NULL = empty */
struct waiting *queue_front(const struct queue *q);
struct waiting *queue_next(const struct queue *q, const struct waiting *w);
/* Append all of `from`, in order. */
void queue_append(struct queue *to, struct queue *from);

#endif
