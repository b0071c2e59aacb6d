/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of addresses, as people write them: "10.0.0.0/8,192.0.2.7,2001:db8::/32". Pure.
 */
#ifndef GATEWAY_ACCESS_RANGES_H
#define GATEWAY_ACCESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANGES_MAX = 32 };

struct ranges {
    struct range {
        uint8_t address[16]; /* IPv6, or IPv4 as ::ffff:a.b.c.d */
        unsigned bits;       /* of it that count, 0..128 */
    } range[RANGES_MAX];
    size_t count;
};

/* False: one is no address or network, has bits behind its size, or there are too many. "" is none.
 */
bool ranges_parse(const char *text, struct ranges *out);

/* True if this address, IPv6 or IPv4 as ::ffff:a.b.c.d, is in one of the ranges. */
bool ranges_have(const struct ranges *r, const uint8_t address[16]);

#endif
