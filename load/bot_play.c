/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bot does while it is in: its script, line by line, and what that does every so often.
 */
#include "load/bot_inside.h"

#include <math.h>

/* By chance, so many of a hundred each minute. */
static uint64_t next_drop_us(struct bots *all, uint32_t percent, uint64_t now_us)
{
    const double uniform = ((double)(prng_u64(&all->chance) >> 11) + 0.5) / 9007199254740992.0;

    if (percent == 0) {
        return UINT64_MAX;
    }
    return now_us + (uint64_t)(-log(uniform) * 60e6 * 100 / percent);
}

void bot_be_live(struct bot *b, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    histogram_add(&l->login, now_us - b->stage_us);
    l->logins++;
    if (!b->was_live) {
        b->was_live = true;
        l->last_login_us = now_us;
    }
    b->failures = 0;
    bot_enter(b, BOT_LIVE, now_us);
    b->next_us = UINT64_MAX;
    b->drop_us = next_drop_us(b->all, b->drop_percent, now_us);
    for (uint32_t i = 0; i < b->all->config.script->tasks; i++) {
        if (b->task_us[i] != 0 && b->task_us[i] < now_us) {
            b->task_us[i] = now_us; // what it did not do while it was away it does once
        }
    }
}

static bool has_room(const struct bot *b)
{
    return b->asked_count < BOT_DEPTH && !b->leaving;
}

static void drop_line(struct bot *b, uint32_t min_ms, uint32_t max_ms, uint64_t now_us)
{
    b->all->ledger.dropped++;
    bot_go_away(b, prng_between(&b->all->chance, min_ms, max_ms), now_us);
}

/* ---- what goes on ---- */

static void do_task(struct bot *b, uint8_t number, uint64_t now_us)
{
    const struct script_line *l = &b->all->config.script->line[number];
    uint64_t *due_us = &b->task_us[l->task];

    if (*due_us == 0 || now_us < *due_us) {
        return;
    }
    if (l->act == SCRIPT_NOTIFY) {
        bot_notify(b, number);
    } else if (has_room(b)) {
        bot_ask(b, number, now_us);
    }
    *due_us += (uint64_t)l->every_ms * BOT_MS;
    *due_us = *due_us > now_us ? *due_us : now_us + (uint64_t)l->every_ms * BOT_MS;
}

static void do_tasks(struct bot *b, uint64_t now_us)
{
    const struct script *s = b->all->config.script;

    for (uint32_t i = 0; i < s->count; i++) {
        if (s->line[i].every_ms > 0) {
            do_task(b, (uint8_t)i, now_us);
        }
    }
}

/* ---- the next line ---- */

static void begin_task(struct bot *b, const struct script_line *l, uint64_t now_us)
{
    if (b->task_us[l->task] == 0) { // not all bots at once
        b->task_us[l->task] =
            now_us + prng_between(&b->all->chance, 0, (uint64_t)l->every_ms * BOT_MS);
    }
}

/* False: it is not done yet. */
static bool wait(struct bot *b, uint32_t for_ms, uint64_t now_us)
{
    if (b->wait_us == 0) {
        b->wait_us = now_us + (uint64_t)for_ms * BOT_MS;
    }
    if (now_us < b->wait_us) {
        return false;
    }
    b->wait_us = 0;
    return true;
}

static void begin_dropping(struct bot *b, const struct script_line *l, uint64_t now_us)
{
    b->drop_percent = l->percent;
    b->away_min_ms = l->min_ms;
    b->away_max_ms = l->max_ms;
    b->drop_us = next_drop_us(b->all, l->percent, now_us);
}

/* False: the line is not done, and the next is not to be looked at now. */
static bool do_line(struct bot *b, const struct script_line *l, uint64_t now_us)
{
    switch (l->act) {
    case SCRIPT_REQUEST:
    case SCRIPT_NOTIFY:
        if (l->every_ms > 0) {
            begin_task(b, l, now_us);
        } else if (l->act == SCRIPT_NOTIFY) {
            bot_notify(b, b->line);
        } else if (has_room(b)) {
            bot_ask(b, b->line, now_us);
        } else {
            return false;
        }
        return true;
    case SCRIPT_WAIT:
        return wait(b, l->min_ms, now_us);
    case SCRIPT_DROP:
        if (l->percent > 0) {
            begin_dropping(b, l, now_us);
        } else {
            drop_line(b, l->min_ms, l->max_ms, now_us);
        }
        return true;
    case SCRIPT_LEAVE:
        b->ending = true;
        b->drop_us = UINT64_MAX;
        return true;
    case SCRIPT_REPEAT:
        b->line = UINT8_MAX; // and one more is the first
        return true;
    }
    return true;
}

static void do_script(struct bot *b, uint64_t now_us)
{
    const struct script *s = b->all->config.script;

    while (b->stage == BOT_LIVE && !b->ending && b->line < s->count &&
           do_line(b, &s->line[b->line], now_us)) {
        b->line++;
    }
}

void bot_play(struct bot *b, uint64_t now_us)
{
    bot_judge_late(b, now_us);
    if (now_us >= b->ack_us) {
        bot_say_ack(b);
    }
    if (b->all->stopping) {
        b->drop_us = UINT64_MAX;
        return;
    }
    do_script(b, now_us);
    if (b->stage != BOT_LIVE || b->ending) {
        return;
    }
    if (now_us >= b->drop_us) {
        drop_line(b, b->away_min_ms, b->away_max_ms, now_us);
        return;
    }
    do_tasks(b, now_us);
}

/* ---- when ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t script_us(const struct bot *b)
{
    const struct script *s = b->all->config.script;
    uint64_t due_us = b->drop_us;

    if (b->line < s->count) {
        const bool full = s->line[b->line].act == SCRIPT_REQUEST && !has_room(b);

        // A full one goes on when an answer comes, or when one is given up.
        due_us = full ? due_us : least(due_us, b->wait_us);
    }
    for (uint32_t i = 0; i < s->tasks; i++) {
        due_us = b->task_us[i] == 0 ? due_us : least(due_us, b->task_us[i]);
    }
    return due_us;
}

uint64_t bot_play_us(const struct bot *b)
{
    uint64_t due_us = b->ack_us;

    if (b->asked_count > 0) {
        due_us = least(due_us, b->asked[0].since_us + (uint64_t)b->all->config.answer_ms * BOT_MS);
    }
    return b->all->stopping || b->ending ? due_us : least(due_us, script_us(b));
}
