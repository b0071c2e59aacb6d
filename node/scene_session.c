/* SPDX-License-Identifier: Apache-2.0
 *
 * The client that is bound to an actor (docs/decisions/012-sessions.md).
 */
#include "node/scene_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "node/bond.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert((int)RH_PUSH_MAX == (int)PUSH_SIZE_MAX, "one limit");
_Static_assert((int)RH_LOST_CLOSED == (int)NOTE_LOST_CLOSED &&
                   (int)RH_LOST_KICKED == (int)NOTE_LOST_KICKED &&
                   (int)RH_LOST_SLOW == (int)NOTE_LOST_SLOW,
               "the same reasons");
_Static_assert((int)RH_KICK_REPLACED == (int)KICK_REPLACED &&
                   (int)RH_KICK_REFUSED == (int)KICK_REFUSED &&
                   (int)RH_KICK_ENDED == (int)KICK_ENDED,
               "the same codes");

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

void session_drop(struct rh_actor *a)
{
    if (a->extra->client != NULL) {
        list_remove(&a->extra->client->in_scene);
        mem_free(a->extra->client);
        a->extra->client = NULL;
    }
}

static void tell_bound(struct rh_actor *a)
{
    const struct scene_event event = {
        .type = SCENE_BOUND, .actor = outer_of(a), .session = a->extra->client->bond.gateway};

    a->scene->config.on_event(a->scene->config.context, &event);
}

static void tell_push(struct rh_actor *a, enum push_type type, uint32_t code, struct bytes payload)
{
    struct bond *b = &a->extra->client->bond;
    const struct push_record push = {
        .gateway = b->gateway,
        .connection = b->connection,
        .number = type == PUSH_AGAIN ? 0 : ++b->number,
        .round = b->round,
        .code = code,
        .type = (uint8_t)type,
        .payload = payload,
    };
    const struct scene_event event = {.type = SCENE_PUSH, .actor = outer_of(a), .push = &push};

    a->scene->config.on_event(a->scene->config.context, &event);
}

static void kick(struct rh_actor *a, uint32_t code, const char *text)
{
    if (!a->extra->client->bond.kicked) {
        a->extra->client->bond.kicked = true;
        tell_push(a, PUSH_KICK, code, bytes_of(text, strlen(text)));
    }
}

/* ---- telling its code ---- */

static int call_session(struct rh_actor *a, enum rh_session_type type, uint32_t why)
{
    const struct rh_session event = {.type = type, .why = why};

    a->callback = CALLBACK_SESSION;
    return role_of(a)->ops->session == NULL ? RH_OK
                                            : role_of(a)->ops->session(a, a->instance, &event);
}

bool session_is_due(const struct rh_actor *a)
{
    return a->extra->client != NULL && a->extra->client->due != 0;
}

// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
void session_turn(struct rh_actor *a)
{
    const enum rh_session_type type = (enum rh_session_type)a->extra->client->due;

    a->extra->client->due = 0;
    a->extra->client->asked = (uint8_t)type;
    if (type == RH_SESSION_LOST) {
        session_drop(a);
    }
    actor_returned(a, call_session(a, type, type == RH_SESSION_LOST ? RH_LOST_GATEWAY : 0));
}

void session_turned(struct rh_actor *a, int result)
{
    if (a->extra->client != NULL && a->extra->client->asked == RH_SESSION_RESUMED &&
        result != RH_OK) {
        kick(a, KICK_REFUSED, "the actor does not take this session");
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

static void answer_result(struct rh_actor *a, enum bound_result result)
{
    struct bound bound = {.result = (uint8_t)result};

    if (a->extra->client != NULL && (result == BOUND_NEW || result == BOUND_KEPT)) {
        bound.round = a->extra->client->bond.round;
        bound.stamp = a->extra->client->bond.stamp;
    }
    answer(a, &bound);
}

void session_ran(struct rh_actor *a, int result)
{
    if (a->extra->client == NULL || a->extra->client->asked == RH_SESSION_LOST) {
        answer(a, NULL);
    } else if (result == RH_OK) {
        answer_result(a, BOUND_NEW);
    } else {
        session_drop(a);
        answer_result(a, BOUND_REFUSED);
    }
}

/* Bind it; what the actor is to be told of it. */
static enum rh_session_type bind(struct rh_actor *a, const struct note *note)
{
    enum rh_session_type type = note->type == NOTE_RESUME ? RH_SESSION_RESUMED : RH_SESSION_BOUND;

    if (a->extra->client != NULL) {
        if (!bond_is_of(&a->extra->client->bond, note)) {
            kick(a, KICK_REPLACED, "another connection was bound");
            type = RH_SESSION_REPLACED;
        }
        session_drop(a);
    }
    struct client_bond *c = bond_add(a);
    c->bond = (struct bond){.gateway = note->gateway,
                            .connection = note->connection,
                            .round = note->round,
                            .stamp = note->stamp};
    if (note->type == NOTE_BIND) {
        c->bond.stamp.fence = a->fence;
        c->bond.stamp.count = atomic_fetch_add(&last_count, 1) + 1;
    }
    c->asked = (uint8_t)type;
    tell_bound(a);
    return type;
}

static void on_bind(struct rh_actor *a, const struct note *note)
{
    const struct bond *have = a->extra->client == NULL ? NULL : &a->extra->client->bond;
    const enum bound_result result =
        role_of(a)->ops->session == NULL ? BOUND_NEVER : bond_judge(have, note);

    if (result == BOUND_NEW) {
        actor_returned(a, call_session(a, bind(a, note), 0));
        return;
    }
    if (a->extra->client != NULL && result == BOUND_KEPT &&
        a->extra->client->due == RH_SESSION_LOST) {
        a->extra->client->due = 0; // its gateway was away for long, and is back
    }
    answer_result(a, result);
}

static void on_lost(struct rh_actor *a, const struct note *note)
{
    if (a->extra->client == NULL || !bond_is_of(&a->extra->client->bond, note)) {
        answer(a, NULL); // of one that was replaced
        return;
    }
    session_drop(a);
    actor_returned(a, call_session(a, RH_SESSION_LOST, note->why));
}

static void on_push(struct rh_actor *a, const struct note *note)
{
    if (a->extra->client != NULL && !a->extra->client->bond.kicked) {
        tell_push(a, PUSH_DATA, 0, note->payload);
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
    bond_add(a)->bond = b;
    a->extra->client->due = afresh && role_of(a)->ops->session != NULL ? RH_SESSION_RESUMED : 0;
}

void session_start(struct rh_actor *a)
{
    if (a->extra->client != NULL) {
        tell_bound(a);
    }
}

struct bytes session_pack(const struct rh_actor *a, uint8_t out[BOND_SIZE])
{
    if (a->extra->client == NULL) {
        return (struct bytes){0};
    }
    struct writer w = {.at = out, .left = BOND_SIZE};

    bond_put(&w, &a->extra->client->bond);
    ASSERT(!w.bad && w.left == 0);
    return bytes_of(out, BOND_SIZE);
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
    if (why == RH_IDLE) {
        kick(a, KICK_ENDED, "the actor has ended");
    } else if (why == RH_BROKEN) {
        tell_push(a, PUSH_AGAIN, 0, (struct bytes){0});
    }
    session_drop(a);
}

void scene_gateway_gone(struct scene *s, uint64_t gateway)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&s->bonds); l != NULL; l = next) {
        struct client_bond *c = CONTAINER_OF(l, struct client_bond, in_scene);

        next = list_next(&s->bonds, l);
        if (c->bond.gateway == gateway) {
            c->due = RH_SESSION_LOST;
            actor_want_turn(c->actor);
        }
    }
}

/* ---- ringhold.h ---- */

static bool has_client(const struct rh_actor *a)
{
    return a->extra->client != NULL && !a->extra->client->bond.kicked &&
           a->extra->client->due != RH_SESSION_LOST;
}

int rh_push(struct rh_actor *actor, struct rh_bytes payload)
{
    if (!actor_may_ask(actor) || (payload.data == NULL && payload.size > 0)) {
        return RH_INVALID;
    }
    if (payload.size > PUSH_SIZE_MAX) {
        return RH_TOO_BIG;
    }
    if (!has_client(actor)) {
        return RH_NO_SESSION;
    }
    tell_push(actor, PUSH_DATA, 0, bytes_of(payload.data, payload.size));
    return RH_OK;
}

int rh_kick(struct rh_actor *actor, uint32_t code, const char *text)
{
    const char *said = text == NULL ? "" : text;

    if (!actor_may_ask(actor) || code < RH_KICK_GAME) {
        return RH_INVALID;
    }
    if (strlen(said) > PUSH_TEXT_MAX) {
        return RH_TOO_BIG;
    }
    if (!has_client(actor)) {
        return RH_NO_SESSION;
    }
    kick(actor, code, said);
    return RH_OK;
}
