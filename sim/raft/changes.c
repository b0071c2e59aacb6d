/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of voters while a simulated group runs.
 */
#include "sim/raft/inside.h"

#include "raft/replica.h"

#include "base/assert.h"

#include <string.h>

enum { IDENTITY = 1000 };

/* ---- hellos: as coordinator/links.c does it ---- */

static void meet(const struct sim_voter *me, const struct sim_voter *other)
{
    const uint64_t id = other->place + 1;
    const uint64_t identity = other->disk.identity;
    const bool fellows =
        replica_part(me->replica) == REPLICA_VOTES &&
        replica_part(other->replica) == REPLICA_VOTES &&
        replica_generation(me->replica)->number == replica_generation(other->replica)->number;
    const enum err e =
        fellows ? replica_meet(me->replica, id, identity, replica_pristine(other->replica))
                : replica_meet_stranger(
                      me->replica, id, identity, replica_generation(other->replica)->number);

    if (e != ERR_OK) {
        raft_world_violation(me->world, me, "a sound folder was refused");
    }
}

void raft_changes_hello(struct sim_voter *n)
{
    struct raft_world *w = n->world;

    for (unsigned i = 0; w->options.change && i < w->count; i++) {
        if (i != n->place && w->node[i].replica != NULL) {
            meet(n, &w->node[i]);
            meet(&w->node[i], n);
        }
    }
}

/* kill -9 in the middle: while it is new, or not even written. */
void raft_changes_begun(struct sim_voter *n)
{
    struct raft_world *w = n->world;

    if (!w->healing && prng_chance(&w->changes, 25)) {
        raft_world_push_for(w, ON_CRASH, n, w->now_us + prng_between(&w->changes, 0, 200000));
    }
}

/* ---- who is in ---- */

static const struct generation *newest(const struct raft_world *w)
{
    const struct generation *out = NULL;

    for (unsigned i = 0; i < w->count; i++) {
        const struct sim_voter *n = &w->node[i];
        if (n->replica != NULL &&
            (out == NULL || replica_generation(n->replica)->number > out->number)) {
            out = replica_generation(n->replica);
        }
    }
    return out;
}

bool raft_changes_in(const struct raft_world *w, const struct sim_voter *n)
{
    return !w->options.change || generation_voter(newest(w), n->place + 1) != NULL;
}

const struct sim_voter *raft_changes_behind(const struct raft_world *w)
{
    const struct generation *g = newest(w);

    for (unsigned i = 0; w->options.change && i < w->count; i++) {
        const struct sim_voter *n = &w->node[i];
        if (n->replica != NULL && generation_used(g, n->place + 1) &&
            replica_generation(n->replica)->number != g->number) {
            return n;
        }
    }
    return NULL;
}

/* ---- the operator ---- */

static struct sim_voter *leader(struct raft_world *w)
{
    struct sim_voter *out = NULL;

    for (unsigned i = 0; i < w->count; i++) {
        if (sim_voter_leads(&w->node[i]) &&
            (out == NULL || replica_generation(w->node[i].replica)->number >
                                replica_generation(out->replica)->number)) {
            out = &w->node[i];
        }
    }
    return out;
}

static void add_wish(const struct raft_world *w, const struct sim_voter *asked, unsigned place,
                     struct generation_wish *wish)
{
    const struct sim_voter *n = &w->node[place];

    *wish = (struct generation_wish){.id = place + 1, .address = ":x"};
    wish->address[1] = (char)('A' + place);
    wish->linked =
        n->replica != NULL && !w->cut[asked->place][place] && !w->cut[place][asked->place];
    wish->empty = wish->linked && replica_part(n->replica) == REPLICA_WAITS;
}

/* One that waits to join: left over from a change that was refused, or a new one. NODES_MAX: there
 * is none. */
static unsigned joiner(struct raft_world *w, const bool taken[NODES_MAX])
{
    for (unsigned i = 0; i < w->count; i++) {
        if (w->node[i].disk.joining && !taken[i] && w->node[i].replica != NULL) {
            return i;
        }
    }
    if (w->count == NODES_MAX) {
        return NODES_MAX;
    }
    struct sim_voter *n = raft_world_add(w);
    raft_disk_init(&n->disk, IDENTITY + n->place, voters_configuration(&w->voters));
    sim_voter_ship(n);
    n->disk.joining = true;
    sim_voter_start(n);
    return n->place;
}

/* Lost for good; but some come back long after others have taken their place. */
static void lose(struct raft_world *w, struct sim_voter *n)
{
    sim_voter_crash(n);
    n->dead = prng_chance(&w->changes, 70);
    if (!n->dead) {
        raft_world_push_for(
            w, ON_RESTART, n, w->now_us + prng_between(&w->changes, 100000, 4000000));
    }
}

/* From `size` of them to how many? */
static unsigned wanted(struct raft_world *w, unsigned size)
{
    const uint64_t draw = prng_between(&w->changes, 0, 99);

    if (size == 1) {
        return 3;
    }
    if (size == 3) {
        return draw < 45 ? 5 : draw < 90 ? 3 : 1;
    }
    return draw < 60 ? 5 : 3;
}

/* Which of the voters is to leave first: one that is lost already, else any. */
static unsigned first_to_leave(struct raft_world *w, const struct generation *now)
{
    for (unsigned i = 0; i < now->voter_count; i++) {
        if (w->node[now->voter[i].id - 1].dead) {
            return i;
        }
    }
    ASSERT(now->voter_count > 0);
    return (unsigned)prng_between(&w->changes, 0, now->voter_count - 1);
}

static void change(struct raft_world *w, struct sim_voter *asked)
{
    const struct generation now = *replica_generation(asked->replica);
    const unsigned size = (unsigned)now.voter_count;
    const unsigned next = wanted(w, size);
    // One leaves when the size stays, two when it shrinks by two.
    const unsigned leave = next < size ? size - next : next == size ? 1 : 0;
    const unsigned first = first_to_leave(w, &now);
    const bool lost =
        next == size && !w->node[now.voter[first].id - 1].dead && prng_chance(&w->changes, 60);
    struct generation_wish wish[GENERATION_VOTERS_MAX];
    bool taken[NODES_MAX] = {false};
    char why[160];
    unsigned count = 0;

    for (unsigned i = 0; i < size; i++) {
        const unsigned place = (unsigned)now.voter[(first + i) % size].id - 1;
        if (i < leave) {
            if (lost && place != asked->place) {
                lose(w, &w->node[place]);
            }
            continue;
        }
        add_wish(w, asked, place, &wish[count++]);
    }
    while (count < next) {
        const unsigned place = joiner(w, taken);
        if (place == NODES_MAX) {
            return;
        }
        taken[place] = true;
        add_wish(w, asked, place, &wish[count++]);
    }
    if (replica_change(asked->replica, UINT64_MAX, wish, count, why, sizeof why) != ERR_OK) {
        raft_world_say(w, asked, why);
        w->result->refused++;
        return;
    }
    raft_world_say(w, asked, "is told of other voters");
    w->result->changes++;
    w->result->grown += next > size;
    w->result->replaced += next == size;
}

void raft_changes_operator(struct raft_world *w)
{
    struct sim_voter *asked = leader(w);

    if (asked != NULL) {
        change(w, asked);
    }
    raft_world_push_for(
        w, ON_OPERATOR, &w->node[0], w->now_us + prng_between(&w->changes, 100000, 3000000));
}
