/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives hiredis as ../README.md says. It knows no retries and no reconnection: each thread here
 * has a connection, and makes another when it is lost, as games that use hiredis do.
 */
#include <hiredis/hiredis.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, TEXT_MAX = 160 };

static const char *host;
static int port;
static char key[64];
static struct {
    pthread_mutex_t lock;
    volatile bool over;
    unsigned long answered, refused, unknown;
    char text[TEXT_MAX];
} sums = {.lock = PTHREAD_MUTEX_INITIALIZER};

static redisContext *dial(void)
{
    redisContext *c = redisConnect(host, port);

    if (c != NULL && c->err != 0) {
        redisFree(c);
        c = NULL;
    }
    return c;
}

/* True: an integer is the answer; else `text` says why not. */
static bool incr(redisContext *c, const char *of, long long *value, char *text)
{
    redisReply *reply = c == NULL ? NULL : redisCommand(c, "INCR %s", of);
    const bool good = reply != NULL && reply->type == REDIS_REPLY_INTEGER;

    if (good) {
        *value = reply->integer;
    } else {
        (void)snprintf(text,
                       TEXT_MAX,
                       "%s",
                       reply != NULL ? reply->str
                       : c != NULL   ? c->errstr
                                     : "no connection");
    }
    if (reply != NULL) {
        freeReplyObject(reply);
    }
    return good;
}

static bool did_not_run(const char *text)
{
    return strstr(text, "MOVING") != NULL || strstr(text, "OVERLOADED") != NULL ||
           strstr(text, "NOKIND") != NULL || strstr(text, "QUARANTINED") != NULL ||
           strcmp(text, "no connection") == 0;
}

static void *work(void *unused)
{
    redisContext *c = dial();
    long long value = 0;
    char text[TEXT_MAX];

    (void)unused;
    while (!sums.over) {
        const bool good = incr(c, key, &value, text);

        (void)pthread_mutex_lock(&sums.lock);
        if (good) {
            sums.answered++;
        } else {
            *(did_not_run(text) ? &sums.refused : &sums.unknown) += 1;
            memcpy(sums.text, text, TEXT_MAX);
        }
        (void)pthread_mutex_unlock(&sums.lock);
        if (c == NULL || c->err != 0) {
            if (c != NULL) {
                redisFree(c);
            }
            c = dial();
        }
        (void)usleep(2000);
    }
    if (c != NULL) {
        redisFree(c);
    }
    return NULL;
}

static void start(redisContext **c)
{
    long long value = 0;
    char text[TEXT_MAX];

    *c = dial();
    redisReply *reply = *c == NULL ? NULL : redisCommand(*c, "SET start 1");
    const bool set = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (reply != NULL) {
        freeReplyObject(reply);
    }
    reply = set ? redisCommand(*c, "GET start") : NULL;
    const bool got =
        reply != NULL && reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "1") == 0;
    if (reply != NULL) {
        freeReplyObject(reply);
    }
    if (got && incr(*c, "start", &value, text)) {
        (void)printf("ok %lld\n", value);
    } else {
        (void)printf("error SET or GET failed\n");
    }
}

static void pipeline(redisContext *c, const char *of, int count)
{
    redisReply *reply = NULL;
    long long last = 0;

    if (c == NULL) {
        (void)puts("error no connection");
        return;
    }
    for (int i = 0; i < count; i++) {
        (void)redisAppendCommand(c, "INCR %s", of);
    }
    for (int i = 0; i < count; i++) {
        if (redisGetReply(c, (void **)&reply) != REDIS_OK || reply->type != REDIS_REPLY_INTEGER) {
            (void)printf("error %s\n", c->err != 0 ? c->errstr : reply->str);
            return;
        }
        last = reply->integer;
        freeReplyObject(reply);
    }
    (void)printf("ok %lld\n", last);
}

static void churn(const char *of, int count)
{
    long long value = 0;
    char text[TEXT_MAX];

    for (int i = 0; i < count; i++) {
        redisContext *c = dial();
        const bool good = incr(c, of, &value, text);

        if (c != NULL) {
            redisFree(c);
        }
        if (!good) {
            (void)printf("error %s\n", text);
            return;
        }
    }
    (void)printf("ok %lld\n", value);
}

static void multi(redisContext *c, const char *of)
{
    redisReply *reply = NULL;
    char text[TEXT_MAX] = "ok done";

    (void)redisAppendCommand(c, "MULTI");
    (void)redisAppendCommand(c, "INCR %s", of);
    (void)redisAppendCommand(c, "EXEC");
    for (int i = 0; i < 3 && redisGetReply(c, (void **)&reply) == REDIS_OK; i++) {
        if (reply->type == REDIS_REPLY_ERROR) {
            (void)snprintf(text, sizeof text, "error %s", reply->str);
        }
        freeReplyObject(reply);
    }
    (void)puts(text);
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS_MAX];
    redisContext *c = NULL;
    char line[256];
    char word[16];
    char of[64];
    char digits[16];
    int workers = 0;

    if (argc != 5) {
        return 64;
    }
    host = argv[3];
    port = (int)strtol(argv[4], NULL, 10);
    while (fgets(line, sizeof line, stdin) != NULL) {
        digits[0] = '\0';
        if (sscanf(line, "%15s %63s %15s", word, of, digits) < 1) {
            continue;
        }
        const int number = (int)strtol(digits, NULL, 10);

        if (strcmp(word, "start") == 0) {
            start(&c);
        } else if (strcmp(word, "pipeline") == 0) {
            pipeline(c, of, number);
        } else if (strcmp(word, "churn") == 0) {
            churn(of, number);
        } else if (strcmp(word, "multi") == 0) {
            multi(c, of);
        } else if (strcmp(word, "count") == 0) {
            (void)snprintf(key, sizeof key, "%s", of);
            sums.over = false;
            sums.answered = sums.refused = sums.unknown = 0;
            sums.text[0] = '\0';
            workers = number < WORKERS_MAX ? number : WORKERS_MAX;
            for (int i = 0; i < workers; i++) {
                (void)pthread_create(&threads[i], NULL, work, NULL);
            }
            (void)puts("ok counting");
        } else {
            sums.over = true;
            for (int i = 0; i < workers; i++) {
                (void)pthread_join(threads[i], NULL);
            }
            (void)printf("ok answered=%lu refused=%lu unknown=%lu %s\n",
                         sums.answered,
                         sums.refused,
                         sums.unknown,
                         sums.text);
        }
        (void)fflush(stdout);
    }
    return 0;
}
