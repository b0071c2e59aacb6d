/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's states (ringhold_client.h draws them), and what its owner calls.
 */
#include "client/inside.h"

#include <string.h>

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
    const uint32_t doublings = c->failures > 16 ? 16 : c->failures;
    const uint64_t most = (uint64_t)c->back_off_min_ms << doublings;

    return drawn(c) % ((most < c->back_off_max_ms ? most : c->back_off_max_ms) + 1);
}

static void put_why(struct rhc *c, struct rhc_bytes why)
{
    const size_t size = why.size < WHY_SIZE - 1 ? why.size : WHY_SIZE - 1;

    if (size > 0) {
        memcpy(c->why, why.data, size);
    }
    c->why[size] = '\0';
}

/* ---- the connection's end ---- */

void give_up(struct rhc *c, const char *why)
{
    if (!c->hang_up) {
        c->hang_up = true;
        put_why(c, bytes_at(why, strlen(why)));
    }
}

void be_kicked(struct rhc *c, uint32_t code, struct rhc_bytes text)
{
    c->hang_up = true;
    c->over = true;
    c->kicked = true;
    c->kick_code = code;
    put_why(c, text);
}

static void forget_connection(struct rhc *c)
{
    c->hang_up = false;
    c->greeted = false;
    c->known = false;
    c->pinged = false;
    c->control_size = 0;
    c->sending_control = false;
    c->in_at = 0;
    c->in_end = 0;
    c->tell_ready = false;
    c->log.in_session = false;
    c->session.again_ms = 0;
    c->session.ack_ms = 0;
}

static void end(struct rhc *c)
{
    c->state = RHC_ENDED;
    c->session.keeps = false;
    log_end(&c->log);
    c->tell_kicked = c->kicked;
}

/* A gateway that greets and hangs up is as good as none: only one that lasted ends a row. */
static bool lasted(const struct rhc *c)
{
    return (c->state == RHC_READY || c->state == RHC_LEAVING) &&
           c->now_ms - c->ready_ms >= c->back_off_max_ms;
}

static void come_again(struct rhc *c)
{
    session_leave(c);
    if (lasted(c)) {
        c->failures = 0;
    }
    if (!c->session.keeps) {
        log_forget_session(&c->log);
    }
    log_rewind(&c->log, c->session.keeps);
    c->tell_lost = true;
    c->dial_ms = c->now_ms + (c->retry_ms > 0 ? jittered(c, c->retry_ms) : back_off(c));
    c->retry_ms = 0;
    c->failures++;
    c->gateway++;
    c->state = RHC_WAITING;
}

void rhc_disconnected(struct rhc *c, const char *why, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    c->now_ms = now_ms;
    if (c->state != RHC_DIALLING && !is_connected(c)) {
        return;
    }
    give_up(c, why == NULL ? "the connection is closed" : why);
    forget_connection(c);
    if (c->over) {
        end(c);
    } else {
        come_again(c);
    }
}

/* ---- greeting ---- */

void rhc_connected(struct rhc *c, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    c->now_ms = now_ms;
    if (c->state == RHC_DIALLING && !c->hang_up) {
        c->state = RHC_GREETING;
        c->heard_ms = now_ms;
        say_hello(c);
    }
}

/* ---- start and stop ---- */

int rhc_start(struct rhc *c, uint64_t now_ms)
{
    if (c == NULL) {
        return RHC_INVALID;
    }
    if (c->state != RHC_IDLE && c->state != RHC_ENDED) {
        return RHC_INVALID;
    }
    c->now_ms = now_ms;
    c->over = false;
    c->kicked = false;
    c->tell_kicked = false;
    c->failures = 0;
    c->retry_ms = 0;
    c->dial_ms = now_ms;
    if (c->session.state != BIND_NONE) {
        c->session.state = BIND_WANTED;
    }
    c->state = RHC_WAITING;
    rhc_tick(c, now_ms);
    return RHC_DONE;
}

void rhc_stop(struct rhc *c)
{
    if (c == NULL) {
        return;
    }
    c->over = true;
    if (c->state == RHC_DIALLING || is_connected(c)) {
        c->hang_up = true;
    } else {
        end(c);
    }
}

/* ---- asking ---- */

static int ask(struct rhc *c, const struct rhc_request *r, uint64_t now_ms, bool told)
{
    if (c == NULL || r == NULL) {
        return RHC_INVALID;
    }
    struct asked_entry *e = NULL;

    c->now_ms = now_ms;
    if (r->id.data == NULL || (r->payload.data == NULL && r->payload.size > 0) || r->id.size < 1 ||
        r->id.size > UINT8_MAX || r->payload.size > BODY_MAX / 2 ||
        (r->flags & ~(unsigned)RHC_IDEMPOTENT) != 0 || c->state == RHC_ENDED ||
        c->last_name == NAME_MAX_ASKED || HEAD + asking_size(r) > c->log.bytes_max) {
        return RHC_INVALID;
    }
    if (asking_size(r) > c->body_max) {
        return RHC_TOO_LARGE;
    }
    uint8_t *at = log_put(&c->log, HEAD + asking_size(r), &e);

    if (at == NULL) {
        return RHC_FULL;
    }
    e->name = ++c->last_name;
    e->told = told;
    e->idempotent = (r->flags & RHC_IDEMPOTENT) != 0;
    e->done = told ? NULL : r->done;
    e->context = r->context;
    e->due_ms = now_ms + c->answer_ms;
    asking_write(at, told ? P_NOTIFY : P_REQUEST, e->name, r);
    return RHC_DONE;
}

int rhc_ask(struct rhc *c, const struct rhc_request *r, uint64_t now_ms, uint32_t *request)
{
    const int result = ask(c, r, now_ms, false);

    if (result == RHC_DONE && request != NULL) {
        *request = c->last_name;
    }
    return result;
}

int rhc_tell(struct rhc *c, const struct rhc_request *r, uint64_t now_ms)
{
    return ask(c, r, now_ms, true);
}

/* ---- events ---- */

static bool tell(struct rhc *c, bool *flag, enum rhc_event_type type, struct rhc_event *event)
{
    if (!*flag) {
        return false;
    }
    *flag = false;
    const bool ends = type == RHC_EVENT_LOST || type == RHC_EVENT_KICKED;

    *event = (struct rhc_event){.type = type,
                                .code = type == RHC_EVENT_KICKED ? c->kick_code : 0,
                                .payload = bytes_at(c->why, ends ? strlen(c->why) : 0)};
    return true;
}

static bool tell_doomed(struct rhc *c, struct rhc_event *event)
{
    struct asked_entry *e = log_next_doomed(&c->log);

    if (e == NULL) {
        return false;
    }
    *event = (struct rhc_event){.type = RHC_EVENT_RESPONSE,
                                .status = e->status,
                                .request = e->name,
                                .done = e->done,
                                .context = e->context};
    log_over(&c->log, e);
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
        if (tell(c, &c->tell_lost, RHC_EVENT_LOST, event) || tell_doomed(c, event) ||
            tell(c, &c->tell_unbound, RHC_EVENT_UNBOUND, event) ||
            tell(c, &c->tell_kicked, RHC_EVENT_KICKED, event) ||
            tell(c, &c->tell_ready, RHC_EVENT_READY, event)) {
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
    return c == NULL ? RHC_ENDED : c->state;
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
