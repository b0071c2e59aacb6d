/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a token, as what a good key signed, and as a file of keys. A token
 * that is good is spelled in one way: it is made again from what it says.
 */
#include "base/assert.h"
#include "gateway/access/token.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct keyring seed_keys(void)
{
    struct keyring keys = {.count = 1, .key[0] = {.name = "k1", .size = KEYRING_SECRET_MIN}};

    for (size_t i = 0; i < KEYRING_SECRET_MIN; i++) {
        keys.key[0].secret[i] = (uint8_t)i; // as in the manual, so that its tokens are seeds
    }
    return keys;
}

static void check_one(const struct keyring *keys, struct bytes text)
{
    struct token token;
    struct buffer again = {0};
    const enum token_verdict verdict = token_check(keys, text, "ringhold", 1, &token);

    ASSERT(token_verdict_text(verdict) != NULL);
    if (verdict == TOKEN_GOOD || verdict == TOKEN_FOREIGN || verdict == TOKEN_EXPIRED) {
        ASSERT(token_put(&again, &token, &keys->key[0]) == ERR_OK);
        ASSERT(bytes_equal(buffer_bytes(&again), text));
    }
    buffer_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct keyring keys = seed_keys();
    struct keyring other;
    struct buffer text = {0};
    uint8_t mac[HMAC_SIZE];
    unsigned line = 0;

    check_one(&keys, bytes_of(data, size));
    // The parser behind the signature, which any bytes alone would not come to.
    buffer_put(&text, "rh1.k1.", 7);
    base64_put(&text, bytes_of(data, size));
    hmac_of(bytes_of(keys.key[0].secret, keys.key[0].size), buffer_bytes(&text), mac);
    buffer_put(&text, ".", 1);
    base64_put(&text, bytes_of(mac, sizeof mac));
    check_one(&keys, buffer_bytes(&text));
    buffer_fini(&text);
    ASSERT((keyring_parse(bytes_of(data, size), &other, &line) == NULL) ==
           (line == 0 && other.count > 0));
    return 0;
}
