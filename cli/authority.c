/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the fleet's certificate authority and signs certificates with it, by
 * OpenSSL.
 */
#include "cli/authority.h"

#include "base/assert.h"
#include "base/mem.h"
#include "wire/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SERIAL_SIZE = 16,
    STEM_SIZE = 1024, /* a folder, and a name in it */
    X509_VERSION_THREE = 2,
    BACK_S = 3600, /* valid since an hour: clocks of a fleet differ */
};

static const char ca_name[] = "Ringhold CA of ";

struct authority {
    char folder[AUTHORITY_PATH_SIZE];
    char cluster[LINK_NAME_MAX + 1];
    X509 *certificate; /* owned */
    EVP_PKEY *key;     /* owned */
};

/* ---- files ---- */

static void path_of(char out[STEM_SIZE], const char *folder, const char *name)
{
    (void)snprintf(out, STEM_SIZE, "%s/%s", folder, name);
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t count = write(fd, data, size);

        if (count < 0 && errno != EINTR) {
            return false;
        }
        data += count > 0 ? count : 0;
        size -= count > 0 ? (size_t)count : 0;
    }
    return fsync(fd) == 0;
}

/* What is in `bio`, to a new file; one that is there is replaced at once, or stays. A key is for
 * its owner alone from the first byte on. */
static bool write_file(const char *path, BIO *bio, mode_t mode, bool renew, char why[PEM_WHY_SIZE])
{
    char fresh[STEM_SIZE + 16];
    char *data = NULL;
    const long size = BIO_get_mem_data(bio, &data);

    (void)snprintf(fresh, sizeof fresh, "%s%s", path, renew ? ".new" : "");
    if (renew) {
        (void)unlink(fresh);
    }
    const int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return pem_explain(why,
                           fresh,
                           errno == EEXIST ? "a file of this name exists and is kept"
                                           : strerror(errno));
    }
    const bool written = write_all(fd, data, size > 0 ? (size_t)size : 0);
    const int error = errno;
    (void)close(fd);
    if (!written || (renew && rename(fresh, path) != 0)) {
        const int last = written ? errno : error;

        (void)unlink(fresh);
        return pem_explain(why, fresh, strerror(last));
    }
    return true;
}

static bool write_pair(const char *stem, X509 *certificate, EVP_PKEY *key, bool renew,
                       char why[PEM_WHY_SIZE])
{
    char path[STEM_SIZE + 8];
    BIO *secret = BIO_new(BIO_s_secmem());
    BIO *shown = BIO_new(BIO_s_mem());

    ASSERT(secret != NULL && shown != NULL);
    const bool encoded = PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1 &&
                         PEM_write_bio_X509(shown, certificate) == 1;
    ASSERT(encoded);
    (void)snprintf(path, sizeof path, "%s.key", stem);
    bool good = write_file(path, secret, S_IRUSR | S_IWUSR, renew, why);
    if (good) {
        (void)snprintf(path, sizeof path, "%s.pem", stem);
        good = write_file(path, shown, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, renew, why);
    }
    BIO_free(secret);
    BIO_free(shown);
    return good;
}

/* ---- certificates ---- */

static void extend(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ASSERT(e != NULL);
    const int added = X509_add_ext(x, e, -1);
    ASSERT(added == 1);
    X509_EXTENSION_free(e);
}

/* Not signed yet, nor said by whom. `name` is what people read. */
static X509 *draft(EVP_PKEY *key, const char *name, uint32_t days)
{
    X509 *x = X509_new();
    uint8_t serial[SERIAL_SIZE];

    ASSERT(x != NULL);
    const int drawn = RAND_bytes(serial, sizeof serial);
    ASSERT(drawn == 1);
    serial[0] = (uint8_t)((serial[0] & 0x3fU) | 0x40U); // positive, of full length
    BIGNUM *number = BN_bin2bn(serial, sizeof serial, NULL);
    const bool made =
        number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL &&
        X509_set_version(x, X509_VERSION_THREE) == 1 && X509_set_pubkey(x, key) == 1 &&
        X509_gmtime_adj(X509_getm_notBefore(x), -BACK_S) != NULL &&
        X509_time_adj_ex(X509_getm_notAfter(x), (int)days, 0, NULL) != NULL &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x),
                                   "CN",
                                   MBSTRING_UTF8,
                                   (const unsigned char *)name,
                                   -1,
                                   -1,
                                   0) == 1;
    ASSERT(made);
    BN_free(number);
    return x;
}

static EVP_PKEY *new_key(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    ASSERT(key != NULL);
    return key;
}

static void sign(X509 *x, EVP_PKEY *key)
{
    const int size = X509_sign(x, key, EVP_sha256());

    ASSERT(size > 0);
}

bool authority_create(const char *folder, const char *cluster, uint32_t days,
                      char why[PEM_WHY_SIZE])
{
    char name[sizeof ca_name + LINK_NAME_MAX];
    char stem[STEM_SIZE];

    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
        return pem_explain(why, folder, strerror(errno));
    }
    EVP_PKEY *key = new_key();
    (void)snprintf(name, sizeof name, "%s%s", ca_name, cluster);
    X509 *x = draft(key, name, days);
    const int named = X509_set_issuer_name(x, X509_get_subject_name(x));
    ASSERT(named == 1);
    extend(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign");
    extend(x, x, NID_subject_key_identifier, "hash");
    sign(x, key);
    path_of(stem, folder, "ca");
    const bool good = write_pair(stem, x, key, false, why);
    X509_free(x);
    EVP_PKEY_free(key);
    return good;
}

/* ---- an authority that is there ---- */

/* Its name says whose it is. */
static bool take_cluster(struct authority *a)
{
    char name[sizeof ca_name + LINK_NAME_MAX] = "";
    X509_NAME *subject = X509_get_subject_name(a->certificate);

    (void)X509_NAME_get_text_by_NID(subject, NID_commonName, name, sizeof name);
    if (strncmp(name, ca_name, sizeof ca_name - 1) != 0 ||
        !hello_name_is_valid(name + sizeof ca_name - 1)) {
        return false;
    }
    (void)snprintf(a->cluster, sizeof a->cluster, "%s", name + sizeof ca_name - 1);
    return true;
}

static bool load(struct authority *a, char why[PEM_WHY_SIZE])
{
    char path[STEM_SIZE];
    bool over = false;

    path_of(path, a->folder, "ca.pem");
    BIO *bio = pem_open(path, false, why);
    if (bio == NULL) {
        return false;
    }
    a->certificate = pem_certificate(bio, &over);
    BIO_free(bio);
    if (a->certificate == NULL || !take_cluster(a)) {
        return pem_explain(why, path, "ca.pem is not a certificate that `ringhold tls init` made");
    }
    path_of(path, a->folder, "ca.key");
    bio = pem_open(path, true, why);
    if (bio == NULL) {
        return false;
    }
    a->key = pem_key(bio);
    BIO_free(bio);
    if (a->key == NULL || X509_check_private_key(a->certificate, a->key) != 1) {
        return pem_explain(why, path, "ca.key does not belong to ca.pem");
    }
    return true;
}

struct authority *authority_open(const char *folder, char why[PEM_WHY_SIZE])
{
    struct authority *a = mem_new(1, sizeof *a);

    (void)snprintf(a->folder, sizeof a->folder, "%s", folder);
    if (!load(a, why)) {
        authority_free(a);
        return NULL;
    }
    return a;
}

void authority_free(struct authority *a)
{
    if (a != NULL) {
        X509_free(a->certificate);
        EVP_PKEY_free(a->key);
        mem_free(a);
    }
}

const char *authority_cluster(const struct authority *a)
{
    return a->cluster;
}

static X509 *signed_for(const struct authority *a, const struct subject *subject, EVP_PKEY *key,
                        uint32_t days)
{
    char uri[SUBJECT_URI_SIZE];
    char names[SUBJECT_URI_SIZE + 8];
    X509 *x = draft(key, subject->name, days);
    const ASN1_TIME *end = X509_get0_notAfter(a->certificate);

    if (ASN1_TIME_compare(X509_get0_notAfter(x), end) > 0) {
        const int cut = X509_set1_notAfter(x, end);
        ASSERT(cut == 1);
    }
    const int named = X509_set_issuer_name(x, X509_get_subject_name(a->certificate));
    ASSERT(named == 1);
    subject_format(subject, uri);
    (void)snprintf(names, sizeof names, "URI:%s", uri);
    extend(x, a->certificate, NID_basic_constraints, "critical,CA:FALSE");
    extend(x, a->certificate, NID_key_usage, "critical,digitalSignature");
    extend(x, a->certificate, NID_ext_key_usage, "serverAuth,clientAuth");
    extend(x, a->certificate, NID_subject_alt_name, names);
    extend(x, a->certificate, NID_subject_key_identifier, "hash");
    extend(x, a->certificate, NID_authority_key_identifier, "keyid:always");
    sign(x, a->key);
    return x;
}

bool authority_issue(const struct authority *a, const struct subject *subject, uint32_t days,
                     bool renew, char why[PEM_WHY_SIZE])
{
    char stem[STEM_SIZE];

    if (X509_cmp_current_time(X509_get0_notAfter(a->certificate)) <= 0) {
        return pem_explain(why, a->folder, "the authority has expired: make another one");
    }
    EVP_PKEY *key = new_key();
    X509 *x = signed_for(a, subject, key, days);
    (void)snprintf(
        stem, sizeof stem, "%s/%s-%s", a->folder, subject_role_name(subject->role), subject->name);
    const bool good = write_pair(stem, x, key, renew, why);
    X509_free(x);
    EVP_PKEY_free(key);
    return good;
}
