/* SPDX-License-Identifier: Apache-2.0
 *
 * Does what the machine says: opens and uses the line, waits, and logs when it breaks.
 */
#include "storage/actors/remote/store_remote_uv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "storage/actors/remote/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct remote_shell {
    struct actor_store store;
    struct remote_store remote;
    struct store_line *line;  /* owned */
    char said[LINE_WHY_SIZE]; /* the reason that was logged last; "" = it answers */
    uint64_t away_ms;         /* since when it does not */
};

static uint64_t now_ms(void)
{
    return clock_boottime_us() / 1000;
}

/* Once for each reason, however often it is tried. */
static void say_away(struct remote_shell *s)
{
    if (s->said[0] == '\0') {
        s->away_ms = now_ms();
    }
    if (strcmp(s->said, s->line->why) != 0) {
        (void)snprintf(s->said, sizeof s->said, "%s", s->line->why);
        log_warn("store", "store_is_away", "reason=\"%s\"", s->said);
    }
}

/* It has answered. */
static void say_back(struct remote_shell *s)
{
    if (s->said[0] != '\0') {
        log_info("store", "store_is_back", "away_ms=%" PRIu64, now_ms() - s->away_ms);
        s->said[0] = '\0';
    }
}

static void rest(uint64_t ms)
{
    const struct timespec pause = {
        .tv_sec = (time_t)(ms / 1000),
        .tv_nsec = (long)(ms % 1000) * 1000000,
    };

    (void)nanosleep(&pause, NULL);
}

static void perform(struct actor_store *store, struct store_task *const *task, size_t count)
{
    struct remote_shell *s = (struct remote_shell *)store;
    struct remote_store *r = &s->remote;
    enum remote_step step;
    bool good = false;

    remote_begin(r, task, count);
    while ((step = remote_next(r, now_ms())) != REMOTE_DONE) {
        if (step == REMOTE_WAIT) {
            rest(r->wait_ms);
            continue;
        }
        if (step == REMOTE_OPEN) {
            good = s->line->open(s->line);
            remote_opened(r, good, now_ms());
        } else if (step == REMOTE_SETTLE) {
            good = s->line->settle(s->line, r->doubt, r->doubt_count, r->answer);
            remote_settled(r, good, now_ms());
        } else {
            good = s->line->send(s->line, r->todo, r->chosen_count, r->answer);
            remote_sent(r, good, now_ms());
        }
        if (!good) {
            say_away(s);
        } else if (step != REMOTE_OPEN) {
            say_back(s);
        }
    }
}

static void close_store(struct actor_store *store)
{
    struct remote_shell *s = (struct remote_shell *)store;

    s->line->free(s->line);
    mem_free(s);
}

bool line_open_whole(struct store_line *line, enum whole_use use, struct actor_store **store,
                     char why[LINE_WHY_SIZE])
{
    *store = NULL;
    if (line == NULL) {
        return false;
    }
    if (use != WHOLE_BESIDE) {
        line->use = use == WHOLE_ALONE ? LINE_ALONE : LINE_TARGET;
        *store = store_remote_open(line, why);
        return *store != NULL;
    }
    line->use = LINE_BESIDE;
    if (!line->open(line)) {
        (void)snprintf(why, LINE_WHY_SIZE, "%s", line->why);
        line->free(line);
        return false;
    }
    return true;
}

struct actor_store *store_remote_open(struct store_line *line, char why[LINE_WHY_SIZE])
{
    struct remote_shell *s = mem_new(1, sizeof *s);

    s->store = (struct actor_store){.perform = perform, .close = close_store};
    s->line = line;
    s->remote.store = &s->store;
    if (!line->open(line)) {
        (void)snprintf(why, LINE_WHY_SIZE, "%s", line->why);
        close_store(&s->store);
        return NULL;
    }
    remote_opened(&s->remote, true, now_ms());
    return &s->store;
}
