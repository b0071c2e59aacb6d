/* SPDX-License-Identifier: Apache-2.0
 *
 * The bundled actors, by ringhold.h like anybody else's.
 */
#ifndef NODE_ACTORS_ACTORS_H
#define NODE_ACTORS_ACTORS_H

#include <ringhold.h>

/* A value per id, with the Redis commands for one: SET [NX|XX] GET DEL EXISTS INCR INCRBY DECR
 * DECRBY APPEND STRLEN GETSET SETNX. A payload is read as a command line without the key:
 * CALL hits "INCRBY 5". State: u8 exists, then the value. */
extern const struct rh_actor_ops actor_kv;

/* Answers a payload with itself, a command with its last argument. No state. */
extern const struct rh_actor_ops actor_echo;

#endif
