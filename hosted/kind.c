/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds that the options declare, and all that is hosted, from its begin to its end.
 */
#include "hosted/inside.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATE_DEFAULT = 1024 * 1024,
    STATE_MAX = 64 * 1024 * 1024,
    IDLE_MAX_S = 30 * 24 * 3600,
    TURN_MAX_S = 3600,
    MAILBOX_MAX = 1000000,
};

/* ops.start has no context of its own, so it looks here. */
static struct hosted *current;

static const struct rh_actor_ops *complain(const char *words, const char *what)
{
    (void)fprintf(stderr, "ringhold node: --kind: host=%s: %s\n", words, what);
    return NULL;
}

static void nobody_listens(void *context)
{
    (void)context;
}

struct hosted *hosted_open(const struct hosted_options *options)
{
    struct hosted *h = mem_new(1, sizeof *h);

    h->options = *options;
    (void)snprintf(h->token, sizeof h->token, "%s", options->token);
    (void)snprintf(h->node, sizeof h->node, "%s", options->node);
    (void)pthread_mutex_init(&h->lock, NULL);
    list_init(&h->links);
    h->now_us = clock_boottime_us();
    h->on_output = nobody_listens;
    current = h;
    return h;
}

void hosted_close(struct hosted *h)
{
    if (h == NULL) {
        return;
    }
    if (h->listener != NULL) {
        hosted_listener_free(h->listener);
    }
    current = NULL;
    (void)pthread_mutex_destroy(&h->lock);
    mem_free(h);
}

/* ---- a kind */

/* When all kinds have their numbers, hosts may come. */
static bool started(struct hosted *h)
{
    if (++h->started_count == h->kind_count) {
        h->listener = hosted_listener_new(h);
        return h->listener != NULL;
    }
    return true;
}

static int on_start(const struct rh_kind_info *info, void **shared)
{
    // Its words begin with its name.
    const size_t size = strcspn(info->argument, ",");

    for (size_t i = 0; i < current->kind_count; i++) {
        struct hosted_kind *k = &current->kind[i];

        if (strlen(k->name) == size && memcmp(k->name, info->argument, size) == 0) {
            k->number = info->kind;
            *shared = k;
            return started(current) ? RH_OK : RH_FAILED;
        }
    }
    return RH_FAILED;
}

/* "idle=600": the number behind the key. False: it is none from 1 to `max`. */
static bool read_number(const char *text, uint32_t max, uint32_t *out)
{
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);

    *out = (uint32_t)number;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && number >= 1 && number <= max;
}

static bool read_sessions(struct hosted_kind *k, const char *policy)
{
    static const char *const policies[] = {[RH_SESSIONS_KICK_OLD] = "kick",
                                           [RH_SESSIONS_REJECT_NEW] = "reject",
                                           [RH_SESSIONS_ALLOW] = "allow"};

    for (uint32_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(policy, policies[i]) == 0) {
            k->sessions = true;
            k->ops.sessions = i;
            return true;
        }
    }
    return false;
}

/* True: the word makes sense. */
static bool read_word(struct hosted_kind *k, char *word)
{
    char *value = strchr(word, '=');
    uint32_t number = 0;

    if (value == NULL) {
        bool *flag = strcmp(word, "durable") == 0  ? &k->durable
                     : strcmp(word, "alarms") == 0 ? &k->alarms
                     : strcmp(word, "flush") == 0  ? &k->flush
                                                   : NULL;
        if (flag != NULL) {
            *flag = true;
        }
        return flag != NULL;
    }
    *value++ = '\0';
    if (strcmp(word, "sessions") == 0) {
        return read_sessions(k, value);
    }
    if (strcmp(word, "idle") == 0 && read_number(value, IDLE_MAX_S, &number)) {
        k->ops.idle_ms = number * 1000;
    } else if (strcmp(word, "turn") == 0 && read_number(value, TURN_MAX_S, &number)) {
        k->turn_ms = number * 1000;
    } else if (strcmp(word, "state") == 0 && read_number(value, STATE_MAX, &number)) {
        k->ops.state_max = number;
    } else if (strcmp(word, "mailbox") == 0 && read_number(value, MAILBOX_MAX, &number)) {
        k->ops.mailbox = number;
    } else {
        return false;
    }
    return true;
}

/* NULL: the words make sense; else what is wrong. They are cut up. */
static const char *read_words(struct hosted *h, struct hosted_kind *k, char *words)
{
    char *rest = NULL;
    const char *name = strtok_r(words, ",", &rest);

    if (name == NULL || name != words || strlen(name) > HOSTED_NAME_MAX ||
        strchr(name, '=') != NULL) {
        return "a kind's name of 1 to 63 characters comes first";
    }
    for (size_t i = 0; i < h->kind_count; i++) {
        if (strcmp(h->kind[i].name, name) == 0) {
            return "another kind has that name";
        }
    }
    (void)snprintf(k->name, sizeof k->name, "%s", name);
    for (char *word = strtok_r(NULL, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (!read_word(k, word)) {
            return "a word is none of durable, alarms, flush, sessions=kick|reject|allow, "
                   "idle=SECONDS, turn=SECONDS, state=BYTES, mailbox=COUNT, or its number is out "
                   "of range";
        }
    }
    if (k->alarms && !k->durable) {
        return "alarms need `durable`";
    }
    return k->flush && k->durable ? "a durable kind has no `flush`: what it puts is saved at once"
                                  : NULL;
}

const struct rh_actor_ops *hosted_kind(struct hosted *h, const char *words)
{
    struct hosted_kind *k = &h->kind[h->kind_count];

    if (h->kind_count == HOSTED_KINDS_MAX) {
        return complain(words, "too many kinds");
    }
    *k = (struct hosted_kind){.hosted = h, .turn_ms = HOSTED_TURN_MS, .ops = hosted_actor_ops};
    k->ops.state_max = STATE_DEFAULT;
    char *copy = mem_string(words);
    const char *wrong = read_words(h, k, copy);
    mem_free(copy);
    if (wrong != NULL) {
        return complain(words, wrong);
    }
    k->ops.name = k->name;
    k->ops.start = on_start;
    k->ops.durable = k->durable ? 1 : 0;
    k->ops.alarm = k->alarms ? k->ops.alarm : NULL;
    k->ops.session = k->sessions ? k->ops.session : NULL;
    k->ops.flush = k->flush ? k->ops.flush : NULL;
    list_init(&k->unserved);
    list_init(&k->open);
    h->kind_count++;
    return &k->ops;
}

/* ---- figures */

void hosted_metrics(struct hosted *h, struct metrics *m)
{
    static const struct metric hosts = {
        "ringhold_node_hosts", "Hosts that are connected and welcome.", METRIC_GAUGE};
    static const struct metric welcome = {
        "ringhold_node_hosts_welcome_total", "Hosts that were welcomed.", METRIC_COUNTER};
    static const struct metric ended = {"ringhold_node_hosts_ended_total",
                                        "Connections of hosts that ended, by reason.",
                                        METRIC_COUNTER};
    static const struct metric turns = {
        "ringhold_node_host_turns_total", "Turns of actors that hosts were given.", METRIC_COUNTER};
    static const struct metric steps = {
        "ringhold_node_host_steps_total", "Steps of actors that came from hosts.", METRIC_COUNTER};
    static const struct metric waiting = {"ringhold_node_host_turns_waiting",
                                          "Turns that wait for a host, or for its credit.",
                                          METRIC_GAUGE};
    static const struct metric dropped = {
        "ringhold_node_host_dropped_total",
        "What came from or for a host and was dropped, by reason.",
        METRIC_COUNTER};
    static const struct metric failed = {"ringhold_node_host_actors_failed_total",
                                         "Actors at hosts that failed, by reason.",
                                         METRIC_COUNTER};
#define WORD(name, word) (word),
    static const char *const reasons[HOSTED_REASON_COUNT] = {HOSTED_REASONS(WORD)};
    const struct hosted_stats *s = &h->stats;

    metrics_put(m, &hosts, atomic_load(&s->hosts));
    metrics_put(m, &welcome, atomic_load(&s->welcome));
    for (size_t i = 0; i < HOSTED_REASON_COUNT; i++) {
        metrics_put_labelled(m, &ended, "reason", reasons[i], atomic_load(&s->ended[i]));
    }
    metrics_put(m, &turns, atomic_load(&s->turns));
    metrics_put(m, &steps, atomic_load(&s->steps));
    metrics_put(m, &waiting, atomic_load(&s->waiting));
    metrics_put_labelled(m, &dropped, "reason", "stale", atomic_load(&s->stale));
    metrics_put_labelled(m, &dropped, "reason", "late_answer", atomic_load(&s->late_answers));
    metrics_put_labelled(m, &dropped, "reason", "overloaded", atomic_load(&s->effects));
    metrics_put_labelled(m, &failed, "reason", "host_ended", atomic_load(&s->failed_gone));
    metrics_put_labelled(m, &failed, "reason", "too_slow", atomic_load(&s->failed_slow));
    metrics_put_labelled(m, &failed, "reason", "said", atomic_load(&s->failed_said));
    metrics_put_labelled(m, &failed, "reason", "bad_effect", atomic_load(&s->failed_wrong));
    metrics_put_labelled(m, &failed, "reason", "no_host", atomic_load(&s->unserved));
}
