/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that may come back: a bond that outlives its connection for a while,
 * and goes over to another one (docs/decisions/019-resume.md).
 *
 *     THERE  -its connection is lost-> AWAY, LOST is told    -kicked, left-> gone
 *     THERE  -RETURN by another connection-> THERE: the one before is kicked, RESUMED is told
 *     AWAY   -RETURN, or its gateway is heard of again-> THERE, RESUMED is told
 *     AWAY   -resume_ms pass, another client takes its place-> gone
 */
#include "node/runtime/inside.h"

#include "base/mutant.h"
#include "node/runtime/bond.h"

#include <string.h>

enum { KEEP_DEFAULT_MS = 30000 };

uint32_t keep_ms(const struct rh_actor *a)
{
    const uint32_t given = role_of(a)->ops->resume_ms;

    return given == 0 ? KEEP_DEFAULT_MS : given;
}

bool keep_wants(const struct rh_actor *a, const struct note *note)
{
    return (note->type == NOTE_KEEP || note->type == NOTE_RENEW) && keep_ms(a) != UINT32_MAX;
}

void keep_begin(struct client_bond *c, const struct note *note)
{
    struct bond *b = &c->bond;

    b->key = note->key;
    b->session = note->session;
    b->epoch = note->type == NOTE_KEEP ? 1 : note->epoch;
}

/* ---- away ---- */

static void set_away(struct client_bond *c, uint64_t ms)
{
    struct runtime *s = c->actor->runtime;

    c->away = true;
    c->until.actor = c->actor;
    c->until.type = TIMER_AWAY;
    alarms_set(&s->alarms, &c->until.alarm, s->now_us + ms * 1000);
}

void keep_unset(struct client_bond *c)
{
    c->away = false;
    alarms_unset(&c->actor->runtime->alarms, &c->until.alarm);
}

bool keep_leaves(struct client_bond *c)
{
    if (c->bond.session == 0 || c->bond.kicked) {
        return false;
    }
    set_away(c, keep_ms(c->actor));
    return true;
}

void keep_over(struct client_bond *c)
{
    // The turn that would tell LOST tells it all the same: it needs no client any more.
    if (c->due == RH_SESSION_LOST) {
        c->away = false;
        return;
    }
    bonds_drop(c);
}

/* ---- back ---- */

/* Number of the oldest push that can be sent again, or of the next one. */
static uint64_t first_of(const struct client_bond *c)
{
    return c->bond.number - c->unacked_pushes.count + 1;
}

/* Its connection has all to `got`, of its present numbers: the others again. */
static void send_rest(struct client_bond *c, uint64_t got)
{
    const uint64_t first = first_of(c);

    c->next_number = got < first ? first : c->bond.number + 1;
    if (got >= first && got < c->bond.number) {
        c->next_number = got + 1; // else it has all, or lies
    }
    push_unacked(c, c->next_number);
    if (!mutant(M_REBINDONCE)) {
        push_rebind(c);
    }
}

static void is_back(struct client_bond *c)
{
    // One that was not told of it yet knows nothing of the session.
    const uint32_t why = c->due == RH_SESSION_RESUMED ? RH_RESUMED_AFRESH : RH_RESUMED_CLIENT;

    keep_unset(c);
    c->due = 0;
    c->result = BOUND_KEPT;
    session_tell(c, RH_SESSION_RESUMED, why);
}

/* The connection of before may be there still: it takes no number, for its round ends here. */
static void kick_former(const struct client_bond *c)
{
    static const char why[] = "the session was resumed elsewhere";
    const struct bond *b = &c->bond;
    const struct push_record push = {.gateway = b->gateway,
                                     .connection = b->connection,
                                     .round = b->round,
                                     .number = b->number + 1,
                                     .type = PUSH_KICK,
                                     .code = KICK_REPLACED,
                                     .payload = bytes_of(why, sizeof why - 1)};
    const struct completion event = {.verb = VERB_PUSH, .actor = name_of(c->actor), .push = &push};

    actor_say(c->actor, &event);
}

void keep_return(struct client_bond *c, const struct note *note)
{
    const bool same = bond_is_of(&c->bond, note);

    // Of a greater round the answer of the one before was lost: it comes anew, by the same line.
    if (same && note->round <= c->bond.round) {
        session_answer(c->actor, c, BOUND_KEPT); // a copy of what ran
        return;
    }
    if (!c->away && !same) {
        kick_former(c);
    }
    if (!mutant(M_OLDROUND)) {
        c->bond.gateway = note->gateway;
        c->bond.connection = note->connection;
    }
    c->bond.round = note->round;
    c->bond.stamp = session_stamp(c->actor);
    c->bond.epoch++;
    bonds_part(c);
    session_tell_bound(c);
    unacked_pushes_drop(
        &c->unacked_pushes, c->bond.number, mutant(M_ACKALL) ? UINT64_MAX : note->got);
    send_rest(c, note->got);
    is_back(c);
}

void keep_renew(struct client_bond *c, const struct note *note)
{
    // In another round it has got nothing: the answer of the note that began this one was lost.
    // What the gateway has, its client may still lose with the line: it is kept until that says so.
    send_rest(c, note->got_round == c->bond.round ? note->got : 0);
    if (c->away && c->due != RH_SESSION_LOST) {
        session_tell_bound(c);
        is_back(c);
        return;
    }
    keep_unset(c);
    c->due = c->due == RH_SESSION_LOST ? 0 : c->due;
    session_answer(c->actor, c, BOUND_KEPT);
}

void keep_ack(const struct rh_actor *a, const struct note *note)
{
    struct client_bond *c = bonds_of(a, note);

    if (c != NULL && note->round == c->bond.round) {
        unacked_pushes_drop(&c->unacked_pushes, c->bond.number, note->got);
    }
}

/* ---- with its actor ---- */

void keep_arrive(struct client_bond *c, const struct bond *b)
{
    c->bond = *b;
    c->bond.unacked_pushes = (struct bytes){0};
    c->bond.followed = false;
    c->next_number = b->number + 1;
    unacked_pushes_load(&c->unacked_pushes, b->unacked_pushes);
    if (b->session != 0 && b->left_ms != BOND_THERE) {
        set_away(c, mutant(M_AWAYANEW) ? keep_ms(c->actor) : b->left_ms);
    }
}

void keep_pack(const struct client_bond *c, struct bond *out)
{
    const uint64_t now_us = c->actor->runtime->now_us;
    const uint64_t until_us = c->until.alarm.at_us;

    *out = c->bond;
    if (!mutant(M_UNSEENSTAYS)) {
        out->unacked_pushes = unacked_pushes_bytes(&c->unacked_pushes);
    }
    out->left_ms = BOND_THERE;
    if (c->away) {
        out->left_ms = until_us > now_us ? (uint32_t)((until_us - now_us) / 1000) : 0;
    }
}
