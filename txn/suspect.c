/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/suspect.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "txn/delta.h"
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

/* A node has no right to speak of others' actors: its report would put any in quarantine. */
static bool had_it(const struct state *s, const Rh__CommandRegister *in,
                   const struct quarantined *actor)
{
    const struct ring *ring = &s->view.ring;
    const struct state_node *node = state_node_named(s, in->name);
    const struct bytes id = quarantined_id(actor);
    const uint64_t hash = ring_position(ring_key_of_kind(s->view.key, actor->kind), id);
    bool had = false;

    if (s->format < FLEET_FORMAT_KINDS || mutant(M_ANYSTRIKE)) {
        return true;
    }
    if (ring->vnode_count == 0 || node == NULL) {
        return false;
    }
    const uint32_t cell = ring_cell_at(ring, actor->kind, hash, id);
    had = ring_hit_node(ring->cell[cell]) == node->slot;
    for (size_t i = 0; !had && i < s->lost_count; i++) {
        const struct state_lost *l = &s->lost[i];

        had = l->incarnation == in->died && cell >= l->from && cell < l->to;
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

void suspect_forget(struct state *s, uint64_t incarnation)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->lost_count; i++) {
        if (s->lost[i].incarnation != incarnation) {
            s->lost[kept++] = s->lost[i];
        }
    }
    s->lost_count = kept;
}

static bool named_before(const Rh__CommandRegister *in, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (in->suspects[i]->kind == in->suspects[at]->kind &&
            bytes_equal(bytes_of(in->suspects[i]->id.data, in->suspects[i]->id.len),
                        bytes_of(in->suspects[at]->id.data, in->suspects[at]->id.len))) {
            return true;
        }
    }
    return false;
}

void suspect_strike(struct state *s, const Rh__CommandRegister *in, uint64_t time_us,
                    Rh__Delta *delta)
{
    const uint64_t now_us = time_now(s, time_us);
    struct quarantined actor;

    // One death, one strike: told again by a later process, it is not what that one replaces.
    if (in->died == 0 || in->died != in->replaces) {
        return;
    }
    forget_old(s, now_us);
    for (size_t i = 0; i < in->n_suspects && i < SUSPECTS_OF_DEATH_MAX; i++) {
        if (!quarantined_read(&actor, in->suspects[i]) || named_before(in, i) ||
            !had_it(s, in, &actor)) {
            continue;
        }
        struct state_suspect *e = find_or_insert(s, &actor);
        e->strikes++;
        e->struck_us = now_us;
        memset(e->node, 0, sizeof e->node);
        (void)snprintf(e->node, sizeof e->node, "%s", in->name);
        if (!e->quarantined && e->strikes >= (mutant(M_ONESTRIKE) ? 1 : SUSPECT_STRIKES)) {
            put_in(e, now_us, delta);
        }
        make_room(s, delta);
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
