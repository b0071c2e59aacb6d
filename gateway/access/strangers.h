/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that have not said yet who they are, counted by address: they cost
 * memory and a socket, and anybody can make them.
 *
 * Thread: any; one lock inside. All threads of a gateway count together.
 */
#ifndef GATEWAY_ACCESS_STRANGERS_H
#define GATEWAY_ACCESS_STRANGERS_H

#include <stdint.h>

struct strangers;

/* Where some come from. */
struct stranger;

/* `seed`: random, so that nobody chooses addresses that meet. */
struct strangers *strangers_new(uint64_t seed);
/* All must have been removed. Takes NULL. */
void strangers_free(struct strangers *s);

/* How many there are. */
uint32_t strangers_count(struct strangers *s);

/* How many come from where this "host:port" is (origin.h). */
uint32_t strangers_from(struct strangers *s, const char *address);

/* One more. It is to be given back. */
struct stranger *strangers_add(struct strangers *s, const char *address);

/* One less: it has gone, or is no stranger any more. */
void strangers_remove(struct strangers *s, struct stranger *one);

#endif
