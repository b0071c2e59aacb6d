/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client wrote in one payload, as words: `join bob "the brave"` is three.
 * As redis-cli does it: "..." knows \n \r \t \b \a \\ \" and \xHH, '...' knows
 * \' only. Pure.
 */
#ifndef LUA_WORDS_H
#define LUA_WORDS_H

#include "base/bytes.h"
#include "base/err.h"

enum { WORDS_MAX = 64 };

/* All zero is a valid empty one. */
struct words {
    size_t count;
    struct bytes word[WORDS_MAX]; /* borrowed from `text` */
    struct buffer text;           /* owned */
};

/* Overwrites `out`. ERR_INVALID: a quote does not end, or something follows it at once;
 * ERR_TOO_BIG: over WORDS_MAX words. */
MUST_CHECK enum err words_split(struct bytes payload, struct words *out);

void words_fini(struct words *w);

#endif
