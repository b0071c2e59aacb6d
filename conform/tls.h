/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS for `ringhold conform`: a blocking connection, each wait with an end.
 */
#ifndef CONFORM_TLS_H
#define CONFORM_TLS_H

#include "conform/where.h"

#include <stdbool.h>
#include <stddef.h>

struct ssl_ctx_st; /* SSL_CTX */
struct ssl_st;     /* SSL */

enum { CONFORM_TLS_WHY_SIZE = 256 };

/* Make a context that trusts the certificates of this file; "" = those that the system trusts;
 * `anybody` = whoever answers. NULL: `why` says why not. The context is the caller's, for good. */
struct ssl_ctx_st *conform_tls_trust(const char *ca_file, bool anybody,
                                     char why[CONFORM_TLS_WHY_SIZE]);

/* Make the handshake through this socket, whose sends and receives must time out by themselves.
 * NULL: `why` says why not; the socket stays the caller's in any case. */
struct ssl_st *conform_tls_open(struct ssl_ctx_st *trust, int fd, const struct conform_where *where,
                                char why[CONFORM_TLS_WHY_SIZE]);

/* Takes NULL. */
void conform_tls_free(struct ssl_st *tls);

/* False: nothing more can be sent. */
bool conform_tls_send(struct ssl_st *tls, const void *data, size_t size);

/* Say that no more will come. */
void conform_tls_end(struct ssl_st *tls);

/* True if something can be read without waiting for the socket. */
bool conform_tls_has(const struct ssl_st *tls);

/* Return how many bytes came; 0: none are whole yet; -1: the end. */
int conform_tls_receive(struct ssl_st *tls, void *to, size_t size);

#endif
