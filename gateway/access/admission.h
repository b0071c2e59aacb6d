/* SPDX-License-Identifier: Apache-2.0
 *
 * Admission: may one more player come in, and if not, when should it try again?
 *
 * Pure but for its lock. Time comes with each call, chance from the seed.
 *
 *     per address   connections at a time, and how fast they come
 *     in all        how fast they are let in
 *
 * Who is turned away is given an appointment: admission keeps the time of the last
 * one that it gave, and gives the next one as much later as the rate lets in one.
 * So a storm of N comes back over N / rate seconds, and its hints grow with what
 * is turned away already. Each is put off by up to a quarter more, by chance: those
 * that came together don't come back together, and room stays for who is new.
 * While appointments are outstanding the gateway is shedding.
 *
 * Where there is no rate, as when the gateway is full, appointments are given as
 * fast as connections have been leaving.
 *
 * Memory: ADMISSION_ADDRESS_SIZE_MAX bytes for each address, of which there are at most
 * `addresses_max`, or as many as connections if those are more. An address
 * is forgotten when nobody is here from it and its rate has recovered, or, if there
 * are too many, when it is the one that came least recently of those that nobody
 * is here from.
 *
 * Thread: any; one lock inside. All threads of a gateway share one admission.
 */
#ifndef GATEWAY_ACCESS_ADMISSION_H
#define GATEWAY_ACCESS_ADMISSION_H

#include "gateway/access/bucket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADMISSION_ADDRESS_SIZE_MAX = 128 };

struct admission_config {
    struct bucket_rate accept;  /* in all */
    struct bucket_rate address; /* from one address */
    uint32_t address_count_max; /* connections from one address at a time; 0 = any */
    uint32_t addresses_max;     /* that are remembered; 0 = 65536 */
    uint64_t seed;              /* of the jitter */
};

enum admission_verdict {
    ADMISSION_OPEN,          /* it is in: admission_leave() */
    ADMISSION_ACCEPT_RATE,   /* too many come */
    ADMISSION_ADDRESS_RATE,  /* … from its address */
    ADMISSION_ADDRESS_COUNT, /* too many are here from its address */
};

struct admission_control;
/* An address that somebody came from. */
struct client_address;

struct admission_control *admission_new(const struct admission_config *config);
/* From now on its rates and address_count_max hold. */
void admission_configure(struct admission_control *d, const struct admission_config *config);
/* Free the admission, when all have left. Takes NULL. */
void admission_free(struct admission_control *d);

/* Judge a client that comes from this "host:port". If it is let in, `client_address` is to be given
 * back with admission_leave(); if not, `retry_ms` says when it should try again. IPv6: of an
 * address its /64. */
enum admission_verdict admission_enter(struct admission_control *d, const char *address,
                                       uint64_t now_us, struct client_address **client_address,
                                       uint32_t *retry_ms);
/* A connection that was admitted has gone. `client_address` may be NULL. */
void admission_leave(struct admission_control *d, struct client_address *client_address,
                     uint64_t now_us);

/* Return how many milliseconds a refused client should wait before it retries. */
uint32_t admission_turn_away(struct admission_control *d, uint64_t now_us);
/* Return a wait of about so long that is not the same for all: from `ms` to a quarter more. */
uint32_t admission_jitter(struct admission_control *d, uint32_t ms);

struct admission_state {
    bool shedding;       /* somebody has an appointment, or was turned away within a second */
    uint64_t backlog_ms; /* until the last appointment */
    uint64_t addresses;  /* remembered */
};
struct admission_state admission_state(struct admission_control *d, uint64_t now_us);

#endif
