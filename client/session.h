/* SPDX-License-Identifier: Apache-2.0
 *
 * Session: what is the client bound to, and what came in that session?
 *
 * session.c binds, leaves, resumes and acknowledges; bind.c takes what the gateway says of it.
 */
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SESSION_SIZE = 24, BEGUN_SIZE = SESSION_SIZE + 8 + 4 };

enum bind_state {
    BIND_NONE,
    BIND_WANTED,   /* as soon as we are known */
    BIND_ASKED,    /* a bind is under way */
    BIND_RESUMING, /* a resume is */
    BIND_HELD,
    BIND_LEAVING, /* an unbind is under way */
};

struct bound_session {
    enum bind_state state;
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[255];
    bool plain; /* the gateway keeps no sessions: bind without */
    bool keeps; /* `name` is one that can be resumed */
    uint8_t name[SESSION_SIZE];
    uint64_t pushed;     /* sequence of the last push that came */
    uint64_t ack_ms;     /* when what came is to be acknowledged; 0 = nothing came */
    size_t unacked_size; /* bytes of that */
    uint32_t unacked_count;
    bool was_held;     /* once */
    bool waits;        /* to be bound, until what the one before was asked is answered */
    uint64_t again_ms; /* when to bind or resume again, refused for now; 0 = need not */
};

struct client_sessions {
    struct bound_session now;
    struct bound_session home; /* before the client was rebound; BIND_NONE = it wasn't */
    uint32_t attempts;         /* resumes that it sent, of all its sessions */
    bool tell_unbound;         /* before what comes */
};

/* ---- session.c ---- */

/* The gateway knows the client now: bind, resume, or be ready. */
void session_go_on(struct rhc *c);
/* Bind or resume. */
void session_ask(struct rhc *c);
/* Show at first what was bound at first: without a token of a gateway the client is who it was
 * then. */
void session_go_home(struct rhc *c);
/* Note that something came which a kept session has to acknowledge. */
void note_heard(struct rhc *c, size_t size);
/* The connection is gone: nothing of the session is due. */
void session_disconnected(struct rhc *c);
/* Put the session into the state that it has without a connection. */
void session_leave(struct rhc *c);
/* The session can't be resumed any more. */
void session_end(struct rhc *c);
/* Do what is due of it. */
void session_tend(struct rhc *c);
/* True: `event` says that the session is over. */
bool session_tells(struct rhc *c, struct rhc_event *event);

/* ---- bind.c: true: `event` is to be told ---- */

bool session_on_bind_answer(struct rhc *c, unsigned status, uint32_t retry_ms,
                            struct rhc_bytes payload, struct rhc_event *event);
bool session_on_unbind_answer(struct rhc *c, struct rhc_event *event);
/* Another entity is the client's, as `event` says. */
void session_on_rebound(struct rhc *c, const struct rhc_event *event);
/* A session that is kept begins: BEGUN_SIZE bytes at least. */
bool session_on_begun(struct rhc *c, struct rhc_bytes body);
/* A push came; so many before it are lost. False: it came before, or is nobody's. */
bool session_on_push(struct rhc *c, uint64_t sequence, uint64_t *lost);
/* Send a bind that was waiting for answers, if it may go now. */
void bind_if_it_waits(struct rhc *c);

#endif
