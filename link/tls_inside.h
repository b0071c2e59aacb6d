/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of TLS share. Nobody else includes this.
 */
#ifndef LINK_TLS_INSIDE_H
#define LINK_TLS_INSIDE_H

#include "link/tls.h"

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

struct x509_st; /* and X509 */

/* Make a context for connections of players, or of links, without certificates. Returns owned.
 * (tls_ssl.c) */
struct ssl_ctx_st *tls_context_new(bool links);

/* Borrowed. (tls_keys_ssl.c) */
struct ssl_ctx_st *tls_keys_context(struct tls_keys *keys);

/* The one subject of a certificate. False: it has none, or several. (tls_subject_ssl.c) */
bool tls_subject_of(const struct x509_st *certificate, struct subject *out);

#endif
