/* SPDX-License-Identifier: Apache-2.0
 *
 * All streams that a node serves: by whom they are, over any number of
 * connections, with the frames that wait for a ring (R5) and those that are over
 * while something of them still runs.
 *
 *     frame -> servers_frame() -+-> BEGIN, JOIN: JOINED or GONE is said
 *                               +-> requests: `take` of some of them at a time
 *                               +-> of a newer ring: kept until servers_go_on()
 *
 * What is answered lies in the logs until the network takes it: servers_unsent().
 *
 * Logs and frames that wait have one sum (`size_max`). Beyond it a stream that has
 * its share, the same for all, is full: what comes by it is refused, which lies in
 * its log, too, and no frame of it waits. Beyond twice that sum nothing is taken of
 * such a stream: it loses its connection. Beyond three times the caller ends one that
 * grows by what was under way. So the sum is hardly more than that, and those that have
 * little do not notice.
 *
 * Pure. The caller names connections and the time.
 */
#ifndef STREAM_SERVERS_H
#define STREAM_SERVERS_H

#include "base/list.h"
#include "base/table.h"
#include "stream/server.h"

/* A stream here; the machine is in `stream`. */
struct stream_served {
    struct table_link link;  /* by asker, unless it is dead */
    struct list_link in;     /* of all, or of the dead */
    struct list_link unsent; /* in the servers' */
    struct stream_server stream;
    struct buffer parked; /* frames that came behind one that waits for its ring, whole */
    bool of_member;       /* the caller's: its asker is a node that the ring names */
    uint64_t lost_ms;     /* when it was seen to have no connection; 0 = it has one */
};

enum { STREAM_TAKEN_AT_ONCE = 16 };

/* Some requests of a frame, STREAM_TAKEN_AT_ONCE at most, in their order: to be taken one by one by
 * servers_take(). All is borrowed, but the stream stays until what is taken of it is ended. */
struct stream_some {
    struct stream_served *by;
    const struct stream_head *head; /* of the frame */
    const struct stream_request *request;
    const uint8_t *const *at; /* where the records begin, and the last one ends */
    size_t count;
    uint64_t first;     /* number of the first of these */
    uint64_t waited_ms; /* that waited so long for its ring */
};

/* A request that was taken: to be run, or queued, and ended by server_answer(), server_refuse() or
 * a forward. `ack` is for server_judge(). */
struct stream_taken {
    struct stream_served *by;             /* stays until the request is ended */
    const struct stream_request *request; /* borrowed, as is its record */
    struct bytes record;
    uint64_t position; /* of its entity */
    uint64_t ack;
    uint64_t version;   /* of its frame */
    uint64_t waited_ms; /* that waited so long for its ring */
};

/* Take the i-th of these, which is at that position; each one once, in their order. False: there is
 * nothing to do for it. */
MUST_CHECK static inline bool servers_take(const struct stream_some *some, size_t i,
                                           uint64_t position)
{
    return server_take(&some->by->stream,
                       some->first + i,
                       some->head->ack,
                       some->request[i].rid,
                       position) == SERVER_RUN;
}
/* The i-th of these, which was taken. */
static inline struct stream_taken servers_taken(const struct stream_some *some, size_t i,
                                                uint64_t position)
{
    return (struct stream_taken){.by = some->by,
                                 .request = &some->request[i],
                                 .record =
                                     bytes_of(some->at[i], (size_t)(some->at[i + 1] - some->at[i])),
                                 .position = position,
                                 .ack = some->head->ack,
                                 .version = some->head->version,
                                 .waited_ms = some->waited_ms};
}

struct stream_servers_config {
    uint64_t incarnation;
    uint64_t gone_ms; /* T_gone: 10000 */
    /* Bytes of frames of one stream that wait; what an asker's window may have: 16 MiB, and
     * STREAM_PARKED_EXTRA more for each of 65536 frames. */
    size_t parked_max;
    size_t log_max;  /* bytes of one stream's answers; 64 MiB */
    size_t size_max; /* bytes of all of both; 256 MiB */
    /* Living ones: 2048; beyond it who was away for longest is forgotten at once. While there are
     * so many dead ones, too, nobody begins anew who has one. */
    size_t streams_max;
    size_t chunks_spare; /* 64 */
    void *context;
    /* Say where these are on the ring, and take each of them: servers_take(). */
    void (*take)(void *context, const struct stream_some *some);
    /* A connection lost its stream by a frame that had waited; `why` as of servers_frame(): let go
     * of it. */
    void (*lost)(void *context, uint64_t connection, enum err why);
};
struct stream_servers_config servers_config_default(void);

/* What a frame takes that waits, beside its records. */
enum { STREAM_PARKED_EXTRA = STREAM_HEADER_SIZE + 8 };

struct stream_servers {
    struct stream_servers_config config;
    struct stream_chunks chunks;
    struct table by_asker;
    struct list all;
    struct list dead;   /* until server_over() */
    struct list unsent; /* their logs may have something for the network */
    size_t count;       /* streams, the dead ones, too */
    size_t parked_size; /* bytes reserved for frames that wait */
    size_t forgotten;   /* streams, since servers_tick() told */
    uint64_t version;   /* of the ring adopted */
    uint64_t now_ms;
};

void servers_init(struct stream_servers *v, const struct stream_servers_config *config);
/* Frees all, and says nothing. */
void servers_fini(struct stream_servers *v);

/* The living stream of an asker; or NULL. */
struct stream_served *servers_find(const struct stream_servers *v, uint64_t asker);

/* So late it is by now, for all that comes. */
void servers_clock(struct stream_servers *v, uint64_t now_ms);
/* A frame of a stream came by a connection. What is to be said at once, JOINED or GONE, is appended
 * to `say`; behind JOINED the log goes. ERR_OK. Else let go of this connection: ERR_CORRUPT: the
 * frame cannot be; ERR_NOT_FOUND: no such stream is known; ERR_STOPPED: the stream has another
 * connection; ERR_TOO_BIG: there is no room for the stream, or for what it asks. */
MUST_CHECK enum err servers_frame(struct stream_servers *v, uint64_t connection,
                                  const struct frame *frame, struct buffer *say);
/* That connection of the asker is gone: so is what came by it and waits. */
void servers_lost(struct stream_servers *v, uint64_t asker, uint64_t connection);
/* The asker is dead by the ring that is being adopted: before servers_ring(), and before anything
 * that was queued comes to run. Or its stream is to end, of which no forward is unanswered. */
void servers_dead(struct stream_servers *v, uint64_t asker);
/* A ring is being adopted: what is said from now on says so. Before anything that was queued comes
 * to run. */
void servers_ring(struct stream_servers *v, uint64_t version);
/* The ring is adopted, and what came to this node with it is here: what waited for it is taken. */
void servers_go_on(struct stream_servers *v);
/* The log of that stream has grown, or may be handed out by another connection. */
static inline void servers_feed(struct stream_servers *v, struct stream_served *s)
{
    if (__builtin_expect(!list_linked(&s->unsent), false)) {
        list_push_back(&v->unsent, &s->unsent);
    }
}
/* Bytes of all logs and of frames that wait. */
static inline size_t servers_size(const struct stream_servers *v)
{
    return v->chunks.size + v->parked_size;
}
/* True if the sum is that many times what it may be, and the living stream has its share. */
bool servers_is_beyond(const struct stream_servers *v, const struct stream_served *s, size_t times);
/* True if what comes by that living stream is to be refused, OVERLOAD (R18). */
static inline bool servers_is_full(const struct stream_servers *v, const struct stream_served *s)
{
    return __builtin_expect(s->stream.log.size > v->config.log_max, false) ||
           (__builtin_expect(servers_size(v) >= v->config.size_max, false) &&
            servers_is_beyond(v, s, 1));
}
/* The next stream with a connection whose log has something for the network since this was asked;
 * NULL = none. */
struct stream_served *servers_unsent(struct stream_servers *v);
/* True: frames wait for a newer ring. O(streams). */
bool servers_wait(const struct stream_servers *v);
/* Some 10 to 50 ms have passed: what was taken, and no answer has said since, gets an ACK. Forgets
 * streams that were away for T_gone (R15), and frees what is over. Returns how many were forgotten.
 */
size_t servers_tick(struct stream_servers *v, uint64_t now_ms);

#endif
