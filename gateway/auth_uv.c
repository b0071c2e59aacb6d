/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a gateway's keys and gives its clients the time of day, by which tokens
 * expire.
 */
#include "gateway/auth_uv.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/access/hmac.h"

static bool read_keys(struct auth *a, size_t *count, char why[KEYRING_WHY_SIZE])
{
    struct keyring keys;

    if (!keyring_load(a->path, &keys, why)) {
        return false;
    }
    clients_set_keys(a->clients, &keys);
    *count = keys.count;
    hmac_wipe(&keys, sizeof keys);
    return true;
}

void auth_tick(struct auth *a)
{
    clients_set_unix(a->clients, clock_wall_us() / 1000000);
}

bool auth_open(struct auth *a, const char *path, struct clients *clients,
               char why[KEYRING_WHY_SIZE])
{
    size_t count = 0;

    a->path = path;
    a->clients = clients;
    auth_tick(a);
    if (path == NULL) {
        return true;
    }
    return read_keys(a, &count, why);
}

void auth_reload(struct auth *a)
{
    char why[KEYRING_WHY_SIZE];
    size_t count = 0;

    if (a->path == NULL) {
        return;
    }
    if (read_keys(a, &count, why)) {
        log_info("gateway", "auth_keys", "file=%s keys=%zu", a->path, count);
    } else {
        log_error("gateway", "auth_keys_kept", "why=\"%s\"", why);
    }
}
