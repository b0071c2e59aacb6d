/* SPDX-License-Identifier: Apache-2.0
 *
 * A fleet's own certificate authority: a key and a certificate in a folder, and
 * what they sign. P-256, SHA-256.
 *
 *     DIR/ca.pem, DIR/ca.key                  the authority; the key may be kept elsewhere
 *     DIR/ROLE-NAME.pem, DIR/ROLE-NAME.key    of a process, or an operator
 */
#ifndef CLI_AUTHORITY_H
#define CLI_AUTHORITY_H

#include "link/pem_ssl.h"
#include "link/subject.h"

#include <stdbool.h>
#include <stdint.h>

enum { AUTHORITY_PATH_SIZE = 512 };

struct authority; /* its certificate and key in memory */

/* Make one in `folder`, which is made if it is missing; files that are there stay. False: `why`
 * says why not. */
bool authority_create(const char *folder, const char *cluster, uint32_t days,
                      char why[PEM_WHY_SIZE]);

/* Open the authority of a folder. NULL: `why` says why not. Returns owned. */
struct authority *authority_open(const char *folder, char why[PEM_WHY_SIZE]);
/* Takes NULL. */
void authority_free(struct authority *a);
/* The cluster that it was made for. */
const char *authority_cluster(const struct authority *a);

/* Make a key, and sign its certificate: good for so many days, but not beyond the authority's. What
 * is there is replaced if `renew`, else it stays, and that is an error. False: `why`. */
bool authority_issue(const struct authority *a, const struct subject *subject, uint32_t days,
                     bool renew, char why[PEM_WHY_SIZE]);

#endif
