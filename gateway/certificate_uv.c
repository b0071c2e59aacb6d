/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/certificate_uv.h"

#include "base/log.h"

#include <signal.h>

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
                      struct carrier_rules *rules, char why[TLS_WHY_SIZE])
{
    c->chain = chain;
    c->key = key;
    c->rules = rules;
    return chain == NULL || read_files(c, why);
}

static void on_again(uv_signal_t *handle, int number)
{
    struct certificate *c = handle->data;
    char why[TLS_WHY_SIZE];

    (void)number;
    if (read_files(c, why)) {
        log_info("gateway", "certificate", "file=%s", c->chain);
    } else {
        log_error("gateway", "certificate_kept", "why=\"%s\"", why);
    }
}

void certificate_start(struct certificate *c, uv_loop_t *loop)
{
    if (c->chain == NULL) {
        return;
    }
    uv_signal_init(loop, &c->again);
    c->again.data = c;
    uv_signal_start(&c->again, on_again, SIGHUP);
    c->running = true;
}

void certificate_stop(struct certificate *c)
{
    if (c->running) {
        c->running = false;
        uv_close((uv_handle_t *)&c->again, NULL);
    }
}

void certificate_fini(struct certificate *c)
{
    if (c->rules != NULL) {
        tls_keys_free(c->rules->keys);
        c->rules->keys = NULL;
    }
}
