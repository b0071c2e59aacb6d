/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of TLS between processes: --link-ca, --link-certificate,
 * --link-key; in a file [tls] ca, certificate and key; RINGHOLD_TLS_CA and so on.
 */
#ifndef DAEMON_LINK_ARGS_H
#define DAEMON_LINK_ARGS_H

#include "daemon/options.h"
#include "link/link.h"

struct link_args {
    char ca[512];
    char certificate[512];
    char key[512];
};

struct option link_ca_option(struct link_args *w);
struct option link_certificate_option(struct link_args *w);
struct option link_key_option(struct link_args *w);

/* --insecure, of who has links and nothing else to listen with. */
struct option link_insecure_option(bool *insecure);

/* Borrows `w`. None of them set: no TLS. */
struct link_files link_args_files(const struct link_args *w);

/* Check that all of the options are given or none, and that a process of this role and name could
 * start with them. False after printing what is wrong. */
bool link_args_check(const struct link_args *w, const char *command, const struct hello *self);

#endif
