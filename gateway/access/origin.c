/* SPDX-License-Identifier: Apache-2.0
 *
 * The unit in which clients are counted: an IPv4 address, or the /64 network of
 * an IPv6 one.
 */
#include "gateway/access/origin.h"

#include "base/table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { HOST_MAX = 63, NETWORK_SIZE = 8, IPV4_AT = 12 };

static void put_ipv6(const struct in6_addr *in6, uint8_t key[ORIGIN_SIZE])
{
    if (IN6_IS_ADDR_V4MAPPED(in6)) {
        key[0] = 4;
        memcpy(key + 1, in6->s6_addr + IPV4_AT, sizeof(struct in_addr));
    } else {
        key[0] = 6;
        memcpy(key + 1, in6->s6_addr, NETWORK_SIZE);
    }
}

struct origin origin_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    const char *begin = address[0] == '[' ? address + 1 : address;
    const char *end = colon == NULL ? address + strlen(address) : colon;
    char host[HOST_MAX + 1];
    struct in6_addr in6;
    struct origin o = {{0}};

    if (end > begin && end[-1] == ']') {
        end--;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(end - begin), begin);
    if (inet_pton(AF_INET, host, o.key + 1) == 1) {
        o.key[0] = 4;
    } else if (inet_pton(AF_INET6, host, &in6) == 1) {
        put_ipv6(&in6, o.key);
    } else {
        memcpy(o.key + 1, host, strnlen(host, ORIGIN_SIZE - 1));
    }
    return o;
}

bool origin_is(const struct origin *o, const struct origin *other)
{
    return memcmp(o->key, other->key, ORIGIN_SIZE) == 0;
}

uint64_t origin_hash(const struct origin *o, uint64_t seed)
{
    uint64_t word[ORIGIN_SIZE / sizeof(uint64_t)];

    memcpy(word, o->key, sizeof word);
    return table_mix(table_mix(word[0] ^ seed) ^ word[1]) | 1;
}
