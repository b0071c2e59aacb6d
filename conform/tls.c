/* SPDX-License-Identifier: Apache-2.0
 *
 * A blocking TLS client for conformance checks, by OpenSSL.
 */
#include "conform/tls.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The first that went wrong, in OpenSSL's words. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_get_error());

    ERR_clear_error();
    return text == NULL ? "the connection broke" : text;
}

struct ssl_ctx_st *conform_tls_trust(const char *ca_file, bool anybody,
                                     char why[CONFORM_TLS_WHY_SIZE])
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    ASSERT(context != NULL);
    (void)signal(SIGPIPE, SIG_IGN); // OpenSSL writes to sockets as to pipes
    SSL_CTX_set_verify(context, anybody ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    const int loaded = ca_file[0] != '\0' ? SSL_CTX_load_verify_locations(context, ca_file, NULL)
                                          : SSL_CTX_set_default_verify_paths(context);

    if (loaded != 1 || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        (void)snprintf(why, CONFORM_TLS_WHY_SIZE, "%s: %s", ca_file, reason());
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

/* Who is to answer there: a name, which is said before, or an address. */
static bool expect(SSL *tls, const char *host)
{
    struct in6_addr address;

    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host) == 1;
    }
    return SSL_set1_host(tls, host) == 1 && SSL_set_tlsext_host_name(tls, host) == 1;
}

struct ssl_st *conform_tls_open(struct ssl_ctx_st *trust, int fd, const struct conform_where *where,
                                char why[CONFORM_TLS_WHY_SIZE])
{
    static const unsigned char http[] = "\010http/1.1";
    SSL *tls = SSL_new(trust);

    ASSERT(tls != NULL);
    ERR_clear_error();
    const bool ready = SSL_set_fd(tls, fd) == 1 && expect(tls, where->to.host) &&
                       (!where->websocket || SSL_set_alpn_protos(tls, http, sizeof http - 1) == 0);

    if (ready && SSL_connect(tls) == 1) {
        return tls;
    }
    const long verdict = SSL_get_verify_result(tls);

    (void)snprintf(why,
                   CONFORM_TLS_WHY_SIZE,
                   "no TLS: %s",
                   verdict == X509_V_OK ? reason() : X509_verify_cert_error_string(verdict));
    SSL_free(tls);
    return NULL;
}

void conform_tls_free(struct ssl_st *tls)
{
    SSL_free(tls);
}

bool conform_tls_send(struct ssl_st *tls, const void *data, size_t size)
{
    size_t sent = 0;

    ERR_clear_error();
    return size == 0 || SSL_write_ex(tls, data, size, &sent) == 1;
}

void conform_tls_end(struct ssl_st *tls)
{
    ERR_clear_error();
    (void)SSL_shutdown(tls);
}

bool conform_tls_has(const struct ssl_st *tls)
{
    return SSL_pending(tls) > 0;
}

int conform_tls_receive(struct ssl_st *tls, void *to, size_t size)
{
    size_t got = 0;

    ERR_clear_error();
    if (SSL_read_ex(tls, to, size, &got) == 1) {
        return (int)got;
    }
    return SSL_get_error(tls, 0) == SSL_ERROR_WANT_READ ? 0 : -1;
}
