/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the HTTP request that asks for a WebSocket, and writes the answer or
 * the refusal.
 */
#include "gateway/protocol/upgrade.h"

#include "base/assert.h"
#include "base/base64.h"
#include "gateway/protocol/http_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NONCE_SIZE = 16 };

/* ---- headers ---- */

struct headers {
    unsigned hosts;
    unsigned upgrades;
    unsigned keys;
    unsigned versions;
    unsigned origins;
    bool to_websocket;
    bool connection;
    bool version_13;
    bool named;
    bool body;
    struct bytes key;
    struct bytes origin;
};

static void take_header(struct headers *h, struct bytes name, struct bytes value)
{
    if (http_is_word(name, "Host")) {
        h->hosts += value.size > 0 ? 1 : 2;
    } else if (http_is_word(name, "Upgrade")) {
        h->upgrades++;
        h->to_websocket |= http_lists(value, "websocket", http_is_word);
    } else if (http_is_word(name, "Connection")) {
        h->connection |= http_lists(value, "upgrade", http_is_word);
    } else if (http_is_word(name, "Sec-WebSocket-Key")) {
        h->keys++;
        h->key = value;
    } else if (http_is_word(name, "Sec-WebSocket-Version")) {
        h->versions++;
        h->version_13 = http_is(value, "13");
    } else if (http_is_word(name, "Sec-WebSocket-Protocol")) {
        h->named |= http_lists(value, UPGRADE_PROTOCOL, http_is);
    } else if (http_is_word(name, "Origin")) {
        h->origins++;
        h->origin = value;
    } else if (http_is_word(name, "Transfer-Encoding")) {
        h->body = true;
    } else if (http_is_word(name, "Content-Length")) {
        h->body |= !http_is(value, "0");
    }
}

static bool is_key(struct bytes key)
{
    uint8_t nonce[NONCE_SIZE];
    size_t size = 0;

    return key.size == UPGRADE_KEY_SIZE &&
           base64_get(key, BASE64_PLAIN, nonce, sizeof nonce, &size) == ERR_OK &&
           size == NONCE_SIZE;
}

/* ---- the request ---- */

static enum upgrade_result check_request_line(struct bytes line, const struct upgrade_rules *rules)
{
    struct bytes method;
    struct bytes target;
    struct bytes version;

    if (!http_request_line(line, &method, &target, &version) || !http_is(version, "HTTP/1.1")) {
        return UPGRADE_BAD_REQUEST;
    }
    if (!http_is(method, "GET")) {
        return UPGRADE_METHOD;
    }
    return http_is(http_cut(&target, '?'), rules->path) ? UPGRADE_GOOD : UPGRADE_NOT_FOUND;
}

static enum upgrade_result check_headers(const struct headers *h, const struct upgrade_rules *rules)
{
    const struct bytes allowed = bytes_of(rules->origins, strlen(rules->origins));

    if (h->hosts != 1 || h->body || h->origins > 1) {
        return UPGRADE_BAD_REQUEST;
    }
    if (!h->to_websocket) {
        return UPGRADE_REQUIRED;
    }
    if (!h->connection || h->versions > 1) {
        return UPGRADE_BAD_REQUEST;
    }
    if (!h->version_13) {
        return UPGRADE_REQUIRED;
    }
    if (h->keys != 1 || !is_key(h->key)) {
        return UPGRADE_BAD_REQUEST;
    }
    // Only browsers say where a page is from, and only they can be made to come by a foreign one.
    if (allowed.size > 0 && h->origins == 1) {
        char origin[256];

        if (h->origin.size >= sizeof origin) {
            return UPGRADE_FORBIDDEN;
        }
        memcpy(origin, h->origin.data, h->origin.size);
        origin[h->origin.size] = '\0';
        return http_lists(allowed, origin, http_is_word) ? UPGRADE_GOOD : UPGRADE_FORBIDDEN;
    }
    return UPGRADE_GOOD;
}

enum upgrade_result upgrade_parse(struct bytes in, size_t *scanned,
                                  const struct upgrade_rules *rules, struct upgrade *out)
{
    const size_t most = in.size < UPGRADE_SIZE_MAX ? in.size : UPGRADE_SIZE_MAX;
    const size_t end = http_find_end(bytes_of(in.data, most), scanned);
    struct headers headers = {0};
    struct bytes line;
    struct bytes name;
    struct bytes value;

    if (end == 0) {
        if (!http_begins_well(in)) {
            return UPGRADE_BAD_REQUEST;
        }
        return in.size < UPGRADE_SIZE_MAX ? UPGRADE_MORE : UPGRADE_TOO_LARGE;
    }
    struct bytes text = bytes_of(in.data, end - 2);
    if (!http_next_line(&text, &line)) {
        return UPGRADE_BAD_REQUEST;
    }
    const enum upgrade_result refused = check_request_line(line, rules);
    if (refused != UPGRADE_GOOD) {
        return refused;
    }
    while (text.size > 0) {
        if (!http_next_line(&text, &line) || !http_header(line, &name, &value)) {
            return UPGRADE_BAD_REQUEST;
        }
        take_header(&headers, name, value);
    }
    const enum upgrade_result result = check_headers(&headers, rules);
    if (result == UPGRADE_GOOD) {
        *out = (struct upgrade){.size = end, .key = headers.key, .named = headers.named};
    }
    return result;
}

/* ---- answers ---- */

static void put_text(struct buffer *out, const char *text)
{
    buffer_put(out, text, strlen(text));
}

void upgrade_put_answer(struct buffer *out, const struct upgrade *upgrade)
{
    char accept[UPGRADE_ACCEPT_SIZE + 1];

    upgrade_accept(upgrade->key, accept);
    put_text(out,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: ");
    put_text(out, accept);
    put_text(out, "\r\n");
    if (upgrade->named) {
        put_text(out, "Sec-WebSocket-Protocol: " UPGRADE_PROTOCOL "\r\n");
    }
    put_text(out, "\r\n");
}

void upgrade_put_refusal(struct buffer *out, enum upgrade_result why, uint32_t retry_s)
{
    static const struct {
        const char *status;
        const char *header;
        const char *text;
    } answers[] = {
        [UPGRADE_BAD_REQUEST] = {"400 Bad Request", "", "This is not a WebSocket request.\n"},
        [UPGRADE_FORBIDDEN] = {"403 Forbidden", "", "Pages of this origin may not connect.\n"},
        [UPGRADE_NOT_FOUND] = {"404 Not Found", "", "There is nothing at this path.\n"},
        [UPGRADE_METHOD] = {"405 Method Not Allowed", "Allow: GET\r\n", "Only GET, please.\n"},
        [UPGRADE_TIMEOUT] = {"408 Request Timeout", "", "The request was not complete in time.\n"},
        [UPGRADE_REQUIRED] = {"426 Upgrade Required",
                              "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
                              "This address serves WebSockets of version 13.\n"},
        [UPGRADE_TOO_LARGE] = {"431 Request Header Fields Too Large",
                               "",
                               "The request is larger than 8 KiB.\n"},
        [UPGRADE_FULL] = {"503 Service Unavailable", "", "Too many connections.\n"},
    };
    char head[256];
    char retry[64] = "";

    if (why == UPGRADE_FULL) {
        (void)snprintf(retry, sizeof retry, "Retry-After: %" PRIu32 "\r\n", retry_s);
    }
    ASSERT(answers[why].text != NULL);
    (void)snprintf(head,
                   sizeof head,
                   "HTTP/1.1 %s\r\n%s%sConnection: %sclose\r\nContent-Type: text/plain\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   answers[why].status,
                   answers[why].header,
                   retry,
                   why == UPGRADE_REQUIRED ? "Upgrade, " : "",
                   strlen(answers[why].text));
    put_text(out, head);
    put_text(out, answers[why].text);
}
