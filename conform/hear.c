/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a script that wait for what the gateway must say.
 */
#include "conform/conform.h"

#include "base/assert.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 48, CLOSE_NORMAL = 1000 };

bool conform_fail(struct play *p, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(p->why, sizeof p->why, format, arguments);
    va_end(arguments);
    return false;
}

/* "07 00000b  0102…", cut. */
static const char *show(const struct packet *packet, char text[3 * SHOWN_MAX + 32])
{
    size_t at = (size_t)snprintf(text, 32, "%02x %06zx ", packet->type, packet->body.size);

    for (size_t i = 0; i < packet->body.size && i < SHOWN_MAX; i++) {
        at += (size_t)snprintf(text + at, 4, " %02x", packet->body.data[i]);
    }
    if (packet->body.size > SHOWN_MAX) {
        (void)snprintf(text + at, 8, " ...");
    }
    return text;
}

bool conform_got(struct play *p, enum socket_result result, const char *want)
{
    switch (result) {
    case SOCKET_GOT:
        return true;
    case SOCKET_CLOSED:
        if (p->socket.close_code != 0) {
            return conform_fail(p,
                                "wanted %s; the gateway closed the WebSocket with %u",
                                want,
                                p->socket.close_code);
        }
        return conform_fail(p, "wanted %s; the gateway closed the connection", want);
    case SOCKET_SILENT:
        return conform_fail(
            p, "wanted %s; nothing came in %" PRIu32 " ms", want, p->target->timeout_ms);
    case SOCKET_HALF:
        return conform_fail(
            p, "wanted %s; the gateway closed the connection within a packet", want);
    case SOCKET_WRONG:
        return conform_fail(p, "wanted %s; got %s", want, p->socket.why);
    }
    UNREACHABLE();
}

/* The next packet; `want` is for the complaint. */
static bool next(struct play *p, const char *want, struct packet *packet)
{
    return conform_got(p, conform_packet(&p->socket, p->target->timeout_ms, packet), want);
}

/* Something else than what was wanted. A goaway where none was asked for is a gateway that has no
 * room. */
static bool wrong(struct play *p, const char *want, const struct packet *packet)
{
    struct notice_packet notice;
    char text[3 * SHOWN_MAX + 32];

    if (packet->type == PACKET_GOAWAY && packet_get_notice(packet->body, &notice) == ERR_OK) {
        p->turned_away_ms = notice.number > 0 ? notice.number : 1;
    }
    if (packet->type == PACKET_KICK && packet_get_notice(packet->body, &notice) == ERR_OK) {
        return conform_fail(p,
                            "wanted %s; got a kick with %" PRIu32 " '%.*s'",
                            want,
                            notice.number,
                            (int)notice.text.size,
                            (const char *)notice.text.data);
    }
    return conform_fail(p, "wanted %s; got %s", want, show(packet, text));
}

/* Those of a session that is kept come each once, in order, from the first that it said. */
static bool count_push(struct play *p, const struct packet *packet)
{
    struct push_packet push;

    if (packet_get_push(packet->body, &push) != ERR_OK) {
        return wrong(p, "a push with a sequence", packet);
    }
    if (p->session.held && push.sequence != p->session.next) {
        return conform_fail(p,
                            "wanted push %" PRIu64 " of the session; got push %" PRIu64,
                            p->session.next,
                            push.sequence);
    }
    p->session.next = push.sequence + 1;
    return true;
}

/* The next packet that isn't one that may come at any time; but a push, if that is wanted. */
static bool next_wanted(struct play *p, const char *want, bool push, struct packet *packet)
{
    while (next(p, want, packet)) {
        if (packet->type == PACKET_PING) {
            struct buffer out = {0};

            packet_put_ping(&out, PACKET_PONG, packet->body);
            conform_off(p, &out);
        } else if (packet->type == PACKET_PUSH) {
            if (!count_push(p, packet)) {
                return false;
            }
            if (push) {
                return true;
            }
        } else {
            return true;
        }
    }
    return false;
}

static bool next_answer(struct play *p, const char *want, struct packet *packet)
{
    return next_wanted(p, want, false, packet);
}

bool conform_answer(struct play *p, const char *want, struct response_packet *out)
{
    struct packet packet;

    return next_answer(p, want, &packet) &&
           ((packet.type == PACKET_RESPONSE && packet_get_response(packet.body, out) == ERR_OK) ||
            wrong(p, want, &packet));
}

bool conform_pushed(struct play *p)
{
    struct packet packet;

    do {
        if (!next_wanted(p, "a push", true, &packet)) {
            return false;
        }
    } while (packet.type == PACKET_RESPONSE);
    return packet.type == PACKET_PUSH || wrong(p, "a push", &packet);
}

/* ---- the lines ---- */

static bool matches(const char *pattern, const struct packet *packet)
{
    struct buffer have = {0};
    const uint8_t head[PACKET_HEADER] = {packet->type,
                                         (uint8_t)(packet->body.size >> 16),
                                         (uint8_t)(packet->body.size >> 8),
                                         (uint8_t)packet->body.size};
    size_t at = 0;
    bool same = true;
    bool open = false;

    buffer_put(&have, head, sizeof head);
    buffer_put(&have, packet->body.data, packet->body.size);
    for (; *pattern != '\0' && same && !open; pattern++) {
        if (*pattern == '*') {
            open = true;
        } else if (!isspace((unsigned char)*pattern)) {
            char hex[3] = "";

            (void)snprintf(hex, sizeof hex, "%02x", at < have.size ? have.data[at] : 0);
            same =
                at < have.size && (strncmp(pattern, "..", 2) == 0 || strncmp(pattern, hex, 2) == 0);
            at++;
            pattern++;
        }
    }
    same = same && (open || at == have.size);
    buffer_fini(&have);
    return same;
}

static bool hear_packet(struct play *p, const char *rest)
{
    struct packet packet;

    return next(p, rest, &packet) && (matches(rest, &packet) || wrong(p, rest, &packet));
}

static bool hear_greeted(struct play *p, const char *rest)
{
    struct packet packet;

    (void)rest;
    if (!next(p, "a hello-ack", &packet)) {
        return false;
    }
    if (packet.type != PACKET_HELLO_ACK || packet_get_hello_ack(packet.body, &p->ack) != ERR_OK) {
        return wrong(p, "a hello-ack", &packet);
    }
    if (p->ack.version != PACKET_VERSION || p->ack.packet_size_max < 512 ||
        p->ack.requests_max == 0) {
        return wrong(p, "a hello-ack of version 1, with usable limits", &packet);
    }
    return true;
}

static bool hear_known(struct play *p, const char *rest)
{
    struct packet packet;
    struct auth_ok_packet ok;

    (void)rest;
    if ((p->ack.flags & PACKET_ACK_AUTH) == 0) {
        return true;
    }
    if (!next_answer(p, "an auth-ok", &packet)) {
        return false;
    }
    if (packet.type != PACKET_AUTH_OK || packet_get_auth_ok(packet.body, &ok) != ERR_OK) {
        return wrong(p, "an auth-ok", &packet);
    }
    p->target->kind = ok.kind;
    p->target->id_size = ok.id.size;
    memcpy(p->target->id, ok.id.data, ok.id.size);
    return true;
}

/* Is `status` of "0,1,6", or "any" that the page has? */
static bool is_of(const char *list, unsigned status)
{
    if (strcmp(list, "any") == 0) {
        return status <= STATUS_RATE_LIMITED;
    }
    for (const char *at = list; at != NULL && *at != '\0'; at = strchr(at, ',')) {
        at += *at == ',';
        if (strtoul(at, NULL, 10) == status) {
            return true;
        }
    }
    return false;
}

/* "R LIST" */
static bool hear_status(struct play *p, const char *rest)
{
    struct packet packet;
    struct response_packet r;
    char want[96];
    char *list = NULL;
    const uint32_t request = (uint32_t)strtoul(rest, &list, 10);

    list += strspn(list, " ");
    (void)snprintf(want, sizeof want, "a response to %" PRIu32 " with status %s", request, list);
    if (!next_answer(p, want, &packet)) {
        return false;
    }
    if (packet.type != PACKET_RESPONSE || packet_get_response(packet.body, &r) != ERR_OK ||
        r.request != request || !is_of(list, r.status)) {
        return wrong(p, want, &packet);
    }
    const bool may_retry = r.status == STATUS_OVERLOADED || r.status == STATUS_MOVING ||
                           r.status == STATUS_RATE_LIMITED;
    return may_retry || r.retry_ms == 0 || wrong(p, "no retry hint with this status", &packet);
}

/* "R COUNT": those that ran come in order; one that didn't may be told so at once. */
static bool hear_answers(struct play *p, const char *rest)
{
    char *end = NULL;
    const uint32_t first = (uint32_t)strtoul(rest, &end, 10);
    const uint32_t count = (uint32_t)strtoul(end, NULL, 10);
    uint32_t least = first; // that may run next

    for (uint32_t i = 0; i < count; i++) {
        struct packet packet;
        struct response_packet r;

        if (!next_answer(p, "a response", &packet)) {
            return false;
        }
        if (packet.type != PACKET_RESPONSE || packet_get_response(packet.body, &r) != ERR_OK ||
            r.request < first || r.request >= first + count) {
            return wrong(p, "a response to one of the requests", &packet);
        }
        if (r.status == STATUS_OK && r.request < least) {
            return wrong(p, "responses in the order of the requests", &packet);
        }
        least = r.status == STATUS_OK ? r.request + 1 : least;
    }
    return true;
}

static bool hear_silence(struct play *p, const char *rest)
{
    struct packet packet;
    struct buffer out = {0};

    (void)rest;
    packet_put_ping(&out, PACKET_PING, bytes_of("silence", 7));
    conform_off(p, &out);
    if (!next_answer(p, "a pong and nothing before", &packet)) {
        return false;
    }
    return (packet.type == PACKET_PONG && bytes_equal(packet.body, bytes_of("silence", 7))) ||
           wrong(p, "a pong and nothing before", &packet);
}

bool conform_closes(struct play *p, uint16_t code)
{
    struct packet packet;

    switch (conform_packet(&p->socket, p->target->timeout_ms, &packet)) {
    case SOCKET_GOT:
        return wrong(p, "the end, and nothing before", &packet);
    case SOCKET_CLOSED:
        return !p->socket.framed || p->socket.close_code == code ||
               conform_fail(
                   p, "wanted a close with %u; its code is %u", code, p->socket.close_code);
    case SOCKET_SILENT:
        return conform_fail(p, "wanted the end, but the connection stays open");
    case SOCKET_HALF:
        return conform_fail(p, "the gateway closed the connection within a packet");
    case SOCKET_WRONG:
        return conform_fail(p, "wanted the end; got %s", p->socket.why);
    }
    UNREACHABLE();
}

/* "FIRST [LAST]" */
static bool hear_kick(struct play *p, const char *rest)
{
    struct packet packet;
    struct notice_packet notice;
    char want[64];
    char *end = NULL;
    const uint32_t first = (uint32_t)strtoul(rest, &end, 10);
    const uint32_t last = *end == '\0' ? first : (uint32_t)strtoul(end, NULL, 10);

    (void)snprintf(want, sizeof want, "a kick with %s", rest);
    do { // a ping is not answered: it may be silence that it is to kick
        if (!next(p, want, &packet) || (packet.type == PACKET_PUSH && !count_push(p, &packet))) {
            return false;
        }
    } while (packet.type == PACKET_PING || packet.type == PACKET_PUSH);
    if (packet.type != PACKET_KICK || packet_get_notice(packet.body, &notice) != ERR_OK ||
        notice.number < first || notice.number > last) {
        return wrong(p, want, &packet);
    }
    return conform_closes(p, CLOSE_NORMAL);
}

static bool hear_gone(struct play *p, const char *rest)
{
    struct packet packet;

    (void)rest;
    for (;;) {
        switch (conform_packet(&p->socket, p->target->timeout_ms, &packet)) {
        case SOCKET_GOT:
            break;
        case SOCKET_CLOSED:
            return true;
        case SOCKET_SILENT:
            return conform_fail(p, "the connection stays open");
        case SOCKET_HALF:
            return conform_fail(p, "the gateway closed the connection within a packet");
        case SOCKET_WRONG:
            return conform_fail(p, "wanted the end; got %s", p->socket.why);
        }
    }
}

enum line_result conform_hear(struct play *p, const char *word, const char *rest)
{
    static const struct {
        const char *word;
        bool (*hear)(struct play *p, const char *rest);
    } hears[] = {{"<", hear_packet},
                 {"greeted", hear_greeted},
                 {"known", hear_known},
                 {"status", hear_status},
                 {"answers", hear_answers},
                 {"silence", hear_silence},
                 {"kick", hear_kick},
                 {"gone", hear_gone}};

    for (size_t i = 0; i < sizeof hears / sizeof hears[0]; i++) {
        if (strcmp(word, hears[i].word) == 0) {
            return hears[i].hear(p, rest) ? LINE_DONE : LINE_FAILED;
        }
    }
    return LINE_UNKNOWN;
}
