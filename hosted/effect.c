/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of a host does: each effect is a call of ringhold.h.
 */
#include "hosted/inside.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

static struct rh_bytes bytes_from(ProtobufCBinaryData data)
{
    static const uint8_t nothing[1];

    // Empty bytes are bytes, too, and not "no data".
    return (struct rh_bytes){data.len == 0 ? nothing : data.data, data.len};
}

/* NULL, or what this result says of the effect that the name is of. */
static const char *judge(int result, const char *invalid, const char *too_big)
{
    switch (result) {
    case RH_OK:
    case RH_GONE:
    case RH_NO_SESSION:
        return NULL;
    case RH_TOO_BIG:
    case RH_FULL:
    case RH_OVERLOADED:
        return too_big;
    default:
        return invalid;
    }
}

static bool is_kind(uint32_t kind)
{
    return kind <= UINT16_MAX;
}

/* ---- calls */

static void say_answer(struct hosted_actor *p, uint64_t call, int status, struct rh_bytes payload)
{
    struct hosted *h = p->kind->hosted;
    Rh__Host__Answer answer = RH__HOST__ANSWER__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    answer.activation = p->number;
    answer.call = call;
    answer.status = (uint32_t)status;
    answer.payload = hosted_data(payload);
    says.body_case = RH__HOST__NODE_SAYS__BODY_ANSWER;
    says.answer = &answer;
    (void)pthread_mutex_lock(&h->lock);
    const bool open = p->link != NULL && p->stage == TURN_STAGE_OPEN;
    if (open) {
        hosted_say(p->link, &says);
    }
    (void)pthread_mutex_unlock(&h->lock);
    (void)atomic_fetch_add(&h->stats.late_answers, open ? 0 : 1);
}

void hosted_on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    (void)actor;
    say_answer(instance, (uint64_t)(uintptr_t)argument, answer->status, answer->payload);
}

static const char *call(struct hosted_actor *p, const Rh__Host__Call *c)
{
    static const char why[] = "ERR the call can't be made";
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number that comes back with the answer
    void *argument = (void *)(uintptr_t)c->call;
    const int result = !is_kind(c->kind) ? RH_INVALID
                                         : rh_call(p->actor,
                                                   (uint16_t)c->kind,
                                                   bytes_from(c->id),
                                                   bytes_from(c->payload),
                                                   c->timeout_ms,
                                                   c->idempotent ? RH_IDEMPOTENT : 0,
                                                   hosted_on_answer,
                                                   argument);

    if (result != RH_OK) {
        say_answer(p, c->call, result, (struct rh_bytes){why, sizeof why - 1});
    }
    return NULL;
}

static const char *send_one(struct hosted_actor *p, const Rh__Host__Send *s, bool once)
{
    if (!is_kind(s->kind)) {
        return "ERR a send to no kind";
    }
    const int result =
        once ? rh_send_once(p->actor, (uint16_t)s->kind, bytes_from(s->id), bytes_from(s->payload))
             : rh_send(p->actor, (uint16_t)s->kind, bytes_from(s->id), bytes_from(s->payload));
    return judge(result, "ERR a send that can't be made", "ERR a send over its limit");
}

/* ---- clients */

static const char *push(struct hosted_actor *p, const Rh__Host__Push *s)
{
    const struct rh_bytes payload = bytes_from(s->payload);
    const int result =
        s->session == 0 ? rh_push(p->actor, payload) : rh_push_one(p->actor, s->session, payload);

    return judge(result, "ERR a push that can't be made", "ERR a push over its limit");
}

static const char *push_ids(struct hosted_actor *p, const Rh__Host__PushIds *s)
{
    if (!is_kind(s->kind) || s->n_ids == 0) {
        return "ERR a push to no actors";
    }
    struct rh_bytes *ids = mem_new(s->n_ids, sizeof *ids);
    for (size_t i = 0; i < s->n_ids; i++) {
        ids[i] = bytes_from(s->ids[i]);
    }
    const int result =
        rh_push_ids(p->actor, (uint16_t)s->kind, ids, s->n_ids, bytes_from(s->payload));
    mem_free(ids);
    if (result == RH_OVERLOADED) {
        (void)atomic_fetch_add(&p->kind->hosted->stats.effects, 1);
        return NULL;
    }
    return judge(result, "ERR a push that can't be made", "ERR a push over its limit");
}

static const char *kick(struct hosted_actor *p, const Rh__Host__Kick *k)
{
    const int result = k->session == 0 ? rh_kick(p->actor, k->code, k->text)
                                       : rh_kick_one(p->actor, k->session, k->code, k->text);

    return judge(result, "ERR a kick that can't be made", "ERR a kick over its limit");
}

static const char *rebind(struct hosted_actor *p, const Rh__Host__Rebind *r)
{
    static const char wrong[] = "ERR a rebind that can't be made";

    if (!is_kind(r->kind)) {
        return wrong;
    }
    const int result =
        r->session == 0 ? rh_rebind(p->actor, (uint16_t)r->kind, bytes_from(r->id))
                        : rh_rebind_one(p->actor, r->session, (uint16_t)r->kind, bytes_from(r->id));
    return judge(result, wrong, wrong);
}

/* ---- values and alarms */

static const char *put(struct hosted_actor *p, const Rh__Host__Put *s)
{
    return judge(rh_state_put(p->actor, bytes_from(s->key), bytes_from(s->value)),
                 "ERR a value that can't be put",
                 "ERR a value over its limit");
}

static const char *set_alarm(struct hosted_actor *p, const Rh__Host__SetAlarm *a)
{
    const int result =
        rh_alarm_set(p->actor, bytes_from(a->name), a->due_ms, a->every_ms, bytes_from(a->payload));

    return judge(result, "ERR an alarm that can't be set", "ERR an alarm over its limit");
}

/* ---- timers */

static struct hosted_timer *find_timer(const struct hosted_actor *p, uint64_t number)
{
    for (size_t i = 0; i < p->timer_count; i++) {
        if (p->timer[i].number == number) {
            return &p->timer[i];
        }
    }
    return NULL;
}

static void forget_timer(struct hosted_actor *p, struct hosted_timer *t)
{
    *t = p->timer[--p->timer_count];
}

static void stop_timer(struct hosted_actor *p, uint64_t number)
{
    struct hosted_timer *t = find_timer(p, number);

    if (t != NULL) {
        (void)rh_timer_stop(p->actor, t->timer);
        forget_timer(p, t);
    }
}

static const char *start_timer(struct hosted_actor *p, const Rh__Host__StartTimer *s)
{
    stop_timer(p, s->timer);
    const uint64_t timer = rh_timer_start(p->actor, s->ms, s->every_ms, NULL);

    if (timer == 0) {
        return "ERR a timer that can't be started";
    }
    p->timer = mem_resize(p->timer, (p->timer_count + 1) * sizeof *p->timer);
    p->timer[p->timer_count++] =
        (struct hosted_timer){.number = s->timer, .timer = timer, .once = s->every_ms == 0};
    return NULL;
}

uint64_t hosted_timer_rang(struct hosted_actor *p, uint64_t timer)
{
    for (size_t i = 0; i < p->timer_count; i++) {
        struct hosted_timer *t = &p->timer[i];
        const uint64_t number = t->number;

        if (t->timer == timer) {
            if (t->once) {
                forget_timer(p, t);
            }
            return number;
        }
    }
    return 0;
}

/* ---- all */

const char *hosted_effect(struct hosted_actor *p, const Rh__Host__Effect *e)
{
    if (p->of == TURN_OF_HANDOFF) {
        return "ERR an effect in a handoff";
    }
    switch ((int)e->type_case) {
    case RH__HOST__EFFECT__TYPE_CALL:
        return call(p, e->call);
    case RH__HOST__EFFECT__TYPE_SEND:
        return send_one(p, e->send, false);
    case RH__HOST__EFFECT__TYPE_SEND_ONCE:
        return send_one(p, e->send_once, true);
    case RH__HOST__EFFECT__TYPE_PUSH:
        return push(p, e->push);
    case RH__HOST__EFFECT__TYPE_PUSH_IDS:
        return push_ids(p, e->push_ids);
    case RH__HOST__EFFECT__TYPE_KICK:
        return kick(p, e->kick);
    case RH__HOST__EFFECT__TYPE_REBIND:
        return rebind(p, e->rebind);
    case RH__HOST__EFFECT__TYPE_PUT:
        return put(p, e->put);
    case RH__HOST__EFFECT__TYPE_DELETE:
        return judge(rh_state_delete(p->actor, bytes_from(e->delete_->key)),
                     "ERR a value that can't be deleted",
                     "");
    case RH__HOST__EFFECT__TYPE_UNDO:
        return judge(rh_state_undo(p->actor), "ERR an undo of nothing durable", "");
    case RH__HOST__EFFECT__TYPE_SET_ALARM:
        return set_alarm(p, e->set_alarm);
    case RH__HOST__EFFECT__TYPE_CANCEL_ALARM:
        return judge(rh_alarm_cancel(p->actor, bytes_from(e->cancel_alarm->name)),
                     "ERR an alarm that can't be cancelled",
                     "");
    case RH__HOST__EFFECT__TYPE_START_TIMER:
        return start_timer(p, e->start_timer);
    case RH__HOST__EFFECT__TYPE_STOP_TIMER:
        stop_timer(p, e->stop_timer->timer);
        return NULL;
    case RH__HOST__EFFECT__TYPE_FLUSH_SOON:
        return judge(rh_flush_soon(p->actor), "ERR a flush of a kind that has none", "");
    case RH__HOST__EFFECT__TYPE_PASSIVATE:
        return judge(rh_passivate(p->actor), "ERR an end amidst this", "");
    default:
        return "ERR an effect that is not known";
    }
}
