/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a script that send.
 */
#include "conform/conform.h"

#include "base/assert.h"
#include "base/big.h"
#include "base/clock.h"
#include "gateway/access/hmac.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 1024 };

static unsigned digit(char c)
{
    ASSERT((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void conform_hex(struct buffer *out, const char *hex)
{
    while (*hex != '\0') {
        if (isspace((unsigned char)*hex)) {
            hex++;
            continue;
        }
        const uint8_t byte = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));

        buffer_put(out, &byte, 1);
        hex += 2;
    }
}

void conform_off(struct play *p, struct buffer *packets)
{
    conform_send_packets(&p->socket, buffer_bytes(packets));
    buffer_fini(packets);
}

static void say_bytes(struct play *p, const char *rest)
{
    struct buffer out = {0};

    conform_hex(&out, rest);
    conform_off(p, &out);
}

static void say_drip(struct play *p, const char *rest)
{
    struct buffer out = {0};

    conform_hex(&out, rest);
    for (size_t i = 0; i < out.size; i++) {
        conform_send_packets(&p->socket, bytes_of(out.data + i, 1));
    }
    buffer_fini(&out);
}

void conform_put_ask(const struct play *p, struct buffer *out, uint8_t type,
                     struct request_packet *r)
{
    r->kind = p->target->kind;
    r->id = bytes_of(p->target->id, p->target->id_size);
    packet_put_request(out, (enum packet_type)type, r);
}

static void put_ask(const struct play *p, struct buffer *out, uint8_t type, uint32_t request,
                    struct bytes payload)
{
    conform_put_ask(p, out, type, &(struct request_packet){.request = request, .payload = payload});
}

/* "T R [HEX]" */
static void say_ask(struct play *p, const char *rest)
{
    char *end = NULL;
    const uint8_t type = (uint8_t)strtoul(rest, &end, 10);
    const uint32_t request = (uint32_t)strtoul(end, &end, 10);
    struct buffer payload = {0};
    struct buffer out = {0};

    conform_hex(&payload, end);
    put_ask(p, &out, type, request, buffer_bytes(&payload));
    buffer_fini(&payload);
    conform_off(p, &out);
}

/* "R COUNT" */
static void say_asks(struct play *p, const char *rest)
{
    char *end = NULL;
    const uint32_t first = (uint32_t)strtoul(rest, &end, 10);
    const uint32_t count = (uint32_t)strtoul(end, &end, 10);
    struct buffer out = {0};

    ASSERT(count <= ASKED_MAX);
    for (uint32_t i = 0; i < count; i++) {
        put_ask(p, &out, PACKET_REQUEST, first + i, bytes_of("conform", 7));
    }
    conform_off(p, &out);
}

/* "T SIZE" */
static void say_big(struct play *p, const char *rest)
{
    char *end = NULL;
    const uint8_t type = (uint8_t)strtoul(rest, &end, 10);
    uint32_t size = (uint32_t)strtoul(end, NULL, 10);
    uint8_t head[PACKET_HEADER];

    size = strstr(end, "limit") != NULL  ? p->ack.packet_size_max
           : strstr(end, "over") != NULL ? p->ack.packet_size_max + 1
                                         : size;
    big_put32(head, (uint32_t)type << 24 | size);
    conform_send_packets(&p->socket, bytes_of(head, sizeof head));
}

/* "R" */
static void say_full(struct play *p, const char *rest)
{
    const size_t taken = PACKET_REQUEST_HEADER + p->target->id_size;
    const size_t size = p->ack.packet_size_max - taken;
    struct buffer payload = {0};
    struct buffer out = {0};

    memset(buffer_reserve(&payload, size), 'x', size);
    payload.size = size;
    put_ask(p, &out, PACKET_REQUEST, (uint32_t)strtoul(rest, NULL, 10), buffer_bytes(&payload));
    buffer_fini(&payload);
    conform_off(p, &out);
}

/* A token of our own, by the first secret of --keys. */
static void put_made(struct play *p, struct buffer *out, const char *what)
{
    struct token t = {.kind = p->target->kind,
                      .expires_s = clock_wall_us() / 1000000,
                      .id_size = (uint8_t)p->target->id_size};
    const bool expired = strcmp(what, "expired") == 0;

    t.expires_s = expired ? t.expires_s - 60 : t.expires_s + 600;
    memcpy(t.id, p->target->id, t.id_size);
    memcpy(t.cluster, p->target->cluster, sizeof t.cluster);
    if (strcmp(what, "foreign") == 0) {
        (void)snprintf(t.cluster, sizeof t.cluster, "nowhere-else-is-so-named");
    }
    ASSERT(token_put(out, &t, &p->target->keys.key[0]) == ERR_OK);
}

static void put_good(struct play *p, struct buffer *out)
{
    if (p->target->token[0] != '\0') {
        buffer_put(out, p->target->token, strlen(p->target->token));
    } else {
        put_made(p, out, "good");
    }
}

/* Another first letter of the MAC. */
static void put_forged(struct play *p, struct buffer *out)
{
    put_good(p, out);
    for (size_t at = out->size; at > 0; at--) {
        if (out->data[at - 1] == '.') {
            if (at < out->size) {
                out->data[at] = out->data[at] == 'A' ? 'B' : 'A';
            }
            return;
        }
    }
}

static void say_token(struct play *p, const char *what)
{
    struct buffer text = {0};
    struct buffer out = {0};

    if (strcmp(what, "good") == 0) {
        put_good(p, &text);
    } else if (strcmp(what, "forged") == 0) {
        put_forged(p, &text);
    } else if (strcmp(what, "expired") == 0 || strcmp(what, "foreign") == 0) {
        put_made(p, &text, what);
    } else {
        buffer_put(&text, what, strlen(what));
    }
    packet_put_auth(&out, buffer_bytes(&text));
    buffer_fini(&text);
    conform_off(p, &out);
}

/* Types of versions to come: all from 128 up. */
static void say_later(struct play *p, const char *rest)
{
    struct buffer out = {0};

    (void)rest;
    for (unsigned type = PACKET_OPTIONAL; type <= UINT8_MAX; type++) {
        const uint8_t packet[] = {(uint8_t)type, 0, 0, 3, 'a', 'n', 'y'};

        buffer_put(&out, packet, sizeof packet);
    }
    conform_off(p, &out);
}

static void say_end(struct play *p, const char *rest)
{
    (void)rest;
    conform_end(&p->socket);
}

enum line_result conform_say(struct play *p, const char *word, const char *rest)
{
    static const struct {
        const char *word;
        void (*say)(struct play *p, const char *rest);
    } says[] = {{">", say_bytes},
                {"drip", say_drip},
                {"ask", say_ask},
                {"asks", say_asks},
                {"big", say_big},
                {"full", say_full},
                {"token", say_token},
                {"later", say_later},
                {"half-close", say_end}};

    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        if (strcmp(word, says[i].word) == 0) {
            says[i].say(p, rest);
            return LINE_DONE;
        }
    }
    return LINE_UNKNOWN;
}
