/* SPDX-License-Identifier: Apache-2.0
 *
 * The PROXY protocol, versions 1 and 2: whose connection it is that a proxy hands on,
 * in a header before all else.
 *
 *     1  "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n", at most 107 bytes
 *     2  12 bytes of signature, u8 version and command, u8 family, u16 size; addresses, TLVs
 *
 * Pure. Whoever isn't sure of the other side must not read it: it could be anybody's word.
 */
#ifndef GATEWAY_ACCESS_PROXY_H
#define GATEWAY_ACCESS_PROXY_H

#include "base/bytes.h"

enum {
    PROXY_LINE_MAX = 107,  /* of version 1, its CR LF among them */
    PROXY_SIZE_MAX = 2048, /* of version 2, with its TLVs */
    PROXY_ADDRESS_SIZE = 16,
};

enum proxy_result {
    PROXY_MORE, /* not whole yet */
    PROXY_NAMED,
    PROXY_UNNAMED, /* LOCAL, UNKNOWN, or none of TCP: the proxy's own address counts */
    PROXY_BAD,     /* no header, or one that makes no sense */
};

struct proxy_header {
    size_t size;                         /* what follows is the client's */
    uint8_t address[PROXY_ADDRESS_SIZE]; /* IPv6, or IPv4 as ::ffff:a.b.c.d; of NAMED */
    uint16_t port;
};

/* The header at the front of `in`. `out` is set if it is NAMED or UNNAMED. PROXY_MORE never comes
 * for PROXY_SIZE_MAX bytes. */
enum proxy_result proxy_parse(struct bytes in, struct proxy_header *out);

#endif
