/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bot does: a line for each thing, from the top; `#` begins a comment, `;` ends a line too.
 *
 *     login                           first, if at all: a bot begins with it anyway
 *     request PAYLOAD [every TIME]    ask its actor: once, or from now on so often
 *     notify PAYLOAD [every TIME]     … without an answer
 *     wait TIME                       what is done `every` so often goes on
 *     drop [N%/min] [resume after TIME | resume within TIME]
 *                                     the line: now, or from now on by chance so often
 *     leave                           it is through, when it has its answers
 *     repeat                          from the top; a `wait` must stand before it
 *
 * A script that ends without `leave` goes on with what it does `every` so often. PAYLOAD is a word,
 * or "words in quotes"; in it `{n}` is the request's name and `{bot}` the bot's number. TIME is as
 * 300ms, 2s, 1min.
 *
 * Pure.
 */
#ifndef LOAD_SCRIPT_H
#define LOAD_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCRIPT_LINES_MAX = 64,
    SCRIPT_TASKS_MAX = 8, /* lines with `every` */
    SCRIPT_PAYLOAD_MAX = 1024,
    SCRIPT_WHY_SIZE = 160,
};

enum script_act {
    SCRIPT_REQUEST,
    SCRIPT_NOTIFY,
    SCRIPT_WAIT,
    SCRIPT_DROP,
    SCRIPT_LEAVE,
    SCRIPT_REPEAT,
};

struct script_line {
    enum script_act act;
    uint32_t every_ms;   /* REQUEST, NOTIFY; 0 = once */
    uint8_t task;        /* with `every`: which of them, 0.. */
    uint32_t percent;    /* DROP: of all bots each minute; 0 = now */
    uint32_t min_ms;     /* WAIT: for so long; DROP: away for so long at least … */
    uint32_t max_ms;     /* … and at most */
    const char *payload; /* owned by the script; ends with 0 */
};

struct script {
    struct script_line line[SCRIPT_LINES_MAX];
    uint32_t count;
    uint32_t tasks;
    char *text[SCRIPT_LINES_MAX]; /* owned: of payloads */
    uint32_t texts;
};

/* Read it. False: `*number` is the line at fault, from 1, and `why` what is wrong with it; the
 * script is then empty. */
bool script_parse(struct script *s, const char *text, uint32_t *number, char why[SCRIPT_WHY_SIZE]);

void script_fini(struct script *s);

#endif
