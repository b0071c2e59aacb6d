/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's inside, shared by its files: a list of parts, each with a header of its own, whose
 * fields are written in the part's own files alone (tools/parts). What stands here belongs to
 * client.c, and to options.c, which makes a client.
 */
#ifndef CLIENT_INSIDE_H
#define CLIENT_INSIDE_H

#include "client/asking.h"
#include "client/bytes.h"
#include "client/connection.h"
#include "client/log.h"
#include "client/login.h"
#include "client/packets.h"
#include "client/session.h"

struct rhc {
    uint32_t answer_ms;
    uint32_t greet_ms;
    uint32_t back_off_min_ms;
    uint32_t back_off_max_ms;
    uint64_t random;
    uint64_t now_ms;

    struct client_connection connection;
    struct login login;
    struct client_sessions session;
    struct asking asking;
    struct log log;
    struct client_bytes bytes;
};

/* The owner calls, at this time. */
static inline void begin_step(struct rhc *c, uint64_t now_ms)
{
    c->now_ms = now_ms;
}

static inline bool is_connected(const struct rhc *c)
{
    const enum rhc_state state = c->connection.state;

    return state == RHC_GREETING || state == RHC_READY || state == RHC_LEAVING;
}

/* Any number: client.c. */
uint64_t drawn(struct rhc *c);
/* `least`..2*`least`, so that those who were told the same come one by one. */
uint64_t jittered(struct rhc *c, uint64_t least);

/* Take one packet: heard.c. True: `event` is to be told. */
bool hear(struct rhc *c, uint8_t type, struct rhc_bytes body, struct rhc_event *event);

#endif
