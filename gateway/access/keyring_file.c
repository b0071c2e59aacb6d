/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the file of keys from the disk.
 */
#include "base/secret_file.h"
#include "gateway/access/hmac.h"
#include "gateway/access/keyring.h"

#include <stdio.h>

static const char *load(const char *path, struct keyring *out, unsigned *line)
{
    uint8_t text[KEYRING_FILE_MAX];
    struct keyring keys;
    size_t size = 0;
    const char *wrong = secret_file_read(path, text, sizeof text, &size);

    if (wrong == NULL) {
        wrong = keyring_parse(bytes_of(text, size), &keys, line);
    }
    if (wrong == NULL) {
        *out = keys;
    }
    hmac_wipe(text, sizeof text);
    hmac_wipe(&keys, sizeof keys);
    return wrong;
}

bool keyring_load(const char *path, struct keyring *out, char why[KEYRING_WHY_SIZE])
{
    unsigned line = 0;
    const char *wrong = load(path, out, &line);

    if (wrong != NULL && line > 0) {
        (void)snprintf(why, KEYRING_WHY_SIZE, "%s:%u: %s", path, line, wrong);
    } else if (wrong != NULL) {
        (void)snprintf(why, KEYRING_WHY_SIZE, "%s: %s", path, wrong);
    }
    return wrong == NULL;
}
