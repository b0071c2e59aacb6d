/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shell of a node may know of an actor: its name, and the instance that
 * the shell keeps with it. The actor's record is actor.h.
 */
#ifndef NODE_BOOKS_INSTANCE_H
#define NODE_BOOKS_INSTANCE_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct actor;

struct bytes actor_id(const struct actor *a);
uint16_t actor_kind(const struct actor *a);
/* The shell's own: the host keeps the pointer and never looks at it. */
void *actor_instance(const struct actor *a);
/* The actor's arc is held, and it does nothing until the outcome; its instance may not know. */
bool actor_is_frozen(const struct actor *a);
void actor_set_instance(struct actor *a, void *instance);

#endif
