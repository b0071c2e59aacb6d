/* SPDX-License-Identifier: Apache-2.0
 *
 * Links: framed connections between our processes, with a hello on each,
 * byte-bounded out-queues, reconnection with jittered back-off, ping and a
 * silence limit.
 *
 * Two bodies carry the same bytes, and either end may be either: sockets on the
 * owner's uv loop, with no thread but the loop's, for nodes, gateways and
 * coordinators; nng_stream for owners without such a loop.
 * docs/decisions/014 says why. nng's pattern sockets are not used: 004.
 * With TLS (link/tls.h, 028) both carry its records, and frames are inside.
 *
 * One `struct links` a process. Everything is called and called back on the
 * loop thread; only `wake` may come from nng's threads.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/frame.h"
#include "wire/hello.h"

#include <stdbool.h>
#include <stdint.h>

/* Files (PEM) for TLS between our processes; all NULL = none. Borrowed. */
struct link_files {
    const char *ca;          /* who signs certificates of the fleet: one or more */
    const char *certificate; /* of this process, as link/subject.h wants it, with its chain */
    const char *key;         /* its key, as base/secret_file.h wants it */
};

struct links;
struct link;

struct link_events {
    void *context;
    /* A peer's hello: REFUSAL_NONE accepts it; else `why` is told (static text). Called before up;
     * on the dialling side too. May be NULL: accept all of this cluster and protocol. */
    enum refusal (*hello)(void *context, const struct link *link, const struct hello *peer,
                          const char **why);
    void (*up)(void *context, struct link *link);
    /* The link is gone (peer closed, silence, bad bytes, dropped): once for each up, from
     * links_poll() only. Frames queued on it are lost. A dialled link retries by itself; an
     * accepted one is freed when this returns. `reason` is borrowed until then. */
    void (*down)(void *context, struct link *link, const char *reason);
    /* May be NULL. A dialled link was refused, here or by the peer, before it was up; it tries
     * again after retry_max_ms. `reason` is borrowed. The log has it already. */
    void (*refused)(void *context, struct link *link, const char *reason);
    /* A frame of CONTROL, RAFT or records; its body is borrowed until this returns. */
    void (*frame)(void *context, struct link *link, const struct frame *frame);
    /* Something is done: links_poll() wants to be called. With config.loop: on the loop, once a
     * turn and after all of its input, so that it may be called right here. Else: from any thread;
     * call it on the loop soon, never here. Must not block. */
    void (*wake)(void *context);
};

struct links_config {
    struct hello self;     /* may be updated later: links_set_incarnation() */
    size_t queue_size_max; /* bytes waiting on one link; above it send says ERR_BUSY; 32 MiB */
    /* A link without a frame for so long, nor much of a large one, is dropped, and so is each one
     * when links_poll() was not called for so long: 5000, T_conn of hole 43. */
    uint32_t silence_ms;
    uint32_t ping_ms;         /* 1000 */
    uint32_t retry_min_ms;    /* 20 */
    uint32_t retry_max_ms;    /* 1000 */
    uint32_t hello_ms;        /* an accepted connection must say hello within; 3000 */
    uint32_t connections_max; /* accepted ones; 1024 */
    uint32_t same_max;        /* accepted ones of one name and role: 128 */
    void *loop;               /* uv_loop_t, borrowed: links live on it; NULL = on nng's threads */
    struct link_files tls;    /* paths, borrowed; none: all is said in the clear, to anybody */
};
struct links_config links_config_default(void);

/* Events since links_open(), for metrics. */
struct links_counts {
    uint64_t accepted;    /* connections */
    uint64_t turned_away; /* over connections_max */
    uint64_t ups;         /* links that came up */
    uint64_t downs;       /* and went down again */
    uint64_t refused;     /* hellos that did not agree; by reason: wire/refusals.h */
    uint64_t garbage;     /* connections that sent what is not ours */
    uint64_t silent;      /* no hello in time, or nothing for silence_ms */
    uint64_t stale;       /* links dropped because this process stood still for silence_ms */
    uint64_t busy;        /* sends refused with ERR_BUSY */
    uint64_t same;        /* records that went without the body of the one before them */
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/* Copies both. ERR_INVALID: config->self could not pass as a hello, or the files of config->tls are
 * not what they should be; that is logged. */
MUST_CHECK enum err links_open(struct links **out, const struct links_config *config,
                               const struct link_events *events);
/* Stop listening, drop all links, free everything. Crash-only: nothing is flushed, nothing called
 * back but `wake`. Not from within a callback. Takes NULL. With config.loop: handles are closing
 * after this; the loop has to run once more before it can be closed. */
void links_close(struct links *links);

/* Listen on "host:port" (or "[v6]:port"); port 0 = any free one. `bound` gets "host:port" and may
 * be NULL. ERR_CONFLICT: in use; ERR_INVALID: no such address; ERR_IO: anything else. */
MUST_CHECK enum err links_listen(struct links *links, const char *address, char *bound,
                                 size_t bound_size);
/* Keep a link to `address` until links_forget(). Never blocks. The same address twice is two links.
 * NULL: `address` is not "host:port". */
struct link *links_dial(struct links *links, const char *address);
/* Close and free; its pointer is dead after this. `down` is not called. From anywhere on the loop.
 */
void links_forget(struct links *links, struct link *link);
/* Close this connection with a reason: not up from now on, `down` follows from links_poll(). A
 * dialled one retries. */
void link_drop(struct link *link, const char *reason);
/* Like link_drop(), for a peer that sent invalid data: counted, and logged with a ration. */
void link_garbage(struct link *link, const char *what);
/* Later hellos carry this incarnation. Who has heard another, and is not up yet, hears it again. */
void links_set_incarnation(struct links *links, uint64_t incarnation);
/* Set the format of the fleet that is in force from now on: later hellos say so, and peers that do
 * not read it are refused. A link to such a peer that is up already is dropped. */
void links_set_format(struct links *links, uint32_t format);
/* Set the fleet to which this process belongs from now on: later hellos say so, and peers of
 * another fleet are refused. A link to such a peer that is up already is dropped. A coordinator
 * also drops its link to a node or gateway that knows no fleet yet, so that it greets again: until
 * now that peer could take us for any fleet. */
void links_set_fleet(struct links *links, struct fleet_id fleet);
/* Later hellos say whether this coordinator's folder took part in a group. */
void links_set_pristine(struct links *links, bool pristine);

/* Read the files of TLS again, for connections that begin from now on. What is wrong with them is
 * logged, and changes nothing. */
void links_reload(struct links *links);
/* True if links_open() would take the files of config->tls for config->self. False: `why` names the
 * file. */
bool links_take_files(const struct links_config *config, char *why, size_t size);

/* Deliver what arrived and run timers, on the loop. Call on wake and every 10..50 ms; while
 * links_rest_until_us() says so, later. */
void links_poll(struct links *links, uint64_t now_us);
/* Return when links_poll() has something to do by itself, while no link is being made, greeted,
 * lost or closed: a peer is pinged, or given up. UINT64_MAX = never; 0 = soon, as one is. */
uint64_t links_rest_until_us(const struct links *links);
/* Records (link_send_record) are handed to the network before this time of CLOCK_BOOTTIME only, and
 * else wait on their links, with all that is queued behind them; UINT64_MAX (from the start) =
 * always. The clock is read for each piece that goes to the network: a node's lease may end while
 * its answers are queued (hole 30). */
void links_set_gate(struct links *links, uint64_t until_us);
/* Hand queued frames to the network: at the end of each loop turn, in a uv_prepare_t with
 * config.loop, and earlier for what the rest of the turn is not to keep back, also from within an
 * event of the links. (Without config.loop, links_poll() ends with it.) */
void links_flush(struct links *links);

/* Queue a frame (copied). ERR_STOPPED: not up; ERR_BUSY: over the link's byte bound, nothing queued
 * (an empty queue takes any one frame); ERR_TOO_BIG: the peer would not take it (over 4 MiB, or
 * FRAME_SIZE_MAX from a coordinator). */
MUST_CHECK enum err link_send(struct link *link, enum frame_type type, struct bytes body);
/* Queue one encoded record: records of one type queued in one turn travel in one frame. Errors as
 * above. */
MUST_CHECK enum err link_send_record(struct link *link, enum frame_type type, struct bytes record);

/* Queues `count` encoded records that stand one behind the other, LINK_RUN_SIZE_MAX bytes at most:
 * all of them, or none. A build that plants faults counts records, so it queues them one by one. */
#ifdef RINGHOLD_INJECT
enum { LINK_RUN_SIZE_MAX = 0 };
#else
enum { LINK_RUN_SIZE_MAX = 64 * 1024 };
#endif
MUST_CHECK enum err link_send_records(struct link *link, enum frame_type type, struct bytes records,
                                      size_t count);

/* Like link_send_record() for a request whose body several requests share: `same` comes from
 * request_put_same(), and `number`, not 0, tells this body from all others. Behind a request with
 * the same number in its frame it goes without the body. */
MUST_CHECK enum err link_send_common(struct link *link, struct bytes same, struct bytes body,
                                     uint64_t number);

/* Bytes that the owner keeps, and a link writes from where they lie, behind its own frames: whole
 * frames of streams (stream/sendlog.h). Called from within links_flush() and links_poll(), while
 * the link is up; neither may call back into the links. */
struct link_source {
    void *context;
    /* What is to go out next; size 0 = nothing. Borrowed until the next call of either. What a
     * call returned and sent() did not take stays in front of all that follows, on this
     * connection; if it is gone instead, so is the connection. */
    struct bytes (*take)(void *context);
    void (*sent)(void *context, size_t size); /* the network has so many of them, or a copy */
    bool gated; /* they leave before the time of links_set_gate() only, as records do */
};
/* From now on it is the link's; NULL: it has none. Copied. A connection that had begun a frame of
 * the one before is dropped. */
void link_set_source(struct link *link, const struct link_source *source);
/* The source has bytes: the next links_flush() takes them. */
void link_feed(struct link *link);

struct subject;
struct links_counts links_counts(const struct links *links);

bool link_is_up(const struct link *link);
bool link_dialled(const struct link *link);
const struct hello *link_peer(const struct link *link); /* valid while up */
uint32_t link_protocol(const struct link *link);        /* the greatest that both speak; while up */
const char *link_address(const struct link *link);      /* dialled: as given; accepted: remote */
/* Tell whom the peer's certificate names. False: the link is not up, or in the clear. */
bool link_subject(const struct link *link, struct subject *out);
size_t link_queued(const struct link *link);       /* bytes waiting */
void link_set_user(struct link *link, void *user); /* the owner's pointer */
void *link_user(const struct link *link);

#endif
