/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a script that are of a WebSocket's frames:
 *
 *     frame FIRST [HEX]   send a frame, masked: its first byte and its payload
 *     bare FIRST [HEX]    send one that isn't masked, which clients must not
 *     pings COUNT         send so many of WebSocket's pings in one write
 *     pong [HEX]          wait for the pong of WebSocket that brings this
 *     closed CODE         wait for a close with this code and the end; pongs may come before
 *
 * Its handshake is http.c's.
 */
#include "conform/conform.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PINGS_MASK = 0x5a };

static bool put(struct play *p, const char *rest, bool masked)
{
    struct buffer payload = {0};
    char *end = NULL;
    const uint8_t first = (uint8_t)strtoul(rest, &end, 16);

    conform_hex(&payload, end);
    conform_send_frame(&p->socket, first, masked, buffer_bytes(&payload));
    buffer_fini(&payload);
    return true;
}

static bool say_frame(struct play *p, const char *rest)
{
    return put(p, rest, true);
}

static bool say_bare(struct play *p, const char *rest)
{
    return put(p, rest, false);
}

static bool say_pings(struct play *p, const char *rest)
{
    static const uint8_t mask[4] = {PINGS_MASK};
    const unsigned long count = strtoul(rest, NULL, 10);
    struct buffer out = {0};

    for (unsigned long i = 0; i < count; i++) {
        wsframe_put(&out, WSFRAME_PING | WSFRAME_FINAL, mask, bytes_of("x", 1));
    }
    conform_send(&p->socket, buffer_bytes(&out));
    buffer_fini(&out);
    return true;
}

static bool hear_pong(struct play *p, const char *rest)
{
    struct buffer want = {0};
    struct wsframe frame;

    if (!conform_got(p,
                     conform_next_frame(&p->socket, p->target->timeout_ms, &frame),
                     "a WebSocket's pong")) {
        return false;
    }
    conform_hex(&want, rest);
    const bool right =
        frame.opcode == WSFRAME_PONG && bytes_equal(frame.payload, buffer_bytes(&want));

    buffer_fini(&want);
    return right ||
           conform_fail(p,
                        "wanted a WebSocket's pong with %s; got a frame of opcode %u and %zu bytes",
                        rest,
                        frame.opcode,
                        frame.payload.size);
}

static bool hear_closed(struct play *p, const char *rest)
{
    return conform_closes(p, (uint16_t)strtoul(rest, NULL, 10));
}

enum line_result conform_ws(struct play *p, const char *word, const char *rest)
{
    static const struct {
        const char *word;
        bool (*run)(struct play *p, const char *rest);
    } lines[] = {{"frame", say_frame},
                 {"bare", say_bare},
                 {"pings", say_pings},
                 {"pong", hear_pong},
                 {"closed", hear_closed}};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(word, lines[i].word) == 0) {
            return lines[i].run(p, rest) ? LINE_DONE : LINE_FAILED;
        }
    }
    return LINE_UNKNOWN;
}
