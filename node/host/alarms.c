/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads which alarms are due, and starts the actors among them that are this node's.
 */
#include "node/host/alarms.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "node/host/inside.h"
#include "storage/actors/due.h"

enum { SECOND_US = 1000000, SCAN_US = SECOND_US };

void alarm_scan_init(struct host *h)
{
    struct alarm_scan *s = &h->alarms;

    s->kinds = mem_new(h->config.kind_count, sizeof *s->kinds);
    s->own = mem_new(h->config.kind_count, sizeof *s->own);
    for (size_t i = 0; i < h->config.kind_count; i++) {
        if (h->config.kinds[i].durable) {
            s->own[s->kind_count] = h->config.kinds[i].alarms;
            s->kinds[s->kind_count++] = h->config.kinds[i].number;
        }
    }
    s->kind = s->kind_count;
}

void alarm_scan_fini(struct alarm_scan *s)
{
    mem_free(s->kinds);
    mem_free(s->own);
    buffer_fini(&s->page);
}

void alarm_scan_forget(struct alarm_scan *s)
{
    s->kind = s->kind_count;
    s->at = s->count = 0;
    buffer_clear(&s->page);
    s->scan_us = s->lag_us = 0;
}

static bool rests(const struct alarm_scan *s)
{
    return s->kind == s->kind_count;
}

/* ---- asking ---- */

static void ask(struct host *h, struct bytes after)
{
    struct alarm_scan *s = &h->alarms;
    struct host_effect *e = host_emit(h, HOST_DUE);

    e->kinds = &s->kinds[s->kind];
    e->kind_count = 1;
    e->count = h->wall_us / 1000;
    host_emit_bytes(h, e, after);
    s->asked = true;
    s->at = s->count = 0;
    buffer_clear(&s->page);
}

static void begin(struct host *h)
{
    struct alarm_scan *s = &h->alarms;

    s->scan_us = h->now_us + SCAN_US;
    s->kind = 0;
    s->found = false;
    ask(h, (struct bytes){0});
}

/* The page is through. `last`: its last alarm, as bytes. */
static void go_on(struct host *h, struct bytes last)
{
    struct alarm_scan *s = &h->alarms;

    if (s->count >= STORE_DUE_MAX) {
        struct buffer after = {0};

        buffer_put(&after, last.data, last.size); // it is in the page, which goes
        ask(h, buffer_bytes(&after));
        buffer_fini(&after);
        return;
    }
    s->kind++;
    if (!rests(s)) {
        ask(h, (struct bytes){0});
        return;
    }
    s->lag_us = s->found ? s->lag_us : 0;
    s->at = s->count = 0;
    buffer_clear(&s->page);
}

void alarm_scan_on_page(struct host *h, const struct host_event *event)
{
    struct alarm_scan *s = &h->alarms;

    s->asked = false;
    if (rests(s) || event->kind != s->kinds[s->kind]) {
        return; // it was asked for by another incarnation
    }
    buffer_put(&s->page, event->id.data, event->id.size);
    if (event->id.size == 0) {
        go_on(h, (struct bytes){0});
    }
}

/* ---- starting ---- */

static void start(struct host *h, const struct due_alarm *due)
{
    struct alarm_scan *s = &h->alarms;

    if ((!s->own[s->kind] && due->name.data[0] != 0) ||
        !wake_start(h, s->kinds[s->kind], due->id)) {
        return; // of a kind that had alarms once; or another node's, or it lives
    }
    const uint64_t due_us = due->due_ms * 1000;

    s->found = true;
    s->lag_us = h->wall_us > due_us ? h->wall_us - due_us : 0;
    s->credit -= SECOND_US;
    s->started++;
}

static bool may_start(const struct host *h)
{
    return h->alarms.credit >= SECOND_US && h->work.activating < h->config.activations_max &&
           lease_policy_may_start(h);
}

/* As many of the page as may be. */
static void start_some(struct host *h)
{
    struct alarm_scan *s = &h->alarms;
    struct bytes rest = bytes_of(s->page.data + s->at, s->page.size - s->at);
    struct bytes last = {0};
    struct due_alarm due;

    while (may_start(h)) {
        last = rest;
        if (!due_next(&rest, &due)) {
            return;
        }
        last.size -= rest.size;
        s->at += last.size;
        s->count++;
        start(h, &due);
        if (rest.size == 0) {
            go_on(h, last);
            return;
        }
    }
}

static void earn(struct host *h)
{
    struct alarm_scan *s = &h->alarms;
    const uint64_t gone_us = h->now_us - s->paced_us;
    const uint64_t most = (uint64_t)h->config.alarm_rate * SECOND_US / 4;

    // Not more is saved up than a quarter of a second's, but one may always start.
    s->credit += (gone_us < SECOND_US ? gone_us : SECOND_US) * h->config.alarm_rate;
    s->credit = s->credit < most + SECOND_US ? s->credit : most + SECOND_US;
    s->paced_us = h->now_us;
}

void alarm_scan_tick(struct host *h)
{
    struct alarm_scan *s = &h->alarms;

    if (s->kind_count == 0 || h->membership.life != LIFE_SERVING || mutant(M_ALARMASLEEP)) {
        return;
    }
    earn(h);
    if (s->page.size > 0) {
        start_some(h);
    } else if (!s->asked && rests(s) && h->now_us >= s->scan_us && h->wall_us != 0) {
        begin(h);
    }
}

uint64_t alarm_scan_rests_until_us(const struct host *h)
{
    const struct alarm_scan *s = &h->alarms;

    if (s->kind_count == 0 || s->asked) {
        return UINT64_MAX;
    }
    return s->page.size > 0 ? 0 : s->scan_us;
}
