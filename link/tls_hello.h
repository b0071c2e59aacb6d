/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a client's hello says it is, before anybody makes room for it: OpenSSL takes
 * 128 KiB for whoever says so in nine bytes.
 *
 * Pure. It cuts what comes into records, and looks at the first bytes of those that are not
 * encrypted and of the handshake.
 */
#ifndef LINK_TLS_HELLO_H
#define LINK_TLS_HELLO_H

#include "base/bytes.h"

enum {
    TLS_HELLO_MAX = 16 * 1024, /* what players' clients send is 2 KiB */
    TLS_HELLO_HEAD = 9,        /* of a record: its header, that of its first message */
};

/* All zero at first. */
struct tls_hello {
    uint8_t head[TLS_HELLO_HEAD];
    size_t got;   /* of it */
    size_t rest;  /* of the record, to be passed over */
    bool changed; /* a change of ciphers came */
};

/* Bytes came. `old`: TLS 1.2 was agreed on before they did, which encrypts what follows a change of
 * ciphers. False: it is too long, or cut so that nobody could tell. */
bool tls_hello_fits(struct tls_hello *h, struct bytes in, bool old);

#endif
