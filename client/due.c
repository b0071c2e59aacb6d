/* SPDX-License-Identifier: Apache-2.0
 *
 * What is due by now, and when something is next.
 */
#include "client/inside.h"

enum {
    SCAN_MS = 100,
    OWED_QUIET_MS = 10000, /* so long without a byte while something is owed: is it still there? */
};

static uint32_t quiet_max_ms(const struct rhc *c)
{
    const bool hurry = c->heartbeat_ms > OWED_QUIET_MS && log_owes(&c->log);

    return hurry ? OWED_QUIET_MS : c->heartbeat_ms;
}

static void listen_to(struct rhc *c)
{
    const uint64_t quiet_ms = c->now_ms - c->heard_ms;
    const uint32_t most_ms = quiet_max_ms(c);

    if (!c->greeted || most_ms == 0) {
        return;
    }
    if (quiet_ms >= 2 * (uint64_t)most_ms) {
        give_up(c, "the gateway sends nothing");
    } else if (quiet_ms >= most_ms && !c->pinged) {
        c->pinged = true;
        say_ping(c, P_PING, bytes_at(NULL, 0));
    }
}

static void end_due(struct rhc *c)
{
    if (c->now_ms < c->scan_ms) {
        return;
    }
    c->scan_ms = c->now_ms + SCAN_MS;
    for (uint32_t i = 0; i < c->log.count; i++) {
        struct asked_entry *e = log_entry(&c->log, i);

        const bool half = i == c->log.next && c->log.partial > 0;

        if (e->state == ENTRY_ASKED && c->now_ms >= e->due_ms) {
            log_doom(&c->log, e, e->sent || half ? RHC_TIMEOUT : RHC_MOVING);
        }
    }
}

void rhc_tick(struct rhc *c, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    c->now_ms = now_ms;
    end_due(c);
    if (c->state == RHC_WAITING && now_ms >= c->dial_ms) {
        c->state = RHC_DIALLING;
        c->greet_by_ms = now_ms + c->greet_ms;
    }
    if ((c->state == RHC_DIALLING || c->state == RHC_GREETING) && now_ms >= c->greet_by_ms) {
        give_up(c, "the gateway did not greet in time");
    }
    if (is_connected(c) && !c->hang_up) {
        listen_to(c);
        session_tend(c);
    }
    if (c->state == RHC_LEAVING && (!log_owes(&c->log) || now_ms >= c->leave_by_ms)) {
        give_up(c, "the gateway is stopping");
    }
}

static void sooner(uint64_t *wake_ms, uint64_t at_ms)
{
    *wake_ms = at_ms > 0 && at_ms < *wake_ms ? at_ms : *wake_ms;
}

uint64_t rhc_wake_ms(const struct rhc *c)
{
    if (c == NULL) {
        return UINT64_MAX;
    }
    uint64_t wake_ms = UINT64_MAX;

    if (c->log.count > 0) {
        sooner(&wake_ms, c->scan_ms);
    }
    if (c->state == RHC_WAITING) {
        sooner(&wake_ms, c->dial_ms);
    }
    if (c->state == RHC_DIALLING || c->state == RHC_GREETING) {
        sooner(&wake_ms, c->greet_by_ms);
    }
    if (c->state == RHC_LEAVING) {
        sooner(&wake_ms, log_owes(&c->log) ? c->leave_by_ms : c->now_ms);
    }
    if (is_connected(c)) {
        const uint32_t most_ms = quiet_max_ms(c);

        sooner(&wake_ms, most_ms == 0 ? 0 : c->heard_ms + (c->pinged ? 2 : 1) * (uint64_t)most_ms);
        sooner(&wake_ms, c->session.again_ms);
        sooner(&wake_ms, c->session.ack_ms);
    }
    return wake_ms;
}
