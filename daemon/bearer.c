/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the bearer token's file, and compares tokens in constant time.
 */
#include "daemon/bearer.h"

#include "base/secret_file.h"

#include <openssl/crypto.h>
#include <stdint.h>
#include <string.h>

const char *bearer_read(struct bearer *b, const char *path)
{
    size_t size = 0;
    const char *wrong = secret_file_read(path, (uint8_t *)b->text, BEARER_MAX, &size);

    if (wrong != NULL) {
        return wrong;
    }
    b->size = strcspn(b->text, "\r\n");
    b->size = b->size < size ? b->size : size;
    return b->size < BEARER_MIN ? "the token in its first line is shorter than 16 bytes" : NULL;
}

bool bearer_is(const struct bearer *b, const char *authorization)
{
    static const char scheme[] = "Bearer ";

    if (b->size == 0 || authorization == NULL ||
        strncmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    const char *given = authorization + sizeof scheme - 1;
    return strlen(given) == b->size && CRYPTO_memcmp(given, b->text, b->size) == 0;
}

void bearer_wipe(struct bearer *b)
{
    OPENSSL_cleanse(b, sizeof *b);
}
