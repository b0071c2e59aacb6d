/* SPDX-License-Identifier: Apache-2.0
 *
 * What is entered in the ledger of answers and pushes.
 */
#include "load/bot_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_MAX = 64 };

static bool has_run(uint8_t status)
{
    return status == STATUS_OK || status == STATUS_ACTOR_FAILED;
}

static bool may_have_run(uint8_t status)
{
    return status == STATUS_UNKNOWN || status == STATUS_TIMEOUT || status == STATUS_ACTOR_FAILED;
}

/* False: it is none. */
static bool number_of(struct bytes in, uint64_t *number)
{
    char text[24] = "";
    char *end = NULL;

    if (in.size == 0 || in.size >= sizeof text || in.data[0] < '0' || in.data[0] > '9') {
        return false;
    }
    memcpy(text, in.data, in.size);
    *number = strtoull(text, &end, 10);
    return *end == '\0';
}

void bot_note(struct bot *b, const char *what, uint64_t name)
{
    struct bot_ledger *l = &b->all->ledger;

    if (l->first[0] == '\0') {
        (void)snprintf(l->first,
                       sizeof l->first,
                       "%s%" PRIu32 ": %s %" PRIu64 " (resumed %s; last answer of %" PRIu32 ")",
                       b->all->config.prefix,
                       b->number,
                       what,
                       name,
                       b->resumed ? "before" : "never",
                       b->ran_name);
    }
}

/* ---- answers ---- */

static void check_echo(struct bot *b, const struct response_packet *r, uint8_t line)
{
    const bool same = bytes_equal(r->payload, bot_payload(b, line, r->request));

    if (!same) {
        b->all->ledger.wrong++;
        bot_note(b, "a wrong answer to request", r->request);
    }
}

/* Those that were asked before it, sent again, and have no answer yet: they have run. */
static uint64_t older_count(const struct bot *b, uint32_t name)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < b->asked_count; i++) {
        count += b->asked[i].again && b->asked[i].name < name ? 1 : 0;
    }
    return count;
}

/* One more than it said last, or as many more as may have run since. */
static void check_count(struct bot *b, const struct response_packet *r, bool late)
{
    struct bot_ledger *l = &b->all->ledger;
    uint64_t count = 0;

    if (!number_of(r->payload, &count)) {
        l->wrong++;
        bot_note(b, "no request number in the answer to request", r->request);
        return;
    }
    if (late) { // saved, from before the later ones
        if (count >= b->count) {
            l->disordered++;
            bot_note(b, "a later request ran first: request", r->request);
        }
        return;
    }
    const uint64_t least = b->count + 1;
    const uint64_t most = least + b->unknown + older_count(b, r->request);
    if (b->counted && count < least) {
        l->lost += least - count;
        bot_note(b,
                 "the actor counts fewer requests than were answered, in the answer to request",
                 r->request);
    } else if (b->counted && count > most) {
        l->duplicated += count - most;
        bot_note(b,
                 "the actor counts more requests than were sent, in the answer to request",
                 r->request);
    }
    b->counted = true;
    b->count = count;
    b->unknown = count < most ? most - count : 0; // the others may still come to run
}

static void check(struct bot *b, const struct response_packet *r, uint8_t line, bool late)
{
    switch (b->all->config.check) {
    case BOT_CHECK_NONE:
        return;
    case BOT_CHECK_ECHO:
        check_echo(b, r, line);
        return;
    case BOT_CHECK_COUNT:
        check_count(b, r, late);
        return;
    }
}

void bot_judge_answer(struct bot *b, const struct response_packet *r, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;
    uint32_t i = 0;

    while (i < b->asked_count && b->asked[i].name != r->request) {
        i++;
    }
    if (i == b->asked_count) {
        l->duplicated++;
        bot_note(b, "an answer without a waiting request: request", r->request);
        return;
    }
    const struct asked a = b->asked[i];
    bot_drop_asked(b, i);
    bot_ack_later(b, now_us);
    l->status[r->status]++;
    // What is sent again may have run long ago: its answer comes when it comes.
    const bool late = has_run(r->status) && r->request < b->ran_name;
    if (late && !a.again) {
        l->disordered++;
        bot_note(b, "out of order: request", r->request);
    }
    if (has_run(r->status) && !late) {
        b->ran_name = r->request;
    }
    if (may_have_run(r->status)) {
        l->unknown += r->status != STATUS_ACTOR_FAILED ? 1 : 0;
        b->unknown++;
    }
    if (r->status == STATUS_OK) {
        if (!a.again) {
            histogram_add(&l->latency, now_us - a.since_us);
        }
        check(b, r, a.line, late && a.again);
    }
}

void bot_judge_late(struct bot *b, uint64_t now_us)
{
    while (b->asked_count > 0 &&
           b->asked[0].since_us + (uint64_t)b->all->config.answer_ms * BOT_MS <= now_us) {
        b->all->ledger.lost++;
        bot_note(b, "no answer to request", b->asked[0].name);
        b->unknown++;
        bot_drop_asked(b, 0);
    }
}

/* ---- pushes ---- */

void bot_expect_push(struct bot *b, uint64_t next)
{
    b->push = next;
    b->seen = UINT64_MAX; // none of those before is missing
}

/* One that is behind what came already. */
static void judge_late_push(struct bot *b, uint64_t sequence)
{
    struct bot_ledger *l = &b->all->ledger;
    const uint64_t back = b->push - 1 - sequence;

    if (back < SEEN_MAX && (b->seen >> back & 1) == 0) {
        b->seen |= (uint64_t)1 << back;
        bot_note(b, "out of order: push", sequence);
        l->pushes_disordered++;
        l->pushes_lost--;
    } else {
        l->pushes_duplicated++;
        bot_note(b, "received twice: push", sequence);
    }
}

/* What examples/bots.c pushes: numbers that go up by 1 as long as the actor lives. */
static void check_number(struct bot *b, struct bytes payload)
{
    struct bot_ledger *l = &b->all->ledger;
    uint64_t number = 0;

    if (!number_of(payload, &number)) {
        l->wrong++;
        bot_note(b, "no number in push", b->push - 1);
        return;
    }
    if (b->numbered && number > b->number_pushed + 1) {
        l->pushes_lost += number - b->number_pushed - 1;
        bot_note(b, "by the actor's numbers, pushes are missing before push", b->push - 1);
    } else if (b->numbered && number <= b->number_pushed) {
        l->pushes_duplicated++;
        bot_note(b, "received twice, by the actor's number: push", b->push - 1);
    }
    b->numbered = b->kept; // else it counts on while nobody is bound
    b->number_pushed = number;
}

void bot_judge_push(struct bot *b, const struct push_packet *p)
{
    struct bot_ledger *l = &b->all->ledger;

    l->pushes++;
    if (!b->kept && p->sequence == 1 && b->push > 1) {
        l->begun_afresh++;
        b->counted = false;
        bot_expect_push(b, 1);
    }
    if (p->sequence < b->push) {
        judge_late_push(b, p->sequence);
        return;
    }
    const uint64_t missing = p->sequence - b->push;
    if (missing > 0) {
        l->pushes_lost += missing;
        bot_note(b, "pushes are missing before push", p->sequence);
    }
    b->numbered = b->numbered && missing == 0;
    b->seen = missing + 1 < SEEN_MAX ? b->seen << (missing + 1) | 1 : 1;
    b->push = p->sequence + 1;
    if (b->all->config.check == BOT_CHECK_COUNT) {
        check_number(b, p->payload);
    }
}
