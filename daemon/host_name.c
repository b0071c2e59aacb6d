/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether a Host header names this machine by number or as localhost.
 */
#include "daemon/host_name.h"

#include "wire/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Without its port and brackets. False: it makes no sense. */
static bool host_of(const char *text, struct address *out)
{
    char whole[ADDRESS_SIZE_MAX + 8];
    const char *colon = strrchr(text, ':');
    const bool has_port = colon != NULL && strchr(colon, ']') == NULL;

    if (strlen(text) >= ADDRESS_SIZE_MAX) {
        return false;
    }
    (void)snprintf(whole, sizeof whole, "%s%s", text, has_port ? "" : ":0");
    return address_parse(whole, out) == ERR_OK;
}

static bool is_number(const char *host)
{
    struct in6_addr number;

    return inet_pton(AF_INET, host, &number) == 1 || inet_pton(AF_INET6, host, &number) == 1;
}

bool host_is_local(const char *host)
{
    struct address named;

    if (host == NULL || host[0] == '\0') {
        return true;
    }
    return host_of(host, &named) &&
           (is_number(named.host) || strcasecmp(named.host, "localhost") == 0);
}
