/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tls_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/secret_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>

struct tls_keys {
    SSL_CTX *context; /* owned; so has each connection */
};

/* "file: why", with what OpenSSL says if there is no `why`. */
static void explain(char out[TLS_WHY_SIZE], const char *path, const char *why)
{
    const char *reason = why != NULL ? why : ERR_reason_error_string(ERR_peek_last_error());

    (void)snprintf(out, TLS_WHY_SIZE, "%s: %s", path, reason != NULL ? reason : "it is no PEM");
    ERR_clear_error();
}

/* The file in memory, or NULL. */
static BIO *read_file(const char *path, bool secret, char why[TLS_WHY_SIZE])
{
    uint8_t *text = mem_new(1, TLS_FILE_MAX);
    size_t size = 0;
    BIO *bio = NULL;
    const char *wrong = secret ? secret_file_read(path, text, TLS_FILE_MAX, &size)
                               : public_file_read(path, text, TLS_FILE_MAX, &size);

    if (wrong != NULL) {
        explain(why, path, wrong);
    } else {
        bio = BIO_new(secret ? BIO_s_secmem() : BIO_s_mem());
        ASSERT(bio != NULL);
        const int written = size == 0 ? 0 : BIO_write(bio, text, (int)size);
        ASSERT(written == (int)size);
    }
    OPENSSL_cleanse(text, TLS_FILE_MAX);
    mem_free(text);
    return bio;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type is OpenSSL's
static int no_passphrase(char *out, int size, int writing, void *user)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)user;
    return -1; // nobody is there to be asked
}

/* The next certificate, or NULL: `over` if nothing follows. */
static X509 *next_certificate(BIO *bio, bool *over)
{
    X509 *one = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

    *over = one == NULL && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    return one;
}

/* NULL, or what is wrong. */
static const char *take_chain(SSL_CTX *context, BIO *bio)
{
    bool over = false;
    X509 *one = next_certificate(bio, &over);

    if (one == NULL) {
        return over ? "there is no certificate (PEM) in it" : "its certificate is damaged";
    }
    bool good = SSL_CTX_use_certificate(context, one) == 1;
    X509_free(one);
    while (good && (one = next_certificate(bio, &over)) != NULL) {
        good = SSL_CTX_add1_chain_cert(context, one) == 1;
        X509_free(one);
    }
    if (!good) {
        return "OpenSSL takes none of this kind: it is too weak, maybe";
    }
    return over ? NULL : "a certificate of its chain is damaged";
}

static bool load_certificate(SSL_CTX *context, const char *path, char why[TLS_WHY_SIZE])
{
    BIO *bio = read_file(path, false, why);

    if (bio == NULL) {
        return false;
    }
    const char *wrong = take_chain(context, bio);
    if (wrong != NULL) {
        explain(why, path, wrong);
    }
    ERR_clear_error(); // that no other follows is one to OpenSSL
    BIO_free(bio);
    return wrong == NULL;
}

static bool load_key(SSL_CTX *context, const char *path, char why[TLS_WHY_SIZE])
{
    BIO *bio = read_file(path, true, why);

    if (bio == NULL) {
        return false;
    }
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    const bool good = key != NULL && SSL_CTX_use_PrivateKey(context, key) == 1 &&
                      SSL_CTX_check_private_key(context) == 1;
    if (key == NULL) {
        explain(why, path, "there is no key (PEM) in it, or one with a passphrase");
    } else if (!good) {
        explain(why, path, "it is not the certificate's key");
    }
    EVP_PKEY_free(key);
    BIO_free(bio);
    return good;
}

struct tls_keys *tls_keys_load(const char *certificate, const char *key, char why[TLS_WHY_SIZE])
{
    SSL_CTX *context = tls_context_new();

    if (!load_certificate(context, certificate, why) || !load_key(context, key, why)) {
        SSL_CTX_free(context);
        return NULL;
    }
    struct tls_keys *keys = mem_new(1, sizeof *keys);

    keys->context = context;
    return keys;
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
