/* SPDX-License-Identifier: Apache-2.0
 *
 * What the client's files share: its state, its log of requests, its packets.
 */
#ifndef CLIENT_INSIDE_H
#define CLIENT_INSIDE_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEAD = 4,        /* of a packet: u8 type, u24 size */
    AUTH_MAX = 1024, /* bytes that are shown to log in */
    TOKEN_MAX = 520, /* … of a token that a gateway gives */
    SESSION_SIZE = 24,
    CONTROL_MAX = 2048, /* hello, auth, bind or resume, acks and some pongs */
    WHY_SIZE = 128,
    BODY_MAX = 0xFFFFFF,
    BODY_LEAST = 512,           /* less is no gateway's largest body */
    RETRY_MAX_MS = 3600 * 1000, /* nobody is sent away for longer */
};

enum packet_number {
    P_HELLO = 1,
    P_HELLO_ACK = 2,
    P_PING = 3,
    P_PONG = 4,
    P_KICK = 5,
    P_REQUEST = 6,
    P_RESPONSE = 7,
    P_NOTIFY = 8,
    P_PUSH = 9,
    P_GOAWAY = 10,
    P_BIND = 11,
    P_UNBIND = 12,
    P_AUTH = 13,
    P_RESUME = 14,
    P_AUTH_OK = 15,
    P_BEGUN = 16,
    P_ACK = 17,
    P_REBOUND = 18,
    P_LATER = 128, /* from here on: passed over if not known */
};

/* Names of our own questions, out of the way of requests'. */
enum { NAME_BIND = 0x7FFFFFFF, NAME_UNBIND = 0x7FFFFFFE, NAME_MAX_ASKED = 0x7FFFFF00 };

enum wire_flags { F_IDEMPOTENT = 1, F_DEADLINE = 2, F_KEEP = 4, F_AGAIN = 8 };

/* ---- the log: requests and notifies without an answer, in the order they were asked ---- */

enum entry_state {
    ENTRY_ASKED, /* waits for its answer, sent or not */
    ENTRY_OVER,  /* needs nothing more; goes when it is the oldest */
    ENTRY_DOOMED /* ends as `status`, which is to be told */
};

struct asked_entry {
    uint64_t at; /* of its packet, in bytes since the log began */
    size_t size;
    uint64_t due_ms;
    rhc_done *done;
    void *context;
    uint32_t name;
    bool told;     /* a notify: nobody answers it */
    uint8_t state; /* enum entry_state */
    uint8_t status;
    bool sent;       /* wholly, in this or an earlier connection */
    bool former;     /* … in an earlier one */
    bool idempotent; /* may run again */
    bool kept;       /* sent within the session that is kept */
};

struct log {
    struct asked_entry *entry; /* a ring of `max` */
    uint32_t max;
    uint32_t first;
    uint32_t count;
    uint8_t *bytes;
    size_t bytes_max;
    uint64_t begin; /* bytes[0] is this byte of the log */
    uint64_t end;
    uint32_t next;  /* entry, from `first`, whose packet goes out next */
    size_t partial; /* bytes of it that are out */
    uint32_t doomed;
    bool in_session; /* what goes out now is of the session that is kept */
    size_t told_max; /* bytes of the largest notify that went out in this connection */
};

/* Entry number `i`, from the oldest. */
static inline struct asked_entry *log_entry(const struct log *l, uint32_t i)
{
    return &l->entry[(l->first + i) % l->max];
}

/* Room for a packet of `size` behind the last; NULL: none. Entry and bytes are the caller's to
 * fill. */
uint8_t *log_put(struct log *l, size_t size, struct asked_entry **entry);

/* The packet of entry `e`. */
uint8_t *log_packet(struct log *l, const struct asked_entry *e);

/* Needs nothing more. */
void log_over(struct log *l, struct asked_entry *e);

/* Ends so; log_next_doomed() tells. */
void log_doom(struct log *l, struct asked_entry *e, enum rhc_status status);

/* The oldest that is doomed, which then is over. NULL: none. */
struct asked_entry *log_next_doomed(struct log *l);

/* The entry that waits for an answer under this name, or NULL. */
struct asked_entry *log_find(struct log *l, uint32_t name);

/* The bytes to send next: packets that lie one behind the other. */
struct rhc_bytes log_output(struct log *l);

/* Note that `size` bytes of log_output() were sent. */
void log_sent(struct log *l, size_t size);

/* The connection is gone: begin at the oldest again. `keeps`: what the session keeps is to be sent
 * again. */
void log_rewind(struct log *l, bool keeps);

/* Packets of more than this don't go out: what would need one ends. */
void log_limit(struct log *l, size_t size_max);

/* Something that went out in this connection was too large: it is not sent again. False: nothing
 * went out. */
bool log_blame(struct log *l);

/* Mark as sent before (or not) what will be sent again. */
void log_mark_again(struct log *l, bool again);

/* True if the entry is marked as sent again. */
bool log_is_again(struct log *l, const struct asked_entry *e);

/* The session is over: what was sent in it may not be sent again. */
void log_forget_session(struct log *l);

/* All that wait are over: those that were sent may have run, the others never will. */
void log_end(struct log *l);

/* Of all that wait, the least name; `none` if there is none. */
uint32_t log_least(const struct log *l, uint32_t none);

/* Is an answer owed to something that was sent? */
bool log_owes(const struct log *l);

/* ---- the client ---- */

enum bind_state {
    BIND_NONE,
    BIND_WANTED,   /* as soon as we are known */
    BIND_ASKED,    /* a bind is under way */
    BIND_RESUMING, /* a resume is */
    BIND_HELD,
    BIND_LEAVING, /* an unbind is under way */
};

struct client_state_session {
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

struct rhc {
    uint32_t requests_max;
    uint32_t answer_ms;
    uint32_t greet_ms;
    uint32_t back_off_min_ms;
    uint32_t back_off_max_ms;
    char token[AUTH_MAX + 1];
    uint8_t given[TOKEN_MAX]; /* by the gateway that we were known at last: shown instead */
    size_t given_size;        /* 0 = none */
    bool showed_given;        /* in this connection */
    uint64_t random;
    uint64_t now_ms;
    enum rhc_state state;
    bool hang_up; /* the shell is to */
    bool greeted; /* a hello-ack came */
    bool known;   /* nothing stands between hello-ack and asking */
    bool over;    /* when the connection is gone, that's it */
    bool kicked;  /* and that is to be told */
    uint32_t gateway;
    uint32_t failures; /* in a row */
    uint64_t ready_ms; /* since when it is ready, or was */
    size_t body_max;   /* bytes of a packet's body, as the gateway said last */
    uint64_t dial_ms;  /* WAITING: when */
    uint64_t greet_by_ms;
    uint64_t retry_ms; /* LEAVING: what the goaway said */
    uint64_t leave_by_ms;
    uint32_t heartbeat_ms;
    uint64_t heard_ms;
    bool pinged;
    uint64_t scan_ms; /* when to look for requests that are due */
    uint32_t last_name;
    uint32_t attempts; /* resumes that it sent, of all its sessions */
    struct client_state_session session;
    struct client_state_session
        home; /* what it was bound to before it was rebound; BIND_NONE = it wasn't */
    struct log log;
    uint8_t control[CONTROL_MAX];
    size_t control_size;
    bool sending_control;
    uint8_t *in;
    size_t in_max;
    size_t in_at;  /* taken */
    size_t in_end; /* received */
    /* To be told, before what comes. */
    bool tell_ready;
    bool tell_lost;
    bool tell_kicked;
    bool tell_unbound;
    uint32_t kick_code;
    char why[WHY_SIZE];
};

/* ---- packets.c: what it says of itself ---- */

void say_hello(struct rhc *c);
void say_auth(struct rhc *c);
void say_bind(struct rhc *c);
void say_resume(struct rhc *c);
void say_unbind(struct rhc *c);
void say_ack(struct rhc *c);
void say_ping(struct rhc *c, enum packet_number type, struct rhc_bytes body);

/* Write a request or a notify to `out`, HEAD + asking_size() bytes. */
size_t asking_size(const struct rhc_request *r);
void asking_write(uint8_t *out, enum packet_number type, uint32_t name,
                  const struct rhc_request *r);

/* ---- heard.c: what comes ---- */

/* Send a bind that was waiting for answers, if it may go now. */
void bind_if_it_waits(struct rhc *c);

/* Take one packet. True: `event` is to be told. */
bool hear(struct rhc *c, uint8_t type, struct rhc_bytes body, struct rhc_event *event);

/* ---- bytes.c ---- */

/* The next packet that is whole. */
bool packet_take(struct rhc *c, uint8_t *type, struct rhc_bytes *body);

/* ---- session.c ---- */

/* Known now: bind, resume, or be ready. */
void go_on(struct rhc *c);
void be_ready(struct rhc *c);

/* Something came that a session that is kept has to acknowledge. */
void note_heard(struct rhc *c, size_t size);

/* Bind or resume. */
void session_ask(struct rhc *c);
/* Where it stands when there is no connection. */
void session_leave(struct rhc *c);
/* Do what is due of it. */
void session_tend(struct rhc *c);

/* ---- client.c ---- */

/* Close the connection, and come again. */
void give_up(struct rhc *c, const char *why);

/* Close it for good. */
void be_kicked(struct rhc *c, uint32_t code, struct rhc_bytes text);

/* Any number. */
uint64_t drawn(struct rhc *c);

/* `least`..2*`least`, so that those who were told the same come one by one. */
uint64_t jittered(struct rhc *c, uint64_t least);

static inline bool is_connected(const struct rhc *c)
{
    return c->state == RHC_GREETING || c->state == RHC_READY || c->state == RHC_LEAVING;
}

static inline struct rhc_bytes bytes_at(const void *data, size_t size)
{
    struct rhc_bytes b = {data, size};
    return b;
}

#endif
