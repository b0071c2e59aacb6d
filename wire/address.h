/* SPDX-License-Identifier: Apache-2.0
 *
 * "host:port", as people write where something listens: a name, an IPv4
 * address, or an IPv6 address in brackets. Pure: nothing is looked up.
 */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_SIZE_MAX = 128 }; /* of the text, with its NUL */

struct address {
    char host[ADDRESS_SIZE_MAX]; /* without brackets */
    uint16_t port;
};

/* "127.0.0.1:7001", "db.example:7001", "[::1]:7001". ERR_INVALID: none of these; the port is
 * 0..65535 and never left out. */
MUST_CHECK enum err address_parse(const char *text, struct address *out);

/* Write it as it would be parsed; `size` of ADDRESS_SIZE_MAX + 8 always suffices. */
void address_format(const struct address *address, char *text, size_t size);

/* True if the address is of this machine alone, by its name or number: nothing is looked up. */
bool address_is_loopback(const char *text);

/* "0.0.0.0:7001", "[::]:7001": all of this machine's, where one can listen and nobody can dial. */
bool address_is_any(const char *text);

#endif
