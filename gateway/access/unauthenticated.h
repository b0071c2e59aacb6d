/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that have not said yet who they are, counted by address: they cost
 * memory and a socket, and anybody can make them.
 *
 * Thread: any; one lock inside. All threads of a gateway count together.
 */
#ifndef GATEWAY_ACCESS_UNAUTHENTICATED_H
#define GATEWAY_ACCESS_UNAUTHENTICATED_H

#include <stdint.h>

struct unauthenticated;

/* Where some come from. */
struct unauthenticated_address;

/* `seed`: random, so that nobody chooses addresses that meet. */
struct unauthenticated *unauthenticated_new(uint64_t seed);
/* Free the book, when all connections were removed. Takes NULL. */
void unauthenticated_free(struct unauthenticated *s);

/* Return how many connections there are. */
uint32_t unauthenticated_count(struct unauthenticated *s);

/* Return how many connections come from where this "host:port" is (origin.h). */
uint32_t unauthenticated_from(struct unauthenticated *s, const char *address);

/* Add a connection. The result is to be given back. */
struct unauthenticated_address *unauthenticated_add(struct unauthenticated *s, const char *address);

/* Remove a connection: it has gone, or has said who it is. */
void unauthenticated_remove(struct unauthenticated *s, struct unauthenticated_address *one);

#endif
