/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate that clients are shown, and its key: read at start, and again at
 * SIGHUP. Each thread of a gateway has its own.
 */
#ifndef GATEWAY_CERTIFICATE_UV_H
#define GATEWAY_CERTIFICATE_UV_H

#include "gateway/carrier.h"

#include <stdbool.h>
#include <uv.h>

struct certificate {
    const char *chain; /* file; borrowed; NULL = nobody comes by TLS */
    const char *key;   /* file; borrowed */
    struct carrier_rules *rules;
    bool running; /* the handle below is open */
    uv_signal_t again;
};

/* Read the files, for `rules`. False: `why` says why not; nothing is to be undone. No `chain`:
 * nothing to do. */
bool certificate_open(struct certificate *c, const char *chain, const char *key,
                      struct carrier_rules *rules, char why[TLS_WHY_SIZE]);

/* From now on SIGHUP reads them again, for who comes then; what is no pair is logged, and nothing
 * changes. */
void certificate_start(struct certificate *c, uv_loop_t *loop);
/* No more. */
void certificate_stop(struct certificate *c);
/* Free it. Connections that have it keep it. */
void certificate_fini(struct certificate *c);

#endif
