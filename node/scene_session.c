/* SPDX-License-Identifier: Apache-2.0
 *
 * The client that is bound to an actor (docs/decisions/012-sessions.md).
 */
#include "node/scene_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "node/bond.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert((int)RH_LOST_CLOSED == (int)NOTE_LOST_CLOSED &&
                   (int)RH_LOST_KICKED == (int)NOTE_LOST_KICKED &&
                   (int)RH_LOST_SLOW == (int)NOTE_LOST_SLOW &&
                   (int)RH_LOST_REBOUND == (int)NOTE_LOST_REBOUND,
               "the same reasons");

/* Of all scenes of the process: within one fence the stamps of bonds grow, for a fence has one
 * owner. */
static _Atomic uint64_t last_count;

/* ---- the bond ---- */

static struct client_bond *bond_add(struct rh_actor *a)
{
    struct client_bond *c = mem_new(1, sizeof *c);

    ASSERT(a->extra->client == NULL);
    c->actor = a;
    extra_of(a)->client = c;
    list_push_back(&a->scene->bonds, &c->in_scene);
    return c;
}

struct bond_stamp session_stamp(const struct rh_actor *a)
{
    return (struct bond_stamp){.fence = a->fence, .count = atomic_fetch_add(&last_count, 1) + 1};
}

void session_drop(struct rh_actor *a)
{
    struct client_bond *c = a->extra->client;

    if (c != NULL) {
        keep_unset(c);
        unseen_fini(&c->unseen);
        list_remove(&c->in_scene);
        mem_free(c);
        a->extra->client = NULL;
    }
}

void session_tell_bound(struct rh_actor *a)
{
    const struct scene_event event = {
        .type = SCENE_BOUND, .actor = outer_of(a), .session = a->extra->client->bond.gateway};

    a->scene->config.on_event(a->scene->config.context, &event);
}

/* ---- telling its code ---- */

static int call_session(struct rh_actor *a, enum rh_session_type type, uint32_t why)
{
    const struct rh_session event = {.type = type, .why = why};

    a->callback = CALLBACK_SESSION;
    return role_of(a)->ops->session == NULL ? RH_OK
                                            : role_of(a)->ops->session(a, a->instance, &event);
}

// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
void session_tell(struct rh_actor *a, enum rh_session_type type, uint32_t why)
{
    if (a->extra->client != NULL) {
        a->extra->client->asked = (uint8_t)type;
    }
    actor_returned(a, call_session(a, type, why));
}

bool session_is_due(const struct rh_actor *a)
{
    return a->extra->client != NULL && a->extra->client->due != 0;
}

// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
void session_turn(struct rh_actor *a)
{
    struct client_bond *c = a->extra->client;
    const enum rh_session_type type = (enum rh_session_type)c->due;

    // It came without its actor's memory, and without its connection: both are told.
    c->due = type == RH_SESSION_RESUMED && c->away ? RH_SESSION_LOST : 0;
    if (type == RH_SESSION_LOST && !c->away) {
        session_drop(a);
    }
    session_tell(a, type, type == RH_SESSION_LOST ? RH_LOST_GATEWAY : RH_RESUMED_AFRESH);
}

void session_turned(struct rh_actor *a, int result)
{
    if (a->extra->client != NULL && a->extra->client->asked == RH_SESSION_RESUMED &&
        result != RH_OK) {
        push_kick(a, KICK_REFUSED, "the actor does not take this session");
        session_drop(a);
    }
}

/* ---- notes ---- */

static void answer(struct rh_actor *a, const struct bound *bound)
{
    struct buffer *out = &a->scene->body;

    buffer_clear(out);
    if (bound != NULL) {
        bound_put(out, bound);
    }
    actor_ran(a, ANSWER_OK, buffer_bytes(out));
    actor_end_task(a);
    actor_want_turn(a);
}

void session_answer(struct rh_actor *a, enum bound_result result)
{
    const struct client_bond *c = a->extra->client;
    struct bound bound = {.result = (uint8_t)result};

    if (c != NULL && (result == BOUND_NEW || result == BOUND_KEPT)) {
        bound.round = c->bond.round;
        bound.stamp = c->bond.stamp;
        bound.key = c->bond.key;
        bound.next = c->next;
        bound.epoch = c->bond.epoch;
        bound.keep_ms = keep_ms(a);
    }
    answer(a, &bound);
}

void session_ran(struct rh_actor *a, int result)
{
    if (a->extra->client == NULL || a->extra->client->asked == RH_SESSION_LOST) {
        answer(a, NULL);
    } else if (result == RH_OK) {
        session_answer(a, (enum bound_result)a->extra->client->result);
    } else {
        session_drop(a);
        session_answer(a, BOUND_REFUSED);
    }
}

static bool is_again(const struct note *note)
{
    return note->type == NOTE_RESUME || note->type == NOTE_RENEW;
}

/* Another one is bound, of whom we know nothing bad. */
static bool is_taken(const struct rh_actor *a, const struct note *note)
{
    const struct client_bond *c = a->extra->client;

    return c != NULL && !bond_is_of(&c->bond, note) && !bond_is_over(&c->bond) && !c->away &&
           c->due != RH_SESSION_LOST;
}

/* As its actor knows it: what is due it was not told. */
static bool is_there(const struct client_bond *c)
{
    return c->due != RH_SESSION_RESUMED && (!c->away || c->due == RH_SESSION_LOST);
}

/* Bind it; what the actor is to be told of it. */
static enum rh_session_type bind(struct rh_actor *a, const struct note *note)
{
    const struct client_bond *former = a->extra->client;
    enum rh_session_type type = is_again(note) ? RH_SESSION_RESUMED : RH_SESSION_BOUND;

    if (former != NULL) {
        // By its own connection, too: the answer that it was bound got lost, and it begins anew.
        type = is_there(former) ? RH_SESSION_REPLACED : type;
        if (!bond_is_of(&former->bond, note) && !former->away) {
            push_kick(a, KICK_REPLACED, "another connection was bound");
        }
        session_drop(a);
    }
    struct client_bond *c = bond_add(a);
    c->result = BOUND_NEW;
    c->next = 1;
    c->bond = (struct bond){.gateway = note->gateway,
                            .connection = note->connection,
                            .round = note->round,
                            .stamp = is_again(note) ? note->stamp : session_stamp(a)};
    if (keep_wants(a, note)) {
        keep_begin(a, note);
    }
    session_tell_bound(a);
    return type;
}

static enum bound_result judge(const struct rh_actor *a, const struct note *note)
{
    const struct rh_actor_ops *kind = role_of(a)->ops;

    if (kind->session == NULL) {
        return BOUND_NEVER;
    }
    if (kind->sessions == RH_SESSIONS_REJECT_NEW && !mutant(M_TWOBOUND) && is_taken(a, note) &&
        (note->type == NOTE_BIND || note->type == NOTE_KEEP)) {
        return BOUND_TAKEN;
    }
    return bond_judge(a->extra->client == NULL ? NULL : &a->extra->client->bond, note);
}

static void on_bind(struct rh_actor *a, const struct note *note)
{
    const enum bound_result result = judge(a, note);
    struct client_bond *c = a->extra->client;

    if (result == BOUND_NEW) {
        session_tell(a, bind(a, note), RH_RESUMED_AFRESH);
    } else if (result == BOUND_KEPT && note->type == NOTE_RETURN) {
        keep_return(a, note);
    } else if (result == BOUND_KEPT && note->type == NOTE_RENEW && c->bond.session != 0) {
        keep_renew(a, note);
    } else {
        if (c != NULL && result == BOUND_KEPT && c->due == RH_SESSION_LOST) {
            c->due = 0; // its gateway was away for long, and is back
        }
        if (result == BOUND_KEPT) {
            push_rebind(a);
        }
        session_answer(a, result);
    }
}

static void on_lost(struct rh_actor *a, const struct note *note)
{
    const bool left = note->why == NOTE_LOST_LEFT;

    if (a->extra->client == NULL ||
        (!bond_is_of(&a->extra->client->bond, note) && !mutant(M_OLDLOST)) ||
        a->extra->client->away) {
        answer(a, NULL); // of one that was replaced, or is known to be gone
        return;
    }
    const bool told = a->extra->client->due != RH_SESSION_RESUMED;
    if (left || note->why == NOTE_LOST_KICKED || note->why == NOTE_LOST_REBOUND ||
        !keep_leaves(a)) {
        session_drop(a);
    }
    if (!told) {
        answer(a, NULL); // of whom it was not told yet that it was there
        return;
    }
    session_tell(a, RH_SESSION_LOST, left ? RH_LOST_CLOSED : note->why);
}

static void on_push(struct rh_actor *a, const struct note *note)
{
    if (a->extra->client != NULL && !bond_is_over(&a->extra->client->bond)) {
        push_tell(a, PUSH_DATA, 0, note->payload);
    }
    answer(a, NULL);
}

void session_run(struct rh_actor *a, const struct scene_message *m)
{
    struct bytes body = m->body;
    struct caller caller;
    struct note note;

    a->callback = CALLBACK_NONE;
    if (((m->flags & REQUEST_CALL) != 0 && caller_get(&body, &caller) != ERR_OK) ||
        note_get(body, &note) != ERR_OK) {
        actor_complain(a, "bad_note", "a session note does not decode");
        answer(a, NULL); // which is no answer to whoever sent it, and says so there
    } else if (note.type == NOTE_PUSH) {
        on_push(a, &note);
    } else if (note.type == NOTE_LOST) {
        on_lost(a, &note);
    } else if (note.type == NOTE_ACK) {
        keep_ack(a, &note);
        answer(a, NULL);
    } else {
        on_bind(a, &note);
    }
}

/* ---- its life ---- */

void session_arrive(struct rh_actor *a, struct bytes bond, bool afresh)
{
    struct bond b;

    if (bond.size == 0) {
        return;
    }
    if (bond_get(bond, &b) != ERR_OK) {
        actor_complain(a, "bad_bond", "the bond that it was handed over with does not decode");
        return;
    }
    keep_arrive(bond_add(a), &b);
    a->extra->client->due = afresh && role_of(a)->ops->session != NULL ? RH_SESSION_RESUMED : 0;
}

void session_start(struct rh_actor *a)
{
    if (a->extra->client != NULL && !a->extra->client->away) {
        session_tell_bound(a);
    }
}

struct bytes session_pack(const struct rh_actor *a)
{
    struct buffer *out = &a->scene->body;
    struct bond b;

    if (a->extra->client == NULL || mutant(M_BONDSTAYS)) {
        return (struct bytes){0};
    }
    keep_pack(a->extra->client, &b);
    buffer_clear(out);
    bond_put(out, &b);
    return buffer_bytes(out);
}

bool session_keeps(const struct rh_actor *a)
{
    return a->extra->client != NULL && !a->passivate;
}

void session_stop(struct rh_actor *a, enum rh_why why)
{
    if (a->extra->client == NULL) {
        return;
    }
    if (a->extra->client->away) {
        // Nobody is there to be told.
    } else if (why == RH_IDLE) {
        push_kick(a, KICK_ENDED, "the actor has ended");
    } else if (why == RH_BROKEN) {
        push_tell(a, PUSH_AGAIN, 0, (struct bytes){0});
    }
    session_drop(a);
}

void scene_gateway_gone(struct scene *s, uint64_t gateway)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&s->bonds); l != NULL; l = next) {
        struct client_bond *c = CONTAINER_OF(l, struct client_bond, in_scene);

        next = list_next(&s->bonds, l);
        if (c->bond.gateway == gateway && !c->away) {
            (void)keep_leaves(c->actor);
            c->due = RH_SESSION_LOST;
            actor_want_turn(c->actor);
        }
    }
}
