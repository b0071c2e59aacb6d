/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the file of keys, line by line, and finds a key by its name.
 */
#include "gateway/access/keyring.h"

#include "base/base64.h"
#include "base/escape.h"

#include <string.h>

static bool is_name_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

bool keyring_name_is_valid(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (!is_name_letter(name.data[i])) {
            return false;
        }
    }
    return name.size >= 1 && name.size <= KEYRING_NAME_MAX;
}

const struct keyring_key *keyring_find(const struct keyring *keys, struct bytes name)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct keyring_key *key = &keys->key[i];

        if (bytes_equal(bytes_of(key->name, strlen(key->name)), name)) {
            return key;
        }
    }
    return NULL;
}

/* ---- the file ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line, which goes on behind it; empty at its end. */
static struct bytes next_word(struct bytes *line)
{
    size_t begin = 0;

    while (begin < line->size && is_blank(line->data[begin])) {
        begin++;
    }
    size_t end = begin;
    while (end < line->size && !is_blank(line->data[end])) {
        end++;
    }
    const struct bytes word = bytes_of(line->data + begin, end - begin);
    *line = bytes_of(line->data + end, line->size - end);
    return word;
}

/* Is `word` written so? What follows is its rest. */
static bool drop_prefix(struct bytes *word, const char *prefix)
{
    const size_t size = strlen(prefix);

    if (word->size < size || memcmp(word->data, prefix, size) != 0) {
        return false;
    }
    *word = bytes_of(word->data + size, word->size - size);
    return true;
}

static enum err get_hex(struct bytes text, struct keyring_key *key)
{
    key->size = text.size / 2;
    if (text.size % 2 != 0) {
        return ERR_CORRUPT;
    }
    if (key->size > sizeof key->secret) {
        return ERR_TOO_BIG;
    }
    for (size_t i = 0; i < key->size; i++) {
        const int high = hex_of(text.data[2 * i]);
        const int low = hex_of(text.data[2 * i + 1]);

        if (high < 0 || low < 0) {
            return ERR_CORRUPT;
        }
        key->secret[i] = (uint8_t)(high << 4 | low);
    }
    return ERR_OK;
}

/* NULL, or what is wrong with it. */
static const char *get_secret(struct bytes word, struct keyring_key *key)
{
    enum err bad = ERR_OK;

    if (drop_prefix(&word, "hex:")) {
        bad = get_hex(word, key);
    } else if (drop_prefix(&word, "base64:")) {
        bad = base64_get(word, BASE64_PLAIN, key->secret, sizeof key->secret, &key->size);
    } else {
        return "after the key's name there is neither hex: nor base64:";
    }
    if (bad == ERR_TOO_BIG) {
        return "a secret has at most 64 bytes";
    }
    if (bad != ERR_OK) {
        return "the secret is not valid hex or base64";
    }
    return key->size < KEYRING_SECRET_MIN ? "a secret has at least 32 bytes" : NULL;
}

/* A line that is not empty. NULL, or what is wrong with it. */
static const char *get_key(struct bytes line, struct bytes name, struct keyring *out)
{
    if (out->count == KEYRING_MAX) {
        return "there are more than 4 keys";
    }
    if (!keyring_name_is_valid(name)) {
        return "a key's name is 1 to 32 letters, digits, - or _";
    }
    if (keyring_find(out, name) != NULL) {
        return "a key of this name is already given above";
    }
    struct keyring_key *key = &out->key[out->count];
    const char *wrong = get_secret(next_word(&line), key);

    if (wrong == NULL && next_word(&line).size > 0) {
        wrong = "unexpected text after the secret";
    }
    if (wrong == NULL) {
        memcpy(key->name, name.data, name.size);
        key->name[name.size] = '\0';
        out->count++;
    }
    return wrong;
}

static struct bytes next_line(struct bytes *text)
{
    const uint8_t *end = memchr(text->data, '\n', text->size);
    const size_t size = end == NULL ? text->size : (size_t)(end - text->data);
    const size_t used = end == NULL ? size : size + 1;
    const struct bytes line = bytes_of(text->data, size);

    *text = bytes_of(text->data + used, text->size - used);
    return line;
}

const char *keyring_parse(struct bytes text, struct keyring *out, unsigned *line)
{
    *out = (struct keyring){0};
    *line = 0;
    for (unsigned number = 1; text.size > 0; number++) {
        struct bytes rest = next_line(&text);
        const struct bytes name = next_word(&rest);

        if (name.size == 0 || name.data[0] == '#') {
            continue;
        }
        const char *wrong = get_key(rest, name, out);
        if (wrong != NULL) {
            *line = number;
            return wrong;
        }
    }
    return out->count > 0 ? NULL : "the file contains no key";
}
