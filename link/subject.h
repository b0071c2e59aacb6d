/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a certificate of the fleet is of, and what may be said with it: the URI
 * ringhold://CLUSTER/ROLE/NAME in its subjectAltName.
 *
 * Pure.
 *
 *     certificate of   may be, in a hello
 *     coordinator      that coordinator; a cli, too
 *     node             that node
 *     gateway          that gateway
 *     operator         a cli
 */
#ifndef LINK_SUBJECT_H
#define LINK_SUBJECT_H

#include "base/bytes.h"
#include "wire/hello.h"
#include "wire/refusals.h"

#include <stdbool.h>
#include <stddef.h>

enum { SUBJECT_URI_SIZE = 192 };

struct subject {
    char cluster[LINK_NAME_MAX + 1];
    enum link_role role; /* ROLE_CLI: an operator */
    char name[LINK_NAME_MAX + 1];
};

/* "coordinator", "node", "gateway" or "operator". */
const char *subject_role_name(enum link_role role);
/* False: no such role. */
bool subject_role_parse(const char *word, enum link_role *role);

/* False: it is none of ours; `out` is untouched. */
bool subject_parse(struct bytes uri, struct subject *out);
/* The URI of a valid one. */
void subject_format(const struct subject *s, char out[SUBJECT_URI_SIZE]);

/* Check whether a certificate's cluster, role and name allow this hello. REFUSAL_NONE, or which is
 * wrong: CLUSTER, ROLE or NAME. A cli that names no cluster is taken to be of its certificate's. */
enum refusal subject_refusal(const struct subject *s, const struct hello *hello);

#endif
