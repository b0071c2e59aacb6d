/* SPDX-License-Identifier: Apache-2.0
 *
 * A token: what a game's login server gives a player, and the player's client
 * shows a gateway. Signed, so that a gateway asks nobody.
 *
 *     rh1.KEY.PAYLOAD.MAC
 *
 * docs/protocol-client.md has every byte; tests/gateway/token_test.c fixes them.
 * Pure: the time of day comes in.
 */
#ifndef GATEWAY_ACCESS_TOKEN_H
#define GATEWAY_ACCESS_TOKEN_H

#include "base/base64.h"
#include "base/bytes.h"
#include "base/err.h"
#include "gateway/access/hmac.h"
#include "gateway/access/keyring.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TOKEN_ID_MAX = 255,
    TOKEN_CLUSTER_MAX = 63,
    TOKEN_PAYLOAD_HEADER = 11, /* before cluster and id */
    TOKEN_PAYLOAD_MAX = TOKEN_PAYLOAD_HEADER + TOKEN_CLUSTER_MAX + TOKEN_ID_MAX,
    TOKEN_TEXT_MAX =
        4 + KEYRING_NAME_MAX + 1 + BASE64_SIZE(TOKEN_PAYLOAD_MAX) + 1 + BASE64_SIZE(HMAC_SIZE),
};

/* Contents of a token, before anything is checked. */
struct token {
    uint64_t expires_s; /* seconds since 1970: good before, not from then on */
    uint16_t kind;
    uint8_t id_size; /* 1..TOKEN_ID_MAX */
    uint8_t id[TOKEN_ID_MAX];
    char cluster[TOKEN_CLUSTER_MAX + 1]; /* whose gateways it is for */
    char key[KEYRING_NAME_MAX + 1];      /* that signed it */
};

/* In the order they are found: a later one knows that the earlier ones are right. */
enum token_verdict {
    TOKEN_GOOD,
    TOKEN_MALFORMED,   /* no token, or its payload makes no sense */
    TOKEN_UNKNOWN_KEY, /* signed by a key that is not in the keyring */
    TOKEN_FORGED,      /* not signed by the key that it names */
    TOKEN_FOREIGN,     /* for another cluster */
    TOKEN_EXPIRED,
};

/* Append its text. ERR_INVALID: there is no such id, cluster or key name. */
MUST_CHECK enum err token_put(struct buffer *out, const struct token *token,
                              const struct keyring_key *key);

/* Verify a token. Its payload is read only if the signature is right. `out` is complete for GOOD,
 * FOREIGN or EXPIRED. */
enum token_verdict token_check(const struct keyring *keys, struct bytes text, const char *cluster,
                               uint64_t unix_s, struct token *out);

/* "it has expired", for people. */
const char *token_verdict_text(enum token_verdict verdict);

static inline struct bytes token_id(const struct token *token)
{
    return bytes_of(token->id, token->id_size);
}

#endif
