/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes Sec-WebSocket-Accept, with OpenSSL's SHA-1.
 */
#include "gateway/protocol/upgrade.h"

#include "base/assert.h"

#include <openssl/evp.h>
#include <string.h>

enum { SHA1_SIZE = 20 };

/* SHA-1 is what RFC 6455 says; nothing is kept secret by it. */
void upgrade_accept(struct bytes key, char accept[UPGRADE_ACCEPT_SIZE + 1])
{
    static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t text[UPGRADE_KEY_SIZE + sizeof magic - 1];
    uint8_t digest[SHA1_SIZE];
    uint8_t letters[UPGRADE_ACCEPT_SIZE + 1];

    ASSERT(key.size == UPGRADE_KEY_SIZE);
    memcpy(text, key.data, UPGRADE_KEY_SIZE);
    memcpy(text + UPGRADE_KEY_SIZE, magic, sizeof magic - 1);
    const int made = EVP_Digest(text, sizeof text, digest, NULL, EVP_sha1(), NULL);
    ASSERT(made == 1);
    const int size = EVP_EncodeBlock(letters, digest, SHA1_SIZE);
    ASSERT(size == UPGRADE_ACCEPT_SIZE);
    memcpy(accept, letters, sizeof letters);
}
