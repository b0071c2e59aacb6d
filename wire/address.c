/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and prints host:port.
 */
#include "wire/address.h"

#include <stdio.h>
#include <string.h>

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789.-_";
static const char ipv6_letters[] = "0123456789abcdefABCDEF:.";

static bool port_parse(const char *text, uint16_t *port)
{
    uint32_t value = 0;
    const size_t size = strlen(text);

    if (size < 1 || size > 5) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

enum err address_parse(const char *text, struct address *out)
{
    const bool bracketed = text[0] == '[';
    const char *host = bracketed ? text + 1 : text;
    const size_t host_size = strspn(host, bracketed ? ipv6_letters : name_letters);
    const char *at = host + host_size;

    if (bracketed && *at++ != ']') {
        return ERR_INVALID;
    }
    if (host_size == 0 || strlen(text) >= ADDRESS_SIZE_MAX || *at++ != ':' ||
        !port_parse(at, &out->port)) {
        return ERR_INVALID;
    }
    memcpy(out->host, host, host_size);
    out->host[host_size] = '\0';
    return ERR_OK;
}

void address_format(const struct address *address, char *text, size_t size)
{
    const bool bracketed = strchr(address->host, ':') != NULL;

    (void)snprintf(
        text, size, bracketed ? "[%s]:%u" : "%s:%u", address->host, (unsigned)address->port);
}

bool address_is_loopback(const char *text)
{
    return strncmp(text, "127.", 4) == 0 || strncmp(text, "localhost:", 10) == 0 ||
           strncmp(text, "[::1]:", 6) == 0;
}

bool address_is_any(const char *text)
{
    return strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0;
}
