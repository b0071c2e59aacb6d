/* SPDX-License-Identifier: Apache-2.0
 *
 * The actor that somebody names at the web page.
 */
#ifndef COORDINATOR_ACTOR_OF_H
#define COORDINATOR_ACTOR_OF_H

#include "base/actor_name.h"
#include "wire/control.pb-c.h"

#include <string.h>

/* Read KIND/ID, its kind a number, or an id alone, which is of kind 0. The actor borrows `room`.
 * False: it is neither. */
static inline bool actor_of(const char *text, Rh__Actor *actor, struct actor_name *room)
{
    const enum actor_spelling spelling = actor_name_parse(bytes_of(text, strlen(text)), room);

    *actor = (Rh__Actor)RH__ACTOR__INIT;
    actor->kind = spelling == ACTOR_SPELLING_NUMBER ? room->kind : 0;
    actor->id = (ProtobufCBinaryData){room->id_size, room->id};
    return spelling == ACTOR_SPELLING_NUMBER || spelling == ACTOR_SPELLING_BARE;
}

#endif
