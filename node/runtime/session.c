/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients that are bound to an actor, and what its code is told of them
 * (docs/decisions/012-sessions.md).
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "node/durable/inbox.h"
#include "node/runtime/bond.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert((int)RH_LOST_CLOSED == (int)NOTE_LOST_CLOSED &&
                   (int)RH_LOST_KICKED == (int)NOTE_LOST_KICKED &&
                   (int)RH_LOST_SLOW == (int)NOTE_LOST_SLOW &&
                   (int)RH_LOST_REBOUND == (int)NOTE_LOST_REBOUND,
               "the same reasons");

struct bond_stamp session_stamp(const struct rh_actor *a)
{
    _Atomic uint64_t *count = &a->runtime->config.numbering->bonds;

    return (struct bond_stamp){.fence = mutant(M_FENCELESS) ? 0 : a->fence,
                               .count = atomic_fetch_add(count, 1) + 1};
}

void session_tell_bound(const struct client_bond *c)
{
    const struct completion event = {
        .verb = VERB_BIND, .actor = name_of(c->actor), .number = c->bond.gateway};

    actor_say(c->actor, &event);
}

/* ---- telling its code ---- */

static int call_session(struct rh_actor *a, const struct rh_session *event)
{
    a->callback = CALLBACK_SESSION;
    if (role_of(a)->ops->session == NULL) {
        return RH_OK;
    }
    actor_enter_code(a);
    const int result = role_of(a)->ops->session(a, a->instance, event);
    actor_leave_code(a, true);
    return result;
}

/* `c`: of which it is, if that is there still. */
// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
static void tell(struct rh_actor *a, struct client_bond *c, const struct rh_session *event)
{
    extra_of(a)->told = c;
    if (c != NULL) {
        c->asked = (uint8_t)event->type;
    }
    actor_returned(a, call_session(a, event));
}

// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
void session_tell(struct client_bond *c, enum rh_session_type type, uint32_t why)
{
    const struct rh_session event = {.type = type, .why = why, .session = bond_session(&c->bond)};

    tell(c->actor, c, &event);
}

/* It stays if it may return. */
// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
static void tell_lost(struct client_bond *c, uint32_t why)
{
    const struct rh_session event = {
        .type = RH_SESSION_LOST, .why = why, .session = bond_session(&c->bond)};
    struct rh_actor *a = c->actor;
    const bool stays = c->away;

    if (!stays) {
        bonds_drop(c);
    }
    tell(a, stays ? c : NULL, &event);
}

bool session_is_due(const struct rh_actor *a)
{
    return bonds_due(a) != NULL;
}

// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
void session_turn(struct rh_actor *a)
{
    struct client_bond *c = bonds_due(a);
    const enum rh_session_type type = (enum rh_session_type)c->due;

    c->due = 0;
    if (type == RH_SESSION_LOST) {
        tell_lost(c, c->due_why);
        return;
    }
    if (c->away) { // It came without its actor's memory, and without its connection: both are told.
        c->due = RH_SESSION_LOST;
        c->due_why = RH_LOST_GATEWAY;
    }
    session_tell(c, type, RH_RESUMED_AFRESH);
}

void session_turned(struct rh_actor *a, int result)
{
    struct client_bond *c = a->extra->told;

    if (c != NULL && c->asked == RH_SESSION_RESUMED && result != RH_OK) {
        push_kick(c, KICK_REFUSED, "the actor does not take this session");
        bonds_drop(c);
    }
}

/* ---- notes ---- */

/* With what is in the runtime's buffer. */
static void answer_bytes(struct rh_actor *a)
{
    actor_ran(a, ANSWER_OK, buffer_bytes(&a->runtime->body));
    actor_end_task(a);
    actor_want_turn(a);
}

static void answer(struct rh_actor *a, const struct bound *bound)
{
    struct buffer *out = &a->runtime->body;

    buffer_clear(out);
    if (bound != NULL) {
        bound_put(out, bound);
    }
    answer_bytes(a);
}

void session_answer(struct rh_actor *a, const struct client_bond *c, enum bound_result result)
{
    struct bound bound = {.result = (uint8_t)result};

    if (c != NULL && (result == BOUND_NEW || result == BOUND_KEPT)) {
        bound.round = c->bond.round;
        bound.stamp = c->bond.stamp;
        bound.key = c->bond.key;
        bound.next = c->next_number;
        bound.epoch = c->bond.epoch;
        bound.keep_ms = keep_ms(a);
    }
    answer(a, &bound);
}

void session_ran(struct rh_actor *a, int result)
{
    struct client_bond *c = a->extra->told;

    if (c == NULL || c->asked == RH_SESSION_LOST) {
        answer(a, NULL);
    } else if (result == RH_OK) {
        session_answer(a, c, (enum bound_result)c->result);
    } else {
        bonds_drop(c);
        session_answer(a, NULL, BOUND_REFUSED);
    }
}

static bool is_again(const struct note *note)
{
    return note->type == NOTE_RESUME || note->type == NOTE_RENEW;
}

/* Another one is bound, of whom we know nothing bad. */
static bool is_taken(const struct client_bond *c, const struct note *note)
{
    return c != NULL && !bond_is_of(&c->bond, note) && !bond_is_over(&c->bond) &&
           (!c->away || mutant(M_AWAYTAKEN)) && c->due != RH_SESSION_LOST;
}

/* As its actor knows it: what is due it was not told. */
static bool is_there(const struct client_bond *c)
{
    return c->due != RH_SESSION_RESUMED && (!c->away || c->due == RH_SESSION_LOST);
}

static struct client_bond *bind(struct rh_actor *a, const struct note *note)
{
    struct client_bond *c = bonds_add(a);

    c->result = BOUND_NEW;
    c->next_number = 1;
    c->bond = (struct bond){.gateway = note->gateway,
                            .connection = note->connection,
                            .round = note->round,
                            .stamp = is_again(note) ? note->stamp : session_stamp(a)};
    if (keep_wants(a, note)) {
        keep_begin(c, note);
    }
    bonds_part(c);
    session_tell_bound(c);
    return c;
}

/* Bind it in the place of `former`, or beside the others, and tell its actor. */
static void begin(struct rh_actor *a, const struct note *note, struct client_bond *former)
{
    struct rh_session event = {.type = is_again(note) ? RH_SESSION_RESUMED : RH_SESSION_BOUND};

    if (former != NULL) {
        // By its own connection, too: the answer that it was bound got lost, and it begins anew.
        if (is_there(former)) {
            event.type = RH_SESSION_REPLACED;
            event.former = bond_session(&former->bond);
        }
        if (!bond_is_of(&former->bond, note) && !former->away) {
            push_kick(former, KICK_REPLACED, "another connection was bound");
        }
        bonds_yield(former, note);
    }
    struct client_bond *c = bind(a, note);
    event.session = bond_session(&c->bond);
    tell(a, c, &event);
}

/* What it comes to against `c`; NULL = nobody's place is wanted. */
static enum bound_result judge(const struct rh_actor *a, const struct note *note,
                               const struct client_bond *c)
{
    const struct rh_actor_ops *kind = role_of(a)->ops;

    if (kind->session == NULL) {
        return BOUND_NEVER;
    }
    if (kind->sessions == RH_SESSIONS_REJECT_NEW && !mutant(M_TWOBOUND) && is_taken(c, note) &&
        (note->type == NOTE_BIND || note->type == NOTE_KEEP)) {
        return BOUND_TAKEN;
    }
    // Made anew, it would take the place of another.
    if (bonds_yielded(a, note)) {
        return BOUND_OLD;
    }
    return bond_judge(c == NULL ? NULL : &c->bond, note);
}

static void on_bind(struct rh_actor *a, const struct note *note)
{
    struct client_bond *c = bonds_against(a, note);
    const enum bound_result result = judge(a, note, c);

    if (result == BOUND_NEW) {
        begin(a, note, c);
    } else if (result == BOUND_KEPT && note->type == NOTE_RETURN) {
        keep_return(c, note);
    } else if (result == BOUND_KEPT && note->type == NOTE_RENEW && c->bond.session != 0) {
        keep_renew(c, note);
    } else {
        if (c != NULL && result == BOUND_KEPT && c->due == RH_SESSION_LOST) {
            c->due = 0; // its gateway was away for long, and is back
        }
        if (c != NULL && result == BOUND_KEPT) {
            push_rebind(c);
        }
        session_answer(a, c, result);
    }
}

static void on_lost(struct rh_actor *a, const struct note *note)
{
    const bool left = note->why == NOTE_LOST_LEFT;
    struct client_bond *c = mutant(M_OLDLOST) ? a->extra->client : bonds_of(a, note);

    // The last: its time to return is over, too, and the turn that tells so is still to come
    // (fleet_sim --profile sessions --seed 9835).
    if (c == NULL || c->away || c->due == RH_SESSION_LOST) {
        answer(a, NULL); // of one that was replaced, or is known to be gone
        return;
    }
    const bool told = c->due != RH_SESSION_RESUMED;
    if (!left && note->why != NOTE_LOST_KICKED && note->why != NOTE_LOST_REBOUND) {
        (void)keep_leaves(c);
    }
    if (told) {
        tell_lost(c, left ? RH_LOST_CLOSED : note->why);
        return;
    }
    if (!c->away) {
        bonds_drop(c);
    }
    answer(a, NULL); // of whom it was not told yet that it was there
}

static void on_push(struct rh_actor *a, const struct note *note)
{
    (void)push_to_all(a, note->payload);
    answer(a, NULL);
}

/* Whoever is bound is told to go, as its actor could tell it. */
static void on_kick(struct rh_actor *a, const struct note *note)
{
    const uint8_t was_bound = push_kick_all(a, note->code, note->payload) ? 1 : 0;
    struct buffer *out = &a->runtime->body;

    buffer_clear(out);
    buffer_put(out, &was_bound, 1);
    answer_bytes(a);
}

/* The way is all that is asked for: it goes back as it came. */
static void on_trace(struct rh_actor *a, const struct note *note)
{
    struct buffer *out = &a->runtime->body;

    buffer_clear(out);
    buffer_put(out, note->payload.data, note->payload.size);
    answer_bytes(a);
}

/* Of another actor's outbox; it comes again until this answer says that it is taken. */
static void on_send(struct rh_actor *a, const struct caller *from, const struct note *note)
{
    static const uint8_t taken = 1;
    struct buffer *out = &a->runtime->body;

    if (!durable_has_taken(a, from, note->number)) {
        message_take_send(a, from, note->number, note->payload);
        return;
    }
    buffer_clear(out);
    buffer_put(out, &taken, 1);
    answer_bytes(a);
}

void session_run(struct rh_actor *a, const struct runtime_message *m)
{
    struct bytes body = m->body;
    struct caller caller = {0};
    struct note note;

    a->callback = CALLBACK_NONE;
    if (((m->flags & REQUEST_CALL) != 0 && caller_get(&body, &caller) != ERR_OK) ||
        note_get(body, &note) != ERR_OK ||
        (note.type == NOTE_SEND && (caller.id.size == 0 || caller.id.size > INBOX_ID_MAX))) {
        actor_complain(a, "bad_note", "a session note can't be decoded");
        answer(a, NULL); // which is no answer to whoever sent it, and says so there
    } else if (note.type == NOTE_PUSH) {
        on_push(a, &note);
    } else if (note.type == NOTE_LOST) {
        on_lost(a, &note);
    } else if (note.type == NOTE_ACK) {
        keep_ack(a, &note);
        answer(a, NULL);
    } else if (note.type == NOTE_KICK) {
        on_kick(a, &note);
    } else if (note.type == NOTE_TRACE) {
        on_trace(a, &note);
    } else if (note.type == NOTE_SEND) {
        on_send(a, &caller, &note);
    } else if (note.type == NOTE_VALUES) {
        values_run(a, note.payload);
    } else {
        on_bind(a, &note);
    }
}

/* ---- its life ---- */

void session_start(struct rh_actor *a)
{
    for (const struct client_bond *c = a->extra->client; c != NULL; c = c->next) {
        if (!c->away) {
            session_tell_bound(c);
        }
    }
}

bool session_keeps(const struct rh_actor *a)
{
    return a->extra->client != NULL && !a->passivate;
}

void session_stop(struct rh_actor *a, enum rh_why why)
{
    for (struct client_bond *c = a->extra->client; c != NULL; c = c->next) {
        if (c->away) {
            // Nobody is there to be told.
        } else if (why == RH_IDLE) {
            push_kick(c, KICK_ENDED, "the actor has ended");
        } else if (why == RH_BROKEN) {
            push_tell(c, PUSH_AGAIN, 0, (struct bytes){0});
        }
    }
    bonds_drop_all(a);
}

void runtime_gateway_gone(struct runtime *s, uint64_t gateway)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&s->bonds); l != NULL; l = next) {
        struct client_bond *c = CONTAINER_OF(l, struct client_bond, in_runtime);

        next = list_next(&s->bonds, l);
        if (c->bond.gateway == gateway && !c->away) {
            bonds_lose(c, RH_LOST_GATEWAY);
        }
    }
}
