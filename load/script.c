/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the script of a bot.
 */
#include "load/script.h"

#include "base/mem.h"
#include "daemon/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 8,
    TIME_MAX_MS = 7 * 86400000,
    PERCENT_MAX = 100 * 60,
    AWAY_MS = 1000,
};

/* A statement in words, and what becomes of it. */
struct script_reader {
    struct script *script;
    const char *at;
    uint32_t number; /* of the line */
    char word[WORDS_MAX][SCRIPT_PAYLOAD_MAX + 1];
    uint32_t count;
    uint32_t next; /* word to be looked at */
    char *why;
};

static bool fail(struct script_reader *r, const char *what, const char *word)
{
    (void)snprintf(r->why,
                   SCRIPT_WHY_SIZE,
                   "%s%s%.40s%s",
                   what,
                   word[0] ? " '" : "",
                   word,
                   word[0] ? "'" : "");
    return false;
}

/* ---- words ---- */

/* One word into `out`. A quoted one may hold anything but a quote and the end of the line. */
static bool take_word(struct script_reader *r, char out[SCRIPT_PAYLOAD_MAX + 1])
{
    const bool quoted = *r->at == '"';
    size_t size = 0;

    r->at += quoted ? 1 : 0;
    while (*r->at != '\0' && *r->at != '\n' &&
           (quoted ? *r->at != '"' : !isspace((unsigned char)*r->at) && *r->at != ';')) {
        if (size == SCRIPT_PAYLOAD_MAX) {
            return fail(r, "a word is longer than 1024 bytes", "");
        }
        out[size++] = *r->at++;
    }
    out[size] = '\0';
    if (quoted && *r->at != '"') {
        return fail(r, "a quote is not closed", "");
    }
    r->at += quoted ? 1 : 0;
    return true;
}

/* The next statement, up to the end of its line or a `;`. */
static bool take_words(struct script_reader *r)
{
    r->count = 0;
    r->next = 0;
    for (;;) {
        while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
            r->at++;
        }
        if (*r->at == '#') {
            r->at += strcspn(r->at, "\n");
        }
        if (*r->at == '\0' || *r->at == '\n' || *r->at == ';') {
            return true;
        }
        if (r->count == WORDS_MAX) {
            return fail(r, "too many words, from", r->word[WORDS_MAX - 1]);
        }
        if (!take_word(r, r->word[r->count])) {
            return false;
        }
        r->count++;
    }
}

/* The next word is this one, and is passed. */
static bool has(struct script_reader *r, const char *word)
{
    const bool is = r->next < r->count && strcmp(r->word[r->next], word) == 0;

    r->next += is ? 1 : 0;
    return is;
}

static bool take_time(struct script_reader *r, const char *of, uint32_t *ms)
{
    uint64_t got = 0;

    if (r->next == r->count) {
        return fail(r, "a time is missing after", of);
    }
    const char *word = r->word[r->next++];
    if (!options_duration(word, &got) || got == 0 || got > TIME_MAX_MS) {
        return fail(r, "must be a time such as 300ms, 2s or 1min, not", word);
    }
    *ms = (uint32_t)got;
    return true;
}

/* ---- statements ---- */

static bool take_ask(struct script_reader *r, struct script_line *l)
{
    struct script *s = r->script;

    if (r->next == r->count) {
        return fail(r, "a payload is missing after", r->word[0]);
    }
    char *text = mem_copy(r->word[r->next], strlen(r->word[r->next]) + 1);
    r->next++;
    s->text[s->texts++] = text;
    l->payload = text;
    if (!has(r, "every")) {
        return true;
    }
    if (s->tasks == SCRIPT_TASKS_MAX) {
        return fail(r, "at most 8 lines with", "every");
    }
    l->task = (uint8_t)s->tasks++;
    return take_time(r, "every", &l->every_ms);
}

static bool take_percent(struct script_reader *r, struct script_line *l)
{
    char *end = NULL;

    if (r->next == r->count || strcmp(r->word[r->next], "resume") == 0) {
        return true;
    }
    const char *word = r->word[r->next++];
    const unsigned long percent = strtoul(word, &end, 10);
    if (!isdigit((unsigned char)word[0]) || strcmp(end, "%/min") != 0 || percent < 1 ||
        percent > PERCENT_MAX) {
        return fail(r, "must be a rate up to 20%/min, not", word);
    }
    l->percent = (uint32_t)percent;
    return true;
}

static bool take_drop(struct script_reader *r, struct script_line *l)
{
    l->max_ms = AWAY_MS;
    if (!take_percent(r, l) || !has(r, "resume")) {
        return r->why[0] == '\0';
    }
    if (has(r, "within")) {
        return take_time(r, "within", &l->max_ms);
    }
    if (!has(r, "after")) {
        return fail(r, "'after TIME' or 'within TIME' is missing after", "resume");
    }
    if (!take_time(r, "after", &l->max_ms)) {
        return false;
    }
    l->min_ms = l->max_ms;
    return true;
}

static bool waits(const struct script *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->line[i].act == SCRIPT_WAIT) {
            return true;
        }
    }
    return false;
}

static bool take_act(struct script_reader *r, struct script_line *l)
{
    if (has(r, "request")) {
        l->act = SCRIPT_REQUEST;
        return take_ask(r, l);
    }
    if (has(r, "notify")) {
        l->act = SCRIPT_NOTIFY;
        return take_ask(r, l);
    }
    if (has(r, "wait")) {
        l->act = SCRIPT_WAIT;
        return take_time(r, "wait", &l->min_ms);
    }
    if (has(r, "drop")) {
        l->act = SCRIPT_DROP;
        return take_drop(r, l);
    }
    if (has(r, "leave")) {
        l->act = SCRIPT_LEAVE;
        return true;
    }
    if (has(r, "repeat")) {
        l->act = SCRIPT_REPEAT;
        return waits(r->script) || fail(r, "no 'wait' before", "repeat");
    }
    return fail(r, "unknown action:", r->word[0]);
}

static bool take_statement(struct script_reader *r, bool first)
{
    struct script *s = r->script;
    struct script_line l = {0};

    if (has(r, "login")) {
        if (!first) {
            return fail(r, "only the first line can be", "login");
        }
    } else if (s->count == SCRIPT_LINES_MAX) {
        return fail(r, "more than 64 actions", "");
    } else if (!take_act(r, &l)) {
        return false;
    } else {
        s->line[s->count++] = l;
    }
    return r->next == r->count || fail(r, "nothing is expected at", r->word[r->next]);
}

static bool take_all(struct script_reader *r)
{
    bool first = true;

    for (r->number = 1;;) {
        if (!take_words(r)) {
            return false;
        }
        if (r->count > 0) {
            if (!take_statement(r, first)) {
                return false;
            }
            first = false;
        }
        if (*r->at == '\0') {
            return !first || fail(r, "the script has no action", "");
        }
        r->number += *r->at == '\n' ? 1 : 0;
        r->at++;
    }
}

bool script_parse(struct script *s, const char *text, uint32_t *number, char why[SCRIPT_WHY_SIZE])
{
    struct script_reader *r = mem_new(1, sizeof *r);

    *s = (struct script){0};
    why[0] = '\0';
    r->script = s;
    r->at = text;
    r->why = why;
    const bool good = take_all(r);
    *number = r->number;
    mem_free(r);
    if (!good) {
        script_fini(s);
    }
    return good;
}

void script_fini(struct script *s)
{
    for (uint32_t i = 0; i < s->texts; i++) {
        mem_free(s->text[i]);
    }
    *s = (struct script){0};
}
