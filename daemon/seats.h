/* SPDX-License-Identifier: Apache-2.0
 *
 * The seats of an HTTP server that strangers may reach: who has to go, so that whoever comes next
 * is heard?
 *
 * Pure: time comes with each call.
 *
 *     DEADLINE   it has not had an answer SEAT_DEADLINE_MS after it came: it sends or
 *                takes a byte now and then
 *     IDLE       it had one, and none again for so long
 *     CROWDED    more than SEATS_TAKEN_MAX are here: of the address that has the most of
 *                them, and of those alike of any, the one that has waited longest
 *
 * Nobody is refused: a prober's one request is answered in the turn in which it is read, and
 * SEATS_TAKEN_MAX others have to come before it is the oldest. No address is an exception, so who
 * comes by a proxy on this machine, or asks from it, takes as little from others as anybody.
 */
#ifndef DAEMON_SEATS_H
#define DAEMON_SEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SEATS_TAKEN_MAX = 64,
    SEATS_MAX = 128, /* with those that were told to go and are not gone yet */
    SEAT_DEADLINE_MS = 10000
};

enum seat_cut { SEAT_CUT_DEADLINE, SEAT_CUT_IDLE, SEAT_CUT_CROWDED, SEAT_CUTS };

/* One customer: an IPv4 address as ::ffff:a.b.c.d, the /64 of an IPv6 one, zeros for a socket in a
 * folder. */
struct seat_address {
    uint8_t byte[16];
};

struct seat {
    struct seat_address address;
    uint64_t since_ms; /* it came, or was answered */
    uint64_t order;    /* of that: greater is later */
    int fd;            /* the caller's word */
    bool taken;
    bool answered; /* once at least */
    bool cut;      /* told to go */
};

struct seats {
    struct seat seat[SEATS_MAX];
    uint64_t order;
    size_t taken; /* of those not cut */
    uint64_t cut[SEAT_CUTS];
};

/* Somebody came: NULL if SEATS_MAX are not gone yet. */
struct seat *seats_come(struct seats *s, const struct seat_address *address, uint64_t now_ms);
/* It was answered. */
void seats_answered(struct seats *s, struct seat *seat, uint64_t now_ms);
/* It is gone. */
void seats_gone(struct seats *s, struct seat *seat);
/* The next one to hang up on, which is counted; NULL = no more. It stays until seats_gone(). */
struct seat *seats_cut(struct seats *s, uint64_t now_ms);
/* Milliseconds until seats_cut() may have one for want of time; UINT64_MAX = nobody is here. */
uint64_t seats_wait_ms(const struct seats *s, uint64_t now_ms);

#endif
