/* SPDX-License-Identifier: Apache-2.0
 *
 * libringhold: host actors, exactly one live actor per id across a fleet.
 *
 * A game server describes each kind of actor by a table of callbacks and runs a
 * node in its own process (rh_node_start, rh_node_run), or is loaded by one as a
 * shared object (`ringhold node --actor ./game.so`). docs/actors.md shows both.
 *
 * The life of an actor:
 *
 *     absent -first message-> activate -> idle <-> message, timer, answer
 *     idle -its id moves-> flush, handoff -> deactivate(MOVED); activate(state) at the new owner
 *     idle -nobody asks-> flush -> deactivate(IDLE); the next message activates it afresh
 *
 * Only one callback of an actor runs at a time. An actor handles one message after
 * the other: the next message begins when the current one is answered. Requests that
 * arrive meanwhile wait in the actor's mailbox.
 *
 * Threads. A node has one thread for the protocol and `threads` workers. An actor
 * belongs to one worker as long as it lives on this node: all its callbacks run on
 * that worker's thread. Call functions that take a `struct rh_actor` only from these
 * callbacks. Functions that take a token, and rh_node_stop(), may be called from
 * any thread. A callback that blocks delays the actors of its worker, and no
 * others. The protocol thread also runs actors of kinds that are `brief`.
 *
 * Later. A callback that "may finish later" calls rh_defer() and returns RH_PENDING
 * (a message or timer callback just returns). Somebody then calls rh_done() or
 * rh_reply_later() with the token, from any thread. The actor is busy until then.
 *
 * NULL. A function refuses NULL in place of an actor, a group, a node, or the data of non-empty
 * bytes: it returns RH_INVALID, or, if its result is no enum rh_result, nothing, 0 or NULL. NULL in
 * place of a text means "".
 */
#ifndef RINGHOLD_H
#define RINGHOLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library exports the functions marked so, and no other names. */
#if defined(__GNUC__)
#define RH_API __attribute__((visibility("default")))
#else
#define RH_API
#endif

/* The release that this header is of, and as a number: major * 1000000 + minor * 1000 + patch. The
 * library that runs may be another one: rh_version(). */
#define RH_VERSION        "0.1.0"
#define RH_VERSION_NUMBER 1000

/* Return the version of the library that runs, as "0.1.0"; it lives as long as the process. Any
 * thread. */
RH_API const char *rh_version(void);
/* Return the same as a number, to be compared with RH_VERSION_NUMBER. Any thread. */
RH_API uint32_t rh_version_number(void);

/* Version of the structures below. The library refuses tables and options with another number. New
 * fields are added only at the end of a structure, and each that you fill in starts with its size:
 * code that was built with an older header of the same ABI keeps working, and what it lacks is 0.
 * Code that was built with a newer header works as long as it sets nothing that this library does
 * not know; else it is refused, and a line says both sizes. */
enum { RH_ABI = 2 };

/* The results of functions and callbacks, and the outcomes of calls. The numbers never change. */
enum rh_result {
    RH_OK = 0,
    RH_INVALID = 1, /* the function can't be called now, or an argument is wrong */
    RH_GONE = 2,    /* the actor is no longer here, or the message has been answered already */
    RH_TOO_BIG = 3, /* over a limit; from a reply: the client got an error that says so */
    RH_FAILED = 4,  /* the actor itself failed, or answered with an error */
    RH_PENDING = 5, /* from a callback: rh_done() will follow */
    RH_BUSY = 6, /* from handoff: not now (a trade is in progress), ask again until the deadline */
    RH_COLD = 7, /* from handoff: there is no state to hand over; start afresh at the new owner */
    /* A call ends with OK (it was answered), FAILED (the actor answered with an error), one of the
     * next six, or RH_DEADLOCK. */
    RH_UNKNOWN = 8,     /* the call may have run, at most once */
    RH_TIMEOUT = 9,     /* no answer in time; the call may have run, at most once */
    RH_REJECTED = 10,   /* no owner in time: the call did not run and never will */
    RH_NO_KIND = 11,    /* no node hosts that kind */
    RH_OVERLOADED = 12, /* a mailbox, node or buffer is full: the call did not run and never will */
    RH_QUARANTINED = 13, /* the actor killed processes: no call to it runs until it is cleared */
    /* From pushes, kicks and rebinds; from groups. */
    RH_NO_SESSION = 14, /* no client is bound to the actor */
    RH_FULL = 15,       /* the group has as many members as it may, or the actor as many values or
                           alarms */
    /* From calls. */
    RH_DEADLOCK = 16, /* the called actor is itself waiting, perhaps through others, for an answer
                         from this one: the call did not run and never will */
};

/* Bytes that someone else owns. */
struct rh_bytes {
    const void *data;
    size_t size;
};

/* The library's handle of a live actor. Use it only within the actor's own callbacks, from its
 * activate until its deactivate returns. */
struct rh_actor;

/* ---- what an actor is asked ---- */

enum rh_message_flags {
    RH_NO_REPLY = 1,   /* nobody waits for an answer: a reply is dropped */
    RH_IDEMPOTENT = 2, /* the sender allows it to run again after a crash */
};

/* One request. All its bytes are borrowed until the message callback returns. */
struct rh_message {
    struct rh_bytes payload; /* of a CALL or TELL, opaque; empty for a command */
    /* A command such as {"INCRBY", key, "3"}: its name in upper case, the key, the rest. */
    const struct rh_bytes *argument;
    size_t argument_count; /* 0: the request is a payload */
    uint32_t flags;        /* enum rh_message_flags */
    uint16_t from_kind;    /* kind of the actor that sent it, if `from` is not empty */
    struct rh_bytes from;  /* id of the actor that sent it; empty = a client */
};

/* ---- what it answers ---- */

enum rh_value_type { RH_BYTES, RH_TEXT, RH_INTEGER, RH_NIL, RH_ERROR };

/* A reply. In answer to a command each type keeps its meaning: a Redis client sees a bulk, a
 * status, an integer, a nil or an error. In answer to a payload, bytes and text arrive unchanged,
 * an integer as decimal text, nil as no bytes, and an error as an error. */
struct rh_value {
    enum rh_value_type type;
    int64_t integer;
    struct rh_bytes bytes; /* BYTES, TEXT, ERROR: borrowed by the function that takes the value */
};

static inline struct rh_value rh_bytes_value(const void *data, size_t size)
{
    struct rh_value v = {RH_BYTES, 0, {data, size}};
    return v;
}

static inline struct rh_value rh_integer(int64_t integer)
{
    struct rh_value v = {RH_INTEGER, integer, {NULL, 0}};
    return v;
}

static inline struct rh_value rh_nil(void)
{
    struct rh_value v = {RH_NIL, 0, {NULL, 0}};
    return v;
}

/* A value that is one line of text, such as "OK". `text` is NUL-terminated and borrowed as long as
 * the value is used. Any thread. */
RH_API struct rh_value rh_text(const char *text);
/* A value that is an error. The first word of `text` is a code in capitals: "ERR no such item",
 * "BUSY in a trade". Otherwise like rh_text(). */
RH_API struct rh_value rh_error(const char *text);

/* Answer the message that this actor is handling. Only the first reply counts. Call it within the
 * message callback, or, while the message is deferred, from a callback of rh_after() or rh_call().
 * The value is copied. RH_INVALID: there is no message to answer, it has been answered, or the
 * value's type is unknown; RH_TOO_BIG: the value is over 1 MiB, and the client gets an error that
 * says so. */
RH_API int rh_reply(struct rh_actor *actor, struct rh_value value);

/* Names one deferred callback. No other callback ever gets the same token, so it is harmless to use
 * one after the actor or its node is gone. `number` 0 names no callback. */
struct rh_token {
    void *scene;
    uint64_t number;
};

/* Defer the callback that runs now; it must be one that may finish later: activate, message, timer,
 * alarm, flush, handoff or session. The actor stays busy until the callback is finished: its
 * requests wait, and it can't move. So finish every deferred callback, in bounded time. A second
 * call within the same callback returns the same token. Anywhere else the token names nothing. */
RH_API struct rh_token rh_defer(struct rh_actor *actor);

/* Answer a deferred message, from any thread. The value is copied. RH_OK: the message will be
 * answered, unless the actor is stopped before its worker has finished what it is doing now.
 * RH_GONE: the message has been answered, its actor was stopped meanwhile, or the token names
 * nothing; RH_INVALID: the token belongs to another callback than message, or the value's type is
 * unknown; RH_TOO_BIG: as for rh_reply(). */
RH_API int rh_reply_later(struct rh_token token, struct rh_value value);

/* Finish a deferred callback other than message, from any thread. `result` is what the callback
 * would have returned. RH_GONE: the callback has been finished, its actor was stopped meanwhile
 * (its deactivate was called, or is about to be), or the token names nothing; RH_INVALID: the token
 * belongs to a message, or `result` is RH_PENDING.
 *
 * A failed activate gets no deactivate. When this function takes a `result` other than RH_OK for an
 * activate (it returns RH_OK), the library calls nothing more for that instance, and whoever made
 * the instance frees it now. When it returns RH_GONE, leave the instance alone: its deactivate
 * frees it. Exactly one of the two happens. */
RH_API int rh_done(struct rh_token token, int result);

/* A function that rh_after() calls after `ms` milliseconds, at most 20 ms late; or rh_post(), or
 * rh_timer_call(). */
typedef void (*rh_timer)(struct rh_actor *actor, void *instance, void *argument);

/* Call `timer` (not NULL) on this actor later, while a message runs or a callback is deferred. The
 * timer belongs to that message or callback: it never fires once that is answered or finished, so
 * it never fires on an actor that is moving or gone. `argument` stays the caller's. RH_INVALID: no
 * message runs and no callback is deferred. */
RH_API int rh_after(struct rh_actor *actor, uint32_t ms, rh_timer timer, void *argument);

/* Return a token that names this life of the actor: from now until its deactivate is called, or its
 * activate has failed. Each call returns the same one. In deactivate, and of NULL, it names
 * nothing. */
RH_API struct rh_token rh_life(struct rh_actor *actor);

/* From any thread: have `then` (not NULL) called on the actor's worker. If a callback is deferred
 * at that moment, it is called as a part of it, as rh_after() would, and may finish it; else
 * between messages. What is posted to one actor by one thread is called in order, and each once,
 * unless the actor ends first: `argument` stays the caller's. RH_OK; RH_GONE: that life is over;
 * RH_INVALID: the token is none of rh_life(). */
RH_API int rh_post(struct rh_token life, rh_timer then, void *argument);

/* ---- other actors ---- */

/* How a call ended. Borrowed until the callback that gets it returns. */
struct rh_answer {
    int status; /* RH_OK, RH_FAILED, RH_UNKNOWN to RH_QUARANTINED, or RH_DEADLOCK */
    /* With OK and FAILED: the answer. With any other status: a text that says what the status
     * means, in the form of rh_error(). Only an OK answer may be empty. */
    struct rh_bytes payload;
};
typedef void (*rh_on_answer)(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                             void *argument);

/* Call actor `id` (1..255 bytes) of `kind`, wherever it lives. `then` gets the answer within
 * timeout_ms (1..60000, required). If a message of the caller is running or deferred, `then` runs
 * before that message ends; otherwise it runs between messages. `then` is called exactly once,
 * unless the calling actor stops or moves first. Calls of one actor to one other actor run there in
 * order. flags: RH_IDEMPOTENT = the call may run again after a crash. Everything is copied except
 * `argument`, which stays the caller's.
 *
 * An actor takes no further message before it has answered the current one. If actors wait for each
 * other in a circle, on one node or several, the library notices it after some 0.1 s: one of
 * their calls ends with RH_DEADLOCK, and the others go on. The actor that gets RH_DEADLOCK should
 * undo what it began, answer its own message, and call again later, not at once.
 *
 * Any callback may call it, except handoff, resume and deactivate. On an error `then` is not
 * called. RH_INVALID: wrong callback, wrong argument, or the actor calls itself; RH_TOO_BIG: the
 * payload is over 1 MiB; RH_OVERLOADED: the actor has 1024 open calls already. */
RH_API int rh_call(struct rh_actor *actor, uint16_t kind, struct rh_bytes id,
                   struct rh_bytes payload, uint32_t timeout_ms, uint32_t flags, rh_on_answer then,
                   void *argument);

/* Frees an argument that the library owns. It runs on the actor's worker, and may call no function
 * that takes an actor; the instance may be gone. */
typedef void (*rh_destroy)(void *argument);

/* Like rh_call(), but `argument` is the library's as soon as this is called, whatever it returns.
 * destroy(argument) is called exactly once: when `then` has returned, when it is certain that
 * `then` will not be called (the calling actor stopped, moved or failed: after its deactivate), or
 * at once if this returns an error. A process that dies calls nothing. `destroy`: free() for what
 * malloc() gave; not NULL (RH_INVALID). */
RH_API int rh_call_owned(struct rh_actor *actor, uint16_t kind, struct rh_bytes id,
                         struct rh_bytes payload, uint32_t timeout_ms, uint32_t flags,
                         rh_on_answer then, void *argument, rh_destroy destroy);

/* Send a message for which nobody waits. It runs at most once, in order with the calls from this
 * actor to the same one. An actor may send to itself; that arrives like any message. RH_INVALID and
 * RH_TOO_BIG as for rh_call(). */
RH_API int rh_send(struct rh_actor *actor, uint16_t kind, struct rh_bytes id,
                   struct rh_bytes payload);

enum { RH_SEND_ONCE_MAX = 1024 * 1024 - 512 /* bytes of a payload */ };

/* Send a message that arrives exactly once, whatever dies; of a durable kind only. It is saved by
 * the commit of what the callback changes, leaves after that, and goes again until its receiver has
 * taken it: from this node, or from the actor's next owner. Those to one receiver run there in
 * order. If its receiver is durable, too, it saves that it took the send in the commit of what the
 * send changed, so it takes none twice; of another kind it may run again after a crash.
 *
 * The receiver gets a message with RH_NO_REPLY, `from` the sender. If it answers an error, calls
 * rh_fail(), or can't be reached, the send is not taken: what its callback changed is undone, and
 * the send comes again, with a back-off of up to 5 s, as long as it takes. If it waits for others,
 * it is taken with the first that it changes or asks, or else when it ends.
 *
 * Callbacks that may call rh_state_put() may call it. RH_INVALID: wrong callback, not durable, or a
 * wrong argument; RH_TOO_BIG: the payload is over RH_SEND_ONCE_MAX, or the actor's own id over 253
 * bytes; RH_OVERLOADED: 1024 sends of the actor, or 16 MiB, are not taken yet. */
RH_API int rh_send_once(struct rh_actor *actor, uint16_t kind, struct rh_bytes id,
                        struct rh_bytes payload);

/* ---- sessions: a client that is bound to an actor ---- */

/* A client binds its connection at a gateway to an actor (`BIND id`). Then the actor has a session
 * with that client, and may push messages to it unasked. An actor has one session at a time, or
 * several if its kind has RH_SESSIONS_ALLOW: the devices of one player. Each session has its own
 * pushes and its own resume. Sessions move with the actor. While a session lasts, the actor is not
 * ended for being idle, nor for want of room. Only kinds with ops.session take sessions. */

enum { RH_PUSH_MAX = 262144 /* bytes of one push */ };

/* The events that ops.session gets. */
enum rh_session_type {
    RH_SESSION_BOUND = 1,    /* a client has come */
    RH_SESSION_REPLACED = 2, /* a client has taken the place of a former one, which was kicked; or
                                the same client came again and had not heard that it is bound */
    RH_SESSION_RESUMED = 3,  /* the former client is still there; see `why` */
    RH_SESSION_LOST = 4,     /* the client has gone; see `why`. If it may resume, the actor can go
                                on pushing until that time is over; no event tells its end */
};

enum rh_resumed_why {
    RH_RESUMED_AFRESH = 0, /* the client is still there, but the actor was started afresh: it knows
                              nothing of the session, and pushes may be missing */
    RH_RESUMED_CLIENT = 1, /* the client is back; it gets the pushes that it missed first */
};

/* Policy for a client that binds to an actor which already has a bound client; ops.sessions. A lost
 * client that might still resume never blocks a new one. */
enum rh_sessions {
    RH_SESSIONS_KICK_OLD = 0,   /* the former client is kicked: REPLACED */
    RH_SESSIONS_REJECT_NEW = 1, /* the new client is refused; the actor isn't told */
    RH_SESSIONS_ALLOW = 2,      /* both are bound, up to ops.sessions_max. One more takes the place
                                   of a lost client that might resume, else of the client that has
                                   been connected longest, which is kicked: REPLACED */
};
enum { RH_SESSIONS_MAX = 16 /* of one actor */ };

enum rh_lost_why {
    RH_LOST_CLOSED = 1,  /* the client closed its connection, or sent UNBIND */
    RH_LOST_KICKED = 2,  /* rh_kick() */
    RH_LOST_SLOW = 3,    /* the client did not read its pushes, and was disconnected */
    RH_LOST_GATEWAY = 4, /* its gateway was silent for 5 s */
    RH_LOST_REBOUND = 5, /* rh_rebind(): the client goes on as another entity */
};

/* An event of a session. Borrowed until the callback returns. New fields are added at its end. */
struct rh_session {
    uint32_t type; /* enum rh_session_type */
    uint32_t why;  /* of LOST: enum rh_lost_why; of RESUMED: enum rh_resumed_why; else 0 */
    /* The session's number: > 0, below 2^63, the same until the session is over, whatever moves or
     * resumes, and no other session's. RESUMED with AFRESH may bring a new number. */
    uint64_t session;
    uint64_t former; /* of REPLACED: the session whose place was taken, and which is over; else 0 */
};

/* Codes of kicks. */
enum rh_kick_code {
    RH_KICK_REPLACED = 1, /* another client was bound to the actor */
    RH_KICK_REFUSED = 2,  /* ops.session said no to RESUMED */
    RH_KICK_ENDED = 3,    /* the actor ended by rh_passivate() */
    RH_KICK_GAME = 1000,  /* from here on: the game's own */
};

/* Send bytes (0..RH_PUSH_MAX, copied) to the clients of this actor. Pushes arrive in order, each at
 * most once, also when the actor moves. A crash of this node or a lost link may lose pushes, like
 * any message; the client isn't told. A client that doesn't read is disconnected, and the actor
 * gets LOST.
 *
 * Any callback may call it, except handoff, resume and deactivate. RH_NO_SESSION: no client is
 * bound, or it was kicked; RH_TOO_BIG: the payload is over RH_PUSH_MAX; RH_INVALID: wrong callback,
 * or no data. */
RH_API int rh_push(struct rh_actor *actor, struct rh_bytes payload);
/* Push to one client of this actor, by rh_session.session. Results as for rh_push(). RH_NO_SESSION:
 * that session is not bound. */
RH_API int rh_push_one(struct rh_actor *actor, uint64_t session, struct rh_bytes payload);

/* Push to the clients of `count` other actors (ids of `kind`, 1..255 bytes each; all copied), on
 * whatever node they live. Each push arrives at most once, in order per actor as with rh_send().
 * The push does not activate an actor, and the actor does not see it; if no client is bound there,
 * that node drops and counts it.
 *
 * Callbacks that may call rh_send() may call it. RH_INVALID: wrong callback, `count` is not
 * 1..65536, or an id is bad; RH_TOO_BIG: the payload is over RH_PUSH_MAX; RH_OVERLOADED: as for
 * rh_group_push(), which describes how such pushes go out. On an error nothing is sent. */
RH_API int rh_push_ids(struct rh_actor *actor, uint16_t kind, const struct rh_bytes *ids,
                       size_t count, struct rh_bytes payload);

/* Close the connections of the actor's clients. Earlier pushes arrive first, then `code`
 * (RH_KICK_GAME and up) and `text` (up to 255 bytes; NULL = ""; copied). From now on rh_push()
 * returns RH_NO_SESSION. ops.session gets LOST when the connection is closed or a newer client has
 * come. A client that is away at the moment can no longer resume.
 *
 * Callbacks that may push may call it. RH_NO_SESSION: as for rh_push(); RH_TOO_BIG: the text is too
 * long; RH_INVALID: wrong callback, or the code is not one of the game's. */
RH_API int rh_kick(struct rh_actor *actor, uint32_t code, const char *text);
/* Kick one client, by rh_session.session. Results as for rh_kick(). */
RH_API int rh_kick_one(struct rh_actor *actor, uint64_t session, uint32_t code, const char *text);

/* Let the actor's clients go on as actor `id` (1..255 bytes, copied) of `kind`: for example an
 * account's client as the player that was chosen. Earlier pushes arrive first. Then the gateway
 * treats the client as that entity and tells it so, and the client binds itself there. Requests
 * that it had sent to this actor are still answered. From now on rh_push() returns RH_NO_SESSION;
 * ops.session gets LOST with RH_LOST_REBOUND when the gateway has done it. If the gateway is lost
 * before, a client that resumes is told again; a client that can't resume comes back to this actor,
 * BOUND afresh.
 *
 * Callbacks that may push may call it. RH_NO_SESSION: as for rh_push(); RH_INVALID: wrong callback,
 * a bad id, or this actor's own id. */
RH_API int rh_rebind(struct rh_actor *actor, uint16_t kind, struct rh_bytes id);
/* Rebind one client, by rh_session.session. Results as for rh_rebind(). */
RH_API int rh_rebind_one(struct rh_actor *actor, uint64_t session, uint16_t kind,
                         struct rh_bytes id);

/* ---- groups: a room, a guild, a match ---- */

/* A set of ids of one kind, in the memory of the actor that made it, to push the same bytes to the
 * clients of all of them. Like the rest of an actor, a group is used by one thread at a time. It
 * moves by rh_group_save() and rh_group_load(). A group does not track its members: an actor that
 * wants to join or leave, for instance because its client is LOST, tells the group's actor. A
 * member without a client costs little: a push to it is dropped and counted. */
struct rh_group;
struct rh_out;

enum {
    RH_GROUP_MAX = 65536, /* members */
    RH_ID_MAX = 255,      /* bytes of an id */
};

/* Make a group for up to members_max ids of `kind` (0 = RH_GROUP_MAX). The caller frees it. NULL:
 * members_max is over RH_GROUP_MAX. */
RH_API struct rh_group *rh_group_new(uint16_t kind, size_t members_max);
/* Free a group, or NULL. Pushes that were already made are still delivered. */
RH_API void rh_group_free(struct rh_group *group);

/* Add the id (1..RH_ID_MAX bytes, copied) to the members. RH_OK: it is a member now, or was one
 * before; RH_FULL: the group has members_max members; RH_INVALID: the id is bad. */
RH_API int rh_group_join(struct rh_group *group, struct rh_bytes id);
/* Remove the id from the members. RH_GONE: it was not a member. */
RH_API int rh_group_leave(struct rh_group *group, struct rh_bytes id);
/* Return 1 if the id is a member, else 0. */
RH_API int rh_group_has(const struct rh_group *group, struct rh_bytes id);
/* Return the number of members. */
RH_API size_t rh_group_count(const struct rh_group *group);
/* Return the member at 0 <= index < count; joins and leaves change the order. The bytes are
 * borrowed until the group changes. No bytes: there is no such member. */
RH_API struct rh_bytes rh_group_at(const struct rh_group *group, size_t index);

/* Push bytes (0..RH_PUSH_MAX, copied once) to the clients of all present members, on whatever nodes
 * their actors live. Each client gets the push at most once. To one member it stays in order with
 * the other pushes, sends and calls of this actor, as with rh_send(); pushes and sends also stay in
 * order when either actor moves. A member whose client is away gets the push when the client is
 * back. If no client is bound, or the member's actor sleeps, that node drops and counts the push.
 * It activates no actor, and the members' actors don't see it.
 *
 * The node hands the push to the members in slices, between its other work; later calls, sends and
 * pushes of this actor wait until it has reached all of them. RH_OK: it will be sent, or there are
 * no members; RH_OVERLOADED: together with the pushes that wait on this node it would exceed 32 MiB
 * (payloads and ids), and nothing is sent: try again later, or drop it; RH_TOO_BIG: the payload is
 * over RH_PUSH_MAX; RH_INVALID: wrong callback, or no data. Callbacks that may call rh_send() may
 * call it. */
RH_API int rh_group_push(struct rh_actor *actor, const struct rh_group *group,
                         struct rh_bytes payload);

/* In handoff: append the group to the state: 11 bytes, and for each member its id and one byte. */
RH_API void rh_group_save(const struct rh_group *group, struct rh_out *out);
/* In activate: read a group that rh_group_save() wrote, and remove it from the front of `state`.
 * NULL: `state` begins with something else, and is unchanged. */
RH_API struct rh_group *rh_group_load(struct rh_bytes *state);

/* ---- timers of the actor ---- */

/* Call ops.timer after `ms` milliseconds (up to 20 ms late), and then every `every_ms` milliseconds
 * unless that is 0, between messages. A timer that was missed several times runs once. Timers end
 * with the actor's incarnation on this node: set them again in activate. `argument` stays the
 * caller's. Any callback may call it, except handoff and deactivate. Returns the timer's id, which
 * is > 0, or 0: wrong callback, there is no ops.timer, or the actor has 1024 timers. */
RH_API uint64_t rh_timer_start(struct rh_actor *actor, uint32_t ms, uint32_t every_ms,
                               void *argument);
/* Like rh_timer_start(), but `then` (not NULL) is called with `argument`, whether the kind has an
 * ops.timer or not; it may finish later, as that may. `argument` is the library's as soon as this
 * is called: destroy(argument) is called once, when the timer has ended, was stopped or its actor
 * has ended, never while `then` runs, and at once if this returns 0. `destroy` may be NULL: then
 * the argument stays the caller's. A move ends the timer, as it ends all timers. */
RH_API uint64_t rh_timer_call(struct rh_actor *actor, uint32_t ms, uint32_t every_ms, rh_timer then,
                              void *argument, rh_destroy destroy);
/* Stop a timer of either function. RH_GONE: it has already ended or been stopped. On the actor's
 * worker, like all functions that take an actor. */
RH_API int rh_timer_stop(struct rh_actor *actor, uint64_t timer);

/* ---- life ---- */

/* End the actor when the running message is answered: flush, then deactivate(RH_IDLE). If the fleet
 * remembers the ids of its kind (rh_actor_ops.remember), it forgets this one. This
 * instance gets no further message and no timer, also if you reply first and call this then: a
 * message that waits or comes meanwhile isn't lost, it activates a new incarnation. If the flush
 * fails, the actor lives on and gets messages until it could be saved. RH_INVALID: not now (flush,
 * handoff, resume, deactivate). */
RH_API int rh_passivate(struct rh_actor *actor);

/* Declare the actor broken. The running message is answered with this error, and the instance ends
 * by deactivate(RH_BROKEN) without flush. The next message starts the actor afresh, after a
 * back-off that doubles from 100 ms to 30 s with each failure in a row (a failed activate counts,
 * too). Meanwhile messages wait, up to the mailbox's limit and their deadline. `text` has the form
 * of rh_error() and is copied. RH_INVALID: wrong callback (flush, handoff, resume, deactivate;
 * activate returns RH_FAILED instead). */
RH_API int rh_fail(struct rh_actor *actor, const char *text);

/* Declare that somebody else owns the actor's id now, as its store says: a fence there is greater,
 * or its lock is another process's. Like rh_fail() in all else; the node also counts it, as
 * ringhold_node_deposed_total. It is for an actor that was the owner: one that is refused as it is
 * activated can live on to tell its clients so, and their requests wait for no back-off. */
RH_API int rh_deposed(struct rh_actor *actor, const char *text);

/* Ask for a flush with RH_PERIODIC soon, before the period has passed. RH_INVALID: wrong callback
 * (handoff, deactivate), or there is no ops.flush. */
RH_API int rh_flush_soon(struct rh_actor *actor);

/* ---- named values of a durable actor ---- */

/* An actor of a kind with rh_actor_ops.durable has named values: a key, and bytes. They are in its
 * memory, and in the node's store (rh_node_options.store, docs/durable.md). They are loaded before
 * activate is called. Callbacks read and change them as memory. What one callback has changed is
 * saved by one commit when it returns, all of it or nothing. What the callback has said (its
 * answer, calls, sends, pushes) leaves when that commit is done, and until then the actor gets no
 * other message. A callback that changed nothing waits for no commit of its own.
 *
 * A message that is deferred is several callbacks: the message callback, and one for each answer or
 * rh_after() that it waits for. Each of them is a commit of its own.
 *
 * The commit holds the answer of its request, too. So when the node dies, who asked is answered
 * from there by the next owner, or the request runs there: once, in any case. A deferred message
 * that is amidst its work then is answered INTERRUPTED.
 *
 * rh_fail() and rh_deposed() drop what their callback has changed, and its calls, sends and pushes.
 * An answer that is an error drops nothing: see rh_state_undo(). When a commit can't be done, the
 * actor ends like by rh_fail(): its request is answered STORE_UNAVAILABLE (nothing of it was
 * saved), or UNKNOWN (nobody knows). When another owner has claimed the actor in the store, it ends
 * like by rh_deposed(). The values are loaded again when the actor starts again. */

enum {
    RH_STATE_KEY_MAX = 255,           /* bytes of a key, 1 or more */
    RH_STATE_VALUE_MAX = 1024 * 1024, /* bytes of a value, 0 or more */
};

/* Read the value of a key. It is borrowed until the value is changed, or the callback returns. Any
 * callback of a durable kind may call it, also deactivate. RH_GONE: there is no such value, and
 * *value has no bytes; RH_INVALID: the kind is not durable, or the key is bad. */
RH_API int rh_state_get(const struct rh_actor *actor, struct rh_bytes key, struct rh_bytes *value);

/* Find the first value whose key is greater than `after`, byte by byte; no bytes = the first of
 * all. Both are borrowed as by rh_state_get(). To go through all keys with a prefix, begin with the
 * prefix (a key that is the prefix itself is left out) and go on from key to key. RH_GONE: there is
 * none; RH_INVALID: as for rh_state_get(). */
RH_API int rh_state_next(const struct rh_actor *actor, struct rh_bytes after, struct rh_bytes *key,
                         struct rh_bytes *value);

/* Set the value of a key; both are copied. activate, message, timer, alarm, session, and callbacks
 * of rh_call() and rh_after() may call it. RH_TOO_BIG: the value is over RH_STATE_VALUE_MAX;
 * RH_FULL: the actor would have more than 65536 values, or more than 64 MiB of keys and values;
 * RH_OVERLOADED: a deferred message has changed 64 MiB while the store was busy; RH_INVALID: wrong
 * callback, a bad key, no data, or the kind is not durable. On an error nothing is changed. */
RH_API int rh_state_put(struct rh_actor *actor, struct rh_bytes key, struct rh_bytes value);

/* Delete a value. RH_GONE: there is none; RH_INVALID: as for rh_state_put(). */
RH_API int rh_state_delete(struct rh_actor *actor, struct rh_bytes key);

/* Take back what this callback has changed so far, its alarms and what it sent once included, for
 * example before it answers with an error. RH_INVALID: as for rh_state_put(). */
RH_API int rh_state_undo(struct rh_actor *actor);

/* ---- alarms of a durable actor ---- */

/* An alarm is a timer that is in the store: it goes off though the actor sleeps, has moved, or its
 * node died. Then the actor is started where it lives now, and rh_actor_ops.alarm is called. An
 * alarm has a name, which is one of the actor's own, and a time of the wall clock in milliseconds
 * since 1970.
 *
 * Setting and cancelling are changes of their callback like rh_state_put(): they are in its commit,
 * and are dropped with it. When an alarm goes off, it is gone (once), or has its next time
 * (periodic), by the commit of what the callback changed. So it goes off at least once: again, if
 * the node dies before that commit. It never goes off before its time by its node's clock, and
 * about 100 ms after it if the actor is awake; who sleeps is found by a look once a second, and at
 * most `ringhold node --alarm-rate` actors a second are started. What is late goes off at once. A
 * periodic alarm that was missed several times goes off once. */

enum {
    RH_ALARMS_MAX = 65536,        /* of one actor */
    RH_ALARM_PAYLOAD_MAX = 65536, /* bytes that go with an alarm, 0 or more */
    RH_ALARM_EVERY_MIN_MS = 100,
};

/* An alarm. Its bytes are borrowed until the callback returns, or changes an alarm. */
struct rh_alarm {
    struct rh_bytes name; /* 1..255 bytes */
    struct rh_bytes payload;
    uint64_t due_ms;   /* since 1970 */
    uint64_t every_ms; /* 0 = once */
};

/* Set the alarm of that name, instead of the one that had it. `due_ms`: when, since 1970; what has
 * gone by already goes off at once. `every_ms`: then every so often, from `due_ms` on, 100 ms or
 * more; 0 = once. Name and payload are copied. activate, message, timer, alarm, session, and
 * callbacks of rh_call() and rh_after() may call it. RH_TOO_BIG: the payload is over
 * RH_ALARM_PAYLOAD_MAX; RH_FULL: the actor would have more than RH_ALARMS_MAX alarms, those
 * included that this callback has cancelled, or more than 64 MiB of them; RH_OVERLOADED: as for
 * rh_state_put(); RH_INVALID: wrong callback, a bad name or time (up to the year 9999), or the kind
 * is not durable or has no `alarm`. On an error nothing is changed. */
RH_API int rh_alarm_set(struct rh_actor *actor, struct rh_bytes name, uint64_t due_ms,
                        uint64_t every_ms, struct rh_bytes payload);

/* Cancel the alarm of that name. RH_GONE: there is none; RH_INVALID: as for rh_alarm_set(). */
RH_API int rh_alarm_cancel(struct rh_actor *actor, struct rh_bytes name);

/* Find the first alarm whose name is greater than `after`, byte by byte; no bytes = the first of
 * all. Any callback of a durable kind may call it. RH_GONE: there is none, and *alarm is empty;
 * RH_INVALID: the kind is not durable. */
RH_API int rh_alarm_next(const struct rh_actor *actor, struct rh_bytes after,
                         struct rh_alarm *alarm);

/* ---- what an actor may ask ---- */

/* Return the actor's id: 1..255 bytes, borrowed for the actor's life. */
RH_API struct rh_bytes rh_id(const struct rh_actor *actor);
/* Return the actor's fencing token: the generation of its vnode at activation. The token only grows
 * from one owner to the next. A store that keeps the highest one beside the data and refuses a
 * write with a smaller one can't be overwritten by a deposed owner: examples/store_sqlite.c. */
RH_API uint64_t rh_fence(const struct rh_actor *actor);

/* Names one life of an actor, from its activate to its deactivate on one node. No other life of
 * that id in the fleet has the same one, whatever moved, failed, was cleared from quarantine or was
 * restored in between; a fence alone stays the same when the actor starts again where it was. A
 * later life has the greater one: compare `fence`, then `start`. */
struct rh_incarnation {
    uint64_t fence; /* as rh_fence() */
    uint64_t start; /* of those with that fence; > 0. Two lives in a row may leave numbers out */
};

/* Return the actor's incarnation, the same one all its life. Any callback may call it, except
 * upgrade. An actor that asks takes some 400 bytes more. NULL: both are 0. */
RH_API struct rh_incarnation rh_incarnation(struct rh_actor *actor);

enum { RH_INCARNATION_TEXT = 34 /* bytes of one as text, with its NUL */ };
/* Write an incarnation as text: `fence` and `start` as 16 hexadecimal digits each, and a '-' in
 * between. Such texts sort as the incarnations do, byte by byte: for a column of a database, or a
 * log. NULL is ignored. Any thread. */
RH_API void rh_incarnation_text(struct rh_incarnation incarnation, char text[34]);

/* Return the pointer that the kind's start callback made; NULL if there is no such callback.
 * Several workers use it at the same time. */
RH_API void *rh_shared(const struct rh_actor *actor);

/* ---- a kind of actor ---- */

/* The buffer for the state to hand over. Valid until handoff has finished. */
struct rh_out;
/* Append a copy of the bytes. When the state exceeds state_max, all of it is dropped, and the actor
 * moves without its state. Call it on the actor's worker, or, if handoff finishes later, on the one
 * thread that will finish it. */
RH_API void rh_out_put(struct rh_out *out, const void *data, size_t size);

/* The list that a `list` callback fills with ids. Valid until the callback returns. */
struct rh_ids;
/* Append a copy of one id, 1..255 bytes; others are left out. */
RH_API void rh_ids_put(struct rh_ids *ids, struct rh_bytes id);

enum rh_why {
    RH_MOVED,    /* another node took the actor over, with its state; in flush: it is about to */
    RH_STOP,     /* the node stops */
    RH_FENCED,   /* the node lost the right to run the actor: keep nothing, write nothing */
    RH_IDLE,     /* no request for a long time, too many actors, or rh_passivate() */
    RH_BROKEN,   /* rh_fail() */
    RH_PERIODIC, /* in flush only: flush_ms has passed, or rh_flush_soon() */
};

/* The information for a start callback. Borrowed until the kind stops. */
struct rh_kind_info {
    size_t size; /* of this struct */
    uint16_t kind;
    const char *node;     /* the node's name */
    const char *argument; /* the text after "=" in --actor NAME=ARGUMENT; "" if there is none */
};

/* Callbacks marked "may be NULL" are optional. `instance` is the pointer that activate set. A
 * callback that returns an invalid result has failed, and a log line says so. */
struct rh_actor_ops {
    uint32_t abi;     /* RH_ABI */
    uint32_t size;    /* sizeof(struct rh_actor_ops) */
    const char *name; /* for logs: "counter" */

    /* Called once, before any actor, on the thread that starts the node: open what all actors of
     * the kind share, and set *shared. Any result but RH_OK ends the node with an error; say why on
     * stderr. May be NULL. */
    int (*start)(const struct rh_kind_info *info, void **shared);
    /* Called once, after the last actor, on the protocol thread. May be NULL. */
    void (*stop)(void *shared);

    /* Make the instance of an actor. `state` is what handoff wrote at the old owner, borrowed until
     * the callback returns; NULL = a fresh start (load the state from your store, if there is one).
     * Any result but RH_OK: the actor could not be made, deactivate is not called, and its requests
     * wait for another try (see rh_fail). May finish later: then set *instance before you return
     * RH_PENDING, because an actor that is stopped before rh_done() gets a deactivate. An actor
     * whose activate fails by rh_done() gets none (see there). */
    int (*activate)(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance);
    /* Handle one request. Answer it by rh_reply(), or call rh_defer(). Without either, the answer
     * is nil. */
    void (*message)(struct rh_actor *actor, void *instance, const struct rh_message *message);
    /* The actor is frozen and may move: write its state. RH_OK; RH_BUSY: not now; RH_COLD: there is
     * no state, load the actor afresh. Any other result counts as RH_COLD. After OK and COLD the
     * library calls nothing else until resume or deactivate. After BUSY the actor goes on, and
     * handoff is called again every 100 ms. May finish later. May be NULL: the actor moves without
     * state. */
    int (*handoff)(struct rh_actor *actor, void *instance, struct rh_out *out);
    /* The move was cancelled: the actor stays and goes on. May be NULL. */
    void (*resume)(struct rh_actor *actor, void *instance);
    /* Free the instance. `actor` must not be used after this. */
    void (*deactivate)(struct rh_actor *actor, void *instance, enum rh_why why);

    /* ---- since ABI 2; all may be NULL or 0 ---- */

    /* A timer of rh_timer_start() is due. May finish later: rh_defer(), then rh_done(). */
    void (*timer)(struct rh_actor *actor, void *instance, uint64_t timer, void *argument);
    /* Save unsaved changes, with writes that are conditional on the fence. why: PERIODIC; IDLE;
     * MOVED (before handoff); STOP: the node ends, and its lease may be over, so only the fence
     * protects the store from outdated writes. A crash skips the flush. RH_FAILED has these
     * effects: after PERIODIC there is another try in the next period; after IDLE the actor stays
     * alive, and there is another try after a back-off; after MOVED and STOP there are more tries
     * until the deadline. It is never called once the node knows that it was fenced. May finish
     * later. */
    int (*flush)(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence);
    /* For a kind whose actors must live without being asked: list their ids. It is called on a
     * thread of its own, and may block: at the start, when this node became owner of ids by a
     * crash, within a minute after it got ids by a hand-over that another node had got by a crash,
     * and every ten minutes. Ids that live elsewhere are ignored. Any result but RH_OK: it is
     * called again a second later. */
    int (*list)(void *shared, struct rh_ids *out);
    uint32_t mailbox; /* messages that may wait for one actor; 0 = 1024; more: OVERLOADED */
    uint32_t
        idle_ms; /* without a message for so long an actor ends; 0 = 600000; UINT32_MAX = never */
    uint32_t flush_ms;  /* between two periodic flushes; 0 = 300000; UINT32_MAX = never */
    uint32_t state_max; /* bytes that handoff may write; 0 = 1 MiB, at most 64 MiB; an actor that
                           writes more moves cold, and a log line says so */

    /* A client came, or has gone. Called between messages. In BOUND, REPLACED and RESUMED the actor
     * may push from here on; any result but RH_OK refuses the client, which is told so (a client
     * that was replaced is gone all the same). The result of LOST doesn't matter. May finish later.
     * NULL: the kind takes no sessions. */
    int (*session)(struct rh_actor *actor, void *instance, const struct rh_session *event);

    /* 1: activate, upgrade, message, timer, session and, in a kind without flush, deactivate take
     * microseconds and never block. Then the protocol
     * thread itself runs a few requests while the actor's worker sleeps. There is still one
     * callback after the other, but not always on the same thread. It has no effect in an embedded
     * node. A callback that blocks all the same delays the whole node: its other requests and, in
     * the end, its lease. */
    uint32_t brief;

    uint32_t sessions;  /* enum rh_sessions */
    uint32_t resume_ms; /* a client that asked for it may resume for so long after its connection
                           was lost; 0 = 30000, UINT32_MAX = not at all. Meanwhile up to 64 KiB of
                           pushes are kept for each client */
    uint32_t
        sessions_max; /* of RH_SESSIONS_ALLOW: sessions at a time, up to RH_SESSIONS_MAX; 0 = 8 */
    /* 1 = handoff only reads: the library may also call it while the actor goes on, to send its
     * state ahead of a move. An actor to which nothing has happened since then moves without
     * another handoff, so requests wait for it a shorter time. Not for kinds that have a flush. */
    uint32_t ahead;

    /* Versions of the state that handoff writes (docs/actors.md, "A state has a version"). An actor
     * moves to no node whose kind can't read its state: the move is refused, the actor stays where
     * it is, and `ringhold status` says why.
     *
     * handoff writes state_version; 0 = its states have none, as those of all kinds without these
     * fields. activate gets that version alone. With `upgrade`, this kind also reads the versions
     * state_version_least to state_version_most; most: 0 = state_version. (One above state_version
     * is for the way back: the release before the one that writes it reads it already.) Without
     * `upgrade` both are 0. */
    uint32_t state_version;
    uint32_t state_version_least;
    uint32_t state_version_most;
    /* Write to `out` what activate should get for `state`, which handoff wrote in another
     * `version`: of least to most. It is called just before activate, on the actor's worker, and
     * may call rh_out_put(), rh_id(), rh_shared() and no other function that takes an actor; it
     * can't finish later. The state is borrowed until it returns. Any result but RH_OK, and more
     * bytes than state_max: the actor could not be made, as from activate, and the state is kept
     * for another try. */
    int (*upgrade)(struct rh_actor *actor, uint32_t version, const struct rh_bytes *state,
                   struct rh_out *out);

    /* 1: the fleet remembers the ids of this kind. From the first answer of an actor on, its id is
     * on the disks of a majority of the coordinators; when the actor's node has died, or the whole
     * fleet was restarted, the actor lives again without being asked. It is forgotten when it ends
     * by rh_passivate(), and when an operator says so (`ringhold remembered forget`); it does not
     * end for being idle or for want of room. It means nothing for singletons and daemons, which
     * live anyway. docs/actors.md, "Remembered ids", says what the promise is and what bounds it.
     */
    uint32_t remember;

    /* 1 = its actors have named values in the node's store: rh_state_put(). The node needs one
     * (rh_node_options.store). Such a kind has no `flush`, for what it puts is saved at once.
     * handoff may be NULL: the new owner loads the values from the store. What handoff writes goes
     * along beside them, for memory that is in no value. */
    uint32_t durable;

    /* Bytes of memory that one actor of this kind takes, about: its instance, with what belongs to
     * it. `ringhold coordinator --balance memory` shares these out over the nodes. 0 = next to
     * nothing. */
    uint32_t memory;

    /* Of a durable kind: an alarm of rh_alarm_set() went off. Called between messages, one at a
     * time, the earliest first. May finish later; what it does until then is saved step by step,
     * as of a deferred message. Any result but RH_OK: what it has changed since the last step is
     * undone (what it has sent stays sent), and the alarm goes off again after a back-off, from
     * 100 ms to 30 s. After rh_fail() it goes off again when the actor has started again. NULL: the
     * kind has no alarms, and those that are in the store rest. */
    int (*alarm)(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm);
};

/* A shared object for `ringhold node --actor ./game.so` defines this one symbol … */
extern RH_API const struct rh_actor_ops ringhold_actor;
/* … or, if it has several kinds, this one: a table for each, and NULL behind the last. A kind is
 * named by its `name`, which no other of the object has: `--kind 3:./game.so:orc`. */
extern RH_API const struct rh_actor_ops *const ringhold_actors[];

/* ---- a node in this process ---- */

enum rh_placement {
    RH_PLACE_HASH = 0,      /* the ring says where each id lives */
    RH_PLACE_SINGLETON = 1, /* one actor of the kind in the fleet, always alive */
    RH_PLACE_DAEMONS = 2,   /* `daemons` actors, always alive, spread over the nodes */
    /* Ids with one tag live on one node, and move as one: "room-7{match-42}" lives where
     * "ann{match-42}" does, and "match-42" itself, of whatever kinds of the role that are placed
     * so. */
    RH_PLACE_TOGETHER = 3,
    /* By hash, but only over those nodes of the role that host the kind; of RH_PLACE_HASH ids may
     * lie on nodes that don't, where they wait. */
    RH_PLACE_HOSTS = 4,
};

/* rh_kind.part: nothing of the kind, as long as another node that hosts it takes its ids. */
enum { RH_PART_NONE = 1001 };

struct rh_kind {
    uint16_t number;                /* 0 = the default kind */
    const struct rh_actor_ops *ops; /* borrowed until the node has left */
    const char *argument;           /* may be NULL; copied */
    uint32_t placement;             /* enum rh_placement */
    union {
        uint32_t daemons; /* of RH_PLACE_DAEMONS: 1..1000 */
        /* Of RH_PLACE_HOSTS: so many thousandths of the node's weight count for this kind, 1..1000
         * or RH_PART_NONE; 0 = all of it. Less makes the node a canary. */
        uint32_t part;
    };
};

/* What a node does when it reaches no coordinator and can't renew its lease. When the lease ends,
 * other nodes take its ids. */
enum rh_on_lease_loss {
    RH_LOSS_PAUSE = 0, /* actors stay in memory; nothing runs and nothing leaves until a renewal */
    RH_LOSS_SERVE = 1, /* go on: then an id may live twice while the network is split */
};

/* What happens when a callback, blocked or deferred, runs past the end of the lease. */
enum rh_on_lease_overrun {
    RH_OVERRUN_ABORT = 0, /* the process ends by abort(), with one line on stderr */
    RH_OVERRUN_GATE = 1,  /* it goes on, its output is held back; its store must check rh_fence() */
};

/* Set the fields marked "required", and leave the others 0. Texts are borrowed until the node has
 * left. */
struct rh_node_options {
    uint32_t abi;          /* RH_ABI */
    uint32_t size;         /* sizeof(struct rh_node_options) */
    const char *cluster;   /* NULL = "ringhold" */
    const char *name;      /* required: this node's name, unique, the same after each restart */
    const char *listen;    /* "host:port" for gateways and nodes; NULL = "127.0.0.1:0", any port;
                              beyond loopback only with TLS or `insecure` */
    const char *advertise; /* address by which others reach it, if it differs; NULL = as bound, and
                              then `listen` must not be 0.0.0.0 */
    const char *join;      /* required: the coordinators, "host:port,host:port,…" */
    const char *data;      /* required: the folder of this node alone; made if it is missing */
    const char *zone;      /* NULL = none */
    uint32_t weight;       /* share of the fleet's ids, 1..1000; 0 = 1 */

    const struct rh_kind *kinds; /* the kinds that this node hosts; borrowed until it has left */
    size_t kind_count;
    const char *actor; /* without kinds: the default kind, by name ("kv") or file ("./x.so") */

    uint32_t keep_signals; /* 1: leave SIGTERM and SIGINT alone; 0: they drain the node */
    /* Called on the protocol thread when the node is registered and takes requests. May be NULL. */
    void (*ready)(void *context, uint64_t incarnation, const char *address);
    void *context;

    uint32_t on_lease_loss;    /* enum rh_on_lease_loss */
    uint32_t on_lease_overrun; /* enum rh_on_lease_overrun */

    /* ---- since ABI 2 ---- */

    uint32_t threads;  /* workers, 1..64; 0 = one per core; more than 64 count as 64 */
    uint32_t embedded; /* 1: no workers; callbacks run in rh_node_poll(), on the caller's thread */
    uint64_t
        actors_max;   /* live actors on this node; beyond it the least recently used end; 0 = any */
    const char *role; /* NULL = "default" */

    /* TLS on links: files (PEM) with the fleet's CA, this node's certificate and its key
     * (ringhold-tls(1)); all NULL = no TLS. SIGHUP reads them again, unless keep_signals is set. */
    const char *link_ca;
    const char *link_certificate;
    const char *link_key;

    uint32_t insecure; /* 1: listen beyond loopback without TLS: anyone who can connect controls the
                          fleet */

    /* Where the values of durable kinds are: "sqlite:PATH", a file, which is made if it is missing,
     * and may be shared by all nodes of one machine; "postgres:CONNECTION", a connection string or
     * URI of libpq; or "redis:HOST:PORT[/DB]", "redis:unix:PATH". All nodes of a durable kind must
     * use the same store. NULL = none, and no durable kind. */
    const char *store;
};

struct rh_node;

/* Start a node on threads of its own, and return at once; the node registers meanwhile. A process
 * can have one node at a time. NULL: it could not be started, and one line on stderr says why.
 * Borrows the texts and kinds of `options` until the node has left. */
RH_API struct rh_node *rh_node_start(const struct rh_node_options *options);

/* Drain the node: its ids move away, then it leaves. From any thread. Returns RH_OK, also when a
 * drain is under way already. */
RH_API int rh_node_drain(struct rh_node *node);

/* Stop a node: the first call drains it, the second ends it at once. From any thread, and from a
 * signal handler. NULL = the node that runs; without one nothing happens. */
RH_API void rh_node_stop(struct rh_node *node);

/* Wait until the node has left, and free it. In embedded mode call it after rh_node_poll() returned
 * RH_GONE; before that it runs callbacks itself. Returns the exit code:
 *
 * 0 = the node drained and left; 1 = an error, which was printed to stderr as one line; 69 = it was
 * to leave, and no coordinator renewed its lease for three times its length; 75 = it was fenced
 * (its lease ended and others took its ids, or it was removed): start it again, and it joins as a
 * new incarnation; 128 + n = a second signal n, or call of rh_node_stop() (n = 15), or ten minutes
 * cut the drain short (n = 15). With 69 and 128 + n its actors were flushed. */
RH_API int rh_node_wait(struct rh_node *node);

/* Run a node until it has left the fleet: rh_node_start(), then rh_node_wait(). Returns the exit
 * code; 1 also if the node could not start. */
RH_API int rh_node_run(const struct rh_node_options *options);

/* Called with the answer of rh_node_call(), which is borrowed until it returns. */
typedef void (*rh_on_node_answer)(struct rh_node *node, const struct rh_answer *answer,
                                  void *argument);

/* Call actor `id` (1..255 bytes) of `kind`, wherever it lives, from the program that runs the node:
 * from any thread, until rh_node_wait() is called, which frees the node: a thread learns by RH_GONE
 * that it has to end. The actor gets a message as of a client. `then` gets the answer within
 * timeout_ms (1..60000, required); it is called exactly once, whatever happens:
 *
 * - of an embedded node on the thread that calls rh_node_poll(), from there or from rh_node_wait();
 * - else on the node's protocol thread: it must return at once and never block. It may call
 *   rh_node_call(), rh_node_owner(), rh_post(), rh_done() and rh_reply_later(), or put the answer
 *   into a queue of yours.
 *
 * Calls to one actor run there in order. flags: RH_IDEMPOTENT. A node that is not registered yet
 * keeps the call until it is, or its time is over (RH_REJECTED). What is open when the node has
 * left ends with RH_UNKNOWN, or RH_REJECTED if it was never sent. id and payload are copied;
 * `argument` stays the caller's.
 *
 * On an error `then` is not called. RH_INVALID: an argument is wrong; RH_TOO_BIG: the payload is
 * over 1 MiB; RH_OVERLOADED: the node has 1024 such calls that are not answered; RH_GONE: the node
 * is leaving, or has left. */
RH_API int rh_node_call(struct rh_node *node, uint16_t kind, struct rh_bytes id,
                        struct rh_bytes payload, uint32_t timeout_ms, uint32_t flags,
                        rh_on_node_answer then, void *argument);

enum { RH_NODE_NAME = 64 /* bytes of a node's name, with its NUL */ };
/* Tell which node owns an id now: its name is written to `name`. It is a hint: the id may move at
 * any time, so call the actor by rh_node_call(), which finds it. From any thread, until
 * rh_node_wait() is called; it waits for the protocol thread, which takes microseconds while that
 * is awake. RH_OK; RH_NO_KIND: that node does not host the kind; RH_REJECTED: this node knows no
 * owner: it is not registered, or nobody has the id; RH_GONE: the node has left; RH_INVALID. `name`
 * is "" unless it is RH_OK or RH_NO_KIND. */
RH_API int rh_node_owner(struct rh_node *node, uint16_t kind, struct rh_bytes id, char name[64]);

/* Embedded: return a descriptor that is readable when rh_node_poll() has work. The node owns it;
 * use it in poll(2) and the like, and don't read it. -1: the node is not embedded. */
RH_API int rh_node_fd(struct rh_node *node);

/* Embedded: run the callbacks that are due, on this thread, which must always be the same one.
 * Waits at most `ms` milliseconds for some (-1 = a second). Answers of rh_node_call() are
 * callbacks, too. Call it at least every 20 ms, or when rh_node_fd() is readable: no other thread
 * runs the actors or their timers. RH_OK; RH_GONE: the node has left, call rh_node_wait();
 * RH_INVALID: the node is not embedded. */
RH_API int rh_node_poll(struct rh_node *node, int ms);

/* ---- where ids live, for a matchmaker or a tool ---- */

/* Questions to the coordinators' leader: the same as the commands `ringhold pin`, `unpin` and
 * `actors` ask. A program needs no node for them. Where the fleet's links have TLS it needs an
 * operator's certificate (ringhold-tls(1)), for who may pin ids may move them all.
 *
 * Each function waits for its answer on the caller's thread. Don't call it from an actor's
 * callback: all actors of that worker would wait, too. Only one thread at a time may use a handle,
 * but a process may have several handles. */
struct rh_admin;

/* Set the fields marked "required", and leave the others 0. Texts are borrowed until
 * rh_admin_close(). */
struct rh_admin_options {
    uint32_t abi;        /* RH_ABI */
    uint32_t size;       /* sizeof(struct rh_admin_options) */
    const char *cluster; /* NULL = "ringhold" */
    const char *join;    /* required: the coordinators, "host:port,host:port,…" */
    const char *by; /* required: who asks, for the fleet's history; at most 63 bytes of UTF-8 */
    uint32_t timeout_ms; /* for each question; 0 = 5000 */
    const char *link_ca; /* as in rh_node_options */
    const char *link_certificate;
    const char *link_key;
};

/* Return a handle that begins to link to the coordinators, or NULL after one line on stderr that
 * says why. Free it with rh_admin_close(). */
RH_API struct rh_admin *rh_admin_open(const struct rh_admin_options *options);

/* Close the links and free the handle. NULL is fine. */
RH_API void rh_admin_close(struct rh_admin *admin);

/* Return what the last question ended with, for people: what the leader did, why it refused, or
 * who did not answer. Borrowed until the next question. */
RH_API const char *rh_admin_said(const struct rh_admin *admin);

/* Where a pinned id lives while its node is dead. */
enum rh_if_dead {
    RH_IF_DEAD_HASH = 0, /* at another node, by the ring */
    RH_IF_DEAD_WAIT = 1, /* nowhere: it waits for its node */
};

/* An id that is to live at a node. All ids of its cell of the ring go with it (docs/placement.md).
 */
struct rh_pin {
    uint16_t kind;
    struct rh_bytes id;
    const char *node; /* its name; rh_unpin() does not look at it */
};

/* Pin 1..1000 ids, all or none: each moves to its node, by an ordinary transaction, and stays
 * there. That it is pinned is certain when this returns; that it has moved is not: rh_actors() or
 * `ringhold pin list` show it. `reason` is for the fleet's history; NULL = none. RH_OK; RH_INVALID:
 * an argument is out of range; RH_REJECTED: the leader refused the list, nothing changed, and
 * rh_admin_said() has each wrong pin; RH_TIMEOUT: no leader answered in time, and it may be done:
 * ask again, for pinning twice is as pinning once. */
RH_API int rh_pin(struct rh_admin *admin, const struct rh_pin *pins, size_t count,
                  enum rh_if_dead if_dead, const char *reason);

/* End the pins of 1..1000 ids, all or none: the planner treats them like any others again, and
 * moves them only if the nodes' shares need it. Results as of rh_pin(). */
RH_API int rh_unpin(struct rh_admin *admin, const struct rh_pin *pins, size_t count,
                    const char *reason);

/* A live actor. All of it is borrowed until the function that gets it returns. */
struct rh_live {
    const char *node;
    struct rh_bytes id;
    const char *state;  /* "idle", "running", …, as `ringhold actors` prints them */
    uint64_t unused_ms; /* since its last request */
    uint16_t kind;
    uint16_t came;    /* 1: it was started at that node; 2: a move brought it there, and it has
                         lived on since; 0: the node is older and does not tell */
    uint64_t here_ms; /* since that start or move; 0: not told */
};

/* Which of them. All 0 but `size`: all that live. */
struct rh_live_filter {
    uint32_t size;          /* sizeof(struct rh_live_filter) */
    uint32_t limit;         /* so many at most; 0 = all */
    const char *node;       /* of this node alone; NULL = of any */
    struct rh_bytes prefix; /* whose ids begin with it */
    uint32_t one_kind;      /* 1: of the kind `kind` alone */
    uint16_t kind;
};

/* List who lives, page after page: `each` is called with every one, and ends the list by a result
 * other than 0. Who lives from the beginning of the list to its end, and stays at its node, is in
 * it once; who comes, goes or moves meanwhile may be in it, or not. `filter` may be NULL. RH_OK;
 * RH_INVALID; RH_REJECTED: the leader refused, for example a node that it doesn't know;
 * RH_TIMEOUT: a node did not answer in time, and those of the others are listed. */
RH_API int rh_actors(struct rh_admin *admin, const struct rh_live_filter *filter,
                     int (*each)(void *context, const struct rh_live *live), void *context);

#ifdef __cplusplus
}
#endif

#endif
