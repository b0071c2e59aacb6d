/* SPDX-License-Identifier: Apache-2.0
 *
 * Says what a certificate file is for and until when it is valid, for `ringhold
 * tls check`.
 */
#include "cli/credential.h"

#include "base/assert.h"
#include "link/tls_inside.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400, BESIDE_SIZE = 1024 };

const char *credential_use(enum link_role role)
{
    switch (role) {
    case ROLE_COORDINATOR:
        return "vote and lead as the coordinator with that --id; give commands";
    case ROLE_NODE:
        return "act as the node of that name: register, host actors, call others";
    case ROLE_GATEWAY:
        return "act as the gateway of that name: hand clients' requests to nodes";
    case ROLE_CLI:
        return "give commands to coordinators";
    }
    UNREACHABLE();
}

static void take_end(X509 *x, struct credential *out)
{
    struct tm ends;
    int days = 0;
    int seconds = 0;

    if (ASN1_TIME_to_tm(X509_get0_notAfter(x), &ends) == 1 &&
        ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x)) == 1) {
        out->days_left = days < 0 || seconds < 0 ? days - 1 : days;
        out->ends_s = (uint64_t)((int64_t)time(NULL) + (int64_t)days * DAY_S + seconds);
    }
}

/* What it says of itself. False: `out->wrong`. */
static bool read_it(const char *path, struct credential *out)
{
    bool over = false;
    BIO *file = pem_open(path, false, out->wrong);

    if (file == NULL) {
        return false;
    }
    X509 *x = pem_certificate(file, &over);
    BIO_free(file);
    ERR_clear_error();
    if (x == NULL) {
        return pem_explain(out->wrong, path, "the file contains no certificate (PEM)");
    }
    out->is_read = true;
    out->is_authority = X509_check_ca(x) == 1;
    out->has_subject = tls_subject_of(x, &out->subject);
    (void)X509_NAME_get_text_by_NID(
        X509_get_subject_name(x), NID_commonName, out->name, sizeof out->name);
    for (char *c = out->name; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    take_end(x, out);
    X509_free(x);
    return true;
}

/* `path` with another name in its folder. */
static void beside(char out[BESIDE_SIZE], const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;

    (void)snprintf(out, BESIDE_SIZE, "%.*s%s", folder, path, name);
}

/* `path` with .key in place of .pem, or behind it. */
static void key_of(char out[BESIDE_SIZE], const char *path)
{
    const size_t size = strlen(path);
    const bool pem = size > 4 && strcmp(path + size - 4, ".pem") == 0;

    (void)snprintf(out, BESIDE_SIZE, "%.*s.key", (int)(pem ? size - 4 : size), path);
}

void credential_check(const char *path, const char *ca, const char *key, struct credential *out)
{
    char beside_ca[BESIDE_SIZE];
    char beside_key[BESIDE_SIZE];

    *out = (struct credential){.days_left = 0};
    if (!read_it(path, out)) {
        return;
    }
    if (out->is_authority) {
        if (out->days_left < 0) {
            (void)snprintf(out->wrong, sizeof out->wrong, "the certificate has expired");
        }
        return;
    }
    beside(beside_ca, path, "ca.pem");
    key_of(beside_key, path);
    const struct link_files files = {.ca = ca[0] != '\0' ? ca : beside_ca,
                                     .certificate = path,
                                     .key = key[0] != '\0' ? key : beside_key};
    tls_keys_free(tls_keys_load_mutual(&files, out->wrong));
}
