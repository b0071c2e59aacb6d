/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file with a certificate is good for, for people.
 */
#ifndef CLI_CREDENTIAL_H
#define CLI_CREDENTIAL_H

#include "link/pem_ssl.h"
#include "link/subject.h"

#include <stdbool.h>
#include <stdint.h>

enum { CREDENTIAL_PATH_SIZE = 512 };

struct credential {
    char wrong[PEM_WHY_SIZE]; /* "" = nothing: a process would take it */
    bool is_read;             /* it is a certificate: what follows is of it */
    bool is_authority;
    bool has_subject;
    struct subject subject;
    char name[128]; /* for people: its CN */
    uint64_t ends_s;
    long days_left; /* below 0: it has expired */
};

/* "" as `ca`: ca.pem beside it; as `key`: the same name with .key. */
void credential_check(const char *path, const char *ca, const char *key, struct credential *out);

/* A clause that says what a process with a certificate of this role may do. */
const char *credential_use(enum link_role role);

#endif
