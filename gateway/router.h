/* SPDX-License-Identifier: Apache-2.0
 *
 * The router: takes requests of sessions, sends each to the node that owns its
 * entity, and sees it through moves until it is answered or its deadline ends.
 * PROTOCOL §6.
 *
 *     state    event                                action                        next
 *     (new)    window free, owner known and linked  number it, send               SENT
 *     (new)    otherwise                            wait                          WAITING
 *     WAITING  ring or link changed                 try again                     SENT
 *     SENT     OK, APP_ERROR                        reply                         done
 *     SENT     MOVED(v)                             fetch >= v, send again        WAITING
 *     SENT     BUSY(ms)                             wait ms, send again           WAITING
 *     SENT     COLD(c), one copy                    first = my version, send      SENT
 *     SENT     link to that node lost               reply UNKNOWN                 done
 *     any      deadline                             never run: REJECTED else TIMEOUT   done
 *
 * Pure. Order: requests of one (session, entity) carry seq, prev and base.
 */
#ifndef GATEWAY_ROUTER_H
#define GATEWAY_ROUTER_H

#include "ring/view.h"
#include "wire/control.pb-c.h"
#include "wire/record.h"

struct router;

struct router_config {
    uint64_t gateway; /* random id of this process; session ids grow from it */
    char name[VIEW_NAME_MAX + 1];
    uint32_t deadline_ms;    /* of a request; 10000 */
    uint32_t window;         /* unfinished requests of one (session, entity) on their way; 32 */
    uint32_t in_flight_max;  /* requests in all; above it router_full() is true; 100000 */
    uint32_t refresh_ms;     /* GetConfig at least so often; 500 */
    size_t waiting_size_max; /* bytes of unfinished requests in all; 256 MiB */
};
struct router_config router_config_default(void);

enum router_event_type {
    ROUTER_TICK,           /* every 10..50 ms */
    ROUTER_REQUEST,        /* session, ticket, kind, id, body, flags */
    ROUTER_SESSION_CLOSED, /* session: its requests are abandoned, nothing is replied */
    ROUTER_ANSWER,         /* slot, answer */
    ROUTER_NODE_UP,        /* slot, incarnation */
    ROUTER_NODE_DOWN,      /* slot */
    ROUTER_COORDINATOR_UP, /* coordinator: index */
    ROUTER_COORDINATOR_DOWN,
    ROUTER_CONTROL, /* coordinator, message */
};

struct router_event {
    enum router_event_type type;
    uint64_t now_us;
    uint64_t session;
    uint64_t ticket; /* caller's name of the request; comes back in REPLY */
    uint16_t kind;
    uint8_t flags;     /* enum request_flags */
    struct bytes id;   /* borrowed */
    struct bytes body; /* borrowed */
    uint16_t slot;
    uint64_t incarnation;
    const struct answer_record *answer; /* borrowed */
    int coordinator;
    const Rh__Control *message; /* borrowed */
};

enum reply_code {
    REPLY_OK,
    REPLY_APP_ERROR, /* body = text */
    REPLY_UNKNOWN,   /* may have run, at most once */
    REPLY_TIMEOUT,   /* deadline; may have run, at most once */
    REPLY_REJECTED,  /* deadline or overload; did not run and never will */
    REPLY_NO_KIND,
};

enum router_effect_type {
    ROUTER_SEND_NODE,        /* slot; bytes: one request record */
    ROUTER_TELL_NODE,        /* slot; bytes: packed Control (Adopted) */
    ROUTER_SEND_COORDINATOR, /* coordinator; bytes: packed Control */
    ROUTER_REPLY,            /* session, ticket, code, flags; bytes */
    ROUTER_CONNECT,          /* keep a link to node slot at address */
    ROUTER_DISCONNECT,       /* slot */
};

struct router_effect {
    enum router_effect_type type;
    uint16_t slot;
    int coordinator;
    uint64_t session;
    uint64_t ticket;
    enum reply_code code;
    uint8_t flags; /* of the request */
    char address[VIEW_ADDRESS_MAX + 1];
    size_t at; /* in effects.bytes */
    size_t size;
};

/* Done in order. Grows as needed; the caller clears it between steps. */
struct router_effects {
    struct router_effect *item; /* owned */
    size_t count;
    size_t cap;
    struct buffer bytes;
};
void router_effects_clear(struct router_effects *e);
void router_effects_fini(struct router_effects *e);

struct router *router_new(const struct router_config *config);
void router_free(struct router *r);
void router_step(struct router *r, const struct router_event *event, struct router_effects *out);
void router_check(const struct router *r);

/* A fresh session id, unique over gateways and restarts. */
uint64_t router_session(struct router *r);
/* True: no more requests, please; stop reading clients until it is false. */
bool router_full(const struct router *r);
const struct view *router_view(const struct router *r);

struct router_figures {
    uint64_t version;
    uint64_t digest[2];
    uint64_t requests;
    uint64_t in_flight;
    uint64_t waiting;
    uint64_t resent;
    uint64_t moved;
    uint64_t unknown;
    uint64_t timeout;
    uint64_t rejected;
};
void router_figures(const struct router *r, struct router_figures *out);

#endif
