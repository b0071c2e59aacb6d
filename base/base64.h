/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648), strict: one text for each run of bytes. What is left of
 * the last letter's bits must be 0.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/bytes.h"
#include "base/err.h"

/* Letters that `size` bytes take, without padding. */
#define BASE64_SIZE(size) (((size)*4 + 2) / 3)

enum base64_letters {
    BASE64_PLAIN, /* + and /, padded with = or not */
    BASE64_URL,   /* - and _, never padded */
};

/* Append the letters of `in`, BASE64_URL. */
void base64_put(struct buffer *out, struct bytes in);

/* The bytes of `text`; `*size` gets how many. ERR_CORRUPT: it is none, and nothing of `out` means
 * anything; ERR_TOO_BIG: more than `max`. */
MUST_CHECK enum err base64_get(struct bytes text, enum base64_letters letters, uint8_t *out,
                               size_t max, size_t *size);

#endif
