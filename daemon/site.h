/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the coordinators' web page (cli/web), which are part of the program.
 */
#ifndef DAEMON_SITE_H
#define DAEMON_SITE_H

#include "base/bytes.h"

/* It may load what it brings and ask its own server, and nothing else. */
#define SITE_POLICY                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct site_file {
    const char *path; /* "/fleet.js" */
    const char *type; /* of its content */
    struct bytes content;
};

/* NULL: there is none. Static. */
const struct site_file *site_find(const char *path);

#endif
