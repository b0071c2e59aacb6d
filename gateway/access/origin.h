/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a connection comes from, as it is counted everywhere: an IPv4 address, or
 * the network of 64 bits of an IPv6 one, of which one customer has all.
 */
#ifndef GATEWAY_ACCESS_ORIGIN_H
#define GATEWAY_ACCESS_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

enum { ORIGIN_SIZE = 16 };

struct origin {
    uint8_t key[ORIGIN_SIZE]; /* a tag keeps the kinds apart */
};

/* Return the origin of "host:port" or "[host]:port", whatever the port. IPv4 in IPv6 is IPv4; what
 * is neither counts by its text. */
struct origin origin_of(const char *address);

bool origin_is(const struct origin *o, const struct origin *other);

/* Hash an origin by the seed, so that whoever chooses addresses can't choose colliding ones. Never
 * 0. */
uint64_t origin_hash(const struct origin *o, uint64_t seed);

#endif
