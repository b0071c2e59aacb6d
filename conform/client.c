/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays the gateways for a client's program, and compares what it sends and says with scripts.
 */
#include "conform/client.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "conform/client_gate.h"
#include "conform/tested.h"
#include "gateway/protocol/packet.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KIND = 7,
    TEXT_SIZE = 1024,
    SHOWN_MAX = 40,
    HEARD_MAX = 64,
    JOBS = 4, /* vectors at a time: most only wait */
    FLOODS = 300,
    FLOOD_EACH = 100,
    MEMORY_MAX_KIB = 200 * 1024,
    HEARTBEAT_MS = 30000,
    LARGEST = 65536,
    REQUESTS = 1024,
    CLOSE_TOO_LARGE = 1009,
};

#define ID         "me"
#define STILL_HERE "still here"

/* A request that came. */
struct heard {
    char text[64]; /* its payload, cut; of others "bind", "resume" */
    uint32_t name;
};

struct client_judge {
    struct client_gate gate;
    struct tested tested;
    struct heard heard[HEARD_MAX];
    size_t heard_count;
    uint32_t name; /* of the last of them */
    uint32_t timeout_ms;
    uint64_t end_us; /* of what is waited for */
    bool ended;      /* the program has, as it should */
    bool small;
    char why[TEXT_SIZE];
};

/* Bytes that a script writes down, and which of them count. */
struct pattern {
    struct buffer bytes;
    struct buffer any; /* as long; not 0: any byte */
    bool open;         /* any more */
};

static bool wrong(struct client_judge *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool wrong(struct client_judge *j, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(j->why, sizeof j->why, format, list);
    va_end(list);
    return false;
}

/* ---- words */

static void pattern_put(struct pattern *p, const void *data, size_t size, uint8_t any)
{
    buffer_put(&p->bytes, data, size);
    memset(buffer_reserve(&p->any, size), any, size);
    p->any.size += size;
}

static void pattern_fini(struct pattern *p)
{
    buffer_fini(&p->bytes);
    buffer_fini(&p->any);
}

static void put_name(struct pattern *p, uint32_t name)
{
    const uint8_t four[] = {
        (uint8_t)(name >> 24), (uint8_t)(name >> 16), (uint8_t)(name >> 8), (uint8_t)name};

    pattern_put(p, four, sizeof four, 0);
}

static uint32_t name_of(const struct client_judge *j, const char *text, size_t size)
{
    for (size_t i = j->heard_count; i > 0; i--) {
        const char *has = j->heard[i - 1].text;

        if (strlen(has) == size && memcmp(has, text, size) == 0) {
            return j->heard[i - 1].name;
        }
    }
    return 0;
}

/* "zeros:N", "noise:N", "x:N". False: it is none. */
static bool put_many(struct pattern *p, const char *word)
{
    const char *colon = strchr(word, ':');
    uint32_t seed = 4711;

    if (colon == NULL) {
        return false;
    }
    const size_t count = strtoul(colon + 1, NULL, 10);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint8_t byte = (uint8_t)(word[0] == 'z' ? 0 : word[0] == 'x' ? 'x' : seed >> 24);
        pattern_put(p, &byte, 1, 0);
    }
    return true;
}

static uint8_t digit(char c)
{
    ASSERT(isxdigit((unsigned char)c)); // scripts are ours
    return (uint8_t)(c <= '9' ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
}

static void put_hex(struct pattern *p, const char *word)
{
    for (; *word != '\0'; word += 2) {
        const bool any = *word == '.';
        const uint8_t byte = (uint8_t)(any ? 0 : digit(word[0]) << 4 | digit(word[1]));

        pattern_put(p, &byte, 1, any);
    }
}

static void put_word(const struct client_judge *j, struct pattern *p, const char *word)
{
    enum { NAME_SIZE = sizeof((struct session_packet *)NULL)->name };
    uint8_t name[NAME_SIZE];

    if (strcmp(word, "SESSION") == 0 || strcmp(word, "OTHER") == 0) {
        memset(name, word[0], sizeof name);
        pattern_put(p, name, sizeof name, 0);
    } else if (strcmp(word, "NAME") == 0) {
        put_name(p, j->name);
    } else if (word[0] == '=') {
        put_name(p, name_of(j, word + 1, strlen(word + 1)));
    } else if (strcmp(word, "*") == 0) {
        p->open = true;
    } else if (!put_many(p, word)) {
        put_hex(p, word);
    }
}

/* All words of a line. */
static struct pattern words(const struct client_judge *j, const char *rest)
{
    struct pattern p = {.open = false};
    char word[TEXT_SIZE];

    while (rest[strspn(rest, " ")] != '\0') {
        rest += strspn(rest, " ");
        if (*rest == '\'') {
            const size_t size = strcspn(rest + 1, "'");

            pattern_put(&p, rest + 1, size, 0);
            rest += size + 2;
            continue;
        }
        const size_t size = strcspn(rest, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)size, rest);
        put_word(j, &p, word);
        rest += size;
    }
    return p;
}

/* ---- waiting */

static void wait_from_now(struct client_judge *j)
{
    j->end_us = clock_boottime_us() + (uint64_t)j->timeout_ms * 1000;
}

/* Wait until something comes of the program or its connection, and take it. `accepts`: also a new
 * one. */
static bool pump(struct client_judge *j, bool accepts, const char *want)
{
    struct pollfd polls[CLIENT_GATE_POLLS_MAX + 1];
    const size_t gates = accepts || j->gate.fd >= 0 ? client_gate_polls(&j->gate, polls) : 0;
    const uint64_t now_us = clock_boottime_us();
    const int left_ms = now_us < j->end_us ? (int)((j->end_us - now_us) / 1000) + 1 : 0;

    polls[gates] = (struct pollfd){.fd = j->tested.out, .events = POLLIN};
    if (poll(polls, gates + 1, left_ms) == 0) {
        return wrong(j, "wanted %s; nothing came in %" PRIu32 " ms", want, j->timeout_ms);
    }
    client_gate_polled(&j->gate, polls, gates);
    if (j->tested.out >= 0 && polls[gates].revents != 0) {
        tested_read(&j->tested);
    }
    return j->gate.wrong == NULL || wrong(j, "wanted %s; got %s", want, j->gate.wrong);
}

/* The next packet; NULL: the connection has ended, which `why` says, or nothing came. */
static const struct client_gate_packet *next_packet(struct client_judge *j, const char *want)
{
    const struct client_gate_packet *packet = NULL;

    while ((packet = client_gate_next(&j->gate)) == NULL) {
        if (j->gate.over || j->gate.fd < 0) {
            (void)wrong(j, "wanted %s; the client closed the connection", want);
            return NULL;
        }
        if (j->tested.out < 0) {
            (void)wrong(j, "wanted %s; the program ended", want);
            return NULL;
        }
        if (!pump(j, false, want)) {
            return NULL;
        }
    }
    return packet;
}

static void note_name(struct client_judge *j, const struct client_gate_packet *packet)
{
    struct request_packet r;
    const struct bytes body = buffer_bytes(&packet->body);
    struct heard *h = &j->heard[j->heard_count % HEARD_MAX];

    if ((packet->type != PACKET_REQUEST && packet->type != PACKET_BIND &&
         packet->type != PACKET_RESUME) ||
        packet_get_request(body, &r) != ERR_OK) {
        return;
    }
    j->name = h->name = r.request;
    j->heard_count += j->heard_count < HEARD_MAX;
    if (packet->type == PACKET_REQUEST) {
        (void)snprintf(
            h->text, sizeof h->text, "%.*s", (int)r.payload.size, (const char *)r.payload.data);
    } else {
        (void)snprintf(h->text, sizeof h->text, packet->type == PACKET_BIND ? "bind" : "resume");
    }
}

static bool fits(const struct pattern *p, struct bytes is)
{
    if (p->open ? is.size < p->bytes.size : is.size != p->bytes.size) {
        return false;
    }
    for (size_t i = 0; i < p->bytes.size; i++) {
        if (p->any.data[i] == 0 && p->bytes.data[i] != is.data[i]) {
            return false;
        }
    }
    return true;
}

static bool got_other(struct client_judge *j, const char *want,
                      const struct client_gate_packet *packet)
{
    char text[2 * SHOWN_MAX + 1] = "";

    for (size_t i = 0; i < packet->body.size && i < SHOWN_MAX; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", packet->body.data[i]);
    }
    return wrong(j,
                 "wanted %s; got %u %s%s (%zu bytes)",
                 want,
                 packet->type,
                 text,
                 packet->body.size > SHOWN_MAX ? "..." : "",
                 packet->body.size);
}

/* ---- lines of the connection: each takes what stands behind its word */

static bool line_come(struct client_judge *j, const char *rest)
{
    const int before = j->gate.at;

    client_gate_drop(&j->gate);
    while (j->gate.fd < 0 || (j->gate.websocket && !j->gate.upgraded)) {
        if (j->tested.out < 0) {
            return wrong(j, "wanted a connection; the program ended");
        }
        if (j->gate.over) {
            client_gate_drop(&j->gate); // it thought better of it
        }
        if (!pump(j, true, "a connection")) {
            return false;
        }
    }
    return rest[0] == '\0' || j->gate.at != before ||
           wrong(j, "it came to the gateway where it was");
}

static bool line_expect(struct client_judge *j, const char *rest)
{
    char *end = NULL;
    const unsigned long type = strtoul(rest, &end, 10);
    const struct client_gate_packet *packet = next_packet(j, rest);
    struct pattern p = words(j, end);
    bool right = packet != NULL;

    if (right) {
        right = (packet->type == type && fits(&p, buffer_bytes(&packet->body))) ||
                got_other(j, rest, packet);
        note_name(j, packet);
    }
    pattern_fini(&p);
    return right;
}

static bool expect_payload(struct client_judge *j, unsigned type, const char *text)
{
    char line[TEXT_SIZE];

    (void)snprintf(line, sizeof line, "%u ........ .. 02 0007 '" ID "' '%s'", type, text);
    return line_expect(j, line);
}

static bool line_asked(struct client_judge *j, const char *rest)
{
    return expect_payload(j, PACKET_REQUEST, rest);
}

static bool line_told(struct client_judge *j, const char *rest)
{
    return expect_payload(j, PACKET_NOTIFY, rest);
}

static bool line_send(struct client_judge *j, const char *rest)
{
    char *end = NULL;
    const uint8_t type = (uint8_t)strtoul(rest, &end, 10);
    struct pattern p = words(j, end);

    j->gate.pongs += type == PACKET_PING;
    client_gate_send(&j->gate, type, buffer_bytes(&p.bytes));
    pattern_fini(&p);
    return true;
}

static bool line_raw(struct client_judge *j, const char *rest)
{
    struct pattern p = words(j, rest);

    client_gate_send_raw(&j->gate, buffer_bytes(&p.bytes));
    pattern_fini(&p);
    return true;
}

static bool line_message(struct client_judge *j, const char *rest)
{
    struct pattern p = words(j, rest);

    client_gate_send_message(&j->gate, buffer_bytes(&p.bytes));
    pattern_fini(&p);
    return true;
}

static bool line_hello(struct client_judge *j)
{
    return line_expect(j, "1 5248 01 01 0000");
}

static bool line_greet(struct client_judge *j, const char *rest)
{
    char line[TEXT_SIZE];
    unsigned flags = 0;
    unsigned heartbeat_ms = HEARTBEAT_MS;
    unsigned largest = LARGEST;

    // NOLINTNEXTLINE(cert-err34-c): scripts are ours
    (void)sscanf(rest, "%u %u %u", &flags, &heartbeat_ms, &largest);
    (void)snprintf(line,
                   sizeof line,
                   "2 01 00 %04x %08x %08x %08x 1122334455667788",
                   flags,
                   heartbeat_ms,
                   largest,
                   REQUESTS);
    return line_hello(j) && line_send(j, line);
}

static bool line_answer(struct client_judge *j, const char *rest)
{
    char line[TEXT_SIZE];
    char text[64] = "";
    unsigned status = 0;
    int at = 0;

    // NOLINTNEXTLINE(cert-err34-c): scripts are ours
    (void)sscanf(rest, "%63s %u%n", text, &status, &at);
    rest += at;
    rest += strspn(rest, " ");
    const uint32_t name = name_of(j, text, strlen(text));
    const uint32_t retry_ms =
        status == STATUS_MOVING || status == STATUS_OVERLOADED || status == STATUS_RATE_LIMITED
            ? 100
            : 0;

    (void)snprintf(line, sizeof line, "7 %08x %02x %08x '%s'", name, status, retry_ms, rest);
    return line_send(j, line);
}

static bool line_meet(struct client_judge *j, const char *rest)
{
    return line_come(j, "") && line_greet(j, rest) &&
           line_expect(j, "11 ........ 04 02 0007 '" ID "'") &&
           line_send(j, "7 NAME 00 00000000 SESSION 0000000000000001 00007530");
}

static bool line_refuse(struct client_judge *j, const char *rest)
{
    (void)rest;
    return line_expect(j, "11 ........ 04 02 0007 '" ID "'") && line_answer(j, "bind 8 REFUSED");
}

static bool line_acked(struct client_judge *j, const char *rest)
{
    const uint64_t pushes = strtoull(rest, NULL, 10);

    while (!j->gate.acked || j->gate.pushes != pushes) {
        if (!pump(j, false, "an ack of these pushes")) {
            return false;
        }
        if (j->gate.over) {
            return wrong(j, "wanted an ack of %s; the client closed the connection", rest);
        }
    }
    return true;
}

static bool line_leaves(struct client_judge *j, const char *rest)
{
    while (!j->gate.over) {
        if (j->tested.out < 0) {
            break;
        }
        if (!pump(j, false, "the end of the connection")) {
            return false;
        }
    }
    (void)rest;
    return true;
}

static bool line_gone(struct client_judge *j, const char *rest)
{
    const struct client_gate_packet *packet = NULL;

    return line_leaves(j, rest) &&
           ((packet = client_gate_next(&j->gate)) == NULL ||
            got_other(j, "the end of the connection, and nothing before", packet));
}

static bool line_instead(struct client_judge *j, const char *rest)
{
    return line_come(j, "") && line_hello(j) && line_send(j, rest) && line_leaves(j, "");
}

static bool line_behind(struct client_judge *j, const char *rest)
{
    return line_come(j, "") && line_greet(j, "") && line_send(j, rest) && line_leaves(j, "");
}

static bool line_too_large(struct client_judge *j, const char *rest)
{
    (void)rest;
    if (!j->gate.websocket) {
        return line_send(j, "5 00000065 'too large'");
    }
    return line_raw(j, "88 02 03f1"); // 1009
}

static bool line_flood(struct client_judge *j, const char *rest)
{
    const bool gathered = j->gate.gathers;

    (void)rest;
    for (int i = 0; i < FLOODS; i++) {
        j->gate.gathers = true;
        for (int k = 0; k < FLOOD_EACH; k++) {
            (void)line_send(j, "3 zeros:64");
            j->gate.pongs = 0; // they are not looked at
            (void)line_send(j, "9 zeros:8");
            (void)line_send(j, "7 00000009 00 00000000 zeros:64");
        }
        j->gate.gathers = gathered;
        (void)line_raw(j, "");
    }
    return true;
}

static bool line_close(struct client_judge *j, const char *rest)
{
    (void)rest;
    client_gate_drop(&j->gate);
    j->gate.over = true;
    return true;
}

static bool line_half(struct client_judge *j, const char *rest)
{
    (void)rest;
    client_gate_half_close(&j->gate);
    return true;
}

static bool line_mute(struct client_judge *j, const char *rest)
{
    (void)rest;
    j->gate.mute = true;
    return true;
}

static bool line_drip(struct client_judge *j, const char *rest)
{
    (void)rest;
    j->gate.drips = true;
    return true;
}

static bool line_gather(struct client_judge *j, const char *rest)
{
    (void)rest;
    j->gate.gathers = true;
    return true;
}

static bool line_go(struct client_judge *j, const char *rest)
{
    j->gate.gathers = false;
    return line_raw(j, rest);
}

static bool line_small(struct client_judge *j, const char *rest)
{
    (void)rest;
    j->small = true;
    return true;
}

/* ---- lines of the program */

static bool line_type(struct client_judge *j, const char *rest)
{
    tested_type(&j->tested, rest);
    return true;
}

static bool line_large(struct client_judge *j, const char *rest)
{
    const size_t size = strtoul(rest, NULL, 10);
    char *text = mem_new(size + 1, 1);

    memset(text, 'x', size);
    tested_type(&j->tested, text);
    mem_free(text);
    return true;
}

static bool same_word(const char *a, const char *b)
{
    const size_t size = strcspn(a, " ");

    return strncmp(a, b, size) == 0 && (b[size] == ' ' || b[size] == '\0');
}

static bool says_this(const char *line, const char *want)
{
    const size_t size = strlen(want);

    return size > 0 && want[size - 1] == '*' ? strncmp(line, want, size - 1) == 0
                                             : strcmp(line, want) == 0;
}

/* A line that it has said, taken; NULL: none yet. `why` says what it said of that word instead. */
static char **find_line(struct client_judge *j, const char *want)
{
    for (size_t i = 0; i < j->tested.count; i++) {
        char **line = &j->tested.line[i];

        if (*line == NULL || !same_word(want, *line)) {
            continue;
        }
        if (says_this(*line, want)) {
            return line;
        }
        if (!same_word("answer", want)) { // these may come in any order
            (void)wrong(j, "wanted that it says '%s'; it said '%.200s'", want, *line);
            return NULL;
        }
    }
    return NULL;
}

static void take_line(char **line)
{
    mem_free(*line);
    *line = NULL;
}

/* What it has said, and was not due; NULL: nothing. */
static char **undue(struct client_judge *j)
{
    static const char *const due[] = {"answer", "push", "bound", "begun", "kicked", "rebound"};

    for (size_t i = 0; i < j->tested.count; i++) {
        for (size_t k = 0; k < sizeof due / sizeof due[0] && j->tested.line[i] != NULL; k++) {
            if (same_word(due[k], j->tested.line[i])) {
                return &j->tested.line[i];
            }
        }
    }
    return NULL;
}

static bool line_says(struct client_judge *j, const char *rest)
{
    char **line = NULL;

    j->why[0] = '\0';
    while ((line = find_line(j, rest)) == NULL) {
        if (j->why[0] != '\0') {
            return false;
        }
        if (j->tested.out < 0) {
            return wrong(j, "wanted that it says '%s'; it ended", rest);
        }
        if (!pump(j, false, rest)) {
            char **other = undue(j);

            return other != NULL && wrong(j, "wanted '%s'; it said '%.200s'", rest, *other);
        }
    }
    take_line(line);
    return true;
}

/* Wait for its end, and see how it was. */
static bool line_ended(struct client_judge *j, const char *rest)
{
    struct rusage used = {.ru_maxrss = 0};

    (void)rest;
    j->ended = true;
    while (j->tested.out >= 0) {
        if (!pump(j, false, "the end of the program")) {
            return false;
        }
    }
    char **more = undue(j);
    if (more != NULL) {
        return wrong(j, "it said '%.200s', which was not due", *more);
    }
    const int code = tested_fini(&j->tested);
    j->tested = (struct tested){.pid = -1, .in = -1, .out = -1};
    if (code != 0) {
        return wrong(j, "it ended with exit code %d", code);
    }
    (void)getrusage(RUSAGE_CHILDREN, &used);
    return !j->small || used.ru_maxrss <= MEMORY_MAX_KIB ||
           wrong(j, "it took %ld KiB of memory", used.ru_maxrss);
}

/* ---- a gateway that takes it, behind the script */

static bool serve_packet(struct client_judge *j, const struct client_gate_packet *packet)
{
    struct request_packet r;

    if (packet->type == PACKET_HELLO) {
        return line_send(j, "2 01 00 0000 00007530 00010000 00000400 1122334455667788");
    }
    note_name(j, packet);
    if (packet->type == PACKET_BIND) {
        return line_answer(j, "bind 8 REFUSED");
    }
    if (packet->type == PACKET_RESUME) {
        return line_answer(j, "resume 8 GONE");
    }
    if (packet->type != PACKET_REQUEST) {
        return true;
    }
    if (packet_get_request(buffer_bytes(&packet->body), &r) != ERR_OK ||
        !bytes_equal(r.payload, bytes_of(STILL_HERE, strlen(STILL_HERE)))) {
        return got_other(j, "no request but the last", packet);
    }
    return line_send(j, "7 NAME 00 00000000 '" STILL_HERE "'");
}

/* 1: it has its answer; 0: none came yet; -1: something else came. */
static int still_answered(struct client_judge *j)
{
    char **line = undue(j);

    if (line == NULL) {
        return 0;
    }
    const bool right = says_this(*line, "answer OK " STILL_HERE);
    if (!right && !says_this(*line, "answer UNKNOWN*") && !says_this(*line, "answer MOVING*")) {
        (void)wrong(j, "it said '%.200s', which was not due", *line);
        return -1;
    }
    take_line(line);
    if (!right) {
        tested_type(&j->tested, STILL_HERE);
    }
    return right ? 1 : 0;
}

static bool still_there(struct client_judge *j)
{
    int answered = 0;

    tested_type(&j->tested, STILL_HERE);
    while ((answered = still_answered(j)) == 0) {
        const struct client_gate_packet *packet = client_gate_next(&j->gate);

        if (packet != NULL) {
            if (!serve_packet(j, packet)) {
                return false;
            }
            continue;
        }
        if (j->gate.over) {
            client_gate_drop(&j->gate);
        }
        if (j->tested.out < 0) {
            return wrong(j, "it ended, which was not due");
        }
        if (!pump(j, true, "that it answers still")) {
            return false;
        }
    }
    tested_ends_input(&j->tested);
    return answered == 1 && line_ended(j, "");
}

/* ---- all of it */

static bool play_line(struct client_judge *j, const char *line)
{
    static const struct {
        const char *word;
        bool (*run)(struct client_judge *j, const char *rest);
    } lines[] = {
        {"type", line_type},
        {"large", line_large},
        {"says", line_says},
        {"ended", line_ended},
        {"come", line_come},
        {"greet", line_greet},
        {"meet", line_meet},
        {"refuse", line_refuse},
        {">", line_send},
        {"message", line_message},
        {"raw", line_raw},
        {"<", line_expect},
        {"asked", line_asked},
        {"told", line_told},
        {"answer", line_answer},
        {"acked", line_acked},
        {"drip", line_drip},
        {"gather", line_gather},
        {"go", line_go},
        {"mute", line_mute},
        {"flood", line_flood},
        {"small", line_small},
        {"close", line_close},
        {"half", line_half},
        {"gone", line_gone},
        {"leaves", line_leaves},
        {"instead", line_instead},
        {"behind", line_behind},
        {"too-large", line_too_large},
    };
    const size_t size = strcspn(line, " ");

    wait_from_now(j);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strlen(lines[i].word) == size && strncmp(lines[i].word, line, size) == 0) {
            return lines[i].run(j, line + size + strspn(line + size, " "));
        }
    }
    UNREACHABLE(); // scripts are ours
}

/* The program's words, with what this vector gives it. Returns owned; the words are borrowed. */
static char **words_of(const struct client_run *run, char *urls, char *token)
{
    static char kind[] = "7";
    static char id[] = ID;
    size_t count = 0;

    while (run->program[count] != NULL) {
        count++;
    }
    char **all = mem_new(count + 5, sizeof *all);
    memcpy(all, run->program, count * sizeof *all);
    all[count++] = urls;
    all[count++] = kind;
    all[count++] = id;
    all[count] = token;
    return all;
}

static bool play(struct client_judge *j, const struct client_run *run,
                 const struct client_vector *v)
{
    char urls[128];
    char *token = v->token != NULL ? mem_string(v->token) : NULL;
    char *copy = mem_string(v->script);
    char *rest = NULL;

    if (!client_gate_open(&j->gate, run->websocket)) {
        return wrong(j, "can't listen: errno %d", errno);
    }
    client_gate_urls(&j->gate, urls, sizeof urls);
    char **program = words_of(run, urls, token);
    bool right = tested_start(&j->tested, program) || wrong(j, "can't start it: errno %d", errno);
    for (char *line = strtok_r(copy, "\n", &rest); right && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        right = play_line(j, line);
        if (!right) {
            const size_t size = strlen(j->why);

            (void)snprintf(j->why + size, sizeof j->why - size, " [%s]", line);
        }
    }
    wait_from_now(j);
    right = right && (j->ended || still_there(j));
    (void)tested_fini(&j->tested);
    client_gate_fini(&j->gate);
    mem_free((void *)program);
    mem_free(copy);
    mem_free(token);
    return right;
}

/* A vector that is played by a process of its own. */
struct client_job {
    pid_t pid;
    int why; /* where it says what was wrong */
    bool done;
    bool right;
    char text[TEXT_SIZE];
};

static void play_apart(struct client_job *job, const struct client_run *run,
                       const struct client_vector *v)
{
    static struct client_judge j;
    int pair[2] = {-1, -1};

    (void)fflush(stdout);
    if (pipe(pair) != 0 || (job->pid = fork()) < 0) {
        *job = (struct client_job){.done = true, .why = -1, .text = "no room for a process"};
        return;
    }
    if (job->pid == 0) {
        (void)fcntl(pair[1], F_SETFD, FD_CLOEXEC);
        j.timeout_ms = run->timeout_ms;
        (void)signal(SIGPIPE, SIG_IGN);
        const bool right = play(&j, run, v);
        if (!right) {
            (void)!write(pair[1], j.why, strlen(j.why));
        }
        _exit(right ? 0 : 2);
    }
    (void)close(pair[1]);
    job->why = pair[0];
}

/* Wait for one of them to end. */
static void reap(struct client_job *jobs, size_t count)
{
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);

    for (size_t i = 0; i < count && pid > 0; i++) {
        if (jobs[i].pid == pid && !jobs[i].done) {
            const ssize_t size = read(jobs[i].why, jobs[i].text, sizeof jobs[i].text - 1);

            jobs[i].text[size > 0 ? size : 0] = '\0';
            jobs[i].done = true;
            jobs[i].right = WIFEXITED(status) && WEXITSTATUS(status) == 0;
            (void)close(jobs[i].why);
        }
    }
}

static const char *skips(const struct client_run *run, const struct client_vector *v)
{
    const bool of_ws = v->carrier != NULL && strcmp(v->carrier, "ws") == 0;

    if (v->carrier != NULL && of_ws != run->websocket) {
        return of_ws ? "needs a WebSocket: client ws" : "needs TCP: client tcp";
    }
    if (v->slow && !run->slow) {
        return "takes long: --slow";
    }
    return strstr(v->name, run->only) == NULL ? "not asked for" : NULL;
}

static void tell(size_t i, const struct client_job *job, const char *skipped)
{
    (void)printf("%sok %zu - %s%s%s\n",
                 skipped != NULL || job->right ? "" : "not ",
                 i + 1,
                 conform_client_vectors[i].name,
                 skipped != NULL ? " # SKIP " : "",
                 skipped != NULL ? skipped : "");
    if (skipped == NULL && !job->right) {
        (void)printf("# %s\n", job->text);
    }
    (void)fflush(stdout);
}

int conform_client(const struct client_run *run)
{
    const size_t count = conform_client_count;
    struct client_job *jobs = mem_new(count, sizeof *jobs);
    size_t tally[3] = {0}; // passed, failed, skipped
    size_t running = 0;
    size_t told = 0;

    (void)printf("TAP version 13\n1..%zu\n", count);
    for (size_t begun = 0; told < count;) {
        while (begun < count && running < JOBS) {
            if (skips(run, &conform_client_vectors[begun]) == NULL) {
                play_apart(&jobs[begun], run, &conform_client_vectors[begun]);
                running += !jobs[begun].done;
            }
            begun++;
        }
        for (; told < begun; told++) {
            const char *skipped = skips(run, &conform_client_vectors[told]);

            if (skipped == NULL && !jobs[told].done) {
                break;
            }
            tell(told, &jobs[told], skipped);
            tally[skipped != NULL ? 2 : jobs[told].right ? 0 : 1]++;
        }
        if (running > 0) {
            reap(jobs, begun);
            running--;
        }
    }
    (void)printf("# %zu passed, %zu failed, %zu skipped\n", tally[0], tally[1], tally[2]);
    mem_free(jobs);
    return tally[1] == 0 ? 0 : 2;
}

void conform_client_list(void)
{
    for (size_t i = 0; i < conform_client_count; i++) {
        (void)printf(
            "# %s\n%s\n", conform_client_vectors[i].name, conform_client_vectors[i].script);
    }
}
