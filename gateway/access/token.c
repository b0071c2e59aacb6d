/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes tokens and checks them: form, key, signature, expiry.
 */
#include "gateway/access/token.h"

#include "base/big.h"

#include <string.h>

static const char prefix[] = "rh1.";
enum { PREFIX_SIZE = sizeof prefix - 1 };

/* ---- making ---- */

static enum err put_payload(struct buffer *out, const struct token *t)
{
    const size_t cluster_size = strnlen(t->cluster, sizeof t->cluster);

    if (t->id_size == 0 || cluster_size == 0 || cluster_size > TOKEN_CLUSTER_MAX) {
        return ERR_INVALID;
    }
    uint8_t payload[TOKEN_PAYLOAD_MAX];
    uint8_t *at = big_put64(payload, t->expires_s);

    at = big_put16(at, t->kind);
    at = big_put8(at, (uint8_t)cluster_size);
    memcpy(at, t->cluster, cluster_size);
    at += cluster_size;
    memcpy(at, t->id, t->id_size);
    at += t->id_size;
    base64_put(out, bytes_of(payload, (size_t)(at - payload)));
    return ERR_OK;
}

enum err token_put(struct buffer *out, const struct token *token, const struct keyring_key *key)
{
    const struct bytes name = bytes_of(key->name, strlen(key->name));
    const size_t begin = out->size;
    uint8_t mac[HMAC_SIZE];

    if (!keyring_name_is_valid(name)) {
        return ERR_INVALID;
    }
    buffer_put(out, prefix, PREFIX_SIZE);
    buffer_put(out, name.data, name.size);
    buffer_put(out, ".", 1);
    if (put_payload(out, token) != ERR_OK) {
        out->size = begin;
        return ERR_INVALID;
    }
    hmac_of(bytes_of(key->secret, key->size), bytes_of(out->data + begin, out->size - begin), mac);
    buffer_put(out, ".", 1);
    base64_put(out, bytes_of(mac, sizeof mac));
    return ERR_OK;
}

/* ---- checking ---- */

struct parts {
    struct bytes key;
    struct bytes payload;
    struct bytes mac;
    struct bytes signed_text; /* all before the last dot */
};

/* What stands before the next dot; `rest` goes on behind it. */
static bool cut(struct bytes *rest, struct bytes *part)
{
    const uint8_t *dot = rest->size == 0 ? NULL : memchr(rest->data, '.', rest->size);

    if (dot == NULL) {
        return false;
    }
    *part = bytes_of(rest->data, (size_t)(dot - rest->data));
    *rest = bytes_of(dot + 1, rest->size - part->size - 1);
    return true;
}

static bool split(struct bytes text, struct parts *out)
{
    if (text.size < PREFIX_SIZE || text.size > TOKEN_TEXT_MAX ||
        memcmp(text.data, prefix, PREFIX_SIZE) != 0) {
        return false;
    }
    struct bytes rest = bytes_of(text.data + PREFIX_SIZE, text.size - PREFIX_SIZE);

    if (!cut(&rest, &out->key) || !cut(&rest, &out->payload) || !keyring_name_is_valid(out->key)) {
        return false;
    }
    out->mac = rest;
    out->signed_text = bytes_of(text.data, text.size - rest.size - 1);
    return true;
}

static bool get_payload(struct bytes text, struct token *out)
{
    uint8_t payload[TOKEN_PAYLOAD_MAX];
    size_t size = 0;

    if (base64_get(text, BASE64_URL, payload, sizeof payload, &size) != ERR_OK ||
        size < TOKEN_PAYLOAD_HEADER) {
        return false;
    }
    const size_t cluster_size = payload[TOKEN_PAYLOAD_HEADER - 1];
    const uint8_t *cluster = payload + TOKEN_PAYLOAD_HEADER;
    const size_t left = size - TOKEN_PAYLOAD_HEADER;

    if (cluster_size == 0 || cluster_size > TOKEN_CLUSTER_MAX || left <= cluster_size ||
        left - cluster_size > TOKEN_ID_MAX || memchr(cluster, '\0', cluster_size) != NULL) {
        return false;
    }
    out->expires_s = big_get64(payload);
    out->kind = (uint16_t)big_get16(payload + 8);
    memcpy(out->cluster, cluster, cluster_size);
    out->id_size = (uint8_t)(left - cluster_size);
    memcpy(out->id, cluster + cluster_size, out->id_size);
    return true;
}

enum token_verdict token_check(const struct keyring *keys, struct bytes text, const char *cluster,
                               uint64_t unix_s, struct token *out)
{
    struct parts parts;
    uint8_t said[HMAC_SIZE];
    uint8_t right[HMAC_SIZE];
    size_t size = 0;

    *out = (struct token){0};
    if (!split(text, &parts) ||
        base64_get(parts.mac, BASE64_URL, said, sizeof said, &size) != ERR_OK ||
        size != sizeof said) {
        return TOKEN_MALFORMED;
    }
    const struct keyring_key *key = keyring_find(keys, parts.key);
    if (key == NULL) {
        return TOKEN_UNKNOWN_KEY;
    }
    hmac_of(bytes_of(key->secret, key->size), parts.signed_text, right);
    if (!hmac_equal(said, right)) {
        return TOKEN_FORGED;
    }
    if (!get_payload(parts.payload, out)) {
        return TOKEN_MALFORMED;
    }
    memcpy(out->key, key->name, sizeof out->key);
    if (strcmp(out->cluster, cluster) != 0) {
        return TOKEN_FOREIGN;
    }
    return unix_s < out->expires_s ? TOKEN_GOOD : TOKEN_EXPIRED;
}

const char *token_verdict_text(enum token_verdict verdict)
{
    static const char *const texts[] = {
        [TOKEN_GOOD] = "the token is good",
        [TOKEN_MALFORMED] = "the token has a wrong form",
        [TOKEN_UNKNOWN_KEY] = "the token is signed with a key that is not known here",
        [TOKEN_FORGED] = "the token's signature does not match the key that it names",
        [TOKEN_FOREIGN] = "the token is for another cluster",
        [TOKEN_EXPIRED] = "the token has expired",
    };

    return texts[verdict];
}
