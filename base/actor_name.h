/* SPDX-License-Identifier: Apache-2.0
 *
 * How an actor is written: KIND/ID, with %XX for what a shell could take for
 * something else.
 *
 *     2/boss            the id "boss" of kind 2
 *     player/alice      the id "alice" of the kind with that name
 *     2/a%20b%24        "a b$"; any byte may be written as %XX
 *     9/mail/3          "mail/3": only the first slash separates
 *
 * Printed, a name is letters, digits and -_.:/@+={} alone, without ".." , so that it is one word of
 * any shell, without quotes, and no brace of it is expanded. Read, all else but '%' and NUL stands
 * for itself, too.
 *
 * Pure.
 */
#ifndef BASE_ACTOR_NAME_H
#define BASE_ACTOR_NAME_H

#include "base/bytes.h"

enum {
    ACTOR_NAME_ID_MAX = 255, /* bytes of an id */
    ACTOR_NAME_KIND_MAX = 65535,
    ACTOR_NAME_ID_SIZE = 3 * ACTOR_NAME_ID_MAX + 1, /* of an id, printed */
    ACTOR_NAME_SIZE = 10 + 1 + ACTOR_NAME_ID_SIZE,  /* of a name with a number, printed */
};

enum actor_spelling {
    ACTOR_SPELLING_NONE,   /* it is no name */
    ACTOR_SPELLING_NUMBER, /* 2/boss */
    ACTOR_SPELLING_NAME,   /* player/alice: `kind` is not known yet */
    ACTOR_SPELLING_BARE,   /* boss: an id alone, of kind 0 */
};

struct actor_name {
    struct bytes kind_name; /* of ACTOR_SPELLING_NAME; borrowed from the text */
    uint16_t kind;
    uint8_t id[ACTOR_NAME_ID_MAX];
    size_t id_size; /* at least 1 */
    bool at;        /* an '@' stood before it, as in a key of the Redis protocol */
};

/* Read "KIND/" at the beginning of `text`: a number from 0 to 65535 without leading zeros, a slash,
 * and something behind it. Return how many bytes it takes; 0: the text does not begin so. */
size_t actor_name_kind(struct bytes text, uint16_t *kind);

/* Read a name, or an id alone; an '@' before a name with a kind is passed over. `out` is good
 * unless it is none. */
enum actor_spelling actor_name_parse(struct bytes text, struct actor_name *out);

/* Read an id, or the beginning of one. Return false if it is none: a '%' without two hexadecimal
 * digits, over 255 bytes, or empty. */
bool actor_name_parse_id(struct bytes text, uint8_t id[ACTOR_NAME_ID_MAX], size_t *size);

/* Print the name, whose id is cut at 255 bytes. Return `out`. A kind over 65535, of a peer's word,
 * is printed as it is. */
const char *actor_name_print(uint32_t kind, struct bytes id, char out[ACTOR_NAME_SIZE]);

/* Print the id alone, likewise. */
const char *actor_name_print_id(struct bytes id, char out[ACTOR_NAME_ID_SIZE]);

#endif
