/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks: a gateway's thread, or a node for its actors and for what it
 * forwards. Its requests under way, its ends of streams, one to each node's
 * incarnation, and the lanes that are in trouble.
 *
 *     state    event                                       next
 *     (new)    its lane has no record, its owner's stream  SENT
 *              takes it
 *     (new)    otherwise                                   WAITS, in its lane's record
 *     WAITS    see "lane"                                  SENT
 *     WAITS    asker_give_up()                             over: it did not run, nor will
 *     SENT     BUSY, MOVED, BEHIND                         WAITS (R12)
 *     SENT     any other answer                            reply: over, or WAITS if that says so:
 *                                                          asked again (R19)
 *     SENT     not taken when its link was lost (R2)       WAITS
 *     SENT     its stream is dead (R14)                    reply UNKNOWN: likewise
 *     WAITS    its owner takes no streams                  elsewhere: over, if that takes it back
 *     SENT     asker_give_up()                             SETTLES
 *     SETTLES  whatever ends SENT                          over
 *
 * A lane is a session and an entity. It has a record only in trouble: one of it
 * waits, or was SENT to a node that is not the owner any more (R11, R12). Then it
 * sends what waits, in order, when nothing of it is SENT and the rest that its owner
 * asked for is over; then the record goes. A rest ends after a second, with its owner,
 * and that of MOVED with the ring that it names.
 *
 * Rules Rn are in stream/README.md. Pure: feed what happens, with the time where it
 * counts; replies go by a function pointer. A request is encoded once, into the
 * stream's chunks (sendlog.h); only in trouble it gets memory of its own.
 */
#ifndef STREAM_ASKER_H
#define STREAM_ASKER_H

#include "base/list.h"
#include "base/table.h"
#include "stream/sendlog.h"

struct stream_asker;

/* The entity that a request is for. */
struct stream_entity {
    uint64_t position; /* on the ring */
    uint16_t kind;
    struct bytes id; /* borrowed */
};

/* What is said of a request that was asked. */
struct stream_reply {
    union {
        uint64_t ticket; /* as it was given */
        void *forwarded; /* of a forward, likewise */
    };
    uint32_t slot; /* asker_slot() of it */
    uint64_t position;
    uint64_t version;                   /* of the frame that said so; 0 = no frame did */
    bool forward;                       /* it came by asker_forward() */
    bool maybe;                         /* it was asked before, and may have run then */
    const struct stream_answer *answer; /* borrowed; UNKNOWN also of a dead stream */
};

struct stream_asker_config {
    uint64_t id;         /* random; of a node: its incarnation */
    uint32_t window;     /* requests SENT in one stream; 65536 */
    size_t size_max;     /* their bytes, and those of answers as expected; 16 MiB; beyond it what is
                            old and unanswered is copied */
    size_t chunks_spare; /* chunks kept for reuse; 64 */
    void *context;
    /* These are called from within the asker, and may not change it.
     * The stream of the node that owns this entity by the ring adopted; NULL = none yet. What it
     * says may change before asker_ring() only. */
    struct stream_client *(*owner)(void *context, const struct stream_entity *entity);
    /* Returns 0: the request is over; else it is asked again, in its lane's order, in so many ms.
     * Then it may have run before, unless the answer refuses it, and says so from then on (R19).
     * Not heeded of a forward. */
    uint32_t (*reply)(void *context, const struct stream_reply *reply);
    /* Returns how many ms are left of a request that is sent only now; NULL = as it was asked. */
    uint32_t (*left)(void *context, uint32_t slot);
    /* A request waits, nothing of its lane is SENT, and `owner` is NULL. Returns true: it is taken
     * back, and over here; those behind it follow, in their order. NULL = false. `reply` has no
     * answer. */
    bool (*elsewhere)(void *context, const struct stream_reply *reply,
                      const struct stream_request *r);
};
struct stream_asker_config asker_config_default(void);

/* The asker's end of one stream. */
struct stream_client {
    struct sendlog log;  /* of requests; said.ack is the number of the last answer read */
    uint64_t connection; /* the caller's name of it; 0 = none */
    uint64_t epoch;
    size_t size;             /* bytes of SENT requests */
    size_t reply_size;       /* what an answer is expected to take */
    uint32_t count;          /* SENT requests, … */
    uint32_t window;         /* … and how many there may be */
    uint16_t index;          /* in the asker */
    bool joined;             /* requests may be handed to the connection */
    bool begun;              /* the server knows of it */
    bool left;               /* the server takes nothing more */
    struct list starved;     /* lanes that wait for it */
    struct list_link unsent; /* in the asker's */
    void *user;              /* the caller's */
};

enum stream_slot_state {
    SLOT_FREE,
    SLOT_WAITS,
    SLOT_SENT,
    SLOT_SETTLES,
};

/* A rid is a slot's index, and above it how many requests were asked before: so rids grow. */
enum { STREAM_SLOT_BITS = 24, STREAM_SLOT_MASK = (1 << STREAM_SLOT_BITS) - 1 };

/* A request under way: one line of the cache, by its index. */
struct stream_slot {
    uint64_t position;
    uint64_t number; /* in its stream, while SENT or SETTLES */
    union {
        uint64_t ticket; /* the caller's */
        void *forwarded; /* likewise, of a forward */
    };
    uint8_t *record;            /* its bytes: in `chunk`, or owned if that is NULL */
    struct stream_chunk *chunk; /* of its stream */
    uint64_t order;             /* of asking, from 1 */
    uint32_t size;              /* of the record */
    uint32_t next;              /* in its lane, or of the free ones: index + 1; 0 = none */
    uint16_t stream;            /* while SENT or SETTLES */
    uint8_t state;              /* enum stream_slot_state */
    bool forward;
    bool maybe;       /* it WAITS, but may have run before */
    uint8_t refusals; /* that did not say for how long: BEHIND, MOVED by this ring, BUSY for 0 */
};

struct stream_asker {
    struct stream_asker_config config;
    struct stream_chunks chunks;
    struct stream_slot *slot; /* owned */
    size_t slot_cap;
    uint32_t spare; /* index + 1 */
    size_t under_way;
    uint64_t late; /* answers to requests that were answered or given up before */
    uint64_t order;
    struct stream_client **stream; /* owned, by index; NULL = free */
    size_t stream_cap;
    uint64_t version; /* of the ring adopted */
    uint64_t now_ms;
    struct table lanes; /* those with a record: struct stream_lane of lanes.c */
    struct list ready;
    struct list resting;  /* until their rest is over, … */
    uint64_t rested_ms;   /* … none of them before that */
    struct list ringless; /* nobody's who takes them, until another ring is adopted */
    size_t uncounted;     /* lanes that do not know how many of theirs are SENT */
    struct list unsent;   /* struct stream_client: their logs have begun a frame */
};

void asker_init(struct stream_asker *a, const struct stream_asker_config *config);
/* Frees all; nothing is replied to. */
void asker_fini(struct stream_asker *a);

/* ---- streams */

/* One to that incarnation, valid until asker_remove(). It takes nothing before it is joined. */
struct stream_client *asker_add(struct stream_asker *a, uint64_t incarnation);
/* That incarnation is over by the ring adopted, or was not heard for so long that it has forgotten
 * the stream: replies to all that was sent there (R14). */
void asker_dead(struct stream_asker *a, struct stream_client *c);
/* Free one behind asker_dead(). `owner` does not name it any more. */
void asker_remove(struct stream_asker *a, struct stream_client *c);

/* A connection (not 0, never used before) is up: returns what is to be said first on it. */
struct stream_connect {
    enum stream_frame type; /* BEGIN or JOIN */
    struct stream_head head;
};
struct stream_connect asker_connect(struct stream_asker *a, struct stream_client *c,
                                    uint64_t connection);
/* A connection is gone. What was sent stays so until the next JOINED, or death. */
void asker_lost(struct stream_asker *a, struct stream_client *c, uint64_t connection);
/* JOINED or GONE came; behind GONE asker_connect() is to be called again. ERR_CORRUPT: it cannot
 * be; let go of the connection. */
MUST_CHECK enum err asker_joined(struct stream_asker *a, struct stream_client *c,
                                 uint64_t connection, enum stream_frame type,
                                 const struct stream_head *head);

/* ---- requests */

/* True if the stream has room for a request of so many bytes, and for its answer (R18). */
static inline bool client_takes(const struct stream_asker *a, const struct stream_client *c,
                                size_t size)
{
    return c->joined && !c->left && c->count < c->window &&
           (c->size + size + c->count * c->reply_size <= a->config.size_max || c->count == 0);
}
/* From now on so many requests are SENT in that stream at most, and what waits may try. */
void asker_limit(struct stream_asker *a, struct stream_client *c, uint32_t window);
/* Take a request; `to` is its owner's stream or NULL. All of `r` but its rid is the caller's, and
 * is copied. Returns its rid, for asker_give_up(). */
uint64_t asker_ask(struct stream_asker *a, struct stream_client *to, struct stream_request *r,
                   uint64_t position, uint64_t ticket);
/* Take one that is forwarded, for a stream that takes it: it never waits. What does not end with
 * its server's answer is replied to: MOVED if it was not taken, UNKNOWN if its stream is dead. */
void asker_forward(struct stream_asker *a, struct stream_client *to, struct stream_request *r,
                   uint64_t position, void *forwarded);
/* Leave no time to what is forwarded, has not left yet and `is_late`: its server refuses it.
 * O(requests). */
void asker_cut_forwards(struct stream_asker *a, uint64_t now_ms,
                        bool (*is_late)(const void *forwarded, uint64_t now_ms));
/* True if the lane has a record; then what is asked of it waits there, or follows it. */
bool asker_has_lane(const struct stream_asker *a, uint64_t session, uint64_t position);
/* A request under way, in 32 bits: its slot is its own until it is over. */
static inline uint32_t asker_slot(uint64_t rid)
{
    return rid & STREAM_SLOT_MASK;
}
/* Return the rid of the request under way in that slot. */
static inline uint64_t asker_rid(const struct stream_asker *a, uint32_t slot)
{
    return a->slot[slot].order << STREAM_SLOT_BITS | slot;
}
/* Return the entity that a request under way is for; borrowed until the next call. */
struct stream_entity asker_entity(const struct stream_asker *a, uint64_t rid);
/* The slots of all that is SENT in a stream and not given up, in the order of sending. Returns
 * owned, `count` of them; NULL of none. */
uint32_t *asker_sent(const struct stream_asker *a, const struct stream_client *c, size_t *count);
/* The caller has told its client that the time is up (R13). True: it may have run, at most once, or
 * may run yet (TIMEOUT); false: it did not, nor will (REJECTED). What has not left yet has no time
 * from now on, so that its node refuses it. It is not replied to any more;
 * false positives are none: a rid that is over aborts. */
bool asker_give_up(struct stream_asker *a, uint64_t rid);

/* ---- answers */

/* ANSWER came: may its records be taken? ERR_CORRUPT: let go of the connection. ERR_NOT_FOUND: it
 * is none of this stream. */
MUST_CHECK enum err asker_open(const struct stream_client *c, uint64_t connection,
                               const struct stream_head *head);
/* Fetch what an answer needs. A hint. */
static inline void asker_fetch(const struct stream_asker *a, uint64_t rid)
{
    const size_t index = rid & STREAM_SLOT_MASK;

    if (index < a->slot_cap) {
        __builtin_prefetch(&a->slot[index], 1);
    }
}
/* Take the answer with that number of such a frame: replies, or has it sent again in its turn.
 * ERR_CORRUPT: it cannot be. */
MUST_CHECK enum err asker_answer(struct stream_asker *a, struct stream_client *c, uint64_t number,
                                 uint64_t version, const struct stream_answer *answer);

/* ---- turns */

/* A ring was adopted: `owner` goes by it. Behind asker_dead() of whom it says so (R12). */
void asker_ring(struct stream_asker *a, uint64_t version);
/* The end of a turn, or before what comes some time later, whose rests begin at `now_ms`: lanes
 * send what may go. */
void asker_turn(struct stream_asker *a, uint64_t now_ms);
/* True: asker_turn() has something to do at the end of this turn. */
static inline bool asker_wants_turn(const struct stream_asker *a)
{
    return a->uncounted > 0 || !list_empty(&a->ready);
}
/* The link of that stream may have room: its log is named again. */
void asker_feed(struct stream_asker *a, struct stream_client *c);
/* Some 10 ms have passed: what was read, and no request has said since, gets an ACK. */
void asker_look(struct stream_asker *a);
/* The next stream whose log has begun a frame since this was asked, or has an ACK; NULL = none. */
struct stream_client *asker_unsent(struct stream_asker *a);
/* Abort unless all counts are right, and each settling request is in a stream. O(requests). */
void asker_check(const struct stream_asker *a);

#endif
