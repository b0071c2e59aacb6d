/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor's name as it is typed and shown: KIND/ID, with %XX for what is no
 * plain character.
 */
#ifndef CLI_ACTOR_WORD_H
#define CLI_ACTOR_WORD_H

#include "wire/control.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

enum { ACTOR_ID_MAX = 255, ACTOR_KIND_MAX = 65535 };

/* "3/boss-7". `actor` borrows `id`. False: it is none. */
bool actor_parse(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX]);
/* Like actor_parse(), but also takes a bare ID, which gets kind 0. */
bool actor_parse_short(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX]);
/* A bare ID, into `actor->id` alone. */
bool actor_parse_id(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX]);

#endif
