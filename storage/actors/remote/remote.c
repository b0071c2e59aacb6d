/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what is sent to a database elsewhere, what its answers mean, and what is in doubt.
 */
#include "storage/actors/remote/remote.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <string.h>

/* ---- the line ---- */

static void back_off(struct remote_store *r, uint64_t now_ms)
{
    const uint64_t next = r->back_ms == 0 ? REMOTE_BACKOFF_MIN_MS : 2 * r->back_ms;

    r->try_ms = now_ms + r->back_ms;
    r->back_ms = next < REMOTE_BACKOFF_MAX_MS ? next : REMOTE_BACKOFF_MAX_MS;
}

static void lose(struct remote_store *r, uint64_t now_ms)
{
    r->open = false;
    r->losses++;
    if (!r->lost) {
        r->lost = true;
        r->lost_ms = now_ms;
    }
    back_off(r, now_ms);
}

/* Everything was answered. */
static void rejoice(struct remote_store *r)
{
    r->lost = false;
    r->back_ms = 0;
}

void remote_opened(struct remote_store *r, bool good, uint64_t now_ms)
{
    if (!good) {
        back_off(r, now_ms);
        return;
    }
    r->open = true;
    r->store->counts.reconnects += r->was_opened ? 1 : 0;
    r->was_opened = true;
}

/* ---- what is in doubt ---- */

static void doubt(struct remote_store *r, struct store_task *t)
{
    const uint64_t raised = mutant(M_LATECOMMIT) ? t->number - 1 : t->number + 1;
    struct doubt *d = &r->doubt[r->doubt_count++];

    ASSERT(r->doubt_count <= STORE_TASKS_MAX);
    *d = (struct doubt){
        .task = t,
        .commit = verdict_row_of(t),
        .raised = raised,
        .kind = t->kind,
        .id_size = t->id_size,
    };
    memcpy(d->id, t->id, t->id_size);
}

static void settle(struct remote_store *r, const struct doubt *d, const struct store_row *found)
{
    const enum store_result result = verdict_of_doubt(&d->commit, found);

    if (d->task != NULL) {
        d->task->result = (uint8_t)result;
    } else {
        log_info("store",
                 "settled",
                 "kind=%u number=%" PRIu64 " done=%s",
                 d->kind,
                 d->commit.number,
                 result == STORE_DONE          ? "yes"
                 : result == STORE_UNAVAILABLE ? "no"
                                               : "unknown");
    }
    if (verdict_went_back(&d->commit, found)) {
        verdict_stop(r->store, d->kind, &d->commit, found);
    }
}

void remote_settled(struct remote_store *r, bool good, uint64_t now_ms)
{
    const size_t count = r->doubt_count;

    r->doubt_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (r->answer[i].said == LINE_ROW) {
            settle(r, &r->doubt[i], &r->answer[i].row);
        } else {
            r->doubt[r->doubt_count++] = r->doubt[i];
        }
    }
    if (good && r->doubt_count == 0) {
        rejoice(r);
    } else {
        lose(r, now_ms); // what the line can't settle another may
    }
}

/* ---- what was sent ---- */

/* Its row is not what the task is for. */
static enum store_result refused(struct remote_store *r, const struct store_task *t,
                                 const struct store_row *found)
{
    const struct store_row mine = verdict_row_of(t);

    if (t->verb == STORE_COMMIT && verdict_went_back(&mine, found)) {
        verdict_stop(r->store, t->kind, &mine, found);
        return STORE_UNAVAILABLE;
    }
    return STORE_FENCED;
}

/* Its answer is. True if it is to be sent again. */
static bool lost(struct remote_store *r, struct store_task *t)
{
    switch ((enum store_verb)t->verb) {
    case STORE_CLAIM:
        return true; // it may be made again at any time
    case STORE_COMMIT:
        doubt(r, t);
        return false;
    case STORE_DUE: // a page may have taken the place of its question
        break;
    }
    t->result = STORE_UNAVAILABLE;
    return false;
}

/* True if it is to be sent again. */
static bool take(struct remote_store *r, struct store_task *t, const struct line_answer *a)
{
    switch ((enum line_said)a->said) {
    case LINE_DONE:
        t->result = STORE_DONE;
        if (t->verb == STORE_CLAIM) {
            t->number = a->row.number;
        }
        return false;
    case LINE_ROW:
        t->result = (uint8_t)refused(r, t, &a->row);
        return false;
    case LINE_REFUSED:
        t->result = STORE_UNAVAILABLE;
        return false;
    case LINE_CROWDED:
        r->apart = true;
        return true;
    case LINE_NOTHING:
        break;
    }
    return lost(r, t);
}

void remote_sent(struct remote_store *r, bool good, uint64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->todo_count; i++) {
        if (i >= r->chosen_count || take(r, r->todo[i], &r->answer[i])) {
            r->todo[kept++] = r->todo[i];
        }
    }
    r->todo_count = kept;
    if (good) {
        rejoice(r);
    } else {
        lose(r, now_ms);
    }
}

/* ---- a call ---- */

void remote_begin(struct remote_store *r, struct store_task *const *task, size_t count)
{
    ASSERT(count <= STORE_TASKS_MAX && r->todo_count == 0);
    for (size_t i = 0; i < count; i++) {
        r->todo[i] = task[i];
    }
    r->todo_count = count;
    r->apart = false;
    r->losses = 0;
}

static bool waits_for_doubt(const struct remote_store *r)
{
    for (size_t i = 0; i < r->doubt_count; i++) {
        if (r->doubt[i].task != NULL) {
            return true;
        }
    }
    return false;
}

/* Its commits stay in doubt, and nothing is sent before they are settled. */
static enum remote_step give_up(struct remote_store *r)
{
    for (size_t i = 0; i < r->doubt_count; i++) {
        if (r->doubt[i].task != NULL) {
            r->doubt[i].task->result = STORE_UNKNOWN;
            r->doubt[i].task = NULL;
        }
    }
    for (size_t i = 0; i < r->todo_count; i++) {
        r->todo[i]->result = STORE_UNAVAILABLE;
    }
    r->todo_count = 0;
    return REMOTE_DONE;
}

/* There is no line. */
static enum remote_step connect_or_wait(struct remote_store *r, bool doubts, uint64_t now_ms)
{
    const uint64_t until_ms = r->lost_ms + (doubts ? REMOTE_DOUBT_MS : REMOTE_HOLD_MS);

    if (r->losses > REMOTE_LOSSES_MAX) {
        return give_up(r);
    }
    if (now_ms >= r->try_ms) {
        return REMOTE_OPEN;
    }
    if (now_ms >= until_ms) {
        return give_up(r);
    }
    r->wait_ms = (r->try_ms < until_ms ? r->try_ms : until_ms) - now_ms;
    return REMOTE_WAIT;
}

enum remote_step remote_next(struct remote_store *r, uint64_t now_ms)
{
    const bool doubts = waits_for_doubt(r);

    if (r->todo_count == 0 && !doubts) {
        return REMOTE_DONE;
    }
    if (verdict_is_stopped(r->store)) {
        return give_up(r);
    }
    if (!r->open) {
        return connect_or_wait(r, doubts, now_ms);
    }
    if (r->doubt_count > 0) {
        memset(r->answer, 0, r->doubt_count * sizeof r->answer[0]);
        return REMOTE_SETTLE;
    }
    r->chosen_count = r->apart ? 1 : r->todo_count;
    memset(r->answer, 0, r->chosen_count * sizeof r->answer[0]);
    return REMOTE_SEND;
}
