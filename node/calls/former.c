/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors that moved, and what they told others where they were
 * (docs/decisions/050-what-players-keep.md).
 *
 *     it was there         it is here
 *     leaves, with the name of its session if something is under way
 *                          <- SETTLE session
 *                          what it tells others is barred
 *     all was answered or given up
 *     SETTLED session ->   lifted
 *
 * It is lifted, too, when that node is gone, for what it told is dropped by all who know that
 * (identity_is_orphan()), and when all that it can have told there is over.
 */
#include "node/calls/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <string.h>

enum {
    UNDER_WAY_US = 30 * 1000 * 1000, /* so long a send looks for its target */
    ASKERS_MAX = 65536,
};

static bool is_under_way(const struct calls *c, uint64_t session)
{
    return broadcasts_holds(&c->broadcasts, session) ||
           router_tells(c->router, router_session_of(c->router, session));
}

uint64_t calls_under_way(const struct calls *c, uint64_t session)
{
    return c->router != NULL && session != 0 && is_under_way(c, session) ? session : 0;
}

/* ---- what came here */

void calls_former(struct calls *c, const struct call_former *former, uint64_t now_us)
{
    struct former *f = NULL;

    if (c->router == NULL || mutant(M_CASTMOVED)) {
        return;
    }
    f = mem_new(1, sizeof *f + former->id.size);
    f->incarnation = former->incarnation;
    f->session = former->session;
    f->until_us = now_us + UNDER_WAY_US;
    f->kind = former->kind;
    f->id_size = (uint8_t)former->id.size;
    memcpy(f->id, former->id.data, former->id.size);
    list_push_back(&c->formers, &f->in_calls);
}

static void former_free(struct calls *c, struct former *f)
{
    if (f->mine != 0) {
        broadcasts_lift(&c->broadcasts, f->mine);
    }
    list_remove(&f->in_calls);
    mem_free(f);
}

void formers_drop(struct calls *c)
{
    struct list_link *l = NULL;

    while ((l = list_front(&c->formers)) != NULL) {
        former_free(c, CONTAINER_OF(l, struct former, in_calls));
    }
    c->asker_count = 0;
}

void former_begins(struct calls *c, const struct call *call)
{
    for (struct list_link *l = list_front(&c->formers); l != NULL; l = list_next(&c->formers, l)) {
        struct former *f = CONTAINER_OF(l, struct former, in_calls);

        if (f->mine == 0 && f->kind == call->from_kind &&
            bytes_equal(bytes_of(f->id, f->id_size), call->from)) {
            f->mine = call->session;
            broadcasts_bar(&c->broadcasts, f->mine);
        }
    }
}

void former_lift(struct calls *c, uint64_t session)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&c->formers); l != NULL; l = next) {
        struct former *f = CONTAINER_OF(l, struct former, in_calls);

        next = list_next(&c->formers, l);
        if (f->mine == session) {
            former_free(c, f);
        }
    }
}

/* ---- between nodes */

void calls_control(struct calls *c, uint64_t peer, const Rh__Control *message, uint64_t now_us)
{
    const struct road *road = calls_road(c, peer);
    struct list_link *next = NULL;

    c->now_us = now_us > c->now_us ? now_us : c->now_us;
    if (c->router == NULL || road == NULL) {
        return; // Only nodes have roads.
    }
    if (message->body_case == RH__CONTROL__BODY_SETTLE && c->asker_count < ASKERS_MAX) {
        if (c->asker_count == c->asker_cap) {
            c->asker_cap = c->asker_cap == 0 ? 16 : 2 * c->asker_cap;
            c->asker = mem_resize(c->asker, c->asker_cap * sizeof *c->asker);
        }
        c->asker[c->asker_count++] = (struct asker){peer, message->settle->session};
    }
    for (struct list_link *l = list_front(&c->formers);
         l != NULL && message->body_case == RH__CONTROL__BODY_SETTLED;
         l = next) {
        struct former *f = CONTAINER_OF(l, struct former, in_calls);

        next = list_next(&c->formers, l);
        if (f->asked == peer && f->session == message->settled->session) {
            former_free(c, f);
        }
    }
}

void formers_lose_peer(struct calls *c, uint64_t peer)
{
    size_t kept = 0;

    for (struct list_link *l = list_front(&c->formers); l != NULL; l = list_next(&c->formers, l)) {
        struct former *f = CONTAINER_OF(l, struct former, in_calls);

        f->asked = f->asked == peer ? 0 : f->asked; // by another link, once more
    }
    for (size_t i = 0; i < c->asker_count; i++) {
        if (c->asker[i].peer != peer) {
            c->asker[kept++] = c->asker[i];
        }
    }
    c->asker_count = kept;
}

static void say(struct calls *c, uint64_t peer, Rh__Control *control, struct calls_effect *out)
{
    control->source_incarnation = c->incarnation;
    control->version = c->version;
    buffer_clear(&c->said);
    control_put(&c->said, control);
    *out = (struct calls_effect){.type = CALLS_SEND,
                                 .peer = peer,
                                 .frame_type = FRAME_CONTROL,
                                 .bytes = buffer_bytes(&c->said)};
}

static bool take_answer(struct calls *c, struct calls_effect *out)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Settled settled = RH__SETTLED__INIT;

    for (size_t i = 0; i < c->asker_count; i++) {
        const struct asker asker = c->asker[i];

        if (!is_under_way(c, asker.session)) {
            c->asker[i] = c->asker[--c->asker_count];
            settled.session = asker.session;
            control.body_case = RH__CONTROL__BODY_SETTLED;
            control.settled = &settled;
            say(c, asker.peer, &control, out);
            return true;
        }
    }
    return false;
}

static bool is_over(const struct calls *c, const struct former *f)
{
    return c->now_us >= f->until_us || calls_member(c, f->incarnation) == NULL ||
           (f->incarnation == c->incarnation && !is_under_way(c, f->session));
}

static uint64_t peer_of(const struct calls *c, uint64_t incarnation)
{
    for (size_t i = 0; i < c->road_count; i++) {
        if (c->road[i].incarnation == incarnation) {
            return c->road[i].peer;
        }
    }
    return 0;
}

void formers_look(struct calls *c)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&c->formers); l != NULL; l = next) {
        struct former *f = CONTAINER_OF(l, struct former, in_calls);

        next = list_next(&c->formers, l);
        if (is_over(c, f)) {
            former_free(c, f);
        }
    }
}

bool former_take(struct calls *c, struct calls_effect *out)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Settle settle = RH__SETTLE__INIT;

    for (struct list_link *l = list_front(&c->formers); l != NULL; l = list_next(&c->formers, l)) {
        struct former *f = CONTAINER_OF(l, struct former, in_calls);
        const uint64_t peer = f->asked != 0 ? 0 : peer_of(c, f->incarnation);
        const struct view_member *m = calls_member(c, f->incarnation);

        if (f->asked == 0 && peer == 0 && m != NULL) {
            // Nobody else may want a link to it.
            calls_step(c, (struct router_event){.type = ROUTER_WANTED, .slot = m->slot}, c->now_us);
        } else if (peer != 0) {
            f->asked = peer;
            settle.session = f->session;
            control.body_case = RH__CONTROL__BODY_SETTLE;
            control.settle = &settle;
            say(c, peer, &control, out);
            return true;
        }
    }
    return take_answer(c, out);
}
