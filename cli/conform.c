/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays a vector: connects, goes as far as it begins, and does line by line what
 * its script says.
 */
#include "cli/conform.h"

#include "base/assert.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 2048, TURNS_MAX = 20, TURN_WAIT_MAX_MS = 10000 };

static const char hello[] = "> 01 000006  5248 01 01 0000\ngreeted";

/* One line: a word, and the rest. */
static bool do_line(struct play *p, char *line)
{
    char *rest = line + strcspn(line, " ");

    if (*rest != '\0') {
        *rest++ = '\0';
        rest += strspn(rest, " ");
    }
    enum line_result result = conform_say(p, line, rest);

    result = result == LINE_UNKNOWN ? conform_hear(p, line, rest) : result;
    ASSERT(result != LINE_UNKNOWN);
    return result == LINE_DONE;
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
    }
    return true;
}

static bool begin(struct play *p, enum vector_from from)
{
    if (from == FROM_START) {
        p->ack = p->target->ack;
        return true;
    }
    if (!do_script(p, hello)) {
        return false;
    }
    if (from == FROM_HELLO || (p->ack.flags & PACKET_ACK_AUTH) == 0) {
        return true;
    }
    return do_script(p, "token good\nknown");
}

static bool play_once(struct play *p, enum vector_from from, const char *script)
{
    const bool open = conform_open(&p->socket, p->target->address, p->target->timeout_ms);

    if (!open) {
        (void)snprintf(p->why, sizeof p->why, "%s", p->socket.why);
    }
    const bool right = open && begin(p, from) && do_script(p, script);

    conform_close(&p->socket);
    return right;
}

/* A gateway that has no room says when to come again: that is no fault of what is tried. */
static bool play(struct play *p, enum vector_from from, const char *script)
{
    for (int turn = 0;; turn++) {
        p->turned_away_ms = 0;
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

bool conform_play(struct play *p, struct conform_target *target, const struct vector *v)
{
    *p = (struct play){.target = target};
    return play(p, v->from, v->script);
}

bool conform_probe(struct play *p, struct conform_target *target)
{
    *p = (struct play){.target = target};
    if (!play(p, FROM_HELLO, "")) {
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

const char *conform_skips(const struct conform_target *target, const struct vector *v)
{
    const bool wants_auth = (target->ack.flags & PACKET_ACK_AUTH) != 0;
    const bool has_token = target->token[0] != '\0' || target->keys.count > 0;

    if ((v->of == OF_PATIENT || v->of == OF_PATIENT_KEYS) && !target->slow) {
        return "it takes a while: --slow";
    }
    if (v->of == OF_OPEN && wants_auth) {
        return "the gateway wants an auth";
    }
    if (v->of != OF_ALL && v->of != OF_OPEN && v->of != OF_PATIENT && !wants_auth) {
        return "the gateway wants no auth";
    }
    if (v->of == OF_KEYS_FILE && target->keys.count == 0) {
        return "it takes the gateway's secrets: --keys";
    }
    const bool shows = v->from == FROM_AUTH || strstr(v->script, "token good") != NULL ||
                       strstr(v->script, "token forged") != NULL;

    if (wants_auth && !has_token && shows) {
        return "it takes a token: --token, or --keys";
    }
    return NULL;
}
