/* SPDX-License-Identifier: Apache-2.0
 *
 * HMAC-SHA256 (RFC 2104, FIPS 180-4), by libcrypto. Pure: the same bytes give
 * the same mac.
 */
#ifndef GATEWAY_ACCESS_HMAC_H
#define GATEWAY_ACCESS_HMAC_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { HMAC_SIZE = 32 };

/* The mac of `text` under `secret`. */
void hmac_of(struct bytes secret, struct bytes text, uint8_t mac[HMAC_SIZE]);

/* Takes as long whatever differs: how long tells nothing of the mac. */
bool hmac_equal(const uint8_t a[HMAC_SIZE], const uint8_t b[HMAC_SIZE]);

/* Zero it, although nobody reads it any more. */
void hmac_wipe(void *secret, size_t size);

#endif
