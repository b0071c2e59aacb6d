/* SPDX-License-Identifier: Apache-2.0
 *
 * The secrets that tokens are signed with: a few, so that one can be replaced
 * while tokens of the other are still out. A file of lines
 *
 *     NAME hex:DIGITS      NAME base64:LETTERS      # and what follows is passed over
 *
 * The first signs; all are good to check with. docs/protocol-client.md tells how
 * they are rotated.
 */
#ifndef GATEWAY_ACCESS_KEYRING_H
#define GATEWAY_ACCESS_KEYRING_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KEYRING_MAX = 4,
    KEYRING_NAME_MAX = 32,        /* letters, digits, - and _ */
    KEYRING_SECRET_MIN = 32,      /* bytes: as many as HMAC-SHA256 is worth */
    KEYRING_SECRET_MAX = 64,      /* more are hashed to 32 first */
    KEYRING_FILE_MAX = 16 * 1024, /* bytes */
    KEYRING_WHY_SIZE = 512,
};

struct keyring {
    struct keyring_key {
        char name[KEYRING_NAME_MAX + 1];
        uint8_t secret[KEYRING_SECRET_MAX];
        size_t size;
    } key[KEYRING_MAX];
    size_t count;
};

/* True if the name consists of letters, digits, - and _, 1..KEYRING_NAME_MAX of them. */
bool keyring_name_is_valid(struct bytes name);

/* NULL = it is good, at least one key. Else what is wrong, in line `*line` (from 1; 0 = in none),
 * and nothing of `out` means anything. Says nothing of what a line holds: it may be a secret. */
const char *keyring_parse(struct bytes text, struct keyring *out, unsigned *line);

/* NULL: there is none of this name. */
const struct keyring_key *keyring_find(const struct keyring *keys, struct bytes name);

/* From a file that is regular, ours or root's, and that others can neither read nor write, nor the
 * group write. False: `why` gets a line for people that names the file, and the line in it; `out`
 * is as it was. (keyring_file.c) */
bool keyring_load(const char *path, struct keyring *out, char why[KEYRING_WHY_SIZE]);

#endif
