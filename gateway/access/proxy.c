/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the PROXY protocol's header, versions 1 and 2.
 */
#include "gateway/access/proxy.h"

#include "base/big.h"

#include <arpa/inet.h>
#include <string.h>

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
static const char word[] = "PROXY ";

enum {
    SIGNATURE_SIZE = sizeof signature - 1,
    WORD_SIZE = sizeof word - 1,
    BEGINNING = SIGNATURE_SIZE + 4, /* of version 2: all that has a fixed size */
    LOCAL = 0x20,
    PROXY = 0x21,
    TCP4 = 0x11,
    TCP6 = 0x21,
    TCP4_SIZE = 12, /* two addresses, two ports */
    TCP6_SIZE = 36,
    TEXT_MAX = 40, /* of an address, and its end */
};

static void set_ipv4(struct proxy_header *out, const uint8_t *address)
{
    memset(out->address, 0, 10);
    memset(out->address + 10, 0xff, 2);
    memcpy(out->address + 12, address, 4);
}

/* ---- version 1 ---- */

/* What stands before the next space; `line` becomes what stands behind it. All, and none, without.
 */
static struct bytes cut(struct bytes *line)
{
    const uint8_t *space = line->size == 0 ? NULL : memchr(line->data, ' ', line->size);
    const size_t size = space == NULL ? line->size : (size_t)(space - line->data);
    const size_t used = space == NULL ? size : size + 1;
    const struct bytes before = bytes_of(line->data, size);

    *line = bytes_of(line->data + used, line->size - used);
    return before;
}

static bool is(struct bytes text, const char *right)
{
    return bytes_equal(text, bytes_of(right, strlen(right)));
}

/* One way to write it: digits, no zero in front. */
static bool get_port(struct bytes text, uint16_t *port)
{
    uint32_t value = 0;

    if (text.size == 0 || text.size > 5 || (text.data[0] == '0' && text.size > 1)) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        value = value * 10 + (uint32_t)(text.data[i] - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

static bool get_address(struct bytes text, bool ipv6, struct proxy_header *out)
{
    uint8_t address[PROXY_ADDRESS_SIZE];
    char copy[TEXT_MAX];

    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, '\0', text.size) != NULL) {
        return false;
    }
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (inet_pton(ipv6 ? AF_INET6 : AF_INET, copy, address) != 1) {
        return false;
    }
    if (ipv6) {
        memcpy(out->address, address, sizeof address);
    } else {
        set_ipv4(out, address);
    }
    return true;
}

/* "TCP4 192.0.2.1 198.51.100.1 56324 443" */
static enum proxy_result take_line(struct bytes line, struct proxy_header *out)
{
    const struct bytes family = cut(&line);
    const bool ipv6 = is(family, "TCP6");
    struct proxy_header other;

    if (is(family, "UNKNOWN")) {
        return PROXY_UNNAMED; // what follows is nobody's business
    }
    if (!ipv6 && !is(family, "TCP4")) {
        return PROXY_BAD;
    }
    const struct bytes from = cut(&line);
    const struct bytes to = cut(&line);
    const struct bytes port = cut(&line);
    const bool good = get_address(from, ipv6, out) && get_address(to, ipv6, &other) &&
                      get_port(port, &out->port) && get_port(line, &other.port);
    return good ? PROXY_NAMED : PROXY_BAD;
}

static enum proxy_result parse_line(struct bytes in, struct proxy_header *out)
{
    const size_t most = in.size < PROXY_LINE_MAX ? in.size : PROXY_LINE_MAX;
    const uint8_t *end = memchr(in.data, '\n', most);

    if (end == NULL) {
        return most < PROXY_LINE_MAX ? PROXY_MORE : PROXY_BAD;
    }
    out->size = (size_t)(end - in.data) + 1;
    if (end[-1] != '\r') {
        return PROXY_BAD;
    }
    return take_line(bytes_of(in.data + WORD_SIZE, out->size - 2 - WORD_SIZE), out);
}

/* ---- version 2 ---- */

static enum proxy_result take_addresses(uint8_t family, struct bytes body, struct proxy_header *out)
{
    switch (family) {
    case TCP4:
        if (body.size < TCP4_SIZE) {
            return PROXY_BAD;
        }
        set_ipv4(out, body.data);
        out->port = (uint16_t)big_get16(body.data + 8);
        return PROXY_NAMED;
    case TCP6:
        if (body.size < TCP6_SIZE) {
            return PROXY_BAD;
        }
        memcpy(out->address, body.data, PROXY_ADDRESS_SIZE);
        out->port = (uint16_t)big_get16(body.data + 32);
        return PROXY_NAMED;
    case 0x00: // UNSPEC
    case 0x31: // a socket of the proxy's machine: it has no address that says anything
        return PROXY_UNNAMED;
    default:
        return PROXY_BAD; // datagrams, and what is not defined
    }
}

static enum proxy_result parse_binary(struct bytes in, struct proxy_header *out)
{
    if (in.size < BEGINNING) {
        return PROXY_MORE;
    }
    const uint8_t command = in.data[SIGNATURE_SIZE];
    const uint8_t family = in.data[SIGNATURE_SIZE + 1];
    const size_t size = big_get16(in.data + SIGNATURE_SIZE + 2);

    if ((command != LOCAL && command != PROXY) || BEGINNING + size > PROXY_SIZE_MAX) {
        return PROXY_BAD;
    }
    if (in.size < BEGINNING + size) {
        return PROXY_MORE;
    }
    out->size = BEGINNING + size;
    return command == LOCAL ? PROXY_UNNAMED
                            : take_addresses(family, bytes_of(in.data + BEGINNING, size), out);
}

/* ---- either ---- */

/* Does it begin with that, as far as it goes? */
static bool begins(struct bytes in, const char *with, size_t size)
{
    return in.size == 0 || memcmp(in.data, with, in.size < size ? in.size : size) == 0;
}

enum proxy_result proxy_parse(struct bytes in, struct proxy_header *out)
{
    *out = (struct proxy_header){0};
    if (begins(in, word, WORD_SIZE)) {
        return in.size < WORD_SIZE ? PROXY_MORE : parse_line(in, out);
    }
    if (begins(in, signature, SIGNATURE_SIZE)) {
        return parse_binary(in, out);
    }
    return PROXY_BAD;
}
