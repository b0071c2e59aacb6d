/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients: the connections that speak RESP, packets or HTTP. Commands in, requests to
 * the router, replies out: of RESP and HTTP in the order of the commands, of packets as
 * they come.
 *
 * Pure. The shell feeds bytes and replies and sends what client_output() has.
 *
 * What a connection may hold in memory is bounded:
 *
 *     input     one command (RESP_COMMAND_MAX) and one read, doubled by growth
 *     replies   no command is taken while what waits to be sent and what is
 *               expected of commands under way come to `unsent_max`, or while
 *               `in_flight_max` are under way; past `output_max` it is closed
 *     time      it is closed when it takes nothing for `stall_ms`
 *
 * All of them together: above `buffers_max` nobody who owes reading is read
 * from, and a half-sent command may not grow past 64 KiB; above twice that who
 * owes reading of more than `unsent_max` is closed. What is on its way to nodes
 * is bounded by the router.
 *
 * Who speaks packets to a gateway with keys, or with a login actor, is unauthenticated
 * until it has shown a token (auth.c), or the actor has said who it is
 * (login.c): the unauthenticated are counted, and may hold little.
 */
#ifndef GATEWAY_CLIENT_CLIENT_H
#define GATEWAY_CLIENT_CLIENT_H

#include "base/bytes.h"
#include "gateway/access/admission.h"
#include "gateway/access/bucket.h"
#include "gateway/access/keyring.h"
#include "gateway/client/pushes.h"
#include "gateway/protocol/entry.h"
#include "gateway/protocol/http.h"
#include "gateway/protocol/packet.h"
#include "gateway/protocol/transport_stats.h"
#include "ring/hash.h"
#include "route/router.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIENT_ADDRESS_MAX = 63, CLIENT_READ_MAX = 64 * 1024 };

struct thread_stats;
struct clients;
struct client;

struct clients_config {
    const char *version;             /* of the product; borrowed for life */
    char name[VIEW_NAME_MAX + 1];    /* of this gateway */
    uint16_t port;                   /* for INFO */
    uint32_t in_flight_max;          /* commands and requests of one connection; 1024 */
    uint32_t connections_max;        /* 10000 */
    uint32_t stall_ms;               /* 60000 */
    uint32_t deadline_ms;            /* the router's, for texts */
    size_t unsent_max;               /* bytes of one connection; 1 MiB */
    size_t output_max;               /* bytes of one connection; 64 MiB */
    size_t buffers_max;              /* bytes of all connections; 256 MiB */
    size_t push_unread_max;          /* a push on top of so many unread bytes closes it; 1 MiB: more
                                        than BOND_UNACKED_MAX, which a return is given at once */
    size_t packet_size_max;          /* body of a packet that comes in; at most 1 MiB; 64 KiB */
    uint32_t heartbeat_ms;           /* packets come at least so often, 0 = need not; 30000 */
    uint32_t hello_ms;               /* until the hello; 5000 */
    uint32_t head_ms;                /* of a request of HTTP, from its first byte; 5000 */
    char cluster[VIEW_NAME_MAX + 1]; /* that tokens must be for */
    uint32_t auth_ms;                /* until a good token was shown; 5000 */
    uint32_t unauthenticated_max;    /* connections without one, in all; 4096 */
    uint32_t unauthenticated_address_max; /* and from one address; 64 */
    struct login_config {                 /* an actor is asked who a client is (login.c) */
        bool asked;
        uint16_t kind;
        char role[RING_ROLE_MAX + 1]; /* whose first kind it is; "": `kind` */
        uint32_t spread;              /* over so many ids, login-0 and up; 16 */
        uint32_t at_once_max;         /* logins under way; 512 */
    } login;
    struct unauthenticated
        *unauthenticated;              /* borrowed for life: of all threads; NULL = of its own */
    struct admission_config admission; /* who may come in, of clients that speak packets; any */
    struct admission_control
        *shared_admission;         /* borrowed for life: of all threads; NULL = of its own */
    struct bucket_rate requests;   /* of a connection that speaks packets; any */
    char role[RING_ROLE_MAX + 1];  /* whose kind a key without "@KIND/" names; "": kind 0 */
    struct ring_key secret;        /* random: what keys of sessions are drawn by */
    unsigned thread;               /* of the gateway's process; 0 */
    unsigned threads;              /* 1; these two keep CLIENT ID apart */
    const struct tracing *tracing; /* borrowed for life: where spans go, and the router's, too; NULL
                                      = a request is never traced, whatever its client says */
    uint32_t trace_ppm;  /* of requests that bring no context so many of a million are traced, by
                            chance; 0 */
    uint32_t trace_rate; /* traces that begin in a second at the most; 1000 */
    uint64_t trace_seed; /* random */
    struct thread_stats
        *shared_stats; /* borrowed for life: of all threads, for INFO; NULL with one */
};
struct clients_config clients_config_default(void);

/* Borrows the router until clients_free(). */
struct clients *clients_new(const struct clients_config *config, struct router *router,
                            uint64_t now_us);
/* From now on its times (auth_ms, deadline_ms), its rate of requests and its limits of connections,
 * the unauthenticated and logins hold; who is in stays. */
void clients_configure(struct clients *all, const struct clients_config *config);
/* Free what the clients shared, when all of them are gone. Takes NULL. */
void clients_free(struct clients *all);

/* The keys of tokens, from now on; a copy. None: who speaks packets isn't asked who it is. Who was
 * known stays so. (auth.c) */
void clients_set_keys(struct clients *all, const struct keyring *keys);
/* The time of day, for tokens' expiry: call it at least once a second if there are keys. */
void clients_set_unix(struct clients *all, uint64_t unix_s);

/* Judge whether a connection from this "host:port" may come in. If not, the result has what to tell
 * it before it is closed, valid until the next call; it is counted by reason. If so, the client
 * that is made of it is to be told its `client_address`: client_let_in(). (admission.c) */
struct admission_result {
    struct bytes refusal;
    struct client_address *client_address;
    uint32_t retry_ms; /* of a refusal, as the next */
    const char *why;
};
bool clients_admit(struct clients *all, enum client_speech speech, const char *address,
                   uint64_t now_us, struct admission_result *out);
/* True if the gateway turns no clients away; a load balancer should send players elsewhere while it
 * does. */
bool clients_ready(const struct clients *all, uint64_t now_us);

/* The client with this session, or NULL: it may have just gone. */
struct client *clients_find(struct clients *all, uint64_t session);

struct clients_stats {
    uint64_t connected;
    uint64_t accepted;
    uint64_t refused; /* one too many */
    uint64_t commands;
    uint64_t errors;                  /* replies that are errors */
    uint64_t bad_input;               /* closed for not speaking RESP */
    uint64_t stalled;                 /* closed for not reading */
    uint64_t overrun;                 /* closed for owing too much reading */
    uint64_t buffered;                /* bytes held for all clients, now */
    uint64_t packets;                 /* that came in */
    uint64_t bad_requests;            /* answered BAD_REQUEST, or notifies that were dropped */
    uint64_t authenticated;           /* showed a good token */
    uint64_t unauthenticated;         /* did not yet, now */
    uint64_t refused_unauthenticated; /* of `refused`: too many unauthenticated in all */
    uint64_t refused_address;         /* … and from one address */
    uint64_t refused_full;            /* … no room for a client that speaks packets */
    uint64_t refused_accept_rate;     /* … they come too fast */
    uint64_t refused_address_rate;    /* … from one address */
    uint64_t refused_address_count;   /* … too many are here from one address */
    uint64_t refused_address_share;   /* … more than their share are from one address */
    uint64_t refused_entity_share;    /* … or show tokens of one entity */
    uint64_t rests_entity;            /* times one had to wait, its entity having its share */
    uint64_t rests_origin;            /* … and its address */
    uint64_t rests_spent;             /* … or as it asked much that is refused, or pinged much */
    uint64_t rate_limited;            /* requests beyond the rate of their connection */
    struct login_stats {
        uint64_t under_way; /* now */
        uint64_t ok;
        uint64_t refused;    /* the actor said no */
        uint64_t broken;     /* … or what makes no sense */
        uint64_t unanswered; /* … or nothing in time, or there is none */
        uint64_t full;       /* too many were under way: not asked */
        uint64_t left;       /* the client had gone before the answer */
    } logins;
    uint64_t unauthorized;             /* asked for another entity than their token's */
    uint64_t kicks[PACKET_KICK_COUNT]; /* by code, from PACKET_KICK_BAD_PACKET on */
    uint64_t http_requests;            /* that came whole */
    uint64_t http_refused[HTTP_REFUSAL_COUNT];
    struct push_stats pushes;
    struct transport_stats transports; /* counted by them (transport.h) */
};
void clients_stats(const struct clients *all, struct clients_stats *out);
/* Return the counters of these clients' transports. */
struct transport_stats *clients_transports(struct clients *all);

/* Make the client of a new connection. `effects` here and below: what the router wants done,
 * appended. */
struct client *client_new(struct clients *all, enum client_speech speech, const char *address,
                          uint64_t now_us);
/* The client was admitted from this address; it gives its place there back when it goes. */
void client_let_in(struct client *c, struct client_address *client_address);
/* The connection is closed. */
void client_free(struct client *c, uint64_t now_us, struct router_effects *effects);

void *client_user(const struct client *c);
void client_set_user(struct client *c, void *user);

/* Bytes came in; at most CLIENT_READ_MAX at once, and only while client_wants_input(). */
void client_on_bytes(struct client *c, struct bytes in, uint64_t now_us,
                     struct router_effects *effects);
/* Time passes: call it about once a second. It may have output then. */
void client_tick(struct client *c, uint64_t now_us);
/* The gateway stops: what it asked for is still answered, and it is told to go. */
void client_drain(struct client *c, uint64_t now_us);
/* The other side sends no more: what it asked for is still answered, then it is closed. */
void client_on_end(struct client *c);
/* Do a VOUCH effect of the client's session. */
void client_vouch(struct client *c, uint64_t version, uint64_t now_us);
/* Take a REPLY effect of the client's session. */
void client_on_reply(struct client *c, const struct router_effect *reply, struct bytes body,
                     uint64_t now_us);
/* Take the reply `from` of these, which is the client's, and those right behind it that are
 * likewise, for less. Returns how many. */
size_t client_on_replies(struct client *c, const struct router_effects *effects, size_t from,
                         uint64_t now_us);
/* Go on with input that had to wait. Call once a turn while client_has_input(). */
void client_resume(struct client *c, uint64_t now_us, struct router_effects *effects);

/* The transport's handshake is over: the client may speak now. */
void client_on_open(struct client *c, uint64_t now_us);
/* True if what the client still sends is to be read for a while when it is done: it may be sending
 * what was refused, and a socket that is closed over unread bytes takes the answer back. */
bool client_lingers(const struct client *c);
/* True if the client was told to leave. */
bool client_is_leaving(const struct client *c);
bool client_wants_input(const struct client *c);
/* True if the client must not be read from: more than its share of requests is under way (until
 * client_wake() finds otherwise), or it asked much that costs nothing but time (for 100 ms). */
bool client_rests(const struct client *c);
void client_wake(struct client *c, uint64_t now_us);
bool client_has_input(const struct client *c); /* some waits that could be gone on with */

/* Bytes to be sent; empty while what client_take_output() gave is on its way. */
struct bytes client_output(const struct client *c);
/* `count` of them went out at once. */
void client_sent(struct client *c, size_t count, uint64_t now_us);
/* Move the rest out, for a write that takes a while; `to` is owned by the caller. */
void client_take_output(struct client *c, struct buffer *to);
/* The write that was under way is over. */
void client_wrote(struct client *c, uint64_t now_us);

/* ---- sessions: clients that are bound to an actor (bind*.c) */

/* Take a push of an actor. Returns the client that it was for, which may have output now, or
 * NULL. */
struct client *clients_on_push(struct clients *all, const struct push_record *push,
                               uint64_t now_us);
/* A link to that node came up, or is down: what was on it is lost. */
void clients_on_node_up(struct clients *all, uint16_t slot, uint64_t now_us);
void clients_on_node_down(struct clients *all, uint16_t slot, uint64_t now_us);
/* Do what is due for one client, which may have output now. NULL = nothing more is: call it until
 * then, every 10..50 ms. */
struct client *clients_go_on(struct clients *all, uint64_t now_us, struct router_effects *effects);
/* Nothing is due for any client. */
bool clients_rest(const struct clients *all);

/* True if nothing is left to do for the client: close its connection. */
bool client_is_done(const struct client *c);
/* True if the client reads nothing, or owes too much reading. The caller closes it; counted. */
bool client_is_stuck(struct client *c, uint64_t now_us);

#endif
