/* SPDX-License-Identifier: Apache-2.0
 *
 * libringhold-client: a game's client at the gateways of a Ringhold fleet.
 *
 * It speaks docs/protocol-client.md: asks entities, is bound to one and pushed to, and gets over
 * lost lines, gateways that stop and gateways that die: it dials again with jittered back-off,
 * resumes its session where it can, and sends again what was not answered. docs/clients.md shows
 * how to use it.
 *
 * Two layers. `struct rhc` is the protocol alone: bytes and time in, bytes and events out; it opens
 * no socket, reads no clock, takes no memory but the block that it is given. `struct rhc_tcp`
 * drives one over TCP, with what poll() waits for. Neither starts a thread; each object belongs to
 * one thread at a time. It needs the C library and no other.
 *
 *     IDLE -rhc_start-> WAITING -its time has come-> DIALLING -rhc_connected-> GREETING
 *     GREETING -hello-ack, auth-ok, bind or resume answered-> READY
 *     READY -goaway-> LEAVING -all is answered-> WAITING, for another gateway
 *     any -the line drops-> WAITING        any -kicked for good, rhc_stop-> ENDED
 *
 * NULL in the place of a client is refused: RHC_INVALID, or where the result is no enum rhc_result
 * nothing, 0 or NULL.
 *
 * Times are milliseconds of one clock that doesn't go back, whatever it counts from.
 *
 * What becomes of a request. It is answered once, by RHC_EVENT_RESPONSE (or its callback): also if
 * the line drops, and also if no gateway can be reached. Unsent ones wait for the next connection.
 * Those that were sent and have no answer are sent again within a session that is kept (each runs
 * once in all), or if they are idempotent; else they end as RHC_UNKNOWN: they may have run, at most
 * once.
 */
#ifndef RINGHOLD_CLIENT_H
#define RINGHOLD_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RHC_API __attribute__((visibility("default")))
#else
#define RHC_API
#endif

/* Of the structures below: they grow at their end only. */
enum { RHC_ABI = 1 };

/* How a request ended. The numbers are the protocol's; one that isn't here is to be taken as
 * UNKNOWN. */
enum rhc_status {
    RHC_OK = 0,
    RHC_ACTOR_FAILED = 1,  /* ran; the actor answered with an error: the payload is its text */
    RHC_UNKNOWN = 2,       /* may have run, at most once */
    RHC_TIMEOUT = 3,       /* no answer in time: may have run or may run still, at most once */
    RHC_MOVING = 4,        /* nobody to run it in time: did not run, never will */
    RHC_OVERLOADED = 5,    /* no room for it: did not run, never will */
    RHC_NO_OWNER = 6,      /* no node hosts such actors: did not run */
    RHC_QUARANTINED = 7,   /* its actor killed processes: did not run */
    RHC_REJECTED = 8,      /* a bind: the actor takes no session */
    RHC_BAD_REQUEST = 9,   /* makes no sense: did not run */
    RHC_UNAUTHORIZED = 10, /* for another entity than the token's: did not run */
    RHC_RATE_LIMITED = 11, /* too many: did not run, never will */
};

/* The results of functions. */
enum rhc_result {
    RHC_DONE = 0,
    RHC_INVALID = 1, /* not with these arguments, or not now */
    RHC_FULL = 2,    /* too much is under way: try again when something was answered */
    RHC_TOO_LARGE =
        3, /* larger than the gateway takes, as it said when it greeted: never goes out */
};

/* Bytes that someone else owns. */
struct rhc_bytes {
    const void *data;
    size_t size;
};

struct rhc;

/* Called with the end of a request: `status` as of enum rhc_status. `payload` is borrowed until it
 * returns. It may ask anew. */
typedef void rhc_done(void *context, unsigned status, struct rhc_bytes payload, uint32_t retry_ms);

/* All 0 = the default, in brackets. Copied. */
struct rhc_options {
    uint32_t abi;             /* RHC_ABI */
    uint32_t size;            /* sizeof(struct rhc_options) */
    const char *token;        /* shown to gateways that ask: a token, or what the game's login
                                 takes, up to 1024 bytes; NULL = none */
    uint64_t seed;            /* of jitter: another one in each client, or all come back at once */
    uint32_t requests_max;    /* requests and notifies without an answer (256) */
    uint32_t in_max;          /* bytes of the largest packet that is taken, 1 KiB to 16 MiB less one
                                 (1 MiB + 64) */
    uint32_t out_max;         /* bytes of all requests without an answer, 1 KiB or more (128 KiB) */
    uint32_t answer_ms;       /* after which a request ends, answered or not (15 s): as TIMEOUT if
                                 it was sent, else as MOVING */
    uint32_t greet_ms;        /* for a connection to be made and greeted (10 s) */
    uint32_t back_off_min_ms; /* of the first try after a failure, then doubled (200 ms) */
    uint32_t back_off_max_ms; /* (10 s) */
};

enum rhc_request_flags {
    RHC_IDEMPOTENT = 1, /* may run more than once: is sent again after anything */
};

/* Whom to ask, and what. Copied. */
struct rhc_request {
    uint16_t kind;        /* of the entity */
    uint16_t flags;       /* enum rhc_request_flags */
    uint32_t deadline_ms; /* for the gateway to answer in; 0 = its own */
    struct rhc_bytes id;  /* 1..255 bytes */
    struct rhc_bytes payload;
    rhc_done *done; /* or NULL: the end is an RHC_EVENT_RESPONSE to whoever calls rhc_next() */
    void *context;  /* of `done`, or of the event */
};

enum rhc_state {
    RHC_IDLE,
    RHC_WAITING,  /* to dial */
    RHC_DIALLING, /* the shell connects */
    RHC_GREETING, /* hello, auth, bind or resume are under way */
    RHC_READY,
    RHC_LEAVING, /* this gateway stops: answers still come */
    RHC_ENDED,
};

enum rhc_event_type {
    RHC_EVENT_READY,    /* greeted, known, and bound if that was asked: requests go out */
    RHC_EVENT_RESPONSE, /* a request ended: `status`, `payload`, `retry_ms`; `request`, `context` */
    RHC_EVENT_PUSH,     /* of the actor bound to: `sequence`, `payload`; `lost` pushes before it are
                           lost */
    RHC_EVENT_BOUND,   /* `fresh`: the actor has begun a session with us; else ours goes on unharmed
                        */
    RHC_EVENT_REFUSED, /* the bind was: `status`, `payload` is why; it isn't tried again */
    RHC_EVENT_BEGUN,   /* the actor was lost and begun afresh: what it knew of us is gone */
    RHC_EVENT_UNBOUND, /* by rhc_unbind() */
    RHC_EVENT_GOAWAY,  /* the gateway stops: `retry_ms`, `payload` is its text; it goes elsewhere */
    RHC_EVENT_LOST,    /* the connection is gone: `payload` is why; it will dial again */
    RHC_EVENT_KICKED,  /* for good: `code`, `payload` is the text. rhc_start() begins again */
    RHC_EVENT_REBOUND, /* our actor lets us go on as another entity, of kind `code`, `payload` is
                          its id: BOUND to that follows. Ask that one from here on */
    RHC_EVENT_KNOWN,   /* the gateway says who we are: an entity of kind `code`, `payload` is its id
                        */
};

struct rhc_event {
    enum rhc_event_type type;
    unsigned status;   /* enum rhc_status, or of a later version */
    uint32_t code;     /* of a kick: docs/protocol-client.md */
    uint32_t retry_ms; /* when asking again may do better; 0 = now or never */
    uint32_t request;  /* as rhc_ask() named it */
    int fresh;
    uint64_t sequence;
    uint64_t lost;
    struct rhc_bytes
        payload;    /* borrowed until the next call of any function of this `struct rhc` */
    rhc_done *done; /* of a response: to be called, if not NULL, by who drives it */
    void *context;
};

/* What the program must do with the connection now. */
enum rhc_wish {
    RHC_NOTHING,
    RHC_DIAL,    /* connect to the gateway that rhc_gateway() says, then rhc_connected() */
    RHC_HANG_UP, /* close the connection, then rhc_disconnected() */
};

/* ---- the protocol ---- */

/* Bytes that rhc_init() needs for these options; 0: they make no sense. */
RHC_API size_t rhc_size(const struct rhc_options *options);

/* Make one in `memory`: rhc_size() bytes, aligned as malloc() aligns, the caller's until he needs
 * the client no more. NULL: the options make no sense. */
RHC_API struct rhc *rhc_init(void *memory, const struct rhc_options *options);

/* Go and stay connected. From IDLE or ENDED; else RHC_INVALID. */
RHC_API int rhc_start(struct rhc *c, uint64_t now_ms);

/* Hang up, end all requests as RHC_UNKNOWN or RHC_MOVING, dial no more. With a connection that
 * comes to pass when rhc_disconnected() is called. */
RHC_API void rhc_stop(struct rhc *c);

/* Show this from the next connection on, and forget the token that a gateway may have given for
 * what was shown before. NULL = none. RHC_INVALID: over 1024 bytes. */
RHC_API int rhc_set_token(struct rhc *c, const char *token);

/* Ask an entity. Answered once. `*request`, if not NULL, gets its name. Requests to one entity run
 * in the order of these calls. RHC_INVALID: no such id or flags, a payload over 8 MiB less one or
 * more than out_max takes, or it has ended; RHC_FULL: requests_max or out_max is reached;
 * RHC_TOO_LARGE. What was asked before a gateway said what it takes, and is too large for it, ends
 * as RHC_BAD_REQUEST: it did not run. */
RHC_API int rhc_ask(struct rhc *c, const struct rhc_request *r, uint64_t now_ms, uint32_t *request);

/* Tell an entity something, in order with its requests; nobody says what became of it, and if the
 * line drops it may be lost. `done` is not used. Errors as of rhc_ask(). */
RHC_API int rhc_tell(struct rhc *c, const struct rhc_request *r, uint64_t now_ms);

/* Be bound to this entity, in this connection and the next ones, as a session that is kept while
 * the line is down where the gateway can. Best before rhc_start(): what was asked before isn't of
 * the session. RHC_INVALID: it is bound already, or no such id. */
RHC_API int rhc_bind(struct rhc *c, uint16_t kind, struct rhc_bytes id);

/* End it: RHC_EVENT_UNBOUND follows when the gateway has answered, or at once if it is not bound
 * now. RHC_INVALID: nothing to end, or a bind is under way: when that was answered. */
RHC_API int rhc_unbind(struct rhc *c);

/* What to do with the connection. */
RHC_API enum rhc_wish rhc_wishes(const struct rhc *c);

/* A number that goes up when another gateway is to be tried: take the one at number % count. */
RHC_API uint32_t rhc_gateway(const struct rhc *c);

/* The connection that was wished is there. */
RHC_API void rhc_connected(struct rhc *c, uint64_t now_ms);

/* The connection is gone, or was not to be had: `why` for people. Take all events before. */
RHC_API void rhc_disconnected(struct rhc *c, const char *why, uint64_t now_ms);

/* Where received bytes go, and how many may; none without a connection, or while events are to be
 * taken first. Borrowed until any other call. */
RHC_API void *rhc_room(struct rhc *c, size_t *size);

/* So many were put there. */
RHC_API void rhc_received(struct rhc *c, size_t size, uint64_t now_ms);

/* Bytes to be sent now; size 0 = none. Borrowed until any other call. */
RHC_API struct rhc_bytes rhc_output(struct rhc *c);

/* So many of what rhc_output() gave last went out. */
RHC_API void rhc_sent(struct rhc *c, size_t size, uint64_t now_ms);

/* The next thing that happened, oldest first: 1, and `event` is it; 0 = nothing more. */
RHC_API int rhc_next(struct rhc *c, struct rhc_event *event);

/* Time has passed. */
RHC_API void rhc_tick(struct rhc *c, uint64_t now_ms);

/* When rhc_tick() is to be called, if nothing happens before; UINT64_MAX = need not. */
RHC_API uint64_t rhc_wake_ms(const struct rhc *c);

/* Where it is. */
RHC_API enum rhc_state rhc_state(const struct rhc *c);

/* ---- over TCP (POSIX) ---- */

struct rhc_tcp;

/* Called with everything but the end of a request that has a callback. */
typedef void rhc_on_event(void *context, const struct rhc_event *event);

/* Make one for these gateways: "HOST:PORT,HOST:PORT", up to 64, tried in turn from one that the
 * seed picks. It is idle: rhc_start() its client. It dials in rhc_tcp_poll(); names are looked up
 * with getaddrinfo(), which may block: write addresses where that hurts. Without `on_event` nobody
 * is told of events. NULL: no memory, or the words make no sense. */
RHC_API struct rhc_tcp *rhc_tcp_new(const char *gateways, const struct rhc_options *options,
                                    rhc_on_event *on_event, void *context);

/* Its client, for rhc_ask() and the others that ask; time comes from rhc_now_ms(). */
RHC_API struct rhc *rhc_tcp_client(struct rhc_tcp *t);

/* For poll() in a loop of your own: the socket (-1 = none now), whether to wait for room to write
 * as well, and for how many milliseconds at most (-1 = for ever). */
RHC_API int rhc_tcp_fd(const struct rhc_tcp *t);
RHC_API int rhc_tcp_wants_write(struct rhc_tcp *t);
RHC_API int rhc_tcp_wait_ms(struct rhc_tcp *t);

/* Do what is to be done, and call back. Waits for it up to `wait_ms` milliseconds (0: not at
 * all; -1: until something is due). */
RHC_API void rhc_tcp_poll(struct rhc_tcp *t, int wait_ms);

/* Close and free it, without a callback. NULL is allowed. */
RHC_API void rhc_tcp_free(struct rhc_tcp *t);

/* Milliseconds of a clock that never jumps. */
RHC_API uint64_t rhc_now_ms(void);

/* "OVERLOADED"; "?" if it is none. */
RHC_API const char *rhc_status_name(unsigned status);

#ifdef __cplusplus
}
#endif

#endif
