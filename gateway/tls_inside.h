/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of TLS share. Nobody else includes this.
 */
#ifndef GATEWAY_TLS_INSIDE_H
#define GATEWAY_TLS_INSIDE_H

#include "gateway/tls.h"

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* How connections are, but for a certificate. Returns owned. (tls_ssl.c) */
struct ssl_ctx_st *tls_context_new(void);

/* Borrowed. (tls_keys_ssl.c) */
struct ssl_ctx_st *tls_keys_context(struct tls_keys *keys);

#endif
