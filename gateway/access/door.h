/* SPDX-License-Identifier: Apache-2.0
 *
 * The door: may one more player come in, and if not, when should it try again?
 *
 * Pure but for its lock. Time comes with each call, chance from the seed.
 *
 *     per address   connections at a time, and how fast they come
 *     in all        how fast they are let in
 *
 * Who is turned away is given an appointment: the door keeps the time of the last
 * one that it gave, and gives the next one as much later as the rate lets in one.
 * So a storm of N comes back over N / rate seconds, and its hints grow with what
 * is turned away already. Each is put off by up to a quarter more, by chance: those
 * that came together don't come back together, and room stays for who is new.
 * While appointments are outstanding the gateway is shedding.
 *
 * Where there is no rate, as when the gateway is full, appointments are given as
 * fast as connections have been leaving.
 *
 * Memory: VISITOR_SIZE_MAX bytes for each address, of which there are at most
 * `addresses_max`, or as many as connections if those are more. An address
 * is forgotten when nobody is here from it and its rate has recovered, or, if there
 * are too many, when it is the one that came least recently of those that nobody
 * is here from.
 *
 * Thread: any; one lock inside. All threads of a gateway have one door.
 */
#ifndef GATEWAY_ACCESS_DOOR_H
#define GATEWAY_ACCESS_DOOR_H

#include "gateway/access/bucket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VISITOR_SIZE_MAX = 128 };

struct door_config {
    struct bucket_rate accept;  /* in all */
    struct bucket_rate address; /* from one address */
    uint32_t address_count_max; /* connections from one address at a time; 0 = any */
    uint32_t addresses_max;     /* that are remembered; 0 = 65536 */
    uint64_t seed;              /* of the jitter */
};

enum door_verdict {
    DOOR_OPEN,          /* it is in: door_leave() */
    DOOR_ACCEPT_RATE,   /* too many come */
    DOOR_ADDRESS_RATE,  /* … from its address */
    DOOR_ADDRESS_COUNT, /* too many are here from its address */
};

struct door;
/* An address that somebody came from. */
struct visitor;

struct door *door_new(const struct door_config *config);
/* From now on its rates and address_count_max hold. */
void door_configure(struct door *d, const struct door_config *config);
/* All must have left. Takes NULL. */
void door_free(struct door *d);

/* Somebody comes from this "host:port". If it is let in `visitor` is to be given back with
 * door_leave(); if not, `retry_ms` is when it should try again. IPv6: of an address its /64. */
enum door_verdict door_enter(struct door *d, const char *address, uint64_t now_us,
                             struct visitor **visitor, uint32_t *retry_ms);
/* It has gone. `visitor` may be NULL. */
void door_leave(struct door *d, struct visitor *visitor, uint64_t now_us);

/* There is no room for one who comes: when should it try again? */
uint32_t door_turn_away(struct door *d, uint64_t now_us);
/* A wait of about so long, but not the same for all: from `ms` to a quarter more. */
uint32_t door_jitter(struct door *d, uint32_t ms);

struct door_state {
    bool shedding;       /* somebody has an appointment, or was turned away within a second */
    uint64_t backlog_ms; /* until the last appointment */
    uint64_t addresses;  /* remembered */
};
struct door_state door_state(struct door *d, uint64_t now_us);

#endif
