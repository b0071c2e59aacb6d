/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections of an HTTP server that anybody may reach: who has to go, so that whoever comes
 * next is heard?
 *
 * Pure: time comes with each call.
 *
 *     DEADLINE   it has not had an answer HTTP_DEADLINE_MS after it came: it sends or
 *                takes a byte now and then
 *     IDLE       it had one, and none again for so long
 *     CROWDED    more than HTTP_CLIENTS_TAKEN_MAX are here: of the address that has the most of
 *                them, and of those alike of any, the one that has waited longest
 *
 * Nobody is refused: a prober's one request is answered in the turn in which it is read, and
 * HTTP_CLIENTS_TAKEN_MAX others have to come before it is the oldest. No address is an exception,
 * so who comes by a proxy on this machine, or asks from it, takes as little from others as anybody.
 */
#ifndef DAEMON_HTTP_LIMITS_H
#define DAEMON_HTTP_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_CLIENTS_TAKEN_MAX = 64,
    HTTP_CLIENTS_MAX = 128, /* with those that were told to go and are not gone yet */
    HTTP_DEADLINE_MS = 10000
};

enum http_cut { HTTP_CUT_DEADLINE, HTTP_CUT_IDLE, HTTP_CUT_CROWDED, HTTP_CUTS };

/* One customer: an IPv4 address as ::ffff:a.b.c.d, the /64 of an IPv6 one, zeros for a socket in a
 * folder. */
struct http_client_address {
    uint8_t byte[16];
};

struct http_client {
    struct http_client_address address;
    uint64_t since_ms; /* it came, or was answered */
    uint64_t order;    /* of that: greater is later */
    int fd;            /* the caller's word */
    bool taken;
    bool answered; /* once at least */
    bool cut;      /* told to go */
};

struct http_limits {
    struct http_client client[HTTP_CLIENTS_MAX];
    uint64_t order;
    size_t taken; /* of those not cut */
    uint64_t cut[HTTP_CUTS];
};

/* Add a connection that came: NULL if HTTP_CLIENTS_MAX others are not gone yet. */
struct http_client *http_limits_come(struct http_limits *s,
                                     const struct http_client_address *address, uint64_t now_ms);
/* The client's request was answered. */
void http_limits_answered(struct http_limits *s, struct http_client *client, uint64_t now_ms);
/* The client has gone. */
void http_limits_gone(struct http_limits *s, struct http_client *client);
/* The next one to hang up on, which is counted; NULL = no more. It stays until http_limits_gone().
 */
struct http_client *http_limits_cut(struct http_limits *s, uint64_t now_ms);
/* Milliseconds until http_limits_cut() may have one for want of time; UINT64_MAX = nobody is here.
 */
uint64_t http_limits_wait_ms(const struct http_limits *s, uint64_t now_ms);

#endif
