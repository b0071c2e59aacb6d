/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections of the clients of one thread (listener_uv.c), as its other
 * half (thread_uv.c) uses them.
 *
 * One turn of the loop: callbacks feed the cores and mark what they touched;
 * before the loop blocks, on_prepare() does the effects, flushes the links and makes
 * one write for each connection with output.
 */
#ifndef GATEWAY_SHELL_UV_H
#define GATEWAY_SHELL_UV_H

#include "base/clock.h"
#include "base/list.h"
#include "gateway/access/ranges.h"
#include "gateway/client/client.h"
#include "gateway/port_uv.h"
#include "gateway/protocol/transport.h"
#include "route/router.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct gateway_listener {
    struct clients *clients;           /* borrowed */
    struct router_effects *effects;    /* borrowed: what the cores want done */
    struct list connections;           /* struct connection, all */
    struct list refused;               /* struct connection, told to go: the oldest first */
    size_t refused_count;              /* of those */
    struct list arriving;              /* struct connection, whose proxy has yet to say who comes */
    size_t arriving_count;             /* of those */
    struct ranges proxies;             /* who hands connections on */
    struct list parting;               /* struct connection, to be told once they can hear */
    size_t parting_count;              /* of those */
    struct list touched;               /* to be looked at in this turn */
    struct list paused;                /* not read from, or with input that waits; the others: */
    struct list resting;               /* … those that have their share, until the next tick */
    uint8_t *input;                    /* owned: one read buffer for all */
    struct buffer plain;               /* what a read means to its client */
    struct transport_rules transports; /* of clients that don't come as they are */
    /* There are effects: what can be done at once may be, while it is in the cache. */
    void (*act)(struct gateway_listener *l);
    uint64_t now_us; /* of this turn of the loop, from its first callback on */
    bool clocked;    /* it is */
    /* Connections that were given to it and are no more: for who gives them, in another thread. */
    atomic_uint_fast64_t left;
};

/* The time of this turn: the clock is read once for all that it brought. */
static inline uint64_t listener_now(struct gateway_listener *l)
{
    if (!l->clocked) {
        l->now_us = clock_boottime_us();
        l->clocked = true;
    }
    return l->now_us;
}

static inline void listener_count_left(struct gateway_listener *l)
{
    (void)atomic_fetch_add_explicit(&l->left, 1, memory_order_relaxed);
}

/* Make the listener; call it before any other function of it. */
void listener_init(struct gateway_listener *l);
/* A client is there: a connection of this loop, or one too many, which is told so. */
void listener_accept(struct gateway_listener *l, struct port *port);
/* Like listener_accept(), for a socket that another thread accepted. Takes `fd`. */
void listener_take(struct gateway_listener *l, uv_loop_t *loop, enum entry entry, int fd);
/* Free what is left once the loop is done with all handles. */
void listener_fini(struct gateway_listener *l);

/* Hand a reply to a client of this listener: a ROUTER_REPLY effect. */
void listener_reply(struct gateway_listener *l, const struct router_effect *reply,
                    struct bytes body);
/* Likewise for number `from` of these, and those right behind it for the same client. Returns how
 * many. */
size_t listener_replies(struct gateway_listener *l, const struct router_effects *effects,
                        size_t from);

/* Hand a ROUTER_VOUCH to the client that it is for. */
void listener_vouch(struct gateway_listener *l, const struct router_effect *e);

/* Hand a push to a client of this listener. */
void listener_push(struct gateway_listener *l, const struct push_record *push);

/* Do what is due for clients that are bound to actors. */
void listener_tick(struct gateway_listener *l);
/* Nothing waits for the next tick more than for any later one. */
bool listener_rests(const struct gateway_listener *l);

/* Go on with clients that had to wait. True: there are new effects. */
bool listener_resume(struct gateway_listener *l);

/* Send, close, read on: for all that were touched. */
void listener_flush(struct gateway_listener *l);

/* Close those that are stuck. About once a second. */
void listener_sweep(struct gateway_listener *l);

/* Take no more commands. */
void listener_drain(struct gateway_listener *l);
/* True when nothing is owed to anybody. */
bool listener_is_drained(const struct gateway_listener *l);
/* Close every connection. */
void listener_close(struct gateway_listener *l);

#endif
