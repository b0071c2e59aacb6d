/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays a vector: connects, goes as far as it begins, and does line by line what
 * its script says.
 */
#include "conform/conform.h"

#include "base/assert.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 2048, TURNS_MAX = 20, TURN_WAIT_MAX_MS = 10000 };

static const char upgrade[] =
    "http GET {path} HTTP/1.1|Host: {host}|Upgrade: websocket|Connection: Upgrade|"
    "Sec-WebSocket-Key: {key}|Sec-WebSocket-Version: 13|\nupgraded";
static const char hello[] = "> 01 000006  5248 01 01 0000\ngreeted";
static const char auth[] = "token good\nknown";

/* One line: a word, and the rest. */
static bool do_line(struct play *p, char *line)
{
    static enum line_result (*const kinds[])(struct play *, const char *, const char *) = {
        conform_say, conform_hear, conform_sit, conform_http, conform_ws};
    char *rest = line + strcspn(line, " ");

    if (*rest != '\0') {
        *rest++ = '\0';
        rest += strspn(rest, " ");
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const enum line_result result = kinds[i](p, line, rest);

        if (result != LINE_UNKNOWN) {
            return result == LINE_DONE;
        }
    }
    UNREACHABLE();
}

static bool do_script(struct play *p, const char *script)
{
    while (*script != '\0') {
        const size_t size = strcspn(script, "\n");
        char line[LINE_SIZE];

        ASSERT(size < sizeof line);
        memcpy(line, script, size);
        line[size] = '\0';
        script += size + (script[size] == '\n');
        if (!do_line(p, line)) {
            return false;
        }
        if (p->socket.too_large) {
            p->skipped = true;
            return conform_fail(p, "a frame of skynet's holds less");
        }
    }
    return true;
}

static bool begin(struct play *p, enum vector_from from)
{
    p->ack = p->target->ack;
    if (from >= FROM_START && p->target->where.websocket && !do_script(p, upgrade)) {
        return false;
    }
    if (from >= FROM_HELLO && !do_script(p, hello)) {
        return false;
    }
    return from < FROM_AUTH || (p->ack.flags & PACKET_ACK_AUTH) == 0 || do_script(p, auth);
}

static bool connect_from(struct play *p, enum vector_from from)
{
    if (!conform_open(&p->socket, &p->target->where, p->target->trust, p->target->timeout_ms)) {
        return conform_fail(p, "%s", p->socket.why);
    }
    return begin(p, from);
}

bool conform_again(struct play *p)
{
    p->session.held = false;
    conform_close(&p->socket);
    return connect_from(p, FROM_AUTH);
}

static bool play_once(struct play *p, enum vector_from from, const char *script)
{
    const bool right = connect_from(p, from) && do_script(p, script);

    conform_close(&p->socket);
    conform_close(&p->other);
    buffer_fini(&p->session.answer);
    return right;
}

/* A gateway that has no room says when to come again: that is no fault of what is tried. */
static bool play(struct play *p, struct conform_target *target, enum vector_from from,
                 const char *script)
{
    for (int turn = 0;; turn++) {
        *p = (struct play){.target = target, .socket.fd = -1, .other.fd = -1};
        if (play_once(p, from, script)) {
            return true;
        }
        if (p->turned_away_ms == 0 || turn == TURNS_MAX) {
            return false;
        }
        (void)poll(NULL,
                   0,
                   p->turned_away_ms < TURN_WAIT_MAX_MS ? (int)p->turned_away_ms
                                                        : TURN_WAIT_MAX_MS);
    }
}

enum play_result conform_play(struct play *p, struct conform_target *target, const struct vector *v)
{
    return play(p, target, v->from, v->script) ? PLAY_RIGHT
           : p->skipped                        ? PLAY_SKIPPED
                                               : PLAY_WRONG;
}

bool conform_probe(struct play *p, struct conform_target *target)
{
    if (!play(p, target, FROM_HELLO, "")) {
        return false;
    }
    target->ack = p->ack;
    if (target->slow) {
        // As long as the gateway waits itself: 5 s for a hello, two heartbeats for anything.
        const uint32_t heartbeats_ms = 3 * target->ack.heartbeat_ms;

        target->timeout_ms += heartbeats_ms > 10000 ? heartbeats_ms : 10000;
    }
    return true;
}

/* A part of conform_skips(): what the gateway is. */
static const char *skips_of(const struct conform_target *target, enum vector_of of)
{
    const bool wants_auth = (target->ack.flags & PACKET_ACK_AUTH) != 0;

    switch (of) {
    case OF_ALL:
        return NULL;
    case OF_KEYS:
        return wants_auth ? NULL : "the gateway asks for no token";
    case OF_OPEN:
        return wants_auth ? "the gateway asks for a token" : NULL;
    case OF_KEYS_FILE:
        return !wants_auth               ? "the gateway asks for no token"
               : target->keys.count == 0 ? "needs the gateway's secrets: --keys"
                                         : NULL;
    case OF_PATIENT:
        return target->slow ? NULL : "takes minutes: --slow";
    case OF_PATIENT_KEYS:
        return !target->slow ? "takes minutes: --slow"
               : wants_auth  ? NULL
                             : "the gateway asks for no token";
    case OF_PUSH:
        return target->pushes[0] != '\0' ? NULL : "needs an actor that pushes: --pushes";
    case OF_WS:
        return target->where.websocket ? NULL : "needs a WebSocket: ws://";
    case OF_PATIENT_WS:
        return !target->where.websocket ? "needs a WebSocket: ws://"
               : target->slow           ? NULL
                                        : "takes minutes: --slow";
    case OF_SKYNET:
        return target->where.skynet ? NULL : "needs skynet's frames: skynet://";
    }
    UNREACHABLE();
}

const char *conform_skips(const struct conform_target *target, const struct vector *v)
{
    const bool wants_auth = (target->ack.flags & PACKET_ACK_AUTH) != 0;
    const bool has_token = target->token[0] != '\0' || target->keys.count > 0;
    const bool shows = v->from == FROM_AUTH || strstr(v->script, "token good") != NULL ||
                       strstr(v->script, "token forged") != NULL;
    const char *why = skips_of(target, v->of);

    if (why == NULL && wants_auth && !has_token && shows) {
        return "needs a token: --token, or --keys";
    }
    return why;
}
