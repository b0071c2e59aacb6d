/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses histories and hands each line to the judge.
 */
#include "sim/history/history.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct history_word_entry {
    struct table_link link;
    uint32_t number;
    uint32_t size;
    bool process;
    char text[];
};

/* ---- words ---- */

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    }
    return table_mix(hash);
}

static uint32_t word_number(struct history_book *b, const char *text, size_t size)
{
    const uint64_t hash = hash_of(text, size);

    for (struct table_link *l = table_first(&b->words, hash); l != NULL; l = table_same(l)) {
        struct history_word_entry *w = CONTAINER_OF(l, struct history_word_entry, link);

        if (w->size == size && memcmp(w->text, text, size) == 0) {
            return w->number;
        }
    }
    struct history_word_entry *w = mem_new(1, sizeof *w + size + 1);
    memcpy(w->text, text, size);
    w->size = (uint32_t)size;
    if (b->word_count == b->word_cap) {
        b->word_cap = b->word_cap == 0 ? 256 : 2 * b->word_cap;
        b->word = mem_resize(b->word, b->word_cap * sizeof(struct history_word_entry *));
    }
    b->word[b->word_count++] = w;
    w->number = (uint32_t)b->word_count;
    table_put(&b->words, &w->link, hash);
    return w->number;
}

const char *history_book_word(const struct history_book *b, uint32_t number)
{
    return number == 0 || number > b->word_count ? "-" : b->word[number - 1]->text;
}

/* ---- the book ---- */

void history_book_init(struct history_book *b)
{
    *b = (struct history_book){0};
}

void history_book_fini(struct history_book *b)
{
    for (size_t i = 0; i < b->word_count; i++) {
        mem_free(b->word[i]);
    }
    for (size_t i = 0; i < b->file_count; i++) {
        mem_free(b->file[i].name);
    }
    table_fini(&b->words);
    mem_free(b->word);
    mem_free(b->file);
    mem_free(b->event);
    mem_free(b->order);
    *b = (struct history_book){0};
}

size_t history_book_line(const struct history_book *b, const struct history_event *e)
{
    size_t line = 1;

    for (const char *at = b->file[e->file].data; at < e->text; at++) {
        line += *at == '\n';
    }
    return line;
}

const char *history_code_name(enum history_code code)
{
    static const char *const names[] = {
        [HISTORY_OK] = "OK",
        [HISTORY_APPERR] = "APPERR",
        [HISTORY_UNKNOWN] = "UNKNOWN",
        [HISTORY_TIMEOUT] = "TIMEOUT",
        [HISTORY_REJECTED] = "REJECTED",
        [HISTORY_NOKIND] = "NOKIND",
    };

    return names[code];
}

/* ---- a line ---- */

/* The keys, and which event says which. */
enum key {
    KEY_ENTITY = 1 << 0,
    KEY_SESSION = 1 << 1,
    KEY_SEQ = 1 << 2,
    KEY_FENCE = 1 << 3,
    KEY_INC = 1 << 4,
    KEY_TXN = 1 << 5,
    KEY_VERSION = 1 << 6,
    KEY_DIGEST = 1 << 7,
    KEY_UNTIL = 1 << 8,
    KEY_OF = 1 << 9,
    KEY_CODE = 1 << 10,
    KEY_EFFECTS = 1 << 11,
    KEY_ACCEPTED = 1 << 12,
    KEY_REPLY = 1 << 13,
    KEY_IDEMPOTENT = 1 << 14,
    KEY_COPY = 1 << 15,
    KEY_KIND = 1 << 16,
    KEY_IS = 1 << 17,
    KEY_WHY = 1 << 18,
};
enum { KEY_REQUEST = KEY_ENTITY | KEY_SESSION | KEY_SEQ };

static const char *const key_names[] = {"entity",
                                        "session",
                                        "seq",
                                        "fence",
                                        "inc",
                                        "txn",
                                        "version",
                                        "digest",
                                        "until",
                                        "of",
                                        "code",
                                        "effects",
                                        "accepted",
                                        "reply",
                                        "idempotent",
                                        "copy",
                                        "kind",
                                        "is",
                                        "why"};
enum { KEYS = sizeof key_names / sizeof key_names[0] };

static const struct {
    uint32_t must;
    uint32_t may;
} grammar[] = {
    [HISTORY_ACTIVATE] = {KEY_ENTITY, KEY_FENCE | KEY_INC | KEY_VERSION | KEY_EFFECTS},
    [HISTORY_FREEZE] = {KEY_ENTITY, KEY_FENCE | KEY_EFFECTS},
    [HISTORY_UNFREEZE] = {KEY_ENTITY, KEY_FENCE},
    [HISTORY_STOP] = {KEY_ENTITY, KEY_FENCE | KEY_WHY},
    [HISTORY_EXEC_BEGIN] = {KEY_REQUEST, KEY_FENCE},
    [HISTORY_EXEC_END] = {KEY_REQUEST, KEY_FENCE},
    [HISTORY_OUTPUT] = {KEY_KIND, KEY_ENTITY | KEY_SESSION | KEY_SEQ | KEY_FENCE},
    [HISTORY_STORE] = {KEY_ENTITY | KEY_FENCE | KEY_ACCEPTED, KEY_KIND},
    [HISTORY_REGISTERED] = {KEY_INC, 0},
    [HISTORY_LEASE] = {KEY_UNTIL, KEY_INC},
    [HISTORY_CRASH] = {0, KEY_OF | KEY_WHY},
    [HISTORY_PAUSE] = {KEY_OF, 0},
    [HISTORY_RESUME] = {KEY_OF, 0},
    [HISTORY_SEND] = {KEY_REQUEST, KEY_REPLY | KEY_IDEMPOTENT | KEY_COPY},
    [HISTORY_ANSWER] = {KEY_REQUEST | KEY_CODE, KEY_FENCE},
    [HISTORY_CLOSE] = {KEY_SESSION, 0},
    [HISTORY_COMMITTED] = {KEY_TXN | KEY_VERSION, KEY_DIGEST},
    [HISTORY_ABORTED] = {KEY_TXN, KEY_WHY},
    [HISTORY_REASSIGN] = {KEY_INC | KEY_VERSION, KEY_DIGEST},
    [HISTORY_OUTCOME] = {KEY_TXN | KEY_IS, 0},
    [HISTORY_VIEW] = {KEY_VERSION, KEY_DIGEST},
    [HISTORY_NOTE] = {0, 0},
};
enum { TYPES = sizeof grammar / sizeof grammar[0] };

/* A word of a line: [at, at + size). */
struct word {
    const char *at;
    size_t size;
};

static bool is(struct word w, const char *text)
{
    return w.size == strlen(text) && memcmp(w.at, text, w.size) == 0;
}

/* Words are parted by one blank; size 0 = the line is over, or two blanks stand together. */
static struct word take_word(struct word *rest)
{
    const char *blank = memchr(rest->at, ' ', rest->size);
    const size_t size = blank == NULL ? rest->size : (size_t)(blank - rest->at);
    const struct word w = {rest->at, size};
    const size_t used = size + (blank == NULL ? 0 : 1);

    rest->at += used;
    rest->size -= used;
    return w;
}

static bool take_number(struct word w, uint64_t *out)
{
    uint64_t sum = 0;

    if (w.size == 0) {
        return false;
    }
    for (size_t i = 0; i < w.size; i++) {
        const uint64_t digit = (uint64_t)(uint8_t)w.at[i] - '0';

        if (w.at[i] < '0' || w.at[i] > '9' || sum > (UINT64_MAX - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *out = sum;
    return true;
}

static bool take_yes(struct word w, bool *out)
{
    *out = is(w, "yes");
    return *out || is(w, "no");
}

static bool take_code(struct word w, uint8_t *out)
{
    for (int code = 0; code < HISTORY_CODES; code++) {
        if (is(w, history_code_name((enum history_code)code))) {
            *out = (uint8_t)code;
            return true;
        }
    }
    return false;
}

static bool take_name(struct history_book *b, struct word w, uint32_t *out)
{
    *out = word_number(b, w.at, w.size);
    return w.size > 0;
}

/* False if it is no value for that key. */
static bool take_value(struct history_book *b, enum key key, struct word w, struct history_event *e)
{
    uint64_t ignored = 0;
    bool flag = false;

    switch (key) {
    case KEY_ENTITY:
        return take_name(b, w, &e->entity);
    case KEY_SESSION:
        return take_name(b, w, &e->session);
    case KEY_OF:
        return take_name(b, w, &e->of);
    case KEY_DIGEST:
        return take_name(b, w, &e->digest);
    case KEY_SEQ:
        return take_number(w, &e->seq) && e->seq > 0;
    case KEY_FENCE:
        e->keys |= HISTORY_HAS_FENCE;
        return take_number(w, &e->fence);
    case KEY_INC:
        return take_number(w, &e->inc) && (e->inc > 0 || e->type == HISTORY_REASSIGN);
    case KEY_TXN:
        return take_number(w, &e->txn) && e->txn > 0;
    case KEY_VERSION:
        return take_number(w, &e->version);
    case KEY_UNTIL:
        return take_number(w, &e->until_us);
    case KEY_EFFECTS:
        e->keys |= HISTORY_HAS_EFFECTS;
        return take_number(w, &e->effects);
    case KEY_CODE:
        return take_code(w, &e->code);
    case KEY_ACCEPTED:
        return take_yes(w, &e->accepted);
    case KEY_IDEMPOTENT:
        return take_yes(w, &e->idempotent);
    case KEY_REPLY:
        e->no_reply = is(w, "no");
        return take_yes(w, &flag);
    case KEY_COPY:
        return take_number(w, &ignored) && ignored > 0;
    case KEY_IS:
        e->committed = is(w, "commit");
        return e->committed || is(w, "abort");
    case KEY_WHY:
        e->broken = is(w, "broken");
        return w.size > 0;
    case KEY_KIND:
        return w.size > 0;
    }
    UNREACHABLE();
}

/* NULL, or what is wrong with the keys. */
static const char *take_keys(struct history_book *b, struct word rest, struct history_event *e)
{
    uint32_t said = 0;

    while (rest.size > 0) {
        struct word w = take_word(&rest);
        const char *equals = memchr(w.at, '=', w.size);
        const struct word name = {w.at, equals == NULL ? w.size : (size_t)(equals - w.at)};
        unsigned k = 0;

        while (k < KEYS && !is(name, key_names[k])) {
            k++;
        }
        if (equals == NULL || k == KEYS) {
            return equals == NULL ? "a key without '=value'" : "an unknown key";
        }
        const uint32_t bit = UINT32_C(1) << k;
        if (((grammar[e->type].must | grammar[e->type].may) & bit) == 0) {
            return "a key that this event has not";
        }
        if ((said & bit) != 0) {
            return "a key stands twice";
        }
        said |= bit;
        w = (struct word){equals + 1, w.size - name.size - 1};
        if (!take_value(b, (enum key)bit, w, e)) {
            return "a value that this key can't have";
        }
    }
    return (grammar[e->type].must & ~said) != 0 ? "a key is missing" : NULL;
}

static bool is_printable(struct word w)
{
    for (size_t i = 0; i < w.size; i++) {
        if (w.at[i] < ' ' || w.at[i] > '~') {
            return false;
        }
    }
    return true;
}

static void mark_process(struct history_book *b, uint32_t number)
{
    struct history_word_entry *w = b->word[number - 1];

    b->processes += w->process ? 0 : 1;
    w->process = true;
}

/* NULL, or what is wrong with the line. */
static const char *take_line(struct history_book *b, struct word line, struct history_event *e)
{
    struct word rest = line;
    struct word w = take_word(&rest);

    if (line.size >= HISTORY_LINE_MAX || !is_printable(line)) {
        return line.size >= HISTORY_LINE_MAX ? "it is too long" : "it has unprintable bytes";
    }
    if (!take_number(w, &e->time_us)) {
        return "it does not begin with a time";
    }
    w = take_word(&rest);
    if (w.size == 0 || w.size > HISTORY_PROCESS_MAX) {
        return "the second word is no process's name";
    }
    const struct word process = w;
    w = take_word(&rest);
    e->type = 0;
    while (e->type < TYPES && !is(w, history_event_name((enum history_event_type)e->type))) {
        e->type++;
    }
    if (e->type == TYPES) {
        return "an unknown event";
    }
    e->process = word_number(b, process.at, process.size);
    mark_process(b, e->process);
    e->text = line.at;
    e->text_size = (uint32_t)line.size;
    return e->type == HISTORY_NOTE ? NULL : take_keys(b, rest, e);
}

static void keep(struct history_book *b, const struct history_event *e)
{
    if (b->event_count == b->event_cap) {
        b->event_cap = b->event_cap == 0 ? 1024 : 2 * b->event_cap;
        b->event = mem_resize(b->event, b->event_cap * sizeof *b->event);
    }
    b->event[b->event_count++] = *e;
}

bool history_book_read(struct history_book *b, const char *name, struct bytes bytes,
                       char error[HISTORY_ERROR_SIZE])
{
    char head[32];
    const char *at = (const char *)bytes.data;
    size_t left = bytes.size;
    size_t number = 0;
    bool headed = false;

    (void)snprintf(head, sizeof head, "ringhold-history %d", HISTORY_FORMAT);
    if (b->file_count > UINT16_MAX) {
        (void)snprintf(error, HISTORY_ERROR_SIZE, "%.200s: too many files", name);
        return false;
    }
    b->file = mem_resize(b->file, (b->file_count + 1) * sizeof *b->file);
    b->file[b->file_count] = (struct history_file){mem_string(name), at, left};
    b->file_count++;
    while (left > 0) {
        const char *newline = memchr(at, '\n', left);
        const struct word line = {at, newline == NULL ? left : (size_t)(newline - at)};
        struct history_event e = {.file = (uint16_t)(b->file_count - 1)};
        const char *why = NULL;

        number++;
        if (newline == NULL) {
            why = "it is cut off"; // a line is written whole, with its newline
        } else if (is(line, head)) {
            headed = true;
        } else if (!headed) {
            why = "the file does not begin with 'ringhold-history 1'";
        } else if (line.size > 0 && line.at[0] != '#') {
            why = take_line(b, line, &e);
            if (why == NULL) {
                keep(b, &e);
            }
        }
        if (why != NULL) {
            (void)snprintf(error, HISTORY_ERROR_SIZE, "%.200s:%zu: %s", name, number, why);
            return false;
        }
        at += line.size + 1;
        left -= line.size + 1;
    }
    return true;
}
