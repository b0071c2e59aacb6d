/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a script that are of HTTP, with which a WebSocket begins:
 *
 *     http TEXT           send a request, "|" ends a line. {path} {host} {key} are ours, {long} is
 *                         9000 letters
 *     http-drip TEXT      the same, byte by byte
 *     http-part TEXT      without the empty line that ends it
 *     raw HEX             send these bytes as they are
 *     upgraded [NAME]     wait for what makes it a WebSocket, of this protocol
 *     refused STATUS      wait for this answer, and the end behind it
 */
#include "conform/conform.h"

#include "base/base64.h"
#include "base/random.h"
#include "gateway/protocol/upgrade.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEY_SIZE = 16, LONG_SIZE = 9000, ANSWER_MAX = 16384, STATUS_FULL = 503, SHOWN = 80 };

/* ---- requests ---- */

/* Another one each time, of letters that both alphabets have. */
static void draw_key(struct play *p)
{
    struct buffer text = {0};
    uint8_t key[KEY_SIZE];

    random_fill(key, sizeof key);
    base64_put(&text, bytes_of(key, sizeof key));
    for (size_t i = 0; i < text.size; i++) {
        text.data[i] = (uint8_t)(text.data[i] == '-'   ? '+'
                                 : text.data[i] == '_' ? '/'
                                                       : text.data[i]);
    }
    (void)snprintf(p->key, sizeof p->key, "%.*s==", (int)text.size, (const char *)text.data);
    buffer_fini(&text);
}

/* The place at `at` and how long it is there; 0: it is none. */
static size_t put_place(const struct play *p, struct buffer *out, const char *at)
{
    const struct {
        const char *name;
        const char *is;
    } places[] = {
        {"{path}", p->target->where.path}, {"{host}", p->target->where.host}, {"{key}", p->key}};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strncmp(at, places[i].name, strlen(places[i].name)) == 0) {
            buffer_put(out, places[i].is, strlen(places[i].is));
            return strlen(places[i].name);
        }
    }
    if (strncmp(at, "{long}", 6) == 0) {
        memset(buffer_reserve(out, LONG_SIZE), 'x', LONG_SIZE);
        out->size += LONG_SIZE;
        return 6;
    }
    return 0;
}

static void put_http(struct play *p, struct buffer *out, const char *text)
{
    draw_key(p);
    while (*text != '\0') {
        const size_t place = put_place(p, out, text);

        if (place > 0) {
            text += place;
        } else if (*text == '|') {
            buffer_put(out, "\r\n", 2);
            text++;
        } else {
            buffer_put(out, text++, 1);
        }
    }
}

static bool say_part(struct play *p, const char *text)
{
    struct buffer out = {0};

    put_http(p, &out, text);
    conform_send(&p->socket, buffer_bytes(&out));
    buffer_fini(&out);
    return true;
}

static bool say_http(struct play *p, const char *text)
{
    struct buffer out = {0};

    put_http(p, &out, text);
    buffer_put(&out, "\r\n", 2);
    conform_send(&p->socket, buffer_bytes(&out));
    buffer_fini(&out);
    return true;
}

static bool say_drip(struct play *p, const char *text)
{
    struct buffer out = {0};

    put_http(p, &out, text);
    buffer_put(&out, "\r\n", 2);
    for (size_t i = 0; i < out.size; i++) {
        conform_send(&p->socket, bytes_of(out.data + i, 1));
    }
    buffer_fini(&out);
    return true;
}

static bool say_raw(struct play *p, const char *hex)
{
    struct buffer out = {0};

    conform_hex(&out, hex);
    conform_send(&p->socket, buffer_bytes(&out));
    buffer_fini(&out);
    return true;
}

/* ---- answers ---- */

struct answer {
    char text[ANSWER_MAX]; /* up to the empty line, as a text */
    int status;
};

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* The value of a header, without the blanks around; cut to `size`. "" if there is none. */
static const char *header(const struct answer *a, const char *name, char *value, size_t size)
{
    const size_t name_size = strlen(name);

    value[0] = '\0';
    for (const char *line = strstr(a->text, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_size) == 0 && line[name_size] == ':') {
            line += name_size + 1;
            line += strspn(line, " \t");
            (void)snprintf(value, size, "%.*s", (int)strcspn(line, "\r"), line);
            return value;
        }
    }
    return value;
}

static bool read_answer(struct play *p, const char *want, struct answer *a)
{
    static const char head[] = "HTTP/1.1 ";

    for (size_t size = 0; size < sizeof a->text - 1; size++) {
        if (!conform_got(p, conform_wait(&p->socket, p->target->timeout_ms, size + 1), want)) {
            return false;
        }
        a->text[size] = (char)p->socket.in.data[size];
        a->text[size + 1] = '\0';
        if (size >= 3 && memcmp(a->text + size - 3, "\r\n\r\n", 4) == 0) {
            p->socket.taken = size + 1;
            a->status = strncmp(a->text, head, sizeof head - 1) == 0
                            ? number(a->text + sizeof head - 1)
                            : 0;
            return true;
        }
    }
    return conform_fail(p, "wanted %s; got 16 KiB without an empty line", want);
}

/* One that has no room says when to come again. */
static bool wrong(struct play *p, const char *want, const struct answer *a)
{
    char value[SHOWN];

    if (a->status == STATUS_FULL) {
        const unsigned long retry_s =
            strtoul(header(a, "Retry-After", value, sizeof value), NULL, 10);

        p->turned_away_ms = (uint32_t)(retry_s > 0 && retry_s < 3600 ? retry_s : 1) * 1000;
    }
    return conform_fail(p, "wanted %s; got '%.*s'", want, (int)strcspn(a->text, "\r"), a->text);
}

static bool hear_upgraded(struct play *p, const char *protocol)
{
    char accept[UPGRADE_ACCEPT_SIZE + 1];
    char value[SHOWN];
    struct answer a;

    if (!read_answer(p, "the beginning of a WebSocket", &a)) {
        return false;
    }
    if (a.status != 101) {
        return wrong(p, "'HTTP/1.1 101'", &a);
    }
    upgrade_accept(bytes_of(p->key, UPGRADE_KEY_SIZE), accept);
    if (strcmp(header(&a, "Sec-WebSocket-Accept", value, sizeof value), accept) != 0) {
        return conform_fail(p, "wanted Sec-WebSocket-Accept: %s; got '%s'", accept, value);
    }
    if (strcasecmp(header(&a, "Upgrade", value, sizeof value), "websocket") != 0) {
        return conform_fail(p, "wanted Upgrade: websocket; got '%s'", value);
    }
    if (strcmp(header(&a, "Sec-WebSocket-Protocol", value, sizeof value), protocol) != 0) {
        return conform_fail(p, "wanted Sec-WebSocket-Protocol: '%s'; got '%s'", protocol, value);
    }
    if (header(&a, "Sec-WebSocket-Extensions", value, sizeof value)[0] != '\0') {
        return conform_fail(p, "wanted no extension; got '%s'", value);
    }
    conform_framed(&p->socket);
    return true;
}

static bool hear_refused(struct play *p, const char *status)
{
    char want[SHOWN];
    char value[SHOWN];
    struct answer a;

    (void)snprintf(want, sizeof want, "'HTTP/1.1 %s'", status);
    if (!read_answer(p, want, &a)) {
        return false;
    }
    if (a.status != number(status)) {
        return wrong(p, want, &a);
    }
    const size_t size = strtoul(header(&a, "Content-Length", value, sizeof value), NULL, 10);

    if (size > ANSWER_MAX) {
        return conform_fail(p, "the answer has a text of %zu bytes", size);
    }
    if (!conform_got(p, conform_wait(&p->socket, p->target->timeout_ms, size), "its text")) {
        return false;
    }
    p->socket.taken = size;
    return conform_closes(p, 0);
}

enum line_result conform_http(struct play *p, const char *word, const char *rest)
{
    static const struct {
        const char *word;
        bool (*run)(struct play *p, const char *rest);
    } lines[] = {{"http", say_http},
                 {"http-drip", say_drip},
                 {"http-part", say_part},
                 {"raw", say_raw},
                 {"upgraded", hear_upgraded},
                 {"refused", hear_refused}};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(word, lines[i].word) == 0) {
            return lines[i].run(p, rest) ? LINE_DONE : LINE_FAILED;
        }
    }
    return LINE_UNKNOWN;
}
