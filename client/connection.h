/* SPDX-License-Identifier: Apache-2.0
 *
 * Connection: how far is it, when does it end, and when does the next begin? ringhold_client.h
 * draws its states.
 *
 * client.c takes what its owner says of it; due.c does what is due.
 */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WHY_SIZE = 128,
    BODY_MAX = 0xFFFFFF,
    BODY_LEAST = 512,           /* less is no gateway's largest body */
    RETRY_MAX_MS = 3600 * 1000, /* nobody is sent away for longer */
};

struct client_connection {
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
    /* To be told, before what comes. */
    bool tell_ready;
    bool tell_lost;
    bool tell_kicked;
    uint32_t kick_code;
    char why[WHY_SIZE];
};

static inline uint32_t retry_within(uint32_t retry_ms)
{
    return retry_ms < RETRY_MAX_MS ? retry_ms : RETRY_MAX_MS;
}

/* Any gateway is the first. */
void connection_init(struct rhc *c);
/* Bytes came. */
void connection_heard(struct rhc *c);
/* A hello-ack came. */
void connection_greeted(struct rhc *c, uint32_t heartbeat_ms, size_t body_max);
/* Begin to ask: nothing more stands between hello-ack and requests. */
void connection_known(struct rhc *c);
/* The client must be ready by then. */
void connection_greets_by(struct rhc *c, uint64_t at_ms);
void be_ready(struct rhc *c);
/* The gateway is stopping; come again, not sooner than in `retry_ms`. */
void connection_goaway(struct rhc *c, uint32_t retry_ms);
/* Close the connection, and come again. */
void give_up(struct rhc *c, const char *why);
/* Close it for good. */
void be_kicked(struct rhc *c, uint32_t code, struct rhc_bytes text);

#endif
