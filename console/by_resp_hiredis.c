/* SPDX-License-Identifier: Apache-2.0
 *
 * The console by the Redis protocol: each line is a command, by hiredis.
 */
#include "base/mem.h"
#include "console/console.h"
#include "console/terminal_edit.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 64, DEPTH_MAX = 16, HEAD_SIZE = 48, PORT_MAX = 65535 };

struct resp {
    struct console_way way;
    redisContext *redis; /* owned */
    unsigned waiting;
    bool over;
    bool writes; /* not all is sent */
};

static struct resp *self(struct console_way *w)
{
    return (struct resp *)w;
}

/* ---- what comes ---- */

/* What a bound actor sends, in the Redis protocol's version 2: a list whose first word says so. */
static bool is_push(const redisReply *r)
{
    static const char *const words[] = {"message", "kick", "rebound"};

    if (r->type != REDIS_REPLY_ARRAY || r->elements < 2 ||
        r->element[0]->type != REDIS_REPLY_STRING) {
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(r->element[0]->str, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* One reply, of a list only its head. */
static void show_one(const redisReply *r, unsigned depth)
{
    char head[HEAD_SIZE];

    (void)snprintf(head,
                   sizeof head,
                   "%*s%s",
                   (int)(2 * depth),
                   "",
                   r->type == REDIS_REPLY_ERROR ? "(error) " : "");
    switch (r->type) {
    case REDIS_REPLY_INTEGER:
        terminal_say("%s(integer) %lld", head, r->integer);
        break;
    case REDIS_REPLY_NIL:
        terminal_say("%s(nil)", head);
        break;
    case REDIS_REPLY_ARRAY:
        terminal_say("%s(%s of %zu)", head, is_push(r) ? "push" : "list", r->elements);
        break;
    default:
        console_say(head, r->str, r->len);
    }
}

/* A reply, and what is in its lists: hiredis reads them to a depth of 7. */
static void show(const redisReply *reply)
{
    const redisReply *list[DEPTH_MAX] = {reply};
    size_t at[DEPTH_MAX] = {0};
    size_t depth = 0;

    show_one(reply, 0);
    for (;;) {
        const redisReply *r = list[depth];

        if (r->type == REDIS_REPLY_ARRAY && at[depth] < r->elements) {
            const redisReply *next = r->element[at[depth]++];

            show_one(next, (unsigned)depth + 1);
            if (next->type == REDIS_REPLY_ARRAY && depth + 1 < DEPTH_MAX) {
                depth++;
                list[depth] = next;
                at[depth] = 0;
            }
        } else if (depth == 0) {
            return;
        } else {
            depth--;
        }
    }
}

static void end(struct resp *p, const char *why)
{
    terminal_say("connection lost: %s", why);
    p->over = true;
    p->waiting = 0;
}

static void turn(struct console_way *w)
{
    struct resp *p = self(w);
    void *reply = NULL;
    int done = 0;

    if (p->over) {
        return;
    }
    if (redisBufferRead(p->redis) != REDIS_OK || redisBufferWrite(p->redis, &done) != REDIS_OK) {
        end(p, p->redis->errstr);
        return;
    }
    p->writes = done == 0;
    while (redisGetReplyFromReader(p->redis, &reply) == REDIS_OK && reply != NULL) {
        const bool pushed = is_push(reply);

        show(reply);
        freeReplyObject(reply);
        p->waiting -= !pushed && p->waiting > 0;
    }
    if (p->redis->err != 0) {
        end(p, p->redis->errstr);
    }
}

/* ---- what is typed ---- */

/* Words between blanks; "…" and '…' keep blanks together, a backslash takes what follows as it is.
 * `text` is cut up. SIZE_MAX: a quote is open. */
static size_t split(char *text, const char *word[WORDS_MAX], size_t size[WORDS_MAX])
{
    size_t count = 0;
    char *out = text;

    for (const char *at = text + strspn(text, " "); *at != '\0' && count < WORDS_MAX;
         at += strspn(at, " ")) {
        char quote = '\0';

        word[count] = out;
        for (; *at != '\0' && (quote != '\0' || *at != ' '); at++) {
            if (quote == '\0' ? *at == '"' || *at == '\'' : *at == quote) {
                quote = (char)(quote == '\0' ? *at : '\0');
            } else {
                at += *at == '\\' && at[1] != '\0' && quote != '\'';
                *out++ = *at;
            }
        }
        if (quote != '\0') {
            return SIZE_MAX;
        }
        size[count] = (size_t)(out - word[count]);
        count++;
    }
    return count;
}

static bool line(struct console_way *w, const char *text)
{
    struct resp *p = self(w);
    const char *word[WORDS_MAX];
    size_t size[WORDS_MAX];
    char *copy = mem_string(text);
    const size_t count = split(copy, word, size);
    const bool ends = count == 1 && ((size[0] == 4 && strncmp(word[0], "quit", 4) == 0) ||
                                     (size[0] == 4 && strncmp(word[0], "exit", 4) == 0));

    if (count == SIZE_MAX) {
        terminal_say("(error) a quote is open");
    } else if (count > 0 && !ends && !p->over) {
        if (redisAppendCommandArgv(p->redis, (int)count, word, size) == REDIS_OK) {
            p->waiting++;
            p->writes = true;
        }
    }
    mem_free(copy);
    return !ends;
}

/* ---- the connection ---- */

static int fd(const struct console_way *w)
{
    const struct resp *p = (const struct resp *)w;

    return p->over ? -1 : p->redis->fd;
}

static bool wants_write(struct console_way *w)
{
    return self(w)->writes;
}

static int wait_ms(struct console_way *w)
{
    return self(w)->over ? 0 : -1;
}

static bool is_busy(const struct console_way *w)
{
    return ((const struct resp *)w)->waiting > 0;
}

static bool failed(const struct console_way *w)
{
    return ((const struct resp *)w)->over;
}

static void close_it(struct console_way *w)
{
    redisFree(self(w)->redis);
    mem_free(w);
}

struct console_way *way_by_resp(const char *address)
{
    static const char *const commands[] = {"CALL ", "TELL ",   "BIND ",       "UNBIND",  "WHERE ",
                                           "GET ",  "SET ",    "DEL ",        "EXISTS ", "INCR ",
                                           "DECR ", "APPEND ", "STRLEN ",     "MGET ",   "MSET ",
                                           "INFO",  "PING",    "CLIENT LIST", "quit",    NULL};
    static const struct console_way_methods methods = {.commands = commands,
                                                       .line = line,
                                                       .fd = fd,
                                                       .wants_write = wants_write,
                                                       .wait_ms = wait_ms,
                                                       .turn = turn,
                                                       .is_busy = is_busy,
                                                       .failed = failed,
                                                       .close = close_it};
    const char *colon = strrchr(address, ':');
    char host[256];
    char *end_of_port = NULL;

    const unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end_of_port, 10);

    if (port == 0 || port > PORT_MAX || *end_of_port != '\0' || colon == address ||
        (size_t)(colon - address) >= sizeof host) {
        (void)fprintf(stderr, "ringhold cli: --resp: '%s' is not HOST:PORT\n", address);
        return NULL;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    redisContext *redis = redisConnectNonBlock(host, (int)port);
    if (redis == NULL || redis->err != 0) {
        (void)fprintf(stderr,
                      "ringhold cli: can't connect to %s: %s\n",
                      address,
                      redis == NULL ? "no memory" : redis->errstr);
        redisFree(redis);
        return NULL;
    }
    struct resp *p = mem_new(1, sizeof *p);
    *p = (struct resp){.way = {&methods}, .redis = redis};
    return &p->way;
}
