/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and checks a certificate, its key and the authority, by OpenSSL.
 */
#include "link/tls_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "link/pem_ssl.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct tls_keys {
    SSL_CTX *context; /* owned; so has each connection */
    struct subject subject;
};

/* NULL, or what is wrong. */
static const char *take_chain(SSL_CTX *context, BIO *bio)
{
    bool over = false;
    X509 *one = pem_certificate(bio, &over);

    if (one == NULL) {
        return over ? "the file contains no certificate (PEM)" : "the certificate is damaged";
    }
    bool good = SSL_CTX_use_certificate(context, one) == 1;
    X509_free(one);
    while (good && (one = pem_certificate(bio, &over)) != NULL) {
        good = SSL_CTX_add1_chain_cert(context, one) == 1;
        X509_free(one);
    }
    if (!good) {
        return "OpenSSL accepts no certificate of this kind: the key may be too weak";
    }
    return over ? NULL : "a certificate of its chain is damaged";
}

static bool load_certificate(SSL_CTX *context, const char *path, char why[TLS_WHY_SIZE])
{
    BIO *bio = pem_open(path, false, why);

    if (bio == NULL) {
        return false;
    }
    const char *wrong = take_chain(context, bio);
    if (wrong != NULL) {
        (void)pem_explain(why, path, wrong);
    }
    ERR_clear_error(); // that no other follows is one to OpenSSL
    BIO_free(bio);
    return wrong == NULL;
}

static bool load_key(SSL_CTX *context, const char *path, char why[TLS_WHY_SIZE])
{
    BIO *bio = pem_open(path, true, why);

    if (bio == NULL) {
        return false;
    }
    EVP_PKEY *key = pem_key(bio);
    const bool good = key != NULL && SSL_CTX_use_PrivateKey(context, key) == 1 &&
                      SSL_CTX_check_private_key(context) == 1;
    if (key == NULL) {
        (void)pem_explain(why, path, "the file contains no key (PEM), or one with a passphrase");
    } else if (!good) {
        (void)pem_explain(why, path, "the key does not belong to the certificate");
    }
    EVP_PKEY_free(key);
    BIO_free(bio);
    return good;
}

static struct tls_keys *keys_of(SSL_CTX *context)
{
    struct tls_keys *keys = mem_new(1, sizeof *keys);

    keys->context = context;
    return keys;
}

struct tls_keys *tls_keys_load(const char *certificate, const char *key, char why[TLS_WHY_SIZE])
{
    SSL_CTX *context = tls_context_new(false);

    if (!load_certificate(context, certificate, why) || !load_key(context, key, why)) {
        SSL_CTX_free(context);
        return NULL;
    }
    return keys_of(context);
}

/* ---- of links ---- */

/* NULL, or what is wrong: each certificate of the file is one to trust, and to name to clients. */
static const char *take_trusted(SSL_CTX *context, BIO *bio)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    bool over = false;
    bool good = true;
    X509 *one;
    int count = 0;

    while (good && (one = pem_certificate(bio, &over)) != NULL) {
        good = X509_STORE_add_cert(store, one) == 1 && SSL_CTX_add_client_CA(context, one) == 1;
        X509_free(one);
        count++;
    }
    if (!good) {
        return "OpenSSL does not accept it";
    }
    if (!over) {
        return "a certificate in the file is damaged";
    }
    return count == 0 ? "the file contains no certificate (PEM)" : NULL;
}

static bool load_trusted(SSL_CTX *context, const char *path, char why[TLS_WHY_SIZE])
{
    BIO *bio = pem_open(path, false, why);

    if (bio == NULL) {
        return false;
    }
    const char *wrong = take_trusted(context, bio);
    if (wrong != NULL) {
        (void)pem_explain(why, path, wrong);
    }
    ERR_clear_error();
    BIO_free(bio);
    return wrong == NULL;
}

/* NULL, or why others would refuse it, as far as we can tell. */
static const char *own_fault(SSL_CTX *context, int purpose)
{
    STACK_OF(X509) *chain = NULL;
    X509_STORE_CTX *judge = X509_STORE_CTX_new();

    ASSERT(judge != NULL);
    (void)SSL_CTX_get0_chain_certs(context, &chain);
    const bool ready = X509_STORE_CTX_init(judge,
                                           SSL_CTX_get_cert_store(context),
                                           SSL_CTX_get0_certificate(context),
                                           chain) == 1 &&
                       X509_STORE_CTX_set_purpose(judge, purpose) == 1;
    const bool good = ready && X509_verify_cert(judge) == 1;
    const char *wrong =
        good ? NULL : X509_verify_cert_error_string(X509_STORE_CTX_get_error(judge));
    X509_STORE_CTX_free(judge);
    ERR_clear_error();
    return wrong;
}

/* What the others will look at is right, so that a mistake shows here and not with them. */
static bool check_own(struct tls_keys *keys, const char *path, char why[TLS_WHY_SIZE])
{
    const char *wrong = own_fault(keys->context, X509_PURPOSE_SSL_CLIENT);

    if (wrong == NULL) {
        wrong = own_fault(keys->context, X509_PURPOSE_SSL_SERVER);
    }
    if (wrong == NULL && !tls_subject_of(SSL_CTX_get0_certificate(keys->context), &keys->subject)) {
        wrong = "the certificate names no process of a fleet: it has no URI "
                "ringhold://CLUSTER/ROLE/NAME, or several";
    }
    if (wrong != NULL) {
        (void)pem_explain(why, path, wrong);
    }
    return wrong == NULL;
}

struct tls_keys *tls_keys_load_mutual(const struct link_files *files, char why[TLS_WHY_SIZE])
{
    struct tls_keys *keys = keys_of(tls_context_new(true));

    if (load_trusted(keys->context, files->ca, why) &&
        load_certificate(keys->context, files->certificate, why) &&
        load_key(keys->context, files->key, why) && check_own(keys, files->certificate, why)) {
        return keys;
    }
    tls_keys_free(keys);
    return NULL;
}

const struct subject *tls_keys_subject(const struct tls_keys *keys)
{
    return &keys->subject;
}

void tls_keys_free(struct tls_keys *keys)
{
    if (keys != NULL) {
        SSL_CTX_free(keys->context);
        mem_free(keys);
    }
}

struct ssl_ctx_st *tls_keys_context(struct tls_keys *keys)
{
    return keys->context;
}
