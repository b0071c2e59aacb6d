/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses lists of networks and finds an address in them.
 */
#include "gateway/access/ranges.h"

#include <arpa/inet.h>
#include <string.h>

enum { TEXT_MAX = 64, MAPPED_BITS = 96 };

/* 0..most, of 1 to 3 digits. False: it is none. */
static bool get_bits(const char *text, unsigned most, unsigned *bits)
{
    unsigned value = 0;
    const size_t size = strlen(text);

    if (size == 0 || size > 3 || strspn(text, "0123456789") != size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *bits = value;
    return value <= most;
}

static bool bit_of(const uint8_t *address, unsigned at)
{
    return (address[at / 8] >> (7 - at % 8) & 1) != 0;
}

static bool parse_one(char *text, struct range *out)
{
    char *slash = strchr(text, '/');

    *out = (struct range){.address = {[10] = 0xff, [11] = 0xff}};
    if (slash != NULL) {
        *slash = '\0';
    }
    const bool ipv4 = inet_pton(AF_INET, text, out->address + 12) == 1;
    if (!ipv4 && inet_pton(AF_INET6, text, out->address) != 1) {
        return false;
    }
    out->bits = ipv4 ? 32 : 128;
    if (slash != NULL && !get_bits(slash + 1, out->bits, &out->bits)) {
        return false;
    }
    out->bits += ipv4 ? MAPPED_BITS : 0;
    for (unsigned i = out->bits; i < 128; i++) {
        if (bit_of(out->address, i)) {
            return false; // 10.0.0.1/8: which did he mean?
        }
    }
    return true;
}

bool ranges_parse(const char *text, struct ranges *out)
{
    *out = (struct ranges){.count = 0};
    while (text[0] != '\0') {
        const size_t size = strcspn(text, ",");
        char copy[TEXT_MAX];

        if (size >= sizeof copy || out->count == RANGES_MAX) {
            return false;
        }
        memcpy(copy, text, size);
        copy[size] = '\0';
        if (!parse_one(copy, &out->range[out->count])) {
            return false;
        }
        out->count++;
        text += size;
        if (text[0] == ',' && *++text == '\0') {
            return false;
        }
    }
    return true;
}

static bool has(const struct range *r, const uint8_t address[16])
{
    const unsigned whole = r->bits / 8;
    const unsigned rest = r->bits % 8;
    const uint8_t mask = (uint8_t)(0xff00 >> rest);

    return memcmp(r->address, address, whole) == 0 &&
           (rest == 0 || ((r->address[whole] ^ address[whole]) & mask) == 0);
}

bool ranges_have(const struct ranges *r, const uint8_t address[16])
{
    for (size_t i = 0; i < r->count; i++) {
        if (has(&r->range[i], address)) {
            return true;
        }
    }
    return false;
}
