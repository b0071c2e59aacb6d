/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks circles of calls: what is refused for one is in one, and one message of it loses its
 * calls.
 */
#include "sim/fleet.h"

#include <string.h>

static const struct instance *running(const struct fleet *f, const struct entity *e)
{
    for (unsigned n = 0; n < f->nodes; n++) {
        for (const struct instance *i = f->node[n].instance; i != NULL; i = i->next) {
            if (i->entity == e && i->running) {
                return i;
            }
        }
    }
    return NULL;
}

/* Whom it waits for in the midst of a message; NULL = nobody. */
static const struct entity *waits_for(struct fleet *f, const struct entity *e)
{
    const struct instance *blocked = running(f, e);
    const struct sim_ask *a = blocked == NULL ? NULL : ledger_find(f, blocked->asks);

    return a == NULL ? NULL : &f->ledger.entity[a->entity];
}

/* Whom an actor waits for waits, perhaps by way of others, for that actor. */
static bool is_in_circle(struct fleet *f, const struct entity *first)
{
    const struct entity *at = first;

    for (size_t i = 0; i < LEDGER_ENTITIES && at != NULL; i++) {
        at = waits_for(f, at);
        if (at == first) {
            return true;
        }
    }
    return false;
}

/* It asked that alone. Its calls are numbered one behind the other. */
static bool asks_once(struct fleet *f, const struct instance *i)
{
    const struct sim_ask *before = ledger_find(f, i->asks - 1);
    const struct sim_ask *behind = ledger_find(f, i->asks + 1);

    return (before == NULL || before->parent != i->uid) &&
           (behind == NULL || behind->parent != i->uid);
}

/* Messages that wait for each other, each for one call, are in no other circle: they are numbered.
 * What asks several things of the next one is in a circle by each of them, and these share the
 * other calls: they may each lose one (docs/decisions/048). So they have no number, nor that of a
 * circle in which some of them were before. */
static void number_circle(struct fleet *f, const struct entity *first)
{
    const uint64_t number = ledger_find(f, running(f, first)->uid)->circle;
    const struct entity *at = first;
    bool known = number != 0;
    bool once = true;

    do {
        const struct instance *i = running(f, at);

        known = known && ledger_find(f, i->uid)->circle == number;
        once = once && asks_once(f, i);
        at = waits_for(f, at);
    } while (at != first);
    while (!known) {
        struct sim_ask *a = ledger_find(f, running(f, at)->uid);

        a->circle = once ? f->ledger.circles : 0;
        a->victim = 0;
        at = waits_for(f, at);
        known = at == first;
    }
}

/* Where nothing fails, a call is refused only for a circle: of an actor that is in one now, or was
 * in one when the last circle that was there lost its call. For say that a probe is back at its
 * origin, which has waited all the while. What it came along last stands in the origin's mailbox,
 * so it was not answered; then neither was the call before it, whose actor waits for that one, and
 * so on back to the origin: the circle is there. It is not only if one of its calls has ended
 * otherwise since the probe came along it, which where nothing fails is by a refusal: that of
 * another circle, which shares this call. Then both have lost one (docs/decisions/048). No probe of
 * calm seeds is on its way for longer than PROBE_US. */
void check_circle(struct fleet *f, const struct probe *p)
{
    enum { PROBE_US = 100000 };
    const bool late = f->world.now_us - f->ledger.circle_us > PROBE_US;
    bool *before = f->ledger.in_circle;
    bool now[LEDGER_ENTITIES];
    size_t at = 0;

    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        const struct entity *e = &f->ledger.entity[i];

        now[i] = is_in_circle(f, e);
        at = bytes_equal(p->id, bytes_of(e->id, e->id_size)) ? i : at;
    }
    if (f->profile == PROFILE_CALM && !now[at] && (late || !before[at])) {
        world_violate(&f->world, "circle", "a call is refused for a circle that is none");
    }
    f->ledger.circles++;
    if (now[at]) {
        memcpy(before, now, sizeof now);
        f->ledger.circle_us = f->world.now_us;
        number_circle(f, &f->ledger.entity[at]);
    }
}

/* One call is enough. */
void check_victim(struct fleet *f, const struct sim_ask *refused)
{
    const struct sim_ask *run = ledger_find(f, refused->parent);
    const uint64_t circle = run == NULL ? 0 : run->circle;

    for (size_t i = 0; i < f->ledger.ask_count && circle != 0; i++) {
        struct sim_ask *a = &f->ledger.ask[i];

        if (a->circle == circle && a->victim == 0) {
            a->victim = refused->parent;
        } else if (a->circle == circle && a->victim != refused->parent &&
                   f->profile == PROFILE_CALM) {
            world_violate(&f->world,
                          "circle",
                          "requests %llu and %llu of one circle both lose a call",
                          (unsigned long long)a->victim,
                          (unsigned long long)refused->parent);
            return;
        }
    }
}

/* Who begins the last call of a circle sends a probe after 100 ms, and a probe that is lost has
 * followers: no circle lasts until one of its calls is given up (M_NOCIRCLE). */
void check_circle_ends(struct fleet *f, const struct sim_ask *given_up)
{
    enum { FOUND_US = 2000000 };
    const struct sim_ask *run = ledger_find(f, given_up->parent);
    const struct entity *first = run == NULL ? NULL : &f->ledger.entity[run->entity];
    const struct entity *at = first;
    uint64_t last_us = 0;

    if (f->profile != PROFILE_CALM || first == NULL || !is_in_circle(f, first)) {
        return;
    }
    do {
        const struct sim_ask *asked = ledger_find(f, running(f, at)->asks);

        last_us = asked->sent_us > last_us ? asked->sent_us : last_us;
        at = waits_for(f, at);
    } while (at != first);
    if (f->world.now_us - last_us > FOUND_US) {
        world_violate(&f->world,
                      "circle",
                      "a call of request %llu is given up in a circle that was not found",
                      (unsigned long long)given_up->parent);
    }
}
