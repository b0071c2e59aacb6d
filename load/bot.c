/* SPDX-License-Identifier: Apache-2.0
 *
 * A bot's life: it logs in, follows its script, drops the line, resumes; all
 * bots share one ledger.
 */
#include "load/bot.h"

#include "base/assert.h"
#include "base/mem.h"
#include "load/bot_inside.h"

#include <string.h>

enum { LOGIN_MS = 20000 }; /* from connecting to LIVE; else it tries again */

/* ---- all of them ---- */

bool bot_ledger_is_clean(const struct bot_ledger *l)
{
    return l->lost + l->duplicated + l->disordered + l->wrong + l->pushes_lost +
               l->pushes_duplicated + l->pushes_disordered ==
           0;
}

struct bots *bots_new(const struct bots_config *config, uint64_t now_us)
{
    struct bots *all = mem_new(1, sizeof *all);

    ASSERT(config->count >= 1 && config->addresses >= 1 && config->script != NULL);
    all->config = *config;
    all->chance.state = config->seed;
    all->bot = mem_new(config->count, sizeof *all->bot);
    for (uint32_t i = 0; i < config->count; i++) {
        all->bot[i] = (struct bot){.all = all,
                                   .number = i,
                                   .address = i % config->addresses,
                                   .next_us = now_us,
                                   .ack_us = UINT64_MAX,
                                   .drop_us = UINT64_MAX};
        if (config->rate > 0) {
            all->bot[i].next_us += (uint64_t)i * 1000000 / config->rate;
        }
    }
    return all;
}

void bots_free(struct bots *all)
{
    if (all == NULL) {
        return;
    }
    for (uint32_t i = 0; i < all->config.count; i++) {
        buffer_fini(&all->bot[i].in);
        buffer_fini(&all->bot[i].out);
    }
    buffer_fini(&all->payload);
    mem_free(all->bot);
    mem_free(all);
}

struct bot *bots_at(struct bots *all, uint32_t number)
{
    ASSERT(number < all->config.count);
    return &all->bot[number];
}

const struct bot_ledger *bots_ledger(const struct bots *all)
{
    return &all->ledger;
}

void bots_stop(struct bots *all)
{
    all->stopping = true;
}

uint64_t bots_waiting(const struct bots *all)
{
    return all->waiting;
}

/* ---- stages ---- */

void bot_enter(struct bot *b, enum bot_stage stage, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    l->live -= b->stage == BOT_LIVE ? 1 : 0;
    l->live += stage == BOT_LIVE ? 1 : 0;
    l->live_max = l->live > l->live_max ? l->live : l->live_max;
    l->over += stage == BOT_OVER ? 1 : 0;
    b->stage = (uint8_t)stage;
    b->stage_us = now_us;
}

void bot_drop_asked(struct bot *b, uint32_t i)
{
    b->asked_count--;
    b->all->waiting--;
    memmove(&b->asked[i], &b->asked[i + 1], (b->asked_count - i) * sizeof b->asked[0]);
}

/* Requests that may have run, and whose answers don't come any more. */
static void give_up_asked(struct bot *b, bool all)
{
    for (uint32_t i = 0; i < b->asked_count;) {
        b->asked[i].again = true;
        if (all || b->asked[i].orphaned) {
            b->all->ledger.unknown++;
            b->unknown++;
            bot_drop_asked(b, i);
        } else {
            i++;
        }
    }
}

void bot_forget_session(struct bot *b)
{
    give_up_asked(b, true);
    b->kept = false;
    b->ran_name = 0;
    b->numbered = false;
    bot_expect_push(b, 1);
}

/* Its line goes, or has gone. */
static void leave_line(struct bot *b)
{
    if (b->kept) {
        give_up_asked(b, false);
    } else {
        bot_forget_session(b);
    }
    b->bind_name = 0;
    b->unbind_name = 0;
    b->bound = false;
    b->leaving = false;
    b->drop_us = b->ack_us = UINT64_MAX;
    buffer_fini(&b->in);
    buffer_fini(&b->out);
}

void bot_go_away(struct bot *b, uint64_t for_ms, uint64_t now_us)
{
    leave_line(b);
    b->closing = true;
    bot_enter(b, BOT_AWAY, now_us);
    b->next_us = now_us + for_ms * BOT_MS;
}

void bot_be_over(struct bot *b, uint64_t now_us)
{
    bot_forget_session(b);
    leave_line(b);
    b->closing = true;
    bot_enter(b, BOT_OVER, now_us);
}

void bot_go_elsewhere(struct bot *b)
{
    b->address = (b->address + 1) % b->all->config.addresses;
}

uint64_t bot_back_off_ms(struct bot *b)
{
    const unsigned steps = b->failures < 6 ? b->failures : 6;
    const uint64_t most = (uint64_t)BOT_RETRY_MIN_MS << steps;

    b->failures++;
    bot_go_elsewhere(b);
    return prng_between(
        &b->all->chance, BOT_RETRY_MIN_MS / 2, most < BOT_RETRY_MAX_MS ? most : BOT_RETRY_MAX_MS);
}

/* ---- the line ---- */

/* Nothing is owed to it, and it was told to go: elsewhere. Or it is through. */
static void go_if_told(struct bot *b, uint64_t now_us)
{
    if (b->stage != BOT_LIVE || b->asked_count > 0) {
        return;
    }
    if (b->ending && b->bound) {
        bot_say_unbind(b);
    } else if (b->ending && b->unbind_name == 0) {
        bot_be_over(b, now_us);
    } else if (b->leaving) {
        bot_go_elsewhere(b);
        bot_go_away(b, prng_between(&b->all->chance, 0, BOT_RETRY_MIN_MS), now_us);
    }
}

void bot_on_bytes(struct bot *b, struct bytes in, uint64_t now_us)
{
    size_t at = 0;

    if (b->closing) {
        return;
    }
    buffer_put(&b->in, in.data, in.size);
    while (!b->closing) {
        const struct bytes rest = bytes_of(b->in.data + at, b->in.size - at);
        struct packet p;
        const enum packet_result result = packet_next(rest, PACKET_BODY_MAX, &p);

        if (result == PACKET_MORE) {
            break;
        }
        at += PACKET_HEADER + p.body.size;
        if (!bot_hear(b, &p, now_us)) {
            b->all->ledger.wrong++;
            bot_note(b, "it makes no sense here: a packet of type", p.type);
            bot_go_away(b, bot_back_off_ms(b), now_us);
        }
    }
    if (!b->closing) { // else its buffers have gone
        buffer_consume(&b->in, at);
        go_if_told(b, now_us);
    }
}

/* It is to come: for its script, or at the end for answers that it has not. */
static bool comes_back(const struct bot *b)
{
    return !b->all->stopping || b->asked_count > 0;
}

enum bot_wish bot_wish(const struct bot *b)
{
    if (b->closing) {
        return BOT_CLOSE;
    }
    return b->stage == BOT_AWAY && b->next_us == 0 && comes_back(b) ? BOT_CONNECT : BOT_NOTHING;
}

uint32_t bot_address(const struct bot *b)
{
    return b->address;
}

struct buffer *bot_output(struct bot *b)
{
    return &b->out;
}

void bot_on_connecting(struct bot *b, uint64_t now_us)
{
    ASSERT(b->stage == BOT_AWAY);
    b->all->ledger.attempts++;
    bot_enter(b, BOT_CONNECTING, now_us);
}

void bot_on_connected(struct bot *b, uint64_t now_us)
{
    (void)now_us; // GREETING goes on from CONNECTING: a login takes both
    b->stage = BOT_GREETING;
    b->next_us = UINT64_MAX;
    bot_say_hello(b);
}

void bot_on_closed(struct bot *b, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    if (!b->closing && b->stage != BOT_AWAY && b->stage != BOT_OVER) {
        l->cut += b->stage != BOT_CONNECTING ? 1 : 0;
        l->unreachable += b->stage == BOT_CONNECTING ? 1 : 0;
        bot_go_away(b, bot_back_off_ms(b), now_us);
    }
    b->closing = false;
}

/* ---- time ---- */

uint64_t bot_due_us(const struct bot *b)
{
    const uint64_t login_us = b->stage_us + (uint64_t)LOGIN_MS * BOT_MS;

    switch ((enum bot_stage)b->stage) {
    case BOT_AWAY:
        return b->next_us == 0 || !comes_back(b) ? UINT64_MAX : b->next_us;
    case BOT_CONNECTING:
        return login_us;
    case BOT_GREETING:
        return b->next_us < login_us ? b->next_us : login_us;
    case BOT_LIVE:
        return bot_play_us(b);
    case BOT_OVER:
        return UINT64_MAX;
    }
    UNREACHABLE();
}

static void tick_login(struct bot *b, uint64_t now_us)
{
    if (now_us >= b->stage_us + (uint64_t)LOGIN_MS * BOT_MS) {
        b->all->ledger.cut++;
        bot_go_away(b, bot_back_off_ms(b), now_us);
    } else if (b->stage == BOT_GREETING && now_us >= b->next_us) {
        bot_say_bind(b);
    }
}

void bot_tick(struct bot *b, uint64_t now_us)
{
    if (b->closing) {
        return;
    }
    switch ((enum bot_stage)b->stage) {
    case BOT_AWAY:
        if (now_us >= b->next_us && comes_back(b)) {
            b->next_us = 0; // now
        }
        return;
    case BOT_CONNECTING:
    case BOT_GREETING:
        tick_login(b, now_us);
        return;
    case BOT_LIVE:
        bot_play(b, now_us);
        if (b->stage == BOT_LIVE) {
            go_if_told(b, now_us);
        }
        return;
    case BOT_OVER:
        return;
    }
}
