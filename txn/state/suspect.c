/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts strikes against actors whose process died, and puts them into
 * quarantine.
 */
#include "txn/state/suspect.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "ring/unanswered.h"
#include "txn/state/delta.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

static size_t place(const struct state *s, const struct quarantined *actor)
{
    return quarantine_place(s->suspect, s->suspect_count, sizeof *s->suspect, actor);
}

const struct state_suspect *suspect_find(const struct state *s, const struct quarantined *actor)
{
    const size_t at = place(s, actor);

    return at < s->suspect_count && quarantine_compare(&s->suspect[at].actor, actor) == 0
               ? &s->suspect[at]
               : NULL;
}

static struct state_suspect *find_or_insert(struct state *s, const struct quarantined *actor)
{
    const size_t at = place(s, actor);

    if (suspect_find(s, actor) == NULL) {
        s->suspect = mem_resize(s->suspect, (s->suspect_count + 1) * sizeof *s->suspect);
        memmove(&s->suspect[at + 1], &s->suspect[at], (s->suspect_count - at) * sizeof *s->suspect);
        s->suspect[at] = (struct state_suspect){.actor = *actor};
        s->suspect_count++;
    }
    return &s->suspect[at];
}

static void erase(struct state *s, size_t at)
{
    s->suspect_count--;
    memmove(&s->suspect[at], &s->suspect[at + 1], (s->suspect_count - at) * sizeof *s->suspect);
}

/* The one that came first among those that are in quarantine, or among the others; their count. */
static size_t oldest(const struct state *s, bool in_quarantine, size_t *count)
{
    size_t found = s->suspect_count;

    *count = 0;
    for (size_t i = 0; i < s->suspect_count; i++) {
        const struct state_suspect *e = &s->suspect[i];
        const uint64_t us = in_quarantine ? e->since_us : e->struck_us;

        if (e->quarantined != in_quarantine) {
            continue;
        }
        ++*count;
        if (found == s->suspect_count ||
            us < (in_quarantine ? s->suspect[found].since_us : s->suspect[found].struck_us)) {
            found = i;
        }
    }
    return found;
}

/* The clocks of leaders differ: the newest strike is the least that the time can be. */
static uint64_t time_now(const struct state *s, uint64_t time_us)
{
    for (size_t i = 0; i < s->suspect_count; i++) {
        time_us = s->suspect[i].struck_us > time_us ? s->suspect[i].struck_us : time_us;
    }
    return time_us;
}

static void forget_old(struct state *s, uint64_t now_us)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->suspect_count; i++) {
        if (s->suspect[i].quarantined || now_us - s->suspect[i].struck_us <= SUSPECT_WINDOW_US) {
            s->suspect[kept++] = s->suspect[i];
        }
    }
    s->suspect_count = kept;
}

static void make_room(struct state *s, Rh__Delta *delta)
{
    size_t count = 0;
    size_t at = oldest(s, false, &count);

    if (count > SUSPECTS_MAX) {
        erase(s, at);
    }
    at = oldest(s, true, &count);
    if (count > QUARANTINE_MAX) {
        delta_release(delta, &s->suspect[at].actor);
        erase(s, at);
    }
}

static void put_in(struct state_suspect *e, uint64_t now_us, Rh__Delta *delta)
{
    e->quarantined = true;
    e->since_us = now_us;
    delta_quarantine(delta, &e->actor);
}

/* A process that died, and what it may have died of. */
struct death {
    const struct state_node *node; /* NULL: that name is new */
    uint64_t incarnation;
    Rh__Actor *const *actor;
    size_t count;
};

/* NULL: it is nobody's any more. */
static const struct state_node *node_of(const struct state *s, uint64_t incarnation)
{
    for (size_t i = 0; i < s->node_count; i++) {
        if (s->node[i].incarnation == incarnation && s->node[i].barred) {
            return &s->node[i];
        }
    }
    return NULL;
}

static uint64_t position_of(const struct state *s, const struct quarantined *actor)
{
    return ring_position(ring_key_of_kind(s->view.key, actor->kind), quarantined_id(actor));
}

/* Nobody has the right to speak of others' actors: that word would put any in quarantine. */
static bool had_it(const struct state *s, const struct death *d, const struct quarantined *actor)
{
    const struct ring *ring = &s->view.ring;
    bool had = false;

    if (s->format < FLEET_FORMAT_KINDS || mutant(M_ANYSTRIKE)) {
        return true;
    }
    if (ring->vnode_count == 0 || d->node == NULL) {
        return false;
    }
    const uint32_t cell =
        ring_cell_at(ring, actor->kind, position_of(s, actor), quarantined_id(actor));
    had = ring_hit_node(ring->cell[cell]) == d->node->slot;
    for (size_t i = 0; !had && i < s->lost_count; i++) {
        const struct state_lost *l = &s->lost[i];

        had = l->incarnation == d->incarnation && cell >= l->from && cell < l->to;
    }
    return had;
}

void suspect_lose(struct state *s, uint64_t incarnation, const struct ring_op *moves, size_t count)
{
    if (s->format < FLEET_FORMAT_KINDS) {
        return;
    }
    s->lost = mem_resize(s->lost, (s->lost_count + count) * sizeof *s->lost);
    for (size_t i = 0; i < count; i++) {
        const struct ring_vnode *v = ring_find(&s->view.ring, moves[i].vnode);

        ASSERT(v != NULL);
        s->lost[s->lost_count++] =
            (struct state_lost){incarnation, v->from, ring_end(&s->view.ring, v)};
    }
}

/* ---- strikes that others told of ---- */

static bool is_struck(const struct state *s, uint64_t incarnation, uint64_t position)
{
    for (size_t i = 0; i < s->struck_count; i++) {
        if (s->struck[i].incarnation == incarnation && s->struck[i].position == position) {
            return true;
        }
    }
    return false;
}

static void note_struck(struct state *s, uint64_t incarnation, uint64_t position)
{
    if (s->struck_count == SUSPECT_STRUCK_MAX) {
        s->struck_count--;
        memmove(s->struck, s->struck + 1, s->struck_count * sizeof *s->struck);
    }
    s->struck = mem_resize(s->struck, (s->struck_count + 1) * sizeof *s->struck);
    s->struck[s->struck_count++] = (struct state_struck){incarnation, position};
}

static void forget_struck(struct state *s, uint64_t incarnation)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->struck_count; i++) {
        if (s->struck[i].incarnation != incarnation) {
            s->struck[kept++] = s->struck[i];
        }
    }
    s->struck_count = kept;
}

void suspect_forget(struct state *s, uint64_t incarnation)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->lost_count; i++) {
        if (s->lost[i].incarnation != incarnation) {
            s->lost[kept++] = s->lost[i];
        }
    }
    s->lost_count = kept;
    forget_struck(s, incarnation);
}

/* ---- strikes ---- */

static bool named_before(const struct death *d, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (d->actor[i]->kind == d->actor[at]->kind &&
            bytes_equal(bytes_of(d->actor[i]->id.data, d->actor[i]->id.len),
                        bytes_of(d->actor[at]->id.data, d->actor[at]->id.len))) {
            return true;
        }
    }
    return false;
}

static void strike(struct state *s, const struct death *d, const struct quarantined *actor,
                   uint64_t now_us, Rh__Delta *delta)
{
    struct state_suspect *e = find_or_insert(s, actor);

    e->strikes++;
    e->struck_us = now_us;
    memset(e->node, 0, sizeof e->node);
    (void)snprintf(e->node, sizeof e->node, "%s", d->node == NULL ? "" : d->node->name);
    if (!e->quarantined && e->strikes >= (mutant(M_ONESTRIKE) ? 1 : SUSPECT_STRIKES)) {
        put_in(e, now_us, delta);
    }
    make_room(s, delta);
}

/* What others told of the death was a guess: who did not run then is innocent of it. Who is in
 * quarantine waits for an operator all the same. */
static void acquit(struct state *s, const struct death *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->suspect_count; i++) {
        struct state_suspect *e = &s->suspect[i];
        bool ran = mutant(M_NOACQUIT);

        for (size_t k = 0; !ran && k < d->count; k++) {
            struct quarantined actor;

            ran =
                quarantined_read(&actor, d->actor[k]) && quarantine_compare(&actor, &e->actor) == 0;
        }
        if (!ran && !e->quarantined && is_struck(s, d->incarnation, position_of(s, &e->actor))) {
            e->strikes--;
        }
        if (e->strikes > 0 || e->quarantined) {
            s->suspect[kept++] = *e;
        }
    }
    s->suspect_count = kept;
}

void suspect_strike(struct state *s, const Rh__CommandRegister *in, uint64_t time_us,
                    Rh__Delta *delta)
{
    const uint64_t now_us = time_now(s, time_us);
    const struct death d = {state_node_named(s, in->name), in->died, in->suspects, in->n_suspects};
    struct quarantined actor;

    // One death, one strike: told again by a later process, it is not what that one replaces.
    if (in->died == 0 || in->died != in->replaces) {
        return;
    }
    forget_old(s, now_us);
    for (size_t i = 0; i < d.count && i < SUSPECTS_OF_DEATH_MAX; i++) {
        if (quarantined_read(&actor, d.actor[i]) && !named_before(&d, i) && had_it(s, &d, &actor) &&
            (!is_struck(s, d.incarnation, position_of(s, &actor)) || mutant(M_STRIKETWICE))) {
            strike(s, &d, &actor, now_us, delta);
        }
    }
    acquit(s, &d);
}

/* It may have died of the actor; others tell. */
static void strike_once(struct state *s, const struct death *d, const struct quarantined *actor,
                        uint64_t now_us, Rh__Delta *delta)
{
    const struct state_suspect *e = suspect_find(s, actor);
    const uint64_t position = position_of(s, actor);

    if (had_it(s, d, actor) && !is_struck(s, d->incarnation, position) &&
        (e == NULL || !e->quarantined)) {
        strike(s, d, actor, now_us, delta);
        note_struck(s, d->incarnation, position);
    }
}

void suspect_unanswered(struct state *s, const Rh__CommandReassign *in, uint64_t time_us,
                        Rh__Delta *delta)
{
    const uint64_t now_us = time_now(s, time_us);
    const struct death d = {.node = state_node(s, (uint16_t)in->slot),
                            .incarnation = in->incarnation};
    struct unanswered_actor a;

    if (s->format < FLEET_FORMAT_STRIKES) {
        return;
    }
    forget_old(s, now_us);
    for (size_t i = 0; i < in->n_suspects && i < SUSPECTS_UNANSWERED_MAX; i++) {
        if (!unanswered_read_suspect(&a, in->suspects[i])) {
            continue;
        }
        if (a.before != 0 && a.before != d.incarnation) {
            strike_once(s,
                        &(struct death){.node = node_of(s, a.before), .incarnation = a.before},
                        &a.actor,
                        now_us,
                        delta);
        }
        if (a.before != 0 || suspect_find(s, &a.actor) != NULL) {
            strike_once(s, &d, &a.actor, now_us, delta);
        }
    }
}

void suspect_add(struct state *s, const struct quarantined *actor, uint64_t time_us,
                 Rh__Delta *delta)
{
    struct state_suspect *e = find_or_insert(s, actor);

    ASSERT(!e->quarantined);
    put_in(e, time_us, delta);
    make_room(s, delta);
}

void suspect_clear(struct state *s, const struct state_suspect *suspect, Rh__Delta *delta)
{
    if (suspect->quarantined) {
        delta_release(delta, &suspect->actor);
    }
    erase(s, (size_t)(suspect - s->suspect));
}
