/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the HTTP request that asks for a WebSocket, and writes the answer or
 * the refusal.
 */
#include "gateway/protocol/upgrade.h"

#include "base/assert.h"
#include "base/base64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NONCE_SIZE = 16, METHOD_MAX = 16 };

/* ---- words ---- */

static bool is_token(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is(struct bytes text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static bool is_word(struct bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp((const char *)text.data, word, text.size) == 0;
}

static struct bytes trim(struct bytes text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text = bytes_of(text.data + 1, text.size - 1);
    }
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t')) {
        text.size--;
    }
    return text;
}

/* What stands before `at`; `text` becomes what stands behind it. All, and none, without one. */
static struct bytes cut(struct bytes *text, uint8_t at)
{
    const uint8_t *found = text->size == 0 ? NULL : memchr(text->data, at, text->size);
    const size_t size = found == NULL ? text->size : (size_t)(found - text->data);
    const struct bytes before = bytes_of(text->data, size);
    const size_t used = found == NULL ? size : size + 1;

    *text = bytes_of(text->data + used, text->size - used);
    return before;
}

/* Is `word` in the list? */
static bool lists(struct bytes list, const char *word, bool (*same)(struct bytes, const char *))
{
    while (list.size > 0) {
        if (same(trim(cut(&list, ',')), word)) {
            return true;
        }
    }
    return false;
}

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
    if (is_word(name, "Host")) {
        h->hosts += value.size > 0 ? 1 : 2;
    } else if (is_word(name, "Upgrade")) {
        h->upgrades++;
        h->to_websocket |= lists(value, "websocket", is_word);
    } else if (is_word(name, "Connection")) {
        h->connection |= lists(value, "upgrade", is_word);
    } else if (is_word(name, "Sec-WebSocket-Key")) {
        h->keys++;
        h->key = value;
    } else if (is_word(name, "Sec-WebSocket-Version")) {
        h->versions++;
        h->version_13 = is(value, "13");
    } else if (is_word(name, "Sec-WebSocket-Protocol")) {
        h->named |= lists(value, UPGRADE_PROTOCOL, is);
    } else if (is_word(name, "Origin")) {
        h->origins++;
        h->origin = value;
    } else if (is_word(name, "Transfer-Encoding")) {
        h->body = true;
    } else if (is_word(name, "Content-Length")) {
        h->body |= !is(value, "0");
    }
}

/* One line without its end. False: it is no header. */
static bool take_line(struct headers *h, struct bytes line)
{
    const uint8_t *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);

    if (colon == NULL || colon == line.data) {
        return false;
    }
    const struct bytes name = cut(&line, ':');
    for (size_t i = 0; i < name.size; i++) {
        if (!is_token(name.data[i])) {
            return false; // a line that goes on with the one before begins with a space: not either
        }
    }
    for (size_t i = 0; i < line.size; i++) {
        if ((line.data[i] < ' ' && line.data[i] != '\t') || line.data[i] == 0x7f) {
            return false;
        }
    }
    take_header(h, name, trim(line));
    return true;
}

/* A line of `text`, which becomes what follows. False: it ends otherwise than with CR LF. */
static bool next_line(struct bytes *text, struct bytes *line)
{
    *line = cut(text, '\n');
    if (line->size == 0 || line->data[line->size - 1] != '\r') {
        return false;
    }
    line->size--;
    return true;
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
    const struct bytes method = cut(&line, ' ');
    struct bytes target = cut(&line, ' ');

    if (!is(line, "HTTP/1.1") || target.size == 0) {
        return UPGRADE_BAD_REQUEST;
    }
    for (size_t i = 0; i < target.size; i++) {
        if (target.data[i] <= ' ' || target.data[i] >= 0x7f) {
            return UPGRADE_BAD_REQUEST;
        }
    }
    if (!is(method, "GET")) {
        return UPGRADE_METHOD;
    }
    return is(cut(&target, '?'), rules->path) ? UPGRADE_GOOD : UPGRADE_NOT_FOUND;
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
        return lists(allowed, origin, is_word) ? UPGRADE_GOOD : UPGRADE_FORBIDDEN;
    }
    return UPGRADE_GOOD;
}

/* Where the request ends: behind the empty line. 0 = it does not yet. */
static size_t find_end(struct bytes in, size_t *scanned)
{
    for (size_t i = *scanned < 3 ? 3 : *scanned; i < in.size; i++) {
        if (in.data[i] == '\n' && memcmp(in.data + i - 3, "\r\n\r\n", 4) == 0) {
            return i + 1;
        }
    }
    *scanned = in.size;
    return 0;
}

/* It may be HTTP still: begins with a method. Who speaks TLS or packets here need not wait. */
static bool begins_well(struct bytes in)
{
    for (size_t i = 0; i < in.size && i <= METHOD_MAX; i++) {
        if (in.data[i] == ' ') {
            return i > 0;
        }
        if (!is_token(in.data[i])) {
            return false;
        }
    }
    return in.size <= METHOD_MAX;
}

enum upgrade_result upgrade_parse(struct bytes in, size_t *scanned,
                                  const struct upgrade_rules *rules, struct upgrade *out)
{
    const size_t most = in.size < UPGRADE_SIZE_MAX ? in.size : UPGRADE_SIZE_MAX;
    const size_t end = find_end(bytes_of(in.data, most), scanned);
    struct headers headers = {0};
    struct bytes line;

    if (end == 0) {
        if (!begins_well(in)) {
            return UPGRADE_BAD_REQUEST;
        }
        return in.size < UPGRADE_SIZE_MAX ? UPGRADE_MORE : UPGRADE_TOO_LARGE;
    }
    struct bytes text = bytes_of(in.data, end - 2);
    if (!next_line(&text, &line)) {
        return UPGRADE_BAD_REQUEST;
    }
    const enum upgrade_result refused = check_request_line(line, rules);
    if (refused != UPGRADE_GOOD) {
        return refused;
    }
    while (text.size > 0) {
        if (!next_line(&text, &line) || !take_line(&headers, line)) {
            return UPGRADE_BAD_REQUEST;
        }
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
