/* SPDX-License-Identifier: Apache-2.0
 *
 * The options about TLS between daemons, and what must hold among them.
 */
#include "daemon/link_args.h"

#include "daemon/fault.h"

#include <stdio.h>

struct option link_ca_option(struct link_args *w)
{
    return option_text(
        "link-ca",
        "FILE",
        w->ca,
        sizeof w->ca,
        "TLS on links: the authority that signed the fleet's certificates (PEM); [tls] ca");
}

struct option link_certificate_option(struct link_args *w)
{
    return option_text(
        "link-certificate",
        "FILE",
        w->certificate,
        sizeof w->certificate,
        "this process's certificate (PEM), made by `ringhold tls`; [tls] certificate");
}

struct option link_key_option(struct link_args *w)
{
    return option_text("link-key",
                       "FILE",
                       w->key,
                       sizeof w->key,
                       "its key (PEM), which other users must not be able to read; [tls] key");
}

struct option link_insecure_option(bool *insecure)
{
    return option_switch(
        "insecure",
        insecure,
        "listen beyond loopback without TLS: anyone who can connect controls the fleet");
}

struct link_files link_args_files(const struct link_args *w)
{
    if (w->certificate[0] == '\0') {
        return (struct link_files){0};
    }
    return (struct link_files){.ca = w->ca, .certificate = w->certificate, .key = w->key};
}

bool link_args_check(const struct link_args *w, const char *command, const struct hello *self)
{
    const int given = (w->ca[0] != '\0') + (w->certificate[0] != '\0') + (w->key[0] != '\0');
    const struct links_config config = {.self = *self, .tls = link_args_files(w)};
    char why[1024];

    if (given == 0) {
        return true;
    }
    if (given < 3) {
        fault_print(command, "--link-ca, --link-certificate, --link-key: give all three or none");
        return false;
    }
    if (!links_take_files(&config, why, sizeof why)) {
        fault_print(command, "%s", why);
        return false;
    }
    return true;
}
