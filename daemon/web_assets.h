/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the coordinators' web page (daemon/web), which are part of the program.
 */
#ifndef DAEMON_WEB_ASSETS_H
#define DAEMON_WEB_ASSETS_H

#include "base/bytes.h"

/* Content-Security-Policy: the page may load its own files and ask its own server, nothing else. */
#define WEB_ASSETS_POLICY                                                           \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct web_asset {
    const char *path; /* "/fleet.js" */
    const char *type; /* of its content */
    struct bytes content;
};

/* NULL: there is none. Static. */
const struct web_asset *web_asset_find(const char *path);

#endif
