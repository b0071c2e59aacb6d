/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of the gateway's shell share: the process (gateway_uv.c)
 * and its clients' connections (listener_uv.c).
 *
 * One turn of the loop: callbacks feed the cores and mark what they touched;
 * before the loop blocks, turn() does the effects, flushes the links and makes
 * one write for each connection with output.
 */
#ifndef GATEWAY_SHELL_UV_H
#define GATEWAY_SHELL_UV_H

#include "base/clock.h"
#include "base/list.h"
#include "gateway/client.h"
#include "gateway/gateway_uv.h"
#include "gateway/router.h"
#include "wire/address.h"

#include <stdbool.h>
#include <uv.h>

/* An address that clients of one protocol come to. */
struct port {
    uv_tcp_t tcp;
    struct listener *listener;
    enum client_speech speech;
    bool open;
};

struct listener {
    struct port port[2];            /* by enum client_speech */
    struct clients *clients;        /* borrowed */
    struct router_effects *effects; /* borrowed: what the cores want done */
    struct list connections;        /* struct connection, all */
    struct list touched;            /* to be looked at in this turn */
    struct list paused;             /* not read from, or with input that waits */
    uint8_t *input;                 /* owned: one read buffer for all */
    /* There are effects: what can be done at once may be, while it is in the cache. */
    void (*act)(struct listener *l);
    uint64_t now_us; /* of this turn of the loop, from its first callback on */
    bool clocked;    /* it is */
    bool draining;
};

enum { BOUND_SIZE = ADDRESS_SIZE_MAX + 8 };

/* The time of this turn: the clock is read once for all that it brought. */
static inline uint64_t listener_now(struct listener *l)
{
    if (!l->clocked) {
        l->now_us = clock_boottime_us();
        l->clocked = true;
    }
    return l->now_us;
}

/* Before anything else. */
void listener_init(struct listener *l);
/* Bind and listen for clients that speak so. 0, or a libuv error. `bound` gets "host:port". */
int listener_open(struct listener *l, uv_loop_t *loop, enum client_speech speech,
                  const char *address, char bound[BOUND_SIZE]);
/* Free what is left once the loop is done with all handles. */
void listener_fini(struct listener *l);

/* A reply for a client of this listener: a ROUTER_REPLY effect. */
void listener_reply(struct listener *l, const struct router_effect *reply, struct bytes body);

/* A push for a client of this listener. */
void listener_push(struct listener *l, const struct push_record *push);

/* Do what is due for clients that are bound to actors. */
void listener_tick(struct listener *l);

/* Go on with clients that had to wait. True: there are new effects. */
bool listener_resume(struct listener *l);

/* Send, close, read on: for all that were touched. */
void listener_flush(struct listener *l);

/* Close those that are stuck. About once a second. */
void listener_sweep(struct listener *l);

/* Accept and read no more. */
void listener_drain(struct listener *l);
/* True when nothing is owed to anybody. */
bool listener_is_drained(const struct listener *l);
/* Close every connection. */
void listener_close(struct listener *l);

#endif
