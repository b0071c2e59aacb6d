/* SPDX-License-Identifier: Apache-2.0
 *
 * The shell of the calls: their effects are done here, on the protocol thread.
 */
#include "node/calls/calls.h"
#include "node/outside_uv.h"
#include "node/shell_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "wire/frame.h"

/* Effects at once; then the links get their turn, however fast two actors here talk. */
enum { AT_ONCE = 1000 };

static bool leaves(struct shell *s, const struct calls_effect *e)
{
    const bool record = e->frame_type == FRAME_REQUEST;

    // What is asked is an output like any other: nothing leaves past the gate (I8, hole 30). For a
    // record its link looks at the clock, so here the last look is enough.
    if ((record ? s->now_us : clock_boottime_us()) >= host_gate_us(s->host)) {
        return false;
    }
    if (e->common.data != NULL) {
        return shell_send_common(s, e->peer, e) == ERR_OK;
    }
    return shell_send_peer(s, e->peer, (enum frame_type)e->frame_type, e->bytes) == ERR_OK;
}

static void on_send(struct shell *s, const struct calls_effect *e)
{
    if (!leaves(s, e) && e->frame_type == FRAME_REQUEST) {
        calls_give_back(s->calls, e, s->now_us);
    }
}

static void step_here(struct shell *s, const struct calls_effect *e, const struct request_record *r,
                      uint64_t position)
{
    struct host_event event = {.type = HOST_REQUEST,
                               .peer = CALLS_LINK,
                               .made_us = e->made_us,
                               .position = position,
                               .request = r};

    // What was asked under another incarnation is given up.
    if (!s->exiting && r->gateway == host_incarnation(s->host)) {
        shell_step(s, &event);
    }
}

/* As those that come over a link. How many. */
static size_t on_here(struct serving *v, const struct calls_effect *e)
{
    struct shell *s = v->shell;
    struct request_record r[HOST_PREFETCH_MAX];
    uint64_t position[HOST_PREFETCH_MAX];
    const size_t count = calls_take_here(s->calls, e, r, HOST_PREFETCH_MAX);
    enum { VAIN_MAX = 3 }; // of those that are not steady many come together
    unsigned vain = 0;

    host_prefetch(s->host, r, count, position);
    for (size_t i = 0; i < count && !s->exiting; i++) {
        const size_t served =
            vain < VAIN_MAX ? shell_serve_calls(v, e, &r[i], &position[i], count - i) : 0;

        vain += served == 0 ? 1 : 0;
        i += served;
        if (i < count) {
            dispatcher_leave_serving(v);
            step_here(s, e, &r[i], position[i]);
        }
    }
    return count;
}

static void on_answer(struct serving *v, const struct call_answer *answer)
{
    if (answer->worker == OUTSIDE_WORKER) {
        outside_answer(v->shell, answer);
    } else {
        dispatcher_answer(v, answer);
    }
}

static void on_up(struct shell *s, const struct calls_effect *e)
{
    struct host_event event = {.type = HOST_PEER_UP,
                               .peer = CALLS_LINK,
                               .role = ROLE_GATEWAY,
                               .name = "",
                               .incarnation = e->incarnation};

    shell_step(s, &event);
}

static void on_tell(struct shell *s, const struct calls_effect *e)
{
    Rh__Adopted adopted = RH__ADOPTED__INIT;
    Rh__Control control = RH__CONTROL__INIT;
    struct host_event event = {.type = HOST_PEER_CONTROL, .peer = CALLS_LINK, .message = &control};

    adopted.version = e->version;
    adopted.awaits = e->awaits;
    control.body_case = RH__CONTROL__BODY_ADOPTED;
    control.adopted = &adopted;
    shell_step(s, &event);
}

static void on_refuse(struct shell *s, const struct calls_effect *e)
{
    struct host_event event = {.type = HOST_DEADLOCK, .probe = &e->probe, .ticket = e->run};

    shell_step(s, &event);
}

/* Its lease does not matter: what was read or done, was while it held. */
static void on_report(struct shell *s, const struct calls_effect *e)
{
    if (e->coordinator >= 0 && (size_t)e->coordinator < s->coordinator_count) {
        shell_send_coordinator(s, (size_t)e->coordinator, e->bytes);
    }
}

static void perform(struct serving *v, const struct calls_effect *e)
{
    struct shell *s = v->shell;

    switch (e->type) {
    case CALLS_UP:
        on_up(s, e);
        return;
    case CALLS_SEND:
        on_send(s, e);
        return;
    case CALLS_HERE:
        break; // perform_some()
    case CALLS_TELL:
        on_tell(s, e);
        return;
    case CALLS_ANSWER:
        on_answer(v, &e->answer);
        return;
    case CALLS_PROBE:
        calls_chase(s->calls, &e->probe, host_blocked(s->host, CALLS_LINK, &e->probe));
        return;
    case CALLS_REFUSE:
        on_refuse(s, e);
        return;
    case CALLS_CONNECT:
        shell_dial(s, e->slot, e->address, WANTS_CALLS);
        return;
    case CALLS_DISCONNECT:
        shell_hang_up(s, e->slot, WANTS_CALLS);
        return;
    case CALLS_REPORT:
        on_report(s, e);
        return;
    }
    UNREACHABLE();
}

/* The effect, and those that go with it. How many. */
static size_t perform_some(struct serving *v, const struct calls_effect *e)
{
    if (e->type == CALLS_HERE) {
        return on_here(v, e);
    }
    if (e->type != CALLS_ANSWER && e->type != CALLS_SEND) {
        dispatcher_leave_serving(v); // a step may follow
    }
    perform(v, e);
    return 1;
}

bool shell_settle_calls(struct shell *s)
{
    struct serving serving = {.shell = s};
    struct calls_effect e;
    size_t count = 0;

    if (calls_quiet(s->calls)) {
        return false; // which is so behind most steps
    }
    while (count < AT_ONCE && !s->exiting && calls_take(s->calls, &e)) {
        count += perform_some(&serving, &e);
    }
    dispatcher_leave_serving(&serving);
    if (count < AT_ONCE && !s->exiting) {
        return count > 0;
    }
    (void)uv_async_send(&s->wake); // the rest after the next turn
    return false;
}

void shell_on_probe(struct shell *s, uint64_t peer, const Rh__Probe *message)
{
    struct probe p;

    if (probe_get(message, &p) == ERR_OK) {
        calls_chase(s->calls, &p, host_blocked(s->host, peer, &p));
        shell_settle(s);
    }
}

void shell_on_call_record(struct shell *s, struct bytes record)
{
    struct reader in = {.at = record.data, .left = record.size};
    struct answer_record a;

    if (answer_get(&in, &a) != ERR_OK) {
        UNREACHABLE();
    }
    (void)calls_answer(s->calls, CALLS_LINK, &a, s->now_us);
}
