/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the client share. Nobody else includes this. Above each group of fields of
 * struct client stand the files that write them (tools/parts); the first group is client.c's, and
 * others change it by the functions below it.
 */
#ifndef GATEWAY_CLIENT_INSIDE_H
#define GATEWAY_CLIENT_INSIDE_H

#include "base/assert.h"
#include "base/list.h"
#include "base/ration.h"
#include "base/table.h"
#include "gateway/access/token.h"
#include "gateway/access/unauthenticated.h"
#include "gateway/client/client.h"
#include "gateway/client/command.h"
#include "gateway/client/pushes.h"
#include "gateway/client/slots.h"
#include "gateway/client/target.h"
#include "gateway/protocol/resp.h"
#include "route/share.h"

enum { CLIENT_NAME_MAX = 63, TICKET_PART_BITS = 12 /* of RESP_ARGS_MAX */ };

/* Tickets that are no slot's. */
static const uint64_t TICKET_NONE = UINT64_MAX;       /* nobody waits */
static const uint64_t TICKET_RESUME = UINT64_MAX - 1; /* of a bond that was asked for again */

static const uint64_t TICKET_LOGIN = UINT64_MAX - 2; /* who is it? */

_Static_assert(RESP_ARGS_MAX <= 1u << TICKET_PART_BITS, "one part a key");

struct binding;
struct client;
struct identity;
struct client_session;
struct api_client;

/* Operations in which the protocols of clients differ. The caller has set now_us, and `effects` for
 * calls that come from the client. */
struct dialect {
    /* Take what is whole at the front of `in`; returns how many bytes that was. Sets `half` if what
     * is left is not whole. */
    size_t (*take)(struct client *c, struct bytes in);
    /* An answer to a ticket of its own. */
    void (*answer)(struct client *c, const struct router_effect *reply, struct bytes body);
    /* Likewise, of each from `from` on up to the first that is not client_takes_reply(), with
     * client_learn_size(); returns where that is. NULL = one at a time. */
    size_t (*answers)(struct client *c, const struct router_effects *effects, size_t from);
    /* True if the client still waits for answers. */
    bool (*owes)(const struct client *c);
    /* The command that is still coming exceeds its limit: refuse it. */
    void (*refuse_half)(struct client *c);
    /* About once a second. NULL = nothing to do. */
    void (*tick)(struct client *c);
    /* The gateway stops: tell it. NULL = what it asked for is answered, then it is closed. */
    void (*drain)(struct client *c);
    /* BIND or UNBIND that was asked with `ticket` is over: it is done, or refused if there is a
     * `why`. */
    void (*bind_over)(struct client *c, uint64_t ticket, enum bound_result result, const char *why);
    /* Like bind_over, for a reply that the router made itself. */
    void (*bind_failed)(struct client *c, const struct router_effect *reply, struct bytes body);
    /* True if the answer to `ticket` was written: what is written now comes behind it. */
    bool (*is_answered)(const struct client *c, uint64_t ticket);
    void (*push)(struct client *c, struct bytes key, const struct push_record *push);
    void (*kick)(struct client *c, uint32_t code, struct bytes text);
    /* The client's actor lets it go on as another entity. */
    void (*rebound)(struct client *c, const struct rebind *to);
    /* Ask anew if it is still here: client_session_vouch(). NULL = it keeps no session. */
    void (*vouch)(struct client *c, uint64_t version);
    /* The actor of a session that is kept was begun afresh. NULL = it keeps none. */
    void (*begun)(struct client *c);
};
extern const struct dialect dialect_resp;    /* resp.c */
extern const struct dialect dialect_packets; /* packet.c */
extern const struct dialect dialect_http;    /* http.c */

/* ---- heartbeat.c */

/* Write a kick's bytes. */
void packet_put_kick(struct client *c, uint32_t code, struct bytes text);
/* Handle the client's first packet. */
void packet_on_hello(struct client *c, struct bytes body);
/* From now on its hello is awaited. */
void packet_opened(struct client *c, uint64_t now_us);
/* Ping a client that has been silent, and end one that stays silent; about once a second. */
void packet_tick(struct client *c);
/* The gateway's own kick, of a client that speaks packets; counted by code. */
void packet_kick(struct client *c, enum packet_kick code, const char *text);

/* GOAWAY, and no more: it is to come again after `retry_ms`. */
void packet_turn_away(struct client *c, uint32_t retry_ms, const char *why);

/* GOAWAY to a connection that may not come in; good until the next call on `all`. */
struct bytes packet_refusal(struct clients *all, uint32_t retry_ms, const char *why);

/* Number of the slot that it is an answer for. */
static inline uint64_t ticket_slot(uint64_t ticket)
{
    return ticket >> TICKET_PART_BITS;
}
static inline uint64_t ticket_of(uint64_t slot, uint16_t part)
{
    return slot << TICKET_PART_BITS | part;
}

struct client {
    struct table_link link; /* by session */
    struct list_link order; /* of age */
    struct clients *all;
    const struct dialect *dialect;
    void *user;
    uint64_t session;
    uint64_t id; /* a small number, for people */
    uint64_t since_us;
    uint64_t progress_us; /* when it took bytes last */
    char address[CLIENT_ADDRESS_MAX + 1];
    struct buffer in; /* input not used yet */
    size_t in_at;     /* bytes of it that are used */
    struct buffer out;
    size_t writing; /* bytes moved out and not sent yet */
    struct slots slots;
    size_t held;             /* bytes it is in all->stats.buffered with */
    size_t reply_size;       /* what a reply is expected to take */
    uint32_t in_flight;      /* parts asked of the router */
    uint64_t asked;          /* router_asked() of its last request */
    bool rests;              /* that, or all from there, is over its share: it has to wait */
    uint64_t rests_until_us; /* and until then */
    bool busy;               /* it was sent something since the last tick */
    bool closing;            /* no more input; goes when all is answered and sent */
    bool ended;              /* the other side sends no more */
    bool half;               /* what is in `in` is a command that is still coming */
    bool dropped;            /* goes at once */
    bool waiting;    /* a bind or a login is under way: nothing is taken before its answer */
    uint64_t now_us; /* of this call */
    struct router_effects *effects; /* of this call */

    /* Of a client that speaks RESP: resp.c, local.c. */
    struct resp_parser parser;
    uint8_t protocol; /* RESP's: 2 or 3; 0 = it speaks packets or HTTP */
    bool in_multi;    /* behind its MULTI: nothing runs until EXEC or DISCARD */
    char name[CLIENT_NAME_MAX + 1];

    struct {
        uint64_t heard_us;  /* when bytes came last */
        uint64_t opened_us; /* since when its hello is awaited */
        uint32_t spent;     /* packets that were answered here, since it waited for them */
        bool greeted;       /* its hello came */
        bool pinged;        /* since then */
        bool leaving;       /* it was told to go … */
        bool refused;       /* … and a request of it was MOVING since */
    } packets;              /* heartbeat.c, packet.c: of a client that speaks packets */

    /* Who it is: auth.c, login.c. */
    struct unauthenticated_address
        *unauthenticated_address; /* it has to say who it is; NULL = it has not, or did */
    struct identity *identity;    /* owned: who it said it is; NULL = it was not asked */
    uint64_t login_until_us;      /* an actor is asked who it is, until then; 0 = none is */

    /* Where it came in: admission.c. */
    struct client_address *client_address; /* it came in as, or NULL */
    uint64_t origin;                       /* hash of where it is */
    struct bucket requests;                /* it may ask */

    /* The actor and the session that it has: bind*.c, client_session.c. */
    struct binding *binding;               /* owned; NULL = it is not bound to an actor */
    uint8_t lost_why;                      /* what its actor is told when it goes: enum note_lost */
    uint32_t rounds;                       /* of the last note: struct bond's */
    struct client_session *client_session; /* owned; what its requests are numbered in, since it
                                bound itself so that it may return; NULL = in `session` */

    /* Of a client that speaks HTTP: http.c, http_answer.c, http_events.c, keyed.c. */
    struct api_client *http; /* owned; NULL = it does not */
};

/* What a call may do to the fields that stand first. */

static inline void client_enter(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    c->now_us = now_us;
    c->effects = effects;
}
static inline void client_exit(struct client *c)
{
    c->effects = NULL;
}
/* How large is the next reply going to be? As large as the last, or a little less than thought
 * before: what is asked for must not overrun the buffers when it comes. */
static inline void client_learn_size(struct client *c, size_t size)
{
    enum { DECAY = 16 };

    c->reply_size =
        size >= c->reply_size ? size : c->reply_size - (c->reply_size - size + DECAY - 1) / DECAY;
}
/* The router has replied to so many parts. */
static inline void client_took_replies(struct client *c, size_t count)
{
    ASSERT(c->in_flight >= count);
    c->in_flight -= (uint32_t)count;
}
/* True if it is a reply to what a client asks, of this connection, which is bound to nothing. */
static inline bool client_takes_reply(const struct client *c, const struct router_effect *reply)
{
    return reply->type == ROUTER_REPLY && reply->session == c->session &&
           reply->ticket < TICKET_LOGIN;
}
/* The router was asked, with so many answers to come; `asked` is its router_asked(). */
static inline void client_has_asked(struct client *c, uint32_t count, uint64_t asked)
{
    c->in_flight += count;
    c->asked = asked;
}
static inline void client_close(struct client *c)
{
    c->closing = true;
}
static inline void client_drop(struct client *c)
{
    c->dropped = true;
}
static inline void client_note_half(struct client *c, bool half)
{
    c->half = half;
}
static inline void client_wait(struct client *c, bool waiting)
{
    c->waiting = waiting;
}
static inline void client_rest_until(struct client *c, uint64_t until_us)
{
    c->rests = true;
    c->rests_until_us = until_us;
}

struct clients {
    struct clients_config config;
    struct clients_stats stats;
    struct router *router;
    struct table table;
    struct client *last; /* found last, or NULL: replies come in runs of one client */
    struct command_memo memo;
    struct command_heads heads;
    struct list order;
    struct buffer words; /* of an inline command, or a body that came in chunks */
    struct buffer body;  /* of a request being made */
    struct push_stats pushes;
    struct spans spans;                  /* traced.c: of traces that begin here */
    struct trace_context trace;          /* of the request that is being asked */
    uint8_t brought[TRACE_CONTEXT_SIZE]; /* of the command that is being run */
    struct ration traces;                /* that began in this second */
    struct keyring keys;                 /* none: clients are not asked who they are */
    uint64_t unix_s;                     /* the time of day */
    uint64_t spent_until_us; /* when the last of those goes on that rest for what was refused */
    struct unauthenticated *own_unauthenticated; /* owned; NULL = they are of all threads */
    struct list left_logins;                     /* struct left_login, owned, the oldest first */
    struct admission_control *own_admission;     /* owned; NULL = it is of all threads */
    struct share by_origin;                      /* connections */
    struct share by_entity;                      /* … of those that are known */
    struct table client_sessions;                /* struct client_session, by session */
    struct table keyed;                          /* struct keyed, owned, by session (keyed.c) */
    struct list keyed_over;                      /* those of them that are answered */
    struct list bound;                           /* struct binding, all */
    struct list due;                             /* those of them that wait for a time */
    struct list turn;                            /* those of them whose turn it is now */
    bool in_turn;
    uint64_t ring_version;              /* that bonds were compared with */
    uint64_t breaks;                    /* times that links to nodes came up or went down … */
    uint64_t broke[RING_NODES_MAX + 1]; /* … and which of these was the last of each node */
    uint64_t since_us;
    uint64_t drawn; /* ids given */
};

/* Return the buffer for the reply to a command that needs no request. The reply follows what is
 * owed before. */
struct buffer *client_reply(struct client *c);
void client_reply_error(struct client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ask the router. */
struct ask {
    uint64_t ticket;     /* comes back with the answer; without meaning if there is to be none */
    uint32_t timeout_ms; /* 0 = the gateway's deadline */
    uint8_t flags;       /* enum request_flags */
    uint16_t kind;
    struct bytes id;
    struct bytes body;
    const struct args_command *command; /* instead of a body, or NULL */
    uint32_t name; /* of a client with a session of its own: its own; 0 = one of the gateway's */
    bool again;    /* … which was sent before */
    bool must;     /* it is taken however full the router is */
    const uint8_t *trace; /* what its client brought, TRACE_CONTEXT_SIZE bytes; NULL = nothing */
};
void client_ask(struct client *c, const struct ask *ask);
/* The deadline that a client wants, as the router takes it. (packet.c) */
uint32_t client_timeout(const struct client *c, uint32_t deadline_ms);
/* What is answered here, or not at all, holds nothing that could be counted, but takes the time of
 * all: after so many of these the client waits. (packet.c) */
void client_spend(struct client *c);
/* Have it wait if what it asked is over its share. */
void client_rest_if_over(struct client *c);

/* Make a slot for the answers of `parts` requests; `number` gets its number. */
static inline struct slot *client_add_slot(struct client *c, enum slot_shape shape, size_t parts,
                                           uint64_t *number)
{
    struct slot *slot = slots_add(&c->slots, shape, (uint16_t)parts, number);

    slot->protocol = c->protocol;
    return slot;
}
/* Likewise, for one, where there is a free slot. */
static inline void client_put_slot(struct client *c, enum slot_shape shape)
{
    slots_put(&c->slots, shape)->protocol = c->protocol;
}
/* Bytes that were given to the connection and are not out yet. */
size_t client_unsent(const struct client *c);
/* From now it owes reading, if it did not before. */
void client_owes(struct client *c, uint64_t now_us);
/* True if the client may have one more command taken. */
bool client_has_room(const struct client *c);
/* Likewise: how many it may have taken, each of one request, before that is asked again, if they
 * have so many bytes in all. 0 = none. */
size_t client_room(const struct client *c, size_t size);
/* Count what it holds now. Ends every call that may have changed it. */
void client_account(struct client *c);

/* ---- bind*.c */

/* How it wants to be bound: BIND; or KEEP; or RETURN, with what it said. */
struct bind_wish {
    enum note_type type;
    struct return_packet back;
};
/* Bind it to an actor, which the client names with `key`; the key ends with the id. False: it is
 * bound already. */
bool binding_ask(struct client *c, struct bytes key, const struct target *to,
                 const struct bind_wish *wish, uint64_t ticket);
/* Put into `out` what the client needs to resume its session. False: the session is not kept. */
bool binding_name(const struct client *c, struct session_packet *out);
/* The client has all pushes up to this number. */
void binding_ack(struct client *c, uint64_t pushes);
/* End that. False: it is not bound. */
bool binding_leave(struct client *c, uint64_t ticket);
/* The ticket of one of these was answered. */
void binding_answered(struct client *c, const struct router_effect *reply, struct bytes body);
/* Like binding_answered(), for TICKET_RESUME. */
void binding_resumed(struct client *c, const struct router_effect *reply, struct bytes body,
                     uint64_t now_us);
/* The key of a session that goes with a fresh number: numbers count, but who knows all of them, and
 * the keys that were given, can't guess another. Never 0. */
uint64_t binding_key(const struct clients *all, uint64_t number);
/* Write what may be delivered now. */
void binding_pump(struct client *c, uint64_t now_us);
/* The connection is bound no more: tell the actor, if it may think so. */
void binding_end(struct client *c, uint64_t now_us, struct router_effects *effects);

/* ---- admission.c */

/* Charge one more request to the client's rate. Returns 0, or the milliseconds after which it may
 * ask. */
uint32_t client_overspeed(struct client *c);
/* The connection has gone. */
void client_let_out(struct client *c, uint64_t now_us);
/* The connection is counted with those from where it is, and is no more. */
void client_take_place(struct client *c);
void client_leave_place(struct client *c);
/* True if this entity, by entity_hash(), has used its share of connections. */
bool clients_entity_is_full(const struct clients *all, uint64_t entity);

/* ---- client_session.c: the numbering of requests that outlives a connection */

/* From now on its requests are named by itself. It has no answer that is still to come. */
void client_session_open(struct client *c, const struct session_name *name, uint32_t epoch);
/* The client's session ends: nothing more is replied to it. */
void client_session_close(struct client *c, uint64_t now_us, struct router_effects *effects);
/* The client has all answers below this number. */
void client_session_ack(struct client *c, uint32_t answers);
/* The client has answered dialect.vouch: it was still here when the ring had that version. */
void client_session_vouch(const struct client *c, uint64_t version);
/* The client that has this session, or NULL. */
struct client *client_session_find(const struct clients *all, uint64_t session);
/* Ask the router: in the client's own numbers if the request has one, and traced if it is to be.
 * `body` as in struct router_event. */
void client_session_ask(const struct client *c, const struct ask *ask, struct bytes body);
/* The reply is for a request of this connection. */
bool client_session_owns(const struct client *c, const struct router_effect *reply);

/* ---- keyed.c: requests that a client may ask again, on any connection, by a key of its own */

/* The session that a key makes, with the entity: the same at each gateway. Needs a ring. */
uint64_t keyed_session(const struct clients *all, const struct ask *ask, struct bytes key);
/* False: it is under way for another connection, or for this one. */
bool keyed_is_free(const struct clients *all, uint64_t session);
/* Ask it; `ask->again`: it was asked before, when the ring had the version `first` or a later one.
 */
void keyed_ask(struct client *c, uint64_t session, const struct ask *ask, uint64_t first);
/* The client that waits for its answer, or NULL. */
struct client *keyed_find(const struct clients *all, uint64_t session);
/* True if the reply is for this client; it is over now. */
bool keyed_answered(struct client *c, const struct router_effect *reply);
/* The connection goes: what it asked so runs on, and can be asked for again. */
void keyed_leave(struct client *c, uint64_t now_us, struct router_effects *effects);
/* Tell the router of those that are over. False: there were none. */
bool keyed_go_on(struct clients *all, uint64_t now_us, struct router_effects *effects);
/* Forget them all. */
void keyed_end(struct clients *all);

/* ---- http.c */

struct api_client *api_client_new(uint64_t now_us);
/* From now on its first request is awaited. Nothing, if it does not speak HTTP. */
void http_opened(struct client *c, uint64_t now_us);
/* An answer to a connection that may not come in; good until the next call on `all`. */
struct bytes http_refusal(struct clients *all, uint32_t retry_ms, const char *why);

/* ---- traced.c */

/* The context of a request if it is to be traced, until the next call: its client's, or, of one in
 * so many, one that begins here. NULL = it is not. */
const struct trace_context *client_trace(const struct client *c, const struct ask *ask);

/* ---- auth.c */

/* True if clients are asked who they are. */
bool auth_asks(const struct clients *all);
/* Count a new connection as unauthenticated, if clients are asked who they are. */
void auth_begin(struct client *c);
/* The connection has gone. */
void auth_end(struct client *c);
/* The client showed these credentials: it becomes known, is kicked, or an actor is asked. */
void auth_take(struct client *c, struct bytes text);
/* The client is authenticated as `who`, until the time that stands there. If there are keys, it
 * gets a token. */
void auth_be(struct client *c, const struct auth_ok_packet *who);
/* The client's actor says that it is this entity from now on. Its identity changes if it was asked
 * for one. `out` is what to tell the client; its token is appended to `token` if there are keys. */
void auth_become(struct client *c, const struct rebind *to, struct auth_ok_packet *out,
                 struct buffer *token);
/* The client showed this token with a request (HTTP): it becomes known, or goes on as known.
 * TOKEN_GOOD and `full`: its entity has used its share of connections. */
enum token_verdict auth_show(struct client *c, struct bytes text, bool *full);
/* True if the client may send requests to this entity. */
bool auth_allows(const struct client *c, uint16_t kind, struct bytes id);
/* True if an unauthenticated client may send a packet of this type. */
bool auth_admits(uint8_t type);

/* ---- login.c */

/* Ask the login actor who shows this. */
void login_ask(struct client *c, struct bytes credentials);
/* The login actor has answered, or the request failed. */
void login_answered(struct client *c, const struct router_effect *reply, struct bytes body,
                    uint64_t now_us);
/* The client has waited long enough for its login: give it up. */
void login_give_up(struct client *c);
/* The connection goes. An actor that was asked is busy with it still, so it counts as
 * unauthenticated until that is over. */
void login_leave(struct client *c, uint64_t now_us);
/* Time passes: forget those of who left that are over. */
void logins_tick(struct clients *all, uint64_t now_us);
/* Forget them all. */
void logins_end(struct clients *all);

/* The entity that a key names; false: none, and an error was replied. */
bool client_finds_any(struct client *c, struct bytes key, struct target *out);
static inline bool client_finds(struct client *c, struct bytes key, struct target *out)
{
    // Most are ids of the default kind.
    if (c->all->config.role[0] == '\0' && key.size >= 1 && key.size <= RECORD_ID_MAX &&
        key.data[0] != '@') {
        out->kind = 0;
        out->id = key;
        return true;
    }
    return client_finds_any(c, key, out);
}

#endif
