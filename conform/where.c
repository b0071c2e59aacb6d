/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the address that `ringhold conform` goes to.
 */
#include "conform/where.h"

#include <stdio.h>
#include <string.h>

/* "[::1]:7001", "a.example", with a port that this scheme has by itself. */
static enum err parse_host(const char *host, unsigned port, struct address *out)
{
    const char *bracket = strrchr(host, ']');
    char whole[WHERE_HOST_SIZE + 16];

    if (port == 0 || strchr(bracket == NULL ? host : bracket, ':') != NULL) {
        return address_parse(host, out);
    }
    (void)snprintf(whole, sizeof whole, "%s:%u", host, port);
    return address_parse(whole, out);
}

enum err where_parse(const char *text, struct conform_where *out)
{
    static const struct {
        const char *scheme;
        bool encrypted;
        bool websocket;
        bool skynet;
        unsigned port;
    } schemes[] = {{"tcp://", false, false, false, 0},
                   {"tls://", true, false, false, 0},
                   {"ws://", false, true, false, 80},
                   {"wss://", true, true, false, 443},
                   {"skynet://", false, false, true, 0}};
    unsigned port = 0;

    *out = (struct conform_where){.path = "/"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t size = strlen(schemes[i].scheme);

        if (strncmp(text, schemes[i].scheme, size) == 0) {
            text += size;
            port = schemes[i].port;
            out->encrypted = schemes[i].encrypted;
            out->websocket = schemes[i].websocket;
            out->skynet = schemes[i].skynet;
            break;
        }
    }
    const size_t host_size = strcspn(text, "/?#");
    const char *path = text + host_size;

    if (host_size >= sizeof out->host || strlen(path) + 2 > sizeof out->path ||
        strchr(text, '#') != NULL || strpbrk(text, " |\r\n") != NULL ||
        (*path != '\0' && !out->websocket)) {
        return ERR_INVALID;
    }
    memcpy(out->host, text, host_size);
    out->host[host_size] = '\0';
    if (*path != '\0') {
        (void)snprintf(out->path, sizeof out->path, "%s%s", *path == '?' ? "/" : "", path);
    }
    return parse_host(out->host, port, &out->to);
}
