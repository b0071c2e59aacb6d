/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor whose code is at a host: each callback becomes a turn there, and is deferred until the
 * host's steps have come, which are posted here.
 */
#include "hosted/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <stdio.h>

enum { ARGUMENTS_FEW = 32, TEXT_MAX = 160 };

static struct hosted *hosted_of(const struct hosted_actor *p)
{
    return p->kind->hosted;
}

/* ---- turns begin */

/* The callback that runs becomes this turn. False: the actor's host is gone. */
static bool begin(struct hosted_actor *p, enum turn_of of, const Rh__Host__NodeSays *says,
                  size_t size)
{
    (void)pthread_mutex_lock(&hosted_of(p)->lock);
    const bool begins = hosted_turn_begin(p, says, size);
    (void)pthread_mutex_unlock(&hosted_of(p)->lock);
    if (begins) {
        p->of = of;
        p->token = rh_defer(p->actor);
    }
    return begins;
}

/* The callback becomes this turn, or its actor fails: its host ended, and it has not been told yet.
 * Returns what such a callback returns. */
static int begin_or_fail(struct hosted_actor *p, enum turn_of of, const Rh__Host__NodeSays *says,
                         size_t size)
{
    if (begin(p, of, says, size)) {
        return RH_PENDING;
    }
    p->failed = true;
    (void)atomic_fetch_add(&hosted_of(p)->stats.failed_gone, 1);
    (void)rh_fail(p->actor, "REJECTED the actor's host ended; the request did not run");
    return RH_FAILED;
}

static void say(struct hosted_actor *p, const Rh__Host__NodeSays *says)
{
    (void)pthread_mutex_lock(&hosted_of(p)->lock);
    if (p->link != NULL && p->begun) {
        hosted_say(p->link, says);
    }
    (void)pthread_mutex_unlock(&hosted_of(p)->lock);
}

/* ---- activate */

/* What a durable actor has. */
struct had {
    Rh__Host__Put *put;
    Rh__Host__Put **puts;
    size_t put_count;
    Rh__Host__SetAlarm *alarm;
    Rh__Host__SetAlarm **alarms;
    size_t alarm_count;
    size_t size;
};

static bool wants_room(size_t count)
{
    return (count & (count - 1)) == 0; // 0, or it doubles
}

static void take_values(struct rh_actor *actor, struct had *had)
{
    struct rh_bytes key = {NULL, 0};
    struct rh_bytes value;

    for (; rh_state_next(actor, key, &key, &value) == RH_OK; had->put_count++) {
        if (wants_room(had->put_count)) {
            had->put = mem_resize(had->put, (had->put_count * 2 + 1) * sizeof *had->put);
        }
        had->put[had->put_count] = (Rh__Host__Put)RH__HOST__PUT__INIT;
        had->put[had->put_count].key = hosted_data(key);
        had->put[had->put_count].value = hosted_data(value);
        had->size += key.size + value.size;
    }
    had->puts = mem_new(had->put_count + 1, sizeof(Rh__Host__Put *));
    for (size_t i = 0; i < had->put_count; i++) {
        had->puts[i] = &had->put[i];
    }
}

static void take_alarms(struct rh_actor *actor, struct had *had)
{
    struct rh_alarm at = {.name = {NULL, 0}};

    for (; rh_alarm_next(actor, at.name, &at) == RH_OK; had->alarm_count++) {
        if (wants_room(had->alarm_count)) {
            had->alarm = mem_resize(had->alarm, (had->alarm_count * 2 + 1) * sizeof *had->alarm);
        }
        had->alarm[had->alarm_count] = (Rh__Host__SetAlarm)RH__HOST__SET_ALARM__INIT;
        had->alarm[had->alarm_count].name = hosted_data(at.name);
        had->alarm[had->alarm_count].payload = hosted_data(at.payload);
        had->alarm[had->alarm_count].due_ms = at.due_ms;
        had->alarm[had->alarm_count].every_ms = at.every_ms;
        had->size += at.name.size + at.payload.size;
    }
    had->alarms = mem_new(had->alarm_count + 1, sizeof(Rh__Host__SetAlarm *));
    for (size_t i = 0; i < had->alarm_count; i++) {
        had->alarms[i] = &had->alarm[i];
    }
}

static void had_free(struct had *had)
{
    mem_free(had->put);
    mem_free(had->puts);
    mem_free(had->alarm);
    mem_free(had->alarms);
}

static struct hosted_actor *actor_new(struct rh_actor *actor)
{
    struct hosted_actor *p = mem_new(1, sizeof *p);

    p->actor = actor;
    p->kind = rh_shared(actor);
    p->life = rh_life(actor);
    list_init(&p->steps);
    (void)pthread_mutex_lock(&hosted_of(p)->lock);
    p->number = ++hosted_of(p)->last_activation;
    (void)pthread_mutex_unlock(&hosted_of(p)->lock);
    return p;
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct hosted_actor *p = actor_new(actor);
    Rh__Host__Activate activate = RH__HOST__ACTIVATE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;
    struct had had = {0};

    activate.activation = p->number;
    activate.turn = 1;
    activate.kind = p->kind->number;
    activate.id = hosted_data(rh_id(actor));
    activate.fence = fence;
    if (state != NULL) {
        activate.has_state = 1;
        activate.state = hosted_data(*state);
        had.size += state->size;
    }
    if (p->kind->durable) {
        take_values(actor, &had);
        take_alarms(actor, &had);
        activate.values = had.puts;
        activate.n_values = had.put_count;
        activate.alarms = had.alarms;
        activate.n_alarms = had.alarm_count;
    }
    says.body_case = RH__HOST__NODE_SAYS__BODY_ACTIVATE;
    says.activate = &activate;
    *instance = p;
    const bool begins = begin(p, TURN_OF_ACTIVATE, &says, had.size);
    ASSERT(begins); // nothing that is new is gone
    had_free(&had);
    return RH_PENDING;
}

/* ---- the other callbacks */

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    struct hosted_actor *p = instance;
    Rh__Host__Message message = RH__HOST__MESSAGE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;
    ProtobufCBinaryData few[ARGUMENTS_FEW];
    ProtobufCBinaryData *argument = few;
    size_t size = m->payload.size;

    (void)actor;
    if (m->argument_count > ARGUMENTS_FEW) {
        argument = mem_new(m->argument_count, sizeof *argument);
    }
    for (size_t i = 0; i < m->argument_count; i++) {
        argument[i] = hosted_data(m->argument[i]);
        size += m->argument[i].size;
    }
    message.activation = p->number;
    message.turn = p->turn + 1;
    message.payload = hosted_data(m->payload);
    message.argument = argument;
    message.n_argument = m->argument_count;
    message.no_reply = (m->flags & RH_NO_REPLY) != 0;
    message.idempotent = (m->flags & RH_IDEMPOTENT) != 0;
    message.from_kind = m->from_kind;
    message.from = hosted_data(m->from);
    says.body_case = RH__HOST__NODE_SAYS__BODY_MESSAGE;
    says.message = &message;
    (void)begin_or_fail(p, TURN_OF_MESSAGE, &says, size);
    if (argument != few) {
        mem_free(argument);
    }
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct hosted_actor *p = instance;
    Rh__Host__Timer rang = RH__HOST__TIMER__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)actor;
    (void)argument;
    rang.activation = p->number;
    rang.turn = p->turn + 1;
    rang.timer = hosted_timer_rang(p, timer);
    says.body_case = RH__HOST__NODE_SAYS__BODY_TIMER;
    says.timer = &rang;
    (void)begin_or_fail(p, TURN_OF_TIMER, &says, 0);
}

static int on_alarm(struct rh_actor *actor, void *instance, const struct rh_alarm *a)
{
    struct hosted_actor *p = instance;
    Rh__Host__Alarm alarm = RH__HOST__ALARM__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)actor;
    alarm.activation = p->number;
    alarm.turn = p->turn + 1;
    alarm.name = hosted_data(a->name);
    alarm.payload = hosted_data(a->payload);
    alarm.due_ms = a->due_ms;
    alarm.every_ms = a->every_ms;
    says.body_case = RH__HOST__NODE_SAYS__BODY_ALARM;
    says.alarm = &alarm;
    return begin_or_fail(p, TURN_OF_ALARM, &says, a->name.size + a->payload.size);
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    struct hosted_actor *p = instance;
    Rh__Host__Session session = RH__HOST__SESSION__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)actor;
    session.activation = p->number;
    session.turn = p->turn + 1;
    session.event = (Rh__Host__SessionEvent)event->type;
    session.why = event->why;
    session.session = event->session;
    session.former = event->former;
    says.body_case = RH__HOST__NODE_SAYS__BODY_SESSION;
    says.session = &session;
    return begin_or_fail(p, TURN_OF_SESSION, &says, 0);
}

_Static_assert((int)RH_SESSION_LOST == (int)RH__HOST__SESSION_EVENT__SESSION_LOST &&
                   (int)RH_SESSION_BOUND == (int)RH__HOST__SESSION_EVENT__SESSION_BOUND,
               "the same events");
_Static_assert((int)RH_MOVED == (int)RH__HOST__WHY__WHY_MOVED &&
                   (int)RH_PERIODIC == (int)RH__HOST__WHY__WHY_PERIODIC,
               "the same reasons");

static int on_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    struct hosted_actor *p = instance;
    Rh__Host__Flush flush = RH__HOST__FLUSH__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)actor;
    (void)fence; // as it was told
    flush.activation = p->number;
    flush.turn = p->turn + 1;
    flush.why = (Rh__Host__Why)why;
    says.body_case = RH__HOST__NODE_SAYS__BODY_FLUSH;
    says.flush = &flush;
    // What its host had is gone with it: there is nothing left to save.
    return begin(p, TURN_OF_FLUSH, &says, 0) ? RH_PENDING : RH_OK;
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    struct hosted_actor *p = instance;
    Rh__Host__Handoff handoff = RH__HOST__HANDOFF__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)actor;
    p->out = out;
    handoff.activation = p->number;
    handoff.turn = p->turn + 1;
    says.body_case = RH__HOST__NODE_SAYS__BODY_HANDOFF;
    says.handoff = &handoff;
    return begin(p, TURN_OF_HANDOFF, &says, 0) ? RH_PENDING : RH_COLD;
}

static void on_resume(struct rh_actor *actor, void *instance)
{
    struct hosted_actor *p = instance;
    Rh__Host__Resume resume = RH__HOST__RESUME__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)actor;
    resume.activation = p->number;
    says.body_case = RH__HOST__NODE_SAYS__BODY_RESUME;
    says.resume = &resume;
    say(p, &says);
}

/* Nothing is left of it, here or at its host, which is told. */
static void drop(struct hosted_actor *p, enum rh_why why, bool told)
{
    Rh__Host__Deactivate deactivate = RH__HOST__DEACTIVATE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    deactivate.activation = p->number;
    deactivate.why = (Rh__Host__Why)why;
    says.body_case = RH__HOST__NODE_SAYS__BODY_DEACTIVATE;
    says.deactivate = &deactivate;
    (void)pthread_mutex_lock(&hosted_of(p)->lock);
    if (p->link != NULL && p->begun && !told) {
        hosted_say(p->link, &says);
    }
    hosted_turns_forget(p);
    (void)pthread_mutex_unlock(&hosted_of(p)->lock);
    mem_free(p->timer);
    mem_free(p);
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    drop(instance, why, false);
}

/* ---- turns end */

static enum turn_of end_turn(struct hosted_actor *p)
{
    const enum turn_of of = p->of;

    (void)pthread_mutex_lock(&hosted_of(p)->lock);
    hosted_turn_end(p);
    (void)pthread_mutex_unlock(&hosted_of(p)->lock);
    p->of = TURN_OF_NOTHING;
    return of;
}

/* It can't fail amidst this: it does so between messages, and takes none before. */
static void fail_next(struct hosted_actor *p)
{
    p->failed = false;
    p->counted = true;
    (void)pthread_mutex_lock(&hosted_of(p)->lock);
    p->gone = true;
    hosted_actor_post(p);
    (void)pthread_mutex_unlock(&hosted_of(p)->lock);
}

/* The actor is broken, whatever it does. It may be freed. */
static void break_actor(struct hosted_actor *p, const char *text)
{
    p->failed = true;
    switch (end_turn(p)) {
    case TURN_OF_NOTHING:
    case TURN_OF_MESSAGE:
        (void)rh_fail(p->actor, text);
        return;
    case TURN_OF_TIMER:
    case TURN_OF_ALARM:
    case TURN_OF_SESSION:
        (void)rh_fail(p->actor, text);
        (void)rh_done(p->token, RH_FAILED);
        return;
    case TURN_OF_ACTIVATE:
        if (rh_done(p->token, RH_FAILED) == RH_OK) {
            drop(p, RH_BROKEN, false);
        }
        return;
    case TURN_OF_FLUSH:
        (void)rh_done(p->token, RH_FAILED);
        fail_next(p);
        return;
    case TURN_OF_HANDOFF:
        (void)rh_done(p->token, RH_COLD);
        fail_next(p);
        return;
    }
}

static struct rh_value value_of(const Rh__Host__Value *v)
{
    if (v == NULL) {
        return rh_nil();
    }
    switch ((int)v->type_case) {
    case RH__HOST__VALUE__TYPE_DATA:
        return rh_bytes_value(v->data.data, v->data.len);
    case RH__HOST__VALUE__TYPE_TEXT:
        return rh_text(v->text);
    case RH__HOST__VALUE__TYPE_INTEGER:
        return rh_integer(v->integer);
    case RH__HOST__VALUE__TYPE_ERROR:
        return rh_error(v->error);
    default:
        return rh_nil();
    }
}

static int handed_off(struct hosted_actor *p, const Rh__Host__Done *done)
{
    if (done->result == RH__HOST__RESULT__RESULT_BUSY) {
        return RH_BUSY;
    }
    if (done->result != RH__HOST__RESULT__RESULT_OK) {
        return RH_COLD;
    }
    rh_out_put(p->out, done->state.data, done->state.len);
    return RH_OK;
}

/* The host says that the turn is over. The actor may be freed. */
static void finish(struct hosted_actor *p, const Rh__Host__Done *done)
{
    const int result = done->result == RH__HOST__RESULT__RESULT_OK ? RH_OK : RH_FAILED;

    if (done->fail[0] != '\0' || (p->of == TURN_OF_MESSAGE && result != RH_OK)) {
        (void)atomic_fetch_add(&hosted_of(p)->stats.failed_said, 1);
        break_actor(p, done->fail[0] != '\0' ? done->fail : "ERR the actor failed");
        return;
    }
    switch (end_turn(p)) {
    case TURN_OF_NOTHING:
        UNREACHABLE();
    case TURN_OF_MESSAGE:
        (void)rh_reply(p->actor, value_of(done->reply));
        return;
    case TURN_OF_ACTIVATE:
        if (rh_done(p->token, result) == RH_OK && result != RH_OK) {
            drop(p, RH_BROKEN, true);
        }
        return;
    case TURN_OF_HANDOFF:
        (void)rh_done(p->token, handed_off(p, done));
        return;
    case TURN_OF_ALARM:
        if (result != RH_OK) {
            (void)rh_state_undo(p->actor);
        }
        (void)rh_done(p->token, result);
        return;
    case TURN_OF_TIMER:
    case TURN_OF_SESSION:
    case TURN_OF_FLUSH:
        (void)rh_done(p->token, result);
        return;
    }
}

/* Its host has ended, or its turn took too long. The actor may be freed. */
static void end_badly(struct hosted_actor *p, bool gone, bool ran)
{
    struct hosted_stats *stats = &hosted_of(p)->stats;
    char text[TEXT_MAX];

    if (p->of == TURN_OF_ACTIVATE && !gone && !ran) {
        (void)atomic_fetch_add(&stats->unserved, 1);
    } else if (!p->counted) {
        (void)atomic_fetch_add(gone ? &stats->failed_gone : &stats->failed_slow, 1);
    }
    if (gone) {
        (void)snprintf(text,
                       sizeof text,
                       "%s",
                       ran ? "UNKNOWN outcome: the actor's host ended amidst it"
                           : "REJECTED the actor's host ended; the request did not run");
    } else {
        (void)snprintf(text,
                       sizeof text,
                       "UNKNOWN outcome: the actor's host did not end the turn in %u ms",
                       p->kind->turn_ms);
    }
    break_actor(p, text);
}

/* ---- steps */

static void do_step(struct hosted_actor *p, const Rh__Host__Step *step)
{
    if (p->failed || p->of == TURN_OF_NOTHING || (step->turn != p->turn && !mutant(M_STALESTEP))) {
        (void)atomic_fetch_add(&hosted_of(p)->stats.stale, 1);
        return;
    }
    for (size_t i = 0; i < step->n_effects; i++) {
        const char *wrong = hosted_effect(p, step->effects[i]);

        if (wrong != NULL) {
            (void)atomic_fetch_add(&hosted_of(p)->stats.failed_wrong, 1);
            break_actor(p, wrong);
            return;
        }
    }
    if (step->done != NULL) {
        finish(p, step->done);
    }
}

/* One step for each time that it is posted: each is a commit of its own. */
static void on_post(struct rh_actor *actor, void *instance, void *argument)
{
    struct hosted_actor *p = instance;
    struct hosted *h = hosted_of(p);

    (void)actor;
    (void)argument;
    (void)pthread_mutex_lock(&h->lock);
    struct list_link *at = list_pop_front(&p->steps);
    struct hosted_step *s = at == NULL ? NULL : CONTAINER_OF(at, struct hosted_step, link);
    const bool ended = p->gone || p->late;
    const bool gone = p->gone;
    const bool ran = p->stage == TURN_STAGE_OPEN;
    if (s != NULL) {
        const bool was_full = h->queued > HOSTED_QUEUED_MAX;

        h->queued -= s->size;
        if (was_full && h->queued <= HOSTED_QUEUED_MAX) {
            h->on_output(h->context); // reads on
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
    if (s != NULL) {
        do_step(p, s->step);
        hosted_step_free(s);
    } else if (ended && !p->failed) {
        end_badly(p, gone, ran);
    }
}

void hosted_actor_post(const struct hosted_actor *p)
{
    (void)rh_post(p->life, on_post, NULL); // gone: its deactivate is about to forget it
}

const struct rh_actor_ops hosted_actor_ops = {
    .abi = RH_ABI,
    .size = sizeof hosted_actor_ops,
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .resume = on_resume,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .flush = on_flush,
    .session = on_session,
    .alarm = on_alarm,
    .brief = 1, // a turn is said, and nobody waits for it
};
