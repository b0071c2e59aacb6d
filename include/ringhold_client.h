/* SPDX-License-Identifier: Apache-2.0
 *
 * libringhold-client: a game's client at the gateways of a Ringhold fleet.
 *
 * The library speaks docs/protocol-client.md: it sends requests to entities, binds to one entity
 * and receives its pushes. When a connection is lost, or a gateway stops or dies, it dials again
 * with jittered back-off, resumes the session if it can, and sends unanswered requests again.
 * docs/clients.md shows how to use it.
 *
 * There are two layers. `struct rhc` is the protocol alone: bytes and time go in, bytes and events
 * come out; it opens no socket, reads no clock, and uses only the memory that you give it.
 * `struct rhc_tcp` drives one `struct rhc` over TCP, with poll(). Neither starts a thread; each
 * object may be used by one thread at a time. The library needs only the C library.
 *
 *     IDLE -rhc_start-> WAITING -its time has come-> DIALLING -rhc_connected-> GREETING
 *     GREETING -hello-ack, auth-ok, bind or resume answered-> READY
 *     READY -goaway-> LEAVING -all is answered-> WAITING, for another gateway
 *     any -the line drops-> WAITING        any -kicked for good, rhc_stop-> ENDED
 *
 * A function refuses NULL in place of a client: it returns RHC_INVALID, or, if its result is no
 * enum rhc_result, nothing, 0 or NULL.
 *
 * Times are milliseconds of one clock that never goes back; its starting point doesn't matter.
 *
 * Each request ends exactly once, with RHC_EVENT_RESPONSE or its callback, even if the connection
 * drops or no gateway can be reached. A request that was not sent yet waits for the next
 * connection. A request that was sent and not answered is sent again if the session is resumed (it
 * still runs only once) or if it is idempotent; otherwise it ends as RHC_UNKNOWN: it may have run,
 * at most once.
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

/* Version of the structures below. New fields are added only at their end. */
enum { RHC_ABI = 1 };

/* How a request ended. The numbers are those of the protocol. Treat a number that is not listed
 * here as UNKNOWN. */
enum rhc_status {
    RHC_OK = 0,
    RHC_ACTOR_FAILED = 1,  /* it ran; the actor answered with an error, the payload is its text */
    RHC_UNKNOWN = 2,       /* it may have run, at most once */
    RHC_TIMEOUT = 3,       /* no answer in time: it may have run, or may still run, at most once */
    RHC_MOVING = 4,        /* no node could run it in time: it did not run and never will */
    RHC_OVERLOADED = 5,    /* no room for it: it did not run and never will */
    RHC_NO_OWNER = 6,      /* no node hosts that kind of actor: it did not run */
    RHC_QUARANTINED = 7,   /* its actor killed processes: it did not run */
    RHC_REJECTED = 8,      /* for a bind: the actor takes no session */
    RHC_BAD_REQUEST = 9,   /* the request is invalid: it did not run */
    RHC_UNAUTHORIZED = 10, /* the token is for another entity: it did not run */
    RHC_RATE_LIMITED = 11, /* too many requests: it did not run and never will */
};

/* The results of functions. */
enum rhc_result {
    RHC_DONE = 0,
    RHC_INVALID = 1,   /* an argument is wrong, or the function can't be called now */
    RHC_FULL = 2,      /* too much is under way: try again after an answer has come */
    RHC_TOO_LARGE = 3, /* larger than this gateway accepts; it is never sent */
};

/* Bytes that someone else owns. */
struct rhc_bytes {
    const void *data;
    size_t size;
};

struct rhc;

/* A callback for the end of a request. `status` is an enum rhc_status. `payload` is borrowed until
 * the callback returns. The callback may send new requests. */
typedef void rhc_done(void *context, unsigned status, struct rhc_bytes payload, uint32_t retry_ms);

/* A field that is 0 means the default, in brackets. The options are copied. */
struct rhc_options {
    uint32_t abi;          /* RHC_ABI */
    uint32_t size;         /* sizeof(struct rhc_options) */
    const char *token;     /* sent to gateways that ask for one: a token, or what the game's
                              login actor accepts, up to 1024 bytes; NULL = none */
    uint64_t seed;         /* seed of the jitter: choose another one in each client, or all
                              clients come back at once */
    uint32_t requests_max; /* requests and notifies without an answer (256) */
    uint32_t in_max;       /* size of the largest packet that is accepted, 1 KiB to 16 MiB less one
                              (1 MiB + 64) */
    uint32_t out_max;      /* bytes of all unanswered requests together, 1 KiB or more (128 KiB) */
    uint32_t answer_ms;    /* a request without an answer ends after this time (15 s): as TIMEOUT
                              if it was sent, otherwise as MOVING */
    uint32_t greet_ms;     /* limit for connecting and greeting (10 s) */
    uint32_t back_off_min_ms; /* pause after the first failure; doubled after each more (200 ms) */
    uint32_t back_off_max_ms; /* the longest pause (10 s) */
};

enum rhc_request_flags {
    RHC_IDEMPOTENT = 1, /* it may run more than once, so it is sent again after any loss */
};

/* A request: which entity, and what. Everything is copied. */
struct rhc_request {
    uint16_t kind;        /* of the entity */
    uint16_t flags;       /* enum rhc_request_flags */
    uint32_t deadline_ms; /* the gateway must answer within this time; 0 = the gateway's default */
    struct rhc_bytes id;  /* 1..255 bytes */
    struct rhc_bytes payload;
    rhc_done *done; /* called at the end; NULL: rhc_next() returns RHC_EVENT_RESPONSE */
    void *context;  /* passed to `done`, or part of the event */
};

enum rhc_state {
    RHC_IDLE,
    RHC_WAITING,  /* waits until it is time to dial */
    RHC_DIALLING, /* the program is connecting */
    RHC_GREETING, /* hello, authentication, bind or resume are under way */
    RHC_READY,
    RHC_LEAVING, /* this gateway stops; answers still arrive */
    RHC_ENDED,
};

enum rhc_event_type {
    RHC_EVENT_READY,    /* greeted, authenticated, and bound if asked to: requests are sent now */
    RHC_EVENT_RESPONSE, /* a request ended: `status`, `payload`, `retry_ms`; `request`, `context` */
    RHC_EVENT_PUSH,     /* a push of the bound actor: `sequence`, `payload`; `lost` = how many
                           pushes before it were lost */
    RHC_EVENT_BOUND,    /* bound. `fresh`: the actor began a new session; otherwise the old session
                           goes on, and nothing of it is lost */
    RHC_EVENT_REFUSED,  /* the bind was refused: `status`, `payload` says why; it isn't repeated */
    RHC_EVENT_BEGUN,   /* the actor was lost and has started afresh: it has forgotten this client */
    RHC_EVENT_UNBOUND, /* the bind was ended by rhc_unbind() */
    RHC_EVENT_GOAWAY,  /* the gateway stops: `retry_ms`, `payload` is its text. The client connects
                          to another one */
    RHC_EVENT_LOST,    /* the connection is lost, `payload` says why. The client dials again */
    RHC_EVENT_KICKED,  /* kicked for good: `code`, `payload` is the text. The client stays
                          disconnected until rhc_start() */
    RHC_EVENT_REBOUND, /* the actor passed this client on to another entity, of kind `code`;
                          `payload` is its id. BOUND follows. Address that entity from now on */
    RHC_EVENT_KNOWN,   /* the gateway says which entity this client is: of kind `code`, `payload`
                          is its id */
};

struct rhc_event {
    enum rhc_event_type type;
    unsigned status;   /* enum rhc_status, or a number of a later version */
    uint32_t code;     /* a kick's code, see docs/protocol-client.md; or a kind */
    uint32_t retry_ms; /* wait so long before you ask again; 0 = now, or not at all */
    uint32_t request;  /* the number that rhc_ask() gave it */
    int fresh;
    uint64_t sequence;
    uint64_t lost;
    /* Borrowed until the next call of any function of this `struct rhc`. */
    struct rhc_bytes payload;
    rhc_done *done; /* of a response: if not NULL, whoever took the event must call it */
    void *context;
};

/* The action that the program must take for the connection. */
enum rhc_wish {
    RHC_NOTHING,
    RHC_DIAL,    /* connect to the gateway that rhc_gateway() names, then call rhc_connected() */
    RHC_HANG_UP, /* close the connection, then call rhc_disconnected() */
};

/* ---- the protocol ---- */

/* How many bytes rhc_init() needs for these options; 0: the options are invalid. */
RHC_API size_t rhc_size(const struct rhc_options *options);

/* Make a client in `memory`: rhc_size() bytes, aligned as by malloc(). The memory stays the
 * caller's, who may free it when the client is no longer used. NULL: the options are invalid. */
RHC_API struct rhc *rhc_init(void *memory, const struct rhc_options *options);

/* Connect, and stay connected. RHC_INVALID: the client is neither IDLE nor ENDED. */
RHC_API int rhc_start(struct rhc *c, uint64_t now_ms);

/* Hang up, end all requests as RHC_UNKNOWN or RHC_MOVING, and dial no more. If there is a
 * connection, this happens when rhc_disconnected() is called. */
RHC_API void rhc_stop(struct rhc *c);

/* Use this token from the next connection on, and forget the token that a gateway may have issued
 * for the former one. NULL = none. RHC_INVALID: the token is over 1024 bytes. */
RHC_API int rhc_set_token(struct rhc *c, const char *token);

/* Send a request to an entity. It ends exactly once. `*request`, if not NULL, gets the request's
 * number. Requests to one entity run in the order of these calls. RHC_INVALID: a wrong id or wrong
 * flags, a payload over 8 MiB less one or over out_max, or the client has ENDED; RHC_FULL:
 * requests_max or out_max is reached; RHC_TOO_LARGE: the gateway does not accept so much. A request
 * that is given before a gateway has told its limit, and is over it, ends as RHC_BAD_REQUEST: it
 * did not run. */
RHC_API int rhc_ask(struct rhc *c, const struct rhc_request *r, uint64_t now_ms, uint32_t *request);

/* Send a message to an entity, in order with the requests to it. There is no answer, and the
 * message may be lost with the connection. `done` is not used. Errors as for rhc_ask(). */
RHC_API int rhc_tell(struct rhc *c, const struct rhc_request *r, uint64_t now_ms);

/* Bind to this entity, on this connection and the next ones. If the gateway supports it, the
 * session is kept while there is no connection. Call it before rhc_start() if you can: requests
 * sent earlier don't belong to the session. RHC_INVALID: the client is bound already, or the id is
 * invalid. */
RHC_API int rhc_bind(struct rhc *c, uint16_t kind, struct rhc_bytes id);

/* End the bind. RHC_EVENT_UNBOUND follows when the gateway has answered, or at once if the client
 * is not bound at this moment, or stops. RHC_INVALID: there is no bind to end, or one is under way:
 * try again when it has been answered. */
RHC_API int rhc_unbind(struct rhc *c);

/* Return the action that the program must take for the connection now. */
RHC_API enum rhc_wish rhc_wishes(const struct rhc *c);

/* A number that grows when another gateway should be tried: use gateway number % count of yours. */
RHC_API uint32_t rhc_gateway(const struct rhc *c);

/* Call it when the connection that rhc_wishes() asked for is established. */
RHC_API void rhc_connected(struct rhc *c, uint64_t now_ms);

/* Call it when the connection is lost or could not be made; `why` is for people. Take all events
 * with rhc_next() before. */
RHC_API void rhc_disconnected(struct rhc *c, const char *why, uint64_t now_ms);

/* The place for received bytes, and how many fit. `*size` is 0 without a connection, and while
 * there are events to take first. Borrowed until any other call. */
RHC_API void *rhc_room(struct rhc *c, size_t *size);

/* `size` bytes were put into the place that rhc_room() returned. */
RHC_API void rhc_received(struct rhc *c, size_t size, uint64_t now_ms);

/* The bytes to send now; size 0 = none. Borrowed until any other call. */
RHC_API struct rhc_bytes rhc_output(struct rhc *c);

/* `size` bytes of the last rhc_output() were sent. */
RHC_API void rhc_sent(struct rhc *c, size_t size, uint64_t now_ms);

/* Take the oldest event: returns 1 and fills in `event`, or 0 if there is none. */
RHC_API int rhc_next(struct rhc *c, struct rhc_event *event);

/* Tell the client the time, and let it do what is due. */
RHC_API void rhc_tick(struct rhc *c, uint64_t now_ms);

/* When to call rhc_tick() if nothing else happens before; UINT64_MAX = no need to. */
RHC_API uint64_t rhc_wake_ms(const struct rhc *c);

/* The state of the client. */
RHC_API enum rhc_state rhc_state(const struct rhc *c);

/* ---- over TCP (POSIX) ---- */

struct rhc_tcp;

/* A callback for every event, except the end of a request that has a callback of its own. */
typedef void rhc_on_event(void *context, const struct rhc_event *event);

/* Make a client for these gateways: "HOST:PORT,HOST:PORT", at most 64. They are tried in turn,
 * beginning with one that the seed picks. The client is idle until you call rhc_start() on it; it
 * connects within rhc_tcp_poll(). Names are looked up with getaddrinfo(), which may block: use
 * numeric addresses where that matters. With `on_event` NULL, events are dropped. NULL: no memory,
 * or `gateways` or the options are invalid. */
RHC_API struct rhc_tcp *rhc_tcp_new(const char *gateways, const struct rhc_options *options,
                                    rhc_on_event *on_event, void *context);

/* The client inside, for rhc_ask() and the like; take the time from rhc_now_ms(). */
RHC_API struct rhc *rhc_tcp_client(struct rhc_tcp *t);

/* For poll() in your own loop: the socket (-1 = none now), whether to wait until it is writable,
 * too, and how many milliseconds to wait at most (-1 = for ever). */
RHC_API int rhc_tcp_fd(const struct rhc_tcp *t);
RHC_API int rhc_tcp_wants_write(struct rhc_tcp *t);
RHC_API int rhc_tcp_wait_ms(struct rhc_tcp *t);

/* Do all that is due, and call the callbacks. Wait for something to do for at most `wait_ms`
 * milliseconds (0: don't wait; -1: wait until something is due). */
RHC_API void rhc_tcp_poll(struct rhc_tcp *t, int wait_ms);

/* Close the connection and free the client, without calling back. NULL is allowed. */
RHC_API void rhc_tcp_free(struct rhc_tcp *t);

/* Milliseconds of a clock that never jumps. */
RHC_API uint64_t rhc_now_ms(void);

/* The name of a status, such as "OVERLOADED"; "?" if the number is unknown. */
RHC_API const char *rhc_status_name(unsigned status);

#ifdef __cplusplus
}
#endif

#endif
