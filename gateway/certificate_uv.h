/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate that clients are shown, and its key: read at start, and again when
 * told to. Each thread of a gateway has its own.
 */
#ifndef GATEWAY_CERTIFICATE_UV_H
#define GATEWAY_CERTIFICATE_UV_H

#include "gateway/protocol/transport.h"

#include <stdbool.h>

struct certificate {
    const char *chain; /* file; borrowed; NULL = nobody comes by TLS */
    const char *key;   /* file; borrowed */
    struct transport_rules *rules;
};

/* Read the files, for `rules`. False: `why` says why not; nothing is to be undone. No `chain`:
 * nothing to do. */
bool certificate_open(struct certificate *c, const char *chain, const char *key,
                      struct transport_rules *rules, char why[TLS_WHY_SIZE]);

/* Read them again, for who comes from now on; what is no pair is logged, and nothing changes. */
void certificate_reload(struct certificate *c);
/* Free it. Connections that have it keep it. */
void certificate_fini(struct certificate *c);

#endif
