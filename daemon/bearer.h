/* SPDX-License-Identifier: Apache-2.0
 *
 * A bearer token: what a request for a daemon's figures shows beyond loopback.
 */
#ifndef DAEMON_BEARER_H
#define DAEMON_BEARER_H

#include <stdbool.h>
#include <stddef.h>

enum { BEARER_MIN = 16, BEARER_MAX = 256 };

struct bearer {
    char text[BEARER_MAX + 1];
    size_t size; /* 0 = none */
};

/* From the first line of a file. NULL, or what is wrong with it. */
const char *bearer_read(struct bearer *b, const char *path);

/* True if this value of the header Authorization shows the token. NULL does not. */
bool bearer_is(const struct bearer *b, const char *authorization);

void bearer_wipe(struct bearer *b);

#endif
