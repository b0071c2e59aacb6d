/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the gateway's certificate, again on SIGHUP, and keeps the old one while
 * a new one is wrong.
 */
#include "gateway/certificate_uv.h"

#include "base/log.h"

static bool read_files(struct certificate *c, char why[TLS_WHY_SIZE])
{
    struct tls_keys *keys = tls_keys_load(c->chain, c->key, why);

    if (keys == NULL) {
        return false;
    }
    tls_keys_free(c->rules->keys);
    c->rules->keys = keys;
    return true;
}

bool certificate_open(struct certificate *c, const char *chain, const char *key,
                      struct transport_rules *rules, char why[TLS_WHY_SIZE])
{
    c->chain = chain;
    c->key = key;
    c->rules = rules;
    return chain == NULL || read_files(c, why);
}

void certificate_reload(struct certificate *c)
{
    char why[TLS_WHY_SIZE];

    if (c->chain == NULL) {
        return;
    }
    if (read_files(c, why)) {
        log_info("gateway", "certificate", "file=%s", c->chain);
    } else {
        log_error("gateway", "certificate_kept", "why=\"%s\"", why);
    }
}

void certificate_fini(struct certificate *c)
{
    if (c->rules != NULL) {
        tls_keys_free(c->rules->keys);
        c->rules->keys = NULL;
    }
}
