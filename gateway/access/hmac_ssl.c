/* SPDX-License-Identifier: Apache-2.0
 *
 * HMAC-SHA-256 and constant-time comparison, by OpenSSL.
 */
#include "gateway/access/hmac.h"

#include "base/assert.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

void hmac_of(struct bytes secret, struct bytes text, uint8_t mac[HMAC_SIZE])
{
    unsigned size = 0;
    const uint8_t *done =
        HMAC(EVP_sha256(), secret.data, (int)secret.size, text.data, text.size, mac, &size);

    // Fails for want of memory only, which ends a process here as everywhere.
    ASSERT(done != NULL && size == HMAC_SIZE);
}

bool hmac_equal(const uint8_t a[HMAC_SIZE], const uint8_t b[HMAC_SIZE])
{
    return CRYPTO_memcmp(a, b, HMAC_SIZE) == 0;
}

void hmac_wipe(void *secret, size_t size)
{
    OPENSSL_cleanse(secret, size);
}
