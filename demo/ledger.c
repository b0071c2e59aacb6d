/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's witness, a shared object for `ringhold node --actor ledger`. It answers a payload
 * "client seq [milliseconds]", in decimal, with "OK count": how many requests of that client it has
 * run; with milliseconds, that much later. It writes every activation, run, freeze and end to a
 * journal (demo/journal.h), FOLDER/<node>-<pid>.journal; FOLDER is the kind's argument or else
 * RINGHOLD_LEDGER of the environment. RINGHOLD_BALLAST=BYTES gives each actor so much memory to
 * lose (demo/ballast.h); one whose ballast does not arrive as it left refuses to start.
 */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/history.h"
#include "base/mem.h"
#include "demo/ballast.h"
#include "demo/journal.h"
#include "wire/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <ringhold.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAKE_MS_MAX = 60 * 1000, SEEN_SIZE = 20 };

/* What all ledgers of a process write to. */
struct books {
    pthread_mutex_t lock;    /* the ledgers of several workers write */
    struct journal *journal; /* owned; NULL = none asked for */
    struct history *history; /* owned; NULL = none asked for */
    char process[HISTORY_PROCESS_MAX + 1];
    uint32_t ballast; /* bytes of each actor's, 0 = none */
};

/* What one client had run here. */
struct ledger_seen {
    uint32_t client;
    uint64_t last;
    uint64_t count;
};

struct ledger {
    uint64_t id_hash;
    struct ledger_seen *seen; /* owned */
    size_t seen_count;
    struct ballast ballast;
    uint32_t client; /* of the request that runs */
    uint64_t seq;
};

static void put(const struct rh_actor *actor, const struct journal_record *record)
{
    struct books *b = rh_shared(actor);

    if (b->journal != NULL) {
        (void)pthread_mutex_lock(&b->lock);
        journal_put(b->journal, record);
        (void)pthread_mutex_unlock(&b->lock);
    }
}

/* The same in the public format: docs/history.md. */
static void tell(const struct rh_actor *actor, const struct ledger *l, enum journal_event event)
{
    static const enum history_event_type types[] = {
        [JOURNAL_ACTIVATE] = HISTORY_ACTIVATE,
        [JOURNAL_RUN_BEGIN] = HISTORY_EXEC_BEGIN,
        [JOURNAL_RUN_END] = HISTORY_EXEC_END,
        [JOURNAL_EXPORT] = HISTORY_FREEZE,
        [JOURNAL_RESUME] = HISTORY_UNFREEZE,
        [JOURNAL_DISCARD] = HISTORY_STOP,
    };
    struct books *b = rh_shared(actor);
    const struct rh_bytes id = rh_id(actor);
    char word[HISTORY_WORD_SIZE];
    char more[96] = "";
    uint64_t effects = 0;

    if (b->history == NULL) {
        return;
    }
    for (size_t i = 0; i < l->seen_count; i++) {
        effects += l->seen[i].count;
    }
    if (event == JOURNAL_RUN_BEGIN || event == JOURNAL_RUN_END) {
        (void)snprintf(more, sizeof more, " session=c%u seq=%" PRIu64, l->client, l->seq);
    } else if (event == JOURNAL_ACTIVATE) {
        (void)snprintf(more, sizeof more, " effects=%" PRIu64, effects);
    }
    (void)pthread_mutex_lock(&b->lock);
    history_write(b->history,
                  clock_boottime_us(),
                  b->process,
                  types[event],
                  "entity=%s fence=%" PRIu64 "%s",
                  history_word(bytes_of(id.data, id.size), word),
                  rh_fence(actor),
                  more);
    (void)pthread_mutex_unlock(&b->lock);
}

static void note(const struct rh_actor *actor, const struct ledger *l, enum journal_event event)
{
    const bool runs = event == JOURNAL_RUN_BEGIN || event == JOURNAL_RUN_END;
    const struct journal_record record = {
        .id_hash = l->id_hash,
        .seq = runs ? l->seq : 0,
        .fence = rh_fence(actor),
        .client = runs ? l->client : 0,
        .event = event,
    };

    put(actor, &record);
    tell(actor, l, event);
}

static struct ledger_seen *seen_of(struct ledger *l, uint32_t client)
{
    for (size_t i = 0; i < l->seen_count; i++) {
        if (l->seen[i].client == client) {
            return &l->seen[i];
        }
    }
    l->seen = mem_resize(l->seen, (l->seen_count + 1) * sizeof *l->seen);
    l->seen[l->seen_count] = (struct ledger_seen){.client = client};
    return &l->seen[l->seen_count++];
}

/* The process's journal in `folder`. */
static bool open_journal(struct books *b, const char *folder, const char *node)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/%s-%ld.journal", folder, node, (long)getpid());
    const enum err error = journal_open(&b->journal, path, node);
    if (error != ERR_OK) {
        (void)fprintf(
            stderr, "ringhold node: can't make the journal %s: %s\n", path, err_text(error));
    }
    return error == ERR_OK;
}

static void ledger_stop(void *shared)
{
    struct books *b = shared;

    journal_close(b->journal);
    history_close(b->history);
    (void)pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

/* RINGHOLD_BALLAST=BYTES; anything else is none. */
static uint32_t asked_ballast(void)
{
    const char *text = getenv("RINGHOLD_BALLAST");
    const unsigned long size = text == NULL ? 0 : strtoul(text, NULL, 10);

    return size > BALLAST_MAX ? BALLAST_MAX : (uint32_t)size;
}

static int ledger_start(const struct rh_kind_info *info, void **shared)
{
    const char *folder = info->argument[0] != '\0' ? info->argument : getenv("RINGHOLD_LEDGER");
    struct books *b = mem_new(1, sizeof *b);

    (void)pthread_mutex_init(&b->lock, NULL);
    b->ballast = asked_ballast();
    (void)snprintf(b->process, sizeof b->process, "%.100s.%ld", info->node, (long)getpid());
    if (history_open_asked(&b->history) != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold node: can't write the history %s: %s\n",
                      getenv("RINGHOLD_HISTORY"),
                      strerror(errno));
        ledger_stop(b);
        return RH_FAILED;
    }
    if (b->history == NULL && (folder == NULL || folder[0] == '\0')) {
        (void)fprintf(stderr,
                      "ringhold node: the ledger actor needs RINGHOLD_LEDGER=DIR or "
                      "RINGHOLD_HISTORY=FILE in the environment, or --actor ledger=DIR\n");
        ledger_stop(b);
        return RH_FAILED;
    }
    if (folder != NULL && folder[0] != '\0' && !open_journal(b, folder, info->node)) {
        ledger_stop(b);
        return RH_FAILED;
    }
    *shared = b;
    return RH_OK;
}

static bool load(struct ledger *l, const struct rh_bytes *state)
{
    struct reader r = {.at = state->data, .left = state->size};

    if (!ballast_get(&l->ballast, &r) || r.left % SEEN_SIZE != 0) {
        return false;
    }
    while (r.left > 0) {
        struct ledger_seen *s = seen_of(l, get_u32(&r));

        s->last = get_u64(&r);
        s->count = get_u64(&r);
    }
    return true;
}

static void ledger_free(struct ledger *l)
{
    ballast_fini(&l->ballast);
    mem_free(l->seen);
    mem_free(l);
}

static int ledger_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                           void **instance)
{
    const struct rh_bytes id = rh_id(actor);
    const struct books *b = rh_shared(actor);
    struct ledger *l = mem_new(1, sizeof *l);

    (void)fence;
    l->id_hash = journal_id_hash(bytes_of(id.data, id.size));
    ballast_init(&l->ballast, b->ballast, l->id_hash);
    if (state != NULL && !load(l, state)) {
        ledger_free(l);
        return RH_FAILED;
    }
    note(actor, l, JOURNAL_ACTIVATE);
    *instance = l;
    return RH_OK;
}

static void end_run(struct rh_actor *actor, struct ledger *l)
{
    struct ledger_seen *s = seen_of(l, l->client);
    char text[32];

    s->last = l->seq;
    s->count++;
    ballast_touch(&l->ballast, l->seq);
    (void)snprintf(text, sizeof text, "OK %" PRIu64, s->count);
    note(actor, l, JOURNAL_RUN_END);
    (void)rh_reply(actor, rh_bytes_value(text, strlen(text)));
}

static void on_taken(struct rh_actor *actor, void *instance, void *argument)
{
    (void)argument;
    end_run(actor, instance);
}

/* Take a decimal number and the blank after it off the front. */
static bool take_number(struct rh_bytes *text, uint64_t *out)
{
    const char *at = text->data;
    uint64_t sum = 0;
    size_t used = 0;

    while (used < text->size && at[used] >= '0' && at[used] <= '9' && used < 19) {
        sum = sum * 10 + (uint64_t)(at[used++] - '0');
    }
    if (used == 0 || (used < text->size && at[used] != ' ')) {
        return false;
    }
    used += used < text->size ? 1 : 0;
    *text = (struct rh_bytes){at + used, text->size - used};
    *out = sum;
    return true;
}

static void ledger_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct ledger *l = instance;
    struct rh_bytes rest = message->payload;
    uint64_t client = 0;
    uint64_t seq = 0;
    uint64_t ms = 0;

    if (!take_number(&rest, &client) || client > UINT32_MAX || !take_number(&rest, &seq) ||
        (rest.size > 0 && (!take_number(&rest, &ms) || rest.size > 0 || ms > TAKE_MS_MAX))) {
        (void)rh_reply(actor, rh_error("ERR the ledger takes 'client seq [milliseconds]'"));
        return;
    }
    l->client = (uint32_t)client;
    l->seq = seq;
    note(actor, l, JOURNAL_RUN_BEGIN);
    if (ms == 0) {
        end_run(actor, l);
        return;
    }
    (void)rh_defer(actor);
    (void)rh_after(actor, (uint32_t)ms, on_taken, NULL);
}

static int ledger_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    struct ledger *l = instance;

    ballast_put(&l->ballast, out);
    for (size_t i = 0; i < l->seen_count; i++) {
        uint8_t encoded[SEEN_SIZE];
        struct writer w = {.at = encoded, .left = sizeof encoded};

        put_u32(&w, l->seen[i].client);
        put_u64(&w, l->seen[i].last);
        put_u64(&w, l->seen[i].count);
        rh_out_put(out, encoded, sizeof encoded);
    }
    note(actor, l, JOURNAL_EXPORT);
    return RH_OK;
}

static void ledger_resume(struct rh_actor *actor, void *instance)
{
    struct ledger *l = instance;

    note(actor, l, JOURNAL_RESUME);
}

static void ledger_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct ledger *l = instance;
    const struct journal_record record = {.id_hash = l->id_hash,
                                          .seq = (uint64_t)why,
                                          .fence = rh_fence(actor),
                                          .event = JOURNAL_DISCARD};

    put(actor, &record);
    tell(actor, l, JOURNAL_DISCARD);
    ledger_free(l);
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "ledger",
    .start = ledger_start,
    .stop = ledger_stop,
    .activate = ledger_activate,
    .message = ledger_message,
    .handoff = ledger_handoff,
    .resume = ledger_resume,
    .deactivate = ledger_deactivate,
    .idle_ms = UINT32_MAX, // its state is nowhere else
    .state_max = 64 * 1024 * 1024,
};
