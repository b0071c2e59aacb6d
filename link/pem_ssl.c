/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains in words what is wrong with a PEM file.
 */
#include "link/pem_ssl.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/secret_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

enum { FILE_MAX = 64 * 1024 };

bool pem_explain(char why[PEM_WHY_SIZE], const char *path, const char *what)
{
    const char *reason = what != NULL ? what : ERR_reason_error_string(ERR_peek_last_error());

    (void)snprintf(
        why, PEM_WHY_SIZE, "%s: %s", path, reason != NULL ? reason : "the file is not PEM");
    ERR_clear_error();
    return false;
}

BIO *pem_open(const char *path, bool secret, char why[PEM_WHY_SIZE])
{
    uint8_t *text = mem_new(1, FILE_MAX);
    size_t size = 0;
    BIO *bio = NULL;
    const char *wrong = secret ? secret_file_read(path, text, FILE_MAX, &size)
                               : public_file_read(path, text, FILE_MAX, &size);

    if (wrong != NULL) {
        (void)pem_explain(why, path, wrong);
    } else {
        bio = BIO_new(secret ? BIO_s_secmem() : BIO_s_mem());
        ASSERT(bio != NULL);
        const int written = size == 0 ? 0 : BIO_write(bio, text, (int)size);
        ASSERT(written == (int)size);
    }
    OPENSSL_cleanse(text, FILE_MAX);
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

X509 *pem_certificate(BIO *file, bool *over)
{
    X509 *one = PEM_read_bio_X509(file, NULL, no_passphrase, NULL);

    *over = one == NULL && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    return one;
}

EVP_PKEY *pem_key(BIO *file)
{
    return PEM_read_bio_PrivateKey(file, NULL, no_passphrase, NULL);
}
