/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and prints KIND/ID, the name of an actor on a command line.
 */
#include "cli/actor_word.h"

#include "base/escape.h"

#include <stdlib.h>

bool actor_parse_id(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX])
{
    size_t size = 0;

    for (const char *at = text; *at != '\0'; at++) {
        const int high = *at == '%' ? hex_of((uint8_t)at[1]) : -1;
        const int low = high < 0 ? -1 : hex_of((uint8_t)at[2]);

        if (size == ACTOR_ID_MAX || (*at == '%' && low < 0)) {
            return false;
        }
        id[size++] = *at == '%' ? (uint8_t)(high * 16 + low) : (uint8_t)*at;
        at += *at == '%' ? 2 : 0;
    }
    actor->id = (ProtobufCBinaryData){.len = size, .data = id};
    return size > 0;
}

bool actor_parse(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX])
{
    char *end = NULL;
    const unsigned long kind = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '/' || kind > ACTOR_KIND_MAX) {
        return false;
    }
    actor->kind = (uint32_t)kind;
    return actor_parse_id(end + 1, actor, id);
}

bool actor_parse_short(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX])
{
    actor->kind = 0;
    return actor_parse(text, actor, id) || actor_parse_id(text, actor, id);
}
