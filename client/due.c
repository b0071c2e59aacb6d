/* SPDX-License-Identifier: Apache-2.0
 *
 * What is due by now, and when something is next.
 */
#include "client/inside.h"

enum {
    OWED_QUIET_MS = 10000, /* so long without a byte while something is owed: is it still there? */
};

static uint32_t quiet_max_ms(const struct rhc *c)
{
    const bool hurry = c->connection.heartbeat_ms > OWED_QUIET_MS && log_owes(&c->log);

    return hurry ? OWED_QUIET_MS : c->connection.heartbeat_ms;
}

static void listen_to(struct rhc *c)
{
    const uint64_t quiet_ms = c->now_ms - c->connection.heard_ms;
    const uint32_t most_ms = quiet_max_ms(c);

    if (!c->connection.greeted || most_ms == 0) {
        return;
    }
    if (quiet_ms >= 2 * (uint64_t)most_ms) {
        give_up(c, "the gateway sends nothing");
    } else if (quiet_ms >= most_ms && !c->connection.pinged) {
        c->connection.pinged = true;
        say_ping(c, P_PING, bytes_at(NULL, 0));
    }
}

void rhc_tick(struct rhc *c, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    begin_step(c, now_ms);
    asking_tick(c);
    if (c->connection.state == RHC_WAITING && now_ms >= c->connection.dial_ms) {
        c->connection.state = RHC_DIALLING;
        c->connection.greet_by_ms = now_ms + c->greet_ms;
    }
    if ((c->connection.state == RHC_DIALLING || c->connection.state == RHC_GREETING) &&
        now_ms >= c->connection.greet_by_ms) {
        give_up(c, "the gateway did not greet in time");
    }
    if (is_connected(c) && !c->connection.hang_up) {
        listen_to(c);
        session_tend(c);
    }
    if (c->connection.state == RHC_LEAVING &&
        (!log_owes(&c->log) || now_ms >= c->connection.leave_by_ms)) {
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
        sooner(&wake_ms, c->asking.scan_ms);
    }
    if (c->connection.state == RHC_WAITING) {
        sooner(&wake_ms, c->connection.dial_ms);
    }
    if (c->connection.state == RHC_DIALLING || c->connection.state == RHC_GREETING) {
        sooner(&wake_ms, c->connection.greet_by_ms);
    }
    if (c->connection.state == RHC_LEAVING) {
        sooner(&wake_ms, log_owes(&c->log) ? c->connection.leave_by_ms : c->now_ms);
    }
    if (is_connected(c)) {
        const uint32_t most_ms = quiet_max_ms(c);

        sooner(&wake_ms,
               most_ms == 0
                   ? 0
                   : c->connection.heard_ms + (c->connection.pinged ? 2 : 1) * (uint64_t)most_ms);
        sooner(&wake_ms, c->session.now.again_ms);
        sooner(&wake_ms, c->session.now.ack_ms);
    }
    return wake_ms;
}
