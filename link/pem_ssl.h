/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates and keys in files (PEM).
 */
#ifndef LINK_PEM_SSL_H
#define LINK_PEM_SSL_H

#include <stdbool.h>

enum { PEM_WHY_SIZE = 1024 };

struct bio_st;      /* OpenSSL's BIO */
struct x509_st;     /* X509 */
struct evp_pkey_st; /* EVP_PKEY */

/* "path: what", and `false`. `what` NULL: OpenSSL's words for what it met last, which is forgotten.
 */
bool pem_explain(char why[PEM_WHY_SIZE], const char *path, const char *what);

/* The file in memory, at most 64 KiB; `secret`: as base/secret_file.h wants it. NULL: `why`.
 * Returns owned. */
struct bio_st *pem_open(const char *path, bool secret, char why[PEM_WHY_SIZE]);
/* The next certificate, owned, or NULL: `over` if nothing follows, else it is damaged. */
struct x509_st *pem_certificate(struct bio_st *file, bool *over);
/* The key, owned, or NULL: there is none, or one with a passphrase. */
struct evp_pkey_st *pem_key(struct bio_st *file);

#endif
