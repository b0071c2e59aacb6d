/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's states (ringhold_client.h draws them), and what its owner calls.
 */
#include "client/inside.h"

#include "base/big.h"

#include <string.h>

enum {
    REQUESTS_MAX = 256,
    IN_MAX = 1024 * 1024 + 64,
    IN_MIN = 1024,
    OUT_MAX = 128 * 1024,
    OUT_MIN = 1024,
    BODY_MAX = 0xFFFFFF,
    ANSWER_MS = 15000,
    GREET_MS = 10000,
    BACK_OFF_MIN_MS = 200,
    BACK_OFF_MAX_MS = 10000,
    SCAN_MS = 100,
    ACK_MS = 500, /* the page says once a second */
    ACK_SIZE = 16 * 1024,
    ACK_COUNT = 16,
    OWED_QUIET_MS = 10000, /* so long without a byte while something is owed: is it still there? */
    ALIGN = 16,
};

/* ---- time and chance ---- */

/* splitmix64 */
static uint64_t draw(struct rhc *c)
{
    uint64_t z = c->random += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t jittered(struct rhc *c, uint64_t least)
{
    return least + draw(c) % (least + 1);
}

static uint64_t back_off(struct rhc *c)
{
    const uint32_t doublings = c->failures > 16 ? 16 : c->failures;
    const uint64_t most = (uint64_t)c->back_off_min_ms << doublings;

    return draw(c) % ((most < c->back_off_max_ms ? most : c->back_off_max_ms) + 1);
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

static bool is_connected(const struct rhc *c)
{
    return c->state == RHC_GREETING || c->state == RHC_READY || c->state == RHC_LEAVING;
}

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

/* Where the session stands when there is no connection. */
static void leave_session(struct rhc *c)
{
    struct session *s = &c->session;

    if (s->state == BIND_LEAVING) {
        *s = (struct session){.state = BIND_NONE, .plain = s->plain};
        c->tell_unbound = true;
    } else if (s->state != BIND_NONE) {
        s->state = BIND_WANTED;
    }
    s->plain = false; // the next gateway may be a newer one
}

static void come_again(struct rhc *c)
{
    leave_session(c);
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
    c->now_ms = now_ms;
    if (c->state != RHC_DIALLING && !is_connected(c)) {
        return;
    }
    give_up(c, why == NULL ? "the connection is gone" : why);
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
    c->now_ms = now_ms;
    if (c->state == RHC_DIALLING && !c->hang_up) {
        c->state = RHC_GREETING;
        c->heard_ms = now_ms;
        say_hello(c);
    }
}

void be_ready(struct rhc *c)
{
    c->state = RHC_READY;
    c->failures = 0;
    c->tell_ready = true;
}

static void ask_session(struct rhc *c)
{
    struct session *s = &c->session;

    s->again_ms = 0;
    s->state = s->keeps ? BIND_RESUMING : BIND_ASKED;
    if (s->keeps) {
        say_resume(c);
    } else {
        say_bind(c);
    }
}

void go_on(struct rhc *c)
{
    c->known = true;
    c->session.waits = false;
    if (c->session.state == BIND_NONE) {
        be_ready(c);
    } else {
        ask_session(c);
    }
}

void note_heard(struct rhc *c, size_t size)
{
    struct session *s = &c->session;

    if (s->state != BIND_HELD || !s->keeps) {
        return;
    }
    s->unacked_size += size;
    s->unacked_count++;
    if (s->unacked_size > ACK_SIZE || s->unacked_count >= ACK_COUNT) {
        s->ack_ms = c->now_ms > 0 ? c->now_ms : 1;
    } else if (s->ack_ms == 0) {
        s->ack_ms = c->now_ms + ACK_MS;
    }
}

/* ---- making one ---- */

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static size_t rounded(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

size_t rhc_size(const struct rhc_options *o)
{
    if (o == NULL || o->abi != RHC_ABI || o->size != sizeof *o ||
        (o->token != NULL && strlen(o->token) > AUTH_MAX) || or_else(o->in_max, IN_MAX) < IN_MIN ||
        or_else(o->out_max, OUT_MAX) < OUT_MIN || o->in_max > BODY_MAX ||
        o->requests_max > NAME_MAX_ASKED ||
        or_else(o->back_off_min_ms, BACK_OFF_MIN_MS) >
            or_else(o->back_off_max_ms, BACK_OFF_MAX_MS)) {
        return 0;
    }
    return rounded(sizeof(struct rhc)) +
           rounded(or_else(o->requests_max, REQUESTS_MAX) * sizeof(struct entry)) +
           rounded(or_else(o->in_max, IN_MAX)) + rounded(or_else(o->out_max, OUT_MAX));
}

struct rhc *rhc_init(void *memory, const struct rhc_options *o)
{
    struct rhc *c = memory;

    if (memory == NULL || rhc_size(o) == 0) {
        return NULL;
    }
    memset(c, 0, sizeof *c);
    c->requests_max = or_else(o->requests_max, REQUESTS_MAX);
    c->answer_ms = or_else(o->answer_ms, ANSWER_MS);
    c->greet_ms = or_else(o->greet_ms, GREET_MS);
    c->back_off_min_ms = or_else(o->back_off_min_ms, BACK_OFF_MIN_MS);
    c->back_off_max_ms = or_else(o->back_off_max_ms, BACK_OFF_MAX_MS);
    c->random = o->seed;
    c->gateway = (uint32_t)(draw(c) >> 40);
    c->in_max = or_else(o->in_max, IN_MAX);
    c->log.max = c->requests_max;
    c->log.bytes_max = or_else(o->out_max, OUT_MAX);

    uint8_t *at = (uint8_t *)memory + rounded(sizeof *c);

    c->log.entry = (void *)at;
    at += rounded(c->requests_max * sizeof(struct entry));
    c->in = at;
    c->log.bytes = at + rounded(c->in_max);
    (void)rhc_set_token(c, o->token);
    return c;
}

int rhc_set_token(struct rhc *c, const char *token)
{
    const size_t size = token == NULL ? 0 : strlen(token);

    if (size > AUTH_MAX) {
        return RHC_INVALID;
    }
    c->given_size = 0;
    if (size > 0) {
        memcpy(c->token, token, size);
    }
    c->token[size] = '\0';
    return RHC_DONE;
}

int rhc_start(struct rhc *c, uint64_t now_ms)
{
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
    struct entry *e = NULL;

    c->now_ms = now_ms;
    if (r->id.size < 1 || r->id.size > UINT8_MAX || r->payload.size > BODY_MAX / 2 ||
        (r->flags & ~(unsigned)RHC_IDEMPOTENT) != 0 || c->state == RHC_ENDED ||
        c->last_name == NAME_MAX_ASKED || HEAD + asking_size(r) > c->log.bytes_max) {
        return RHC_INVALID;
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

int rhc_bind(struct rhc *c, uint16_t kind, struct rhc_bytes id)
{
    struct session *s = &c->session;

    if (s->state != BIND_NONE || id.size < 1 || id.size > UINT8_MAX) {
        return RHC_INVALID;
    }
    *s = (struct session){.state = BIND_WANTED, .kind = kind, .id_size = (uint8_t)id.size};
    memcpy(s->id, id.data, id.size);
    if (c->state == RHC_READY) {
        ask_session(c);
    }
    return RHC_DONE;
}

int rhc_unbind(struct rhc *c)
{
    struct session *s = &c->session;

    if (s->state == BIND_NONE || s->state == BIND_LEAVING) {
        return RHC_INVALID;
    }
    c->home.state = BIND_NONE;
    if (s->state == BIND_HELD) {
        s->state = BIND_LEAVING;
        say_unbind(c);
    } else if (s->state == BIND_WANTED) {
        *s = (struct session){.state = BIND_NONE};
        log_forget_session(&c->log);
        log_rewind(&c->log, false);
        c->tell_unbound = true;
    } else {
        return RHC_INVALID; // its answer comes soon
    }
    return RHC_DONE;
}

/* ---- bytes ---- */

enum rhc_wish rhc_wishes(const struct rhc *c)
{
    if (c->hang_up) {
        return RHC_HANG_UP;
    }
    return c->state == RHC_DIALLING ? RHC_DIAL : RHC_NOTHING;
}

uint32_t rhc_gateway(const struct rhc *c)
{
    return c->gateway;
}

/* Behind a bind that isn't answered yet nothing is sent: it would run even if that is refused. */
static bool may_ask(const struct rhc *c)
{
    const enum bind_state s = c->session.state;

    return c->state == RHC_READY && (s == BIND_NONE || s == BIND_HELD || s == BIND_LEAVING);
}

struct rhc_bytes rhc_output(struct rhc *c)
{
    struct log *l = &c->log;

    c->sending_control = false;
    if (!is_connected(c) || c->hang_up) {
        return bytes_at(NULL, 0);
    }
    if (l->partial > 0 && (c->control_size > 0 || !may_ask(c))) {
        const struct entry *half = log_entry(l, l->next); // nothing may come between its halves

        return bytes_at(log_packet(l, half) + l->partial, half->size - l->partial);
    }
    if (c->control_size > 0) {
        c->sending_control = true;
        return bytes_at(c->control, c->control_size);
    }
    return may_ask(c) ? log_output(l) : bytes_at(NULL, 0);
}

void rhc_sent(struct rhc *c, size_t size, uint64_t now_ms)
{
    c->now_ms = now_ms;
    if (c->sending_control) {
        c->control_size -= size;
        memmove(c->control, c->control + size, c->control_size);
        c->sending_control = false;
    } else {
        log_sent(&c->log, size);
    }
}

void *rhc_room(struct rhc *c, size_t *size)
{
    if (c->in_at > 0) {
        memmove(c->in, c->in + c->in_at, c->in_end - c->in_at);
        c->in_end -= c->in_at;
        c->in_at = 0;
    }
    *size = is_connected(c) && !c->hang_up ? c->in_max - c->in_end : 0;
    return c->in + c->in_end;
}

void rhc_received(struct rhc *c, size_t size, uint64_t now_ms)
{
    c->now_ms = now_ms;
    c->heard_ms = now_ms;
    c->pinged = false;
    c->in_end += size;
}

/* ---- events ---- */

/* The next packet that is whole. */
static bool take_packet(struct rhc *c, uint8_t *type, struct rhc_bytes *body)
{
    const size_t have = c->in_end - c->in_at;
    const uint8_t *at = c->in + c->in_at;

    if (!is_connected(c) || c->hang_up || have < HEAD) {
        return false;
    }
    const size_t size = big_get24(at + 1);

    if (HEAD + size > c->in_max) {
        give_up(c, "a packet is larger than in_max");
        return false;
    }
    if (have < HEAD + size) {
        return false;
    }
    c->in_at += HEAD + size;
    *type = at[0];
    *body = bytes_at(at + HEAD, size);
    return true;
}

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
    struct entry *e = log_next_doomed(&c->log);

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
    uint8_t type = 0;
    struct rhc_bytes body;

    for (;;) {
        if (tell(c, &c->tell_lost, RHC_EVENT_LOST, event) || tell_doomed(c, event) ||
            tell(c, &c->tell_unbound, RHC_EVENT_UNBOUND, event) ||
            tell(c, &c->tell_kicked, RHC_EVENT_KICKED, event) ||
            tell(c, &c->tell_ready, RHC_EVENT_READY, event)) {
            return 1;
        }
        if (!take_packet(c, &type, &body)) {
            return 0;
        }
        if (hear(c, type, body, event)) {
            return 1;
        }
    }
}

/* ---- time ---- */

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
        give_up(c, "the gateway has fallen silent");
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
        struct entry *e = log_entry(&c->log, i);

        const bool half = i == c->log.next && c->log.partial > 0;

        if (e->state == ENTRY_ASKED && c->now_ms >= e->due_ms) {
            log_doom(&c->log, e, e->sent || half ? RHC_TIMEOUT : RHC_MOVING);
        }
    }
}

static void tend_session(struct rhc *c)
{
    struct session *s = &c->session;

    bind_if_it_waits(c);
    if (s->again_ms > 0 && c->now_ms >= s->again_ms) {
        ask_session(c);
    }
    if (s->ack_ms > 0 && c->now_ms >= s->ack_ms && s->state == BIND_HELD && s->keeps) {
        s->ack_ms = 0;
        s->unacked_size = 0;
        s->unacked_count = 0;
        say_ack(c);
    }
}

void rhc_tick(struct rhc *c, uint64_t now_ms)
{
    c->now_ms = now_ms;
    end_due(c);
    if (c->state == RHC_WAITING && now_ms >= c->dial_ms) {
        c->state = RHC_DIALLING;
        c->greet_by_ms = now_ms + c->greet_ms;
    }
    if ((c->state == RHC_DIALLING || c->state == RHC_GREETING) && now_ms >= c->greet_by_ms) {
        give_up(c, "nobody greets it in time");
    }
    if (is_connected(c) && !c->hang_up) {
        listen_to(c);
        tend_session(c);
    }
    if (c->state == RHC_LEAVING && (!log_owes(&c->log) || now_ms >= c->leave_by_ms)) {
        give_up(c, "the gateway stops");
    }
}

static void sooner(uint64_t *wake_ms, uint64_t at_ms)
{
    *wake_ms = at_ms > 0 && at_ms < *wake_ms ? at_ms : *wake_ms;
}

uint64_t rhc_wake_ms(const struct rhc *c)
{
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

enum rhc_state rhc_state(const struct rhc *c)
{
    return c->state;
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
