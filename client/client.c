/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's states (ringhold_client.h draws them), and what its owner calls.
 */
#include "client/inside.h"

#include <string.h>

enum {
    LEAVE_MS = 10000,          /* the gateway itself waits no longer */
    HEARTBEAT_LEAST_MS = 1000, /* less is no gateway's */
};

/* ---- time and chance ---- */

uint64_t drawn(struct rhc *c)
{
    // splitmix64
    uint64_t z = c->random += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t jittered(struct rhc *c, uint64_t least)
{
    return least + drawn(c) % (least + 1);
}

static uint64_t back_off(struct rhc *c)
{
    const uint32_t doublings = c->connection.failures > 16 ? 16 : c->connection.failures;
    const uint64_t most = (uint64_t)c->back_off_min_ms << doublings;

    return drawn(c) % ((most < c->back_off_max_ms ? most : c->back_off_max_ms) + 1);
}

static void put_why(struct rhc *c, struct rhc_bytes why)
{
    const size_t size = why.size < WHY_SIZE - 1 ? why.size : WHY_SIZE - 1;

    if (size > 0) {
        memcpy(c->connection.why, why.data, size);
    }
    c->connection.why[size] = '\0';
}

void connection_init(struct rhc *c)
{
    c->connection.gateway = (uint32_t)(drawn(c) >> 40);
    c->connection.body_max = BODY_MAX;
}

/* ---- the connection's end ---- */

void give_up(struct rhc *c, const char *why)
{
    if (!c->connection.hang_up) {
        c->connection.hang_up = true;
        put_why(c, bytes_at(why, strlen(why)));
    }
}

void be_kicked(struct rhc *c, uint32_t code, struct rhc_bytes text)
{
    c->connection.hang_up = true;
    c->connection.over = true;
    c->connection.kicked = true;
    c->connection.kick_code = code;
    put_why(c, text);
}

static void forget_connection(struct rhc *c)
{
    c->connection.hang_up = false;
    c->connection.greeted = false;
    c->connection.known = false;
    c->connection.pinged = false;
    c->connection.tell_ready = false;
    bytes_forget(c);
    log_in_session(&c->log, false);
    session_disconnected(c);
}

static void end(struct rhc *c)
{
    c->connection.state = RHC_ENDED;
    session_leave(c);
    session_end(c);
    log_end(&c->log);
    c->connection.tell_kicked = c->connection.kicked;
}

/* A gateway that greets and hangs up is as good as none: only one that lasted ends a row. */
static bool lasted(const struct rhc *c)
{
    return (c->connection.state == RHC_READY || c->connection.state == RHC_LEAVING) &&
           c->now_ms - c->connection.ready_ms >= c->back_off_max_ms;
}

static void come_again(struct rhc *c)
{
    session_leave(c);
    if (lasted(c)) {
        c->connection.failures = 0;
    }
    if (!c->session.now.keeps) {
        log_forget_session(&c->log);
    }
    log_rewind(&c->log, c->session.now.keeps);
    c->connection.tell_lost = true;
    c->connection.dial_ms =
        c->now_ms +
        (c->connection.retry_ms > 0 ? jittered(c, c->connection.retry_ms) : back_off(c));
    c->connection.retry_ms = 0;
    c->connection.failures++;
    c->connection.gateway++;
    c->connection.state = RHC_WAITING;
}

void rhc_disconnected(struct rhc *c, const char *why, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    begin_step(c, now_ms);
    if (c->connection.state != RHC_DIALLING && !is_connected(c)) {
        return;
    }
    give_up(c, why == NULL ? "the connection is closed" : why);
    forget_connection(c);
    if (c->connection.over) {
        end(c);
    } else {
        come_again(c);
    }
}

/* ---- greeting ---- */

void connection_heard(struct rhc *c)
{
    c->connection.heard_ms = c->now_ms;
    c->connection.pinged = false;
}

void connection_greeted(struct rhc *c, uint32_t heartbeat_ms, size_t body_max)
{
    c->connection.greeted = true;
    c->connection.heartbeat_ms =
        heartbeat_ms > 0 && heartbeat_ms < HEARTBEAT_LEAST_MS ? HEARTBEAT_LEAST_MS : heartbeat_ms;
    c->connection.body_max = body_max;
}

void connection_known(struct rhc *c)
{
    c->connection.known = true;
}

void connection_greets_by(struct rhc *c, uint64_t at_ms)
{
    c->connection.greet_by_ms = at_ms;
}

void be_ready(struct rhc *c)
{
    c->connection.state = RHC_READY;
    c->connection.ready_ms = c->now_ms;
    c->connection.tell_ready = true;
}

void connection_goaway(struct rhc *c, uint32_t retry_ms)
{
    c->connection.retry_ms = retry_within(retry_ms);
    if (c->connection.state == RHC_READY) {
        c->connection.state = RHC_LEAVING;
        c->connection.leave_by_ms = c->now_ms + LEAVE_MS;
    } else if (c->connection.state == RHC_GREETING) {
        give_up(c, "the gateway accepts no clients now");
    }
}

void rhc_connected(struct rhc *c, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    begin_step(c, now_ms);
    if (c->connection.state == RHC_DIALLING && !c->connection.hang_up) {
        c->connection.state = RHC_GREETING;
        c->connection.heard_ms = now_ms;
        say_hello(c);
    }
}

/* ---- start and stop ---- */

int rhc_start(struct rhc *c, uint64_t now_ms)
{
    if (c == NULL) {
        return RHC_INVALID;
    }
    if (c->connection.state != RHC_IDLE && c->connection.state != RHC_ENDED) {
        return RHC_INVALID;
    }
    begin_step(c, now_ms);
    c->connection.over = false;
    c->connection.kicked = false;
    c->connection.tell_kicked = false;
    c->connection.failures = 0;
    c->connection.retry_ms = 0;
    c->connection.dial_ms = now_ms;
    c->connection.state = RHC_WAITING;
    rhc_tick(c, now_ms);
    return RHC_DONE;
}

void rhc_stop(struct rhc *c)
{
    if (c == NULL || c->connection.state == RHC_ENDED) {
        return;
    }
    c->connection.over = true;
    if (c->connection.state == RHC_DIALLING || is_connected(c)) {
        c->connection.hang_up = true;
    } else {
        end(c);
    }
}

/* ---- events ---- */

static bool tell(struct rhc *c, bool *flag, enum rhc_event_type type, struct rhc_event *event)
{
    if (!*flag) {
        return false;
    }
    *flag = false;
    const bool ends = type == RHC_EVENT_LOST || type == RHC_EVENT_KICKED;

    *event = (struct rhc_event){
        .type = type,
        .code = type == RHC_EVENT_KICKED ? c->connection.kick_code : 0,
        .payload = bytes_at(c->connection.why, ends ? strlen(c->connection.why) : 0)};
    return true;
}

int rhc_next(struct rhc *c, struct rhc_event *event)
{
    if (c == NULL || event == NULL) {
        return 0;
    }
    uint8_t type = 0;
    struct rhc_bytes body;

    for (;;) {
        if (tell(c, &c->connection.tell_lost, RHC_EVENT_LOST, event) || asking_tells(c, event) ||
            session_tells(c, event) ||
            tell(c, &c->connection.tell_kicked, RHC_EVENT_KICKED, event) ||
            tell(c, &c->connection.tell_ready, RHC_EVENT_READY, event)) {
            return 1;
        }
        if (!packet_take(c, &type, &body)) {
            return 0;
        }
        if (hear(c, type, body, event)) {
            return 1;
        }
    }
}

enum rhc_state rhc_state(const struct rhc *c)
{
    return c == NULL ? RHC_ENDED : c->connection.state;
}

const char *rhc_status_name(unsigned status)
{
    static const char *const names[] = {"OK",
                                        "ACTOR_FAILED",
                                        "UNKNOWN",
                                        "TIMEOUT",
                                        "MOVING",
                                        "OVERLOADED",
                                        "NO_OWNER",
                                        "QUARANTINED",
                                        "REJECTED",
                                        "BAD_REQUEST",
                                        "UNAUTHORIZED",
                                        "RATE_LIMITED"};

    return status < sizeof names / sizeof names[0] ? names[status] : "?";
}
